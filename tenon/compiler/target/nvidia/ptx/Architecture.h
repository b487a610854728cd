// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/Operation.h"

#include <string>

namespace tenon::nvidia {

/// A GPU architecture that PTX can be made for.
struct Architecture {
  std::string name;       // sm_90a
  int number = 0;         // 90
  bool specific = false;  // the final a: instructions that no later architecture has
  std::string ptxFeature; // +ptx84: the oldest PTX version with everything this architecture is used for
};

/// Throws Error, naming the known ones, when `name` is none of them.
Architecture architectureOf(const std::string &name);

/// The architecture that an op of the nvidia dialect needs at least; 80 for any other op.
int minimumArchitecture(mlir::Operation *op);
/// Whether it needs that architecture itself, sm_90a, and no later one will do.
bool isSpecific(mlir::Operation *op);

/// Reports every op below `root` that `architecture` lacks ("stmatrix needs sm_90, not sm_80"); fails if there is one.
mlir::LogicalResult refuseMissing(mlir::Operation *root, const Architecture &architecture);

} // namespace tenon::nvidia
