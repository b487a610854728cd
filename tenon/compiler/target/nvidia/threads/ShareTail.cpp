// SPDX-License-Identifier: Apache-2.0
//
// The last program instances, which are fewer than the blocks that are there, made by all blocks together ("stream-K"):
// with 2048 tiles on 132 multiprocessors 15 rounds are full and half of the blocks idle in the sixteenth. Here the
// iterations of those last instances' loops lie one after the other on a line, which is cut into equal spans, one for
// each block. A span begins in one instance and may end in the next, so that a block makes one or two pieces of it.
//
//     instances     |     0     |     1     |     2     |          each K iterations long
//     spans         |   0   |   1   |   2   |   3   |  4  ...      one for each block
//     pieces        |   0   | 1 | 2 |   3   | 4 ...                numbered: instance + span
//
// On Tile IR (shareTail), for a kernel with one loop that only adds up:
//
//     %sum = scf.for %k = 0 to %K                    %begin, %end, %part, %parts, %slot = nvidia.share %iterations
//            iter_args(%acc = zero)           ->     %mine = scf.for %k = %begin to %end iter_args(%acc = zero)
//       ... add to %acc ...                            ... add to %acc ...
//     rest of the program, from %sum                 %sum, %isLast = nvidia.combine %mine part %part of %parts ...
//                                                    scf.if %isLast
//                                                      rest of the program, from %sum
//
// Whoever makes an instance's last piece to be done adds the pieces up, in their order, and goes on; nobody waits. Pieces
// lie in a workspace as threads hold them, so that each is written and read in whole lines. Where blocks share loads in a
// cluster, what is said of blocks is true of clusters, and each block combines pieces of its own.
#include "tenon/compiler/target/nvidia/threads/Passes.h"
#include "tenon/compiler/target/nvidia/threads/Rings.h"
#include "tenon/compiler/target/nvidia/threads/Schedule.h"
#include "tenon/compiler/transform/SplitReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Pieces that the workspace has room for.
constexpr int64_t slots = 384;
/// An instance has about one span more than this at most: whoever adds them up reads all of them.
constexpr int64_t spansPerInstance = 3;
/// Iterations that a block must be spared. To write a piece and read the others takes about as long as these.
constexpr int64_t leastGain = 8;
/// Iterations of a loop that is shared: those of all shared instances are counted in 32 bits.
constexpr int64_t mostIterations = (int64_t(1) << 31) / slots;
/// Of what a block knows of a piece, in shared memory: its instance, and what ShareOp gives.
constexpr int64_t pieceBytes = 32;
/// What a slot has room for at least, where some threads hold the same elements.
constexpr int64_t leastElements = 16384;

/// Elements that a piece takes in the workspace, with what a layout adds to sizes that are no powers of two.
int64_t slotElements(ValueRange tiles) {
  int64_t elements = 1;
  for (int64_t size : llvm::cast<RankedTensorType>(tiles[0].getType()).getShape())
    elements *= static_cast<int64_t>(llvm::PowerOf2Ceil(size));
  return std::max(elements, leastElements) * static_cast<int64_t>(tiles.size());
}

std::string refuseTiles(scf::ForOp loop) {
  Type first = loop.getResult(0).getType();
  if (!llvm::all_of(loop.getResultTypes(), [&](Type type) { return type == first; }))
    return "it carries tiles of different types";
  if (getElementTypeOrSelf(first).getIntOrFloatBitWidth() != 32)
    return "it carries elements that are not 32 bits wide";
  return "";
}

/// Copies, in front of the builder, of what a value is computed from; null where that is not the same for all instances.
Value cloneBefore(OpBuilder &b, Value value, IRMapping &map, Operation *grid) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(grid))
    return value;
  if (op == grid || op->getNumRegions() || !isPure(op))
    return {};
  for (Value operand : op->getOperands()) {
    Value copy = cloneBefore(b, operand, map, grid);
    if (!copy)
      return {};
    map.map(operand, copy);
  }
  return b.clone(*op, map)->getResult(llvm::cast<OpResult>(value).getResultNumber());
}

} // namespace

