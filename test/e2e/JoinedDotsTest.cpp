// SPDX-License-Identifier: Apache-2.0
//
// Dots of the same rows that one instruction computes, in the simulator and as PTX: bit for bit what each gives by
// itself.
#include "PtxSupport.h"
#include "SimSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char *together = "dots of the same rows are multiplied together";

LaunchOptions onSim(Params params, int warps, std::string without = "") {
  LaunchOptions options = onSimulator(std::move(params), warps);
  options.compile.without = std::move(without);
  return options;
}

std::vector<std::byte> bytesOf(const std::vector<Tensor> &tensors) {
  std::vector<std::byte> all;
  for (const Tensor &tensor : tensors) {
    auto *begin = static_cast<const std::byte *>(tensor.data());
    all.insert(all.end(), begin, begin + tensor.bufferBytes());
  }
  return all;
}

/// Bytes of the last `results` arguments.
std::vector<std::byte> run(const Kernel &kernel, Arguments arguments, size_t results, const LaunchOptions &options) {
  std::vector<Tensor> written;
  for (size_t i = arguments.size() - results; i < arguments.size(); ++i) {
    written.push_back(arguments[i].tensor());
    written.back().fillBytes(0xff);
  }
  launch(kernel, arguments, options);
  return bytesOf(written);
}

/// Both ways, in several orders of the threads.
void expectSame(const Kernel &kernel, const Arguments &arguments, size_t results, LaunchOptions options) {
  expectParts(remarksOf(kernel, arguments, options), {together});
  LaunchOptions apart = options;
  apart.compile.without = "joined-dots";
  std::vector<std::byte> expected = run(kernel, arguments, results, apart);
  for (int seed : {0, 1}) {
    SimulatorSeed set(seed);
    EXPECT_EQ(run(kernel, arguments, results, options), expected) << seed;
  }
}

Tensor matrix(DType dtype, int64_t rows, int64_t columns, unsigned seed, bool isTransposed) {
  double most = dtype == i8 ? 100 : 1;
  return isTransposed ? zoo::randomTensor(dtype, {columns, rows}, seed, -most, most).transpose({1, 0})
                      : zoo::randomTensor(dtype, {rows, columns}, seed, -most, most);
}

Arguments gated(int64_t m, int64_t n, int64_t k, bool isTransposed) {
  return {matrix(bf16, m, k, 1, false), matrix(bf16, k, n, 2, isTransposed), matrix(bf16, k, n, 3, isTransposed),
          Tensor::zeros(bf16, {m, n})};
}

/// Three, of different widths, loaded in another order than they are multiplied in; one begins at something, and what
/// two of them give is not stored as such.
const Kernel three("three(a, b, c, d, bias, x, y, narrow=64, wide=128, bk=64)",
                   [](View a, View b, View c, View d, View bias, View x, View y, Param narrow, Param wide, Param bk) {
                     promise_no_overlap();
                     Index i = grid(cdiv(a.size(0), 64));
                     DType sum = a.dtype() == i8 ? i32 : f32;
                     Tile first = zeros(sum, {64, narrow}), second = zeros(sum, {64, wide});
                     Tile third = broadcast(bias.load({0}, {narrow}).to(sum), {64, narrow});
                     for (Index k : range(0, a.size(1), bk)) {
                       Tile ofThird = d.load({k, 0}, {bk, narrow}), ofFirst = b.load({k, 0}, {bk, narrow});
                       Tile rows = a.load({i * 64, k}, {64, bk});
                       first = dot(rows, ofFirst, first);
                       second = dot(rows, c.load({k, 0}, {bk, wide}), second);
                       third = dot(rows, ofThird, third);
                     }
                     x.store({i * 64, 0}, first * third);
                     y.store({i * 64, 0}, second);
                   });

Arguments threeOf(DType dtype, int64_t m, int64_t k, int64_t narrow, int64_t wide, bool isTransposed) {
  DType sum = dtype == i8 ? i32 : f32;
  return {matrix(dtype, m, k, 1, false),
          matrix(dtype, k, narrow, 2, isTransposed),
          matrix(dtype, k, wide, 3, isTransposed),
          matrix(dtype, k, narrow, 4, isTransposed),
          zoo::randomTensor(dtype, {narrow}, 5, -1, 1),
          Tensor::zeros(sum, {m, narrow}),
          Tensor::zeros(sum, {m, wide})};
}

