// SPDX-License-Identifier: Apache-2.0
//
// Specialisation and caching on the CPU: what is compiled once, what is compiled anew, what the disk remembers.
#include "LangSupport.h"

#include <cstdlib>
#include <filesystem>
#include <set>
#include <unistd.h>

using namespace tenon;
using namespace tenon::test;

namespace {

Kernel makeAdd(int64_t number) {
  return Kernel("add(x, y, width=8)", [number](View x, View y, Param width) {
    Index i = grid(cdiv(x.size(0), width));
    y.store({i * width}, x.load({i * width}, {width}) + number);
  });
}

LaunchOptions uncached(Params params = {}) {
  LaunchOptions options;
  options.params = std::move(params);
  options.compile.useDiskCache = false;
  return options;
}

TEST(Compiling, MemoryRemembers) {
  Kernel kernel = makeAdd(1);
  Tensor x = Tensor::zeros(f32, {20}), y = Tensor::zeros(f32, {20});
  CompileReport first = prepare(kernel, {x, y}, uncached());
  EXPECT_FALSE(first.fromMemory);
  EXPECT_FALSE(first.fromDisk);
  EXPECT_EQ(first.key.size(), 64u);
  EXPECT_GT(first.milliseconds(), 0);
  std::set<std::string> phases;
  for (const auto &phase : first.phases)
    phases.insert(phase.name);
  for (const char *phase : {"trace", "simplify", "loops", "llvm", "optimize", "object"})
    EXPECT_TRUE(phases.contains(phase)) << phase;
  EXPECT_TRUE(prepare(kernel, {x, y}, uncached()).fromMemory);
  Kernel copy = kernel;
  EXPECT_TRUE(prepare(copy, {x, y}, uncached()).fromMemory);
  Tensor larger = Tensor::zeros(f32, {200}), other = Tensor::zeros(f32, {200});
  EXPECT_TRUE(prepare(kernel, {larger, other}, uncached()).fromMemory) << "sizes are run-time values";
  // Each of these is another specialisation.
  EXPECT_FALSE(prepare(kernel, {x, y}, uncached({{"width", 16}})).fromMemory);
  Tensor half = Tensor::zeros(f16, {20}), halfOut = Tensor::zeros(f16, {20});
  EXPECT_FALSE(prepare(kernel, {half, halfOut}, uncached()).fromMemory);
  EXPECT_FALSE(prepare(kernel, {x.slice(0, 0, 10, 2), y}, uncached()).fromMemory) << "no unit stride";
  EXPECT_FALSE(prepare(kernel, {x, x}, uncached()).fromMemory) << "overlapping views";
}

TEST(Compiling, CapturedValuesMakeDifferentCode) {
  Tensor x = Tensor::zeros(i32, {8}), y = Tensor::zeros(i32, {8});
  Kernel one = makeAdd(1), two = makeAdd(2), oneAgain = makeAdd(1);
  std::string key1 = prepare(one, {x, y}, uncached()).key, key2 = prepare(two, {x, y}, uncached()).key;
  EXPECT_NE(key1, key2);
  EXPECT_EQ(prepare(oneAgain, {x, y}, uncached()).key, key1);
  launch(one, {x, y}, uncached());
  EXPECT_EQ(y.getInt({3}), 1);
  launch(two, {x, y}, uncached());
  EXPECT_EQ(y.getInt({3}), 2);
}

TEST(Compiling, KeysTellEverythingApart) {
  Tensor x = Tensor::zeros(f32, {8}), y = Tensor::zeros(f32, {8});
  std::set<std::string> keys;
  int expected = 0;
  auto add = [&](const LaunchOptions &options, const Tensor &in, const Tensor &out) {
    keys.insert(prepare(makeAdd(1), {in, out}, options).key);
    ++expected;
  };
  add(uncached(), x, y);
  add(uncached({{"width", 4}}), x, y);
  add(uncached(), x, x);
  add(uncached(), Tensor::zeros(i32, {8}), Tensor::zeros(i32, {8}));
  add(uncached(), Tensor::zeros(u32, {8}), Tensor::zeros(u32, {8}));
  LaunchOptions baseline = uncached();
  baseline.compile.isa = "baseline";
  add(baseline, x, y);
  // i32 and u32 addition is one and the same program: signedness only shows where it matters.
  EXPECT_GE(static_cast<int>(keys.size()), expected - 1);
}

TEST(Compiling, EveryInstructionSet) {
  Kernel kernel("isa(x, y, z)", [](View x, View y, View z) {
    Tile t = x.load({0}, {100}, 1).to(f32);
    y.store({0}, (exp(t) * 0.5 + t / 3).to(y.dtype()));
    Tile m = reshape(x.load({0}, {64}), {8, 8});
    z.store({0, 0}, dot(m, transpose(m)));
  });
  for (DType type : {f32, f16, bf16}) {
    Tensor x = Tensor::empty(type, {90});
    x.fillRandom(1, -1, 1);
    std::vector<double> first, firstDot;
    for (const char *isa : {"baseline", "avx2", "avx512", "native"}) {
      Tensor y = Tensor::zeros(type, {100}), z = Tensor::zeros(f32, {8, 8});
      LaunchOptions options = uncached();
      options.compile.isa = isa;
      try {
        launch(kernel, {x, y, z}, options);
      } catch (const Error &error) {
        expectParts(error.what(), {"this processor does not have", isa});
        continue;
      }
      if (first.empty()) {
        first = valuesOf(y);
        firstDot = valuesOf(z);
      }
      EXPECT_EQ(valuesOf(y), first) << isa << " " << nameOf(type) << ": element-wise maths is the same everywhere";
      std::vector<double> dots = valuesOf(z);
      for (size_t i = 0; i < dots.size(); ++i)
        EXPECT_NEAR(dots[i], firstDot[i], 1e-5);
    }
  }
}

TEST(Compiling, UnknownInstructionSet) {
  Tensor x = Tensor::zeros(f32, {8}), y = Tensor::zeros(f32, {8});
  LaunchOptions options = uncached();
  options.compile.isa = "sse9";
  expectParts(errorOf([&] { launch(makeAdd(1), {x, y}, options); }),
              {"unknown instruction set \"sse9\"", "native", "baseline"});
}

TEST(Compiling, PhasesPrint) {
  Tensor x = Tensor::zeros(f32, {8}), y = Tensor::zeros(f32, {8});
  for (const PhaseInfo &phase : compilePhases())
    EXPECT_FALSE(emit(makeAdd(1), {x, y}, phase.name).empty()) << phase.name;
  expectParts(emit(makeAdd(1), {x, y}, "tile"), {"func.func @add", "tile.load", "tile.store", "tile.grid"});
  expectParts(errorOf([&] { emit(makeAdd(1), {x, y}, "ptx"); }), {"unknown phase 'ptx'", "tile", "asm"});
}

//===--- The disk cache: one directory per process, so each case runs in a process of its own ----------------------===//

class ScratchDirectory {
public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-lang-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path &path() const { return path_; }
  int files() const {
    int count = 0;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(path_))
      count += entry.is_regular_file();
    return count;
  }

private:
  std::filesystem::path path_;
};

