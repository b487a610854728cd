// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/threads/Ahead.h"
#include "tenon/compiler/target/nvidia/threads/OperandBuffers.h"
#include "tenon/compiler/target/nvidia/threads/Pipeline.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"
#include "tenon/compiler/target/nvidia/threads/Rings.h"
#include "tenon/compiler/target/nvidia/threads/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }

} // namespace

ThreadEmitter::ThreadEmitter(func::FuncOp kernel, ModuleOp target, const ThreadOptions &options)
    : kernel_(kernel), target_(target), options_(options), b_(kernel.getLoc(), target.getContext()) {}

ThreadEmitter::~ThreadEmitter() = default;

LogicalResult ThreadEmitter::run() {
  int64_t words = 0;
  auto countWords = [&](Type type) {
    auto view = llvm::dyn_cast<tile::ViewType>(type);
    words += view ? 1 + 2 * static_cast<int64_t>(view.getRank()) : 1;
  };
  for (Type type : kernel_.getArgumentTypes())
    countWords(type);
  kernel_.walk([&](tile::WorkspaceOp op) { countWords(op.getView().getType()); });

  // After the kernel's own words: where failed asserts are noted, and where prints go.
  SmallVector<Type> types(words + 2, b_.getI64Type());
  b_.setInsertionPointToEnd(target_.getBody());
  function_ = b_.create<func::FuncOp>(kernel_.getName(), b_.getFunctionType(types, {}));
  Block *entry = function_.addEntryBlock();
  status_ = entry->getArgument(words);
  printBuffer_ = entry->getArgument(words + 1);
  b_.setInsertionPointToStart(entry);
  threadId_ = threadOfBlock_ = b_.create<ThreadIdOp>(b_.getI32Type());
  if (options_.teams > 1)
    threadId_ = b_.create<arith::AndIOp>(threadId_, i32(options_.threads - 1));
  if (options_.cluster > 1 || options_.sharers > 1)
    clusterRank_ = b_.create<ClusterRankOp>(b_.getI32Type());
  // A value every thread computes once from its own number goes before this.
  prologueEnd_ = b_.create<arith::ConstantIntOp>(0, 1);
  if (options_.cluster > 1 && canSendAcrossBlocks())
    prepareSending();
  bindArguments();
  if (failed(hasTransfer(kernel_) ? emitSpecialised() : emitProgram()))
    return failure();
  joinCluster();
  if (readsOtherBlocks_) { // no block ends while another may read its memory
    b_.create<ClusterArriveOp>();
    b_.create<ClusterWaitOp>();
  }
  b_.create<func::ReturnOp>();
  delayWait();
  prefetchTensorMaps();
  prologueEnd_->erase();
  function_->setAttr(threadsAttr, b_.getI64IntegerAttr(workers() + (rings_.empty() ? 0 : producerThreads)));
  if (!rings_.empty()) {
    function_->setAttr(workersAttr, b_.getI64IntegerAttr(options_.threads));
    function_->setAttr(tensorMapsAttr, b_.getI64IntegerAttr(tensorMaps_.size()));
  }
  if (turns_) {
    int64_t bytes = llvm::alignTo(peakShared_ - teamsBegin_, panelAlignment);
    peakShared_ = teamsBegin_ + options_.teams * bytes;
    function_->setAttr(teamsAttr, b_.getDenseI64ArrayAttr({options_.teams, teamsBegin_, bytes}));
  }
  limitRegisters();
  function_->setAttr(clusterAttr, b_.getI64IntegerAttr(options_.cluster * options_.sharers));
  function_->setAttr(sharedBytesAttr, b_.getI64IntegerAttr(peakShared_));
  return success();
}

ViewWords ThreadEmitter::readView(tile::ViewType type, int unitStride) {
  ViewWords view;
  auto next = [&] { return function_.getArgument(nextWord_++); };
  view.address = next();
  for (unsigned d = 0; d < type.getRank(); ++d)
    view.sizes.push_back(next());
  for (unsigned d = 0; d < type.getRank(); ++d) {
    Value stride = next();
    view.strides.push_back(static_cast<int>(d) == unitStride ? i64(1) : stride);
  }
  view.unitStride = unitStride;
  view.element = type.getElementType();
  return view;
}

