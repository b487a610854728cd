// SPDX-License-Identifier: Apache-2.0
//
// The last step of a reduction where a tile is spread over a cluster: the partial results of its blocks. Two ways.
//
// Sending, where every reduction stands at the top level of the program and so happens once: each block sends its values
// to all, itself included, by nvidia.store_async, and waits at an mbarrier of its own until those of all have come. Each
// reduction has a window and an mbarrier to itself, made at the beginning by one thread; the cluster's barrier, which
// says that all have been made, is arrived at there and waited for before the first values are sent, when it is long
// complete. Nothing is released or fenced, and no block need wait for others before it ends: whoever writes into its
// memory has been waited for.
//
//     thread 0:  mbarrier_init %m, 1;  mbarrier_arrive %m expect 8 * 4 bytes;  fence mbarrier_init
//     all:       cluster_arrive relaxed
//                ... loads, the block's own part of the reduction ...
//                cluster_wait
//     thread r:  store_async %value, (slot of this block, in block r), (%m, in block r)         r = 0 ... 7
//     all:       mbarrier_wait %m, 0
//                read 8 slots, combine them in their order
//
// Reading, in loops and branches: each block leaves its values in its own shared memory, and after a barrier of the
// cluster all read the others' there.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {

/// Bytes that each value takes in an exchange.
int64_t exchangedBytes(ArrayRef<SmallVector<Value>> lists) {
  for (const auto &list : lists)
    for (Value value : list)
      if (value.getType().getIntOrFloatBitWidth() == 64)
        return 8;
  return 4;
}

/// The rank, relative to the first, of block `number` of those that differ in these bits of their rank.
static int64_t rankStep(int64_t number, ArrayRef<int> bits) {
  int64_t step = 0;
  for (size_t i = 0; i < bits.size(); ++i)
    if (number >> i & 1)
      step |= int64_t(1) << bits[i];
  return step;
}

//===--- Sending --------------------------------------------------------------------------------------------------===//

/// Whether each reduction of the kernel is met once.
bool ThreadEmitter::canSendAcrossBlocks() {
  bool any = false, nested = false;
  kernel_.walk([&](tile::ReduceOp reduce) {
    any = true;
    nested |= reduce->getBlock() != &kernel_.getBody().front();
  });
  return any && !nested;
}

/// Their memory is used for nothing else: other blocks write there at any time from the first reduction on.
int64_t ThreadEmitter::bytesForSending() {
  int64_t bytes = 0;
  kernel_.walk([&](tile::ReduceOp reduce) {
    const Distribution &tile = distribution(reduce.getValues()[0]), &result = distribution(reduce.getResults()[0]);
    int64_t lines = options_.threads;
    for (const Distribution::ThreadBit &bit : tile.threadBits())
      if (bit.bit < Distribution::blockBit && (bit.dim == static_cast<int64_t>(reduce.getDim()) || bit.dim < 0))
        lines /= 2;
    int64_t values = result.registers() * (reduce.getNumResults() + 1); // and a flag
    bytes += options_.cluster * values * lines * 8 + 32; // the mbarrier, and what alignment costs
  });
  return bytes;
}

void ThreadEmitter::prepareSending() {
  sendingFree_ = allocateShared(bytesForSending());
  neverReleased_ = usedShared_;
  Value isFirst = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, threadId_, i32(0));
  auto branch = b_.create<scf::IfOp>(isFirst, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    sending_ = b_.create<FenceOp>(FenceKind::mbarrier_init);
  }
  b_.create<ClusterArriveOp>(/*relaxed=*/true);
}

int64_t ThreadEmitter::takeForSending(int64_t bytes) {
  int64_t at = sendingFree_;
  sendingFree_ = llvm::alignTo(at + bytes, 8);
  return at;
}

/// A new mbarrier, whose first phase completes when so many bytes have come.
int64_t ThreadEmitter::sendingBarrier(int64_t bytes) {
  int64_t at = takeForSending(8);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(sending_);
  b_.create<MbarrierInitOp>(i32(at), i32(1));
  b_.create<MbarrierArriveOp>(i32(at), i32(bytes), /*cluster=*/false);
  return at;
}

