// SPDX-License-Identifier: Apache-2.0
//
// Tiles of several rows, each of which may get an instance of its own, and tiles that hang over the end of their views:
// what the interpreter gives, and nothing written beside it.
#include "tenon/jit/Jit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

using namespace tenon;

namespace {

const Kernel norm("norm(x, w, y, mean, rows, cols)", [](View x, View w, View y, View mean, Param rows, Param cols) {
  Index i = grid(cdiv(x.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}).to(f32);
  Tile m = sum(t, 1) / Tile(x.size(1)).to(f32);
  Tile d = where(iota(i64, {1, cols}, 1) < x.size(1), t - m, 0);
  Tile v = sum(d * d, 1) / Tile(x.size(1)).to(f32);
  mean.store({i * rows}, reshape(m, {rows}).to(mean.dtype()));
  y.store({i * rows, 0}, (d * rsqrt(v + 1e-5) * w.load({0}, {cols}).to(f32)).to(y.dtype()));
});

/// The number of a row is seen, a number of it is looked up, and the result is a column.
const Kernel loss("loss(x, target, y, rows, cols)", [](View x, View target, View y, Param rows, Param cols) {
  Index i = grid(cdiv(x.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}, -inf).to(f32);
  Tile m = max(t, 1), s = log(sum(exp(t - m), 1));
  Tile row = i * rows + iota(i64, {rows, 1}, 0);
  Tile want = reshape(target.load({i * rows}, {rows}), {rows, 1});
  Tile picked = x.gather({row, want}).to(f32);
  y.store({i * rows}, reshape(m + s - picked + row.to(f32), {rows}));
});

/// Blocks of rows and columns; sums along columns, and what hangs over counts 2 for each element.
const Kernel columns("columns(x, y, z, rows, cols)", [](View x, View y, View z, Param rows, Param cols) {
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  Tile t = x.load({i * rows, j * cols}, {rows, cols}, 2).to(f32);
  z.store({i, j * cols}, sum(t, 0).to(z.dtype()));
  y.store({i * rows, j * cols}, (t * 2 + sum(t, 1)).to(y.dtype()));
});

/// Rows that are not for themselves: each is also added to the one above.
const Kernel above("above(x, y, rows, cols)", [](View x, View y, Param rows, Param cols) {
  Index i = grid(cdiv(x.size(0), rows));
  Tile t = x.load({i * rows, 0}, {rows, cols}), u = x.load({i * rows + 1, 0}, {rows, cols});
  y.store({i * rows, 0}, t / (sum(t, 1) + 100) + u);
});

/// Windows, and results, that begin before their views: a causal convolution along rows, what is above, and shifts.
const Kernel shifted("shifted(x, y, down, right, rows, cols)", [](View x, View y, Index down, Index right, Param rows,
                                                                  Param cols) {
  auto [i, j] = grid(cdiv(y.size(0), rows) + 1, cdiv(y.size(1), cols) + 1);
  Tile t = x.load({i * rows, j * cols}, {rows, cols}, 7);
  for (int64_t back = 1; back < 4; ++back)
    t = t + x.load({i * rows, j * cols - back}, {rows, cols}) * static_cast<double>(back);
  t = t + x.load({i * rows - 1, j * cols}, {rows, cols}, -1);
  y.store({i * rows + down, j * cols + right}, t);
});

/// A view that ends elsewhere than the others, and begins before the tile does.
const Kernel window("window(x, y, cols)", [](View x, View y, Param cols) {
  Index i = grid(x.size(0));
  Tile t = x.load({i, -3}, {1, cols}, 5), u = x.load({i, 2}, {1, cols}, 7);
  y.store({i, 0}, t + u * 2);
});

/// A transposed tile: its columns are the view's rows.
const Kernel across("across(x, y, rows, cols)", [](View x, View y, Param rows, Param cols) {
  auto [i, j] = grid(cdiv(y.size(0), rows), cdiv(y.size(1), cols));
  y.store({i * rows, j * cols}, transpose(x.load({j * cols, i * rows}, {cols, rows}, 3)) + 1);
});

/// A middle dimension that hangs over, and a factor that is the same along it.
const Kernel heads("heads(x, c, y, heads)", [](View x, View c, View y, Param heads) {
  Index t = grid(x.size(0));
  Tile k = expand(c.load({t, 0}, {1, 64}), 1);
  y.store({t, 0, 0}, x.load({t, 0, 0}, {1, heads, 64}) * k);
});

/// Sums over a middle dimension, with a padding that counts, and a square tile beside its transpose.
const Kernel pool("pool(x, y, length, width)", [](View x, View y, Param length, Param width) {
  auto [b, j] = grid(x.size(0), cdiv(x.size(2), width));
  y.store({b, j * width}, reshape(sum(x.load({b, 0, j * width}, {1, length, width}, 0.5), 1), {1, width}));
});
const Kernel symmetric("symmetric(x, y, edge)", [](View x, View y, Param edge) {
  auto [i, j] = grid(cdiv(x.size(0), edge), cdiv(x.size(1), edge));
  Tile t = x.load({i * edge, j * edge}, {edge, edge}), u = x.load({j * edge, i * edge}, {edge, edge});
  y.store({i * edge, j * edge}, t + transpose(u) * 2);
});

/// Part of a window that has as many rows as the part has columns.
const Kernel sliced("sliced(x, y)", [](View x, View y) {
  Index i = grid(1);
  Tile t = x.load({i, 0}, {256, 512}, 7);
  y.store({i, 0}, slice(slice(t, 0, 200, 4), 1, 0, 256) + 1);
});

/// Random numbers that end where nothing is mapped.
struct Guarded {
  char *pages;
  size_t bytes;
  Tensor tensor;

