// SPDX-License-Identifier: Apache-2.0
//
// dot on the CPU with weights as they lie in linear layers: rows along K, a few rows of the other operand, and weights
// that are converted.
#include "CpuDotSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

// The weights of a linear layer: rows along K, of which some are multiplied at once, lane by lane.
TEST(CpuWeights, FewRowsAndRowsAlongK) {
  for (const std::string &level : levels())
    for (auto [left, right] : {std::pair(f32, f32), {bf16, bf16}, {i8, u8}, {f64, f64}})
      for (int64_t m = 1; m <= 4; ++m)
        for (auto [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {5, 33}, {16, 64}, {37, 70}, {50, 15}}) {
          Tensor a = wholeNumbers(left, {m, k}, 1), b = wholeNumbers(right, {k, n}, 2);
          expectProduct(a, b, {m, 16, 32}, turnedInTheKernel, level); // at the edges, and inside
          if (level == "native")
            expectProduct(a, columnMajor.of(b), {4, n, k}, asTheyAre, level);
        }
}

// Weights that are converted for the dot, with a K that is no multiple of the tile's: there is nothing past its end.
TEST(CpuWeights, ConvertedOperandsThatEnd) {
  const Kernel converted("converted(a, w, c, bk)", [](View a, View w, View c, Param bk) {
    auto [i, j] = grid(cdiv(c.size(0), 16), cdiv(c.size(1), 32));
    Tile acc = zeros(f32, {16, 32});
    for (Index k : range(0, a.size(1), bk))
      acc = dot(a.load({i * 16, k}, {16, bk}), transpose(w.load({j * 32, k}, {32, bk}).to(a.dtype())), acc);
    c.store({i * 16, j * 32}, acc);
  });
  for (const std::string &level : levels())
    for (DType type : {f32, bf16})
      for (int64_t k : {1, 40, 64, 73, 130}) {
        Tensor a = wholeNumbers(type, {20, k}, 1), w = wholeNumbers(i8, {35, k}, 2), c = Tensor::empty(f32, {20, 35});
        LaunchOptions options;
        options.compile.isa = level;
        options.params = {{"bk", 64}};
        launch(converted, {a, w, c}, options);
        std::vector<double> x = valuesOf(a), y = valuesOf(w), z = valuesOf(c);
        for (int64_t i = 0; i < 20; ++i)
          for (int64_t j = 0; j < 35; ++j) {
            double total = 0;
            for (int64_t l = 0; l < k; ++l)
              total += x[i * k + l] * y[j * k + l];
            ASSERT_EQ(z[i * 35 + j], total) << nameOf(type) << " " << level << ", " << k << " at " << i << ", " << j;
          }
      }
}

} // namespace
