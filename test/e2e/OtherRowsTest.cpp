// SPDX-License-Identifier: Apache-2.0
//
// Kernels that move and mask more than they multiply, as a user might write them: each on the CPU and in the simulator,
// at sizes that end within a tile, of one and of nothing; and what the code for sm_90a is to look like.
#include "OtherSupport.h"
#include "PtxSupport.h"

#include <algorithm>

using namespace tenon;
using namespace tenon::test;

namespace {

std::string remarksOf(const Kernel &kernel, const Problem &problem, Params params) {
  LaunchOptions options;
  options.target = Target::sim;
  options.params = std::move(params);
  std::string text;
  for (const std::string &remark : prepare(kernel, problem.arguments, options).remarks)
    text += remark + "\n";
  return text;
}

std::string ptxOf(const Kernel &kernel, const Problem &problem, Params params) {
  LaunchOptions options;
  options.params = std::move(params);
  std::string ptx = emit(kernel, problem.arguments, "ptx", options);
  expectAssembles(ptx);
  return ptx;
}

//===--- Elements that change threads -----------------------------------------------------------------------------===//

const Kernel transposed("transposed(x, y, bm=64, bn=64)", [](View x, View y, Param bm, Param bn) {
  auto [i, j] = grid(cdiv(x.size(0), bm), cdiv(x.size(1), bn));
  y.store({j * bn, i * bm}, transpose(x.load({i * bm, j * bn}, {bm, bn})));
});

Problem transposeProblem(DType type, int64_t rows, int64_t columns) {
  Arguments arguments = {random(type, {rows, columns}, 1), Tensor::empty(type, {columns, rows})};
  return problemOf(labelOf(type, {rows, columns}), arguments, {1}, {}, [](auto, Arguments &a) {
    for (int64_t i = 0; i < a[0].tensor().size(0); ++i)
      for (int64_t j = 0; j < a[0].tensor().size(1); ++j)
        a[1].tensor().set({j, i}, a[0].tensor().get({i, j}));
  });
}

TEST(OtherRows, Transposed) {
  for (DType type : {f32, bf16, i8})
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{128, 192}, {70, 131}, {1, 1}, {0, 5}})
      expectRightEverywhere(transposeProblem(type, rows, columns), transposed);
  for (Params params : {Params{}, {{"bm", 128}, {"bn", 32}}, {{"bm", 16}, {"bn", 256}}})
    for (DType type : {f32, bf16})
      EXPECT_EQ(count(remarksOf(transposed, transposeProblem(type, 256, 256), params), "swizzled"), 1u);
}

/// A scan gives each thread a run of neighbours: into that layout and out of it, since memory is written in sectors.
const Kernel cumulative("cumulative(x, y, cols=1024)", [](View x, View y, Param cols) {
  Index row = grid(x.size(0));
  y.store({row, 0}, cumsum(x.load({row, 0}, {1, cols}).to(f32), 1).to(y.dtype()));
});

Problem cumulativeProblem(DType type, int64_t rows, int64_t columns) {
  Arguments arguments = {random(type, {rows, columns}, 1), Tensor::empty(type, {rows, columns})};
  return problemOf(labelOf(type, {rows, columns}), arguments, {1}, {}, [](auto one, Arguments &a) {
    using T = decltype(one);
    for (int64_t i = 0; i < a[0].tensor().size(0); ++i) {
      T sum = 0;
      for (int64_t j = 0; j < a[0].tensor().size(1); ++j)
        a[1].tensor().set({i, j}, sum += T(a[0].tensor().get({i, j})));
    }
  });
}

TEST(OtherRows, Cumulative) {
  for (DType type : {f32, bf16})
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{3, 1024}, {2, 1000}, {1, 1}, {0, 5}})
      expectRightEverywhere(cumulativeProblem(type, rows, columns), cumulative);
  Problem problem = cumulativeProblem(f32, 2, 8192);
  LaunchOptions options;
  options.params = {{"cols", 8192}};
  EXPECT_EQ(count(emit(cumulative, problem.arguments, "layouts", options), "nvidia.convert"), 2u);
  EXPECT_GE(count(remarksOf(cumulative, problem, options.params), "swizzled"), 1u);
}