void ThreadEmitter::joinCluster() {
  if (sending_ && !joinedCluster_)
    b_.create<ClusterWaitOp>();
  joinedCluster_ = true;
}

/// The bits of `number` that are set in the mask, next to each other.
Value ThreadEmitter::gatherBits(Value number, int64_t mask) {
  Value gathered = i32(0);
  int place = 0;
  for (int bit = 0; mask >> bit; ++bit)
    if (mask >> bit & 1) {
      Value one = b_.create<arith::AndIOp>(b_.create<arith::ShRUIOp>(number, i32(bit)), i32(1));
      gathered = b_.create<arith::OrIOp>(gathered, b_.create<arith::ShLIOp>(one, i32(place++)));
    }
  return gathered;
}

/// Threads that differ only in bits of `same` hold the same values: as many of them as there are blocks send, each to
/// one block; where they are fewer, the first sends to all.
void ThreadEmitter::sendAcrossBlocks(MutableArrayRef<SmallVector<Value>> lists, ArrayRef<int> bits, int64_t same,
                                     CombineLists combine) {
  int64_t slotBytes = exchangedBytes(lists), blocks = int64_t(1) << bits.size(), mask = 0;
  for (int bit : bits)
    mask |= int64_t(1) << bit;
  int64_t lines = options_.threads >> llvm::popcount(static_cast<uint64_t>(same));
  int64_t perSlot = lines * slotBytes, perBlock = 0, sent = 0;
  for (const auto &list : lists)
    for (Value value : list) {
      perBlock += perSlot;
      sent += lines * (value.getType().getIntOrFloatBitWidth() > 32 ? 8 : 4);
    }
  SharedWindow window;
  window.begin = takeForSending(blocks * perBlock);
  window.end = window.begin + blocks * perBlock;
  int64_t mbarrier = sendingBarrier(blocks * sent);
  int read = newGroup();

  Value line = b_.create<arith::MulIOp>(gatherBits(threadId_, ~same & (options_.threads - 1)), i32(slotBytes));
  Value first = b_.create<arith::AndIOp>(clusterRank_, i32(~mask & (options_.cluster - 1)));
  Value mine = b_.create<arith::MulIOp>(gatherBits(clusterRank_, mask), i32(perBlock));
  Value slot = b_.create<arith::AddIOp>(line, mine);
  auto send = [&](Value rank, Value active) {
    Value there = b_.create<MapSharedOp>(b_.getI32Type(), i32(mbarrier), rank);
    int64_t at = window.begin;
    for (const auto &list : lists)
      for (Value value : list) {
        Value to = b_.create<MapSharedOp>(b_.getI32Type(), b_.create<arith::AddIOp>(slot, i32(at)), rank);
        b_.create<StoreAsyncOp>(toBits(value), to, there, active,
                                b_.getDenseI64ArrayAttr({window.begin, window.end}));
        at += perSlot;
      }
  };
  joinCluster();
  Value copy = gatherBits(threadId_, same);
  if ((int64_t(1) << llvm::popcount(static_cast<uint64_t>(same))) >= blocks) {
    Value rank = first;
    for (auto [i, bit] : llvm::enumerate(bits)) {
      Value one = b_.create<arith::AndIOp>(b_.create<arith::ShRUIOp>(copy, i32(i)), i32(1));
      rank = b_.create<arith::OrIOp>(rank, b_.create<arith::ShLIOp>(one, i32(bit)));
    }
    send(rank, b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, copy, i32(blocks)));
  } else {
    Value active = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, copy, i32(0));
    for (int64_t number = 0; number < blocks; ++number)
      send(b_.create<arith::OrIOp>(first, i32(rankStep(number, bits))), active);
  }

  b_.create<MbarrierWaitOp>(i32(mbarrier), i32(0));
  SmallVector<SmallVector<Value>> sums(lists.size());
  int64_t from = window.begin;
  for (int64_t number = 0; number < blocks; ++number)
    for (size_t i = 0; i < lists.size(); ++i) {
      SmallVector<Value> values;
      for (Value value : lists[i]) {
        Type bitsType = value.getType().getIntOrFloatBitWidth() == 64 ? b_.getI64Type() : b_.getI32Type();
        values.push_back(fromBits(loadShared(bitsType, line, from, {}, window, read), value.getType()));
        from += perSlot;
      }
      sums[i] = sums[i].empty() ? values : combine(sums[i], values);
    }
  std::copy(sums.begin(), sums.end(), lists.begin());
}

