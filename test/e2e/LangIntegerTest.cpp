// SPDX-License-Identifier: Apache-2.0
//
// Integer and boolean operators for every type, on all pairs of edge values, against plain C++.
#include "LangSupport.h"

#include <limits>

using namespace tenon;
using namespace tenon::test;

namespace {

using IntegerOperators = OnTarget;

template <class T> std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  constexpr int bits = 8 * sizeof(T);
  return {0, 1, 2, 3, 7, 10, 100, static_cast<T>(bits - 1), static_cast<T>(bits), static_cast<T>(bits + 1),
          static_cast<T>(-1), static_cast<T>(-2), static_cast<T>(-7), L::min(), static_cast<T>(L::min() + 1), L::max(),
          static_cast<T>(L::max() - 1), static_cast<T>(L::max() / 2 + 1), static_cast<T>(0x5a)};
}

template <class T> using Unsigned = std::make_unsigned_t<T>;

// The rules of Operators.h, written out. Small types are promoted by C++, so every result is cut back to T.
template <class T> T wrap(uint64_t value) { return static_cast<T>(static_cast<Unsigned<T>>(value)); }
template <class T> T divide(T a, T b) {
  if (b == 0)
    return 0;
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return wrap<T>(0 - static_cast<uint64_t>(a));
  return static_cast<T>(a / b);
}
template <class T> T remainder(T a, T b) {
  if (b == 0)
    return a;
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return 0;
  return static_cast<T>(a % b);
}
template <class T> T shiftLeft(T a, T b) {
  uint64_t by = static_cast<Unsigned<T>>(b);
  return by >= 8 * sizeof(T) ? T(0) : wrap<T>(static_cast<uint64_t>(a) << by);
}
template <class T> T shiftRight(T a, T b) {
  uint64_t by = static_cast<Unsigned<T>>(b);
  if (by >= 8 * sizeof(T))
    return a < 0 ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> by);
}

template <class T> struct Operation {
  const char *name;
  Tile (*tile)(Tile, Tile);
  T (*plain)(T, T);
};

Tile flag(const Tile &condition, DType type) { return condition.to(type); }

template <class T> const std::vector<Operation<T>> &operations() {
  static const std::vector<Operation<T>> all = {
      {"a + b", [](Tile a, Tile b) { return a + b; }, [](T a, T b) { return wrap<T>(uint64_t(a) + uint64_t(b)); }},
      {"a - b", [](Tile a, Tile b) { return a - b; }, [](T a, T b) { return wrap<T>(uint64_t(a) - uint64_t(b)); }},
      {"a * b", [](Tile a, Tile b) { return a * b; }, [](T a, T b) { return wrap<T>(uint64_t(a) * uint64_t(b)); }},
      {"a / b", [](Tile a, Tile b) { return a / b; }, divide<T>},
      {"a % b", [](Tile a, Tile b) { return a % b; }, remainder<T>},
      {"-a", [](Tile a, Tile) { return -a; }, [](T a, T) { return wrap<T>(0 - uint64_t(a)); }},
      {"a & b", [](Tile a, Tile b) { return a & b; }, [](T a, T b) { return static_cast<T>(a & b); }},
      {"a | b", [](Tile a, Tile b) { return a | b; }, [](T a, T b) { return static_cast<T>(a | b); }},
      {"a ^ b", [](Tile a, Tile b) { return a ^ b; }, [](T a, T b) { return static_cast<T>(a ^ b); }},
      {"~a", [](Tile a, Tile) { return ~a; }, [](T a, T) { return static_cast<T>(~a); }},
      {"a << b", [](Tile a, Tile b) { return a << b; }, shiftLeft<T>},
      {"a >> b", [](Tile a, Tile b) { return a >> b; }, shiftRight<T>},
      {"a == b", [](Tile a, Tile b) { return flag(a == b, a.dtype()); }, [](T a, T b) { return T(a == b); }},
      {"a != b", [](Tile a, Tile b) { return flag(a != b, a.dtype()); }, [](T a, T b) { return T(a != b); }},
      {"a < b", [](Tile a, Tile b) { return flag(a < b, a.dtype()); }, [](T a, T b) { return T(a < b); }},
      {"a <= b", [](Tile a, Tile b) { return flag(a <= b, a.dtype()); }, [](T a, T b) { return T(a <= b); }},
      {"a > b", [](Tile a, Tile b) { return flag(a > b, a.dtype()); }, [](T a, T b) { return T(a > b); }},
      {"a >= b", [](Tile a, Tile b) { return flag(a >= b, a.dtype()); }, [](T a, T b) { return T(a >= b); }},
      {"where(a < b, a, b + 1)", [](Tile a, Tile b) { return where(a < b, a, b + 1); },
       [](T a, T b) { return a < b ? a : wrap<T>(uint64_t(b) + 1); }},
      {"maximum", [](Tile a, Tile b) { return maximum(a, b); }, [](T a, T b) { return std::max(a, b); }},
      {"minimum", [](Tile a, Tile b) { return minimum(a, b); }, [](T a, T b) { return std::min(a, b); }},
      {"abs", [](Tile a, Tile) { return abs(a); }, [](T a, T) { return a < 0 ? wrap<T>(0 - uint64_t(a)) : a; }},
      {"a / 7 + a % 7", [](Tile a, Tile) { return a / 7 + a % 7; },
       [](T a, T) { return wrap<T>(uint64_t(a / T(7)) + uint64_t(a % T(7))); }},
      {"a / 0", [](Tile a, Tile) { return a / 0; }, [](T, T) { return T(0); }},
      {"a % 0", [](Tile a, Tile) { return a % 0; }, [](T a, T) { return a; }},
      {"a << 100", [](Tile a, Tile) { return a << 100; }, [](T a, T) { return shiftLeft<T>(a, 100); }},
      {"a >> 100", [](Tile a, Tile) { return a >> 100; }, [](T a, T) { return shiftRight<T>(a, 100); }},
      {"100 - a", [](Tile a, Tile) { return 100 - a; }, [](T a, T) { return wrap<T>(100 - uint64_t(a)); }},
  };
  return all;
}