//===--- Tiles of two dimensions that are one row
//------------------------------------------------------------------===//

/// Channels and pixels of a group are normalised together: two reductions of a tile, of two dimensions each.
const Kernel groupNorm("group_norm(x, w, y, channels=16, pixels=64)", [](View x, View w, View y, Param channels,
                                                                         Param pixels) {
  auto [n, g] = grid(x.size(0), w.size(0));
  Tile t = reshape(x.load({n, g * channels, 0}, {1, channels, pixels}), {channels, pixels}).to(f32);
  Tile size = channels * x.size(2).to(f32), mean = sum(sum(t, 1), 0) / size;
  Tile d = where(iota(i64, {1, pixels}, 1) < x.size(2), t - mean, 0);
  Tile r = rsqrt(sum(sum(d * d, 1), 0) / size + 1e-5);
  Tile z = d * r * reshape(w.load({g, 0}, {1, channels}), {channels, 1}).to(f32);
  y.store({n, g * channels, 0}, reshape((z * sigmoid(z)).to(y.dtype()), {1, channels, pixels}));
});

Problem groupProblem(DType type, int64_t groups, int64_t pixels) {
  Arguments arguments = {random(type, {2, groups * 16, pixels}, 1), random(type, {groups, 16}, 2),
                         Tensor::empty(type, {2, groups * 16, pixels})};
  return problemOf(labelOf(type, {groups, pixels}), arguments, {2}, {}, [](auto one, Arguments &a) {
    using T = decltype(one);
    const Tensor &x = a[0].tensor();
    int64_t pixels = x.size(2);
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t first = 0; first < x.size(1); first += 16) {
        T sum = 0, squares = 0;
        auto each = [&](auto visit) {
          for (int64_t c = first; c < first + 16; ++c)
            for (int64_t p = 0; p < pixels; ++p)
              visit(c, p, T(x.get({n, c, p})));
        };
        each([&](int64_t, int64_t, T value) { sum += value; });
        T mean = sum / T(16 * pixels);
        each([&](int64_t, int64_t, T value) { squares += (value - mean) * (value - mean); });
        T r = 1 / std::sqrt(squares / T(16 * pixels) + T(1e-5));
        each([&](int64_t c, int64_t p, T value) {
          T z = (value - mean) * r * T(a[1].tensor().get({first / 16, c - first}));
          a[2].tensor().set({n, c, p}, z / (1 + std::exp(-z)));
        });
      }
  });
}

/// The largest of a picture's rows and columns, and how many elements are it.
const Kernel peaks("peaks(x, top, hits, rows=32, cols=64)", [](View x, View top, View hits, Param rows, Param cols) {
  Index i = grid(x.size(0));
  Tile t = x.load({i, 0, 0}, {1, rows, cols}, -inf).to(f32), largest = max(max(t, 1), 2);
  top.store({i}, reshape(largest, {1}));
  hits.store({i}, reshape(sum(sum((t == largest).to(i32), 2), 1), {1}));
});

