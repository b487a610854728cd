// SPDX-License-Identifier: Apache-2.0
//
// The tensor memory accelerator, and values sent to other blocks (st.async). A box on its way into shared memory may
// write its bytes at any moment until it has completed at its mbarrier: until then they belong to nobody else. It
// completes when every thread waits for something (or, with a seed, at any instruction). A box on its way out is read
// from shared memory at the wait that covers its reading, and written to global memory at the wait that covers that, or
// when its thread exits.
#include "tenon/runtime/sim/Calls.h"
#include "tenon/runtime/sim/State.h"

#include <algorithm>
#include <cstring>

namespace tenon::sim {

using Kind = SimFinding::Kind;

namespace {

int64_t boxBytes(const TensorMap &map) {
  int64_t bytes = map.elementBytes;
  for (int i = 0; i < map.rank; ++i)
    bytes *= map.box[i];
  return bytes;
}

/// Where byte `offset` of the box in row-major order lies: bit 4 of the address, bits 4 and 5, or 4 to 6, whichever
/// number the units of 16 bytes in the swizzle, are changed by as many from bit 7 on.
uint32_t placeOf(const TensorMap &map, uint32_t shared, int64_t offset) {
  auto address = static_cast<uint32_t>(shared + offset);
  uint32_t units = map.swizzleBytes / 16;
  return units ? address ^ (address >> 7 & (units - 1)) << 4 : address;
}

/// Calls visit(offset in the box, address in global memory or 0 if outside, bytes) for each row of the box, and for the
/// parts of it inside and outside of the tensor.
template <class Visit> void forEachRow(const TensorMap &map, const int32_t *coordinates, Visit visit) {
  int64_t rowBytes = int64_t(map.box[0]) * map.elementBytes, rows = boxBytes(map) / rowBytes;
  int64_t before = std::clamp<int64_t>(-int64_t(coordinates[0]), 0, map.box[0]); // elements in front of the tensor
  int64_t inside = std::clamp<int64_t>(map.sizes[0] - coordinates[0], before, map.box[0]) - before;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t address = map.address + (coordinates[0] + before) * map.elementBytes, rest = row;
    bool outside = inside == 0;
    for (int i = 1; i < map.rank; rest /= map.box[i++]) {
      int64_t index = coordinates[i] + rest % map.box[i];
      outside |= index < 0 || index >= map.sizes[i];
      address += index * map.strides[i - 1];
    }
    int64_t start = row * rowBytes, first = before * map.elementBytes, bytes = inside * map.elementBytes;
    if (outside) {
      visit(start, int64_t(0), rowBytes);
      continue;
    }
    if (first)
      visit(start, int64_t(0), first);
    visit(start + first, address, bytes);
    if (first + bytes < rowBytes)
      visit(start + first + bytes, int64_t(0), rowBytes - first - bytes);
  }
}

/// Splits an access of global memory into aligned ones.
template <class Visit> void forEachPiece(const TensorMap &map, int64_t address, int64_t bytes, Visit visit) {
  for (int64_t at = 0; at < bytes;) {
    int64_t piece = (address + at) % 16 == 0 && bytes - at >= 16 ? 16 : map.elementBytes;
    visit(at, static_cast<uint32_t>(piece));
    at += piece;
  }
}

/// False after a finding about the map or the operands of a copy.
bool checkBox(Thread &thread, uint32_t place, const TensorMap &map, int32_t rank, uint32_t shared) {
  Launch &launch = *thread.launch;
  auto refuse = [&](Kind kind, const std::string &reason) {
    launch.find(kind, place, place, [&] {
      return std::string(nameOf(kind)) + ": " + thread.name() + " starts a bulk copy" + launch.at(place) + " " + reason;
    });
    return false;
  };
  if (rank != map.rank)
    return refuse(Kind::misuse, "with " + std::to_string(rank) + " coordinates of a tensor map of rank " +
                                    std::to_string(map.rank));
  int64_t rowBytes = int64_t(map.box[0]) * map.elementBytes;
  if (map.swizzleBytes ? rowBytes != map.swizzleBytes : rowBytes % 16 != 0)
    return refuse(Kind::misuse, "with a box of " + std::to_string(rowBytes) + " bytes along its first dimension, " +
                                    (map.swizzleBytes
                                         ? "which are not those of its swizzle, " + std::to_string(map.swizzleBytes)
                                         : std::string("which are no multiple of 16")));
  if (map.address % 16 || std::any_of(map.strides, map.strides + map.rank - 1, [](int64_t s) { return s % 16 != 0; }))
    return refuse(Kind::misaligned, "of a tensor whose address or strides are no multiples of 16 bytes");
  if (std::any_of(map.box, map.box + map.rank, [](int32_t size) { return size < 1 || size > 256; }))
    return refuse(Kind::misuse, "with a box that has not between 1 and 256 elements along each dimension");
  int32_t first;
  std::memcpy(&first, thread.operands, sizeof first);
  if (int64_t(first) * map.elementBytes % 16)
    return refuse(Kind::misaligned, "from element " + std::to_string(first) +
                                        " of the first dimension on, which is no multiple of 16 bytes");
  if (shared % 128)
    return refuse(Kind::misaligned, "at byte " + std::to_string(shared) +
                                        " of shared memory: the address is no multiple of 128");
  return true;
}

/// The block that the accelerator writes to for a thread. That is an access of the mbarrier at which it completes and
/// not of the thread: whoever reads there, and the block before it exits, has to have waited at that.
Block *resolveForUnit(Thread &thread, uint32_t place, uint32_t &address) {
  auto &blocks = thread.cluster->blocks;
  uint32_t rank = address >> 24;
  Block::Remote before = rank < blocks.size() ? blocks[rank]->remote[thread.clock.self] : Block::Remote();
  Block *block = resolve(thread, place, Space::cluster, address);
  if (block)
    block->remote[thread.clock.self] = before;
  return block;
}

/// What the accelerator has just written is known to those who wait for this phase of the mbarrier.
void tellWaiting(Cluster &cluster, Block &block, Mbarrier &mbarrier, uint32_t place) {
  if (block.remote.size() <= mbarrier.unit)
    block.remote.resize(mbarrier.unit + 1);
  block.remote[mbarrier.unit] = {mbarrier.count, place};
  auto ticks = std::make_shared<Ticks>(cluster.ticks);
  (*ticks)[mbarrier.unit] = mbarrier.count++;
  mbarrier.collected.add(Knowledge{std::move(ticks), nullptr, nullptr});
}

} // namespace

