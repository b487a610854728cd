// SPDX-License-Identifier: Apache-2.0
//
// Packing B takes as long as multiplying it with some 128 rows. The instances of a product that lie below each other
// read the same B where one step of their loop takes in all of K; so it is packed by the first of them, and stays:
//
//     for j:            tenon_run goes through the grid so that the axes that B depends on are slow
//       for i:
//         if the offsets of B[0, j] are not those that are noted beside the panels: pack, and note them
//         C[i, j] = A[i, 0] * panels
//
// So are reductions of that B and nothing else (sums of its squares, or of its columns): their results stay as well.
// Offsets are compared when the program runs, so nothing has to be known of the loop: with more than one step they
// differ, and every step packs. A thread begins its share of a launch with nothing noted (CpuPool clears the end of its
// scratch, where all notes are), and has instances that follow each other, so that it finds most of what it needs
// packed. What an instance stores no other one may read, and the operand's view must be one that the kernel only reads:
// then what was packed is still what is there.
#include "tenon/compiler/target/cpu/DotKept.h"

#include "tenon/compiler/target/cpu/Dot.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr const char *orderAttribute = "tenon.order_of_axes";

/// The load that the dot's panels of B are made of, if they may stay.
tile::LoadOp keptLoad(tile::DotOp op, const Isa &isa) {
  if (!planDot(op, isa).usesTiles())
    return {};
  // In a loop whose sums are the dot's; elsewhere (attention) every step has another operand.
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op->getParentOp())) {
    if (!llvm::is_contained(loop.getRegionIterArgs(), op.getAcc()) || !llvm::isa<func::FuncOp>(loop->getParentOp()))
      return {};
  } else if (!llvm::isa<func::FuncOp>(op->getParentOp())) {
    return {};
  }
  Value tile = op.getB();
  while (Operation *made = tile.getDefiningOp()) {
    auto reshape = llvm::dyn_cast<tile::ReshapeOp>(made);
    if (!llvm::isa<tile::TransposeOp>(made) && !(reshape && isUnitReshape(reshape)))
      break;
    tile = made->getOperand(0);
  }
  auto load = tile.getDefiningOp<tile::LoadOp>();
  if (!load || load->getParentOp() != op->getParentOp() || load.getPadding())
    return {};
  return load;
}

void collectAxes(Value offset, llvm::SmallDenseSet<unsigned> &axes) {
  SmallVector<Value> work = {offset};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && llvm::isa<tile::GridOp>(op))
      axes.insert(llvm::cast<OpResult>(value).getResultNumber());
    else if (op && seen.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
}

} // namespace

void orderAxes(func::FuncOp kernel, const Isa &isa) {
  tile::GridOp grid;
  tile::LoadOp kept;
  kernel.walk([&](Operation *op) {
    if (auto found = llvm::dyn_cast<tile::GridOp>(op))
      grid = found;
    else if (auto dot = llvm::dyn_cast<tile::DotOp>(op); dot && !kept)
      kept = keptLoad(dot, isa);
  });
  if (!grid || !kept)
    return;
  llvm::SmallDenseSet<unsigned> axes;
  for (Value offset : kept.getOffsets())
    collectAxes(offset, axes);
  SmallVector<int64_t> order;
  for (bool isSlow : {true, false})
    for (unsigned axis = 0; axis < grid->getNumResults(); ++axis)
      if (axes.contains(axis) == isSlow)
        order.push_back(axis);
  grid->setAttr(orderAttribute, OpBuilder(kernel).getDenseI64ArrayAttr(order));
}

SmallVector<int64_t> orderOfAxes(tile::GridOp grid) {
  if (auto order = grid->getAttrOfType<DenseI64ArrayAttr>(orderAttribute))
    return SmallVector<int64_t>(order.asArrayRef());
  return llvm::to_vector(llvm::seq<int64_t>(0, grid->getNumResults()));
}

