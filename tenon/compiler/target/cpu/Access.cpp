// SPDX-License-Identifier: Apache-2.0
//
// Memory, one vector of elements at a time. An access that is switched off (outside its view, or masked) goes to the first
// bytes of the scratch memory instead where the machine has no masked form of it: no branches, no faults.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

using Builder = ImplicitLocOpBuilder;

Value toI64(Builder &b, Value index) { return b.create<arith::IndexCastOp>(b.getI64Type(), index); }

/// Pointer arithmetic in elements; vector offsets give a vector of pointers.
Value elementPointer(Builder &b, Value base, Value offset, Type element) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  if (unsigned lanes = lanesOf(offset))
    pointer = LLVM::LLVMFixedVectorType::get(pointer, lanes);
  return b.create<LLVM::GEPOp>(pointer, element, base, ValueRange{offset});
}

Value andAll(Builder &b, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  Value both[] = {x, y};
  unifyLanes(b, both);
  return b.create<arith::AndIOp>(both[0], both[1]);
}

/// 0 <= value < limit in one unsigned comparison.
Value within(Builder &b, Value value, Value limit) {
  Value both[] = {value, limit};
  unifyLanes(b, both);
  return b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, both[0], both[1]);
}

Value allOnes(Builder &b, unsigned lanes) { return constantBits(b, VectorType::get({lanes}, b.getI1Type()), 1); }

} // namespace

Value Nest::laneIota(Type element) {
  SmallVector<Attribute> values;
  for (unsigned i = 0; i < lanes_; ++i)
    values.push_back(b_.getIntegerAttr(element, i));
  auto type = VectorType::get({lanes_}, element);
  return b_.create<arith::ConstantOp>(DenseElementsAttr::get(type, values));
}

//===--- The test before the loops --------------------------------------------------------------------------------===//

void Nest::collectWindows(Value tile, SmallVectorImpl<Operation *> &windows, llvm::DenseSet<Value> &seen) {
  Operation *op = tile.getDefiningOp();
  if (!llvm::isa<RankedTensorType>(tile.getType()) || !seen.insert(tile).second || e_.buffer(tile) || !op)
    return;
  if (llvm::isa<tile::LoadOp>(op))
    windows.push_back(op);
  for (Value operand : op->getOperands())
    collectWindows(operand, windows, seen);
}

/// What the nest reads and writes.
SmallVector<Nest::Window> Nest::windows() {
  SmallVector<Operation *> windows;
  llvm::DenseSet<Value> seen;
  for (const NestRoot &root : group_.roots) {
    if (!root.op) {
      // The destination's own buffer is not a reason to stop: it is being computed here.
      if (Operation *op = root.value.getDefiningOp(); op && isPulled(op)) {
        if (llvm::isa<tile::LoadOp>(op))
          windows.push_back(op);
        for (Value operand : op->getOperands())
          collectWindows(operand, windows, seen);
      }
      continue;
    }
    if (llvm::isa<tile::StoreOp>(root.op))
      windows.push_back(root.op);
    for (Value operand : root.op->getOperands())
      collectWindows(operand, windows, seen);
  }
  SmallVector<Window> all;
  for (Operation *op : windows)
    if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
      all.push_back({op, &e_.view(load.getView()), load.getOffsets(), load.getType().getShape()});
    else if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
      all.push_back({op, &e_.view(store.getView()), store.getOffsets(), store.getValue().getType().getShape()});
  return all;
}

Value Nest::both(Value x, Value y) { return andAll(b_, x, y); }

/// Whether a window is inside of its view along one of its dimensions, as far as it is needed.
Value Nest::isInside(const Window &window, size_t d) {
  // offset >= 0 and offset <= size - extent; sizes are far from the ends of 64 bits, offsets may not be.
  // A window that a unit reshape stands behind has other dimensions than the nest.
  int64_t extent = window.shape[d];
  bool isLimited = window.shape.size() == live_.size() && live_[d] && extent == group_.shape[d];
  Value last = b_.create<arith::SubIOp>(window.view->sizes[d], isLimited ? live_[d] : e_.index(extent));
  Value start = e_.scalar(window.offsets[d]);
  return both(b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, start, e_.index(0)),
              b_.create<arith::CmpIOp>(arith::CmpIPredicate::sle, start, last));
}