//===--- Into shared memory ---------------------------------------------------------------------------------------===//

void completeTransfer(Launch &launch, Cluster &cluster, size_t index) {
  Transfer transfer = cluster.transfers[index];
  cluster.transfers.erase(cluster.transfers.begin() + index);
  Block &block = *transfer.block;
  const TensorMap &map = *transfer.map;
  int64_t bytes = boxBytes(map);
  forEachRow(map, transfer.coordinates, [&](int64_t offset, int64_t address, int64_t count) {
    for (int64_t i = 0; i < count;) { // swizzling keeps 16 bytes together
      uint32_t to = placeOf(map, transfer.shared, offset + i);
      int64_t piece = std::min<int64_t>(count - i, 16 - to % 16);
      if (address)
        std::memcpy(&block.memory[to], reinterpret_cast<const void *>(address + i), piece);
      else
        std::memset(&block.memory[to], 0, piece);
      i += piece;
    }
  });
  auto found = block.mbarriers.find(transfer.mbarrier);
  if (launch.checks()) {
    std::memset(block.written.data() + transfer.shared, 1, bytes);
    std::fill_n(block.pending.begin() + transfer.shared / 4, bytes / 4, Block::Pending());
    --block.pendingCopies;
  }
  if (found == block.mbarriers.end())
    return;
  Mbarrier &mbarrier = found->second;
  if (launch.checks()) {
    for (int64_t at = 0; at < bytes; at += 16)
      block.shadow.setWrite(transfer.shared + at, 16, mbarrier.unit, mbarrier.count, transfer.place);
    tellWaiting(cluster, block, mbarrier, transfer.place);
  }
  mbarrier.bytes -= bytes;
  completePhase(launch, mbarrier);
}

