// SPDX-License-Identifier: Apache-2.0
//
// tenon-split-reduction: several program instances share one loop. A kernel with few instances and a long loop that
// only adds to its tiles leaves most of a GPU idle; here the grid gets one more axis, each instance along it walks one
// part of the iterations, and whoever is the last of them to be done adds the parts up and goes on.
//
//     %i = tile.grid %n                            %s, %i = tile.grid %S, %n
//     %sum = scf.for %k = 0 to %K                  %part = scf.for %k = (%s's share of 0 to %K)
//            iter_args(%acc = zero)                       iter_args(%acc = zero)
//       ... add to %acc ...                          ... add to %acc ...
//     rest of the program, from %sum       ->      tile.store %part, %parts[%s of %i]
//                                                  %before = tile.atomic_rmw add 1, %arrived[%i]
//                                                  scf.if %before == S - 1
//                                                    tile.store 0, %arrived[%i]
//                                                    %sum = zero + part 0 + part 1 + ... + part S - 1
//                                                    rest of the program, from %sum
//
// Nobody waits for anybody, so it does not matter how many instances run at a time. The parts are added in their order,
// whoever does it, so that the result is the same from run to run. What is promised of a tile.atomic_rmw makes the
// parts of the others visible to the last.
//
// The condition is the program's form, nothing else: at the top level one loop, whose carried tiles begin at zero and
// are only added to, and until its end nothing that acts on memory or on the user's screen.
#include "tenon/compiler/transform/SplitReduction.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tenon {
namespace {

/// Whether an op, or one inside it, does more than compute and read.
bool acts(Operation &op) {
  if (llvm::isa<tile::GridOp, tile::RequireOp, tile::WorkspaceOp>(op))
    return false; // the host's business
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(&op);
  return !effects || llvm::any_of(*effects, [](const MemoryEffects::EffectInstance &effect) {
    return !llvm::isa<MemoryEffects::Read>(effect.getEffect());
  });
}

bool isZero(Value tile) { return matchPattern(tile, m_Zero()) || matchPattern(tile, m_PosZeroFloat()); }

/// Why a carried tile is not a sum; "" when it is: one thing after the other is added to it, and nobody else sees it.
std::string refuseCarried(scf::ForOp loop, BlockArgument argument) {
  auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
  if (!type || type.getRank() == 0)
    return "it carries something that is no tile";
  if (!isZero(loop.getTiedLoopInit(argument)->get()))
    return "a tile that it carries does not begin at zero";
  Value sum = argument;
  while (true) {
    if (!sum.hasOneUse())
      return "a tile that it carries is used for more than to be added to";
    Operation *user = *sum.user_begin();
    if (user == loop.getBody()->getTerminator())
      return loop.getTiedLoopYieldedValue(argument)->get() == sum ? "" : "tiles that it carries change places";
    auto dot = llvm::dyn_cast<tile::DotOp>(user);
    bool adds = dot ? dot.getAcc() == sum : llvm::isa<arith::AddFOp, arith::AddIOp>(user);
    if (!adds || user->getBlock() != loop.getBody())
      return "a tile that it carries is used for more than to be added to";
    sum = user->getResult(0);
  }
}

/// Why a loop is not one that several may share.
std::string refuseLoop(tile::GridOp grid, scf::ForOp loop) {
  if (!grid || loop->isBeforeInBlock(grid))
    return "the grid is not declared before it";
  if (loop->getNumResults() == 0)
    return "it carries nothing";
  if (!loop.getInductionVar().getType().isIndex())
    return "it does not count in indices";
  for (BlockArgument argument : loop.getRegionIterArgs())
    if (std::string reason = refuseCarried(loop, argument); !reason.empty())
      return reason;
  if (acts(*loop))
    return "it writes memory, asserts or prints";
  for (Operation &op : *loop->getBlock()) {
    if (op.isBeforeInBlock(loop) && acts(op))
      return "the program writes memory, asserts or prints before it";
    WalkResult names = op.walk([](Operation *inside) {
      return llvm::isa<tile::AssertOp, tile::PrintOp>(inside) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (names.wasInterrupted()) // their texts say where in the grid
      return "the program asserts or prints";
  }
  return "";
}

class Splitter {
public:
  Splitter(func::FuncOp kernel, int64_t factor)
      : kernel_(kernel), factor_(factor), b_(kernel.getLoc(), kernel.getContext()) {}

  SplitOutcome run() {
    auto [grid, loop, refusal] = findSumLoop(kernel_);
    grid_ = grid;
    loop_ = loop;
    if (refusal.empty() && grid_.getNumResults() >= 3)
      refusal = "the grid has three axes already";
    SplitOutcome outcome{false, refusal, loop_ ? loop_.getLoc() : kernel_.getLoc()};
    if (!outcome.remark.empty()) {
      outcome.remark = "no loop is shared by several program instances: " + outcome.remark;
      return outcome;
    }
    split();
    outcome.isSplit = true;
    outcome.remark = "loop is shared by " + std::to_string(factor_) + " program instances, which leave " +
                     std::to_string(partBytes_) + " bytes of workspace each";
    return outcome;
  }

private:
  void split() {
    b_.setLoc(loop_.getLoc());
    b_.setInsertionPoint(grid_);
    count_ = index(factor_);
    makeWorkspaces();
    extendGrid();
    b_.setInsertionPoint(loop_);
    takeShare();
    moveHostOpsBefore(loop_);
    SmallVector<Operation *> rest;
    for (Operation *op = loop_->getNextNode(); op != kernel_.getBody().front().getTerminator(); op = op->getNextNode())
      rest.push_back(op);
    b_.setInsertionPointAfter(loop_);
    Value isLast = leavePart();
    auto last = b_.create<scf::IfOp>(isLast, /*withElseRegion=*/false);
    b_.setInsertionPointToStart(last.thenBlock());
    auto one = RankedTensorType::get({1}, b_.getI32Type());
    Value none = b_.create<arith::ConstantOp>(DenseElementsAttr::get(one, int32_t(0)));
    b_.create<tile::StoreOp>(none, arrived_, place_); // as it was found
    SmallVector<Value> sums = addParts();
    for (Operation *op : rest)
      op->moveBefore(last.thenBlock()->getTerminator());
    for (auto [part, sum] : llvm::zip(loop_.getResults(), sums))
      part.replaceUsesWithIf(sum, [&](OpOperand &use) { return last->isProperAncestor(use.getOwner()); });
  }

  Value index(int64_t value) { return b_.create<arith::ConstantIndexOp>(value); }
  Value add(Value a, Value b) { return b_.create<arith::AddIOp>(a, b); }
  Value multiply(Value a, Value b) { return b_.create<arith::MulIOp>(a, b); }
  /// Of what is not negative, or not wanted.
  Value divideUp(Value a, Value b) {
    Value more = b_.create<arith::SubIOp>(add(a, b), index(1));
    return b_.create<tile::DivOp>(more, b, /*is_unsigned=*/false);
  }
  static RankedTensorType typeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()); }

  /// Parts lie one below the other along the first dimension: those of one place in the old grid together, in order.
  void makeWorkspaces() {
    Value places;
    for (Value extent : grid_.getExtents()) {
      // A launch of nothing wants no workspace; a negative size would have it refused.
      Value some = b_.create<arith::MaxSIOp>(extent, index(0));
      places = places ? multiply(places, some) : some;
    }
    auto make = [&](ValueRange sizes, Type element, tile::Initial initial) -> Value {
      return b_.create<tile::WorkspaceOp>(tile::ViewType::get(b_.getContext(), sizes.size(), element), sizes, initial);
    };
    for (Value tile : loop_.getResults()) {
      RankedTensorType type = typeOf(tile);
      SmallVector<Value> sizes;
      for (int64_t size : type.getShape())
        sizes.push_back(index(size));
      sizes[0] = multiply(multiply(places, count_), sizes[0]);
      parts_.push_back(make(sizes, type.getElementType(), tile::Initial::anything));
      partBytes_ += type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
    }
    arrived_ = make(places, b_.getI32Type(), tile::Initial::restored);
  }

  /// The new axis is the slowest: instances that run at a time share what they read.
  void extendGrid() {
    SmallVector<Value> extents = {count_};
    llvm::append_range(extents, grid_.getExtents());
    auto grid = b_.create<tile::GridOp>(grid_.getLoc(), extents);
    share_ = grid.getIds().front();
    grid_.replaceAllUsesWith(grid.getIds().drop_front());
    grid_.erase();
    grid_ = grid;
    b_.setInsertionPointAfter(grid_);
    ValueRange ids = grid_.getIds().drop_front();
    place_ = ids.front();
    for (auto [id, extent] : llvm::zip(ids.drop_front(), grid_.getExtents().drop_front(2)))
      place_ = add(multiply(place_, extent), id);
  }

  /// Whole iterations, as many for each; the last ones may have fewer or none.
  void takeShare() {
    Value begin = loop_.getLowerBound(), end = loop_.getUpperBound(), step = loop_.getStep();
    Value iterations = divideUp(b_.create<arith::SubIOp>(end, begin), step);
    Value length = multiply(divideUp(iterations, count_), step);
    Value mine = add(begin, multiply(share_, length));
    loop_.setLowerBound(mine);
    loop_.setUpperBound(b_.create<arith::MinSIOp>(add(mine, length), end));
  }

  /// Where a part lies.
  SmallVector<Value> offsetsOf(Value tile, Value share) {
    ArrayRef<int64_t> shape = typeOf(tile).getShape();
    SmallVector<Value> offsets(shape.size(), index(0));
    offsets[0] = multiply(add(multiply(place_, count_), share), index(shape[0]));
    return offsets;
  }

  /// Writes this instance's part; whether all others have.
  Value leavePart() {
    for (auto [tile, view] : llvm::zip(loop_.getResults(), parts_))
      b_.create<tile::StoreOp>(tile, view, offsetsOf(tile, share_));
    auto one = RankedTensorType::get({1}, b_.getI32Type());
    Value at = b_.create<tile::SplatOp>(RankedTensorType::get({1}, b_.getI64Type()),
                                        b_.create<tile::CastOp>(b_.getI64Type(), place_, /*is_unsigned=*/false));
    Value before = b_.create<tile::AtomicRMWOp>(
        one, tile::AtomicKind::add, b_.create<arith::ConstantOp>(DenseElementsAttr::get(one, int32_t(1))), arrived_, at,
        /*mask=*/Value(), /*is_unsigned=*/false);
    Value others = b_.create<arith::ConstantIntOp>(factor_ - 1, 32);
    return b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, b_.create<tile::ScalarOp>(before), others);
  }

