// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace tenon::profile {

/// What an NVIDIA device did and when, by CUPTI's activity records: kernels, copies and fills become events of the
/// profile. The library is looked for when it is first wanted (TENON_CUPTI names one; "none": never) and needs no
/// privileges. Without it only the host's times are known.
class Cupti {
public:
  static Cupti &instance();

  /// From now on the device's work is recorded; false where that is not possible.
  bool start();
  /// The records so far become events (addForeign).
  void flush();
  void stop();
  /// Why nothing is recorded; empty while it is, or was.
  const std::string &reason() const { return reason_; }

private:
  Cupti();
  std::string open();
  /// Before the library's own destructors run, which are registered when it is opened: afterwards it must not be called.
  void finish();

  std::mutex mutex_;
  std::string reason_;
  int users_ = 0;
  bool isOver_ = false;
};

/// Where libcupti is looked for, in this order: as programs find libraries, in the toolkits of /usr/local and of
/// CUDA_HOME, and in the packages of the Python environment that is active.
std::vector<std::string> cuptiCandidates();

} // namespace tenon::profile