/// Whether every window the nest reads or writes lies inside its view; null when there is none.
Value Nest::inBounds() {
  Value inside;
  for (const Window &window : windows()) {
    b_.setLoc(window.op->getLoc());
    if (auto load = llvm::dyn_cast<tile::LoadOp>(window.op)) {
      const ViewParts &view = *window.view;
      Prefetch::Window next{load, view.pointer, {}, view.strides, view.unitStride, byteSize(memoryType(view.element))};
      for (Value offset : window.offsets)
        next.offsets.push_back(e_.scalar(offset));
      e_.prefetch().reads(std::move(next));
    }
    for (size_t d = 0; d < window.shape.size(); ++d)
      inside = both(inside, isInside(window, d));
  }
  return inside;
}

//===--- Buffers --------------------------------------------------------------------------------------------------===//

Value Nest::bufferPointer(const Buffer &buffer, const Coords &coords) {
  Value offset;
  for (auto [d, coord] : llvm::enumerate(coords)) {
    if (buffer.shape[d] == 1 || matchPattern(coord.base, m_Zero()))
      continue;
    Value term = buffer.strides[d] == 1 ? coord.base
                                        : b_.create<arith::MulIOp>(coord.base, e_.index(buffer.strides[d])).getResult();
    offset = offset ? b_.create<arith::AddIOp>(offset, term).getResult() : term;
  }
  return offset ? elementPointer(b_, buffer.pointer, toI64(b_, offset), scratchType(buffer.element)) : buffer.pointer;
}

namespace {

/// Elements between one lane and the next.
int64_t laneStrideOf(const Buffer &buffer, const Coords &coords) {
  for (auto [stride, coord] : llvm::zip(buffer.strides, coords))
    if (coord.lanes)
      return stride;
  return 1;
}

Value pointersOf(Builder &b, Value first, Value iota, int64_t stride, Type element) {
  return elementPointer(b, first, b.create<arith::MulIOp>(iota, constantBits(b, iota.getType(), stride)), element);
}

} // namespace

Value Nest::loadBuffer(const Buffer &buffer, const Coords &coords) {
  unsigned lanes = lanesIn(coords);
  Type element = scratchType(buffer.element);
  Value pointer = bufferPointer(buffer, coords), raw;
  int64_t stride = laneStrideOf(buffer, coords);
  unsigned align = byteSize(element);
  if (!lanes)
    raw = b_.create<LLVM::LoadOp>(element, pointer, align);
  else if (stride == 1) {
    raw = b_.create<LLVM::LoadOp>(VectorType::get({lanes}, element), pointer, align);
    e_.prefetch().readsVectorOfScratch();
  } else if (loadsColumns(element, stride))
    raw = loadColumn(pointer, element, stride);
  else
    raw = b_.create<LLVM::masked_gather>(VectorType::get({lanes}, element),
                                         pointersOf(b_, pointer, laneIota(b_.getI64Type()), stride, element),
                                         allOnes(b_, lanes), ValueRange{}, b_.getI32IntegerAttr(align));
  return buffer.element.isInteger(1) ? fromMemory(b_, raw, buffer.element) : raw;
}

void Nest::storeBuffer(const Buffer &buffer, const Coords &coords, Value value) {
  unsigned lanes = lanesIn(coords);
  Type element = scratchType(buffer.element);
  value = splatTo(b_, value, lanes);
  if (buffer.element.isInteger(1))
    value = toMemory(b_, value, buffer.element);
  Value pointer = bufferPointer(buffer, coords);
  int64_t stride = laneStrideOf(buffer, coords);
  unsigned align = byteSize(element);
  if (stride == 1)
    b_.create<LLVM::StoreOp>(value, pointer, align);
  else
    b_.create<LLVM::masked_scatter>(value, pointersOf(b_, pointer, laneIota(b_.getI64Type()), stride, element),
                                    allOnes(b_, lanes), b_.getI32IntegerAttr(align));
}

//===--- Views ----------------------------------------------------------------------------------------------------===//

