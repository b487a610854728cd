// SPDX-License-Identifier: Apache-2.0
//
// Which loads the blocks of a cluster can share. What depends on an axis of the grid is found by following the axis's
// id through the program; a loop or branch that depends on it may run differently in each block, and then nothing in it
// can be shared, nor can anything else in a ring be that the blocks fill together.
//
// A program may choose which loads its neighbours have in common: `row = where(same, x, x + id)` does not depend on the
// id where `same` holds. Such a load is made for all, or by each block for itself, as the condition says.
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/nvidia/threads/Divisibility.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Everything that is computed from a value.
class Dependents {
public:
  Dependents(func::FuncOp kernel, Value source) {
    values_.insert(source);
    for (size_t before = 0; before != values_.size();) { // until nothing is added
      before = values_.size();
      kernel.walk<WalkOrder::PreOrder>([&](Operation *op) { visit(op); });
    }
  }

  bool contains(Value value) const { return values_.contains(value); }
  /// Whether it depends on the value how often, or whether, an op runs.
  bool controls(Operation *op) const {
    for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp()) {
      if (auto loop = llvm::dyn_cast<scf::ForOp>(parent);
          loop && (contains(loop.getLowerBound()) || contains(loop.getUpperBound()) || contains(loop.getStep())))
        return true;
      if (auto branch = llvm::dyn_cast<scf::IfOp>(parent); branch && contains(branch.getCondition()))
        return true;
    }
    return false;
  }

private:
  void visit(Operation *op) {
    auto link = [&](Value from, Value to) {
      if (contains(from))
        values_.insert(to);
    };
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
      link(loop.getLowerBound(), loop.getInductionVar());
      link(loop.getStep(), loop.getInductionVar());
      for (BlockArgument argument : loop.getRegionIterArgs()) {
        link(loop.getTiedLoopInit(argument)->get(), argument);
        link(loop.getTiedLoopYieldedValue(argument)->get(), argument);
        link(loop.getUpperBound(), loop.getTiedLoopResult(argument));
        link(argument, loop.getTiedLoopResult(argument));
      }
      return;
    }
    if (auto branch = llvm::dyn_cast<scf::IfOp>(op)) {
      for (OpResult result : branch.getResults()) {
        link(branch.getCondition(), result);
        link(branch.thenYield().getOperand(result.getResultNumber()), result);
        link(branch.elseYield().getOperand(result.getResultNumber()), result);
      }
      return;
    }
    if (llvm::any_of(op->getOperands(), [&](Value operand) { return contains(operand); }))
      values_.insert(op->result_begin(), op->result_end());
  }

  llvm::DenseSet<Value> values_;
};

/// Rows of a tile: what it has besides the contiguous dimension.
int64_t rowsOf(tile::LoadOp load) {
  ArrayRef<int64_t> shape = load.getType().getShape();
  return load.getType().getNumElements() / shape[*contiguousDim(load.getView())];
}

tile::GridOp gridOf(func::FuncOp kernel) {
  tile::GridOp grid;
  kernel.walk([&](tile::GridOp op) { grid = op; });
  return grid;
}

bool isOfAll(tile::LoadOp load, const Dependents &dependents) {
  return llvm::none_of(load.getOffsets(), [&](Value offset) { return dependents.contains(offset); });
}

using Conditions = SharedLoads::Conditions;

/// Adds conditions to others; whether all of them can hold.
bool join(Conditions &all, const Conditions &more) {
  for (auto [condition, wanted] : more) {
    if (llvm::is_contained(all, std::pair(condition, !wanted)))
      return false;
    if (!llvm::is_contained(all, std::pair(condition, wanted)))
      all.emplace_back(condition, wanted);
  }
  return true;
}

/// When a value is the same whatever those depend on that it may depend on; none: that cannot be said. Each value is
/// looked at once: a chain of choices has as many ways through it as there are subsets of them.
class Sameness {
public:
  explicit Sameness(const Dependents &dependents) : dependents_(dependents) {}

