// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/PairedTiles.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/cpu/KeepOperands.h"
#include "tenon/compiler/target/cpu/Placement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {

using namespace lower; // element arithmetic
namespace {

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }

ArrayRef<int64_t> shapeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getShape(); }

/// The dimension that fills vectors: the last one with more than one element; -1: there is none.
int laneDim(ArrayRef<int64_t> shape) {
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d)
    if (shape[d] != 1)
      return d;
  return -1;
}

/// A loop nest of its own, or part of one: an op, or a tile that is computed into scratch.
struct Root {
  Operation *op;
  Value computed; ///< null: what the op does with whole tiles
};

} // namespace

PairedTiles::PairedTiles(func::FuncOp kernel, const Placement &placement, const Isa &isa)
    : kernel_(kernel), placement_(placement), isa_(isa) {
  constexpr unsigned wholeRegister = 64; // bytes of a vector
  if (isa.vectorBytes < wholeRegister)
    return;
  // What might become one loop, in the order of the program.
  std::map<std::pair<Block *, SmallVector<int64_t>>, SmallVector<Root>> loops;
  kernel.walk([&](Operation *op) {
    auto add = [&](Value shaped, Value computed) {
      SmallVector<int64_t> shape(shapeOf(shaped));
      loops[{op->getBlock(), shape}].push_back({op, computed});
    };
    if (!isPulled(op)) { // a loop or a branch copies all its tiles into buffers, each in a loop of its shape
      for (Value operand : op->getOperands())
        if (isTile(operand))
          add(operand, {});
    } else if (Value value = op->getResult(0); isKept(value)) {
      add(value, value);
      if (!op->hasAttr(operandAttr) && laneDim(shapeOf(value)) >= 0)
        tiles_.insert(value);
    }
  });
  // All at first, then without those that some loop does not allow, until all the others are allowed.
  for (bool changed = !tiles_.empty(); changed;) {
    changed = false;
    for (auto &[place, roots] : loops) {
      Loop loop{laneDim(place.second)};
      bool isAllowed = true;
      for (const Root &root : roots)
        isAllowed &= allows(loop, root.computed ? nullptr : root.op, root.computed);
      bool computes = llvm::any_of(roots, [&](const Root &root) { return contains(root.computed); });
      for (Value tile : loop.touched)
        if (!isAllowed || !loop.keepsPlaces || tile.getParentBlock() != place.first || (computes && !loop.loads))
          changed |= tiles_.erase(tile);
    }
  }
}

/// In scratch, or about to be: what a loop or a branch yields.
bool PairedTiles::isKept(Value tile) const {
  return placement_.needsBuffer(tile) ||
         llvm::any_of(tile.getUsers(), [](Operation *user) { return llvm::isa<scf::YieldOp>(user); });
}

int PairedTiles::unitStride(Value view) const {
  auto argument = llvm::dyn_cast<BlockArgument>(view);
  if (!argument) // a workspace
    return static_cast<int>(llvm::cast<tile::ViewType>(view.getType()).getRank()) - 1;
  func::FuncOp kernel = kernel_;
  auto unit = kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tile::unitStrideAttr);
  return unit ? static_cast<int>(unit.getInt()) : -1;
}

bool PairedTiles::takes(tile::StoreOp store, int dim) const {
  auto cast = store.getValue().getDefiningOp<tile::CastOp>();
  return isa_.dotsBf16 && cast && !isKept(cast) && store.getView().getType().getElementType().isBF16() &&
         unitStride(store.getView()) == dim && getElementTypeOrSelf(cast.getValue().getType()).isF32();
}

/// Whether what differs from lane to lane is kept, in order.
bool PairedTiles::isInOrder(Value tile) const {
  Operation *op = tile.getDefiningOp();
  if (!op)
    return false;
  if (!isPulled(op) || isKept(tile))
    return !contains(tile);
  if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op))
    return llvm::isa<SplatElementsAttr>(constant.getValue());
  return (llvm::isa<tile::SplatOp, tile::BroadcastOp>(op) || isElementwise(op)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return !isTile(operand) || isInOrder(operand); });
}

