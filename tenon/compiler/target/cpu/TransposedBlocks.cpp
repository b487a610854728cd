// SPDX-License-Identifier: Apache-2.0
//
// Loads across the rows of memory. A nest has its lanes along the last dimension of what it writes; a view that it reads
// may have its neighbours along another one (a transpose, a matrix stored by columns), and then each lane is an access
// of its own. Where a loop goes along that dimension, it takes a block of it at once: as many rows of memory as there
// are lanes, each a vector, change places in registers, and the block's iterations stand one behind the other.
//
//     for j step 32 { for i { y[i, j + lanes] = x[j + lanes, i] } }
//
//     for j step 32 { for i step 16 {                     // i is innermost: neighbours of what was read come next
//       r0 = x[j, i .. i + 15], r1 = x[j + 1, i .. i + 15], ... r31
//       c0, c1, ... c15 = r0 ... r31, transposed
//       y[i, j + lanes] = c0;  y[i + 1, j + lanes] = c1;  ...
//     } }
#include "tenon/compiler/target/cpu/TransposedBlocks.h"

#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>
#include <utility>

using namespace mlir;

namespace tenon::cpu {
namespace {

/// Of a square: as many registers, and as many to write the next step to. Narrow rows have ways of their own
/// (Interleave.cpp).
constexpr int64_t mostRows = 16, leastRows = 8;

/// Which dimension of the nest each of a tile's is; -1: it has one element.
using Dims = SmallVector<int, 5>;

/// The tiles that an element of `tile` is made of, and where their elements are.
void pushOperands(Value tile, const Dims &dims, SmallVectorImpl<std::pair<Value, Dims>> &work) {
  Operation *op = tile.getDefiningOp();
  auto push = [&](Value operand, Dims at) {
    auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
    if (!type)
      return;
    for (auto [dim, extent] : llvm::zip(at, type.getShape()))
      dim = extent == 1 ? -1 : dim;
    work.push_back({operand, std::move(at)});
  };
  if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op)) {
    Dims source(dims.size());
    for (auto [d, from] : llvm::enumerate(transpose.getPermutation()))
      source[from] = dims[d];
    push(transpose.getValue(), std::move(source));
  } else if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op); reshape && isUnitReshape(reshape)) {
    Dims source, wide;
    llvm::copy_if(dims, std::back_inserter(wide), [](int dim) { return dim >= 0; });
    size_t next = 0;
    for (int64_t extent : reshape.getValue().getType().getShape())
      source.push_back(extent == 1 ? -1 : wide[next++]);
    push(reshape.getValue(), std::move(source));
  } else if (llvm::isa<tile::BroadcastOp>(op) || isElementwise(op)) {
    for (Value operand : op->getOperands())
      push(operand, dims);
  }
}

} // namespace

void transposeSquare(ImplicitLocOpBuilder &b, SmallVectorImpl<Value> &rows) {
  int64_t lanes = rows.size();
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    low.append({i, lanes + i});
    high.append({lanes / 2 + i, lanes + lanes / 2 + i});
  }
  for (int64_t rounds = 1; rounds < lanes; rounds *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < lanes / 2; ++i)
      for (const auto &mask : {low, high})
        next.push_back(b.create<vector::ShuffleOp>(rows[i], rows[i + lanes / 2], mask));
    rows.assign(next);
  }
}

/// Looks for a loop that goes along rows of a view which lanes lie across.
void Nest::findBlocks() {
  if (vectorDim_ < 0 || group_.reduceDim >= 0 || group_.isInterleaved || !group_.drawn.empty())
    return;
  SmallVector<std::pair<Value, Dims>> work;
  Dims all;
  for (auto [d, extent] : llvm::enumerate(group_.shape))
    all.push_back(extent == 1 ? -1 : static_cast<int>(d));
  for (const NestRoot &root : group_.roots) {
    auto store = llvm::dyn_cast_if_present<tile::StoreOp>(root.op);
    if (root.op && !store)
      return;
    work.push_back({store ? store.getValue() : root.value, all});
  }
  llvm::DenseSet<Value> seen;
  int64_t rows = mostRows;
  int along = -1;
  while (!work.empty()) {
    auto [tile, dims] = work.pop_back_val();
    if (e_.buffer(tile) || !tile.getDefiningOp() || !seen.insert(tile).second)
      continue;
    auto load = tile.getDefiningOp<tile::LoadOp>();
    if (!load) {
      pushOperands(tile, dims, work);
      continue;
    }
    const ViewParts &view = e_.view(load.getView());
    int dim = view.unitStride < 0 ? -1 : dims[view.unitStride];
    if (dim < 0 || dim == vectorDim_ || !llvm::is_contained(dims, vectorDim_) || (along >= 0 && dim != along))
      continue;
    along = dim;
    rows = std::min<int64_t>(rows, e_.isa().vectorBytes / byteSize(memoryType(view.element)));
  }
  if (along < 0)
    return;
  while (rows > group_.shape[along] || stepOf(vectorDim_) % rows != 0)
    rows /= 2;
  if (rows < leastRows)
    return;
  blockDim_ = along;
  blockRows_ = rows;
}

/// Whether blocks are written a line of the cache at a time: rows are whole lines apart. Otherwise each line is written in
/// two iterations with others in between, which costs elements of 4 and 8 bytes more than they gain. Null where that does
/// not matter.
Value Nest::storesWholeLines() {
  if (blockDim_ < 0)
    return {};
  Value low;
  int64_t narrowest = 8;
  for (const NestRoot &root : group_.roots)
    if (auto store = llvm::dyn_cast_if_present<tile::StoreOp>(root.op)) {
      const ViewParts &view = e_.view(store.getView());
      int64_t bytes = byteSize(memoryType(view.element));
      narrowest = std::min(narrowest, bytes);
      for (auto [d, stride] : llvm::enumerate(view.strides))
        if (static_cast<int>(d) != vectorDim_ && group_.shape[d] > 1) {
          Value step = b_.create<arith::MulIOp>(stride, e_.index(bytes));
          low = low ? b_.create<arith::OrIOp>(low, step).getResult() : step;
        }
    }
  if (!low || narrowest < 4)
    return {};
  low = b_.create<arith::AndIOp>(low, e_.index(lineBytes - 1));
  return b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, low, e_.index(0));
}

