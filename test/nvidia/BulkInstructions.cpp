// SPDX-License-Identifier: Apache-2.0
//
// The tensor memory accelerator. What arrives in shared memory is written out as it lies there: where each element is to
// be found is for the hardware to say.
#include "test/nvidia/KernelText.h"

#include <algorithm>

namespace tenon::test {
namespace {

using Tests = std::vector<InstructionTest>;

std::vector<uint32_t> randomWords(Random &random, int64_t count) {
  std::vector<uint32_t> words(count);
  for (uint32_t &word : words)
    word = random.bits();
  return words;
}

/// A tensor, a box of it, and where boxes start: inside, and over each edge; along the first dimension at multiples of 16
/// bytes, elsewhere the device ends with an illegal instruction.
struct Boxes {
  std::string name;
  int elementBytes;
  std::vector<int64_t> sizes;
  std::vector<int> box;
  int swizzleBytes;
  std::vector<std::vector<int>> starts;
  int64_t shared = 0; // where it lies in shared memory

  int64_t bytes() const {
    int64_t all = elementBytes;
    for (int size : box)
      all *= size;
    return all;
  }
  /// Rows are filled up to a multiple of 16 bytes.
  TestMap map(bool output, int64_t place) const {
    TestMap map{output, place, elementBytes, sizes, {}, box, swizzleBytes};
    int64_t stride = (sizes[0] * elementBytes + 15) / 16 * 16;
    for (size_t i = 1; i < sizes.size(); ++i) {
      map.strides.push_back(stride);
      stride *= sizes[i];
    }
    return map;
  }
  int64_t tensorBytes() const {
    TestMap of = map(false, 0);
    return of.strides.empty() ? (sizes[0] * elementBytes + 15) / 16 * 16 : of.strides.back() * sizes.back();
  }
};

std::vector<Boxes> allBoxes() {
  return {
      {"1d", 4, {300}, {256}, 0, {{0}, {16}, {-40}, {296}, {300}}},
      {"2d_bytes", 1, {1000, 3}, {256, 2}, 0, {{0, 0}, {800, 2}, {-240, -1}}},
      {"2d", 2, {100, 24}, {64, 16}, 0, {{0, 0}, {8, 3}, {-8, -7}, {56, 17}, {1000, 0}}},
      {"2d_swizzle128", 2, {100, 24}, {64, 16}, 128, {{0, 0}, {24, 8}, {-8, -7}, {56, 17}}},
      {"2d_swizzle128_at_128", 2, {100, 24}, {64, 16}, 128, {{0, 0}, {24, 8}}, 128},
      {"2d_swizzle64", 2, {60, 24}, {32, 16}, 64, {{0, 0}, {8, 9}, {-8, 20}}},
      {"2d_swizzle64_at_256", 2, {60, 24}, {32, 16}, 64, {{0, 0}}, 256},
      {"2d_swizzle32", 2, {60, 40}, {16, 32}, 32, {{0, 0}, {8, 9}, {48, 30}}},
      {"2d_swizzle128_bytes", 1, {333, 20}, {128, 16}, 128, {{16, 2}, {304, 10}}},
      {"2d_swizzle128_words", 4, {70, 20}, {32, 16}, 128, {{4, 2}, {60, 10}}},
      {"3d", 4, {20, 6, 5}, {16, 4, 4}, 0, {{0, 0, 0}, {8, 4, 3}, {-8, -1, -2}}},
      {"3d_swizzle64", 4, {20, 6, 5}, {16, 4, 4}, 64, {{0, 0, 0}, {8, 4, 3}, {-8, -1, -2}}},
      {"4d_swizzle32", 4, {10, 5, 3, 6}, {8, 4, 2, 4}, 32, {{0, 0, 0, 0}, {4, 2, 2, 3}}},
      {"5d", 4, {6, 5, 3, 6, 2}, {4, 4, 2, 4, 2}, 0, {{0, 0, 0, 0, 0}, {4, 2, -1, 3, 1}}},
  };
}

std::string coordinates(KernelText &k, const std::vector<int> &start) {
  std::string list;
  for (int coordinate : start)
    list += (list.empty() ? "" : ", ") + k.i32(coordinate);
  return list;
}

/// Writes out `bytes` bytes of shared memory from `start` on.
void writeShared(KernelText &k, int64_t start, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 16 * 32)
    k.write(k.loadShared("vector<4xi32>", k.slot(16, start + at)), "vector<4xi32>", 16);
}

/// With `prefetch` each box is asked for beforehand, of which nothing is to be seen.
void tmaLoad(Tests &tests, const Boxes &boxes, bool prefetch) {
  Random random(40);
  int64_t bytes = boxes.bytes(), end = (boxes.shared + bytes + 127) / 128 * 128;
  KernelText k((prefetch ? "tma_prefetch_" : "tma_load_") + boxes.name, 32, 1, end + 8);
  std::string map = k.map(boxes.map(false, k.data(randomWords(random, boxes.tensorBytes() / 4))));
  std::string mbarrier = k.i32(end), shared = k.i32(boxes.shared), expected = k.i32(bytes);
  if (boxes.name == "2d")
    k.line("nvidia.prefetch_tensor_map " + map);
  k.initMbarrier(mbarrier, 1);
  for (size_t round = 0; round < boxes.starts.size(); ++round) {
    std::string at = coordinates(k, boxes.starts[round]), first = k.first();
    k.line("scf.if " + first + " {");
    if (prefetch)
      k.line("  nvidia.tma_prefetch " + map + "[" + at + "]");
    k.line("  nvidia.fence proxy_async");
    k.line("  nvidia.mbarrier_arrive " + mbarrier + " expect " + expected);
    k.line("  nvidia.tma_load " + shared + ", " + map + "[" + at + "], " + mbarrier);
    k.line("}");
    k.line("nvidia.mbarrier_wait " + mbarrier + ", " + k.i32(round % 2));
    writeShared(k, boxes.shared, bytes);
    k.barrier();
  }
  tests.push_back(k.finish());
}

/// Where boxes may be written: not from before the beginning of the tensor on, which is an illegal instruction.
/// Also that the wait for reading lets shared memory be written again.
void tmaStore(Tests &tests, const Boxes &boxes) {
  Random random(41);
  int64_t bytes = boxes.bytes();
  KernelText k("tma_store_" + boxes.name, 32, 1, boxes.shared + bytes);
  std::string shared = k.i32(boxes.shared), zero = k.op("arith.constant dense<0> : vector<4xi32>");
  for (const std::vector<int> &start : boxes.starts) {
    if (std::any_of(start.begin(), start.end(), [](int coordinate) { return coordinate < 0; }))
      continue; // only loads may
    std::string map = k.map(boxes.map(true, k.room((boxes.tensorBytes() + 31) / 32)));
    auto fill = [&](bool withZeros) {
      for (int64_t at = 0; at < bytes; at += 16 * 32)
        k.storeShared(withZeros ? zero : k.read(randomWords(random, 4 * 32), "vector<4xi32>", 16), "vector<4xi32>",
                      k.slot(16, boxes.shared + at));
    };
    fill(false);
    k.line("nvidia.fence proxy_async");
    k.barrier();
    std::string at = coordinates(k, start), first = k.first();
    k.line("scf.if " + first + " {");
    k.line("  nvidia.tma_store " + map + "[" + at + "], " + shared);
    k.line("  nvidia.bulk_commit");
    k.line("  nvidia.bulk_wait read 0");
    k.line("}");
    k.barrier();
    fill(true);
    k.barrier();
  }
  k.line("nvidia.bulk_wait 0");
  tests.push_back(k.finish());
}

void clusterBarrier(KernelText &k) {
  k.line("nvidia.cluster_arrive");
  k.line("nvidia.cluster_wait");
}

/// Each block of a cluster of two sends half of a tile to both, then a whole one to the other alone.
void multicast(Tests &tests) {
  Random random(42);
  KernelText k("tma_load_multicast", 32, 2, 3072 + 8);
  Boxes boxes{"", 2, {64, 24}, {64, 8}, 128, {}};
  std::string map = k.map(boxes.map(false, k.data(randomWords(random, boxes.tensorBytes() / 4))));
  std::string mbarrier = k.i32(3072), rank = k.op("nvidia.cluster_rank"), zero = k.i32(0);
  std::string both = k.op("arith.constant 3 : i16"), bytes = k.i32(3072), last = k.i32(2048), lastRow = k.i32(16);
  std::string half = k.op("arith.muli " + rank + ", " + k.i32(1024) + " : i32");
  std::string row = k.op("arith.muli " + rank + ", " + k.i32(8) + " : i32");
  std::string other = k.op("arith.shrui " + k.i32(2) + ", " + rank + " : i32"); // 2 of rank 0, 1 of rank 1
  std::string alone = k.op("arith.trunci " + other + " : i32 to i16");
  k.initMbarrier(mbarrier, 1);
  clusterBarrier(k);
  k.line("scf.if " + k.first() + " {");
  k.line("  nvidia.mbarrier_arrive " + mbarrier + " expect " + bytes);
  k.line("  nvidia.tma_load " + half + ", " + map + "[" + zero + ", " + row + "], " + mbarrier + " multicast " + both);
  k.line("  nvidia.tma_load " + last + ", " + map + "[" + zero + ", " + lastRow + "], " + mbarrier + " multicast " +
         alone);
  k.line("}");
  k.line("nvidia.mbarrier_wait " + mbarrier + ", " + zero);
  writeShared(k, 0, 3072);
  clusterBarrier(k);
  tests.push_back(k.specific().finish());
}

/// A tile of two boxes side by side, into two slots: each block sends the rows of its rank, of both boxes, to both.
void multicastPanels(Tests &tests) {
  Random random(44);
  constexpr int64_t panel = 2048, slot = 2 * panel;
  KernelText k("tma_load_multicast_panels", 32, 2, 2 * slot + 16);
  Boxes boxes{"", 2, {256, 16}, {64, 8}, 128, {}};
  std::string map = k.map(boxes.map(false, k.data(randomWords(random, boxes.tensorBytes() / 4))));
  std::string rank = k.op("nvidia.cluster_rank"), both = k.op("arith.constant 3 : i16"), zero = k.i32(0);
  std::string expected = k.i32(slot), row = k.op("arith.muli " + rank + ", " + k.i32(8) + " : i32");
  std::string part = k.op("arith.muli " + rank + ", " + k.i32(panel / 2) + " : i32");
  std::vector<std::string> mbarriers, columns, places;
  for (int64_t i = 0; i < 4; ++i) {
    columns.push_back(k.i32(64 * i));
    places.push_back(k.op("arith.addi " + part + ", " + k.i32(i * panel) + " : i32"));
  }
  for (int64_t i = 0; i < 2; ++i) {
    mbarriers.push_back(k.i32(2 * slot + 8 * i));
    k.initMbarrier(mbarriers[i], 1);
  }
  clusterBarrier(k);
  k.line("scf.if " + k.first() + " {");
  for (int64_t i = 0; i < 2; ++i) {
    k.line("  nvidia.mbarrier_arrive " + mbarriers[i] + " expect " + expected);
    for (int64_t j = 2 * i; j < 2 * i + 2; ++j)
      k.line("  nvidia.tma_load " + places[j] + ", " + map + "[" + columns[j] + ", " + row + "], " + mbarriers[i] +
             " multicast " + both);
  }
  k.line("}");
  for (int64_t i = 0; i < 2; ++i) {
    k.line("nvidia.mbarrier_wait " + mbarriers[i] + ", " + zero);
    writeShared(k, i * slot, slot);
  }
  clusterBarrier(k);
  tests.push_back(k.specific().finish());
}

/// Every thread writes to the other block, and says so at its mbarrier.
void remoteArrival(Tests &tests) {
  Random random(43);
  KernelText k("mbarrier_arrive_cluster", 32, 2, 128 + 8);
  std::string mbarrier = k.i32(128), zero = k.i32(0);
  std::string other = k.op("arith.subi " + k.i32(1) + ", " + k.op("nvidia.cluster_rank") + " : i32");
  std::string value = k.read(randomWords(random, 64), "i32");
  k.initMbarrier(mbarrier, 32);
  clusterBarrier(k);
  k.line("nvidia.store cluster " + value + ", " + k.op("nvidia.map_shared " + k.mirrorSlot(4) + ", " + other) +
         " : i32, i32");
  std::string there = k.op("nvidia.map_shared " + mbarrier + ", " + other);
  k.line("nvidia.mbarrier_arrive cluster " + there);
  k.line("nvidia.mbarrier_wait " + mbarrier + ", " + zero);
  k.write(k.loadShared("i32", k.slot(4)), "i32", 4);
  clusterBarrier(k);
  k.line("nvidia.mbarrier_arrive cluster " + there + " expect " + zero);
  k.line("nvidia.mbarrier_wait " + mbarrier + ", " + k.i32(1));
  clusterBarrier(k);
  tests.push_back(k.minimum(90).finish());
}

/// Every thread sends a value to the other block, words and pairs of them, and all wait for the bytes.
void sentValues(Tests &tests) {
  Random random(44);
  KernelText k("store_async", 32, 2, 128 + 256 + 8);
  std::string mbarrier = k.i32(384), zero = k.i32(0), bytes = k.i32(384);
  std::string other = k.op("arith.subi " + k.i32(1) + ", " + k.op("nvidia.cluster_rank") + " : i32");
  std::string word = k.read(randomWords(random, 64), "i32"), pair = k.read(randomWords(random, 128), "i64", 8);
  k.initMbarrier(mbarrier, 1);
  clusterBarrier(k);
  k.line("scf.if " + k.first() + " {");
  k.line("  nvidia.mbarrier_arrive " + mbarrier + " expect " + bytes);
  k.line("}");
  std::string there = k.op("nvidia.map_shared " + mbarrier + ", " + other);
  std::string toWord = k.op("nvidia.map_shared " + k.mirrorSlot(4) + ", " + other);
  std::string toPair = k.op("nvidia.map_shared " + k.mirrorSlot(8, 128) + ", " + other);
  k.line("nvidia.store_async " + word + ", " + toWord + ", " + there + " : i32");
  k.line("nvidia.store_async " + pair + ", " + toPair + ", " + there + " : i64");
  k.line("nvidia.mbarrier_wait " + mbarrier + ", " + zero);
  k.write(k.loadShared("i32", k.slot(4)), "i32", 4);
  k.write(k.loadShared("i64", k.slot(8, 128)), "i64", 8);
  tests.push_back(k.minimum(90).finish());
}

} // namespace

void addBulkTests(Tests &tests) {
  for (const Boxes &boxes : allBoxes()) {
    tmaLoad(tests, boxes, /*prefetch=*/false);
    tmaLoad(tests, boxes, /*prefetch=*/true);
    tmaStore(tests, boxes);
  }
  multicast(tests);
  multicastPanels(tests);
  remoteArrival(tests);
  sentValues(tests);
}

} // namespace tenon::test
