// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/ptx/ThreadsToLlvm.h"

#include "tenon/compiler/target/nvidia/ptx/ExpandMath.h"
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"

#include "tenon/compiler/lower/ToLlvm.h"

#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/IR/Matchers.h"
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

/// A product of 32-bit numbers in two halves. Written as a 64-bit product and shifts, as arith would have it, LLVM
/// carries on in 64 bits where only a 32-bit half is used, and no longer sees that the next factor has 32.
struct WideProduct : ConvertOpToLLVMPattern<arith::MulUIExtendedOp> {
  WideProduct(LLVMTypeConverter &converter, const Architecture &architecture)
      : ConvertOpToLLVMPattern(converter, /*benefit=*/2), architecture(architecture) {}

  LogicalResult matchAndRewrite(arith::MulUIExtendedOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getLow().getType().isInteger(32))
      return failure();
    PtxBuilder builder(rewriter, op.getLoc(), architecture, *getTypeConverter());
    Type word = rewriter.getI32Type();
    rewriter.replaceOp(op, builder.assembly({word, word}, {adaptor.getLhs(), adaptor.getRhs()},
                                            "{ .reg .b64 product; mul.wide.u32 product, $2, $3; "
                                            "mov.b64 {$0, $1}, product; }",
                                            Effect::None));
    return success();
  }

  const Architecture &architecture;
};

/// (x & mask) ^ bits with two constants, as floats are made (NarrowIntegers.cpp). The assembler would put each into an
/// instruction of its own, as what is part of it; asked for one instruction it keeps one of them in a register.
struct MaskAndFlip : ConvertOpToLLVMPattern<arith::XOrIOp> {
  MaskAndFlip(LLVMTypeConverter &converter, const Architecture &architecture)
      : ConvertOpToLLVMPattern(converter, /*benefit=*/2), architecture(architecture) {}

  LogicalResult matchAndRewrite(arith::XOrIOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    APInt mask, bits;
    auto masked = op.getLhs().getDefiningOp<arith::AndIOp>();
    if (!op.getType().isInteger(32) || !masked || !matchPattern(masked.getRhs(), m_ConstantInt(&mask)) ||
        !matchPattern(op.getRhs(), m_ConstantInt(&bits)) ||
        !llvm::all_of(op->getUsers(), [](Operation *user) { return llvm::isa<arith::BitcastOp>(user); }))
      return failure();
    PtxBuilder builder(rewriter, op.getLoc(), architecture, *getTypeConverter());
    std::string text = "lop3.b32 $0, $1, " + std::to_string(mask.getZExtValue()) + ", " +
                       std::to_string(bits.getZExtValue()) + ", 0x6a;";
    rewriter.replaceOp(op, builder.assembly({rewriter.getI32Type()}, {rewriter.getRemappedValue(masked.getLhs())}, text,
                                            Effect::None));
    return success();
  }

  const Architecture &architecture;
};

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
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(placeTensorMaps(function)))
      return failure();
  return lower::convertToLlvm(module, [&](LLVMTypeConverter &converter, RewritePatternSet &patterns) {
    addMemoryPatterns(patterns, converter, architecture);
    addOrderPatterns(patterns, converter, architecture);
    addMatrixPatterns(patterns, converter, architecture);
    addBulkPatterns(patterns, converter, architecture);
    addWarpgroupPatterns(patterns, converter, architecture);
    patterns.add<WideProduct, MaskAndFlip>(converter, architecture);
  });
}

} // namespace tenon::nvidia
