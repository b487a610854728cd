// SPDX-License-Identifier: Apache-2.0
//
// Views of any rank and stride; tiles that overhang them, or lie wholly outside, on every side. Outputs stand between
// guard zones, so that a store past the view shows.
#include "LangSupport.h"

#include <sys/mman.h>

using namespace tenon;
using namespace tenon::test;

namespace {

using Bounds = OnTarget;

constexpr int64_t guard = 64;

/// A tensor in the middle of a larger buffer filled with a marker.
struct Guarded {
  Tensor all, view;
  Guarded(DType type, IndexList sizes) : all(Tensor::empty(type, {0})) {
    int64_t elements = 1;
    for (int64_t size : sizes)
      elements *= size;
    all = Tensor::empty(type, {elements + 2 * guard});
    all.fill(-77);
    view = all.slice(0, guard, elements).reshape(sizes);
  }
  void expectUntouched() const {
    for (int64_t i = 0; i < guard; ++i) {
      ASSERT_EQ(all.get({i}), -77) << "written before the view";
      ASSERT_EQ(all.get({all.size(0) - 1 - i}), -77) << "written past the view";
    }
  }
};

// y[whole tile] = x at an offset, then x's copy z gets the tile stored back at the offset.
Kernel window1("window1(x, y, z, o0, t0)", [](View x, View y, View z, Index o0, Param t0) {
  Tile t = x.load({o0}, {t0}, 9);
  y.store({0}, t);
  z.store({o0}, t + 100);
});
Kernel window2("window2(x, y, z, o0, o1, t0, t1)", [](View x, View y, View z, Index o0, Index o1, Param t0, Param t1) {
  Tile t = x.load({o0, o1}, {t0, t1}, 9);
  y.store({0, 0}, t);
  z.store({o0, o1}, t + 100);
});
Kernel window3("window3(x, y, z, o0, o1, o2, t0, t1, t2)",
               [](View x, View y, View z, Index o0, Index o1, Index o2, Param t0, Param t1, Param t2) {
                 Tile t = x.load({o0, o1, o2}, {t0, t1, t2}, 9);
                 y.store({0, 0, 0}, t);
                 z.store({o0, o1, o2}, t + 100);
               });
Kernel window5("window5(x, y, z, o0, o1, o2, o3, o4, t0, t1, t2, t3, t4)",
               [](View x, View y, View z, Index o0, Index o1, Index o2, Index o3, Index o4, Param t0, Param t1,
                  Param t2, Param t3, Param t4) {
                 Tile t = x.load({o0, o1, o2, o3, o4}, {t0, t1, t2, t3, t4}, 9);
                 y.store({0, 0, 0, 0, 0}, t);
                 z.store({o0, o1, o2, o3, o4}, t + 100);
               });

/// Loads a tile of shape `tile` at `offset` of x and stores it (plus 100) at `offset` of z, a view like x in memory of
/// its own; checks every element of both and the guard zones.
void checkWindow(const LaunchOptions &base, const Tensor &x, const Guarded &memory, const Tensor &z,
                 const std::vector<int64_t> &offset, const std::vector<int64_t> &tile) {
  const Kernel *kernels[] = {nullptr, &window1, &window2, &window3, nullptr, &window5};
  size_t rank = offset.size();
  memory.view.fill(-55);
  Guarded y(x.dtype(), tile);
  Arguments arguments = {x, y.view, z};
  LaunchOptions options = base;
  for (size_t d = 0; d < rank; ++d) {
    arguments.push_back(offset[d]);
    options.params["t" + std::to_string(d)] = tile[d];
  }
  launch(*kernels[rank], arguments, options);

  std::string place = x.str() + " at";
  for (int64_t o : offset)
    place += " " + std::to_string(o);
  std::vector<int64_t> at(rank);
  auto inside = [&] {
    for (size_t d = 0; d < rank; ++d)
      if (at[d] < 0 || at[d] >= x.size(d))
        return false;
    return true;
  };
  bool failed = false;
  forEachIndex(tile, [&](const std::vector<int64_t> &i) {
    for (size_t d = 0; d < rank; ++d)
      at[d] = offset[d] + i[d];
    failed |= y.view.get(i) != (inside() ? x.get(at) : 9);
  });
  EXPECT_FALSE(failed) << "load from " << place;
  failed = false;
  forEachIndex(x.sizes(), [&](const std::vector<int64_t> &i) {
    bool covered = true;
    for (size_t d = 0; d < rank; ++d)
      covered &= i[d] >= offset[d] && i[d] < offset[d] + tile[d];
    failed |= z.get(i) != (covered ? x.get(i) + 100 : -55);
  });
  EXPECT_FALSE(failed) << "store to " << place;
  y.expectUntouched();
  memory.expectUntouched();
}

TEST_P(Bounds, Rank1EverySide) {
  Tensor x = counting(f32, {37});
  Guarded z(f32, {37});
  for (int64_t tile : {1, 5, 16, 24, 37, 64})
    for (int64_t offset : {-1000, -64, -17, -1, 0, 1, 20, 36, 37, 38, 5000})
      checkWindow(options(), x, z, z.view, {offset}, {tile});
}

TEST_P(Bounds, EveryElementType) {
  for (DType type : {f64, f16, bf16, i64, i32, i16}) {
    Tensor x = counting(type, {13, 5});
    Guarded z(type, {13, 5});
    for (int64_t offset : {-3, 0, 9})
      checkWindow(options(), x, z, z.view, {offset, -1}, {7, 6});
  }
}

// Bytes, halves and booleans: the narrow types have code of their own.
TEST_P(Bounds, NarrowTypesAndPadding) {
  Kernel kernel("narrow(x, y, o)", [](View x, View y, Index o) {
    DType type = x.dtype();
    Tile t = type == boolean ? x.load({o}, {40}, true) : x.load({o}, {40}, 3);
    y.store({o + 2}, t);
    y.store({0}, x.load({o}, {1}));
  });
  for (DType type : allDTypes)
    for (int64_t offset : {-60, -39, -5, 0, 3, 40, 80}) {
      Tensor x = Tensor::empty(type, {67}), y = Tensor::zeros(type, {67});
      x.fillRandom(6, 0, type == boolean ? 1 : 4);
      std::vector<double> expected(67);
      for (int64_t i = 0; i < 67; ++i) {
        int64_t from = i - 2;
        if (from >= offset && from < offset + 40)
          expected[i] = from < 0 ? (type == boolean ? 1 : 3) : x.get({from});
      }
      expected[0] = offset >= 0 && offset < 67 ? x.get({offset}) : 0;
      run(kernel, {x, y, offset});
      EXPECT_EQ(valuesOf(y), expected) << nameOf(type) << " at " << offset;
    }
}

TEST_P(Bounds, Rank2Strides) {
  Tensor base = counting(f32, {24, 30});
  struct Case {
    const char *name;
    std::function<Tensor(const Tensor &)> view;
  };
  const Case cases[] = {
      {"transposed", [](const Tensor &t) { return t.transpose({1, 0}); }},
      {"sliced", [](const Tensor &t) { return t.slice(0, 3, 15).slice(1, 7, 11); }},
      {"step 2", [](const Tensor &t) { return t.slice(0, 1, 9, 2).slice(1, 0, 15, 2); }},
      {"backwards", [](const Tensor &t) { return t.slice(0, 23, 20, -1).slice(1, 29, 14, -2); }},
      {"transposed step 3", [](const Tensor &t) { return t.transpose({1, 0}).slice(0, 2, 9, 3); }},
      {"one column", [](const Tensor &t) { return t.slice(1, 4, 1); }},
      {"one row", [](const Tensor &t) { return t.slice(0, 4, 1); }},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(c.name);
    Guarded memory(f32, {24, 30});
    Tensor x = c.view(base), z = c.view(memory.view);
    for (std::vector<int64_t> offset : {std::vector<int64_t>{0, 0}, {-2, 3}, {5, -4}, {8, 8}, {-50, 0}, {0, 50}})
      checkWindow(options(), x, memory, z, offset, {7, 12});
  }
}

TEST_P(Bounds, Rank3And5) {
  Tensor x = counting(f32, {5, 6, 7});
  Guarded z(f32, {5, 6, 7});
  for (std::vector<int64_t> offset : {std::vector<int64_t>{0, 0, 0}, {-1, 2, 3}, {3, -2, -1}, {4, 5, 6}, {0, 6, 0}})
    checkWindow(options(), x, z, z.view, offset, {3, 4, 5});
  Tensor xt = x.transpose({2, 0, 1});
  checkWindow(options(), xt, z, z.view.transpose({2, 0, 1}), {1, -1, 2}, {3, 4, 5});

  Tensor x5 = counting(f32, {3, 2, 4, 3, 5});
  Guarded z5(f32, {3, 2, 4, 3, 5});
  for (std::vector<int64_t> offset : {std::vector<int64_t>{0, 0, 0, 0, 0}, {-1, 1, 2, -1, 3}, {2, 0, -3, 1, -4}})
    checkWindow(options(), x5, z5, z5.view, offset, {2, 2, 4, 3, 6});
  std::vector<int64_t> reversed = {4, 3, 2, 1, 0};
  checkWindow(options(), x5.transpose(reversed), z5, z5.view.transpose(reversed), {-1, 1, 2, 0, 1}, {6, 2, 3, 2, 2});
}

TEST_P(Bounds, Rank4) {
  Kernel kernel("rank4(x, y)", [](View x, View y) {
    Index i = grid(x.size(0));
    Tile t = x.load({i, -1, 1, 2}, {1, 4, 3, 3}, -1);
    y.store({0, 0, 0, i}, transpose(t, {1, 2, 3, 0}));
  });
  Tensor x = counting(i32, {3, 2, 3, 4}), y = Tensor::zeros(i32, {4, 3, 3, 3});
  run(kernel, {x, y});
  forEachIndex(y.sizes(), [&](const std::vector<int64_t> &i) {
    int64_t b = i[0] - 1, c = i[1] + 1, d = i[2] + 2;
    bool inside = b >= 0 && b < 2 && c < 3 && d < 4;
    EXPECT_EQ(y.getInt(i), inside ? x.getInt({i[3], b, c, d}) : -1);
  });
}

// A stride of zero repeats one row or one element.
TEST_P(Bounds, ZeroStride) {
  Kernel kernel("copy(x, y)", [](View x, View y) { y.store({0, 0}, x.load({-1, -2}, {6, 20}, 5)); });
  Tensor row = counting(f32, {16});
  for (auto [s0, s1] : {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {0, 0}}) {
    Tensor x = Tensor::borrow(row.data(), row.bufferBytes(), f32, {4, 12}, {s0, s1});
    Tensor y = Tensor::zeros(f32, {6, 20});
    run(kernel, {x, y});
    for (int64_t i = 0; i < 6; ++i)
      for (int64_t j = 0; j < 20; ++j) {
        bool inside = i >= 1 && i < 5 && j >= 2 && j < 14;
        EXPECT_EQ(y.get({i, j}), inside ? (i - 1) * s0 + (j - 2) * s1 : 5) << i << "," << j;
      }
  }
}

TEST_P(Bounds, EmptyViews) {
  Kernel kernel("copy(x, y)", [](View x, View y) {
    y.store({0, 0}, x.load({0, 0}, {2, 4}, 3) + x.at({0, 0}));
    x.store({0, 0}, zeros(f32, {2, 4}));
  });
  Tensor y = Tensor::zeros(f32, {2, 4});
  for (Tensor x : {Tensor::zeros(f32, {0, 4}), Tensor::zeros(f32, {4, 0})}) {
    run(kernel, {x, y});
    EXPECT_EQ(valuesOf(y), std::vector<double>(8, 3));
  }
}

// A 1 x 131072 tile, and a tile of one element, over a row that is a little shorter.
TEST_P(Bounds, LongRow) {
  Kernel kernel("row(x, y, z)", [](View x, View y, View z) {
    Tile t = x.load({0, 0}, {1, 131072}, -1);
    y.store({0, 0}, t * 2);
    z.store({0, 0}, max(t, 1) + x.load({0, 130000}, {1, 1}));
  });
  Tensor x = counting(f32, {1, 131000}), z = Tensor::zeros(f32, {1, 1});
  Guarded y(f32, {1, 131000});
  run(kernel, {x, y.view, z});
  bool same = true;
  for (int64_t j = 0; j < 131000; ++j)
    same &= y.view.get({0, j}) == 2.0 * j;
  EXPECT_TRUE(same);
  EXPECT_EQ(z.get({0, 0}), 130999 + 130000);
  y.expectUntouched();
}

// Offsets near the ends of 64 bits are far outside, not somewhere inside.
TEST_P(Bounds, HugeOffsets) {
  Kernel kernel("far(x, y, o)", [](View x, View y, Index o) {
    y.store({0}, x.load({o}, {8}, 3));
    x.store({o}, zeros(f32, {8}));
  });
  for (int64_t offset : {INT64_MIN, INT64_MIN + 4, INT64_MAX, INT64_MAX - 3, INT64_MAX - 8, int64_t(1) << 62,
                         int64_t(1) << 32, -(int64_t(1) << 32), (int64_t(1) << 61) + 1}) {
    Tensor x = counting(f32, {16}), y = Tensor::zeros(f32, {8});
    run(kernel, {x, y, offset});
    EXPECT_EQ(valuesOf(y), std::vector<double>(8, 3)) << offset;
    EXPECT_EQ(valuesOf(x), valuesOf(counting(f32, {16}))) << offset;
  }
}

// More than 2^32 elements, of which a few pages are touched.
TEST_P(Bounds, ViewsBeyond32Bits) {
  constexpr int64_t rows = 3, stride = (int64_t(1) << 32) + 3, size = 2 * stride + 1000;
  void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto *bytes = static_cast<uint8_t *>(memory);
  {
    Kernel byRow("rows(x, y)", [](View x, View y) {
      Index row = grid(x.size(0));
      Tile t = x.load({row, 0}, {1, 64});
      y.store({row, 0}, t);
      x.store({row, 100}, t + 1);
    });
    Tensor x = Tensor::borrow(memory, size, u8, {rows, 1000}, {stride, 1}), y = Tensor::zeros(u8, {rows, 64});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < 64; ++j)
        bytes[r * stride + j] = static_cast<uint8_t>(50 * r + j);
    run(byRow, {x, y});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < 64; ++j) {
        ASSERT_EQ(y.getInt({r, j}), 50 * r + j);
        ASSERT_EQ(bytes[r * stride + 100 + j], 50 * r + j + 1);
      }

