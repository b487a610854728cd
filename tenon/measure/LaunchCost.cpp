// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/LaunchCost.h"

#include "tenon/jit/Jit.h"
#include "tenon/profile/Profile.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Module.h"

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace tenon {
namespace {

/// So few that a device's queue never fills, and the host never waits for it.
constexpr size_t inARow = 200;

/// Seconds of the host for each of some calls in a row.
double hostSeconds(const std::function<void()> &call) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  for (size_t i = 0; i < inARow; ++i)
    call();
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(inARow);
}

/// An empty kernel, launched by nothing but the driver's call.
class EmptyKernel {
public:
  explicit EmptyKernel(Stream &stream)
      : stream_(cuda::CudaStream::of(stream)), function_(cuda::Module::fromPtx(stream_.gpu(), text), "nothing") {
    shape_.block[0] = 32;
  }
  void operator()() { cuda::launch(function_, shape_, stream_, words_); }

private:
  static constexpr const char *text = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                      ".visible .entry nothing(.param .u64 x, .param .u64 y) { ret; }\n";
  cuda::CudaStream &stream_;
  cuda::Function function_;
  cuda::LaunchShape shape_;
  uint64_t words_[2] = {0, 0};
};

} // namespace

LaunchCost measureLaunchCost(size_t launches, Device device) {
  static const Kernel tiny("tiny_copy(x, y)", [](View x, View y) {
    Index i = grid(1);
    y.store({i}, x.load({i}, {32}));
  });
  LaunchOptions options;
  std::optional<Stream> stream;
  std::optional<EmptyKernel> empty;
  if (device.isCuda()) {
    stream.emplace(device);
    empty.emplace(*stream);
    options.target = Target::cuda;
    options.stream = &*stream;
  } else {
    options.threads = 1;
  }
  Arguments arguments = {Tensor::zeros(DType::f32, {32}, device), Tensor::zeros(DType::f32, {32}, device)};
  auto launchOnce = [&] { launch(tiny, arguments, options); };
  auto wait = [&] {
    if (stream)
      stream->synchronize();
  };
  std::vector<double> plain, profiled, added, driver;
  for (size_t done = 0; done < launches + inARow; done += inARow) {
    if (empty) {
      double seconds = hostSeconds([&] { (*empty)(); });
      wait();
      if (done) // the first round warms up
        driver.push_back(seconds);
    }
    double off = hostSeconds(launchOnce);
    wait();
    Profile profile;
    launchOnce(); // counts the work, once
    double on = hostSeconds(launchOnce);
    wait();
    profile.stop();
    if (!done)
      continue;
    plain.push_back(off);
    profiled.push_back(on);
    added.push_back(on - off);
  }
  LaunchCost cost;
  cost.launches = plain.size() * inARow;
  cost.launch = estimate(plain);
  cost.profiled = estimate(profiled);
  cost.added = estimate(added);
  if (empty)
    cost.driver = estimate(driver);
  return cost;
}

} // namespace tenon
