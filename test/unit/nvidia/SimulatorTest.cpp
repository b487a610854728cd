// SPDX-License-Identifier: Apache-2.0
//
// Planted bugs: each program is run as it should be, where the simulator has nothing to say, and with one thing wrong,
// which it has to find.
#include "test/unit/nvidia/SimHarness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::test {
namespace {

using sim::SimFinding;
using sim::SimReport;
using Kind = SimFinding::Kind;

/// A thread function of (%in: i64, %out: i64), with the usual values at hand: %tid, its 4-byte slot of shared memory
/// and that of the thread that mirrors it in the block or the warp, its places in both buffers, and constants.
/// Text begins on line 1 of the body.
std::string function(int threads, int cluster, int sharedBytes, const std::string &body) {
  std::string all = std::to_string(threads);
  return "func.func @kernel(%in: i64, %out: i64) attributes {nvidia.threads = " + all + " : i64, nvidia.cluster = " +
         std::to_string(cluster) + " : i64, nvidia.shared_bytes = " + std::to_string(sharedBytes) + R"( : i64} {
    %tid = nvidia.thread_id
    %bid = nvidia.block_id
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    %last = arith.constant )" + std::to_string(threads - 1) + R"( : i32
    %all = arith.constant )" + all + R"( : i32
    %first = arith.cmpi eq, %tid, %c0 : i32
    %low = arith.cmpi ult, %tid, %c16 : i32
    %slot = arith.muli %tid, %c4 : i32
    %mirrorId = arith.subi %last, %tid : i32
    %mirror = arith.muli %mirrorId, %c4 : i32
    %c124 = arith.constant 124 : i32
    %warpMirror = arith.xori %slot, %c124 : i32
    %blockStart = arith.muli %bid, %all : i32
    %number = arith.addi %blockStart, %tid : i32
    %number64 = arith.extui %number : i32 to i64
    %four64 = arith.constant 4 : i64
    %byte = arith.muli %number64, %four64 : i64
    %i = arith.addi %in, %byte : i64
    %o = arith.addi %out, %byte : i64
    %x = nvidia.load global %i : i64 -> i32
)" + body + "    return\n}\n";
}

/// `text` with `from` replaced by `to`, once.
std::string changed(std::string text, const std::string &from, const std::string &to = "") {
  size_t at = text.find(from);
  if (at == std::string::npos)
    throw std::runtime_error("no " + from);
  return text.replace(at, from.size(), to);
}

/// The line of the whole text that the first (or `nth`) `part` is on, as findings call it.
std::string lineOf(const std::string &text, const std::string &part, int nth = 0) {
  size_t at = text.find(part);
  while (nth-- > 0)
    at = text.find(part, at + 1);
  return "k:" + std::to_string(1 + std::count(text.begin(), text.begin() + at, '\n'));
}

struct Outcome {
  SimReport report;
  std::vector<int32_t> out;
};

Outcome run(const std::string &text, uint64_t seed = 0, int64_t blocks = 0) {
  SimKernel kernel(text);
  SimBuffer in("x", 4096, false), out("y", 4096);
  for (int i = 0; i < 1024; ++i)
    in.as<int32_t>()[i] = 1000 + i;
  sim::SimOptions options;
  options.seed = seed;
  options.maxOperations = 1 << 17;
  Outcome result{runSim(kernel, {&in, &out}, blocks, options), {}};
  result.out.assign(out.as<int32_t>(), out.as<int32_t>() + 1024);
  return result;
}

void expectClean(const std::string &text, int64_t blocks = 0) {
  for (uint64_t seed : {0, 1, 2, 3})
    EXPECT_EQ(run(text, seed, blocks).report.text(), "") << "seed " << seed;
}

/// The bug is found with every seed, as that kind, in words that contain all the parts.
void expectFound(const std::string &text, Kind kind, const std::vector<std::string> &parts, int64_t blocks = 0) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    SimReport report = run(text, seed, blocks).report;
    bool found = false;
    for (const SimFinding &finding : report.findings) {
      bool all = finding.kind == kind;
      for (const std::string &part : parts)
        all &= finding.text.find(part) != std::string::npos;
      found |= all;
    }
    EXPECT_TRUE(found) << "seed " << seed << " found: " << report.text();
  }
}

