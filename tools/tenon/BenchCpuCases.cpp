// SPDX-License-Identifier: Apache-2.0
#include "BenchCpuCases.h"

#include "BenchCpuKernels.h"
#include "Format.h"

#include "tenon/kernels/Problems.h"

#include <fmt/format.h>

namespace tenon::tool {
namespace {

/// The first and the last rows. An argument has rows if its first extent follows their number. `positional`: what a row
/// becomes depends on where it is, so that only the first rows make a problem of their own.
std::vector<CpuPart> rowParts(const Problem &whole, int64_t rows, int64_t partRows,
                              const std::function<Problem(int64_t)> &make, bool positional = false) {
  partRows = std::min(rows, partRows);
  std::vector<int64_t> begins = {0};
  if (!positional && partRows < rows)
    begins.push_back(rows - partRows);
  std::vector<CpuPart> parts;
  for (int64_t begin : begins) {
    CpuPart part{make(partRows), {}};
    auto rowsOf = [&](size_t i) -> Tensor {
      const Tensor &all = whole.arguments[i].tensor(), &few = part.problem.arguments[i].tensor();
      bool hasRows = all.rank() > 0 && all.size(0) == rows && few.size(0) == partRows;
      return hasRows ? all.slice(0, begin, partRows) : all;
    };
    for (size_t output : whole.outputs)
      part.outputs.push_back(rowsOf(output));
    for (size_t i = 0; i < whole.arguments.size(); ++i)
      part.problem.arguments[i] = whole.arguments[i].isTensor() ? Argument(rowsOf(i).clone()) : whole.arguments[i];
    parts.push_back(std::move(part));
  }
  return parts;
}

/// The first and the last queries of the first and the last head; the first ones see the first keys only.
std::vector<CpuPart> attentionParts(const Problem &whole, const zoo::AttentionShape &shape, DType dtype) {
  int64_t count = std::min<int64_t>(16, shape.queries);
  std::vector<CpuPart> parts;
  for (bool isLast : {false, true}) {
    int64_t head = isLast ? shape.heads - 1 : 0, first = isLast ? shape.queries - count : 0;
    int64_t keys = shape.causal && !isLast ? count : shape.keys;
    auto cut = [&](size_t i, int64_t begin, int64_t length) {
      return whole.arguments[i].tensor().slice(1, head, 1).slice(2, begin, length);
    };
    CpuPart part{zoo::attentionProblem({1, 1, 1, count, keys, shape.dim, shape.causal}, dtype, 1), {}};
    part.problem.arguments = {cut(0, first, count).clone(), cut(1, 0, keys).clone(), cut(2, 0, keys).clone(),
                              cut(3, first, count).clone(), whole.arguments[4]};
    part.outputs = {cut(3, first, count)};
    parts.push_back(std::move(part));
  }
  return parts;
}

//===--- Products -------------------------------------------------------------------------------------------------===//

struct Sizes {
  int64_t m, n, k;
};

CpuCase productCase(const Sizes &s, DType dtype, bool biasAndGelu) {
  CpuCase one;
  one.kernelName = biasAndGelu ? "matmul_bias_gelu" : "matmul";
  one.shape = {s.m, s.n, s.k};
  one.dtype = dtype;
  bool isInt8 = dtype == i8;
  one.kernel = &zoo::find("matmul").kernel;
  auto make = [=](int64_t rows) {
    zoo::Activation activation = biasAndGelu ? zoo::Activation::geluExact : zoo::Activation::none;
    return zoo::matmulProblem({rows, s.n, s.k, biasAndGelu, activation}, dtype, 1);
  };
  one.problem = [=] { return make(s.m); };
  one.parts = [=](const Problem &whole) { return rowParts(whole, s.m, 4, make); };
  one.group = fmt::format("{} {}", one.kernelName, nameOf(dtype));
  one.peers = {"torch_eager", "torch_compile"};
  if (!isInt8)
    one.peers.push_back("onednn");
  if (dtype == f32)
    one.peers.push_back("openblas");
  one.meanGoal = isInt8 ? 0.9 : 1;
  one.leastGoal = isInt8 ? 0 : 0.85;
  if (biasAndGelu) {
    one.goalPeer = "torch_compile";
    one.meanGoal = 1.1;
    one.leastGoal = 0;
  }
  return one;
}

void addProducts(std::vector<CpuCase> &cases, bool quick) {
  std::vector<Sizes> sizes = {{512, 512, 512},   {1024, 1024, 1024}, {2048, 2048, 2048},
                              {4096, 4096, 4096}, {4096, 4096, 64},   {64, 4096, 4096},
                              {1, 4096, 4096},    {1000, 1000, 1000}, {17, 4099, 1021}};
  std::vector<Sizes> fused = {{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}, {64, 4096, 4096}};
  if (quick)
    for (auto *list : {&sizes, &fused})
      for (Sizes &s : *list)
        for (int64_t *size : {&s.m, &s.n, &s.k})
          *size = *size > 64 ? (*size + 7) / 8 : *size;
  for (DType dtype : {f32, bf16, i8})
    for (const Sizes &s : sizes)
      cases.push_back(productCase(s, dtype, /*biasAndGelu=*/false));
  for (DType dtype : {f32, bf16})
    for (const Sizes &s : fused)
      cases.push_back(productCase(s, dtype, /*biasAndGelu=*/true));
}

/// Beside matmul's rows of the same sizes it shows what a kernel gets that nobody tuned.
void addSquaredDistance(std::vector<CpuCase> &cases, bool quick) {
  for (DType dtype : {f32, bf16})
    for (int64_t size : {1024, 2048}) {
      int64_t extent = quick ? size / 8 : size;
      CpuCase one;
      one.kernelName = "squared_distance";
      one.kernel = &squaredDistance;
      one.shape = {extent, extent, extent};
      one.dtype = dtype;
      one.group = fmt::format("squared_distance {}", nameOf(dtype));
      auto make = [=](int64_t rows) { return squaredDistanceProblem(rows, extent, extent, dtype, 1); };
      one.problem = [=] { return make(extent); };
      one.parts = [=](const Problem &whole) {
        // The first and the last rows of a, with all of b.
        std::vector<CpuPart> parts;
        constexpr int64_t count = 4;
        for (int64_t begin : {int64_t(0), extent - count}) {
          CpuPart part{make(count), {whole.arguments[2].tensor().slice(0, begin, count)}};
          part.problem.arguments = {whole.arguments[0].tensor().slice(0, begin, count).clone(),
                                    whole.arguments[1].tensor().clone(), part.outputs[0].clone()};
          parts.push_back(std::move(part));
        }
        return parts;
      };
      one.peers = {"torch_eager", "torch_compile"};
      one.meanGoal = 1;
      cases.push_back(std::move(one));
    }
}

void addAttention(std::vector<CpuCase> &cases, bool quick) {
  for (DType dtype : {f32, bf16})
    for (int64_t length : {512, 2048, 8192})
      for (int64_t dim : {64, 128})
        for (bool causal : {false, true}) {
          int64_t heads = quick ? 2 : 16, size = quick ? length / 8 : length;
          zoo::AttentionShape shape{1, heads, heads, size, size, dim, causal};
          CpuCase one;
          one.group = fmt::format("attention {}", nameOf(dtype));
          one.kernelName = "attention";
          one.kernel = &zoo::find("attention").kernel;
          one.shape = {1, heads, size, dim};
          one.dtype = dtype;
          one.variant = causal ? "causal" : "";
          one.problem = [=] { return zoo::attentionProblem(shape, dtype, 1); };
          one.parts = [=](const Problem &whole) { return attentionParts(whole, shape, dtype); };
          one.peers = {"torch_eager", "torch_compile"};
          one.goalPeer = "torch_eager";
          one.meanGoal = 1.2;
          cases.push_back(std::move(one));
        }
}

//===--- Kernels that wait for memory -----------------------------------------------------------------------------===//

void addMemoryBound(std::vector<CpuCase> &cases, bool quick) {
  int64_t rows = quick ? 256 : 8192, cols = 4096;
  for (DType dtype : {f32, bf16})
    for (std::string name : {"gelu", "swiglu", "softmax", "layer_norm", "rms_norm", "rotary", "cross_entropy",
                             "bias_gelu_dropout"}) {
      CpuCase one;
      one.group = fmt::format("memory-bound {}", nameOf(dtype));
      one.kernelName = name;
      one.shape = name == "rotary" ? std::vector<int64_t>{rows, 32, cols / 32} : std::vector<int64_t>{rows, cols};
      one.dtype = dtype;
      std::function<Problem(int64_t)> make;
      if (name == "bias_gelu_dropout") {
        one.kernel = &biasGeluDropout;
        make = [=](int64_t count) { return biasGeluDropoutProblem(count, cols, dtype, 1); };
      } else {
        const zoo::Entry &entry = zoo::find(name);
        one.kernel = &entry.kernel;
        make = [&entry, shape = one.shape, dtype](int64_t count) {
          std::vector<int64_t> sizes = shape;
          sizes[0] = count;
          return entry.makeProblem(sizes, dtype, 1);
        };
      }
      one.problem = [=] { return make(rows); };
      one.parts = [=, positional = name == "bias_gelu_dropout"](const Problem &whole) {
        return rowParts(whole, rows, 64, make, positional);
      };
      one.peers = {"copy", "torch_eager", "torch_compile"};
      if (dtype == f32 && name != "gelu" && name != "bias_gelu_dropout") // it has no erf, and what it draws takes ages
        one.peers.push_back("numpy");
      one.copyGoal = 0.9;
      one.goalPeer = "torch_compile";
      one.meanGoal = one.leastGoal = 1;
      cases.push_back(std::move(one));
    }
}

} // namespace

std::string CpuCase::name() const {
  std::string text = fmt::format("{} {} {}", kernelName, shapeText(shape), nameOf(dtype));
  return variant.empty() ? text : text + " " + variant;
}

Json CpuCase::description() const {
  return {{"kernel", kernelName}, {"shape", shape}, {"dtype", nameOf(dtype)}, {"variant", variant}};
}

std::vector<CpuCase> cpuCases(bool quick) {
  std::vector<CpuCase> cases;
  addProducts(cases, quick);
  addSquaredDistance(cases, quick);
  addAttention(cases, quick);
  addMemoryBound(cases, quick);
  return cases;
}

int64_t ScalingCase::elements() const {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

std::string ScalingCase::name() const { return fmt::format("scaling {} {}", kernelName, elements()); }

std::vector<ScalingCase> scalingCases(bool quick) {
  std::vector<ScalingCase> cases;
  for (const char *name : {"gelu", "softmax"})
    for (int64_t elements = 10'000; elements <= (quick ? 1'000'000 : 1'000'000'000); elements *= 10) {
      const zoo::Entry &entry = zoo::find(name);
      std::vector<int64_t> shape = {elements / 400, 400};
      // The parameters follow from the length of a row.
      Params params = entry.makeProblem(std::vector<int64_t>{1, shape[1]}, f32, 1).params;
      cases.push_back({name, &entry.kernel, shape, params});
    }
  return cases;
}

} // namespace tenon::tool
