// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/GpuBench.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/LaunchGraph.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Module.h"

#include <algorithm>
#include <cstring>

namespace tenon {

//===--- RepeatedProblem ------------------------------------------------------------------------------------------===//

RepeatedProblem::RepeatedProblem(const std::function<Problem(int64_t rows)> &makeProblem, int64_t rows,
                                 int64_t blockRows, Device device)
    : block_(makeProblem(blockRows)), rows_(rows), blockRows_(blockRows) {
  if (rows % blockRows != 0)
    throw InternalError(std::to_string(rows) + " rows are no multiple of " + std::to_string(blockRows));
  Problem one = makeProblem(1), two = makeProblem(2);
  for (size_t i = 0; i < block_.arguments.size(); ++i) {
    const Argument &argument = block_.arguments[i];
    hasRows_.push_back(argument.isTensor() && one.arguments[i].tensor().size(0) != two.arguments[i].tensor().size(0));
    if (!argument.isTensor()) {
      arguments_.push_back(argument);
      continue;
    }
    std::vector<int64_t> sizes(argument.tensor().sizes().begin(), argument.tensor().sizes().end());
    if (hasRows_.back())
      sizes[0] = rows;
    arguments_.push_back(Tensor::empty(argument.tensor().dtype(), sizes, device));
  }
  fill(block_.arguments);
}

void RepeatedProblem::fill(const Arguments &block) const {
  for (size_t i = 0; i < block.size(); ++i) {
    if (!block[i].isTensor())
      continue;
    const Tensor &all = arguments_[i].tensor();
    if (!hasRows_[i]) {
      all.copyFrom(block[i].tensor());
      continue;
    }
    all.slice(0, 0, blockRows_).copyFrom(block[i].tensor());
    for (int64_t done = blockRows_; done < rows_;) {
      int64_t more = std::min(done, rows_ - done);
      all.slice(0, done, more).copyFrom(all.slice(0, 0, more));
      done += more;
    }
  }
}

Verdict RepeatedProblem::verify(const Kernel &kernel, const LaunchOptions &options, bool sameRows) const {
  LaunchOptions now = options;
  now.stream = nullptr;
  std::string difference;
  auto subject = [&](const Arguments &host) {
    fill(host); // the outputs with their poison, too
    launch(kernel, arguments_, now);
    for (size_t output : block_.outputs) {
      const Tensor &all = arguments_[output].tensor();
      host[output].tensor().copyFrom(hasRows_[output] ? all.slice(0, 0, blockRows_) : all);
      if (!sameRows || !hasRows_[output] || rows_ == blockRows_ || !difference.empty())
        continue;
      Tensor first = all.slice(0, 0, blockRows_).to(Device::cpu());
      Tensor last = all.slice(0, rows_ - blockRows_, blockRows_).to(Device::cpu());
      size_t bytes = static_cast<size_t>(first.elements()) * sizeOf(first.dtype());
      if (std::memcmp(first.data(), last.data(), bytes) != 0)
        difference = "the last " + std::to_string(blockRows_) +
                     " rows differ from the first ones, whose inputs are the same";
    }
  };
  Verdict verdict = tenon::verify(block_, subject);
  if (verdict.passed && !difference.empty()) {
    verdict.passed = false;
    verdict.reason = difference;
  }
  return verdict;
}

std::vector<Arguments> RepeatedProblem::copies(size_t sets) const {
  std::vector<Arguments> result = {arguments_};
  while (result.size() < sets) {
    Arguments copy;
    for (const Argument &argument : arguments_)
      copy.push_back(argument.isTensor() ? Argument(argument.tensor().to(argument.tensor().device())) : argument);
    result.push_back(std::move(copy));
  }
  return result;
}

size_t RepeatedProblem::bytes() const {
  size_t total = 0;
  for (const Argument &argument : arguments_)
    if (argument.isTensor())
      total += argument.tensor().bufferBytes();
  return total;
}

size_t setsToExceedCache(size_t bytesPerSet, Device device) {
  auto cache = static_cast<size_t>(cudaProperties(device.ordinal).l2Bytes);
  // A set larger than that evicts itself: by the time its end is written, its beginning is gone.
  return bytesPerSet > 2 * cache ? 1 : 2 * cache / std::max<size_t>(bytesPerSet, 1) + 2;
}

//===--- GpuBursts ------------------------------------------------------------------------------------------------===//

struct GpuBursts::Impl {
  Impl(const Kernel &kernel, std::vector<Arguments> argumentSets, const LaunchOptions &launchOptions, Device device)
      : kernel(kernel), sets(std::move(argumentSets)), stream(device), options(launchOptions) {
    options.stream = &stream;
  }

  void launchNext() { launch(kernel, sets[turn++ % sets.size()], options); }
  /// Launches of the kernel, or of the graph.
  void queue(size_t count) {
    for (size_t i = 0; i < count; ++i)
      graphLaunches ? graph.launch(stream) : launchNext();
  }
  /// Seconds that `count` launches take on the device.
  double time(size_t count) { return time(count, graphLaunches ? 1 : 2); }
  double time(size_t count, size_t untimed) {
    queue(untimed);
    Event start, end;
    stream.record(start);
    queue(count);
    stream.record(end);
    stream.synchronize();
    return elapsedMilliseconds(start, end) * 1e-3;
  }

  const Kernel &kernel;
  std::vector<Arguments> sets;
  size_t turn = 0;
  Stream stream;
  LaunchOptions options;
  LaunchGraph graph;
  size_t graphLaunches = 0;
  double once = 0;     ///< seconds of a launch of the kernel, or of the graph
  size_t perBurst = 1; ///< of those
};

static size_t launchesIn(double seconds, double once) {
  return static_cast<size_t>(std::clamp(seconds / once, 1.0, 2000.0) + 0.5);
}

GpuBursts::GpuBursts(const Kernel &kernel, std::vector<Arguments> sets, const LaunchOptions &options, Options burst) {
  Device device;
  for (const Argument &argument : sets.at(0))
    if (argument.isTensor())
      device = argument.tensor().device();
  if (!device.isCuda())
    throw Error("bursts are measured on a CUDA device: copy the tensors there with Tensor::to()");
  impl_ = std::make_unique<Impl>(kernel, std::move(sets), options, device);
  impl_->queue(3); // compiles, and loads the code
  impl_->stream.synchronize();
  if (burst.graphLaunches) {
    impl_->graph = LaunchGraph::capture(impl_->stream, [&] {
      for (size_t i = 0; i < burst.graphLaunches; ++i)
        impl_->launchNext();
    });
    impl_->graphLaunches = burst.graphLaunches;
  }
  impl_->time(3);
  // Three launches tell as much of one that takes long.
  size_t launches = impl_->time(1) > 1e-3 ? 3 : 10;
  impl_->once = std::max(impl_->time(launches) / static_cast<double>(launches), 1e-7);
  impl_->perBurst = launchesIn(burst.burstSeconds, impl_->once);
}

GpuBursts::~GpuBursts() = default;

double GpuBursts::operator()() { return impl_->time(impl_->perBurst) / static_cast<double>(launches()); }

double GpuBursts::operator()(const BurstLength &length) {
  size_t count = launchesIn(length.seconds, impl_->once);
  return impl_->time(count, length.untimed) / static_cast<double>(count * std::max<size_t>(impl_->graphLaunches, 1));
}

size_t GpuBursts::launches() const { return impl_->perBurst * std::max<size_t>(impl_->graphLaunches, 1); }

} // namespace tenon