TEST(OtherRows, OneRowOfTwoDimensions) {
  for (DType type : {f32, bf16})
    for (int64_t pixels : {64, 50, 1})
      expectRightEverywhere(groupProblem(type, 2, pixels), groupNorm);
  LaunchOptions options;
  options.params = {{"pixels", 4096}};
  Problem large = groupProblem(bf16, 2, 4096);
  EXPECT_EQ(count(emit(groupNorm, large.arguments, "layouts", options), "tile.reduce"), 2u);
  // What is normalised waits as it was loaded, through the reshape and under the mask, so that a second block fits.
  EXPECT_EQ(count(emit(groupNorm, large.arguments, "ptx", options), ".minnctapersm 2"), 1u);
  auto make = [](int64_t pictures, int64_t rows, int64_t columns) {
    Arguments arguments = {random(f16, {pictures, rows, columns}, 1), Tensor::empty(f32, {pictures}),
                           Tensor::empty(i32, {pictures})};
    return problemOf(labelOf(f16, {pictures, rows, columns}), arguments, {1, 2}, {}, [](auto, Arguments &a) {
      const Tensor &x = a[0].tensor();
      for (int64_t i = 0; i < x.size(0); ++i) {
        double largest = -INFINITY;
        int64_t found = 0;
        for (int64_t r = 0; r < x.size(1); ++r)
          for (int64_t c = 0; c < x.size(2); ++c) {
            double value = x.get({i, r, c});
            found = value > largest ? 1 : found + (value == largest);
            largest = std::max(largest, value);
          }
        a[1].tensor().set({i}, largest);
        a[2].tensor().setInt({i}, found);
      }
    });
  };
  for (auto [pictures, rows, columns] : {std::array<int64_t, 3>{3, 32, 64}, {2, 20, 33}, {1, 1, 1}, {0, 3, 3}})
    expectRightEverywhere(make(pictures, rows, columns), peaks);
  options.params = {};
  EXPECT_EQ(count(emit(peaks, make(2, 32, 64).arguments, "layouts", options), "tile.reduce"), 2u);
}

//===--- Elements of several widths -------------------------------------------------------------------------------===//

/// What is stored in 32 bits decides how many neighbours a thread has: each lane would else write halves of sectors.
const Kernel momentum("momentum(p, g, m, half, width=1024)", [](View p, View g, View m, View half, Param width) {
  Index i = grid(cdiv(p.size(0), width)) * width;
  Tile mt = 0.5 * m.load({i}, {width}) + g.load({i}, {width}).to(f32), pt = p.load({i}, {width}) - 0.25 * mt;
  m.store({i}, mt);
  p.store({i}, pt);
  half.store({i}, pt.to(half.dtype()));
});

/// The same of rows: a narrower copy beside the sum.
const Kernel addQuantise("add_quantise(x, r, total, q, cols=256)", [](View x, View r, View total, View q, Param cols) {
  Index row = grid(x.size(0));
  Tile t = x.load({row, 0}, {1, cols}).to(f32) + r.load({row, 0}, {1, cols}).to(f32);
  total.store({row, 0}, t.to(total.dtype()));
  q.store({row, 0}, (t * 16).to(q.dtype()));
});

TEST(OtherRows, SeveralWidths) {
  auto steps = [](int64_t n) {
    Arguments arguments = {random(f32, {n}, 1), random(bf16, {n}, 2), random(f32, {n}, 3), Tensor::empty(bf16, {n})};
    Problem problem = problemOf(labelOf(f32, {n}), arguments, {0, 2, 3}, {}, [](auto one, Arguments &a) {
      using T = decltype(one);
      for (int64_t i = 0; i < a[0].tensor().size(0); ++i) {
        T m = T(0.5) * T(a[2].tensor().get({i})) + T(a[1].tensor().get({i}));
        T p = T(a[0].tensor().get({i})) - T(0.25) * m;
        a[2].tensor().set({i}, m);
        a[0].tensor().set({i}, p);
        a[3].tensor().set({i}, p);
      }
    });
    problem.inPlace = {0, 2};
    return problem;
  };
  auto rows = [](int64_t m, int64_t n) {
    Arguments arguments = {random(bf16, {m, n}, 1), random(bf16, {m, n}, 2), Tensor::empty(bf16, {m, n}),
                           Tensor::empty(i8, {m, n})};
    return problemOf(labelOf(bf16, {m, n}), arguments, {2, 3}, {}, [](auto one, Arguments &a) {
      using T = decltype(one);
      forEachIndex(a[0].tensor().sizes(), [&](const std::vector<int64_t> &i) {
        T sum = T(a[0].tensor().get(i)) + T(a[1].tensor().get(i));
        a[2].tensor().set(i, sum);
        a[3].tensor().setInt(i, static_cast<int64_t>(sum * 16));
      });
    });
  };
  for (int64_t n : {3000, 1024, 1, 0})
    expectRightEverywhere(steps(n), momentum);
  for (auto [m, n] : {std::pair<int64_t, int64_t>{3, 256}, {2, 200}, {1, 1}, {0, 5}})
    expectRightEverywhere(rows(m, n), addQuantise);
  std::string wide = ptxOf(momentum, steps(1 << 20), {});
  EXPECT_GT(count(wide, "st.global.v2"), 0u); // four of bf16
  std::string narrow = ptxOf(addQuantise, rows(64, 8192), {{"cols", 8192}});
  EXPECT_GT(count(narrow, "st.global.v2"), 0u); // eight of i8
}

