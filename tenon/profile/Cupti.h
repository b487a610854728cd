// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon::profile {

/// What an NVIDIA device did and when, by CUPTI's activity records: kernels, copies and fills become events of the
/// profile. The library is opened when it is first wanted (libcupti, or what TENON_CUPTI names; "none": never) and
/// needs no privileges. Without it only the host's times are known.
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

  std::string reason_;
  int users_ = 0;
};

} // namespace tenon::profile
