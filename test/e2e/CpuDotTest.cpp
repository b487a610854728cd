// SPDX-License-Identifier: Apache-2.0
//
// dot on the CPU, where every type, orientation and remainder takes another way through the code: all instruction sets
// of this machine, compared exactly. Elements are small whole numbers, whose sums are the same in every type and order.
#include "CpuDotSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

// Every number of rows up to the next register block, in a tile that is larger: the blocks that are left over.
TEST(CpuDot, EveryNumberOfRows) {
  for (const std::string &level : levels())
    for (DType type : {f32, bf16, i8})
      for (int64_t m = 1; m <= 31; ++m) // one program for all of them
        expectProduct(wholeNumbers(type, {m, 9}, 1), wholeNumbers(type, {9, 5}, 2), {30, 32, 16}, asTheyAre, level);
}

TEST(CpuDot, EveryNumberOfRowsOfTheTile) {
  for (DType type : {f32, i8})
    for (int64_t m : {1, 2, 5, 13, 14, 15, 29})
      expectProduct(wholeNumbers(type, {2 * m - 1, 9}, 1), wholeNumbers(type, {9, 5}, 2), {m, 16, 8});
  for (int64_t m : {5, 16, 17, 32, 33, 48, 50})
    expectProduct(wholeNumbers(bf16, {2 * m - 1, 9}, 1), wholeNumbers(bf16, {9, 5}, 2), {m, 16, 8}, asTheyAre,
                  "amx-emulated");
}

TEST(CpuDot, EveryNumberOfColumns) {
  for (DType type : {f32, bf16, i8})
    for (const char *level : dotLevels) {
      if (type == f32 && level != dotLevels[0])
        continue;
      for (int64_t n = 1; n <= 49; ++n) // one program for all of them
        expectProduct(wholeNumbers(type, {6, 10}, 1), wholeNumbers(type, {10, n}, 2), {6, 48, 12}, asTheyAre, level);
      for (int64_t n = 1; n <= 145; n += 9) // panels of four vectors, and one that is not whole
        expectProduct(wholeNumbers(type, {9, 10}, 1), wholeNumbers(type, {10, n}, 2), {8, 144, 12}, asTheyAre, level);
      for (int64_t n : {1, 7, 16, 17, 31, 33, 65})
        expectProduct(wholeNumbers(type, {6, 10}, 1), wholeNumbers(type, {10, n}, 2), {6, n, 12}, asTheyAre, level);
    }
}

TEST(CpuDot, EveryDepth) {
  for (const std::string &level : levels())
    for (DType type : {f32, bf16, i8})
      for (Form form : {asTheyAre, turnedInTheKernel}) {
        for (int64_t k = 0; k <= 17; ++k) // one program for all of them
          expectProduct(wholeNumbers(type, {7, k}, 1), wholeNumbers(type, {k, 18}, 2), {8, 24, 8}, form, level);
        if (level == "native")
          for (int64_t k : {1, 2, 3, 5, 31, 39}) // the loop takes four steps at once
            expectProduct(wholeNumbers(type, {7, k}, 1), wholeNumbers(type, {k, 18}, 2), {8, 24, k}, form, level);
      }
}