//===--- Shared memory --------------------------------------------------------------------------------------------===//

const std::string exchange = function(64, 1, 256, R"(
    nvidia.store shared %x, %slot : i32, i32
    nvidia.barrier 64
    %y = nvidia.load shared %mirror : i32 -> i32
    nvidia.store global %y, %o : i32, i64
)");

TEST(Simulator, MirrorsThroughSharedMemory) {
  for (uint64_t seed : {0, 5}) {
    Outcome result = run(exchange, seed, 3);
    EXPECT_EQ(result.report.text(), "");
    for (int i = 0; i < 192; ++i)
      EXPECT_EQ(result.out[i], 1000 + i / 64 * 64 + 63 - i % 64);
  }
}

TEST(Simulator, FindsAMissingBarrier) {
  std::string text = changed(exchange, "nvidia.barrier 64\n", "\n");
  expectFound(text, Kind::race, {"shared memory", lineOf(text, "nvidia.load shared"),
                                 lineOf(text, "nvidia.store shared"), "thread", "of block 0"});
}

TEST(Simulator, FindsAMissingBarrierBeforeTheNextWrite) {
  std::string text = function(64, 1, 256, R"(
    %n = arith.constant 4 : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %r = scf.for %k = %zero to %n step %one iter_args(%v = %x) -> (i32) {
      nvidia.store shared %v, %slot : i32, i32
      nvidia.barrier 64
      %y = nvidia.load shared %mirror : i32 -> i32
      nvidia.barrier 64 // before the next round
      scf.yield %y : i32
    }
    nvidia.store global %r, %o : i32, i64
)");
  expectClean(text);
  std::string wrong = changed(text, "nvidia.barrier 64 // before the next round");
  expectFound(wrong, Kind::race, {lineOf(wrong, "nvidia.store shared"), lineOf(wrong, "nvidia.load shared"), "writes"});
}

TEST(Simulator, OrdersWarpsByWarpBarriersOnly) {
  std::string text = function(64, 1, 256, R"(
    nvidia.store shared %x, %slot : i32, i32
    nvidia.warp_barrier
    %y = nvidia.load shared %warpMirror : i32 -> i32
    nvidia.store global %y, %o : i32, i64
)");
  expectClean(text);
  expectFound(changed(text, "nvidia.warp_barrier"), Kind::race, {"shared memory"});
  // A shuffle brings the lanes together, but orders no memory.
  expectFound(changed(text, "nvidia.warp_barrier", "%z = nvidia.shuffle bfly %x, %c1 : i32"), Kind::race, {"reads"});
  // The mirror in the block is in the other warp.
  expectFound(changed(text, "%warpMirror :", "%mirror :"), Kind::race, {"reads"});
}

TEST(Simulator, OrdersOnlyThoseAtANamedBarrier) {
  std::string text = function(128, 1, 512, R"(
    nvidia.store shared %x, %slot : i32, i32
    %c64 = arith.constant 64 : i32
    %c252 = arith.constant 252 : i32
    %half = arith.cmpi ult, %tid, %c64 : i32
    scf.if %half {
      nvidia.barrier 64 {id = 1 : i32}
    } else {
      nvidia.barrier 64 {id = 2 : i32}
    }
    %other = arith.xori %slot, %c252 : i32
    %y = nvidia.load shared %other : i32 -> i32
    nvidia.store global %y, %o : i32, i64
)");
  expectClean(text);
  expectFound(changed(text, "shared %other", "shared %mirror"), Kind::race, {"reads"});
}

TEST(Simulator, WatchesEveryByte) {
  std::string text = function(64, 1, 256, R"(
    %b = arith.trunci %x : i32 to i8
    nvidia.store shared %b, %tid : i8, i32
    nvidia.barrier 64
    %y = nvidia.load shared %mirrorId : i32 -> i8
    nvidia.barrier 64
    nvidia.store shared %y, %tid : i8, i32
    %z = nvidia.load shared %tid : i32 -> i8
    %w = arith.extui %z : i8 to i32
    nvidia.store global %w, %o : i32, i64
)");
  expectClean(text); // neighbours in a word do not disturb each other
  std::string wide = changed(text, "%z = nvidia.load shared %tid : i32 -> i8", R"(%wordOf = arith.divui %tid, %c4 : i32
    %word = arith.muli %wordOf, %c4 : i32
    %v = nvidia.load shared %word : i32 -> i32
    %z = arith.trunci %v : i32 to i8)");
  expectFound(wide, Kind::race, {"reads bytes"});
}

