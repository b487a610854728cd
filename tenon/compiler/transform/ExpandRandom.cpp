// SPDX-License-Identifier: Apache-2.0
//
// tenon-expand-random: Philox4x32-10 as tile arithmetic. One round multiplies two of the four counter words by
// constants into 64 bits and mixes the halves with the others and the key; the key grows by two constants each round:
//
//     (hi0, lo0) = M0 * c0    (hi1, lo1) = M1 * c2
//     c = (hi1 ^ c1 ^ k0, lo1, hi0 ^ c3 ^ k1, lo0)       k0 += W0, k1 += W1
//
// tile.random_bits is this for counter / 4, and one of the words by the low two bits of the counter; of 16 bits, for
// four blocks of 64 counters, half a word, mixed with that of another word.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/transform/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace tenon {
namespace {

Value constant(ImplicitLocOpBuilder &b, Type type, uint64_t value) {
  auto tile = llvm::cast<RankedTensorType>(type);
  unsigned width = tile.getElementType().getIntOrFloatBitWidth();
  return b.create<arith::ConstantOp>(DenseElementsAttr::get(tile, llvm::APInt(width, value)));
}

std::array<Value, 4> philox(ImplicitLocOpBuilder &b, Value seedScalar, Value counter, Type words, int64_t rounds = 10) {
  Type wide = counter.getType();
  Value thirtyTwo = constant(b, wide, 32);
  auto low = [&](Value value) -> Value { return b.create<arith::TruncIOp>(words, value); };
  auto high = [&](Value value) -> Value { return low(b.create<arith::ShRUIOp>(value, thirtyTwo)); };
  auto exclusiveOr = [&](Value x, Value y) -> Value { return b.create<arith::XOrIOp>(x, y); };
  auto product = [&](Value word, uint64_t factor) -> Value {
    return b.create<arith::MulIOp>(b.create<arith::ExtUIOp>(wide, word), constant(b, wide, factor));
  };
  Value seed = b.create<tile::SplatOp>(wide, seedScalar);
  Value key0 = low(seed), key1 = high(seed);
  Value zero = constant(b, words, 0);
  std::array<Value, 4> c = {low(counter), high(counter), zero, zero};
  for (int64_t round = 0; round < rounds; ++round) {
    Value product0 = product(c[0], 0xD2511F53), product1 = product(c[2], 0xCD9E8D57);
    c = {exclusiveOr(exclusiveOr(high(product1), c[1]), key0), low(product1),
         exclusiveOr(exclusiveOr(high(product0), c[3]), key1), low(product0)};
    key0 = b.create<arith::AddIOp>(key0, constant(b, words, 0x9E3779B9));
    key1 = b.create<arith::AddIOp>(key1, constant(b, words, 0xBB67AE85));
  }
  return c;
}

void expand(tile::PhiloxOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  op->replaceAllUsesWith(ValueRange(philox(b, op.getSeed(), op.getCounter(), op.getWord0().getType())));
  op->erase();
}

void expand(tile::RandomBitsOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value counter = op.getCounter();
  Type wide = counter.getType();
  bool areHalves = op.areHalves();
  Type word = llvm::cast<RankedTensorType>(wide).clone(b.getI32Type());
  auto shifted = [&](uint64_t by) -> Value { return b.create<arith::ShRUIOp>(counter, constant(b, wide, by)); };
  Value block;
  if (areHalves) {
    Value first = b.create<arith::AndIOp>(shifted(4), constant(b, wide, ~uint64_t(3)));
    block = b.create<arith::OrIOp>(first, b.create<arith::AndIOp>(shifted(3), constant(b, wide, 3)));
  } else {
    block = shifted(2);
  }
  std::array<Value, 4> words = philox(b, op.getSeed(), block, word, op.getRounds());
  auto isSet = [&](uint64_t bit) -> Value {
    Value masked = b.create<arith::AndIOp>(counter, constant(b, wide, bit));
    return b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, masked, constant(b, wide, 0));
  };
  Value odd = isSet(areHalves ? 2 : 1);
  Value first = b.create<arith::SelectOp>(odd, words[1], words[0]);
  Value second = b.create<arith::SelectOp>(odd, words[3], words[2]);
  if (areHalves) {
    Value evenBytes = constant(b, word, 0x00ff00ff), oddBytes = constant(b, word, 0xff00ff00);
    auto down = [&](Value value, Value by) -> Value {
      return b.create<arith::AndIOp>(b.create<arith::ShRUIOp>(value, by), evenBytes);
    };
    // By 8 for the last eight numbers of a block: bytes are exchanged. By 0 for the first.
    Value eight = b.create<arith::AndIOp>(b.create<arith::TruncIOp>(word, shifted(2)), constant(b, word, 8));
    for (Value *half : {&first, &second}) {
      Value up = b.create<arith::AndIOp>(b.create<arith::ShLIOp>(*half, eight), oddBytes);
      *half = b.create<arith::OrIOp>(up, down(*half, eight));
    }
    Value own = b.create<arith::XOrIOp>(first, b.create<arith::AndIOp>(second, evenBytes));
    second = b.create<arith::XOrIOp>(second, down(first, constant(b, word, 8)));
    first = own;
  }
  Value bits = b.create<arith::SelectOp>(isSet(areHalves ? 4 : 2), second, first);
  if (areHalves) {
    Value upper = b.create<arith::ShRUIOp>(bits, constant(b, word, 16));
    bits = b.create<arith::TruncIOp>(op.getType(), b.create<arith::SelectOp>(isSet(1), upper, bits));
  }
  op.replaceAllUsesWith(bits);
  op->erase();
}

struct ExpandRandom : PassWrapper<ExpandRandom, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandRandom)
  explicit ExpandRandom(RandomBits randomBits) { keepsBits = randomBits == RandomBits::keep; }
  ExpandRandom(const ExpandRandom &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "tenon-expand-random"; }
  StringRef getDescription() const override { return "Philox random bits as integer arithmetic"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<arith::ArithDialect>(); }

  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (auto words = llvm::dyn_cast<tile::PhiloxOp>(op))
        expand(words);
      else if (auto bits = llvm::dyn_cast<tile::RandomBitsOp>(op); bits && !keepsBits)
        expand(bits);
    });
  }

  Option<bool> keepsBits{*this, "keep-random-bits", llvm::cl::desc("leave tile.random_bits as it is")};
};

} // namespace

std::unique_ptr<Pass> createExpandRandomPass(RandomBits randomBits) {
  return std::make_unique<ExpandRandom>(randomBits);
}

} // namespace tenon
