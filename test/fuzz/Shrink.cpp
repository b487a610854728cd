// SPDX-License-Identifier: Apache-2.0
//
// Every step works on a copy: the n-th op (or argument) of the program gets the k-th of the changes below; what then
// still verifies and fails the same way becomes the program. Ops are tried from the last to the first, since later ones
// are used by fewer.
#include "Shrink.h"

#include "Launch.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace tenon::fuzz {
namespace {

func::FuncOp kernelOf(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

SmallVector<Operation *> opsOf(ModuleOp module) {
  SmallVector<Operation *> ops;
  kernelOf(module).getBody().walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  return ops;
}

void eraseDead(ModuleOp module) {
  for (bool changed = true; changed;) {
    changed = false;
    SmallVector<Operation *> ops = opsOf(module);
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op)) {
        op->erase();
        changed = true;
      }
  }
}

/// How freely the values that lead to a place may be changed.
enum Freedom { Free, ConstantsOnly, Fixed };

bool isFloatCombine(Operation *op) {
  return llvm::isa<tile::ReduceOp, tile::ScanOp, tile::DotOp>(op) &&
         llvm::isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
}

/// Follows all uses: a sum must stay a sum of small integers, a scatter's indices must stay distinct.
Freedom freedomOf(Value value, int depth = 0) {
  if (depth > 40)
    return Fixed;
  Freedom least = Free;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (llvm::isa<tile::ScatterOp, tile::AtomicRMWOp, tile::AtomicCASOp>(user) && use.getOperandNumber() > 0)
      return Fixed;
    if (isFloatCombine(user) || llvm::isa<arith::BitcastOp, ::mlir::math::CopySignOp>(user))
      least = std::max(least, ConstantsOnly);
    if (llvm::isa<scf::YieldOp>(user) && !llvm::isa<func::FuncOp>(user->getParentOp()))
      for (Value result : user->getParentOp()->getResults())
        if (result.getType() == value.getType())
          least = std::max(least, freedomOf(result, depth + 1));
    for (Value result : user->getResults())
      least = std::max(least, freedomOf(result, depth + 1));
    if (least == Fixed)
      return Fixed;
  }
  return least;
}

Value makeConstant(OpBuilder &b, Location location, Type type, int64_t value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute;
  if (llvm::isa<FloatType>(element))
    attribute = b.getFloatAttr(element, static_cast<double>(value));
  else if (element.isInteger(1))
    attribute = b.getBoolAttr(value);
  else if (element.isIntOrIndex())
    attribute = b.getIntegerAttr(element, value);
  else
    return {};
  if (auto tensor = llvm::dyn_cast<RankedTensorType>(type))
    attribute = SplatElementsAttr::get(tensor, Attribute(attribute));
  return b.create<arith::ConstantOp>(location, attribute);
}

bool isSingle(func::FuncOp kernel) {
  for (auto grid : kernel.getBody().front().getOps<tile::GridOp>())
    for (Value extent : grid.getExtents())
      if (!matchPattern(extent, m_One()))
        return false;
  return true;
}

void inlineBlock(Operation *op, Block &block, ValueRange replacements) {
  Operation *terminator = block.getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  for (auto [argument, value] : llvm::zip(block.getArguments(), replacements)) {
    for (Value &result : results)
      if (result == argument)
        result = value;
    argument.replaceAllUsesWith(value);
  }
  terminator->erase();
  op->getBlock()->getOperations().splice(op->getIterator(), block.getOperations());
  op->replaceAllUsesWith(results);
  op->erase();
}

/// Applies change `k` to an op; false when there is no such change, nothing when it does not apply.
enum class Applied { Yes, No, NoMore };

