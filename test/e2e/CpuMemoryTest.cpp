// SPDX-License-Identifier: Apache-2.0
//
// What the CPU target does for kernels that wait for memory: results past the cache. Kernels
// that have nothing in common but that, at sizes and addresses on both sides of every decision.
#include "tenon/jit/Jit.h"
#include "tenon/kernels/dropout/Reference.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace tenon;

namespace {

/// y = x + 1 and z = 2 x: two results of one nest.
const Kernel twoResults("two_results(x, y, z, rows=4, cols=256)", [](View x, View y, View z, Param rows, Param cols) {
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  Tile t = x.load({i * rows, j * cols}, {rows, cols});
  y.store({i * rows, j * cols}, t + 1);
  z.store({i * rows, j * cols}, (2 * t).to(z.dtype()));
});

/// Rows less their smallest element.
const Kernel lessLeast("less_least(x, y, rows=2, cols)", [](View x, View y, Param rows, Param cols) {
  Index i = grid(cdiv(x.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}, inf);
  y.store({i * rows, 0}, t - min(t, 1));
});

/// Rows and how far they are from their sums, stored to views that may end before one another and before what is read;
/// and a sum over rows, which sees them all.
const Kernel ragged("ragged(x, y, z, w, shift, rows=4, cols=64)",
                    [](View x, View y, View z, View w, Index shift, Param rows, Param cols) {
                      Index i = grid(cdiv(w.size(0) * rows, rows));
                      Tile t = x.load({i * rows + shift, 0}, {rows, cols}, 3);
                      Tile s = sum(t, 1);
                      y.store({i * rows, 0}, t - s);
                      z.store({i * rows - shift, 0}, s);
                      w.store({i, 0}, sum(t + 1, 0));
                    });

/// Small whole numbers, so that every result is exact.
float number(int64_t row, int64_t col) { return static_cast<float>((row * 31 + col * 7) % 113 - 56); }

Tensor numbers(const Tensor &into) {
  for (int64_t row = 0; row < into.size(0); ++row) {
    auto *line = static_cast<float *>(into.data()) + row * into.stride(0);
    for (int64_t col = 0; col < into.size(1); ++col)
      line[col] = number(row, col);
  }
  return into;
}

/// `rows` x `cols` in the middle of something larger, the first element `shift` floats from a cache line's start, so
/// many bytes from row to row.
Tensor placed(int64_t rows, int64_t cols, int64_t pitch, int64_t shift) {
  Tensor memory = Tensor::empty(f32, {rows * pitch + shift + 64});
  memory.fill(-7);
  auto *first = static_cast<float *>(memory.data()) + shift;
  return Tensor::borrow(first, static_cast<size_t>(rows * pitch) * 4, f32, {rows, cols}, {pitch, 1},
                        [memory] {});
}

struct Place {
  int64_t rows, cols, pitch, shift;
};
// 40 MB and a few KB; on the lines and off them; rows that end with the tile, that leave some columns over, that lie
// apart; of two, three and many pages.
const Place places[] = {{5000, 2048, 2048, 0}, {5000, 2048, 2048, 1},  {5000, 2000, 2048, 0},
                        {5000, 2001, 2001, 0}, {4999, 2048, 2064, 16}, {16, 512, 512, 0},
                        {15, 500, 512, 0},     {3400, 3072, 3072, 0},  {1, 10240000, 10240000, 0}};

TEST(CpuMemory, RowsPastTheEndOfWhatIsStoredTo) {
  for (int64_t ofX : {0, 7, 25})
    for (int64_t ofY : {1, 10, 26})
      for (int64_t ofZ : {2, 25})
        for (int64_t cols : {64, 50})
          for (int64_t shift : {-3, 0, 2}) {
            std::vector<Arguments> both;
            for (Target target : {Target::cpu, Target::interpreter}) {
              Arguments &a = both.emplace_back();
              a = {numbers(Tensor::zeros(f32, {ofX, cols})), Tensor::zeros(f32, {ofY, cols}),
                   Tensor::zeros(f32, {ofZ, 1}), Tensor::zeros(f32, {7, 64}), shift};
              LaunchOptions options;
              options.target = target;
              launch(ragged, a, options);
            }
            for (size_t i : {1, 2, 3}) {
              const Tensor &ours = both[0][i].tensor(), &right = both[1][i].tensor();
              ASSERT_EQ(std::memcmp(ours.data(), right.data(), static_cast<size_t>(ours.elements()) * 4), 0)
                  << "result " << i << ": " << ofX << ", " << ofY << ", " << ofZ << " rows of " << cols << ", shift "
                  << shift;
            }
          }
}

TEST(CpuMemory, LargeResultsAreCompleteAndNothingElseIsTouched) {
  for (const Place &p : places) {
    Tensor x = numbers(placed(p.rows, p.cols, p.cols, 0)), y = placed(p.rows, p.cols, p.pitch, p.shift);
    Tensor z = Tensor::zeros(bf16, {p.rows, p.cols});
    LaunchOptions options;
    options.params["cols"] = p.cols > 4096 ? 4096 : 256;
    launch(twoResults, {x, y, z}, options);
    for (int64_t row = 0; row < p.rows; ++row) {
      auto *line = static_cast<float *>(y.data()) + row * p.pitch;
      for (int64_t col = 0; col < p.pitch && (col < p.cols || row + 1 < p.rows); ++col)
        ASSERT_EQ(line[col], col < p.cols ? number(row, col) + 1 : -7) << p.cols << " at " << row << ", " << col;
    }
    for (int64_t row = 0; row < p.rows; row += 97)
      for (int64_t col = 0; col < std::min<int64_t>(p.cols, 5000); col += 3)
        ASSERT_EQ(z.get({row, col}), 2 * number(row, col));
  }
}

TEST(CpuMemory, LargeResultsOfRows) {
  for (const Place &p : places) {
    if (p.cols > 4096)
      continue;
    Tensor x = numbers(placed(p.rows, p.cols, p.cols, 0)), y = placed(p.rows, p.cols, p.pitch, p.shift);
    for (int threads : {1, 2}) {
      LaunchOptions options;
      options.params = {{"cols", (p.cols + 15) / 16 * 16}};
      options.threads = threads;
      launch(lessLeast, {x, y}, options);
      for (int64_t row = 0; row < p.rows; ++row) {
        auto *line = static_cast<float *>(y.data()) + row * p.pitch;
        for (int64_t col = 0; col < p.cols; ++col)
          ASSERT_EQ(line[col], number(row, col) + 56) << p.cols << " at " << row << ", " << col;
      }
    }
  }
}

/// The same kernel on one tensor twice (no streaming: read and written) and on two.
TEST(CpuMemory, InPlaceIsTheSame) {
  Tensor x = numbers(Tensor::empty(f32, {3000, 2048})), y = Tensor::zeros(f32, {3000, 2048});
  LaunchOptions options;
  options.params = {{"cols", 2048}};
  launch(lessLeast, {x, y}, options);
  launch(lessLeast, {x, x}, options);
  EXPECT_EQ(std::memcmp(x.data(), y.data(), static_cast<size_t>(x.elements()) * 4), 0);
}

/// Every f32 whose lower half is around a tie, among them subnormals, infinities and NaNs, alone in their vectors and
/// among ordinary numbers: the instruction for it must not be seen in the result.
TEST(CpuMemory, RoundsToBf16) {
  const Kernel narrow("narrow(x, y, scale, cols=256)", [](View x, View y, Scalar scale, Param cols) {
    Index i = grid(cdiv(x.size(0), cols));
    y.store({i * cols}, (x.load({i * cols}, {cols}) * scale).to(bf16));
  });
  const Kernel twice("twice(x, y, rows=2, cols=128)", [](View x, View y, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
    Tile t = x.load({i * rows, j * cols}, {rows, cols});
    y.store({i * rows, j * cols}, maximum(t, t).to(bf16));
  });
  std::vector<uint32_t> bits;
  for (uint32_t upper = 0; upper < 0x10000; ++upper)
    for (uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      bits.push_back(upper << 16 | lower);
  for (size_t i = 0; i < 0x20000; ++i) // in company
    bits.push_back(i % 37 ? 0x3f800000u + static_cast<uint32_t>(i) * 977 : bits[i * 3]);
  auto n = static_cast<int64_t>(bits.size());
  Tensor x = Tensor::empty(f32, {n});
  std::memcpy(x.data(), bits.data(), bits.size() * 4);
  for (bool rows : {false, true}) {
    Tensor y = Tensor::zeros(bf16, {n});
    if (rows)
      launch(twice, {x.reshape({n / 1024, 1024}), y.reshape({n / 1024, 1024})});
    else
      launch(narrow, {x, y, 1.0});
    for (int64_t i = 0; i < n; ++i) {
      float value = static_cast<const float *>(x.data())[i];
      double rounded = y.get({i}), expected = roundTo(bf16, value);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(rounded)) << std::hex << bits[i];
      } else {
        ASSERT_EQ(rounded, expected) << std::hex << bits[i];
        ASSERT_EQ(std::signbit(rounded), std::signbit(expected)) << std::hex << bits[i];
      }
    }
  }
}

