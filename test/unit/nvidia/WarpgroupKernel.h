// SPDX-License-Identifier: Apache-2.0
//
// A product of 128 x k by k x 128 bf16 as one block of Hopper's own kind: a warpgroup whose first thread has the tensor
// memory accelerator fill a ring of two stages, and two warpgroups that multiply 64 rows each.
#pragma once

#include <string>

namespace tenon::test {

struct WarpgroupKernel {
  static constexpr int rows = 128, columns = 128, depth = 64; // depth: of a stage, 128 bytes
  static constexpr int stageBytes = 2 * 128 * 128, barriers = 2 * stageBytes, sharedBytes = barriers + 32;

  /// (%out: i64, %steps: i64): the address of rows x columns f32, and how many stages k has. Tensor map 0 is of A, 1 of
  /// B, both with k innermost, boxes of 64 x 128 and a swizzle over 128 bytes. `fromRegisters`: the rows of A go
  /// through registers, and so every thread, not only one of each warpgroup, says when a stage is free. The next
  /// stage's are written there, so that products are waited for in their iteration.
  static std::string text(bool fromRegisters = false) {
    std::string accumulators, initial, types, yielded;
    for (int i = 0; i < columns / 2; ++i) {
      std::string comma = i ? ", " : "", number = std::to_string(i);
      accumulators += comma + "%acc" + number;
      initial += comma + "%acc" + number + " = %zero";
      types += comma + "f32";
    }
    auto part = [&](const std::string &name) {
      std::string all;
      for (int i = 0; i < columns / 2; ++i)
        all += (i ? ", " : "") + name + "#" + std::to_string(i);
      return all;
    };
    std::string text = R"(func.func @kernel(%out: i64, %steps: i64) attributes {nvidia.threads = 384 : i64,
    nvidia.cluster = 1 : i64, nvidia.shared_bytes = 65568 : i64, nvidia.tensor_maps = 2 : i64} {
  %tid = nvidia.thread_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %bytes = arith.constant 32768 : i32
  %aBytes = arith.constant 16384 : i32
  %barriers = arith.constant 65536 : i32
  %toEmpty = arith.constant 16 : i32
  %n = arith.trunci %steps : i64 to i32
  %readers = arith.constant READERS : i32
  %first = arith.cmpi eq, %tid, %c0 : i32
  scf.if %first {
    %full1 = arith.addi %barriers, %c8 : i32
    %empty0 = arith.addi %barriers, %toEmpty : i32
    %empty1 = arith.addi %empty0, %c8 : i32
    nvidia.mbarrier_init %barriers, %c1
    nvidia.mbarrier_init %full1, %c1
    nvidia.mbarrier_init %empty0, %readers
    nvidia.mbarrier_init %empty1, %readers
    nvidia.fence mbarrier_init
  }
  nvidia.barrier 384
  %produces = arith.cmpi ult, %tid, %c128 : i32
  scf.if %produces {
    nvidia.set_max_registers 40 {increase = false}
    scf.if %first {
      %mapA = nvidia.tensor_map 0
      %mapB = nvidia.tensor_map 1
      %end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0, %phase = %c0) -> (i32, i32) : i32 {
        %at8 = arith.muli %slot, %c8 : i32
        %full = arith.addi %barriers, %at8 : i32
        %empty = arith.addi %full, %toEmpty : i32
        %before = arith.xori %phase, %c1 : i32
        nvidia.mbarrier_wait %empty, %before
        nvidia.mbarrier_arrive %full expect %bytes
        %a = arith.muli %slot, %bytes : i32
        %b = arith.addi %a, %aBytes : i32
        %k = arith.muli %i, %c64 : i32
        nvidia.tma_load %a, %mapA[%k, %c0], %full {window = array<i64: 0, 65536>}
        nvidia.tma_load %b, %mapB[%k, %c0], %full {window = array<i64: 0, 65536>}
        %next = arith.xori %slot, %c1 : i32
        %wraps = arith.xori %phase, %slot : i32
        scf.yield %next, %wraps : i32, i32
      }
    }
  } else {
    nvidia.set_max_registers 232 {increase = true}
    %mine = arith.subi %tid, %c128 : i32
    %group = arith.divui %mine, %c128 : i32
    %member = arith.andi %mine, %c127 : i32
    %leads = arith.cmpi LEADS, %member, %c0 : i32
    %c3 = arith.constant 3 : i32
    %c5 = arith.constant 5 : i32
    %c7 = arith.constant 7 : i32
    %c15 = arith.constant 15 : i32
    %c31 = arith.constant 31 : i32
    %warp = arith.shrui %member, %c5 : i32
    %lane = arith.andi %member, %c31 : i32
    %rowBytes = arith.constant 8192 : i32
    %aRows = arith.muli %group, %rowBytes : i32
    %four = arith.constant 4 : i32
    %high = arith.constant 4611686293305360384 : i64
    %advance = arith.constant 2 : i64
)";
    text += "    %sum:" + std::to_string(columns / 2 + 2) +
            " = scf.for %i = %c0 to %n step %c1 iter_args(%slot = %c0, %phase = %c0, " + initial +
            ") -> (i32, i32, " + types + ") : i32 {\n";
    text += R"(      %at8 = arith.muli %slot, %c8 : i32
      %full = arith.addi %barriers, %at8 : i32
      nvidia.mbarrier_wait %full, %phase
      %stage = arith.muli %slot, %bytes : i32
      %a = arith.addi %stage, %aRows : i32
      %b = arith.addi %stage, %aBytes : i32
      %a16 = arith.shrui %a, %four : i32
      %b16 = arith.shrui %b, %four : i32
      %aWide = arith.extui %a16 : i32 to i64
      %bWide = arith.extui %b16 : i32 to i64
      %a0 = arith.ori %aWide, %high : i64
      %b0 = arith.ori %bWide, %high : i64
      %later = arith.cmpi ne, %i, %c0 : i32
)";
    if (fromRegisters)
      text += loadFragments();
    text += "      nvidia.wgmma_fence\n";
    for (int step = 0; step < depth / 16; ++step) {
      std::string now = std::to_string(step), before = std::to_string(step - 1);
      if (step) {
        text += "      %a" + now + " = arith.addi %a" + before + ", %advance : i64\n";
        text += "      %b" + now + " = arith.addi %b" + before + ", %advance : i64\n";
      }
      text += "      %r" + now + ":" + std::to_string(columns / 2) + " = nvidia.wgmma bf16 bf16 128 [" +
              (step ? part("%r" + before) : accumulators) + "], (" +
              (fromRegisters ? fragment(step) : "%a" + now) + "), %b" + now + ", " + (step ? "%true" : "%later") +
              " {window_a = array<i64: 0, 65536>, window_b = array<i64: 0, 65536>} : " +
              (fromRegisters ? "i32, i32, i32, i32" : "i64") + " : f32\n";
    }
    text += "      nvidia.wgmma_commit\n";
    text += "      %w:" + std::to_string(columns / 2) + " = nvidia.wgmma_wait " + (fromRegisters ? "0" : "1") + " [" +
            part("%r3") + "] : f32\n";
    text += R"(      %releases = arith.andi %leads, %later : i1
      %previous = arith.xori %slot, %c1 : i32
      %other8 = arith.muli %previous, %c8 : i32
      %otherFull = arith.addi %barriers, %other8 : i32
      %otherEmpty = arith.addi %otherFull, %toEmpty : i32
      scf.if %releases {
        nvidia.mbarrier_arrive %otherEmpty
      }
      %wraps = arith.xori %phase, %slot : i32
)";
    text += "      scf.yield %previous, %wraps, " + part("%w") + " : i32, i32, " + types + "\n    }\n";
    std::string last;
    for (int i = 0; i < columns / 2; ++i)
      last += (i ? ", " : "") + ("%sum#" + std::to_string(i + 2));
    text += "    %d:" + std::to_string(columns / 2) + " = nvidia.wgmma_wait 0 [" + last + "] : f32\n";
    text += R"(    %warpRow = arith.shli %warp, %four : i32
    %groupRow = arith.muli %group, %c64 : i32
    %laneRow = arith.shrui %lane, %c2 : i32
    %row0 = arith.addi %warpRow, %groupRow : i32
    %row = arith.addi %row0, %laneRow : i32
    %pair = arith.andi %lane, %c3 : i32
    %rowPitch = arith.constant 512 : i32
    %rowByte = arith.muli %row, %rowPitch : i32
    %pairByte = arith.shli %pair, %c3 : i32
    %byte = arith.addi %rowByte, %pairByte : i32
    %wide = arith.extui %byte : i32 to i64
    %place = arith.addi %out, %wide : i64
)";
    for (int i = 0; i < columns / 2; i += 2) { // 4 j + 2 h: column 8 j, row 8 h
      std::string number = std::to_string(i);
      text += "    %p" + number + " = vector.from_elements %d#" + number + ", %d#" + std::to_string(i + 1) +
              " : vector<2xf32>\n";
      text += "    nvidia.store global %p" + number + ", %place {offset = " +
              std::to_string(i / 4 * 32 + (i / 2 % 2) * 8 * columns * 4) + " : i32} : vector<2xf32>, i64\n";
    }
    text += "  }\n  return\n}\n";
    auto replace = [&](const std::string &name, const std::string &by) {
      text.replace(text.find(name), name.size(), by);
    };
    replace("READERS", fromRegisters ? "256" : "2");
    replace("LEADS", fromRegisters ? "uge" : "eq");
    return text;
  }

