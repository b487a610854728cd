// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/Jit.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tenon;

namespace {

Kernel softmax("softmax(x, y, cols=64)", [](View x, View y, Param cols) {
  Index row = grid(x.size(0));
  require(cols >= x.size(1), "cols must span the row");
  Tile t = x.load({row, 0}, {1, cols}, -inf).to(f32);
  t = exp(t - max(t, 1));
  y.store({row, 0}, (t / sum(t, 1)).to(y.dtype()));
});

Kernel matmul("matmul(a, b, c, bm=16, bn=32, bk=8)", [](View a, View b, View c, Param bm, Param bn, Param bk) {
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  c.store({i * bm, j * bn}, acc.to(c.dtype()));
});

class OnTarget : public testing::TestWithParam<Target> {
protected:
  LaunchOptions options() {
    LaunchOptions o;
    o.target = GetParam();
    return o;
  }
};

TEST_P(OnTarget, Softmax) {
  Tensor x = Tensor::empty(f32, {5, 50}), y = Tensor::empty(f32, {5, 50});
  x.fillRandom(1, -4, 4);
  y.fill(NAN);
  launch(softmax, {x, y}, options());
  for (int64_t i = 0; i < 5; ++i) {
    double total = 0;
    for (int64_t j = 0; j < 50; ++j)
      total += std::exp(x.get({i, j}));
    for (int64_t j = 0; j < 50; ++j)
      EXPECT_NEAR(y.get({i, j}), std::exp(x.get({i, j})) / total, 1e-6) << i << "," << j;
  }
}

TEST_P(OnTarget, Matmul) {
  int64_t m = 33, n = 70, k = 19;
  Tensor a = Tensor::empty(f32, {m, k}), b = Tensor::empty(f32, {k, n}), c = Tensor::empty(f32, {m, n});
  a.fillRandom(1, -1, 1);
  b.fillRandom(2, -1, 1);
  c.fill(NAN);
  launch(matmul, {a, b, c}, options());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double total = 0;
      for (int64_t l = 0; l < k; ++l)
        total += a.get({i, l}) * b.get({l, j});
      EXPECT_NEAR(c.get({i, j}), total, 1e-5) << i << "," << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, OnTarget, testing::Values(Target::cpu, Target::interpreter),
                         [](const auto &info) { return std::string(nameOf(info.param)); });

} // namespace