/// A quotient with one divisor is the quotient, bit for bit, whatever is divided by what: a number of the launch, then
/// each row's largest.
TEST(CpuMemory, QuotientsByOneDivisorAreExact) {
  const Kernel scaled("scaled(x, y, d, cols=256)", [](View x, View y, Scalar d, Param cols) {
    Index i = grid(cdiv(x.size(0), cols));
    y.store({i * cols}, x.load({i * cols}, {cols}) / d);
  });
  const Kernel rows("by_largest(x, y, cols=128)", [](View x, View y, Param cols) {
    Index i = grid(x.size(0));
    Tile t = x.load({i, 0}, {1, cols});
    y.store({i, 0}, t / max(t, 1));
  });
  constexpr int64_t n = 1 << 16;
  Tensor x = Tensor::empty(f32, {n}), y = Tensor::zeros(f32, {n});
  auto *from = static_cast<float *>(x.data());
  uint64_t state = 1;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    auto bits = static_cast<uint32_t>(state >> 32);
    if (i % 1024 >= 256) // most vectors have nothing but ordinary numbers, signs among them
      bits = (bits & 0x807fffff) | (100 + bits % 50) << 23;
    if (i % 1024 >= 768) // and some the smallest that are not divided, or the largest, and the next after those
      bits = (bits & 0x807fffff) | (i % 128 < 64 ? 64 - i % 1024 / 960 : 190 + i % 1024 / 896) << 23;
    std::memcpy(from + i, &bits, 4);
  }
  from[3000] = -0.0f, from[5000] = std::numeric_limits<float>::infinity(), from[7000] = NAN;
  auto same = [](float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, 4) == 0; };
  auto *to = static_cast<const float *>(y.data());
  for (const char *isa : {"native", "avx2", "baseline"}) {
    LaunchOptions options;
    options.compile.isa = isa;
    for (float d : {3.0f, -0.9f, 1.99999988f, 1e-30f, 1e30f, 0x1p-60f, 0x1.8p-60f, -0x1.fffffep59f,
                    0x1p-140f, 0.0f, INFINITY, NAN}) {
      launch(scaled, {x, y, static_cast<double>(d)}, options);
      for (int64_t i = 0; i < n; ++i)
        ASSERT_TRUE(same(to[i], from[i] / d)) << isa << ": " << from[i] << " / " << d << " is not " << to[i];
    }
    launch(rows, {x.reshape({n / 128, 128}), y.reshape({n / 128, 128})}, options);
    for (int64_t row = 0; row < n / 128; ++row) {
      float largest = -INFINITY;
      for (int64_t i = row * 128; i < row * 128 + 128; ++i)
        largest = std::isnan(from[i]) || std::isnan(largest) ? NAN : std::max(largest, from[i]);
      for (int64_t i = row * 128; i < row * 128 + 128; ++i)
        ASSERT_TRUE(same(to[i], from[i] / largest))
            << isa << ": " << from[i] << " / " << largest << " is not " << to[i];
    }
  }
}

