// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-relax-precision: marks the operations whose result reaches memory only after rounding to 16 bits or fewer,
// on ways that carry a relative error through unchanged. A relative error of 2^-17 (exp by one multiplication and one
// instruction, division by a reciprocal that a row shares) is then a thirty-second of half a unit in the last place of f16.
// erf is as good. 1 + erf(x), one function, is within 2^-16.6 for x above -3, where GELU is a normal number of f16; the
// smaller results that bf16 has besides are within 2^-13, a sixteenth of half a unit in its last place.
//
//     %e = math.exp %x                        %e = math.exp %x {nvidia.relaxed}
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/transform/Relaxable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

struct RelaxPrecision : PassWrapper<RelaxPrecision, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RelaxPrecision)
  StringRef getArgument() const override { return "tenon-nvidia-relax-precision"; }
  StringRef getDescription() const override {
    return "Mark f32 operations whose result is only ever seen rounded to 16 bits or fewer";
  }

  void runOnOperation() override {
    Relaxable relaxable;
    getOperation().walk([&](Operation *op) {
      if ((llvm::isa<math::ExpOp, math::Exp2Op, math::ErfOp, arith::DivFOp>(op) || isSumWith(op, "math.erf")) &&
          getElementTypeOrSelf(op->getResult(0).getType()).isF32() && !op->getParentOfType<tile::ReduceOp>() &&
          relaxable(op->getResult(0)))
        op->setAttr(relaxedAttr, UnitAttr::get(op->getContext()));
    });
  }
};

} // namespace

std::unique_ptr<Pass> createRelaxPrecisionPass() { return std::make_unique<RelaxPrecision>(); }

} // namespace tenon::nvidia
