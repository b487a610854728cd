// SPDX-License-Identifier: Apache-2.0
//
// Gather and scatter, atomics, in-place kernels and workspace.
#include "LangSupport.h"

#include <numeric>

using namespace tenon;
using namespace tenon::test;

namespace {

using MemoryAccess = OnTarget;

TEST_P(MemoryAccess, GatherOfEveryIndexType) {
  Kernel kernel("gather(x, i, y, z)", [](View x, View i, View y, View z) {
    Tile index = i.load({0}, {10});
    y.store({0}, x.gather({index}, true, -5));
    z.store({0}, x.gather({index}, iota(10) % 2 == 0, 7));
  });
  for (DType type : {i64, i32, i16, i8}) {
    Tensor x = counting(f32, {20}), y = Tensor::zeros(f32, {10}), z = Tensor::zeros(f32, {10});
    std::vector<double> indices = {3, 0, 19, 20, -1, 7, 7, 100, -100, 12};
    run(kernel, {x, vectorOf(type, indices), y, z});
    for (int64_t k = 0; k < 10; ++k) {
      bool inside = indices[k] >= 0 && indices[k] < 20;
      EXPECT_EQ(y.get({k}), inside ? indices[k] : -5) << nameOf(type);
      EXPECT_EQ(z.get({k}), inside && k % 2 == 0 ? indices[k] : 7) << nameOf(type);
    }
  }
  for (DType type : {u64, u32, u16, u8}) { // 200 as u8 is 200, not negative
    Tensor x = counting(f32, {250}), y = Tensor::zeros(f32, {10}), z = Tensor::zeros(f32, {10});
    std::vector<double> indices = {3, 0, 249, 250, 200, 128, 7, 255, 130, 12};
    Tensor index = vectorOf(type, indices);
    if (type == u32)
      index.setInt({0}, 0xffffffff);
    if (type == u64)
      index.setInt({0}, -1);
    run(kernel, {x, index, y, z});
    for (int64_t k = type == u32 || type == u64 ? 1 : 0; k < 10; ++k)
      EXPECT_EQ(y.get({k}), indices[k] < 250 ? indices[k] : -5) << nameOf(type);
    if (type == u32 || type == u64) {
      EXPECT_EQ(y.get({0}), -5) << nameOf(type);
    }
  }
}

TEST_P(MemoryAccess, GatherAndScatterInTwoDimensions) {
  Kernel kernel("permute(x, y, z)", [](View x, View y, View z) {
    Tile rows = iota(i32, {5, 1}, 0) - 1, columns = iota(i64, {1, 6}, 1) - 1; // broadcast against each other
    Tile t = x.gather({rows, columns}, true, 50);
    y.store({0, 0}, t);
    z.scatter({columns.to(i32), rows}, t, t != 4.0);
    z.scatter({iota(1), iota(1)}, full(f32, {1}, 77), false);
  });
  Tensor x = counting(f32, {3, 4}), y = Tensor::zeros(f32, {5, 6}), z = Tensor::zeros(f32, {4, 3});
  z.fill(-1);
  run(kernel, {x, y, z});
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 6; ++j) {
      bool inside = i >= 1 && i <= 3 && j >= 1 && j <= 4;
      EXPECT_EQ(y.get({i, j}), inside ? x.get({i - 1, j - 1}) : 50);
    }
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 3; ++j)
      EXPECT_EQ(z.get({i, j}), x.get({j, i}) == 4 ? -1 : x.get({j, i}));
}

