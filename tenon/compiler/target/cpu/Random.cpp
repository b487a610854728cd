// SPDX-License-Identifier: Apache-2.0
//
// tile.random_bits: the element with counter c is word c % 4 of Philox4x32 of c / 4. Where the counters of a
// vector's lanes follow each other (found by looking at how they are computed) and the first one is a multiple of 4
// (found when the vector comes up), a quarter of the lanes evaluates the generator and all four words are used:
//
//     counters   8  9 10 11 | 12 13 14 15         blocks 2 3
//     words      a0 b0 c0 d0  a1 b1 c1 d1         of philox(seed, {2, 3}) = a, b, c, d
//
// Elements of 16 bits are made of the halves of the words, sixteen to a block, and four blocks make 64 of them in order
// (see tile.random_bits). Where the first counter is no multiple of 4, or of 64, or lanes are none, those are evaluated
// that they are among, and read again from where they begin.
//
// The generator is one long chain, so numbers are drawn in a loop of their own, in which several overlap. Where nothing
// but a nest that waits for memory uses them (Grouping.cpp) it draws them itself, some hundred at a time: what it
// stores is on its way meanwhile.
//
//     for j = 0 to 4096 step 512 { for k = 0 to 512 step 128 { draw j + k ... }; for k = 0 to 512 step 32 { y[j + k] =
//     ... } }
//
// A word lies in the lower half of 64 bits, and what is above it does not matter: a round is then two multiplications,
// two exchanges and two exclusive ors of three, and nothing has to be taken apart. What is the same in all lanes stays
// one number: the key, and where the upper half of the blocks' numbers is (found when the vector comes up) one of the
// first two rounds' products and half of their exclusive ors.
#include "tenon/compiler/target/cpu/Nest.h"
#include "tenon/compiler/target/cpu/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>
#include <array>
#include <numeric>

using namespace mlir;

namespace tenon::cpu {
namespace {

using Builder = ImplicitLocOpBuilder;

/// The upper half of 64 bits where the lower one was. Not by a shift: where LLVM knows the upper half of a factor to be zero
/// it drops the mask, forgets why by the time it chooses instructions, and multiplies 64 bits. And an exchange has another
/// unit than the multiplications, where a shift may have the same.
Value swapHalves(Builder &b, Value value) {
  unsigned lanes = lanesOf(value);
  if (!lanes) {
    Value half = constantBits(b, b.getI64Type(), 32);
    return b.create<arith::OrIOp>(b.create<arith::ShRUIOp>(value, half), b.create<arith::ShLIOp>(value, half));
  }
  SmallVector<int32_t> swapped;
  for (unsigned i = 0; i < 2 * lanes; ++i)
    swapped.push_back(static_cast<int32_t>(i ^ 1));
  Value words = b.create<LLVM::BitcastOp>(VectorType::get({2 * lanes}, b.getI32Type()), value);
  return b.create<LLVM::BitcastOp>(value.getType(), b.create<LLVM::ShuffleVectorOp>(words, words, swapped));
}

/// The key of a round, a word in the lower half of 64 bits: it grows from round to round.
Value keyOf(Builder &b, Value seed, int which, int round) {
  constexpr uint32_t steps[] = {0x9E3779B9, 0xBB67AE85};
  Value word = which ? swapHalves(b, seed) : seed;
  return b.create<arith::AddIOp>(word, constantBits(b, b.getI64Type(), int64_t(uint64_t(steps[which]) * round)));
}

Value addressOfKey(Builder &b, Value keys, int which, int round) {
  return b.create<LLVM::GEPOp>(LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(), keys,
                               ArrayRef<LLVM::GEPArg>{2 * round + which});
}

/// What a tile.random_bits asks for.
struct Draw {
  Value seed;
  Value keys; ///< in memory, two for each round, and a mask; null: they are made where they are used
  int rounds;
  unsigned sharers, period; ///< elements of one evaluation, and of whole ones
  bool areHalves;