TEST(CpuDot, EveryTypeAndLayout) {
  std::pair<DType, DType> types[] = {{f64, f64}, {f32, f32}, {f16, f16}, {bf16, bf16}, {f8e4m3, f8e5m2},
                                     {i8, i8},   {u8, u8},   {i8, u8},   {u8, i8}};
  for (const std::string &level : levels())
    for (auto [left, right] : types)
      for (const Layout &layout : {rowMajor, columnMajor, everyOther, insideALarger}) {
        // The other levels have few instructions for all types, and much of what they are fed with has been seen here;
        // tiles are for bf16, for f8, which becomes that, and for bytes. AVX2 widens whatever is shorter than its lanes.
        bool usesTiles = left == bf16 || left == f8e4m3 || (left == i8 && right == u8) ||
                         (isInteger(left) && layout.name == rowMajor.name);
        bool isSeenElsewhere = level == "amx-emulated" ? !usesTiles || layout.name == everyOther.name
                               : level == "avx2"       ? left == f64 || layout.name == insideALarger.name
                                                       : left != f32 || layout.name == insideALarger.name;
        if (level != "native" && isSeenElsewhere)
          continue;
        SCOPED_TRACE(layout.name);
        // Three rows stream over B; 19 are packed. Tiles inside the matrices and at their edges.
        Tensor b = layout.of(wholeNumbers(right, {41, 50}, 2));
        expectProduct(layout.of(wholeNumbers(left, {3, 41}, 1)), b, {3, 32, 20}, asTheyAre, level);
        expectProduct(layout.of(wholeNumbers(left, {19, 41}, 1)), b, {16, 32, 20}, asTheyAre, level);
        if (layout.name == rowMajor.name)
          expectProduct(layout.of(wholeNumbers(left, {19, 41}, 1)), b, {16, 32, 20}, turnedInTheKernel, level);
      }
}

TEST(CpuDot, OfComputedOperands) {
  for (const std::string &level : levels())
    for (DType type : {f64, f32, f16, bf16})
      for (int64_t m : {2, 19})
        expectProduct(wholeNumbers(type, {m, 33}, 1), wholeNumbers(type, {33, 35}, 2), {m == 2 ? 2 : 16, 32, 16},
                      computed, level);
}

TEST(CpuDot, OfLargeTiles) {
  for (DType type : {f32, bf16, i8})
    for (const char *level : dotLevels) {
      if (type == f32 && level != dotLevels[0])
        continue;
      Tensor a = wholeNumbers(type, {130, 300}, 1), b = wholeNumbers(type, {300, 140}, 2);
      expectProduct(a, b, {128, 128, 256}, asTheyAre, level);
      expectProduct(a, b, {65, 70, 150}, asTheyAre, level); // nothing a multiple of anything
      expectProduct(a, columnMajor.of(b), {128, 128, 256}, asTheyAre, level);
    }
}

// Rows that are widened on their way into the panels, straight from the view.
TEST(CpuDot, OfLargeTilesOfShortElements) {
  for (const std::string &level : levels())
    for (DType type : {f16, bf16, i8, u8}) {
      if (level != "avx2" && level != "baseline" && type != f16)
        continue;
      Tensor a = wholeNumbers(type, {130, 300}, 1), b = wholeNumbers(type, {300, 140}, 2);
      expectProduct(a, b, {128, 128, 256}, asTheyAre, level);
      expectProduct(a, b, {65, 70, 150}, asTheyAre, level);
      expectProduct(columnMajor.of(a), columnMajor.of(b), {128, 128, 256}, asTheyAre, level);
    }
}

// Both operands are kept in scratch, since the views change before they are multiplied.
Kernel overwritten("overwritten(a, b, c, m, n, k)", [](View a, View b, View c, Param m, Param n, Param k) {
  Tile x = a.load({0, 0}, {m, k}), y = b.load({0, 0}, {k, n});
  a.store({0, 0}, zeros(a.dtype(), {m, k}));
  b.store({0, 0}, zeros(b.dtype(), {k, n}));
  c.store({0, 0}, dot(x, y));
});

TEST(CpuDot, OperandsThatAreOverwritten) {
  for (const std::string &level : levels())
    for (DType type : {f32, f16, bf16, i8, u8})
      for (int64_t n : {64, 70})
        for (int64_t m : {2, 20}) {
          const int64_t k = 32;
          Tensor a = wholeNumbers(type, {m, k}, 1), b = wholeNumbers(type, {k, n}, 2);
          Tensor c = Tensor::empty(accumulator(type), {m, n}), expected = Tensor::empty(accumulator(type), {m, n});
          c.fillBytes(0xff);
          launch(product, {a, b, expected}, {.params = {{"bm", m}, {"bn", n}, {"bk", k}, {"form", asTheyAre}}});
          LaunchOptions options{.params = {{"m", m}, {"n", n}, {"k", k}}};
          options.compile.isa = level;
          launch(overwritten, {a, b, c}, options);
          EXPECT_EQ(valuesOf(c), valuesOf(expected)) << nameOf(type) << " " << level << " " << m << " " << n;
          EXPECT_EQ(a.get({1, 1}), 0);
        }
}