/// Quotients that only bf16 sees, some with an approximate reciprocal: of subnormal numbers, of zeros and infinities,
/// by square roots of them, in whole registers and in what is left of a row.
TEST(CpuMemory, CoarseQuotientsOfSpecialNumbers) {
  const Kernel quotients("quotients(x, d, y, cols=256)", [](View x, View d, View y, Param cols) {
    Index i = grid(x.size(0));
    Tile a = x.load({i, 0}, {1, cols}), b = d.load({i, 0}, {1, cols});
    y.store({3 * i, 0}, (a / b).to(y.dtype()));
    y.store({3 * i + 1, 0}, (a / sqrt(b)).to(y.dtype()));
    y.store({3 * i + 2, 0}, (a / (1 + b)).to(y.dtype()));
  });
  const std::vector<float> some = {0.0f,    1.0f,     3.0f,     0x1p-130f, 0x1p-127f, 0x1p-149f, 0x1p-60f,
                                   0x1p60f, 0x1p126f, 0x1p127f, INFINITY,  NAN,       0.7f,      1e-20f};
  auto count = static_cast<int64_t>(some.size());
  for (int64_t cols : {64, 200, 7})
    for (const char *isa : {"native", "avx2", "baseline"}) {
      Tensor x = Tensor::zeros(f32, {count, cols}), d = Tensor::zeros(f32, {count, cols}),
             y = Tensor::zeros(bf16, {3 * count, cols});
      for (int64_t row = 0; row < count; ++row)
        for (int64_t col = 0; col < cols; ++col) {
          x.set({row, col}, some[static_cast<size_t>(row)]);
          d.set({row, col}, some[static_cast<size_t>(col % count)]);
        }
      LaunchOptions options;
      options.compile.isa = isa;
      options.params = {{"cols", cols}};
      launch(quotients, {x, d, y}, options);
      for (int64_t row = 0; row < 3 * count; ++row)
        for (int64_t col = 0; col < cols; ++col) {
          float a = some[static_cast<size_t>(row / 3)], b = some[static_cast<size_t>(col % count)];
          float divisor = row % 3 == 0 ? b : row % 3 == 1 ? std::sqrt(b) : 1 + b;
          auto exact = static_cast<double>(a / divisor), got = y.get({row, col});
          if (std::isnan(exact) || std::isinf(exact) || exact == 0)
            EXPECT_TRUE(std::isnan(exact) ? std::isnan(got) : got == exact)
                << isa << ": " << a << " / " << divisor << " is not " << got;
          else
            EXPECT_LE(std::abs(got - exact), 0x1.1p-8 * std::abs(exact) + 0x1p-133)
                << isa << ": " << a << " / " << divisor << " is not " << got;
        }
    }
}

