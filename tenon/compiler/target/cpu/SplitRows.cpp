// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/SplitRows.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/cpu/Placement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// Of a row that has an instance to itself. Shorter ones are faster together where results go through the cache.
constexpr int64_t leastElements = 1024, leastBytes = 2 * 4096; ///< the latter where pages are gone over at once

RankedTensorType tileType(Value value) { return llvm::dyn_cast<RankedTensorType>(value.getType()); }

/// A kernel whose tiles have `rows_` rows, in their first dimension, which begin at `start_`.
class RowTiles {
public:
  explicit RowTiles(func::FuncOp kernel) : kernel_(kernel), body_(kernel.getBody().front()) {}

  bool canBeApart(const Isa &isa) { return findRows() && areLong(isa) && areAlike() && startsWhereRowsDo(); }
  void takeApart();

private:
  bool hasRows(Value tile) const {
    RankedTensorType type = tileType(tile);
    return type && type.getRank() > 0 && type.getDimSize(0) == rows_;
  }

  bool findRows();
  bool areLong(const Isa &isa) const;
  bool areAlike() const;
  bool isAlike(Operation &op) const;
  bool concernsNoRow(Operation &op) const;
  bool isNumberOfRow(Operation *op) const;
  bool startsWhereRowsDo() const;

  func::FuncOp kernel_;
  Block &body_;
  int64_t rows_ = 0;
  Value start_;
  OpResult id_; ///< of which that is a multiple
  SmallVector<tile::StoreOp> stores_;
};

/// From the stores, of which there is one at least.
bool RowTiles::findRows() {
  for (auto store : body_.getOps<tile::StoreOp>()) {
    auto view = llvm::dyn_cast<BlockArgument>(store.getView());
    if (!view || !kernel_.getArgAttr(view.getArgNumber(), tile::distinctAttr))
      return false; // which of two rows comes last would be seen
    Value start = store.getOffsets().empty() ? Value() : store.getOffsets()[0];
    if (!start || (start_ && start != start_))
      return false;
    start_ = start;
    rows_ = store.getValue().getType().getDimSize(0);
    stores_.push_back(store);
  }
  llvm::APInt factor;
  auto product = start_ ? start_.getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  if (!product || !product.getLhs().getDefiningOp<tile::GridOp>() || rows_ == 1 ||
      !matchPattern(product.getRhs(), m_ConstantInt(&factor)) || factor.getSExtValue() != rows_)
    return false;
  id_ = llvm::cast<OpResult>(product.getLhs());
  return id_.hasOneUse() && llvm::all_of(stores_, [&](tile::StoreOp store) { return hasRows(store.getValue()); });
}

/// Whether a row is long, and gone over more than once: it is reduced, and stored or reduced again.
bool RowTiles::areLong(const Isa &isa) const {
  int64_t longest = 0;
  int times = 0;
  auto goOver = [&](Value tile, Type inMemory) {
    RankedTensorType type = tileType(tile);
    int64_t extent = type.getRank() == 2 ? type.getDimSize(1) : 0;
    int64_t bytes = extent * lower::byteSize(lower::memoryType(inMemory));
    if (isa.bringsRows ? bytes < leastBytes : extent < leastElements)
      return;
    times = extent > longest ? 1 : times + (extent == longest);
    longest = std::max(longest, extent);
  };
  for (Operation &op : body_)
    if (auto reduce = llvm::dyn_cast<tile::ReduceOp>(op))
      goOver(reduce.getValues()[0], tileType(reduce.getValues()[0]).getElementType());
    else if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
      goOver(store.getValue(), store.getView().getType().getElementType());
  return times > 1;
}

/// Whether row i of every tile is made of row i of others, and no tile has as many elements in another dimension.
bool RowTiles::areAlike() const {
  auto isRow = [&](Value value) { return hasRows(value); };
  auto isOther = [&](Value value) {
    RankedTensorType type = tileType(value);
    return type && (type.getRank() > 2 || (type.getRank() == 2 && type.getDimSize(1) == rows_));
  };
  return llvm::all_of(body_, [&](Operation &op) {
    if (llvm::any_of(op.getOperands(), isOther) || llvm::any_of(op.getResults(), isOther))
      return false;
    bool concernsRows = llvm::any_of(op.getOperands(), isRow) || llvm::any_of(op.getResults(), isRow);
    return concernsRows ? isAlike(op) : concernsNoRow(op);
  });
}

