// SPDX-License-Identifier: Apache-2.0
//
// Specialisation and caching on the CPU: what is compiled once, what is compiled anew, what the disk remembers.
#include "LangSupport.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include <sys/wait.h>
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
    for (const char *isa : {"baseline", "avx2", "avx512", "avx512-dot", "amx-emulated", "native"}) {
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
  for (const PhaseInfo &phase : compilePhases()) {
    try {
      EXPECT_FALSE(emit(makeAdd(1), {x, y}, phase.name).empty()) << phase.name;
    } catch (const Error &error) { // the disassembler is not Tenon's
      EXPECT_EQ(phase.name, "sass") << error.what();
      expectParts(error.what(), {"machine code can be shown only where NVIDIA's assembler and disassembler are"});
    }
  }
  expectParts(emit(makeAdd(1), {x, y}, "tile"), {"func.func @add", "tile.load", "tile.store", "tile.grid"});
  expectParts(errorOf([&] { emit(makeAdd(1), {x, y}, "sass9"); }), {"unknown phase 'sass9'", "tile", "asm"});
}

//===--- The disk cache: a process opens it once, so each case is a process of its own ----------------------------===//

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

/// How a fresh process came by its code.
enum Outcome { compiled = 40, loaded = 41, wrong = 42 };

// The fresh process: this very test, told by the environment what to do.
TEST(DiskCaching, Child) {
  const char *number = std::getenv("TENON_LANG_CHILD_NUMBER");
  if (!number)
    GTEST_SKIP() << "runs only when the tests below start it";
  LaunchOptions options;
  options.compile.useDiskCache = std::getenv("TENON_LANG_CHILD_UNCACHED") == nullptr;
  Kernel kernel = makeAdd(std::atoi(number));
  Tensor x = Tensor::zeros(f32, {20}), y = Tensor::zeros(f32, {20});
  CompileReport report = prepare(kernel, {x, y}, options);
  launch(kernel, {x, y}, options);
  for (int64_t i = 0; i < 20; ++i)
    if (y.get({i}) != std::atoi(number))
      std::_Exit(wrong);
  std::_Exit(report.fromDisk ? loaded : compiled);
}

int inFreshProcess(const std::string &directory, int number, bool useDiskCache = true) {
  std::string command = "TENON_CACHE_DIR='" + directory + "' TENON_LANG_CHILD_NUMBER=" + std::to_string(number) +
                        (useDiskCache ? " '" : " TENON_LANG_CHILD_UNCACHED=1 '") +
                        std::filesystem::read_symlink("/proc/self/exe").string() +
                        "' --gtest_filter=DiskCaching.Child >/dev/null 2>&1";
  return WEXITSTATUS(std::system(command.c_str()));
}

TEST(DiskCaching, SecondProcessLoads) {
  ScratchDirectory scratch;
  std::string directory = scratch.path().string();
  EXPECT_EQ(inFreshProcess(directory, 5), compiled);
  EXPECT_EQ(scratch.files(), 1);
  EXPECT_EQ(inFreshProcess(directory, 5), loaded);
  EXPECT_EQ(inFreshProcess(directory, 6), compiled) << "captured 6 is other code";
  EXPECT_EQ(inFreshProcess(directory, 6), loaded);
  EXPECT_EQ(inFreshProcess(directory, 5, /*useDiskCache=*/false), compiled) << "switched off";
  EXPECT_EQ(scratch.files(), 2);
}

TEST(DiskCaching, DamageIsAMiss) {
  ScratchDirectory scratch;
  std::string directory = scratch.path().string();
  EXPECT_EQ(inFreshProcess(directory, 5), compiled);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file())
      std::filesystem::resize_file(entry.path(), 100);
  EXPECT_EQ(inFreshProcess(directory, 5), compiled);
  EXPECT_EQ(inFreshProcess(directory, 5), loaded) << "written anew";
}

TEST(DiskCaching, SwitchedOffWritesNothing) {
  ScratchDirectory scratch;
  EXPECT_EQ(inFreshProcess(scratch.path().string(), 5, /*useDiskCache=*/false), compiled);
  EXPECT_EQ(scratch.files(), 0);
}

TEST(DiskCaching, UnusableDirectoryIsNotAnError) {
  EXPECT_EQ(inFreshProcess("/proc/no/such/place", 5), compiled);
  EXPECT_EQ(inFreshProcess("relative/path", 5), compiled);
  EXPECT_EQ(inFreshProcess("/dev/null/x", 5), compiled);
  ScratchDirectory others; // a directory others may write to is not trusted
  std::filesystem::permissions(others.path(), std::filesystem::perms::all);
  EXPECT_EQ(inFreshProcess(others.path().string(), 5), compiled);
  EXPECT_EQ(others.files(), 0);
}

} // namespace