/// The same with one divisor for a row, whose reciprocal may not be a number.
TEST(CpuMemory, CoarseQuotientsByOneDivisor) {
  const Kernel rows("rows(x, d, y, cols=256)", [](View x, View d, View y, Param cols) {
    Index i = grid(x.size(0));
    y.store({i, 0}, (x.load({i, 0}, {1, cols}) / d.load({i, 0}, {1, 1})).to(y.dtype()));
  });
  const std::vector<float> some = {0.0f,     -0.0f,     1.0f,    -3.0f,    0x1p-130f, -0x1p-127f, 0x1p-149f, 0x1p-126f,
                                   0x1p-60f, 0x1p-101f, 0x1p60f, 0x1p126f, 0x1p127f,  INFINITY,   NAN,       1e-20f};
  auto count = static_cast<int64_t>(some.size());
  for (DType type : {bf16, f16})
    for (int64_t cols : {64, 71}) {
      Tensor x = Tensor::zeros(f32, {count, cols}), d = Tensor::zeros(f32, {count, 1}),
             y = Tensor::zeros(type, {count, cols});
      for (int64_t row = 0; row < count; ++row) {
        d.set({row, 0}, some[static_cast<size_t>(row)]);
        for (int64_t col = 0; col < cols; ++col)
          x.set({row, col}, some[static_cast<size_t>(col % count)]);
      }
      LaunchOptions options;
      options.params = {{"cols", cols}};
      launch(rows, {x, d, y}, options);
      for (int64_t row = 0; row < count; ++row)
        for (int64_t col = 0; col < cols; ++col) {
          float a = some[static_cast<size_t>(col % count)], divisor = some[static_cast<size_t>(row)];
          Tensor exact = Tensor::zeros(type, {1});
          exact.set({0}, static_cast<double>(a / divisor));
          double wanted = exact.get({0}), got = y.get({row, col});
          bool isFinite = std::isfinite(wanted);
          EXPECT_TRUE(std::isnan(wanted)
                          ? std::isnan(got)
                          : got == wanted || (isFinite && std::abs(got - wanted) <= 0x1p-7 * std::abs(wanted)))
              << nameOf(type) << ": " << a << " / " << divisor << " is not " << got;
        }
    }
}

