// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-recompute: what a block computed from a tile of 16 bits or fewer waits in 32 bits an element while the
// block reduces it. Where that is cheap to compute again, only the words that were loaded wait, half as many registers, so
// that more blocks fit on a multiprocessor and work while this one waits at its barriers:
//
//     %x = tile.load ... : bf16              %x = tile.load
//     %w = tile.cast %x : f32                %w = tile.cast %x
//     %m = tile.reduce %w ... maximumf       %m = tile.reduce %w
//     %d = arith.subf %w, broadcast(%m)      %x1 = nvidia.again %x after %m
//     %e = math.exp %d                       %w1 = tile.cast %x1
//     %s = tile.reduce %e ... addf       ->  %d = arith.subf %w1, broadcast(%m)
//     %q = arith.divf %e, broadcast(%s)      %e = math.exp %d
//                                            %s = tile.reduce %e
//                                            %x2 = nvidia.again %x after %s
//                                            %e2 = math.exp (cast(%x2) - broadcast(%m))
//                                            %q = arith.divf %e2, broadcast(%s)
//
// A value qualifies that is used after a reduction across warps, is computed element by element from loaded tiles and
// from tiles of a few registers, in few instructions. All values that live across a reduction are decided about together:
// what is saved is what they take less what the words take. Nothing is done unless it lowers the most that live across
// any of the reductions.
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/Distribution.h"
#include "tenon/compiler/target/nvidia/threads/Layouts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Fewer registers saved than this, and than this for each instruction an element, are not worth it.
constexpr int64_t leastSaved = 16;
constexpr int64_t leastSavedForEach = 8;
/// A tile of so few registers (one value a row) may simply wait.
constexpr int64_t fewRegisters = 4;
/// Instructions an element.
constexpr int64_t mostInstructions = 6;

/// 32-bit registers that a tile takes in one thread.
int64_t registersOf(Value tile) {
  auto type = llvm::cast<RankedTensorType>(tile.getType());
  Distribution distribution(type);
  int64_t count = 0;
  for (int reg = 0; reg < distribution.registers(); ++reg)
    count += distribution.exists(reg);
  if (type.getElementType().isInteger(1))
    return llvm::divideCeil(count,
                            32); // conditions wait as bits, if at all: most are a comparison of the thread's number
  unsigned bits = getElementTypeOrSelf(lower::registerType(type.getElementType())).getIntOrFloatBitWidth();
  return bits > 32 ? 2 * count : count;
}

/// The same in the form that memory has it.
int64_t wordsOf(tile::LoadOp load) {
  return registersOf(load) * load.getType().getElementType().getIntOrFloatBitWidth() / 32;
}

/// Whether the threads of a block wait for each other in it.
bool crossesWarps(tile::ReduceOp reduce) {
  Distribution tile(llvm::cast<RankedTensorType>(reduce.getValues()[0].getType()));
  return llvm::any_of(tile.threadBits(), [&](const Distribution::ThreadBit &bit) {
    return bit.bit >= 5 && bit.dim == static_cast<int64_t>(reduce.getDim());
  });
}

/// Machine instructions that an element costs, about.
int64_t costOf(Operation *op) {
  if (llvm::isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
                arith::SelectOp, arith::AddIOp, arith::SubIOp, math::AbsFOp, tile::CastOp>(op))
    return 1;
  if (llvm::isa<math::ExpOp, math::Exp2Op, arith::DivFOp>(op) && op->hasAttr(relaxedAttr))
    return 2;
  return mostInstructions + 1;
}

/// How to compute a value again.
struct Plan {
  llvm::SetVector<Operation *> loads, ops;
  int64_t cost = 0; ///< instructions an element