//===--- Reading --------------------------------------------------------------------------------------------------===//

/// lists[i] becomes the combination of the lists[i] of all blocks that differ in these bits of their rank. Threads that differ only in bits of `same` hold the same values by now: one of them writes. The windows
/// are used for nothing else, so that one cluster barrier is enough, and one more before a loop comes round again or a
/// block ends (its memory must be there as long as others read it).
void ThreadEmitter::combineAcrossBlocks(MutableArrayRef<SmallVector<Value>> lists, ArrayRef<int> bits, int64_t same,
                                        CombineLists combine) {
  if (sending_)
    return sendAcrossBlocks(lists, bits, same, combine);
  int64_t count = 0, slotBytes = exchangedBytes(lists), lines = options_.threads;
  for (const auto &list : lists)
    count += static_cast<int64_t>(list.size());
  lines >>= llvm::popcount(static_cast<uint64_t>(same));
  Value line = gatherBits(threadId_, ~same & (options_.threads - 1));
  Value writes = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, b_.create<arith::AndIOp>(threadId_, i32(same)),
                                          i32(0));
  int64_t perSlot = lines * slotBytes;
  SharedWindow window;
  window.begin = allocateShared(count * perSlot);
  window.end = neverReleased_ = window.begin + count * perSlot;
  int write = newGroup();
  if (b_.getInsertionBlock()->getParentOp() != function_) { // in a loop or branch: others may still read the last values
    b_.create<ClusterArriveOp>();
    b_.create<ClusterWaitOp>();
  }
  Value mine = b_.create<arith::MulIOp>(line, i32(slotBytes));
  int64_t at = window.begin;
  for (const auto &list : lists)
    for (Value value : list) {
      storeShared(toBits(value), mine, at, writes, window, write);
      at += perSlot;
    }
  b_.create<ClusterArriveOp>();
  b_.create<ClusterWaitOp>();
  readsOtherBlocks_ = true;
  int64_t mask = 0;
  for (int bit : bits)
    mask |= int64_t(1) << bit;
  Value first = b_.create<arith::AndIOp>(clusterRank_, i32(~mask & (options_.cluster - 1)));
  SmallVector<SmallVector<Value>> sums(lists.size());
  for (int64_t number = 0; number < (int64_t(1) << bits.size()); ++number) {
    int64_t step = rankStep(number, bits);
    Value rank = step ? b_.create<arith::OrIOp>(first, i32(step)).getResult() : first;
    Value base = b_.create<MapSharedOp>(b_.getI32Type(), mine, rank);
    int64_t from = window.begin;
    for (size_t i = 0; i < lists.size(); ++i) {
      SmallVector<Value> values;
      for (Value value : lists[i]) {
        Type bitsType = value.getType().getIntOrFloatBitWidth() == 64 ? b_.getI64Type() : b_.getI32Type();
        Value raw = b_.create<LoadOp>(bitsType, Space::cluster, base, static_cast<uint32_t>(from), Value(), Value(),
                                      DenseI64ArrayAttr(), IntegerAttr(), /*streaming=*/false);
        values.push_back(fromBits(raw, value.getType()));
        from += perSlot;
      }
      sums[i] = sums[i].empty() ? values : combine(sums[i], values);
    }
  }
  std::copy(sums.begin(), sums.end(), lists.begin());
}

} // namespace tenon::nvidia