template <class T> void checkPairs(Target target, DType type) {
  std::vector<T> values = edges<T>();
  int64_t n = static_cast<int64_t>(values.size() * values.size());
  Tensor x = Tensor::empty(type, {2, n});
  T *a = static_cast<T *>(x.data()), *b = a + n;
  for (int64_t i = 0; i < n; ++i) {
    a[i] = values[i / values.size()];
    b[i] = values[i % values.size()];
  }
  const auto &all = operations<T>();
  Tensor y = compute(target, x, type, static_cast<int64_t>(all.size()), n, [&](const std::vector<Tile> &in) {
    std::vector<Tile> out;
    for (const auto &operation : all)
      out.push_back(operation.tile(in[0], in[1]));
    return out;
  });
  const T *got = static_cast<const T *>(y.data());
  for (size_t o = 0; o < all.size(); ++o)
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(+got[o * n + i], +all[o].plain(a[i], b[i]))
          << all[o].name << " of " << nameOf(type) << " with a = " << +a[i] << ", b = " << +b[i];
}

TEST_P(IntegerOperators, I8) { checkPairs<int8_t>(GetParam(), i8); }
TEST_P(IntegerOperators, I16) { checkPairs<int16_t>(GetParam(), i16); }
TEST_P(IntegerOperators, I32) { checkPairs<int32_t>(GetParam(), i32); }
TEST_P(IntegerOperators, I64) { checkPairs<int64_t>(GetParam(), i64); }
TEST_P(IntegerOperators, U8) { checkPairs<uint8_t>(GetParam(), u8); }
TEST_P(IntegerOperators, U16) { checkPairs<uint16_t>(GetParam(), u16); }
TEST_P(IntegerOperators, U32) { checkPairs<uint32_t>(GetParam(), u32); }
TEST_P(IntegerOperators, U64) { checkPairs<uint64_t>(GetParam(), u64); }

TEST_P(IntegerOperators, Booleans) {
  Tensor x = Tensor::empty(boolean, {2, 4});
  for (int64_t i = 0; i < 4; ++i) {
    x.setInt({0, i}, i / 2);
    x.setInt({1, i}, i % 2);
  }
  Tensor y = compute(GetParam(), x, boolean, 14, 4, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    Tile a = in[0], b = in[1];
    return {a & b,  a | b,  a ^ b,  ~a,     !a,           a == b,       a != b,
            a < b,  a >= b, a & true, a | false, maximum(a, b), minimum(a, b), where(a, b, !b)};
  });
  auto plain = [](int row, bool a, bool b) {
    switch (row) {
    case 0: case 12: return a && b;
    case 1: case 11: return a || b;
    case 2: case 6: return a != b;
    case 3: case 4: return !a;
    case 5: case 13: return a == b;
    case 7: return !a && b;
    case 8: return a || !b;
    default: return a;
    }
  };
  for (int row = 0; row < 14; ++row)
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(y.getInt({row, i}), plain(row, i / 2, i % 2)) << "row " << row << ", case " << i;
}

