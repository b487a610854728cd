// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Placement.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/cpu/KeepOperands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <functional>
#include <set>

using namespace mlir;

namespace tenon::cpu {

using namespace lower; // element arithmetic
namespace {

/// Recomputing this much per element is cheaper than a round trip through a buffer.
constexpr int recomputeLimit = 8;
constexpr llvm::StringLiteral neededAgain = "it is needed again after a reduction and costs more to compute than to keep";

/// A rough count of instructions per element.
int ownCost(Operation *op) {
  if (llvm::isa<tile::LoadOp>(op))
    return 4; // of two windows' rows, the sum is half as much to read again (x + residual of a layer norm)
  if (llvm::isa<tile::GatherOp>(op))
    return 16;
  if (llvm::isa<tile::RandomBitsOp>(op))
    return 40;
  if (llvm::isa<math::SqrtOp, math::RsqrtOp, arith::DivFOp, tile::DivOp, tile::RemOp>(op))
    return 8;
  if (llvm::isa<math::MathDialect>(op->getDialect()) &&
      !llvm::isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::RoundEvenOp, math::FmaOp, math::CopySignOp>(op))
    return 20;
  return isElementwise(op) ? 1 : 0;
}

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }

/// Whether pulling the value reads memory.
bool readsMemory(Value value) {
  SmallVector<Value> work = {value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value current = work.pop_back_val();
    Operation *definition = current.getDefiningOp();
    if (!isTile(current) || !definition || !isPulled(definition) || !seen.insert(current).second)
      continue;
    if (viewReadBy(definition))
      return true;
    llvm::append_range(work, definition->getOperands());
  }
  return false;
}

} // namespace

bool isUnitReshape(tile::ReshapeOp op) {
  auto squeezed = [](RankedTensorType type) {
    SmallVector<int64_t> shape;
    for (int64_t extent : type.getShape())
      if (extent != 1)
        shape.push_back(extent);
    return shape;
  };
  return squeezed(op.getValue().getType()) == squeezed(op.getType());
}

int beforeReshape(tile::ReshapeOp op, int dim) {
  auto isLong = [](int64_t extent) { return extent != 1; };
  auto place = llvm::count_if(op.getType().getShape().take_front(dim), isLong);
  for (auto [d, extent] : llvm::enumerate(op.getValue().getType().getShape()))
    if (isLong(extent) && place-- == 0)
      return static_cast<int>(d);
  return -1;
}

bool isPulled(Operation *op) {
  if (op->getNumResults() != 1 || !isTile(op->getResult(0)))
    return false;
  return isElementwise(op) || llvm::isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp, tile::BroadcastOp,
                                        tile::ReshapeOp, tile::TransposeOp, tile::SliceOp, tile::LoadOp,
                                        tile::GatherOp, tile::RandomBitsOp>(op);
}

bool isRoot(Operation *op) {
  if (isPulled(op))
    return false;
  return llvm::any_of(op->getOperands(), isTile) || llvm::any_of(op->getResults(), isTile);
}

namespace {

struct Window {
  Value view;
  OperandRange offsets;
  ArrayRef<int64_t> shape;
};

std::optional<Window> windowOf(Operation *op) {
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
    return Window{load.getView(), load.getOffsets(), load.getType().getShape()};
  if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
    return Window{store.getView(), store.getOffsets(), store.getValue().getType().getShape()};
  return std::nullopt;
}

/// A workspace always, an argument when the launch has found out so.
bool hasDistinctElements(Value view) {
  auto argument = llvm::dyn_cast<BlockArgument>(view);
  if (!argument)
    return true;
  auto kernel = llvm::cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return kernel.getArgAttr(argument.getArgNumber(), tile::distinctAttr) != nullptr;
}

} // namespace

void walkPulled(SmallVector<std::pair<Value, bool>> from, llvm::function_ref<bool(Value, bool)> visit) {
  std::set<std::pair<void *, bool>> seen;
  while (!from.empty()) {
    auto [value, inPlace] = from.pop_back_val();
    if (!isTile(value) || !seen.insert({value.getAsOpaquePointer(), inPlace}).second || !visit(value, inPlace))
      continue;
    Operation *op = value.getDefiningOp();
    if (op && isPulled(op))
      for (Value operand : op->getOperands())
        from.push_back({operand, inPlace && isElementwise(op)});
  }
}

bool areSameWindow(Operation *load, Operation *store) {
  auto from = windowOf(load), to = windowOf(store);
  return from && to && from->view == to->view && llvm::equal(from->offsets, to->offsets) && from->shape == to->shape &&
         hasDistinctElements(from->view);
}

