// SPDX-License-Identifier: Apache-2.0
//
// Scatters of whole pieces of 16 bytes in kernels whose dots run on warpgroups: rows that are chosen one by one, or of
// which some are left out (the last rows of an expert), with contiguous columns. As a dot leaves its result, a thread has
// two neighbours of a row and would write them alone. The tile goes through the panels of bulk stores instead:
//
//     wait until the bulk store before has read its panels;  barrier
//     write the panels, a slice of them;                     barrier
//     each thread: read pieces, write those that are wanted
//
// The accelerator cannot: it writes boxes, and their rows are next to each other. Nobody waits for the writes, either.
// Where the program stores the tile on the other side of a branch, both have the same memory.
#include "tenon/compiler/target/nvidia/threads/Layouts.h"
#include "tenon/compiler/target/nvidia/threads/Rings.h"
#include "tenon/compiler/target/nvidia/threads/Staging.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

LinearLayout piecesLayout(Value value, Value view, int64_t warps) {
  auto [tile, rowDim, columnDim] = stagingOf(value, view);
  auto rank = static_cast<size_t>(llvm::cast<RankedTensorType>(value.getType()).getRank());
  int64_t piece = 16 / tile.elementBytes, panel = tile.panel / tile.elementBytes;
  auto columns = static_cast<int64_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(tile.columns)));
  auto along = [&](int64_t dim, int64_t step) {
    Coords basis(rank, 0);
    basis[static_cast<size_t>(dim)] = step;
    return basis;
  };
  std::vector<Coords> registers, threads;
  for (int64_t step = 1; step < piece; step *= 2)
    registers.push_back(along(columnDim, step));
  for (int64_t step = piece; step < panel; step *= 2)
    threads.push_back(along(columnDim, step));
  int64_t groups = scatteringGroups(warps), row = 1, rows = tile.rows / groups;
  size_t bits = llvm::Log2_64(static_cast<uint64_t>(warps / groups * 32));
  while (threads.size() < bits) {
    threads.push_back(along(rowDim, row));
    row *= 2;
  }
  for (int64_t group = 1; group < groups; group *= 2)
    threads.push_back(along(rowDim, group * rows));
  for (; row < rows; row *= 2)
    registers.push_back(along(rowDim, row));
  for (int64_t step = panel; step < columns; step *= 2)
    registers.push_back(along(columnDim, step));
  Shape extents(rank, 1);
  extents[static_cast<size_t>(rowDim)] = rows * layoutWarps(groups);
  extents[static_cast<size_t>(columnDim)] = columns;
  return LinearLayout({{Unit::Register, registers},
                       {Unit::Lane, {threads.begin(), threads.begin() + 5}},
                       {Unit::Warp, {threads.begin() + 5, threads.end()}}},
                      extents);
}

void ThreadEmitter::emitStagedScatter(tile::ScatterOp op) {
  Value value = op.getValue();
  const Distribution &pieces = distribution(op.getIndices().front());
  StorePlan plan = planStore(value, op.getView());
  auto [tile, rowDim, columnDim] = plan.stored;
  Type element = llvm::cast<tile::ViewType>(op.getView().getType()).getElementType();
  int64_t piece = 16 / tile.elementBytes;
  VectorType moved = VectorType::get({piece}, memoryType(element));
  auto [staging, group] = bulkStaging_.lookup(op);
  // Threads read what their warpgroup wrote where it has whole rows; else they wait for all.
  bool isApart = plan.parts.rows > 1;
  Value number = b_.create<arith::ShRUIOp>(threadId_, i32(7));
  auto wait = [&] { groupBarrier(number, isApart ? plan.groups() : 1); };

  byOneOfGroup(plan.groups(), [&] { b_.create<BulkWaitOp>(0, /*read=*/true); });
  wait();
  ThreadPlaces places = placesIn(tile, pieces, rowDim, columnDim);
  for (int64_t slice = 0; slice < plan.slices; ++slice) {
    // Whoever writes a buffer again has met the others behind their reads of it, at the barrier of the other buffer.
    if (slice && plan.buffers == 1)
      wait();
    int64_t begin = staging + slice % plan.buffers * plan.sliceBytes();
    SharedWindow window{begin, begin + plan.sliceBytes()};
    ColumnRange columns;
    if (plan.slices > 1)
      columns = {slice * plan.sliceColumns(), (slice + 1) * plan.sliceColumns()};
    writeMatrix(value, element, tile, begin, rowDim, columnDim, window, group, columns);
    wait();
    for (int reg = 0; reg < pieces.registers(); reg += static_cast<int>(piece)) {
      const Coords &offset = pieces.offset(reg);
      if (!pieces.exists(reg) || !columns.contains(offset[columnDim]))
        continue;
      auto [at, constant] = matrixPlace(places, tile, offset[rowDim], offset[columnDim] - columns.begin);
      Value read = loadShared(moved, at, begin + constant, {}, window, group);
      auto [address, inside] = indexedAddress(op.getView(), op.getIndices(), op.getMask(), reg);
      storeGlobal(read, address, 0, inside);
    }
  }
  if (!isApart && plan.groups() > 1) // the next store of this memory waits for its own warpgroup only
    wait();
  remark(op.getLoc(), "scatter in pieces of 16 bytes, through " + std::to_string(plan.buffers * plan.sliceBytes()) +
                          " bytes of shared memory" +
                          (plan.slices > 1 ? ", in " + std::to_string(plan.slices) + " slices" : ""));
}

} // namespace tenon::nvidia
