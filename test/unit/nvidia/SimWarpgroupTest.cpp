// SPDX-License-Identifier: Apache-2.0
//
// A whole kernel of the tensor memory accelerator and wgmma on the simulator: right as it is, and with one thing wrong,
// which has to be found.
#include "test/unit/nvidia/SimHarness.h"
#include "test/unit/nvidia/WarpgroupKernel.h"

#include "tenon/base/FloatFormats.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::test {
namespace {

using sim::SimFinding;
using sim::SimReport;
using Kind = SimFinding::Kind;

/// `text` with `from` replaced by `to`, once.
std::string changed(std::string text, const std::string &from, const std::string &to = "") {
  size_t at = text.find(from);
  if (at == std::string::npos)
    throw std::runtime_error("no " + from);
  return text.replace(at, from.size(), to);
}

const SimFinding *findingOf(const SimReport &report, Kind kind) {
  for (const SimFinding &finding : report.findings)
    if (finding.kind == kind)
      return &finding;
  return nullptr;
}

/// There is a finding of that kind, and it says all of this.
void expectFinding(const SimReport &report, Kind kind, std::initializer_list<std::string> parts) {
  const SimFinding *found = findingOf(report, kind);
  ASSERT_TRUE(found) << "no " << sim::nameOf(kind) << " in\n" << report.text();
  for (const std::string &part : parts)
    EXPECT_NE(found->text.find(part), std::string::npos) << "no \"" << part << "\" in\n" << report.text();
}

/// The line of the text that `part` is on, as findings call it.
std::string lineOf(const std::string &text, const std::string &part) {
  size_t at = text.find(part);
  if (at == std::string::npos)
    throw std::runtime_error("no " + part);
  return " at k:" + std::to_string(std::count(text.begin(), text.begin() + at, '\n') + 1);
}

/// The product of two matrices of small integers, whatever the order of its sums.
class Warpgroups : public testing::Test {
public:
  static constexpr int m = WarpgroupKernel::rows, n = WarpgroupKernel::columns;

  /// The tensors end `less` elements before the last box does, along k.
  SimReport run(const std::string &text, int steps, uint64_t seed = 0, int less = 0) {
    int depth = WarpgroupKernel::depth * steps - less, pitch = std::max(depth, 8);
    SimBuffer a("a", 2 * m * pitch, false), b("b", 2 * n * pitch, false), out("out", 4 * m * n);
    auto left = [&](int i, int k) { return (i * 7 + k * 3) % 9 - 4; };
    auto right = [&](int j, int k) { return (j * 5 + k) % 7 - 3; };
    for (int i = 0; i < 128; ++i)
      for (int k = 0; k < depth; ++k) {
        a.as<uint16_t>()[i * pitch + k] = f64ToBF16(left(i, k));
        b.as<uint16_t>()[i * pitch + k] = f64ToBF16(right(i, k));
      }
    std::vector<sim::TensorMap> maps = {tensorMap(a.address(), 2, {pitch, m}, {64, 128}, 128),
                                        tensorMap(b.address(), 2, {pitch, n}, {64, 128}, 128)};
    sim::SimLaunch launch;
    SimKernel kernel(text);
    std::vector<int64_t> words = {out.address(), steps, reinterpret_cast<int64_t>(&maps[0]),
                                  reinterpret_cast<int64_t>(&maps[1])};
    launch.program = kernel.program;
    launch.options.seed = seed;
    launch.memory = {a.range(), b.range(), out.range()};
    launch.words = words;
    SimReport report = sim::simulate(launch);
    wrong = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        int sum = 0;
        for (int k = 0; k < depth; ++k)
          sum += left(i, k) * right(j, k);
        wrong += out.as<float>()[i * n + j] != sum;
      }
    return report;
  }

  const std::string good = WarpgroupKernel::text();
  int wrong = 0;
};

