// SPDX-License-Identifier: Apache-2.0
//
// The iteration in which K ends. What lies behind the end of both matrices is zeros, which the accelerator has put
// there, and an instruction of wgmma takes 16 columns of a tile that has 64: of 5000, the last tile has 8, and one of
// its four instructions does all there is to do.
//
//     if all of the tile's columns are needed: start all instructions; commit
//     else: start as many as reach the end; commit
//
// Whole chains stand in the branches: the assembler would close a group of its own for each branch within one.
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "tenon/compiler/target/nvidia/threads/Divisibility.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// What the specialisation tells of sizes: the largest power of two that divides them, up to this.
constexpr int64_t mostToldOfSizes = 16;

} // namespace

/// How many columns of K these dots' tiles have in front of the end of every matrix that they are loaded from, i64;
/// null where K may well end between two tiles, and the question is not worth asking.
Value ThreadEmitter::columnsToEnd(ArrayRef<tile::DotOp> dots, const DotPlan &plan) {
  if (!options_.steps.endOfK)
    return {};
  Value columns;
  for (tile::DotOp dot : dots)
    for (auto [operand, kDim] : {std::pair(dot.getA(), 1), std::pair(dot.getB(), 0)}) {
      std::optional<LoadedOperand> loaded = traceToLoad(operand);
      if (!loaded || !loaded->load->hasAttr(bulkAttr) || loaded->dims[kDim] < 0)
        return {};
      Value view = loaded->load.getView();
      int64_t dim = loaded->dims[kDim];
      if (alignmentOf(view).sizes[dim] >= std::min(plan.depth, mostToldOfSizes))
        return {};
      Value offset = toI64(scalar(loaded->load.getOffsets()[dim]));
      Value left = b_.create<arith::SubIOp>(toI64(views_[view].sizes[dim]), offset);
      columns = columns ? b_.create<arith::MaxSIOp>(columns, left).getResult() : left;
    }
  remark(dots.front()->getLoc(),
         "the last tile along K is multiplied up to its end, " + std::to_string(plan.depth) + " columns at a time");
  return columns;
}

/// Calls `emit` with the number of instructions along K that there are to be, in the branches of what `columns` (null:
/// all of them) may be. It gives back what becomes of the sums.
Registers ThreadEmitter::upToEnd(Value columns, int64_t steps, int64_t depth, const Registers &sums,
                                 llvm::function_ref<Registers(int64_t)> emit) {
  if (!columns || steps == 1)
    return emit(steps);
  auto present = [](const Registers &all) {
    return llvm::to_vector(llvm::make_filter_range(all, [](Value value) { return value != nullptr; }));
  };
  Value isNeeded = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sgt, columns, i64((steps - 1) * depth));
  auto branch = b_.create<scf::IfOp>(ValueRange(present(sums)).getTypes(), isNeeded, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    b_.create<scf::YieldOp>(present(emit(steps)));
    b_.setInsertionPointToStart(branch.elseBlock());
    b_.create<scf::YieldOp>(present(upToEnd(columns, steps - 1, depth, sums, emit)));
  }
  Registers results = sums;
  auto next = branch.result_begin();
  for (Value &sum : results)
    sum = sum ? *next++ : Value();
  return results;
}

} // namespace tenon::nvidia