//===--- Masks of positions ---------------------------------------------------------------------------------------===//

/// A window of the last keys, in blocks of queries from the last to the first.
const Kernel windowAttention("window_attention(q, k, v, o, bm=64, bn=64, dim=64, window=100)",
                             [](View q, View k, View v, View o, Param bm, Param bn, Param dim, Param window) {
                               promise_no_overlap();
                               Index blocks = cdiv(q.size(0), bm), i = blocks - 1 - grid(blocks), n = k.size(0);
                               Tile qt = q.load({i * bm, 0}, {bm, dim}), row = iota(i64, {bm, 1}, 0) + i * bm;
                               Tile m = full(f32, {bm, 1}, -inf), l = zeros(f32, {bm, 1}), acc = zeros(f32, {bm, dim});
                               Index begin = maximum(i * bm - window + 1, 0) / bn * bn;
                               for (Index j : range(begin, minimum(n, (i + 1) * bm), bn)) {
                                 Tile column = iota(i64, {1, bn}, 1) + j;
                                 Tile s = dot(qt, transpose(k.load({j, 0}, {bn, dim}))) * 0.125;
                                 Tile visible = (column <= row) & (column > row - window) & (column < n);
                                 s = where(visible, s, -inf);
                                 Tile next = maximum(m, max(s, 1)), shift = where(next == -inf, 0, next);
                                 Tile p = exp(s - shift), shrink = exp(m - shift);
                                 l = l * shrink + sum(p, 1);
                                 acc = dot(p.to(v.dtype()), v.load({j, 0}, {bn, dim}), acc * shrink);
                                 m = next;
                               }
                               o.store({i * bm, 0}, (acc / l).to(o.dtype()));
                             });

Problem windowProblem(DType type, int64_t n) {
  Arguments arguments = {random(type, {n, 64}, 1, -2, 2), random(type, {n, 64}, 2), random(type, {n, 64}, 3),
                         Tensor::empty(type, {n, 64})};
  return problemOf(labelOf(type, {n}), arguments, {3}, {}, [type](auto one, Arguments &a) {
    using T = decltype(one);
    auto at = [&](int argument, int64_t i, int64_t e) { return T(a[argument].tensor().get({i, e})); };
    for (int64_t i = 0; i < a[0].tensor().size(0); ++i) {
      int64_t first = std::max<int64_t>(0, i - 99);
      std::vector<T> weights;
      for (int64_t j = first; j <= i; ++j) {
        T score = 0;
        for (int64_t e = 0; e < 64; ++e)
          score += at(0, i, e) * at(1, j, e) / 8;
        weights.push_back(score);
      }
      T largest = *std::max_element(weights.begin(), weights.end()), total = 0;
      for (T &weight : weights) {
        total += weight = std::exp(weight - largest);
        weight = rounded(weight, type);
      }
      for (int64_t e = 0; e < 64; ++e) {
        T sum = 0;
        for (size_t j = 0; j < weights.size(); ++j)
          sum += weights[j] * at(2, first + static_cast<int64_t>(j), e);
        a[3].tensor().set({i, e}, sum / total);
      }
    }
  });
}

/// Comparisons of 64 bits of a tile that has at least 16 registers in each thread would be many more.
constexpr size_t fewComparisons = 24;
size_t wideComparisons(const std::string &ptx) {
  size_t found = 0;
  for (const char *type : {".s64", ".u64", ".b64"})
    for (const char *how : {"lt", "le", "gt", "ge", "eq", "ne"})
      found += count(ptx, std::string("setp.") + how + type);
  return found;
}