TEST(Simulator, FindsSharedAccessesOutOfBounds) {
  std::string text = changed(exchange, "shared %mirror :", "shared %mirror {offset = 4 : i32} :");
  expectFound(text, Kind::outOfBounds, {"thread 0 of block 0 reads bytes 256 to 259", "a block has 256",
                                        lineOf(text, "nvidia.load shared")});
  expectFound(changed(exchange, "%slot : i32, i32", "%slot {offset = -4 : i32} : i32, i32"), Kind::outOfBounds,
              {"writes"});
  expectFound(changed(exchange, "%slot : i32, i32", "%slot {window = array<i64: 0, 128>} : i32, i32"),
              Kind::outOfBounds, {"outside the window [0, 128)"});
  expectClean(changed(exchange, "%slot : i32, i32", "%slot {window = array<i64: 0, 256>} : i32, i32"));
}

TEST(Simulator, FindsMisalignedAccesses) {
  expectFound(changed(exchange, "shared %x, %slot :", "shared %x, %slot {offset = 2 : i32} :"), Kind::misaligned,
              {"no multiple of 4", "shared memory"});
  expectFound(changed(exchange, "global %y, %o :", "global %y, %o {offset = 1 : i32} :"), Kind::misaligned,
              {"no multiple of 4", "of y"});
}

TEST(Simulator, FindsUninitialisedReads) {
  expectFound(changed(exchange, "%slot : i32, i32", "%slot mask %first : i32, i32"), Kind::uninitialised,
              {"never written"});
}

//===--- Global memory --------------------------------------------------------------------------------------------===//

TEST(Simulator, FindsGlobalAccessesOutOfBounds) {
  expectFound(changed(exchange, "global %y, %o :", "global %y, %o {offset = 4092 : i32} :"), Kind::outOfBounds,
              {"writes 4 bytes", "of y (4096 bytes long)"});
  expectFound(changed(exchange, "global %y, %o :", "global %y, %i :"), Kind::outOfBounds, {"x", "only to be read"});
  expectFound(changed(exchange, "nvidia.load global %i :", "nvidia.load global %byte :"), Kind::outOfBounds,
              {"address 0x", "far from all memory"});
}

TEST(Simulator, FindsTwoThreadsThatWriteDifferentValues) {
  std::string text = changed(exchange, "global %y, %o :", "global %y, %out :");
  expectFound(text, Kind::race, {"byte 0 of y", "another value", lineOf(text, "nvidia.store global")});
  expectFound(changed(exchange, "global %y, %o :", "global %bid, %out :"), Kind::race, {"byte 0 of y"}, 2);
  expectClean(changed(exchange, "global %y, %o :", "global %c4, %out :"), 2); // the same value
  std::string ordered = function(64, 1, 0, R"(
    nvidia.store global %x, %o : i32, i64
    nvidia.barrier 64
    %last64 = arith.extui %mirrorId : i32 to i64
    %off = arith.muli %last64, %four64 : i64
    %p = arith.addi %out, %off : i64
    %y = nvidia.load global %p : i64 -> i32
    nvidia.barrier 64
    nvidia.store global %c1, %p : i32, i64
)");
  expectClean(ordered);
  expectFound(changed(ordered, "nvidia.barrier 64"), Kind::race, {"reads 4 bytes of global memory"});
}

TEST(Simulator, OrdersBlocksByFencesAndAtomics) {
  // Block 0 waits for block 1, which starts later, and reads what it wrote.
  std::string text = function(32, 1, 0, R"(
    %flag64 = arith.constant 2048 : i64
    %flag = arith.addi %out, %flag64 : i64
    %data64 = arith.constant 1024 : i64
    %data = arith.addi %out, %data64 : i64
    %isFirst = arith.cmpi eq, %bid, %c0 : i32
    scf.if %isFirst {
      scf.while : () -> () {
        %seen = nvidia.atomic add %flag, %c0 : i32
        %none = arith.cmpi ult, %seen, %c32 : i32
        scf.condition(%none)
      } do {
        scf.yield
      }
      nvidia.fence device
      %y = nvidia.load global %data : i64 -> i32
      nvidia.store global %y, %o : i32, i64
    } else {
      nvidia.store global %c4, %data mask %first : i32, i64
      nvidia.fence device // of the writer
      %old = nvidia.atomic add %flag, %c1 : i32
    }
)");
  expectClean(text, 2);
  EXPECT_EQ(run(text, 0, 2).out[31], 4);
  expectFound(changed(text, "nvidia.fence device // of the writer"), Kind::race, {"reads", "of block 1"}, 2);
  expectFound(changed(text, "nvidia.fence device\n", "\n"), Kind::race, {"reads", "of block 1"}, 2);
  expectFound(text, Kind::deadlock, {"has not ended"}, 1); // nobody sets the flag
}

