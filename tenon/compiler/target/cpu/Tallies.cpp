// SPDX-License-Identifier: Apache-2.0
//
// Many elements that are added to few places: the bins of a histogram, a sum of everything. An atomic addition takes 20
// cycles and more, and threads that want the same line wait for each other. Where the view has no more than half as many
// elements as the tile, the tile is counted up in scratch first:
//
//     for each element: atomic bins[i] += x    ->    if bins has few elements:
//                                                      tally[..] = nothing
//                                                      for each element: tally[i] += x
//                                                      for each bin with anything in its tally: atomic bins[b] += it
//                                                    else: as before
//
// Nobody can tell: additions of one tile have no order, and nothing asks for the values in between.
#include "tenon/compiler/target/cpu/Nest.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr int64_t mostBytes = 32 << 10; ///< of a tally: it is to stay in L1

/// What can be added to any number without a trace; 0 would make -0 a 0.
TypedAttr nothing(OpBuilder &builder, Type element) {
  if (auto type = llvm::dyn_cast<FloatType>(element))
    return builder.getFloatAttr(type, llvm::APFloat::getZero(type.getFloatSemantics(), /*Negative=*/true));
  return builder.getIntegerAttr(element, 0);
}

Value elementOf(ImplicitLocOpBuilder &b, const ViewParts &view, Value offset) {
  Value place = b.create<arith::IndexCastOp>(b.getI64Type(), offset);
  return b.create<LLVM::GEPOp>(view.pointer.getType(), view.element, view.pointer, ValueRange{place});
}

/// A loop over 0, 1, 2, ... that `body` fills.
void forEach(ImplicitLocOpBuilder &b, Value zero, Value end, Value one, llvm::function_ref<void(Value)> body) {
  auto loop = b.create<scf::ForOp>(zero, end, one);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  body(loop.getInductionVar());
}

} // namespace

/// Adds what is in the tally, a view of scratch, to the view. From dimension `place.size()` on.
void LoopEmitter::pourTally(const ViewParts &tally, const ViewParts &view, SmallVector<Value> place) {
  if (size_t d = place.size(); d < view.sizes.size()) {
    forEach(b_, index(0), view.sizes[d], index(1), [&](Value i) {
      place.push_back(i);
      pourTally(tally, view, place);
      place.pop_back();
    });
    return;
  }
  auto pointerIn = [&](const ViewParts &parts) {
    Value offset = index(0);
    for (auto [at, stride] : llvm::zip(place, parts.strides))
      offset = b_.create<arith::AddIOp>(offset, b_.create<arith::MulIOp>(at, stride));
    return elementOf(b_, parts, offset);
  };
  Type bits = b_.getIntegerType(view.element.getIntOrFloatBitWidth());
  auto asBits = [&](Value value) { return b_.createOrFold<arith::BitcastOp>(bits, value); };
  Value counted = b_.create<LLVM::LoadOp>(view.element, pointerIn(tally), byteSize(view.element));
  Value none = b_.create<arith::ConstantOp>(nothing(b_, view.element));
  Value any = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, asBits(counted), asBits(none));
  auto branch = b_.create<scf::IfOp>(any, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  auto kind = llvm::isa<FloatType>(view.element) ? LLVM::AtomicBinOp::fadd : LLVM::AtomicBinOp::add;
  b_.create<LLVM::AtomicRMWOp>(kind, pointerIn(view), counted, LLVM::AtomicOrdering::seq_cst);
}

bool LoopEmitter::emitTallied(tile::AtomicRMWOp op) {
  ViewParts target = view(op.getView());
  ArrayRef<int64_t> shape = llvm::cast<RankedTensorType>(op.getOld().getType()).getShape();
  int64_t size = byteSize(target.element), elements = ShapedType::getNumElements(shape);
  int64_t most = std::min(elements / 2, mostBytes / size);
  if (op.getKind() != tile::AtomicKind::add || !op.getOld().use_empty() || size < 4 || most < 4)
    return false;
  ViewParts tally = target;
  Value total = index(1);
  for (size_t d = target.sizes.size(); d-- > 0;) {
    tally.strides[d] = total;
    total = b_.create<arith::MulIOp>(total, target.sizes[d]);
  }
  tally.pointer = allocate({most}, target.element).pointer;

  NestGroup group{SmallVector<int64_t>(shape), -1, /*scalarOnly=*/true, {}};
  group.roots.emplace_back().op = op;
  Value few = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sle, total, index(most));
  auto branch = b_.create<scf::IfOp>(few, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(branch.elseBlock()->getTerminator());
  Nest(*this, group).emit();

  b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  Value none = b_.create<arith::ConstantOp>(nothing(b_, target.element));
  forEach(b_, index(0), total, index(1), [&](Value i) {
    b_.create<LLVM::StoreOp>(none, elementOf(b_, tally, i), size);
  });
  group.roots.front().tally = &tally;
  Nest(*this, group).emit();
  b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  pourTally(tally, target, {});
  return true;
}

void Nest::addTo(const ViewParts &tally, tile::AtomicRMWOp op, const Coords &coords) {
  Value added = compute(op.getValue(), coords);
  Address address = indexedAddress(tally, op.getIndices(), op.getMask(), coords);
  setInsertion(levels_.size() - 1);
  auto branch = b_.create<scf::IfOp>(address.ok, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  Value sum = b_.create<LLVM::LoadOp>(tally.element, address.pointer, byteSize(tally.element));
  if (llvm::isa<FloatType>(tally.element))
    sum = b_.create<arith::AddFOp>(sum, added);
  else
    sum = b_.create<arith::AddIOp>(sum, added);
  b_.create<LLVM::StoreOp>(sum, address.pointer, byteSize(tally.element));
}

} // namespace tenon::cpu