  explicit Draw(tile::RandomBitsOp op, Value seed)
      : seed(seed), keys(), rounds(static_cast<int>(op.getRounds())), sharers(static_cast<unsigned>(op.getSharers())),
        period(static_cast<unsigned>(op.getPeriod())), areHalves(op.areHalves()) {}
  unsigned bits() const { return areHalves ? 16 : 32; }
  int64_t shift() const { return llvm::Log2_32(sharers); } ///< from the first counter of a period to its block
};

constexpr int64_t factors[] = {0xD2511F53, 0xCD9E8D57};

/// The four words for each block number, given in two halves (i64, a vector or one number for all lanes). `first`: the
/// first round's product with it, if that is known.
std::array<Value, 4> philox(Builder &b, const Draw &draw, Value block, Value upper, Value first = {}) {
  Type i64 = b.getI64Type();
  unsigned lanes = lanesOf(block);
  auto high = [&](Value value) { return swapHalves(b, value); };
  // Numbers first, then vectors.
  auto exclusiveOr = [&](std::array<Value, 3> terms) {
    std::partition(terms.begin(), terms.end(), [](Value term) { return lanesOf(term) == 0; });
    Value result = terms[0];
    for (Value term : llvm::drop_begin(terms))
      result = b.create<arith::XOrIOp>(splatTo(b, result, lanesOf(term)), term);
    return result;
  };
  auto times = [&](Value word, int64_t factor) -> Value {
    Type type = word.getType();
    return b.create<arith::MulIOp>(b.create<arith::AndIOp>(word, constantBits(b, type, 0xffffffff)),
                                   constantBits(b, type, factor));
  };
  constexpr int roundsOfNumbers = 2; // what is the same in all lanes is computed with them
  auto key = [&](int which, int round) -> Value {
    if (!draw.keys || round < roundsOfNumbers)
      return keyOf(b, draw.seed, which, round);
    return b.create<LLVM::LoadOp>(i64, addressOfKey(b, draw.keys, which, round), 8);
  };
  Value zero = constantBits(b, i64, 0);
  std::array<Value, 4> c = {block, upper, zero, zero};
  for (int round = 0; round < draw.rounds; ++round) {
    Value product0 = round == 0 && first ? first : times(c[0], factors[0]), product1 = times(c[2], factors[1]);
    c = {exclusiveOr({high(product1), c[1], key(0, round)}), product1,
         exclusiveOr({high(product0), c[3], key(1, round)}), product0};
  }
  for (Value &word : c)
    word = splatTo(b, word, lanes);
  return c;
}

constexpr int64_t evenBytes = 0x00ff00ff00ff00ff; ///< the lower ones of 16 bits
constexpr int64_t oddBytes = ~evenBytes;

/// `own`, exclusive or the even bytes of `other`. With a mask in memory LLVM knows nothing of these: else it looks for
/// other instructions that make zeros of the odd ones, and finds more than one.
Value mixed(Builder &b, Value own, Value other, Value mask = {}) {
  mask = mask ? splatTo(b, mask, lanesOf(other)) : constantBits(b, other.getType(), evenBytes);
  return b.create<arith::XOrIOp>(own, b.create<arith::AndIOp>(other, mask));
}

/// Every counter on its own.
Value oneByOne(Builder &b, const Draw &draw, Value counter) {
  Type type = counter.getType();
  auto shifted = [&](int64_t by) -> Value { return b.create<arith::ShRUIOp>(counter, constantBits(b, type, by)); };
  Value block = shifted(draw.shift());
  if (draw.areHalves) {
    Value first = b.create<arith::AndIOp>(block, constantBits(b, type, ~int64_t(3)));
    block = b.create<arith::OrIOp>(first, b.create<arith::AndIOp>(shifted(3), constantBits(b, type, 3)));
  }
  std::array<Value, 4> words = philox(b, draw, block, swapHalves(b, block));
  auto isSet = [&](int64_t bit) -> Value {
    Value masked = b.create<arith::AndIOp>(counter, constantBits(b, type, bit));
    return b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, masked, constantBits(b, type, 0));
  };
  Value odd = isSet(draw.areHalves ? 2 : 1);
  Value first = b.create<arith::SelectOp>(odd, words[1], words[0]);
  Value second = b.create<arith::SelectOp>(odd, words[3], words[2]);
  if (draw.areHalves) {
    // By 8 for the last eight numbers of a block: bytes are exchanged. By 0 for the first. What lies above a word stays
    // there.
    Value eight = b.create<arith::AndIOp>(shifted(2), constantBits(b, type, 8));
    for (Value *half : {&first, &second}) {
      Value up = b.create<arith::AndIOp>(b.create<arith::ShLIOp>(*half, eight), constantBits(b, type, oddBytes));
      *half = mixed(b, up, b.create<arith::ShRUIOp>(*half, eight));
    }
    Value upperBytes = b.create<arith::ShRUIOp>(first, constantBits(b, type, 8));
    first = mixed(b, first, second);
    second = mixed(b, second, upperBytes);
  }
  Value word = b.create<arith::SelectOp>(isSet(draw.areHalves ? 4 : 2), second, first);
  if (draw.areHalves)
    word = b.create<arith::SelectOp>(isSet(1), b.create<arith::ShRUIOp>(word, constantBits(b, type, 16)), word);
  return b.create<arith::TruncIOp>(typeLike(word, b.getIntegerType(draw.bits())), word);
}

Value constantVector(Builder &b, ArrayRef<int64_t> values) {
  auto type = VectorType::get({static_cast<int64_t>(values.size())}, b.getI64Type());
  return b.create<arith::ConstantOp>(DenseElementsAttr::get(type, values));
}

/// Whether `lanes` counters from `first` on are whole blocks whose numbers have one upper half.
Value areWholeBlocks(Builder &b, const Draw &draw, Value first, unsigned lanes) {
  auto constant = [&](int64_t value) { return constantBits(b, b.getI64Type(), value); };
  Value low = b.create<arith::AndIOp>(first, constant(draw.period - 1));
  Value inStep = b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, low, constant(0));
  // The lower half of a block's number is 32 bits of its first counter, above those of its place in the block.
  int64_t ofOneUpper = int64_t(draw.sharers) << 32;
  Value within = b.create<arith::AndIOp>(first, constant(ofOneUpper - 1));
  Value stays = b.create<arith::CmpIOp>(arith::CmpIPredicate::ule, within, constant(ofOneUpper - int64_t(lanes)));
  return b.create<arith::AndIOp>(inStep, stays);
}

