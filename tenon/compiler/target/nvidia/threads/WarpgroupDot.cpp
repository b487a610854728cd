// SPDX-License-Identifier: Apache-2.0
//
// A dot on warpgroups: wgmma. Each warpgroup has 64 rows, or several times 64, of the result; the instruction reads
// both operands from shared memory, where descriptors say how they lie, and goes on while the threads do other things.
//
//     fence                              // registers written before are seen
//     wgmma along K, one step after the other, into the same accumulators
//     commit                             // one group
//     ...                                // nothing that touches the accumulators
//     wait                               // before their first use: settle()
//
// The matrix unit adds products of 8-bit floats with 13 bits of fraction: their sums along one tile of K start from
// zero, and are added to the accumulators by the threads, in f32. Where there are not registers for both, a piece of the
// columns at a time; the other warpgroups multiply meanwhile.
//
// In a loop that only adds to the accumulators, the group of one iteration is waited for when that of the next has been
// started, so that the matrix unit never idles (Rings.cpp: carriedBy).
#include "tenon/compiler/target/nvidia/threads/RegisterOperands.h"
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Addresses and offsets of descriptors count in 16 bytes.
constexpr int64_t unit = 16;

/// Where the instruction finds an operand, apart from its address.
int64_t descriptorBits(const OperandTile &tile, bool alongK) {
  int64_t swizzle = tile.panel == 128 ? 1 : tile.panel == 64 ? 2 : 3;
  int64_t leading = alongK ? 1 : tile.panelSize() / unit; // rows along K are within one panel
  int64_t stride = 8 * tile.panel / unit;
  return leading << 16 | stride << 32 | swizzle << 62;
}

/// Bytes from the operand's beginning to element `count` along the dimension that is not K.
int64_t outerOffset(const OperandTile &tile, bool alongK, int64_t count) {
  if (alongK)
    return count * tile.panel;
  int64_t bytes = count * tile.elementBytes;
  return bytes / tile.panel * tile.panelSize() + bytes % tile.panel;
}

/// The same along K.
int64_t innerOffset(const OperandTile &tile, bool alongK, int64_t k) {
  if (!alongK)
    return k * tile.panel;
  int64_t bytes = k * tile.elementBytes;
  return bytes / tile.panel * tile.panelSize() + bytes % tile.panel;
}

} // namespace

bool ThreadEmitter::isZeroTile(Value tile) {
  return matchPattern(tile, m_Zero()) || matchPattern(tile, m_AnyZeroFloat());
}