scf::IfOp LoopEmitter::unlessKept(Kept kept, ValueRange offsets) {
  static_assert((1 + tile::maxRank) * 8 <= keptNoteBytes, "a word for each offset and one more");
  // Whether anything is there, and where it is from.
  Type i64 = b_.getI64Type();
  auto note = [&](int32_t i) -> Value {
    return b_.create<LLVM::GEPOp>(kept.note.getType(), i64, kept.note, ArrayRef<LLVM::GEPArg>{i});
  };
  SmallVector<Value> from = {constantBits(b_, i64, 1)};
  for (Value offset : offsets)
    from.push_back(b_.create<arith::IndexCastOp>(i64, scalar(offset)));
  Value isOther;
  for (auto [i, value] : llvm::enumerate(from)) {
    Value noted = b_.create<LLVM::LoadOp>(i64, note(i), 8);
    Value differs = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, noted, value);
    isOther = isOther ? b_.create<arith::OrIOp>(isOther, differs).getResult() : differs;
  }
  auto branch = b_.create<scf::IfOp>(isOther, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  for (auto [i, value] : llvm::enumerate(from))
    b_.create<LLVM::StoreOp>(value, note(i), 8);
  return branch;
}

/// Packs B unless that is what is there already; none: it is not for keeping.
std::optional<PackedOperand> DotEmitter::packKept() {
  tile::LoadOp load = keptLoad(op_, e_.isa());
  if (!load || !e_.placement_.isOnlyLoaded(load.getView()) || e_.buffer(load.getResult()))
    return std::nullopt;
  b_.setLoc(op_.getLoc());
  PackedOperand to = stridesOfPanels(plan_.panel());
  LoopEmitter::Kept kept = e_.allocateKept(unitsOfPanels(to, panels()) * plan_.unitBytes());
  to.pointer = kept.place;
  scf::IfOp branch = e_.unlessKept(kept, load.getOffsets());
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(branch.thenBlock());
  packInto(rowsToWiden(op_.getB(), 1), n_, plan_.panel(), to);
  return to;
}

/// The load that a reduction is made of and nothing else, where a dot keeps it; null: its result is not for keeping.
tile::LoadOp LoopEmitter::keptLoadOf(tile::ReduceOp op) {
  if (op->getNumResults() != 1 || destinations_.contains(op->getResult(0)))
    return {};
  tile::LoadOp found;
  SmallVector<Value> work(op.getValues());
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!work.empty()) {
    Operation *made = work.pop_back_val().getDefiningOp();
    if (!made)
      return {};
    if (!seen.insert(made).second)
      continue;
    if (auto load = llvm::dyn_cast<tile::LoadOp>(made)) {
      if (found || !placement_.isOnlyLoaded(load.getView()) || buffer(load.getResult()))
        return {};
      found = load;
    } else if (!llvm::isa<arith::ConstantOp>(made)) {
      if (!isPulled(made) || placement_.needsBuffer(made->getResult(0)))
        return {};
      llvm::append_range(work, made->getOperands());
    }
  }
  auto keeps = [&](tile::DotOp dot) { return keptLoad(dot, isa_) == found; };
  return found && llvm::any_of(op->getBlock()->getOps<tile::DotOp>(), keeps) ? found : tile::LoadOp();
}

/// Reduces unless that is what is there already.
void LoopEmitter::emitKept(tile::ReduceOp op, tile::LoadOp load) {
  flush();
  b_.setLoc(op.getLoc());
  auto type = llvm::cast<RankedTensorType>(op->getResult(0).getType());
  Kept kept = allocateKept(type.getNumElements() * byteSize(scratchType(type.getElementType())));
  buffers_[op->getResult(0)] = withShape({kept.place, {}, {}, type.getElementType()}, type.getShape());
  scf::IfOp branch = unlessKept(kept, load.getOffsets());
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(branch.thenBlock());
  NestRoot root;
  root.op = op;
  root.stays = true;
  addRoot(llvm::cast<RankedTensorType>(op.getValues()[0].getType()).getShape(), op.getDim(), /*scalarOnly=*/false,
          std::move(root));
  flush();
}

} // namespace tenon::cpu
