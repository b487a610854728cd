// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: what is kept with a kernel.
#pragma once

#include "tenon/jit/Binding.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

namespace tenon::jit {

/// What was compiled for one kernel in this process, by the key of a Binding. Used by several threads at once: looking
/// up takes no lock, since nothing that was ever found is changed or removed while the kernel lives.
class KernelCache {
public:
  explicit KernelCache(const Kernel &kernel) : signature(kernel) {}
  /// The kernel's own, made by the first call; lives as long as the kernel and its copies.
  static KernelCache &of(const Kernel &kernel);

  const Signature signature;

  /// Null when it is not there.
  const std::shared_ptr<Executable> *find(std::span<const uint64_t> key) const noexcept;
  /// What is there meanwhile, or else what `make` returns; one at a time is made.
  const std::shared_ptr<Executable> &findOrMake(std::span<const uint64_t> key,
                                                const std::function<std::shared_ptr<Executable>()> &make);

  /// What was made last; empty if nothing was. Only for `make`, which runs under the lock.
  std::span<const uint64_t> newestKey() const {
    return entries_.empty() ? std::span<const uint64_t>() : entries_.back()->key;
  }

private:
  struct Entry {
    uint64_t hash;
    std::vector<uint64_t> key;
    std::shared_ptr<Executable> executable;
  };
  /// Open addressing, linear probing, at most half full.
  struct Table {
    explicit Table(size_t size) : mask(size - 1), slots(size) {}
    void insert(const Entry *entry);

    size_t mask;
    std::vector<std::atomic<const Entry *>> slots;
  };

  std::atomic<const Table *> table_ = nullptr;
  std::mutex mutex_; ///< of what follows
  std::vector<std::unique_ptr<const Entry>> entries_;
  std::vector<std::unique_ptr<Table>> tables_; ///< the last is in use; somebody may still be reading the others
};

} // namespace tenon::jit
