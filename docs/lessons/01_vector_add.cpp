// SPDX-License-Identifier: Apache-2.0
//
// Lesson 1: a kernel and a launch.
//
// A kernel is a C++ lambda that works on tiles: small dense arrays whose shape is known when the kernel is compiled.
// Many instances of it run at once, each on its own part of the data; together they form the grid.
#include "Lesson.h"

#include <tenon/tenon.h>

using namespace tenon;

// The signature names the parameters: views of memory come first here, then a compile-time integer with a default.
static const Kernel add("add(x, y, out, block=256)", [](View x, View y, View out, Param block) {
  // One instance for every `block` elements, rounded up. grid() declares how many, and says which one we are.
  Index i = grid(cdiv(out.size(0), block));

  // Load a tile of `block` elements from each input, add them, store the result. Nothing is said about threads, vector
  // registers or the left-over elements at the end: those are the compiler's business.
  Tile a = x.load({i * block}, {block});
  Tile b = y.load({i * block}, {block});
  out.store({i * block}, a + b);
});

int main() {
  // A Tensor is a handle on an array: element type, sizes, strides, memory.
  Tensor x = Tensor::empty(f32, {1000}), y = Tensor::empty(f32, {1000}), out = Tensor::zeros(f32, {1000});
  x.fillRandom(/*seed=*/1, -1, 1);
  y.fillRandom(/*seed=*/2, -1, 1);

  // The first launch runs the lambda once, records what it does, compiles that for this processor and runs it on all
  // cores. The next launch with tensors of the same types finds the machine code ready.
  launch(add, {x, y, out});

  std::printf("x[7] + y[7] = %g + %g = %g\n", x.get({7}), y.get({7}), out.get({7}));
  bool same = true;
  for (int64_t i = 0; i < 1000; ++i)
    same &= out.get({i}) == static_cast<float>(x.get({i})) + static_cast<float>(y.get({i}));
  lesson::expect(same, "all 1000 sums are right, the last 232 of them in a tile of 256 that is not full");

  // The lambda is not tied to a type: with other tensors it is recorded and compiled again, for them.
  Tensor counts = Tensor::empty(i64, {3});
  counts.fill(20);
  launch(add, {counts, counts, counts}); // in place, too
  lesson::expect(counts.getInt({2}) == 40, "the same kernel on 64-bit integers, in place: 20 + 20 = 40");

  // A wrong program or launch is answered with one sentence, as an exception, before anything runs.
  try {
    launch(add, {x, counts, out});
    lesson::expect(false, "adding f32 to i64 should have been refused");
  } catch (const Error &error) {
    std::printf("refused: %s\n", error.what());
  }
  return lesson::finish();
}
