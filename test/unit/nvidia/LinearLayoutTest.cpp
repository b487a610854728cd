// SPDX-License-Identifier: Apache-2.0
#include "RandomLayouts.h"

#include "tenon/base/Error.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace tenon;
using namespace tenon::nvidia;
using namespace tenon::nvidia::test;

namespace {

constexpr int rounds = 200;
constexpr auto identity1D = LinearLayout::identity1D;

LinearLayout xorExample() { return LinearLayout({{Unit::Offset, {{0, 1}, {0, 2}, {1, 1}, {2, 2}}}}, {4, 4}); }

//===--- By example -----------------------------------------------------------------------------------------------===//

TEST(LinearLayout, TheExampleOfTheHeader) {
  LinearLayout shared = xorExample();
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t slot = 0; slot < 4; ++slot)
      EXPECT_EQ(shared.apply({.offset = 4 * row + slot}), (Coords{row, slot ^ row}));
  LinearLayout registers({{Unit::Register, {{0, 1}, {0, 2}}}, {Unit::Lane, {{1, 0}, {2, 0}}}}, {4, 4});
  Place place = registers.then(shared.inverse()).placeOf(Place{.reg = 2, .lane = 3});
  EXPECT_EQ(place, (Place{.offset = 13}));
  std::set<int64_t> banks;
  for (int64_t row = 0; row < 4; ++row)
    banks.insert(shared.inverse().placeOf(Coords{row, 2}).offset % 4);
  EXPECT_EQ(banks.size(), 4u);
}

TEST(LinearLayout, ProductPutsLaterFactorsInHigherBits) {
  LinearLayout layout = identity1D(Unit::Register, 2, 1, 2) * identity1D(Unit::Lane, 4, 1, 2) *
                        identity1D(Unit::Lane, 8, 0, 2) * identity1D(Unit::Register, 2, 0, 2) *
                        LinearLayout::zeros1D(Unit::Warp, 2, 2);
  EXPECT_EQ(layout.shape(), (Shape{16, 8}));
  EXPECT_EQ(layout.registers(), 4);
  EXPECT_EQ(layout.size(Unit::Lane), 32);
  EXPECT_EQ(layout.size(Unit::Warp), 2);
  EXPECT_EQ(layout.size(Unit::Block), 1);
  for (int64_t warp = 0; warp < 2; ++warp)
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t reg = 0; reg < 4; ++reg)
        EXPECT_EQ(layout.apply({.reg = reg, .lane = lane, .warp = warp}),
                  (Coords{lane / 4 + reg / 2 * 8, lane % 4 * 2 + reg % 2}));
  EXPECT_EQ(layout.applyRegisters(5, 1), (std::vector<Coords>{{1, 2}, {1, 3}, {9, 2}, {9, 3}}));
  EXPECT_EQ(layout.basis(Unit::Lane, 2), (Coords{1, 0}));
  EXPECT_EQ(layout.repeat(Unit::Warp, 0, 2).basis(Unit::Warp, 1), (Coords{16, 0}));
}

TEST(LinearLayout, EqualityIsOfMaps) {
  LinearLayout a = identity1D(Unit::Register, 2, 0, 2) * identity1D(Unit::Lane, 4, 1, 2);
  LinearLayout b = identity1D(Unit::Lane, 4, 1, 2) * identity1D(Unit::Register, 2, 0, 2);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a * LinearLayout::zeros1D(Unit::Warp, 1, 2), b);
  EXPECT_NE(a * LinearLayout::zeros1D(Unit::Warp, 2, 2), b);
  EXPECT_NE(a.transpose({1, 0}), b);
}

TEST(LinearLayout, Text) {
  EXPECT_EQ(xorExample().str(), "offset 1 -> (0, 1), 2 -> (0, 2), 4 -> (1, 1), 8 -> (2, 2)\nonto 4 x 4\n");
  EXPECT_EQ((identity1D(Unit::Register, 2, 0, 1) * LinearLayout::zeros1D(Unit::Lane, 2, 1)).str(),
            "register 1 -> (1)\nlane 1 -> (0)\nonto 2\n");
  EXPECT_EQ(xorExample().inverse().str(),
            "dimension 0 1 -> offset 5, 2 -> offset 10\ndimension 1 1 -> offset 1, 2 -> offset 2\nonto 16 offsets\n");
}

