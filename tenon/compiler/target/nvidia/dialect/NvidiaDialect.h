// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h.inc"
#include "tenon/compiler/target/nvidia/dialect/NvidiaEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tenon/compiler/target/nvidia/dialect/NvidiaAttrs.h.inc"
#define GET_OP_CLASSES
#include "tenon/compiler/target/nvidia/dialect/NvidiaOps.h.inc"

namespace tenon::nvidia {

/// Function attributes of a thread function: its block size, cluster size, bytes of shared memory, and number of tensor
/// maps.
inline constexpr llvm::StringLiteral threadsAttr = "nvidia.threads";
inline constexpr llvm::StringLiteral clusterAttr = "nvidia.cluster";
inline constexpr llvm::StringLiteral sharedBytesAttr = "nvidia.shared_bytes";
inline constexpr llvm::StringLiteral tensorMapsAttr = "nvidia.tensor_maps";
/// How many blocks should fit on a multiprocessor, where that matters: the assembler limits registers accordingly.
inline constexpr llvm::StringLiteral minimumBlocksAttr = "nvidia.minimum_blocks";

/// On f32 operations (unit): a relative error of 2^-17 cannot be seen in the result (threads/RelaxPrecision.cpp).
inline constexpr llvm::StringLiteral relaxedAttr = "nvidia.relaxed";

} // namespace tenon::nvidia
