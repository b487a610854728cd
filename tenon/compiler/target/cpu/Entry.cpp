// SPDX-License-Identifier: Apache-2.0
//
// The two functions the launcher calls: tenon_run loops over program instances, tenon_plan evaluates the grid, the
// preconditions and the workspace sizes.
#include "tenon/compiler/target/cpu/Entry.h"

#include "tenon/compiler/target/cpu/AmxTiles.h"
#include "tenon/compiler/target/cpu/CpuTarget.h"
#include "tenon/compiler/target/cpu/DotKept.h"
#include "tenon/compiler/target/cpu/LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::cpu {

SmallVector<Value> idsOf(ImplicitLocOpBuilder &b, func::FuncOp kernel, Value number, Value extents) {
  Type i64 = b.getI64Type();
  SmallVector<int64_t> order;
  kernel.walk([&](tile::GridOp grid) { order = orderOfAxes(grid); });
  SmallVector<Value> ids(3, constantBits(b, i64, 0));
  for (size_t i = order.size(); i-- > 1;) { // slowest first; the extent of the first one is not needed
    Value at = b.create<LLVM::GEPOp>(LLVM::LLVMPointerType::get(b.getContext()), i64, extents,
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(order[i])});
    Value extent = b.create<LLVM::LoadOp>(i64, at, 8);
    ids[order[i]] = b.create<arith::RemUIOp>(number, extent);
    number = b.create<arith::DivUIOp>(number, extent);
  }
  if (!order.empty())
    ids[order[0]] = number;
  return ids;
}

