// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-choose-instructions: on sm_90a a dot can run on whole warpgroups, whose operands come straight from
// shared memory, and the tensor memory accelerator can bring them there without a thread's registers. Both are chosen
// here, before layouts, since a dot's instruction decides about its layout.
//
//     %a = tile.load %x[%i, %k] ...              %a = tile.load %x[%i, %k] {nvidia.bulk} ...
//     %d = tile.dot %a, %b, %c             ->    %d = tile.dot %a, %b, %c {nvidia.warpgroup}
//     tile.store %d, %y[%i, %j]                  tile.store %d, %y[%i, %j] {nvidia.bulk}
//
// A dot may have it when its sizes fit and each operand is a load that the accelerator can make, one that threads can
// make an iteration ahead (Ahead.cpp; for rows that begin where the accelerator cannot), or a tile that is computed
// (and written to shared memory by the threads). A load may when the view's facts suffice, only such dots read it,
// nothing in the kernel writes its memory, and another warp can know its address: what that depends on is scalars all
// the way. Dots and loads need each other, so candidates are struck out until nothing changes.
//
// What the operands of such dots are computed from, in their loop, is brought by the accelerator as well, iterations
// ahead; the threads read it where it arrives:
//
//     %w = tile.load %q[%k, %j] ...              %w = tile.load %q[%k, %j] {nvidia.bulk, nvidia.read} ...
//     %b = arith.sitofp %w ...             ->    %b = arith.sitofp %w ...
//     %d = tile.dot %a, %b, %c                   %d = tile.dot %a, %b, %c {nvidia.warpgroup}
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/threads/DotPlan.h"
#include "tenon/compiler/target/nvidia/threads/InPlace.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"
#include "tenon/compiler/target/nvidia/threads/RegisterOperands.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// The accelerator's boxes have at most so many elements along each dimension.
constexpr int64_t largestBox = 256;
/// Accumulators of a thread beside which the sums of f8 that are added to them find registers, in pieces.
constexpr int64_t mostBesideSums = 128, mostBesideSumsOfThree = 64;

ArrayRef<int64_t> shapeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getShape(); }

int64_t elementBytes(Value viewOrTile) {
  Type type = viewOrTile.getType();
  auto view = llvm::dyn_cast<tile::ViewType>(type);
  return lower::byteSize(lower::memoryType(view ? view.getElementType() : getElementTypeOrSelf(type)));
}

/// Why the accelerator cannot address a view; "" when it can.
std::string refuseView(Value view) {
  std::optional<int64_t> contiguous = contiguousDim(view);
  if (!contiguous)
    return "no dimension of the view is known to have stride 1";
  int64_t bytes = elementBytes(view);
  if (bytes > 4)
    return "its elements are wider than 4 bytes";
  ViewAlignment known = alignmentOf(view);
  if (known.bytes % 16)
    return "the view's address is not known to be a multiple of 16 bytes";
  for (size_t d = 0; d < known.strides.size(); ++d)
    if (static_cast<int64_t>(d) != *contiguous && known.strides[d] * bytes % 16)
      return "the view's rows are not known to begin at multiples of 16 bytes";
  if (known.strides.size() > 5)
    return "the view has more than 5 dimensions";
  return "";
}

/// Whether a box at these offsets of a view begins at a multiple of 16 bytes of its rows; the accelerator takes no other.
bool beginsAligned(Value view, OperandRange offsets) {
  return Divisibility().of(offsets[*contiguousDim(view)]) * elementBytes(view) % 16 == 0;
}

/// Why the accelerator cannot make a load, whoever reads it; "" when it can. `isLate`: behind which stores may stand
/// that replace what it read.
std::string refuseTransfer(tile::LoadOp load, bool isLate = false) {
  if (!isZeroPadding(load.getPadding()))
    return "a transfer can pad with zero only";
  if (std::string reason = refuseView(load.getView()); !reason.empty())
    return reason;
  if (!beginsAligned(load.getView(), load.getOffsets()))
    return "the tile is not known to begin at a multiple of 16 bytes of its rows";
  for (auto [d, size] : llvm::enumerate(shapeOf(load)))
    if (static_cast<int64_t>(d) != *contiguousDim(load.getView()) && size > largestBox)
      return "the tile has more than " + std::to_string(largestBox) + " rows";
  if (mayBeWritten(load.getView(), [&](Operation *op) { return isLate && replaces(op, load); }))
    return "the kernel writes memory that may be the same";
  return producerSlice(load).refusal;
}