  Guarded(DType type, std::vector<int64_t> sizes) {
    size_t length = static_cast<size_t>(sizeOf(type)), page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    for (int64_t size : sizes)
      length *= static_cast<size_t>(size);
    bytes = (length + page - 1) / page * page + (1 << 20);
    pages = static_cast<char *>(mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *end = pages + bytes - (1 << 20);
    mprotect(pages, bytes - (1 << 20), PROT_READ | PROT_WRITE);
    tensor = Tensor::borrow(end - length, length, type, sizes);
    tensor.fillRandom(15, -1, 1);
  }
  ~Guarded() {
    tensor = Tensor::empty(f32, {1});
    munmap(pages, bytes);
  }
};

/// The middle of a larger tensor, of which everything else must stay as it is.
struct Framed {
  Tensor all, inner;
  Framed(DType type, int64_t rows, int64_t cols, int64_t left)
      : all(Tensor::empty(type, {rows + 2, cols + left + 5})), inner(all.slice(0, 1, rows).slice(1, left, cols)) {
    all.fill(-77);
  }
  void expectFrame(const std::string &what) const {
    int64_t rows = inner.size(0), cols = inner.size(1), left = all.size(1) - cols - 5;
    for (int64_t i = 0; i < all.size(0); ++i)
      for (int64_t j = 0; j < all.size(1); ++j)
        if (i < 1 || i > rows || j < left || j >= left + cols)
          ASSERT_EQ(all.get({i, j}), -77) << what << ": " << i << ", " << j;
  }
};

void expectClose(const Tensor &got, const Tensor &want, double relative, const std::string &what) {
  std::vector<int64_t> at(got.rank(), 0);
  for (int64_t n = 0; n < got.elements(); ++n) {
    double a = got.get(at), b = want.get(at);
    ASSERT_NEAR(a, b, relative * (1 + std::abs(b))) << what << ", element " << n;
    for (int64_t d = got.rank(); d-- > 0 && ++at[d] == got.size(d);)
      at[d] = 0;
  }
}

LaunchOptions with(Params params, const char *isa, Target target = Target::cpu) {
  LaunchOptions options;
  options.params = std::move(params);
  options.target = target;
  if (target == Target::cpu)
    options.compile.isa = isa;
  return options;
}

const char *const levels[] = {"native", "avx512-dot", "amx-emulated", "avx2"};

class CpuRows : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    try {
      Tensor x = Tensor::zeros(f32, {2, 8}), y = Tensor::zeros(f32, {2, 8});
      launch(above, {x, y}, with({{"rows", 1}, {"cols", 8}}, GetParam()));
    } catch (const Error &) {
      GTEST_SKIP() << "this processor does not have " << GetParam();
    }
  }
};

} // namespace

