// SPDX-License-Identifier: Apache-2.0
//
// Rows of a few elements (the two parts of complex numbers, the colors of a pixel, the halves of a byte), which are far
// from filling a vector:
//
//   tile.concat of columns     a vector of each column, shuffled into one another, stored as one
//   one column of such rows    as many rows as a vector has lanes, loaded as one, and what is wanted shuffled out
//   whole rows, element by     one long row, where they follow each other in memory
//   element
//
// Otherwise each of these is one element, or one row, at a time.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tenon::cpu {

//===--- Columns --------------------------------------------------------------------------------------------------===//

bool Nest::interleaves(tile::ConcatOp op) {
  auto type = op.getType();
  int64_t dim = op.getDim(), columns = op.getValues().size();
  if (columns != type.getDimSize(dim) || (columns != 3 && columns != 2 && columns != 4 && columns != 8))
    return false;
  for (int64_t d = dim + 1; d < type.getRank(); ++d)
    if (type.getDimSize(d) != 1)
      return false;
  return llvm::any_of(type.getShape().take_front(dim), [](int64_t extent) { return extent > 1; });
}

Value Nest::interleaved(ArrayRef<Value> columns) {
  if (columns.size() == 1)
    return columns[0];
  int64_t lanes = lanesOf(columns[0]);
  SmallVector<int64_t> places;
  if (columns.size() == 3) {
    SmallVector<int64_t> both, twice;
    for (int64_t lane = 0; lane < 2 * lanes; ++lane) {
      both.push_back(lane);
      twice.push_back(lane % lanes);
    }
    for (int64_t lane = 0; lane < lanes; ++lane)
      places.append({lane, lanes + lane, 2 * lanes + lane});
    return b_.create<vector::ShuffleOp>(b_.create<vector::ShuffleOp>(columns[0], columns[1], both),
                                        b_.create<vector::ShuffleOp>(columns[2], columns[2], twice), places);
  }
  SmallVector<Value> even, odd;
  for (auto [i, column] : llvm::enumerate(columns))
    (i % 2 ? odd : even).push_back(column);
  Value left = interleaved(even), right = interleaved(odd);
  int64_t half = lanesOf(left);
  for (int64_t lane = 0; lane < half; ++lane)
    places.append({lane, half + lane});
  return b_.create<vector::ShuffleOp>(left, right, places);
}

void Nest::storeColumns(const Coords &coords) {
  SmallVector<Value> columns;
  for (const NestRoot &root : group_.roots)
    columns.push_back(splatTo(b_, compute(root.value, coords), lanes_));
  setInsertion(levels_.size() - 1);
  const Buffer &first = group_.roots[0].buffer; // of all of them the others are right behind it
  if (first.element.isInteger(1))
    for (Value &column : columns)
      column = toMemory(b_, column, first.element);
  b_.create<LLVM::StoreOp>(interleaved(columns), bufferPointer(first, coords), byteSize(scratchType(first.element)));
}

bool Nest::loadsColumns(Type element, int64_t stride) const {
  constexpr int64_t mostColumns = 4; // of more the shuffles cost as much as single elements do
  bool masks = byteSize(element) >= 4 ? e_.isa().masksWords : e_.isa().masksSmallTypes;
  return stride >= 2 && stride <= mostColumns && masks && lanes_ >= 8 && llvm::isPowerOf2_32(lanes_);
}

Value Nest::loadColumn(Value pointer, Type element, int64_t stride) {
  int64_t all = lanes_ * stride;
  SmallVector<int64_t> places;
  SmallVector<bool> needed(all, true);
  for (int64_t lane = 0; lane < static_cast<int64_t>(lanes_); ++lane)
    places.push_back(lane * stride);
  std::fill(needed.begin() + places.back() + 1, needed.end(), false); // may be behind the end
  auto type = VectorType::get({all}, element);
  Value mask = b_.create<arith::ConstantOp>(
      DenseElementsAttr::get(VectorType::get({all}, b_.getI1Type()), ArrayRef<bool>(needed)));
  Value zero = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(type)));
  Value rows = b_.create<LLVM::MaskedLoadOp>(type, pointer, mask, ValueRange{zero}, byteSize(element));
  return b_.create<vector::ShuffleOp>(rows, rows, places);
}

//===--- Whole rows -----------------------------------------------------------------------------------------------===//

/// The group with its two last dimensions as one, if each element's place in everything it reads and writes is that of
/// another one plus their distance in the tile. `views` are those whose rows must follow each other for that.
std::optional<NestGroup> Nest::asLongRow(SmallVectorImpl<const ViewParts *> &views) {
  int last = vectorDim_, before = last - 1;
  if (before < 0 || group_.reduceDim >= 0 || group_.isInterleaved || !group_.drawn.empty() ||
      group_.shape[before] == 1 || group_.shape[last] >= vectorLanes_)
    return std::nullopt;
  int64_t row = group_.shape[last];
  auto isDense = [&](const Buffer &buffer) {
    return ArrayRef(buffer.shape) == ArrayRef(group_.shape) && buffer.strides[last] == 1 &&
           buffer.strides[before] == row;
  };
  auto isWindow = [&](Value view, ArrayRef<int64_t> shape) {
    const ViewParts &parts = e_.view(view);
    views.push_back(&parts);
    return shape == ArrayRef(group_.shape) && parts.unitStride == last;
  };
  SmallVector<Value> work;
  for (const NestRoot &root : group_.roots) {
    auto store = llvm::dyn_cast_if_present<tile::StoreOp>(root.op);
    if (store ? !isWindow(store.getView(), store.getValue().getType().getShape()) : root.op || !isDense(root.buffer))
      return std::nullopt;
    work.push_back(store ? store.getValue() : root.value);
  }
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    if (!type || !seen.insert(value).second)
      continue;
    const Buffer *buffer = e_.buffer(value);
    Operation *op = value.getDefiningOp();
    if (buffer && isDense(*buffer))
      continue;
    if (buffer || !op)
      return std::nullopt;
    if (llvm::isa<arith::ConstantOp, tile::SplatOp>(op))
      continue;
    if (auto load = llvm::dyn_cast<tile::LoadOp>(op)) {
      if (!isWindow(load.getView(), type.getShape()))
        return std::nullopt;
      continue;
    }
    if (auto broadcast = llvm::dyn_cast<tile::BroadcastOp>(op)) {
      auto source = llvm::cast<RankedTensorType>(broadcast.getValue().getType());
      if (source.getDimSize(before) != 1 || source.getDimSize(last) != 1)
        return std::nullopt;
      continue; // one for all of them
    }
    if (!isElementwise(op))
      return std::nullopt;
    llvm::append_range(work, op->getOperands());
  }
  NestGroup flat = group_;
  flat.shape[last] *= flat.shape[before];
  flat.shape[before] = 1;
  return flat;
}

void Nest::emitLongRow() {
  isLongRow_ = true;
  for (int d = 0; d < static_cast<int>(group_.shape.size()); ++d)
    if (group_.shape[d] > 1)
      vectorDim_ = d;
  for (int d = 0; d < static_cast<int>(group_.shape.size()); ++d)
    if (d != vectorDim_)
      loopDims_.push_back(d);
  loopDims_.push_back(vectorDim_);
  vectorLanes_ = preferredLanes(e_.isa());
  live_.assign(group_.shape.size(), Value());
  emitLoops();
}

} // namespace tenon::cpu