void ThreadEmitter::emitWarpgroupDot(tile::DotOp op, const DotPlan &plan) {
  if (startedBefore_.contains(op))
    return;
  SmallVector<tile::DotOp> together = startedWith(op); // one behind the other, in the instruction's columns
  WarpgroupShape shape = *warpgroupShape(op, options_.threads / 32);
  publishOperands(op);
  Value left = shape.swapped ? op.getB() : op.getA(), right = shape.swapped ? op.getA() : op.getB();
  bool fromRegisters = op->hasAttr(registersAttr);
  StagedOperand a, b = operandOf(right, plan, shape.swapped ? 1 : 0);
  if (!fromRegisters)
    a = operandOf(left, plan, shape.swapped ? 0 : 1);
  bool isCarried = llvm::any_of(together, [&](tile::DotOp dot) { return carriedDots_.contains(dot); });
  bool isStaged = (!fromRegisters && !isAsync(left)) || !isAsync(right);
  IntegerAttr staging; // what their windows are accessed by: one group, that of operands with several buffers
  if (isStaged && isCarried)
    staging = b_.getI32IntegerAttr(isAsync(left) ? b.group : a.group);

  // Which rows and columns are this warpgroup's.
  Value group = b_.create<arith::ShRUIOp>(threadId_, i32(7));
  auto descriptor = [&](const StagedOperand &operand, int64_t groups, int64_t firstBit, int64_t each) -> Value {
    Value at = operand.at;
    if (groups > 1) {
      Value number = firstBit ? b_.create<arith::ShRUIOp>(group, i32(firstBit)).getResult() : group;
      number = b_.create<arith::AndIOp>(number, i32(llvm::PowerOf2Ceil(groups) - 1));
      int64_t bytes = each * operand.tile.elementBytes;
      Value offset;
      if (operand.alongK || bytes % operand.tile.panel == 0) {
        offset = b_.create<arith::MulIOp>(number, i32(outerOffset(operand.tile, operand.alongK, each)));
      } else { // several share a panel
        Value byte = b_.create<arith::MulIOp>(number, i32(bytes));
        offset = b_.create<arith::AddIOp>(panelStart(operand.tile, byte),
                                          b_.create<arith::AndIOp>(byte, i32(operand.tile.panel - 1)));
      }
      at = b_.create<arith::AddIOp>(at, offset);
    }
    Value address = b_.create<arith::ExtUIOp>(b_.getI64Type(), b_.create<arith::ShRUIOp>(at, i32(4)));
    return b_.create<arith::OrIOp>(address, i64(descriptorBits(operand.tile, operand.alongK)));
  };
  Value atA = fromRegisters ? Value() : descriptor(a, shape.overRows, 0, shape.rowBlocks() * 64);
  Value atB = descriptor(b, shape.overColumns, llvm::Log2_64_Ceil(shape.overRows), shape.columnBlocks() * shape.n);
  auto moved = [&](Value at, int64_t bytes) -> Value {
    return bytes ? b_.create<arith::AddIOp>(at, i64(bytes / unit)).getResult() : at;
  };

  // The instruction's accumulators 4 j + 2 h + i: row 8 h, column 8 j + i, from where the block of rows and columns
  // begins.
  SmallVector<SmallVector<int>> blocks(shape.rowBlocks() * shape.columnBlocks());
  Registers sums, before;
  for (tile::DotOp dot : together) {
    const Distribution &result = distribution(dot);
    int64_t n = warpgroupShape(dot, options_.threads / 32)->n;
    for (auto [number, numbers] : llvm::enumerate(blocks)) {
      int64_t row = number / shape.columnBlocks(), column = number % shape.columnBlocks();
      for (int64_t j = 0; j < n / 2; ++j) {
        int64_t r = shape.place(64 * row + j / 2 % 2 * 8), c = n * column + j / 4 * 8 + j % 2;
        int at = result.registerAt(shape.swapped ? ArrayRef<int64_t>{c, r} : ArrayRef<int64_t>{r, c});
        numbers.push_back(static_cast<int>(sums.size()) + at);
      }
    }
    sums.append(registers(dot.getAcc()));
  }

  bool fromZero = llvm::all_of(together, [](tile::DotOp dot) { return isZeroTile(dot.getAcc()); });
  bool promotes = plan.promotes;
  if (promotes && !fromZero) {
    before = sums;
    Value zero = lower::constantLike(b_, b_.getF32Type(), 0);
    for (Value &sum : sums)
      sum = sum ? zero : sum;
    fromZero = true;
  }
  OperandType typeA = shape.swapped ? plan.b : plan.a, typeB = shape.swapped ? plan.a : plan.b;
  auto windowOf = [&](Value operand, const StagedOperand &staged) {
    return isAsync(operand) || !staged.at ? DenseI64ArrayAttr()
                                          : b_.getDenseI64ArrayAttr({staged.window.begin, staged.window.end});
  };
  Type element = typeOf(op).getElementType();
  int64_t steps = typeOf(op.getA()).getDimSize(1) / plan.depth;
  Value addsFirst = addsFrom_.lookup(op);
  if (!addsFirst)
    addsFirst = boolean(!fromZero);
  /// One instruction: columns of a block of rows, from `column` on.
  auto multiply = [&](int64_t row, int64_t column, ArrayRef<int> numbers, int64_t step, Registers &sums,
                      ArrayRef<Value> words = {}) {
    SmallVector<Value> accumulators;
    for (int number : numbers) // columns come in eights: behind the last one of the tile nothing is added to anything
      accumulators.push_back(sums[number] ? sums[number] : lower::constantLike(b_, lower::registerType(element), 0));
    int64_t k = step * plan.depth;
    SmallVector<Value> ofA(words);
    if (!fromRegisters)
      ofA.push_back(moved(atA, outerOffset(a.tile, a.alongK, 64 * row) + innerOffset(a.tile, a.alongK, k)));
    Value descriptorB = moved(atB, outerOffset(b.tile, b.alongK, column) + innerOffset(b.tile, b.alongK, k));
    auto products =
        b_.create<WgmmaOp>(ValueRange(accumulators).getTypes(), typeA, typeB, static_cast<uint32_t>(numbers.size() * 2),
                           !fromRegisters && !a.alongK, !b.alongK, accumulators, ofA, descriptorB,
                           step ? boolean(true) : addsFirst, windowOf(left, a), windowOf(right, b), staging);
    for (auto [number, value] : llvm::zip(numbers, products.getResults()))
      sums[number] = value;
  };
  if (promotes && !shape.fitsTwice()) {
    settle();
    int64_t n = shape.pieceColumns();
    for (int64_t row = 0; row < shape.rowBlocks(); ++row)
      for (int64_t column = 0; column < shape.columns / shape.overColumns; column += n) {
        ArrayRef<int> numbers = blocks[row * shape.columnBlocks() + column / shape.n];
        numbers = numbers.slice(column % shape.n / 2, n / 2);
        b_.create<WgmmaFenceOp>(TypeRange(), ValueRange());
        for (int64_t step = 0; step < steps; ++step)
          multiply(row, column, numbers, step, sums);
        b_.create<WgmmaCommitOp>();
        SmallVector<Value> piece;
        for (int number : numbers)
          piece.push_back(sums[number]);
        auto wait = b_.create<WgmmaWaitOp>(ValueRange(piece).getTypes(), 0, piece);
        for (auto [number, value] : llvm::zip(numbers, wait.getResults()))
          sums[number] = before.empty() ? value : b_.create<arith::AddFOp>(before[number], value).getResult();
      }
    registers(op) = std::move(sums);
    return;
  }
  auto multiplyAll = [&](int64_t count) {
    Registers added = sums;
    b_.create<WgmmaFenceOp>(TypeRange(), ValueRange());
    for (int64_t step = 0; step < count; ++step)
      for (int64_t row = 0; row < shape.rowBlocks(); ++row)
        for (int64_t column = 0; column < shape.columnBlocks(); ++column)
          multiply(row, shape.n * column, blocks[row * shape.columnBlocks() + column], step, added);
    b_.create<WgmmaCommitOp>();
    return added;
  };
  if (fromRegisters) {
    takesOperands_ = true;
    remark(op.getLoc(), "dot takes what is computed for it from registers");
    for (int64_t step = 0; step < steps; ++step) {
      SmallVector<Value> words;
      for (int64_t row = 0; row < shape.rowBlocks(); ++row)
        llvm::append_range(words, registerFragment(left, shape, typeA, 64 * row, step * plan.depth));
      auto fence = b_.create<WgmmaFenceOp>(ValueRange(words).getTypes(), words);
      words.assign(fence.getResults().begin(), fence.getResults().end());
      for (int64_t row = 0; row < shape.rowBlocks(); ++row)
        for (int64_t column = 0; column < shape.columnBlocks(); ++column)
          multiply(row, shape.n * column, blocks[row * shape.columnBlocks() + column], step, sums,
                   ArrayRef<Value>(words).slice(4 * row, 4));
    }
    b_.create<WgmmaCommitOp>();
  } else {
    sums = upToEnd(columnsToEnd(together, plan), steps, plan.depth, sums, multiplyAll);
  }
  SmallVector<Value> results(together.begin(), together.end());
  ArrayRef<Value> rest = sums;
  for (tile::DotOp dot : together) {
    llvm::erase(underWay_, dot.getAcc());
    size_t count = distribution(dot).registers();
    registers(dot).assign(rest.begin(), rest.begin() + count);
    rest = rest.drop_front(count);
  }
  underWay_.append(results);
  if (fromRegisters || (isStaged && !isCarried) || promotes) {
    settle(); // the threads write there again, be it registers, or add to the sums
    if (!before.empty())
      for (auto [sum, old] : llvm::zip(registers(op), before))
        if (sum)
          sum = b_.create<arith::AddFOp>(old, sum);
  } else if (isCarried) {
    waitForDots(1, results); // those before are complete
    releaseHeld();
  }
}

