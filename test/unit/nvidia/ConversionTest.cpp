// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/layout/Conversion.h"

#include "RandomLayouts.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/layout/Fragments.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace tenon;
using namespace tenon::nvidia;
using namespace tenon::nvidia::test;

namespace {

constexpr int rounds = 200;
constexpr auto identity1D = LinearLayout::identity1D;

//===--- Classification -------------------------------------------------------------------------------------------===//

/// By looking for every element of the destination in ever more of the source.
ConversionKind classifyByCounting(const LinearLayout &source, const LinearLayout &destination) {
  if (source == destination)
    return ConversionKind::Identical;
  std::map<Coords, std::vector<Place>> holders;
  forEachPlace(source, [&](const Place &p) { holders[source.apply(p)].push_back(p); });
  ConversionKind kind = ConversionKind::Registers;
  forEachPlace(destination, [&](const Place &p) {
    ConversionKind nearest = ConversionKind::Cluster;
    for (const Place &h : holders[destination.apply(p)]) {
      ConversionKind way = h.block != p.block  ? ConversionKind::Cluster
                           : h.warp != p.warp  ? ConversionKind::SharedMemory
                           : h.lane != p.lane  ? ConversionKind::Shuffle
                                               : ConversionKind::Registers;
      nearest = std::min(nearest, way);
    }
    kind = std::max(kind, nearest);
  });
  return kind;
}

/// The sources that the conversion names hold the elements and are as near as its kind promises.
void expectSound(const Conversion &conversion, const LinearLayout &source, const LinearLayout &destination) {
  forEachPlace(destination, [&](const Place &p) {
    Place from = conversion.sourceOf.placeOf(p);
    ASSERT_EQ(source.apply(from), destination.apply(p));
    if (conversion.kind == ConversionKind::Identical)
      ASSERT_EQ(from, p);
    if (conversion.kind <= ConversionKind::Registers)
      ASSERT_EQ(from.lane, p.lane);
    if (conversion.kind <= ConversionKind::Shuffle)
      ASSERT_EQ(from.warp, p.warp);
    if (conversion.kind <= ConversionKind::SharedMemory)
      ASSERT_EQ(from.block, p.block);
  });
}

/// Adds random sums of the columns of units before `end` to the columns of all units: what such a conversion may undo.
LinearLayout disturb(Random &random, const LinearLayout &layout, unsigned end) {
  std::vector<uint64_t> columns, within;
  for (unsigned bit = 0; bit < layout.in().bits(); ++bit)
    columns.push_back(layout.column(bit));
  unsigned reach = layout.in().shift(end);
  std::shuffle(columns.begin(), columns.begin() + reach, random);
  within.assign(columns.begin(), columns.begin() + reach);
  for (uint64_t &column : columns)
    for (uint64_t vector : within)
      if (vector != column && below(random, 4) == 0)
        column ^= vector;
  return LinearLayout(layout.in(), layout.out(), columns);
}

TEST(Classification, AgreesWithCountingOnRandomLayouts) {
  Random random(11);
  std::map<ConversionKind, int> seen;
  for (int round = 0; round < 3 * rounds; ++round) {
    Shape shape = randomShape(random, 7 + below(random, 2));
    LinearLayout source = randomLayout(random, {3, 3, 2, 1, 0}, shape);
    LinearLayout destination = round % 6 == 5 ? randomLayout(random, {2, 3, 2, 1, 0}, shape)
                                              : disturb(random, source, round % 6 % 5);
    std::optional<Conversion> conversion;
    // A disturbed layout may hold less, never more.
    ASSERT_NO_THROW(conversion = classifyConversion(source, destination));
    ASSERT_EQ(conversion->kind, classifyByCounting(source, destination)) << source.str() << destination.str();
    expectSound(*conversion, source, destination);
    ++seen[conversion->kind];
  }
  for (auto kind : {ConversionKind::Identical, ConversionKind::Registers, ConversionKind::Shuffle,
                    ConversionKind::SharedMemory, ConversionKind::Cluster})
    EXPECT_GT(seen[kind], 10) << unsigned(kind);
}

TEST(Classification, ByExample) {
  LinearLayout rows = blocked({64, 128}, {1, 0}, 4, 32, 4);
  auto kind = [&](const LinearLayout &a, const LinearLayout &b) { return classifyConversion(a, b).kind; };
  EXPECT_EQ(kind(rows, rows), ConversionKind::Identical);
  // The registers in another order.
  LinearLayout lanes = identity1D(Unit::Lane, 32, 1, 2), pairs = identity1D(Unit::Register, 2, 1, 2) * lanes;
  EXPECT_EQ(kind(identity1D(Unit::Register, 4, 0, 2) * pairs, pairs * identity1D(Unit::Register, 4, 0, 2)),
            ConversionKind::Registers);
  EXPECT_EQ(kind(identity1D(Unit::Register, 16, 0, 2) * lanes, blocked({16, 32}, {1, 0}, 2, 32, 1)),
            ConversionKind::Shuffle);
  EXPECT_EQ(kind(rows, blocked({64, 128}, {0, 1}, 4, 32, 4)), ConversionKind::SharedMemory);
  EXPECT_EQ(kind(wgmmaAccumulator(128), rows), ConversionKind::SharedMemory);
  EXPECT_EQ(kind(blocked({64, 256}, {1, 0}, 4, 32, 4, 2), blocked({256, 64}, {1, 0}, 4, 32, 4, 2).transpose({1, 0})),
            ConversionKind::SharedMemory);
  EXPECT_EQ(kind(blocked({64, 64}, {1, 0}, 4, 32, 4, 2), blocked({64, 64}, {0, 1}, 4, 32, 4, 2)),
            ConversionKind::Cluster);
  // Every lane has the row sums: broadcasting them is free of communication.
  LinearLayout sums = rows.project({1});
  EXPECT_EQ(kind(sums.removeDuplicateRegisters(), sums), ConversionKind::Registers);
  EXPECT_THROW(kind(rows, blocked({64, 128}, {1, 0}, 4, 32, 8)), InternalError);
  EXPECT_THROW(kind(rows, blocked({128, 128}, {1, 0}, 4, 32, 4)), InternalError);
}

//===--- Accesses and conflicts -----------------------------------------------------------------------------------===//

/// Passes of one warp, by putting every lane's words into banks.
Wavefronts countByBanks(const SharedAccess &access, unsigned elementBytes, int64_t warp) {
  Wavefronts result;
  int64_t bytes = access.vectorElements * elementBytes, lanes = access.places.size(Unit::Lane);
  int64_t lanesAPass = std::min<int64_t>(bytes <= 4 ? 32 : 128 / bytes, lanes);
  for (const auto &vector : access.registers)
    for (int64_t first = 0; first < lanes; first += lanesAPass) {
      std::map<int64_t, std::set<int64_t>> wordsOfBank;
      for (int64_t lane = first; lane < first + lanesAPass; ++lane) {
        int64_t address =
            access.places.placeOf(Place{.reg = vector[0], .lane = lane, .warp = warp}).offset * elementBytes;
        EXPECT_EQ(address % bytes, 0);
        for (int64_t word = address / 4; word <= (address + bytes - 1) / 4; ++word)
          wordsOfBank[word % 32].insert(word);
      }
      size_t passes = 0;
      for (auto &[bank, words] : wordsOfBank)
        passes = std::max(passes, words.size());
      result.actual += passes;
      result.ideal += 1;
    }
  return result;
}

/// Every register that is no duplicate is in exactly one vector, and the vectors are contiguous in every thread.
void expectCovers(const SharedAccess &access, const LinearLayout &registers, const LinearLayout &shared) {
  std::set<int64_t> seen;
  for (const auto &vector : access.registers) {
    ASSERT_EQ(int64_t(vector.size()), access.vectorElements);
    for (int64_t reg : vector)
      ASSERT_TRUE(seen.insert(reg).second);
    for (int64_t warp = 0; warp < registers.size(Unit::Warp); ++warp)
      for (int64_t lane = 0; lane < registers.size(Unit::Lane); ++lane) {
        Place first = access.places.placeOf(Place{.reg = vector[0], .lane = lane, .warp = warp});
        for (size_t i = 0; i < vector.size(); ++i) {
          Place at = {.block = first.block, .offset = first.offset + int64_t(i)};
          ASSERT_EQ(shared.apply(at), registers.apply({.reg = vector[i], .lane = lane, .warp = warp}));
        }
      }
  }
  std::set<Coords> distinct;
  for (const Coords &coords : registers.applyRegisters(0, 0))
    distinct.insert(coords);
  ASSERT_EQ(seen.size(), distinct.size());
}

TEST(Wavefronts, AgreeWithBanksOnRandomLayouts) {
  Random random(12);
  std::set<int64_t> degrees, widths;
  for (int round = 0; round < 2 * rounds; ++round) {
    Shape shape = randomShape(random, 9 + below(random, 2));
    LinearLayout registers = randomLayout(random, {4, 5, 1, 0, 0}, shape);
    // Memory that has some of the registers at its low end: there are vectors then.
    std::vector<uint64_t> bases = registers.columns(Unit::Register);
    bases.resize(std::min<size_t>(bases.size(), below(random, 5)));
    Echelon echelon;
    std::vector<uint64_t> columns;
    std::vector<uint64_t> rest = randomBasis(random, registers.out().bits());
    bases.insert(bases.end(), rest.begin(), rest.end());
    for (uint64_t column : bases)
      if (echelon.add(column))
        columns.push_back(column);
    LinearLayout shared(IndexSpace::hardware({0, 0, 0, 0, unsigned(columns.size())}), registers.out(), columns);
    for (unsigned elementBytes : {1u, 2u, 4u, 8u}) {
      SharedAccess access = planSharedAccess(registers, shared, elementBytes);
      expectCovers(access, registers, shared);
      Wavefronts counted = countWavefronts(access, elementBytes);
      ASSERT_EQ(counted, countByBanks(access, elementBytes, 0));
      ASSERT_EQ(counted, countByBanks(access, elementBytes, 1));
      degrees.insert(counted.actual / counted.ideal);
      widths.insert(access.vectorElements);
      for (int64_t width = 1; width < access.vectorElements; width *= 2) {
        SharedAccess narrow = planSharedAccess(registers, shared, elementBytes, width * elementBytes);
        ASSERT_EQ(narrow.vectorElements, width);
        ASSERT_EQ(countWavefronts(registers, shared, elementBytes, width), countByBanks(narrow, elementBytes, 0));
      }
      EXPECT_THROW(countWavefronts(registers, shared, elementBytes, 32), InternalError);
    }
  }
  EXPECT_GE(degrees.size(), 5u);
  EXPECT_GE(widths.size(), 4u);
}

TEST(Wavefronts, ByExample) {
  // f32 64 x 32, a row of 128 bytes: a column read by the 32 lanes is one bank, with the swizzle eight (of 16 bytes).
  LinearLayout columns = blocked({64, 32}, {0, 1}, 1, 32, 1), rows = blocked({64, 32}, {1, 0}, 4, 32, 1);
  LinearLayout plain = identity1D(Unit::Offset, 32, 1, 2) * identity1D(Unit::Offset, 64, 0, 2);
  LinearLayout panel = swizzledPanel(64, 128, 32);
  EXPECT_EQ(countWavefronts(columns, plain, 4, 1), (Wavefronts{64 * 32, 64}));
  EXPECT_EQ(countWavefronts(columns, panel, 4, 1), (Wavefronts{64 * 4, 64}));
  EXPECT_EQ(countWavefronts(rows, plain, 4, 4), (Wavefronts{16 * 4, 16 * 4}));
  EXPECT_EQ(countWavefronts(rows, panel, 4, 4), (Wavefronts{16 * 4, 16 * 4}));
  // Everyone reads one word: no conflict.
  LinearLayout one = LinearLayout::zeros1D(Unit::Lane, 32, 1), word = LinearLayout::zeros1D(Unit::Offset, 1, 1);
  EXPECT_EQ(countWavefronts(one, word, 4, 1), (Wavefronts{1, 1}));
  // Rows of 16 bytes in a row of banks: ldmatrix takes eight passes where the swizzle needs one.
  auto matrices = [](const LinearLayout &shared) {
    return countWavefronts(*planMatrixAccess(mmaOperandA(16).repeat(Unit::Register, 1, 4), shared, 16), 16);
  };
  LinearLayout rowsOf128 = identity1D(Unit::Offset, 64, 1, 2) * identity1D(Unit::Offset, 16, 0, 2);
  EXPECT_EQ(matrices(rowsOf128), (Wavefronts{16 * 8, 16}));
  EXPECT_EQ(matrices(swizzledPanel(16, 128, 16)), (Wavefronts{16, 16}));
}

//===--- The round trip through shared memory ---------------------------------------------------------------------===//

/// Stores every element by the source, loads it by the destination, through one array per block.
void expectRoundTrip(const SharedChoice &choice, const LinearLayout &source, const LinearLayout &destination) {
  std::vector<std::vector<Coords>> memory(choice.shared.size(Unit::Block),
                                          std::vector<Coords>(choice.shared.size(Unit::Offset)));
  auto eachElement = [](const SharedAccess &access, const LinearLayout &layout, auto visit) {
    forEachPlace(layout, [&](const Place &thread) {
      if (thread.reg != 0)
        return;
      for (const auto &vector : access.registers) {
        Place place = thread;
        place.reg = vector[0];
        Place first = access.places.placeOf(place);
        for (size_t i = 0; i < vector.size(); ++i) {
          place.reg = vector[i];
          visit(place, first.block, first.offset + int64_t(i));
        }
      }
    });
  };
  eachElement(choice.store, source, [&](const Place &p, int64_t block, int64_t offset) {
    ASSERT_EQ(block, p.block); // stores stay in the own block's memory
    Coords value = source.apply(p);
    Coords &cell = memory[block][offset];
    ASSERT_TRUE(cell.empty() || cell == value) << "two elements at one offset";
    cell = value;
  });
  eachElement(choice.load, destination, [&](const Place &p, int64_t block, int64_t offset) {
    ASSERT_EQ(memory[block][offset], destination.apply(p));
  });
}

LinearLayout randomBlocked(Random &random, const Shape &shape, int64_t warps, int64_t blocks = 1) {
  std::vector<unsigned> order(shape.size());
  for (unsigned d = 0; d < order.size(); ++d)
    order[d] = d;
  std::shuffle(order.begin(), order.end(), random);
  return blocked(shape, order, 1 << below(random, 5), 32, warps, blocks);
}

TEST(SharedChoice, EveryElementArrivesBetweenRandomLayouts) {
  Random random(13);
  for (int round = 0; round < rounds; ++round) {
    Shape shape = randomShape(random, 8 + below(random, 3));
    LinearLayout source = randomLayout(random, {3, 5, 1, 1, 0}, shape);
    // The same blocks as the source, other blocks, or one block.
    LinearLayout destination = randomLayout(random, {4, 5, 1, 1, 0}, shape);
    if (round % 3 == 0)
      destination = disturb(random, source, 3);
    if (round % 3 == 1) {
      source = randomLayout(random, {5, 5, 1, 0, 0}, shape);
      destination = randomLayout(random, {4, 5, 2, 0, 0}, shape);
    }
    for (unsigned elementBytes : {1u, 2u, 4u, 8u}) {
      SharedChoice choice = chooseShared(source, destination, elementBytes);
      expectRoundTrip(choice, source, destination);
      ASSERT_EQ(choice.storeCost, countByBanks(choice.store, elementBytes, 0));
      ASSERT_EQ(choice.loadCost, countByBanks(choice.load, elementBytes, 0));
    }
  }
}

TEST(SharedChoice, NeverWorseThanRowMajorOrAPanel) {
  Random random(14);
  int better = 0;
  for (int round = 0; round < rounds; ++round) {
    Shape shape = {int64_t(16) << below(random, 3), int64_t(32) << below(random, 3)};
    LinearLayout source = randomBlocked(random, shape, 4), destination = randomBlocked(random, shape, 4);
    for (unsigned elementBytes : {1u, 2u, 4u}) {
      auto cost = [&](const SharedAccess &access) {
        return countWavefronts(access, elementBytes).actual + int64_t(access.registers.size());
      };
      SharedChoice choice = chooseShared(source, destination, elementBytes);
      int64_t chosen = cost(choice.store) + cost(choice.load);
      LinearLayout rowMajor = identity1D(Unit::Offset, shape[1], 1, 2) *
                              identity1D(Unit::Offset, shape[0], 0, 2);
      std::vector<LinearLayout> others = {rowMajor};
      if (shape[1] * elementBytes >= 128)
        others.push_back(swizzledTile(shape[0], shape[1], 128, 8 * elementBytes));
      for (const LinearLayout &other : others) {
        int64_t plain = cost(planSharedAccess(source, other, elementBytes)) +
                        cost(planSharedAccess(destination, other, elementBytes));
        ASSERT_LE(chosen, plain) << source.str() << destination.str() << other.str();
        better += chosen < plain;
      }
    }
  }
  EXPECT_GT(better, rounds / 2);
}

TEST(SharedChoice, NoConflictsWhereBothSidesUseTheVectors) {
  Random random(15);
  for (int round = 0; round < rounds; ++round) {
    // Both layouts begin with the same vector; otherwise they are as unlike as can be.
    unsigned vector = below(random, 3);
    LinearLayout common = identity1D(Unit::Register, 1 << vector, 1, 2);
    Shape shape = {16, 16};
    LinearLayout source = common * randomLayout(random, {2, 5, 1, 0, 0}, shape);
    LinearLayout destination = common * randomLayout(random, {2, 5, 1, 0, 0}, shape);
    SharedChoice choice = chooseShared(source, destination, 4);
    ASSERT_EQ(choice.storeCost.actual, choice.storeCost.ideal) << source.str() << destination.str();
    ASSERT_EQ(choice.loadCost.actual, choice.loadCost.ideal) << source.str() << destination.str();
    ASSERT_GE(choice.store.vectorElements * choice.load.vectorElements, int64_t(1) << 2 * vector);
  }
}

TEST(SharedChoice, TransposesAndAccumulators) {
  // f32, rows to columns: nothing wider than an element suits both sides; no conflicts all the same.
  SharedChoice transpose = chooseShared(blocked({64, 64}, {1, 0}, 4, 32, 4), blocked({64, 64}, {0, 1}, 4, 32, 4), 4);
  EXPECT_EQ(transpose.storeCost.actual, transpose.storeCost.ideal);
  EXPECT_EQ(transpose.loadCost.actual, transpose.loadCost.ideal);
  // A 16-bit accumulator to rows of 16-byte vectors. Row-wise memory would be written in pairs (32 stores of one pass)
  // and read in eights (8 loads of four). But both sides also hold the row eight below: with that beside the pair the
  // loads move four elements, and the stores, whose next columns are another lane's loads, eight.
  LinearLayout accumulator = wgmmaAccumulator(128), rows = blocked({64, 128}, {1, 0}, 8, 32, 4);
  SharedChoice epilogue = chooseShared(accumulator, rows, 2);
  expectRoundTrip(epilogue, accumulator, rows);
  EXPECT_EQ(epilogue.store.vectorElements, 8);
  EXPECT_EQ(epilogue.load.vectorElements, 4);
  EXPECT_EQ(epilogue.storeCost, (Wavefronts{32, 32}));
  EXPECT_EQ(epilogue.loadCost, (Wavefronts{32, 32}));
  EXPECT_EQ(epilogue.shared.basis(Unit::Offset, 0), (Coords{0, 1}));
  EXPECT_EQ(epilogue.shared.basis(Unit::Offset, 1), (Coords{8, 0}));
  // From 32 columns a row only the loads can be wide: they are, and the stores do not pay for it.
  LinearLayout narrow = wgmmaAccumulator(32), wide = blocked({64, 32}, {1, 0}, 8, 32, 4);
  SharedChoice small = chooseShared(narrow, wide, 2);
  expectRoundTrip(small, narrow, wide);
  EXPECT_EQ(small.load.vectorElements, 8);
  EXPECT_EQ(small.storeCost.actual, small.storeCost.ideal);
  EXPECT_EQ(small.loadCost.actual, small.loadCost.ideal);
}

TEST(SharedChoice, SizesThatAreNoPowersOfTwo) {
  Random random(16);
  for (int round = 0; round < rounds; ++round) {
    Shape shape = {1 + int64_t(below(random, 60)), 1 + int64_t(below(random, 60))};
    LinearLayout source = randomBlocked(random, shape, 2), destination = randomBlocked(random, shape, 2);
    SharedChoice choice = chooseShared(source, destination, 2);
    // Only elements of the tile are stored; whatever the destination has of the tile must be there.
    std::map<int64_t, Coords> memory;
    forEachPlace(source, [&](const Place &p) {
      if (Coords c = source.apply(p); isInside(c, shape) && !isFree(source, p))
        ASSERT_TRUE(memory.emplace(choice.store.places.placeOf(p).offset, c).second);
    });
    ASSERT_EQ(int64_t(memory.size()), shape[0] * shape[1]);
    forEachPlace(destination, [&](const Place &p) {
      if (Coords c = destination.apply(p); isInside(c, shape))
        ASSERT_EQ(memory.at(choice.load.places.placeOf(p).offset), c);
    });
  }
}

} // namespace
