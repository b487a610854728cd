// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Zoo.h"

#include "tenon/base/Words.h"
#include "tenon/kernels/Problems.h"

#include <algorithm>
#include <numeric>

namespace tenon::zoo {

namespace {

/// Checks what the user asked for before the entry poses the problem.
Entry checked(Entry entry) {
  auto makeProblem = std::move(entry.makeProblem);
  entry.makeProblem = [name = entry.name, dimensions = entry.dimensions, dtypes = entry.dtypes,
                       makeProblem](std::span<const int64_t> shape, DType dtype, uint64_t seed) {
    std::string wanted, types;
    for (const std::string &dimension : dimensions)
      wanted += (wanted.empty() ? "" : ", ") + dimension;
    for (DType type : dtypes)
      types += (types.empty() ? "" : ", ") + std::string(nameOf(type));
    if (shape.size() != dimensions.size() || std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; }))
      throw Error("a shape of " + name + " is " +
                  counted(static_cast<int64_t>(dimensions.size()), "number") + " of 0 or more: " + wanted);
    if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end())
      throw Error(name + " does not come in " + std::string(nameOf(dtype)) + "; its types are " + types);
    return makeProblem(shape, dtype, seed);
  };
  return entry;
}

thread_local int shapesOnly = 0;

} // namespace

ShapesOnly::ShapesOnly() { ++shapesOnly; }
ShapesOnly::~ShapesOnly() { --shapesOnly; }

Tensor randomTensor(DType dtype, IndexList sizes, uint64_t seed, double lo, double hi) {
  Tensor tensor = Tensor::empty(dtype, sizes);
  if (!shapesOnly)
    tensor.fillRandom(seed, lo, hi);
  return tensor;
}

const std::vector<Entry> &entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> list;
    for (auto make : {vectorAddEntry, geluEntry, geluTanhEntry, biasGeluEntry, swigluEntry, softmaxEntry, layerNormEntry,
                      rmsNormEntry, rotaryEntry, crossEntropyEntry, dropoutEntry, matmulEntry, linearEntry,
                      matmulBiasGeluEntry, batchedMatmulEntry, groupedMatmulEntry, dequantMatmulEntry, gatedMlpEntry,
                      attentionEntry})
      list.push_back(checked(make()));
    return list;
  }();
  return all;
}

/// Letters to add, drop or change to get from one to the other.
static size_t distanceOf(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1); // from the letters so far to each beginning of `to`
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < from.size(); ++i) {
    size_t corner = row[0]++;
    for (size_t j = 0; j < to.size(); ++j) {
      size_t changed = corner + (from[i] != to[j]);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, corner + 1, row[j] + 1});
    }
  }
  return row.back();
}

const Entry &find(std::string_view name) {
  std::string known, nearest;
  size_t least = std::max<size_t>(name.size() / 3, 1) + 1; // what differs in more is another word
  for (const Entry &entry : entries()) {
    if (entry.name == name)
      return entry;
    known += (known.empty() ? "" : ", ") + entry.name;
    if (size_t distance = distanceOf(name, entry.name); distance < least) {
      least = distance;
      nearest = entry.name;
    }
  }
  throw Error("there is no kernel '" + std::string(name) + "' in the zoo; " +
              (nearest.empty() ? "" : "did you mean '" + nearest + "'? ") + "the names are " + known);
}

std::string labelOf(std::span<const int64_t> shape, DType dtype) {
  std::string label;
  for (int64_t size : shape)
    label += (label.empty() ? "" : "x") + std::to_string(size);
  return label + " " + std::string(nameOf(dtype));
}

float *plainData(const Argument &argument) {
  const Tensor &tensor = argument.tensor();
  if (tensor.dtype() != f32 || !tensor.isContiguous())
    throw Error("the plain loop is written for contiguous f32 and does not take " + tensor.str());
  return static_cast<float *>(tensor.data());
}

} // namespace tenon::zoo
