// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-pipeline-loads: which loads of a loop become asynchronous copies.
//
// A dot reads its operands from shared memory, and cp.async writes there without a thread's registers. A load in a loop
// whose tile is read by dots only (transposed and reshaped as they like, where that moves nothing) can therefore run
// iterations ahead: its offsets are computed again for a later value of the loop's variable. Every condition below is
// one that the copy needs; a load that feeds a dot and does not meet one is told which.
//
//     scf.for %k ... {                                              scf.for %k ... {
//       %a = tile.load %x[%i, %k] ...                    ->           %a = tile.load %x[%i, %k] {nvidia.async} ...
//       %d = tile.dot %a, %b, %c                                      %d = tile.dot %a, %b, %c
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/DotPlan.h"
#include "tenon/compiler/target/nvidia/threads/Passes.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

ArrayRef<int64_t> shapeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getShape(); }

SmallVector<int64_t> dimsAboveOne(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> dims;
  for (auto [d, size] : llvm::enumerate(shape))
    if (size != 1)
      dims.push_back(d);
  return dims;
}

/// A reshape that only adds and removes dimensions of size 1.
bool keepsDimensions(tile::ReshapeOp reshape) {
  auto sizes = [](ArrayRef<int64_t> shape) {
    SmallVector<int64_t> list;
    llvm::copy_if(shape, std::back_inserter(list), [](int64_t size) { return size != 1; });
    return list;
  };
  return sizes(shapeOf(reshape)) == sizes(shapeOf(reshape.getValue()));
}

bool isRelabelling(Operation *op) {
  auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op);
  return llvm::isa<tile::TransposeOp, ConvertOp>(op) || (reshape && keepsDimensions(reshape));
}

void collectUses(Value value, SmallVector<DotUse> &uses, Operation *&other) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isRelabelling(user)) {
      collectUses(user->getResult(0), uses, other);
      continue;
    }
    auto dot = llvm::dyn_cast<tile::DotOp>(user);
    std::optional<LoadedOperand> operand;
    if (dot && use.getOperandNumber() < 2)
      operand = traceToLoad(value);
    if (operand)
      uses.push_back({dot, use.getOperandNumber() == 0 ? 1 : 0, *operand});
    else
      other = user;
  }
}

/// Why a load cannot be asynchronous; "" when it can.
std::string refuse(tile::LoadOp load, ArrayRef<DotUse> uses, Operation *other, int architecture,
                   Divisibility &divisibility) {
  auto loop = llvm::dyn_cast<scf::ForOp>(load->getParentOp());
  if (!loop)
    return "it stands in a branch of the loop";
  if (other)
    return "its tile is also an operand of " + other->getName().getStringRef().str();
  if (!isZeroPadding(load.getPadding()))
    return "a copy can pad with zero only";
  std::optional<int64_t> contiguous = contiguousDim(load.getView());
  if (!contiguous)
    return "no dimension of the view is known to have stride 1";
  int64_t bytes = lower::byteSize(lower::memoryType(load.getType().getElementType()));
  AccessWidth width = accessWidth(load.getView(), load.getOffsets(), shapeOf(load), divisibility);
  if (width.elements * bytes < 4)
    return "a copy moves 4, 8 or 16 bytes, and " + std::string(width.limit);

  std::optional<OperandUse> made;
  for (const DotUse &use : uses) {
    if (!llvm::is_contained(use.operand.dims, *contiguous))
      return "the view is contiguous along a dimension of size 1";
    DotPlan plan = planDot(use.dot, architecture);
    if ((use.kDim == 1 ? plan.stagedA : plan.stagedB) != load.getType().getElementType())
      return plan.limit;
    if (plan.mustRunAlongK() && !use.isK(*contiguous))
      return "8-bit operands are read along K, and memory is contiguous along the other dimension";
    OperandUse needed = useOf(plan, use.isK(*contiguous));
    if (made && *made != needed)
      return "its dots read it in different ways";
    made = needed;
  }
  if (!offsetSlice(load, loop))
    return "its offsets are not a function of the loop's variable alone";

  std::string reason;
  auto kernel = load->getParentOfType<func::FuncOp>();
  loop.walk([&](Operation *op) {
    if (llvm::isa<tile::AtomicRMWOp, tile::AtomicCASOp>(op))
      reason = "an atomic in the loop may wait for what another instance writes";
    if (Value written = lower::viewWrittenBy(op); written && mayOverlap(kernel, written, load.getView()))
      reason = "the loop writes memory that may be the same";
  });
  return reason;
}

