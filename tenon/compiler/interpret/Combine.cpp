// SPDX-License-Identifier: Apache-2.0
//
// Operations in which elements meet: reductions, scans, dot; and random bits.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Philox.h"
#include "tenon/compiler/interpret/Program.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::interpret {
namespace {

/// A tile seen as outer x extent x inner, where `extent` is the dimension that is combined.
struct Lines {
  size_t outer = 1, extent = 1, inner = 1;

  Lines(ArrayRef<int64_t> shape, size_t dim) : extent(shape[dim]) {
    for (size_t d = 0; d < shape.size(); ++d)
      (d < dim ? outer : inner) *= d == dim ? 1 : shape[d];
  }
  size_t element(size_t o, size_t k, size_t i) const { return (o * extent + k) * inner + i; }
};

/// The region of a reduction or scan: combines the tuples left and right.
struct Combiner {
  Slots left, right, yielded;
  Body body;

  /// The combination becomes the left tuple (inPlaceOfRight: the right one).
  bool run(State &state, bool inPlaceOfRight) const {
    if (!runBody(body, state))
      return false;
    llvm::SmallVector<uint64_t, 4> words; // the region may yield its own arguments: read all before writing any
    for (size_t slot : yielded)
      words.push_back(state.slots[slot][0]);
    for (auto [slot, word] : llvm::zip(inPlaceOfRight ? right : left, words))
      state.slots[slot][0] = word;
    return true;
  }
};

template <class Op> bool prepareCombiner(Op op, Program &program, Combiner &combiner) {
  Block &block = op.getCombine().front();
  Slots arguments = program.slots(block.getArguments());
  size_t count = op.getValues().size();
  combiner.left.assign(arguments.begin(), arguments.begin() + count);
  combiner.right.assign(arguments.begin() + count, arguments.end());
  combiner.yielded = program.slots(block.getTerminator()->getOperands());
  return program.prepare(block, combiner.body);
}

void fetch(State &state, const Slots &tiles, size_t element, const Slots &scalars) {
  for (auto [tile, scalar] : llvm::zip(tiles, scalars))
    state.slots[scalar][0] = state.slots[tile][element];
}

void put(State &state, const Slots &scalars, const Slots &tiles, size_t element) {
  for (auto [scalar, tile] : llvm::zip(scalars, tiles))
    state.slots[tile][element] = state.slots[scalar][0];
}

/// From the first element to the last, the partial result on the left.
Step prepareReduce(tile::ReduceOp op, Program &program) {
  Combiner combiner;
  if (!prepareCombiner(op, program, combiner))
    return {};
  Lines lines(llvm::cast<RankedTensorType>(op.getValues()[0].getType()).getShape(), op.getDim());
  return [=, values = program.slots(op.getValues()), results = program.slots(op.getResults())](State &state) {
    for (size_t o = 0; o < lines.outer; ++o)
      for (size_t i = 0; i < lines.inner; ++i) {
        fetch(state, values, lines.element(o, 0, i), combiner.left);
        for (size_t k = 1; k < lines.extent; ++k) {
          fetch(state, values, lines.element(o, k, i), combiner.right);
          if (!combiner.run(state, /*inPlaceOfRight=*/false))
            return false;
        }
        put(state, combiner.left, results, o * lines.inner + i);
      }
    return true;
  };
}

/// A reverse scan goes from the last element to the first, with the partial result on the right: combinations keep
/// the elements' order, which matters when the region is not commutative.
Step prepareScan(tile::ScanOp op, Program &program) {
  Combiner combiner;
  if (!prepareCombiner(op, program, combiner))
    return {};
  Lines lines(llvm::cast<RankedTensorType>(op.getValues()[0].getType()).getShape(), op.getDim());
  return [=, isReverse = op.getReverse(), values = program.slots(op.getValues()),
          results = program.slots(op.getResults())](State &state) {
    const Slots &partial = isReverse ? combiner.right : combiner.left;
    const Slots &next = isReverse ? combiner.left : combiner.right;
    for (size_t o = 0; o < lines.outer; ++o)
      for (size_t i = 0; i < lines.inner; ++i)
        for (size_t n = 0; n < lines.extent; ++n) {
          size_t element = lines.element(o, isReverse ? lines.extent - 1 - n : n, i);
          fetch(state, values, element, n == 0 ? partial : next);
          if (n > 0 && !combiner.run(state, isReverse))
            return false;
          put(state, partial, results, element);
        }
    return true;
  };
}

/// acc + a * b: the products added to the accumulator one after the other, each product and each sum rounded to the
/// accumulator's type (which is exact for the products of narrow operands). allow_tf32 and fast_accum permit less; they
/// ask for nothing.
template <class Multiply, class Add>
Step prepareDotOf(tile::DotOp op, Program &program, Multiply multiply, Add add) {
  size_t m = op.getA().getType().getDimSize(0), k = op.getA().getType().getDimSize(1);
  size_t n = op.getB().getType().getDimSize(1);
  return [=, aSlot = program.slot(op.getA()), bSlot = program.slot(op.getB()), accSlot = program.slot(op.getAcc()),
          resultSlot = program.slot(op.getResult())](State &state) {
    const Words &a = state.slots[aSlot], &b = state.slots[bSlot], &acc = state.slots[accSlot];
    Words &result = state.slots[resultSlot];
    for (size_t row = 0; row < m; ++row)
      for (size_t column = 0; column < n; ++column) {
        uint64_t sum = acc[row * n + column];
        for (size_t i = 0; i < k; ++i)
          sum = add(sum, multiply(a[row * k + i], b[i * n + column]));
        result[row * n + column] = sum;
      }
    return true;
  };
}

Step prepareDot(tile::DotOp op, Program &program) {
  Type typeA = op.getA().getType().getElementType(), typeB = op.getB().getType().getElementType();
  if (typeA.isInteger(8)) {
    auto multiply = [isAUnsigned = op.getAUnsigned(), isBUnsigned = op.getBUnsigned()](uint64_t a, uint64_t b) {
      int64_t x = isAUnsigned ? static_cast<int64_t>(a) : signExtend(a, 8);
      int64_t y = isBUnsigned ? static_cast<int64_t>(b) : signExtend(b, 8);
      return static_cast<uint64_t>(x * y);
    };
    return prepareDotOf(op, program, multiply, [](uint64_t a, uint64_t b) { return lowBits(a + b, 32); });
  }
  if (typeA.isF64())
    return prepareDotOf(op, program, [](uint64_t a, uint64_t b) { return F64::decode(a) * F64::decode(b); },
                        [](uint64_t sum, double product) { return F64::encode(F64::decode(sum) + product); });
  return withFormat(typeA, [&](auto formatA) {
    return withFormat(typeB, [&](auto formatB) {
      return prepareDotOf(op, program,
                          [](uint64_t a, uint64_t b) -> float {
                            return decltype(formatA)::decode(a) * decltype(formatB)::decode(b);
                          },
                          [](uint64_t sum, float product) { return F32::encode(F32::decode(sum) + product); });
    });
  });
}

/// The generator of tile.philox and tile.random_bits: a 64-bit key, a 64-bit counter.
std::array<uint32_t, 4> randomWords(uint64_t seed, uint64_t counter, int rounds = 10) {
  return philox4x32({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, rounds);
}

Step preparePhilox(tile::PhiloxOp op, Program &program) {
  return [seedSlot = program.slot(op.getSeed()), counterSlot = program.slot(op.getCounter()),
          results = program.slots(op.getResults())](State &state) {
    uint64_t seed = state.slots[seedSlot][0];
    for (size_t i = 0; i < state.slots[counterSlot].size(); ++i) {
      std::array<uint32_t, 4> words = randomWords(seed, state.slots[counterSlot][i]);
      for (size_t w = 0; w < 4; ++w)
        state.slots[results[w]][i] = words[w];
    }
    return true;
  };
}

/// Number `place` of the sixteen numbers of 16 bits that the words of a block make: see tile.random_bits.
uint64_t randomHalf(const std::array<uint32_t, 4> &words, uint64_t place) {
  auto half = [&](uint64_t word) { return words[word] >> 16 * (place % 2) & 0xffff; };
  auto exchanged = [](uint64_t bytes) { return (bytes << 8 | bytes >> 8) & 0xffff; };
  uint64_t h = half(place % 4 / 2), g = half(2 + place % 4 / 2);
  if (place >= 8) {
    h = exchanged(h);
    g = exchanged(g);
  }
  return place % 8 < 4 ? h ^ (g & 0xff) : g ^ (exchanged(h) & 0xff);
}

Step prepareRandomBits(tile::RandomBitsOp op, Program &program) {
  return [seedSlot = program.slot(op.getSeed()), counterSlot = program.slot(op.getCounter()),
          result = program.slot(op.getBits()), rounds = static_cast<int>(op.getRounds()),
          areHalves = op.areHalves()](State &state) {
    uint64_t seed = state.slots[seedSlot][0];
    for (size_t i = 0; i < state.slots[counterSlot].size(); ++i) {
      uint64_t counter = state.slots[counterSlot][i];
      uint64_t block = areHalves ? counter / 64 * 4 + counter / 8 % 4 : counter / 4;
      std::array<uint32_t, 4> words = randomWords(seed, block, rounds);
      state.slots[result][i] =
          areHalves ? randomHalf(words, counter / 32 % 2 * 8 + counter % 8) : words[counter % 4];
    }
    return true;
  };
}

} // namespace

Step prepareCombine(Operation *op, Program &program) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](tile::ReduceOp reduce) { return prepareReduce(reduce, program); })
      .Case([&](tile::ScanOp scan) { return prepareScan(scan, program); })
      .Case([&](tile::DotOp dot) { return prepareDot(dot, program); })
      .Case([&](tile::PhiloxOp philox) { return preparePhilox(philox, program); })
      .Case([&](tile::RandomBitsOp bits) { return prepareRandomBits(bits, program); })
      .Default([](Operation *) { return Step(); });
}

} // namespace tenon::interpret
