// SPDX-License-Identifier: Apache-2.0
//
// Loops and branches: what each variable holds after them is what plain C++ would give.
#include "LangSupport.h"

#include <memory>

using namespace tenon;
using namespace tenon::test;

namespace {

using Control = OnTarget;

TEST_P(Control, LoopCounts) {
  Kernel kernel("loops(y, begin, end, step)", [](View y, Index begin, Index end, Index step) {
    Index trips = 0, last = -1;
    Tile total = zeros(i64, {3});
    for (Index k : range(begin, end, step)) {
      trips = trips + 1;
      total = total + k * iota(i64, {3}, 0);
      last = k;
    }
    y.store({0}, trips);
    y.store({1}, last);
    y.store({2}, total);
  });
  struct Case {
    int64_t begin, end, step;
  };
  for (auto [begin, end, step] : {Case{0, 0, 1}, {0, 1, 1}, {0, 10, 1}, {0, 10, 3}, {5, 3, 1}, {-7, 8, 4}, {0, 3, 100},
                                  {-5, -5, 2}, {1000, 1007, 7}}) {
    Tensor y = Tensor::zeros(i64, {5});
    run(kernel, {y, begin, end, step});
    int64_t trips = 0, last = -1, total = 0;
    for (int64_t k = begin; k < end; k += step) {
      ++trips;
      last = k;
      total += k;
    }
    EXPECT_EQ(intsOf(y), (std::vector<int64_t>{trips, last, 0, total, 2 * total}))
        << begin << " " << end << " " << step;
  }
}

TEST_P(Control, RangeForms) {
  Kernel kernel("forms(y)", [](View y) {
    Tile a = zeros(i32, {1}), b = a, c = a;
    for (Index k : range(5))
      a += k.to(i32);
    for (Index k : range(2, 5))
      b += k.to(i32);
    for (Index k : range(0, y.size(0) * 4, 5))
      c += k.to(i32);
    y.store({0}, concat({a, b, c}, 0));
  });
  Tensor y = Tensor::zeros(i32, {3});
  run(kernel, {y});
  EXPECT_EQ(intsOf(y), (std::vector<int64_t>{10, 9, 15}));
}

// acc and init hold one value at the loop's entry and are still two variables.
TEST_P(Control, TwoVariablesOneValue) {
  Kernel kernel("two(x, y, n)", [](View x, View y, Index n) {
    Tile init = x.load({0}, {4});
    Tile acc = init;
    for (Index k : range(n)) {
      (void)k;
      acc = acc + init;
    }
    y.store({0}, acc);
    y.store({4}, init);
  });
  for (int64_t n : {0, 1, 5}) {
    Tensor x = counting(f32, {4}), y = Tensor::zeros(f32, {8});
    run(kernel, {x, y, n});
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(y.get({i}), i * (n + 1.0));
      EXPECT_EQ(y.get({4 + i}), i);
    }
  }
}

TEST_P(Control, SwapAndRotate) {
  Kernel kernel("swap(y, n)", [](View y, Index n) {
    Tile a = full(i32, {2}, 1), b = full(i32, {2}, 2), c = full(i32, {2}, 3), d = a, e = b;
    for (Index k : range(n)) {
      std::swap(a, b);
      Tile first = c; // c, d, e rotate
      c = d;
      d = e;
      e = first;
      e = e + k.to(i32) - k.to(i32);
    }
    y.store({0}, concat({a, b, c, d, e}, 0));
  });
  for (int64_t n : {0, 1, 2, 3, 7}) {
    Tensor y = Tensor::zeros(i32, {10});
    run(kernel, {y, n});
    int64_t a = 1, b = 2, c = 3, d = 1, e = 2;
    for (int64_t k = 0; k < n; ++k) {
      std::swap(a, b);
      int64_t first = c;
      c = d, d = e, e = first;
    }
    EXPECT_EQ(intsOf(y), (std::vector<int64_t>{a, a, b, b, c, c, d, d, e, e})) << n;
  }
}

TEST_P(Control, Fibonacci) {
  Kernel kernel("fibonacci(y, n)", [](View y, Index n) {
    Index a = 0, b = 1;
    for (Index k : range(n)) {
      y.store({k}, a);
      Index next = a + b;
      a = b;
      b = next;
    }
  });
  Tensor y = Tensor::zeros(i64, {10});
  run(kernel, {y, 10});
  EXPECT_EQ(intsOf(y), (std::vector<int64_t>{0, 1, 1, 2, 3, 5, 8, 13, 21, 34}));
}

// An assigned value may come from before the loop, or from another carried variable: the previous iteration's.
TEST_P(Control, PreviousIteration) {
  Kernel kernel("previous(x, y, n)", [](View x, View y, Index n) {
    Tile previous = full(f32, {1}, -1), current = previous, zero = zeros(f32, {1});
    for (Index k : range(n)) {
      previous = current;
      current = x.load({k}, {1});
      y.store({k}, current * 10 + previous);
      Tile same = zero;
      zero = same;
    }
    y.store({n}, previous);
    y.store({n + 1}, zero);
  });
  Tensor x = counting(f32, {5}), y = Tensor::zeros(f32, {7});
  run(kernel, {x, y, 5});
  EXPECT_EQ(valuesOf(y), (std::vector<double>{-1, 10, 21, 32, 43, 3, 0}));
}

