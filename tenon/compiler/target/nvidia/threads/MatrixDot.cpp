// SPDX-License-Identifier: Apache-2.0
//
// A dot on the matrix unit: mma.sync. Each warp has its fragments of the result (the result's layout is made of them),
// reads the fragments of A and B that they need, and multiplies all pairs, one step along K after the other.
//
// A fragment of A is 16 x 32 bytes, one of B 32 bytes x 8, in matrices of eight rows of 16 bytes:
//
//     A   | 0 2 |      matrix 0: rows 0-7, the first half of K;  1: rows 8-15;  2 and 3: the second half of K
//         | 1 3 |
//     B   | 0 2 |      two fragments side by side: 0 and 1 the halves of K of the first, 2 and 3 of the second
//         | 1 3 |
//
// One ldmatrix moves four of them, its lanes 8 i ... 8 i + 7 pointing at the rows of matrix i; where the operand lies
// with K from row to row, at the rows of the transposed matrix instead. When the layouts say that A's registers
// already are its fragments (the result of another dot, say), nothing is moved at all.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

/// Steps along K that are written out; more of them become a loop.
constexpr int64_t maxUnrolled = 8, unrolledInLoop = 4;

} // namespace

/// Reads the fragments of one operand.
class ThreadEmitter::FragmentReader {
public:
  /// `dim`: of the result, that the operand's fragments lie along (0 for A, 1 for B).
  FragmentReader(ThreadEmitter &emitter, const StagedOperand &operand, const Distribution &result, int64_t dim,
                 const DotPlan &plan)
      : e(emitter), b(emitter.b_), operand_(operand), tile_(operand_.tile), plan_(plan), isA_(dim == 0) {
    lane_ = b.create<arith::AndIOp>(e.threadId_, e.i32(31));
    blocks_ = (operand.alongK ? tile_.paddedRows : tile_.paddedColumns) / 8;
    for (const Distribution::ThreadBit &bit : result.threadBits())
      if (bit.dim == dim)
        span_ += bit.step;
    warpBlock_ = b.create<arith::ShRUIOp>(e.threadCoords(result)[dim], e.i32(3));
  }

  /// How far the operand's address moves from one step to the next.
  int64_t stepBytes() const { return operand_.alongK ? 32 : plan_.depth * tile_.pitch; }
  void moveTo(Value at) { operand_.at = at; }
  Value at() const { return operand_.at; }

  /// The words of `count` (1 or 2) blocks of eight rows of A or columns of B, from `offset` on: of a fragment of A (2),
  /// or of one or two of B.
  SmallVector<Value> read(int64_t offset, int64_t count, int64_t step) {
    if (useOf(plan_, operand_.alongK) == OperandUse::Words)
      return readWords(offset, count, step);
    Value row = bits(0, 3), half = isA_ ? bits(4, 1) : bits(3, 1), second;
    if (count == 2)
      second = isA_ ? bits(3, 1) : bits(4, 1);
    auto [block, constant] = blockOf(offset, count, second);
    Value at;
    int64_t fixed;
    if (operand_.alongK) { // chunk: 2 step + half
      Value chunk = e.swizzled(tile_, row, b.create<arith::ShLIOp>(half, e.i32(4)));
      chunk = b.create<arith::XOrIOp>(chunk, e.i32(32 * inRow(step)));
      Value line = b.create<arith::AddIOp>(b.create<arith::ShLIOp>(block, e.i32(3)), row);
      at = b.create<arith::AddIOp>(b.create<arith::MulIOp>(line, e.i32(tile_.pitch)), chunk);
      fixed = constant * 8 * tile_.pitch + 32 * (step - inRow(step));
    } else { // row: depth step + 8 half + row
      Value chunk = e.swizzled(tile_, row, b.create<arith::ShLIOp>(block, e.i32(4)));
      if (constant)
        chunk = b.create<arith::XOrIOp>(chunk, e.i32(constant * 16));
      Value line = b.create<arith::AddIOp>(b.create<arith::ShLIOp>(half, e.i32(3)), row);
      at = b.create<arith::AddIOp>(b.create<arith::MulIOp>(line, e.i32(tile_.pitch)), chunk);
      fixed = step * plan_.depth * tile_.pitch;
    }
    at = b.create<arith::AddIOp>(at, operand_.at);
    if (fixed)
      at = b.create<arith::AddIOp>(at, e.i32(fixed));
    Value matrices = b.create<LdMatrixOp>(VectorType::get({2 * count}, b.getI32Type()), at, !operand_.alongK,
                                          b.getDenseI64ArrayAttr({operand_.window.begin, operand_.window.end}),
                                          b.getI32IntegerAttr(operand_.group));
    SmallVector<Value> words;
    for (int64_t i = 0; i < 2 * count; ++i)
      words.push_back(rounded(b.create<vector::ExtractOp>(matrices, i)));
    return words;
  }

private:
  /// Chunks are permuted among eight: the part of a step's place that the permutation sees.
  int64_t inRow(int64_t step) const { return tile_.swizzleMask ? step % 4 : 0; }

