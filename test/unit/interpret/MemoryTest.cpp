// SPDX-License-Identifier: Apache-2.0
//
// Views, bounds, gather, scatter, atomics. Every buffer that is written stands between guard zones.
#include "test/unit/interpret/Harness.h"

namespace tenon::interpret {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
constexpr int64_t min64 = std::numeric_limits<int64_t>::min(), max64 = std::numeric_limits<int64_t>::max();

class Memory : public InterpreterTest {
protected:
  /// Loads a 2x3 tile at (row, column) of a view, with padding -1.
  Floats load(const Arguments &view, int64_t row, int64_t column) {
    Floats out(6, 99);
    Arguments arguments = view;
    arguments.scalar(row).scalar(column).view(out, 2, 3);
    EXPECT_EQ(launch("%x: !tile.view<2, f32>, %i: index, %j: index, %y: !tile.view<2, f32>", R"(
        %c0 = arith.constant 0 : index
        %pad = arith.constant -1.0 : f32
        %t = tile.load %x[%i, %j] padding %pad : f32 : !tile.view<2, f32> -> tensor<2x3xf32>
        tile.store %t, %y[%c0, %c0] : tensor<2x3xf32>, !tile.view<2, f32>)", arguments), "");
    return out;
  }
};

TEST_F(Memory, LoadBounds) {
  Floats x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; // 3 x 4
  Arguments view;
  view.view(x, 3, 4);
  EXPECT_EQ(load(view, 0, 0), (Floats{1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(load(view, 1, 1), (Floats{6, 7, 8, 10, 11, 12}));
  EXPECT_EQ(load(view, 2, 2), (Floats{11, 12, -1, -1, -1, -1}));
  EXPECT_EQ(load(view, -1, -2), (Floats{-1, -1, -1, -1, -1, 1}));
  Floats outside(6, -1);
  EXPECT_EQ(load(view, 3, 0), outside);
  EXPECT_EQ(load(view, 0, 4), outside);
  EXPECT_EQ(load(view, -2, 0), outside);
  EXPECT_EQ(load(view, max64, 0), outside);
  EXPECT_EQ(load(view, 0, max64 - 1), outside);
  EXPECT_EQ(load(view, min64, min64), outside);
}

TEST_F(Memory, StridedTransposedAndEmptyViews) {
  Floats x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(load(Arguments().view(x.data(), {4, 3}, {1, 4}), 1, 0), (Floats{2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(load(Arguments().view(x.data(), {2, 2}, {6, 2}), 0, 0), (Floats{1, 3, -1, 7, 9, -1}));
  EXPECT_EQ(load(Arguments().view(x.data(), {2, 3}, {0, 1}), 0, 0), (Floats{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(load(Arguments().view(x.data() + 11, {2, 3}, {-3, -1}), 0, 0), (Floats{12, 11, 10, 9, 8, 7}));
  EXPECT_EQ(load(Arguments().view<float>(nullptr, {0, 3}, {3, 1}), 0, 0), Floats(6, -1));
  // A view that claims more than 2^62 elements: only those asked for are touched.
  EXPECT_EQ(load(Arguments().view(x.data(), {max64, max64}, {4, 1}), 0, 0), (Floats{1, 2, 3, 5, 6, 7}));
}

TEST_F(Memory, DefaultPaddingIsZero) {
  Ints x = {7}, y(3, 99);
  EXPECT_EQ(launch("%x: !tile.view<1, i32>, %y: !tile.view<1, i32>", R"(
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%c0] : !tile.view<1, i32> -> tensor<3xi32>
      tile.store %t, %y[%c0] : tensor<3xi32>, !tile.view<1, i32>)", Arguments().view(x).view(y)), "");
  EXPECT_EQ(y, (Ints{7, 0, 0}));
}

TEST_F(Memory, StoreDropsWhatIsOutside) {
  auto store = [&](int64_t row, int64_t column) {
    Floats memory(20, 0); // the view is the 2 x 3 in the middle of 4 x 5
    EXPECT_EQ(launch("%y: !tile.view<2, f32>, %i: index, %j: index", R"(
        %t = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
        tile.store %t, %y[%i, %j] : tensor<2x2xf32>, !tile.view<2, f32>)",
                     Arguments().view(memory.data() + 6, {2, 3}, {5, 1}).scalar(row).scalar(column)), "");
    return memory;
  };
  EXPECT_EQ(store(0, 0), (Floats{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(store(1, 2), (Floats{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(store(-1, -1), (Floats{0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  for (int64_t far : {int64_t(3), int64_t(-2), max64, min64}) {
    EXPECT_EQ(store(far, 0), Floats(20, 0));
    EXPECT_EQ(store(0, far), Floats(20, 0));
  }
}

TEST_F(Memory, BooleansAreBytes) {
  std::vector<uint8_t> x = {0, 1, 2, 255}, y(6, 77);
  EXPECT_EQ(launch("%x: !tile.view<1, i1>, %y: !tile.view<1, i1>", R"(
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      %t = tile.load %x[%c0] padding %true : i1 : !tile.view<1, i1> -> tensor<5xi1>
      tile.store %t, %y[%c0] : tensor<5xi1>, !tile.view<1, i1>)", Arguments().view(x).view(y)), "");
  EXPECT_EQ(y, (std::vector<uint8_t>{0, 1, 1, 1, 1, 77}));
}

TEST_F(Memory, CopyKeepsEveryBit) {
  // A signalling NaN with a payload goes through load and store unchanged.
  std::vector<uint32_t> x = {0xffa12345, 0x7f800001}, y(2);
  EXPECT_EQ(launch("%x: !tile.view<1, f32>, %y: !tile.view<1, f32>", R"(
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<2xf32>
      tile.store %t, %y[%c0] : tensor<2xf32>, !tile.view<1, f32>)", Arguments().view(x).view(y)), "");
  EXPECT_EQ(x, y);
}

TEST_F(Memory, InPlaceInProgramOrder) {
  Floats x = {1, 2, 3};
  EXPECT_EQ(launch("%x: !tile.view<1, f32>", R"(
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<2xf32>
      tile.store %t, %x[%c1] : tensor<2xf32>, !tile.view<1, f32>
      %u = tile.load %x[%c1] : !tile.view<1, f32> -> tensor<2xf32>
      tile.store %u, %x[%c0] : tensor<2xf32>, !tile.view<1, f32>)", Arguments().view(x)), "");
  EXPECT_EQ(x, (Floats{1, 2, 2}));
}

TEST_F(Memory, Size) {
  std::vector<int64_t> y(1);
  EXPECT_EQ(launch("%x: !tile.view<3, i8>, %y: !tile.view<1, i64>", R"(
      %c0 = arith.constant 0 : index
      %a = tile.size %x, 0 : !tile.view<3, i8>
      %b = tile.size %x, 2 : !tile.view<3, i8>
      %s = arith.muli %a, %b : index
      %i = tile.cast %s : index -> i64
      %t = tile.splat %i : i64 -> tensor<1xi64>
      tile.store %t, %y[%c0] : tensor<1xi64>, !tile.view<1, i64>)",
                   Arguments().view<char>(nullptr, {int64_t(1) << 33, 5, 6}, {1, 1, 1}).view(y)), "");
  EXPECT_EQ(y[0], 6 * (int64_t(1) << 33));
}

TEST_F(Memory, GatherAndScatterWithMasks) {
  Floats x = {1, 2, 3, 4, 5, 6}, y(8, 0); // x is 2 x 3
  EXPECT_EQ(launch("%x: !tile.view<2, f32>, %y: !tile.view<1, f32>", R"(
      %rows = arith.constant dense<[0, 1, 1, -1, 2, 0]> : tensor<6xi32>
      %columns = arith.constant dense<[0, 2, 0, 0, 0, 9223372036854775807]> : tensor<6xi64>
      %mask = arith.constant dense<[true, true, false, true, true, true]> : tensor<6xi1>
      %pad = arith.constant -1.0 : f32
      %g = tile.gather %x[%rows, %columns : tensor<6xi32>, tensor<6xi64>] mask %mask : tensor<6xi1>
          padding %pad : f32 : !tile.view<2, f32> -> tensor<6xf32>
      %to = arith.constant dense<[5, 4, 3, 2, 6, -1]> : tensor<6xi32>
      tile.scatter %g, %y[%to : tensor<6xi32>] mask %mask : tensor<6xi1> : tensor<6xf32>, !tile.view<1, f32>)",
                   Arguments().view(x, 2, 3).view(y.data() + 1, {6}, {1})), "");
  EXPECT_EQ(y, (Floats{0, 0, 0, -1, 0, 6, 1, 0}));
  EXPECT_EQ(launch("%x: !tile.view<2, f32>, %y: !tile.view<1, f32>", R"(
      %c0 = arith.constant 0 : index
      %i = arith.constant dense<[[1], [2]]> : tensor<2x1xi32>
      %g = tile.gather %x[%i, %i : tensor<2x1xi32>, tensor<2x1xi32>] : !tile.view<2, f32> -> tensor<2x1xf32>
      %r = tile.reshape %g : tensor<2x1xf32> -> tensor<2xf32>
      tile.store %r, %y[%c0] : tensor<2xf32>, !tile.view<1, f32>)", Arguments().view(x, 2, 3).view(y)), "");
  EXPECT_EQ(y[0], 5);
  EXPECT_EQ(y[1], 0);
}

class Atomics : public InterpreterTest {
protected:
  /// Updates elements 0, 1, 1, 7 (outside) and 2 (masked off) with `values`; returns memory, then the old values.
  template <class T>
  std::vector<T> update(const std::string &kind, const std::string &type, const std::string &values, std::vector<T> x,
                        const std::string &flags = "") {
    std::vector<T> old(5, T(99));
    std::string tile = "tensor<5x" + type + ">", view = "!tile.view<1, " + type + ">";
    EXPECT_EQ(launch("%x: " + view + ", %y: " + view,
                     "%c0 = arith.constant 0 : index\n"
                     "%i = arith.constant dense<[0, 1, 1, 7, 2]> : tensor<5xi64>\n"
                     "%m = arith.constant dense<[true, true, true, true, false]> : tensor<5xi1>\n"
                     "%v = arith.constant dense<" + values + "> : " + tile + "\n"
                     "%o = tile.atomic_rmw " + kind + " %v, %x[%i : tensor<5xi64>] mask %m : tensor<5xi1> " + flags +
                         " : " + tile + ", " + view + "\ntile.store %o, %y[%c0] : " + tile + ", " + view,
                     Arguments().view(x).view(old)),
              "");
    x.insert(x.end(), old.begin(), old.end());
    return x;
  }
};

TEST_F(Atomics, ReadModifyWrite) {
  Ints x = {1, -2, 3};
  EXPECT_EQ(update("add", "i32", "[1, 2, 3, 4, 5]", x), (Ints{2, 3, 3, 1, -2, 0, 0, 0}));
  EXPECT_EQ(update("max", "i32", "[-1, -3, 5, 4, 5]", x), (Ints{1, 5, 3, 1, -2, -2, 0, 0}));
  EXPECT_EQ(update("max", "i32", "[-1, 3, 5, 4, 5]", x, "unsigned"), (Ints{-1, -2, 3, 1, -2, -2, 0, 0}));
  EXPECT_EQ(update("min", "i32", "[-1, -3, 5, 4, 5]", x), (Ints{-1, -3, 3, 1, -2, -3, 0, 0}));
  EXPECT_EQ(update("min", "i32", "[-1, 3, 5, 4, 5]", x, "unsigned"), (Ints{1, 3, 3, 1, -2, 3, 0, 0}));
  EXPECT_EQ(update("exchange", "i32", "[7, 8, 9, 4, 5]", x), (Ints{7, 9, 3, 1, -2, 8, 0, 0}));
  EXPECT_EQ(update("add", "i32", "[2147483647, 0, 0, 0, 0]", x)[0], std::numeric_limits<int32_t>::min());
  std::vector<int64_t> wide = {max64, 0, 0};
  EXPECT_EQ(update("add", "i64", "[1, 2, 3, 4, 5]", wide), (std::vector<int64_t>{min64, 5, 0, max64, 0, 2, 0, 0}));
}

TEST_F(Atomics, Floats) {
  expectSame(update("add", "f32", "[0.5, 2.0, 3.0, 4.0, 5.0]", Floats{1, 2, 3}), {1.5f, 7, 3, 1, 2, 4, 0, 0});
  expectSame(update("max", "f32", "[0x7FC00000, 2.0, 3.0, 4.0, 5.0]", Floats{1, nan32, 3}),
             {nan32, nan32, 3, 1, nan32, nan32, 0, 0});
  expectSame(update("min", "f32", "[-0.0, 2.0, 3.0, 4.0, 5.0]", Floats{0, 9, 3}), {-0.0f, 2, 3, 0, 9, 2, 0, 0});
  EXPECT_EQ(update("exchange", "f64", "[0.5, 2.0, 3.0, 4.0, 5.0]", std::vector<double>{1, 2, 3}),
            (std::vector<double>{0.5, 3, 3, 1, 2, 2, 0, 0}));
}

TEST_F(Atomics, CompareExchangeIsBitwise) {
  Floats x = {0.0f, -0.0f, nan32, 4, 5}, old(6, 99);
  EXPECT_EQ(launch("%x: !tile.view<1, f32>, %y: !tile.view<1, f32>", R"(
      %c0 = arith.constant 0 : index
      %i = tile.iota 0 : tensor<6xi32>
      %e = arith.constant dense<[0.0, 0.0, 0x7FC00000, 4.0, 5.0, 0.0]> : tensor<6xf32>
      %d = arith.constant dense<7.0> : tensor<6xf32>
      %m = arith.constant dense<[true, true, true, true, false, true]> : tensor<6xi1>
      %o = tile.atomic_cas %e, %d, %x[%i : tensor<6xi32>] mask %m : tensor<6xi1> : tensor<6xf32>, !tile.view<1, f32>
      tile.store %o, %y[%c0] : tensor<6xf32>, !tile.view<1, f32>)", Arguments().view(x).view(old)), "");
  expectSame(x, {7, -0.0f, 7, 7, 5});
  expectSame(old, {0, -0.0f, nan32, 4, 0, 0});
}

} // namespace
} // namespace tenon::interpret