//===--- What is outside ------------------------------------------------------------------------------------------===//

// Rows past the end are padding, and zero times infinity is not a number: where they can be seen they must be computed.
Kernel columnSums("column_sums(a, b, y, rows)", [](View a, View b, View y, Param rows) {
  Tile product = dot(a.load({0, 0}, {rows, 16}), b.load({0, 0}, {16, 16}));
  y.store({0, 0}, sum(product, 0));
});

TEST(CpuDot, ComputesPaddingThatIsSeen) {
  Tensor a = wholeNumbers(f32, {5, 16}, 1), b = wholeNumbers(f32, {16, 16}, 2);
  a.fill(1);
  b.set({3, 7}, INFINITY);
  for (Target target : {Target::cpu, Target::interpreter})
    for (int64_t rows : {5, 16}) {
      Tensor y = Tensor::zeros(f32, {1, 16});
      LaunchOptions options;
      options.target = target;
      options.params = {{"rows", rows}};
      launch(columnSums, {a, b, y}, options);
      EXPECT_EQ(std::isnan(y.get({0, 7})), rows == 16) << nameOf(target);
      EXPECT_FALSE(std::isnan(y.get({0, 6}))) << nameOf(target);
    }
}

// Padding along K that is not zero counts.
Kernel paddedWithOnes("padded(a, b, c)", [](View a, View b, View c) {
  c.store({0, 0}, dot(a.load({0, 0}, {8, 32}, 1), b.load({0, 0}, {32, 16}, 1)));
});

TEST(CpuDot, TakesPaddingAsItIs) {
  for (DType type : {f32, bf16, i8}) {
    Tensor a = wholeNumbers(type, {8, 20}, 1), b = wholeNumbers(type, {20, 16}, 2);
    Tensor c = Tensor::zeros(accumulator(type), {8, 16}), expected = c.clone();
    LaunchOptions interpreter;
    interpreter.target = Target::interpreter;
    launch(paddedWithOnes, {a, b, c});
    launch(paddedWithOnes, {a, b, expected}, interpreter);
    EXPECT_EQ(valuesOf(c), valuesOf(expected)) << nameOf(type);
  }
}

// The result goes to two places of different sizes, at offsets that are computed after the dot.
Kernel twoStores("two_stores(a, b, c, d)", [](View a, View b, View c, View d) {
  Index i = grid(2);
  Tile product = dot(a.load({i * 16, 0}, {16, 8}), b.load({0, 0}, {8, 32}));
  c.store({i * 16, 0}, product);
  d.store({i * 16 + 1, 3}, product * 2);
});

TEST(CpuDot, ComputesWhatAnyStoreNeeds) {
  Tensor a = wholeNumbers(f32, {32, 8}, 1), b = wholeNumbers(f32, {8, 32}, 2);
  LaunchOptions interpreter;
  interpreter.target = Target::interpreter;
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{19, 17}, {5, 32}, {32, 5}, {0, 0}}) {
    Tensor c = Tensor::zeros(f32, {19, 9}), d = Tensor::zeros(f32, {rows, columns});
    Tensor c2 = c.clone(), d2 = d.clone();
    launch(twoStores, {a, b, c, d});
    launch(twoStores, {a, b, c2, d2}, interpreter);
    EXPECT_EQ(valuesOf(c), valuesOf(c2)) << rows << "x" << columns;
    EXPECT_EQ(valuesOf(d), valuesOf(d2)) << rows << "x" << columns;
  }
}

