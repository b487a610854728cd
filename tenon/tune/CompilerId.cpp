// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Machine.h"
#include "tenon/tune/Worker.h"

#include "tenon/tune/CompilerHash.h" // generated: TENON_COMPILER_HASH

namespace tenon::tuning {

const std::string &compilerId() {
  static const std::string id = "tenon " + tenonVersion() + ", llvm " + thisMachine().llvmVersion + ", sources " +
                                std::string(TENON_COMPILER_HASH).substr(0, 16);
  return id;
}

} // namespace tenon::tuning
