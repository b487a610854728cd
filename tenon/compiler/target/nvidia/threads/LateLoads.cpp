// SPDX-License-Identifier: Apache-2.0
//
// Large tiles that are needed behind a loop of dots (a residual, a gate) come through the tensor memory accelerator,
// panel by panel: each thread has the elements that belong to its sums, and has few of them at a time.
//
//     %sum = scf.for ... tile.dot ...           for each panel of the stored tile, in order:
//     %x = tile.load %r[%i, %j] ...               wait until the panel's slot is full
//     tile.store %sum + %x, %y[%i, %j]    ->      x = this thread's elements of it;  its warp: the slot is empty
//                                                 write sum + x to the panel's staging, store it
//
// All such loads of a block of the program share one ring, in one order: that of their first users, and of columns. The
// threads read in that order wherever they read, so that nobody waits for a slot that is taken by what comes later.
// Emission has all reads where the loads stand; sinkLateReads() moves them down to where the first of their values is
// needed, but not past a wait for other transfers, which whoever loads may start behind these.
//
// Whoever loads for the dots would wait with the next instance's operands until these slots are free: the late ones are
// another thread's.
//
// Where warpgroups take instances in turns, each has a slot of its own, into which its panels come while the other one
// multiplies; who loads goes from one to the other with each instance. Narrow panels: a thread has a whole row of sums.
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/Rings.h"
#include "tenon/compiler/target/nvidia/threads/Staging.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

/// Elements of a thread from which on they are worth slots.
constexpr int64_t leastRegisters = 16;
/// A panel of a tile of more rows is half as wide, ...
constexpr int64_t rowsOfWidePanels = 128;
/// ... and so is one of more tiles than that, of which a thread has elements at the same time.
constexpr int64_t mostOfWidePanels = 2;
/// Where warpgroups take turns: registers of a thread that hold elements of one panel.
constexpr int64_t registersInTurns = 8;
/// A slot of a ring less than these costs the dots more (two of 256 x 128: half of their speed) than a second slot of
/// panels is worth.
constexpr int64_t slotsOfDots = 3;
constexpr int64_t sharedBytesOfBlock = 227 * 1024; // on sm_90a

/// Whether the dot stands for itself, or one in the loop's iterations does, with sums of that shape.
tile::DotOp dotWithSums(Operation *op, ArrayRef<int64_t> shape) {
  auto isIt = [&](tile::DotOp dot) { return dot->hasAttr(warpgroupAttr) && dot.getType().getShape() == shape; };
  if (auto dot = llvm::dyn_cast<tile::DotOp>(op))
    return isIt(dot) ? dot : tile::DotOp();
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op))
    for (tile::DotOp dot : loop.getBody()->getOps<tile::DotOp>())
      if (isIt(dot))
        return dot;
  return {};
}

/// The first op of the load's block that makes something visible, or decides something, of what is computed from it.
Operation *firstUser(tile::LoadOp load) {
  llvm::SetVector<Operation *> open;
  Operation *first = nullptr;
  open.insert(load);
  for (size_t i = 0; i < open.size(); ++i)
    for (Operation *user : open[i]->getUsers()) {
      Operation *here = load->getBlock()->findAncestorOpInBlock(*user);
      if (here && here->getNumRegions() == 0 && isMemoryEffectFree(here) && !here->hasTrait<OpTrait::IsTerminator>())
        open.insert(here);
      else if (here && (!first || here->isBeforeInBlock(first)))
        first = here;
    }
  return first;
}

} // namespace

tile::DotOp dotBefore(tile::LoadOp load) {
  for (Operation *op = load->getPrevNode(); op; op = op->getPrevNode())
    if (tile::DotOp dot = dotWithSums(op, load.getType().getShape()))
      return dot;
  return {};
}

bool mayBeLate(tile::LoadOp load, int64_t warps) {
  tile::DotOp dot = dotBefore(load);
  auto bytes = [&] { return load.getType().getDimSize(1) * byteSize(memoryType(load.getType().getElementType())); };
  return dot && !warpgroupShape(dot, warps)->swapped && contiguousDim(load.getView()) == 1 &&
         panelBytes(bytes(), /*padded=*/false) && load.getType().getNumElements() >= leastRegisters * warps * 32;
}

OperandTile lateTile(tile::LoadOp load) {
  ArrayRef<int64_t> shape = load.getType().getShape();
  int64_t bytes = byteSize(memoryType(load.getType().getElementType())), panel = panelBytes(shape[1] * bytes, false);
  int64_t together = llvm::count_if(load->getBlock()->getOps<tile::LoadOp>(),
                                    [](tile::LoadOp other) { return other->hasAttr(lateAttr); });
  for (bool isTooMuch : {shape[0] > rowsOfWidePanels, together > mostOfWidePanels})
    if (isTooMuch && panel > 32)
      panel /= 2;
  return planPanelTile(shape[0], shape[1], bytes, panel);
}

OperandTile narrowed(const OperandTile &tile, int64_t threads) {
  int64_t panel = tile.panel;
  while (panel > 32 && tile.rows * panel > registersInTurns * 4 * threads)
    panel /= 2;
  return planPanelTile(tile.rows, tile.columns, tile.elementBytes, panel);
}

