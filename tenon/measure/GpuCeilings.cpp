// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/GpuCeilings.h"

#include "tenon/base/Error.h"
#include "tenon/jit/Jit.h"
#include "tenon/measure/GpuBench.h"

#include <algorithm>

namespace tenon {

const Kernel matrixRateKernel("matrix_rate(a, b, c, rows=128, cols=256, depth=64, tf32=0)",
                              [](View a, View b, View c, Param rows, Param cols, Param depth, Param tf32) {
  promise_no_overlap();
  Index i = grid(cdiv(c.size(0), rows));
  Tile sum = zeros(isInteger(a.dtype()) ? i32 : f32, {rows, cols});
  for (Index k : range(0, a.size(1), depth))
    sum = dot(a.load({0, k}, {rows, depth}), b.load({k, 0}, {depth, cols}), sum, {.allow_tf32 = tf32 != 0});
  c.store({i * rows, 0}, sum.to(c.dtype()));
});

namespace {

const Kernel copyKernel("copy_rate(x, y, block=8192)", [](View x, View y, Param block) {
  Index i = grid(cdiv(x.size(0), block));
  y.store({i * block}, x.load({i * block}, {block}));
});

const Kernel vectorKernel("vector_rate(x, y, rounds=2048)", [](View x, View y, Param rounds) {
  Index i = grid(x.size(0));
  Tile factor = x.load({i, 0}, {1, 2048}), sum = factor;
  for ([[maybe_unused]] Index k : range(0, rounds))
    sum = fma(sum, factor, factor);
  y.store({i, 0}, sum);
});

/// What the driver tells of a device whose datasheet is not known.
model::Ceilings fromProperties(const CudaProperties &properties) {
  model::Ceilings ceilings;
  ceilings.device = properties.name;
  ceilings.isGpu = true;
  ceilings.processors = properties.multiprocessors;
  ceilings.clockHertz = 1e3 * properties.clockKilohertz;
  double perClock = ceilings.clockHertz * properties.multiprocessors, memory = properties.bytesPerSecond();
  ceilings.levels = {{"L2", static_cast<double>(properties.l2Bytes), 64 * perClock, 64 * perClock},
                     {"memory", 0, memory, memory}};
  ceilings.vector[static_cast<size_t>(model::Precision::f32)] = 2 * 128 * perClock;
  ceilings.special = 16 * perClock;
  ceilings.integer = 64 * perClock;
  ceilings.launchSeconds = 2.5e-6;
  ceilings.limits = model::gpuLimits(properties.architecture());
  return ceilings;
}

class Measurement {
public:
  explicit Measurement(int device) : where_(Device::cuda(device)), processors_(cudaProperties(device).multiprocessors) {
    options_.target = Target::cuda;
    options_.compile.device = device;
  }

  /// Bytes read and written a second by a copy of one buffer to another, again and again.
  double copyRate(double bytes) const {
    auto elements = static_cast<int64_t>(bytes / 4);
    Tensor from = Tensor::zeros(f32, {elements}, where_), to = Tensor::zeros(f32, {elements}, where_);
    return 8.0 * static_cast<double>(elements) / fastest(copyKernel, {from, to}, options_);
  }

  double vectorRate() const {
    int64_t rows = 16 * processors_;
    Tensor x = Tensor::zeros(f32, {rows, 2048}, where_), y = Tensor::zeros(f32, {rows, 2048}, where_);
    return 2.0 * static_cast<double>(rows) * 2048 * 2048 / fastest(vectorKernel, {x, y}, options_);
  }

  /// 0 where Tenon has no such product.
  double matrixRate(DType type, bool tf32) const {
    constexpr int64_t rows = 128, cols = 256, all = 8192;
    int64_t depth = 128 / static_cast<int64_t>(sizeOf(type)); // a row of a tile fills a line
    Tensor a = Tensor::zeros(type, {rows, all}, where_);
    Tensor b = Tensor::zeros(type, {cols, all}, where_).transpose({1, 0});
    Tensor c = Tensor::zeros(isInteger(type) ? i32 : bf16, {2 * processors_ * rows, cols}, where_);
    LaunchOptions options = options_;
    options.params = {{"rows", rows}, {"cols", cols}, {"depth", depth}, {"tf32", tf32}};
    options.compile.warps = 8;
    try {
      prepare(matrixRateKernel, {a, b, c}, options);
    } catch (const InternalError &) {
      throw;
    } catch (const Error &) { // the compiler refuses: more shared memory than this architecture has, for example
      return 0;
    }
    double operations = 2.0 * rows * cols * all * 2 * processors_;
    return operations / fastest(matrixRateKernel, {a, b, c}, options);
  }

private:
  /// Seconds a launch.
  static double fastest(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
    GpuBursts bursts(kernel, {arguments}, options);
    double best = bursts();
    for (int attempt = 0; attempt < 6; ++attempt)
      best = std::min(best, bursts());
    return best;
  }

  Device where_;
  int64_t processors_;
  LaunchOptions options_;
};

} // namespace

model::Ceilings measureGpuCeilings(int device) {
  using enum model::Precision;
  const CudaProperties &properties = cudaProperties(device);
  auto sheet = model::gpuDatasheet(properties.name);
  model::Ceilings ceilings = sheet ? *sheet : fromProperties(properties);
  Measurement measurement(device);
  auto lower = [](double &rate, double measured) {
    if (measured > 0)
      rate = rate > 0 ? std::min(rate, measured) : measured;
  };
  model::Ceilings::Level &memory = ceilings.levels.back(), &l2 = ceilings.levels.front();
  lower(memory.copyBytesPerSecond, measurement.copyRate(1 << 28));
  // Half of the cache for both buffers together: what is written must stay there as well. The datasheet has no such
  // rate, so the measured one takes the place of the guess.
  if (double rate = measurement.copyRate(static_cast<double>(properties.l2Bytes) / 4); rate > 0)
    l2.copyBytesPerSecond = rate;
  lower(ceilings.vector[static_cast<size_t>(f32)], measurement.vectorRate());
  for (auto [precision, type] : {std::pair(f16, DType::f16), std::pair(bf16, DType::bf16), std::pair(tf32, DType::f32),
                                 std::pair(f8, DType::f8e4m3), std::pair(i8, DType::i8)})
    if (double &rate = ceilings.matrix[static_cast<size_t>(precision)]; rate > 0 || !sheet)
      lower(rate, measurement.matrixRate(type, precision == tf32));
  ceilings.measured = true;
  return ceilings;
}

} // namespace tenon