TEST_F(Warpgroups, NothingToFindInAProduct) {
  for (int steps : {0, 1, 2, 3, 5})
    for (uint64_t seed : {0, 1, 2}) {
      EXPECT_EQ(run(good, steps, seed).text(), "") << steps << " steps, seed " << seed;
      EXPECT_EQ(wrong, 0) << steps << " steps, seed " << seed;
    }
}

TEST_F(Warpgroups, RowsThroughRegisters) {
  for (uint64_t seed : {0, 1}) {
    EXPECT_EQ(run(WarpgroupKernel::text(/*fromRegisters=*/true), 3, seed).text(), "");
    EXPECT_EQ(wrong, 0);
  }
  // Threads that read, but do not say that they are done.
  std::string bad = changed(changed(WarpgroupKernel::text(true), "arith.constant 256", "arith.constant 2"),
                            "%leads = arith.cmpi uge", "%leads = arith.cmpi eq");
  expectFinding(run(bad, 4), Kind::race, {"starts a copy to", "reads", lineOf(bad, "nvidia.ldmatrix")});
}

/// What is multiplied is right, since the simulator takes it at the start; a GPU reads the registers later.
TEST_F(Warpgroups, RegistersWrittenWhileTheyAreRead) {
  std::string bad =
      changed(WarpgroupKernel::text(/*fromRegisters=*/true), "wgmma_wait 0 [%r3#0", "wgmma_wait 1 [%r3#0");
  EXPECT_EQ(run(bad, 1).text(), "");
  for (uint64_t seed : {0, 1})
    expectFinding(run(bad, 3, seed), Kind::race,
                  {"writes registers", lineOf(bad, "%f00 = vector.extract"), "that the wgmma",
                   lineOf(bad, "%r0:64 = nvidia.wgmma"), "has not been waited for"});
  // Carried by the loop, and so written at its end.
  for (auto [from, to] : {std::pair<const char *, const char *>{"%sum:66", "%sum:67"},
                          {"%acc63 = %zero)", "%acc63 = %zero, %word = %c0)"},
                          {"f32) : i32 {", "f32, i32) : i32 {"},
                          {"(%f00, ", "(%word, "},
                          {"%w#63 : i32", "%w#63, %f00 : i32"},
                          {"f32\n    }", "f32, i32\n    }"}})
    bad = changed(bad, from, to);
  expectFinding(run(bad, 1), Kind::race, {"writes registers", lineOf(bad, "scf.yield %previous")});
}

TEST_F(Warpgroups, OutsideOfTheTensorAreZeros) {
  for (int less : {8, 40, 64})
    EXPECT_EQ(run(good, 3, 0, less).text(), "") << less;
  EXPECT_EQ(wrong, 0);
}

TEST_F(Warpgroups, NoWaitForTheCopies) {
  std::string bad = changed(good, "nvidia.mbarrier_wait %full, %phase\n", "\n");
  for (uint64_t seed : {0, 1})
    expectFinding(run(bad, 3, seed), Kind::race,
                  {"starts an asynchronous read", lineOf(bad, "= nvidia.wgmma bf16"), "asynchronous copy"});
}

/// The stage whose multiplications have only been started goes back to the producer.
TEST_F(Warpgroups, AStageReleasedTooEarly) {
  std::string bad = changed(changed(good, "%otherEmpty = arith.addi %otherFull", "%otherEmpty = arith.addi %full"),
                            "%releases = arith.andi %leads, %later", "%releases = arith.andi %leads, %true");
  for (uint64_t seed : {0, 1, 2})
    expectFinding(run(bad, 5, seed), Kind::race, {"starts a copy to", lineOf(bad, "nvidia.tma_load %a")});
}

TEST_F(Warpgroups, AccumulatorsReadInFlight) {
  std::string bad = changed(good, "vector.from_elements %d#4, ", "vector.from_elements %sum#6, ");
  expectFinding(run(bad, 2), Kind::race,
                {"uses an accumulator", lineOf(bad, "vector.from_elements %sum#6"), "of the wgmma", "and not what a wait"});
  // Accumulators of a group that a wait has left out.
  bad = changed(good, "      %releases =", "      %early = arith.addf %w#0, %w#1 : f32\n      %releases =");
  expectFinding(run(bad, 2), Kind::race, {"uses an accumulator", lineOf(bad, "%early")});
}