/// In which order panels come, and how large a slot is.
void ThreadEmitter::planLate(Ring &ring) {
  llvm::DenseMap<Operation *, Operation *> users;
  for (auto [number, transfer] : llvm::enumerate(ring.transfers)) {
    tile::LoadOp load = transfer.load;
    const OperandTile &tile = transfer.tile;
    users[load] = firstUser(load);
    transfer.begin = 0;
    int64_t together = 1, apart = 1; // where warpgroups have different columns: a panel of each
    for (const Distribution::ThreadBit &bit : distribution(load).threadBits())
      if (bit.dim == 1 && bit.step * tile.elementBytes >= tile.panel) {
        together *= 2;
        apart = std::max(apart, bit.step * tile.elementBytes / tile.panel);
      }
    if (together > 2 || together * apart != tile.panels())
      together = together > 1 ? tile.panels() : 1, apart = 1;
    for (int64_t panel = 0; panel < (together > 1 ? apart : tile.panels()); ++panel)
      ring.steps.push_back({number, panel, together, apart});
    ring.slotBytes = std::max(ring.slotBytes, together * tile.panelSize());
  }
  auto isBefore = [&](const LateStep &one, const LateStep &other) {
    Transfer &a = ring.transfers[one.transfer], &b = ring.transfers[other.transfer];
    Operation *mine = users[a.load], *others = users[b.load];
    if (mine != others)
      return mine && (!others || mine->isBeforeInBlock(others));
    int64_t columns = one.panel * a.tile.panel / a.tile.elementBytes,
            ofOther = other.panel * b.tile.panel / b.tile.elementBytes;
    return std::pair(columns, one.transfer) < std::pair(ofOther, other.transfer);
  };
  llvm::sort(ring.steps, isBefore);
  if (options_.teams > 1) {
    ring.stages = options_.teams;
    return;
  }
  int64_t beside = 0;
  for (auto &other : rings_)
    if (other->transfers.front().load->getParentOfType<scf::ForOp>() && other.get() != &ring)
      for (const Transfer &transfer : other->transfers)
        beside += std::min(slotsOfDots, options_.stages) * llvm::alignTo(transfer.tile.bytes(), panelAlignment);
  kernel_.walk([&](tile::StoreOp store) {
    if (!store->hasAttr(bulkAttr))
      return;
    StorePlan plan = planStore(store.getValue(), store.getView());
    beside += plan.buffers * plan.sliceBytes();
  });
  constexpr int64_t ofBarriers = 1024;
  bool isRoom = beside + 2 * ring.slotBytes + ofBarriers <= sharedBytesOfBlock;
  ring.stages = isRoom ? std::min<int64_t>(static_cast<int64_t>(ring.steps.size()), 2) : 1;
}

/// The phase of the next slot. In turns each slot is a team's, which takes it several times in a row: a bit for each.
template <class Ring> static Value phaseOf(ImplicitLocOpBuilder &b, const Ring &ring, int64_t teams) {
  if (teams == 1)
    return ring.phase;
  auto one = b.create<arith::ConstantIntOp>(1, 32);
  return b.create<arith::AndIOp>(b.create<arith::ShRUIOp>(ring.phase, ring.slot), one);
}

void ThreadEmitter::startLate(Ring &ring) {
  for (const LateStep &step : ring.steps) {
    Transfer &transfer = ring.transfers[step.transfer];
    b_.setLoc(transfer.load.getLoc());
    Value before = b_.create<arith::XOrIOp>(phaseOf(b_, ring, options_.teams), i32(1));
    b_.create<MbarrierWaitOp>(barrierAt(ring.empty, ring.slot), before);
    b_.create<MbarrierArriveOp>(barrierAt(ring.full, ring.slot), i32(step.panels * transfer.tile.panelSize()),
                                /*cluster=*/false);
    Value slot = b_.create<arith::MulIOp>(ring.slot, i32(ring.slotBytes));
    for (int64_t i = 0; i < step.panels; ++i) {
      int64_t panel = step.panel + i * step.apart; // where it would be if all were there, and where it is to be
      int64_t moved = (i - panel) * transfer.tile.panelSize();
      startPanels(ring, transfer, transfer.map, b_.create<arith::AddIOp>(slot, i32(ring.window.begin + moved)), {},
                  panel, panel + 1);
    }
    advance(ring);
  }
  if (options_.teams > 1) // the next instance is the other's
    ring.slot = b_.create<arith::XOrIOp>(ring.slot, i32(1));
}

