// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/GpuProduct.h"

#include "tenon/base/Error.h"
#include "tenon/verify/CoarseSum.h"
#include "tenon/verify/Judge.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>

namespace tenon {
namespace {

constexpr int64_t block = 64; ///< of rows or columns, of which one is looked at

const Kernel fillNormalKernel("fill_normal(x, seed, scale, cols=1024)",
                              [](View x, Index seed, Scalar scale, Param cols) {
  Index i = grid(cdiv(x.size(0), cols));
  Tile at = iota(i64, {cols}, 0) + i * cols;
  // Box and Muller. 1 - u is never 0.
  Tile radius = sqrt(-2 * log(1 - random_uniform(seed, at)));
  Tile value = radius * cos(6.283185307179586 * random_uniform(seed + 1, at)) * scale;
  x.store({i * cols}, value.to(x.dtype()));
});

/// Elements of the sampled columns, [k][column], as the host computes with them.
struct Columns {
  std::vector<std::vector<float>> factors; ///< of each b
};

Tensor columnOf(const Tensor &b, int64_t expert, int64_t column) {
  return b.rank() == 2 ? b.slice(1, column, 1) : b.slice(0, expert, 1).slice(2, column, 1);
}

Columns readColumns(const Product &product, int64_t expert, const std::vector<int64_t> &columns) {
  Columns result;
  for (const Tensor &b : product.b) {
    int64_t k = b.size(b.rank() - 2);
    auto count = static_cast<int64_t>(columns.size());
    std::vector<float> &values = result.factors.emplace_back(static_cast<size_t>(k * count));
    for (int64_t j = 0; j < count; ++j) {
      std::vector<float> column = valuesOf<float>(columnOf(b, expert, columns[j]).to(Device::cpu()));
      for (int64_t p = 0; p < k; ++p)
        values[p * count + j] = column[p];
    }
  }
  return result;
}

/// What is sampled, and what became of it: one element for each sampled row and column.
struct Samples {
  std::vector<int64_t> rows, columns;
  std::vector<double> got, reference, plain;
};

template <class T>
void addUp(std::vector<T> &sums, const std::vector<float> &row, const std::vector<float> &columns) {
  std::fill(sums.begin(), sums.end(), T(0));
  const float *line = columns.data();
  for (float factor : row)
    for (size_t j = 0; j < sums.size(); ++j)
      sums[j] += static_cast<T>(factor) * static_cast<T>(*line++);
}

void addUpCoarsely(std::vector<float> &sums, const std::vector<float> &row, const std::vector<float> &columns) {
  std::vector<CoarseSum> coarse(sums.size());
  const float *line = columns.data();
  for (float factor : row)
    for (CoarseSum &sum : coarse)
      sum.add(factor, *line++);
  for (size_t j = 0; j < sums.size(); ++j)
    sums[j] = coarse[j].value();
}

/// Row i of the samples, in f64 and as one computes plainly.
void computeRow(const Product &product, Samples &samples, size_t i, const std::vector<float> &row,
                const Columns &columns) {
  size_t count = samples.columns.size(), factors = product.b.size();
  std::vector<std::vector<double>> exact(factors, std::vector<double>(count)), plain = exact;
  std::vector<float> sums(count);
  for (size_t f = 0; f < factors; ++f) {
    addUp(exact[f], row, columns.factors[f]);
    if (product.fastAccum)
      addUpCoarsely(sums, row, columns.factors[f]);
    else
      addUp(sums, row, columns.factors[f]);
    plain[f].assign(sums.begin(), sums.end());
  }
  std::vector<double> each(factors);
  auto finish = [&](const std::vector<std::vector<double>> &from, size_t j) {
    for (size_t f = 0; f < factors; ++f)
      each[f] = from[f][j];
    return product.epilogue ? product.epilogue(each, samples.columns[j]) : each[0];
  };
  for (size_t j = 0; j < count; ++j) {
    samples.reference[i * count + j] = finish(exact, j);
    samples.plain[i * count + j] = finish(plain, j);
  }
}

std::string placeText(int64_t row, int64_t column) {
  return "row " + std::to_string(row) + ", column " + std::to_string(column);
}

/// Fills `samples` with the sampled rows from `first` up to `last`, all of one expert. Says where c was not written.
std::string sampleRows(const Product &product, Samples &samples, size_t first, size_t last, int64_t expert) {
  Columns columns = readColumns(product, expert, samples.columns);
  std::vector<std::vector<float>> rows;
  size_t count = samples.columns.size();
  for (size_t i = first; i < last; ++i) {
    int64_t row = samples.rows[i];
    rows.push_back(valuesOf<float>(product.a.slice(0, row, 1).to(Device::cpu())));
    std::vector<double> line = valuesOf<double>(product.c.slice(0, row, 1).to(Device::cpu()));
    if (isFloat(product.c.dtype()))
      for (size_t column = 0; column < line.size(); ++column)
        if (std::isnan(line[column]))
          return placeText(row, static_cast<int64_t>(column)) + " was never written (or is not a number)";
    for (size_t j = 0; j < count; ++j)
      samples.got[i * count + j] = line[static_cast<size_t>(samples.columns[j])];
  }
  std::atomic<size_t> next = first;
  auto work = [&] {
    for (size_t i = next++; i < last; i = next++)
      computeRow(product, samples, i, rows[i - first], columns);
  };
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::clamp<size_t>(std::thread::hardware_concurrency(), 1, last - first); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  return "";
}

Tensor tensorOf(DType type, const Samples &samples, const std::vector<double> &values) {
  Tensor tensor = Tensor::empty(
      type, {static_cast<int64_t>(samples.rows.size()), static_cast<int64_t>(samples.columns.size())});
  setValues(tensor, values);
  return tensor;
}

std::string worstText(const Samples &samples, const Tensor &reference) {
  std::vector<double> wanted = valuesOf<double>(reference);
  size_t worst = 0, count = samples.columns.size();
  auto off = [&](size_t i) {
    double distance = std::abs(samples.got[i] - wanted[i]);
    return std::isnan(distance) ? HUGE_VAL : distance;
  };
  for (size_t i = 1; i < wanted.size(); ++i)
    if (off(i) > off(worst))
      worst = i;
  char text[80];
  std::snprintf(text, sizeof text, " is %.9g where the reference has %.9g", samples.got[worst], wanted[worst]);
  return placeText(samples.rows[worst / count], samples.columns[worst % count]) + text;
}

} // namespace

void fillNormal(const Tensor &tensor, uint64_t seed, const LaunchOptions &options) {
  if (tensor.elements() == 0)
    return;
  launch(fillNormalKernel,
         {tensor.reshape({tensor.elements()}), static_cast<int64_t>(2 * seed), isFloat(tensor.dtype()) ? 1.0 : 32.0},
         options);
}

std::vector<int64_t> sampledIndices(int64_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> indices;
  for (int64_t begin = 0; begin < size; begin += block)
    indices.push_back(begin + static_cast<int64_t>(random() % static_cast<uint64_t>(std::min(block, size - begin))));
  if (size > 0)
    indices.insert(indices.end(), {0, size - 1});
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

Verdict judgeProduct(const Product &product, uint64_t seed) {
  if (product.b.empty() || product.a.size(0) != product.c.size(0))
    throw InternalError("a product to be judged needs factors, and as many rows in its result as in a");
  std::vector<int64_t> offsets = product.offsets;
  if (offsets.empty())
    offsets = {0, product.c.size(0)};
  Samples samples;
  samples.columns = sampledIndices(product.c.size(1), seed);
  std::vector<size_t> ends; // of the samples of each expert
  for (size_t expert = 0; expert + 1 < offsets.size(); ++expert) {
    for (int64_t row : sampledIndices(offsets[expert + 1] - offsets[expert], seed + 1 + expert))
      samples.rows.push_back(offsets[expert] + row);
    ends.push_back(samples.rows.size());
  }
  size_t total = samples.rows.size() * samples.columns.size();
  samples.got.resize(total);
  samples.reference.resize(total);
  samples.plain.resize(total);
  Verdict verdict;
  for (size_t expert = 0, first = 0; expert < ends.size(); first = ends[expert++])
    if (first < ends[expert] && !samples.columns.empty()) {
      verdict.reason = sampleRows(product, samples, first, ends[expert], static_cast<int64_t>(expert));
      if (!verdict.reason.empty())
        return verdict;
    }
  DType type = product.c.dtype();
  Tensor reference = tensorOf(type, samples, samples.reference);
  OutputComparison comparison =
      judge(tensorOf(type, samples, samples.got), reference, tensorOf(type, samples, samples.plain), std::nullopt);
  verdict.error = comparison.error;
  verdict.plainError = comparison.plainError;
  verdict.allowed = comparison.allowed;
  verdict.passed = !comparison.complaint;
  if (comparison.complaint)
    verdict.reason = worstText(samples, reference);
  return verdict;
}

} // namespace tenon