void ThreadEmitter::bindArguments() {
  for (BlockArgument argument : kernel_.getArguments()) {
    if (auto type = llvm::dyn_cast<tile::ViewType>(argument.getType())) {
      auto unit = kernel_.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tile::unitStrideAttr);
      views_[argument] = readView(type, unit ? static_cast<int>(unit.getInt()) : -1);
      continue;
    }
    Value word = function_.getArgument(nextWord_++);
    if (argument.getType().isF64())
      scalars_[argument] = b_.create<arith::BitcastOp>(b_.getF64Type(), word);
    else if (argument.getType().isIndex())
      scalars_[argument] = b_.create<arith::IndexCastOp>(b_.getIndexType(), word);
    else
      scalars_[argument] = word;
  }
}

/// What comes before the first access of global memory overlaps the end of the kernel before.
LogicalResult ThreadEmitter::emitProgram() {
  bool waited = false;
  for (Operation &op : kernel_.getBody().front().without_terminator()) {
    if (!waited && touchesGlobal(op)) {
      awaitEarlierLaunches();
      waited = true;
    }
    if (failed(emitInOrder(op)))
      return failure();
  }
  return success();
}

LogicalResult ThreadEmitter::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(emitInOrder(op)))
      return failure();
  return success();
}

/// With what rings and dots under way need before and after it.
LogicalResult ThreadEmitter::emitInOrder(Operation &op) {
  if (rings_.empty() && underWay_.empty())
    return emitOp(op);
  settleFor(op);
  for (auto &ring : rings_)
    if (ring->firstUse == &op)
      waitForFull(*ring);
  bool writes = llvm::isa<tile::StoreOp, tile::ScatterOp, tile::AtomicRMWOp, tile::AtomicCASOp, tile::AssertOp,
                          tile::PrintOp>(op);
  bool isBulk = llvm::isa<tile::StoreOp>(op) && bulkStaging_.contains(&op); // looks after it itself
  if (writes && isLive_ && !isBulk)
    emitIfLive(op);
  else if (failed(emitOp(op)))
    return failure();
  for (auto &ring : rings_)
    if (ring->lastUse == &op) {
      if (underWay_.empty())
        releaseSlot(*ring, ring->current);
      else
        ring->held = ring->current;
    }
  return success();
}