//===--- A kernel that nobody tuned -------------------------------------------------------------------------------===//

// Squared distances between the rows of a and those of b: another prologue and another epilogue than matmul's.
Kernel squaredDistance("squared_distance(a, b, d, bm=64, bn=64, bk=64)",
                       [](View a, View b, View d, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(d.size(0), bm), cdiv(d.size(1), bn));
  Tile products = zeros(f32, {bm, bn}), ofA = zeros(f32, {bm, 1}), ofB = zeros(f32, {bn, 1});
  for (Index k : range(0, a.size(1), bk)) {
    Tile x = a.load({i * bm, k}, {bm, bk}), y = b.load({j * bn, k}, {bn, bk});
    products = dot(x, transpose(y), products);
    ofA = ofA + sum(x.to(f32) * x.to(f32), 1);
    ofB = ofB + sum(y.to(f32) * y.to(f32), 1);
  }
  d.store({i * bm, j * bn}, ofA + transpose(ofB) - 2 * products);
});

TEST(CpuDot, SquaredDistance) {
  for (DType type : {f32, bf16})
    for (auto [m, n, k] : {std::array<int64_t, 3>{64, 64, 64}, {70, 33, 129}, {1, 1, 1}, {17, 100, 40}}) {
      Tensor a = wholeNumbers(type, {m, k}, 1), b = wholeNumbers(type, {n, k}, 2), d = Tensor::zeros(f32, {m, n});
      launch(squaredDistance, {a, b, d});
      std::vector<double> x = valuesOf(a), y = valuesOf(b);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double total = 0;
          for (int64_t l = 0; l < k; ++l)
            total += (x[i * k + l] - y[j * k + l]) * (x[i * k + l] - y[j * k + l]);
          ASSERT_EQ(d.get({i, j}), total) << i << ", " << j;
        }
    }
}

// Sums over a loop are not cleared before it: the first step starts at zero, and where there is none they are zeros.
// Seen as rows of another length, they have nothing between their rows.
Kernel reshapedSums("reshaped_sums(a, b, c, bk=32, reshaped=0)", [](View a, View b, View c, Param bk, Param reshaped) {
  Index j = grid(cdiv(b.size(1), 64));
  Tile sums = zeros(accumulator(a.dtype()), {32, 64});
  for (Index k : range(0, a.size(1), bk))
    sums = dot(a.load({0, k}, {32, bk}), b.load({k, j * 64}, {bk, 64}), sums);
  if (reshaped)
    c.store({0, j * 128}, reshape(sums, {16, 128}));
  else
    c.store({0, j * 64}, sums + sums);
});

TEST(CpuDot, SumsThatStartInALoop) {
  for (const std::string &level : levels())
    for (DType type : {f32, bf16, i8})
      for (int64_t k : {0, 5, 32, 70})
        for (bool reshaped : {false, true}) {
          Tensor a = wholeNumbers(type, {32, k}, 1), b = wholeNumbers(type, {k, 128}, 2);
          Tensor c = Tensor::empty(accumulator(type), {reshaped ? 16 : 32, reshaped ? 256 : 128});
          c.fillBytes(0xff);
          LaunchOptions options;
          options.compile.isa = level;
          options.params = {{"reshaped", reshaped}};
          launch(reshapedSums, {a, b, c}, options);
          std::vector<double> x = valuesOf(a), y = valuesOf(b);
          for (int64_t i = 0; i < 32; ++i)
            for (int64_t j = 0; j < 128; ++j) {
              double total = 0;
              for (int64_t l = 0; l < k; ++l)
                total += x[i * k + l] * y[l * 128 + j];
              int64_t flat = i * 64 + j % 64; // within a tile
              double found = reshaped ? c.get({flat / 128, j / 64 * 128 + flat % 128}) : c.get({i, j}) / 2;
              ASSERT_EQ(found, total) << level << " " << nameOf(type) << ", k " << k << ", " << i << ", " << j;
            }
        }
}