/// Why the accelerator cannot make a load whose dots are these; "" when it can.
std::string refuseLoad(tile::LoadOp load, ArrayRef<DotUse> uses, Operation *other) {
  if (other)
    return "its tile is also an operand of " + other->getName().getStringRef().str();
  if (std::string reason = refuseTransfer(load); !reason.empty())
    return reason;
  int64_t contiguous = *contiguousDim(load.getView()), bytes = elementBytes(load);
  bool alongK = false;
  for (const DotUse &use : uses) {
    if (!llvm::is_contained(use.operand.dims, contiguous))
      return "the view is contiguous along a dimension of size 1";
    alongK |= use.isK(contiguous);
    if (!use.isK(contiguous) && bytes != 2)
      return "the instruction transposes 16-bit operands only, and memory is not contiguous along K";
  }
  if (!panelBytes(shapeOf(load)[contiguous] * bytes, !alongK))
    return "the tile's rows are no multiple of 32 bytes";
  return "";
}

/// Whether the accelerator can bring a tile to where threads read it: one dimension of rows and one of columns.
bool mayBeReadInSlot(tile::LoadOp load, bool isLate = false) {
  if (!refuseTransfer(load, isLate).empty())
    return false;
  int64_t contiguous = *contiguousDim(load.getView()), rowDims = 0;
  for (auto [d, size] : llvm::enumerate(shapeOf(load)))
    rowDims += static_cast<int64_t>(d) != contiguous && size > 1;
  return rowDims <= 1 && readTile(load).panel;
}

/// The loads of a dot's iteration that its operands are computed from.
SmallVector<tile::LoadOp> loadsComputedWith(tile::DotOp dot) {
  SmallVector<tile::LoadOp> loads;
  llvm::SetVector<Operation *> open;
  auto need = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (Operation *here = op ? dot->getBlock()->findAncestorOpInBlock(*op) : nullptr)
      open.insert(here);
  };
  for (Value operand : {Value(dot.getA()), Value(dot.getB())})
    if (!traceToLoad(operand))
      need(operand);
  for (size_t i = 0; i < open.size(); ++i) {
    if (auto load = llvm::dyn_cast<tile::LoadOp>(open[i]))
      loads.push_back(load);
    else
      open[i]->walk([&](Operation *inside) { llvm::for_each(inside->getOperands(), need); });
  }
  return loads;
}

/// Why a dot cannot run on warpgroups, as far as it itself is concerned; "" when it can.
std::string refuseDot(tile::DotOp dot, const InstructionOptions &options) {
  Type a = dot.getA().getType().getElementType();
  if (!usesMatrixUnit(dot))
    return "its operands are not of a type that the matrix unit multiplies";
  int64_t bytes = lower::byteSize(lower::memoryType(a));
  if (dot.getA().getType().getDimSize(1) * bytes % 32)
    return "K is no multiple of 32 bytes";
  // Computed as columns, the last row would be alone in its pair of accumulators, of which no thread has the other.
  if (int64_t rows = dot.getType().getDimSize(0); rows < 64 && rows % 8 == 1)
    return "its rows are one more than a multiple of 8";
  std::optional<WarpgroupShape> shape = warpgroupShape(dot, options.warps);
  if (!shape)
    return "its sizes are no multiples of the instruction's 64 x 8 over the warpgroups of the block";
  bool promotes = addsInF32(dot);
  int64_t most = options.mostAccumulators;
  if (promotes)
    most = std::min(most, isOfThree(options.warps) ? mostBesideSumsOfThree : mostBesideSums);
  if (shape->accumulators() > most)
    return "a thread would have more than " + std::to_string(most) + " accumulators";
  if (promotes && !shape->fitsTwice() && shape->pieceColumns() % 8)
    return "sums of f8 take as many registers as the accumulators, and half of " + std::to_string(shape->n) +
           " columns is no multiple of 8";
  return "";
}