void emitRunFunction(func::FuncOp kernel, ModuleOp target, const Isa &isa, int64_t noteBytes,
                     std::optional<Overlap> overlap) {
  ImplicitLocOpBuilder b(target.getLoc(), target.getContext());
  b.setInsertionPointToEnd(target.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  b.create<LLVM::GlobalOp>(i64, /*isConstant=*/true, LLVM::Linkage::External, noteBytesSymbol,
                           b.getI64IntegerAttr(noteBytes));
  auto function =
      b.create<func::FuncOp>(runSymbol, b.getFunctionType({pointer, i64, i64, pointer, pointer, pointer}, {}));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToEnd(entry);
  Value args = entry->getArgument(0), begin = entry->getArgument(1), end = entry->getArgument(2);
  Value extents = entry->getArgument(3), scratch = entry->getArgument(4), context = entry->getArgument(5);
  Value one = constantBits(b, i64, 1);
  TileEmitter tiles(b, target, isa.tiles);
  tiles.configure();
  auto oneByOne = [&] {
    OpBuilder::InsertionGuard guard(b);
    auto loop = b.create<scf::ForOp>(begin, end, one);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    SmallVector<Value> arguments = {args};
    arguments.append(idsOf(b, kernel, loop.getInductionVar(), extents));
    arguments.append({scratch, context});
    if (overlap)
      arguments.push_back(constantBits(b, i64, -1));
    b.create<func::CallOp>("instance", TypeRange{}, arguments);
  };
  if (overlap) {
    auto holds = [&](Value number) -> Value {
      SmallVector<Value> arguments = {args};
      arguments.append(idsOf(b, kernel, number, extents));
      return b.create<func::CallOp>(holdsSymbol, b.getI1Type(), arguments).getResult(0);
    };
    Value count = b.create<arith::SubIOp>(end, begin);
    Value isLong = b.create<arith::CmpIOp>(arith::CmpIPredicate::sgt, count, constantBits(b, i64, overlap->rows));
    Value both = b.create<arith::AndIOp>(holds(begin), holds(b.create<arith::SubIOp>(end, one)));
    auto branch = b.create<scf::IfOp>(b.create<arith::AndIOp>(isLong, both), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
    oneByOne();
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    Value last = b.create<arith::AddIOp>(end, constantBits(b, i64, overlap->rows - 1));
    auto loop = b.create<scf::ForOp>(begin, last, one);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    b.create<func::CallOp>(overlapSymbol, TypeRange{},
                           ValueRange{args, loop.getInductionVar(), begin, end, extents, scratch, context});
  } else {
    oneByOne();
  }
  WalkResult streaming = target.walk([](LLVM::StoreOp store) {
    return store.getNontemporal() ? WalkResult::interrupt() : WalkResult::advance();
  });
  // Stores past the cache may be seen later than what follows them, such as the news that the launch is over.
  if (streaming.wasInterrupted())
    b.create<LLVM::CallIntrinsicOp>(TypeRange{}, "llvm.x86.sse.sfence", ValueRange{});
  tiles.release();
  b.create<func::ReturnOp>();
}

/// The scalar ops that the grid, the preconditions and the workspace sizes need, then stores of their values.
LogicalResult LoopEmitter::runPlan() {
  Block &body = kernel_.getBody().front();
  llvm::SetVector<Operation *> slice;
  SmallVector<Value> work;
  for (Operation &op : body)
    if (llvm::isa<tile::GridOp, tile::RequireOp, tile::WorkspaceOp>(op))
      llvm::append_range(work, op.getOperands());
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (!op || !slice.insert(op))
      continue;
    if (llvm::isa<tile::GridOp>(op) || op->getNumRegions() ||
        llvm::any_of(op->getOperandTypes(), [](Type type) { return llvm::isa<RankedTensorType>(type); }))
      return op->emitError("the grid, require() and workspace sizes may depend only on view sizes, scalars and parameters");
    llvm::append_range(work, op->getOperands());
  }

  b_.setInsertionPointToEnd(target_.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b_.getContext());
  auto function = b_.create<func::FuncOp>(planSymbol, b_.getFunctionType({pointer, pointer}, {}));
  Block *entry = function.addEntryBlock();
  b_.setInsertionPointToEnd(entry);
  b_.create<func::ReturnOp>();
  b_.setInsertionPoint(entry->getTerminator());
  args_ = entry->getArgument(0);
  bindArguments();
  int32_t next = 4; // after the grid and the number of the requirement
  auto put = [&](Value value, int32_t at) {
    if (value.getType().isIndex())
      value = b_.create<arith::IndexCastOp>(b_.getI64Type(), value);
    Value slot = b_.create<LLVM::GEPOp>(pointer, b_.getI64Type(), entry->getArgument(1), ArrayRef<LLVM::GEPArg>{at});
    b_.create<LLVM::StoreOp>(value, slot, 8);
  };
  for (int32_t axis = 0; axis < 3; ++axis)
    put(index(1), axis);
  SmallVector<Value> conditions;
  for (Operation &op : body) {
    if (auto size = llvm::dyn_cast<tile::SizeOp>(op); size && slice.contains(&op)) {
      scalars_[size] = view(size.getView()).sizes[size.getDim()];
    } else if (slice.contains(&op)) {
      if (failed(emitScalarOp(op)))
        return failure();
    } else if (auto grid = llvm::dyn_cast<tile::GridOp>(op)) {
      for (auto [axis, extent] : llvm::enumerate(grid.getExtents()))
        put(scalar(extent), axis);
    } else if (auto require = llvm::dyn_cast<tile::RequireOp>(op)) {
      conditions.push_back(scalar(require.getCondition()));
    } else if (auto workspace = llvm::dyn_cast<tile::WorkspaceOp>(op)) {
      for (Value size : workspace.getSizes())
        put(scalar(size), next++);
    }
  }
  Value broken = constantBits(b_, b_.getI64Type(), -1);
  for (int i = static_cast<int>(conditions.size()) - 1; i >= 0; --i)
    broken = b_.create<arith::SelectOp>(conditions[i], broken, constantBits(b_, b_.getI64Type(), i));
  put(broken, 3);
  return success();
}

} // namespace tenon::cpu