//===--- Asynchronous copies --------------------------------------------------------------------------------------===//

const std::string copies = function(64, 1, 512, R"(
    nvidia.cp_async 4, %slot, %i, %c4
    nvidia.cp_async_commit
    %c256 = arith.constant 256 : i32
    %slot2 = arith.addi %slot, %c256 : i32
    nvidia.cp_async 4, %slot2, %i, %c4
    nvidia.cp_async_commit
    nvidia.cp_async_wait 1
    nvidia.barrier 64 // first
    %y = nvidia.load shared %mirror : i32 -> i32
    nvidia.cp_async_wait 0
    nvidia.barrier 64
    %z = nvidia.load shared %mirror {offset = 256 : i32} : i32 -> i32
    %s = arith.addi %y, %z : i32
    nvidia.store global %s, %o : i32, i64
)");

TEST(Simulator, CopiesAsynchronously) {
  expectClean(copies);
  EXPECT_EQ(run(copies, 7).out[0], 2126);
  expectFound(changed(copies, "nvidia.cp_async_wait 1"), Kind::race, {"asynchronous copy", "no wait"});
  expectFound(changed(copies, "nvidia.cp_async_wait 0"), Kind::race, {"asynchronous copy", "no wait"});
  expectFound(changed(copies, "nvidia.cp_async_wait 0", "nvidia.cp_async_wait 1"), Kind::race, {"asynchronous copy"});
  expectFound(changed(copies, "nvidia.cp_async_commit\n"), Kind::race, {"asynchronous copy"});
  expectFound(changed(copies, "nvidia.barrier 64 // first"), Kind::race, {"no barrier orders"});
  // The second copy overwrites what is still read.
  std::string reused = changed(copies, "%c256 = arith.constant 256", "%c256 = arith.constant 0");
  expectFound(reused, Kind::race, {"starts a copy to"});
  expectFound(changed(copies, "nvidia.cp_async 4, %slot, %i, %c4", "nvidia.cp_async 16, %slot, %i, %c16"),
              Kind::misaligned, {"no multiple of 16"});
  expectFound(changed(copies, "%slot2, %i, %c4", "%slot2, %i, %c16"), Kind::misuse, {"asks for 16 of the 4 bytes"});
}

TEST(Simulator, FindsAWriteBeforeOthersHaveRead) {
  std::string text = function(64, 1, 256, R"(
    nvidia.store shared %x, %slot : i32, i32
    nvidia.barrier 64
    %y = nvidia.load shared %mirror : i32 -> i32
    nvidia.barrier 64 // before the copy
    nvidia.cp_async 4, %slot, %i, %c4
    nvidia.cp_async_commit
    nvidia.cp_async_wait 0
    nvidia.store global %y, %o : i32, i64
)");
  expectClean(text);
  expectFound(changed(text, "nvidia.barrier 64 // before the copy"), Kind::race, {"starts a copy to", "reads"});
}

//===--- mbarriers ------------------------------------------------------------------------------------------------===//

const std::string phases = function(64, 1, 264, R"(
    %bar = arith.constant 256 : i32
    scf.if %first {
      nvidia.mbarrier_init %bar, %all
    }
    nvidia.barrier 64
    nvidia.store shared %x, %slot : i32, i32
    nvidia.mbarrier_arrive %bar
    nvidia.mbarrier_wait %bar, %c0
    %y = nvidia.load shared %mirror : i32 -> i32
    nvidia.mbarrier_arrive %bar // again
    nvidia.mbarrier_wait %bar, %c1
    nvidia.store shared %y, %slot : i32, i32
    nvidia.store global %y, %o : i32, i64
)");

