// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Stages.h"

#include "tenon/compiler/target/cpu/LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr int64_t mostBytes = 96 << 10; ///< that a step over several pages touches: twice the L1 of processors that do
constexpr int64_t mostRows = 6;         ///< that a step along rows reads or writes through the cache
constexpr int64_t mostBytesAlong = 40 << 10; ///< of those, most of L1, where what lies between computes little
constexpr int64_t leastExtent = 256;    ///< of a row that is gone along

bool hasLoops(Operation &op) {
  return op.walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool hasBounds(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  return loop.getInductionVar().getType().isIndex() && lower && *lower == 0 &&
         getConstantIntValue(loop.getUpperBound()) && getConstantIntValue(loop.getStep());
}

/// for counter { for start by parts { ... } }, which carry the same; or, where a row is taken from one end to the
/// other, for counter { ... } along a long one.
bool findParts(Stage &stage) {
  if (!hasBounds(stage.loop))
    return false;
  if (llvm::none_of(*stage.loop.getBody(), hasLoops))
    return stage.step() > 1 && stage.extent() % stage.step() == 0 && stage.extent() >= leastExtent;
  for (Operation &op : stage.loop.getBody()->without_terminator())
    if (auto inner = llvm::dyn_cast<scf::ForOp>(op); inner && !stage.parts)
      stage.parts = inner;
    else if (hasLoops(op) || !isMemoryEffectFree(&op))
      return false;
  if (!stage.parts || !hasBounds(stage.parts) || llvm::any_of(*stage.parts.getBody(), hasLoops))
    return false;
  return llvm::equal(stage.parts.getInitArgs(), stage.loop.getRegionIterArgs()) &&
         llvm::equal(stage.loop.getBody()->getTerminator()->getOperands(), stage.parts.getResults()) &&
         getConstantIntValue(stage.loop.getUpperBound()) == stage.part() && stage.part() % stage.step() == 0 &&
         stage.step() > 1 && stage.extent() >= 2 * stage.part(); // not rows of a tile
}

std::optional<Stage> stageOf(scf::IfOp nest) {
  Stage stage;
  stage.nest = nest;
  for (Operation *op = nest;;) {
    auto branch = llvm::dyn_cast<scf::IfOp>(op);
    if (!branch || branch->getNumResults() || branch.getElseRegion().empty() ||
        branch.getCondition().getParentBlock() != nest->getBlock())
      return std::nullopt;
    stage.conditions.push_back(branch.getCondition());
    stage.block = branch.thenBlock();
    if (!llvm::hasNItems(*stage.block, 2) || !llvm::isa<scf::IfOp>(stage.block->front()))
      break;
    op = &stage.block->front();
  }
  for (Operation &op : *stage.block)
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op); loop && !stage.loop)
      stage.loop = loop;
    else if (hasLoops(op) && !(stage.loop && llvm::isa<scf::IfOp>(op))) // what is seldom done goes with the stage
      return std::nullopt;
  return stage.loop && findParts(stage) ? std::optional(stage) : std::nullopt;
}

/// Gives single numbers between loops and behind them to the stage before, and where rows are gone along other loops as
/// well; false if they are more than that.
bool addToTail(SmallVectorImpl<Stage> &stages, Operation &op, llvm::DenseSet<Operation *> &inTails) {
  if (stages.empty() || (hasLoops(op) && (stages.back().parts || !llvm::isa<scf::ForOp>(op))))
    return false;
  stages.back().tail.push_back(&op);
  inTails.insert(&op);
  return true;
}

