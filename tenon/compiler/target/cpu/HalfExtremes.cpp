// SPDX-License-Identifier: Apache-2.0
//
// The largest (or smallest) of a row of bf16 without converting anything, where the processor compares f16. Both
// formats are a sign and a magnitude, so that numbers have the order of their bits taken for f16, 32 of them in a
// register:
//
//     %m' = vmaxph %x, %m                          for each register; %m where they cannot be compared
//     %k' {%k} = vcmpordph %x0, %x1                for every two
//
// What f16 has no number for are magnitudes above 2^121 of bf16, infinities and NaNs among them. They leave %m as it
// is, and %k knows of them. And f16 does not tell a zero's sign. So where a row has any of these, or its result is a
// zero, it is reduced again, as any other row is: it has just been read.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr double beyondHalves = 0x1p121; ///< of bf16 the first number whose bits are no finite f16

bool isLargest(tile::ReduceOp reduce) { return llvm::isa<arith::MaximumFOp>(reduce.getCombine().front().front()); }

} // namespace

/// The load of bf16 that an extreme along the lanes is of, and nothing else; null where there is none.
tile::LoadOp Nest::loadOfHalves(tile::ReduceOp reduce) {
  auto cast = reduce.getValues()[0].getDefiningOp<tile::CastOp>();
  auto load = cast ? cast.getValue().getDefiningOp<tile::LoadOp>() : tile::LoadOp();
  if (!load || e_.buffer(cast) || e_.buffer(load))
    return {};
  const ViewParts &view = e_.view(load.getView());
  return view.element.isBF16() && view.unitStride == vectorDim_ ? load : tile::LoadOp();
}

/// Takes those extremes out that the loop can reduce by their bits, and has it do so: `inits` become f16.
SmallVector<size_t> Nest::takeHalves(SmallVectorImpl<size_t> &extremes, MutableArrayRef<Value> inits) {
  SmallVector<size_t> halves;
  if (!e_.isa().comparesHalves || checked_ || isAgain_ || lanes_ % (2 * pairedLanes) != 0)
    return halves;
  size_t at = 0;
  for (const NestRoot &root : group_.roots)
    if (auto reduce = llvm::dyn_cast_if_present<tile::ReduceOp>(root.op)) {
      if (llvm::is_contained(extremes, at) && loadOfHalves(reduce)) {
        halves.push_back(at);
        llvm::erase(extremes, at);
        byHalves_.insert(reduce);
        double infinity = std::numeric_limits<double>::infinity();
        inits[at] = constantLike(b_, VectorType::get({lanes_}, b_.getF16Type()), isLargest(reduce) ? -infinity : infinity);
      }
      at += reduce.getValues().size();
    }
  return halves;
}

/// The bits of the elements, as f16.
Value Nest::loadHalves(tile::LoadOp load, const Coords &coords) {
  setInsertion(levels_.size() - 1);
  Address address = windowAddress(e_.view(load.getView()), load.getOffsets(), coords);
  return b_.create<LLVM::LoadOp>(VectorType::get({lanes_}, b_.getF16Type()), address.pointer, /*alignment=*/2);
}

Value Nest::combineHalves(tile::ReduceOp reduce, Value carried, Value value) {
  auto isBeyond = isLargest(reduce) ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
  return b_.create<arith::SelectOp>(b_.create<arith::CmpFOp>(isBeyond, value, carried), value, carried);
}

/// The bf16 that f16 have the bits of, as f32.
Value Nest::widenHalves(Value halves) {
  return unpackPairs(b_.create<LLVM::BitcastOp>(VectorType::get({lanesOf(halves)}, b_.getI16Type()), halves));
}

/// Reduces once more what cannot be known by its bits. `values`: what came of all reductions; `masks`: of `halves`.
void Nest::reduceAgain(ArrayRef<size_t> halves, ArrayRef<Value> values, ArrayRef<Value> masks, const Coords &coords) {
  if (halves.empty())
    return;
  Value isKnown, all = masks[0];
  for (Value mask : masks.drop_front())
    all = b_.create<arith::AndIOp>(all, mask);
  isKnown = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, b_.create<LLVM::BitcastOp>(b_.getI32Type(), all),
                                     constantBits(b_, b_.getI32Type(), -1));
  auto require = [&](arith::CmpFPredicate predicate, Value x, double y) {
    Value holds = b_.create<arith::CmpFOp>(predicate, x, constantLike(b_, x.getType(), y));
    isKnown = b_.create<arith::AndIOp>(isKnown, holds);
  };
  NestGroup again{group_.shape, group_.reduceDim, group_.scalarOnly, {}};
  size_t at = 0;
  for (const NestRoot &root : group_.roots)
    if (auto reduce = llvm::dyn_cast_if_present<tile::ReduceOp>(root.op)) {
      if (llvm::is_contained(halves, at)) {
        again.roots.push_back(root);
        require(arith::CmpFPredicate::ONE, values[at], 0);
        require(arith::CmpFPredicate::OLT, b_.create<math::AbsFOp>(values[at]), beyondHalves);
      }
      at += reduce.getValues().size();
    }
  Value isUnknown = b_.create<arith::XOrIOp>(isKnown, constantBits(b_, b_.getI1Type(), 1));
  auto branch = b_.create<scf::IfOp>(isUnknown, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(branch.thenBlock()->getTerminator());
  Nest nest(e_, again);
  nest.isAgain_ = true;
  nest.vectorDim_ = vectorDim_;
  nest.vectorLanes_ = vectorLanes_;
  nest.paired_ = paired_;
  nest.live_ = live_;
  nest.start();
  nest.emitReduction(group_.reduceDim, coords);
}

} // namespace tenon::cpu
