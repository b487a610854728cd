// SPDX-License-Identifier: Apache-2.0
#include "tenon/kernels/Samples.h"

#include "tenon/kernels/Kernels.h"
#include "tenon/verify/Values.h"

#include <algorithm>

namespace tenon::zoo {
namespace {

/// One of every 61, beginning somewhere: prime to all tile sizes, so that every place within a tile has its turn, and
/// every block of 64 is looked at.
struct Places {
  int64_t begin, step;
};
Places samplesAlong(int64_t size) { return size <= 61 ? Places{0, 1} : Places{17, 61}; }

Tensor sampled(const Tensor &tensor, int64_t dim) {
  int64_t size = tensor.size(dim);
  auto [begin, step] = samplesAlong(size);
  return step == 1 ? tensor : tensor.slice(dim, begin, (size - begin + step - 1) / step, step);
}

/// Rows by themselves: x, parameters of the columns, y.
std::vector<Arguments> sampledRows(const Arguments &arguments) {
  Arguments part = arguments;
  int64_t rows = arguments[0].tensor().size(0);
  for (Argument &argument : part)
    if (argument.isTensor() && argument.tensor().rank() == 2 && argument.tensor().size(0) == rows)
      argument = sampled(argument.tensor(), 0);
  return {part};
}

/// a, b, bias, c: where sampled rows and columns cross.
std::vector<Arguments> sampledProduct(const Arguments &arguments) {
  Arguments part = arguments;
  part[0] = sampled(arguments[0].tensor(), 0);
  part[1] = sampled(arguments[1].tensor(), 1);
  part[2] = arguments[2].tensor().size(0) ? sampled(arguments[2].tensor(), 0) : arguments[2].tensor();
  part[3] = sampled(sampled(arguments[3].tensor(), 0), 1);
  return {part};
}

/// x, gate, up, y: the same, with two products.
std::vector<Arguments> sampledGated(const Arguments &arguments) {
  Arguments part = arguments;
  part[0] = sampled(arguments[0].tensor(), 0);
  part[1] = sampled(arguments[1].tensor(), 1);
  part[2] = sampled(arguments[2].tensor(), 1);
  part[3] = sampled(sampled(arguments[3].tensor(), 0), 1);
  return {part};
}

/// a, b, offsets, c: the same; an expert has those of its rows that are sampled.
std::vector<Arguments> sampledExperts(const Arguments &arguments) {
  Arguments part = arguments;
  auto [begin, step] = samplesAlong(arguments[0].tensor().size(0));
  std::vector<int64_t> offsets = valuesOf<int64_t>(arguments[2].tensor());
  for (int64_t &offset : offsets)
    offset = offset <= begin ? 0 : (offset - begin + step - 1) / step;
  part[0] = sampled(arguments[0].tensor(), 0);
  part[1] = sampled(arguments[1].tensor(), 2);
  Tensor starts = Tensor::empty(arguments[2].tensor().dtype(), arguments[2].tensor().sizes());
  setValues(starts, offsets);
  part[2] = starts;
  part[3] = sampled(sampled(arguments[3].tensor(), 0), 1);
  return {part};
}

/// q, k, v, out, scale. Of the last batch and its last group of heads, the last queries with all keys: the mask counts
/// from the end. And the first ones with as many keys, which is all that they see, for every head of the first batch.
std::vector<Arguments> sampledAttention(const Arguments &arguments) {
  auto tensor = [&](size_t i) { return arguments[i].tensor(); };
  int64_t batches = tensor(0).size(0), heads = tensor(0).size(1), kvHeads = tensor(1).size(1);
  int64_t queries = tensor(0).size(2), keys = tensor(1).size(2);
  if (batches * heads * kvHeads * queries * keys == 0 || queries != keys)
    return {arguments};
  int64_t group = heads / kvHeads, last = std::min<int64_t>(queries, 33), first = std::min<int64_t>(queries, 161);
  Arguments end = arguments, begin = arguments;
  for (size_t i : {0, 3}) {
    end[i] = tensor(i).slice(0, batches - 1, 1).slice(1, heads - group, group).slice(2, queries - last, last);
    begin[i] = tensor(i).slice(0, 0, 1).slice(2, 0, first);
  }
  for (size_t i : {1, 2}) {
    end[i] = tensor(i).slice(0, batches - 1, 1).slice(1, kvHeads - 1, 1);
    begin[i] = tensor(i).slice(0, 0, 1).slice(2, 0, first);
  }
  return {end, begin};
}

} // namespace

std::function<std::vector<Arguments>(const Arguments &)> samplesOf(const Entry &entry) {
  if (&entry.kernel == &matmul)
    return sampledProduct;
  if (&entry.kernel == &gatedMlp)
    return sampledGated;
  if (&entry.kernel == &groupedMatmul)
    return sampledExperts;
  if (&entry.kernel == &attention)
    return sampledAttention;
  if (&entry.kernel == &softmax || &entry.kernel == &layerNorm)
    return sampledRows;
  return {};
}

} // namespace tenon::zoo