bool areDisjointWindows(Operation *a, Operation *b) {
  auto first = windowOf(a), second = windowOf(b);
  if (!first || !second || first->view != second->view || !hasDistinctElements(first->view))
    return false;
  // An offset as something unknown plus a constant.
  auto split = [](Value offset) -> std::pair<Value, int64_t> {
    llvm::APInt constant;
    if (matchPattern(offset, m_ConstantInt(&constant)))
      return {Value(), constant.getSExtValue()};
    if (auto sum = offset.getDefiningOp<arith::AddIOp>(); sum && matchPattern(sum.getRhs(), m_ConstantInt(&constant)))
      return {sum.getLhs(), constant.getSExtValue()};
    return {offset, 0};
  };
  for (auto [x, y, extentX, extentY] :
       llvm::zip(first->offsets, second->offsets, first->shape, second->shape)) {
    auto [baseX, atX] = split(x);
    auto [baseY, atY] = split(y);
    // Far from the ends of 64 bits, where the sum with the base cannot wrap for one and not for the other inside a view.
    constexpr int64_t far = int64_t(1) << 40;
    auto isNear = [](int64_t at) { return -far < at && at < far; };
    if (baseX == baseY && isNear(atX) && isNear(atY) &&
        (atX <= atY ? atY - atX >= extentX : atX - atY >= extentY))
      return true;
  }
  return false;
}

Value viewReadBy(Operation *op) {
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op))
    return load.getView();
  if (auto gather = llvm::dyn_cast<tile::GatherOp>(op))
    return gather.getView();
  return {};
}

bool Placement::mayAlias(Value a, Value b) const {
  if (a == b)
    return true;
  bool bothArguments = llvm::isa<BlockArgument>(a) && llvm::isa<BlockArgument>(b);
  return bothArguments && !noOverlap_; // a workspace overlaps nothing else
}

bool Placement::isOnlyStored(Value view) const {
  return noOverlap_ && llvm::isa<BlockArgument>(view) && llvm::all_of(view.getUsers(), [](Operation *user) {
    return llvm::isa<tile::StoreOp, tile::SizeOp>(user);
  });
}

bool Placement::isOnlyLoaded(Value view) const {
  return noOverlap_ && llvm::isa<BlockArgument>(view) &&
         llvm::all_of(view.getUsers(), [](Operation *user) { return llvm::isa<tile::LoadOp, tile::SizeOp>(user); });
}

Placement::Placement(func::FuncOp kernel) 
    // A promise counts as well: a launch that breaks it is refused.
    : noOverlap_(kernel->hasAttr(tile::noOverlapAttr) || kernel->hasAttr(tile::promisesNoOverlapAttr)) {
  visitBlock(kernel.getBody().front());
}