  Value bits(int64_t first, int64_t count) {
    Value value = first ? b.create<arith::ShRUIOp>(lane_, e.i32(first)).getResult() : lane_;
    return b.create<arith::AndIOp>(value, e.i32((int64_t(1) << count) - 1));
  }

  /// The block of eight that a lane reads, as a value and what is to be added to it. A warp past the operand's end
  /// reads the last block again: its part of the result does not exist.
  std::pair<Value, int64_t> blockOf(int64_t offset, int64_t count, Value second) {
    Value block = second ? b.create<arith::AddIOp>(warpBlock_, second).getResult() : warpBlock_;
    if (span_ / 8 + offset / 8 + count <= blocks_)
      return {block, offset / 8};
    block = b.create<arith::AddIOp>(block, e.i32(offset / 8));
    return {b.create<arith::MinUIOp>(block, e.i32(blocks_ - 1)), 0};
  }

  /// 32-bit elements with K from row to row: lane 4 i + j has element i of the block in row j, and in row j + 4.
  SmallVector<Value> readWords(int64_t offset, int64_t count, int64_t step) {
    SmallVector<Value> words(2 * count);
    for (int64_t i = 0; i < count; ++i) {
      auto [block, constant] = blockOf(offset + 8 * i, 1, {});
      Value column = b.create<arith::AddIOp>(b.create<arith::ShLIOp>(block, e.i32(3)), bits(2, 3));
      Value at = b.create<arith::AddIOp>(b.create<arith::MulIOp>(bits(0, 2), e.i32(tile_.pitch)),
                                         b.create<arith::ShLIOp>(column, e.i32(2)));
      at = b.create<arith::AddIOp>(at, operand_.at);
      for (int64_t half : {0, 1}) {
        int64_t fixed = constant * 32 + (step * plan_.depth + 4 * half) * tile_.pitch;
        Value word = e.loadShared(b.getI32Type(), at, fixed, {}, operand_.window, operand_.group);
        words[isA_ ? i + 2 * half : 2 * i + half] = rounded(word);
      }
    }
    return words;
  }

  Value rounded(Value word) { return plan_.elementBytes == 4 ? e.roundToTf32(word) : word; }

  FragmentReader(const FragmentReader &) = delete;

  ThreadEmitter &e;
  ImplicitLocOpBuilder &b;
  StagedOperand operand_;
  const OperandTile &tile_;
  const DotPlan &plan_;
  bool isA_;
  Value lane_, warpBlock_;
  int64_t blocks_ = 0, span_ = 0;
};

/// The matrix unit does not look at the low 13 bits: nearest, ties away from zero; infinities and NaN as they are.
Value ThreadEmitter::roundToTf32(Value word) {
  Value up = b_.create<arith::AddIOp>(word, i32(0x1000));
  Value number = b_.create<arith::BitcastOp>(b_.getF32Type(), word);
  Value isNumber = b_.create<arith::CmpFOp>(arith::CmpFPredicate::ORD, number, number);
  return b_.create<arith::SelectOp>(isNumber, up, word);
}

