// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace tenon::nvidia {

/// The one thread function of the module becomes code for the CPU that the simulator can run: the function and the two
/// constants of base/SimThread.h, in the llvm dialect. Every op of the nvidia dialect is a call:
///
///     %v = nvidia.load shared %a {offset = 16 : i32} : i32 -> f32
///     =>
///     %b = llvm.add %a, 16 : i32
///     llvm.call @tenon_sim_load(%thread, <place>, 1, zext %b, 4, 1, 0, -1)
///     %v = llvm.load %thread : !llvm.ptr -> f32                  // ThreadHeader::operands
///
/// Maths functions are expanded before this.
mlir::LogicalResult lowerThreadsToSim(mlir::ModuleOp module);

} // namespace tenon::nvidia
