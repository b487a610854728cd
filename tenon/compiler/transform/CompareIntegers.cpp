// SPDX-License-Identifier: Apache-2.0
//
// tenon-compare-integers: a comparison of a small unsigned integer, converted to f32 and scaled by a power of two, with
// one number for the whole tile becomes a comparison of integers. That is what "a random number below p" is:
//
//     %k = tile.shr unsigned %bits, 8                      %t = ceil(%p * 2^24)             one number
//     %f = tile.cast unsigned %k : i32 -> f32        ->    %none = not (%t < 2^24)          all are below
//     %u = arith.mulf %f, 2^-24                            %limit = %none ? 0 : cast(max(%t, 0)) << 8
//     %c = arith.cmpf oge, %u, splat(%p)                   %c = (%bits >= splat(%limit)) ^ splat(%none)
//
// Where none is, the limit is 0 and all words are at least that: an exclusive or turns the answer around, which a GPU's
// comparison does by the way, where LLVM would choose twice for a conjunction.
// Exact: k is below 2^24 and so an f32, its product with a power of two too, and k 2^-24 >= p when k >= p 2^24, that is
// when k is at least the next integer. A NaN p compares as before: nothing is at least, above, below or at most it.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/transform/EraseDead.h"
#include "tenon/compiler/transform/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;

namespace tenon {
namespace {

constexpr int64_t exactBits = 24; // integers below 2^24 are numbers of f32

/// (word >> shift) * 2^exponent as f32, each number of which is exact.
struct ScaledWord {
  Value word;
  int64_t shift = 0;
  int exponent = 0;
};

std::optional<ScaledWord> scaledWord(Value value) {
  ScaledWord found;
  if (auto product = value.getDefiningOp<arith::MulFOp>()) {
    llvm::APFloat factor(0.0f);
    if (!matchPattern(product.getRhs(), m_ConstantFloat(&factor)))
      return std::nullopt;
    int exponent = factor.getExactLog2Abs();
    if (factor.isNegative() || exponent == INT_MIN || std::abs(exponent) > 64)
      return std::nullopt;
    found.exponent = exponent;
    value = product.getLhs();
  }
  auto cast = value.getDefiningOp<tile::CastOp>();
  if (!cast || !cast.getIsUnsigned() || !getElementTypeOrSelf(cast.getType()).isF32() ||
      !getElementTypeOrSelf(cast.getValue().getType()).isInteger(32))
    return std::nullopt;
  auto shift = cast.getValue().getDefiningOp<tile::ShrOp>();
  llvm::APInt by;
  if (!shift || !shift.getIsUnsigned() || !matchPattern(shift->getOperand(1), m_ConstantInt(&by)) ||
      by.ult(32 - exactBits) || by.uge(32))
    return std::nullopt;
  found.word = shift->getOperand(0);
  found.shift = by.getSExtValue();
  return found;
}

/// With the constant or splat on the right.
struct Comparison {
  arith::CmpFPredicate predicate;
  Value left, right;
};

Comparison ordered(arith::CmpFOp op) {
  using enum arith::CmpFPredicate;
  auto mirrored = [](arith::CmpFPredicate predicate) {
    switch (predicate) {
    case OGE: return OLE;
    case OGT: return OLT;
    case OLE: return OGE;
    case OLT: return OGT;
    default: return predicate;
    }
  };
  if (op.getLhs().getDefiningOp<tile::SplatOp>())
    return {mirrored(op.getPredicate()), op.getRhs(), op.getLhs()};
  return {op.getPredicate(), op.getLhs(), op.getRhs()};
}

/// Null when it is no such comparison.
Value compareIntegers(arith::CmpFOp op) {
  using enum arith::CmpFPredicate;
  auto [predicate, left, right] = ordered(op);
  auto threshold = right.getDefiningOp<tile::SplatOp>();
  if (!threshold || (predicate != OGE && predicate != OGT && predicate != OLE && predicate != OLT))
    return {};
  std::optional<ScaledWord> scaled = scaledWord(left);
  if (!scaled)
    return {};
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto number = [&](float value) -> Value { return b.create<arith::ConstantOp>(b.getF32FloatAttr(value)); };
  // The least integer that is not below the threshold, or that is above it.
  Value bound = b.create<arith::MulFOp>(threshold.getValue(), number(std::ldexp(1.0f, -scaled->exponent)));
  if (predicate == OGE || predicate == OLT)
    bound = b.create<math::CeilOp>(bound);
  else
    bound = b.create<arith::AddFOp>(b.create<math::FloorOp>(bound), number(1));
  float end = std::ldexp(1.0f, static_cast<int>(32 - scaled->shift)); // no word's integer is as large
  Value reached = b.create<arith::CmpFOp>(OLT, bound, number(end));
  Value positive = b.create<arith::CmpFOp>(OGT, bound, number(0));
  Value counted = b.create<arith::SelectOp>(b.create<arith::AndIOp>(reached, positive), bound, number(0));
  Value integer = b.create<tile::CastOp>(b.getI32Type(), counted, /*is_unsigned=*/b.getUnitAttr());
  Value limit = b.create<arith::ShLIOp>(integer, b.create<arith::ConstantIntOp>(scaled->shift, 32));

  auto words = llvm::cast<RankedTensorType>(scaled->word.getType());
  auto flags = llvm::cast<RankedTensorType>(op.getType());
  Value limits = b.create<tile::SplatOp>(words, limit);
  bool isAbove = predicate == OGE || predicate == OGT;
  Value compared = b.create<arith::CmpIOp>(isAbove ? arith::CmpIPredicate::uge : arith::CmpIPredicate::ult,
                                           scaled->word, limits);
  // Nothing is at least a NaN, and nothing is below one.
  Value turned = b.create<arith::CmpFOp>(isAbove ? UGE : OGE, bound, number(end));
  return b.create<arith::XOrIOp>(compared, b.create<tile::SplatOp>(flags, turned));
}

struct CompareIntegers : PassWrapper<CompareIntegers, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CompareIntegers)
  StringRef getArgument() const override { return "tenon-compare-integers"; }
  StringRef getDescription() const override {
    return "Compare integers that were converted to f32 with one threshold as what they are";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, tile::TileDialect>();
  }
  void runOnOperation() override {
    SmallVector<arith::CmpFOp> comparisons;
    getOperation()->walk([&](arith::CmpFOp op) { comparisons.push_back(op); });
    for (arith::CmpFOp op : comparisons) {
      Value replacement = compareIntegers(op);
      if (!replacement)
        continue;
      op.replaceAllUsesWith(replacement);
      eraseIfDead(op);
    }
  }
};

} // namespace

std::unique_ptr<Pass> createCompareIntegersPass() { return std::make_unique<CompareIntegers>(); }

} // namespace tenon