TEST_P(Control, NestedLoops) {
  Kernel kernel("nested(x, y, n, m)", [](View x, View y, Index n, Index m) {
    Tile total = zeros(f32, {1, 1}), scale = full(f32, {1, 1}, 1), rows = total;
    for (Index i : range(n)) {
      Tile row = zeros(f32, {1, 1}); // declared inside: fresh every time
      for (Index j : range(m)) {
        row += x.load({i, j}, {1, 1}) * scale;
        for (Index l : range(j, j + 2))
          rows = rows + l.to(f32);
      }
      total = total + row;
      scale = scale * 2;
    }
    y.store({0, 0}, total);
    y.store({0, 1}, scale);
    y.store({0, 2}, rows);
  });
  for (auto [n, m] : {std::pair<int64_t, int64_t>{3, 4}, {0, 4}, {3, 0}, {1, 1}}) {
    Tensor x = counting(f32, {3, 4}), y = Tensor::zeros(f32, {1, 3});
    run(kernel, {x, y, n, m});
    double total = 0, scale = 1, rows = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        total += x.get({i, j}) * scale;
        rows += 2.0 * j + 1;
      }
      scale *= 2;
    }
    EXPECT_EQ(valuesOf(y), (std::vector<double>{total, scale, rows}));
  }
}

TEST_P(Control, LoopsInSequence) {
  Kernel kernel("sequence(y)", [](View y) {
    Tile t = zeros(i32, {2});
    for (Index k : range(4))
      t = t + k.to(i32);
    Tile between = t;
    for (Index k : range(3))
      t = t * 2 - between + k.to(i32);
    y.store({0}, t);
    y.store({2}, between);
  });
  Tensor y = Tensor::zeros(i32, {4});
  run(kernel, {y});
  int64_t t = 6;
  for (int64_t k = 0; k < 3; ++k)
    t = t * 2 - 6 + k;
  EXPECT_EQ(intsOf(y), (std::vector<int64_t>{t, t, 6, 6}));
}

TEST_P(Control, Branches) {
  Kernel kernel("branches(y, n)", [](View y, Index n) {
    Tile a = full(i32, {1}, 1), b = full(i32, {1}, 2), c = a;
    if_(n > 0, [&] { a = a + 10; });
    if_(n % 2 == 0, [&] {
      std::swap(a, b);
      c = a;
    }).else_([&] { b = b * 100; });
    if_(n < 0, [] {}).else_([&] { c = c + 1000; });
    if_(true, [&] { c = c + 1; });
    if_(false, [&] { c = c * 0; });
    y.store({0}, concat({a, b, c}, 0));
  });
  for (int64_t n : {-3, -2, 0, 1, 2, 7}) {
    Tensor y = Tensor::zeros(i32, {3});
    run(kernel, {y, n});
    int64_t a = 1, b = 2, c = 1;
    if (n > 0)
      a += 10;
    if (n % 2 == 0) {
      std::swap(a, b);
      c = a;
    } else {
      b *= 100;
    }
    if (n >= 0)
      c += 1000;
    EXPECT_EQ(intsOf(y), (std::vector<int64_t>{a, b, c + 1})) << n;
  }
}

TEST_P(Control, BranchesInLoopsAndLoopsInBranches) {
  Kernel kernel("mixed(y, n)", [](View y, Index n) {
    Tile even = zeros(i64, {2}), odd = even, deep = even;
    for (Index k : range(n)) {
      if_(k % 2 == 0, [&] {
        even = even + k;
        if_(k > 4, [&] {
          for (Index j : range(k))
            deep = deep + j;
        }).else_([&] { deep = deep - 1; });
      }).else_([&] {
        Tile local = odd + k;
        odd = local;
      });
      y.store({k}, even - odd);
    }
    y.store({100}, concat({even, odd, deep}, 0));
  });
  Tensor y = Tensor::zeros(i64, {110});
  run(kernel, {y, 9});
  int64_t even = 0, odd = 0, deep = 0;
  for (int64_t k = 0; k < 9; ++k) {
    if (k % 2 == 0) {
      even += k;
      deep += k > 4 ? k * (k - 1) / 2 : -1;
    } else {
      odd += k;
    }
    EXPECT_EQ(y.getInt({k}), even - odd);
  }
  EXPECT_EQ(y.getInt({100}), even);
  EXPECT_EQ(y.getInt({102}), odd);
  EXPECT_EQ(y.getInt({105}), deep);
}

// A condition computed from data.
TEST_P(Control, DataDependentBranch) {
  Kernel kernel("clip(x, y)", [](View x, View y) {
    Index i = grid(x.size(0));
    Tile t = x.load({i, 0}, {1, 5});
    if_(scalar(any(reshape(t > 3, {5}), 0)), [&] { t = t * 0 - 1; });
    y.store({i, 0}, t);
    if_(x.at({i, 0}) == 10.0, [&] { y.store({i, 0}, full(f32, {1, 1}, 99)); });
  });
  Tensor x = counting(f32, {3, 5}), y = Tensor::zeros(f32, {3, 5});
  x.set({0, 4}, 0);
  run(kernel, {x, y});
  EXPECT_EQ(valuesOf(y), (std::vector<double>{0, 1, 2, 3, 0, -1, -1, -1, -1, -1, 99, -1, -1, -1, -1}));
}

