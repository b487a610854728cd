// SPDX-License-Identifier: Apache-2.0
//
// Tiles that loops hand on in pairs of lanes: kernels of several loops along rows of bf16, at widths that end anywhere,
// with views of different lengths, so that some loops are masked and others are not; and kernels in which some loop
// needs the order. All beside the interpreter.
#include "tenon/jit/Jit.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tenon;

namespace {

/// Rows of x + z divided by their length.
const Kernel unit("unit(x, z, y, rows=2, cols)", [](View x, View z, View y, Param rows, Param cols) {
  Index i = grid(cdiv(y.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(f32) + z.load({i * rows, 0}, {rows, cols}).to(f32);
  y.store({i * rows, 0}, (t * rsqrt(sum(t * t, 1) + 1)).to(y.dtype()));
});

/// Softmax of what is left of a row's end, weighted by place: the mask and the weights know where an element is.
const Kernel placed("placed(x, z, y, end, rows=2, cols)", [](View x, View z, View y, Index end, Param rows,
                                                             Param cols) {
  Index i = grid(cdiv(y.size(0), rows));
  Tile place = iota(i64, {1, cols}, 1);
  Tile t = x.load({i * rows, 0}, {rows, cols}, -inf).to(f32);
  Tile e = where(place < end, exp(t - max(t, 1)), 0);
  y.store({i * rows, 0}, (e / sum(e, 1) * place.to(f32) + z.load({i * rows, 0}, {rows, cols}).to(f32)).to(y.dtype()));
});

/// As `unit`, and the sum itself in f32, which is stored in order.
const Kernel twice("twice(x, z, y, w, rows=2, cols)", [](View x, View z, View y, View w, Param rows, Param cols) {
  Index i = grid(cdiv(y.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(f32) + z.load({i * rows, 0}, {rows, cols}).to(f32);
  y.store({i * rows, 0}, (t * rsqrt(sum(t * t, 1) + 1)).to(y.dtype()));
  w.store({i * rows, 0}, t * 2);
});

/// Each element less the one at its place of the row's other half: a slice of what is kept.
const Kernel halves("halves(x, z, y, rows=2, cols=128)", [](View x, View z, View y, Param rows, Param cols) {
  Index i = grid(cdiv(y.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(f32) + z.load({i * rows, 0}, {rows, cols}).to(f32);
  t = t * rsqrt(sum(t * t, 1) + 1);
  int64_t half = cols / 2;
  Tile s = t * sum(t, 1);
  y.store({i * rows, 0}, (slice(s, 1, 0, half) - slice(s, 1, half, half)).to(y.dtype()));
});

/// A row's largest element and its place, of what is kept for the row's sum.
const Kernel largest("largest(x, z, y, rows=2, cols)", [](View x, View z, View y, Param rows, Param cols) {
  Index i = grid(cdiv(y.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}, -200).to(f32) + z.load({i * rows, 0}, {rows, cols}).to(f32);
  Tile most = max(t, 1), away = abs(t - most / 2);
  Tile at = argmax(away, 1).to(f32);
  y.store({i * rows, 0}, (at + 0 * t).to(y.dtype()));
});

/// What is kept has another number of dimensions than what it is made of, in a loop that carries both kinds.
const Kernel folded("folded(x, z, y, rows=2, cols)", [](View x, View z, View y, Param rows, Param cols) {
  Index i = grid(cdiv(y.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(f32), total = zeros(f32, {rows, 1});
  Tile pairs = reshape(t, {rows, cols / 2, 2});
  for (Index k : range(0, 3)) {
    total = total + sum(t, 1) + k.to(f32);
    pairs = pairs + reshape(t * rsqrt(sum(t * t, 1) + 1), {rows, cols / 2, 2});
  }
  Tile both = reshape(pairs, {rows, cols}) + total + z.load({i * rows, 0}, {rows, cols}).to(f32);
  y.store({i * rows, 0}, (both * rsqrt(sum(both * both, 1) + 1)).to(y.dtype()));
});

/// A number or 0, by chance: the condition is kept in order.
const Kernel chance("chance(x, z, y, rows=2, cols)", [](View x, View z, View y, Param rows, Param cols) {
  Index i = grid(cdiv(y.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(f32) + z.load({i * rows, 0}, {rows, cols}).to(f32);
  Tile counter = (iota(i64, {rows, 1}, 0) + i * rows) * y.size(1) + iota(i64, {1, cols}, 1);
  y.store({i * rows, 0}, where(random_bits(5, counter, {.bits = 16}) < 20000, 0, t * 2).to(y.dtype()));
});

/// Every second number of those that are positive, by a scan.
const Kernel alternate("alternate(x, z, y, rows=2, cols)", [](View x, View z, View y, Param rows, Param cols) {
  Index i = grid(cdiv(y.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(f32);
  Tile count = cumsum((t > 0).to(i32), 1);
  y.store({i * rows, 0}, where((count & 1) == 0, t + z.load({i * rows, 0}, {rows, cols}).to(f32), 0).to(y.dtype()));
});

Tensor numbers(int64_t rows, int64_t cols, int64_t seed) {
  Tensor x = Tensor::empty(bf16, {rows, cols});
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col)
      x.set({row, col}, static_cast<double>((row * 37 + col * seed) % 101 - 50) / 16);
  return x;
}

/// At most one unit in the last place apart, and where that is all: sums have no order.
void expectNear(const Tensor &got, const Tensor &wanted, const std::string &what) {
  for (int64_t row = 0; row < got.size(0); ++row)
    for (int64_t col = 0; col < got.size(1); ++col) {
      double a = got.get({row, col}), b = wanted.get({row, col});
      ASSERT_NEAR(a, b, 0x1p-7 * std::abs(b) + 1e-5) << what << ": " << row << ", " << col;
    }
}

template <class Run>
void expectAsInterpreted(const std::string &what, int64_t rows, int64_t cols, DType type, Run run) {
  LaunchOptions compiled, interpreted;
  interpreted.target = Target::interpreter;
  Tensor got = Tensor::zeros(type, {rows, cols}), wanted = Tensor::zeros(type, {rows, cols});
  run(got, compiled);
  run(wanted, interpreted);
  expectNear(got, wanted, what + " " + std::to_string(cols));
}

constexpr int64_t widths[] = {16, 31, 33, 48, 80, 96, 100, 160, 544, 577};

TEST(PairedTiles, RowsThatEndAnywhere) {
  for (int64_t cols : widths)
    for (int64_t shorter :
         {0, 1, 33}) { // of the second operand, so that the loop that computes is masked, the others not
      if (shorter >= cols)
        continue;
      Tensor x = numbers(5, cols, 7), z = numbers(5, cols - shorter, 11);
      expectAsInterpreted("unit", 5, cols, bf16, [&](const Tensor &y, LaunchOptions options) {
        options.params = {{"cols", cols}};
        launch(unit, {x, z, y}, options);
      });
      expectAsInterpreted("placed", 5, cols - shorter, bf16, [&](const Tensor &y, LaunchOptions options) {
        options.params = {{"cols", cols}};
        launch(placed, {x, z, y, cols - cols / 3}, options);
      });
      expectAsInterpreted("largest", 5, cols, bf16, [&](const Tensor &y, LaunchOptions options) {
        options.params = {{"cols", cols}};
        launch(largest, {x, z, y}, options);
      });
    }
}

TEST(PairedTiles, ChoicesByWhatIsInOrder) {
  for (int64_t cols : {31, 96, 100, 577})
    for (int64_t shorter : {0, 33}) {
      if (shorter >= cols)
        continue;
      Tensor x = numbers(5, cols, 7), z = numbers(5, cols - shorter, 11);
      for (const Kernel *kernel : {&chance, &alternate})
        expectAsInterpreted(kernel == &chance ? "chance" : "alternate", 5, cols, bf16,
                            [&](const Tensor &y, LaunchOptions options) {
                              options.params = {{"cols", cols}};
                              launch(*kernel, {x, z, y}, options);
                            });
    }
}

TEST(PairedTiles, OfOtherRanks) {
  for (int64_t cols : {32, 48, 96, 544}) {
    Tensor x = numbers(5, cols, 7), z = numbers(5, cols, 11);
    expectAsInterpreted("folded", 5, cols, bf16, [&](const Tensor &y, LaunchOptions options) {
      options.params = {{"cols", cols}};
      launch(folded, {x, z, y}, options);
    });
  }
}

TEST(PairedTiles, BesideOneThatNeedsTheOrder) {
  for (int64_t cols : widths) {
    Tensor x = numbers(5, cols, 7), z = numbers(5, cols, 11);
    Tensor w[] = {Tensor::zeros(f32, {5, cols}), Tensor::zeros(f32, {5, cols})};
    expectAsInterpreted("twice", 5, cols, bf16, [&](const Tensor &y, LaunchOptions options) {
      options.params = {{"cols", cols}};
      launch(twice, {x, z, y, w[options.target == Target::interpreter]}, options);
    });
    expectNear(w[0], w[1], "twice, in f32");
  }
}

TEST(PairedTiles, Slices) {
  Tensor x = numbers(5, 128, 7), z = numbers(5, 128, 11);
  expectAsInterpreted("halves", 5, 64, bf16,
                      [&](const Tensor &y, const LaunchOptions &options) { launch(halves, {x, z, y}, options); });
}

} // namespace
