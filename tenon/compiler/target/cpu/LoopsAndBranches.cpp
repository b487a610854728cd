// SPDX-License-Identifier: Apache-2.0
//
// scf.for and scf.if with tiles. A loop-carried tile lives in two buffers whose addresses trade places every iteration:
// the body reads the current one and writes the next. Where the next value only needs the element it replaces (an
// accumulation), one buffer does.
#include "tenon/compiler/target/cpu/DotPlan.h"
#include "tenon/compiler/target/cpu/LoopEmitter.h"
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }
RankedTensorType typeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()); }

/// A reshape sees its operand's buffer as rows without anything between them.
bool isReshaped(Value tile) {
  return llvm::any_of(tile.getUsers(), [](Operation *user) { return llvm::isa<tile::ReshapeOp>(user); });
}

/// Whether a dot that adds to `init` over a loop begins with zeros, and can do so without reading them. Nothing else
/// may: they are not written.
bool beginsAtZero(Operation *producer, const Isa &isa, Value carried, Value init) {
  auto dot = llvm::dyn_cast<tile::DotOp>(producer);
  return dot && dot.getAcc() == carried && carried.hasOneUse() && planDot(dot, isa).usesTiles() &&
         (matchPattern(init, m_PosZeroFloat()) || matchPattern(init, m_Zero()));
}

} // namespace

/// `next` may overwrite `carried` when nothing else needs the old value then: every use of it leads to `next` element by
/// element, or to something emitted before.
bool LoopEmitter::mayUpdateInPlace(Value carried, Value next, Block &body) {
  Operation *producer = next.getDefiningOp();
  if (!producer || producer->getBlock() != &body)
    return false;
  for (Operation *user : carried.getUsers())
    if (user->getBlock() != &body)
      return false;
  // A dot adds to its accumulator element by element; what it multiplies it may read where that lies.
  auto dot = llvm::dyn_cast<tile::DotOp>(producer);
  bool samePlace = dot || isPulled(producer);
  walkPulled({{dot ? dot.getAcc() : next, true}}, [&](Value value, bool inPlace) {
    samePlace &= value != carried || inPlace;
    return true;
  });
  if (!samePlace)
    return false;
  // Every other consumer must have been emitted by the time `next` is: it stands earlier, as a root of its own.
  SmallVector<Value> work = {carried};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (value == next || !seen.insert(value).second)
      continue;
    for (Operation *user : value.getUsers()) {
      if (user->getBlock() != &body || (llvm::isa<scf::YieldOp>(user)))
        return false;
      if (dot && user == dot && (dot.getA() == value || dot.getB() == value))
        return false;
      if (user->getNumResults() == 1 && user->getResult(0) == next)
        continue;
      bool emittedAtItsPlace = !isPulled(user) || placement_.needsBuffer(user->getResult(0));
      if (emittedAtItsPlace) {
        if (!user->isBeforeInBlock(producer))
          return false;
      } else {
        work.push_back(user->getResult(0));
      }
    }
  }
  return true;
}

