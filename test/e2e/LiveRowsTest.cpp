// SPDX-License-Identifier: Apache-2.0
//
// Warpgroups whose rows are masked out multiply nothing, in the simulator: the same bytes as if they did.
#include "SimSupport.h"

#include <array>

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char *skips = "rows that are all masked out multiply nothing";

/// Sequences of different length, padded to the longest: two products of each, rows behind the end are not written.
const Kernel sequences("sequences(x, w, v, lengths, y, z, bm=128, bn=64, bk=64)",
                       [](View x, View w, View v, View lengths, View y, View z, Param bm, Param bn, Param bk) {
                         promise_no_overlap();
                         auto [s, i, j] = grid(x.size(0), cdiv(x.size(1), bm), cdiv(w.size(1), bn));
                         Index length = lengths.at({s});
                         Tile a = zeros(f32, {bm, bn}), b = zeros(f32, {bm, bn});
                         for (Index k : range(0, x.size(2), bk)) {
                           Tile rows = reshape(x.load({s, i * bm, k}, {1, bm, bk}), {bm, bk});
                           a = dot(rows, w.load({k, j * bn}, {bk, bn}), a);
                           b = dot(rows, v.load({k, j * bn}, {bk, bn}), b);
                         }
                         Tile row = iota(i64, {bm, 1}, 0) + i * bm, column = iota(i64, {1, bn}, 1) + j * bn;
                         Tile isThere = Tile(length).to(i64) > row;
                         y.scatter({row + s * x.size(1), column}, (a * b + 1.0f).to(y.dtype()),
                                   isThere & (column < y.size(1)));
                         if_(length > 0, [&] { z.scatter({row + s * x.size(1), column}, a.to(z.dtype()), isThere); });
                       });

/// Sums of columns need all rows, whatever is written besides.
const Kernel summed("summed(a, b, c, sums, rows)", [](View a, View b, View c, View sums, View rows) {
  promise_no_overlap();
  Index i = grid(cdiv(a.size(0), 128));
  Tile acc = zeros(f32, {128, 64});
  for (Index k : range(0, a.size(1), 64))
    acc = dot(a.load({i * 128, k}, {128, 64}), b.load({k, 0}, {64, 64}), acc);
  Tile row = iota(i64, {128, 1}, 0) + i * 128;
  c.scatter({row, iota(i64, {1, 64}, 1)}, acc.to(c.dtype()), row < Tile(Index(rows.at({0}))).to(i64));
  sums.store({i, 0}, sum(acc, 0));
});

/// What decides about the rows is computed behind the loop, and is where the loads of another loop begin.
const Kernel twoLoops("two_loops(a, b, ends, c, d)", [](View a, View b, View ends, View c, View d) {
  promise_no_overlap();
  Index i = grid(cdiv(c.size(0), 128));
  Tile acc = zeros(f32, {128, 64}), next = zeros(f32, {128, 64});
  for (Index k : range(0, a.size(1), 64))
    acc = dot(a.load({i * 128, k}, {128, 64}), b.load({k, 0}, {64, 64}), acc);
  Index end = Index(ends.at({i})), behind = end + 8;
  Tile row = iota(i64, {128, 1}, 0) + i * 128;
  if_(behind > i * 128 + 16,
      [&] { c.scatter({row, iota(i64, {1, 64}, 1)}, acc.to(c.dtype()), row < Tile(end).to(i64)); });
  for (Index k : range(0, a.size(1), 64))
    next = dot(a.load({behind, k}, {128, 64}), b.load({k, 0}, {64, 64}), next);
  d.store({i * 128, 0}, next.to(d.dtype()));
});