// What the sums of a loop are added to: themselves, changed element by element, which the blocks compute; or what needs
// other elements of them, or multiplies them, and must not be overwritten meanwhile.
enum Change { scaled, scaledAndMoved, turned, ofTheFirstRow, multiplied };
Kernel changedSums("changed_sums(a, b, factors, c, change)", [](View a, View b, View factors, View c, Param change) {
  Index i = grid(cdiv(c.size(0), 64));
  Tile sums = full(accumulator(a.dtype()), {64, 64}, 1);
  for (Index k : range(0, a.size(1), 32)) {
    Tile x = a.load({i * 64, k}, {64, 32}), y = b.load({k, 0}, {32, 64});
    Tile factor = sum(factors.load({i * 64, k}, {64, 2}), 1);
    Tile before;
    if (change == scaled)
      before = sums * factor;
    else if (change == scaledAndMoved)
      before = sums * factor - max(sums, 0);
    else if (change == turned)
      before = transpose(sums);
    else if (change == ofTheFirstRow)
      before = sums + slice(sums, 0, 0, 1);
    if (change == multiplied)
      sums = dot((sums - factor).to(a.dtype()), b.load({0, 0}, {64, 64}), sums * factor);
    else
      sums = dot(x, y, before);
  }
  c.store({i * 64, 0}, sums);
});

TEST(CpuDot, SumsThatAreChangedInALoop) {
  struct Way {
    const char *level;
    DType type;
    std::vector<Change> changes;
  };
  const Way ways[] = {{"native", f32, {scaled, scaledAndMoved, turned, ofTheFirstRow, multiplied}},
                      {"native", bf16, {scaled, multiplied}},
                      {"amx-emulated", bf16, {scaledAndMoved, turned, ofTheFirstRow}},
                      {"amx-emulated", i8, {scaled}},
                      {"baseline", f32, {scaled}}};
  for (const auto &[level, type, changes] : ways)
    for (Change change : changes)
      for (int64_t rows : {64, 101}) {
        int64_t depth = change == multiplied ? 33 : 96; // few steps, for numbers that stay small
        Tensor a = wholeNumbers(type, {rows, depth}, 1), b = wholeNumbers(type, {96, 64}, 2);
        Tensor factors = Tensor::empty(accumulator(type), {rows, depth});
        factors.fillRandom(3, -2, 2);
        forEachIndex(factors.sizes(),
                     [&](const std::vector<int64_t> &at) { factors.set(at, std::round(factors.get(at))); });
        Tensor c = Tensor::zeros(accumulator(type), {rows, 64}), expected = c.clone();
        LaunchOptions options;
        options.params = {{"change", change}};
        options.target = Target::interpreter;
        launch(changedSums, {a, b, factors, expected}, options);
        options.target = Target::cpu;
        options.compile.isa = level;
        launch(changedSums, {a, b, factors, c}, options);
        ASSERT_EQ(valuesOf(c), valuesOf(expected))
            << level << " " << nameOf(type) << ", " << rows << " rows, " << change;
      }
}

// Sums that begin at zero and are looked at before anything is added to them: then the zeros have to be there.
Kernel sumsSoFar("sums_so_far(a, b, before, c)", [](View a, View b, View before, View c) {
  Index i = grid(cdiv(c.size(0), 64));
  Tile sums = zeros(accumulator(a.dtype()), {64, 64});
  for (Index k : range(0, a.size(1), 32)) {
    before.store({i * 64, k / 32}, sum(sums, 1));
    sums = dot(a.load({i * 64, k}, {64, 32}), b.load({k, 0}, {32, 64}), sums);
  }
  c.store({i * 64, 0}, sums);
});