Applied change(Operation *op, int k) {
  OpBuilder b(op);
  Location location = op->getLoc();
  auto kernel = op->getParentOfType<func::FuncOp>();
  bool isTerminator = op->hasTrait<OpTrait::IsTerminator>();
  bool inCombine = llvm::isa<tile::ReduceOp, tile::ScanOp>(op->getParentOp());
  if (isTerminator || inCombine)
    return Applied::NoMore;
  switch (k) {
  case 0: // away with it
    if (llvm::isa<tile::GridOp>(op) || !op->use_empty())
      return Applied::No;
    op->erase();
    return Applied::Yes;
  case 1: // a loop that never runs, a grid of one
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
      op->replaceAllUsesWith(loop.getInitArgs());
      op->erase();
      return Applied::Yes;
    }
    if (auto grid = llvm::dyn_cast<tile::GridOp>(op); grid && !isSingle(kernel)) {
      op->setOperands(SmallVector<Value>(op->getNumOperands(), makeConstant(b, location, b.getIndexType(), 1)));
      return Applied::Yes;
    }
    return Applied::No;
  case 2: // one iteration, one branch
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
      SmallVector<Value> values = {loop.getLowerBound()};
      llvm::append_range(values, loop.getInitArgs());
      inlineBlock(op, *loop.getBody(), values);
      return Applied::Yes;
    }
    if (auto branch = llvm::dyn_cast<scf::IfOp>(op)) {
      inlineBlock(op, branch.getThenRegion().front(), {});
      return Applied::Yes;
    }
    return Applied::No;
  case 3:
    if (auto branch = llvm::dyn_cast<scf::IfOp>(op); branch && branch.elseBlock()) {
      inlineBlock(op, *branch.elseBlock(), {});
      return Applied::Yes;
    }
    return Applied::No;
  case 4:
  case 5: { // fewer iterations
    auto loop = llvm::dyn_cast<scf::ForOp>(op);
    if (!loop || matchPattern(loop.getUpperBound(), m_One()))
      return Applied::No;
    loop.setLowerBound(makeConstant(b, location, b.getIndexType(), 0));
    loop.setStep(makeConstant(b, location, b.getIndexType(), 1));
    loop.setUpperBound(makeConstant(b, location, b.getIndexType(), k - 3));
    return Applied::Yes;
  }
  case 6:
  case 7: { // constants for results
    if (op->getNumResults() == 0 || llvm::isa<arith::ConstantOp, tile::GridOp>(op))
      return Applied::No;
    for (Value result : op->getResults())
      if (freedomOf(result) == Fixed || (result.getType().isIndex() && !isSingle(kernel)))
        return Applied::No;
    b.setInsertionPointAfter(op);
    for (Value result : op->getResults())
      if (!result.use_empty()) {
        Value constant = makeConstant(b, location, result.getType(), 7 - k);
        if (!constant)
          return Applied::No;
        result.replaceAllUsesWith(constant);
      }
    return Applied::Yes;
  }
  case 8:
  case 9:
  case 10: { // an operand for the result
    unsigned operand = k - 8;
    if (op->getNumResults() != 1 || operand >= op->getNumOperands() || llvm::isa<tile::GridOp>(op) ||
        op->getOperand(operand).getType() != op->getResult(0).getType() || freedomOf(op->getResult(0)) != Free ||
        (op->getResult(0).getType().isIndex() && !isSingle(kernel)))
      return Applied::No;
    op->getResult(0).replaceAllUsesWith(op->getOperand(operand));
    return Applied::Yes;
  }
  case 11: // at the origin
    if (!llvm::isa<tile::LoadOp, tile::StoreOp>(op) || !isSingle(kernel))
      return Applied::No;
    for (OpOperand &operand : op->getOpOperands())
      if (operand.get().getType().isIndex())
        operand.set(makeConstant(b, location, b.getIndexType(), 0));
    return Applied::Yes;
  case 12: // no mask, no padding
    if (auto load = llvm::dyn_cast<tile::LoadOp>(op); load && load.getPadding() && freedomOf(load) == Free) {
      load.getPaddingMutable().clear();
      return Applied::Yes;
    }
    if (auto gather = llvm::dyn_cast<tile::GatherOp>(op); gather && (gather.getMask() || gather.getPadding())) {
      gather.getMaskMutable().clear();
      gather.getPaddingMutable().clear();
      return Applied::Yes;
    }
    return Applied::No;
  default: return Applied::NoMore;
  }
}

void rowMajor(func::FuncOp kernel, unsigned argument) {
  auto sizes = kernel.getArgAttrOfType<DenseI64ArrayAttr>(argument, sizesAttr);
  if (!sizes)
    return;
  SmallVector<int64_t> strides(sizes.size());
  int64_t next = 1;
  for (size_t d = strides.size(); d-- > 0; next *= std::max<int64_t>(sizes[d], 1))
    strides[d] = next;
  Builder b(kernel.getContext());
  kernel.setArgAttr(argument, stridesAttr, b.getDenseI64ArrayAttr(strides));
  kernel.setArgAttr(argument, tile::unitStrideAttr, b.getI64IntegerAttr(strides.size() - 1));
}

bool isShared(func::FuncOp kernel) {
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (kernel.getArgAttr(i, sharesAttr))
      return true;
  return false;
}

} // namespace

OwningOpRef<ModuleOp> shrink(ModuleOp program, std::function<bool(ModuleOp)> stillFails, int attempts) {
  OwningOpRef<ModuleOp> best(program.clone());
  ScopedDiagnosticHandler quiet(program.getContext(), [](Diagnostic &) { return success(); });
  auto accept = [&](OwningOpRef<ModuleOp> candidate) {
    eraseDead(*candidate);
    if (attempts <= 0 || failed(verify(*candidate)) || !(--attempts, stillFails(*candidate)))
      return false;
    best = std::move(candidate);
    return true;
  };
  auto tryWith = [&](auto edit) {
    OwningOpRef<ModuleOp> candidate(best->clone());
    return edit(*candidate) && accept(std::move(candidate));
  };
  auto cleanUp = [&] {
    return tryWith([](ModuleOp module) {
      PassManager pm(module.getContext());
      pm.addPass(createCanonicalizerPass());
      pm.addPass(createCSEPass());
      return succeeded(pm.run(module));
    });
  };
  accept(OwningOpRef<ModuleOp>(best->clone()));
  for (bool progress = true; progress && attempts > 0;) {
    progress = false;
    // The grid first: with one instance everything may be moved.
    for (size_t i = opsOf(*best).size(); i-- > 0;)
      for (int k = 0;; ++k) {
        if (i >= opsOf(*best).size())
          break;
        Applied applied = Applied::No;
        size_t before = opsOf(*best).size();
        bool smaller = tryWith([&](ModuleOp module) {
          applied = change(opsOf(module)[i], k);
          return applied == Applied::Yes;
        });
        if (applied == Applied::NoMore || attempts <= 0)
          break;
        if (smaller) {
          progress |= opsOf(*best).size() < before || k == 1;
          break;
        }
      }
    func::FuncOp kernel = kernelOf(*best);
    if (!isShared(kernel)) // sharing counts arguments
      for (unsigned i = kernel.getNumArguments(); i-- > 0;)
        if (kernelOf(*best).getArgument(i).use_empty())
          progress |= tryWith([&](ModuleOp module) {
            kernelOf(module).eraseArgument(i);
            return true;
          });
  }
  cleanUp();
  if (!isShared(kernelOf(*best)))
    for (unsigned i = 0; i < kernelOf(*best).getNumArguments(); ++i)
      tryWith([&](ModuleOp module) {
        rowMajor(kernelOf(module), i);
        return true;
      });
  return best;
}

} // namespace tenon::fuzz
