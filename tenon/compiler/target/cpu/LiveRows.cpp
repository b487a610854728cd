// SPDX-License-Identifier: Apache-2.0
//
// The last tile of a view mostly hangs over its end: 25 rows in tiles of 10 are two whole tiles and half of one. Rows
// that end in stores past the end of every view they are stored to are not needed, so the loop over rows, in every nest
// on the way to these stores, ends with the last one that is:
//
//     for i = 0 to 10 { if inside(i) ... }   ->   for i = 0 to min(10, size - offset) { ... }
//
// What is left lies inside its views, and the nest's unchecked twin runs it. (Of dots the same is in DotLimits.cpp, of
// vectors along a row the rest stays masked.)
#include "tenon/compiler/target/cpu/Nest.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// The stores in which the rows of a tile (its elements with one index along `dim`) end, row i in row i; nothing if
/// they are seen in any other way, or elsewhere than in `block`.
bool findStores(Value tile, int dim, Block *block, llvm::DenseSet<Value> &seen,
                SmallVectorImpl<tile::StoreOp> &stores) {
  if (!seen.insert(tile).second)
    return true;
  for (Operation *user : tile.getUsers()) {
    if (user->getBlock() != block)
      return false;
    if (auto store = llvm::dyn_cast<tile::StoreOp>(user)) {
      stores.push_back(store);
      continue;
    }
    auto reduce = llvm::dyn_cast<tile::ReduceOp>(user);
    bool keepsRows = (reduce && static_cast<int>(reduce.getDim()) != dim) || llvm::isa<tile::BroadcastOp>(user) ||
                     isElementwise(user);
    if (!keepsRows)
      return false;
    for (Value result : user->getResults())
      if (!llvm::isa<RankedTensorType>(result.getType()) || !findStores(result, dim, block, seen, stores))
        return false;
  }
  return true;
}

/// Whether everything that a tile is pulled from has its rows where the tile has them, or another number of dimensions:
/// of such a window all rows are asked to be inside.
bool keepsRows(LoopEmitter &e, Operation *op, llvm::DenseSet<Value> &seen) {
  auto reshape = llvm::dyn_cast_if_present<tile::ReshapeOp>(op);
  bool changesRank = reshape && isUnitReshape(reshape) &&
                     reshape.getType().getRank() != reshape.getValue().getType().getRank();
  bool keeps = llvm::isa_and_present<tile::LoadOp, tile::SplatOp, tile::IotaOp, tile::RandomBitsOp, tile::BroadcastOp,
                                     tile::StoreOp, tile::ReduceOp, arith::ConstantOp>(op);
  if (!keeps && !changesRank && !(op && isElementwise(op)))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !llvm::isa<RankedTensorType>(operand.getType()) || e.buffer(operand) || !seen.insert(operand).second ||
           keepsRows(e, operand.getDefiningOp(), seen);
  });
}

} // namespace

void Nest::findLiveRows() {
  live_.assign(group_.shape.size(), Value());
  llvm::DenseSet<Value> pulled;
  auto sourceOf = [](const NestRoot &root) { return root.op ? root.op : root.value.getDefiningOp(); };
  for (const NestRoot &root : group_.roots)
    if (root.stays || !keepsRows(e_, sourceOf(root), pulled)) // of what stays others may need other rows
      return;
  for (int dim : loopDims_) {
    int64_t extent = group_.shape[dim];
    if (dim == vectorDim_ || extent == 1)
      continue;
    SmallVector<tile::StoreOp> stores;
    llvm::DenseSet<Value> seen;
    bool allEndInStores = llvm::all_of(group_.roots, [&](const NestRoot &root) {
      if (auto store = llvm::dyn_cast_if_present<tile::StoreOp>(root.op)) {
        stores.push_back(store);
        return true;
      }
      // A tile that nothing uses is somebody's own: what a dot packs.
      Operation *source = sourceOf(root);
      return !source->use_empty() && llvm::all_of(source->getResults(), [&](Value result) {
        return findStores(result, dim, source->getBlock(), seen, stores);
      });
    });
    if (!allEndInStores)
      continue;
    Value needed = e_.index(0);
    for (tile::StoreOp store : stores) {
      const ViewParts *view = e_.knownView(store.getView()); // a workspace may come later, as may an offset
      Value offset = e_.scalar(store.getOffsets()[dim]);
      if (!view || !offset) {
        needed = {};
        break;
      }
      // Far below zero the difference wraps; then no row is inside either way.
      Value left = b_.create<arith::SubIOp>(view->sizes[dim], offset);
      needed = b_.create<arith::MaxSIOp>(needed, b_.create<arith::MinSIOp>(left, e_.index(extent)));
    }
    live_[dim] = needed;
  }
}

} // namespace tenon::cpu
