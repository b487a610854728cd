// SPDX-License-Identifier: Apache-2.0
#include "MatmulCases.h"

#include "Format.h"
#include "MatmulOrder.h"

#include "tenon/kernels/Problems.h"
#include "tenon/measure/MeasuredCeilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

namespace tenon::tool {
namespace {

using Work = MatmulCase::Work;

//===--- Cases ----------------------------------------------------------------------------------------------------===//

constexpr std::array<int64_t, 3> modelShapes[] = {
    {8192, 8192, 8192},  {4096, 4096, 4096},  {2048, 2048, 2048},  {1024, 1024, 1024},
    {16384, 16384, 4096}, {4096, 14336, 4096}, {4096, 4096, 14336}, {8192, 28672, 8192},
    {16, 8192, 8192},    {128, 8192, 8192},   {512, 7168, 2048},   {8192, 1024, 8192}};

MatmulCase makeCase(std::string group, Work work, DType dtype, std::array<int64_t, 3> shape,
                    std::vector<MatmulPeer> peers) {
  MatmulCase one;
  one.groups = {std::move(group)};
  one.work = work;
  one.dtype = dtype;
  one.m = shape[0];
  one.n = shape[1];
  one.k = shape[2];
  one.peers = std::move(peers);
  return one;
}

/// A kernel that gives every multiprocessor several tiles has something to gain from staying there.
std::vector<MatmulPeer> productPeers(std::array<int64_t, 3> shape) {
  bool isSmall = shape[0] * shape[1] <= 1024 * 1024 || shape[0] <= 128;
  bool isDescribable = shape[1] % 8 == 0 && shape[2] % 8 == 0;
  std::vector<MatmulPeer> peers = {{"cublas"}};
  if (isSmall || !isDescribable)
    peers.push_back({"triton_plain"});
  if (!isSmall)
    peers.push_back({"triton_persistent"});
  if (isDescribable)
    peers.push_back({"triton_descriptor"});
  return peers;
}

MatmulCase groupedCase() {
  constexpr size_t experts = 64;
  std::mt19937_64 random(1);
  std::vector<int64_t> rows;
  while (rows.size() < experts)
    rows.push_back(8 + static_cast<int64_t>(random() % (2048 - 8 + 1)));
  int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t(0));
  MatmulCase one =
      makeCase("grouped", Work::grouped, bf16, {total, 7168, 2048}, {{"cublas_loop"}, {"torch_grouped"}});
  one.experts = std::move(rows);
  return one;
}

void makeQuick(MatmulCase &one) {
  constexpr int64_t most = 512;
  // What is left of 512 keeps its oddness: an edge stays an edge.
  auto shorten = [](int64_t &size) { size = size > most ? most - 16 + size % 16 : size; };
  shorten(one.m);
  shorten(one.n);
  shorten(one.k);
  if (one.experts.empty())
    return;
  one.experts = {100, 0, 1, 200, 64};
  one.m = std::accumulate(one.experts.begin(), one.experts.end(), int64_t(0));
}

double gelu(double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }
double silu(double x) { return x / (1 + std::exp(-x)); }

} // namespace

std::string MatmulCase::name() const {
  return joined(groups, ",") + (experts.empty() ? "" : fmt::format(" {} experts", experts.size())) + " " +
         shapeText(std::array{m, n, k});
}

std::string MatmulCase::kernelName() const {
  switch (work) {
  case Work::product: return "matmul";
  case Work::biasGelu: return "bias_gelu";
  case Work::gated: return "gated_mlp";
  case Work::grouped: return "grouped_matmul";
  }
  return "";
}

const Kernel &MatmulCase::kernel() const {
  return work == Work::gated ? zoo::gatedMlp : work == Work::grouped ? zoo::groupedMatmul : zoo::matmul;
}