/// Results of different heights: a warpgroup has other rows of one than of the other.
const Kernel heights("heights(a, c, b, ends, y, z)", [](View a, View c, View b, View ends, View y, View z) {
  promise_no_overlap();
  Index i = grid(Index(1));
  Tile low = zeros(f32, {128, 64}), high = zeros(f32, {256, 64});
  for (Index k : range(0, b.size(0), 64)) {
    Tile columns = b.load({k, 0}, {64, 64});
    high = dot(a.load({i * 256, k}, {256, 64}), columns, high);
    low = dot(c.load({i * 128, k}, {128, 64}), columns, low);
  }
  Tile end = Tile(Index(ends.at({0}))).to(i64), row = iota(i64, {1, 64}, 1);
  Tile ofHigh = iota(i64, {256, 1}, 0) + i * 256, ofLow = iota(i64, {128, 1}, 0) + i * 128;
  y.scatter({ofHigh, row}, high.to(y.dtype()), ofHigh < end);
  z.scatter({ofLow, row}, low.to(z.dtype()), ofLow < end);
});

/// One number for all rows: they are there together, or none is.
const Kernel allOrNone("all_or_none(a, b, ends, y)", [](View a, View b, View ends, View y) {
  promise_no_overlap();
  Index i = grid(cdiv(a.size(0), 128));
  Tile acc = zeros(f32, {128, 64});
  for (Index k : range(0, a.size(1), 64))
    acc = dot(a.load({i * 128, k}, {128, 64}), b.load({k, 0}, {64, 64}), acc);
  Tile row = iota(i64, {128, 1}, 0) + i * 128, first = iota(i64, {1, 1}, 0) + i * 128;
  y.scatter({row, iota(i64, {1, 64}, 1)}, acc.to(y.dtype()), first < Tile(Index(ends.at({0}))).to(i64));
});

LaunchOptions onSim(Params params, std::string without = "") {
  LaunchOptions options = onSimulator(std::move(params), 8);
  options.compile.without = std::move(without);
  return options;
}

std::vector<std::byte> bytesAfter(const Kernel &kernel, const Arguments &arguments, std::vector<Tensor> results,
                                  const LaunchOptions &options) {
  std::vector<std::byte> all;
  for (Tensor &tensor : results)
    tensor.fillBytes(0xff);
  launch(kernel, arguments, options);
  for (const Tensor &tensor : results) {
    auto *begin = static_cast<const std::byte *>(tensor.data());
    all.insert(all.end(), begin, begin + tensor.bufferBytes());
  }
  return all;
}

/// In several orders of the threads.
void expectSame(const Kernel &kernel, const Arguments &arguments, const std::vector<Tensor> &results,
                const LaunchOptions &options) {
  expectParts(remarksOf(kernel, arguments, options), {skips});
  LaunchOptions all = options;
  all.compile.without = "live-rows";
  std::vector<std::byte> expected = bytesAfter(kernel, arguments, results, all);
  for (int seed : {0, 1, 2}) {
    SimulatorSeed set(seed);
    EXPECT_EQ(bytesAfter(kernel, arguments, results, options), expected) << seed;
  }
}

TEST(LiveRows, Sequences) {
  std::array<int, 8> ends = {0, 1, 64, 65, 128, 129, 192, 200};
  Tensor lengths = Tensor::zeros(i32, {8});
  for (size_t s = 0; s < ends.size(); ++s)
    lengths.set({static_cast<int64_t>(s)}, ends[s]);
  Tensor x = zoo::randomTensor(bf16, {8, 200, 136}, 1, -1, 1);
  Tensor w = zoo::randomTensor(bf16, {72, 136}, 2, -1, 1).transpose({1, 0});
  Tensor v = zoo::randomTensor(bf16, {72, 136}, 3, -1, 1).transpose({1, 0});
  Tensor y = Tensor::zeros(bf16, {8 * 200, 72}), z = Tensor::zeros(bf16, {8 * 200, 72});
  expectSame(sequences, {x, w, v, lengths, y, z}, {y, z}, onSim({}));
  expectSame(sequences, {x, w, v, lengths, y, z}, {y, z}, onSim({{"bm", 256}}));
  LaunchOptions shared = onSim({});
  shared.compile.cluster = 2;
  expectParts(remarksOf(sequences, {x, w, v, lengths, y, z}, shared), {"each of 2 blocks a part for all"});
  expectSame(sequences, {x, w, v, lengths, y, z}, {y, z}, shared);
}

