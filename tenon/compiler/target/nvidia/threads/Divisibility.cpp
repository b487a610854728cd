// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/threads/Divisibility.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

int64_t powerOfTwoIn(int64_t value) {
  auto bits = static_cast<uint64_t>(value); // the least integer has no negation
  return value == 0 ? Divisibility::most
                    : static_cast<int64_t>(std::min<uint64_t>(bits & -bits, Divisibility::most));
}

DenseI64ArrayAttr factsOf(Value argument) {
  auto block = llvm::dyn_cast<BlockArgument>(argument);
  auto function = block ? llvm::dyn_cast<func::FuncOp>(block.getOwner()->getParentOp()) : func::FuncOp();
  return function ? function.getArgAttrOfType<DenseI64ArrayAttr>(block.getArgNumber(), tile::divisibleAttr)
                  : DenseI64ArrayAttr();
}

} // namespace

int64_t Divisibility::of(Value index) {
  if (auto found = known_.find(index); found != known_.end())
    return found->second;
  known_[index] = 1; // what a value that depends on itself falls back to
  int64_t result = compute(index);
  return known_[index] = result;
}

int64_t Divisibility::compute(Value index) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(index)) {
    if (auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
      return argument == loop.getInductionVar() ? std::min(of(loop.getLowerBound()), of(loop.getStep())) : 1;
    DenseI64ArrayAttr facts = factsOf(index);
    return facts ? facts[0] : 1;
  }
  auto smaller = [&](Value a, Value b) { return std::min(of(a), of(b)); };
  return llvm::TypeSwitch<Operation *, int64_t>(index.getDefiningOp())
      .Case<arith::ConstantOp>([&](auto op) {
        auto value = llvm::dyn_cast<IntegerAttr>(op.getValue());
        return value ? powerOfTwoIn(value.getInt()) : 1;
      })
      .Case<arith::AddIOp, arith::SubIOp, arith::MaxSIOp, arith::MinSIOp>(
          [&](auto op) { return smaller(op.getLhs(), op.getRhs()); })
      .Case<arith::MulIOp>([&](auto op) { return std::min(of(op.getLhs()) * of(op.getRhs()), most); })
      .Case<tile::DivOp>([&](auto op) -> int64_t { // without a remainder
        APInt by;
        bool isKnown = matchPattern(op.getRhs(), m_ConstantInt(&by)) && by.isPowerOf2();
        return isKnown ? std::max<int64_t>(of(op.getLhs()) / by.getSExtValue(), 1) : 1;
      })
      .Case<arith::SelectOp>([&](auto op) { return smaller(op.getTrueValue(), op.getFalseValue()); })
      .Case<tile::SizeOp>([&](auto op) { return alignmentOf(op.getView()).sizes[op.getDim()]; })
      .Case<tile::CastOp>(
          [&](auto op) { return llvm::isa<IntegerType, IndexType>(op.getValue().getType()) ? of(op.getValue()) : 1; })
      .Case<arith::IndexCastOp>([&](auto op) { return of(op.getIn()); })
      .Default([](Operation *) { return 1; });
}

/// Whether an index counts from the end of the grid, as a kernel does whose last instances are to come first: its
/// extent less one less the place in it, in any order.
static bool isFromTheEnd(Value index) {
  llvm::DenseMap<Value, int64_t> terms;
  int64_t constant = 0;
  auto add = [&](auto &&self, Value value, int64_t sign) -> void {
    APInt number;
    if (auto sum = value.getDefiningOp<arith::AddIOp>()) {
      self(self, sum.getLhs(), sign);
      self(self, sum.getRhs(), sign);
    } else if (auto difference = value.getDefiningOp<arith::SubIOp>()) {
      self(self, difference.getLhs(), sign);
      self(self, difference.getRhs(), -sign);
    } else if (matchPattern(value, m_ConstantInt(&number))) {
      constant += sign * number.getSExtValue();
    } else {
      terms[value] += sign;
    }
  };
  add(add, index, 1);
  Value plus, minus;
  for (auto [value, factor] : terms) {
    if (factor == 0)
      continue;
    Value &place = factor > 0 ? plus : minus;
    if (place || std::abs(factor) > 1)
      return false;
    place = value;
  }
  auto grid = minus ? minus.getDefiningOp<tile::GridOp>() : tile::GridOp();
  return grid && constant >= -1 && plus == grid->getOperand(llvm::cast<OpResult>(minus).getResultNumber());
}

bool isNonNegative(Value index) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(index)) {
    auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() && isNonNegative(loop.getLowerBound());
  }
  auto both = [](Value a, Value b) { return isNonNegative(a) && isNonNegative(b); };
  return llvm::TypeSwitch<Operation *, bool>(index.getDefiningOp())
      .Case<arith::ConstantOp>([](auto op) {
        auto value = llvm::dyn_cast<IntegerAttr>(op.getValue());
        return value && !value.getValue().isNegative();
      })
      .Case<arith::AddIOp>([&](auto op) { return both(op.getLhs(), op.getRhs()) || isFromTheEnd(op); })
      .Case<arith::MulIOp, arith::MinSIOp, tile::DivOp, tile::RemOp>(
          [&](auto op) { return both(op.getLhs(), op.getRhs()); })
      .Case<arith::MaxSIOp, arith::AndIOp>(
          [](auto op) { return isNonNegative(op.getLhs()) || isNonNegative(op.getRhs()); })
      .Case<arith::SubIOp>([](auto op) { return isFromTheEnd(op); })
      .Case<arith::SelectOp>([&](auto op) { return both(op.getTrueValue(), op.getFalseValue()); })
      .Case<arith::IndexCastOp>([](auto op) { return isNonNegative(op.getIn()); })
      .Case<tile::CastOp>([](auto op) {
        return llvm::isa<IntegerType, IndexType>(op.getValue().getType()) && isNonNegative(op.getValue());
      })
      .Case<tile::SizeOp, tile::GridOp>([](Operation *) { return true; })
      .Default([](Operation *) { return false; });
}

std::optional<int64_t> contiguousDim(Value view) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(view)) {
    auto function = llvm::cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto unit = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tile::unitStrideAttr);
    return unit ? std::optional<int64_t>(unit.getInt()) : std::nullopt;
  }
  return llvm::cast<tile::ViewType>(view.getType()).getRank() - 1; // a workspace is row-major
}

ViewAlignment alignmentOf(Value view) {
  auto type = llvm::cast<tile::ViewType>(view.getType());
  size_t rank = type.getRank();
  ViewAlignment alignment{1, SmallVector<int64_t>(rank, 1), SmallVector<int64_t>(rank, 1)};
  if (DenseI64ArrayAttr facts = factsOf(view)) {
    alignment.bytes = facts[0];
    for (size_t d = 0; d < rank; ++d) {
      alignment.sizes[d] = facts[1 + d];
      alignment.strides[d] = facts[1 + rank + d];
    }
  } else if (auto workspace = view.getDefiningOp<tile::WorkspaceOp>()) {
    alignment.bytes = 16; // the runtime's allocations are
    Divisibility divisibility;
    int64_t stride = 1; // row-major
    for (size_t d = rank; d-- > 0;) {
      alignment.sizes[d] = divisibility.of(workspace.getSizes()[d]);
      alignment.strides[d] = stride;
      stride = std::min(stride * alignment.sizes[d], Divisibility::most);
    }
  }
  return alignment;
}

} // namespace tenon::nvidia