    // One dimension of more than 2^32 elements: by offset, by gather, and by a transposed (strided) view.
    Kernel flat("flat(x, y, o)", [](View x, View y, Index o) {
      y.store({0}, x.load({o}, {64}, 7));
      y.store({64}, x.gather({iota(i64, {64}, 0) + o}, true, 7));
      x.scatter({iota(i64, {64}, 0) + o + 200}, full(u8, {64}, 3));
    });
    Tensor line = Tensor::borrow(memory, size, u8, {size}), z = Tensor::zeros(u8, {128});
    run(flat, {line, z, 2 * stride});
    for (int64_t j = 0; j < 64; ++j) {
      ASSERT_EQ(z.getInt({j}), 100 + j);
      ASSERT_EQ(z.getInt({64 + j}), 100 + j);
      ASSERT_EQ(bytes[2 * stride + 200 + j], 3);
    }
    run(flat, {line, z, size - 32}); // half of it overhangs
    ASSERT_EQ(z.getInt({31}), 0);
    ASSERT_EQ(z.getInt({32}), 7);
    ASSERT_EQ(z.getInt({64 + 31}), 0);
    ASSERT_EQ(z.getInt({64 + 32}), 7);

    Kernel columns("columns(x, y)", [](View x, View y) { y.store({0, 0}, x.load({0, 0}, {4, 4}, 9)); });
    Tensor w = Tensor::zeros(u8, {4, 4});
    run(columns, {x.transpose({1, 0}), w});
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 4; ++j)
        ASSERT_EQ(w.getInt({i, j}), j < 3 ? 50 * j + i : 9);
  }
  munmap(memory, size);
}

TENON_ON_EACH_TARGET(Bounds);

} // namespace