TEST(LinearLayout, MisuseIsRefused) {
  EXPECT_THROW(LinearLayout({{Unit::Lane, {{4}}}}, {4}), InternalError);
  EXPECT_THROW(LinearLayout({{Unit::Lane, {{1}}}}, {3}), InternalError);
  EXPECT_THROW(LinearLayout({{Unit::Lane, {{1}}}, {Unit::Lane, {{2}}}}, {4}), InternalError);
  EXPECT_THROW(xorExample().apply({.offset = 16}), InternalError);
  EXPECT_THROW(xorExample().reshape({8, 4}), InternalError);
  EXPECT_THROW(xorExample().dropUnitDim(0), InternalError);
  EXPECT_THROW(xorExample().transpose({0, 0}), InternalError);
  EXPECT_THROW(xorExample().then(xorExample()), InternalError);
  EXPECT_THROW(LinearLayout::zeros1D(Unit::Lane, 2, 1).inverse(), InternalError);
  EXPECT_THROW(LinearLayout({{Unit::Lane, {{1}}}}, {4}).pseudoInverse(), InternalError);
  EXPECT_THROW(blocked({8, 8}, {0, 0}, 1, 32, 4), InternalError);
}

//===--- Algebra, on random layouts -------------------------------------------------------------------------------===//

TEST(LinearLayoutProperties, CompositionIsAssociativeAndPointwise) {
  Random random(1);
  for (int round = 0; round < rounds; ++round) {
    Shape shape = randomShape(random, 7);
    LinearLayout a = randomLayout(random, {3, 3, 1, 1, 0}, shape);
    LinearLayout b = randomLayout(random, {2, 2, 2, 1, 0}, shape).inverse();
    LinearLayout c = randomLayout(random, {2, 2, 2, 1, 0}, randomShape(random, 7));
    LinearLayout left = a.then(b).then(c);
    ASSERT_EQ(left, a.then(b.then(c)));
    forEachPlace(a, [&](const Place &p) { ASSERT_EQ(left.apply(p), c.apply(b.placeOf(a.apply(p)))); });
  }
}

TEST(LinearLayoutProperties, InverseRoundTrip) {
  Random random(2);
  for (int round = 0; round < rounds; ++round) {
    LinearLayout layout = randomLayout(random, {2, 3, 1, 1, 0}, randomShape(random, 7));
    LinearLayout inverse = layout.inverse();
    forEachPlace(layout, [&](const Place &p) { ASSERT_EQ(inverse.placeOf(layout.apply(p)), p); });
    forEachCoords(layout.shape(), [&](const Coords &c) { ASSERT_EQ(layout.apply(inverse.placeOf(c)), c); });
    ASSERT_EQ(inverse.inverse(), layout);
  }
}

TEST(LinearLayoutProperties, PseudoInverseChoosesThePlaceWithoutFreeBits) {
  Random random(3);
  for (int round = 0; round < rounds; ++round) {
    LinearLayout layout = randomLayout(random, {3, 3, 2, 1, 0}, randomShape(random, 4 + below(random, 5)));
    LinearLayout back = layout.pseudoInverse();
    forEachCoords(layout.shape(), [&](const Coords &c) {
      Place place = back.placeOf(c);
      ASSERT_EQ(layout.apply(place), c);
      ASSERT_FALSE(isFree(layout, place));
    });
  }
}

TEST(LinearLayoutProperties, RanksAgainstCounting) {
  Random random(4);
  for (int round = 0; round < rounds; ++round) {
    IndexSpace in = IndexSpace::hardware({1, 2, 1, 0, 0});
    IndexSpace out = IndexSpace::tensor(randomShape(random, 3 + below(random, 3)));
    std::vector<uint64_t> columns;
    for (unsigned bit = 0; bit < in.bits(); ++bit)
      columns.push_back(random() & ((uint64_t(1) << out.bits()) - 1));
    LinearLayout layout(in, out, columns);
    std::map<Coords, int> holders;
    std::set<Coords> chosen;
    int choices = 0;
    forEachPlace(layout, [&](const Place &p) {
      ++holders[layout.apply(p)];
      if (!isFree(layout, p)) {
        ++choices;
        chosen.insert(layout.apply(p));
      }
    });
    ASSERT_EQ(layout.isSurjective(), holders.size() == size_t(1) << out.bits());
    ASSERT_EQ(layout.isInjective(), holders.size() == size_t(1) << in.bits());
    // Every element that is held at all is held by exactly one place without free bits.
    ASSERT_EQ(chosen.size(), holders.size());
    ASSERT_EQ(size_t(choices), holders.size());
  }
}