Value Nest::lanesInside(Value at, Value size, Value ok) {
  // Lane i is inside when low <= i < high; clamped to the lane count these are small numbers. Comparing with the
  // distances to both ends, instead of at + i with the size, cannot overflow.
  Value lanes = e_.index(lanes_), zero = e_.index(0);
  auto clamp = [&](Value value) {
    Value small = b_.create<arith::MinSIOp>(b_.create<arith::MaxSIOp>(value, zero), lanes);
    return b_.create<arith::IndexCastOp>(b_.getI32Type(), small);
  };
  Value near = b_.create<arith::MaxSIOp>(at, b_.create<arith::SubIOp>(zero, lanes)); // far below: nothing inside
  Value low = clamp(b_.create<arith::SubIOp>(zero, near)), high = clamp(b_.create<arith::SubIOp>(size, near));
  // All conditions in one comparison, lane - low < high - low. Not as masks and-ed together: where lanes are known
  // to be off, LLVM 19 turns half of a masked load into a plain one (AVX2), which faults.
  Value length = b_.create<arith::SubIOp>(high, low);
  if (ok)
    length = b_.create<arith::SelectOp>(ok, length, constantBits(b_, b_.getI32Type(), 0));
  Value lane = b_.create<arith::SubIOp>(laneIota(b_.getI32Type()), splatTo(b_, low, lanes_));
  return b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, lane, splatTo(b_, length, lanes_));
}

Nest::Address Nest::windowAddress(const ViewParts &view, OperandRange offsets, const Coords &coords) {
  Address address;
  Value offset, laneAt;
  Type i64 = b_.getI64Type();
  int &laneDim = address.laneDim;
  for (auto [d, coord] : llvm::enumerate(coords)) {
    Value at = e_.scalar(offsets[d]);
    if (!matchPattern(coord.base, m_Zero()))
      at = b_.create<arith::AddIOp>(at, coord.base);
    if (coord.lanes)
      laneDim = d;
    if (checked_ && !coord.lanes)
      address.ok = andAll(b_, address.ok, within(b_, at, view.sizes[d]));
    else if (checked_)
      laneAt = at;
    // What is masked out has an address too, and where no memory is mapped there, a processor that suppresses the fault
    // takes a thousand times as long: it gets the address of the last element (of row, of column) that exists.
    if (checked_) {
      Value last = b_.create<arith::SubIOp>(view.sizes[d], e_.index(1));
      at = coord.lanes ? b_.create<arith::MinSIOp>(at, last).getResult() // before the first some lanes may be inside
                       : b_.create<arith::MinUIOp>(at, last).getResult();
    }
    Value term = view.unitStride == static_cast<int>(d) ? at : b_.create<arith::MulIOp>(at, view.strides[d]).getResult();
    offset = offset ? b_.create<arith::AddIOp>(offset, term).getResult() : term;
  }
  address.first = address.pointer = elementPointer(b_, view.pointer, toI64(b_, offset), memoryType(view.element));
  if (laneDim >= 0) {
    if (checked_)
      address.ok = lanesInside(laneAt, view.sizes[laneDim], address.ok);
    address.contiguous = laneDim == view.unitStride;
    if (!address.contiguous && !isBlocked_)
      e_.remark(b_.getLoc(), "accessed one element at a time: the view has no unit stride along dimension " +
                                 std::to_string(laneDim) + " of the tile");
    if (!address.contiguous) {
      Value stride = splatTo(b_, toI64(b_, view.strides[laneDim]), lanes_);
      Value steps = b_.create<arith::MulIOp>(laneIota(i64), stride);
      address.pointer = elementPointer(b_, address.pointer, steps, memoryType(view.element));
    }
  }
  return address;
}