std::optional<PairedTiles::Choice> PairedTiles::lastChoice(tile::StoreOp store, int dim) const {
  if (!takes(store, dim))
    return std::nullopt;
  Value rounded = store.getValue().getDefiningOp<tile::CastOp>().getValue();
  auto select = rounded.getDefiningOp<arith::SelectOp>();
  if (!select || isKept(rounded) || !isTile(select.getCondition()) || !isInOrder(select.getCondition()))
    return std::nullopt;
  bool isZeroWhereTrue = matchPattern(select.getTrueValue(), m_PosZeroFloat());
  if (!isZeroWhereTrue && !matchPattern(select.getFalseValue(), m_PosZeroFloat()))
    return std::nullopt;
  return Choice{select.getCondition(), isZeroWhereTrue ? select.getFalseValue() : select.getTrueValue(),
                isZeroWhereTrue};
}

bool PairedTiles::allows(Loop &loop, Operation *op, Value computed) const {
  bool isAllowed = loop.dim >= 0;
  if (computed) {
    Operation *source = computed.getDefiningOp();
    if (contains(computed))
      loop.touched.insert(computed);
    else
      isAllowed = false;
    return source && isPulled(source) && comesFrom(loop, source, loop.dim, /*inPlace=*/true) && isAllowed;
  }
  if (auto reduce = llvm::dyn_cast<tile::ReduceOp>(op))
    isAllowed &= static_cast<int>(reduce.getDim()) == loop.dim;
  else if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
    isAllowed &= takes(store, loop.dim);
  else
    isAllowed = false;
  if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
    if (auto choice = lastChoice(store, loop.dim))
      return comes(loop, choice->number, loop.dim, /*inPlace=*/true) && isAllowed;
  for (Value operand : op->getOperands()) // all of them: what they touch counts even if one does not come in pairs
    if (isTile(operand))
      isAllowed &= comes(loop, operand, loop.dim, /*inPlace=*/true);
  return isAllowed;
}

/// Whether a tile whose lanes lie along `dim` can have them in pairs. `inPlace`: its element i is the loop's.
bool PairedTiles::comes(Loop &loop, Value tile, int dim, bool inPlace) const {
  if (dim >= static_cast<int>(shapeOf(tile).size())) // behind a reshape, or beside the tile that the loop is of
    dim = -1;
  auto [entry, isNew] = loop.known.insert({{tile.getAsOpaquePointer(), dim, inPlace}, true});
  if (!isNew)
    return entry->second;
  Operation *op = tile.getDefiningOp();
  bool isAlong = dim >= 0 && shapeOf(tile)[dim] != 1, result = true;
  if (contains(tile)) {
    loop.touched.insert(tile);
    loop.keepsPlaces &= inPlace && laneDim(shapeOf(tile)) == dim; // or it is another element that is read
  } else if (!op || !isPulled(op) || isKept(tile)) {
    result = !isAlong;
  } else {
    result = comesFrom(loop, op, dim, inPlace) || !isAlong;
  }
  return loop.known[{tile.getAsOpaquePointer(), dim, inPlace}] = result;
}

bool PairedTiles::comesFrom(Loop &loop, Operation *op, int dim, bool inPlace) const {
  if (llvm::isa<tile::SplatOp, tile::IotaOp>(op))
    return true;
  if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op))
    return llvm::isa<SplatElementsAttr>(constant.getValue());
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op)) {
    bool isAlong = dim >= 0 && load.getType().getDimSize(dim) != 1;
    bool comes = load.getView().getType().getElementType().isBF16() && unitStride(load.getView()) == dim;
    loop.loads |= isAlong && comes;
    return comes;
  }
  auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op);
  if (reshape && isUnitReshape(reshape))
    return comes(loop, reshape.getValue(), dim < 0 ? dim : beforeReshape(reshape, dim), inPlace);
  if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op))
    return comes(loop, transpose.getValue(), dim < 0 ? dim : static_cast<int>(transpose.getPermutation()[dim]), false);
  bool keepsPlace = llvm::isa<tile::BroadcastOp>(op) || isElementwise(op);
  bool result = keepsPlace || llvm::isa<tile::SliceOp>(op);
  for (Value operand : op->getOperands())
    if (isTile(operand))
      result &= comes(loop, operand, dim, inPlace && keepsPlace);
  return result;
}

} // namespace tenon::cpu