TEST(JoinedDots, SameAsApart) {
  for (bool isTransposed : {false, true})
    for (int64_t k : {32, 192}) {
      expectSame(zoo::gatedMlp, gated(200, 264, k, isTransposed), 1, onSim({{"bm", 128}, {"bn", 128}, {"bk", 64}}, 8));
      expectSame(zoo::gatedMlp, gated(136, 136, k, isTransposed), 1, onSim({{"bm", 128}, {"bn", 64}, {"bk", 64}}, 4));
    }
  // Columns that are no whole panels: only rows along K lie one behind the other.
  expectSame(zoo::gatedMlp, gated(200, 200, 128, true), 1, onSim({{"bm", 128}, {"bn", 96}, {"bk", 64}}, 8));
}

TEST(JoinedDots, Three) {
  expectSame(three, threeOf(bf16, 200, 160, 64, 128, false), 2, onSim({}, 4));
  expectSame(three, threeOf(bf16, 200, 160, 64, 128, true), 2, onSim({}, 4));
  expectSame(three, threeOf(i8, 136, 160, 32, 64, true), 2, onSim({{"narrow", 32}, {"wide", 64}}, 4));
}

TEST(JoinedDots, InTurnsAndInClusters) {
  LaunchOptions turns = onSim({{"bm", 64}, {"bn", 64}, {"bk", 64}}, 8), cluster = turns, tail = turns;
  turns.compile.pingPong = true;
  cluster.params["bm"] = 128;
  cluster.compile.cluster = 2;
  tail.params["bm"] = 128;
  tail.compile.shareTail = true;
  for (bool isTransposed : {false, true})
    for (const LaunchOptions &options : {turns, cluster})
      expectSame(zoo::gatedMlp, gated(328, 136, 128, isTransposed), 1, options);
  expectSame(zoo::gatedMlp, gated(136, 200, 704, true), 1, tail);
}

/// Dots that cannot be one: the second adds to the first's, or begins when somebody has used the first.
TEST(JoinedDots, NotWhereOneNeedsTheOther) {
  Kernel chained("chained(a, b, c, y)", [](View a, View b, View c, View y) {
    promise_no_overlap();
    Index i = grid(cdiv(a.size(0), 64));
    Tile acc = zeros(f32, {64, 64});
    for (Index k : range(0, a.size(1), 64)) {
      Tile rows = a.load({i * 64, k}, {64, 64});
      acc = dot(rows, b.load({k, 0}, {64, 64}), acc);
      acc = dot(rows, c.load({k, 0}, {64, 64}), acc);
    }
    y.store({i * 64, 0}, acc);
  });
  Kernel used("used(a, b, c, y)", [](View a, View b, View c, View y) {
    promise_no_overlap();
    Index i = grid(cdiv(a.size(0), 64));
    Tile acc = zeros(f32, {64, 64}), most = zeros(f32, {64, 64});
    for (Index k : range(0, a.size(1), 64)) {
      Tile rows = a.load({i * 64, k}, {64, 64});
      most = maximum(most, dot(rows, b.load({k, 0}, {64, 64}), zeros(f32, {64, 64})));
      acc = dot(rows, c.load({k, 0}, {64, 64}), acc);
    }
    y.store({i * 64, 0}, acc + most);
  });
  Arguments arguments = {matrix(bf16, 136, 192, 1, false), matrix(bf16, 192, 64, 2, true),
                         matrix(bf16, 192, 64, 3, true), Tensor::zeros(f32, {136, 64})};
  for (const Kernel *kernel : {&chained, &used}) {
    EXPECT_EQ(remarksOf(*kernel, arguments, onSim({}, 4)).find(together), std::string::npos);
    EXPECT_EQ(run(*kernel, arguments, 1, onSim({}, 4)), run(*kernel, arguments, 1, onSim({}, 4, "overlap")));
  }
}

