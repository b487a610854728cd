// SPDX-License-Identifier: Apache-2.0
//
// The tile in which K ends is multiplied up to its end, in the simulator and as PTX: the result is that of whole tiles,
// whose rest is zeros.
#include "PtxSupport.h"
#include "SimSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char *upToEnd = "the last tile along K is multiplied up to its end";

Tensor matrix(DType dtype, int64_t rows, int64_t columns, unsigned seed, bool isTransposed = false) {
  double most = dtype == i8 ? 100 : 1;
  return isTransposed ? zoo::randomTensor(dtype, {columns, rows}, seed, -most, most).transpose({1, 0})
                      : zoo::randomTensor(dtype, {rows, columns}, seed, -most, most);
}

/// Rows of a multiple of 16 bytes, of which K has fewer.
Tensor partOf(DType dtype, int64_t rows, int64_t columns, unsigned seed) {
  int64_t unit = 16 / static_cast<int64_t>(sizeOf(dtype));
  return matrix(dtype, rows, (columns + unit - 1) / unit * unit, seed).slice(1, 0, columns);
}

Arguments product(DType dtype, int64_t m, int64_t n, int64_t k, bool isTransposed) {
  Tensor b = isTransposed ? partOf(dtype, n, k, 2).transpose({1, 0}) : matrix(dtype, k, n, 2);
  return {partOf(dtype, m, k, 1), b, Tensor::empty(zoo::productType(dtype), {0}),
          Tensor::zeros(zoo::productType(dtype), {m, n})};
}

/// Bytes of the last argument.
std::vector<std::byte> run(const Kernel &kernel, const Arguments &arguments, const LaunchOptions &options) {
  Tensor written = arguments.back().tensor();
  written.fillBytes(0xff);
  launch(kernel, arguments, options);
  auto *begin = static_cast<const std::byte *>(written.data());
  return {begin, begin + written.bufferBytes()};
}

/// Both ways, in several orders of the threads.
void expectSame(const Kernel &kernel, const Arguments &arguments, LaunchOptions options) {
  expectParts(remarksOf(kernel, arguments, options), {upToEnd});
  LaunchOptions whole = options;
  whole.compile.without = "end-of-k";
  std::vector<std::byte> expected = run(kernel, arguments, whole);
  for (int seed : {0, 1}) {
    SimulatorSeed set(seed);
    EXPECT_EQ(run(kernel, arguments, options), expected) << seed;
  }
}

TEST(EndOfK, AnyPlace) {
  for (int64_t k : {1, 8, 24, 40, 63, 72, 120, 129, 200})
    expectSame(zoo::matmul, product(bf16, 136, 72, k, true), onSimulator({{"bm", 128}, {"bn", 64}, {"bk", 64}}, 8));
  for (int64_t k : {8, 56, 104})
    expectSame(zoo::matmul, product(f16, 72, 72, k, false), onSimulator({{"bm", 64}, {"bn", 64}, {"bk", 64}}, 4));
  expectSame(zoo::matmul, product(i8, 72, 72, 200, true), onSimulator({{"bm", 64}, {"bn", 64}, {"bk", 128}}, 4));
  expectSame(zoo::matmul, product(f8e4m3, 72, 72, 168, true), onSimulator({{"bm", 64}, {"bn", 64}, {"bk", 128}}, 4));
  expectSame(zoo::matmul, product(f32, 72, 72, 44, true),
             onSimulator({{"bm", 64}, {"bn", 64}, {"bk", 32}, {"tf32", 1}}, 4));
}

TEST(EndOfK, WithOtherSteps) {
  LaunchOptions plain = onSimulator({{"bm", 64}, {"bn", 64}, {"bk", 64}}, 8), cluster = plain, turns = plain,
                split = plain, tail = plain, few = onSimulator({{"bm", 8}, {"bn", 64}, {"bk", 64}}, 4);
  cluster.params["bm"] = tail.params["bm"] = split.params["bm"] = 128;
  cluster.compile.cluster = 2;
  turns.compile.pingPong = true;
  split.compile.split = 3;
  tail.compile.shareTail = true;
  for (const LaunchOptions &options : {cluster, turns, split, few})
    expectSame(zoo::matmul, product(bf16, 328, 136, 216, true), options);
  expectSame(zoo::matmul, product(bf16, 328, 136, 712, true), tail);
  Arguments gated = {matrix(bf16, 136, 200, 1), matrix(bf16, 200, 136, 2, true), matrix(bf16, 200, 136, 3, true),
                     Tensor::zeros(bf16, {136, 136})};
  expectSame(zoo::gatedMlp, gated, plain);
}

/// Zeros behind the end of one matrix meet whatever the other has there: zero times what is no number is none.
TEST(EndOfK, OfBothMatrices) {
  Kernel kernel("uneven(a, b, y)", [](View a, View b, View y) {
    promise_no_overlap();
    Index i = grid(cdiv(a.size(0), 64));
    Tile acc = full(f32, {64, 64}, 1);
    for (Index k : range(0, b.size(0), 64))
      acc = dot(a.load({i * 64, k}, {64, 64}), b.load({k, 0}, {64, 64}), acc);
    y.store({i * 64, 0}, acc);
  });
  Tensor b = matrix(bf16, 104, 64, 2);
  b.slice(0, 60, 44).fillBytes(0xff);
  Arguments arguments = {matrix(bf16, 128, 40, 1), b, Tensor::zeros(f32, {128, 64})};
  expectSame(kernel, arguments, onSimulator({}, 4));
  EXPECT_TRUE(std::isnan(valuesOf<double>(arguments.back().tensor())[0]));
}

/// Where it is known that all columns of the last tile may well be there, nothing is asked.
TEST(EndOfK, Ptx) {
  LaunchOptions options;
  options.compile.gpu = "sm_90a";
  options.compile.warps = 8;
  options.compile.cluster = 4;
  options.params = {{"bm", 128}, {"bn", 200}, {"bk", 64}};
  for (bool isTransposed : {false, true}) {
    std::string whole = emit(zoo::matmul, product(bf16, 512, 400, 496, isTransposed), "ptx", options);
    EXPECT_EQ(count(whole, "wgmma.mma_async"), 4u);
    std::string text = emit(zoo::matmul, product(bf16, 512, 400, 504, isTransposed), "ptx", options);
    EXPECT_EQ(count(text, "wgmma.mma_async"), 4u + 3 + 2 + 1);
    expectAssembles(text);
  }
}

} // namespace