TEST(LinearLayoutProperties, TensorSide) {
  Random random(5);
  for (int round = 0; round < rounds; ++round) {
    LinearLayout layout = randomLayout(random, {3, 3, 1, 1, 0}, {4, 2, 16});
    LinearLayout moved = layout.transpose({2, 0, 1});
    LinearLayout flat = layout.reshape({8, 16}), reduced = layout.project({2});
    LinearLayout more = layout.insertUnitDim(1);
    EXPECT_EQ(moved.shape(), (Shape{16, 4, 2}));
    EXPECT_EQ(reduced.shape(), (Shape{4, 2, 1}));
    EXPECT_EQ(more.shape(), (Shape{4, 1, 2, 16}));
    EXPECT_EQ(more.dropUnitDim(1), layout);
    EXPECT_EQ(flat.reshape({4, 2, 16}), layout);
    EXPECT_EQ(moved.transpose({1, 2, 0}), layout);
    forEachPlace(layout, [&](const Place &p) {
      Coords c = layout.apply(p);
      ASSERT_EQ(moved.apply(p), (Coords{c[2], c[0], c[1]}));
      ASSERT_EQ(flat.apply(p), (Coords{c[0] * 2 + c[1], c[2]}));
      ASSERT_EQ(reduced.apply(p), (Coords{c[0], c[1], 0}));
      ASSERT_EQ(more.apply(p), (Coords{c[0], 0, c[1], c[2]}));
    });
  }
}

TEST(LinearLayoutProperties, DuplicateRegisters) {
  Random random(6);
  int removed = 0;
  for (int round = 0; round < rounds; ++round) {
    LinearLayout layout = randomLayout(random, {4, 3, 1, 0, 0}, {8, 16}).project({below(random, 2)});
    LinearLayout distinct = layout.removeDuplicateRegisters();
    removed += distinct.registers() < layout.registers();
    for (int64_t lane = 0; lane < 8; ++lane) {
      auto before = layout.applyRegisters(lane, 1), after = distinct.applyRegisters(lane, 1);
      std::set<Coords> all(before.begin(), before.end()), kept(after.begin(), after.end());
      ASSERT_EQ(all, kept);
      ASSERT_EQ(kept.size(), after.size());
    }
  }
  EXPECT_GT(removed, rounds / 2);
}

TEST(LinearLayoutProperties, VectorWidthAgainstCounting) {
  Random random(7);
  std::set<int64_t> seen;
  auto check = [&](const LinearLayout &layout) {
    for (unsigned dim = 0; dim < layout.rank(); ++dim) {
      // A width holds when in every thread every aligned group of registers holds an aligned run.
      auto holds = [&](int64_t width) {
        if (width > layout.registers() || width > layout.extent(dim))
          return false;
        bool all = true;
        forEachPlace(layout, [&](Place p) {
          Coords c = layout.apply(p);
          int64_t within = p.reg % width;
          p.reg -= within;
          Coords expected = layout.apply(p);
          all &= expected[dim] % width == 0;
          expected[dim] += within;
          all &= c == expected;
        });
        return all;
      };
      int64_t width = 1;
      while (holds(2 * width))
        width *= 2;
      ASSERT_EQ(layout.numConsecutiveInRegisters(dim), width) << layout.str();
      seen.insert(width);
    }
  };
  for (int round = 0; round < rounds; ++round) {
    unsigned vector = below(random, 4);
    LinearLayout high = randomLayout(random, {1, 2, 1, 0, 0}, {4, 4});
    check(identity1D(Unit::Register, 1 << vector, below(random, 2), 2) * high);
    check(high);
  }
  // A lane that moves by one element turns the registers of every second thread around: no vectors.
  LinearLayout crossed({{Unit::Register, {{1}, {2}}}, {Unit::Lane, {{1}}}}, {4});
  EXPECT_EQ(crossed.numConsecutiveInRegisters(0), 1);
  check(crossed);
  EXPECT_TRUE(seen.contains(1) && seen.contains(2) && seen.contains(4) && seen.contains(8));
}

//===--- Blocked layouts ------------------------------------------------------------------------------------------===//

TEST(Blocked, RowsOfVectors) {
  LinearLayout layout = blocked({16, 256}, {1, 0}, 8, 32, 4);
  EXPECT_EQ(layout.numConsecutiveInRegisters(1), 8);
  EXPECT_EQ(layout.registers(), 32);
  for (int64_t warp = 0; warp < 4; ++warp)
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t reg = 0; reg < 32; ++reg)
        EXPECT_EQ(layout.apply({.reg = reg, .lane = lane, .warp = warp}),
                  (Coords{warp + reg / 8 * 4, lane * 8 + reg % 8}));
}