struct PipelineLoads : PassWrapper<PipelineLoads, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PipelineLoads)
  PipelineLoads(int64_t stages_, int architecture_) { stages = stages_, architecture = architecture_; }
  PipelineLoads(const PipelineLoads &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "tenon-nvidia-pipeline-loads"; }
  StringRef getDescription() const override { return "Decide which loads of a loop run ahead of it"; }
  void runOnOperation() override { markAsyncLoads(getOperation(), stages, architecture); }

  Option<int64_t> stages{*this, "stages", llvm::cl::desc("buffers of the ring"), llvm::cl::init(3)};
  Option<int> architecture{*this, "architecture", llvm::cl::desc("80 for sm_80, ..."), llvm::cl::init(90)};
};

} // namespace

std::optional<LoadedOperand> traceToLoad(Value operand) {
  LoadedOperand found{{}, {0, 1}};
  for (Operation *op = operand.getDefiningOp(); op; op = op->getOperand(0).getDefiningOp()) {
    if (auto load = llvm::dyn_cast<tile::LoadOp>(op)) {
      found.load = load;
      return found;
    }
    if (!isRelabelling(op))
      return std::nullopt;
    for (int64_t &dim : found.dims) {
      if (dim < 0)
        continue;
      if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op)) {
        dim = transpose.getPermutation()[dim];
      } else if (llvm::isa<tile::ReshapeOp>(op)) {
        SmallVector<int64_t> to = dimsAboveOne(shapeOf(op->getResult(0)));
        SmallVector<int64_t> from = dimsAboveOne(shapeOf(op->getOperand(0)));
        auto place = llvm::find(to, dim);
        dim = place == to.end() ? -1 : from[place - to.begin()];
      }
    }
  }
  return std::nullopt;
}

bool isZeroPadding(Value padding) {
  if (!padding)
    return true;
  FloatAttr number;
  if (matchPattern(padding, m_Constant(&number)))
    return number.getValue().isPosZero();
  return matchPattern(padding, m_Zero());
}

SmallVector<DotUse> dotUses(tile::LoadOp load, Operation *&other) {
  SmallVector<DotUse> uses;
  other = nullptr;
  collectUses(load, uses, other);
  return uses;
}

std::optional<SmallVector<Operation *>> offsetSlice(tile::LoadOp load, scf::ForOp loop) {
  llvm::SmallPtrSet<Operation *, 16> members;
  SmallVector<Value> open(load.getOffsets());
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (value == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(value))
      continue;
    Operation *op = value.getDefiningOp();
    bool isScalar = op && llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
    bool isKnown = isScalar && (lower::isElementwise(op) || llvm::isa<arith::ConstantOp, tile::SizeOp>(op));
    if (!isKnown || op->getBlock() != loop.getBody())
      return std::nullopt;
    if (members.insert(op).second)
      llvm::append_range(open, op->getOperands());
  }
  SmallVector<Operation *> slice;
  for (Operation &op : *loop.getBody())
    if (members.contains(&op))
      slice.push_back(&op);
  return slice;
}

void markAsyncLoads(func::FuncOp kernel, int64_t stages, int architecture) {
  Divisibility divisibility;
  kernel.walk([&](tile::LoadOp load) {
    load->removeAttr(asyncAttr);
    load->removeAttr(notAsyncAttr);
    Operation *other = nullptr;
    SmallVector<DotUse> uses = dotUses(load, other);
    if (uses.empty() || load->hasAttr(bulkAttr) || load->hasAttr(aheadAttr) || !load->getParentOfType<scf::ForOp>())
      return;
    std::string reason = stages < 2 ? "there is one stage only" : refuse(load, uses, other, architecture, divisibility);
    OpBuilder b(load);
    if (reason.empty())
      load->setAttr(asyncAttr, b.getUnitAttr());
    else
      load->setAttr(notAsyncAttr, b.getStringAttr(reason));
  });
}

std::unique_ptr<Pass> createPipelineLoadsPass(int64_t stages, int architecture) {
  return std::make_unique<PipelineLoads>(stages, architecture);
}

} // namespace tenon::nvidia
