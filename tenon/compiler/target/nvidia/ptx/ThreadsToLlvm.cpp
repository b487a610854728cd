// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/ptx/ThreadsToLlvm.h"

#include "tenon/compiler/target/nvidia/ptx/ExpandMath.h"
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// extern __shared__ char tenon_shared[];
void declareShared(ModuleOp module) {
  auto b = ImplicitLocOpBuilder::atBlockBegin(module.getLoc(), module.getBody());
  b.create<LLVM::GlobalOp>(LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false, LLVM::Linkage::External,
                           sharedSymbol, Attribute(), sharedAlignment, /*addrSpace=*/3);
}

} // namespace

LogicalResult lowerThreadsToNvvm(ModuleOp module, const Architecture &architecture) {
  if (failed(refuseMissing(module, architecture)))
    return failure();
  MLIRContext *context = module.getContext();
  context->loadDialect<LLVM::LLVMDialect, cf::ControlFlowDialect, vector::VectorDialect>();
  PassManager pm(context);
  pm.enableVerifier(false);
  pm.addPass(createExpandMathPass());
  pm.addPass(createConvertSCFToCFPass());
  if (failed(pm.run(module)))
    return failure();

  declareShared(module);
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  addMemoryPatterns(patterns, converter, architecture);
  addOrderPatterns(patterns, converter, architecture);
  addMatrixPatterns(patterns, converter, architecture);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

} // namespace tenon::nvidia