TEST_P(CpuRows, NormsOfAnyNumberOfRows) {
  for (DType type : {f32, bf16})
    for (auto [rows, cols, tile] : {std::array<int64_t, 3>{37, 1024, 1024}, {37, 1000, 1024}, {5, 4096, 4096},
                                    {7, 2500, 4096}, {9, 1500, 1500}, {1, 1100, 2048}}) {
      Tensor x = Tensor::empty(type, {rows, cols}), w = Tensor::empty(type, {cols});
      x.fillRandom(1, -2, 2);
      w.fillRandom(2, -2, 2);
      Tensor want = Tensor::empty(type, {rows, cols}), means = Tensor::empty(f32, {rows});
      launch(norm, {x, w, want, means}, with({{"rows", 1}, {"cols", tile}}, "", Target::interpreter));
      for (int64_t together : {1, 2, 3, 8}) {
        Framed y(type, rows, cols, 16);
        Tensor mean = Tensor::empty(f32, {rows + 4});
        mean.fill(-77);
        launch(norm, {x, w, y.inner, mean.slice(0, 0, rows)}, with({{"rows", together}, {"cols", tile}}, GetParam()));
        std::string what = std::to_string(rows) + "x" + std::to_string(cols) + " by " + std::to_string(together);
        expectClose(y.inner, want, type == f32 ? 2e-5 : 0x1p-7, what);
        expectClose(mean.slice(0, 0, rows), means, 1e-5, what);
        y.expectFrame(what);
        for (int64_t i = rows; i < rows + 4; ++i)
          ASSERT_EQ(mean.get({i}), -77) << what;
      }
    }
}

TEST_P(CpuRows, NumbersOfRows) {
  for (auto [rows, cols, tile] : {std::array<int64_t, 3>{19, 2048, 2048}, {6, 3000, 4096}}) {
    Tensor x = Tensor::empty(f32, {rows, cols}), target = Tensor::empty(i64, {rows}), want = Tensor::empty(f32, {rows});
    x.fillRandom(3, -4, 4);
    for (int64_t i = 0; i < rows; ++i)
      target.set({i}, static_cast<double>(i * 37 % cols));
    launch(loss, {x, target, want}, with({{"rows", 1}, {"cols", tile}}, "", Target::interpreter));
    for (int64_t together : {1, 4, 5}) {
      Tensor y = Tensor::empty(f32, {rows});
      launch(loss, {x, target, y}, with({{"rows", together}, {"cols", tile}}, GetParam()));
      expectClose(y, want, 1e-5, std::to_string(together));
    }
  }
}

TEST_P(CpuRows, BlocksThatHangOver) {
  for (DType type : {f32, bf16, f16})
    for (auto [rows, cols] : {std::array<int64_t, 2>{5, 300}, {8, 513}, {3, 256}, {9, 1279}}) {
      int64_t blocks = (rows + 3) / 4;
      Tensor x = Tensor::empty(type, {rows, cols}), want = Tensor::empty(type, {rows, cols}),
             sums = Tensor::empty(type, {blocks, cols});
      x.fillRandom(4, -1, 1);
      Params params = {{"rows", 4}, {"cols", 256}};
      launch(columns, {x, want, sums}, with(params, "", Target::interpreter));
      Framed y(type, rows, cols, 3), z(type, blocks, cols, 16);
      launch(columns, {x, y.inner, z.inner}, with(params, GetParam()));
      std::string what = std::to_string(rows) + "x" + std::to_string(cols);
      double unit = type == f32 ? 1e-5 : type == f16 ? 0x1p-10 : 0x1p-7;
      expectClose(y.inner, want, unit, what);
      expectClose(z.inner, sums, unit, what);
      y.expectFrame(what);
      z.expectFrame(what);
    }
}

TEST_P(CpuRows, RowsThatSeeOthers) {
  Tensor x = Tensor::empty(f32, {11, 1024}), want = Tensor::empty(f32, {11, 1024}), y = Tensor::empty(f32, {11, 1024});
  x.fillRandom(5, -1, 1);
  launch(above, {x, want}, with({{"rows", 4}, {"cols", 1024}}, "", Target::interpreter));
  launch(above, {x, y}, with({{"rows", 4}, {"cols", 1024}}, GetParam()));
  expectClose(y, want, 1e-5, "above");
}