  SmallVector<Value> addParts() {
    auto loop = b_.create<scf::ForOp>(index(0), count_, index(1), loop_.getInitArgs());
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> sums;
    for (auto [sum, view] : llvm::zip(loop.getRegionIterArgs(), parts_)) {
      Value part = b_.create<tile::LoadOp>(sum.getType(), view, offsetsOf(sum, loop.getInductionVar()),
                                           /*padding=*/Value());
      bool isFloat = llvm::isa<FloatType>(typeOf(sum).getElementType());
      sums.push_back(isFloat ? b_.create<arith::AddFOp>(sum, part).getResult() : add(sum, part));
    }
    b_.create<scf::YieldOp>(sums);
    return loop.getResults();
  }

  func::FuncOp kernel_;
  int64_t factor_, partBytes_ = 0;
  ImplicitLocOpBuilder b_;
  tile::GridOp grid_;
  scf::ForOp loop_;
  Value count_, share_, place_; ///< how many share a loop, which of them this is, and where in the old grid
  SmallVector<Value> parts_;    ///< workspaces, by carried tile
  Value arrived_;               ///< the workspace that counts
};

struct SplitReduction : PassWrapper<SplitReduction, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SplitReduction)
  explicit SplitReduction(int64_t among) { factor = among; }
  SplitReduction(const SplitReduction &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "tenon-split-reduction"; }
  StringRef getDescription() const override { return "Several program instances share a loop that only adds up"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, scf::SCFDialect, tile::TileDialect>();
  }

  void runOnOperation() override {
    SplitOutcome outcome = splitReduction(getOperation(), factor);
    emitRemark(outcome.where) << outcome.remark;
  }

  Option<int64_t> factor{*this, "factor", llvm::cl::desc("instances that share a loop"), llvm::cl::init(2)};
};

} // namespace

