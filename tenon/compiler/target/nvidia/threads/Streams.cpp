// SPDX-License-Identifier: Apache-2.0
//
// Loads of what is read once. The L2 cache keeps what came last, and a matrix that is larger than the cache and read
// from its beginning to its end leaves nothing there that anybody will ask for, neither of what other instances share
// nor of the matrix itself. So tiles that no other program instance reads, of a view that the cache cannot hold, are
// loaded as the first that it should drop.
//
// Others are loaded without saying anything: a policy of normal priority is not that, and was up to half as fast.
//
// Who reads what is a matter of the grid, which is known when the kernel runs: 64 rows are one tile, and then every
// tile of the other operand has one reader. What is multiplied with more rows than that waits for the matrix unit, not
// for memory, and is loaded without a question.
#include "tenon/compiler/target/nvidia/threads/Rings.h"
#include "tenon/compiler/target/nvidia/threads/Schedule.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// A view as large as this does not stay in the L2 cache from one kernel to the next.
constexpr int64_t leastStreamed = int64_t(64) << 20;
/// Rows, or columns, that one element of a streamed tile is multiplied with.
constexpr int64_t mostPartners = 64;

/// The variables of grid and loops that an index is made of by sums and products; whether that is all it is made of.
bool collectVariables(Value index, llvm::DenseSet<Value> &variables) {
  Operation *op = index.getDefiningOp();
  if (!op || llvm::isa<tile::GridOp>(op)) {
    variables.insert(index);
    return true;
  }
  if (llvm::isa<arith::AddIOp, arith::MulIOp, arith::IndexCastOp>(op))
    return llvm::all_of(op->getOperands(), [&](Value operand) { return collectVariables(operand, variables); });
  return llvm::isa<arith::ConstantOp>(op);
}

/// Whether each instance along the axes that its place depends on, and each iteration around it, loads another tile.
bool loadsNothingTwice(tile::LoadOp load) {
  llvm::DenseSet<Value> variables;
  for (Value offset : load.getOffsets())
    if (!collectVariables(offset, variables))
      return false;
  for (auto loop = load->getParentOfType<scf::ForOp>(); loop; loop = loop->getParentOfType<scf::ForOp>())
    if (!variables.contains(loop.getInductionVar()))
      return false;
  return true;
}

int64_t partnersOf(tile::LoadOp load, func::FuncOp kernel) {
  int64_t most = 0;
  auto isOf = [&](Value operand) {
    std::optional<LoadedOperand> loaded = traceToLoad(operand);
    return loaded && loaded->load == load;
  };
  kernel.walk([&](tile::DotOp dot) {
    if (isOf(dot.getA()))
      most = std::max(most, dot.getType().getDimSize(1));
    if (isOf(dot.getB()))
      most = std::max(most, dot.getType().getDimSize(0));
  });
  return most;
}

} // namespace

void ThreadEmitter::planStreams(tile::GridOp grid) {
  if (!options_.steps.streams || schedule_) // instances that are taken one by one say nothing of who reads what
    return;
  SmallVector<llvm::DenseSet<Operation *>> ofAll;
  for (size_t axis = 0; axis < grid.getNumResults(); ++axis)
    ofAll.push_back(loadsOfAll(kernel_, static_cast<int64_t>(axis)));
  for (auto &ring : rings_)
    for (Transfer &transfer : ring->transfers) {
      if (!ring->steps.empty() || partnersOf(transfer.load, kernel_) > mostPartners ||
          !loadsNothingTwice(transfer.load))
        continue;
      b_.setLoc(transfer.load.getLoc());
      Value readers = i32(1);
      for (auto [axis, loads] : llvm::enumerate(ofAll))
        if (loads.contains(transfer.load))
          readers = b_.create<arith::MulIOp>(readers, clustersAlong(grid, axis));
      Value bytes = i64(transfer.tile.elementBytes);
      for (Value size : views_.find(transfer.load.getView())->second.sizes)
        bytes = b_.create<arith::MulIOp>(bytes, size);
      Value isAlone = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ule, readers, i32(1));
      Value isLarge = b_.create<arith::CmpIOp>(arith::CmpIPredicate::uge, bytes, i64(leastStreamed));
      transfer.isReadOnce = both(isAlone, isLarge);
    }
}

} // namespace tenon::nvidia
