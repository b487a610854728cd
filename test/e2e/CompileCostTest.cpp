// SPDX-License-Identifier: Apache-2.0
//
// What compiling costs, counted and not timed: the size of the generated program must grow with the number of operations
// and not with the size of the tiles.
#include "tenon/jit/Jit.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tenon;

namespace {

Kernel rowKernel("row(x, y, cols)", [](View x, View y, Param cols) {
  Index row = grid(x.size(0));
  Tile t = x.load({row, 0}, {1, cols}, -inf);
  t = exp(t - max(t, 1));
  y.store({row, 0}, t / sum(t, 1));
});

Kernel chainKernel("chain(x, y, ops)", [](View x, View y, Param ops) {
  Index i = grid(cdiv(x.size(0), 256));
  Tile t = x.load({i * 256}, {256});
  for (Param k = 0; k < ops; ++k) // an ordinary C++ loop: unrolled while tracing
    t = t * t + static_cast<double>(k);
  y.store({i * 256}, t);
});

Kernel matmulKernel("matmul(a, b, c, size)", [](View a, View b, View c, Param size) {
  auto [i, j] = grid(cdiv(c.size(0), size), cdiv(c.size(1), size));
  Tile acc = zeros(f32, {size, size});
  for (Index k : range(0, a.size(1), size))
    acc = dot(a.load({i * size, k}, {size, size}), b.load({k, j * size}, {size, size}), acc);
  c.store({i * size, j * size}, acc);
});

Kernel squaresKernel("squares(x, y, z, ops)", [](View x, View y, View z, Param ops) {
  Tile a = x.load({0}, {256}), b = y.load({0}, {256});
  for (Index i : range(0, x.size(0))) {
    Tile v = a;
    for (Param k = 0; k < ops; ++k) // each value is used twice: the number of ways to the first doubles with each
      v = v * v;
    z.store({i}, v);
    a = v + b;
    b = b + 1;
  }
});

/// The gates of a recurrent cell: small products that stand in no loop, of rows whose number is not known.
Kernel gatesKernel("gates(x, w, y, gates)", [](View x, View w, View y, Param gates) {
  Index i = grid(cdiv(x.size(0), 16));
  Tile rows = x.load({i * 16, 0}, {16, 72});
  Tile all = zeros(f32, {16, 32});
  for (Param k = 0; k < gates; ++k)
    all = all + tanh(dot(rows, w.load({0, 32 * k}, {72, 32})));
  y.store({i * 16, 0}, all);
});

long linesOf(const Kernel &kernel, const Arguments &arguments, const Params &params) {
  LaunchOptions options;
  options.params = params;
  std::string text = emit(kernel, arguments, "loops", options);
  return std::count(text.begin(), text.end(), '\n');
}

TEST(CompileCost, DoesNotGrowWithTheTile) {
  Tensor x = Tensor::zeros(f32, {2, 4}), y = Tensor::zeros(f32, {2, 4});
  long small = linesOf(rowKernel, {x, y}, {{"cols", 1024}}), large = linesOf(rowKernel, {x, y}, {{"cols", 131072}});
  EXPECT_GT(small, 50);
  EXPECT_LE(large, small); // without what brings in the next window, which is for windows that caches hold

  Tensor m = Tensor::zeros(f32, {8, 8});
  // A constant more or less: numbers of blocks may be equal to others that are there. (Smaller tiles have more code: a
  // step brings in two lines of the next operands, not one.)
  EXPECT_NEAR(linesOf(matmulKernel, {m, m, m}, {{"size", 384}}), linesOf(matmulKernel, {m, m, m}, {{"size", 768}}), 4);
}

TEST(CompileCost, GrowsLinearlyWithTheNumberOfOperations) {
  Tensor x = Tensor::zeros(f32, {256}), y = Tensor::zeros(f32, {256});
  long ten = linesOf(chainKernel, {x, y}, {{"ops", 10}}), twenty = linesOf(chainKernel, {x, y}, {{"ops", 20}}),
       forty = linesOf(chainKernel, {x, y}, {{"ops", 40}});
  EXPECT_EQ(forty - twenty, 2 * (twenty - ten));
  // Would not end if any analysis went along every way.
  EXPECT_GT(linesOf(squaresKernel, {x, y, x.clone()}, {{"ops", 60}}), 60);
}

// There is a block for what may be left over of the rows, for each number that it may be; but not each at full length.
TEST(CompileCost, OfSmallProducts) {
  Tensor x = Tensor::zeros(f32, {20, 72}), w = Tensor::zeros(f32, {72, 256}), y = Tensor::zeros(f32, {20, 32});
  long four = linesOf(gatesKernel, {x, w, y}, {{"gates", 4}}), eight = linesOf(gatesKernel, {x, w, y}, {{"gates", 8}});
  EXPECT_LT((eight - four) / 4, 1600);
}

} // namespace