TEST(CpuDot, SumsThatAreLookedAtFirst) {
  for (const char *level : {"native", "amx-emulated"})
    for (DType type : {f32, bf16, i8}) {
      Tensor a = wholeNumbers(type, {256, 96}, 1), b = wholeNumbers(type, {96, 64}, 2);
      Tensor before = Tensor::zeros(accumulator(type), {256, 3}), expectedBefore = before.clone();
      Tensor c = Tensor::zeros(accumulator(type), {256, 64}), expected = c.clone();
      LaunchOptions options;
      options.target = Target::interpreter;
      launch(sumsSoFar, {a, b, expectedBefore, expected}, options);
      options.target = Target::cpu;
      options.compile.isa = level;
      launch(sumsSoFar, {a, b, before, c}, options);
      EXPECT_EQ(valuesOf(before), valuesOf(expectedBefore)) << level << " " << nameOf(type);
      EXPECT_EQ(valuesOf(c), valuesOf(expected)) << level << " " << nameOf(type);
    }
}

// What is packed of b stays for the instances below, and for no launch after this one; rows of a are read where they
// lie or copied, with edges everywhere or none.
TEST(CpuDot, OperandsThatStay) {
  for (const char *level : dotLevels)
    for (DType type : {bf16, i8})
      for (auto [m, n, k] : {std::array<int64_t, 3>{256, 128, 128}, {200, 100, 128}, {130, 70, 100}, {97, 64, 256}}) {
        SCOPED_TRACE(std::string(level) + " " + std::to_string(m) + " x " + std::to_string(n) + " x " +
                     std::to_string(k));
        Tensor b = wholeNumbers(type, {k, n}, 5);
        for (uint64_t seed : {1, 2}) {
          b.copyFrom(wholeNumbers(type, {k, n}, 10 + seed));
          expectProduct(wholeNumbers(type, {m, k}, seed), b, {64, 64, k}, asTheyAre, level);
          expectProduct(insideALarger.of(wholeNumbers(type, {m, k}, seed)), b, {48, 32, k}, asTheyAre, level);
          expectProduct(wholeNumbers(type, {m, k}, seed), columnMajor.of(b), {64, 32, 128}, turnedInTheKernel, level);
        }
      }
}

// So does what is reduced of b alone: sums of squares along its rows, or of its columns where bytes of a have a zero
// that is not 0. What is reduced of b and something else is computed by every instance.
Kernel zeroPoint("zero_point(a, b, weights, c, bm, bn, bk)",
                 [](View a, View b, View weights, View c, Param bm, Param bn, Param bk) {
                   promise_no_overlap();
                   auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                   DType type = accumulator(a.dtype());
                   Tile sums = zeros(type, {bm, bn}), columns = zeros(type, {1, bn}), weighted = zeros(type, {1, bn});
                   Tile weight = weights.load({i}, {1}).to(type);
                   for (Index k : range(0, a.size(1), bk)) {
                     Tile y = b.load({k, j * bn}, {bk, bn});
                     sums = dot(a.load({i * bm, k}, {bm, bk}), y, sums);
                     columns = columns + sum(y.to(type), 0);
                     weighted = weighted + sum(y.to(type) * weight, 0);
                   }
                   c.store({i * bm, j * bn}, sums - 3 * columns + weighted);
                 });

