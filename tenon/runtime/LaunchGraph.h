// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/Device.h"
#include "tenon/runtime/Tensor.h"

#include <functional>
#include <memory>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

class Stream;

/// Launches captured once and repeated as one: a graph of the CUDA driver. A handle: copies share the graph. The
/// kernels run with the arguments they were captured with, so their tensors must live as long as the graph: keep()
/// those that nobody else holds.
class LaunchGraph {
public:
  /// An empty one; launching it is an error.
  LaunchGraph() = default;

  /// Calls `queue`, which launches kernels on `stream` (and on streams that wait for events of it and are waited for at
  /// the end). Nothing runs: the work becomes the graph. Kernels must be compiled before. If `queue` throws, the
  /// stream is as it was.
  static LaunchGraph capture(Stream &stream, const std::function<void()> &queue);

  /// Queues the whole graph, on any stream of the device.
  void launch(Stream &stream) const;
  /// How many launches, copies and fills it has.
  size_t nodes() const;
  void keep(Tensor tensor);

private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

} // namespace tenon
#pragma GCC visibility pop
