// SPDX-License-Identifier: Apache-2.0
#include "MatmulOrder.h"

#include "tenon/jit/Count.h"
#include "tenon/kernels/Problems.h"
#include "tenon/model/GpuCost.h"

#include <algorithm>

namespace tenon::tool {
namespace {

using Work = MatmulCase::Work;

/// Tensors of the case's sizes that nobody writes to: memory that is never touched is never there.
Arguments shapesOf(const MatmulCase &one, int64_t rows) {
  DType out = zoo::productType(one.dtype);
  Tensor a = Tensor::empty(one.dtype, {rows, one.k}), c = Tensor::empty(out, {rows, one.n});
  Tensor b = Tensor::empty(one.dtype, {one.n, one.k}).transpose({1, 0});
  if (one.work == Work::gated)
    return {a, b, b, c};
  return {a, b, Tensor::empty(out, {one.work == Work::biasGelu ? one.n : 0}), c};
}

/// The bench orders short lists of tilings, with weights of its own for widths and slots (MatmulCases.cpp); these are the
/// factors that its records were taken with. The tuner's, for whole spaces, are those of GpuCost.h.
model::GpuFactors factorsOfTheLists() {
  model::GpuFactors factors;
  factors.load = 95e9;
  factors.latency = 0.7e-6;
  factors.lag = factors.narrow = factors.gather = factors.coupled = 0;
  factors.uneven = factors.slices = 1;
  factors.straddling = factors.byThreads = 1.9;
  factors.sharing = 6e-6;
  return factors;
}

} // namespace

double predictedSeconds(const MatmulCase &one, const Tiling &tiling, const model::Ceilings &ceilings) {
  // Experts begin with tiles of their own: as many rows as these have, in one product.
  int64_t rows = one.m;
  if (!one.experts.empty()) {
    int64_t bm = tiling.params.at("bm");
    rows = 0;
    for (int64_t count : one.experts)
      rows += (count + bm - 1) / bm * bm;
  }
  const Kernel &kernel = one.work == Work::grouped ? zoo::matmul : one.kernel();
  LaunchOptions options = one.launchOptions(tiling);
  for (const char *ofExperts : {"search", "pair"})
    options.params.erase(ofExperts);
  options.target = Target::sim;   // nothing runs, and no device is asked
  Arguments arguments = shapesOf(one, rows);
  model::Counts counts =
      jit::countPlan(kernel, arguments, options).count(jit::argumentWords(kernel, arguments, options));
  model::GpuShape shape;
  shape.warps = options.compile.warps;
  shape.cluster = std::max(options.compile.cluster, 1);
  shape.stages = options.compile.stages;
  shape.split = std::max(options.compile.split, 1);
  shape.pingPong = options.compile.pingPong;
  return model::gpuCost(counts, ceilings, shape, factorsOfTheLists()).seconds;
}

} // namespace tenon::tool