Nest::Address Nest::indexedAddress(const ViewParts &view, OperandRange indices, Value mask, const Coords &coords) {
  if (auto row = rowAddress(view, indices, mask, coords))
    return *row;
  if (lanesIn(coords))
    e_.remark(b_.getLoc(), view.unitStride < 0
                               ? "accessed one element at a time: the view has no unit stride"
                               : "accessed one element at a time: the indices are not known to go along a row of the "
                                 "view, or the mask differs within one and the processor has no AVX-512");
  Address address;
  address.contiguous = false;
  Value offset;
  Type i64 = b_.getI64Type();
  if (mask)
    address.ok = compute(mask, coords);
  SmallVector<Value> positions;
  for (Value index : indices)
    positions.push_back(compute(index, coords));
  for (auto [d, index] : llvm::enumerate(positions)) {
    Value at = castElements(b_, index, getElementTypeOrSelf(index.getType()), i64, false);
    address.ok = andAll(b_, address.ok, within(b_, at, toI64(b_, view.sizes[d])));
    Value factors[] = {at, toI64(b_, view.strides[d])};
    unifyLanes(b_, factors);
    Value terms[] = {b_.create<arith::MulIOp>(factors[0], factors[1]), offset};
    if (offset) {
      unifyLanes(b_, terms);
      offset = b_.create<arith::AddIOp>(terms[0], terms[1]);
    } else {
      offset = terms[0];
    }
  }
  unsigned lanes = lanesIn(coords);
  offset = splatTo(b_, offset, lanes);
  address.ok = splatTo(b_, address.ok, lanes);
  address.pointer = elementPointer(b_, view.pointer, offset, memoryType(view.element));
  return address;
}

Value Nest::loadElements(const Address &address, Type tileElement, Value padding) {
  Type element = memoryType(tileElement);
  unsigned align = byteSize(element);
  unsigned lanes = llvm::isa<LLVM::LLVMPointerType>(address.pointer.getType())
                       ? (address.ok ? lanesOf(address.ok) : 0)
                       : LLVM::getVectorNumElements(address.pointer.getType()).getFixedValue();
  Value raw;
  Value pointer = address.pointer;
  bool masks = align >= 4 ? e_.isa().masksWords : e_.isa().masksSmallTypes;
  auto pointerType = LLVM::LLVMPointerType::get(b_.getContext());
  if (lanes == 0) {
    if (address.ok)
      pointer = b_.create<LLVM::SelectOp>(address.ok, pointer, e_.scratchPointer());
    raw = b_.create<LLVM::LoadOp>(element, pointer, align);
  } else if (address.contiguous && masks) {
    auto type = VectorType::get({lanes}, element);
    Value zero = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(type)));
    raw = b_.create<LLVM::MaskedLoadOp>(type, pointer, address.ok, ValueRange{zero}, align);
  } else {
    auto vectorOfPointers = LLVM::LLVMFixedVectorType::get(pointerType, lanes);
    if (address.contiguous)
      pointer = elementPointer(b_, pointer, laneIota(b_.getI64Type()), element);
    if (address.ok) {
      Value nowhere = b_.create<LLVM::GEPOp>(vectorOfPointers, element, e_.scratchPointer(),
                                             ValueRange{constantBits(b_, VectorType::get({lanes}, b_.getI64Type()), 0)});
      pointer = b_.create<LLVM::SelectOp>(address.ok, pointer, nowhere);
    }
    raw = b_.create<LLVM::masked_gather>(VectorType::get({lanes}, element), pointer, allOnes(b_, lanes), ValueRange{},
                                         b_.getI32IntegerAttr(align));
  }
  Value otherwise =
      padding ? padding
              : b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(registerType(tileElement))));
  if (isPaired(lanes)) // the mask is in the order of memory
    return unpackPairs(
        b_.create<arith::SelectOp>(address.ok, raw, splatTo(b_, toMemory(b_, otherwise, tileElement), lanes)));
  Value value = fromMemory(b_, raw, tileElement);
  if (!address.ok)
    return value;
  return b_.create<arith::SelectOp>(address.ok, value, splatTo(b_, otherwise, lanes));
}