// Rows by their numbers, some of which are no row's: neighbours in memory, from a column on that may be before the
// first, up to one behind the last. Masks of rows and of single elements. Sums of 8 bits that wrap around are no
// neighbours.
TEST_P(MemoryAccess, RowsByTheirNumbers) {
  Kernel kernel("rows(x, number, y, z, first)", [](View x, View number, View y, View z, Index first) {
    Tile n = expand(number.load({0}, {6}), 1), column = iota(i64, {1, 40}, 1) + first;
    y.store({0, 0}, x.gather({n, column}, n != 3, 1));
    z.scatter({n, column}, x.gather({n, column}), (column % 5 != 0) & (n != 1));
  });
  for (DType type : {f32, bf16, f64, i8, boolean, f8e4m3})
    for (int64_t first : {0, -7, 5, 37, 100}) {
      Tensor x = Tensor::empty(type, {5, 37}), y = Tensor::zeros(type, {6, 40}), z = Tensor::zeros(type, {5, 37});
      x.fillRandom(3, 0, 1);
      std::vector<double> numbers = {4, 0, -1, 3, 5, 1};
      run(kernel, {x, vectorOf(i32, numbers), y, z, first});
      for (int64_t i = 0; i < 6; ++i)
        for (int64_t j = 0; j < 40; ++j) {
          auto n = static_cast<int64_t>(numbers[i]);
          int64_t column = first + j;
          bool inside = n >= 0 && n < 5 && column >= 0 && column < 37;
          EXPECT_EQ(y.get({i, j}), inside && n != 3 ? x.get({n, column}) : 1) << nameOf(type) << " from " << first;
          if (inside) {
            EXPECT_EQ(z.get({n, column}), column % 5 && n != 1 ? x.get({n, column}) : 0) << nameOf(type);
          }
        }
    }
  Kernel wraps("wraps(x, y)", [](View x, View y) {
    y.store({0, 0}, x.gather({iota(i64, {2, 1}, 0), iota(i8, {1, 40}, 1) + full(i8, {1, 40}, 100)}, true, -1));
  });
  Tensor x = counting(f32, {2, 200}), y = Tensor::zeros(f32, {2, 40});
  run(wraps, {x, y});
  for (int64_t j = 0; j < 40; ++j)
    EXPECT_EQ(y.get({1, j}), j < 28 ? x.get({1, 100 + j}) : -1) << "128 is -128";
}

TEST_P(MemoryAccess, ScatterOfEveryType) {
  Kernel kernel("reverse(x, y)", [](View x, View y) { y.scatter({14 - iota(16)}, x.load({0}, {16})); });
  for (DType type : allDTypes) {
    Tensor x = Tensor::empty(type, {16}), y = Tensor::zeros(type, {15});
    x.fillRandom(4, 0, type == boolean ? 1 : 100);
    run(kernel, {x, y});
    for (int64_t i = 0; i < 15; ++i)
      EXPECT_EQ(y.get({i}), x.get({14 - i})) << nameOf(type);
  }
}

//===--- Atomics --------------------------------------------------------------------------------------------------===//

// A histogram by many instances: integer counts are exact.
TEST_P(MemoryAccess, HistogramIsExact) {
  Kernel kernel("histogram(x, counts)", [](View x, View counts) {
    Index i = grid(cdiv(x.size(0), 64));
    Tile at = i * 64 + iota(i64, {64}, 0);
    Tile bin = x.gather({at}, true, -1);
    counts.atomic_add({bin}, full(counts.dtype(), {64}, 1), at < x.size(0));
  });
  for (DType type : {i32, i64, u32, u64, f32, f64}) {
    int64_t n = 20000;
    Tensor x = Tensor::empty(i32, {n}), counts = Tensor::zeros(type, {16});
    x.fillRandom(9, 0, 15);
    run(kernel, {x, counts});
    std::vector<double> expected(16);
    for (int64_t i = 0; i < n; ++i)
      ++expected[x.getInt({i})];
    EXPECT_EQ(valuesOf(counts), expected) << nameOf(type);
  }
}