/// Why the threads cannot make a load an iteration ahead of its dots; "" when they can. For views that the accelerator
/// cannot address.
std::string refuseAhead(tile::LoadOp load, ArrayRef<DotUse> uses, Operation *other) {
  if (other)
    return "its tile is also an operand of " + other->getName().getStringRef().str();
  auto loop = llvm::dyn_cast<scf::ForOp>(load->getParentOp());
  std::optional<int64_t> contiguous = contiguousDim(load.getView());
  if (!loop || !contiguous || elementBytes(load) > 4)
    return "it cannot be made an iteration ahead";
  for (const DotUse &use : uses) {
    tile::DotOp dot = use.dot;
    if (dot->getBlock() != load->getBlock() || !llvm::is_contained(use.operand.dims, *contiguous))
      return "it cannot be made an iteration ahead";
    if (use.isK(*contiguous) ? !panelBytes(shapeOf(load)[*contiguous] * elementBytes(load), /*padded=*/false)
                             : elementBytes(load) != 2)
      return "its tile cannot lie in shared memory as the instruction reads it";
  }
  if (!offsetSlice(load, loop))
    return "its offsets are not a function of the loop's variable alone";
  if (mayBeWritten(load.getView()))
    return "the kernel writes memory that may be the same";
  return "";
}

/// Why an operand that is computed cannot be written to shared memory for the instruction.
std::string refuseComputed(Value operand, bool isA) {
  int64_t k = shapeOf(operand)[isA ? 1 : 0], bytes = elementBytes(operand);
  return panelBytes(k * bytes, false) ? "" : "K is no multiple of 32 bytes";
}

/// Whether what memory holds decides about an index. That it is in range is then the program's business: one that is not
/// ends the launch with an error.
bool isFromMemory(Value index) {
  Operation *op = index.getDefiningOp();
  return llvm::isa_and_nonnull<tile::ScalarOp>(op) ||
         (op && op->getNumRegions() == 0 && llvm::any_of(op->getOperands(), isFromMemory));
}

/// Rows of the tile, if it has one dimension of rows and one of columns and can lie in shared memory as the accelerator
/// reads it, in panels of `panel` bytes; and if it is large enough that this is worth two barriers. 0 otherwise.
int64_t stagedRows(ArrayRef<int64_t> shape, Value view, int64_t panel) {
  int64_t contiguous = *contiguousDim(view), rows = 1;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (static_cast<int64_t>(d) == contiguous)
      continue;
    if (size > 1 && rows > 1)
      return 0;
    rows *= size;
  }
  return panel && rows >= 16 && rows <= largestBox ? rows : 0;
}

/// Whether rows end at multiples of 16 bytes, the units in which they are written.
bool endsAligned(Value view) { return alignmentOf(view).sizes[*contiguousDim(view)] * elementBytes(view) % 16 == 0; }

bool mayStore(tile::StoreOp store) {
  Value view = store.getView();
  auto isReplaced = [&](Operation *op) {
    return llvm::isa<tile::LoadOp>(op) && replaces(store, llvm::cast<tile::LoadOp>(op));
  };
  if (!refuseView(view).empty() || !beginsAligned(view, store.getOffsets()) || mayBeRead(view, isReplaced))
    return false;
  // The accelerator reads before the beginning of a tensor, as zeros, and does not write there.
  if (!llvm::all_of(store.getOffsets(), [](Value offset) { return isNonNegative(offset) || isFromMemory(offset); }))
    return false;
  ArrayRef<int64_t> shape = shapeOf(store.getValue());
  int64_t columns = shape[static_cast<size_t>(*contiguousDim(view))];
  return endsAligned(view) && stagedRows(shape, view, storedPanelBytes(columns * elementBytes(view), columns));
}