/// The second adds to what a third one, of other rows, has just begun.
TEST(JoinedDots, NotWithSumsThatAreUnderWay) {
  Kernel kernel("under_way(x, b, a, c, d, y, z)", [](View x, View b, View a, View c, View d, View y, View z) {
    promise_no_overlap();
    Index i = grid(cdiv(a.size(0), 64));
    Tile sum = zeros(f32, {64, 64}), other = zeros(f32, {64, 64});
    for (Index k : range(0, a.size(1), 64)) {
      sum = dot(x.load({i * 64, k}, {64, 64}), b.load({k, 0}, {64, 64}), sum);
      Tile rows = a.load({i * 64, k}, {64, 64});
      other = dot(rows, c.load({k, 0}, {64, 64}), other);
      sum = dot(rows, d.load({k, 0}, {64, 64}), sum);
    }
    y.store({i * 64, 0}, sum);
    z.store({i * 64, 0}, other);
  });
  Arguments arguments = {matrix(bf16, 128, 192, 1, false), matrix(bf16, 192, 64, 2, true),
                         matrix(bf16, 128, 192, 3, false), matrix(bf16, 192, 64, 4, true),
                         matrix(bf16, 192, 64, 5, true),   Tensor::zeros(f32, {128, 64}),
                         Tensor::zeros(f32, {128, 64})};
  EXPECT_EQ(remarksOf(kernel, arguments, onSim({}, 4)).find(together), std::string::npos);
  EXPECT_EQ(run(kernel, arguments, 2, onSim({}, 4)), run(kernel, arguments, 2, onSim({}, 4, "joined-dots")));
}

/// A tile whose columns are K to another dot lies in narrower panels than its neighbour.
TEST(JoinedDots, NotWithOtherPanels) {
  Kernel kernel("panels(a, c, b, d, x, y, z)", [](View a, View c, View b, View d, View x, View y, View z) {
    promise_no_overlap();
    Index i = grid(cdiv(a.size(0), 64));
    Tile narrow = zeros(f32, {64, 32}), wide = zeros(f32, {64, 64}), turned = zeros(f32, {64, 64});
    Tile few = c.load({i * 64, 0}, {64, 32});
    for (Index k : range(0, a.size(1), 64)) {
      Tile rows = a.load({i * 64, k}, {64, 64}), both = b.load({k, 0}, {64, 32});
      narrow = dot(rows, both, narrow);
      wide = dot(rows, d.load({k, 0}, {64, 64}), wide);
      turned = dot(few, transpose(both, {1, 0}), turned);
    }
    x.store({i * 64, 0}, narrow);
    y.store({i * 64, 0}, wide);
    z.store({i * 64, 0}, turned);
  });
  Arguments arguments = {matrix(bf16, 128, 192, 1, false), matrix(bf16, 128, 32, 2, false),
                         matrix(bf16, 192, 32, 3, false),  matrix(bf16, 192, 64, 4, false),
                         Tensor::zeros(f32, {128, 32}),    Tensor::zeros(f32, {128, 64}),
                         Tensor::zeros(f32, {128, 64})};
  EXPECT_EQ(run(kernel, arguments, 3, onSim({}, 4)), run(kernel, arguments, 3, onSim({}, 4, "joined-dots")));
}

/// One instruction, no zeros in front of either sum, and nothing that the assembler would make wait or spill.
TEST(JoinedDots, Ptx) {
  for (bool isTransposed : {false, true})
    for (int64_t bn : {128, 96})
      for (bool pingPong : {false, true}) {
        if (bn == (pingPong ? 128 : 96) || (bn == 96 && !isTransposed))
          continue;
        LaunchOptions options;
        options.params = {{"bm", 128}, {"bn", bn}, {"bk", 64}};
        options.compile.gpu = "sm_90a";
        options.compile.warps = 8;
        options.compile.pingPong = pingPong;
        Arguments arguments = gated(512, 768, 256, isTransposed);
        std::string threads = emit(zoo::gatedMlp, arguments, "threads", options);
        EXPECT_EQ(count(threads, "nvidia.anything"), pingPong ? 0u : 1u);
        std::string text = emit(zoo::gatedMlp, arguments, "ptx", options);
        EXPECT_EQ(count(text, "wgmma.mma_async"), pingPong ? 8u : 4u);
        EXPECT_EQ(count(text, "wgmma.mma_async.sync.aligned.m64n" + std::to_string(2 * bn) + "k16"),
                  pingPong ? 8u : 4u);
        expectAssembles(text);
      }
}

} // namespace