/// The two bytes of each 16 bits.
Value exchangeBytes(Builder &b, Value value) {
  int64_t count = 8 * int64_t(lanesOf(value));
  SmallVector<int32_t> exchanged;
  for (int32_t i = 0; i < count; ++i)
    exchanged.push_back(i ^ 1);
  Value bytes = b.create<LLVM::BitcastOp>(VectorType::get({count}, b.getI8Type()), value);
  return b.create<LLVM::BitcastOp>(value.getType(), b.create<LLVM::ShuffleVectorOp>(bytes, bytes, exchanged));
}

/// `lanes` counters from `first` on, of which the above holds. The even lanes of a register of `registerBytes` have the
/// first half of its blocks, the odd ones the second, so that the four words of a block come together within 16 bytes:
///
///     blocks    0    4    1    5   ...
///     pairs     ab0  ab4  ab1  ab5 ...,  cd0 cd4 cd1 cd5 ...
///     even      ab0  cd0  ab1  cd1 ...       odd   ab4 cd4 ab5 cd5 ...
///
/// `haveOneUpper`: see areWholeBlocks; otherwise they need but begin with a block.
Value inBlocks(Builder &b, const Draw &draw, Value first, unsigned lanes, unsigned registerBytes, bool haveOneUpper) {
  Value block = b.create<arith::ShRUIOp>(first, constantBits(b, b.getI64Type(), draw.shift()));
  unsigned blocks = lanes / draw.sharers, group = std::clamp(registerBytes / 8, 1u, blocks);
  assert(blocks % group == 0 && "lanes are a power of two, or less than a register's");
  SmallVector<int64_t> order;
  SmallVector<int32_t> joined;
  for (unsigned begin = 0; begin < blocks; begin += group) {
    for (unsigned i = 0; i < group; ++i)
      order.push_back(begin + i / 2 + i % 2 * ((group + 1) / 2));
    for (unsigned odd : {0, 1})
      for (unsigned i = odd; i < group; i += 2)
        joined.append({static_cast<int32_t>(begin + i), static_cast<int32_t>(blocks + begin + i)});
  }
  Value numbers = b.create<arith::AddIOp>(splatTo(b, block, blocks), constantVector(b, order));
  Value upper, firstProduct;
  if (haveOneUpper) {
    upper = b.create<arith::ShRUIOp>(block, constantBits(b, b.getI64Type(), 32));
    // The blocks follow each other, so their products with a factor do: one number's product, and constants.
    SmallVector<int64_t> products;
    for (int64_t place : order)
      products.push_back(place * factors[0]);
    Value low = b.create<arith::AndIOp>(block, constantBits(b, b.getI64Type(), 0xffffffff));
    Value product = b.create<arith::MulIOp>(low, constantBits(b, b.getI64Type(), factors[0]));
    firstProduct = b.create<arith::AddIOp>(splatTo(b, product, blocks), constantVector(b, products));
  } else { // counters may pass 2^64
    numbers =
        b.create<arith::AndIOp>(numbers, constantBits(b, numbers.getType(), int64_t(~uint64_t(0) >> draw.shift())));
    upper = swapHalves(b, numbers);
  }
  std::array<Value, 4> words = philox(b, draw, numbers, upper, firstProduct);
  // The lower halves of both. The exchanged second word is there already: the last round made the first one of it.
  // By masks: LLVM moves shuffles past each other until there are more of them.
  auto pair = [&](Value lower, Value upper) -> Value {
    Type type = lower.getType();
    Value low = b.create<arith::AndIOp>(lower, constantBits(b, type, 0xffffffff));
    Value high = b.create<arith::AndIOp>(swapHalves(b, upper), constantBits(b, type, ~0xffffffffLL));
    return b.create<arith::OrIOp>(low, high);
  };
  auto join = [&](Value first, Value second) -> Value {
    return b.create<LLVM::ShuffleVectorOp>(first, second, joined);
  };
  Value h = pair(words[0], words[1]), g = pair(words[2], words[3]), result;
  if (!draw.areHalves) {
    result = join(h, g);
  } else {
    Value mask = b.create<LLVM::LoadOp>(b.getI64Type(), addressOfKey(b, draw.keys, 0, draw.rounds), 8);
    Value hSwapped = exchangeBytes(b, h), gSwapped = exchangeBytes(b, g);
    Value front = join(mixed(b, h, g, mask), mixed(b, g, hSwapped, mask));
    Value back = join(mixed(b, hSwapped, gSwapped, mask), mixed(b, gSwapped, h, mask));
    // Of four blocks, 64 bytes of the front and 64 of the back in turns.
    SmallVector<int32_t> inTurns;
    for (auto begin = 0; begin < static_cast<int32_t>(2 * blocks); begin += 8)
      for (int32_t half : {0, static_cast<int32_t>(2 * blocks)})
        for (int32_t i = 0; i < 8; ++i)
          inTurns.push_back(half + begin + i);
    result = b.create<LLVM::ShuffleVectorOp>(front, back, inTurns);
  }
  return b.create<LLVM::BitcastOp>(VectorType::get({lanes}, b.getIntegerType(draw.bits())), result);
}

