// SPDX-License-Identifier: Apache-2.0
//
// Stores that the tensor memory accelerator makes: the tile is written to shared memory in panels, and the store goes
// on while the threads begin with the next program instance. Bounds are the accelerator's business.
//
//     one thread: wait until the store before has read its panels;  barrier
//     write the panels;  fence towards the accelerator;             barrier
//     one thread: start the store of each panel
//
// Where each warpgroup holds whole rows, or whole panels, of the tile, each does this for itself with a barrier of its
// own. A large tile goes in slices of a panel or more, one after the other through two buffers (or one): what memory that saves
// is another slot of a ring, and the first slice is on its way while the next one is computed.
#include "tenon/compiler/target/nvidia/threads/Rings.h"
#include "tenon/compiler/target/nvidia/threads/Staging.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

Parts partsOf(const Distribution &tile, int64_t rowDim, int64_t columnDim, int64_t groups, int64_t panelElements) {
  Parts parts;
  if (groups == 1 || groups > 3)
    return parts;
  for (const Distribution::ThreadBit &bit : tile.threadBits()) {
    if (bit.bit != 7) // from the first warpgroup to the second; to the third it is twice as far
      continue;
    if (bit.dim == rowDim && bit.step * groups == tile.shape()[rowDim] && bit.step % 8 == 0)
      parts.rows = groups;
    else if (bit.dim == columnDim && bit.step * groups == tile.shape()[columnDim] && bit.step % panelElements == 0)
      parts.columns = groups;
  }
  return parts;
}

/// Shared memory beyond which a tile is stored in slices, and which the buffers of those have together. Where teams take
/// turns the other one multiplies meanwhile, and nobody waits for a store: one panel, and more slots of the rings.
struct StagingLimit {
  int64_t bytes = 32 * 1024, buffers = 2;
};
constexpr StagingLimit ofTeam = {0, 1};

/// Panels that are not swizzled begin and end within units of 32 bytes, which memory writes in parts: whole rows are
/// worth a slot of the rings, but not two.
constexpr int64_t mostForWholeRows = 56 * 1024;

/// How many panels a slice has: all of them, where a register's element may be in several or memory is enough.
int64_t panelsOfSlice(const Distribution &matrix, const OperandTile &tile, int64_t columnDim, Parts parts,
                      StagingLimit limit) {
  int64_t all = tile.panels() / parts.columns, each = all;
  if (tile.bytes() <= limit.bytes || parts.columns > 1)
    return all;
  for (const Distribution::ThreadBit &bit : matrix.threadBits())
    if (bit.dim == columnDim && bit.step >= tile.panel / tile.elementBytes)
      return all;
  while (each > 1 && (all % each || limit.buffers * each * tile.panelSize() > limit.bytes))
    --each;
  return each;
}

/// Whether two operations are on the two sides of a branch.
bool areAlternatives(Operation *a, Operation *b) {
  for (auto branch = a->getParentOfType<scf::IfOp>(); branch; branch = branch->getParentOfType<scf::IfOp>()) {
    Region &then = branch.getThenRegion(), &otherwise = branch.getElseRegion();
    bool inThen = then.isAncestor(a->getParentRegion());
    if ((inThen ? otherwise : then).isAncestor(b->getParentRegion()))
      return true;
  }
  return false;
}

} // namespace

StoredTile stagingOf(Value value, Value view) {
  ArrayRef<int64_t> shape = llvm::cast<RankedTensorType>(value.getType()).getShape();
  int64_t columnDim = *contiguousDim(view), rowDim = columnDim ? 0 : 1;
  for (auto [d, size] : llvm::enumerate(shape))
    if (static_cast<int64_t>(d) != columnDim && size > 1)
      rowDim = static_cast<int64_t>(d);
  int64_t bytes = byteSize(memoryType(llvm::cast<tile::ViewType>(view.getType()).getElementType()));
  int64_t panel = storedPanelBytes(shape[columnDim] * bytes, shape[columnDim]);
  return {planPanelTile(shape[rowDim], shape[columnDim], bytes, panel), rowDim, columnDim};
}

