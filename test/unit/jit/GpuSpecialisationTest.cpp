// SPDX-License-Identifier: Apache-2.0
//
// What code for a GPU is specialised on of the views, and what becomes of views that lack it: which of a kernel's codes a
// launch takes, and that all of them are right.
#include "../runtime/CudaFixture.h"
#include "PtxText.h"

#include "tenon/jit/Binding.h"
#include "tenon/jit/Compiler.h"
#include "tenon/jit/Object.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Module.h"
#include "tenon/tenon.h"

using namespace tenon;
using namespace tenon::jit;

namespace {

class GpuSpecialisation : public Cuda {};

std::vector<int64_t> factsOf(const Tensor &tensor) {
  Kernel kernel("one(x)", [](View) {});
  LaunchOptions options;
  options.target = Target::cuda;
  Binding binding(kernel, Signature(kernel), {tensor}, options, 0, /*forGpu=*/true);
  return binding.specialization().arguments[0].divisible;
}

TEST_F(GpuSpecialisation, FactsOfViews) {
  using Facts = std::vector<int64_t>; // of the address, the sizes, the strides
  Tensor all = Tensor::zeros(DType::bf16, {64, 48});
  EXPECT_EQ(factsOf(all), (Facts{16, 16, 16, 16, 1}));
  EXPECT_EQ(factsOf(all.slice(1, 8, 40)), (Facts{16, 16, 8, 16, 1}));
  EXPECT_EQ(factsOf(all.slice(1, 4, 40)), (Facts{8, 16, 8, 16, 1})) << "8 bytes into a row";
  EXPECT_EQ(factsOf(all.slice(1, 1, 40)), (Facts{2, 16, 8, 16, 1}));
  EXPECT_EQ(factsOf(Tensor::zeros(DType::bf16, {64, 52})), (Facts{16, 16, 4, 4, 1})) << "rows of 104 bytes";
  EXPECT_EQ(factsOf(all.transpose({1, 0})), (Facts{16, 16, 16, 1, 16}));
}

TEST_F(GpuSpecialisation, WhatCannotBeMappedIsNotCalledAligned) {
  alignas(16) static float memory[64];
  auto address = [](std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    return factsOf(Tensor::borrow(memory, sizeof memory, DType::f32, sizes, strides))[0];
  };
  EXPECT_EQ(address({4, 16}, {16, 1}), 16);
  EXPECT_EQ(address({4, 16}, {0, 1}), 8) << "every row is the same";
  EXPECT_EQ(address({1, 16}, {0, 1}), 16) << "there is one row";
  EXPECT_EQ(address({4, 0}, {16, 1}), 8) << "nothing";
  EXPECT_EQ(address({0, 16}, {16, 1}), 8);
  EXPECT_EQ(address({4, 16}, {int64_t(1) << 38, 1}), 8) << "a terabyte";
  EXPECT_EQ(address({4, 16}, {(int64_t(1) << 38) - 16, 1}), 16);
  EXPECT_EQ(address({int64_t(1) << 31, 16}, {16, 1}), 8) << "more than coordinates count";
  EXPECT_EQ(address({(int64_t(1) << 31) - 1, 16}, {16, 1}), 16);
  Tensor backwards = Tensor::zeros(DType::f32, {4, 16}).slice(0, 3, 4, -1);
  EXPECT_EQ(factsOf(backwards)[0], 8);
}

/// The kernel that aligned views compiled must not meet others, whichever comes first.
TEST_F(GpuSpecialisation, AlignedAndMisalignedViewsInBothOrders) {
  Tensor all = Tensor::zeros(DType::f32, {8, 96});
  all.fillRandom(1, 1, 2);
  struct {
    const char *name;
    Tensor x;
  } views[] = {{"aligned", all.slice(1, 0, 64)},
               {"4 bytes off", all.slice(1, 1, 64)},
               {"8 bytes off", all.slice(1, 2, 64)},
               {"rows of 65 elements", Tensor::zeros(DType::f32, {8, 65}).slice(1, 0, 64)}};
  views[3].x.fillRandom(2, 1, 2);
  auto makeKernel = [] {
    return Kernel("copy_rows(x, y)", [](View x, View y) {
      Index i = grid(x.size(0));
      y.store({i, 0}, x.load({i, 0}, {1, 64}));
    });
  };
  LaunchOptions options;
  options.target = Target::sim;
  for (const auto &first : views)
    for (const auto &second : views) {
      Kernel kernel = makeKernel();
      for (const auto &[name, x] : {first, second, first}) {
        Tensor y = Tensor::zeros(DType::f32, {8, 64});
        launch(kernel, {x, y}, options);
        for (int64_t i : {0, 7})
          for (int64_t j : {0, 1, 63})
            ASSERT_EQ(y.get({i, j}), x.get({i, j})) << first.name << ", then " << second.name;
      }
      Tensor y = Tensor::zeros(DType::f32, {8, 64});
      EXPECT_TRUE(prepare(kernel, {first.x, y}, options).fromMemory);
      EXPECT_TRUE(prepare(kernel, {second.x, y}, options).fromMemory);
    }
}

TEST_F(GpuSpecialisation, MisalignedViewsAreAnotherKernelOfADevice) {
  Device device = Device::cuda(0);
  Tensor all = Tensor::zeros(DType::bf16, {64, 128}, device), y = Tensor::zeros(DType::bf16, {64, 64}, device);
  Tensor aligned = all.slice(1, 0, 64), off = all.slice(1, 4, 64);
  Tensor odd = Tensor::zeros(DType::bf16, {64, 68}, device).slice(1, 0, 64);
  LaunchOptions options;
  options.target = Target::cuda;
  for (const auto &order : {std::vector{aligned, off, odd}, {odd, off, aligned}}) {
    Kernel kernel("copy_rows(x, y)", [](View x, View y) {
      Index i = grid(x.size(0));
      y.store({i, 0}, x.load({i, 0}, {1, 64}));
    });
    for (const Tensor &x : order)
      EXPECT_FALSE(prepare(kernel, {x, y}, options).fromMemory);
    for (const Tensor &x : order)
      EXPECT_TRUE(prepare(kernel, {x, y}, options).fromMemory);
  }
}

/// c = a b, which the tensor memory accelerator feeds where it can.
Kernel makeProduct() {
  return Kernel("product(a, b, c, tile=64)", [](View a, View b, View c, Param tile) {
    auto [i, j] = grid(cdiv(c.size(0), tile), cdiv(c.size(1), tile));
    Tile sum = zeros(f32, {tile, tile});
    for (Index k : range(cdiv(a.size(1), tile)))
      sum = dot(a.load({i * tile, k * tile}, {tile, tile}), b.load({k * tile, j * tile}, {tile, tile}), sum);
    c.store({i * tile, j * tile}, sum.to(c.dtype()));
  });
}

struct Operand {
  const char *name;
  Tensor a; ///< [64, k]
};
/// Small whole numbers: sums are exact in any order.
std::vector<Operand> operands(Device device) {
  auto matrix = [&](IndexList sizes) {
    Tensor tensor = Tensor::empty(DType::bf16, sizes);
    for (int64_t i = 0; i < tensor.size(0); ++i)
      for (int64_t j = 0; j < tensor.size(1); ++j)
        tensor.set({i, j}, static_cast<double>((3 * i + 5 * j) % 7 - 3));
    return device.isCpu() ? tensor : tensor.to(device);
  };
  Tensor wide = matrix({64, 144});
  return {{"aligned", wide.slice(1, 0, 136)},
          {"8 bytes off", wide.slice(1, 4, 136)},
          {"2 bytes off", wide.slice(1, 1, 136)},
          {"rows of 280 bytes", matrix({64, 140}).slice(1, 0, 136)},
          {"backwards", wide.slice(0, 63, 64, -1)},
          {"all rows the same", Tensor::borrow(wide.data(), wide.bufferBytes(), DType::bf16, {64, 136}, {0, 1},
                                               [wide] {}, device)},
          {"nothing", wide.slice(1, 0, 0)}};
}

TEST_F(GpuSpecialisation, MatricesThatCannotBeMappedAreLoadedInAnotherWay) {
  Device device = Device::cuda(0);
  LaunchOptions options;
  options.target = Target::cuda;
  std::vector<Operand> all = operands(device);
  auto mapsOf = [&](const Kernel &kernel, const Tensor &a) {
    Tensor b = Tensor::zeros(DType::bf16, {a.size(1), 64}, device), c = Tensor::zeros(DType::f32, {64, 64}, device);
    launch(kernel, {a, b, c}, options);
    return fake::launches().back().mapCount;
  };
  size_t most = mapsOf(makeProduct(), all[0].a);
  EXPECT_GE(most, 2u) << "a and b";
  for (const Operand &other : std::span(all).subspan(1)) {
    Kernel before = makeProduct(), after = makeProduct();
    EXPECT_EQ(mapsOf(before, all[0].a), most);
    EXPECT_LT(mapsOf(before, other.a), most) << other.name << ", second";
    EXPECT_EQ(mapsOf(before, all[0].a), most);
    EXPECT_LT(mapsOf(after, other.a), most) << other.name << ", first";
    EXPECT_EQ(mapsOf(after, all[0].a), most);
  }
}

/// The driver's linker would leave out the instructions that move registers.
TEST_F(GpuSpecialisation, CodeThatMovesRegistersIsNotLinked) {
  Device device = Device::cuda(0);
  Tensor a = Tensor::zeros(DType::bf16, {64, 128}, device), b = Tensor::zeros(DType::bf16, {128, 64}, device);
  Tensor c = Tensor::zeros(DType::f32, {64, 64}, device);
  auto links = [&](int warps, const std::string &without) {
    LaunchOptions options;
    options.target = Target::cuda;
    options.compile.useDiskCache = false;
    options.compile.warps = warps;
    options.compile.without = without;
    int before = fake::calls("cuLinkAddData"), loads = fake::calls("cuModuleLoadDataEx");
    launch(makeProduct(), {a, b, c}, options);
    EXPECT_GT(fake::calls("cuModuleLoadDataEx"), loads);
    return fake::calls("cuLinkAddData") - before;
  };
  links(2, ""); // the first of a process has the assembler started besides
  EXPECT_EQ(links(4, ""), 1) << "each thread has all registers from the start";
  EXPECT_EQ(links(8, ""), 0);
  EXPECT_EQ(links(8, "registers"), 1);
}

TEST_F(GpuSpecialisation, ASpecialisedKernelWaitsBeforeItsRolesPart) {
  Tensor a = Tensor::zeros(DType::bf16, {128, 128}), b = Tensor::zeros(DType::bf16, {128, 128});
  Tensor c = Tensor::zeros(DType::f32, {128, 128});
  std::string text = ptxOf(makeProduct(), {a, b, c}, "sm_90a");
  expectInOrder(text, {"prefetch.tensormap", "mbarrier.init", "bar.sync", "griddepcontrol.wait",
                       "cp.async.bulk.tensor"});
  expectInOrder(text, {"mbarrier.arrive.expect_tx", "griddepcontrol.launch_dependents"}); // when all is loaded
  size_t wait = text.find("griddepcontrol.wait");
  EXPECT_EQ(wait, text.rfind("griddepcontrol.wait")) << "by all threads at once";
  for (const char *access : {"ld.global", "st.global", "setmaxnreg"})
    EXPECT_EQ(text.rfind(access, wait), std::string::npos) << access << " in\n" << text;
}

TEST_F(GpuSpecialisation, MatricesMappedOrNotHaveTheSameProduct) {
  Kernel kernel = makeProduct();
  for (const auto &[name, a] : operands(Device::cpu())) {
    Tensor b = Tensor::empty(DType::bf16, {a.size(1), 64});
    for (int64_t i = 0; i < b.size(0); ++i)
      for (int64_t j = 0; j < 64; ++j)
        b.set({i, j}, static_cast<double>((i + 2 * j) % 5 - 2));
    Tensor c = Tensor::zeros(DType::f32, {64, 64}), expected = Tensor::zeros(DType::f32, {64, 64});
    LaunchOptions options;
    launch(kernel, {a, b, expected}, options);
    options.target = Target::sim;
    launch(kernel, {a, b, c}, options);
    for (int64_t i = 0; i < 64; ++i)
      for (int64_t j = 0; j < 64; ++j)
        ASSERT_EQ(c.get({i, j}), expected.get({i, j})) << name << " at " << i << ", " << j;
  }
}

} // namespace