TEST_F(Warpgroups, AccumulatorsInAnotherOrder) {
  std::string bad = changed(good, "%acc0, %acc1, ", "%acc1, %acc0, ");
  // The first occurrence is in the first wgmma's operands.
  expectFinding(run(bad, 2), Kind::race, {"accumulators in another place"});
}

TEST_F(Warpgroups, ExpectsOtherBytesThanCome) {
  expectFinding(run(changed(good, "expect %bytes", "expect %barriers"), 2), Kind::deadlock,
                {"wait at an mbarrier", "the mbarrier at byte 65536 of block 0 expects 32768 bytes more"});
  // Half of them are there when the barrier opens.
  expectFinding(run(changed(good, "expect %bytes", "expect %aBytes"), 2), Kind::race, {"asynchronous copy"});
}

TEST_F(Warpgroups, ACopyToAMisalignedAddress) {
  std::string bad = changed(good, "nvidia.tma_load %a,", "nvidia.tma_load %c64,");
  expectFinding(run(bad, 1), Kind::misaligned, {lineOf(bad, "nvidia.tma_load %c64"), "byte 64", "no multiple of 128"});
}

TEST_F(Warpgroups, ACopyOutsideOfItsWindow) {
  std::string bad = changed(good, "{window = array<i64: 0, 65536>}", "{window = array<i64: 0, 16000>}");
  expectFinding(run(bad, 1), Kind::outOfBounds, {"outside the window [0, 16000)"});
  bad = changed(good, "window_b = array<i64: 0, 65536>", "window_b = array<i64: 0, 65000>");
  expectFinding(run(bad, 2), Kind::outOfBounds, {"starts an asynchronous read", "outside the window [0, 65000)"});
}

TEST_F(Warpgroups, NoWgmmaFence) {
  expectFinding(run(changed(good, "nvidia.wgmma_fence"), 1), Kind::misuse, {"without a wgmma_fence"});
}

TEST_F(Warpgroups, DescriptorsThatDoNotFit) {
  std::string bad = changed(good, "%aRows = arith.muli %group, %rowBytes", "%aRows = arith.muli %member, %rowBytes");
  expectFinding(run(bad, 1), Kind::misuse, {"with different descriptors"});
  bad = changed(good, "%rowBytes = arith.constant 8192", "%rowBytes = arith.constant 8320");
  expectFinding(run(bad, 1), Kind::misuse, {"a swizzle over 128 bytes starts at a multiple of 1024"});
}

TEST_F(Warpgroups, RegistersThatNobodyGivesBack) {
  expectFinding(run(changed(good, "nvidia.set_max_registers 232", "nvidia.set_max_registers 240"), 1), Kind::deadlock,
                {"for registers that others give back"});
  expectFinding(run(changed(good, "nvidia.set_max_registers 40", "nvidia.set_max_registers 176"), 1), Kind::misuse,
                {"goes down to 176 registers", "and has 168"});
  expectFinding(run(changed(good, "nvidia.set_max_registers 232", "nvidia.set_max_registers 160"), 1), Kind::misuse,
                {"wants 160 registers", "and has 168"});
}

/// One warp of a warpgroup takes another way.
TEST_F(Warpgroups, AWarpThatIsNotThere) {
  std::string bad = changed(good, "    nvidia.set_max_registers 40 {increase = false}\n",
                            "    %alone = arith.cmpi ult, %tid, %c64 : i32\n    scf.if %alone {\n"
                            "      nvidia.set_max_registers 40 {increase = false}\n    }\n");
  SimReport report = run(bad, 1);
  EXPECT_TRUE(findingOf(report, Kind::divergence) || findingOf(report, Kind::deadlock)) << report.text();
}

