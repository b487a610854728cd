// SPDX-License-Identifier: Apache-2.0
//
// What every piece of the emitter uses: constants, coordinates, lanes, shared memory.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "tenon/compiler/lower/KernelInfo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {

Value ThreadEmitter::i64(int64_t value) { return b_.create<arith::ConstantIntOp>(value, 64); }
Value ThreadEmitter::i32(int64_t value) { return b_.create<arith::ConstantIntOp>(value, 32); }
Value ThreadEmitter::boolean(bool value) { return b_.create<arith::ConstantIntOp>(value, 1); }

Value ThreadEmitter::toI64(Value value) {
  if (value.getType().isIndex())
    return b_.create<arith::IndexCastOp>(b_.getI64Type(), value);
  if (value.getType().isInteger(64))
    return value;
  return b_.create<arith::ExtSIOp>(b_.getI64Type(), value);
}

const Distribution &ThreadEmitter::distribution(Value tile) {
  RankedTensorType type = typeOf(tile);
  // Element types do not matter: tiles of one shape and layout share one.
  Type key = RankedTensorType::get(type.getShape(), b_.getI1Type(), type.getEncoding());
  auto &slot = distributions_[key];
  if (!slot)
    slot = std::make_unique<Distribution>(type, options_.threads / 32);
  return *slot;
}

ArrayRef<Value> ThreadEmitter::threadCoords(const Distribution &tile) {
  auto &coords = threadCoords_[&tile];
  if (!coords.empty())
    return coords;
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(prologueEnd_);
  coords.resize(tile.rank());
  // Runs of bits that move together, consecutive on both sides, are taken out with one shift and mask.
  ArrayRef<Distribution::ThreadBit> bits = tile.threadBits();
  for (size_t i = 0; i < bits.size();) {
    size_t end = i + 1;
    while (end < bits.size() && bits[end].dim == bits[i].dim && bits[end].bit == bits[end - 1].bit + 1 &&
           bits[end].step == bits[end - 1].step * 2)
      ++end;
    if (bits[i].dim >= 0) {
      bool ofBlock = bits[i].bit >= Distribution::blockBit;
      Value source = ofBlock ? clusterRank_ : threadId_;
      int from = ofBlock ? bits[i].bit - Distribution::blockBit : bits[i].bit;
      int to = llvm::Log2_64(bits[i].step);
      Value part = source;
      if (from)
        part = b_.create<arith::ShRUIOp>(part, i32(from));
      part = b_.create<arith::AndIOp>(part, i32((int64_t(1) << (end - i)) - 1));
      if (to)
        part = b_.create<arith::ShLIOp>(part, i32(to));
      Value &sum = coords[bits[i].dim];
      sum = sum ? b_.create<arith::OrIOp>(sum, part).getResult() : part;
    }
    i = end;
  }
  for (Value &coord : coords)
    if (!coord)
      coord = i32(0);
  return coords;
}

Value ThreadEmitter::coordinate(const Distribution &tile, int reg, int64_t dim) {
  Value base = b_.create<arith::ExtUIOp>(b_.getI64Type(), threadCoords(tile)[dim]);
  int64_t offset = tile.offset(reg)[dim];
  return offset ? b_.create<arith::AddIOp>(base, i64(offset)).getResult() : base;
}

Value ThreadEmitter::holdsElement(const Distribution &tile, int reg) {
  Value holds;
  for (int64_t d = 0; d < tile.rank(); ++d)
    if (tile.isPartial(reg, d)) {
      Value limit = i32(tile.shape()[d] - tile.offset(reg)[d]);
      holds = both(holds, b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, threadCoords(tile)[d], limit));
    }
  return holds;
}

Value ThreadEmitter::isOwner(const Distribution &tile, bool ofBlock, bool ofGroup) {
  int64_t threadMask = 0, blockMask = 0;
  for (const Distribution::ThreadBit &bit : tile.threadBits())
    if (bit.dim < 0)
      (bit.bit >= Distribution::blockBit ? blockMask : threadMask) |=
          int64_t(1) << (bit.bit >= Distribution::blockBit ? bit.bit - Distribution::blockBit : bit.bit);
  if (ofGroup)
    threadMask &= 127;
  auto isZero = [&](Value value, int64_t mask) -> Value {
    if (!mask)
      return {};
    return b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, b_.create<arith::AndIOp>(value, i32(mask)), i32(0));
  };
  return both(isZero(threadId_, threadMask), blockMask && !ofBlock ? isZero(clusterRank_, blockMask) : Value());
}

Value ThreadEmitter::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return b_.create<arith::AndIOp>(a, b);
}