/// The value is there at once, but nobody may know.
void storeAsync(Thread *thread, uint32_t place, uint32_t address, int32_t bytes, uint32_t mbarrierAddress, int32_t mask,
                int32_t begin, int32_t end) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  if (!mask)
    return;
  Block *block = resolveForUnit(*thread, place, address);
  Block *home = resolveForUnit(*thread, place, mbarrierAddress);
  if (!block || !home)
    return;
  if (block != home) {
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread->name() + " sends a value" + launch.at(place) +
             " to one block and completes it at an mbarrier of another";
    });
    return;
  }
  Mbarrier &mbarrier = mbarrierAt(*thread, place, *block, mbarrierAddress);
  if (!touchShared(*thread, place, *block, address, bytes, Touch::unitWrite, {begin, end}))
    return;
  std::memcpy(&block->memory[address], thread->operands, bytes);
  if (launch.checks()) {
    std::memset(block->written.data() + address, 1, bytes);
    block->shadow.setWrite(address, bytes, mbarrier.unit, mbarrier.count, place);
    tellWaiting(*thread->cluster, *block, mbarrier, place);
  }
  mbarrier.bytes -= bytes;
  completePhase(launch, mbarrier);
}

void tmaLoad(Thread *thread, uint32_t place, uint32_t shared, const TensorMap *map, int32_t rank, uint32_t mbarrier,
             int32_t multicast, int32_t begin, int32_t end) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  if (!checkBox(*thread, place, *map, rank, shared))
    return;
  Transfer transfer{nullptr, map, {}, shared, mbarrier, thread->clock.self, place};
  std::memcpy(transfer.coordinates, thread->operands, sizeof(int32_t) * rank);
  bool readable = true;
  forEachRow(*map, transfer.coordinates, [&](int64_t, int64_t address, int64_t bytes) {
    if (address)
      forEachPiece(*map, address, bytes, [&](int64_t at, uint32_t piece) {
        readable = readable && readGlobal(*thread, place, address + at, piece, "starts a copy from");
      });
  });
  if (!readable)
    return;
  uint32_t mask = multicast < 0 ? 1u << thread->clusterRank : static_cast<uint32_t>(multicast) & 0xffff;
  for (uint32_t number = 0; number < 16; ++number) {
    if (!(mask >> number & 1))
      continue;
    uint32_t address = number << 24 | shared;
    Block *block = resolveForUnit(*thread, place, address);
    if (!block)
      return;
    mbarrierAt(*thread, place, *block, mbarrier);
    int64_t bytes = boxBytes(*map);
    for (int64_t at = 0; at < bytes; at += 16)
      if (!touchShared(*thread, place, *block, shared + at, 16, Touch::unitWrite, {begin, end}))
        return;
    if (launch.checks()) {
      std::fill_n(block->pending.begin() + shared / 4, bytes / 4, Block::Pending{thread->clock.self + 1, place});
      ++block->pendingCopies;
    }
    transfer.block = block;
    thread->cluster->transfers.push_back(transfer);
  }
}

//===--- Out of shared memory -------------------------------------------------------------------------------------===//

namespace {

/// Takes the box out of shared memory; from now on the thread has read it.
void readBox(Thread &thread, BulkStore &store) {
  if (store.read)
    return;
  store.read = true;
  Block &block = *thread.block;
  store.bytes.resize(boxBytes(*store.map));
  for (size_t at = 0; at < store.bytes.size(); at += 16) {
    uint32_t from = placeOf(*store.map, store.shared, at);
    std::memcpy(&store.bytes[at], &block.memory[from], 16);
    if (thread.launch->checks()) {
      --block.pendingReads[from / 16].count;
      block.shadow.setRead(from, 16, thread.clock, store.place);
    }
  }
}

/// In units of 16 bytes: the last one of a row is written whole, though the tensor may end inside it.
void writeBox(Thread &thread, BulkStore &store) {
  readBox(thread, store);
  forEachRow(*store.map, store.coordinates, [&](int64_t offset, int64_t address, int64_t bytes) {
    if (address)
      forEachPiece(*store.map, address, (bytes + 15) / 16 * 16, [&](int64_t at, uint32_t piece) {
        writeGlobal(thread, store.place, address + at, piece, &store.bytes[offset + at], "has a bulk copy write");
      });
  });
}

} // namespace

