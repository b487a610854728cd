// SPDX-License-Identifier: Apache-2.0
//
// Lesson 3: reductions and masks, on the way to softmax.
//
// softmax(x) = exp(x - max(x)) / sum(exp(x - max(x))), row by row. In one kernel the row is read from memory once and
// written once; everything between happens to a tile.
#include "Lesson.h"

#include <tenon/tenon.h>

#include <cmath>

using namespace tenon;

// A reduction keeps the dimension it reduces, with size 1: max(t, 1) of a {1, cols} tile is {1, 1}. It then broadcasts
// against {1, cols} by itself, so that subtracting a row's maximum from the row is plain subtraction.
static const Kernel softmax("softmax(x, y, cols)", [](View x, View y, Param cols) {
  // The tile must hold the whole row, or the maximum would be of a part of it: say so, and it is checked at each
  // launch.
  require(x.size(1) <= cols, "the tile must span the row: choose cols at least the number of columns");
  Index row = grid(x.size(0));

  // The padding does the masking: minus infinity never is the maximum, and its exponential is zero.
  Tile t = x.load({row, 0}, {1, cols}, -inf);
  t = exp(t - max(t, 1));
  y.store({row, 0}, t / sum(t, 1));
});

// The same for rows of different lengths, as in a batch of sentences: row i has lengths[i] elements that count. Which
// elements those are is a tile of booleans, a mask: compare the column numbers 0, 1, 2, ... (iota) with the length.
static const Kernel raggedSoftmax("ragged_softmax(x, lengths, y, cols)", [](View x, View lengths, View y, Param cols) {
  require(x.size(1) <= cols, "the tile must span the row: choose cols at least the number of columns");
  Index row = grid(x.size(0));
  Tile counts = iota(i32, {1, cols}, 1) < lengths.at({row}); // at(): one element, as a scalar

  Tile t = where(counts, x.load({row, 0}, {1, cols}), -inf);
  Tile largest = max(t, 1);
  // An empty row has a maximum of minus infinity, and -inf - -inf is not a number. where() chooses element by element
  // and both sides are computed, so guard what goes in, not only what comes out.
  t = exp(t - where(largest == -inf, 0, largest));
  Tile total = sum(t, 1);
  y.store({row, 0}, t / where(total == 0, 1, total));
});

// What comes out need not be a float: the position of the largest element, how many are positive, whether any is NaN.
static const Kernel inspect("inspect(x, best, positive, broken, cols)",
                            [](View x, View best, View positive, View broken, Param cols) {
  Index row = grid(x.size(0));
  Tile t = x.load({row, 0}, {1, cols}, -inf);
  best.store({row, 0}, argmax(t, 1));            // i32; the first of equals
  positive.store({row, 0}, sum(t > 0, 1));       // booleans are counted in i32
  broken.store({row, 0}, any(t != t, 1));        // only NaN differs from itself
});

// A reduction of your own: any associative and commutative combination of two scalars. Here the product of 1 - x.
static const Kernel survive("survive(x, y, cols)", [](View x, View y, Param cols) {
  Index row = grid(x.size(0));
  Tile t = 1 - x.load({row, 0}, {1, cols}); // the padding is 0, so 1 - 0 = 1: neutral for a product
  y.store({row, 0}, reduce(t, 1, [](Tile a, Tile b) { return a * b; }));
});

int main() {
  constexpr int64_t rows = 5, cols = 300;
  Tensor x = Tensor::empty(f32, {rows, cols}), y = Tensor::empty(f32, {rows, cols});
  x.fillRandom(1, -4, 4);

  LaunchOptions options;
  options.params = {{"cols", 512}}; // 300 columns in a tile of 512
  launch(softmax, {x, y}, options);

  // Check a row in double precision.
  auto reference = [&](int64_t row, int64_t length, int64_t col) {
    double largest = -INFINITY, total = 0;
    for (int64_t j = 0; j < length; ++j)
      largest = std::max(largest, x.get({row, j}));
    for (int64_t j = 0; j < length; ++j)
      total += std::exp(x.get({row, j}) - largest);
    return col < length ? std::exp(x.get({row, col}) - largest) / total : 0.0;
  };
  auto worst = [&](auto lengthOf) {
    double error = 0;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        double wanted = reference(i, lengthOf(i), j);
        error = std::max(error, std::abs(y.get({i, j}) - wanted) / std::max(wanted, 1e-30));
      }
    return error;
  };
  double error = worst([](int64_t) { return cols; });
  std::printf("softmax: largest relative error %.1e\n", error);
  lesson::expect(error < 1e-6, "softmax is right to f32 precision");

  Tensor lengths = Tensor::empty(i32, {rows});
  for (int64_t i = 0; i < rows; ++i)
    lengths.setInt({i}, i * 75); // 0, 75, 150, 225, 300
  launch(raggedSoftmax, {x, lengths, y}, options);
  error = worst([&](int64_t row) { return lengths.getInt({row}); });
  std::printf("ragged softmax: largest relative error %.1e\n", error);
  lesson::expect(error < 1e-6, "rows of 0, 75, 150, 225 and 300 elements; the empty one is all zero");

  x.set({2, 17}, 1000);
  x.set({3, 4}, NAN);
  Tensor best = Tensor::empty(i32, {rows, 1}), positive = Tensor::empty(i32, {rows, 1});
  Tensor broken = Tensor::empty(boolean, {rows, 1});
  launch(inspect, {x, best, positive, broken}, options);
  std::printf("row 2: best %ld, %ld positive; row 3: best %ld, broken %ld\n", long(best.getInt({2, 0})),
              long(positive.getInt({2, 0})), long(best.getInt({3, 0})), long(broken.getInt({3, 0})));
  lesson::expect(best.getInt({2, 0}) == 17, "argmax found the element we planted");
  lesson::expect(best.getInt({3, 0}) == 4, "a NaN is its own maximum: it is not passed over");
  lesson::expect(broken.getInt({3, 0}) == 1 && broken.getInt({2, 0}) == 0, "any() found the row with the NaN");

  Tensor p = Tensor::empty(f32, {1, 3}), left = Tensor::empty(f32, {1, 1});
  p.fill(0.5);
  launch(survive, {p, left}, options);
  lesson::expect(left.get({0, 0}) == 0.125, "three halvings leave an eighth");

  // The precondition at work: a tile of 256 cannot hold rows of 300.
  try {
    options.params = {{"cols", 256}};
    launch(softmax, {x, y}, options);
    lesson::expect(false, "a row wider than the tile should have been refused");
  } catch (const Error &refusal) {
    std::printf("refused: %s\n", refusal.what());
  }
  return lesson::finish();
}
