// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/kernels/Zoo.h"

#include <string>
#include <vector>

/// What `tenon bench gpu` measures: kernels of the zoo in bf16, forward, at the sizes of large models.
namespace tenon::tool {

/// How a kernel's work is cut for a GPU.
struct Tiling {
  Params params;
  int warps = 0, cluster = 0, stages = 0; ///< 0: the compiler chooses
  int split = 0;                          ///< instances that share a loop
  int tail = 0;                           ///< 1: the last instances are made by all blocks
  int pingPong = 0;                       ///< 1: two warpgroups take instances in turns
  std::string without;                    ///< steps left out

  std::string text() const; ///< "cols=4096 rows=1, 8 warps"
  void applyTo(LaunchOptions &options) const;
};
/// From "bm=128,bn=256,warps=8,without=order+slices": the names of compile options, or else of parameters. Throws Error.
Tiling parseTiling(const std::string &text);

struct GpuCase {
  const zoo::Entry *entry = nullptr;
  std::vector<int64_t> shape; ///< the first number is rows
  Tiling tiling;
  std::vector<Tiling> alternatives; ///< what --sweep tries beside it
  std::vector<std::string> peers;   ///< in the words of scripts/peers/gpu_peers.py
  size_t graphLaunches = 0;         ///< not 0: launched as part of a CUDA graph of so many
  bool readsOnly = false;           ///< the yardstick is the bandwidth of reading, not of copying
  bool sameRows = true;             ///< equal rows give equal results, wherever they are
  double bandwidthGoal = 0;         ///< at least that part of the yardstick's; 0: none
  double peerGoal = 0;              ///< at least that part of the best peer's speed; 0: none

  std::string name() const; ///< "softmax 16384x8192", "gelu_tanh 1x8192 graph"
  DType dtype() const { return bf16; }
  Problem problem(int64_t rows) const;
  /// The problem's parameters, then the tiling's.
  LaunchOptions launchOptions(const Tiling &tiling) const;
  int64_t elementsPerRow() const;
  double bytes() const; ///< that must be moved at least
};

/// In the order of the table. `quick`: a sixteenth of the rows.
std::vector<GpuCase> gpuCases(bool quick);

/// The yardsticks: y = x, and a maximum of each row, which reads and hardly writes. Their shape is rows x 8192.
const zoo::Entry &copyEntry();
const zoo::Entry &readEntry();
/// The yardstick of about that many bytes in all.
GpuCase yardstick(bool readsOnly, double bytes);

} // namespace tenon::tool
