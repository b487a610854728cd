// SPDX-License-Identifier: Apache-2.0
//
// What a GPU adds: the same kernel on other numbers of warps, blocks of a cluster and stages of copies is the same
// kernel, and what no GPU can do is refused. All of it in the simulator, which watches for races.
#include "LangSupport.h"

#include "tenon/kernels/Problems.h"

#include <cstdlib>

using namespace tenon;
using namespace tenon::test;

namespace {

/// A driver of the tests' own, for tensors that are on a device. It is opened once, by the first question.
const int driver = ::setenv("TENON_CUDA_DRIVER", TENON_FAKE_CUDA, 1);

LaunchOptions onSim(int warps = 0, int cluster = 0, int stages = 0) {
  LaunchOptions options;
  options.target = Target::sim;
  options.compile.warps = warps;
  options.compile.cluster = cluster;
  options.compile.stages = stages;
  return options;
}

std::string text(const LaunchOptions &options) {
  return std::to_string(options.compile.warps) + " warps, " + std::to_string(options.compile.cluster) +
         " blocks in a cluster, " + std::to_string(options.compile.stages) + " stages, " + options.compile.gpu;
}

/// The bytes of all outputs after a launch.
std::vector<std::byte> outputsOf(const Problem &problem, const Kernel &kernel, LaunchOptions options) {
  options.params.insert(problem.params.begin(), problem.params.end());
  std::vector<std::byte> all;
  Arguments arguments = problem.arguments;
  for (size_t output : problem.outputs) {
    arguments[output] = arguments[output].tensor().clone();
    arguments[output].tensor().fillBytes(0xff);
  }
  launch(kernel, arguments, options);
  for (size_t output : problem.outputs) {
    const Tensor &tensor = arguments[output].tensor();
    auto *begin = static_cast<const std::byte *>(tensor.data());
    all.insert(all.end(), begin, begin + tensor.bufferBytes());
  }
  return all;
}

struct Case {
  const char *kernel;
  DType dtype;
  std::vector<int64_t> shape;
  bool takesCluster;
};
/// Shapes with edges; rows long enough to be worth several warps.
const Case cases[] = {
    {"softmax", f32, {3, 1000}, true},          {"softmax", bf16, {2, 2048}, true},
    {"layer_norm", f32, {3, 777}, true},        {"layer_norm", f16, {2, 2048}, true},
    {"matmul", f32, {70, 65, 100}, false},      {"matmul", f16, {64, 128, 96}, false},
    {"attention", f32, {1, 2, 1, 40, 20}, false}, {"attention", bf16, {1, 2, 1, 70, 32}, false},
};

class Blocks : public testing::TestWithParam<Case> {
protected:
  const zoo::Entry &entry() const { return zoo::find(GetParam().kernel); }
  Problem problem() const { return entry().makeProblem(GetParam().shape, GetParam().dtype, /*seed=*/7); }
  void expectRight(const LaunchOptions &options) const {
    Verdict verdict = verify(problem(), entry().kernel, options);
    EXPECT_TRUE(verdict.passed) << text(options) << ": " << verdict.reason;
  }
};
INSTANTIATE_TEST_SUITE_P(Zoo, Blocks, testing::ValuesIn(cases), [](const auto &info) {
  std::string name = std::string(info.param.kernel) + "_" + std::string(nameOf(info.param.dtype));
  for (int64_t size : info.param.shape)
    name += "_" + std::to_string(size);
  return name;
});

TEST_P(Blocks, OfAnyNumberOfWarps) {
  for (int warps : {1, 2, 4, 8, 16})
    expectRight(onSim(warps));
}

TEST_P(Blocks, ShareAProgramInAClusterOrSayWhyNot) {
  for (int cluster : {1, 2, 4})
    for (int warps : {1, 4}) {
      LaunchOptions options = onSim(warps, cluster);
      // A dot's blocks keep their instances and share loads where they can.
      bool hasDot = std::string(GetParam().kernel) == "matmul" || std::string(GetParam().kernel) == "attention";
      if (cluster == 1 || GetParam().takesCluster || hasDot)
        expectRight(options);
      else
        expectParts(errorOf([&] { outputsOf(problem(), entry().kernel, options); }),
                    {"cannot be spread over a cluster", entry().kernel.name()});
    }
}

/// How far loads run ahead changes when elements arrive, not what is done with them.
TEST_P(Blocks, OfAnyNumberOfStagesGiveTheSameBits) {
  Problem one = problem();
  for (const char *gpu : {"sm_80", "sm_90a"}) {
    LaunchOptions options = onSim(4, 1, 1);
    options.compile.gpu = gpu;
    std::vector<std::byte> expected = outputsOf(one, entry().kernel, options);
    for (int stages : {2, 3, 4}) {
      options.compile.stages = stages;
      EXPECT_EQ(outputsOf(one, entry().kernel, options), expected) << text(options);
    }
  }
}

/// The tensor memory accelerator writes 16 bytes at a time: where a row of the view ends inside of them it must not.
TEST(GpuStores, LeaveWhatIsBesideTheView) {
  for (int64_t columns : {56, 60}) {
    Problem problem = zoo::find("matmul").makeProblem(std::vector<int64_t>{64, columns, 64}, bf16, 1);
    Tensor b = counting(bf16, {64, 64}), c = Tensor::zeros(bf16, {64, 64});
    c.fill(7);
    Arguments arguments = problem.arguments;
    arguments[1] = b.slice(1, 0, columns);
    arguments[3] = c.slice(1, 0, columns);
    LaunchOptions options = onSim(4);
    options.params = problem.params;
    options.params["bm"] = options.params["bn"] = options.params["bk"] = 64;
    bool isBulk = false;
    for (const std::string &remark : prepare(zoo::matmul, arguments, options).remarks)
      isBulk |= remark.find("store is made by the tensor memory accelerator") != std::string::npos;
    EXPECT_EQ(isBulk, columns == 56);
    launch(zoo::matmul, arguments, options);
    for (int64_t row = 0; row < 64; ++row)
      for (int64_t column = columns; column < 64; ++column)
        EXPECT_EQ(c.get({row, column}), 7) << row << ", " << column;
  }
}

TEST(GpuStages, RunAheadAsFarAsAsked) {
  Problem problem = zoo::find("matmul").makeProblem(std::vector<int64_t>{128, 128, 128}, bf16, 1);
  for (int stages : {1, 2, 4}) {
    LaunchOptions options = onSim(4, 1, stages);
    options.params = problem.params;
    auto remarks = [&](const char *gpu) {
      options.compile.gpu = gpu;
      std::string all;
      for (const std::string &remark : prepare(zoo::matmul, problem.arguments, options).remarks)
        all += remark + "\n";
      return all;
    };
    std::string copies = remarks("sm_80"), ahead = "load runs " + std::to_string(stages - 1) + " iteration";
    EXPECT_EQ(copies.find(ahead) != std::string::npos, stages > 1) << copies;
    std::string transfers = remarks("sm_90a"), slots = "through " + std::to_string(stages) + " slot";
    EXPECT_NE(transfers.find(slots), std::string::npos) << transfers;
  }
}

/// Integer sums are the same in every order, so all shapes of a block give the same bits.
TEST(GpuBlocks, AgreeBitForBitWhereOrderCannotShow) {
  Kernel kernel("mixed(x, y, z)", [](View x, View y, View z) {
    Index row = grid(x.size(0));
    Tile t = x.load({row, 0}, {1, 700});
    Tile total = sum(t, 1), running = cumsum(t, 1);
    y.store({row, 0}, t * total + running);
    z.store({row, 0}, max(t, 1) - min(t, 1));
  });
  Tensor x = counting(i32, {3, 700});
  std::vector<int64_t> expected;
  for (int warps : {1, 2, 4, 8, 16, 32}) {
    Tensor y = Tensor::zeros(i32, {3, 700}), z = Tensor::zeros(i32, {3, 1});
    launch(kernel, {x, y, z}, onSim(warps));
    std::vector<int64_t> got = intsOf(y), more = intsOf(z);
    got.insert(got.end(), more.begin(), more.end());
    if (expected.empty())
      expected = got;
    EXPECT_EQ(got, expected) << warps << " warps";
  }
  Tensor y = Tensor::zeros(i32, {3, 700}), z = Tensor::zeros(i32, {3, 1});
  launch(kernel, {x, y, z});
  EXPECT_EQ(intsOf(y), std::vector<int64_t>(expected.begin(), expected.begin() + 3 * 700));
}

/// A row that one block has no registers for.
TEST(GpuBlocks, ALongRowIsSpreadOverAClusterByItself) {
  Kernel kernel("norm(x, y)", [](View x, View y) {
    Tile t = x.load({0, 0}, {1, 65536});
    y.store({0, 0}, t / sum(t, 1));
  });
  Tensor x = Tensor::empty(f32, {1, 65536}), y = Tensor::zeros(f32, {1, 65536});
  x.fill(0.5);
  launch(kernel, {x, y}, onSim());
  for (int64_t at : {0, 1, 40000, 65535})
    EXPECT_EQ(y.get({0, at}), 1.0 / 65536);
}

/// Tiles of other shapes, which the blocks of a cluster divide in another way.
TEST(GpuBlocks, OfAClusterHaveWhatTheyNeedOfEveryTile) {
  Kernel kernel("both(x, bias, scale, y, rows, cols)", [](View x, View bias, View scale, View y, View rows, View cols) {
    Tile t = x.load({0, 0}, {8, 1024}) * (scale.load({0, 0}, {8, 1}) * 3) + bias.load({0, 0}, {1, 1024}) * 2;
    Tile byRow = sum(t, 1), byCol = sum(t, 0);
    y.store({0, 0}, t - byRow + byCol);
    rows.store({0, 0}, byRow);
    cols.store({0, 0}, byCol);
  });
  Tensor x = counting(i32, {8, 1024}), bias = counting(i32, {1, 1024}), scale = counting(i32, {8, 1});
  std::vector<std::vector<int64_t>> expected;
  for (int cluster : {0, 1, 2, 4, 8})
    for (int warps : {1, 4}) {
      LaunchOptions options = onSim(warps, cluster);
      if (!cluster)
        options.target = Target::cpu;
      Tensor y = Tensor::zeros(i32, {8, 1024}), rows = Tensor::zeros(i32, {8, 1}), cols = Tensor::zeros(i32, {1, 1024});
      launch(kernel, {x, bias, scale, y, rows, cols}, options);
      std::vector<std::vector<int64_t>> got = {intsOf(y), intsOf(rows), intsOf(cols)};
      if (expected.empty())
        expected = got;
      EXPECT_TRUE(got == expected) << text(options);
    }
}

/// What is used for an exchange after the loop is not what another block still reads.
TEST(GpuBlocks, OfAClusterReduceInLoopsAndAfter) {
  Kernel kernel("loops(x, y, z)", [](View x, View y, View z) {
    Tile total = zeros(i32, {4, 1});
    for (Index k : range(0, x.size(1), 512)) {
      Tile t = x.load({0, k}, {4, 512});
      total = total + sum(t, 1);
      y.store({0, k}, t + sum(t, 1));
    }
    Tile all = x.load({0, 0}, {64, 64});
    z.store({0, 0}, sum(all, 0) + sum(sum(total, 0), 1));
  });
  Tensor x = counting(i32, {64, 2048}), y = Tensor::zeros(i32, {4, 2048}), z = Tensor::zeros(i32, {1, 64});
  launch(kernel, {x, y, z});
  for (int cluster : {1, 2, 4})
    for (int warps : {1, 2, 4}) {
      Tensor gotY = Tensor::zeros(i32, {4, 2048}), gotZ = Tensor::zeros(i32, {1, 64});
      launch(kernel, {x, gotY, gotZ}, onSim(warps, cluster));
      EXPECT_TRUE(intsOf(gotY) == intsOf(y) && intsOf(gotZ) == intsOf(z)) << warps << " " << cluster;
    }
}

/// The dimensions of a tile lie differently in its two views.
TEST(GpuBlocks, OfAClusterTurnATileAround) {
  Kernel kernel("turned(x, y)", [](View x, View y) {
    Tile t = x.load({0, 0}, {64, 256});
    y.store({0, 0}, t - sum(t, 0));
  });
  Tensor x = counting(i32, {64, 256}), base = Tensor::zeros(i32, {256, 64}), expected = Tensor::zeros(i32, {64, 256});
  Tensor y = base.transpose({1, 0});
  launch(kernel, {x, expected});
  for (int cluster : {1, 2, 4}) {
    base.fill(0);
    launch(kernel, {x, y}, onSim(4, cluster));
    EXPECT_TRUE(intsOf(y) == intsOf(expected)) << cluster;
  }
}

/// All threads of a block load what one of them stores back.
TEST(GpuBlocks, SmallTilesInPlaceAreHeldByMoreThanOneThread) {
  Kernel kernel("twice(x)", [](View x) {
    for (Index step : range(0, 3)) {
      (void)step;
      x.store({0}, x.load({0}, {3}) * 2);
    }
  });
  for (int warps : {1, 2, 8}) {
    Tensor x = vectorOf(i32, {1, 2, 3});
    launch(kernel, {x}, onSim(warps));
    EXPECT_EQ(intsOf(x), (std::vector<int64_t>{8, 16, 24}));
  }
}

/// Atomics of one program instance come in its order, whichever threads do them.
TEST(GpuBlocks, AtomicsOfOneInstanceAreOrdered) {
  Kernel kernel("last(x, y)", [](View x, View y) {
    Tile at = iota(i32, {64}, 0) % 4;
    for (Index step : range(0, 5))
      x.atomic_exchange({zeros(i32, {1})}, full(i32, {1}, 1) * step.to(i32));
    x.atomic_add({at}, full(i32, {64}, 1));
    x.atomic_exchange({iota(i32, {2}, 0) + 2}, full(i32, {2}, 100));
    y.store({0}, x.atomic_add({iota(i32, {4}, 0)}, zeros(i32, {4})));
  });
  for (int warps : {1, 4}) {
    Tensor x = Tensor::zeros(i32, {4}), y = Tensor::zeros(i32, {4});
    launch(kernel, {x, y}, onSim(warps));
    EXPECT_EQ(intsOf(x), (std::vector<int64_t>{20, 16, 100, 100}));
    EXPECT_EQ(intsOf(y), intsOf(x));
  }
}

//===--- What is refused ------------------------------------------------------------------------------------------===//

class GpuRefusals : public testing::Test {
protected:
  const Kernel copy{"copy(x, y)", [](View x, View y) {
    Index i = grid(x.size(0));
    y.store({i}, x.load({i}, {1}));
  }};
  const Tensor x = Tensor::zeros(f32, {4}), y = Tensor::zeros(f32, {4});