TEST_P(CpuRows, WindowsThatBeginElsewhere) {
  for (int64_t cols : {250, 256, 400, 515}) {
    Tensor x = Tensor::empty(f32, {4, cols}), want = Tensor::empty(f32, {4, cols});
    x.fillRandom(6, -1, 1);
    launch(window, {x, want}, with({{"cols", 1024}}, "", Target::interpreter));
    Framed y(f32, 4, cols, 16);
    launch(window, {x, y.inner}, with({{"cols", 1024}}, GetParam()));
    expectClose(y.inner, want, 0, std::to_string(cols));
    y.expectFrame(std::to_string(cols));
  }
}

TEST_P(CpuRows, WindowsThatBeginBeforeTheirViews) {
  for (auto [rows, cols] : {std::array<int64_t, 2>{9, 300}, {17, 1000}, {3, 2048}})
    for (auto [down, right] : {std::array<int64_t, 2>{0, 0}, {-1, -7}, {-3, -64}, {2, 33}}) {
      Tensor x = Tensor::empty(f32, {rows, cols}), want = Tensor::zeros(f32, {rows, cols});
      x.fillRandom(15, -1, 1);
      Params params = {{"rows", 4}, {"cols", 256}};
      launch(shifted, {x, want, down, right}, with(params, "", Target::interpreter));
      Framed y(f32, rows, cols, 16);
      y.inner.copyFrom(Tensor::zeros(f32, {rows, cols}));
      launch(shifted, {x, y.inner, down, right}, with(params, GetParam()));
      std::string what = std::to_string(cols) + ", " + std::to_string(right);
      expectClose(y.inner, want, 0, what);
      y.expectFrame(what);
    }
}

TEST_P(CpuRows, TransposedTilesThatHangOver) {
  for (auto [rows, cols] : {std::array<int64_t, 2>{30, 300}, {16, 255}, {17, 600}}) {
    Tensor x = Tensor::empty(f32, {cols, rows}), want = Tensor::empty(f32, {rows, cols});
    x.fillRandom(7, -1, 1);
    Params params = {{"rows", 16}, {"cols", 256}};
    launch(across, {x, want}, with(params, "", Target::interpreter));
    Framed y(f32, rows, cols, 16);
    launch(across, {x, y.inner}, with(params, GetParam()));
    expectClose(y.inner, want, 0, std::to_string(cols));
    y.expectFrame(std::to_string(cols));
  }
}

TEST_P(CpuRows, MiddleDimensionsThatHangOver) {
  for (DType type : {f32, bf16})
    for (int64_t count : {1, 24, 31}) {
      Tensor x = Tensor::empty(type, {5, count, 64}), c = Tensor::empty(type, {5, 64}),
             want = Tensor::empty(type, {5, count, 64}), y = Tensor::empty(type, {5, count, 64});
      x.fillRandom(11, -1, 1);
      c.fillRandom(12, -1, 1);
      launch(heads, {x, c, want}, with({{"heads", 32}}, "", Target::interpreter));
      launch(heads, {x, c, y}, with({{"heads", 32}}, GetParam()));
      expectClose(y, want, 0, std::to_string(count));
    }
  for (auto [length, width] : {std::array<int64_t, 2>{17, 200}, {32, 64}, {1, 100}}) {
    Tensor x = Tensor::empty(f32, {3, length, width}), want = Tensor::empty(f32, {3, width});
    x.fillRandom(13, -1, 1);
    Params params = {{"length", 32}, {"width", 64}};
    launch(pool, {x, want}, with(params, "", Target::interpreter));
    Framed y(f32, 3, width, 16);
    launch(pool, {x, y.inner}, with(params, GetParam()));
    expectClose(y.inner, want, 1e-5, std::to_string(length));
    y.expectFrame(std::to_string(length));
  }
  for (int64_t edge : {50, 64, 100}) {
    Tensor x = Tensor::empty(f32, {edge, edge}), want = Tensor::empty(f32, {edge, edge});
    x.fillRandom(14, -1, 1);
    launch(symmetric, {x, want}, with({{"edge", 64}}, "", Target::interpreter));
    Framed y(f32, edge, edge, 16);
    launch(symmetric, {x, y.inner}, with({{"edge", 64}}, GetParam()));
    expectClose(y.inner, want, 0, std::to_string(edge));
    y.expectFrame(std::to_string(edge));
  }
}