TailOutcome shareTail(func::FuncOp kernel) {
  auto [grid, loop, refusal] = findSumLoop(kernel);
  TailOutcome outcome{false, "", loop ? loop.getLoc() : kernel.getLoc()};
  if (refusal.empty())
    refusal = refuseTiles(loop);
  ImplicitLocOpBuilder b(outcome.where, kernel.getContext());
  Value begin, end, step;
  if (refusal.empty()) {
    b.setInsertionPoint(grid);
    IRMapping map;
    begin = cloneBefore(b, loop.getLowerBound(), map, grid);
    end = cloneBefore(b, loop.getUpperBound(), map, grid);
    step = cloneBefore(b, loop.getStep(), map, grid);
    if (!begin || !end || !step)
      refusal = "how often it runs depends on the instance";
  }
  if (!refusal.empty()) {
    outcome.remark = "the last program instances are not shared by all blocks, for want of a loop that only adds up: " +
                     refusal;
    return outcome;
  }
  kernel.getContext()->loadDialect<NvidiaDialect>();
  auto index = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(value); };
  Value more = b.create<arith::SubIOp>(b.create<arith::AddIOp>(b.create<arith::SubIOp>(end, begin), step), index(1));
  Value iterations = b.create<arith::MaxSIOp>(b.create<tile::DivOp>(more, step, /*is_unsigned=*/false), index(0));
  auto workspace = [&](int64_t size, Type element, tile::Initial initial) -> Value {
    auto type = tile::ViewType::get(b.getContext(), 1, element);
    return b.create<tile::WorkspaceOp>(type, ValueRange{index(size)}, initial);
  };
  Type element = getElementTypeOrSelf(loop.getResult(0).getType());
  Value pieces = workspace(slots * slotElements(loop.getResults()), element, tile::Initial::anything);
  Value arrived = workspace(slots, b.getI32Type(), tile::Initial::restored);

  b.setInsertionPoint(loop);
  auto share = b.create<ShareOp>(SmallVector<Type>(5, b.getIndexType()), iterations);
  auto at = [&](Value iteration) -> Value {
    return b.create<arith::AddIOp>(loop.getLowerBound(), b.create<arith::MulIOp>(iteration, loop.getStep()));
  };
  Value from = at(share.getBegin()), to = at(share.getEnd());
  loop.setUpperBound(b.create<arith::MinSIOp>(to, loop.getUpperBound()));
  loop.setLowerBound(from);
  moveHostOpsBefore(loop);
  SmallVector<Operation *> rest;
  for (Operation *op = loop->getNextNode(); op != kernel.getBody().front().getTerminator(); op = op->getNextNode())
    rest.push_back(op);
  b.setInsertionPointAfter(loop);
  auto combine = b.create<CombineOp>(loop.getResultTypes(), b.getI1Type(), loop.getResults(), share.getPart(),
                                     share.getParts(), share.getSlot(), pieces, arrived);
  auto last = b.create<scf::IfOp>(combine.getIsLast(), /*withElseRegion=*/false);
  for (Operation *op : rest)
    op->moveBefore(last.thenBlock()->getTerminator());
  for (auto [part, sum] : llvm::zip(loop.getResults(), combine.getSums()))
    part.replaceAllUsesExcept(sum, combine);
  outcome.isShared = true;
  outcome.remark = "the last program instances are shared by all blocks";
  return outcome;
}

namespace {

struct ShareTail : PassWrapper<ShareTail, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShareTail)
  StringRef getArgument() const override { return "tenon-nvidia-share-tail"; }
  StringRef getDescription() const override { return "The last program instances are made by all blocks"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, NvidiaDialect, scf::SCFDialect, tile::TileDialect>();
  }
  void runOnOperation() override {
    TailOutcome outcome = shareTail(getOperation());
    emitRemark(outcome.where) << outcome.remark;
  }
};

} // namespace

std::unique_ptr<Pass> createShareTailPass() { return std::make_unique<ShareTail>(); }

//===--- Which piece --------------------------------------------------------------------------------------------===//

