// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/LaunchGraph.h"

#include "tenon/base/Error.h"
#include "tenon/profile/Recorder.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"

#include <mutex>
#include <utility>

namespace tenon {

struct LaunchGraph::Impl {
  explicit Impl(cuda::Gpu &gpu) : gpu(gpu) {}
  ~Impl() {
    if (number)
      profile::removeGraph(number);
    if (gpu.isLost())
      return;
    gpu.awaitQueuedWork(); // it may be running
    cuda::CurrentContext current(gpu);
    if (exec)
      gpu.note(gpu.api().cuGraphExecDestroy(exec), "destroying a graph");
    if (graph)
      gpu.note(gpu.api().cuGraphDestroy(graph), "destroying a graph");
  }

  /// The graph's number in profiles, which learn of it by its first launch that one sees.
  uint64_t profiled() {
    std::call_once(toldOnce, [&] {
      std::vector<profile::GraphKernel> kernels;
      for (const cuda::Capture::Kernel &kernel : captured.kernels)
        kernels.push_back({profile::intern(kernel.name), static_cast<uint64_t>(kernel.bytes), kernel.flops});
      number = profile::addGraph(std::move(kernels));
    });
    return number;
  }

  cuda::Gpu &gpu;
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle exec = nullptr;
  cuda::Capture captured;
  std::once_flag toldOnce;
  uint64_t number = 0;
};

LaunchGraph LaunchGraph::capture(Stream &stream, const std::function<void()> &queue) {
  if (!queue)
    throw Error("an empty function cannot be captured; give it something to call");
  cuda::CudaStream &captured = cuda::CudaStream::of(stream);
  cuda::Gpu &gpu = captured.gpu();
  auto impl = std::make_shared<Impl>(gpu);
  captured.beginCapture();
  struct Capturing {
    cuda::Capture *outer;
    explicit Capturing(cuda::Capture &capture) : outer(std::exchange(cuda::CudaStream::capture, &capture)) {}
    ~Capturing() { cuda::CudaStream::capture = outer; }
  };
  try {
    Capturing capturing(impl->captured);
    queue();
  } catch (...) {
    captured.endCapture(impl->graph);
    throw;
  }
  gpu.check(captured.endCapture(impl->graph), "capturing a graph");
  cuda::CurrentContext current(gpu);
  gpu.check(gpu.api().cuGraphInstantiate(&impl->exec, impl->graph, 0), "making a captured graph ready to run");
  LaunchGraph result;
  result.impl_ = std::move(impl);
  return result;
}

void LaunchGraph::launch(Stream &stream) const {
  cuda::CudaStream &target = cuda::CudaStream::of(stream);
  if (!impl_)
    throw Error("an empty graph cannot be launched; capture one first");
  cuda::Gpu &gpu = impl_->gpu;
  gpu.checkUsable();
  if (&gpu != &target.gpu())
    throw Error("a graph captured on " + gpu.device().str() + " cannot run on a stream of " + target.device().str());
  profile::Span span(profile::Kind::launch, "a captured graph");
  uint64_t number = 0;
  if (span) {
    number = span->launch = profile::nextLaunch();
    span->device = static_cast<int8_t>(gpu.ordinal());
    span->graph = impl_->profiled();
  }
  profile::Span submit(profile::Kind::submit, "a captured graph");
  if (submit)
    submit->launch = number;
  cuda::CurrentContext current(gpu);
  gpu.check(gpu.api().cuGraphLaunch(impl_->exec, target.handle()), "launching a graph");
  target.noteLaunch("a captured graph");
}

size_t LaunchGraph::nodes() const {
  if (!impl_)
    return 0;
  size_t count = 0;
  cuda::CurrentContext current(impl_->gpu);
  impl_->gpu.check(impl_->gpu.api().cuGraphGetNodes(impl_->graph, nullptr, &count), "counting a graph's launches");
  return count;
}

void LaunchGraph::keep(Tensor tensor) {
  if (!impl_)
    throw Error("an empty graph keeps no tensors; capture one first");
  impl_->captured.kept.push_back(std::make_shared<Tensor>(std::move(tensor)));
}

} // namespace tenon
