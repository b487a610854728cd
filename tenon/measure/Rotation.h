// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"

#include <vector>

namespace tenon {

/// Copies of one set of arguments, taken in turn, so that a kernel measured over and over meets data that is in memory
/// and not in the cache: a model's kernel finds its inputs cold. On a device all of them are copies; on the CPU the
/// first is what was given. There are so many sets that all but one together
/// exceed twice the last-level cache, unless `maxBytes` or `maxSets` ends it first; one set that exceeds it alone is
/// enough.
class Rotation {
public:
  struct Options {
    Device device = {};    ///< where they are to be
    size_t cacheBytes = 0; ///< 0: the last-level cache of this machine, or of the device
    size_t maxBytes = 0;   ///< of all sets together; 0: the smaller of 2 GiB and a quarter of the free memory
    size_t maxSets = 4096;
  };
  explicit Rotation(const Arguments &arguments);
  Rotation(const Arguments &arguments, Options options);

  const Arguments &next() { return sets_[turn_++ % sets_.size()]; }
  size_t sets() const { return sets_.size(); }
  size_t bytesPerSet() const { return bytesPerSet_; }
  /// Whether no set is likely to be in the cache when its turn comes.
  bool cold() const { return cold_; }

private:
  std::vector<Arguments> sets_;
  size_t turn_ = 0, bytesPerSet_ = 0;
  bool cold_ = false;
};

/// A copy of arguments on the host with buffers of its own on `device`. Strides are kept, and views of one buffer share
/// their memory in the copy too: an in-place argument stays one.
Arguments copyArguments(const Arguments &arguments, Device device = {});

} // namespace tenon