// Few places are added up apart first: just as many as that is done for and one more, two dimensions, places apart from
// each other in memory and places outside.
TEST_P(MemoryAccess, AdditionsToFewPlaces) {
  Kernel kernel("few(i, j, x, sums)", [](View i, View j, View x, View sums) {
    Index part = grid(cdiv(x.size(0), 128));
    auto load = [&](View view) { return view.load({part * 128}, {128}); };
    sums.atomic_add({load(i), load(j)}, load(x), load(x) != 3);
  });
  for (DType type : {i32, u64, f32, f64})
    for (auto [rows, columns] : {std::array<int64_t, 2>{1, 1}, {4, 16}, {5, 13}, {1, 64}, {0, 4}}) {
      Tensor i = Tensor::empty(i32, {300}), j = Tensor::empty(i64, {300}), x = Tensor::empty(type, {300});
      i.fillRandom(1, -1, static_cast<double>(rows));
      j.fillRandom(2, -1, static_cast<double>(columns));
      for (int64_t k = 0; k < 300; ++k)
        x.set({k}, static_cast<double>(k * 7 % 6));
      for (bool isApart : {false, true}) {
        Tensor memory = Tensor::zeros(type, {rows, 3 * columns});
        Tensor sums = Tensor::borrow(memory.data(), memory.bufferBytes(), type, {rows, columns},
                                     isApart ? IndexList{3 * columns, 3} : IndexList{columns, 1});
        run(kernel, {i, j, x, sums});
        std::vector<double> expected(rows * columns);
        for (int64_t k = 0; k < 300; ++k)
          if (int64_t r = i.getInt({k}), c = j.getInt({k});
              r >= 0 && r < rows && c >= 0 && c < columns && x.get({k}) != 3)
            expected[r * columns + c] += x.get({k});
        EXPECT_EQ(valuesOf(sums), expected) << nameOf(type) << " " << rows << " x " << columns;
      }
    }
}

// A place that nothing is added to, or -0 alone, keeps its sign.
TEST_P(MemoryAccess, AdditionsOfNegativeZero) {
  Kernel kernel("zeros(i, sums)", [](View i, View sums) {
    sums.atomic_add({i.load({0}, {16})}, full(f32, {16}, -0.0));
    sums.atomic_add({i.load({0}, {16}) + 1}, zeros(f32, {16}));
  });
  Tensor i = Tensor::zeros(i32, {16}), sums = vectorOf(f32, {-0.0, -0.0, -0.0});
  run(kernel, {i, sums});
  EXPECT_TRUE(std::signbit(sums.get({0})));
  EXPECT_FALSE(std::signbit(sums.get({1})));
  EXPECT_TRUE(std::signbit(sums.get({2})));
}

TEST_P(MemoryAccess, AtomicKinds) {
  Kernel kernel("kinds(x, total, largest, smallest)", [](View x, View total, View largest, View smallest) {
    Index i = grid(x.size(0));
    Tile t = reshape(x.load({i, 0}, {1, 8}), {8}), zero = zeros(i32, {8});
    total.atomic_add({zero}, t);
    largest.atomic_max({zero}, t);
    smallest.atomic_min({zero}, t);
    largest.atomic_max({zero + 1}, t * 2);  // outside: dropped
    smallest.atomic_min({zero - 1}, t * 2);
  });
  for (DType type : {f32, f64, i32, i64, u32, u64}) {
    Tensor x = Tensor::empty(type, {100, 8});
    x.fillRandom(3, isUnsigned(type) ? 10 : -1000, 1000);
    if (type == u32)
      x.setInt({50, 3}, 0xfffffff0);
    if (type == u64)
      x.setInt({50, 3}, -16);
    Tensor total = Tensor::zeros(type, {1}), largest = Tensor::zeros(type, {1}), smallest = Tensor::zeros(type, {1});
    run(kernel, {x, total, largest, smallest});
    std::vector<double> values = valuesOf(x);
    double sum = std::accumulate(values.begin(), values.end(), 0.0);
    if (isFloat(type))
      EXPECT_NEAR(total.get({0}), sum, type == f32 ? 0.5 : 1e-8);
    else if (!isUnsigned(type))
      EXPECT_EQ(total.get({0}), sum);
    EXPECT_EQ(largest.get({0}), std::max(0.0, *std::max_element(values.begin(), values.end()))) << nameOf(type);
    EXPECT_EQ(smallest.get({0}), std::min(0.0, *std::min_element(values.begin(), values.end()))) << nameOf(type);
  }
}