Value Nest::loadWindow(tile::LoadOp op, const Coords &coords) {
  if (Value value = loadFromBlock(op, coords))
    return value;
  const ViewParts &view = e_.view(op.getView());
  isBlocked_ = blockDim_ >= 0;
  Address address = windowAddress(view, op.getOffsets(), coords);
  isBlocked_ = false;
  unsigned lanes = lanesIn(coords);
  Value padding = op.getPadding() ? e_.scalar(op.getPadding()) : Value();
  if (!address.ok && address.contiguous && lanes) {
    Type element = memoryType(view.element);
    Value raw = b_.create<LLVM::LoadOp>(VectorType::get({lanes}, element), address.pointer, byteSize(element));
    if (isPaired(lanes))
      return unpackPairs(raw);
    return fromMemory(b_, raw, view.element);
  }
  if (lanes && address.ok)
    address.ok = splatTo(b_, address.ok, lanes);
  Type element = memoryType(view.element);
  int64_t row = view.unitStride < 0 ? 0 : op.getType().getDimSize(view.unitStride);
  if (address.ok || address.contiguous || !lanes || isPaired(lanes) || !loadsColumns(element, row))
    return loadElements(address, view.element, padding);
  // A column of narrow rows, which mostly follow each other.
  Value follow = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, view.strides[address.laneDim], e_.index(row));
  Type result = VectorType::get({lanes}, registerType(view.element));
  auto branch = b_.create<scf::IfOp>(TypeRange{result}, follow, /*withElseRegion=*/true);
  for (bool isDense : {true, false}) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToEnd(isDense ? branch.thenBlock() : branch.elseBlock());
    Value value = isDense ? fromMemory(b_, loadColumn(address.first, element, row), view.element)
                          : loadElements(address, view.element, padding);
    b_.create<scf::YieldOp>(value);
  }
  return branch.getResult(0);
}

Value Nest::gather(tile::GatherOp op, const Coords &coords) {
  unsigned depth = depthOf(coords);
  const ViewParts &view = e_.view(op.getView());
  Address address = indexedAddress(view, op.getIndices(), op.getMask(), coords);
  setInsertion(depth);
  return loadElements(address, view.element, op.getPadding() ? e_.scalar(op.getPadding()) : Value());
}

/// What is to be written, 0 where `keeps` is false; null: all of it.
Value Nest::orZero(Value raw, Value keeps) {
  return keeps ? b_.create<arith::SelectOp>(keeps, raw, constantBits(b_, raw.getType(), 0)).getResult() : raw;
}

void Nest::storeElements(const Address &address, Type tileElement, Value value, Value keeps) {
  Type element = memoryType(tileElement);
  unsigned align = byteSize(element), lanes = lanesOf(value);
  Value raw = toMemory(b_, value, tileElement), pointer = address.pointer;
  if (isPaired(lanes))
    raw = orZero(packPairs(raw), keeps);
  bool masks = align >= 4 ? e_.isa().masksWords : e_.isa().masksSmallTypes;
  if (lanes == 0) {
    if (address.ok)
      pointer = b_.create<LLVM::SelectOp>(address.ok, pointer, e_.scratchPointer());
    b_.create<LLVM::StoreOp>(raw, pointer, align);
  } else if (address.contiguous && !address.ok) {
    b_.create<LLVM::StoreOp>(raw, pointer, align);
  } else if (address.contiguous && masks) {
    b_.create<LLVM::MaskedStoreOp>(raw, pointer, address.ok, align);
  } else {
    if (address.contiguous)
      pointer = elementPointer(b_, pointer, laneIota(b_.getI64Type()), element);
    if (address.ok) {
      auto vectorOfPointers = LLVM::LLVMFixedVectorType::get(LLVM::LLVMPointerType::get(b_.getContext()), lanes);
      Value nowhere = b_.create<LLVM::GEPOp>(vectorOfPointers, element, e_.scratchPointer(),
                                             ValueRange{constantBits(b_, VectorType::get({lanes}, b_.getI64Type()), 0)});
      pointer = b_.create<LLVM::SelectOp>(address.ok, pointer, nowhere);
    }
    b_.create<LLVM::masked_scatter>(raw, pointer, allOnes(b_, lanes), b_.getI32IntegerAttr(align));
  }
}