//===--- Ordinary writes, and copies out --------------------------------------------------------------------------===//

/// A thread function of (%in: i64, %out: i64), with tensor map 0 of %out.
std::string function(int threads, int cluster, int sharedBytes, const std::string &body) {
  return "func.func @kernel(%in: i64, %out: i64) attributes {nvidia.threads = " + std::to_string(threads) +
         " : i64, nvidia.cluster = " + std::to_string(cluster) + " : i64, nvidia.shared_bytes = " +
         std::to_string(sharedBytes) + R"( : i64, nvidia.tensor_maps = 1 : i64} {
    %tid = nvidia.thread_id
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %first = arith.cmpi eq, %tid, %c0 : i32
    %map = nvidia.tensor_map 0
)" + body + "    return\n}\n";
}

SimReport runOne(const std::string &text, SimBuffer &in, SimBuffer &out, const sim::TensorMap &map, uint64_t seed = 0) {
  sim::SimOptions options;
  options.seed = seed;
  return runSim(SimKernel(text), {&in, &out}, 0, options, {}, {map});
}

/// Operands of a wgmma that threads have written.
TEST(AsyncProxy, OrdinaryWritesNeedAFence) {
  std::string good = function(128, 1, 4096, R"(    %c16 = arith.constant 16 : i32
    %slot = arith.muli %tid, %c16 : i32
    %ones = arith.constant dense<1.0> : vector<8xbf16>
    %zero = arith.constant 0.0 : f32
    %false = arith.constant false
    nvidia.store shared %ones, %slot : vector<8xbf16>, i32
    nvidia.store shared %ones, %slot {offset = 2048 : i32} : vector<8xbf16>, i32
    nvidia.fence proxy_async
    nvidia.barrier 128
    %a = arith.constant 34363932672 : i64
    %b = arith.constant 34360262784 : i64
    nvidia.wgmma_fence
    %r:4 = nvidia.wgmma bf16 bf16 8 [%zero, %zero, %zero, %zero], (%a), %b, %false : i64 : f32
    nvidia.wgmma_commit
    %d:4 = nvidia.wgmma_wait 0 [%r#0, %r#1, %r#2, %r#3] : f32
    %wide = arith.extui %slot : i32 to i64
    %o = arith.addi %out, %wide : i64
    %v = vector.from_elements %d#0, %d#1, %d#2, %d#3 : vector<4xf32>
    nvidia.store global %v, %o : vector<4xf32>, i64
)");
  SimBuffer in("in", 256), out("out", 2048);
  EXPECT_EQ(runOne(good, in, out, {}).text(), "");
  for (int i = 0; i < 512; ++i)
    EXPECT_EQ(out.as<float>()[i], 16);
  expectFinding(runOne(changed(good, "nvidia.fence proxy_async"), in, out, {}), Kind::race,
                {"starts an asynchronous read", "and no proxy fence lies between"});
  // The fence may stand behind the barrier, in every thread that reads.
  std::string late = changed(changed(good, "nvidia.fence proxy_async"), "nvidia.barrier 128",
                             "nvidia.barrier 128\n    nvidia.fence proxy_async");
  EXPECT_EQ(runOne(late, in, out, {}).text(), "");
  expectFinding(runOne(changed(good, "nvidia.barrier 128"), in, out, {}), Kind::race, {"and no barrier orders"});
  // Written again before it is known to have been read.
  std::string early = changed(good, "    %d:4 =", "    nvidia.store shared %ones, %slot : vector<8xbf16>, i32\n    %d:4 =");
  expectFinding(runOne(early, in, out, {}), Kind::race, {"writes", "has an asynchronous unit read"});
}

/// Both operands with k outermost, as the tensor memory accelerator brings them with a swizzle.
TEST(AsyncProxy, OperandsWithRowsInnermost) {
  std::string accumulators, raw;
  for (int i = 0; i < 64; ++i) {
    accumulators += i ? ", %zero" : "%zero";
    raw += (i ? ", %r#" : "%r#") + std::to_string(i);
  }
  std::string body = R"(    %full = arith.constant 6144 : i32
    %bytes = arith.constant 6144 : i32
    %c2048 = arith.constant 2048 : i32
    %c4096 = arith.constant 4096 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %zero = arith.constant 0.0 : f32
    %false = arith.constant false
    scf.if %first {
      nvidia.mbarrier_init %full, %c1
      nvidia.mbarrier_arrive %full expect %bytes
      nvidia.tma_load %c0, %map[%c0, %c0], %full
      nvidia.tma_load %c2048, %map[%c64, %c0], %full
      nvidia.tma_load %c4096, %map[%c128, %c0], %full
    }
    nvidia.barrier 128
    nvidia.mbarrier_wait %full, %c0
    %a = arith.constant 4611686293313683456 : i64
    %b = arith.constant 4611686293313683584 : i64
    nvidia.wgmma_fence
)";
  body += "    %r:64 = nvidia.wgmma bf16 bf16 128 [" + accumulators + "], (%a), %b, %false {trans_a, trans_b} : i64 : f32\n";
  body += "    nvidia.wgmma_commit\n    %d:64 = nvidia.wgmma_wait 0 [" + raw + "] : f32\n";
  body += "    %c256 = arith.constant 256 : i32\n    %slot = arith.muli %tid, %c256 : i32\n"
          "    %wide = arith.extui %slot : i32 to i64\n    %o = arith.addi %out, %wide : i64\n";
  for (int i = 0; i < 64; ++i)
    body += "    nvidia.store global %d#" + std::to_string(i) + ", %o {offset = " + std::to_string(4 * i) +
            " : i32} : f32, i64\n";
  SimBuffer in("in", 16 * 192 * 2, false), out("out", 128 * 256);
  auto element = [](int k, int i) { return (k * 5 + i * 3 + i / 7) % 9 - 4; };
  for (int k = 0; k < 16; ++k)
    for (int i = 0; i < 192; ++i)
      in.as<uint16_t>()[192 * k + i] = f64ToBF16(element(k, i));
  sim::TensorMap map = tensorMap(in.address(), 2, {192, 16}, {64, 16}, 128); // columns 0 to 63 are a, the others b
  EXPECT_EQ(runOne(function(128, 1, 6144 + 8, body), in, out, map).text(), "");
  int wrong = 0;
  for (int thread = 0; thread < 128; ++thread)
    for (int i = 0; i < 64; ++i) {
      int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + thread % 4 * 2 + i % 2, sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += element(k, row) * element(k, 64 + column);
      wrong += out.as<float>()[64 * thread + i] != sum;
    }
  EXPECT_EQ(wrong, 0);
}

