// SPDX-License-Identifier: Apache-2.0
//
// Lesson 2: tiles, bounds and strides.
//
// A tile may hang over the edge of its view, or lie wholly outside. What is loaded from there is the padding value
// (zero unless you say otherwise), what is stored there is dropped, and the memory is not touched. So a kernel needs no
// special case for sizes that do not divide evenly.
#include "Lesson.h"

#include <tenon/tenon.h>

using namespace tenon;

// y[i] = the largest of x[i-1], x[i], x[i+1]. The neighbours are loads at other offsets; before the first element and
// after the last the padding counts, and the neutral padding for a maximum is minus infinity.
static const Kernel peak("peak(x, y, block=64)", [](View x, View y, Param block) {
  Index at = grid(cdiv(x.size(0), block)) * block;
  Tile left = x.load({at - 1}, {block}, -inf);
  Tile here = x.load({at}, {block}, -inf);
  Tile right = x.load({at + 1}, {block}, -inf);
  y.store({at}, maximum(here, maximum(left, right)));
});

// A transposed copy. Tiles have any shape with up to five dimensions, powers of two or not; offsets and shapes go in
// the view's own order of dimensions.
static const Kernel turn("turn(x, y, rows=12, cols=20)", [](View x, View y, Param rows, Param cols) {
  require((x.size(0) == y.size(1)) & (x.size(1) == y.size(0)), "y must have the sizes of x, swapped");
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  Tile t = x.load({i * rows, j * cols}, {rows, cols});
  y.store({j * cols, i * rows}, transpose(t));
});

static const Kernel scale("scale(x, factor, rows=8, cols=16)", [](View x, Scalar factor, Param rows, Param cols) {
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  x.store({i * rows, j * cols}, x.load({i * rows, j * cols}, {rows, cols}) * factor);
});

int main() {
  // 1. Padding. 100 elements are a tile of 64 and a partial one.
  Tensor x = Tensor::empty(f32, {100}), y = Tensor::empty(f32, {100});
  x.fillRandom(1, -10, -5); // all negative: a padding of zero would win at the edges
  launch(peak, {x, y});
  lesson::expect(y.get({0}) == std::max(x.get({0}), x.get({1})), "the first element has one neighbour");
  lesson::expect(y.get({99}) == std::max(x.get({99}), x.get({98})), "so has the last");
  lesson::expect(y.get({64}) == std::max({x.get({63}), x.get({64}), x.get({65})}), "tiles meet without a seam");

  // 2. Two dimensions, 35 x 47: neither size is a multiple of the tile's.
  Tensor a = Tensor::empty(f32, {35, 47}), b = Tensor::empty(f32, {47, 35});
  a.fillRandom(2, -1, 1);
  launch(turn, {a, b});
  bool same = true;
  for (int64_t i = 0; i < 35; ++i)
    for (int64_t j = 0; j < 47; ++j)
      same &= a.get({i, j}) == b.get({j, i});
  lesson::expect(same, "35 x 47 transposed by tiles of 12 x 20");

  // 3. Strides. A view need not be contiguous: here every second row of the middle columns, of a larger matrix. Views
  // share memory with the tensor they were cut from; whatever lies between their elements stays as it was.
  Tensor big = Tensor::empty(f32, {10, 10});
  big.fill(1);
  Tensor middle = big.slice(/*dim=*/0, /*begin=*/0, /*length=*/5, /*step=*/2).slice(1, 3, 4);
  std::printf("middle is %s with strides %ld and %ld\n", middle.str().c_str(), long(middle.stride(0)),
              long(middle.stride(1)));
  launch(scale, {middle, 5});
  double total = 0;
  for (int64_t i = 0; i < 10; ++i)
    for (int64_t j = 0; j < 10; ++j)
      total += big.get({i, j});
  lesson::expect(big.get({2, 3}) == 5 && big.get({1, 3}) == 1 && big.get({2, 7}) == 1, "only the view was scaled");
  lesson::expect(total == 80 + 20 * 5, "20 elements are 5, the other 80 still 1");

  // A transposed view is a matter of strides as well: copying it into place needs no kernel that transposes.
  Tensor copy = a.transpose({1, 0}).clone();
  lesson::expect(copy.get({46, 34}) == b.get({46, 34}), "a transposed view, copied, is what the kernel made");

  // 4. Memory that is yours already: borrow it. The launch checks that sizes and strides stay inside what you lent.
  float mine[6] = {1, 2, 3, 4, 5, 6};
  launch(scale, {Tensor::borrow(mine, sizeof mine, f32, {2, 3}), 10});
  lesson::expect(mine[0] == 10 && mine[5] == 60, "a borrowed array, scaled in place");
  try {
    launch(scale, {Tensor::borrow(mine, sizeof mine, f32, {2, 3}, /*strides=*/{4, 1}), 10});
    lesson::expect(false, "a view that reaches past its memory should have been refused");
  } catch (const Error &error) {
    std::printf("refused: %s\n", error.what());
  }
  return lesson::finish();
}