double MatmulCase::flops() const {
  return (work == Work::gated ? 4.0 : 2.0) * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

double MatmulCase::bytes() const {
  auto rows = static_cast<double>(m), columns = static_cast<double>(n), inner = static_cast<double>(k);
  double weights = work == Work::gated ? 2 : experts.empty() ? 1 : static_cast<double>(experts.size());
  return (rows * inner + weights * columns * inner) * static_cast<double>(sizeOf(dtype)) +
         rows * columns * static_cast<double>(sizeOf(zoo::productType(dtype)));
}

size_t MatmulCase::graphLaunches() const {
  // About what an H200 does at its best.
  double seconds = std::max(flops() / (sizeOf(dtype) == 1 ? 1.4e15 : 7e14), bytes() / 4.3e12);
  return seconds < 60e-6 ? 20 : 0;
}

LaunchOptions MatmulCase::launchOptions(const Tiling &tiling) const {
  LaunchOptions options;
  options.target = Target::cuda;
  tiling.applyTo(options);
  if (work == Work::biasGelu) {
    options.params["use_bias"] = 1;
    options.params["activation"] = zoo::geluExact;
  }
  if (fastAccum)
    options.params["fast_accum"] = 1;
  if (work == Work::grouped)
    options.params["search"] = zoo::expertSearchSteps(static_cast<int64_t>(experts.size()));
  options.compile.useDiskCache = false;
  return options;
}

Json MatmulCase::description(size_t sets) const {
  Json result = {{"suite", "matmul"}, {"work", kernelName()},
                 {"dtype", nameOf(dtype)}, {"shape", {m, n, k}},
                 {"bytes", static_cast<int64_t>(bytes())}, {"sets", sets},
                 {"graph", graphLaunches()}};
  if (!experts.empty())
    result["rows"] = experts;
  return result;
}

std::vector<MatmulCase> matmulCases(bool quick, int device) {
  std::vector<MatmulCase> cases;
  for (DType dtype : {bf16, f16})
    for (std::array<int64_t, 3> shape : modelShapes)
      cases.push_back(makeCase(std::string(nameOf(dtype)), Work::product, dtype, shape, productPeers(shape)));
  for (std::array<int64_t, 3> shape :
       {std::array<int64_t, 3>{4096, 4096, 4096}, {8192, 8192, 8192}, {4096, 7168, 16384}})
    for (bool fast : {false, true}) {
      cases.push_back(makeCase(fast ? "fp8_fast" : "fp8", Work::product, f8e4m3, shape,
                               {{"cublas", /*counts=*/!fast}, {"cublas_fast", /*counts=*/fast}}));
      cases.back().fastAccum = fast;
    }
  for (std::array<int64_t, 2> weights : {std::array<int64_t, 2>{8192, 8192}, {4096, 14336}})
    for (int64_t m : {1, 8, 16, 32, 64, 128}) {
      std::array<int64_t, 3> shape = {m, weights[0], weights[1]};
      MatmulCase one = makeCase("skinny", Work::product, bf16, shape, {{"cublas"}, {"triton_plain"}});
      auto same = [&](const MatmulCase &other) {
        return other.dtype == bf16 && other.m == m && other.n == one.n && other.k == one.k;
      };
      auto found = std::find_if(cases.begin(), cases.end(), same);
      if (found != cases.end())
        found->groups.push_back("skinny"); // measured once, and counted in both
      else
        found = cases.insert(cases.end(), std::move(one));
      found->peers.push_back({"read", /*counts=*/false});
    }
  for (std::array<int64_t, 3> shape :
       {std::array<int64_t, 3>{4097, 4099, 4101}, {1000, 3000, 5000}, {8191, 8193, 129}})
    cases.push_back(makeCase("ragged", Work::product, bf16, shape, productPeers(shape)));
  cases.push_back(groupedCase());
  for (Work work : {Work::biasGelu, Work::gated}) {
    cases.push_back(makeCase("fused", work, bf16, {4096, 14336, 4096}, {{"torch_eager"}, {"torch_compile"}}));
    cases.back().groups.push_back(cases.back().kernelName());
  }
  if (quick) {
    std::set<std::string> seen;
    for (MatmulCase &one : cases)
      makeQuick(one);
    std::erase_if(cases, [&](const MatmulCase &one) { return !seen.insert(one.name()).second; });
  }
  model::Ceilings ceilings = withClusters(*model::gpuDatasheet("NVIDIA H200"), device);
  for (MatmulCase &one : cases)
    one.tilings = bestTilings(one, ceilings);
  return cases;
}

const std::vector<MatmulGoal> &matmulGoals() {
  static const std::vector<MatmulGoal> goals = {
      {.group = "bf16", .peers = {}, .mean = 1.02, .least = 0.97},
      {.group = "f16", .peers = {}, .mean = 1},
      {.group = "fp8", .peers = {}, .least = 1},
      {.group = "fp8_fast", .peers = {}, .least = 1},
      {.group = "skinny", .peers = {}, .least = 1},
      {.group = "skinny", .peers = {"read"}, .least = 0.9},
      {.group = "ragged", .peers = {"cublas"}, .least = 1},
      {.group = "grouped", .peers = {"cublas_loop"}, .least = 1.1},
      {.group = "grouped", .peers = {"torch_grouped"}, .least = 1},
      {.group = "fused", .peers = {"torch_compile"}, .least = 1.1},
  };
  return goals;
}

//===--- MatmulProblem --------------------------------------------------------------------------------------------===//

MatmulProblem::MatmulProblem(const MatmulCase &one, Device device) : one_(one), device_(device) {
  sets_.push_back(makeSet(1));
}

Arguments MatmulProblem::makeSet(uint64_t seed) const {
  LaunchOptions fill;
  fill.target = Target::cuda;
  auto random = [&](DType dtype, IndexList sizes) {
    Tensor tensor = Tensor::empty(dtype, sizes, device_);
    fillNormal(tensor, seed++, fill);
    return tensor;
  };
  seed *= 8;
  int64_t m = one_.m, n = one_.n, k = one_.k;
  DType dtype = one_.dtype, out = zoo::productType(dtype);
  Tensor c = Tensor::empty(out, {m, n}, device_), a = random(dtype, {m, k});
  if (one_.work == Work::grouped) {
    auto experts = static_cast<int64_t>(one_.experts.size());
    return {a, random(dtype, {experts, n, k}).transpose({0, 2, 1}), zoo::expertOffsets(one_.experts).to(device_), c};
  }
  Tensor b = random(dtype, {n, k}).transpose({1, 0});
  if (one_.work == Work::gated)
    return {a, b, random(dtype, {n, k}).transpose({1, 0}), c};
  return {a, b, one_.work == Work::biasGelu ? random(out, {n}) : Tensor::empty(out, {0}, device_), c};
}

const std::vector<Arguments> &MatmulProblem::sets(size_t count) {
  while (sets_.size() < count)
    sets_.push_back(makeSet(sets_.size() + 1));
  return sets_;
}

size_t MatmulProblem::bytes() const {
  size_t total = 0;
  for (const Argument &argument : arguments())
    total += argument.tensor().bufferBytes();
  return total;
}

Verdict MatmulProblem::verify(const LaunchOptions &options) const {
  Product product;
  product.a = arguments()[0].tensor();
  product.b = {arguments()[1].tensor()};
  product.c = arguments()[3].tensor();
  product.fastAccum = one_.fastAccum;
  if (one_.work == Work::grouped) {
    product.offsets = valuesOf<int64_t>(arguments()[2].tensor().to(Device::cpu()));
  } else if (one_.work == Work::gated) {
    product.b.push_back(arguments()[2].tensor());
    product.epilogue = [](std::span<const double> sums, int64_t) { return silu(sums[0]) * sums[1]; };
  } else if (one_.work == Work::biasGelu) {
    std::vector<double> bias = valuesOf<double>(arguments()[2].tensor().to(Device::cpu()));
    product.epilogue = [bias](std::span<const double> sums, int64_t column) { return gelu(sums[0] + bias[column]); };
  }
  product.c.fillBytes(0xff);
  launch(one_.kernel(), arguments(), options);
  return judgeProduct(product, /*seed=*/1);
}

} // namespace tenon::tool