TEST(Simulator, OrdersByMbarriers) {
  expectClean(phases);
  EXPECT_EQ(run(phases).out[0], 1063);
  expectFound(changed(phases, "nvidia.mbarrier_wait %bar, %c0"), Kind::race, {"shared memory", "reads"});
  expectFound(changed(phases, "nvidia.mbarrier_wait %bar, %c0", "nvidia.mbarrier_wait %bar, %c1"), Kind::race,
              {"reads"});
  expectFound(changed(phases, "nvidia.mbarrier_wait %bar, %c1"), Kind::race, {"writes"});
  // Some threads come before the first: as a race, or as an object that is not there.
  std::string early = changed(phases, "nvidia.barrier 64");
  for (uint64_t seed : {0, 1, 2, 3})
    EXPECT_NE(run(early, seed).report.text().find("uses an mbarrier"), std::string::npos);
}

TEST(Simulator, FindsMisusedMbarriers) {
  expectFound(changed(phases, "nvidia.mbarrier_init %bar, %all"), Kind::misuse, {"where none has been made"});
  expectFound(changed(phases, "nvidia.mbarrier_init %bar, %all", "nvidia.mbarrier_init %bar, %c0"), Kind::misuse,
              {"for 0 arrivals"});
  expectFound(changed(phases, "shared %y, %slot :", "shared %y, %bar mask %first :"), Kind::misuse,
              {"where an mbarrier is"});
  expectFound(changed(phases, "arrive %bar\n", "arrive %bar expect %c4\n"), Kind::deadlock, {"wait at an mbarrier"});
  expectFound(changed(changed(phases, "arrive %bar\n", "arrive %bar expect %c4\n"), "nvidia.mbarrier_wait %bar, %c0"),
              Kind::misuse, {"after all 64 arrivals"});
  expectFound(changed(phases, "nvidia.mbarrier_arrive %bar // again",
                      "scf.if %low {\n nvidia.mbarrier_arrive %bar\n }"),
              Kind::deadlock, {"wait at an mbarrier"});
}

TEST(Simulator, CopiesArriveAtMbarriers) {
  std::string text = function(64, 1, 264, R"(
    %bar = arith.constant 256 : i32
    scf.if %first {
      nvidia.mbarrier_init %bar, %all
    }
    nvidia.barrier 64
    nvidia.cp_async 4, %slot, %i, %c4
    nvidia.cp_async_arrive %bar
    nvidia.mbarrier_wait %bar, %c0
    %y = nvidia.load shared %mirror : i32 -> i32
    nvidia.store global %y, %o : i32, i64
)");
  expectClean(text);
  EXPECT_EQ(run(text).out[0], 1063);
  expectFound(changed(text, "nvidia.mbarrier_wait %bar, %c0"), Kind::race, {"starts a copy"});
  // An ordinary arrival does not wait for copies.
  expectFound(changed(text, "nvidia.cp_async_arrive", "nvidia.mbarrier_arrive"), Kind::race, {"asynchronous copy"});
}

//===--- Divergence and deadlock ----------------------------------------------------------------------------------===//

TEST(Simulator, FindsDivergence) {
  std::string text = function(64, 1, 0, R"(
    scf.if %low {
      %y = nvidia.shuffle bfly %x, %c1 : i32
      nvidia.store global %y, %o : i32, i64
    } else {
      %z = nvidia.shuffle bfly %x, %c1 : i32
      nvidia.store global %z, %o : i32, i64
    }
)");
  expectFound(text, Kind::divergence, {"shuffle", lineOf(text, "%y ="), lineOf(text, "%z =")});
  std::string exits = changed(changed(text, "%z = nvidia.shuffle bfly %x, %c1 : i32"), "global %z", "global %x");
  expectFound(exits, Kind::divergence, {"has exited", "shuffle"});
  expectFound(changed(text, "%z = nvidia.shuffle bfly %x, %c1 : i32", "%z = nvidia.vote %low"), Kind::divergence,
              {"shuffle", "vote"});
  expectFound(changed(text, "%z = nvidia.shuffle bfly %x, %c1 : i32", "nvidia.barrier 64\n %z = nvidia.thread_id"),
              Kind::divergence, {"wait at a shuffle", "wait at a barrier"});
}

