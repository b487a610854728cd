// SPDX-License-Identifier: Apache-2.0
//
// The check of large products by samples, on products that are small enough to be computed whole.
#include "tenon/measure/GpuProduct.h"
#include "tenon/verify/CoarseSum.h"
#include "tenon/verify/Values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

using namespace tenon;

namespace {

Tensor normal(DType type, IndexList sizes, uint64_t seed) {
  Tensor tensor = Tensor::empty(type, sizes);
  fillNormal(tensor, seed, {});
  return tensor;
}

/// c = a * b, row by row; with experts, each row by its own matrix.
void multiply(const Product &product) {
  std::vector<double> a = valuesOf<double>(product.a), b = valuesOf<double>(product.b[0]);
  int64_t m = product.c.size(0), n = product.c.size(1), k = product.a.size(1);
  std::vector<double> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    int64_t expert = 0;
    while (!product.offsets.empty() && i >= product.offsets[expert + 1])
      ++expert;
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        c[i * n + j] += a[i * k + p] * b[(expert * k + p) * n + j];
  }
  setValues(product.c, c);
}

Product productOf(int64_t m, int64_t n, int64_t k, DType type) {
  Product product;
  product.a = normal(type, {m, k}, 1);
  product.b = {normal(type, {n, k}, 2).transpose({1, 0})};
  product.c = Tensor::empty(type, {m, n});
  product.c.fillBytes(0xff);
  return product;
}

TEST(FillNormal, HasTheMeanAndVarianceOfNormalNumbers) {
  for (DType type : {f32, bf16, f8e4m3}) {
    std::vector<double> values = valuesOf<double>(normal(type, {100, 300}, 3));
    auto count = static_cast<double>(values.size());
    double mean = std::accumulate(values.begin(), values.end(), 0.0) / count, square = 0;
    for (double value : values)
      square += (value - mean) * (value - mean) / count;
    EXPECT_NEAR(mean, 0, 0.05) << nameOf(type);
    EXPECT_NEAR(square, 1, 0.05) << nameOf(type);
  }
  EXPECT_NE(valuesOf<double>(normal(f32, {8}, 3)), valuesOf<double>(normal(f32, {8}, 4)));
  EXPECT_EQ(valuesOf<double>(normal(f32, {8}, 3)), valuesOf<double>(normal(f32, {8}, 3)));
  fillNormal(Tensor::empty(f32, {0}), 1, {});
}

TEST(SampledIndices, AreOneOfEvery64AndBothEnds) {
  for (int64_t size : {0, 1, 2, 63, 64, 65, 1000, 4097}) {
    std::vector<int64_t> indices = sampledIndices(size, 7);
    EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end()));
    EXPECT_EQ(std::adjacent_find(indices.begin(), indices.end()), indices.end());
    if (size == 0) {
      EXPECT_TRUE(indices.empty());
      continue;
    }
    EXPECT_EQ(indices.front(), 0);
    EXPECT_EQ(indices.back(), size - 1);
    for (int64_t block = 0; block * 64 < size; ++block)
      EXPECT_TRUE(std::any_of(indices.begin(), indices.end(), [&](int64_t i) { return i / 64 == block; })) << size;
  }
  EXPECT_NE(sampledIndices(4097, 7), sampledIndices(4097, 8));
}

TEST(JudgeProduct, PassesWhatIsRight) {
  for (DType type : {f32, bf16, f16})
    for (int64_t k : {0, 1, 70}) {
      Product product = productOf(130, 200, k, type);
      multiply(product);
      Verdict verdict = judgeProduct(product, 5);
      EXPECT_TRUE(verdict.passed) << verdict.reason;
    }
}