/// 32 rows of 64 bytes of f32 go out through shared memory, the last ones outside of the tensor.
const std::string storeText = function(64, 1, 2048, R"(    %c32 = arith.constant 32 : i32
    %slot = arith.muli %tid, %c32 : i32
    %value = arith.sitofp %tid : i32 to f32
    %v = vector.from_elements %value, %value, %value, %value : vector<4xf32>
    nvidia.store shared %v, %slot : vector<4xf32>, i32
    nvidia.store shared %v, %slot {offset = 16 : i32} : vector<4xf32>, i32
    nvidia.fence proxy_async
    nvidia.barrier 64
    scf.if %first {
      nvidia.tma_store %map[%c0, %c1], %c0 {window = array<i64: 0, 2048>}
      nvidia.bulk_commit
      nvidia.bulk_wait read 0
    }
    nvidia.barrier 64
    nvidia.store shared %v, %slot : vector<4xf32>, i32
)");

TEST(AsyncProxy, StoresThroughSharedMemory) {
  SimBuffer in("in", 256), out("out", 30 * 64);
  sim::TensorMap map = tensorMap(out.address(), 4, {16, 30}, {16, 32}, 0);
  for (uint64_t seed : {0, 1})
    EXPECT_EQ(runOne(storeText, in, out, map, seed).text(), "");
  for (int row = 0; row < 30; ++row)
    for (int column = 0; column < 16; ++column) // row 0 is in front of the box
      EXPECT_EQ(out.as<float>()[16 * row + column], row ? 2 * (row - 1) + column / 8 : 0) << row << ", " << column;
}