/// Whether every thread has in its own registers the elements of its fragments of A: lanes and warps have to divide the
/// tile as the fragments and the result's rows do; which register is which is known here.
bool ThreadEmitter::holdsFragments(Value a, const Distribution &result, const DotPlan &plan) {
  int64_t perWord = 4 / plan.elementBytes;
  SmallVector<std::tuple<int, int64_t, int64_t>> needed, has;
  for (const Distribution::ThreadBit &bit : result.threadBits()) {
    if (bit.bit < 2)
      needed.push_back({bit.bit, 1, perWord << bit.bit});
    else if (bit.dim == 0)
      needed.push_back({bit.bit, 0, bit.step});
    else
      needed.push_back({bit.bit, -1, 0});
  }
  for (const Distribution::ThreadBit &bit : distribution(a).threadBits())
    has.push_back({bit.bit, bit.dim, bit.step});
  return needed == has;
}

SmallVector<Value> ThreadEmitter::packFragment(Value a, int64_t row, int64_t k, const DotPlan &plan) {
  const Distribution &tile = distribution(a);
  bool isHalf = plan.elementBytes == 2;
  // Rounding to 16 bits is part of the packing.
  Value source = a;
  if (auto cast = a.getDefiningOp<tile::CastOp>(); cast && isHalf && plan.stagedA == typeOf(a).getElementType())
    if (auto from = llvm::dyn_cast<RankedTensorType>(cast.getValue().getType()); from && from.getElementType().isF32())
      source = cast.getValue();
  auto element = [&](int64_t r, int64_t c) -> Value {
    int reg = tile.registerAt({r, c});
    Type type = registerType(typeOf(a).getElementType());
    auto zero = [&] { return b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(type))).getResult(); };
    if (reg < 0 || !tile.exists(reg))
      return zero();
    Value value = registers(source)[reg];
    if (!tile.isPartial(reg, 1))
      return value;
    Value limit = i32(tile.shape()[1] - c);
    Value inside = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, threadCoords(tile)[1], limit);
    return b_.create<arith::SelectOp>(inside, value, zero());
  };
  int64_t perWord = 4 / plan.elementBytes;
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i) {
    int64_t r = row + 8 * (i % 2), c = k + plan.depth / 2 * (i / 2);
    if (isHalf) {
      words.push_back(b_.create<PackOp>(b_.getI32Type(), plan.a, element(r, c), element(r, c + 1)));
    } else if (plan.elementBytes == 4) {
      words.push_back(roundToTf32(b_.create<arith::BitcastOp>(b_.getI32Type(), element(r, c))));
    } else {
      SmallVector<Value> bytes;
      for (int64_t j = 0; j < perWord; ++j)
        bytes.push_back(toMemory(b_, element(r, c + j), plan.stagedA));
      Value vector = b_.create<vector::FromElementsOp>(VectorType::get({perWord}, b_.getI8Type()), bytes);
      words.push_back(b_.create<vector::ExtractOp>(
          b_.create<vector::BitCastOp>(VectorType::get({1}, b_.getI32Type()), vector), int64_t(0)));
    }
  }
  return words;
}

