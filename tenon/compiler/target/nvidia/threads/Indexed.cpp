// SPDX-License-Identifier: Apache-2.0
//
// Elements named by tiles of indices (gather, scatter, atomics), and what a kernel tells its user (assert, print). Each
// element is touched by one thread: the first of those that hold it.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "tenon/compiler/lower/KernelInfo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

std::pair<Value, Value> ThreadEmitter::indexedAddress(Value viewValue, ValueRange indices, Value mask, int reg) {
  const ViewWords &view = views_.find(viewValue)->second;
  Value inside = mask ? registers(mask)[reg] : Value(), linear;
  for (auto [d, tile] : llvm::enumerate(indices)) {
    Value index = toI64(registers(tile)[reg]);
    inside = both(inside, b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, index, view.sizes[d]));
    Value part = b_.create<arith::MulIOp>(index, view.strides[d]);
    linear = linear ? b_.create<arith::AddIOp>(linear, part).getResult() : part;
  }
  Value bytes = b_.create<arith::MulIOp>(linear, i64(byteSize(memoryType(view.element))));
  return {b_.create<arith::AddIOp>(view.address, bytes), inside};
}

void ThreadEmitter::emitGather(tile::GatherOp op) {
  const Distribution &tile = distribution(op);
  Type element = typeOf(op).getElementType(), memory = memoryType(element);
  Value padding = op.getPadding() ? toMemory(b_, scalar(op.getPadding()), element)
                  : llvm::isa<FloatType>(memory) ? constantLike(b_, memory, 0)
                                                 : constantBits(b_, memory, 0);
  Registers values(tile.registers());
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    auto [address, inside] = indexedAddress(op.getView(), op.getIndices(), op.getMask(), reg);
    Value mask = isWritten(op.getView()) ? both(inside, holdsElement(tile, reg)) : inside;
    Value raw = loadGlobal(memory, address, 0, mask, padding);
    values[reg] = fromMemory(b_, raw, element);
  }
  registers(op) = std::move(values);
}

void ThreadEmitter::emitScatter(tile::ScatterOp op) {
  if (op->hasAttr(stagedAttr))
    return emitStagedScatter(op);
  const Distribution &tile = distribution(op.getValue());
  Type element = typeOf(op.getValue()).getElementType();
  Value owner = isOwner(tile);
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    auto [address, inside] = indexedAddress(op.getView(), op.getIndices(), op.getMask(), reg);
    Value mask = both(both(inside, holdsElement(tile, reg)), owner);
    storeGlobal(toMemory(b_, registers(op.getValue())[reg], element), address, 0, mask);
  }
}

//===--- Atomics --------------------------------------------------------------------------------------------------===//

/// Gives the result of an atomic to all threads that hold the element: only one of them did it.
void ThreadEmitter::shareWithDuplicates(Value tile) {
  const Distribution &distribution = this->distribution(tile);
  if (!isOwner(distribution))
    return;
  int64_t mark = markShared();
  Staged staged = planStaging(distribution.shape(), typeOf(tile).getElementType(), distribution.rank() - 1, true);
  Coords origin(distribution.rank(), 0);
  writeStaged(staged, tile, origin, newGroup());
  registers(tile) = readStaged(staged, distribution, origin, newGroup());
  releaseShared(mark);
}

/// What the hardware has no instruction for: guess what is there, compute, compare and exchange until the guess was
/// right. The first guess is zero: an ordinary load would race with others' updates.
Value ThreadEmitter::updateByCompareExchange(Value address, Type type, Value mask,
                                             llvm::function_ref<Value(Value)> update) {
  Type bits = b_.getIntegerType(type.getIntOrFloatBitWidth());
  Value first = b_.create<arith::ConstantOp>(b_.getIntegerAttr(bits, 0));
  auto loop = b_.create<scf::WhileOp>(TypeRange{bits, b_.getI1Type()}, ValueRange{first, mask});
  {
    OpBuilder::InsertionGuard guard(b_);
    Block *before = b_.createBlock(&loop.getBefore(), {}, {bits, b_.getI1Type()}, {b_.getLoc(), b_.getLoc()});
    b_.create<scf::ConditionOp>(before->getArgument(1), before->getArguments());
    Block *after = b_.createBlock(&loop.getAfter(), {}, {bits, b_.getI1Type()}, {b_.getLoc(), b_.getLoc()});
    Value expected = after->getArgument(0);
    Value next = toBits(update(fromBits(expected, type)));
    Value seen = b_.create<AtomicCasOp>(bits, address, expected, next, mask);
    Value again = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, seen, expected);
    b_.create<scf::YieldOp>(ValueRange{seen, again});
  }
  return fromBits(loop.getResult(0), type);
}