/// x times half of 1 + erf(0.85 x), times a factor of the launch and one of the row, which are in the table's
/// coefficients; what is not scaled by one number for a row is multiplied as ever.
TEST(CpuMemory, TabulatedTimesFactor) {
  auto activated = [](const Tile &t) { return t * (0.5 * (1 + erf(0.85 * t))); };
  const Kernel ofLaunch("of_launch(x, s, y, f, cols=64)", [=](View x, View, View y, Scalar f, Param cols) {
    Index i = grid(x.size(0));
    y.store({i, 0}, (activated(x.load({i, 0}, {1, cols}).to(f32)) * f).to(bf16));
  });
  const Kernel ofRow("of_row(x, s, y, f, cols=64)", [=](View x, View s, View y, Scalar, Param cols) {
    Index i = grid(x.size(0));
    Tile factor = s.load({i, 0}, {1, 1}).to(f32);
    y.store({i, 0}, (activated(x.load({i, 0}, {1, cols}).to(f32)) * factor).to(bf16));
  });
  const Kernel ofElement("of_element(x, s, y, f, cols=64)", [=](View x, View s, View y, Scalar, Param cols) {
    Index i = grid(x.size(0));
    Tile factor = s.load({i, 0}, {1, cols}).to(f32);
    y.store({i, 0}, (activated(x.load({i, 0}, {1, cols}).to(f32)) * factor).to(bf16));
  });
  const double infinity = std::numeric_limits<double>::infinity();
  for (int64_t cols : {64, 500, 4096}) {
    Tensor x = Tensor::empty(bf16, {3, cols}), s = Tensor::empty(bf16, {3, cols});
    x.fillRandom(1, -7, 7);
    s.fillRandom(2, 0.5, 2);
    double special[] = {infinity, -infinity, std::nan(""), 0.0, -0.0, 1e30, -1e30, 1e-39, -1e-39, 3e-37};
    for (int64_t i = 0; i < 10; ++i)
      x.set({1, 5 * i}, special[i]);
    for (const Kernel *kernel : {&ofLaunch, &ofRow, &ofElement}) {
      Tensor y = Tensor::zeros(bf16, {3, cols});
      LaunchOptions options;
      options.params = {{"cols", cols}};
      launch(*kernel, {x, s, y, 1.25}, options);
      for (int64_t row = 0; row < 3; ++row)
        for (int64_t col = 0; col < cols; ++col) {
          double t = x.get({row, col}), got = y.get({row, col});
          double factor = kernel == &ofLaunch ? 1.25 : s.get({row, kernel == &ofRow ? 0 : col});
          double wanted = t * (std::erfc(-0.85 * t) / 2) * factor;
          EXPECT_TRUE(std::isinf(wanted) || std::isnan(wanted)
                          ? (std::isnan(wanted) ? std::isnan(got) : got == wanted)
                          : std::abs(got - wanted) <= 0x1.1p-8 * std::abs(wanted) + std::abs(t) * 0x1p-23 + 0x1p-133)
              << t << " times " << factor << " gives " << got;
        }
    }
  }
}

/// A constant factor that would make the table's coefficients infinite is not in them.
TEST(CpuMemory, TabulatedTimesHugeConstant) {
  const Kernel huge("huge(x, y)", [](View x, View y) {
    Index i = grid(x.size(0));
    Tile t = x.load({i, 0}, {1, 64}).to(f32);
    y.store({i, 0}, (t * (0.5 * (1 + erf(3 * t))) * 3e38).to(bf16));
  });
  Tensor x = Tensor::zeros(bf16, {1, 64}), y = Tensor::zeros(bf16, {1, 64});
  x.set({0, 1}, -9);
  x.set({0, 2}, 0.5);
  launch(huge, {x, y});
  EXPECT_EQ(y.get({0, 0}), 0);
  EXPECT_EQ(y.get({0, 1}), 0);
  EXPECT_NEAR(y.get({0, 2}), 0.5 * std::erfc(-1.5) / 2 * 3e38, 1e36);
}

/// One NaN anywhere in a row is its largest and its smallest element, and zeros have signs.
TEST(CpuMemory, ExtremesOfRowsSeeEveryNan) {
  const Kernel extremes("extremes(x, most, least, cols)", [](View x, View most, View least, Param cols) {
    Index i = grid(x.size(0));
    Tile t = x.load({i, 0}, {1, cols}).to(f32);
    most.store({i, 0}, max(t, 1));
    least.store({i, 0}, min(t, 1));
  });
  for (DType dtype : {f32, bf16})
    for (int64_t cols : {64, 128, 200, 1024, 1100}) {
      Tensor x = Tensor::empty(dtype, {cols + 2, cols}), most = Tensor::zeros(f32, {cols + 2, 1});
      Tensor least = Tensor::zeros(f32, {cols + 2, 1});
      x.fill(-1);
      for (int64_t row = 0; row < cols; ++row) { // of either sign
        x.set({row, (row + 5) % cols}, 7);
        x.set({row, row}, row % 2 ? NAN : -NAN);
      }
      for (int64_t col = 0; col < cols; ++col) {
        x.set({cols, col}, -0.0);
        x.set({cols + 1, col}, 0.0);
      }
      x.set({cols, cols / 2}, 0.0);
      x.set({cols + 1, cols / 2}, -0.0);
      for (const char *isa : {"native", "amx-emulated", "avx2", "baseline"}) {
        LaunchOptions options;
        options.params = {{"cols", cols}};
        options.compile.isa = isa;
        launch(extremes, {x, most, least}, options);
        for (int64_t row = 0; row < cols; ++row)
          ASSERT_TRUE(std::isnan(most.get({row, 0})) && std::isnan(least.get({row, 0})))
              << isa << ", " << row << " of " << cols;
        EXPECT_FALSE(std::signbit(most.get({cols, 0}))) << isa;
        EXPECT_TRUE(std::signbit(least.get({cols + 1, 0}))) << isa;
      }
    }
}

