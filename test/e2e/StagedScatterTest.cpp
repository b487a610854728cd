// SPDX-License-Identifier: Apache-2.0
//
// Results of dots on warpgroups that are scattered in whole pieces of 16 bytes: through the memory of bulk stores, in the
// simulator, which watches for races.
#include "SimSupport.h"

#include <numeric>
#include <random>

using namespace tenon;
using namespace tenon::test;

namespace {

LaunchOptions onSim(Params params, int warps, std::string without = "") {
  LaunchOptions options = onSimulator(std::move(params), warps);
  options.compile.without = std::move(without);
  return options;
}

/// Every row of the product goes where `to` says: outside c it goes nowhere, and so do the rows that are not `wanted`.
const Kernel dealt("dealt(a, b, to, wanted, c, bm=128, bn=128, bk=64)",
                   [](View a, View b, View to, View wanted, View c, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(a.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  Tile rows = expand(to.load({i * bm}, {bm}, -1), 1), columns = iota(i64, {1, bn}, 1) + j * bn;
  c.scatter({rows, columns}, acc.to(c.dtype()), expand(wanted.load({i * bm}, {bm}), 1) > 0);
});

struct Dealt {
  Tensor a, b, to, wanted, c;
  Dealt(DType out, int64_t m, int64_t n, int64_t k)
      : a(smallNumbers(bf16, {m, k}, 1)), b(smallNumbers(bf16, {n, k}, 2).transpose({1, 0})), to(Tensor::zeros(i64, {m})),
        wanted(smallNumbers(i32, {m}, 3)), c(Tensor::zeros(out, {m, n})) {
    std::vector<int64_t> rows(static_cast<size_t>(m));
    std::iota(rows.begin(), rows.end(), -3); // some before the first
    std::shuffle(rows.begin(), rows.end(), std::mt19937_64(4));
    setValues(to, rows);
  }
  Arguments arguments() const { return {a, b, to, wanted, c}; }
  void expectRight(const LaunchOptions &options, const std::string &what) {
    c.fill(-100);
    launch(dealt, arguments(), options);
    Tensor expected = Tensor::zeros(c.dtype(), {c.size(0), c.size(1)});
    expected.fill(-100);
    for (int64_t i = 0; i < a.size(0); ++i) {
      int64_t row = to.getInt({i});
      if (row < 0 || row >= c.size(0) || wanted.getInt({i}) <= 0)
        continue;
      for (int64_t j = 0; j < c.size(1); ++j) {
        double sum = 0;
        for (int64_t k = 0; k < a.size(1); ++k)
          sum += a.get({i, k}) * b.get({k, j});
        expected.set({row, j}, sum);
      }
    }
    EXPECT_EQ(valuesOf<double>(c), valuesOf<double>(expected)) << what;
  }
};

/// Slices and none, tiles whose halves are rows or columns, columns that are no power of two, edges.
TEST(StagedScatter, RowsThatAreDealtOut) {
  struct Tiles {
    int64_t bm, bn;
    int warps;
    const char *without;
  };
  for (Tiles tiles :
       {Tiles{128, 256, 8, ""}, {128, 256, 8, "slices"}, {64, 128, 8, ""}, {64, 96, 4, ""}, {64, 64, 4, ""}})
    for (DType out : {bf16, f32}) {
      Dealt problem(out, 200, 136, 72);
      LaunchOptions options = onSim({{"bm", tiles.bm}, {"bn", tiles.bn}, {"bk", 64}}, tiles.warps, tiles.without);
      problem.expectRight(options, "staged");
      expectParts(remarksOf(dealt, problem.arguments(), options), {"scatter in pieces of 16 bytes"});
      options.compile.without = "bulk-stores";
      problem.expectRight(options, "element by element");
      EXPECT_EQ(remarksOf(dealt, problem.arguments(), options).find("pieces"), std::string::npos);
    }
}

TEST(StagedScatter, ThreadsInAnyOrder) {
  Dealt problem(bf16, 300, 264, 64);
  for (int seed : {1, 2, 3}) {
    SimulatorSeed set(seed);
    problem.expectRight(onSim({{"bm", 128}, {"bn", 256}, {"bk", 64}}, 8), "seed " + std::to_string(seed));
  }
}

/// Rows up to a limit, whole tiles by the accelerator: both sides of the branch have the same memory.
const Kernel upTo("up_to(a, b, limit, c, first=0, step=1, bm=128, bn=128)",
                  [](View a, View b, Index limit, View c, Param first, Param step, Param bm, Param bn) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), 64))
    acc = dot(a.load({i * bm, k}, {bm, 64}), b.load({k, j * bn}, {64, bn}), acc);
  Tile result = acc.to(c.dtype());
  if_(i * bm + bm <= limit, [&] { c.store({i * bm, j * bn}, result); }).else_([&] {
    Tile rows = iota(i64, {bm, 1}, 0) + i * bm, columns = (iota(i64, {1, bn}, 1) + j * bn) * step + first;
    c.scatter({rows, columns}, result, (rows < limit) & (rows >= 0));
  });
});

TEST(StagedScatter, BothSidesOfABranch) {
  int64_t m = 400, n = 264, k = 72;
  Tensor a = smallNumbers(bf16, {m, k}, 1), b = smallNumbers(bf16, {n, k}, 2).transpose({1, 0}), c = Tensor::zeros(bf16, {m, n});
  LaunchOptions options = onSim({{"bm", 128}, {"bn", 256}}, 8);
  std::vector<double> products(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l)
        products[static_cast<size_t>(i * n + j)] += a.get({i, l}) * b.get({l, j});
  std::string remarks = remarksOf(upTo, {a, b, int64_t(10), c}, options);
  expectParts(remarks, {"store is made by the tensor memory accelerator", "scatter in pieces of 16 bytes"});
  // As much memory as the store has by itself.
  Problem plain = zoo::matmulProblem({.m = m, .n = n, .k = k, .transposedB = true}, bf16, 3);
  LaunchOptions same = onSim(plain.params, 8);
  for (auto [name, value] : {std::pair<const char *, int64_t>{"bm", 128}, {"bn", 256}, {"bk", 64}})
    same.params[name] = value;
  EXPECT_EQ(prepare(upTo, {a, b, int64_t(10), c}, options).gpu->sharedBytes,
            prepare(zoo::matmul, plain.arguments, same).gpu->sharedBytes);
  for (int64_t limit : {0, 1, 128, 130, 300, 400}) {
    c.fill(-100);
    launch(upTo, {a, b, limit, c}, options);
    std::vector<double> expected = products;
    std::fill(expected.begin() + limit * n, expected.end(), -100);
    EXPECT_EQ(valuesOf<double>(c), expected) << limit;
  }
  // Columns that no piece of 16 bytes has, or that begin within one.
  for (auto [first, step] : {std::pair<int64_t, int64_t>{0, 2}, {1, 1}, {4, 1}}) {
    options.params["first"] = first;
    options.params["step"] = step;
    EXPECT_EQ(remarksOf(upTo, {a, b, int64_t(10), c}, options).find("pieces"), std::string::npos) << first << step;
    c.fill(-100);
    launch(upTo, {a, b, int64_t(100), c}, options);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        bool isWritten = i < 100 && j >= first && (j - first) % step == 0;
        ASSERT_EQ(c.get({i, j}), isWritten ? products[static_cast<size_t>(i * n + (j - first) / step)] : -100)
            << i << ", " << j;
      }
  }
}

} // namespace