void ThreadEmitter::emitAtomicRMW(tile::AtomicRMWOp op) {
  const Distribution &tile = distribution(op);
  Type element = typeOf(op).getElementType();
  Value owner = isOwner(tile);
  bool isFloat = llvm::isa<FloatType>(element);
  b_.create<FenceOp>(FenceKind::device);
  Registers old(tile.registers());
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    auto [address, inside] = indexedAddress(op.getView(), op.getIndices(), op.getMask(), reg);
    Value mask = both(both(inside, holdsElement(tile, reg)), owner), value = registers(op.getValue())[reg];
    auto plain = [&](AtomicKind kind, Value operand) -> Value {
      return b_.create<AtomicOp>(operand.getType(), kind, address, operand, mask);
    };
    switch (op.getKind()) {
    case tile::AtomicKind::add:
      old[reg] = plain(isFloat ? AtomicKind::fadd : AtomicKind::add, value);
      break;
    case tile::AtomicKind::exchange:
      old[reg] = fromBits(plain(AtomicKind::exchange, toBits(value)), element);
      break;
    case tile::AtomicKind::max:
    case tile::AtomicKind::min: {
      bool isMax = op.getKind() == tile::AtomicKind::max;
      if (isFloat)
        old[reg] = updateByCompareExchange(address, element, mask, [&](Value current) -> Value {
          return isMax ? b_.create<arith::MaximumFOp>(current, value).getResult()
                       : b_.create<arith::MinimumFOp>(current, value).getResult();
        });
      else if (op.getIsUnsigned())
        old[reg] = plain(isMax ? AtomicKind::umax : AtomicKind::umin, value);
      else
        old[reg] = plain(isMax ? AtomicKind::smax : AtomicKind::smin, value);
      break;
    }
    }
  }
  b_.create<FenceOp>(FenceKind::device);
  registers(op) = std::move(old);
  if (!op.getOld().use_empty())
    shareWithDuplicates(op);
}

void ThreadEmitter::emitAtomicCAS(tile::AtomicCASOp op) {
  const Distribution &tile = distribution(op);
  Type element = typeOf(op).getElementType();
  Value owner = isOwner(tile);
  b_.create<FenceOp>(FenceKind::device);
  Registers old(tile.registers());
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    auto [address, inside] = indexedAddress(op.getView(), op.getIndices(), op.getMask(), reg);
    Value mask = both(both(inside, holdsElement(tile, reg)), owner);
    Value expected = toBits(registers(op.getExpected())[reg]), desired = toBits(registers(op.getDesired())[reg]);
    old[reg] = fromBits(b_.create<AtomicCasOp>(expected.getType(), address, expected, desired, mask), element);
  }
  b_.create<FenceOp>(FenceKind::device);
  registers(op) = std::move(old);
  if (!op.getOld().use_empty())
    shareWithDuplicates(op);
}

//===--- Assert and print -----------------------------------------------------------------------------------------===//

