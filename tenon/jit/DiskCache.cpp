// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/DiskCache.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tenon {
namespace {

//===-- the format of an entry ------------------------------------------------------------------------------------===//

constexpr std::string_view magic = "TENONKRN";
/// Changes whenever the header or the meaning of the payload does; entries of other versions are misses.
constexpr uint32_t formatVersion = 3;
constexpr size_t headerBytes = 8 + 4 + 8 + 16;

using Header = std::array<std::byte, headerBytes>;

void putLittleEndian(std::byte *to, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    to[i] = static_cast<std::byte>(value >> (8 * i));
}

llvm::XXH128_hash_t hash(const void *data, size_t bytes) {
  return llvm::xxh3_128bits(llvm::ArrayRef<uint8_t>(static_cast<const uint8_t *>(data), bytes));
}

/// The only valid header for this key and payload, which is what makes checking one a comparison. The key is part of
/// the checksum so that an entry under another's name is damage as well.
Header headerFor(std::string_view key, std::span<const std::byte> payload) {
  llvm::XXH128_hash_t ofPayload = hash(payload.data(), payload.size());
  std::vector<std::byte> both(key.size() + 16);
  std::memcpy(both.data(), key.data(), key.size());
  putLittleEndian(both.data() + key.size(), ofPayload.low64, 8);
  putLittleEndian(both.data() + key.size() + 8, ofPayload.high64, 8);
  llvm::XXH128_hash_t checksum = hash(both.data(), both.size());

  Header header;
  std::memcpy(header.data(), magic.data(), magic.size());
  putLittleEndian(header.data() + 8, formatVersion, 4);
  putLittleEndian(header.data() + 12, payload.size(), 8);
  putLittleEndian(header.data() + 20, checksum.low64, 8);
  putLittleEndian(header.data() + 28, checksum.high64, 8);
  return header;
}

//===-- files -----------------------------------------------------------------------------------------------------===//

/// A file descriptor that closes itself.
class File {
public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
  }
  File(File &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File &operator=(File &&other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }

private:
  int descriptor_;
};

constexpr int directoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::string_view temporaryPrefix = ".tmp-";
/// A temporary older than this was left by a process that died.
constexpr time_t temporaryLifetime = 60 * 60;

std::string systemError() { return std::strerror(errno); }

/// Why files of `info` cannot be trusted, or empty. Judged on an open descriptor, so that it cannot change afterwards.
std::string untrusted(const struct stat &info) {
  if (info.st_uid != ::geteuid())
    return "it belongs to user " + std::to_string(info.st_uid) + " and not to this one";
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return "others may write to it; remove their permission";
  return "";
}

bool writeAll(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

/// Fewer than asked for at the end of the file or at an error; the decoder then refuses what there is.
std::vector<std::byte> readAll(int descriptor, size_t size) {
  std::vector<std::byte> bytes(size);
  size_t done = 0;
  while (done < size) {
    ssize_t got = ::read(descriptor, bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

/// Calls function(name) for everything in a directory but "." and "..".
template <typename Function> void forEachName(int directory, Function function) {
  // fdopendir takes its descriptor over, and a duplicate would share the position with other threads: open it again.
  int descriptor = ::openat(directory, ".", directoryFlags);
  DIR *stream = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
  if (!stream) {
    if (descriptor >= 0)
      ::close(descriptor);
    return;
  }
  std::unique_ptr<DIR, int (*)(DIR *)> closer(stream, ::closedir);
  while (const dirent *entry = ::readdir(stream))
    if (std::string_view name = entry->d_name; name != "." && name != "..")
      function(std::string(name));
}

/// From the environment; only absolute paths count, because a cache in the working directory would run whatever code
/// somebody left there.
std::string defaultDirectory(std::string &reason) {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string own = variable("TENON_CACHE_DIR"); !own.empty())
    return own;
  if (std::string xdg = variable("XDG_CACHE_HOME"); xdg.starts_with('/'))
    return xdg + "/tenon";
  if (std::string home = variable("HOME"); home.starts_with('/'))
    return home + "/.cache/tenon";
  reason = "there is no directory for it; set TENON_CACHE_DIR";
  return "";
}

} // namespace

bool isCacheKey(std::string_view key) {
  return key.size() == 64 && std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::vector<std::byte> encodeEntry(std::string_view key, std::span<const std::byte> payload) {
  Header header = headerFor(key, payload);
  std::vector<std::byte> file(header.begin(), header.end());
  file.insert(file.end(), payload.begin(), payload.end());
  return file;
}

std::optional<std::span<const std::byte>> decodeEntry(std::span<const std::byte> file, std::string_view key) {
  if (file.size() < headerBytes)
    return std::nullopt;
  std::span<const std::byte> payload = file.subspan(headerBytes);
  Header expected = headerFor(key, payload);
  if (!std::equal(expected.begin(), expected.end(), file.begin()))
    return std::nullopt;
  return payload;
}

//===-- the cache -------------------------------------------------------------------------------------------------===//

struct DiskCache::Impl {
  Options options;
  std::string reason;
  File root; ///< all paths are relative to it: what the name of the directory means later does not matter

  std::mutex mutex;             ///< of the two that follow
  std::set<std::string> warned; ///< kinds of trouble already told
  uint64_t untilCleanUp = 0;    ///< bytes that may be stored before the directory has to be counted again
  std::atomic<uint64_t> temporaries = 0;

  explicit Impl(Options given) : options(std::move(given)) {
    reason = open();
    if (!reason.empty()) {
      root = File();
      warn("disabled", "the kernel cache is off: " + reason);
    }
  }

  void warn(const std::string &kind, const std::string &text) {
    {
      std::lock_guard lock(mutex);
      if (!warned.insert(kind).second)
        return;
    }
    if (!options.warn)
      std::fprintf(stderr, "tenon: warning: %s\n", text.c_str());
    else
      try {
        options.warn(text);
      } catch (...) { // nothing of the cache throws, not even this
      }
  }

  std::string open() {
    std::string problem;
    if (options.directory.empty())
      options.directory = defaultDirectory(problem);
    if (!problem.empty())
      return problem;
    if (!options.directory.starts_with('/'))
      return "its directory '" + options.directory + "' is not an absolute path";
    // A final slash or dot would make the system follow a symbolic link that it must not follow.
    std::string path = std::filesystem::path(options.directory).lexically_normal().string();
    while (path.size() > 1 && path.back() == '/')
      path.pop_back();
    options.directory = path;

    for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
      std::string prefix = path.substr(0, slash);
      if (::mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
        std::string why = systemError();
        if (::access(prefix.c_str(), F_OK) != 0) // a read-only file system says so before it says that it exists
          return "'" + prefix + "' cannot be created (" + why + ")";
      }
      if (slash == std::string::npos)
        break;
    }
    root = File(::open(path.c_str(), directoryFlags));
    if (!root)
      return errno == ELOOP || errno == ENOTDIR ? "'" + path + "' is a symbolic link or not a directory"
                                                : "'" + path + "' cannot be opened (" + systemError() + ")";
    struct stat info;
    if (::fstat(root.get(), &info) != 0)
      return "'" + path + "' cannot be examined (" + systemError() + ")";
    problem = untrusted(info);
    return problem.empty() ? "" : "'" + path + "' is not safe: " + problem;
  }

  /// The directory of an entry, or none. Made if `create`.
  File bucket(std::string_view key, bool create) {
    std::string name(key.substr(0, 2));
    if (create && ::mkdirat(root.get(), name.c_str(), 0700) != 0 && errno != EEXIST)
      return File();
    File directory(::openat(root.get(), name.c_str(), directoryFlags));
    struct stat info;
    if (directory && (::fstat(directory.get(), &info) != 0 || !untrusted(info).empty())) {
      errno = EPERM;
      return File();
    }
    return directory;
  }

  std::optional<std::vector<std::byte>> load(std::string_view key) {
    File directory = bucket(key, /*create=*/false);
    if (!directory)
      return std::nullopt;
    std::string name(key);
    // Not blocking: somebody's named pipe must not hold us up.
    File file(::openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && errno != ELOOP)
      return std::nullopt;
    std::string problem = file ? "" : "it is a symbolic link";
    struct stat info;
    if (file) {
      if (::fstat(file.get(), &info) != 0)
        return std::nullopt;
      if (!S_ISREG(info.st_mode))
        problem = "it is not a regular file";
      else if (uint64_t size = static_cast<uint64_t>(info.st_size); size > options.maxEntryBytes + headerBytes)
        problem = "it is too large";
      else
        problem = untrusted(info);
    }
    if (problem.empty()) {
      std::vector<std::byte> bytes = readAll(file.get(), static_cast<size_t>(info.st_size));
      if (decodeEntry(bytes, key)) {
        // Used now: the order of clean-up. The time of last access is often not kept, so it is the one of change.
        ::futimens(file.get(), nullptr);
        bytes.erase(bytes.begin(), bytes.begin() + headerBytes);
        return bytes;
      }
      problem = "it is damaged";
    }
    // Another process may have put a good entry in its place by now; losing that is only a miss.
    ::unlinkat(directory.get(), name.c_str(), 0);
    warn("damaged", "entry " + name + " of the kernel cache in '" + options.directory + "' was removed because " +
                        problem + "; the kernel is compiled again");
    return std::nullopt;
  }

  void store(std::string_view key, std::span<const std::byte> payload) {
    auto failed = [&](const std::string &step) {
      std::string why = systemError();
      warn("store", "a kernel could not be kept in the cache in '" + options.directory + "': " + step + " failed (" +
                        why + "); the program goes on without");
    };
    if (payload.size() > std::min(options.maxEntryBytes, options.maxBytes)) {
      warn("large", "a kernel of " + std::to_string(payload.size()) + " bytes is too large to be kept in the cache");
      return;
    }
    std::vector<std::byte> bytes = encodeEntry(key, payload);
    makeRoom(bytes.size());

    File directory = bucket(key, /*create=*/true);
    if (!directory)
      return failed("opening its directory");
    std::string name(key);
    struct timespec now;
    ::clock_gettime(CLOCK_REALTIME, &now);
    // Unique among the living by process and counter; the time keeps it apart from what a dead process left.
    std::string temporary = std::string(temporaryPrefix) + std::to_string(::getpid()) + "-" +
                            std::to_string(temporaries++) + "-" + std::to_string(now.tv_sec) + "." +
                            std::to_string(now.tv_nsec);
    File file(::openat(directory.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file)
      return failed("creating a file");
    const char *step = !writeAll(file.get(), bytes) ? "writing"
                       : ::fsync(file.get()) != 0   ? "synchronising"
                       // The directory is not synchronised: after a crash of the machine the entry is there or missing.
                       : ::renameat(directory.get(), temporary.c_str(), directory.get(), name.c_str()) != 0
                           ? "renaming"
                           : nullptr;
    if (step) {
      failed(step);
      ::unlinkat(directory.get(), temporary.c_str(), 0);
    }
  }

  /// Counts the directory now and then, and removes what was unused for longest when `incoming` more would be too much.
  /// Other processes do the same at the same time: whatever is gone already, or cannot be removed, is passed over.
  void makeRoom(uint64_t incoming) {
    std::lock_guard lock(mutex);
    if (incoming <= untilCleanUp) {
      untilCleanUp -= incoming;
      return;
    }
    struct Entry {
      struct timespec used;
      std::string bucket, name;
      uint64_t bytes;
    };
    std::vector<Entry> entries;
    uint64_t total = 0;
    time_t now = ::time(nullptr);
    forEachName(root.get(), [&](const std::string &bucketName) {
      File directory(::openat(root.get(), bucketName.c_str(), directoryFlags));
      if (bucketName.size() != 2 || !directory)
        return;
      forEachName(directory.get(), [&](const std::string &name) {
        struct stat info;
        if (::fstatat(directory.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
          return;
        bool abandoned = name.starts_with(temporaryPrefix) && now - info.st_mtim.tv_sec > temporaryLifetime;
        if (abandoned && ::unlinkat(directory.get(), name.c_str(), 0) == 0)
          return;
        total += static_cast<uint64_t>(info.st_size);
        if (isCacheKey(name)) // nothing else is ours to remove
          entries.push_back({info.st_mtim, bucketName, name, static_cast<uint64_t>(info.st_size)});
      });
    });
    if (total + incoming > options.maxBytes) {
      std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
        return std::tie(a.used.tv_sec, a.used.tv_nsec, a.name) < std::tie(b.used.tv_sec, b.used.tv_nsec, b.name);
      });
      for (const Entry &entry : entries) {
        if (total + incoming <= options.maxBytes - options.maxBytes / 10)
          break;
        if (::unlinkat(root.get(), (entry.bucket + "/" + entry.name).c_str(), 0) == 0 || errno == ENOENT)
          total -= entry.bytes;
      }
    }
    // Others store as well, so the count is only good for a while.
    uint64_t used = std::min(total + incoming, options.maxBytes);
    untilCleanUp = std::min(options.maxBytes - used, options.maxBytes / 16);
  }
};

DiskCache::DiskCache() : DiskCache(Options()) {}
DiskCache::DiskCache(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
DiskCache::~DiskCache() = default;

bool DiskCache::enabled() const { return static_cast<bool>(impl_->root); }
std::string DiskCache::reason() const { return impl_->reason; }
const std::string &DiskCache::directory() const { return impl_->options.directory; }

// Even running out of memory is only a miss.
std::optional<std::vector<std::byte>> DiskCache::load(std::string_view key) {
  try {
    if (enabled() && isCacheKey(key))
      return impl_->load(key);
  } catch (...) {
  }
  return std::nullopt;
}

void DiskCache::store(std::string_view key, std::span<const std::byte> payload) {
  try {
    if (enabled() && isCacheKey(key))
      impl_->store(key, payload);
  } catch (...) {
  }
}

} // namespace tenon