// Containers of tiles: each element is a variable of its own.
TEST_P(Control, VectorsOfTiles) {
  Kernel kernel("bins(x, y, n)", [](View x, View y, Index n) {
    std::vector<Tile> bins(4, zeros(f32, {2}));
    auto extra = std::make_unique<Tile>(full(f32, {2}, 1));
    for (Index k : range(n)) {
      for (size_t b = 0; b < bins.size(); ++b) // unrolled by C++
        bins[b] += x.load({k * 2}, {2}) * static_cast<int>(b + 1);
      std::rotate(bins.begin(), bins.begin() + 1, bins.end());
      *extra = *extra * 2;
    }
    int64_t at = 0;
    for (const Tile &bin : bins)
      y.store({2 * at++}, bin);
    y.store({8}, *extra);
  });
  Tensor x = counting(f32, {6}), y = Tensor::zeros(f32, {10});
  run(kernel, {x, y, 3});
  std::vector<std::array<double, 2>> bins(4);
  for (int64_t k = 0; k < 3; ++k) {
    for (size_t b = 0; b < 4; ++b)
      for (int64_t i = 0; i < 2; ++i)
        bins[b][i] += x.get({2 * k + i}) * (b + 1);
    std::rotate(bins.begin(), bins.begin() + 1, bins.end());
  }
  for (int64_t b = 0; b < 4; ++b)
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_EQ(y.get({2 * b + i}), bins[b][i]);
  EXPECT_EQ(y.get({8}), 8);
}

Tile addTo(Tile running, const Tile &value) { return running = running + value; }
void accumulate(Tile &into, const Tile &value) { into += value; }
std::pair<Tile, Tile> split(const Tile &t) { return {t * 2, t * 3}; }
struct Statistics {
  Tile total, largest;
  void update(const Tile &t) {
    total += t;
    largest = maximum(largest, t);
  }
};

TEST_P(Control, HelperFunctionsAndStructs) {
  Kernel kernel("helpers(x, y, n)", [](View x, View y, Index n) {
    Tile a = zeros(f32, {1}), b = a;
    Statistics statistics{a, full(f32, {1}, -inf)};
    for (Index k : range(n)) {
      Tile t = x.load({k}, {1});
      a = addTo(a, t);
      auto [twice, thrice] = split(t);
      accumulate(b, twice + thrice);
      statistics.update(t);
    }
    y.store({0}, concat({a, b, statistics.total, statistics.largest}, 0));
  });
  Tensor x = vectorOf(f32, {3, 1, 4, 1, 5}), y = Tensor::zeros(f32, {4});
  run(kernel, {x, y, 5});
  EXPECT_EQ(valuesOf(y), (std::vector<double>{14, 70, 14, 5}));
}

// A variable read in the loop and never assigned is not carried; one that goes out of scope neither.
TEST_P(Control, OnlyWhatIsAssignedIsCarried) {
  Kernel kernel("carried(x, y)", [](View x, View y) {
    Tile read = x.load({0}, {4}), unused = x.load({1}, {4}), acc = zeros(f32, {4});
    {
      Tile gone = read * 2;
      acc += gone;
    }
    for (Index k : range(3)) {
      Tile local = read * k.to(f32);
      acc = acc + local;
    }
    y.store({0}, acc);
    (void)unused;
  });
  Tensor x = counting(f32, {4}), y = Tensor::zeros(f32, {4});
  run(kernel, {x, y});
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(y.get({i}), i * 5.0);
  std::string text = emit(kernel, {x, y}, "tile", options());
  size_t at = text.find("iter_args(");
  ASSERT_NE(at, std::string::npos);
  std::string arguments = text.substr(at, text.find(')', at) - at);
  EXPECT_EQ(std::count(arguments.begin(), arguments.end(), '='), 1) << arguments;
}

// Sizes of every dimension, the three axes of the grid, and parameters as plain C++ numbers.
TEST_P(Control, GridAxes) {
  Kernel kernel("axes(y, n, fancy=0)", [](View y, Index n, Param fancy) {
    auto [i, j, k] = grid(y.size(0), y.size(1), n);
    Index value = (i * 10 + j) * 10 + k;
    if (fancy) // C++ decides while tracing
      value = value + 1000;
    y.store({i, j, k}, value.to(i32));
  });
  for (int64_t fancy : {0, 1}) {
    Tensor y = Tensor::zeros(i32, {2, 3, 4});
    run(kernel, {y, 4}, {{"fancy", fancy}});
    forEachIndex(y.sizes(), [&](const std::vector<int64_t> &i) {
      EXPECT_EQ(y.getInt(i), (i[0] * 10 + i[1]) * 10 + i[2] + 1000 * fancy);
    });
  }
}

TENON_ON_EACH_TARGET(Control);

} // namespace