void Nest::storeWindow(tile::StoreOp op, const Coords &coords) {
  const ViewParts &view = e_.view(op.getView());
  unsigned lanes = lanesIn(coords);
  Value wide = roundedByStore(op, coords), value, keeps; // which elements are not 0 after all
  if (auto choice = isPaired(lanes) ? e_.pairedTiles().lastChoice(op, vectorDim_) : std::nullopt) {
    keeps = splatTo(b_, compute(choice->condition, coords), lanes);
    value = compute(choice->number, coords);
    setInsertion(levels_.size() - 1);
    if (choice->isZeroWhereTrue)
      keeps = b_.create<arith::XOrIOp>(keeps, allOnes(b_, lanes));
    if (!wide)
      value = elementwise(b_, op.getValue().getDefiningOp(), splatTo(b_, value, lanes));
  } else {
    value = compute(wide ? wide : op.getValue(), coords);
  }
  setInsertion(levels_.size() - 1);
  b_.setLoc(op.getLoc());
  Address address = windowAddress(view, op.getOffsets(), coords);
  value = splatTo(b_, value, lanes);
  bool streams = streaming_ && !checked_ && storesWholeVectors(op, lanes) && e_.isOnlyStored(op.getView());
  if (streams || wide) {
    bool tiesAway = wide && op.getValue().getDefiningOp()->hasAttr(tile::tiesAwayAttr);
    Value raw;
    if (wide)
      raw = tiesAway ? packTiesAway(value, /*underMask=*/keeps != nullptr) : packBf16(value);
    else
      raw = toMemory(b_, value, view.element);
    raw = orZero(raw, keeps);
    unsigned align = streams ? e_.isa().vectorBytes : byteSize(memoryType(view.element));
    b_.create<LLVM::StoreOp>(raw, address.pointer, align, /*isVolatile=*/false, /*isNonTemporal=*/streams);
    return;
  }
  if (lanes && address.ok)
    address.ok = splatTo(b_, address.ok, lanes);
  storeElements(address, view.element, value, keeps);
}

void Nest::scatter(tile::ScatterOp op, const Coords &coords, Value value) {
  const ViewParts &view = e_.view(op.getView());
  Address address = indexedAddress(view, op.getIndices(), op.getMask(), coords);
  setInsertion(levels_.size() - 1);
  storeElements(address, view.element, splatTo(b_, value, lanesIn(coords)));
}

//===--- Atomics and assertions: scalar code ----------------------------------------------------------------------===//