TEST(OtherRows, WindowAttention) {
  for (DType type : {f32, bf16})
    for (int64_t n : {300, 64, 1, 0})
      expectRightEverywhere(windowProblem(type, n), windowAttention);
  Problem problem = windowProblem(bf16, 1024);
  Params params = {{"bm", 128}, {"bn", 128}};
  EXPECT_LT(wideComparisons(ptxOf(windowAttention, problem, params)), fewComparisons);
  // Where it begins is not negative, although it is a difference.
  EXPECT_EQ(count(remarksOf(windowAttention, problem, params), "store is made by the tensor memory accelerator"), 1u);
}

/// Positions that are further apart than 32 bits reach, on both sides, and ones that meet within the tile.
const Kernel masked("masked(x, y, cols=1024)", [](View x, View y, Param cols) {
  Index row = grid(x.size(0)), n = x.size(1);
  Tile column = iota(i64, {1, cols}, 1), t = x.load({row, 0}, {1, cols});
  constexpr int64_t far = 5000000000;
  auto number = [](Tile holds, double value) { return where(holds, full(f32, {1, 1}, value), 0); };
  t = where(column + far > n, t, 0) + number(column - far >= row, 1) + number(far - column < n, 2);
  t = t + number(column == n - 1, 4) + number(row * 7 == column, 8) + number(column + row <= 40, 16);
  y.store({row, 0}, t);
});

TEST(OtherRows, Masked) {
  auto make = [](int64_t rows, int64_t columns) {
    Arguments arguments = {random(f32, {rows, columns}, 1), Tensor::empty(f32, {rows, columns})};
    return problemOf(labelOf(f32, {rows, columns}), arguments, {1}, {}, [](auto, Arguments &a) {
      int64_t n = a[0].tensor().size(1);
      for (int64_t i = 0; i < a[0].tensor().size(0); ++i)
        for (int64_t j = 0; j < n; ++j)
          a[1].tensor().set({i, j}, a[0].tensor().get({i, j}) + (j == n - 1 ? 4 : 0) + (i * 7 == j ? 8 : 0) +
                                        (j + i <= 40 ? 16 : 0));
    });
  };
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{9, 1000}, {50, 1024}, {1, 1}, {0, 5}})
    expectRightEverywhere(make(rows, columns), masked);
  EXPECT_LT(wideComparisons(ptxOf(masked, make(16, 8192), {{"cols", 8192}})), fewComparisons);
}

/// Another that counts from the end: a product whose last rows come first.
const Kernel fromTheEnd("from_the_end(a, b, c, bm=64, bn=64, bk=64)",
                        [](View a, View b, View c, Param bm, Param bn, Param bk) {
                          Index rows = cdiv(c.size(0), bm);
                          auto [number, j] = grid(rows, cdiv(c.size(1), bn));
                          Index i = rows - (number + 1);
                          Tile acc = zeros(f32, {bm, bn});
                          for (Index k : range(0, a.size(1), bk))
                            acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
                          c.store({i * bm, j * bn}, acc.to(c.dtype()));
                        });

TEST(OtherRows, FromTheEnd) {
  auto make = [](int64_t m, int64_t n, int64_t k) {
    Arguments arguments = {random(bf16, {m, k}, 1), random(bf16, {k, n}, 2), Tensor::empty(bf16, {m, n})};
    return problemOf(labelOf(bf16, {m, n, k}), arguments, {2}, {}, [](auto one, Arguments &a) {
      using T = decltype(one);
      const Tensor &x = a[0].tensor(), &w = a[1].tensor();
      for (int64_t i = 0; i < x.size(0); ++i)
        for (int64_t j = 0; j < w.size(1); ++j) {
          T sum = 0;
          for (int64_t e = 0; e < x.size(1); ++e)
            sum += T(x.get({i, e})) * T(w.get({e, j}));
          a[2].tensor().set({i, j}, sum);
        }
    });
  };
  expectRightEverywhere(make(136, 72, 72), fromTheEnd);
  std::string remarks = remarksOf(fromTheEnd, make(256, 256, 256), {{"bm", 128}, {"bn", 128}});
  EXPECT_EQ(count(remarks, "store is made by the tensor memory accelerator"), 1u);
}

} // namespace