/// Whether a scatter writes whole pieces of 16 bytes: rows that somebody chose or left out, contiguous columns.
bool mayStage(tile::ScatterOp scatter, int64_t warps) {
  Value view = scatter.getView();
  if (!refuseView(view).empty() || !endsAligned(view))
    return false;
  ArrayRef<int64_t> shape = shapeOf(scatter.getValue());
  auto contiguous = static_cast<size_t>(*contiguousDim(view));
  int64_t panel = panelBytes(shape[contiguous] * elementBytes(view), /*padded=*/false);
  int64_t rows = stagedRows(shape, view, panel), piece = 16 / elementBytes(view);
  // Each thread writes at least one piece of a panel's rows.
  int64_t groups = scatteringGroups(warps);
  if (rows % groups || !llvm::isPowerOf2_64(static_cast<uint64_t>(rows / groups)) || rows * panel < warps * 32 * 16)
    return false;
  Divisibility divisibility;
  AxisAnalysis axes(divisibility);
  for (auto [d, index] : llvm::enumerate(scatter.getIndices()))
    if (d == contiguous ? axes.of(index).alignedRun(d) < piece : !axes.isConstantInRuns(index, contiguous, piece))
      return false;
  return !scatter.getMask() || axes.isConstantInRuns(scatter.getMask(), contiguous, piece);
}

struct ChooseInstructions : PassWrapper<ChooseInstructions, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChooseInstructions)
  ChooseInstructions(const InstructionOptions &options) {
    warps = options.warps, hasWarpgroups = options.hasWarpgroups, bulkStores = options.bulkStores;
    mostAccumulators = options.mostAccumulators, operandsAhead = options.operandsAhead;
    lateLoads = options.lateLoads, registerOperands = options.registerOperands;
  }
  ChooseInstructions(const ChooseInstructions &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "tenon-nvidia-choose-instructions"; }
  StringRef getDescription() const override { return "Decide which dots run on warpgroups and which loads are bulk copies"; }
  void runOnOperation() override {
    chooseInstructions(getOperation(), {hasWarpgroups, warps, bulkStores, mostAccumulators, operandsAhead, lateLoads,
                                        registerOperands});
  }

  Option<bool> hasWarpgroups{*this, "warpgroups", llvm::cl::desc("sm_90a"), llvm::cl::init(true)};
  Option<int64_t> warps{*this, "warps", llvm::cl::desc("that hold tiles"), llvm::cl::init(4)};
  Option<bool> bulkStores{*this, "bulk-stores", llvm::cl::desc("stores too"), llvm::cl::init(true)};
  Option<int64_t> mostAccumulators{*this, "most-accumulators", llvm::cl::desc("of a thread"), llvm::cl::init(128)};
  Option<bool> operandsAhead{*this, "operands-ahead", llvm::cl::desc("what operands are computed from is loaded ahead"),
                             llvm::cl::init(true)};
  Option<bool> registerOperands{*this, "register-operands", llvm::cl::init(true),
                                llvm::cl::desc("operands that are computed are multiplied out of registers")};
  Option<bool> lateLoads{*this, "late-loads", llvm::cl::desc("what is needed with sums is loaded in pieces"),
                         llvm::cl::init(true)};
};

} // namespace

int64_t panelBytes(int64_t contiguousBytes, bool padded) {
  if (padded)
    return 128;
  for (int64_t bytes : {128, 64, 32})
    if (contiguousBytes % bytes == 0)
      return bytes;
  return 0;
}

int64_t storedPanelBytes(int64_t contiguousBytes, int64_t elements) {
  if (int64_t bytes = panelBytes(contiguousBytes, /*padded=*/false))
    return bytes;
  int64_t pieces = contiguousBytes / 16;
  if (contiguousBytes % 16 || pieces < 3 || elements > largestBox)
    return 0;
  for (int64_t some = 15; some >= 3; some -= 2) // of several panels a slice of the tile can be made
    if (pieces % some == 0)
      return 16 * some;
  return contiguousBytes;
}

OperandTile readTile(tile::LoadOp load) {
  int64_t columns = shapeOf(load)[*contiguousDim(load.getView())], rows = load.getType().getNumElements() / columns;
  int64_t bytes = elementBytes(load), rowBytes = columns * bytes, panel = panelBytes(rowBytes, /*padded=*/false);
  if ((rows == 1 || !panel) && columns <= largestBox)
    panel = rowBytes % 16 ? 0 : rowBytes;
  if (!panel)
    return {};
  OperandTile tile = planPanelTile(rows, columns, bytes, panel);
  if (rows == 1) { // as the row is, in one box
    if (tile.panels() > 1)
      return {};
    tile.paddedRows = 1;
    tile.swizzleMask = 0;
  }
  return tile;
}