LogicalResult ThreadEmitter::emitOp(Operation &op) {
  b_.setLoc(op.getLoc());
  if (llvm::isa<scf::ForOp, scf::IfOp>(op))
    joinCluster();
  orderGlobal(&op);
  if (auto load = llvm::dyn_cast<tile::LoadOp>(op); load && load->hasAttr(bulkAttr))
    return emitBulkLoad(load), success();
  bool movesTile = llvm::isa<tile::TransposeOp, tile::ReshapeOp, ConvertOp>(op);
  if (op.hasAttr(asyncAttr) || op.hasAttr(aheadAttr) || (movesTile && isAsync(op.getOperand(0)))) {
    async_.insert(op.getResult(0)); // only dots read it, where it lies
    return success();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<scf::ForOp>([&](auto loop) { return emitFor(loop); })
      .Case<scf::IfOp>([&](auto branch) { return emitIf(branch); })
      .Case<tile::DotOp>([&](auto dot) { return emitDot(dot); })
      .Case<tile::GridOp>([&](auto grid) { return emitGrid(grid), success(); })
      .Case<tile::RequireOp>([](auto) { return success(); })
      .Case<tile::WorkspaceOp>([&](auto workspace) {
        if (views_.contains(workspace))
          return success(); // another role's program has met it
        auto type = workspace.getView().getType();
        views_[workspace] = readView(type, static_cast<int>(type.getRank()) - 1);
        return success();
      })
      .Case<tile::SizeOp>([&](auto size) {
        scalars_[size] = b_.create<arith::IndexCastOp>(b_.getIndexType(), views_[size.getView()].sizes[size.getDim()]);
        return success();
      })
      .Case<tile::LoadOp>([&](auto load) { return emitLoad(load), success(); })
      .Case<AgainOp>([&](auto again) { return emitAgain(again); })
      .Case<ShareOp>([&](auto share) { return emitShare(share), success(); })
      .Case<CombineOp>([&](auto combine) { return emitCombine(combine); })
      .Case<tile::StoreOp>([&](auto store) { return emitStore(store), success(); })
      .Case<tile::GatherOp>([&](auto gather) { return emitGather(gather), success(); })
      .Case<tile::ScatterOp>([&](auto scatter) { return emitScatter(scatter), success(); })
      .Case<tile::AtomicRMWOp>([&](auto atomic) { return emitAtomicRMW(atomic), success(); })
      .Case<tile::AtomicCASOp>([&](auto atomic) { return emitAtomicCAS(atomic), success(); })
      .Case<tile::AssertOp>([&](auto check) { return emitAssert(check), success(); })
      .Case<tile::PrintOp>([&](auto print) { return emitPrint(print), success(); })
      .Case<tile::SplatOp>([&](auto splat) {
        registers(splat).assign(distribution(splat).registers(), scalar(splat.getValue()));
        return success();
      })
      .Case<tile::IotaOp>([&](auto iota) {
        const Distribution &tile = distribution(iota);
        Type element = typeOf(iota).getElementType();
        Registers values(tile.registers());
        for (int reg = 0; reg < tile.registers(); ++reg)
          if (tile.exists(reg)) {
            Value coord = coordinate(tile, reg, iota.getDim());
            values[reg] = element.isInteger(64) ? coord : b_.create<arith::TruncIOp>(element, coord).getResult();
          }
        registers(iota) = std::move(values);
        return success();
      })
      .Case<tile::BroadcastOp>([&](auto broadcast) {
        ArrayRef<int64_t> shape = typeOf(broadcast.getValue()).getShape();
        relabel(broadcast.getValue(), broadcast, [&](const Coords &at) {
          Coords from = at;
          for (size_t d = 0; d < from.size(); ++d)
            if (shape[d] == 1)
              from[d] = 0;
          return from;
        });
        return success();
      })
      .Case<tile::TransposeOp>([&](auto transpose) {
        ArrayRef<int64_t> permutation = transpose.getPermutation();
        relabel(transpose.getValue(), transpose, [&](const Coords &at) {
          Coords from(at.size());
          for (size_t d = 0; d < at.size(); ++d)
            from[permutation[d]] = at[d];
          return from;
        });
        return success();
      })
      .Case<tile::ReshapeOp>([&](auto reshape) { return emitReshape(reshape), success(); })
      .Case<tile::SliceOp>([&](auto slice) { return emitSlice(slice), success(); })
      .Case<tile::ConcatOp>([&](auto concat) { return emitConcat(concat), success(); })
      .Case<tile::ScalarOp>([&](auto element) { return emitScalar(element), success(); })
      .Case<tile::ReduceOp>([&](auto reduce) { return emitReduce(reduce), success(); })
      .Case<tile::ScanOp>([&](auto scan) { return emitScan(scan), success(); })
      .Case<tile::RandomBitsOp>([&](auto random) { return emitRandomBits(random), success(); })
      .Case<ConvertOp>([&](auto convert) { return emitConvert(convert), success(); })
      .Case<arith::ConstantOp>([&](auto constant) { return emitConstant(constant), success(); })
      .Default([&](Operation *other) -> LogicalResult {
        if (!isElementwise(other))
          return other->emitOpError("is not known to the NVIDIA target");
        return emitElementwise(*other), success();
      });
}

void ThreadEmitter::relabel(Value from, Value to, llvm::function_ref<Coords(const Coords &)> map) {
  const Distribution &source = distribution(from), &result = distribution(to);
  Registers values(result.registers());
  for (int reg = 0; reg < result.registers(); ++reg)
    if (result.exists(reg))
      values[reg] = registers(from)[source.registerAt(map(result.offset(reg)))];
  registers(to) = std::move(values);
}

//===--- The grid and control flow --------------------------------------------------------------------------------===//

/// Blocks (or clusters) are numbered with the last axis fastest. CUDA limits a grid to 2^31 - 1 blocks, so 32-bit
/// divisions are enough.
void ThreadEmitter::emitGrid(tile::GridOp op) {
  Value number = b_.create<BlockIdOp>(b_.getI32Type());
  if (options_.cluster > 1)
    number = b_.create<arith::DivUIOp>(number, i32(options_.cluster));
  setInstance(op, number);
}

void ThreadEmitter::setInstance(tile::GridOp op, Value number) {
  programIds_.assign(op.getNumResults(), Value());
  for (int axis = static_cast<int>(op.getNumResults()) - 1; axis >= 0; --axis) {
    Value id = number;
    if (axis > 0) {
      Value extent = b_.create<arith::TruncIOp>(b_.getI32Type(), toI64(scalar(op.getExtents()[axis])));
      Value rest = b_.create<arith::DivUIOp>(number, extent);
      id = b_.create<arith::SubIOp>(number, b_.create<arith::MulIOp>(rest, extent));
      number = rest;
    }
    programIds_[axis] = b_.create<arith::ExtUIOp>(b_.getI64Type(), id);
    scalars_[op.getIds()[axis]] = b_.create<arith::IndexCastOp>(b_.getIndexType(), programIds_[axis]);
  }
}

/// The registers (or the one scalar) of a value, in order, without the ones that do not exist.
void ThreadEmitter::flatten(Value value, SmallVectorImpl<Value> &flat) {
  if (!isTile(value)) {
    flat.push_back(scalar(value));
    return;
  }
  const Distribution &tile = distribution(value);
  for (int reg = 0; reg < tile.registers(); ++reg)
    if (tile.exists(reg))
      flat.push_back(registers(value)[reg]);
}

/// The other way: takes what `value` consists of from the front of `flat`.
void ThreadEmitter::unflatten(Value value, ValueRange &flat) {
  if (!isTile(value)) {
    scalars_[value] = flat.front();
    flat = flat.drop_front();
    return;
  }
  const Distribution &tile = distribution(value);
  Registers values(tile.registers());
  for (int reg = 0; reg < tile.registers(); ++reg)
    if (tile.exists(reg)) {
      values[reg] = flat.front();
      flat = flat.drop_front();
    }
  registers(value) = std::move(values);
}

LogicalResult ThreadEmitter::emitFor(scf::ForOp loop) {
  orderLoop(*loop.getBody());
  SmallVector<GlobalAccess> before = pendingGlobal_;
  int64_t mark = markShared();
  SmallVector<OperandKey> kept;
  if (options_.keepOperands)
    keepOperands(loop, kept);
  std::unique_ptr<Pipeline> pipeline = planPipeline(loop);
  if (pipeline)
    startPipeline(*pipeline);
  std::unique_ptr<Ahead> ahead = planAhead(loop);
  if (ahead)
    startAhead(*ahead);
  SmallVector<Value> inits;
  for (Value init : loop.getInitArgs())
    flatten(init, inits);
  CarriedRings rings = carriedBy(loop);
  std::unique_ptr<OperandBuffers> buffers = planOperandBuffers(rings.dots);
  if (buffers)
    startOperandBuffers(*buffers);
  append(rings, inits);
  // Dots under way at the loop's end are waited for before its results meet those of no iterations: where the two would
  // have to be copied into the same registers, the assembler would otherwise make every dot wait.
  scf::IfOp guard;
  tile::StoreOp behind; // its buffer is waited for while the last dots are under way
  if (!rings.dots.empty()) {
    behind = storeBehind(loop);
    Value runs = b_.create<arith::CmpIOp>(arith::CmpIPredicate::slt, scalar(loop.getLowerBound()),
                                          scalar(loop.getUpperBound()));
    Value needs = behind ? Value() : needsRows(loop, rings);
    SmallVector<Value> unchanged(ArrayRef<Value>(inits).drop_back(rings.held.size()));
    guard = b_.create<scf::IfOp>(ValueRange(unchanged).getTypes(), both(runs, needs), /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
    b_.setInsertionPointToStart(guard.elseBlock());
    if (behind)
      awaitFirstBuffer(behind);
    if (turns_ && loop == turns_->last)
      passTurn();
    if (needs)
      llvm::copy(passSlots(loop, *rings.rings[0]), unchanged.end() - 2);
    b_.create<scf::YieldOp>(unchanged);
    b_.setInsertionPointToStart(guard.thenBlock());
  }
  if (pipeline)
    inits.push_back(i32(0));
  if (ahead)
    inits.push_back(i32(0));
  if (buffers)
    inits.push_back(i32(0));
  if (!rings.fromZero.empty())
    forgetZeros(loop, rings.fromZero, inits);
  auto lowered = b_.create<scf::ForOp>(scalar(loop.getLowerBound()), scalar(loop.getUpperBound()),
                                       scalar(loop.getStep()), inits);
  scalars_[loop.getInductionVar()] = lowered.getInductionVar();
  ValueRange carried = lowered.getRegionIterArgs();
  for (BlockArgument argument : loop.getRegionIterArgs())
    unflatten(argument, carried);
  take(rings, carried);
  for (tile::DotOp dot : rings.dots) // of the iteration before
    underWay_.push_back(addedBy(dot).front().getAcc());
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(lowered.getBody());
    orderIterations(*loop.getBody());
    if (!rings.fromZero.empty())
      addsFrom_[rings.fromZero.front()] =
          b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, lowered.getInductionVar(), lowered.getLowerBound());
    Value nextSlot, slotAhead, slotOfPipeline;
    if (pipeline)
      slotOfPipeline = carried.front(), carried = carried.drop_front();
    if (ahead)
      slotAhead = carried.front(), carried = carried.drop_front();
    if (pipeline)
      nextSlot = enterIteration(*pipeline, lowered.getInductionVar(), slotOfPipeline);
    if (ahead)
      enterAhead(*ahead, slotAhead);
    llvm::SaveAndRestore<OperandBuffers *> ofLoop(buffers_, buffers.get());
    if (buffers)
      enterOperandBuffers(*buffers, carried.front());
    if (failed(emitBlock(*loop.getBody())))
      return failure();
    if (ahead)
      slotAhead = leaveAhead(*ahead, lowered.getInductionVar(), slotAhead);
    if (llvm::any_of(underWay_, [&](Value tile) { return !llvm::is_contained(rings.dots, tile.getDefiningOp()); }))
      settle();
    SmallVector<Value> next;
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      flatten(value, next);
    append(rings, next);
    if (pipeline)
      next.push_back(nextSlot);
    if (ahead)
      next.push_back(slotAhead);
    if (buffers)
      next.push_back(nextBuffer(*buffers));
    b_.setInsertionPointToEnd(lowered.getBody());
    if (!lowered.getBody()->empty() && llvm::isa<scf::YieldOp>(lowered.getBody()->back()))
      lowered.getBody()->back().erase();
    b_.setInsertionPointToEnd(lowered.getBody());
    b_.create<scf::YieldOp>(next);
  }
  pendingGlobal_.append(before); // the loop may run not at all
  if (pipeline)
    b_.create<CpAsyncWaitOp>(0); // what the last iterations started, for iterations that there are not
  for (const OperandKey &key : kept)
    keptOperands_.erase(key);
  releaseShared(mark);
  ValueRange results = lowered.getResults();
  for (Value result : loop.getResults())
    unflatten(result, results);
  take(rings, results);
  underWay_.clear();
  if (!guard)
    return success();
  if (turns_ && loop == turns_->last) {
    passTurn(); // all products are under way: the next team's follow them
    turns_->isPassed = true;
  }
  for (tile::DotOp dot : rings.dots)
    underWay_.push_back(loop.getTiedLoopResult(llvm::cast<BlockArgument>(addedBy(dot).front().getAcc())));
  if (behind)
    awaitFirstBuffer(behind);
  settle();
  SmallVector<Value> last;
  for (Value result : loop.getResults())
    flatten(result, last);
  rings.held.clear();
  append(rings, last);
  b_.create<scf::YieldOp>(last);
  b_.setInsertionPointAfter(guard);
  ValueRange guarded = guard.getResults();
  for (Value result : loop.getResults())
    unflatten(result, guarded);
  take(rings, guarded);
  return success();
}