/// Once, before the loop over the instances of this block (or cluster), of which `first` is the first and `step` as many
/// as there are. Returns where the loop ends: behind its last piece.
Value ThreadEmitter::planTail(Value count, Value first, Value step) {
  kernel_.walk([&](ShareOp op) { tail_.emplace().op = op; });
  if (!tail_ || schedule_) { // blocks that take instances when they are free end together as it is
    tail_.reset();
    return count;
  }
  Tail &tail = *tail_;
  auto least = [&](Value a, Value b) -> Value { return b_.create<arith::MinUIOp>(a, b); };
  tail.block = first;
  tail.blocks = step;
  Value iterations = toI64(scalar(tail.op.getIterations()));
  tail.iterations = b_.create<arith::TruncIOp>(b_.getI32Type(), iterations);
  Value instances = b_.create<arith::RemUIOp>(count, step);
  Value spans = least(least(step, b_.create<arith::MulIOp>(instances, i32(spansPerInstance))),
                      i32(slots / 2 / options_.sharers));
  Value some = b_.create<arith::MaxUIOp>(spans, i32(1));
  Value length = b_.create<arith::MulIOp>(instances, tail.iterations);
  tail.length = b_.create<arith::DivUIOp>(length, some);
  tail.longer = b_.create<arith::RemUIOp>(length, some);
  auto below = [&](Value a, Value b) -> Value { return b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, a, b); };
  Value pays = below(b_.create<arith::AddIOp>(tail.length, i32(leastGain)), tail.iterations);
  pays = both(pays, below(instances, spans)); // neither none nor more than there is room for
  pays = both(pays, below(iterations, i64(mostIterations)));
  tail.whole = b_.create<arith::SelectOp>(pays, b_.create<arith::SubIOp>(count, instances), count);
  Value takesPart = both(pays, below(first, spans));
  auto end = b_.create<scf::IfOp>(b_.getI32Type(), takesPart, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(end.elseBlock());
  b_.create<scf::YieldOp>(tail.whole);
  b_.setInsertionPointToStart(end.thenBlock());
  writePieces();
  Value edge = b_.create<arith::MulIOp>(
      b_.create<arith::AddIOp>(b_.create<arith::DivUIOp>(spanBegin(first), tail.iterations), i32(1)), tail.iterations);
  Value hasSecond = below(edge, spanBegin(b_.create<arith::AddIOp>(first, i32(1))));
  Value one = b_.create<arith::AddIOp>(tail.whole, step);
  Value behind = b_.create<arith::SelectOp>(hasSecond, b_.create<arith::AddIOp>(one, step), one);
  b_.create<scf::YieldOp>(behind);
  return end.getResult(0);
}

/// The first spans are one iteration longer than the others.
Value ThreadEmitter::spanBegin(Value span) {
  return b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(span, tail_->length),
                                  b_.create<arith::MinUIOp>(span, tail_->longer));
}

/// The span that an iteration of the line is in.
Value ThreadEmitter::spanOf(Value iteration) {
  Value longLength = b_.create<arith::AddIOp>(tail_->length, i32(1));
  Value ofLong = b_.create<arith::MulIOp>(tail_->longer, longLength);
  Value isLong = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, iteration, ofLong);
  Value amongShort = b_.create<arith::DivUIOp>(b_.create<arith::SubIOp>(iteration, ofLong), tail_->length);
  return b_.create<arith::SelectOp>(isLong, b_.create<arith::DivUIOp>(iteration, longLength),
                                    b_.create<arith::AddIOp>(tail_->longer, amongShort));
}

/// The block's two pieces (the second may be none), by one thread, into shared memory: whoever comes to one finds there
/// what takes divisions and numbers that nobody then keeps in registers. The barrier of the rings' beginning lies
/// between.
void ThreadEmitter::writePieces() {
  Tail &tail = *tail_;
  tail.records = allocateShared(2 * pieceBytes);
  tail.group = newGroup();
  auto add = [&](Value a, Value b) -> Value { return b_.create<arith::AddIOp>(a, b); };
  auto sub = [&](Value a, Value b) -> Value { return b_.create<arith::SubIOp>(a, b); };
  auto only = b_.create<scf::IfOp>(b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadOfBlock_, i32(0)));
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(only.thenBlock());
  SharedWindow window{tail.records, tail.records + 2 * pieceBytes};
  Value begin = spanBegin(tail.block), end = spanBegin(add(tail.block, i32(1)));
  Value before = b_.create<arith::DivUIOp>(begin, tail.iterations);
  for (int64_t second : {0, 1}) {
    Value instance = add(before, i32(second)), start = b_.create<arith::MulIOp>(instance, tail.iterations);
    Value behind = add(start, tail.iterations);
    Value from = sub(second ? start : begin, start), to = sub(b_.create<arith::MinUIOp>(end, behind), start);
    Value first = spanOf(start), last = spanOf(sub(behind, i32(1)));
    for (auto [number, value] :
         llvm::enumerate(std::array<Value, 6>{add(tail.whole, instance), from, to, sub(tail.block, first),
                                              add(sub(last, first), i32(1)), add(instance, first)}))
      storeShared(value, i32(0), tail.records + second * pieceBytes + 4 * static_cast<int64_t>(number), {}, window,
                  tail.group);
  }
}