std::optional<WarpgroupShape> warpgroupShape(tile::DotOp dot, int64_t warps) {
  if (warps % 4)
    return std::nullopt;
  WarpgroupShape shape;
  shape.rows = dot.getType().getDimSize(0);
  shape.columns = dot.getType().getDimSize(1);
  auto registers = dot->getAttrOfType<BoolAttr>(registersAttr);
  if (shape.rows < 64 || registers) {
    shape.swapped = true;
    std::swap(shape.rows, shape.columns);
    shape.columns = llvm::alignTo(shape.columns, 8);
  }
  if (shape.rows % 64 || shape.columns % 8)
    return std::nullopt;
  shape.overRows = shape.overColumns = 1;
  int64_t groups = warps / 4;
  while (shape.overRows * shape.overColumns < groups) {
    if (groups == 3) { // one below or beside the other: three have no halves
      if (shape.rows % (3 * 64) == 0)
        shape.overRows = 3;
      else if (shape.columns % (3 * 8) == 0)
        shape.overColumns = 3;
      else
        return std::nullopt;
    } else if (shape.rows / 64 % (shape.overRows * 2) == 0)
      shape.overRows *= 2;
    else if (shape.columns % (shape.overColumns * 16) == 0 && llvm::isPowerOf2_64(shape.columns))
      shape.overColumns *= 2;
    else
      return std::nullopt;
  }
  int64_t mine = shape.columns / shape.overColumns;
  bool isInteger = dot.getA().getType().getElementType().isInteger(8);
  if (isInteger && mine % 16 && mine != 8 && mine != 24)
    return std::nullopt;
  shape.n = mine;
  if (int64_t most = widestInstruction(warps); mine > most) {
    shape.n = static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(most)));
    if (mine % shape.n)
      return std::nullopt;
  }
  // Register numbers of a linear layout: several blocks of rows or columns are powers of two of them.
  if (!llvm::isPowerOf2_64(shape.rowBlocks()) ||
      (!llvm::isPowerOf2_64(shape.n) && shape.columnBlocks() * shape.overColumns > 1))
    return std::nullopt;
  shape.neighbours = registers && registers.getValue();
  return shape;
}

bool isTransfer(Operation *op) { return llvm::isa<tile::LoadOp>(op) && op->hasAttr(bulkAttr); }

