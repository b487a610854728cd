// SPDX-License-Identifier: Apache-2.0
//
// Layout conversions that concern no two warpgroups: each of them has all elements of a small tile (ChooseLayouts.cpp
// gives such tiles to every warpgroup), and so exchanges them through memory and a barrier of its own. Warpgroups that
// are at different places of the program stay there.
#include "tenon/compiler/target/nvidia/threads/Rings.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

bool isThread(const Distribution::ThreadBit &bit) { return bit.bit < Distribution::blockBit; }

/// Whether every warpgroup has all of the tile.
bool isInEachGroup(const Distribution &tile) {
  return llvm::all_of(tile.threadBits(), [](const Distribution::ThreadBit &bit) {
    return !isThread(bit) || bit.bit < 7 || bit.dim < 0;
  });
}

} // namespace

/// Memory of their own: warpgroups may be in different program instances.
void ThreadEmitter::planGroupExchanges() {
  int64_t groups = options_.threads / 128;
  if (!options_.steps.groupExchange || groups < 2)
    return;
  kernel_.walk([&](ConvertOp op) {
    const Distribution &from = distribution(op.getValue()), &to = distribution(op);
    std::optional<LoadedOperand> loaded = traceToLoad(op.getValue());
    bool isInSlot = loaded && loaded->load->hasAttr(bulkAttr) && !loaded->load->hasAttr(readAttr);
    if (!isInEachGroup(from) || sameThreads(from, to) || isInSlot)
      return;
    Staged staged = planStaging(from.shape(), typeOf(op).getElementType(), fastestFor(from, to), /*padded=*/true);
    int64_t bytes = llvm::alignTo(staged.window.end - staged.window.begin, 16);
    allocateShared((groups - 1) * bytes);
    staged.window.end = staged.window.begin + groups * bytes;
    groupExchanges_[op] = staged;
  });
}

/// Whether the conversion was one.
bool ThreadEmitter::emitGroupExchange(ConvertOp op) {
  auto found = groupExchanges_.find(op);
  if (found == groupExchanges_.end())
    return false;
  const Distribution &from = distribution(op.getValue()), &to = distribution(op);
  Staged staged = found->second;
  int64_t groups = options_.threads / 128;
  Value group = b_.create<arith::ShRUIOp>(threadId_, i32(7));
  staged.ofGroup = b_.create<arith::MulIOp>(group, i32((staged.window.end - staged.window.begin) / groups));
  Coords origin(from.rank(), 0);
  int exchange = newGroup(); // one for both: the barriers are here
  groupBarrier(group, groups); // what an earlier instance wrote has been read
  writeStaged(staged, op.getValue(), origin, exchange);
  groupBarrier(group, groups);
  registers(op) = readStaged(staged, to, origin, exchange);
  tellStaging(op, "layout conversion within each warpgroup", staged, stagedWidth(staged, from, origin),
              stagedWidth(staged, to, origin));
  return true;
}

} // namespace tenon::nvidia
