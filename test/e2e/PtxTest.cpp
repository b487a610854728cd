// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of the zoo as PTX for every architecture that differs; assembled where ptxas is at hand, without a
// warning, and without spills at the demo shape.
#include "PtxSupport.h"

#include "tenon/compiler/target/nvidia/ptx/Assembler.h"
#include "tenon/kernels/Zoo.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tenon;
using namespace tenon::test;

namespace {

struct Compiled {
  std::string kernel;
  DType dtype;
  friend void PrintTo(const Compiled &one, std::ostream *stream) { *stream << one.kernel << " " << nameOf(one.dtype); }
};

class Ptx : public testing::TestWithParam<Compiled> {
public:
  static void check(const zoo::Entry &entry, const std::vector<int64_t> &shape, DType dtype, const std::string &gpu,
                    int allowedSpills) {
    Problem problem = entry.makeProblem(shape, dtype, 1);
    LaunchOptions options;
    options.params = problem.params;
    options.compile.gpu = gpu;
    std::string text = emit(entry.kernel, problem.arguments, "ptx", options);
    EXPECT_NE(text.find(".visible .entry " + entry.kernel.name() + "("), std::string::npos);
    EXPECT_NE(text.find(".target " + gpu + "\n"), std::string::npos);
    std::optional<nvidia::AssemblyReport> assembled = nvidia::assemble(text, gpu);
    if (!assembled)
      return;
    SCOPED_TRACE(gpu + ", " + std::to_string(assembled->registers) + " registers");
    EXPECT_LE(assembled->registers, 255);
    EXPECT_LE(assembled->spillStoreBytes, allowedSpills);
    EXPECT_LE(assembled->spillLoadBytes, allowedSpills);
    for (const std::string &warning : assembled->warnings)
      ADD_FAILURE() << warning;
  }
};

TEST_P(Ptx, Assembles) {
  const zoo::Entry &entry = zoo::find(GetParam().kernel);
  for (const char *gpu : {"sm_80", "sm_90", "sm_90a"})
    check(entry, entry.demoShape, GetParam().dtype, gpu, /*allowedSpills=*/0);
}

/// The largest of the test shapes, of those whose sizes are all odd if there are any. Nothing is a multiple of 16 bytes
/// then: an address and a mask for each element, and some of them do not find a register.
TEST_P(Ptx, AssemblesForOddSizes) {
  const zoo::Entry &entry = zoo::find(GetParam().kernel);
  auto order = [](const std::vector<int64_t> &shape) {
    int64_t volume = 1;
    for (int64_t size : shape)
      volume *= size;
    return std::pair(volume % 2, volume);
  };
  check(entry, *std::max_element(entry.testShapes.begin(), entry.testShapes.end(),
                                 [&](const auto &a, const auto &b) { return order(a) < order(b); }),
        GetParam().dtype, "sm_90a", /*allowedSpills=*/256);
}

std::vector<Compiled> everyKernel() {
  std::vector<Compiled> result;
  for (const zoo::Entry &entry : zoo::entries())
    for (DType dtype : {f32, f16, bf16})
      if (std::find(entry.dtypes.begin(), entry.dtypes.end(), dtype) != entry.dtypes.end())
        result.push_back({entry.name, dtype});
  return result;
}
INSTANTIATE_TEST_SUITE_P(Zoo, Ptx, testing::ValuesIn(everyKernel()), [](const auto &info) {
  return info.param.kernel + "_" + std::string(nameOf(info.param.dtype));
});

/// A whole tile in the registers of one warpgroup, as many accumulators as there may be: no spills, and no dot that is
/// waited for at once (which would be a warning).
TEST(PtxPingPong, WholeTilesInOneWarpgroup) {
  auto check = [](const char *kernel, std::vector<int64_t> shape, int64_t bm, int64_t bn) {
    const zoo::Entry &entry = zoo::find(kernel);
    Problem problem = entry.makeProblem(shape, bf16, 1);
    LaunchOptions options;
    options.params = problem.params;
    for (auto [name, value] : {std::pair("bm", bm), {"bn", bn}, {"bk", int64_t(64)}})
      options.params[name] = value;
    options.compile.pingPong = true;
    std::string text = emit(entry.kernel, problem.arguments, "ptx", options);
    EXPECT_NE(text.find(".reqntid 384"), std::string::npos) << kernel; // two teams, and who loads
    EXPECT_NE(text.find("wgmma.mma_async"), std::string::npos) << kernel;
    std::optional<nvidia::AssemblyReport> assembled = nvidia::assemble(text, "sm_90a");
    if (!assembled)
      return;
    SCOPED_TRACE(std::string(kernel) + " " + std::to_string(bm) + " x " + std::to_string(bn));
    EXPECT_EQ(assembled->spillStoreBytes + assembled->spillLoadBytes, 0u);
    for (const std::string &warning : assembled->warnings)
      ADD_FAILURE() << warning;
  };
  for (auto [bm, bn] : {std::pair<int64_t, int64_t>{128, 128}, {64, 256}, {128, 192}})
    check("matmul", {256, 256, 256}, bm, bn);
  check("gated_mlp", {256, 256, 256}, 128, 96);
  check("grouped_matmul", {4, 256, 256, 256}, 128, 192);
}

TEST(PtxRandom, NeighboursShareTheGenerator) {
  const Kernel kernel("noise(x, y, bits, rounds, rows=4, cols=256)", [](View x, View y, Param bits, Param rounds,
                                                                        Param rows, Param cols) {
    auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
    Tile row = iota(i64, {rows, 1}, 0) + i * rows, column = iota(i64, {1, cols}, 1) + j * cols;
    RandomOptions options{.bits = static_cast<int>(bits), .rounds = static_cast<int>(rounds)};
    Tile noise = random_bits(7, row * x.size(1) + column, options).to(f32);
    y.store({i * rows, j * cols}, (x.load({i * rows, j * cols}, {rows, cols}).to(f32) + noise).to(y.dtype()));
  });
  auto evaluations = [&](int64_t columns, int64_t bits, int64_t rounds) { // for the elements of one thread
    LaunchOptions options;
    options.params = {{"bits", bits}, {"rounds", rounds}};
    options.compile.warps = 4;
    options.compile.gpu = "sm_90a";
    Tensor x = Tensor::zeros(bf16, {64, columns}), y = Tensor::zeros(bf16, {64, columns});
    std::string text = emit(kernel, {x, y}, "ptx", options);
    // Two in each round, but one of the first is zero.
    return static_cast<double>(count(text, "mul.wide.u32 product")) / static_cast<double>(2 * rounds - 1);
  };
  // 1024 elements for 128 threads: words, then halves of them.
  EXPECT_EQ(evaluations(1024, 32, 10), 2);
  EXPECT_EQ(evaluations(1022, 32, 10), 4);
  EXPECT_EQ(evaluations(1023, 32, 8), 8);
  EXPECT_EQ(evaluations(1024, 16, 7), 1);
  EXPECT_EQ(evaluations(1020, 16, 10), 2);
  EXPECT_EQ(evaluations(1022, 16, 7), 4);
  EXPECT_EQ(evaluations(1023, 16, 7), 8);
}

TEST(PtxRandom, CountersOfARunAreDividedOnce) {
  // 32 elements a thread, in eight groups of four: the generator's block is computed of the first, and added to.
  Kernel kernel("coins(y, p)", [](View y, Scalar p) {
    Index i = grid(cdiv(y.size(0), 4096));
    Tile heads = random_uniform(3, iota(i64, {4096}, 0) + i * 4096) < p;
    y.store({i * 4096}, where(heads, 1, 0).to(i8));
  });
  LaunchOptions options;
  options.compile.gpu = "sm_90a";
  options.compile.warps = 4;
  std::string text = emit(kernel, {Tensor::zeros(i8, {1 << 16}), 0.5}, "ptx", options);
  EXPECT_EQ(count(text, "shr.u64"), 1u) << text;
  // And whether an element's word is below the limit is one comparison and one choice.
  EXPECT_EQ(count(text, "setp.lt.u32"), 32u) << text;
  EXPECT_EQ(count(text, "xor.pred"), 32u) << text;
}

std::string ptxOf(const Kernel &kernel, const Arguments &arguments, int warps) {
  LaunchOptions options;
  options.compile.gpu = "sm_90a";
  options.compile.warps = warps;
  return emit(kernel, arguments, "ptx", options);
}

TEST(PtxMemory, RowsThatWaitForAReductionLast) {
  Kernel share("share(x, y)", [](View x, View y) {
    Index i = grid(x.size(0));
    Tile t = abs(x.load({i, 0}, {1, 4096}).to(f32));
    y.store({i, 0}, (t - max(t, 1)).to(y.dtype()));
  });
  Kernel negative("negative(x, y)", [](View x, View y) {
    Index i = grid(x.size(0));
    y.store({i, 0}, (-x.load({i, 0}, {1, 4096}).to(f32)).to(y.dtype()));
  });
  Arguments arguments = {Tensor::zeros(f16, {4, 4096}), Tensor::zeros(f16, {4, 4096})};
  std::string rows = ptxOf(share, arguments, 8), elements = ptxOf(negative, arguments, 8);
  EXPECT_EQ(count(rows, "ld.global.L2::cache_hint.v4.b32"), 2u) << rows;
  EXPECT_GT(count(rows, "createpolicy.fractional.L2::evict_last.b64"), 0u) << rows;
  EXPECT_EQ(count(elements, "cache_hint"), 0u) << elements;
}

TEST(PtxMemory, TheAssemblerIsToldWhatStreamsNeed) {
  // Two tiles of 4096 bf16, 16 words each in 128 threads, and registers to compute with.
  Kernel sum("sum(x, y, z)", [](View x, View y, View z) {
    Index i = grid(cdiv(x.size(0), 4096));
    Tile both = x.load({i * 4096}, {4096}).to(f32) + y.load({i * 4096}, {4096}).to(f32);
    z.store({i * 4096}, both.to(z.dtype()));
  });
  // A loop may hold any number of them.
  Kernel walk("walk(x, z)", [](View x, View z) {
    Tile both = zeros(f32, {4096});
    for (Index j : range(0, x.size(0), 4096))
      both = both + x.load({j}, {4096}).to(f32);
    z.store({0}, both.to(z.dtype()));
  });
  Tensor x = Tensor::zeros(bf16, {1 << 16}), y = Tensor::zeros(bf16, {1 << 16}), z = Tensor::zeros(bf16, {1 << 16});
  std::string text = ptxOf(sum, {x, y, z}, 4), loop = ptxOf(walk, {x, z}, 4);
  EXPECT_EQ(count(text, ".minnctapersm 8\n"), 1u) << text; // of 64 registers
  EXPECT_EQ(count(text, ", -65536;"), 32u) << text; // the upper of two bf16
  EXPECT_EQ(count(loop, ".minnctapersm"), 0u) << loop;
}

TEST(PtxErrors, UnknownArchitecture) {
  Kernel copy("copy(x)", [](View x) {
    Index i = grid(x.size(0));
    x.store({i}, x.load({i}, {1}));
  });
  LaunchOptions options;
  options.compile.gpu = "sm_12";
  try {
    emit(copy, {Tensor::zeros(f32, {4})}, "ptx", options);
    ADD_FAILURE();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "unknown architecture \"sm_12\": use sm_80, sm_86, sm_89, sm_90 or sm_90a");
  }
}

} // namespace