// A byte other than 0 and 1 in a boolean tensor is true, and is written back as 1.
TEST_P(IntegerOperators, BooleanBytes) {
  Tensor x = Tensor::empty(boolean, {1, 4});
  const uint8_t bytes[] = {0, 1, 2, 255};
  std::copy_n(bytes, 4, static_cast<uint8_t *>(x.data()));
  Tensor y = compute(GetParam(), x, boolean, 2, 4, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    return {in[0], in[0] & true};
  });
  const auto *got = static_cast<const uint8_t *>(y.data());
  EXPECT_EQ(std::vector<int>(got, got + 8), (std::vector<int>{0, 1, 1, 1, 0, 1, 1, 1}));
}

// Literals up to the ends of the 64-bit types.
TEST_P(IntegerOperators, ExtremeLiterals) {
  Tensor x = Tensor::zeros(u64, {1, 3});
  Tensor y = compute(GetParam(), x, u64, 3, 3, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    return {in[0] + 0xffffffffffffffffull, in[0] | (1ull << 63), full(u64, {3}, 0x8000000000000001ull)};
  });
  EXPECT_EQ(static_cast<uint64_t>(y.getInt({0, 1})), 0xffffffffffffffffull);
  EXPECT_EQ(static_cast<uint64_t>(y.getInt({1, 0})), 1ull << 63);
  EXPECT_EQ(static_cast<uint64_t>(y.getInt({2, 2})), 0x8000000000000001ull);

  Tensor s = Tensor::zeros(i64, {1, 1});
  Tensor t = compute(GetParam(), s, i64, 2, 1, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    return {in[0] + INT64_MIN, in[0] + INT64_MAX};
  });
  EXPECT_EQ(intsOf(t), (std::vector<int64_t>{INT64_MIN, INT64_MAX}));
}

TEST_P(IntegerOperators, Cdiv) {
  Tensor x = Tensor::empty(i32, {2, 25});
  for (int64_t i = 0; i < 25; ++i) {
    x.setInt({0, i}, i);
    x.setInt({1, i}, 1 + i % 5);
  }
  Tensor y = compute(GetParam(), x, i32, 2, 25, [](const std::vector<Tile> &in) -> std::vector<Tile> {
    return {cdiv(in[0], in[1]), cdiv(in[0], 4)};
  });
  for (int64_t i = 0; i < 25; ++i) {
    int64_t by = 1 + i % 5;
    EXPECT_EQ(y.getInt({0, i}), (i + by - 1) / by);
    EXPECT_EQ(y.getInt({1, i}), (i + 3) / 4);
  }
}

// An Index is a signed 64-bit integer wherever it meets tiles.
TEST_P(IntegerOperators, IndexArithmetic) {
  Kernel kernel("indices(y, n)", [](View y, Index n) {
    Index i = grid(3);
    Tile lanes = iota(i64, {4}, 0);
    Tile values = where(lanes < i, n, -n) + lanes * i + (n / 3) * 100 + n % 0 + (i << 70);
    y.store({i, 0}, reshape(values, {1, 4}));
    y.store({i, 4}, i);                                  // a scalar is a tile of one element
    y.store({i, 5}, broadcast(minimum(i, n), {1, 2}));
    y.store({i, 7}, reshape(abs(-i) + ~n, {1, 1}));
    y.store({i, 8}, reshape(where(lanes == 1, i, n), {1, 4}));
  });
  Tensor y = Tensor::zeros(i64, {3, 12});
  run(kernel, {y, -7});
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t l = 0; l < 4; ++l) {
      EXPECT_EQ(y.getInt({i, l}), (l < i ? -7 : 7) + l * i - 200 - 7);
      EXPECT_EQ(y.getInt({i, 8 + l}), l == 1 ? i : -7);
    }
    EXPECT_EQ(y.getInt({i, 4}), i);
    EXPECT_EQ(y.getInt({i, 5}), -7);
    EXPECT_EQ(y.getInt({i, 6}), -7);
    EXPECT_EQ(y.getInt({i, 7}), i + 6);
  }
}

TENON_ON_EACH_TARGET(IntegerOperators);

} // namespace
