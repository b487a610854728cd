// SPDX-License-Identifier: Apache-2.0
//
// Random bits. The element with counter c gets word c mod 4 of the generator's block c / 4, so a thread whose registers
// 4i .. 4i+3 are known to have the counters 4k .. 4k+3 evaluates the generator once for the four of them:
//
//     counters  8 9 10 11 | 12 13 14 15            philox(seed, 2) = a b c d,  philox(seed, 3) = e f g h
//     bits      a b c  d  | e  f  g  h
//
// Pairs (2k, 2k+1) share one too, the half of its words chosen at run time; what is not known to be aligned chooses
// among all four. Registers further apart whose counters are known to differ by a multiple of 4 share the division:
// their blocks differ by a quarter of that.
//
// Of 16 bits, a block makes two times eight numbers. A thread with eight neighbours makes eight of them, the first or the
// last as the counter says, and one with fewer makes four and chooses among those; 64 counters have four blocks.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <array>
#include <optional>

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Philox4x32 (see transform/ExpandRandom.cpp) on scalars. The keys of all rounds are made once.
class Philox {
public:
  Philox(ImplicitLocOpBuilder &b, Value seed, int64_t rounds) : b_(b) {
    Value key[2] = {low(seed), high(seed)};
    for (uint32_t round = 0; round < rounds; ++round)
      keys_.push_back({b_.createOrFold<arith::AddIOp>(key[0], word(round * 0x9E3779B9u)),
                       b_.createOrFold<arith::AddIOp>(key[1], word(round * 0xBB67AE85u))});
  }

  /// The words of a 64-bit counter.
  std::array<Value, 4> operator()(Value counter) {
    std::array<Value, 4> c = {low(counter), high(counter), word(0), word(0)};
    for (const auto &[key0, key1] : keys_) {
      auto [low0, high0] = product(c[0], 0xD2511F53);
      auto [low1, high1] = product(c[2], 0xCD9E8D57);
      c = {mixed(high1, c[1], key0), low1, mixed(high0, c[3], key1), low0};
    }
    return c;
  }

private:
  Value word(uint32_t value) { return b_.create<arith::ConstantIntOp>(static_cast<int32_t>(value), 32); }
  Value low(Value wide) { return b_.createOrFold<arith::TruncIOp>(b_.getI32Type(), wide); }
  Value high(Value wide) {
    Value thirtyTwo = b_.create<arith::ConstantIntOp>(32, 64);
    return low(b_.createOrFold<arith::ShRUIOp>(wide, thirtyTwo));
  }
  Value mixed(Value x, Value y, Value key) {
    return b_.createOrFold<arith::XOrIOp>(b_.createOrFold<arith::XOrIOp>(x, y), key);
  }
  std::pair<Value, Value> product(Value value, uint32_t factor) {
    SmallVector<Value, 2> halves;
    b_.OpBuilder::createOrFold<arith::MulUIExtendedOp>(halves, b_.getLoc(), value, word(factor));
    return {halves[0], halves[1]};
  }

  ImplicitLocOpBuilder &b_;
  SmallVector<std::pair<Value, Value>, 10> keys_;
};

/// Numbers of the generator's blocks of a tile's registers.
class Blocks {
public:
  Blocks(ImplicitLocOpBuilder &b, const Distribution &tile, const AxisInfo &counterAxes, ArrayRef<Value> counters,
         tile::RandomBitsOp op)
      : b_(b), tile_(tile), axes_(counterAxes), counters_(counters), areHalves_(op.areHalves()),
        sharers_(op.getSharers()), period_(op.getPeriod()) {}

  Value of(int reg) {
    for (auto [other, block] : known_)
      if (std::optional<int64_t> apart = blocksApart(other, reg)) {
        Value sum = b_.create<arith::AddIOp>(block, wide(*apart));
        return b_.create<arith::AndIOp>(sum, wide(~uint64_t(0) / sharers_)); // counters may pass 2^64
      }
    known_.emplace_back(reg, ofCounter(counters_[reg]));
    return known_.back().second;
  }

private:
  Value wide(int64_t value) { return b_.create<arith::ConstantIntOp>(value, 64); }

  Value ofCounter(Value counter) {
    auto shifted = [&](int64_t by) -> Value { return b_.create<arith::ShRUIOp>(counter, wide(by)); };
    if (!areHalves_)
      return shifted(2);
    Value first = b_.create<arith::AndIOp>(shifted(4), wide(~int64_t(3)));
    return b_.create<arith::OrIOp>(first, b_.create<arith::AndIOp>(shifted(3), wide(3)));
  }

  /// How many blocks after that of `first` the block of `second` is: known where both lie in one run of consecutive
  /// counters, whole evaluations apart.
  std::optional<int64_t> blocksApart(int first, int second) const {
    std::optional<int64_t> apart;
    for (int64_t d = 0; d < tile_.rank(); ++d) {
      int64_t from = tile_.offset(first)[d], to = tile_.offset(second)[d];
      if (from == to)
        continue;
      int64_t run = axes_.axes[d].contiguity;
      // What a thread adds to both moves them alike, and in steps that neither of them uses: within a run if they are.
      if (apart || to < from || from / run != to / run || (to - from) % period_ != 0)
        return std::nullopt;
      apart = (to - from) / sharers_;
    }
    return apart;
  }

