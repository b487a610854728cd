// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/kernels/Kernels.h"
#include "tenon/kernels/Zoo.h"
#include "tenon/verify/Values.h"

#include <algorithm>
#include <optional>

/// What the entries of the zoo share: posing problems. The problems that have variants beyond a shape are declared here
/// too, for the tests.
namespace tenon::zoo {

Entry vectorAddEntry();
Entry geluEntry();
Entry geluTanhEntry();
Entry biasGeluEntry();
Entry swigluEntry();
Entry softmaxEntry();
Entry layerNormEntry();
Entry rmsNormEntry();
Entry rotaryEntry();
Entry crossEntropyEntry();
Entry dropoutEntry();
Entry matmulEntry();
Entry linearEntry();
Entry matmulBiasGeluEntry();
Entry batchedMatmulEntry();
Entry groupedMatmulEntry();
Entry dequantMatmulEntry();
Entry gatedMlpEntry();
Entry attentionEntry();

inline int64_t valueOr(const Params &params, const char *name, int64_t otherwise) {
  auto found = params.find(name);
  return found == params.end() ? otherwise : found->second;
}

struct MatmulShape {
  int64_t m, n, k;
  bool bias = false;
  Activation activation = Activation::none;
  bool transposedB = false;        ///< b lies in memory as [n, k]
  bool tf32 = false;               ///< f32 operands may be rounded to it
  bool fastAccum = false;          ///< sums of f8 may be as coarse as the matrix unit's
  std::optional<DType> output = {}; ///< of c; none: productType()
};
Problem matmulProblem(const MatmulShape &shape, DType dtype, uint64_t seed);
/// What a product of such operands is stored as unless somebody wants it otherwise.
inline DType productType(DType operands) {
  return isFloat8(operands) ? bf16 : isInteger(operands) ? i32 : operands;
}

/// `rows` of each expert.
struct GroupedShape {
  std::vector<int64_t> rows;
  int64_t n, k;
};
Problem groupedMatmulProblem(const GroupedShape &shape, DType dtype, uint64_t seed);
/// Where the rows of each expert begin, and where the last one's end: [experts + 1].
Tensor expertOffsets(std::span<const int64_t> rows);
/// The parameter `search` that so many experts need.
int64_t expertSearchSteps(int64_t experts);

struct DequantShape {
  int64_t m, n, k;
  int64_t group = 0; ///< elements of a column that share a scale; 0: all
};
Problem dequantMatmulProblem(const DequantShape &shape, DType dtype, uint64_t seed);

struct AttentionShape {
  int64_t batch, heads, kvHeads, queries, keys, dim;
  bool causal = false;
};
Problem attentionProblem(const AttentionShape &shape, DType dtype, uint64_t seed);

/// A new tensor; floats uniform in [lo, hi), integers in [lo, hi].
Tensor randomTensor(DType dtype, IndexList sizes, uint64_t seed, double lo = -2, double hi = 2);

inline int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Tiles of about 4096 elements: several rows where rows are short. Longer rows are cut into equal pieces, no longer than
/// `widest`, so that neighbouring instances walk through memory in order. The width is a multiple of 16, what a vector
/// register holds of f32.
inline Params rowTiles(int64_t cols, int64_t widest) {
  int64_t pieces = std::max<int64_t>(1, (cols + widest - 1) / widest);
  int64_t width = std::clamp<int64_t>(roundUp((cols + pieces - 1) / pieces, 16), 16, widest);
  return {{"rows", std::clamp<int64_t>(4096 / width, 1, 16)}, {"cols", width}};
}
/// Tiles that span the row, whatever it takes.
inline Params fullRowTiles(int64_t cols) { return rowTiles(cols, std::max<int64_t>(roundUp(cols, 16), 16)); }

/// "17x1023 f16"
std::string labelOf(std::span<const int64_t> shape, DType dtype);

/// The reference and the plain computation are one function template of the type it computes in, called with a value of
/// that type: f32 problems are judged against double and f64 problems against long double.
template <class Function> void setReferences(Problem &problem, DType dtype, Function function) {
  if (dtype == f64) {
    problem.reference = [function](Arguments &arguments) { function((long double)0, arguments); };
    problem.plain = [function](Arguments &arguments) { function(double(0), arguments); };
  } else {
    problem.reference = [function](Arguments &arguments) { function(double(0), arguments); };
    problem.plain = [function](Arguments &arguments) { function(float(0), arguments); };
  }
}

/// The elements for a plain loop, which is written for contiguous f32 only.
float *plainData(const Argument &argument);

/// Row lengths and row counts around tile edges, and nothing at all.
inline std::vector<std::vector<int64_t>> oddMatrices() {
  return {{1, 1}, {17, 1}, {1, 17}, {64, 64}, {17, 1023}, {3, 4097}, {1023, 17}, {4097, 3}, {0, 17}, {5, 0}};
}

} // namespace tenon::zoo