void ThreadEmitter::emitMatrixDot(tile::DotOp op, const DotPlan &plan) {
  const Distribution &result = distribution(op);
  int64_t k = typeOf(op.getA()).getDimSize(1), steps = llvm::divideCeil(k, plan.depth);
  bool fromRegisters = !isAsync(op.getA()) && holdsFragments(op.getA(), result, plan);
  std::optional<FragmentReader> readA;
  if (!fromRegisters)
    readA.emplace(*this, operandOf(op.getA(), plan, 1), result, 0, plan);
  else
    remark(op.getLoc(), "dot takes operand A from registers: they are its fragments");
  FragmentReader readB(*this, operandOf(op.getB(), plan, 0), result, 1, plan);

  // The fragments of the result that exist, and their four registers.
  SmallVector<int64_t> rows, columns;
  for (int reg = 0; reg < result.registers(); ++reg) {
    const Coords &at = result.offset(reg);
    if (!result.exists(reg) || at[0] % 16 || at[1] % 8)
      continue;
    if (at[1] == 0)
      rows.push_back(at[0]);
    if (at[0] == 0)
      columns.push_back(at[1]);
  }
  auto registersOf = [&](int64_t row, int64_t column) {
    SmallVector<int, 4> list;
    for (int64_t i = 0; i < 4; ++i)
      list.push_back(result.registerAt({row + 8 * (i / 2), column + i % 2}));
    return list;
  };
  Type element = typeOf(op).getElementType();
  auto vector = VectorType::get({4}, element);
  Value nothing = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(element)));
  SmallVector<Value> sums;
  for (int64_t row : rows)
    for (int64_t column : columns) {
      SmallVector<Value> parts;
      for (int reg : registersOf(row, column))
        parts.push_back(result.exists(reg) ? registers(op.getAcc())[reg] : nothing);
      sums.push_back(b_.create<vector::FromElementsOp>(vector, parts));
    }

  auto words = [&](ArrayRef<Value> list) -> Value {
    return b_.create<vector::FromElementsOp>(VectorType::get({int64_t(list.size())}, b_.getI32Type()), list);
  };
  auto multiplyStep = [&](int64_t step) {
    SmallVector<Value> a, b;
    for (int64_t row : rows)
      a.push_back(words(fromRegisters ? packFragment(op.getA(), row, step * plan.depth, plan)
                                      : readA->read(row, 2, step)));
    for (size_t j = 0; j < columns.size();) {
      bool pair = j + 1 < columns.size() && columns[j + 1] == columns[j] + 8;
      SmallVector<Value> two = readB.read(columns[j], pair ? 2 : 1, step);
      for (size_t i = 0; i < two.size(); i += 2, ++j)
        b.push_back(words(ArrayRef<Value>(two).slice(i, 2)));
    }
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t j = 0; j < columns.size(); ++j) {
        Value &sum = sums[i * columns.size() + j];
        sum = b_.create<MmaOp>(vector, plan.a, plan.b, a[i], b[j], sum);
      }
  };
  if (fromRegisters || steps <= maxUnrolled) {
    for (int64_t step = 0; step < steps; ++step)
      multiplyStep(step);
  } else {
    Value atA = readA->at(), atB = readB.at();
    int64_t rounds = steps / unrolledInLoop;
    auto moveTo = [&](Value round) {
      auto advance = [&](Value at, int64_t bytes) -> Value {
        return b_.create<arith::AddIOp>(at, b_.create<arith::MulIOp>(round, i32(bytes * unrolledInLoop)));
      };
      readA->moveTo(advance(atA, readA->stepBytes()));
      readB.moveTo(advance(atB, readB.stepBytes()));
    };
    auto loop = b_.create<scf::ForOp>(i32(0), i32(rounds), i32(1), sums);
    {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(loop.getBody());
      sums.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
      moveTo(loop.getInductionVar());
      for (int64_t step = 0; step < unrolledInLoop; ++step)
        multiplyStep(step);
      b_.create<scf::YieldOp>(sums);
    }
    sums.assign(loop.getResults().begin(), loop.getResults().end());
    moveTo(i32(rounds));
    for (int64_t step = 0; step < steps % unrolledInLoop; ++step)
      multiplyStep(step);
  }

  Registers values(result.registers());
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < columns.size(); ++j)
      for (auto [part, reg] : llvm::enumerate(registersOf(rows[i], columns[j])))
        if (result.exists(reg))
          values[reg] = b_.create<vector::ExtractOp>(sums[i * columns.size() + j], int64_t(part));
  registers(op) = std::move(values);
}

} // namespace tenon::nvidia