/// Whether an operation, or one inside of it, has an operand from a tail.
bool dependsOn(Operation &op, const llvm::DenseSet<Operation *> &tails) {
  return op
      .walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(),
                            [&](Value operand) { return tails.contains(operand.getDefiningOp()); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

int64_t Stage::step() { return *getConstantIntValue(loop.getStep()); }
int64_t Stage::extent() { return *getConstantIntValue(innermost().getUpperBound()); }
int64_t Stage::part() { return parts ? *getConstantIntValue(parts.getStep()) : extent(); }

SmallVector<Stage> stagesOf(func::FuncOp instance) {
  SmallVector<Stage> stages;
  llvm::DenseSet<Operation *> tailOfLast, tailsBefore; // what the present stage may see, and what none may any more
  Block &body = instance.getBody().front();
  bool isKnown = !instance
                      .walk([](Operation *op) {
                        return llvm::isa<LLVM::CallOp, LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp>(op)
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      })
                      .wasInterrupted();
  for (Operation &op : body.without_terminator()) {
    auto nest = llvm::dyn_cast<scf::IfOp>(op);
    std::optional<Stage> stage = nest ? stageOf(nest) : std::nullopt;
    if (stage) {
      stages.push_back(*stage);
      tailsBefore.insert(tailOfLast.begin(), tailOfLast.end());
      tailOfLast.clear();
    }
    auto load = llvm::dyn_cast<LLVM::LoadOp>(op);
    auto place = load ? load.getAddr().getDefiningOp<LLVM::GEPOp>() : LLVM::GEPOp();
    bool isArgument = (place && place.getBase() == instance.getArgument(argsArgument)) || (load && load.getInvariant());
    isKnown &= !dependsOn(op, tailsBefore);
    if (!stage && (dependsOn(op, tailOfLast) || !(isArgument || isMemoryEffectFree(&op))))
      isKnown &= addToTail(stages, op, tailOfLast);
  }
  bool isOne = llvm::all_of(
      stages, [&](Stage &stage) { return stage.extent() == stages[0].extent() && stage.part() == stages[0].part(); });
  return isKnown && isOne && stages.size() > 1 ? stages : SmallVector<Stage>();
}

namespace {

/// The rows that a stage reads, or writes through the cache, as one byte counts for each.
SmallVector<std::pair<Value, int64_t>> rowsOf(Stage &stage) {
  SmallVector<std::pair<Value, int64_t>> rows;
  stage.innermost().walk([&](Operation *op) {
    auto load = llvm::dyn_cast<LLVM::LoadOp>(op);
    auto store = llvm::dyn_cast<LLVM::StoreOp>(op);
    if (!load && (!store || store.getNontemporal()))
      return;
    auto place = (load ? load.getAddr() : store.getAddr()).getDefiningOp<LLVM::GEPOp>();
    auto type = llvm::dyn_cast<VectorType>(load ? load.getRes().getType() : store.getValue().getType());
    if (place && type && llvm::none_of(rows, [&](auto &row) { return row.first == place.getBase(); }))
      rows.push_back({place.getBase(), stage.extent() * byteSize(type.getElementType())});
  });
  return rows;
}

/// Whether joined stages fit into steps of the longest of them. One takes several of a stage with shorter ones, part by
/// part, so those must not have sums, which would have another order.
bool fitTogether(MutableArrayRef<Stage> stages) {
  int64_t longest = 0;
  for (Stage &stage : stages)
    if (stage.isJoined)
      longest = std::max(longest, stage.step());
  return llvm::all_of(stages, [&](Stage &stage) {
    return !stage.isJoined || stage.step() == longest ||
           (longest % stage.step() == 0 && stage.loop.getInitArgs().empty());
  });
}

/// Whether an operation accesses what a pointer leads to, by itself or through one that is computed from it elsewhere.
bool uses(Operation &op, LLVM::GEPOp pointer) {
  return llvm::any_of(pointer->getUsers(), [&](Operation *use) {
    auto derived = llvm::dyn_cast<LLVM::GEPOp>(use);
    return op.isAncestor(use) || (derived && uses(op, derived));
  });
}

/// Whether a loop of a stage accesses the elements of what is kept there.
bool hasElements(LLVM::GEPOp buffer, Stage &stage) {
  return llvm::any_of(buffer->getUsers(), [&](Operation *use) {
    return llvm::isa<LLVM::GEPOp>(use) && stage.innermost()->isAncestor(use);
  });
}

/// Whether, of the branches that a step takes, an iteration of the stage's loop accesses what it keeps there in its own
/// place, with all of its lanes, or the stage accesses a single number before its loop (reads) and behind it (writes).
/// Of what has elements nothing is read or written behind the loop: by then they are the next row's.
bool keepsOrder(LLVM::GEPOp buffer, Stage &stage, bool areElements) {
  auto isPlace = [&](Value value) {
    auto cast = value.getDefiningOp<arith::IndexCastOp>();
    if (cast && !stage.parts)
      return cast.getIn() == stage.loop.getInductionVar();
    auto sum = cast ? cast.getIn().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
    return sum && sum.getLhs() == stage.parts.getInductionVar() && sum.getRhs() == stage.loop.getInductionVar();
  };
  for (Operation *use : buffer->getUsers()) {
    if (!stage.nest->isAncestor(use)) {
      if (auto derived = llvm::dyn_cast<LLVM::GEPOp>(use); derived && uses(*stage.nest, derived))
        return false;
      continue;
    }
    if (!stage.block->getParentOp()->isAncestor(use) || !stage.block->findAncestorOpInBlock(*use))
      continue; // in a branch that a step does not take
    bool isInside = stage.innermost()->isAncestor(use);
    if (auto element = llvm::dyn_cast<LLVM::GEPOp>(use)) {
      if (!isInside || element.getDynamicIndices().size() != 1 || !isPlace(element.getDynamicIndices()[0]))
        return false;
      for (Operation *access : element->getUsers()) {
        auto store = llvm::dyn_cast<LLVM::StoreOp>(access);
        Type type = store ? store.getValue().getType() : access->getNumResults() ? access->getResultTypes()[0] : Type();
        auto vector = llvm::dyn_cast_if_present<VectorType>(type);
        if (!llvm::isa<LLVM::LoadOp, LLVM::StoreOp>(access) || !vector || vector.getNumElements() != stage.step() ||
            vector.getElementType() != element.getElemType())
          return false;
      }
    } else {
      Operation *place = stage.block->findAncestorOpInBlock(*use);
      bool isRead = llvm::isa<LLVM::LoadOp>(use) && (!areElements || place->isBeforeInBlock(stage.loop));
      bool isWritten = llvm::isa<LLVM::StoreOp>(use) && !areElements && stage.loop->isBeforeInBlock(place);
      if (!isRead && !isWritten)
        return false;
    }
  }
  return true;
}

/// Whether a stage computes for long, or keeps what it has computed: meanwhile memory can be read and written.
bool computesMuch(Stage &stage) {
  return stage.innermost()
      .walk([](Operation *op) {
        bool isMuch = llvm::isa_and_present<math::MathDialect>(op->getDialect()) || llvm::isa<LLVM::StoreOp>(op);
        return isMuch ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

bool chooseJoined(MutableArrayRef<Stage> stages) {
  bool overPages = stages[0].parts != nullptr;
  int64_t bytes = 0, rows = 0;
  for (auto [number, stage] : llvm::enumerate(stages)) {
    stage.lag = static_cast<int64_t>(number);
    for (auto &[base, rowBytes] : rowsOf(stage)) {
      bytes += rowBytes;
      ++rows;
    }
  }
  bool paysToJoinAll = bytes <= mostBytesAlong || stages.size() < 3 ||
                   llvm::any_of(stages.drop_front().drop_back(), computesMuch);
  if (fitTogether(stages) && (overPages ? bytes <= mostBytes : rows <= mostRows && paysToJoinAll))
    return true;
  if (overPages || stages.size() < 3)
    return false;
  for (Stage &stage : stages) {
    stage.isJoined = &stage == &stages.front() || &stage == &stages.back();
    stage.lag = &stage == &stages.back() ? 1 : 0;
  }
  return fitTogether(stages);
}

/// Later stages come first in a step, so where an iteration writes what one that comes later has just read, the two
/// instances share a copy. Branches that a step does not take do not matter.
int64_t copiesOf(func::FuncOp instance, MutableArrayRef<Stage> stages) {
  Block &body = instance.getBody().front();
  int64_t copies = 1;
  llvm::DenseSet<int64_t> seen;
  for (Operation *user : instance.getArgument(scratchArgument).getUsers()) {
    auto place = llvm::dyn_cast<LLVM::GEPOp>(user);
    if (auto select = llvm::dyn_cast<LLVM::SelectOp>(user);
        select && select.getFalseValue() == instance.getArgument(scratchArgument))
      continue; // where an access goes that is none (Access.cpp): nobody looks at what is there
    if (!place || place->getBlock() != &body || !place.getDynamicIndices().empty() ||
        !seen.insert(place.getRawConstantIndices()[0]).second)
      return 0;
    std::optional<int64_t> first, last;
    for (Stage &stage : stages)
      if (uses(*stage.nest, place) || llvm::any_of(stage.tail, [&](Operation *op) { return uses(*op, place); })) {
        first = std::min(first.value_or(stage.lag), stage.lag);
        last = std::max(last.value_or(stage.lag), stage.lag);
      }
    // What follows the loops of a step finds there what the newest of the instances has left. Over several pages at
    // once elements have copies: what is read next would lie 4 KiB behind what was just written, and to a processor
    // that looks like the same place.
    bool areElements = llvm::any_of(stages, [&](Stage &stage) { return hasElements(place, stage); });
    bool inOrder = !(areElements && stages[0].parts) && llvm::all_of(stages, [&](Stage &stage) {
      return keepsOrder(place, stage, areElements) &&
             (stage.lag == first || llvm::none_of(stage.tail, [&](Operation *op) { return uses(*op, place); }));
    });
    if (first)
      copies = std::max(copies, *last - *first + (inOrder ? 0 : 1));
  }
  return copies;
}

} // namespace tenon::cpu