TEST(AsyncProxy, StoresNeedOrder) {
  SimBuffer in("in", 256), out("out", 30 * 64);
  sim::TensorMap map = tensorMap(out.address(), 4, {16, 30}, {16, 32}, 0);
  auto run = [&](const std::string &text) { return runOne(text, in, out, map); };
  expectFinding(run(changed(storeText, "nvidia.fence proxy_async")), Kind::race,
                {"starts an asynchronous read", "no proxy fence"});
  expectFinding(run(changed(storeText, "nvidia.bulk_wait read 0")), Kind::race,
                {"writes", "has an asynchronous unit read"});
  std::string last = changed(storeText, "    nvidia.barrier 64\n    nvidia.store shared %v, %slot : vector<4xf32>, i32\n"
                                        "    return", "    return");
  EXPECT_EQ(run(last).text(), "");
  expectFinding(run(changed(last, "nvidia.bulk_wait read 0")), Kind::race, {"exits before its bulk copy"});
  expectFinding(run(changed(storeText, "nvidia.tma_store %map[%c0, %c1]",
                            "%before = arith.constant -1 : i32\n      nvidia.tma_store %map[%c0, %before]")),
                Kind::misuse, {"writes from before the beginning of its tensor on"});
  map.box[0] = 3;
  expectFinding(run(storeText), Kind::misuse, {"12 bytes along its first dimension"});
  map.box[0] = 16;
  map.strides[0] = 72;
  expectFinding(run(storeText), Kind::misaligned, {"address or strides"});
  map.strides[0] = 64;
  map.sizes[1] = 60;
  expectFinding(run(storeText), Kind::outOfBounds, {"has a bulk copy write", "of out"});
}

//===--- Clusters -------------------------------------------------------------------------------------------------===//

/// Block 0 has a box sent to both blocks of its cluster; each says so to the other, and block 0 sends another one.
const std::string multicastText = function(32, 2, 1024 + 16, R"(    %rank = nvidia.cluster_rank
    %full = arith.constant 1024 : i32
    %empty = arith.constant 1032 : i32
    %bytes = arith.constant 1024 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %both = arith.constant 3 : i16
    %leads = arith.cmpi eq, %rank, %c0 : i32
    %sends = arith.andi %leads, %first : i1
    scf.if %first {
      nvidia.mbarrier_init %full, %c1
      nvidia.mbarrier_init %empty, %c2
      nvidia.fence mbarrier_init
    }
    nvidia.cluster_arrive
    nvidia.cluster_wait
    %slot = arith.muli %tid, %c4 : i32
    %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%old = %c0) -> (i32) : i32 {
      scf.if %first {
        nvidia.mbarrier_arrive %full expect %bytes
      }
      scf.if %sends {
        %parity = arith.xori %i, %c1 : i32
        nvidia.mbarrier_wait %empty, %parity
        nvidia.tma_load %c0, %map[%c0, %i], %full multicast %both
      }
      nvidia.mbarrier_wait %full, %i
      %x = nvidia.load shared %slot : i32 -> i32
      nvidia.warp_barrier
      scf.if %first {
        %there = nvidia.map_shared %empty, %c0
        nvidia.mbarrier_arrive cluster %there
      }
      %new = arith.addi %old, %x : i32
      scf.yield %new : i32
    }
    nvidia.cluster_arrive
    nvidia.cluster_wait
    %block = nvidia.block_id
    %c32 = arith.constant 32 : i32
    %start = arith.muli %block, %c32 : i32
    %number = arith.addi %start, %tid : i32
    %byte = arith.muli %number, %c4 : i32
    %wide = arith.extui %byte : i32 to i64
    %o = arith.addi %out, %wide : i64
    nvidia.store global %sum, %o : i32, i64
)");