Value ThreadEmitter::shuffle(ShuffleMode mode, Value value, Value lane) {
  Type type = value.getType(), i32Type = b_.getI32Type();
  if (type.isF32() || type.isInteger(32))
    return b_.create<ShuffleOp>(type, mode, value, lane);
  if (type.isF64()) {
    Value bits = shuffle(mode, b_.create<arith::BitcastOp>(b_.getI64Type(), value), lane);
    return b_.create<arith::BitcastOp>(type, bits);
  }
  if (type.isInteger(64)) {
    Value low = b_.create<arith::TruncIOp>(i32Type, value);
    Value high = b_.create<arith::TruncIOp>(i32Type, b_.create<arith::ShRUIOp>(value, i64(32)));
    low = b_.create<arith::ExtUIOp>(type, b_.create<ShuffleOp>(i32Type, mode, low, lane));
    high = b_.create<arith::ExtUIOp>(type, b_.create<ShuffleOp>(i32Type, mode, high, lane));
    return b_.create<arith::OrIOp>(low, b_.create<arith::ShLIOp>(high, i64(32)));
  }
  Value wide = b_.create<arith::ExtUIOp>(i32Type, value); // i1, i8, i16
  return b_.create<arith::TruncIOp>(type, b_.create<ShuffleOp>(i32Type, mode, wide, lane));
}

//===--- Memory ---------------------------------------------------------------------------------------------------===//

Value ThreadEmitter::loadGlobal(Type type, Value address, int64_t offset, Value mask, Value otherwise, bool lasting) {
  return b_.create<LoadOp>(type, Space::global, address, static_cast<uint32_t>(offset), mask, otherwise,
                           DenseI64ArrayAttr(), IntegerAttr(), /*streaming=*/false, lasting);
}

void ThreadEmitter::storeGlobal(Value value, Value address, int64_t offset, Value mask) {
  b_.create<StoreOp>(Space::global, value, address, static_cast<uint32_t>(offset), mask, DenseI64ArrayAttr(),
                     IntegerAttr(), /*streaming=*/false);
}

//===--- Shared memory --------------------------------------------------------------------------------------------===//

int64_t ThreadEmitter::allocateShared(int64_t bytes, int64_t alignment) {
  llvm::erase_if(sharedUses_, [&](const SharedUse &use) { return use.end > usedShared_; });
  int64_t begin = llvm::alignTo(usedShared_, alignment);
  usedShared_ = begin + bytes;
  sharedUses_.push_back({begin, usedShared_, b_.getLoc()});
  if (usedShared_ > peakShared_) {
    peakShared_ = usedShared_;
    usesAtPeak_ = sharedUses_;
  }
  return begin;
}

std::string ThreadEmitter::sharedUses() const {
  llvm::StringMap<int64_t> byPlace;
  for (const SharedUse &use : usesAtPeak_)
    byPlace[lower::placeOf(use.where)] += use.end - use.begin;
  SmallVector<std::pair<int64_t, StringRef>> largest;
  for (const auto &one : byPlace)
    if (!one.first().empty())
      largest.push_back({one.second, one.first()});
  llvm::sort(largest, std::greater<>());
  std::string text;
  for (const auto &[bytes, place] : ArrayRef(largest).take_front(3))
    text += (text.empty() ? "" : ", ") + std::to_string(bytes) + " for " + place.str();
  return text;
}

void ThreadEmitter::storeShared(Value value, Value address, int64_t offset, Value mask, SharedWindow window,
                                int group) {
  b_.create<StoreOp>(Space::shared, value, address, static_cast<uint32_t>(offset), mask,
                     b_.getDenseI64ArrayAttr({window.begin, window.end}), b_.getI32IntegerAttr(group),
                     /*streaming=*/false);
}

Value ThreadEmitter::loadShared(Type type, Value address, int64_t offset, Value mask, SharedWindow window,
                                int group) {
  Value zero = mask ? b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(type))).getResult() : Value();
  return b_.create<LoadOp>(type, Space::shared, address, static_cast<uint32_t>(offset), mask, zero,
                           b_.getDenseI64ArrayAttr({window.begin, window.end}), b_.getI32IntegerAttr(group),
                           /*streaming=*/false, /*lasting=*/false);
}

void ThreadEmitter::remark(Location where, const std::string &text) {
  std::string place = lower::placeOf(where);
  std::string full = place.empty() ? text : place + ": " + text;
  if (!llvm::is_contained(remarks_, full))
    remarks_.push_back(std::move(full));
}

} // namespace tenon::nvidia