/// The registers of all loads of the ring, each step's in one run of operations.
void ThreadEmitter::readLate(Ring &ring) {
  SmallVector<ThreadPlaces> places;
  for (Transfer &transfer : ring.transfers) {
    const Distribution &matrix = distribution(transfer.load);
    registers(transfer.load) = Registers(matrix.registers());
    places.push_back(placesIn(transfer.tile, matrix, transfer.rowDim, transfer.columnDim));
  }
  for (const LateStep &step : ring.steps) {
    const Transfer &transfer = ring.transfers[step.transfer];
    tile::LoadOp load = transfer.load;
    const Distribution &matrix = distribution(load);
    const OperandTile &tile = transfer.tile;
    b_.setLoc(load.getLoc());
    Operation *before = b_.create<arith::ConstantIntOp>(0, 1);
    auto wait = b_.create<MbarrierWaitOp>(barrierAt(ring.full, ring.slot), phaseOf(b_, ring, options_.teams));
    wait->setAttr(lateAttr, b_.getUnitAttr());
    ThreadPlaces here = places[step.transfer];
    here.base = b_.create<arith::AddIOp>(here.base, b_.create<arith::MulIOp>(ring.slot, i32(ring.slotBytes)));
    Type element = typeOf(load).getElementType(), memory = memoryType(element);
    int64_t width = std::min(16 / tile.elementBytes, matrix.consecutive(1)), perPanel = tile.panel / tile.elementBytes;
    ColumnRange columns{step.panel * perPanel, (step.panel + (step.apart > 1 ? 1 : step.panels)) * perPanel};
    if (step.apart > 1) { // the second panel follows the first
      Value panel = b_.create<arith::DivUIOp>(threadCoords(matrix)[1], i32(perPanel * step.apart));
      here.base = b_.create<arith::SubIOp>(here.base,
                                           b_.create<arith::MulIOp>(panel, i32((step.apart - 1) * tile.panelSize())));
    }
    Type moved = width == 1 ? memory : VectorType::get({width}, memory);
    for (int reg = 0; reg < matrix.registers(); reg += static_cast<int>(width)) {
      if (!matrix.exists(reg) || !columns.contains(matrix.offset(reg)[1]))
        continue;
      auto [at, constant] = matrixPlace(here, tile, matrix.offset(reg)[0], matrix.offset(reg)[1] - columns.begin);
      Value raw = loadShared(moved, at, ring.window.begin + constant, holdsElement(matrix, reg), ring.window, -1);
      unpack(raw, element, MutableArrayRef<Value>(registers(load)).slice(reg, width), /*byWords=*/true);
    }
    arriveByWarp(barrierAt(ring.empty, ring.slot));
    advance(ring);
    SmallVector<Operation *> &run = lateReads_.emplace_back();
    Operation *end = b_.getInsertionPoint() == b_.getInsertionBlock()->end() ? nullptr : &*b_.getInsertionPoint();
    for (Operation *op = before->getNextNode(); op != end; op = op->getNextNode())
      run.push_back(op);
    before->erase();
  }
}

namespace {

/// Moves runs of operations, and pure ones that need them, down to in front of the first that needs those.
class LateSinker {
public:
  explicit LateSinker(ArrayRef<SmallVector<Operation *>> runs) : runs_(runs) {
    for (auto [number, run] : llvm::enumerate(runs))
      for (Operation *op : run)
        runOf_[op] = number;
  }

  void sink(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (runOf_.contains(&op)) {
        open_.insert(&op);
        continue;
      }
      bool waits = op.walk([](MbarrierWaitOp) { return WalkResult::interrupt(); }).wasInterrupted();
      if (waits || op.hasTrait<OpTrait::IsTerminator>()) {
        SmallVector<Operation *> all(open_.begin(), open_.end());
        for (Operation *each : all)
          place(each, &op);
      } else if (needsOpen(&op) && isMemoryEffectFree(&op) && op.getNumRegions() == 0) {
        open_.insert(&op);
      } else {
        placeOperands(&op, &op);
      }
    }
  }

private:
  bool needsOpen(Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && open_.contains(operand.getDefiningOp());
    });
  }

  void placeOperands(Operation *user, Operation *before) {
    user->walk([&](Operation *inside) {
      for (Value operand : inside->getOperands())
        if (Operation *definition = operand.getDefiningOp())
          place(definition, before);
    });
  }

  void place(Operation *op, Operation *before) {
    if (!open_.contains(op))
      return;
    auto run = runOf_.find(op);
    // Whoever loads starts the runs in their order, those of different rings too: nobody may wait for a later one
    // first.
    for (size_t earlier = 0; run != runOf_.end() && earlier < run->second; ++earlier)
      place(runs_[earlier].front(), before);
    ArrayRef<Operation *> together = run == runOf_.end() ? ArrayRef(op) : ArrayRef(runs_[run->second]);
    for (Operation *each : together)
      open_.remove(each);
    for (Operation *each : together) {
      placeOperands(each, before);
      each->moveBefore(before);
    }
  }

  ArrayRef<SmallVector<Operation *>> runs_;
  llvm::DenseMap<Operation *, size_t> runOf_;
  llvm::SetVector<Operation *> open_; ///< not yet placed, in program order
};

} // namespace

void ThreadEmitter::sinkLateReads() {
  llvm::SetVector<Block *> blocks;
  for (const SmallVector<Operation *> &run : lateReads_)
    blocks.insert(run.front()->getBlock());
  LateSinker sinker(lateReads_);
  for (Block *block : blocks)
    sinker.sink(*block);
}

} // namespace tenon::nvidia