TEST(AsyncProxy, OneCopyForACluster) {
  SimBuffer in("in", 2048, false), out("out", 256);
  for (int i = 0; i < 512; ++i)
    in.as<int>()[i] = i * i;
  sim::TensorMap map = tensorMap(in.address(), 4, {256, 2}, {256, 1}, 0);
  for (uint64_t seed : {0, 1, 2}) {
    EXPECT_EQ(runOne(multicastText, in, out, map, seed).text(), "");
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(out.as<int>()[i], (i % 32) * (i % 32) + (i % 32 + 256) * (i % 32 + 256));
  }
}

/// An arrival in another block overtakes reads, unless it is behind what was read.
TEST(AsyncProxy, ArrivalsOvertakeReads) {
  SimBuffer in("in", 2048, false), out("out", 256);
  sim::TensorMap map = tensorMap(in.address(), 4, {256, 2}, {256, 1}, 0);
  const std::string text = function(32, 2, 64, R"(    %c2 = arith.constant 2 : i32
    %word = arith.constant 4 : i32
    %sent = arith.constant 8 : i32
    %taken = arith.constant 16 : i32
    %rank = nvidia.cluster_rank
    scf.if %first {
      nvidia.mbarrier_init %sent, %c1
      nvidia.mbarrier_init %taken, %c1
      nvidia.fence mbarrier_init
    }
    nvidia.cluster_arrive
    nvidia.cluster_wait
    %leads = arith.cmpi eq, %rank, %c0 : i32
    scf.if %first {
      scf.if %leads {
        %there = nvidia.map_shared %c0, %c1
        %bar = nvidia.map_shared %sent, %c1
        nvidia.store_async %c1, %there, %bar : i32
        nvidia.mbarrier_wait %taken, %c0
        nvidia.store_async %c2, %there, %bar : i32
      } else {
        nvidia.mbarrier_arrive %sent expect %word
        nvidia.mbarrier_wait %sent, %c0
        %x = nvidia.load shared %c0 : i32 -> i32
        %back = nvidia.map_shared %taken, %c0
        nvidia.mbarrier_arrive cluster %back behind %x
        nvidia.mbarrier_arrive %sent expect %word
        nvidia.mbarrier_wait %sent, %c1
        %y = nvidia.load shared %c0 : i32 -> i32
        %sum = arith.addi %x, %y : i32
        nvidia.store global %sum, %out : i32, i64
      }
    }
    nvidia.cluster_arrive
    nvidia.cluster_wait
)");
  EXPECT_EQ(runOne(text, in, out, map).text(), "");
  EXPECT_EQ(out.as<int>()[0], 3);
  expectFinding(runOne(changed(text, " behind %x", ""), in, out, map), Kind::race, {"no barrier orders the two"});
}

/// An arrival that is relaxed makes known the mbarriers that a fence has released, and nothing else.
TEST(AsyncProxy, RelaxedArrivals) {
  SimBuffer in("in", 2048, false), out("out", 256);
  sim::TensorMap map = tensorMap(in.address(), 4, {256, 2}, {256, 1}, 0);
  const std::string begins = "    nvidia.cluster_arrive\n    nvidia.cluster_wait\n    %slot";
  const std::string relaxedly = "    nvidia.cluster_arrive relaxed\n    nvidia.cluster_wait\n    %slot";
  std::string relaxed = changed(multicastText, begins, relaxedly);
  for (uint64_t seed : {0, 1, 2})
    EXPECT_EQ(runOne(relaxed, in, out, map, seed).text(), "");
  expectFinding(runOne(changed(relaxed, "      nvidia.fence mbarrier_init\n", ""), in, out, map), Kind::race,
                {"no barrier orders the two"});

  const std::string writes = function(32, 2, 64, R"(    scf.if %first {
      nvidia.store shared %c1, %c0 : i32, i32
      nvidia.fence mbarrier_init
    }
    nvidia.cluster_arrive
    nvidia.cluster_wait
    %x = nvidia.load shared %c0 : i32 -> i32
    %rank = nvidia.cluster_rank
    %leads = arith.cmpi eq, %rank, %c0 : i32
    %stores = arith.andi %leads, %first : i1
    scf.if %stores {
      nvidia.store global %x, %out : i32, i64
    }
)");
  EXPECT_EQ(runOne(writes, in, out, map).text(), "");
  expectFinding(runOne(changed(writes, "nvidia.cluster_arrive", "nvidia.cluster_arrive relaxed"), in, out, map),
                Kind::race, {"reads", "no barrier orders the two"});
}

