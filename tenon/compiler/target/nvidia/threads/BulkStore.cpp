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
// own.
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

/// How warpgroups divide a tile: into `rows` x `columns` parts of whole rows and panels, or 1 x 1 when they do not.
struct Parts {
  int64_t rows = 1, columns = 1;
};

Parts partsOf(const Distribution &tile, int64_t rowDim, int64_t columnDim, int64_t groups, int64_t panelElements) {
  Parts parts;
  if (groups == 1 || groups > 2)
    return parts;
  for (const Distribution::ThreadBit &bit : tile.threadBits()) {
    if (bit.bit < 7)
      continue;
    if (bit.dim == rowDim && bit.step * 2 == tile.shape()[rowDim] && bit.step % 8 == 0)
      parts.rows = 2;
    else if (bit.dim == columnDim && bit.step * 2 == tile.shape()[columnDim] && bit.step % panelElements == 0)
      parts.columns = 2;
  }
  return parts;
}

/// How a stored tile lies in shared memory, and which of its dimensions are rows and columns there.
struct StoredTile {
  OperandTile tile;
  int64_t rowDim, columnDim;
};

StoredTile stagingOf(tile::StoreOp op) {
  ArrayRef<int64_t> shape = op.getValue().getType().getShape();
  int64_t columnDim = *contiguousDim(op.getView()), rowDim = columnDim ? 0 : 1;
  for (auto [d, size] : llvm::enumerate(shape))
    if (static_cast<int64_t>(d) != columnDim && size > 1)
      rowDim = static_cast<int64_t>(d);
  int64_t bytes = byteSize(memoryType(llvm::cast<tile::ViewType>(op.getView().getType()).getElementType()));
  int64_t panel = panelBytes(shape[columnDim] * bytes, /*padded=*/false);
  return {planPanelTile(shape[rowDim], shape[columnDim], bytes, panel), rowDim, columnDim};
}

} // namespace

/// Memory of their own: the accelerator may still read it when the threads are in the next program instance.
void ThreadEmitter::planBulkStores() {
  kernel_.walk([&](tile::StoreOp op) {
    if (op->hasAttr(bulkAttr))
      bulkStaging_[op] = allocateShared(stagingOf(op).tile.bytes(), panelAlignment);
  });
}

/// Waits for the threads of this warpgroup; the number of a barrier is part of the instruction.
void ThreadEmitter::groupBarrier(Value group, int64_t groups) {
  if (groups == 1) {
    b_.create<BarrierOp>(workerBarrier, static_cast<int32_t>(options_.threads));
    return;
  }
  Value isFirst = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, group, i32(0));
  auto which = b_.create<scf::IfOp>(isFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToStart(which.thenBlock());
  b_.create<BarrierOp>(firstGroupBarrier, 128);
  b_.setInsertionPointToStart(which.elseBlock());
  b_.create<BarrierOp>(firstGroupBarrier + 1, 128);
}

void ThreadEmitter::emitBulkStore(tile::StoreOp op) {
  Value value = op.getValue();
  const Distribution &matrix = distribution(value);
  Type element = llvm::cast<tile::ViewType>(op.getView().getType()).getElementType();
  auto [tile, rowDim, columnDim] = stagingOf(op);
  int64_t bytes = tile.elementBytes, panel = tile.panel, rows = tile.rows;
  int64_t begin = bulkStaging_.lookup(op);
  SharedWindow window{begin, begin + tile.bytes()};

  Parts parts = partsOf(matrix, rowDim, columnDim, options_.threads / 128, panel / bytes);
  int64_t groups = parts.rows * parts.columns;
  SmallVector<int64_t> dims = {columnDim}, box = {panel / bytes};
  for (int64_t d = matrix.rank() - 1; d >= 0; --d)
    if (d != columnDim) {
      dims.push_back(d);
      box.push_back(d == rowDim ? rows / parts.rows : 1);
    }
  int map = tensorMap(op.getView(), dims, box, panel);

  Value group = b_.create<arith::ShRUIOp>(threadId_, i32(7));
  auto byOne = [&](llvm::function_ref<void()> body) {
    Value isOne = groups > 1 ? warpgroupLeader()
                             : b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadId_, i32(0)).getResult();
    auto only = b_.create<scf::IfOp>(isOne);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(only.thenBlock());
    body();
  };
  byOne([&] { b_.create<BulkWaitOp>(0, /*read=*/true); });
  groupBarrier(group, groups);
  writeMatrix(value, element, tile, begin, rowDim, columnDim, window, newGroup());
  b_.create<FenceOp>(FenceKind::proxy_async);
  groupBarrier(group, groups);
  byOne([&] {
    Value source = b_.create<TensorMapOp>(b_.getI64Type(), static_cast<uint32_t>(map));
    int64_t panels = tile.panels() / parts.columns;
    for (int64_t number = 0; number < panels; ++number) {
      Value shared = i32(begin + number * tile.panelSize());
      if (parts.rows > 1)
        shared = b_.create<arith::AddIOp>(shared, b_.create<arith::MulIOp>(group, i32(rows / parts.rows * panel)));
      if (parts.columns > 1)
        shared = b_.create<arith::AddIOp>(shared, b_.create<arith::MulIOp>(group, i32(panels * tile.panelSize())));
      SmallVector<Value> coordinates;
      for (int64_t dim : dims) {
        Value at = boxCoordinate(op.getOffsets()[dim]);
        if (dim == columnDim) {
          at = b_.create<arith::AddIOp>(at, i32(number * panel / bytes));
          if (parts.columns > 1)
            at = b_.create<arith::AddIOp>(at, b_.create<arith::MulIOp>(group, i32(panels * panel / bytes)));
        } else if (dim == rowDim && parts.rows > 1) {
          at = b_.create<arith::AddIOp>(at, b_.create<arith::MulIOp>(group, i32(rows / parts.rows)));
        }
        coordinates.push_back(at);
      }
      b_.create<TmaStoreOp>(source, coordinates, shared, b_.getDenseI64ArrayAttr({window.begin, window.end}),
                            IntegerAttr());
    }
    b_.create<BulkCommitOp>();
  });
  remark(op.getLoc(), "store is made by the tensor memory accelerator, through " + std::to_string(tile.bytes()) +
                          " bytes of shared memory");
}

} // namespace tenon::nvidia
