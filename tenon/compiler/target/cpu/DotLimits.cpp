// SPDX-License-Identifier: Apache-2.0
//
// A tile at the edge of its view is mostly padding: a matrix of 1000 rows in tiles of 256 would cost 1024 rows, and one
// of 17 rows as much as one of 32. Two things bound the work:
//   - rows and columns of the result that are only ever stored, and past the end of every view they are stored to, are
//     not needed. They are left as they are; whatever is computed from them is dropped by the same stores.
//   - where both operands are loads padded with zero, converted perhaps, nothing is added past the longer one's end
//     along K.
#include "tenon/compiler/target/cpu/Dot.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }

} // namespace

std::optional<SmallVector<tile::StoreOp>> storesOf(Value tile) {
  SmallVector<tile::StoreOp> stores;
  SmallVector<Value> work = {tile};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto store = llvm::dyn_cast<tile::StoreOp>(user)) {
        stores.push_back(store);
      } else if (auto dot = llvm::dyn_cast<tile::DotOp>(user); dot && dot.getAcc() == value && dot.getA() != value &&
                                                               dot.getB() != value) {
        work.push_back(dot.getResult());
      } else if (auto loop = llvm::dyn_cast<scf::ForOp>(user)) {
        work.push_back(loop.getTiedLoopRegionIterArg(&use));
        work.push_back(loop.getTiedLoopResult(&use));
      } else if (auto yield = llvm::dyn_cast<scf::YieldOp>(user);
                 yield && llvm::isa<scf::ForOp>(yield->getParentOp())) {
        auto parent = llvm::cast<scf::ForOp>(yield->getParentOp());
        work.push_back(parent.getRegionIterArg(use.getOperandNumber()));
        work.push_back(parent.getResult(use.getOperandNumber()));
      } else if (isElementwise(user) && user->getNumResults() == 1 && isTile(user->getResult(0))) {
        work.push_back(user->getResult(0));
      } else {
        return std::nullopt;
      }
    }
  }
  return stores;
}

/// How much of [offset, offset + extent) lies below `size`. Offsets may be anything: far below zero the difference
/// wraps, but then the window does not reach the view either way.
static Value extentBelow(ImplicitLocOpBuilder &b, LoopEmitter &e, Value size, Value offset, int64_t extent) {
  Value left = b.create<arith::SubIOp>(size, offset);
  return b.create<arith::MinSIOp>(b.create<arith::MaxSIOp>(left, e.index(0)), e.index(extent));
}

/// A scalar of the program at this place, which may be before its own: then it is computed here once more. Null if it
/// needs something that is not known yet.
Value DotEmitter::scalarHere(Value scalar, int depth) {
  if (!scalar.getParentRegion()->isAncestor(op_->getParentRegion()))
    return {};
  if (Value known = e_.scalar(scalar))
    return known;
  Operation *op = scalar.getDefiningOp();
  if (!op || depth == 0)
    return {};
  if (auto size = llvm::dyn_cast<tile::SizeOp>(op); size && e_.views_.contains(size.getView()))
    return e_.view(size.getView()).sizes[size.getDim()];
  llvm::APInt constant;
  if (scalar.getType().isIndex() && matchPattern(scalar, m_ConstantInt(&constant)))
    return e_.index(constant.getSExtValue());
  if (!isElementwise(op))
    return {};
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(scalarHere(operand, depth - 1));
    if (!operands.back())
      return {};
  }
  return elementwise(b_, op, operands);
}

/// Whether the store's place moves with a loop that carries the sums: what one step need not store, another may.
bool DotEmitter::movesWhileSumsAreCarried(tile::StoreOp store, unsigned dim) {
  for (auto loop = op_->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
    if (loop->isAncestor(store) && llvm::any_of(loop.getRegionIterArgs(), isTile) &&
        !loop.isDefinedOutsideOfLoop(store.getOffsets()[dim]))
      return true;
  return false;
}

Value DotEmitter::storedExtent(unsigned dim) {
  auto stores = storesOf(op_.getResult());
  int64_t extent = op_.getType().getDimSize(dim);
  if (!stores || extent == 1)
    return {};
  Value needed = e_.index(0);
  for (tile::StoreOp store : *stores) {
    Value offset = scalarHere(store.getOffsets()[dim], /*depth=*/8);
    bool mayComeLater = !e_.views_.contains(store.getView()); // a workspace
    if (!offset || mayComeLater || movesWhileSumsAreCarried(store, dim))
      return {};
    Value here = extentBelow(b_, e_, e_.view(store.getView()).sizes[dim], offset, extent);
    needed = b_.create<arith::MaxSIOp>(needed, here);
  }
  return needed;
}

Value DotEmitter::loadedExtent(Value tile, unsigned dim) {
  auto source = loadBehind(tile, /*throughCasts=*/true); // zero stays zero
  if (!source || source->dims[dim] < 0)
    return {};
  tile::LoadOp load = source->load;
  if (load.getPadding() && !matchPattern(load.getPadding(), m_PosZeroFloat()) &&
      !matchPattern(load.getPadding(), m_Zero()))
    return {};
  int at = source->dims[dim];
  return extentBelow(b_, e_, e_.view(load.getView()).sizes[at], e_.scalar(load.getOffsets()[at]), k_);
}

DotLimits DotEmitter::findLimits() {
  DotLimits limits;
  limits.rows = storedExtent(0);
  limits.columns = storedExtent(1);
  Value ofA = loadedExtent(op_.getA(), 1), ofB = loadedExtent(op_.getB(), 0);
  if (ofA && ofB)
    limits.depth = b_.create<arith::MaxSIOp>(ofA, ofB);
  return limits;
}

} // namespace tenon::cpu