LogicalResult ThreadEmitter::emitIf(scf::IfOp branch) {
  SmallVector<Type> types;
  for (Value result : branch.getResults()) {
    Type element = registerType(getElementTypeOrSelf(result.getType()));
    int count = 1;
    if (isTile(result)) {
      const Distribution &tile = distribution(result);
      count = 0;
      for (int reg = 0; reg < tile.registers(); ++reg)
        count += tile.exists(reg);
    }
    types.append(count, element);
  }
  CarriedRings rings{ringsIn(branch), {}, {}, {}};
  types.append(2 * rings.rings.size(), b_.getI32Type());
  SmallVector<Value> unchanged; // of the rings
  append(rings, unchanged);
  bool hasElse = !branch.getElseRegion().empty();
  auto lowered = b_.create<scf::IfOp>(types, scalar(branch.getCondition()), /*addThenBlock=*/true,
                                      hasElse || !rings.rings.empty());
  SmallVector<GlobalAccess> before = pendingGlobal_, after; // either side may be the one that ran
  auto emitSide = [&](Block &from, Block &to) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(&to);
    pendingGlobal_ = before;
    ValueRange states = unchanged;
    take(rings, states);
    if (failed(emitBlock(from)))
      return failure();
    settle();
    SmallVector<Value> values;
    for (Value value : from.getTerminator()->getOperands())
      flatten(value, values);
    append(rings, values);
    b_.create<scf::YieldOp>(values);
    after.append(pendingGlobal_);
    return success();
  };
  if (failed(emitSide(branch.getThenRegion().front(), lowered.getThenRegion().front())))
    return failure();
  if (hasElse && failed(emitSide(branch.getElseRegion().front(), lowered.getElseRegion().front())))
    return failure();
  if (!hasElse && !rings.rings.empty()) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(lowered.elseBlock());
    b_.create<scf::YieldOp>(unchanged);
  }
  if (!hasElse)
    after.append(before);
  pendingGlobal_ = std::move(after);
  ValueRange results = lowered.getResults();
  for (Value result : branch.getResults())
    unflatten(result, results);
  take(rings, results);
  return success();
}

} // namespace tenon::nvidia