/// As many counters as are evaluated at once where `lanes` are wanted.
unsigned wholePeriods(const Draw &draw, unsigned lanes) { return llvm::divideCeil(lanes, draw.period) * draw.period; }

/// `lanes` counters from `first` on, wherever that is: those of whole evaluations that they are among, through `memory`
/// for twice as many.
Value outOfStep(Builder &b, const Draw &draw, Value first, unsigned lanes, unsigned registerBytes, Value memory) {
  Type i64 = b.getI64Type();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type element = b.getIntegerType(draw.bits());
  Value within = b.create<arith::AndIOp>(first, constantBits(b, i64, draw.period - 1));
  Value begin = b.create<arith::SubIOp>(first, within);
  auto index = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(value); };
  unsigned atOnce = wholePeriods(draw, lanes);
  Value end = b.create<arith::AddIOp>(within, constantBits(b, i64, lanes));
  Value isEnough = b.create<arith::CmpIOp>(arith::CmpIPredicate::ule, end, constantBits(b, i64, atOnce));
  auto loop = b.create<scf::ForOp>(index(0), b.create<arith::SelectOp>(isEnough, index(atOnce), index(2 * atOnce)),
                                   index(atOnce));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value at = b.create<arith::IndexCastOp>(i64, loop.getInductionVar());
    Value bits = inBlocks(b, draw, b.create<arith::AddIOp>(begin, at), atOnce, registerBytes, /*haveOneUpper=*/false);
    b.create<LLVM::StoreOp>(bits, b.create<LLVM::GEPOp>(pointer, element, memory, ValueRange{at}), draw.bits() / 8);
  }
  return b.create<LLVM::LoadOp>(VectorType::get({lanes}, element),
                                b.create<LLVM::GEPOp>(pointer, element, memory, ValueRange{within}), draw.bits() / 8);
}

} // namespace

/// As many numbers as are drawn at once where counters follow each other along a dimension; 0: they do not. Four come
/// out of one evaluation of the generator, or sixteen: twice the lanes, or eight times, make two chains that overlap.
int64_t Nest::lanesOfDraw(const Isa &isa, tile::RandomBitsOp op, int dim) {
  bool inBlocks = dim >= 0 && stepAlong(op.getCounter(), dim) == 1;
  return inBlocks ? preferredLanes(isa) * op.getSharers() / 2 : 0;
}