SumLoop findSumLoop(func::FuncOp kernel) {
  SumLoop found;
  int loops = 0;
  for (Operation &op : kernel.getBody().front()) {
    if (auto grid = llvm::dyn_cast<tile::GridOp>(op))
      found.grid = grid;
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
      ++loops;
      found.loop = loop;
    }
  }
  if (loops == 1)
    found.refusal = refuseLoop(found.grid, found.loop);
  else
    found.refusal = loops ? "there are several at the top level" : "there is none at the top level";
  return found;
}

void moveHostOpsBefore(scf::ForOp loop) {
  llvm::SetVector<Operation *> kept;
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
    if (llvm::isa<tile::RequireOp, tile::WorkspaceOp>(op))
      kept.insert(op);
  for (size_t i = 0; i < kept.size(); ++i)
    for (Value operand : kept[i]->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && loop->isBeforeInBlock(source))
        kept.insert(source);
  SmallVector<Operation *> inOrder = kept.takeVector();
  llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : inOrder)
    op->moveBefore(loop);
}

SplitOutcome splitReduction(func::FuncOp kernel, int64_t factor) { return Splitter(kernel, factor).run(); }

std::unique_ptr<Pass> createSplitReductionPass(int64_t factor) { return std::make_unique<SplitReduction>(factor); }

} // namespace tenon