TEST(LiveRows, NotOfDifferentHeights) {
  Tensor ends = Tensor::zeros(i32, {1}), y = Tensor::zeros(f32, {256, 64}), z = Tensor::zeros(f32, {128, 64});
  ends.set({0}, 100);
  Arguments arguments = {zoo::randomTensor(bf16, {256, 192}, 1, -1, 1),
                         zoo::randomTensor(bf16, {128, 192}, 2, -1, 1),
                         zoo::randomTensor(bf16, {64, 192}, 3, -1, 1).transpose({1, 0}),
                         ends,
                         y,
                         z};
  EXPECT_EQ(bytesAfter(heights, arguments, {y, z}, onSim({})),
            bytesAfter(heights, arguments, {y, z}, onSim({}, "live-rows")));
}

TEST(LiveRows, NotWhereOneNumberDecides) {
  Tensor ends = Tensor::zeros(i32, {1}), y = Tensor::zeros(f32, {256, 64});
  ends.set({0}, 140); // more than the second tile's first row, less than its second warpgroup's
  Arguments arguments = {zoo::randomTensor(bf16, {256, 192}, 1, -1, 1),
                         zoo::randomTensor(bf16, {64, 192}, 2, -1, 1).transpose({1, 0}), ends, y};
  EXPECT_EQ(bytesAfter(allOrNone, arguments, {y}, onSim({})),
            bytesAfter(allOrNone, arguments, {y}, onSim({}, "live-rows")));
}

TEST(LiveRows, Experts) {
  const zoo::Entry &entry = zoo::find("grouped_matmul");
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{5, 300, 136, 96}, {3, 130, 264, 200}, {1, 40, 64, 64}}) {
    Problem problem = entry.makeProblem(shape, bf16, 3);
    LaunchOptions options = withParamsOf(problem, onSim({{"bm", 128}, {"bn", 128}, {"bk", 64}}));
    expectSame(entry.kernel, problem.arguments, {problem.arguments.back().tensor()}, options);
    Verdict verdict = verify(problem, entry.kernel, options);
    EXPECT_TRUE(verdict.passed) << problem.label << ": " << verdict.reason;
  }
}

TEST(LiveRows, KnownBehindTheLoop) {
  Tensor a = zoo::randomTensor(bf16, {500, 136}, 1, -1, 1), ends = Tensor::zeros(i32, {3});
  Tensor b = zoo::randomTensor(bf16, {64, 136}, 2, -1, 1).transpose({1, 0});
  Tensor c = Tensor::zeros(bf16, {300, 64}), d = Tensor::zeros(bf16, {300, 64});
  for (auto [i, end] : {std::pair(0, 40), {1, 200}, {2, 260}})
    ends.set({i}, end);
  LaunchOptions options = onSim({}), all = onSim({}, "live-rows");
  std::vector<std::byte> expected = bytesAfter(twoLoops, {a, b, ends, c, d}, {c, d}, all);
  EXPECT_EQ(bytesAfter(twoLoops, {a, b, ends, c, d}, {c, d}, options), expected);
}

TEST(LiveRows, NotWhereOthersNeedThem) {
  Tensor a = zoo::randomTensor(bf16, {200, 136}, 1, -1, 1), rows = Tensor::zeros(i32, {1});
  Tensor b = zoo::randomTensor(bf16, {64, 136}, 2, -1, 1).transpose({1, 0});
  Tensor c = Tensor::zeros(bf16, {200, 64}), sums = Tensor::zeros(f32, {2, 64});
  Arguments arguments = {a, b, c, sums, rows};
  rows.set({0}, 140);
  EXPECT_EQ(remarksOf(summed, arguments, onSim({})).find(skips), std::string::npos);
  EXPECT_EQ(bytesAfter(summed, arguments, {c, sums}, onSim({})),
            bytesAfter(summed, arguments, {c, sums}, onSim({}, "live-rows")));
}

} // namespace
