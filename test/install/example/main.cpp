// SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

static Kernel scale("scale(x, y, factor, width=256)", [](View x, View y, Scalar factor, Param width) {
  Index i = grid(cdiv(x.size(0), width));
  y.store({i * width}, x.load({i * width}, {width}) * factor);
});

int main() {
  Tensor x = Tensor::empty(f32, {1000}), y = Tensor::empty(f32, {1000});
  x.fillRandom(/*seed=*/1, -1, 1);
  launch(scale, {x, y, 3.0});
  for (int64_t i = 0; i < 1000; ++i)
    if (y.get({i}) != static_cast<float>(x.get({i})) * 3.0f) {
      std::printf("wrong at %ld: %g\n", static_cast<long>(i), y.get({i}));
      return 1;
    }
  std::puts("scaled 1000 elements");
  return 0;
}