/// The same in a loop of their own: four chains where there are registers for them and rows are whole steps of it. Each
/// waits less for itself, most of all on a core that is shared.
int64_t Nest::lanesOfDrawLoop(const Isa &isa, tile::RandomBitsOp op, int dim) {
  constexpr unsigned manyRegisters = 64; // bytes of a vector: AVX-512 has 32 of them
  int64_t lanes = lanesOfDraw(isa, op, dim);
  return isa.vectorBytes >= manyRegisters && lanes && op.getType().getDimSize(dim) % (2 * lanes) == 0 ? 2 * lanes
                                                                                                      : lanes;
}

bool Nest::drawsInLumps(const Isa &isa, tile::RandomBitsOp op) {
  int dim = -1;
  for (auto [d, extent] : llvm::enumerate(op.getType().getShape()))
    if (extent > 1)
      dim = static_cast<int>(d);
  int64_t lanes = lanesOfDraw(isa, op, dim);
  return lanes && op.getType().getDimSize(dim) % lanes == 0;
}

/// Random numbers for elements from `place` on, as many as are drawn at once, into their place in scratch.
void Nest::drawNumbers(Coords coords, Value place) {
  unsigned outerLanes = lanes_;
  for (const NestRoot &root : group_.drawn) {
    auto draw = root.value.getDefiningOp<tile::RandomBitsOp>();
    int64_t lanes = lanesOfDraw(e_.isa(), draw, vectorDim_);
    for (int64_t at = 0; at < drawnLanes_; at += lanes) {
      lanes_ = lanes;
      coords[vectorDim_] = {offsetBase(place, at), true};
      levels_.back().memo.clear(); // the counter of another draw here may have had other lanes
      Value bits = randomBits(draw, coords);
      setInsertion(levels_.size() - 1);
      storeBuffer(root.buffer, coords, bits);
    }
  }
  lanes_ = outerLanes;
}

Value Nest::randomBits(tile::RandomBitsOp op, const Coords &coords) {
  Draw draw(op, e_.scalar(op.getSeed()));
  Value counter = op.getCounter();
  unsigned lanes = lanesIn(coords), depth = depthOf(coords);
  int laneDim = -1;
  for (auto [d, coord] : llvm::enumerate(coords))
    if (coord.lanes)
      laneDim = static_cast<int>(d);
  unsigned fewest = draw.areHalves ? 16 : 8; // that whole evaluations are worth it for
  if (lanes < fewest || (!draw.areHalves && lanes % draw.period != 0) || stepAlong(counter, laneDim) != 1) {
    Value each = compute(counter, coords);
    setInsertion(depth);
    return oneByOne(b_, draw, splatTo(b_, each, lanes));
  }
  Coords atFirst = coords;
  atFirst[laneDim].lanes = false;
  Value first = compute(counter, atFirst);
  setInsertion(depth);
  b_.setLoc(op.getLoc());
  { // Keys in memory are operands of instructions; in registers they would take the place of what other loops compute
    // with.
    OpBuilder::InsertionGuard guard(b_);
    setInsertion(0);
    draw.keys = e_.allocate({2 * draw.rounds + 1}, b_.getI64Type()).pointer;
    for (int round = 0; round < draw.rounds; ++round)
      for (int which : {0, 1})
        b_.create<LLVM::StoreOp>(keyOf(b_, draw.seed, which, round), addressOfKey(b_, draw.keys, which, round), 8);
    b_.create<LLVM::StoreOp>(constantBits(b_, b_.getI64Type(), evenBytes),
                             addressOfKey(b_, draw.keys, 0, draw.rounds), 8);
  }
  auto type = VectorType::get({lanes}, b_.getIntegerType(draw.bits()));
  Value memory = e_.allocate({2 * int64_t(wholePeriods(draw, lanes))}, type.getElementType()).pointer;
  if (lanes % draw.period != 0)
    return outOfStep(b_, draw, first, lanes, e_.isa().vectorBytes, memory);
  Value inStep = areWholeBlocks(b_, draw, first, lanes);
  auto branch = b_.create<scf::IfOp>(TypeRange{type}, inStep, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToEnd(branch.thenBlock());
  b_.create<scf::YieldOp>(ValueRange{inBlocks(b_, draw, first, lanes, e_.isa().vectorBytes, /*haveOneUpper=*/true)});
  b_.setInsertionPointToEnd(branch.elseBlock());
  b_.create<scf::YieldOp>(ValueRange{outOfStep(b_, draw, first, lanes, e_.isa().vectorBytes, memory)});
  return branch.getResult(0);
}

} // namespace tenon::cpu
