// SPDX-License-Identifier: Apache-2.0
//
// Products of small whole numbers, whose sums are the same in every type and order, compared exactly.
#pragma once

#include "LangSupport.h"
#include "Levels.h"

namespace tenon::test {

/// The instruction sets that this machine has.
inline const std::vector<std::string> &levels() {
  static const std::vector<std::string> found =
      levelsAmong({"native", "avx512-dot", "amx-emulated", "avx2", "baseline"});
  return found;
}

inline DType accumulator(DType type) { return type == f64 ? f64 : isFloat(type) ? f32 : i32; }

/// Those with instructions of their own for bf16 and bytes.
inline constexpr const char *dotLevels[] = {"native", "amx-emulated"};

enum Form { asTheyAre, turnedInTheKernel, computed };

// Tiles that are larger or smaller than the matrices, with the sum over K in a loop.
inline const Kernel product("product(a, b, c, bm, bn, bk, form)",
                            [](View a, View b, View c, Param bm, Param bn, Param bk, Param form) {
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Index depth = form == turnedInTheKernel ? a.size(0) : a.size(1);
  Tile acc = zeros(accumulator(a.dtype()), {bm, bn});
  for (Index k : range(0, depth, bk)) {
    Tile x, y;
    if (form == turnedInTheKernel) {
      x = transpose(a.load({k, i * bm}, {bk, bm}));
      y = transpose(b.load({j * bn, k}, {bn, bk}));
    } else {
      x = a.load({i * bm, k}, {bm, bk});
      y = b.load({k, j * bn}, {bk, bn});
    }
    if (form == computed) { // twice as much, and nothing added where there was padding
      x = (x.to(f32) + x.to(f32)).to(a.dtype());
      y = (y.to(f32) * -1.0).to(b.dtype());
    }
    acc = dot(x, y, acc);
  }
  if (form == computed)
    acc = (acc.to(f64) * -0.5).to(c.dtype());
  c.store({i * bm, j * bn}, acc);
});

inline Tensor wholeNumbers(DType type, IndexList sizes, uint64_t seed) {
  Tensor tensor = Tensor::empty(type, sizes);
  Tensor values = Tensor::empty(i32, sizes);
  values.fillRandom(seed, type == u8 ? 0 : -3, 3);
  forEachIndex(tensor.sizes(), [&](const std::vector<int64_t> &i) { tensor.set(i, values.get(i)); });
  if (!isFloat(type) && tensor.elements() > 2) { // the ends of their range as well
    std::vector<int64_t> last(tensor.sizes().begin(), tensor.sizes().end());
    for (int64_t &index : last)
      --index;
    tensor.set(last, type == u8 ? 255 : -128);
    tensor.set(std::vector<int64_t>(last.size(), 0), type == u8 ? 255 : 127);
  }
  return tensor;
}

struct Layout {
  const char *name;
  std::function<Tensor(const Tensor &)> of;
};

inline const Layout rowMajor{"row-major", [](const Tensor &t) { return t; }};
inline const Layout columnMajor{"column-major", [](const Tensor &t) {
  return t.transpose({1, 0}).clone().transpose({1, 0});
}};
inline const Layout everyOther{"every other element", [](const Tensor &t) {
  Tensor wide = Tensor::empty(t.dtype(), {t.size(0), 2 * t.size(1)}).slice(1, 0, t.size(1), 2);
  wide.fillBytes(0);
  wide.copyFrom(t);
  return wide;
}};
inline const Layout insideALarger{"rows of a larger matrix", [](const Tensor &t) {
  Tensor large = Tensor::empty(t.dtype(), {t.size(0) + 2, t.size(1) + 3});
  large.fillBytes(0xff);
  Tensor part = large.slice(0, 1, t.size(0)).slice(1, 2, t.size(1));
  part.copyFrom(t);
  return part;
}};

inline void expectProduct(const Tensor &a, const Tensor &b, std::array<int64_t, 3> tile, Form form = asTheyAre,
                   const std::string &level = "native") {
  int64_t m = a.size(0), n = b.size(1), k = a.size(1);
  Tensor c = Tensor::empty(accumulator(a.dtype()), {m, n});
  c.fillBytes(0xff);
  LaunchOptions options;
  options.compile.isa = level;
  options.params = {{"bm", tile[0]}, {"bn", tile[1]}, {"bk", tile[2]}, {"form", form}};
  bool turned = form == turnedInTheKernel;
  launch(product, {turned ? a.transpose({1, 0}) : a, turned ? b.transpose({1, 0}) : b, c}, options);
  std::vector<double> x = valuesOf(a), y = valuesOf(b), z = valuesOf(c);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double total = 0;
      for (int64_t l = 0; l < k; ++l)
        total += x[i * k + l] * y[l * n + j];
      ASSERT_EQ(z[i * n + j], total) << nameOf(a.dtype()) << " x " << nameOf(b.dtype()) << " " << level << ", " << m
                                     << "x" << n << "x" << k << " in tiles of " << tile[0] << "x" << tile[1] << "x"
                                     << tile[2] << ", form " << form << ", at " << i << ", " << j;
    }
}

} // namespace tenon::test