TEST_P(CpuRows, SumsInOneOrder) {
  // Where a tile hangs over at the bottom only, rows are added up as those of a whole tile are.
  Tensor x = Tensor::empty(f32, {10, 4096}), y = Tensor::empty(f32, {10, 4096}), first = Tensor::empty(f32, {8, 4096});
  x.fillRandom(8, -1, 1);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 4096; ++j)
      x.set({8 + i, j}, x.get({i, j}));
  Params params = {{"rows", 8}, {"cols", 4096}};
  launch(above, {x.slice(0, 0, 8), first}, with(params, GetParam()));
  launch(above, {x, y}, with(params, GetParam()));
  for (int64_t j = 0; j < 4096; ++j)
    ASSERT_EQ(y.get({8, j}), first.get({0, j})) << j;
}

TEST_P(CpuRows, NothingBesideIsRead) {
  for (int64_t cols : {1000, 1024, 1279}) {
    Guarded x(f32, {13, cols}), w(f32, {cols});
    Tensor want = Tensor::empty(f32, {13, cols}), means = Tensor::empty(f32, {13}), y = Tensor::empty(f32, {13, cols}),
           mean = Tensor::empty(f32, {13});
    launch(norm, {x.tensor, w.tensor, want, means}, with({{"rows", 1}, {"cols", 2048}}, "", Target::interpreter));
    launch(norm, {x.tensor, w.tensor, y, mean}, with({{"rows", 4}, {"cols", 2048}}, GetParam()));
    expectClose(y, want, 2e-5, std::to_string(cols));
  }
  Guarded parts(f32, {100, 512}), rows(f32, {3, 17, 200}), many(f32, {5, 31, 64}), factors(f32, {5, 64});
  Tensor want = Tensor::empty(f32, {4, 256}), y = Tensor::empty(f32, {4, 256});
  launch(sliced, {parts.tensor, want}, with({}, "", Target::interpreter));
  launch(sliced, {parts.tensor, y}, with({}, GetParam()));
  expectClose(y, want, 0, "sliced");
  Tensor sums = Tensor::empty(f32, {3, 200}), sum = Tensor::empty(f32, {3, 200});
  Params params = {{"length", 32}, {"width", 64}};
  launch(pool, {rows.tensor, sums}, with(params, "", Target::interpreter));
  launch(pool, {rows.tensor, sum}, with(params, GetParam()));
  expectClose(sum, sums, 1e-5, "pool");
  Tensor scaled = Tensor::empty(f32, {5, 31, 64}), z = Tensor::empty(f32, {5, 31, 64});
  launch(heads, {many.tensor, factors.tensor, scaled}, with({{"heads", 32}}, "", Target::interpreter));
  launch(heads, {many.tensor, factors.tensor, z}, with({{"heads", 32}}, GetParam()));
  expectClose(z, scaled, 0, "heads");
}

TEST_P(CpuRows, LargeResultsThatHangOver) {
  // They go past the cache, and rows of a part of them through it: the same bits either way.
  constexpr int64_t cols = 2016, part = 350; // rows that begin at multiples of a line
  for (DType type : {f32, bf16}) {
    int64_t rows = type == f32 ? 4900 : 9800;
    for (int64_t together : {1, 4}) {
      Tensor x = Tensor::empty(type, {rows, cols}), w = Tensor::empty(type, {cols}),
             y = Tensor::empty(type, {rows, cols}), mean = Tensor::empty(f32, {rows}),
             small = Tensor::empty(type, {part, cols}), means = Tensor::empty(f32, {part});
      x.fillRandom(9, -2, 2);
      w.fillRandom(10, -2, 2);
      y.fill(-77);
      LaunchOptions options = with({{"rows", together}, {"cols", 2048}}, GetParam());
      launch(norm, {x, w, y, mean}, options);
      size_t bytes = static_cast<size_t>(part * cols * static_cast<int64_t>(sizeOf(type)));
      for (int64_t i = 0; i < rows; i += part) {
        launch(norm, {x.slice(0, i, part), w, small, means}, options);
        const char *large = static_cast<const char *>(y.data()) + static_cast<size_t>(i / part) * bytes;
        ASSERT_EQ(std::memcmp(large, small.data(), bytes), 0)
            << nameOf(type) << ", rows from " << i << ", " << together << " together";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuRows, testing::ValuesIn(levels), [](const auto &info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
