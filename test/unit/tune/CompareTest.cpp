// SPDX-License-Identifier: Apache-2.0
//
// Comparing what candidates left: by the host, and by the kernels that a device would run.
#include "tenon/tune/Compare.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace tenon;
using namespace tenon::tuning;

namespace {

LaunchOptions on(Target target) {
  LaunchOptions options;
  options.target = target;
  return options;
}

Tensor bytes(int64_t count) {
  Tensor tensor = Tensor::empty(u8, {count});
  tensor.fillRandom(1, 0, 255);
  return tensor;
}

TEST(Compare, BytesThatDifferAreCounted) {
  for (int64_t count : {1, 4095, 4096, 50000}) {
    Tensor a = bytes(count), b = a.clone();
    EXPECT_EQ(firstDifferentByte(a, b), std::nullopt);
    EXPECT_EQ(differentBytesBy(on(Target::cpu), a, b), 0.0);
    int64_t at = count - 1;
    b.setInt({at}, 255 - b.getInt({at}));
    EXPECT_EQ(firstDifferentByte(a, b), static_cast<size_t>(at));
    EXPECT_EQ(differentBytesBy(on(Target::cpu), a, b), 1.0);
  }
  Tensor a = bytes(9000), b = a.clone();
  b.setInt({17}, 255 - b.getInt({17}));
  b.setInt({8999}, 255 - b.getInt({8999}));
  EXPECT_EQ(differentBytesBy(on(Target::sim), a, b), 2.0);
  EXPECT_EQ(firstDifferentByte(Tensor::empty(u8, {0}), Tensor::empty(u8, {0})), std::nullopt);
}

/// By the host and by the kernel: they must agree.
double apartOf(const Tensor &a, const Tensor &b, double relative, Target target = Target::cpu) {
  double byHost = mostApart(a, b, relative);
  auto byKernel = mostApartBy(on(target), a, b, relative);
  EXPECT_TRUE(byKernel.has_value());
  EXPECT_EQ(static_cast<float>(byHost), static_cast<float>(byKernel.value_or(-1)));
  return byHost;
}

TEST(Compare, TheLargestDistanceCounts) {
  for (DType type : {f64, f32, f16, bf16}) {
    Tensor a = Tensor::empty(type, {5000});
    a.fillRandom(2, -2, 2);
    Tensor b = a.clone();
    EXPECT_EQ(apartOf(a, b, 0), 0);
    b.set({4321}, 1);
    a.set({4321}, 1.5);
    EXPECT_EQ(apartOf(a, b, 0), 0.5);
    EXPECT_EQ(apartOf(a, b, 0.25), 0.25);
    EXPECT_EQ(apartOf(a, b, 0.5), 0) << "what rounding explains is no distance";
  }
}

TEST(Compare, WhatIsNoNumberIsAlikeOrFar) {
  double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  struct {
    double a, b, distance;
  } cases[] = {{nan, nan, 0},           {nan, 1, infinity},         {1, nan, infinity}, {infinity, infinity, 0},
               {infinity, 1, infinity}, {-infinity, infinity, infinity}, {0.0, -0.0, 0}};
  for (Target target : {Target::cpu, Target::sim})
    for (const auto &[x, y, distance] : cases) {
      Tensor a = Tensor::zeros(f32, {100}), b = Tensor::zeros(f32, {100});
      a.set({7}, x);
      b.set({7}, y);
      EXPECT_EQ(apartOf(a, b, 0.01, target), distance) << x << " and " << y;
    }
}

} // namespace
