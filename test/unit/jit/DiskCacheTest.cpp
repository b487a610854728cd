// SPDX-License-Identifier: Apache-2.0
// What goes wrong with caches on disk, one test each: see the cache rows of the reliability notes.
#include "tenon/jit/DiskCache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tenon;
namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<std::byte>;
constexpr uid_t nobody = 65534;

std::string keyOf(unsigned number) {
  static const char digits[] = "0123456789abcdef";
  std::mt19937 random(number);
  std::string key;
  while (key.size() < 64)
    key += digits[random() % 16];
  return key;
}

/// A payload that proves itself: the first byte gives the length and the rest.
Bytes payloadOf(unsigned seed, size_t scale = 97) {
  std::mt19937 random(seed & 0xff);
  Bytes bytes(1 + (seed & 0xff) * scale);
  for (std::byte &b : bytes)
    b = static_cast<std::byte>(random());
  bytes[0] = static_cast<std::byte>(seed);
  return bytes;
}

bool provesItself(const Bytes &bytes, size_t scale = 97) {
  return !bytes.empty() && bytes == payloadOf(std::to_integer<unsigned>(bytes[0]), scale);
}

Bytes readFile(const fs::path &path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

void writeFile(const fs::path &path, std::span<const std::byte> bytes) {
  fs::create_directories(path.parent_path());
  fs::permissions(path.parent_path(), fs::perms::owner_all);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

/// Runs `body` in a process of its own; gtest expectations in it count. The process must do nothing else before.
pid_t inChild(auto body) {
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  return child;
}

void expectSuccess(pid_t child) {
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

class DiskCacheTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tenon-cache-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    base = pattern;
    directory = base / "cache";
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(base, ignored);
  }

  DiskCache::Options options() {
    DiskCache::Options result;
    result.directory = directory.string();
    result.warn = [this](const std::string &text) { warnings.push_back(text); };
    return result;
  }
  fs::path entry(const std::string &key) const { return directory / key.substr(0, 2) / key; }
  size_t filesLeft() const {
    size_t count = 0;
    for (const auto &item : fs::recursive_directory_iterator(directory))
      count += item.is_regular_file();
    return count;
  }
  void expectWarning(const char *part) const {
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
  }

  fs::path base, directory;
  std::vector<std::string> warnings;
};

TEST_F(DiskCacheTest, KeepsWhatWasStored) {
  std::string key = keyOf(1);
  Bytes payload = payloadOf(200);
  {
    DiskCache cache(options());
    EXPECT_TRUE(cache.enabled());
    EXPECT_EQ(cache.reason(), "");
    EXPECT_EQ(cache.load(key), std::nullopt);
    cache.store(key, payload);
    EXPECT_EQ(cache.load(key), payload);
    cache.store(keyOf(2), {}); // nothing is also something
    EXPECT_EQ(cache.load(keyOf(2)), Bytes());
  }
  DiskCache later(options());
  EXPECT_EQ(later.load(key), payload);
  EXPECT_EQ(later.load(keyOf(3)), std::nullopt);
  EXPECT_TRUE(warnings.empty());

  struct stat info;
  ASSERT_EQ(::stat(entry(key).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat(directory.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  ASSERT_EQ(::stat(entry(key).parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(DiskCacheTest, OnlyKeysAreNames) {
  DiskCache cache(options());
  std::string key = keyOf(1);
  for (std::string bad : {std::string(), std::string("../../x"), key.substr(1), key + "0", "g" + key.substr(1),
                          "A" + key.substr(1), key.substr(0, 63) + "/", std::string(64, '.')}) {
    EXPECT_FALSE(isCacheKey(bad));
    cache.store(bad, payloadOf(1));
    EXPECT_EQ(cache.load(bad), std::nullopt);
  }
  EXPECT_EQ(filesLeft(), 0u);
}

TEST_F(DiskCacheTest, DirectoryComesFromTheEnvironment) {
  expectSuccess(inChild([&] {
    auto chosen = [&] {
      DiskCache::Options silent;
      silent.warn = [](const std::string &) {};
      DiskCache cache(silent);
      return cache.enabled() ? cache.directory() : "off: " + cache.reason();
    };
    ASSERT_EQ(::chdir(base.c_str()), 0);
    std::string home = (base / "home").string(), xdg = (base / "xdg").string(), own = (base / "own").string();
    ::setenv("HOME", home.c_str(), 1);
    ::unsetenv("XDG_CACHE_HOME");
    ::unsetenv("TENON_CACHE_DIR");
    EXPECT_EQ(chosen(), home + "/.cache/tenon");
    ::setenv("XDG_CACHE_HOME", "relative", 1); // its specification says to ignore such a one
    EXPECT_EQ(chosen(), home + "/.cache/tenon");
    ::setenv("XDG_CACHE_HOME", xdg.c_str(), 1);
    EXPECT_EQ(chosen(), xdg + "/tenon");
    ::setenv("TENON_CACHE_DIR", own.c_str(), 1);
    EXPECT_EQ(chosen(), own);
    ::setenv("TENON_CACHE_DIR", "here", 1);
    EXPECT_NE(chosen().find("off: its directory 'here' is not an absolute path"), std::string::npos);
    for (const char *name : {"TENON_CACHE_DIR", "XDG_CACHE_HOME", "HOME"})
      ::unsetenv(name);
    EXPECT_NE(chosen().find("off: there is no directory"), std::string::npos);
    EXPECT_FALSE(fs::exists(base / "here"));
    EXPECT_FALSE(fs::exists(base / "relative"));
  }));
}

TEST_F(DiskCacheTest, EveryTruncationIsAMiss) {
  std::string key = keyOf(1);
  Bytes file = encodeEntry(key, payloadOf(3));
  for (size_t length = 0; length < file.size(); ++length) {
    warnings.clear();
    DiskCache cache(options());
    writeFile(entry(key), std::span(file).first(length));
    ASSERT_EQ(cache.load(key), std::nullopt) << length;
    ASSERT_FALSE(fs::exists(entry(key))) << length;
    expectWarning("damaged");
  }
  Bytes longer = file;
  longer.push_back(std::byte(0));
  EXPECT_EQ(decodeEntry(longer, key), std::nullopt);
}

TEST_F(DiskCacheTest, EveryFlippedBitIsAMiss) {
  std::string key = keyOf(1);
  const Bytes file = encodeEntry(key, payloadOf(3));
  ASSERT_TRUE(decodeEntry(file, key).has_value());
  for (size_t i = 0; i < file.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes flipped = file;
      flipped[i] ^= static_cast<std::byte>(1 << bit);
      ASSERT_FALSE(decodeEntry(flipped, key).has_value()) << i << ", bit " << bit;
    }
  DiskCache cache(options());
  for (size_t i = 0; i < file.size(); ++i) {
    Bytes flipped = file;
    flipped[i] ^= std::byte(0x10);
    writeFile(entry(key), flipped);
    ASSERT_EQ(cache.load(key), std::nullopt) << i;
    ASSERT_FALSE(fs::exists(entry(key))) << i;
  }
  expectWarning("damaged"); // said once for all of them
  cache.store(key, payloadOf(3));
  EXPECT_EQ(cache.load(key), payloadOf(3)); // and recovered from
}

TEST_F(DiskCacheTest, AnEntryUnderAnotherNameIsAMiss) {
  DiskCache cache(options());
  cache.store(keyOf(1), payloadOf(1));
  writeFile(entry(keyOf(2)), readFile(entry(keyOf(1))));
  EXPECT_EQ(cache.load(keyOf(2)), std::nullopt);
  EXPECT_EQ(cache.load(keyOf(1)), payloadOf(1));
}

TEST_F(DiskCacheTest, SymbolicLinksAreNotFollowed) {
  std::string key = keyOf(1);
  Bytes file = encodeEntry(key, payloadOf(1));
  fs::path elsewhere = base / "elsewhere";
  writeFile(elsewhere / "entry", file);
  {
    DiskCache cache(options());
    fs::create_directory(directory / key.substr(0, 2));
    fs::permissions(directory / key.substr(0, 2), fs::perms::owner_all);
    fs::create_symlink(elsewhere / "entry", entry(key));
    EXPECT_EQ(cache.load(key), std::nullopt);
    EXPECT_FALSE(fs::exists(fs::symlink_status(entry(key))));
    EXPECT_TRUE(fs::exists(elsewhere / "entry")); // the link goes, what it pointed at stays
    expectWarning("symbolic link");
    cache.store(key, payloadOf(2));
    EXPECT_EQ(cache.load(key), payloadOf(2));
    EXPECT_EQ(readFile(elsewhere / "entry"), file);
  }
  // The directory of the entry.
  warnings.clear();
  fs::remove_all(directory / key.substr(0, 2));
  writeFile(elsewhere / key, file);
  fs::create_directory_symlink(elsewhere, directory / key.substr(0, 2));
  {
    DiskCache cache(options());
    EXPECT_EQ(cache.load(key), std::nullopt);
    cache.store(key, payloadOf(2));
    EXPECT_EQ(readFile(elsewhere / key), file);
    expectWarning("opening its directory failed");
  }
  // The cache's own directory, however it is spelled.
  fs::remove_all(directory);
  fs::create_directory_symlink(elsewhere, directory);
  for (const char *spelling : {"", "/", "/.", "//"}) {
    warnings.clear();
    DiskCache::Options linked = options();
    linked.directory += spelling;
    DiskCache cache(linked);
    EXPECT_FALSE(cache.enabled()) << spelling;
    EXPECT_NE(cache.reason().find("symbolic link"), std::string::npos) << cache.reason();
    expectWarning("symbolic link");
    EXPECT_EQ(cache.load(key), std::nullopt);
    cache.store(keyOf(2), payloadOf(2));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere), {}), 2);
}

TEST_F(DiskCacheTest, OddFilesAreMisses) {
  DiskCache cache(options());
  std::string pipe = keyOf(1), folder = keyOf(2), large = keyOf(3), open = keyOf(4);
  for (const std::string &key : {pipe, folder, large, open})
    cache.store(key, payloadOf(1));
  fs::remove(entry(pipe));
  ASSERT_EQ(::mkfifo(entry(pipe).c_str(), 0600), 0);
  EXPECT_EQ(cache.load(pipe), std::nullopt); // and does not wait for a writer
  fs::remove(entry(folder));
  fs::create_directory(entry(folder));
  EXPECT_EQ(cache.load(folder), std::nullopt);
  cache.store(folder, payloadOf(1));
  EXPECT_EQ(cache.load(folder), std::nullopt);
  ASSERT_EQ(::truncate(entry(large).c_str(), off_t(1) << 40), 0); // sparse; must not be read into memory
  EXPECT_EQ(cache.load(large), std::nullopt);
  ASSERT_EQ(::chmod(entry(open).c_str(), 0666), 0);
  EXPECT_EQ(cache.load(open), std::nullopt);
}

TEST_F(DiskCacheTest, ADirectoryOthersMayWriteToIsRefused) {
  for (mode_t mode : {0777u, 0770u, 0720u, 01777u}) {
    warnings.clear();
    fs::remove_all(directory);
    fs::create_directory(directory);
    ASSERT_EQ(::chmod(directory.c_str(), mode), 0);
    DiskCache cache(options());
    EXPECT_FALSE(cache.enabled());
    expectWarning("others may write to it");
    cache.store(keyOf(1), payloadOf(1));
    EXPECT_EQ(cache.load(keyOf(1)), std::nullopt);
    EXPECT_EQ(filesLeft(), 0u);
  }
  fs::remove_all(directory);
  writeFile(directory, {}); // a file where the directory should be
  warnings.clear();
  DiskCache cache(options());
  EXPECT_FALSE(cache.enabled());
  expectWarning("not a directory");
}

TEST_F(DiskCacheTest, WhatBelongsToOthersIsRefused) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only root can give a file away";
  std::string key = keyOf(1);
  {
    DiskCache cache(options());
    cache.store(key, payloadOf(1));
    ASSERT_EQ(::chown(entry(key).c_str(), nobody, nobody), 0);
    EXPECT_EQ(cache.load(key), std::nullopt);
    expectWarning("belongs to user 65534");
    cache.store(key, payloadOf(1));
    ASSERT_EQ(::chown(entry(key).parent_path().c_str(), nobody, nobody), 0);
    EXPECT_EQ(cache.load(key), std::nullopt);
  }
  warnings.clear();
  ASSERT_EQ(::chown(directory.c_str(), nobody, nobody), 0);
  DiskCache cache(options());
  EXPECT_FALSE(cache.enabled());
  expectWarning("belongs to user 65534");
}

TEST_F(DiskCacheTest, UnwritableDirectories) {
  // Root may write anywhere, so this is somebody else's work.
  if (::geteuid() == 0)
    ASSERT_EQ(::chown(base.c_str(), nobody, nobody), 0);
  expectSuccess(inChild([&] {
    if (::geteuid() == 0)
      ASSERT_EQ(::setresuid(nobody, nobody, nobody), 0);
    {
      DiskCache cache(options());
      cache.store(keyOf(1), payloadOf(1));
    }
    ASSERT_EQ(::chmod(entry(keyOf(1)).parent_path().c_str(), 0500), 0);
    ASSERT_EQ(::chmod(directory.c_str(), 0500), 0);
    {
      DiskCache cache(options());
      EXPECT_EQ(cache.load(keyOf(1)), payloadOf(1)); // what is there can be read
      for (unsigned i = 1; i < 10; ++i)
        cache.store(keyOf(i), payloadOf(i));
      EXPECT_EQ(cache.load(keyOf(2)), std::nullopt);
      expectWarning("Permission denied"); // once
    }
    warnings.clear();
    directory = directory / "deeper" / "still";
    DiskCache cache(options());
    EXPECT_FALSE(cache.enabled());
    expectWarning("cannot be created (Permission denied)");
    directory = directory.parent_path().parent_path();
    ::chmod(entry(keyOf(1)).parent_path().c_str(), 0700);
    ::chmod(directory.c_str(), 0700);
  }));
}

TEST_F(DiskCacheTest, AWriteThatStopsHalfWayLeavesNothing) {
  expectSuccess(inChild([&] {
    DiskCache cache(options());
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{1000, 1000};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (unsigned i = 1; i < 5; ++i) {
      cache.store(keyOf(i), payloadOf(100));
      EXPECT_EQ(cache.load(keyOf(i)), std::nullopt);
    }
    EXPECT_EQ(filesLeft(), 0u);
    expectWarning("writing failed (File too large)");
    cache.store(keyOf(9), payloadOf(1)); // what fits is kept
    EXPECT_EQ(cache.load(keyOf(9)), payloadOf(1));
  }));
}

TEST_F(DiskCacheTest, FullDisk) {
  fs::create_directory(directory);
  fs::permissions(directory, fs::perms::owner_all);
  if (::geteuid() != 0 || ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0)
    GTEST_SKIP() << "mounting a small file system needs root and CAP_SYS_ADMIN";
  auto unmount = [](const fs::path *path) { ::umount2(path->c_str(), MNT_DETACH); };
  std::unique_ptr<fs::path, decltype(unmount)> mounted(&directory, unmount);
  DiskCache cache(options());
  ASSERT_TRUE(cache.enabled()) << cache.reason();
  size_t hits = 0;
  for (unsigned i = 0; i < 40; ++i)
    cache.store(keyOf(i), payloadOf(100));
  for (unsigned i = 0; i < 40; ++i)
    if (auto loaded = cache.load(keyOf(i))) {
      EXPECT_EQ(*loaded, payloadOf(100));
      ++hits;
    }
  EXPECT_GT(hits, 0u);
  EXPECT_LT(hits, 40u);
  EXPECT_EQ(filesLeft(), hits); // no temporaries
  expectWarning("No space left on device");
}

TEST_F(DiskCacheTest, TheLeastRecentlyUsedGoFirst) {
  DiskCache::Options small = options();
  small.maxBytes = 10 * 1000;
  auto size = payloadOf(10, 90); // 901 bytes, 937 as an entry
  auto age = [&](unsigned i, time_t seconds) {
    timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, entry(keyOf(i)).c_str(), times, 0), 0);
  };
  {
    DiskCache cache(small);
    for (unsigned i = 0; i < 10; ++i)
      cache.store(keyOf(i), size);
    ASSERT_EQ(filesLeft(), 10u);
  }
  for (unsigned i = 0; i < 10; ++i)
    age(i, 1000 + i);
  fs::path abandoned = directory / keyOf(0).substr(0, 2) / ".tmp-1-2-3", stranger = directory / "README";
  writeFile(abandoned, size);
  fs::last_write_time(abandoned, fs::file_time_type::clock::now() - std::chrono::hours(48));
  writeFile(stranger, size);
  DiskCache cache(small);
  EXPECT_EQ(cache.load(keyOf(0)), size); // used: now the youngest
  cache.store(keyOf(10), size);
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(stranger));
  EXPECT_TRUE(fs::exists(entry(keyOf(0))));
  EXPECT_FALSE(fs::exists(entry(keyOf(1))));
  EXPECT_FALSE(fs::exists(entry(keyOf(2))));
  EXPECT_TRUE(fs::exists(entry(keyOf(9))));
  EXPECT_TRUE(fs::exists(entry(keyOf(10))));
  for (unsigned i = 11; i < 60; ++i) {
    cache.store(keyOf(i), size);
    uint64_t total = 0;
    for (const auto &item : fs::recursive_directory_iterator(directory))
      total += item.is_regular_file() && item.path() != stranger ? item.file_size() : 0;
    ASSERT_LE(total, small.maxBytes);
    ASSERT_EQ(cache.load(keyOf(i)), size);
  }
  EXPECT_TRUE(warnings.empty());
  cache.store(keyOf(100), Bytes(20 * 1000));
  EXPECT_EQ(cache.load(keyOf(100)), std::nullopt);
  expectWarning("too large");
}

TEST_F(DiskCacheTest, ManyThreads) {
  DiskCache::Options quiet = options();
  quiet.maxBytes = 200 * 1000; // so that clean-up runs as well
  DiskCache cache(quiet);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 40; ++i) {
        cache.store(keyOf(random() % 8), payloadOf(static_cast<unsigned>(random())));
        if (auto loaded = cache.load(keyOf(random() % 8)))
          wrong += !provesItself(*loaded);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(warnings.empty()) << warnings[0];
}

TEST_F(DiskCacheTest, ManyProcesses) {
  // All make the directory at once, store and load shared keys (with contents that differ in length, which a real cache
  // never has, so that a mixture would show) and keys of their own, while some clean up.
  std::vector<pid_t> children;
  for (unsigned process = 0; process < 32; ++process)
    children.push_back(inChild([&] {
      DiskCache::Options mine = options();
      if (process % 8 == 0)
        mine.maxBytes = 100 * 1000;
      DiskCache cache(mine);
      ASSERT_TRUE(cache.enabled()) << cache.reason();
      std::mt19937 random(process);
      for (unsigned i = 0; i < 20; ++i) {
        cache.store(keyOf(random() % 4), payloadOf(static_cast<unsigned>(random())));
        cache.store(keyOf(1000 + process), payloadOf(process));
        for (unsigned key = 0; key < 4; ++key)
          if (auto loaded = cache.load(keyOf(key)))
            EXPECT_TRUE(provesItself(*loaded));
        if (auto loaded = cache.load(keyOf(1000 + process)))
          EXPECT_EQ(*loaded, payloadOf(process));
      }
      EXPECT_TRUE(warnings.empty()) << warnings[0];
    }));
  for (pid_t child : children)
    expectSuccess(child);
  DiskCache cache(options());
  for (const auto &item : fs::recursive_directory_iterator(directory))
    if (item.is_regular_file()) {
      auto loaded = cache.load(item.path().filename().string());
      ASSERT_TRUE(loaded.has_value()) << item.path();
      EXPECT_TRUE(provesItself(*loaded));
    }
}

TEST_F(DiskCacheTest, KilledWriters) {
  constexpr size_t scale = 2000; // up to half a megabyte, so that most of the time is spent writing
  std::mt19937 random(1);
  size_t hits = 0;
  for (int round = 0; round < 60; ++round) {
    pid_t child = inChild([&] {
      DiskCache cache(options());
      for (unsigned i = 0;; ++i)
        cache.store(keyOf(i % 3), payloadOf(i * 37 + static_cast<unsigned>(round), scale));
    });
    ::usleep(random() % 8000); // any moment will do
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    DiskCache cache(options());
    for (unsigned key = 0; key < 3; ++key)
      if (auto loaded = cache.load(keyOf(key))) {
        ++hits;
        ASSERT_TRUE(provesItself(*loaded, scale)) << round;
      }
    ASSERT_TRUE(warnings.empty()) << warnings[0];
  }
  RecordProperty("hits", static_cast<int>(hits));
}

} // namespace