/// Rows of one sign or of both, of infinities, of numbers of every size: extremes are those of the numbers.
TEST(CpuMemory, ExtremesOfRowsAreThoseOfNumbers) {
  const Kernel extremes("extremes(x, most, least, cols)", [](View x, View most, View least, Param cols) {
    Index i = grid(x.size(0));
    Tile t = x.load({i, 0}, {1, cols}, /*padding=*/-3).to(f32);
    most.store({i, 0}, max(t, 1));
    least.store({i, 0}, min(t, 1));
  });
  constexpr int64_t rows = 60;
  for (int64_t cols : {64, 96, 1024, 1100})
    for (int64_t beyond : {0, 7}) { // of the tile, in which elements outside the view are -3
      Tensor x = Tensor::empty(bf16, {rows, cols - beyond}), most = Tensor::zeros(f32, {rows, 1});
      Tensor least = Tensor::zeros(f32, {rows, 1});
      std::mt19937 generator(7);
      std::vector<double> wantedMost(rows, beyond ? -3 : -INFINITY), wantedLeast(rows, beyond ? -3 : INFINITY);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; col < cols - beyond; ++col) {
          auto exponent = static_cast<int>(generator() % 254) - 126;
          double number = std::ldexp(1 + static_cast<double>(generator() % 128) / 128, row % 5 == 4 ? -133 : exponent);
          bool isNegative = row % 3 == 0 || (row % 3 == 1 && generator() % 2);
          x.set({row, col}, (isNegative ? -1 : 1) * (generator() % 997 ? number : INFINITY));
          wantedMost[row] = std::max(wantedMost[row], x.get({row, col}));
          wantedLeast[row] = std::min(wantedLeast[row], x.get({row, col}));
        }
      for (const char *isa : {"native", "amx-emulated", "avx2"}) {
        LaunchOptions options;
        options.params = {{"cols", cols}};
        options.compile.isa = isa;
        launch(extremes, {x, most, least}, options);
        for (int64_t row = 0; row < rows; ++row) {
          ASSERT_EQ(most.get({row, 0}), wantedMost[row]) << isa << ", row " << row << " of " << cols;
          ASSERT_EQ(least.get({row, 0}), wantedLeast[row]) << isa << ", row " << row << " of " << cols;
        }
      }
    }
}

/// Lanes in pairs: what comes out stands where it came in, from rows that end anywhere, beside a vector that all rows
/// share.
TEST(CpuMemory, PairsOfBf16KeepTheirPlaces) {
  const Kernel gated("gated(x, g, y, rows=2, cols=96)", [](View x, View g, View y, Param rows, Param cols) {
    auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
    Tile t = x.load({i * rows, j * cols}, {rows, cols}).to(f32), w = g.load({j * cols}, {cols}).to(f32);
    y.store({i * rows, j * cols}, (t * w + 1).to(bf16));
  });
  for (int64_t cols : {96, 192, 100, 31, 97}) {
    Tensor x = Tensor::empty(bf16, {7, cols}), g = Tensor::empty(bf16, {cols}), y = Tensor::zeros(bf16, {7, cols});
    for (int64_t col = 0; col < cols; ++col) {
      g.set({col}, static_cast<double>(col % 5));
      for (int64_t row = 0; row < 7; ++row)
        x.set({row, col}, static_cast<double>((row * 13 + col) % 50));
    }
    launch(gated, {x, g, y});
    for (int64_t row = 0; row < 7; ++row)
      for (int64_t col = 0; col < cols; ++col)
        ASSERT_EQ(y.get({row, col}), static_cast<double>((row * 13 + col) % 50 * (col % 5) + 1)) << row << ", " << col;
  }
}

} // namespace