TEST_P(MemoryAccess, AtomicFloatNaN) {
  Kernel kernel("nan(x, y)", [](View x, View y) {
    Tile t = x.load({0}, {1}), at = zeros(i32, {1});
    y.atomic_max({at}, t);
    y.atomic_min({at + 1}, t);
    y.atomic_max({at + 2}, full(f32, {1}, 5));
  });
  Tensor x = vectorOf(f32, {NAN}), y = vectorOf(f32, {1, 1, NAN});
  run(kernel, {x, y});
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_TRUE(std::isnan(y.get({i}))) << i;
}

// Every ticket is handed out once; what was there before is returned, zero where masked off or outside.
TEST_P(MemoryAccess, AtomicsReturnTheOldValue) {
  Kernel tickets("tickets(counter, seen)", [](View counter, View seen) {
    grid(500);
    Tile mine = counter.atomic_add({zeros(i32, {3})}, full(i64, {3}, 1), iota(3) < 2);
    seen.atomic_add({mine}, full(i32, {3}, 1), iota(3) < 2);
    seen.scatter({mine + 1000}, full(i32, {3}, 7), iota(3) == 2); // the masked one got 0
  });
  Tensor counter = Tensor::zeros(i64, {1}), seen = Tensor::zeros(i32, {1001});
  run(tickets, {counter, seen});
  EXPECT_EQ(counter.getInt({0}), 1000);
  for (int64_t i = 0; i < 1000; ++i)
    ASSERT_EQ(seen.getInt({i}), 1) << i;
  EXPECT_EQ(seen.getInt({1000}), 7);
}

TEST_P(MemoryAccess, Exchange) {
  Kernel kernel("exchange(slot, out)", [](View slot, View out) {
    Index i = grid(200);
    Tile mine = full(slot.dtype(), {1}, i + 1);
    Tile old = slot.atomic_exchange({zeros(i32, {1})}, mine);
    out.store({i}, old);
  });
  for (DType type : {i32, f32, i64, f64}) {
    Tensor slot = Tensor::zeros(type, {1}), out = Tensor::zeros(type, {200});
    run(kernel, {slot, out});
    // A chain: every value but the last appears once as an old one.
    std::vector<double> values = valuesOf(out);
    values.push_back(slot.get({0}));
    std::sort(values.begin(), values.end());
    for (int64_t i = 0; i <= 200; ++i)
      ASSERT_EQ(values[i], i) << nameOf(type);
  }
}

TEST_P(MemoryAccess, CompareExchange) {
  Kernel kernel("cas(x, y)", [](View x, View y) {
    Tile at = iota(4);
    y.store({0}, x.atomic_compare_exchange({at}, full(x.dtype(), {4}, 1), full(x.dtype(), {4}, 9), at < 3));
  });
  for (DType type : {i32, u32, i64, u64, f32, f64}) {
    Tensor x = vectorOf(type, {1, 2, 1, 1}), y = Tensor::zeros(type, {4});
    run(kernel, {x, y});
    EXPECT_EQ(valuesOf(x), (std::vector<double>{9, 2, 9, 1})) << nameOf(type);
    EXPECT_EQ(valuesOf(y), (std::vector<double>{1, 2, 1, 0})) << nameOf(type);
  }
  // One winner among many instances.
  Kernel race("race(x, wins)", [](View x, View wins) {
    Index i = grid(300);
    Tile zero = zeros(i32, {1});
    Tile old = x.atomic_compare_exchange({zero}, zero, full(i32, {1}, i + 1));
    wins.atomic_add({zero}, where(old == 0, 1, zero));
  });
  Tensor x = Tensor::zeros(i32, {1}), wins = Tensor::zeros(i32, {1});
  run(race, {x, wins});
  EXPECT_EQ(wins.getInt({0}), 1);
  EXPECT_GE(x.getInt({0}), 1);
}

