// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/cpu/CpuTarget.h"
#include "tenon/compiler/target/cpu/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

struct LowerToLoops : PassWrapper<LowerToLoops, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToLoops)
  LowerToLoops() = default;
  LowerToLoops(const LowerToLoops &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "tenon-cpu-lower-to-loops"; }
  StringRef getDescription() const override { return "A tile kernel as loop nests around vectors"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                    vector::VectorDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto kernels = module.getOps<func::FuncOp>();
    // The jit makes modules of exactly this form; IR written by hand need not have it.
    if (!llvm::hasSingleElement(kernels) || !llvm::hasSingleElement((*kernels.begin()).getBody())) {
      module.emitError("expected a module with one kernel, a func.func with one block");
      return signalPassFailure();
    }
    Isa preset;
    try {
      preset = presetIsa(isa);
    } catch (const Error &error) {
      module.emitError(error.what());
      return signalPassFailure();
    }
    preset.streams = streams;
    KernelInfo info;
    OwningOpRef<ModuleOp> lowered = lowerToLoops(module, preset, info);
    if (!lowered)
      return signalPassFailure();
    module.getBodyRegion().takeBody(lowered->getBodyRegion());
    module->setAttr("tenon.scratch_bytes", OpBuilder(module).getI64IntegerAttr(info.scratchBytes));
  }

  Option<std::string> isa{*this, "isa", llvm::cl::desc("instruction set: avx512, avx2 or baseline"),
                          llvm::cl::init("avx512")};
  Option<bool> streams{*this, "streams", llvm::cl::desc("write large results past the cache")};
};

struct LowerToLlvm : PassWrapper<LowerToLlvm, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToLlvm)
  StringRef getArgument() const override { return "tenon-cpu-lower-to-llvm"; }
  StringRef getDescription() const override { return "Loop nests around vectors to the llvm dialect"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect>();
  }

  void runOnOperation() override {
    if (failed(lowerToLlvmDialect(getOperation())))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createLowerToLoopsPass() { return std::make_unique<LowerToLoops>(); }
std::unique_ptr<Pass> createLowerToLlvmPass() { return std::make_unique<LowerToLlvm>(); }

void registerCpuPasses() {
  registerPass(createLowerToLoopsPass);
  registerPass(createLowerToLlvmPass);
}

} // namespace tenon::cpu