void Nest::atomic(Operation *op, const Coords &coords, const Buffer *result) {
  auto rmw = llvm::dyn_cast<tile::AtomicRMWOp>(op);
  auto cas = llvm::dyn_cast<tile::AtomicCASOp>(op);
  const ViewParts &view = e_.view(rmw ? rmw.getView() : cas.getView());
  Value first = compute(rmw ? rmw.getValue() : cas.getExpected(), coords);
  Value second = cas ? compute(cas.getDesired(), coords) : Value();
  Address address = indexedAddress(view, rmw ? rmw.getIndices() : cas.getIndices(),
                                   rmw ? rmw.getMask() : cas.getMask(), coords);
  setInsertion(levels_.size() - 1);
  Type element = view.element;
  auto branch = b_.create<scf::IfOp>(TypeRange{element}, address.ok, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToEnd(branch.elseBlock());
    b_.create<scf::YieldOp>(ValueRange{b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(element)))});
    b_.setInsertionPointToEnd(branch.thenBlock());
    auto order = LLVM::AtomicOrdering::seq_cst;
    Value old;
    if (rmw) {
      bool isFloat = llvm::isa<FloatType>(element), isUnsigned = rmw.getIsUnsigned();
      bool isExtremum = rmw.getKind() == tile::AtomicKind::max || rmw.getKind() == tile::AtomicKind::min;
      if (isFloat && isExtremum) {
        // LLVM's atomic fmax drops NaN, ours propagates it: a compare-exchange loop on the bits.
        Type bits = b_.getIntegerType(element.getIntOrFloatBitWidth());
        Value initial = b_.create<LLVM::LoadOp>(bits, address.pointer, byteSize(element), /*isVolatile=*/false,
                                                /*isNonTemporal=*/false, /*isInvariant=*/false,
                                                LLVM::AtomicOrdering::monotonic);
        auto loop = b_.create<scf::WhileOp>(TypeRange{bits}, ValueRange{initial});
        Block *before = b_.createBlock(&loop.getBefore(), {}, bits, b_.getLoc());
        Value seen = b_.create<arith::BitcastOp>(element, before->getArgument(0));
        Value wanted = rmw.getKind() == tile::AtomicKind::max ? b_.create<arith::MaximumFOp>(seen, first).getResult()
                                                              : b_.create<arith::MinimumFOp>(seen, first).getResult();
        auto exchange = b_.create<LLVM::AtomicCmpXchgOp>(address.pointer, before->getArgument(0),
                                                         b_.create<arith::BitcastOp>(bits, wanted), order,
                                                         LLVM::AtomicOrdering::monotonic);
        Value found = b_.create<LLVM::ExtractValueOp>(exchange, 0), done = b_.create<LLVM::ExtractValueOp>(exchange, 1);
        Value again = b_.create<arith::XOrIOp>(done, constantBits(b_, b_.getI1Type(), 1));
        b_.create<scf::ConditionOp>(again, ValueRange{found});
        Block *after = b_.createBlock(&loop.getAfter(), {}, bits, b_.getLoc());
        b_.create<scf::YieldOp>(ValueRange{after->getArgument(0)});
        b_.setInsertionPointToEnd(branch.thenBlock());
        old = b_.create<arith::BitcastOp>(element, loop.getResult(0));
      } else {
        LLVM::AtomicBinOp kind;
        switch (rmw.getKind()) {
        case tile::AtomicKind::add: kind = isFloat ? LLVM::AtomicBinOp::fadd : LLVM::AtomicBinOp::add; break;
        case tile::AtomicKind::max: kind = isUnsigned ? LLVM::AtomicBinOp::umax : LLVM::AtomicBinOp::max; break;
        case tile::AtomicKind::min: kind = isUnsigned ? LLVM::AtomicBinOp::umin : LLVM::AtomicBinOp::min; break;
        case tile::AtomicKind::exchange: kind = LLVM::AtomicBinOp::xchg; break;
        }
        old = b_.create<LLVM::AtomicRMWOp>(kind, address.pointer, first, order);
      }
    } else {
      Type bits = b_.getIntegerType(element.getIntOrFloatBitWidth());
      auto asBits = [&](Value value) -> Value {
        return value.getType() == bits ? value : b_.create<arith::BitcastOp>(bits, value).getResult();
      };
      auto exchange = b_.create<LLVM::AtomicCmpXchgOp>(address.pointer, asBits(first), asBits(second), order,
                                                       LLVM::AtomicOrdering::monotonic);
      old = b_.create<LLVM::ExtractValueOp>(exchange, 0);
      if (element != bits)
        old = b_.create<arith::BitcastOp>(element, old);
    }
    b_.create<scf::YieldOp>(ValueRange{old});
  }
  if (result)
    storeBuffer(*result, coords, branch.getResult(0));
}

void Nest::check(tile::AssertOp op, const Coords &coords) {
  bool isTile = llvm::isa<RankedTensorType>(op.getCondition().getType());
  Value holds = isTile ? compute(op.getCondition(), coords) : e_.scalar(op.getCondition());
  setInsertion(levels_.size() - 1);
  Value fails = b_.create<arith::XOrIOp>(holds, constantBits(b_, b_.getI1Type(), 1));
  auto branch = b_.create<scf::IfOp>(fails, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  std::string where = "unknown place";
  if (auto loc = llvm::dyn_cast<FileLineColLoc>(op.getLoc()))
    where = loc.getFilename().str() + ":" + std::to_string(loc.getLine());
  Buffer element = e_.allocate({std::max<int64_t>(1, coords.size())}, b_.getI64Type());
  for (auto [d, coord] : llvm::enumerate(coords))
    b_.create<LLVM::StoreOp>(toI64(b_, coord.base),
                             elementPointer(b_, element.pointer, constantBits(b_, b_.getI64Type(), d), b_.getI64Type()));
  SmallVector<Value> arguments = {e_.contextPointer(), e_.stringConstant(op.getMessage()), e_.stringConstant(where)};
  llvm::append_range(arguments, e_.programIds());
  arguments.push_back(constantBits(b_, b_.getI64Type(), isTile ? coords.size() : 0));
  arguments.push_back(element.pointer);
  e_.callRuntime("tenon_assert_failed", arguments);
}

} // namespace tenon::cpu