//===--- One buffer, several views --------------------------------------------------------------------------------===//

TEST_P(MemoryAccess, InPlace) {
  Kernel kernel("inplace(x, y)", [](View x, View y) {
    Index i = grid(cdiv(x.size(0), 100));
    y.store({i * 100}, x.load({i * 100}, {100}) * 2 + 1);
  });
  Tensor x = counting(f32, {1050});
  run(kernel, {x, x});
  for (int64_t i = 0; i < 1050; ++i)
    ASSERT_EQ(x.get({i}), 2 * i + 1);
}

// The whole tile is read before any of it is written, whatever the shift.
TEST_P(MemoryAccess, ShiftedStore) {
  Kernel kernel("shift(x, by)", [](View x, Index by) { x.store({by}, x.load({0}, {1000}, -1) + 0.5); });
  for (int64_t by : {-999, -17, -8, -1, 0, 1, 3, 8, 16, 500}) {
    Tensor x = counting(f32, {1000});
    run(kernel, {x, by});
    for (int64_t i = 0; i < 1000; ++i) {
      int64_t from = i - by;
      ASSERT_EQ(x.get({i}), from >= 0 && from < 1000 ? from + 0.5 : i) << "shift " << by << " element " << i;
    }
  }
}

TEST_P(MemoryAccess, OverlappingViews) {
  Kernel kernel("overlap(x, y)", [](View x, View y) {
    Tile a = x.load({0, 0}, {8, 16}), b = x.load({4, 0}, {4, 16});
    y.store({0, 0}, a * 10);
    Tile c = x.load({4, 0}, {4, 16}); // sees the store: program order
    y.store({8, 0}, b + c);
  });
  Tensor memory = counting(f32, {16 * 20 + 3}), before = memory.clone();
  int64_t shift = 35;
  Tensor x = memory.slice(0, 0, 8 * 16).reshape({8, 16}), y = memory.slice(0, shift, 12 * 16).reshape({12, 16});
  run(kernel, {x, y});
  std::vector<double> plain = valuesOf(before), a(plain.begin(), plain.begin() + 128);
  for (int64_t i = 0; i < 128; ++i)
    plain[shift + i] = a[i] * 10;
  std::vector<double> c(plain.begin() + 64, plain.begin() + 128);
  for (int64_t i = 0; i < 64; ++i)
    plain[shift + 128 + i] = a[64 + i] + c[i];
  EXPECT_EQ(valuesOf(memory), plain);
}

// Rows that overlap each other: every element is read before any is written, so each is raised once, not once per row.
TEST_P(MemoryAccess, ViewThatOverlapsItself) {
  Kernel kernel("raise(x)", [](View x) { x.store({0, 0}, x.load({0, 0}, {8, 40}) + 1); });
  Tensor line = counting(f32, {47});
  Tensor windows = Tensor::borrow(line.data(), line.bufferBytes(), f32, {8, 40}, {1, 1});
  EXPECT_FALSE(windows.hasDistinctElements());
  EXPECT_TRUE(line.hasDistinctElements());
  run(kernel, {windows});
  for (int64_t i = 0; i < 47; ++i)
    ASSERT_EQ(line.get({i}), i + 1) << i;
}

TEST_P(MemoryAccess, TransposeInPlace) {
  Kernel kernel("transpose(x, y)", [](View x, View y) { y.store({0, 0}, transpose(x.load({0, 0}, {33, 33}))); });
  Tensor x = counting(f32, {33, 33});
  run(kernel, {x, x});
  for (int64_t i = 0; i < 33; ++i)
    for (int64_t j = 0; j < 33; ++j)
      ASSERT_EQ(x.get({i, j}), j * 33 + i);
}

