// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Isa.h"
#include "tenon/compiler/target/nvidia/NvidiaTarget.h"
#include "tenon/compiler/target/nvidia/ptx/Architecture.h"
#include "tenon/jit/Compiler.h"

namespace tenon {

void checkCompileOptions(Target target, const CompileOptions &options) {
  cpu::selectIsa(options.isa);
  if (!jit::isGpu(target))
    return;
  std::string architecture = target == Target::cuda ? cudaProperties(options.device).architecture() : options.gpu;
  nvidia::architectureOf(architecture);
  nvidia::checkOptions({architecture, options.warps, options.cluster});
}

} // namespace tenon
