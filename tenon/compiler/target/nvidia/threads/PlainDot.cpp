// SPDX-License-Identifier: Apache-2.0
//
// A dot without the matrix unit, for elements that it would round: each thread multiplies and adds for its own elements
// of the result, with fused multiply-adds. Both operands are in shared memory; a thread reads the rows of A and the
// columns of B that its elements need, 16 bytes at a time along K or along the result where the operand lies that way.
// A few steps along K are written out; the rest is a loop around them.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

void ThreadEmitter::emitPlainDot(tile::DotOp op, const DotPlan &plan) {
  const Distribution &result = distribution(op);
  Type element = typeOf(op).getElementType();
  int64_t bytes = plan.elementBytes, widest = 16 / bytes;

  /// One operand, seen from a thread: its rows (of A) or columns (of B) of the result.
  struct Side {
    int64_t dim; ///< of the result
    StagedOperand operand;
    SmallVector<int64_t> offsets;
    Value base; ///< the thread's part of the address

    int64_t kStride() const { return operand.alongK ? operand.tile.elementBytes : operand.tile.pitch; }
    int64_t offsetStride() const { return operand.alongK ? operand.tile.pitch : operand.tile.elementBytes; }
  };
  Side sides[2] = {{0, operandOf(op.getA(), plan, 1), {}, {}}, {1, operandOf(op.getB(), plan, 0), {}, {}}};
  for (Side &side : sides) {
    for (int reg = 0; reg < result.registers(); ++reg)
      if (result.exists(reg))
        side.offsets.push_back(result.offset(reg)[side.dim]);
    llvm::sort(side.offsets);
    side.offsets.erase(std::unique(side.offsets.begin(), side.offsets.end()), side.offsets.end());
    Value own = b_.create<arith::MulIOp>(threadCoords(result)[side.dim], i32(side.offsetStride()));
    side.base = b_.create<arith::AddIOp>(side.operand.at, own);
  }

  auto load = [&](const Side &side, int64_t width, int64_t offset, int64_t k) {
    Coords corner(2, 0);
    corner[side.dim] = offset;
    Value mask;
    if (result.isPartial(result.registerAt(corner), side.dim))
      mask = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, threadCoords(result)[side.dim],
                                      i32(result.shape()[side.dim] - offset));
    Type type = width == 1 ? element : VectorType::get({width}, element);
    Value raw = loadShared(type, side.base, offset * side.offsetStride() + k * side.kStride(), mask,
                           side.operand.window, side.operand.group);
    SmallVector<Value> values;
    for (int64_t i = 0; i < width; ++i)
      values.push_back(width == 1 ? raw : b_.create<vector::ExtractOp>(raw, i).getResult());
    return values;
  };
  /// `count` steps along K from `k` on, a multiple of count: by offset, then by step.
  auto loadAll = [&](const Side &side, int64_t k, int64_t count) {
    SmallVector<SmallVector<Value>> values(side.offsets.size());
    if (side.operand.alongK) {
      for (auto [i, offset] : llvm::enumerate(side.offsets))
        values[i] = load(side, count, offset, k);
      return values;
    }
    int64_t size = result.shape()[side.dim];
    int64_t width = std::min({widest, result.consecutive(side.dim), size & -size});
    for (int64_t step = 0; step < count; ++step)
      for (size_t i = 0; i < side.offsets.size();)
        for (Value value : load(side, width, side.offsets[i], k + step))
          values[i++].push_back(value);
    return values;
  };

  Registers sums = registers(op.getAcc());
  auto multiply = [&](int64_t k, int64_t count) {
    SmallVector<SmallVector<Value>> a = loadAll(sides[0], k, count), b = loadAll(sides[1], k, count);
    for (int64_t step = 0; step < count; ++step)
      for (int reg = 0; reg < result.registers(); ++reg) {
        if (!result.exists(reg))
          continue;
        auto index = [&](int64_t dim) {
          return llvm::lower_bound(sides[dim].offsets, result.offset(reg)[dim]) - sides[dim].offsets.begin();
        };
        sums[reg] = b_.create<math::FmaOp>(a[index(0)][step], b[index(1)][step], sums[reg]);
      }
  };

  int64_t depth = typeOf(op.getA()).getDimSize(1), unrolled = 2 * widest, rounds = depth / unrolled, done = 0;
  if (rounds > 2) {
    SmallVector<Value> carried;
    llvm::copy_if(sums, std::back_inserter(carried), [](Value value) { return bool(value); });
    auto loop = b_.create<scf::ForOp>(i32(0), i32(rounds), i32(1), carried);
    auto take = [&](ValueRange values) {
      for (int reg = 0; reg < result.registers(); ++reg)
        if (sums[reg]) {
          sums[reg] = values.front();
          values = values.drop_front();
        }
    };
    SmallVector<Value> bases = {sides[0].base, sides[1].base};
    {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(loop.getBody());
      take(loop.getRegionIterArgs());
      for (Side &side : sides)
        side.base = b_.create<arith::AddIOp>(
            side.base, b_.create<arith::MulIOp>(loop.getInductionVar(), i32(unrolled * side.kStride())));
      for (int64_t k = 0; k < unrolled; k += widest)
        multiply(k, widest);
      SmallVector<Value> next;
      llvm::copy_if(sums, std::back_inserter(next), [](Value value) { return bool(value); });
      b_.create<scf::YieldOp>(next);
    }
    for (auto [side, base] : llvm::zip(sides, bases))
      side.base = base;
    take(loop.getResults());
    done = rounds * unrolled;
  }
  for (; done + widest <= depth; done += widest)
    multiply(done, widest);
  for (; done < depth; ++done)
    multiply(done, 1);
  registers(op) = std::move(sums);
}

} // namespace tenon::nvidia