/// From the number that the loop over instances has: the instance, and for ShareOp what of it.
Value ThreadEmitter::takePiece(Value number) {
  if (!tail_)
    return number;
  Tail &tail = *tail_;
  Value isPiece = b_.create<arith::CmpIOp>(arith::CmpIPredicate::uge, number, tail.whole);
  SmallVector<Type> types(6, b_.getI32Type());
  auto piece = b_.create<scf::IfOp>(types, isPiece, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(piece.elseBlock());
    b_.create<scf::YieldOp>(
        ValueRange{number, i32(0), i32(0), i32(0), i32(1), i32(0)}); // emitShare knows where it ends
    b_.setInsertionPointToStart(piece.thenBlock());
    Value firstOfSecond = b_.create<arith::AddIOp>(tail.whole, tail.blocks);
    Value isSecond = b_.create<arith::CmpIOp>(arith::CmpIPredicate::uge, number, firstOfSecond);
    Value at = b_.create<arith::SelectOp>(isSecond, i32(pieceBytes), i32(0));
    SharedWindow window{tail.records, tail.records + 2 * pieceBytes};
    SmallVector<Value> words;
    for (int64_t word = 0; word < 6; ++word)
      words.push_back(loadShared(b_.getI32Type(), at, tail.records + 4 * word, {}, window, tail.group));
    b_.create<scf::YieldOp>(words);
  }
  llvm::copy(piece.getResults().drop_front(), tail.piece.begin());
  return piece.getResult(0);
}

void ThreadEmitter::emitShare(ShareOp op) {
  std::array<Value, 5> piece = {i32(0), {}, i32(0), i32(1), i32(0)};
  if (tail_)
    piece = tail_->piece;
  if (tail_ && options_.sharers > 1) {
    auto &[begin, end, part, parts, slot] = piece;
    slot = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(slot, i32(options_.sharers)), clusterRank_);
    if (isLive_)
      parts = b_.create<arith::SelectOp>(isLive_, parts, i32(1)); // what nobody stores is not added up
  }
  for (auto [result, value] : llvm::zip(op.getResults(), piece))
    if (value)
      scalars_[result] = b_.create<arith::IndexCastUIOp>(b_.getIndexType(), value);
  Value all = scalar(op.getIterations()); // more, maybe, than 32 bits count
  Value isPiece = tail_ ? b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, tail_->piece[3], i32(1)).getResult() : Value();
  scalars_[op.getEnd()] = isPiece ? b_.create<arith::SelectOp>(isPiece, scalar(op.getEnd()), all).getResult() : all;
}

//===--- Adding up ----------------------------------------------------------------------------------------------===//