  /// Whether it can be done at all.
  bool add(Value value) {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    Operation *op = value.getDefiningOp();
    if (!type || (op && (op->hasTrait<OpTrait::ConstantLike>() || llvm::isa<tile::SplatOp>(op))))
      return true;
    if (op && llvm::isa<tile::BroadcastOp>(op))
      return registersOf(op->getOperand(0)) <= fewRegisters;
    if (registersOf(value) <= fewRegisters)
      return true;
    if (!op || op->getNumRegions())
      return false;
    if (ops.contains(op))
      return true;
    if (auto again = llvm::dyn_cast<AgainOp>(op))
      op = again.getValue().getDefiningOp();
    if (auto load = llvm::dyn_cast<tile::LoadOp>(op)) {
      loads.insert(load);
      return load.getType().getElementType().getIntOrFloatBitWidth() <= 16 && !load->hasAttr(bulkAttr);
    }
    bool isRelabelled = llvm::isa<tile::ReshapeOp>(op) &&
                        reshapesInPlace(llvm::cast<RankedTensorType>(op->getOperand(0).getType()), type);
    if (!(isRelabelled || lower::isElementwise(op)) ||
        !llvm::all_of(op->getOperands(), [&](Value operand) { return add(operand); }))
      return false;
    ops.insert(op);
    cost += isRelabelled ? 0 : costOf(op);
    return true;
  }
};

/// What lives across a reduction, and how to compute it again.
struct Crossing {
  tile::ReduceOp reduce;
  SmallVector<Value> values; ///< that can be computed again
  Plan plan;
  int64_t live = 0;  ///< registers across it
  int64_t saved = 0; ///< of them

  explicit Crossing(tile::ReduceOp op) : reduce(op) {
    for (Operation &before : llvm::make_range(reduce->getBlock()->begin(), reduce->getIterator())) {
      if (before.getNumResults() != 1 || !llvm::isa<RankedTensorType>(before.getResult(0).getType()))
        continue;
      Value value = before.getResult(0);
      if (!lower::isElementwise(&before) || registersOf(value) <= fewRegisters ||
          llvm::none_of(value.getUsers(), [&](Operation *user) { return isAfter(user); }))
        continue;
      live += registersOf(value);
      Plan alone;
      if (!alone.add(value) || alone.loads.empty() || alone.cost > mostInstructions)
        continue;
      plan.add(value);
      values.push_back(value);
      saved += registersOf(value);
    }
    for (Operation *load : plan.loads)
      saved -= wordsOf(llvm::cast<tile::LoadOp>(load));
  }

  bool isAfter(Operation *user) {
    Operation *inBlock = reduce->getBlock()->findAncestorOpInBlock(*user);
    return inBlock && inBlock != reduce && reduce->isBeforeInBlock(inBlock);
  }

  bool isWorthIt() const { return saved >= leastSaved && saved >= leastSavedForEach * plan.cost; }

  void recompute() {
    OpBuilder b(reduce->getContext());
    b.setInsertionPointAfter(reduce);
    IRMapping map;
    for (Operation *load : plan.loads)
      map.map(load->getResult(0), b.create<AgainOp>(load->getLoc(), load->getResult(0).getType(), load->getResult(0),
                                                    reduce.getResults()[0]));
    for (Operation *op : plan.ops)
      for (Value operand : op->getOperands())
        if (auto again = operand.getDefiningOp<AgainOp>())
          map.map(operand, map.lookup(again.getValue()));
    for (Operation *op : plan.ops) // operands come first
      b.clone(*op, map);
    for (Value value : values)
      value.replaceUsesWithIf(map.lookup(value), [&](OpOperand &use) { return isAfter(use.getOwner()); });
  }
};

void recompute(Block &block) {
  SmallVector<tile::ReduceOp> reduces;
  int64_t before = 0, after = 0; // the most registers that live across one of them
  for (auto reduce : block.getOps<tile::ReduceOp>()) {
    if (!crossesWarps(reduce))
      continue;
    Crossing crossing(reduce);
    before = std::max(before, crossing.live);
    after = std::max(after, crossing.live - (crossing.isWorthIt() ? crossing.saved : 0));
    if (crossing.isWorthIt())
      reduces.push_back(reduce);
  }
  if (before - after < leastSaved)
    return; // another reduction needs as many
  for (tile::ReduceOp reduce : reduces)
    Crossing(reduce).recompute();
}

struct RecomputePass : PassWrapper<RecomputePass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RecomputePass)
  StringRef getArgument() const override { return "tenon-nvidia-recompute"; }
  StringRef getDescription() const override {
    return "Compute values that live across a reduction again, from the narrower ones that were loaded";
  }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NvidiaDialect>(); }
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      recompute(*block);
  }
};

} // namespace

std::unique_ptr<Pass> createRecomputePass() { return std::make_unique<RecomputePass>(); }

} // namespace tenon::nvidia