bool Placement::writesBetween(Value view, int first, int last, Block &block) {
  int position = 0;
  for (Operation &op : block) {
    bool between = position > first && position < last;
    ++position;
    if (!between)
      continue;
    WalkResult walk = op.walk([&](Operation *inner) {
      Value written = viewWrittenBy(inner);
      return written && mayAlias(written, view) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return true;
  }
  return false;
}

/// What `op` writes it must not still pull from memory: a store that moves a window by one would read what it has just
/// written. Only element for element, in the very same window, is that right.
void Placement::keepFromOwnWrites(Operation &op) {
  Value written = viewWrittenBy(&op);
  if (!written)
    return;
  SmallVector<std::pair<Value, bool>> from;
  for (Value operand : op.getOperands())
    from.push_back({operand, true});
  walkPulled(std::move(from), [&](Value value, bool inPlace) {
    Operation *definition = value.getDefiningOp();
    if (!definition || definition->getBlock() != op.getBlock() || !isPulled(definition) || buffered_.contains(value))
      return false;
    Value read = viewReadBy(definition);
    if (!read || !mayAlias(read, written) || areDisjointWindows(definition, &op) ||
        (inPlace && areSameWindow(definition, &op)))
      return true;
    buffered_.insert(value);
    reasons_.push_back({value, "memory that it may have been read from is written by its own use"});
    return false;
  });
}

void Placement::visitBlock(Block &block) {
  // Forward: what can be one loop has one level; a reduction, or anything that makes loops of its own, starts the next.
  llvm::DenseMap<Value, int> level;
  llvm::DenseMap<Operation *, int> rootLevel, position;
  int floor = 0, next = 0;
  for (Operation &op : block) {
    position[&op] = next++;
    int here = 0, cost = ownCost(&op);
    for (Value operand : op.getOperands()) {
      here = std::max(here, level.lookup(operand));
      // Saturated: a value used twice by each of many ops counts exponentially often.
      cost = std::min(cost + (isPulled(&op) && operand.getParentBlock() == &block ? cost_.lookup(operand) : 0), 1000);
    }
    bool root = isRoot(&op);
    if (root || op.getNumRegions()) {
      here = std::max(here, floor);
      bool joinsOthers = llvm::isa<tile::StoreOp, tile::ScatterOp, tile::ReduceOp, scf::YieldOp>(op);
      if (!joinsOthers)
        floor = ++here + 1; // what others of this level compute anyway (attention's weights, for their sum) is not its own
      rootLevel[&op] = here;
      ++here;
      cost = 0;
      for (Value result : op.getResults())
        if (isTile(result))
          buffered_.insert(result);
    }
    for (Value result : op.getResults()) {
      level[result] = here;
      cost_[result] = cost;
    }
    for (Region &region : op.getRegions())
      if (!llvm::isa<tile::ReduceOp, tile::ScanOp>(op))
        for (Block &inner : region) {
          for (Value argument : inner.getArguments())
            if (isTile(argument))
              buffered_.insert(argument);
          visitBlock(inner);
        }
  }

  for (Operation &op : block)
    keepFromOwnWrites(op);

  // Backward: by how many levels each pulled value is needed, and where last.
  llvm::DenseMap<Value, std::set<int>> levels;
  llvm::DenseMap<Value, int> lastUse;
  for (Operation &op : llvm::reverse(block)) {
    if (!isPulled(&op))
      continue;
    Value value = op.getResult(0);
    bool crossesBlocks = false;
    auto &needed = levels[value];
    int &last = lastUse[value] = position[&op];
    for (Operation *user : value.getUsers()) {
      if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(user); reshape && !isUnitReshape(reshape)) {
        buffered_.insert(value);
        reasons_.push_back({value, "it is reshaped across dimensions"});
      }
      Operation *here = block.findAncestorOpInBlock(*user);
      if (here != user) {
        crossesBlocks = true;
        last = std::max(last, position[here]);
        continue;
      }
      if (isPulled(user) && !buffered_.contains(user->getResult(0))) {
        needed.insert(levels[user->getResult(0)].begin(), levels[user->getResult(0)].end());
        last = std::max(last, lastUse[user->getResult(0)]);
      } else {
        needed.insert(isPulled(user) ? level[user->getResult(0)] : rootLevel[user]);
        last = std::max(last, position[user]);
      }
    }
    bool isConstant = llvm::isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp>(op);
    int cost = cost_[value];
    // Across blocks a load may meet any number of writes and iterations: only what reads nothing is recomputed there.
    const char *why = nullptr;
    if (op.hasAttr(operandAttr))
      why = "a dot reads it in this form";
    else if (crossesBlocks && !isConstant && (cost > recomputeLimit || readsMemory(value)))
      why = "it is used inside a loop or branch further in";
    else if (needed.size() > 1 && cost > recomputeLimit)
      why = neededAgain.data();
    else if (llvm::isa<tile::RandomBitsOp>(op) && llvm::any_of(value.getUsers(), isPulled))
      why = "the generator is one long chain: in a loop of its own several of them overlap";
    else if (viewReadBy(&op) && writesBetween(viewReadBy(&op), position[&op], last, block))
      why = "memory that it may have been read from is written before its last use";
    if (why) {
      buffered_.insert(value);
      reasons_.push_back({value, why});
    }
  }
  for (Operation &op : block)
    if (isPulled(&op))
      dropIfCheap(op.getResult(0));
}

/// What is kept because it is needed again, and is at most a few steps from other things that are kept (the distance
/// from a mean, where the numbers are kept as well), is better computed again: a line of scratch less to write and to
/// hold in the cache. It must not come from memory, which may have been written since.
void Placement::dropIfCheap(Value value) {
  constexpr int dropLimit = 3;
  auto *reason = llvm::find_if(reasons_, [&](const auto &one) { return one.first == value && one.second == neededAgain; });
  bool isKeptAnyway = llvm::any_of(reasons_, [&](const auto &one) { return one.first == value && one.second != neededAgain; });
  if (reason == reasons_.end() || isKeptAnyway)
    return;
  constexpr int tooMuch = 1000;
  llvm::DenseMap<Value, int> known;
  std::function<int(Value)> again = [&](Value from) -> int {
    Operation *op = from.getDefiningOp();
    if (!isTile(from) || (from != value && buffered_.contains(from)))
      return 0;
    if (!op || !isPulled(op) || viewReadBy(op) || op->getBlock() != value.getParentBlock())
      return tooMuch;
    if (auto found = known.find(from); found != known.end())
      return found->second; // a value used twice by each of many ops would be walked exponentially often
    int cost = ownCost(op);
    for (Value operand : op->getOperands())
      cost = std::min(cost + again(operand), tooMuch);
    auto broadcast = llvm::dyn_cast<tile::BroadcastOp>(op);
    bool isOnceForMany = broadcast && llvm::cast<RankedTensorType>(broadcast.getValue().getType()).getNumElements() <
                                          llvm::cast<RankedTensorType>(from.getType()).getNumElements();
    return known[from] = isOnceForMany && cost < tooMuch ? 0 : cost;
  };
  if (again(value) > dropLimit)
    return;
  buffered_.erase(value);
  reasons_.erase(reason);
}

} // namespace tenon::cpu
