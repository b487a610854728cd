// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/layout/Fragments.h"

#include "RandomLayouts.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/layout/Conversion.h"

#include <gtest/gtest.h>

using namespace tenon;
using namespace tenon::nvidia;
using namespace tenon::nvidia::test;

namespace {

/// The formula of each thread and register, as the PTX manual or a program that ran has it, against the layout.
template <typename Formula> void expectEverywhere(const LinearLayout &layout, int64_t registers, Formula formula) {
  for (int64_t warp = 0; warp < layout.size(Unit::Warp); ++warp)
    for (int64_t lane = 0; lane < layout.size(Unit::Lane); ++lane)
      for (int64_t reg = 0; reg < registers; ++reg)
        ASSERT_EQ(layout.apply({.reg = reg, .lane = lane, .warp = warp}), formula(reg, lane, warp))
            << "register " << reg << " lane " << lane << " warp " << warp;
}

//===--- Matrix instructions --------------------------------------------------------------------------------------===//

TEST(Fragments, WgmmaAccumulator) {
  for (int64_t n = 8; n <= 256; n += 8) {
    LinearLayout layout = wgmmaAccumulator(n);
    ASSERT_EQ(layout.extent(0), 64);
    // Column pair 8j + 2(lane % 4), rows lane / 4 and eight below: four registers for each eight columns.
    expectEverywhere(layout, n / 2, [](int64_t reg, int64_t lane, int64_t warp) {
      int64_t j = reg / 4, i = reg % 4;
      return Coords{16 * warp + lane / 4 + (i < 2 ? 0 : 8), 8 * j + 2 * (lane % 4) + (i & 1)};
    });
    // The registers that do not exist are those of the columns that do not.
    forEachPlace(layout, [&](const Place &p) { ASSERT_EQ(isInside(layout.apply(p), {64, n}), p.reg < n / 2); });
  }
  EXPECT_THROW(wgmmaAccumulator(12), InternalError);
  EXPECT_THROW(wgmmaAccumulator(264), InternalError);
}

TEST(Fragments, WgmmaOperandA) {
  LinearLayout layout = wgmmaOperandA(16);
  EXPECT_EQ(layout.shape(), (Shape{64, 16}));
  EXPECT_EQ(layout.registers(), 8);
  expectEverywhere(layout, 8, [](int64_t i, int64_t lane, int64_t warp) {
    bool upper = i < 2 || (i >= 4 && i < 6);
    return Coords{16 * warp + lane / 4 + (upper ? 0 : 8), lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  });
  EXPECT_EQ(wgmmaOperandA(8).shape(), (Shape{64, 32}));
  EXPECT_EQ(wgmmaOperandA(32).shape(), (Shape{64, 8}));
}

TEST(Fragments, AccumulatorIn16BitsIsTheNextOperandA) {
  // The score tile of attention, 64 x 128: converting its elements to 16 bits leaves them where they are, and there
  // they are the eight register operands of the value product.
  LinearLayout scores = wgmmaAccumulator(128), operand = wgmmaOperandA(16).repeat(Unit::Register, 1, 8);
  EXPECT_EQ(scores, operand);
  EXPECT_EQ(classifyConversion(scores, operand).kind, ConversionKind::Identical);
  // As the program packs them: 32-bit register i has elements 2i and 2i + 1, step k of the product takes registers
  // 4k .. 4k + 3.
  for (int64_t k = 0; k < 8; ++k)
    for (int64_t i = 0; i < 8; ++i)
      for (int64_t lane = 0; lane < 32; ++lane) {
        Coords expected = wgmmaOperandA(16).apply({.reg = i, .lane = lane, .warp = 2});
        expected[1] += 16 * k;
        ASSERT_EQ(scores.apply({.reg = 2 * (4 * k + i / 2) + i % 2, .lane = lane, .warp = 2}), expected);
      }
  // Eight-bit operands are another matter: elements cross lanes.
  EXPECT_EQ(classifyConversion(scores, wgmmaOperandA(8).repeat(Unit::Register, 1, 4)).kind, ConversionKind::Shuffle);
}

TEST(Fragments, RowsOfTheSoftmaxAreInFourLanes) {
  // Row maxima of the accumulator: two registers a thread, and the lanes to combine are those that differ in bits 0 and
  // 1.
  LinearLayout rows = wgmmaAccumulator(128).project({1}).removeDuplicateRegisters();
  EXPECT_EQ(rows.registers(), 2);
  EXPECT_EQ(rows.freeVariableMasks()[unsigned(Unit::Lane)], 0b00011);
  EXPECT_EQ(rows.freeVariableMasks()[unsigned(Unit::Warp)], 0);
  expectEverywhere(rows, 2, [](int64_t reg, int64_t lane, int64_t warp) {
    return Coords{16 * warp + lane / 4 + 8 * reg, 0};
  });
}

TEST(Fragments, MmaAccumulator) {
  EXPECT_EQ(mmaAccumulator().shape(), (Shape{16, 8}));
  expectEverywhere(mmaAccumulator(), 4, [](int64_t i, int64_t lane, int64_t) {
    return Coords{lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
  });
}

TEST(Fragments, MmaOperands16Bit) {
  EXPECT_EQ(mmaOperandA(16).shape(), (Shape{16, 16}));
  EXPECT_EQ(mmaOperandB(16).shape(), (Shape{16, 8}));
  expectEverywhere(mmaOperandA(16), 8, [](int64_t i, int64_t lane, int64_t) {
    bool upper = i < 2 || (i >= 4 && i < 6);
    return Coords{lane / 4 + (upper ? 0 : 8), lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8)};
  });
  expectEverywhere(mmaOperandB(16), 4, [](int64_t i, int64_t lane, int64_t) {
    return Coords{lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8), lane / 4};
  });
}

TEST(Fragments, MmaOperandsTf32) {
  EXPECT_EQ(mmaOperandA(32).shape(), (Shape{16, 8}));
  EXPECT_EQ(mmaOperandB(32).shape(), (Shape{8, 8}));
  expectEverywhere(mmaOperandA(32), 4, [](int64_t i, int64_t lane, int64_t) {
    return Coords{lane / 4 + (i == 0 || i == 2 ? 0 : 8), lane % 4 + (i < 2 ? 0 : 4)};
  });
  expectEverywhere(mmaOperandB(32), 2, [](int64_t i, int64_t lane, int64_t) {
    return Coords{lane % 4 + (i == 0 ? 0 : 4), lane / 4};
  });
}

TEST(Fragments, MmaOperands8Bit) {
  EXPECT_EQ(mmaOperandA(8).shape(), (Shape{16, 32}));
  EXPECT_EQ(mmaOperandB(8).shape(), (Shape{32, 8}));
  expectEverywhere(mmaOperandA(8), 16, [](int64_t i, int64_t lane, int64_t) {
    bool upper = i < 4 || (i >= 8 && i < 12);
    return Coords{lane / 4 + (upper ? 0 : 8), lane % 4 * 4 + (i & 3) + (i < 8 ? 0 : 16)};
  });
  expectEverywhere(mmaOperandB(8), 8, [](int64_t i, int64_t lane, int64_t) {
    return Coords{lane % 4 * 4 + (i & 3) + (i < 4 ? 0 : 16), lane / 4};
  });
  EXPECT_THROW(mmaOperandA(64), InternalError);
}

//===--- Shared memory --------------------------------------------------------------------------------------------===//

TEST(Fragments, PanelsAreTheSwizzlesOfTheManual) {
  struct Swizzle {
    unsigned bytes, addressBits;
  };
  for (Swizzle swizzle : {Swizzle{16, 0}, {32, 1}, {64, 2}, {128, 3}})
    for (unsigned elementBits : {8u, 16u, 32u}) {
      LinearLayout panel = swizzledPanel(64, swizzle.bytes, elementBits);
      int64_t elementBytes = elementBits / 8;
      ASSERT_EQ(panel.shape(), (Shape{64, swizzle.bytes / elementBytes}));
      LinearLayout offsets = panel.inverse();
      forEachCoords(panel.shape(), [&](const Coords &c) {
        int64_t linear = c[0] * swizzle.bytes + c[1] * elementBytes;
        int64_t address = linear ^ ((linear >> 7 & ((1 << swizzle.addressBits) - 1)) << 4);
        ASSERT_EQ(offsets.placeOf(c).offset * elementBytes, address);
      });
    }
  EXPECT_THROW(swizzledPanel(64, 256, 16), InternalError);
  EXPECT_THROW(swizzledTile(64, 96, 128, 16), InternalError);
}

TEST(Fragments, PanelsLieOneAfterTheOther) {
  // Query tile of attention, 128 x 128: columns 64 .. 127 in a second panel, 128 rows of 128 bytes further on.
  LinearLayout offsets = swizzledTile(128, 128, 128, 16).inverse();
  forEachCoords({128, 128}, [&](const Coords &c) {
    int64_t panel = c[1] / 64, chunk = c[1] % 64 / 8;
    int64_t address = panel * 128 * 128 + c[0] * 128 + ((chunk ^ (c[0] & 7)) << 4) + c[1] % 8 * 2;
    ASSERT_EQ(offsets.placeOf(c).offset * 2, address);
  });
}

TEST(Fragments, ProductStepsAndWarpgroupsAreWhereTheDescriptorsPoint) {
  // A descriptor names the start of an operand; the hardware applies the swizzle to the addresses. Steps along k add 32
  // bytes within a panel: the element that is there without swizzle must be the first of the step.
  LinearLayout tile = swizzledTile(128, 128, 128, 16);
  for (int64_t k = 0; k < 8; ++k)
    EXPECT_EQ(tile.apply({.offset = (k / 4 * 128 * 128 + k % 4 * 32) / 2}), (Coords{0, 16 * k}));
  // The second warpgroup's rows: 64 rows of 128 bytes; steps along the rows of the value tile: 2048 bytes.
  EXPECT_EQ(tile.apply({.offset = 64 * 128 / 2}), (Coords{64, 0}));
  for (int64_t k = 0; k < 8; ++k)
    EXPECT_EQ(tile.apply({.offset = k * 2048 / 2}), (Coords{16 * k, 0}));
}

//===--- ldmatrix and stmatrix ------------------------------------------------------------------------------------===//

TEST(Fragments, MatrixRowsAndRegisters) {
  std::vector<std::vector<unsigned>> arrangements = {{}, {0}, {1}, {0, 1}, {1, 0}, {0, 0}};
  for (const std::vector<unsigned> &arrangement : arrangements) {
    int64_t matrices = int64_t(1) << arrangement.size();
    auto origin = [&](int64_t matrix, int64_t columns) {
      Coords at = {0, 0}, step = {8, columns};
      for (size_t bit = 0; bit < arrangement.size(); ++bit) {
        at[arrangement[bit]] += (matrix >> bit & 1) * step[arrangement[bit]];
        step[arrangement[bit]] *= 2;
      }
      return at;
    };
    for (unsigned elementBits : {8u, 16u, 32u}) {
      MatrixMove move = matrixMove(arrangement, elementBits);
      int64_t perWord = 32 / elementBits, columns = 4 * perWord;
      for (int64_t lane = 0; lane < 8 * matrices; ++lane) {
        Coords expected = origin(lane / 8, columns);
        expected[0] += lane % 8;
        ASSERT_EQ(move.rowOfLane.apply({.lane = lane}), expected);
      }
      EXPECT_EQ(move.rowOfLane.size(Unit::Lane), 32);
      // Register m of lane l has row l / 4 of matrix m, its word l % 4.
      expectEverywhere(move.registers, perWord * matrices, [&](int64_t reg, int64_t lane, int64_t) {
        Coords at = origin(reg / perWord, columns);
        return Coords{at[0] + lane / 4, at[1] + lane % 4 * perWord + reg % perWord};
      });
    }
    // Transposed: rows 2(l % 4) and the one below, of column l / 4.
    LinearLayout transposed = matrixMove(arrangement, 16, /*transposed=*/true).registers;
    expectEverywhere(transposed, 2 * matrices, [&](int64_t reg, int64_t lane, int64_t) {
      Coords at = origin(reg / 2, 8);
      return Coords{at[0] + lane % 4 * 2 + reg % 2, at[1] + lane / 4};
    });
  }
  EXPECT_THROW(matrixMove({0, 1}, 8, true), InternalError);
  EXPECT_THROW(matrixMove({0, 1, 1}, 16), InternalError);
}

TEST(Fragments, MatricesAreTheOperandsOfMma) {
  EXPECT_EQ(matrixMove({0, 1}, 16).registers, mmaOperandA(16));
  EXPECT_EQ(matrixMove({0, 1}, 8).registers, mmaOperandA(8));
  EXPECT_EQ(matrixMove({0, 1}, 32).registers, mmaOperandA(32));
  // B comes from memory with k contiguous as it is, and transposed from memory with n contiguous.
  EXPECT_EQ(matrixMove({1}, 16).registers.transpose({1, 0}), mmaOperandB(16));
  EXPECT_EQ(matrixMove({0}, 16, true).registers, mmaOperandB(16));
}

TEST(Fragments, AccumulatorStoresOfTheProgramsThatRan) {
  // A warpgroup's 64 x n tile in 16 bits, with stmatrix x4 to swizzled panels of 64 columns: lane l of warp w gives the
  // address of row 16w + l % 16, columns 16j + 8(l / 16) .. + 7, and stores packed registers 4j .. 4j + 3.
  for (int64_t n : {64, 128, 256}) {
    auto access = planMatrixAccess(wgmmaAccumulator(n), swizzledTile(64, n, 128, 16), 16);
    ASSERT_TRUE(access.has_value());
    EXPECT_EQ(access->matrices, 4u);
    EXPECT_EQ(access->registersPerInstruction, 8);
    EXPECT_EQ(access->rowPlaces.registers(), n / 16);
    for (int64_t j = 0; j < n / 16; ++j)
      for (int64_t warp = 0; warp < 4; ++warp)
        for (int64_t lane = 0; lane < 32; ++lane) {
          int64_t row = (warp << 4) + (lane & 15), high = lane >> 4, panel = j / 4;
          int64_t address = panel * 64 * 128 + (row << 7) + (((high + j % 4 * 2) ^ (row & 7)) << 4);
          Place place = access->rowPlaces.placeOf(Place{.reg = j, .lane = lane, .warp = warp});
          ASSERT_EQ(place.offset * 2, address) << "j " << j << " warp " << warp << " lane " << lane;
        }
    EXPECT_EQ(countWavefronts(*access, 16), (Wavefronts{n / 16 * 4, n / 16 * 4}));
  }
  // Two warpgroups of one query tile, whose panels have 128 rows.
  auto access = planMatrixAccess(wgmmaAccumulator(128).repeat(Unit::Warp, 0, 2), swizzledTile(128, 128, 128, 16), 16);
  ASSERT_TRUE(access.has_value());
  for (int64_t j = 0; j < 8; ++j)
    for (int64_t warp = 0; warp < 8; ++warp)
      for (int64_t lane = 0; lane < 32; ++lane) {
        int64_t row = (warp % 4 << 4) + (lane & 15), chunk = (lane >> 4) + j % 4 * 2;
        int64_t address = warp / 4 * 64 * 128 + (row << 7) + ((chunk ^ (row & 7)) << 4) + j / 4 * 128 * 128;
        ASSERT_EQ(access->rowPlaces.placeOf(Place{.reg = j, .lane = lane, .warp = warp}).offset * 2, address);
      }
}

TEST(Fragments, DirectStoresOfTheProgramThatRan) {
  // Without staging a thread stores two packed elements at (row, 8j + 2(lane % 4)) and eight rows below.
  LinearLayout tile = wgmmaAccumulator(256).repeat(Unit::Warp, 0, 2);
  EXPECT_EQ(tile.numConsecutiveInRegisters(1), 2);
  for (int64_t thread = 0; thread < 256; ++thread) {
    int64_t warpgroup = thread / 128, lane = thread % 32, warp = thread % 128 / 32;
    int64_t row = (warp << 4) + (lane >> 2) + 64 * warpgroup, column = (lane & 3) << 1;
    for (int64_t j = 0; j < 32; ++j)
      for (int64_t half = 0; half < 2; ++half)
        ASSERT_EQ(tile.apply({.reg = 2 * (2 * j + half), .lane = lane, .warp = thread / 32}),
                  (Coords{row + 8 * half, column + 8 * j}));
  }
}

TEST(Fragments, MatrixAccessAgreesWithTheInstruction) {
  // Whatever planMatrixAccess accepts, the rows its lanes name and the registers the instruction then delivers are the
  // layout's: simulated element by element.
  struct Case {
    LinearLayout registers, shared;
    unsigned bits;
    bool transposed, fits;
  };
  LinearLayout b = mmaOperandB(16).repeat(Unit::Register, 1, 4).repeat(Unit::Warp, 1, 2); // 16 x 64
  LinearLayout swizzledByRow = swizzledPanel(64, 32, 16).transpose({1, 0});               // k contiguous
  std::vector<Case> cases = {
      {mmaOperandA(16), swizzledPanel(16, 32, 16), 16, false, true},
      {mmaOperandA(8).repeat(Unit::Register, 1, 4), swizzledPanel(16, 128, 8), 8, false, true},
      {mmaOperandA(32).repeat(Unit::Register, 1, 4), swizzledPanel(16, 128, 32), 32, false, true},
      {mmaOperandA(16), swizzledPanel(16, 32, 16), 16, true, false},
      {b, swizzledPanel(16, 128, 16), 16, true, true},
      {b, swizzledPanel(16, 128, 16), 16, false, false},
      {b, swizzledByRow, 16, false, true},
      {mmaAccumulator(), swizzledPanel(16, 16, 16), 16, false, true},
      {blocked({16, 64}, {1, 0}, 8, 32, 2), swizzledPanel(16, 128, 16), 16, false, false},
  };
  for (const Case &c : cases) {
    auto access = planMatrixAccess(c.registers, c.shared, c.bits, c.transposed);
    ASSERT_EQ(access.has_value(), c.fits) << c.registers.str() << c.shared.str();
    if (!access)
      continue;
    int64_t perWord = 32 / c.bits, n = access->registersPerInstruction;
    ASSERT_EQ(n, perWord * access->matrices);
    ASSERT_EQ(access->rowPlaces.registers() * n, c.registers.registers());
    forEachPlace(c.registers, [&](const Place &p) {
      int64_t instruction = p.reg / n, matrix = p.reg % n / perWord, element = p.reg % perWord;
      int64_t row = c.transposed ? p.lane % 4 * 2 + element : p.lane / 4;
      int64_t column = c.transposed ? p.lane / 4 : p.lane % 4 * perWord + element;
      Place supplier = {.reg = instruction, .lane = 8 * matrix + row, .warp = p.warp};
      int64_t begin = access->rowPlaces.placeOf(supplier).offset;
      ASSERT_EQ(begin * c.bits % 128, 0);
      ASSERT_EQ(c.shared.apply({.offset = begin + column}), c.registers.apply(p));
    });
  }
}

} // namespace