/// Sums as coarse as a matrix unit makes them pass where they are allowed, and only there.
TEST(JudgeProduct, AllowsFastSums) {
  Product product = productOf(70, 66, 2000, f8e4m3);
  product.c = Tensor::empty(f32, {70, 66});
  std::vector<float> a = valuesOf<float>(product.a), b = valuesOf<float>(product.b[0]), c;
  for (int64_t i = 0; i < 70; ++i)
    for (int64_t j = 0; j < 66; ++j) {
      CoarseSum sum;
      for (int64_t p = 0; p < 2000; ++p)
        sum.add(a[i * 2000 + p], b[p * 66 + j]);
      c.push_back(sum.value());
    }
  setValues(product.c, c);
  EXPECT_FALSE(judgeProduct(product, 5).passed);
  product.fastAccum = true;
  Verdict verdict = judgeProduct(product, 5);
  EXPECT_TRUE(verdict.passed) << verdict.reason;
  c[0] += 1;
  setValues(product.c, c);
  EXPECT_FALSE(judgeProduct(product, 5).passed);
}

/// One block of 64 x 64 of the result, whichever it is.
TEST(JudgeProduct, FindsAnyWrongBlock) {
  Product product = productOf(200, 300, 33, bf16);
  multiply(product);
  Tensor right = product.c.clone();
  for (int64_t i = 0; i < 200; i += 64)
    for (int64_t j = 0; j < 300; j += 64) {
      product.c.copyFrom(right);
      Tensor block = product.c.slice(0, i, std::min<int64_t>(64, 200 - i)).slice(1, j, std::min<int64_t>(64, 300 - j));
      std::vector<double> values = valuesOf<double>(block);
      for (double &value : values)
        value += 3;
      setValues(block, values);
      Verdict verdict = judgeProduct(product, 5);
      EXPECT_FALSE(verdict.passed) << i << ", " << j;
      EXPECT_NE(verdict.reason.find("where the reference has"), std::string::npos) << verdict.reason;
    }
}

TEST(JudgeProduct, FindsWhatWasNotWritten) {
  Product product = productOf(70, 80, 20, f16);
  Verdict verdict = judgeProduct(product, 5);
  EXPECT_FALSE(verdict.passed);
  EXPECT_NE(verdict.reason.find("row 0, column 0 was never written"), std::string::npos) << verdict.reason;
  multiply(product);
  product.c.slice(0, 69, 1).slice(1, 41, 1).fillBytes(0xff); // the last row is always one of the samples
  EXPECT_NE(judgeProduct(product, 5).reason.find("row 69, column 41"), std::string::npos);
}

TEST(JudgeProduct, KnowsEpilogues) {
  Product product = productOf(70, 80, 20, f32);
  product.b.push_back(normal(f32, {20, 80}, 9));
  product.epilogue = [](std::span<const double> sums, int64_t column) {
    return sums[0] * sums[1] + static_cast<double>(column);
  };
  std::vector<double> a = valuesOf<double>(product.a), b0 = valuesOf<double>(product.b[0]),
                      b1 = valuesOf<double>(product.b[1]), c;
  for (int64_t i = 0; i < 70; ++i)
    for (int64_t j = 0; j < 80; ++j) {
      double first = 0, second = 0;
      for (int64_t p = 0; p < 20; ++p) {
        first += a[i * 20 + p] * b0[p * 80 + j];
        second += a[i * 20 + p] * b1[p * 80 + j];
      }
      c.push_back(first * second + static_cast<double>(j));
    }
  setValues(product.c, c);
  EXPECT_TRUE(judgeProduct(product, 5).passed) << judgeProduct(product, 5).reason;
  product.epilogue = {};
  EXPECT_FALSE(judgeProduct(product, 5).passed);
}

TEST(JudgeProduct, KnowsExperts) {
  Product product;
  product.offsets = {0, 3, 3, 103, 104};
  product.a = normal(bf16, {104, 40}, 1);
  product.b = {normal(bf16, {4, 70, 40}, 2).transpose({0, 2, 1})};
  product.c = Tensor::empty(bf16, {104, 70});
  multiply(product);
  EXPECT_TRUE(judgeProduct(product, 5).passed) << judgeProduct(product, 5).reason;
  product.offsets = {0, 4, 4, 103, 104}; // row 3 by the wrong matrix
  EXPECT_FALSE(judgeProduct(product, 5).passed);
}

} // namespace