ThreadEmitter::StorePlan ThreadEmitter::planStore(Value value, Value view) {
  StorePlan plan{stagingOf(value, view), {}, 0, 1, 1};
  OperandTile &tile = plan.stored.tile;
  const Distribution &matrix = distribution(value);
  bool isApart = llvm::any_of(matrix.threadBits(), [&](const Distribution::ThreadBit &bit) {
    return bit.dim == plan.stored.columnDim && bit.step * tile.elementBytes >= 16;
  });
  bool affordsRows = options_.wholeRows && options_.teams * tile.bytes() <= mostForWholeRows;
  // Apart: which panel an element is in would depend on thread and register together.
  if ((isApart || affordsRows) && !tile.swizzleMask) {
    storesWholeRows_ |= !isApart;
    tile = planPanelTile(tile.rows, tile.columns, tile.elementBytes, tile.columns * tile.elementBytes);
  }
  plan.parts = partsOf(matrix, plan.stored.rowDim, plan.stored.columnDim, options_.threads / 128,
                       tile.panel / tile.elementBytes);
  StagingLimit limit = options_.teams > 1 ? ofTeam : StagingLimit();
  int64_t all = tile.panels() / plan.parts.columns;
  plan.panels = options_.steps.slices ? panelsOfSlice(matrix, tile, plan.stored.columnDim, plan.parts, limit) : all;
  plan.slices = all / plan.panels;
  plan.buffers = std::min<int64_t>(plan.slices, limit.buffers);
  return plan;
}

/// Memory of their own: the accelerator may still read it when the threads are in the next program instance. Of two
/// sides of a branch one runs, and they have it together.
void ThreadEmitter::planBulkStores() {
  SmallVector<std::pair<Operation *, StorePlan>> planned;
  auto place = [&](Operation *op, Value value, Value view) {
    StorePlan plan = planStore(value, view);
    auto isLike = [&](const std::pair<Operation *, StorePlan> &other) {
      return other.second.parts == plan.parts && other.second.slices == plan.slices &&
             other.second.sliceBytes() == plan.sliceBytes() && areAlternatives(other.first, op);
    };
    if (auto same = llvm::find_if(planned, isLike); same != planned.end()) {
      bulkStaging_[op] = bulkStaging_.lookup(same->first);
    } else {
      b_.setLoc(op->getLoc());
      bulkStaging_[op] = {allocateShared(plan.buffers * plan.sliceBytes(), panelAlignment), newGroup()};
      savedBySlices_ += llvm::alignTo((plan.slices - plan.buffers) * plan.sliceBytes(), panelAlignment);
    }
    planned.emplace_back(op, plan);
  };
  kernel_.walk([&](Operation *op) {
    if (auto store = llvm::dyn_cast<tile::StoreOp>(op); store && store->hasAttr(bulkAttr))
      place(op, store.getValue(), store.getView());
    if (auto scatter = llvm::dyn_cast<tile::ScatterOp>(op); scatter && scatter->hasAttr(stagedAttr))
      place(op, scatter.getValue(), scatter.getView());
  });
}

/// By one thread of each group that waits for itself: the one that starts its stores.
void ThreadEmitter::byOneOfGroup(int64_t groups, llvm::function_ref<void()> body) {
  Value isOne = groups > 1 ? warpgroupLeader()
                           : b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadId_, i32(0)).getResult();
  auto only = b_.create<scf::IfOp>(isOne);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(only.thenBlock());
  body();
}

/// Waits for the threads of this warpgroup; the number of a barrier is part of the instruction.
void ThreadEmitter::groupBarrier(Value group, int64_t groups) {
  if (groups == 1) {
    b_.create<BarrierOp>(workerBarrier, static_cast<int32_t>(options_.threads));
    return;
  }
  OpBuilder::InsertionGuard guard(b_);
  for (int32_t number = 0; number < groups; ++number) {
    if (number + 1 < groups) {
      Value isIt = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, group, i32(number));
      auto which = b_.create<scf::IfOp>(isIt, /*withElseRegion=*/true);
      b_.setInsertionPointToStart(which.thenBlock());
      b_.create<BarrierOp>(firstGroupBarrier + number, 128);
      b_.setInsertionPointToStart(which.elseBlock());
    } else {
      b_.create<BarrierOp>(firstGroupBarrier + number, 128);
    }
  }
}

/// Until the accelerator has read what the slice's buffer held before, for all who will write there.
void ThreadEmitter::awaitBuffer(const StorePlan &plan, int64_t slice) {
  // Its last slice is as many stores ago as there are buffers, or in the last instance one fewer.
  bool isNewest = slice == 0 && plan.slices % plan.buffers != 0;
  byOneOfGroup(plan.groups(), [&] {
    b_.create<BulkWaitOp>(isNewest ? 0 : static_cast<int32_t>(plan.buffers - 1), /*read=*/true);
  });
  groupBarrier(b_.create<arith::ShRUIOp>(threadId_, i32(7)), plan.groups());
}

void ThreadEmitter::awaitFirstBuffer(tile::StoreOp op) {
  awaitBuffer(planStore(op.getValue(), op.getView()), 0);
  awaited_.insert(op);
}