TEST(AsyncProxy, CopiesToAnotherBlockNeedOrder) {
  SimBuffer in("in", 2048, false), out("out", 256);
  sim::TensorMap map = tensorMap(in.address(), 4, {256, 2}, {256, 1}, 0);
  auto run = [&](const std::string &text) { return runOne(text, in, out, map); };
  // The other block reads while the second copy may arrive.
  expectFinding(run(changed(multicastText, "nvidia.mbarrier_wait %empty, %parity")), Kind::race,
                {"starts a copy to", "of block 1's shared memory"});
  expectFinding(run(changed(multicastText, "%both = arith.constant 3", "%both = arith.constant 7")), Kind::outOfBounds,
                {"names block 2 of a cluster of 2"});
  expectFinding(run(changed(multicastText, "%map[%c0, %i]", "%map[%i, %c0]")), Kind::misaligned,
                {"starts a bulk copy", "from element 1 of the first dimension on", "no multiple of 16 bytes"});
  // Neither block waits for what comes last.
  std::string last = changed(multicastText, "nvidia.mbarrier_wait %full, %i\n", "\n");
  EXPECT_TRUE(findingOf(run(last), Kind::race)) << run(last).text();
}

/// A block may end when it has waited for all that others send to it, and for their arrivals.
TEST(AsyncProxy, BlocksOfAClusterThatEndApart) {
  SimBuffer in("in", 2048, false), out("out", 256);
  sim::TensorMap map = tensorMap(in.address(), 4, {256, 2}, {256, 1}, 0);
  const std::string atEnd = "    nvidia.cluster_arrive\n    nvidia.cluster_wait\n    %block";
  std::string waits = changed(multicastText, atEnd, R"(    scf.if %sends {
      nvidia.mbarrier_wait %empty, %c1
    }
    %block)");
  for (uint64_t seed : {0, 1, 2})
    EXPECT_EQ(runOne(waits, in, out, map, seed).text(), "");
  expectFinding(runOne(changed(multicastText, atEnd, "    %block"), in, out, map), Kind::race,
                {"touches the shared memory of block 0"});
}

TEST(AsyncProxy, ABlockThatExitsBeforeItsCopy) {
  std::string text = function(32, 1, 1032, R"(    %full = arith.constant 1024 : i32
    %bytes = arith.constant 1024 : i32
    scf.if %first {
      nvidia.mbarrier_init %full, %c1
      nvidia.mbarrier_arrive %full expect %bytes
      nvidia.tma_load %c0, %map[%c0, %c0], %full
    }
)");
  SimBuffer in("in", 2048, false), out("out", 256);
  sim::TensorMap map = tensorMap(in.address(), 4, {256, 2}, {256, 1}, 0);
  expectFinding(runOne(text, in, out, map), Kind::race, {"block 0 exits before the bulk copy of thread 0"});
  std::string other = changed(text, "%map[%c0, %c0]", "%map[%c0]");
  expectFinding(runOne(other, in, out, map), Kind::misuse, {"with 1 coordinates of a tensor map of rank 2"});
}

} // namespace
} // namespace tenon::test
