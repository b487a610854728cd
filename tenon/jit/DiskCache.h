// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The compiled kernels of earlier runs, on disk, shared by all processes of one user.
///
/// A cache must never make anything worse than having none. So nothing here throws or stops a program: what cannot be
/// read is a miss, what cannot be written is dropped, a directory that others could write to is not used at all, and
/// the reason is said once. What is loaded becomes code in this process, hence the care about who may have written it.
///
///     <directory>/<first two characters of the key>/<key>      one entry, one file, complete once it is there
///
/// Entries are written aside, synchronised and renamed, so that readers and a crash see all of an entry or none of it.
/// Safe to use from several threads and processes at once.
class DiskCache {
public:
  struct Options {
    /// Absolute. Empty: $TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else $HOME/.cache/tenon.
    std::string directory;
    /// When a store goes past it, the entries unused for longest are removed until a tenth is free.
    uint64_t maxBytes = uint64_t(2) << 30;
    /// A larger file is taken for damage, and a larger kernel is not stored.
    uint64_t maxEntryBytes = uint64_t(256) << 20;
    /// Told each kind of trouble once; without it, they go to the standard error stream.
    std::function<void(const std::string &)> warn;
  };

  DiskCache();
  explicit DiskCache(Options options);
  ~DiskCache();
  DiskCache(const DiskCache &) = delete;
  DiskCache &operator=(const DiskCache &) = delete;

  /// Whether there is a directory to use; if not, every load is a miss and a store does nothing.
  bool enabled() const;
  /// Why it is not enabled; empty if it is.
  std::string reason() const;
  const std::string &directory() const;

  /// `key` is 64 lower-case hexadecimal characters that name the payload's content.
  std::optional<std::vector<std::byte>> load(std::string_view key);
  void store(std::string_view key, std::span<const std::byte> payload);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

bool isCacheKey(std::string_view key);

/// The file of an entry: magic, format version, length of the payload, checksum of key and payload, payload.
std::vector<std::byte> encodeEntry(std::string_view key, std::span<const std::byte> payload);
/// The payload inside `file`, or nothing unless `file` is exactly what encodeEntry gives for it. Pure, and defined for
/// any input at all.
std::optional<std::span<const std::byte>> decodeEntry(std::span<const std::byte> file, std::string_view key);

} // namespace tenon