TEST(CpuDot, ReductionsThatStay) {
  LaunchOptions interpreter;
  interpreter.target = Target::interpreter;
  for (const char *level : dotLevels)
    for (int64_t bk : {32, 128})
      for (auto [m, n, k] : {std::array<int64_t, 3>{128, 64, 128}, {100, 70, 128}, {97, 33, 100}}) {
        SCOPED_TRACE(std::string(level) + " " + std::to_string(m) + " x " + std::to_string(n) + " x " +
                     std::to_string(k) + ", " + std::to_string(bk));
        LaunchOptions options;
        options.compile.isa = level;
        options.params = interpreter.params = {{"bm", 32}, {"bn", 32}, {"bk", bk}};
        Tensor rows = Tensor::zeros(bf16, {n, k}), bytes = Tensor::zeros(i8, {k, n});
        for (uint64_t seed : {1, 2}) { // no launch finds what another has left
          rows.copyFrom(wholeNumbers(bf16, {n, k}, seed));
          bytes.copyFrom(wholeNumbers(i8, {k, n}, seed));
          Tensor a = wholeNumbers(bf16, {m, k}, 3), d = Tensor::zeros(f32, {m, n}), d2 = d.clone();
          launch(squaredDistance, {a, rows, d}, options);
          launch(squaredDistance, {a, rows, d2}, interpreter);
          EXPECT_EQ(valuesOf(d), valuesOf(d2));
          Tensor x = wholeNumbers(i8, {m, k}, 4), weights = wholeNumbers(i8, {4}, 5);
          Tensor c = Tensor::zeros(i32, {m, n}), c2 = c.clone();
          launch(zeroPoint, {x, bytes, weights, c}, options);
          launch(zeroPoint, {x, bytes, weights, c2}, interpreter);
          EXPECT_EQ(valuesOf(c), valuesOf(c2));
        }
      }
}

// Rows of b are stored elsewhere by every instance, the first of which needs few of them.
Kernel lengths("lengths(a, b, c, norms, bm=32, bn=32, bk)",
               [](View a, View b, View c, View norms, Param bm, Param bn, Param bk) {
                 promise_no_overlap();
                 auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                 Index at = (cdiv(c.size(0), bm) - 1 - i) * bn;
                 Tile y = b.load({j * bn, 0}, {bn, bk}), wide = y.to(f32), squares = sum(wide * wide, 1);
                 Tile sums = dot(a.load({i * bm, 0}, {bm, bk}), transpose(y), zeros(f32, {bm, bn}));
                 norms.store({at, j}, squares);
                 c.store({i * bm, j * bn}, sums);
               });

TEST(CpuDot, ReductionsThatStayAreWhole) {
  for (const char *level : dotLevels) {
    Tensor a = wholeNumbers(bf16, {128, 64}, 1), b = wholeNumbers(bf16, {96, 64}, 2);
    Tensor norms[] = {Tensor::zeros(f32, {100, 3}), Tensor::zeros(f32, {100, 3})};
    for (bool isInterpreted : {false, true}) {
      LaunchOptions options;
      options.params = {{"bk", 64}};
      options.threads = 1; // all instances in one piece
      if (isInterpreted)
        options.target = Target::interpreter;
      else
        options.compile.isa = level;
      launch(lengths, {a, b, Tensor::zeros(f32, {128, 96}), norms[isInterpreted]}, options);
    }
    EXPECT_EQ(valuesOf(norms[0]), valuesOf(norms[1])) << level;
  }
}

// Two products with the same b, in a kernel that nobody promised anything about: c may be b.
Kernel twice("twice(a, b, c, bm, bn, bk)", [](View a, View b, View c, Param bm, Param bn, Param bk) {
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile x = a.load({i * bm, 0}, {bm, bk});
  Tile first = dot(x, b.load({0, j * bn}, {bk, bn}), zeros(f32, {bm, bn}));
  c.store({i * bm, j * bn}, first.to(c.dtype()));
  Tile second = dot(x, b.load({0, j * bn}, {bk, bn}), first);
  c.store({i * bm, j * bn}, second.to(c.dtype()));
});

TEST(CpuDot, AnOperandThatIsTheResult) {
  for (const char *level : dotLevels) {
    SCOPED_TRACE(level);
    Tensor a = Tensor::zeros(bf16, {64, 64}), b = wholeNumbers(bf16, {64, 64}, 3), c = b.clone();
    for (int64_t i = 0; i < 64; ++i)
      a.set({i, i}, 2);
    LaunchOptions options;
    options.compile.isa = level;
    options.params = {{"bm", 64}, {"bn", 64}, {"bk", 64}};
    launch(twice, {a, c, c}, options);
    forEachIndex(b.sizes(), [&](const std::vector<int64_t> &i) { EXPECT_EQ(c.get(i), 6 * b.get(i)); });
  }
}

} // namespace