/// Compiles and runs in a fresh process with this cache directory; its exit status tells how the code came.
enum Outcome { compiled = 40, loaded = 41, wrong = 42 };
[[noreturn]] void runAndExit(const std::string &directory, bool useDiskCache, int64_t number) {
  setenv("TENON_CACHE_DIR", directory.c_str(), 1);
  LaunchOptions options;
  options.compile.useDiskCache = useDiskCache;
  Kernel kernel = makeAdd(number);
  Tensor x = Tensor::zeros(f32, {20}), y = Tensor::zeros(f32, {20});
  CompileReport report = prepare(kernel, {x, y}, options);
  launch(kernel, {x, y}, options);
  for (int64_t i = 0; i < 20; ++i)
    if (y.get({i}) != number)
      std::_Exit(wrong);
  std::_Exit(report.fromDisk ? loaded : compiled);
}

class DiskCaching : public testing::Test {
protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(DiskCaching, SecondProcessLoads) {
  // A death test runs this body again from the start in the child: the directory must be the same there.
  static const ScratchDirectory *scratch = new ScratchDirectory;
  std::string directory = getenv("TENON_LANG_SCRATCH") ? getenv("TENON_LANG_SCRATCH") : scratch->path().string();
  setenv("TENON_LANG_SCRATCH", directory.c_str(), 1);
  EXPECT_EXIT(runAndExit(directory, true, 5), testing::ExitedWithCode(compiled), "");
  EXPECT_EXIT(runAndExit(directory, true, 5), testing::ExitedWithCode(loaded), "");
  EXPECT_EXIT(runAndExit(directory, true, 6), testing::ExitedWithCode(compiled), "") << "captured 6 is other code";
  EXPECT_EXIT(runAndExit(directory, false, 5), testing::ExitedWithCode(compiled), "") << "switched off";
  // Damage is a miss, not a crash.
  for (const auto &entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      std::filesystem::resize_file(entry.path(), 100);
  EXPECT_EXIT(runAndExit(directory, true, 5), testing::ExitedWithCode(compiled), "");
  EXPECT_EXIT(runAndExit(directory, true, 5), testing::ExitedWithCode(loaded), "");
  unsetenv("TENON_LANG_SCRATCH");
  delete scratch;
}

TEST_F(DiskCaching, SwitchedOffWritesNothing) {
  static ScratchDirectory scratch;
  EXPECT_EXIT(runAndExit(scratch.path().string(), false, 5), testing::ExitedWithCode(compiled), "");
  EXPECT_EQ(scratch.files(), 0);
}

TEST_F(DiskCaching, UnusableDirectoryIsNotAnError) {
  EXPECT_EXIT(runAndExit("/proc/no/such/place", true, 5), testing::ExitedWithCode(compiled), "");
  EXPECT_EXIT(runAndExit("relative/path", true, 5), testing::ExitedWithCode(compiled), "");
  EXPECT_EXIT(runAndExit("/dev/null/x", true, 5), testing::ExitedWithCode(compiled), "");
}

} // namespace