bool hasTransfer(Operation *op) {
  return op
      ->walk([](Operation *inside) { return isTransfer(inside) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

bool dropSlotReads(func::FuncOp kernel) {
  SmallVector<tile::LoadOp> loads;
  SmallVector<tile::StoreOp> stores;
  bool staysSpecialised = false, hasStaged = false;
  kernel.walk([&](Operation *op) {
    if (op->hasAttr(readAttr))
      loads.push_back(llvm::cast<tile::LoadOp>(op));
    else if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
      stores.push_back(store);
    else
      staysSpecialised |= op->hasAttr(bulkAttr);
    hasStaged |= op->hasAttr(stagedAttr);
  });
  if (loads.empty() || (!staysSpecialised && hasStaged)) // whose layouts are those of staged scatters
    return false;
  for (tile::LoadOp load : loads) {
    load->removeAttr(readAttr);
    load->removeAttr(bulkAttr);
    load->removeAttr(lateAttr);
  }
  if (!staysSpecialised)
    for (tile::StoreOp store : stores)
      store->removeAttr(bulkAttr);
  return true;
}

void chooseInstructions(func::FuncOp kernel, const InstructionOptions &options) {
  if (!options.hasWarpgroups)
    return;
  SmallVector<tile::DotOp> dots;
  kernel.walk([&](tile::DotOp dot) { dots.push_back(dot); });
  SmallVector<OwnLoad> ownLoads;
  if (options.operandsAhead)
    ownLoads = giveDotsLoadsOfTheirOwn(dots);
  llvm::DenseMap<Operation *, std::string> struck; // dots and loads
  for (bool changed = true; changed;) {
    changed = false;
    auto strike = [&](Operation *op, std::string reason) {
      if (!reason.empty() && struck.try_emplace(op, std::move(reason)).second)
        changed = true;
    };
    for (tile::DotOp dot : dots) {
      strike(dot, refuseDot(dot, options));
      for (Value operand : {Value(dot.getA()), Value(dot.getB())}) {
        std::optional<LoadedOperand> loaded = traceToLoad(operand);
        if (!loaded) {
          strike(dot, refuseComputed(operand, operand == dot.getA()));
          continue;
        }
        Operation *other = nullptr;
        SmallVector<DotUse> uses = dotUses(loaded->load, other);
        strike(loaded->load, refuseLoad(loaded->load, uses, other));
        bool isMixed = llvm::any_of(uses, [&](const DotUse &use) { return struck.contains(use.dot); });
        if (isMixed)
          strike(loaded->load, "a dot that reads it does not run on warpgroups");
        auto reason = struck.find(loaded->load);
        if (reason != struck.end() && (isMixed || !refuseAhead(loaded->load, uses, other).empty()))
          strike(dot, "an operand is not loaded by the tensor memory accelerator: " + reason->second);
      }
    }
  }
  bool any = false;
  Builder b(kernel.getContext());
  for (tile::DotOp dot : dots) {
    if (auto reason = struck.find(dot); reason != struck.end()) {
      dot->setAttr(notWarpgroupAttr, b.getStringAttr(reason->second));
      continue;
    }
    dot->setAttr(warpgroupAttr, b.getUnitAttr());
    for (Value operand : {Value(dot.getA()), Value(dot.getB())})
      if (std::optional<LoadedOperand> loaded = traceToLoad(operand)) {
        bool isBulk = !struck.contains(loaded->load);
        loaded->load->setAttr(isBulk ? bulkAttr : aheadAttr, b.getUnitAttr());
        any |= isBulk;
      }
  }
  auto readInSlot = [&](tile::LoadOp load) {
    if (load->hasAttr(bulkAttr) || load->hasAttr(aheadAttr) || !mayBeReadInSlot(load))
      return;
    load->setAttr(bulkAttr, b.getUnitAttr());
    load->setAttr(readAttr, b.getUnitAttr());
    any = true;
  };
  for (OwnLoad load : ownLoads) {
    if (!load.ofDots->hasAttr(bulkAttr) && !load.ofDots->hasAttr(aheadAttr))
      joinLoads(load);
    else if (llvm::isa<scf::ForOp>(load.ofOthers->getParentOp()))
      readInSlot(load.ofOthers);
  }
  for (tile::DotOp dot : dots)
    if (options.operandsAhead && dot->hasAttr(warpgroupAttr) && llvm::isa<scf::ForOp>(dot->getParentOp()))
      llvm::for_each(loadsComputedWith(dot), readInSlot);
  if (options.operandsAhead && options.registerOperands)
    chooseRegisterOperands(dots, options.warps);
  if (any && options.lateLoads)
    kernel.walk([&](tile::LoadOp load) {
      if (load->hasAttr(bulkAttr) || load->hasAttr(aheadAttr) || !mayBeLate(load, options.warps) ||
          !mayBeReadInSlot(load, /*isLate=*/true))
        return;
      for (StringRef attr : {bulkAttr, readAttr, lateAttr})
        load->setAttr(attr, b.getUnitAttr());
    });
  if (any && options.bulkStores)
    kernel.walk([&](Operation *op) {
      if (auto store = llvm::dyn_cast<tile::StoreOp>(op); store && mayStore(store))
        store->setAttr(bulkAttr, b.getUnitAttr());
      if (auto scatter = llvm::dyn_cast<tile::ScatterOp>(op); scatter && mayStage(scatter, options.warps))
        scatter->setAttr(stagedAttr, b.getUnitAttr());
    });
}

std::unique_ptr<Pass> createChooseInstructionsPass(const InstructionOptions &options) {
  return std::make_unique<ChooseInstructions>(options);
}

} // namespace tenon::nvidia