/// The first store behind a loop, where nothing stands between that could store as well.
tile::StoreOp ThreadEmitter::storeBehind(scf::ForOp loop) {
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode()) {
    if (auto store = llvm::dyn_cast<tile::StoreOp>(op); store && bulkStaging_.contains(op))
      return store;
    if (op->getNumRegions() || bulkStaging_.contains(op))
      return {};
  }
  return {};
}

void ThreadEmitter::emitBulkStore(tile::StoreOp op) {
  Value value = op.getValue();
  const Distribution &matrix = distribution(value);
  Type element = llvm::cast<tile::ViewType>(op.getView().getType()).getElementType();
  StorePlan plan = planStore(value, op.getView());
  auto [tile, rowDim, columnDim] = plan.stored;
  int64_t bytes = tile.elementBytes, panel = tile.panel, rows = tile.rows;
  auto [staging, writes] = bulkStaging_.lookup(op); // one exchange for all slices: the barriers between them are here
  Parts parts = plan.parts;
  int64_t groups = plan.groups();
  SmallVector<int64_t> dims = {columnDim}, box = {panel / bytes};
  for (int64_t d = matrix.rank() - 1; d >= 0; --d)
    if (d != columnDim) {
      dims.push_back(d);
      box.push_back(d == rowDim ? rows / parts.rows : 1);
    }
  int map = tensorMap(op.getView(), dims, box, tile.swizzleBytes());

  Value group = b_.create<arith::ShRUIOp>(threadId_, i32(7));
  auto byOne = [&](llvm::function_ref<void()> body) { byOneOfGroup(groups, body); };
  for (int64_t slice = 0; slice < plan.slices; ++slice) {
    int64_t begin = staging + slice % plan.buffers * plan.sliceBytes(), firstPanel = slice * plan.panels;
    SharedWindow window{begin, begin + plan.sliceBytes()};
    if (slice || !awaited_.contains(op))
      awaitBuffer(plan, slice);
    ColumnRange columns;
    if (plan.slices > 1)
      columns = {slice * plan.sliceColumns(), (slice + 1) * plan.sliceColumns()};
    writeMatrix(value, element, tile, begin, rowDim, columnDim, window, writes, columns);
    b_.create<FenceOp>(FenceKind::proxy_async);
    groupBarrier(group, groups);
    auto start = [&] {
      Value source = b_.create<TensorMapOp>(b_.getI64Type(), static_cast<uint32_t>(map));
      for (int64_t number = 0; number < plan.panels; ++number) {
        Value shared = i32(begin + number * tile.panelSize());
        if (parts.rows > 1)
          shared = b_.create<arith::AddIOp>(shared, b_.create<arith::MulIOp>(group, i32(rows / parts.rows * panel)));
        if (parts.columns > 1)
          shared = b_.create<arith::AddIOp>(shared,
                                            b_.create<arith::MulIOp>(group, i32(plan.panels * tile.panelSize())));
        SmallVector<Value> coordinates;
        for (int64_t dim : dims) {
          Value at = boxCoordinate(op.getOffsets()[dim]);
          if (dim == columnDim) {
            at = b_.create<arith::AddIOp>(at, i32((firstPanel + number) * panel / bytes));
            if (parts.columns > 1)
              at = b_.create<arith::AddIOp>(at, b_.create<arith::MulIOp>(group, i32(plan.panels * panel / bytes)));
          } else if (dim == rowDim && parts.rows > 1) {
            at = b_.create<arith::AddIOp>(at, b_.create<arith::MulIOp>(group, i32(rows / parts.rows)));
          }
          coordinates.push_back(at);
        }
        b_.create<TmaStoreOp>(source, coordinates, shared, b_.getDenseI64ArrayAttr({window.begin, window.end}),
                              IntegerAttr());
      }
    };
    byOne([&] {
      // An instance that only its cluster has stages its tile, too, and stores nothing: a branch around all of it would
      // be one in front of which everything is computed that is staged. Groups are counted by buffers, so there is an
      // empty one.
      OpBuilder::InsertionGuard guard(b_);
      scf::IfOp live = isLive_ ? b_.create<scf::IfOp>(isLive_) : scf::IfOp();
      if (live)
        b_.setInsertionPointToStart(live.thenBlock());
      start();
      if (live)
        b_.setInsertionPointAfter(live);
      b_.create<BulkCommitOp>();
    });
  }
  remark(op.getLoc(), "store is made by the tensor memory accelerator, through " +
                          std::to_string(plan.buffers * plan.sliceBytes()) + " bytes of shared memory" +
                          (plan.slices > 1 ? ", in " + std::to_string(plan.slices) + " slices" : ""));
}

} // namespace tenon::nvidia