  void expectRefused(const LaunchOptions &options, std::initializer_list<std::string> parts) const {
    expectParts(errorOf([&] { launch(copy, {x, y}, options); }), parts);
  }
};

TEST_F(GpuRefusals, ImpossibleShapesOfBlocks) {
  for (int warps : {-1, 3, 33, 64})
    expectRefused(onSim(warps), {"1, 2, 4, 8, 12, 16 or 32 warps, not " + std::to_string(warps)});
  for (int cluster : {-2, 3, 32})
    expectRefused(onSim(0, cluster), {"1, 2, 4, 8 or 16 blocks, not " + std::to_string(cluster)});
  for (int stages : {-1, 17})
    expectRefused(onSim(0, 0, stages), {"1 to 16 stages, not " + std::to_string(stages)});
  LaunchOptions old = onSim(0, 2);
  old.compile.gpu = "sm_80";
  expectRefused(old, {"clusters need sm_90, not sm_80"});
}

TEST_F(GpuRefusals, UnknownArchitectures) {
  LaunchOptions options = onSim();
  for (const char *gpu : {"", "sm_12", "hopper", "sm_9x"}) {
    options.compile.gpu = gpu;
    expectRefused(options, {"unknown architecture", gpu, "sm_90a"});
  }
}

TEST_F(GpuRefusals, MoreSharedMemoryThanABlockHas) {
  int line = __LINE__ + 2;
  Kernel turned("turned(x, y)", [](View x, View y) {
    y.store({0, 0}, cumsum(transpose(cumsum(x.load({0, 0}, {256, 256}), 1)), 1));
  });
  Tensor from = Tensor::zeros(f64, {256, 256}), to = Tensor::zeros(f64, {256, 256});
  expectParts(errorOf([&] { launch(turned, {from, to}, onSim(32)); }),
              {"kernel turned needs", "bytes of shared memory", "sm_90a has 232448", "smaller tiles",
               " for " + std::string(__FILE__) + ":" + std::to_string(line)});
}

TEST_F(GpuRefusals, MoreRegistersThanAThreadHas) {
  Kernel wide("wide(x, y)", [](View x, View y) { y.store({0}, x.load({0}, {1 << 15})); });
  Tensor from = Tensor::zeros(f32, {1 << 15}), to = Tensor::zeros(f32, {1 << 15});
  expectParts(errorOf([&] { launch(wide, {from, to}, onSim(1)); }), {"32768 elements", "registers", "smaller tiles"});
}

TEST_F(GpuRefusals, GridsBeyondTheHardware) {
  Kernel many("many(y, n)", [](View y, Index n) {
    Index i = grid(n);
    y.store({i}, full(f32, {1}, 1));
  });
  expectParts(errorOf([&] { launch(many, {y, int64_t(1) << 31}, onSim()); }),
              {"2147483648 program instances", "larger tiles"});
}

TEST_F(GpuRefusals, TensorsThatAreElsewhere) {
  ASSERT_EQ(driver, 0);
  Tensor onDevice = Tensor::empty(f32, {4}, Device::cuda(0));
  expectParts(errorOf([&] { launch(copy, {x, onDevice}, onSim()); }), {"different devices", "cpu", "cuda:0"});
  expectParts(errorOf([&] { launch(copy, {onDevice, onDevice}, onSim()); }), {"cuda:0", "target is sim"});
}

} // namespace