bool RowTiles::isAlike(Operation &op) const {
  auto isStored = [&](Value view) {
    return llvm::any_of(stores_, [&](tile::StoreOp store) { return store.getView() == view; });
  };
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
    return load.getOffsets()[0] == start_ && !isStored(load.getView());
  if (auto gather = llvm::dyn_cast<tile::GatherOp>(op))
    return !isStored(gather.getView());
  if (auto reduce = llvm::dyn_cast<tile::ReduceOp>(op))
    return reduce.getDim() == 1;
  if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op)) // of a column, or to one
    return hasRows(reshape.getValue()) && hasRows(reshape.getResult()) && isUnitReshape(reshape);
  if (auto iota = llvm::dyn_cast<tile::IotaOp>(op))
    return iota.getDim() == 1 || llvm::all_of(iota->getUsers(), [&](Operation *user) { return isNumberOfRow(user); });
  if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op))
    return llvm::isa<SplatElementsAttr>(constant.getValue());
  return llvm::isa<tile::StoreOp, tile::BroadcastOp, tile::SplatOp, tile::RandomBitsOp>(op) ||
         lower::isElementwise(&op);
}

bool RowTiles::concernsNoRow(Operation &op) const {
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
    return llvm::none_of(stores_, [&](tile::StoreOp store) { return store.getView() == load.getView(); });
  return llvm::isa<tile::GridOp, tile::RequireOp, tile::ReduceOp, func::ReturnOp>(op) ||
         (isMemoryEffectFree(&op) && op.getNumRegions() == 0);
}

/// Where rows begin, and 0, 1, 2, ... from there on.
bool RowTiles::isNumberOfRow(Operation *op) const {
  auto sum = llvm::dyn_cast<arith::AddIOp>(op);
  if (!sum)
    return false;
  for (auto [first, second] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
    auto iota = first.getDefiningOp<tile::IotaOp>();
    auto splat = second.getDefiningOp<tile::SplatOp>();
    auto cast = splat ? splat.getValue().getDefiningOp<tile::CastOp>() : tile::CastOp();
    if (iota && iota.getDim() == 0 && hasRows(iota) && cast && cast.getValue() == start_)
      return true;
  }
  return false;
}

/// Whether where rows begin is seen by nothing else than rows.
bool RowTiles::startsWhereRowsDo() const {
  return llvm::all_of(start_.getUsers(), [&](Operation *user) {
    if (auto cast = llvm::dyn_cast<tile::CastOp>(user))
      return llvm::all_of(cast->getUsers(), [&](Operation *splat) {
        return llvm::isa<tile::SplatOp>(splat) &&
               llvm::all_of(splat->getUsers(), [&](Operation *sum) { return isNumberOfRow(sum); });
      });
    auto load = llvm::dyn_cast<tile::LoadOp>(user);
    auto store = llvm::dyn_cast<tile::StoreOp>(user);
    if (!load && !store)
      return false;
    auto offsets = load ? load.getOffsets() : store.getOffsets();
    return hasRows(load ? load.getResult() : store.getValue()) &&
           !llvm::is_contained(offsets.drop_front(), start_);
  });
}

void RowTiles::takeApart() {
  auto grid = llvm::cast<tile::GridOp>(id_.getOwner());
  ImplicitLocOpBuilder b(grid.getLoc(), grid);
  Value stored;
  for (tile::StoreOp store : stores_) {
    Value size = b.create<tile::SizeOp>(b.getIndexType(), store.getView(), b.getI64IntegerAttr(0));
    stored = stored ? b.create<arith::MaxSIOp>(stored, size).getResult() : size;
  }
  OpOperand &extent = grid->getOpOperand(id_.getResultNumber());
  Value all = b.create<arith::MulIOp>(extent.get(), b.create<arith::ConstantIndexOp>(rows_));
  extent.set(b.create<arith::MinSIOp>(all, stored));

  auto one = [&](RankedTensorType type) {
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = 1;
    return RankedTensorType::get(shape, type.getElementType());
  };
  for (Operation &op : llvm::make_early_inc_range(body_)) {
    if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op); constant && hasRows(constant))
      constant.setValueAttr(llvm::cast<SplatElementsAttr>(constant.getValue()).resizeSplat(one(tileType(constant))));
    for (Value result : op.getResults())
      if (hasRows(result))
        result.setType(one(tileType(result)));
    if (auto broadcast = llvm::dyn_cast<tile::BroadcastOp>(op);
        broadcast && broadcast.getType() == broadcast.getValue().getType()) {
      broadcast.replaceAllUsesWith(broadcast.getValue());
      broadcast->erase();
    }
  }
  Operation *product = start_.getDefiningOp();
  start_.replaceAllUsesWith(id_);
  product->erase();
}

} // namespace

bool splitRows(func::FuncOp kernel, const Isa &isa) {
  if (!isa.overlapsRows || !kernel->hasAttr(tile::noOverlapAttr) || !kernel.getBody().hasOneBlock())
    return false;
  RowTiles tiles(kernel);
  if (!tiles.canBeApart(isa))
    return false;
  tiles.takeApart();
  return true;
}

} // namespace tenon::cpu
