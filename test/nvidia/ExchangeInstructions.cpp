// SPDX-License-Identifier: Apache-2.0
//
// Numbers of threads and blocks, barriers, fences, clusters, order of launches; shuffles and votes.
#include "test/nvidia/KernelText.h"

namespace tenon::test {
namespace {

using Tests = std::vector<InstructionTest>;

std::vector<uint32_t> randomWords(Random &random, int64_t count) {
  std::vector<uint32_t> words(count);
  for (uint32_t &word : words)
    word = random.bits();
  return words;
}

void numbers(Tests &tests) {
  KernelText k("thread_id", 96);
  k.write(k.op("nvidia.thread_id"), "i32", 4);
  k.write(k.op("nvidia.block_id"), "i32", 4);
  tests.push_back(k.finish());
  KernelText c("cluster_rank", 32, 4);
  c.write(c.op("nvidia.cluster_rank"), "i32", 4);
  c.write(c.op("nvidia.block_id"), "i32", 4);
  tests.push_back(c.finish());
  KernelText g("grid_size", 32, 2);
  g.write(g.op("nvidia.grid_size"), "i32", 4);
  g.write(g.op("nvidia.cluster_rank"), "i32", 4);
  tests.push_back(g.finish());
}

/// Each half of the block has a barrier of its own.
void barriers(Tests &tests) {
  Random random(10);
  KernelText k("barrier_named", 128, 1, 512);
  k.storeShared(k.read(randomWords(random, 128), "i32"), "i32", k.slot(4));
  std::string low = k.op("arith.cmpi ult, " + k.thread + ", " + k.i32(64) + " : i32");
  k.line("scf.if " + low + " {");
  k.line("  nvidia.barrier 64 {id = 1 : i32}");
  k.line("} else {");
  k.line("  nvidia.barrier 64 {id = 2 : i32}");
  k.line("}");
  std::string other = k.op("arith.xori " + k.slot(4) + ", " + k.i32(4 * 63) + " : i32");
  k.write(k.loadShared("i32", other), "i32", 4);
  tests.push_back(k.finish());

  KernelText w("warp_barrier", 64, 1, 256);
  w.storeShared(w.read(randomWords(random, 64), "i32"), "i32", w.slot(4));
  w.line("nvidia.warp_barrier");
  w.write(w.loadShared("i32", w.op("arith.xori " + w.slot(4) + ", " + w.i32(4 * 31) + " : i32")), "i32", 4);
  tests.push_back(w.finish());
}

void fences(Tests &tests) {
  Random random(11);
  struct Kind {
    const char *name;
    int architecture;
  };
  for (Kind kind : {Kind{"block", 80}, Kind{"device", 80}, Kind{"proxy_async", 90}, Kind{"mbarrier_init", 90}}) {
    KernelText k(std::string("fence_") + kind.name, 32, 1, 128);
    k.storeShared(k.read(randomWords(random, 32), "i32"), "i32", k.slot(4));
    k.line(std::string("nvidia.fence ") + kind.name);
    k.barrier();
    k.write(k.loadShared("i32", k.mirrorSlot(4)), "i32", 4);
    tests.push_back(k.minimum(kind.architecture).finish());
  }
}

void mbarriers(Tests &tests) {
  Random random(12);
  // Three phases: write, read the mirror, write again.
  KernelText k("mbarrier", 64, 1, 256 + 8);
  std::string object = k.i32(256), even = k.i32(0), odd = k.i32(1);
  k.initMbarrier(object, 64);
  auto pass = [&](const std::string &parity) {
    k.line("nvidia.mbarrier_arrive " + object);
    k.line("nvidia.mbarrier_wait " + object + ", " + parity);
  };
  for (int round = 0; round < 2; ++round) {
    k.storeShared(k.read(randomWords(random, 64), "i32"), "i32", k.slot(4));
    pass(even);
    k.write(k.loadShared("i32", k.mirrorSlot(4)), "i32", 4);
    pass(odd);
  }
  tests.push_back(k.finish());

  KernelText x("mbarrier_expect", 32, 1, 8);
  std::string zero = x.i32(0);
  x.initMbarrier(zero, 32);
  x.line("nvidia.mbarrier_arrive " + zero + " expect " + zero);
  x.line("nvidia.mbarrier_wait " + zero + ", " + zero);
  x.write(x.thread, "i32", 4);
  tests.push_back(x.minimum(90).finish());

  KernelText c("cp_async_arrive", 64, 1, 64 * 16 + 8);
  std::string address = c.i32(64 * 16), parity = c.i32(0);
  c.initMbarrier(address, 64);
  std::string source = c.at("%in", c.data(randomWords(random, 64 * 4)), 16);
  c.line("nvidia.cp_async 16, " + c.slot(16) + ", " + source + ", " + c.i32(16));
  c.line("nvidia.cp_async_arrive " + address);
  c.line("nvidia.mbarrier_wait " + address + ", " + parity);
  c.write(c.loadShared("vector<4xi32>", c.mirrorSlot(16)), "vector<4xi32>", 16);
  tests.push_back(c.finish());
}

void clusters(Tests &tests) {
  Random random(13);
  auto barrier = [](KernelText &k) {
    k.line("nvidia.cluster_arrive");
    k.line("nvidia.cluster_wait");
  };
  auto peer = [](KernelText &k, const std::string &address) {
    std::string next = k.op("arith.addi " + k.op("nvidia.cluster_rank") + ", " + k.i32(1) + " : i32");
    return k.op("nvidia.map_shared " + address + ", " + k.op("arith.andi " + next + ", " + k.i32(3) + " : i32"));
  };
  KernelText l("cluster_load", 64, 4, 64 * 16);
  l.storeShared(l.read(randomWords(random, 4 * 64 * 4), "vector<4xi32>", 16), "vector<4xi32>", l.slot(16));
  barrier(l);
  std::string address = peer(l, l.mirrorSlot(16));
  l.write(l.op("nvidia.load cluster " + address + " : i32 -> vector<4xi32>"), "vector<4xi32>", 16);
  std::string on = l.op("arith.trunci " + l.thread + " : i32 to i1");
  l.write(l.op("nvidia.load cluster " + address + " mask " + on + " otherwise " + l.thread +
               " : i32 {offset = 4 : i32} : i32 -> i32"),
          "i32", 4);
  barrier(l); // nobody leaves while its memory is read
  tests.push_back(l.finish());

  KernelText s("cluster_store", 64, 4, 64 * 16);
  std::string value = s.read(randomWords(random, 4 * 64 * 4), "vector<4xi32>", 16);
  s.storeShared(value, "vector<4xi32>", s.slot(16));
  barrier(s); // everybody has started, and written
  std::string to = peer(s, s.mirrorSlot(16)), mask = s.op("arith.trunci " + s.thread + " : i32 to i1");
  s.line("nvidia.store cluster " + value + ", " + to + " mask " + mask + " : vector<4xi32>, i32");
  barrier(s);
  s.write(s.loadShared("vector<4xi32>", s.slot(16)), "vector<4xi32>", 16);
  tests.push_back(s.finish());
}

/// As the first kernel of its stream it waits for nobody.
void launches(Tests &tests) {
  Random random(15);
  KernelText k("await_earlier_launches", 64);
  k.line("nvidia.allow_next_launch");
  k.line("nvidia.await_earlier_launches");
  k.write(k.read(randomWords(random, 64), "i32"), "i32", 4);
  tests.push_back(k.minimum(90).finish());
}

void shuffles(Tests &tests) {
  Random random(14);
  for (const char *mode : {"bfly", "up", "down", "idx"})
    for (const char *type : {"i32", "f32"}) {
      KernelText k(std::string("shuffle_") + mode + "_" + type, 64);
      for (int round = 0; round < 8; ++round) {
        // One distance for all, as a reduction has; then one for each lane, past the end as well.
        std::vector<uint32_t> lanes(64);
        for (uint32_t &lane : lanes)
          lane = round < 5 ? 1u << round : random.between(0, round == 7 ? 40 : 31);
        k.write(k.op(std::string("nvidia.shuffle ") + mode + " " + k.read(randomWords(random, 64), type) + ", " +
                     k.read(lanes, "i32") + " : " + type),
                type, 4);
      }
      tests.push_back(k.finish());
    }
  KernelText v("vote", 64);
  std::vector<uint8_t> some(64), none(64), all(64, 1);
  for (uint8_t &bit : some)
    bit = random.bits() & 1;
  for (const auto &bits : {some, none, all})
    v.write(v.op("nvidia.vote " + v.readMask(bits)), "i32", 4);
  tests.push_back(v.finish());
}

} // namespace

void addOrderTests(Tests &tests) {
  numbers(tests);
  barriers(tests);
  fences(tests);
  mbarriers(tests);
  clusters(tests);
  launches(tests);
}

void addExchangeTests(Tests &tests) { shuffles(tests); }

} // namespace tenon::test
