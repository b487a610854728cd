// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: the arguments of a launch in memory that the tuner and its workers share.
#pragma once

#include "tenon/jit/Jit.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tenon::tuning {

/// One stretch of shared memory (without a name: it is gone when the last process that maps it is):
///
///     guard | region 0 | guard | guard | region 1 | guard | ...
///
/// A region holds the tensors whose memory touches, as it is: strides, gaps, overlaps and alignment stay. Guards are
/// filled with a pattern, and a candidate that writes there is found out.
class Arena {
public:
  /// Laid out for arguments like these: the same kinds, shapes and strides, wherever their memory is.
  Arena(const Kernel &kernel, const Arguments &arguments);
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// How another process of this user opens it.
  std::string path() const;
  size_t bytes() const { return bytes_; }
  /// The words that compiled code reads; those at addresses() count from the start of the arena.
  const std::vector<int64_t> &words() const { return words_; }
  const std::vector<size_t> &addresses() const { return addresses_; }
  /// Where a tensor argument's first element is, from the start of the arena.
  size_t offsetOf(size_t argument) const { return offsets_[argument]; }
  std::byte *begin() const { return memory_; }

  /// Copies the arguments in and renews the guards.
  void load(const Arguments &arguments);
  /// Copies everything out, inputs and gaps too, so that whoever judges sees what became of them. Throws Error when a
  /// guard was written to.
  void store(const Arguments &arguments) const;

private:
  struct Region {
    size_t first;              ///< the argument that begins lowest: says where the region is
    size_t offset, bytes;      ///< in the arena
    size_t guard;              ///< bytes on each side
    std::vector<size_t> members;
  };
  void findRegions(const Arguments &arguments);
  std::byte *at(size_t offset) const { return memory_ + offset; }

  std::vector<Region> regions_;
  std::vector<std::string> names_; ///< of the arguments
  std::vector<int64_t> words_;
  std::vector<size_t> addresses_;
  std::vector<size_t> offsets_; ///< by argument; 0 for a number
  size_t bytes_ = 0;
  int file_ = -1;
  std::byte *memory_ = nullptr;
};

/// Shared memory of another process, as a worker sees it.
class MappedArena {
public:
  MappedArena(const std::string &path, size_t bytes);
  ~MappedArena();
  MappedArena(const MappedArena &) = delete;
  MappedArena &operator=(const MappedArena &) = delete;
  std::byte *begin() const { return memory_; }
  size_t bytes() const { return bytes_; }

private:
  std::byte *memory_;
  size_t bytes_;
};

} // namespace tenon::tuning