  ImplicitLocOpBuilder &b_;
  const Distribution &tile_;
  const AxisInfo &axes_;
  ArrayRef<Value> counters_;
  bool areHalves_;
  int64_t sharers_, period_;
  SmallVector<std::pair<int, Value>, 4> known_;
};

/// Numbers of 16 bits out of the words of a block (see tile.random_bits): the eight among which a counter's is, or the
/// four where a thread has no more neighbours. With h of words 0 and 1, g of words 2 and 3, x = h ^ g and y = g ^ s(h)
/// as bytes (even, odd), these are, the lower byte first:
///
///     first eight     x0 h1    y0 g1
///     last eight      x1 h0    y1 g0
class MixedHalves {
public:
  explicit MixedHalves(ImplicitLocOpBuilder &b) : b_(b) {}

  SmallVector<Value, 8> operator()(const std::array<Value, 4> &words, Value counter, int64_t neighbours) {
    Value low = b_.create<arith::TruncIOp>(b_.getI32Type(), counter);
    auto byBit = [&](uint32_t bit, uint32_t ifSet, uint32_t ifNot) -> Value {
      Value isSet =
          b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, b_.create<arith::AndIOp>(low, word(bit)), word(0));
      return b_.create<arith::SelectOp>(isSet, word(ifSet), word(ifNot));
    };
    Value whichEight = byBit(32, 0x2705, 0x3614); // bytes of h or g, then x or y
    // Both as bytes of h, then g.
    SmallVector<std::pair<Value, Value>, 2> ownAndOther;
    Value h = word(0x3210), g = word(0x7654), exchanged = word(0x2301);
    if (neighbours == 8)
      ownAndOther = {{h, g}, {g, exchanged}};
    else
      ownAndOther = {{byBit(4, 0x7654, 0x3210), byBit(4, 0x2301, 0x7654)}};
    SmallVector<Value, 8> numbers;
    for (auto [own, other] : ownAndOther)
      for (int i : {0, 1}) {
        Value upper = bytes(words[i], words[2 + i], own);
        Value lower = b_.create<arith::XOrIOp>(upper, bytes(words[i], words[2 + i], other));
        Value both = bytes(upper, lower, whichEight);
        for (Value half : {both, b_.create<arith::ShRUIOp>(both, word(16)).getResult()})
          numbers.push_back(b_.create<arith::TruncIOp>(b_.getI16Type(), half));
      }
    return numbers;
  }

private:
  Value word(uint32_t value) { return b_.create<arith::ConstantIntOp>(static_cast<int32_t>(value), 32); }
  Value bytes(Value low, Value high, Value selector) {
    llvm::APInt known;
    if (matchPattern(selector, m_ConstantInt(&known)) && (known == 0x3210 || known == 0x7654))
      return known == 0x3210 ? low : high;
    return b_.create<PermuteBytesOp>(b_.getI32Type(), low, high, selector);
  }

  ImplicitLocOpBuilder &b_;
};

} // namespace

void ThreadEmitter::emitRandomBits(tile::RandomBitsOp op) {
  const Distribution &tile = distribution(op);
  AxisInfo counterAxes = axes_.of(op.getCounter());
  int64_t neighbours = op.areHalves() ? 8 : 4; // for which a thread evaluates the generator once
  int64_t group = 1, aligned = 1; // registers that share an evaluation; elements that could
  for (int64_t d = 0; d < tile.rank(); ++d) {
    group = std::max(group, std::min({tile.consecutive(d), counterAxes.alignedRun(d), neighbours}));
    aligned = std::max(aligned, counterAxes.alignedRun(d));
  }

  Philox philox(b_, scalar(op.getSeed()), op.getRounds());
  Registers counters = registers(op.getCounter()), bits(tile.registers());
  Blocks blocks(b_, tile, counterAxes, counters, op);
  MixedHalves mixedHalves(b_);
  for (int first = 0; first < tile.registers(); first += group) {
    if (!tile.exists(first)) // then neither do the others
      continue;
    Value counter = counters[first];
    std::array<Value, 4> words = philox(blocks.of(first));
    SmallVector<Value, 8> pieces =
        op.areHalves() ? mixedHalves(words, counter, group) : SmallVector<Value, 8>(words.begin(), words.end());
    auto made = static_cast<int64_t>(pieces.size());
    for (int reg = first; reg < first + group; ++reg) {
      if (!tile.exists(reg))
        continue;
      // What it may be, in the order of the counter's bits from that of `group` on.
      SmallVector<Value, 8> candidates;
      for (int64_t place = reg - first; place < made; place += group)
        candidates.push_back(pieces[place]);
      for (int64_t bit = group; bit < made; bit *= 2) {
        Value masked = b_.create<arith::AndIOp>(counter, i64(bit));
        Value isSet = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, masked, i64(0));
        for (size_t i = 0; i < candidates.size() / 2; ++i)
          candidates[i] = b_.create<arith::SelectOp>(isSet, candidates[2 * i + 1], candidates[2 * i]);
        candidates.resize(candidates.size() / 2);
      }
      bits[reg] = candidates[0];
    }
  }
  if (group < neighbours) {
    std::string all = std::to_string(neighbours);
    remark(op.getLoc(),
           "the generator of random bits is evaluated for " + std::to_string(group) + " where it could be for " + all +
               " neighbours: " +
               (aligned < neighbours ? "counters of neighbours are not known to begin with a multiple of " + all
                                  : "a thread does not hold " + all + " neighbours"));
  }
  registers(op) = std::move(bits);
}

} // namespace tenon::nvidia
