// SPDX-License-Identifier: Apache-2.0
//
// Kernels that move elements within rows, as a user might write them: running sums, pairs and triples in the last
// dimension, positions divided by sizes, a sort. At sizes that end within a tile, on every target.
#include "OtherSupport.h"

#include <algorithm>
#include <limits>

using namespace tenon;
using namespace tenon::test;

namespace {

/// Columns shuffled into rows of two, the last tile not all there: nothing may be written behind the end.
const Kernel complexProduct("complex_product(x, y, z, block=64)", [](View x, View y, View z, Param block) {
  Index at = grid(cdiv(x.size(0), block)) * block;
  Tile a = x.load({at, 0}, {block, 2}), b = y.load({at, 0}, {block, 2});
  Tile ar = slice(a, 1, 0, 1), ai = slice(a, 1, 1, 1), br = slice(b, 1, 0, 1), bi = slice(b, 1, 1, 1);
  z.store({at, 0}, concat({ar * br - ai * bi, ar * bi + ai * br}, 1));
});

TEST(OtherLanes, ComplexProduct) {
  for (DType type : {f32, f64})
    for (int64_t n : {200, 64, 1}) {
      Arguments arguments = {random(type, {n, 2}, 1), random(type, {n, 2}, 2), Tensor::empty(type, {n, 2})};
      expectRightEverywhere(problemOf(labelOf(type, {n}), arguments, {2}, {},
                                      [](auto one, Arguments &a) {
                                        using T = decltype(one);
                                        for (int64_t i = 0; i < a[0].tensor().size(0); ++i) {
                                          T x[2], y[2];
                                          for (int64_t e = 0; e < 2; ++e)
                                            x[e] = T(a[0].tensor().get({i, e})), y[e] = T(a[1].tensor().get({i, e}));
                                          a[2].tensor().set({i, 0}, x[0] * y[0] - x[1] * y[1]);
                                          a[2].tensor().set({i, 1}, x[0] * y[1] + x[1] * y[0]);
                                        }
                                      }),
                            complexProduct);
    }
}

/// Forwards and backwards along vectors, carried from tile to tile.
const Kernel runningSums("running_sums(x, y, z, block=40)", [](View x, View y, View z, Param block) {
  Index i = grid(x.size(0));
  Tile carried = zeros(f32, {});
  for (Index k : range(0, x.size(1), block)) {
    Tile t = x.load({i, k}, {1, block}), sums = cumsum(t, 1);
    y.store({i, k}, sums + carried);
    z.store({i, k}, cumsum(t, 1, /*reverse=*/true));
    carried = carried + scalar(slice(sums, 1, block - 1, 1));
  }
});

TEST(OtherLanes, RunningSums) {
  for (int64_t n : {100, 40, 1}) {
    Arguments arguments = {random(f32, {3, n}, 1), Tensor::empty(f32, {3, n}), Tensor::empty(f32, {3, n})};
    expectRightEverywhere(problemOf(labelOf(f32, {n}), arguments, {1, 2}, {},
                                    [](auto one, Arguments &a) {
                                      using T = decltype(one);
                                      const Tensor &x = a[0].tensor();
                                      for (int64_t i = 0; i < 3; ++i) {
                                        T sum = 0;
                                        for (int64_t j = 0; j < x.size(1); ++j)
                                          a[1].tensor().set({i, j}, sum += T(x.get({i, j})));
                                        for (int64_t j = x.size(1); j-- > 0;) {
                                          sum = (j == x.size(1) - 1 || j % 40 == 39 ? 0 : sum) + T(x.get({i, j}));
                                          a[2].tensor().set({i, j}, sum);
                                        }
                                      }
                                    }),
                          runningSums);
  }
}

/// Rows of numbers with the places they had, in either order; past the end of a row come infinities.
TEST(OtherLanes, Sort) {
  for (bool descending : {false, true}) {
    Kernel kernel("sorted(x, y, at, n=32)", [descending](View x, View y, View at, Param n) {
      Index i = grid(x.size(0));
      Tile t = x.load({i, 0}, {1, n}, descending ? -inf : inf);
      std::vector<Tile> both = sort({t, iota(i32, {1, n}, 1)}, 1, descending);
      y.store({i, 0}, both[0]);
      at.store({i, 0}, both[1]);
    });
    Tensor x = random(f32, {2, 20}, 1), y = Tensor::empty(f32, {2, 20}), at = Tensor::empty(i32, {2, 20});
    for (Target target : everyTarget) {
      LaunchOptions options;
      options.target = target;
      launch(kernel, {x, y, at}, options);
      for (int64_t i = 0; i < 2; ++i) {
        std::vector<double> row;
        for (int64_t j = 0; j < 20; ++j)
          row.push_back(x.get({i, j}));
        std::sort(row.begin(), row.end());
        if (descending)
          std::reverse(row.begin(), row.end());
        for (int64_t j = 0; j < 20; ++j) {
          EXPECT_EQ(y.get({i, j}), row[j]);
          EXPECT_EQ(x.get({i, at.getInt({i, j})}), row[j]);
        }
      }
    }
  }
}

TEST(OtherLanes, SignAndWhatIsNoNumber) {
  Kernel kernel("kinds(x, y, n=8)", [](View x, View y, Param n) {
    Tile t = x.load({0}, {n});
    y.store({0}, sign(t).to(f32) + where(isnan(t), 10.0, 0.0) + where(isinf(t), 100.0, 0.0));
  });
  const double infinity = std::numeric_limits<double>::infinity();
  const double values[] = {-3, 0, 2.5, infinity, -infinity, -0.0, 1e-40, 7};
  const double kinds[] = {-1, 0, 1, 101, 99, 0, 1, 1};
  Tensor x = Tensor::empty(f32, {8}), y = Tensor::empty(f32, {8});
  for (Target target : everyTarget) {
    LaunchOptions options;
    options.target = target;
    for (int64_t i = 0; i < 8; ++i)
      x.set({i}, values[i]);
    launch(kernel, {x, y}, options);
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(y.get({i}), kinds[i]) << values[i];
    Kernel isNone("is_none(x, y, n=8)", [](View x, View y, Param n) {
      Tile t = x.load({0}, {n});
      y.store({0}, where(isnan(t), 1.0, 0.0).to(f32));
    });
    x.set({3}, std::numeric_limits<double>::quiet_NaN());
    launch(isNone, {x, y}, options);
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_EQ(y.get({i}), i == 3);
  }
}

} // namespace