TEST(Simulator, FindsDivergentBarriers) {
  std::string text = function(64, 1, 0, R"(
    scf.if %low {
      nvidia.barrier 64 // low
    } else {
      nvidia.barrier 64
    }
    nvidia.store global %x, %o : i32, i64
)");
  expectFound(text, Kind::divergence, {"barrier 0", "same instruction"});
  std::string some = function(64, 1, 0, R"(
    %odd = arith.trunci %tid : i32 to i1
    scf.if %odd {
      nvidia.barrier 32
    }
)");
  expectFound(some, Kind::divergence, {"only 16 threads of warp", "whole warps"});
  expectFound(changed(text, "nvidia.barrier 64 // low", "nvidia.barrier 32"), Kind::misuse, {"for 64", "for 32"});
  expectFound(changed(text, "nvidia.barrier 64 // low", "nvidia.barrier 128"), Kind::misuse, {"128 threads"});
}

TEST(Simulator, FindsDeadlock) {
  std::string text = function(64, 1, 0, R"(
    %warp0 = arith.cmpi ult, %tid, %c32 : i32
    scf.if %warp0 {
      nvidia.barrier 64
    }
    nvidia.store global %x, %o : i32, i64
)");
  expectFound(text, Kind::deadlock,
              {"threads 0 to 31 of block 0 wait at a barrier at " + lineOf(text, "nvidia.barrier"), "32 to 63",
               "exited"});
  expectClean(changed(text, "nvidia.barrier 64", "nvidia.barrier 32"));
}

//===--- Clusters -------------------------------------------------------------------------------------------------===//

const std::string neighbours = function(64, 2, 256, R"(
    nvidia.store shared %x, %slot : i32, i32
    nvidia.cluster_arrive
    nvidia.cluster_wait
    %rank = nvidia.cluster_rank
    %other = arith.xori %rank, %c1 : i32
    %far = nvidia.map_shared %mirror, %other
    %y = nvidia.load cluster %far : i32 -> i32
    nvidia.cluster_arrive // at the end
    nvidia.cluster_wait // at the end
    nvidia.store global %y, %o : i32, i64
)");

TEST(Simulator, ReadsTheNeighboursMemory) {
  expectClean(neighbours, 4);
  EXPECT_EQ(run(neighbours, 0, 4).out[0], 1127);
  EXPECT_EQ(run(neighbours, 0, 4).out[128], 1255);
}

TEST(Simulator, FindsMissingClusterBarriers) {
  std::string start = changed(changed(neighbours, "nvidia.cluster_arrive"), "nvidia.cluster_wait");
  expectFound(start, Kind::race, {"may not have started"});
  expectFound(start, Kind::race, {"no barrier orders"});
  std::string end =
      changed(changed(neighbours, "nvidia.cluster_arrive // at the end"), "nvidia.cluster_wait // at the end");
  expectFound(end, Kind::race, {"shared memory of block", "exit"});
  // Arriving without waiting orders nothing.
  expectFound(changed(neighbours, "nvidia.cluster_wait"), Kind::misuse, {"twice"});
  expectFound(changed(neighbours, "nvidia.cluster_arrive"), Kind::misuse, {"without having arrived"});
  expectFound(changed(neighbours, "map_shared %mirror, %other", "map_shared %mirror, %c4"), Kind::outOfBounds,
              {"block 4 of a cluster of 2"});
}

//===--- Reports --------------------------------------------------------------------------------------------------===//

TEST(Simulator, CountsWhatItFindsAgain) {
  SimReport report = run(changed(exchange, "nvidia.barrier 64\n", "\n")).report;
  ASSERT_EQ(report.findings.size(), 3u); // half of the reads are early, of bytes unwritten; half of the writes late
  EXPECT_GT(report.findings[0].count + report.findings[1].count, 16);
  EXPECT_TRUE(report.completed);
  EXPECT_NE(report.text().find("times more at these lines"), std::string::npos);
}

TEST(Simulator, RefusesImpossibleLaunches) {
  EXPECT_THROW(run(function(48, 1, 0, "")), std::runtime_error);
  EXPECT_THROW(run(function(64, 2, 0, ""), 0, 3), std::runtime_error);
}

} // namespace
} // namespace tenon::test