// Reductions, several uses and a loop over an input that is overwritten on the way.
TEST_P(MemoryAccess, SoftmaxInPlace) {
  Kernel kernel("softmax(x, y)", [](View x, View y) {
    Index row = grid(x.size(0));
    Tile t = x.load({row, 0}, {1, 50}, -inf);
    t = exp(t - max(t, 1));
    y.store({row, 0}, t / sum(t, 1));
  });
  Tensor x = Tensor::empty(f32, {5, 50});
  x.fillRandom(1, -4, 4);
  Tensor before = x.clone();
  run(kernel, {x, x});
  for (int64_t i = 0; i < 5; ++i) {
    double total = 0;
    for (int64_t j = 0; j < 50; ++j)
      total += std::exp(before.get({i, j}));
    for (int64_t j = 0; j < 50; ++j)
      EXPECT_NEAR(x.get({i, j}), std::exp(before.get({i, j})) / total, 1e-6);
  }
}

TEST_P(MemoryAccess, LoopsReadWhatTheyWrote) {
  Kernel kernel("prefix(x)", [](View x) {
    for (Index k : range(1, x.size(0)))
      x.store({k}, x.load({k}, {1}) + x.load({k - 1}, {1}));
  });
  Tensor x = counting(i32, {50});
  run(kernel, {x});
  for (int64_t i = 0; i < 50; ++i)
    EXPECT_EQ(x.getInt({i}), i * (i + 1) / 2);
}

//===--- Workspace ------------------------------------------------------------------------------------------------===//

// A sum split over instances: partial sums in the workspace, added up by whoever arrives last. Run several times: the
// workspace is zero at the start of every launch.
TEST_P(MemoryAccess, SplitReductionWithLastArriver) {
  Kernel kernel("split(x, y)", [](View x, View y) {
    Index parts = cdiv(x.size(0), 64);
    View partial = workspace(f32, {parts}), arrived = workspace(i32, {1});
    Index i = grid(parts);
    partial.store({i}, sum(x.load({i * 64}, {64}), 0));
    Tile before = arrived.atomic_add({zeros(i32, {1})}, full(i32, {1}, 1));
    if_(scalar(before.to(i64)) == parts - 1, [&] {
      Tile total = zeros(f32, {1});
      for (Index k : range(parts))
        total += partial.load({k}, {1});
      y.store({0}, total);
    });
  });
  for (int64_t n : {1000, 5000, 64, 1000}) {
    Tensor x = Tensor::empty(f32, {n}), y = Tensor::zeros(f32, {1});
    x.fill(1);
    for (int repeat = 0; repeat < 3; ++repeat) {
      y.fill(-1);
      run(kernel, {x, y});
      ASSERT_EQ(y.get({0}), n) << "repetition " << repeat;
    }
  }
}

TEST_P(MemoryAccess, WorkspacesAreZeroAndSeparate) {
  Kernel kernel("work(y, n)", [](View y, Index n) {
    View a = workspace(f64, {n, 3}), b = workspace(i8, {n}), c = workspace(boolean, {7});
    Tile dirty = sum(reshape(a.load({0, 0}, {4, 3}, 1), {12}), 0).to(i64) + sum(b.load({0}, {8}, 1), 0).to(i64) +
                 sum(c.load({0}, {8}, true), 0).to(i64);
    y.store({0}, dirty); // only the padding counts
    a.store({0, 0}, full(f64, {4, 3}, 5));
    b.store({0}, full(i8, {8}, 6));
    c.store({0}, full(boolean, {8}, true));
    y.store({1}, a.size(0) * 100 + a.size(1));
    y.store({2}, scalar(a.load({2, 2}, {1, 1})).to(i64) * 100 + b.at({1}).to(i64) * 10 + c.at({6}).to(i64));
  });
  for (int repeat = 0; repeat < 2; ++repeat) {
    Tensor y = Tensor::zeros(i64, {3});
    run(kernel, {y, 3});
    EXPECT_EQ(intsOf(y), (std::vector<int64_t>{3 + 5 + 1, 303, 561}));
  }
}

TENON_ON_EACH_TARGET(MemoryAccess);

} // namespace