LogicalResult LoopEmitter::emitFor(scf::ForOp loop) {
  Location location = loop.getLoc();
  Block &body = *loop.getBody();
  auto yield = llvm::cast<scf::YieldOp>(body.getTerminator());

  struct Carried {
    BlockArgument argument;
    Value init, next, result;
    Buffer current, other;
    bool inPlace = false, copies = false, isUnwritten = false;
  };
  std::vector<Carried> tiles, scalars;
  for (auto [argument, init, next, result] :
       llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs(), yield.getOperands(), loop.getResults())) {
    Carried carried{argument, init, next, result, {}, {}};
    (isTile(argument) ? tiles : scalars).push_back(carried);
  }

  // Which value is computed straight into which buffer; one value carried twice is copied for the second.
  llvm::DenseSet<Value> taken;
  for (Carried &c : tiles) {
    RankedTensorType type = typeOf(c.argument);
    Operation *producer = c.next.getDefiningOp();
    bool isReshape = producer && llvm::isa<tile::ReshapeOp>(producer); // it may be its operand's buffer
    bool computedHere = producer && producer->getBlock() == &body && !isReshape && taken.insert(c.next).second &&
                        !llvm::isa<scf::ForOp, scf::IfOp>(producer);
    c.inPlace = computedHere && mayUpdateInPlace(c.argument, c.next, body);
    c.copies = !computedHere;
    // A dot reads and writes blocks of its sums, whose rows would fall on a few cache sets.
    bool isPadded = c.inPlace && llvm::isa<tile::DotOp>(producer) && !isReshaped(c.argument) && !isReshaped(c.next) &&
                    !isReshaped(c.result);
    c.current = allocate(type.getShape(), type.getElementType(),
                         isPadded ? operandPadding / byteSize(scratchType(type.getElementType())) : 0);
    c.isUnwritten = c.inPlace && beginsAtZero(producer, isa_, c.argument, c.init);
    if (!c.isUnwritten)
      materialize(c.init, c.current);
    if (!c.inPlace)
      c.other = allocate(type.getShape(), type.getElementType());
    if (computedHere)
      placement_.forceBuffer(c.next);
  }
  flush();
  b_.setLoc(location);
  for (Carried &c : tiles)
    if (c.isUnwritten) {
      unwritten_.insert(c.argument);
      Value isEmpty = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, scalar(loop.getLowerBound()),
                                               scalar(loop.getUpperBound()));
      auto branch = b_.create<scf::IfOp>(isEmpty, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPoint(branch.thenBlock()->getTerminator());
      materialize(c.init, c.current);
      flush();
    }
  b_.setLoc(location);

  SmallVector<Value> inits;
  for (Carried &c : scalars)
    inits.push_back(scalar(c.init));
  for (Carried &c : tiles)
    if (!c.inPlace) {
      inits.push_back(c.current.pointer);
      inits.push_back(c.other.pointer);
    }
  auto lowered = b_.create<scf::ForOp>(scalar(loop.getLowerBound()), scalar(loop.getUpperBound()),
                                       scalar(loop.getStep()), inits);
  scalars_[loop.getInductionVar()] = lowered.getInductionVar();
  unsigned at = 0;
  for (Carried &c : scalars)
    scalars_[c.argument] = lowered.getRegionIterArgs()[at++];
  for (Carried &c : tiles) {
    Buffer current = c.current, next = c.current;
    if (!c.inPlace) {
      current.pointer = lowered.getRegionIterArgs()[at++];
      next.pointer = lowered.getRegionIterArgs()[at++];
    }
    buffers_[c.argument] = current;
    c.other = next;
    if (!c.copies)
      destinations_[c.next] = next;
  }
  int64_t scratchInside = usedScratch_;
  {
    OpBuilder::InsertionGuard guard(b_);
    // Built without a terminator when values are carried: give the body its end first.
    if (!inits.empty()) {
      b_.setInsertionPointToEnd(lowered.getBody());
      b_.create<scf::YieldOp>(inits);
    }
    Operation *end = lowered.getBody()->getTerminator();
    b_.setInsertionPoint(end);
    if (failed(emitBlock(body)))
      return failure();
    for (Carried &c : tiles)
      if (c.copies)
        materialize(c.next, c.other);
    flush();
    SmallVector<Value> yields;
    for (Carried &c : scalars)
      yields.push_back(scalar(c.next));
    for (Carried &c : tiles)
      if (!c.inPlace) {
        yields.push_back(c.other.pointer);
        yields.push_back(buffers_[c.argument].pointer);
      }
    end->setOperands(yields);
  }
  usedScratch_ = scratchInside;
  at = 0;
  for (Carried &c : scalars)
    scalars_[c.result] = lowered.getResult(at++);
  for (Carried &c : tiles) {
    Buffer result = c.current;
    if (!c.inPlace) {
      result.pointer = lowered.getResult(at);
      at += 2;
    }
    buffers_[c.result] = result;
  }
  b_.setInsertionPointAfter(lowered);
  return success();
}

LogicalResult LoopEmitter::emitIf(scf::IfOp branch) {
  b_.setLoc(branch.getLoc());
  SmallVector<Type> scalarTypes;
  SmallVector<Buffer> results;
  for (Value result : branch.getResults()) {
    if (isTile(result)) {
      buffers_[result] = bufferFor(result);
      results.push_back(buffers_[result]);
    } else {
      scalarTypes.push_back(registerType(result.getType()));
    }
  }
  bool hasElse = !branch.getElseRegion().empty();
  auto lowered = b_.create<scf::IfOp>(scalarTypes, scalar(branch.getCondition()), hasElse);
  int64_t scratchBefore = usedScratch_;
  for (auto [from, to] : {std::pair(&branch.getThenRegion(), &lowered.getThenRegion()),
                          std::pair(&branch.getElseRegion(), &lowered.getElseRegion())}) {
    if (from->empty())
      continue;
    OpBuilder::InsertionGuard guard(b_);
    Block &block = to->front();
    if (block.empty()) {
      b_.setInsertionPointToEnd(&block);
      b_.create<scf::YieldOp>();
    }
    Operation *end = block.getTerminator();
    b_.setInsertionPoint(end);
    if (failed(emitBlock(from->front())))
      return failure();
    SmallVector<Value> yields;
    unsigned next = 0;
    for (Value value : from->front().getTerminator()->getOperands()) {
      if (isTile(value))
        materialize(value, results[next++]);
      else
        yields.push_back(scalar(value));
    }
    flush();
    end->setOperands(yields);
    usedScratch_ = scratchBefore;
  }
  unsigned at = 0;
  for (Value result : branch.getResults())
    if (!isTile(result))
      scalars_[result] = lowered.getResult(at++);
  b_.setInsertionPointAfter(lowered);
  return success();
}

} // namespace tenon::cpu