/// The first iteration needs no zeros to add to: a hundred registers less to write, while nothing multiplies.
void ThreadEmitter::forgetZeros(scf::ForOp loop, ArrayRef<tile::DotOp> dots, MutableArrayRef<Value> inits) {
  size_t at = 0;
  for (auto [argument, init] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs())) {
    SmallVector<Value> values;
    flatten(init, values);
    if (llvm::any_of(dots, [&](tile::DotOp dot) { return dot.getAcc() == argument; }))
      for (Value &value : inits.slice(at, values.size()))
        value = b_.create<AnythingOp>(value.getType());
    at += values.size();
  }
}

void ThreadEmitter::waitForDots(int32_t pending, ArrayRef<Value> tiles) {
  SmallVector<Value> accumulators;
  for (Value tile : tiles)
    flatten(tile, accumulators);
  auto wait = b_.create<WgmmaWaitOp>(ValueRange(accumulators).getTypes(), static_cast<uint32_t>(pending), accumulators);
  ValueRange results = wait.getResults();
  for (Value tile : tiles)
    unflatten(tile, results);
}

void ThreadEmitter::settle() {
  if (!underWay_.empty())
    waitForDots(0, underWay_);
  underWay_.clear();
  releaseHeld();
}

void ThreadEmitter::releaseHeld() {
  for (auto &ring : rings_)
    if (ring->held) {
      releaseSlot(*ring, ring->held);
      ring->held = {};
    }
}

/// Before an op that reads what dots under way write, or that goes its own ways.
void ThreadEmitter::settleFor(Operation &op) {
  if (underWay_.empty())
    return;
  auto dot = llvm::dyn_cast<tile::DotOp>(op);
  bool adds = dot && dot->hasAttr(warpgroupAttr);
  bool reads = op.getNumRegions() && llvm::isa<scf::ForOp, scf::IfOp>(op);
  for (OpOperand &operand : op.getOpOperands())
    reads |= isUnderWay(operand.get()) && !(adds && operand.get() == dot.getAcc() && operand.getOperandNumber() == 2);
  if (reads)
    settle();
}

} // namespace tenon::nvidia