LogicalResult ThreadEmitter::emitCombine(CombineOp op) {
  SmallVector<Value> mine;
  for (Value tile : op.getTiles())
    flatten(tile, mine);
  auto finish = [&](ValueRange sums, Value isLast) {
    for (Value tile : op.getSums())
      unflatten(tile, sums);
    scalars_[op.getIsLast()] = isLast;
  };
  if (!tail_) {
    remark(op.getLoc(), "no program instance is shared by all blocks: each block has one of them");
    finish(mine, boolean(true));
    return success();
  }
  constexpr int64_t width = 4; // elements of 16 bytes
  int64_t slotBytes = 4 * slotElements(op.getTiles()), stride = 16 * options_.threads;
  int64_t accesses = llvm::divideCeil(static_cast<int64_t>(mine.size()), width);
  if (accesses * stride > slotBytes)
    return op.emitOpError("has more elements in all threads than a slot has room for");
  auto word = [&](Value index) -> Value { return b_.create<arith::TruncIOp>(b_.getI32Type(), toI64(scalar(index))); };
  Value part = word(op.getPart()), parts = word(op.getParts()), slot = word(op.getSlot());
  auto equal = [&](Value a, Value b) -> Value { return b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b); };

  SmallVector<Type> types(ValueRange(mine).getTypes());
  types.push_back(b_.getI1Type());
  auto whole = b_.create<scf::IfOp>(types, equal(parts, i32(1)), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(whole.thenBlock());
  mine.push_back(boolean(true));
  b_.create<scf::YieldOp>(mine);
  mine.pop_back();

  b_.setInsertionPointToStart(whole.elseBlock());
  auto vector = VectorType::get({width}, mine.front().getType());
  Value room = views_.find(op.getPieces())->second.address;
  Value mineAt = b_.create<arith::ShLIOp>(threadId_, i32(4));
  room = b_.create<arith::AddIOp>(room, b_.create<arith::ExtUIOp>(b_.getI64Type(), mineAt));
  // The pieces of an instance follow each other; those of the blocks of a cluster lie between.
  auto placeOf = [&](Value number) -> Value {
    Value at = b_.create<arith::AddIOp>(slot, b_.create<arith::MulIOp>(number, i32(options_.sharers)));
    at = b_.create<arith::MulIOp>(b_.create<arith::ExtUIOp>(b_.getI64Type(), at), i64(slotBytes));
    return b_.create<arith::AddIOp>(room, at);
  };
  auto elements = [&](ValueRange values, int64_t access) {
    SmallVector<Value> some(values.slice(access * width, std::min<size_t>(width, values.size() - access * width)));
    some.resize(width, some.back());
    return b_.create<vector::FromElementsOp>(vector, some).getResult();
  };
  Value place = placeOf(part);
  for (int64_t access = 0; access < accesses; ++access)
    storeGlobal(elements(mine, access), place, access * stride, {});
  Value isLast = countPiece(op, slot, parts);

  auto adds = b_.create<scf::IfOp>(types, isLast, /*withElseRegion=*/true);
  b_.create<scf::YieldOp>(adds.getResults());
  b_.setInsertionPointToStart(adds.elseBlock());
  mine.push_back(boolean(false));
  b_.create<scf::YieldOp>(mine);
  mine.pop_back();
  b_.setInsertionPointToStart(adds.thenBlock());
  // This block's own piece as well: there are no registers for two.
  auto pieceOf = [&](Value number) {
    Value at = placeOf(number);
    SmallVector<Value> values;
    for (int64_t access = 0; access < accesses; ++access) {
      Value loaded = loadGlobal(vector, at, access * stride, {}, {});
      for (int64_t i = 0; i < width && values.size() < mine.size(); ++i)
        values.push_back(b_.create<vector::ExtractOp>(loaded, i));
    }
    return values;
  };
  auto loop = b_.create<scf::ForOp>(i32(1), parts, i32(1), pieceOf(i32(0)));
  {
    OpBuilder::InsertionGuard inLoop(b_);
    b_.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> sums;
    for (auto [sum, value] : llvm::zip(loop.getRegionIterArgs(), pieceOf(loop.getInductionVar())))
      sums.push_back(llvm::isa<FloatType>(sum.getType()) ? b_.create<arith::AddFOp>(sum, value).getResult()
                                                         : b_.create<arith::AddIOp>(sum, value).getResult());
    b_.create<scf::YieldOp>(sums);
  }
  SmallVector<Value> sums(loop.getResults());
  sums.push_back(boolean(true));
  b_.create<scf::YieldOp>(sums);
  finish(whole.getResults().drop_back(), whole.getResults().back());
  return success();
}

/// Says that this block's piece is written. Whether it is the instance's last one, in all threads; then what the others
/// wrote is there, and the counter is zero again.
Value ThreadEmitter::countPiece(CombineOp op, Value slot, Value parts) {
  Type i32Type = b_.getI32Type();
  int64_t mark = markShared(), at = allocateShared(16);
  SharedWindow window{at, at + 4};
  Value counter = b_.create<arith::AddIOp>(
      views_.find(op.getArrived())->second.address,
      b_.create<arith::ExtUIOp>(b_.getI64Type(), b_.create<arith::ShLIOp>(slot, i32(2))));
  Value isFirst = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadId_, i32(0));
  blockBarrier();
  auto counts = b_.create<scf::IfOp>(isFirst);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(counts.thenBlock());
    b_.create<FenceOp>(FenceKind::device);
    Value before = b_.create<AtomicOp>(i32Type, AtomicKind::add, counter, i32(1), Value());
    b_.create<FenceOp>(FenceKind::device);
    Value isLast = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, before, b_.create<arith::SubIOp>(parts, i32(1)));
    storeGlobal(i32(0), counter, 0, isLast);
    storeShared(b_.create<arith::ExtUIOp>(i32Type, isLast), i32(0), at, {}, window, newGroup());
  }
  Value isLast = loadShared(i32Type, i32(0), at, {}, window, newGroup());
  releaseShared(mark);
  return b_.create<arith::CmpIOp>(arith::CmpIPredicate::ne, isLast, i32(0));
}

} // namespace tenon::nvidia