void tmaStore(Thread *thread, uint32_t place, const TensorMap *map, int32_t rank, uint32_t shared, int32_t begin,
              int32_t end) {
  Launch &launch = *thread->launch;
  launch.step(*thread, place);
  if (!checkBox(*thread, place, *map, rank, shared))
    return;
  int32_t coordinates[5];
  std::memcpy(coordinates, thread->operands, sizeof(int32_t) * rank);
  if (std::any_of(coordinates, coordinates + rank, [](int32_t coordinate) { return coordinate < 0; })) {
    launch.find(Kind::misuse, place, place, [&] {
      return "misuse: " + thread->name() + " starts a bulk copy" + launch.at(place) +
             " that writes from before the beginning of its tensor on";
    });
    return;
  }
  launch.checkAwaited(*thread, place, "starts a bulk copy to");
  Block &block = *thread->block;
  int64_t bytes = boxBytes(*map);
  for (int64_t at = 0; at < bytes; at += 16)
    if (!touchShared(*thread, place, block, shared + at, 16, Touch::unitRead, {begin, end}))
      return;
  if (launch.checks())
    for (int64_t at = 0; at < bytes; at += 16) {
      Block::PendingReads &pending = block.pendingReads[(shared + at) / 16];
      pending = {pending.count + 1, thread->clock.self, place};
    }
  BulkStore &store = thread->stores.emplace_back(BulkStore{thread->nextStore++, map, {}, shared, place, false, {}});
  std::memcpy(store.coordinates, thread->operands, sizeof(int32_t) * rank);
}

void bulkCommit(Thread *thread, uint32_t place) {
  thread->launch->step(*thread, place);
  thread->storeGroups.push_back(thread->nextStore);
}

void bulkWait(Thread *thread, uint32_t place, int32_t pending, int32_t read) {
  thread->launch->step(*thread, place);
  auto &groups = thread->storeGroups;
  if (groups.size() <= static_cast<size_t>(pending))
    return;
  int64_t sequence = groups[groups.size() - 1 - pending];
  for (BulkStore &store : thread->stores)
    if (store.sequence < sequence)
      read ? readBox(*thread, store) : writeBox(*thread, store);
  if (read)
    return;
  std::erase_if(thread->stores, [&](const BulkStore &store) { return store.sequence < sequence; });
  groups.erase(groups.begin(), groups.end() - pending);
}

void endBulkCopies(Thread &thread) {
  Launch &launch = *thread.launch;
  for (BulkStore &store : thread.stores) {
    if (!store.read)
      launch.find(Kind::race, store.place, store.place, [&] {
        return "race: " + thread.name() + " exits before its bulk copy" + launch.at(store.place) +
               " has read shared memory, with no wait for it in between";
      });
    writeBox(thread, store);
  }
  thread.stores.clear();
  if (thread.block->live)
    return;
  for (const Transfer &transfer : thread.cluster->transfers)
    if (transfer.block == thread.block)
      launch.find(Kind::race, transfer.place, transfer.place, [&] {
        return "race: block " + std::to_string(thread.block->id) + " exits before the bulk copy of " +
               launch.threadName(thread.cluster->id, transfer.thread) + launch.at(transfer.place) +
               " has arrived there, with no wait for it in between";
      });
  std::erase_if(thread.cluster->transfers, [&](const Transfer &transfer) { return transfer.block == thread.block; });
}

} // namespace tenon::sim
