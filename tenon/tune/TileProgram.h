// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: a kernel as text that another process can compile and run. Lambdas do not travel; Tile IR does.
#pragma once

#include "tenon/jit/Jit.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tenon::tuning {

/// The Tile IR of one configuration.
struct TileText {
  std::string ir;   ///< with source lines, so that compiling it gives what a launch would compile
  std::string hash; ///< of the Tile IR without source lines: a moved kernel is the same kernel
};
/// Traces the kernel; throws Error when it refuses these parameters.
TileText traceToText(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options);

/// Tile IR, compiled.
class TileProgram {
public:
  /// Throws Error when it cannot be compiled.
  TileProgram(const std::string &ir, Target target, const CompileOptions &options, CompileReport *report = nullptr);
  ~TileProgram();
  TileProgram(TileProgram &&) noexcept;

  /// One launch, done when it returns; on a CUDA device with a stream, queued when it returns. `words` are those of the
  /// arguments: an address, sizes and strides for a tensor, the integer or the bits of the double for a number.
  void run(std::span<const int64_t> words, int threads, Stream *stream = nullptr) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace tenon::tuning