/// The loop along the blocks, and along what they leave of the dimension; `inner` is called with the place of each.
void Nest::loopOverBlocks(llvm::function_ref<void(Value)> inner) {
  auto over = [&](Value end, int64_t step, llvm::function_ref<void(Value)> each) {
    loop(0, end, step, {}, [&](Value counter, ValueRange) -> SmallVector<Value> {
      each(counter);
      return {};
    });
  };
  int64_t extent = group_.shape[blockDim_];
  Value needed = live_[blockDim_], whole = e_.index(extent / blockRows_ * blockRows_);
  if (needed) {
    setInsertion(levels_.size() - 1);
    whole = b_.create<arith::MulIOp>(b_.create<arith::DivUIOp>(needed, e_.index(blockRows_)), e_.index(blockRows_));
  }
  over(whole, blockRows_, [&](Value counter) {
    for (int64_t row = 0; row < blockRows_; ++row)
      blockPlaces_.push_back(offsetBase(counter, row));
    inner(counter);
    blockPlaces_.clear();
  });
  if (!needed && extent % blockRows_ == 0)
    return;
  setInsertion(levels_.size() - 1);
  Value rest = b_.create<arith::SubIOp>(needed ? needed : e_.index(extent), whole);
  over(rest, 1, [&](Value counter) {
    Value place = b_.create<arith::AddIOp>(whole, counter);
    depths_[place] = levels_.size() - 1;
    inner(place);
  });
}

/// The group's work for one vector of elements in each iteration of a block.
void Nest::emitBlock(Coords coords) {
  for (Value place : blockPlaces_) {
    coords[blockDim_] = {place};
    body(coords);
  }
  blocks_.clear();
}

/// The rows of memory that all of the block's iterations read, as the vectors of each.
SmallVector<Value> Nest::transposedBlock(tile::LoadOp op, Coords coords) {
  const ViewParts &view = e_.view(op.getView());
  Type element = memoryType(view.element);
  Value across;
  for (auto [coord, stride] : llvm::zip(coords, view.strides))
    if (std::exchange(coord.lanes, false))
      across = stride;
  coords[view.unitStride].base = blockPlaces_.front();
  Value first = windowAddress(view, op.getOffsets(), coords).pointer;
  SmallVector<SmallVector<Value>> squares; // beside each other
  for (int64_t square = 0; square < lanes_; square += blockRows_) {
    SmallVector<Value> &rows = squares.emplace_back();
    for (int64_t row = square; row < square + blockRows_; ++row) {
      Value offset = b_.create<arith::IndexCastOp>(b_.getI64Type(),
                                                   b_.create<arith::MulIOp>(across, e_.index(row)));
      Value pointer = b_.create<LLVM::GEPOp>(first.getType(), element, first, ValueRange{offset});
      rows.push_back(b_.create<LLVM::LoadOp>(VectorType::get({blockRows_}, element), pointer, byteSize(element)));
    }
    transposeSquare(b_, rows);
  }
  // Of equal lengths, as far as there are two: others are put together lane by lane.
  for (; squares.size() > 1; squares.resize((squares.size() + 1) / 2))
    for (size_t i = 0; i < squares.size(); i += 2) {
      for (size_t row = 0; i + 1 < squares.size() && row < squares[i].size(); ++row) {
        Value left = squares[i][row], right = squares[i + 1][row];
        SmallVector<int64_t> both(lanesOf(left) + lanesOf(right));
        std::iota(both.begin(), both.end(), 0);
        squares[i][row] = b_.create<vector::ShuffleOp>(left, right, both);
      }
      if (i)
        squares[i / 2] = std::move(squares[i]);
    }
  SmallVector<Value> columns = std::move(squares.front());
  for (Value &column : columns)
    column = fromMemory(b_, column, view.element);
  return columns;
}

/// What a load brings in at `coords`, if those are in a block of rows that lanes lie across; else null.
Value Nest::loadFromBlock(tile::LoadOp op, const Coords &coords) {
  int unit = e_.view(op.getView()).unitStride;
  auto isLanes = [](const Coord &coord) { return coord.lanes; };
  if (blockPlaces_.empty() || unit < 0 || coords[unit].lanes || lanes_ % blockRows_ != 0 ||
      !llvm::any_of(coords, isLanes))
    return {};
  auto place = llvm::find(blockPlaces_, coords[unit].base);
  if (place == blockPlaces_.end())
    return {};
  std::vector<std::pair<void *, bool>> others = {{op.getOperation(), false}};
  for (auto [d, coord] : llvm::enumerate(coords))
    others.push_back({static_cast<int>(d) == unit ? nullptr : coord.base.getAsOpaquePointer(), coord.lanes});
  auto [block, isNew] = blocks_.try_emplace(others);
  if (isNew) {
    block->second = transposedBlock(op, coords);
    e_.remark(op.getLoc(), "transposed in registers, " + std::to_string(blockRows_) + " x " +
                               std::to_string(blockRows_) + " elements at a time: the view has its unit stride along "
                               "dimension " + std::to_string(unit) + " of the tile");
  }
  return block->second[place - blockPlaces_.begin()];
}

} // namespace tenon::cpu