  std::optional<Conditions> of(Value value) {
    if (auto known = known_.find(value); known != known_.end())
      return known->second;
    std::optional<Conditions> found = find(value);
    known_[value] = found;
    return found;
  }

private:
  std::optional<Conditions> find(Value value) {
    if (!dependents_.contains(value))
      return Conditions();
    Operation *op = value.getDefiningOp();
    if (!op || !lower::isElementwise(op))
      return std::nullopt;
    Conditions all;
    if (auto select = llvm::dyn_cast<arith::SelectOp>(op); select && !dependents_.contains(select.getCondition())) {
      std::optional<Conditions> ifTrue = of(select.getTrueValue()), ifFalse = of(select.getFalseValue());
      if (ifTrue.has_value() == ifFalse.has_value())
        return std::nullopt;
      all.emplace_back(select.getCondition(), ifTrue.has_value());
      return join(all, ifTrue ? *ifTrue : *ifFalse) ? std::optional(all) : std::nullopt;
    }
    for (Value operand : op->getOperands())
      if (std::optional<Conditions> conditions = of(operand); !conditions || !join(all, *conditions))
        return std::nullopt;
    return all;
  }

  const Dependents &dependents_;
  llvm::DenseMap<Value, std::optional<Conditions>> known_;
};

std::optional<Conditions> whenOfAll(tile::LoadOp load, const Dependents &dependents) {
  Sameness sameness(dependents);
  Conditions all;
  for (Value offset : load.getOffsets())
    if (std::optional<Conditions> conditions = sameness.of(offset); !conditions || !join(all, *conditions))
      return std::nullopt;
  return all;
}

} // namespace

llvm::DenseSet<Operation *> loadsOfAll(func::FuncOp kernel, int64_t axis) {
  Dependents dependents(kernel, gridOf(kernel).getIds()[axis]);
  llvm::DenseSet<Operation *> loads;
  kernel.walk([&](tile::LoadOp load) {
    if (load->hasAttr(bulkAttr) && isOfAll(load, dependents))
      loads.insert(load);
  });
  return loads;
}

SharedLoads sharedLoads(func::FuncOp kernel, int64_t blocks) {
  tile::GridOp grid = gridOf(kernel);
  SharedLoads best;
  best.refusal = "every load depends on each axis of the grid";
  bool waits = false;
  kernel.walk([&](Operation *op) {
    waits |= llvm::isa<tile::AtomicRMWOp, tile::AtomicCASOp>(op) && !op->use_empty();
  });
  if (waits) {
    best.refusal = "the result of an atomic update is used, which an instance beyond the grid must not make";
    return best;
  }
  int64_t rank = static_cast<int64_t>(grid.getNumResults()), bestBytes = 0;
  for (int64_t axis = std::max<int64_t>(rank - 2, 0); axis < rank; ++axis) {
    Dependents dependents(kernel, grid.getIds()[axis]);
    SharedLoads found;
    found.axis = axis;
    int64_t bytes = 0;
    bool together = true;
    kernel.walk([&](tile::LoadOp load) {
      if (!load->hasAttr(bulkAttr))
        return;
      together &= !dependents.controls(load);
      std::optional<SharedLoads::Conditions> when = whenOfAll(load, dependents);
      if (load->hasAttr(readAttr) || !when || rowsOf(load) % swizzledRows || rowsOf(load) < swizzledRows * blocks)
        return;
      int64_t all =
          load.getType().getNumElements() * lower::byteSize(lower::memoryType(load.getType().getElementType()));
      bytes += when->empty() ? all : all / 2; // what is always shared is worth more
      found.loads[load] = std::move(*when);
    });
    if (!together && best.loads.empty())
      best.refusal = "how often a load runs depends on the axis of the grid";
    if (together && bytes > bestBytes) {
      bestBytes = bytes;
      best = std::move(found);
    }
  }
  return best;
}

} // namespace tenon::nvidia