/// The first failure of a launch wins the status words: number + 1, the program's place in the grid, then the element's.
/// (Status words: 0 the number, 1-3 program ids, 4-8 coordinates.)
void ThreadEmitter::emitAssert(tile::AssertOp op) {
  int64_t number = static_cast<int64_t>(asserts_.size()) + 1;
  bool isTile = llvm::isa<RankedTensorType>(op.getCondition().getType());
  asserts_.push_back({op.getMessage().str(), placeOf(op.getLoc()), isTile ? typeOf(op.getCondition()).getRank() : 0});
  auto check = [&](Value holds, Value applies, ArrayRef<Value> coords) {
    Value fails = both(b_.create<arith::XOrIOp>(holds, boolean(true)), applies);
    auto branch = b_.create<scf::IfOp>(fails, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    Value before = b_.create<AtomicCasOp>(b_.getI64Type(), status_, i64(0), i64(number), Value());
    Value first = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, before, i64(0));
    auto write = [&](Value value, int32_t word) {
      storeGlobal(value, status_, word * 8, first);
    };
    for (auto [i, id] : llvm::enumerate(programIds_))
      write(id, static_cast<int32_t>(1 + i));
    for (auto [d, coord] : llvm::enumerate(coords))
      write(coord, static_cast<int32_t>(4 + d));
  };
  if (!isTile) {
    Value first = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadId_, i32(0));
    check(scalar(op.getCondition()), first, {});
    return;
  }
  const Distribution &tile = distribution(op.getCondition());
  Value owner = isOwner(tile);
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    SmallVector<Value> coords;
    for (int64_t d = 0; d < tile.rank(); ++d)
      coords.push_back(coordinate(tile, reg, d));
    check(registers(op.getCondition())[reg], both(holdsElement(tile, reg), owner), coords);
  }
}

/// One record of eight words per element, in a buffer whose first word counts them (and goes on counting past its end)
/// and whose second says how many fit: print number, program ids, element number, value bits.
void ThreadEmitter::emitPrint(tile::PrintOp op) {
  int64_t number = static_cast<int64_t>(prints_.size());
  bool isTile = llvm::isa<RankedTensorType>(op.getValue().getType());
  Type element = getElementTypeOrSelf(op.getValue().getType());
  std::string elementName;
  llvm::raw_string_ostream(elementName) << element;
  std::vector<int64_t> shape;
  if (isTile)
    shape = typeOf(op.getValue()).getShape().vec();
  prints_.push_back({op.getLabel().str(), elementName, shape, op.getIsUnsigned()});
  blockBarrier(); // so that prints come in the order of the program
  auto record = [&](Value value, Value applies, Value elementNumber) {
    Value bits = toBits(value.getType().isIndex() ? toI64(value) : value);
    if (bits.getType().isInteger(32))
      bits = b_.create<arith::ExtUIOp>(b_.getI64Type(), bits);
    auto branch = b_.create<scf::IfOp>(applies, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    Value at = b_.create<AtomicOp>(b_.getI64Type(), AtomicKind::add, printBuffer_, i64(1), Value());
    Value room = loadGlobal(b_.getI64Type(), printBuffer_, 8, Value(), Value());
    Value fits = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, at, room);
    Value address = b_.create<arith::AddIOp>(printBuffer_, b_.create<arith::MulIOp>(at, i64(64)));
    SmallVector<Value> words = {i64(number)};
    llvm::append_range(words, programIds_);
    while (words.size() < 4)
      words.push_back(i64(0));
    words.push_back(elementNumber);
    words.push_back(bits);
    for (auto [i, word] : llvm::enumerate(words))
      storeGlobal(word, address, static_cast<int32_t>(16 + 8 * i), fits);
  };
  if (!isTile) {
    record(scalar(op.getValue()), b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadId_, i32(0)), i64(0));
    return;
  }
  const Distribution &tile = distribution(op.getValue());
  Value owner = isOwner(tile);
  for (int reg = 0; reg < tile.registers(); ++reg) {
    if (!tile.exists(reg))
      continue;
    Value linear = i64(0);
    for (int64_t d = 0; d < tile.rank(); ++d)
      linear = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(linear, i64(tile.shape()[d])),
                                        coordinate(tile, reg, d));
    Value applies = both(holdsElement(tile, reg), owner);
    record(registers(op.getValue())[reg], applies ? applies : boolean(true), linear);
  }
}

} // namespace tenon::nvidia
