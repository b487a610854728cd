// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Passes/OptimizationLevel.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

/// The last steps, the same for every target: into the llvm dialect, and LLVM's own optimisations.
namespace tenon::lower {

/// Everything of arith, math, vector, cf and func in one conversion (a pass for each costs five times as much), together
/// with the target's own patterns, if it has any.
mlir::LogicalResult
convertToLlvm(mlir::ModuleOp module,
              llvm::function_ref<void(mlir::LLVMTypeConverter &, mlir::RewritePatternSet &)> addPatterns = {});

/// Without LLVM's vectorisers: vectors are there already, and those passes would only cost time.
void optimizeLlvm(llvm::Module &module, llvm::TargetMachine &machine, llvm::OptimizationLevel level);

} // namespace tenon::lower