private:
  /// The registers of A for one step along k.
  static std::string fragment(int step) {
    std::string all;
    for (int i = 0; i < 4; ++i)
      all += (i ? ", " : "") + ("%f" + std::to_string(step)) + std::to_string(i);
    return all;
  }
  /// Lane l names 16 bytes of row l % 16 of its warp's rows, the second 16 of a step from lane 16 on; swizzled.
  static std::string loadFragments() {
    std::string text = R"(      %laneRow16 = arith.andi %lane, %c15 : i32
      %warpRow16 = arith.shli %warp, %four : i32
      %aRow = arith.addi %warpRow16, %laneRow16 : i32
      %aRowByte = arith.shli %aRow, %c7 : i32
      %aStart = arith.addi %a, %aRowByte : i32
      %swizzle = arith.andi %lane, %c7 : i32
      %half = arith.shrui %lane, %four : i32
)";
    for (int step = 0; step < depth / 16; ++step) {
      std::string now = std::to_string(step);
      text += "      %unit" + now + "c = arith.constant " + std::to_string(2 * step) + " : i32\n";
      text += "      %unit" + now + " = arith.addi %half, %unit" + now + "c : i32\n";
      text += "      %place" + now + " = arith.xori %unit" + now + ", %swizzle : i32\n";
      text += "      %byte" + now + " = arith.shli %place" + now + ", %four : i32\n";
      text += "      %from" + now + " = arith.addi %aStart, %byte" + now + " : i32\n";
      text += "      %m" + now + " = nvidia.ldmatrix %from" + now + " -> vector<4xi32>\n";
      for (int i = 0; i < 4; ++i)
        text += "      %f" + now + std::to_string(i) + " = vector.extract %m" + now + "[" + std::to_string(i) +
                "] : i32 from vector<4xi32>\n";
    }
    return text;
  }
};

} // namespace tenon::test
