// SPDX-License-Identifier: Apache-2.0
//
// tenon-expand-random: Philox4x32-10 as tile arithmetic. One round multiplies two of the four counter words by constants
// into 64 bits and mixes the halves with the others and the key; the key grows by two constants each round:
//
//     (hi0, lo0) = M0 * c0    (hi1, lo1) = M1 * c2
//     c = (hi1 ^ c1 ^ k0, lo1, hi0 ^ c3 ^ k1, lo0)       k0 += W0, k1 += W1
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/transform/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace tenon {
namespace {

struct ExpandRandom : PassWrapper<ExpandRandom, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandRandom)
  StringRef getArgument() const override { return "tenon-expand-random"; }
  StringRef getDescription() const override { return "Philox random bits as integer arithmetic"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<arith::ArithDialect>(); }

  void runOnOperation() override {
    SmallVector<tile::PhiloxOp> ops;
    getOperation()->walk([&](tile::PhiloxOp op) { ops.push_back(op); });
    for (tile::PhiloxOp op : ops)
      expand(op);
  }

  static void expand(tile::PhiloxOp op) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    auto words = llvm::cast<RankedTensorType>(op.getWord0().getType());
    auto wide = op.getCounter().getType();
    auto constant = [&](RankedTensorType type, uint64_t value) -> Value {
      unsigned width = type.getElementType().getIntOrFloatBitWidth();
      return b.create<arith::ConstantOp>(DenseElementsAttr::get(type, llvm::APInt(width, value)));
    };
    Value thirtyTwo = constant(wide, 32);
    auto low = [&](Value value) -> Value { return b.create<arith::TruncIOp>(words, value); };
    auto high = [&](Value value) -> Value { return low(b.create<arith::ShRUIOp>(value, thirtyTwo)); };
    auto exclusiveOr = [&](Value x, Value y) -> Value { return b.create<arith::XOrIOp>(x, y); };
    auto product = [&](Value word, uint64_t factor) -> Value {
      return b.create<arith::MulIOp>(b.create<arith::ExtUIOp>(wide, word), constant(wide, factor));
    };
    Value seed = b.create<tile::SplatOp>(wide, op.getSeed());
    Value key0 = low(seed), key1 = high(seed);
    Value zero = constant(words, 0);
    Value c[4] = {low(op.getCounter()), high(op.getCounter()), zero, zero};
    for (int round = 0; round < 10; ++round) {
      Value product0 = product(c[0], 0xD2511F53), product1 = product(c[2], 0xCD9E8D57);
      Value next[4] = {exclusiveOr(exclusiveOr(high(product1), c[1]), key0), low(product1),
                       exclusiveOr(exclusiveOr(high(product0), c[3]), key1), low(product0)};
      std::copy(next, next + 4, c);
      key0 = b.create<arith::AddIOp>(key0, constant(words, 0x9E3779B9));
      key1 = b.create<arith::AddIOp>(key1, constant(words, 0xBB67AE85));
    }
    op->replaceAllUsesWith(ValueRange(c));
    op->erase();
  }
};

} // namespace

std::unique_ptr<Pass> createExpandRandomPass() { return std::make_unique<ExpandRandom>(); }

} // namespace tenon