TEST(Blocked, LanesGoOnInTheNextDimension) {
  LinearLayout layout = blocked({64, 32}, {1, 0}, 4, 32, 2);
  EXPECT_EQ(layout.apply({.lane = 7}), (Coords{0, 28}));
  EXPECT_EQ(layout.apply({.lane = 8}), (Coords{1, 0}));
  EXPECT_EQ(layout.apply({.warp = 1}), (Coords{4, 0}));
  EXPECT_EQ(layout.apply({.reg = 4}), (Coords{8, 0}));
  // The other order: dimension 0 is the contiguous one.
  EXPECT_EQ(blocked({32, 64}, {0, 1}, 4, 32, 2), layout.transpose({1, 0}));
}

TEST(Blocked, ThreadsThatFindNothingHoldDuplicates) {
  LinearLayout layout = blocked({16}, {0}, 4, 32, 4);
  EXPECT_EQ(layout.registers(), 4);
  auto masks = layout.freeVariableMasks();
  EXPECT_EQ(masks[unsigned(Unit::Register)], 0);
  EXPECT_EQ(masks[unsigned(Unit::Lane)], 0b11100);
  EXPECT_EQ(masks[unsigned(Unit::Warp)], 0b11);
}

TEST(Blocked, BlocksOwnSlabsOfTheLongestDimension) {
  LinearLayout row = blocked({1, 131072}, {1, 0}, 8, 32, 8, 8);
  EXPECT_EQ(row.registers(), 64);
  forEachPlace(row, [&](const Place &p) { ASSERT_EQ(row.apply(p)[1] / 16384, p.block); });
  EXPECT_EQ(blocked({256, 64}, {1, 0}, 8, 32, 4, 2).apply({.block = 1}), (Coords{128, 0}));
  EXPECT_EQ(blocked({64, 64}, {1, 0}, 8, 32, 4, 2).apply({.block = 1}), (Coords{0, 32}));
  // More blocks than the longest dimension has: the next one, then duplicates.
  LinearLayout tiny = blocked({2, 4}, {1, 0}, 1, 32, 1, 16);
  EXPECT_EQ(tiny.applyRegisters(0, 0, 7), (std::vector<Coords>{{1, 3}}));
  EXPECT_EQ(tiny.freeVariableMasks()[unsigned(Unit::Block)], 0b1000);
}

TEST(Blocked, AnyShapeIsCoveredOnceUnderItsMask) {
  Random random(8);
  for (int round = 0; round < rounds; ++round) {
    Shape shape;
    std::vector<unsigned> order;
    unsigned rank = 1 + below(random, 3);
    for (unsigned d = 0; d < rank; ++d) {
      shape.push_back(1 + below(random, rank == 3 ? 12 : 40));
      order.push_back(d);
    }
    std::shuffle(order.begin(), order.end(), random);
    int64_t vector = 1 << below(random, 4), warps = 1 << below(random, 3), blocks = 1 << below(random, 3);
    LinearLayout layout = blocked(shape, order, vector, 32, warps, blocks);
    ASSERT_TRUE(layout.isSurjective());
    ASSERT_EQ(layout.shape(), powerOfTwoExtents(shape));
    std::map<Coords, int> stores;
    forEachPlace(layout, [&](const Place &p) {
      if (Coords c = layout.apply(p); isInside(c, shape) && !isFree(layout, p))
        ++stores[c];
    });
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    ASSERT_EQ(int64_t(stores.size()), elements);
    for (auto &[coords, count] : stores)
      ASSERT_EQ(count, 1);
  }
}

TEST(Blocked, ReducedAndBroadcastRow) {
  // A row sum of a 64 x 128 tile: every lane of a row has it, in few registers, and the layout knows who else does.
  LinearLayout tile = blocked({64, 128}, {1, 0}, 8, 32, 4);
  LinearLayout sums = tile.project({1}).removeDuplicateRegisters();
  EXPECT_EQ(sums.shape(), (Shape{64, 1}));
  EXPECT_EQ(sums.registers(), tile.registers() / 8);
  EXPECT_EQ(sums.freeVariableMasks()[unsigned(Unit::Lane)], 0b01111);
  EXPECT_EQ(sums.dropUnitDim(1).insertUnitDim(1), sums);
}

} // namespace
