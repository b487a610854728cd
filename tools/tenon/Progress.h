// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tenon::tool {

/// One line at the bottom of the terminal that says how far the work is:
///     #########---------------  5/13 softmax: measuring 8s
/// On the standard error stream, and only if that is a terminal; it is wiped when the work ends.
class Progress {
public:
  explicit Progress(size_t total);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// What is being done now.
  void show(const std::string &what);
  /// One of `total` is done.
  void advance();
  /// Makes room for other output.
  void clear();

private:
  void draw();

  size_t total_, done_ = 0;
  std::string what_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace tenon::tool
