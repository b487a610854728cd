// SPDX-License-Identifier: Apache-2.0
//
// Launches of kernels that were compiled for a GPU: their tensor maps, how many blocks a persistent one gets, and which
// start before the last one has ended. Kernels are compiled by the real pipeline, what the compiler says of them is
// changed by hand, and they run on the fake driver, which looks at the launch, or in the simulator.
#include "../runtime/CountAllocations.h"
#include "../runtime/CudaFixture.h"
#include "PtxText.h"

#include "tenon/jit/Binding.h"
#include "tenon/jit/Compiler.h"
#include "tenon/jit/Object.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Module.h"
#include "tenon/tenon.h"

#include <cstdlib>
#include <thread>

using namespace tenon;
using namespace tenon::jit;

namespace {

class GpuLaunch : public Cuda {};

/// One instance a row; a number stands between the views.
Kernel scaleRows("scale_rows(x, factor, y, cols=32)", [](View x, Scalar factor, View y, Param cols) {
  Index i = grid(x.size(0));
  View copy = workspace(DType::f32, {x.size(0), cols});
  copy.store({i, 0}, x.load({i, 0}, {1, cols}));
  y.store({i, 0}, copy.load({i, 0}, {1, cols}) * factor);
});

struct Compiled {
  GeneratedCode code;
  llvm::SmallVector<int64_t, 256> words;
};

Compiled compile(const Kernel &kernel, const Arguments &arguments, Target target) {
  LaunchOptions options;
  options.target = target;
  Binding binding(kernel, Signature(kernel), arguments, options, 0, /*forGpu=*/true);
  Specialization specialization = binding.specialization();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = traceKernel(kernel, specialization.arguments, specialization.noOverlap, context);
  CompileReport report;
  std::optional<GeneratedCode> code = generateGpuCode(context, *module, target, options.compile, report, nullptr);
  return {std::move(*code), {binding.words.begin(), binding.words.end()}};
}

/// An empty kernel of that name, with so many words and maps for parameters.
std::vector<char> cubinOf(const std::string &name, size_t words, size_t maps) {
  std::string ptx = ".visible .entry " + name + "(";
  for (size_t i = 0; i < words + maps; ++i)
    ptx += std::string(i ? ", " : "") + (i < words ? ".param .u64 p" : ".param .align 64 .b8 p") + std::to_string(i) +
           (i < words ? "" : "[128]");
  cuda::Cubin cubin = cuda::assemble(cuda::Gpu::get(0), ptx + ") { ret; }");
  auto *bytes = reinterpret_cast<const char *>(cubin.bytes.data());
  return {bytes, bytes + cubin.bytes.size()};
}

/// scaleRows as the fake driver sees it.
class MappedKernel {
public:
  MappedKernel(int64_t rows, std::vector<lower::KernelInfo::Gpu::TensorMap> maps,
               const std::function<void(lower::KernelInfo &)> &change = {})
      : device_(Device::cuda(0)), x(Tensor::zeros(DType::f32, {rows, 32}, device_)),
        y(Tensor::zeros(DType::f32, {rows, 40}, device_).slice(1, 0, 32)), stream(device_) {
    Compiled compiled = compile(scaleRows, {x, 2.0, y}, Target::cuda);
    lower::KernelInfo info = compiled.code.info;
    info.gpu.tensorMaps = std::move(maps);
    if (change)
      change(info);
    // x and y: 5 words each; factor; the workspace: 5; reports: 2.
    std::vector<char> cubin = cubinOf(info.name, 18, info.gpu.tensorMaps.size());
    executable = makeCudaExecutable(info, compiled.code.host, cubin, 0);
  }

  fake::Launch launch(const Tensor &x, const Tensor &y) {
    LaunchOptions options;
    options.target = Target::cuda;
    Binding binding(scaleRows, Signature(scaleRows), {x, 2.0, y}, options, 0, /*forGpu=*/true);
    return launch(binding.words);
  }
  fake::Launch launch() { return launch(x, y); }

private:
  fake::Launch launch(llvm::SmallVectorImpl<int64_t> &words) {
    Executable::RunOptions run;
    run.stream = &stream;
    allocations = 0;
    counting = true;
    runNow(*executable, words, run);
    counting = false;
    allocated = allocations;
    return fake::launches().back();
  }
  Device device_;

public:
  Tensor x, y;
  Stream stream;
  std::shared_ptr<Executable> executable;
  int allocated = 0; ///< by the last launch
};

uint64_t addressOf(const Tensor &tensor) { return reinterpret_cast<uintptr_t>(tensor.data()); }

const std::vector<lower::KernelInfo::Gpu::TensorMap> threeMaps = {
    {2, 4, {1, 0}, {32, 8}, 128, "f32"}, {0, 4, {1, 0}, {16, 4}, 64, "f32"}, {3, 4, {1}, {32}, 0, "f32"}};

//===--- Tensor maps ----------------------------------------------------------------------------------------------===//

TEST_F(GpuLaunch, MapsAreOfTheViewsOfTheLaunch) {
  MappedKernel kernel(7, threeMaps);
  fake::Launch last = kernel.launch();
  EXPECT_EQ(last.grid[0], 7u);
  EXPECT_EQ(last.wordCount, 18u);
  EXPECT_TRUE(last.aligned);
  ASSERT_EQ(last.mapCount, 3u);
  const fake::TensorMap &y = last.maps[0], &x = last.maps[1], &workspace = last.maps[2];
  EXPECT_EQ(y.address, addressOf(kernel.y));
  EXPECT_EQ(y.rank, 2);
  EXPECT_EQ(y.type, 7);
  EXPECT_EQ(y.sizes[0], 32u);
  EXPECT_EQ(y.sizes[1], 7u);
  EXPECT_EQ(y.strides[0], 160u) << "bytes";
  EXPECT_EQ(y.box[0], 32);
  EXPECT_EQ(y.box[1], 8);
  EXPECT_EQ(y.swizzle, 3);
  EXPECT_EQ(x.address, addressOf(kernel.x));
  EXPECT_EQ(x.strides[0], 128u);
  EXPECT_EQ(x.box[0], 16);
  EXPECT_EQ(x.swizzle, 2);
  EXPECT_EQ(workspace.address, last.words[11]) << "as the kernel is told";
  EXPECT_EQ(workspace.rank, 1);
  EXPECT_EQ(workspace.sizes[0], 32u);
}

TEST_F(GpuLaunch, MapsAreMadeOnceForEachPlace) {
  MappedKernel kernel(7, threeMaps);
  Tensor elsewhere = Tensor::zeros(DType::f32, {7, 32}, Device::cuda(0));
  auto made = [&](const Tensor &x) {
    int before = fake::calls("cuTensorMapEncodeTiled");
    fake::Launch last = kernel.launch(x, kernel.y);
    EXPECT_EQ(last.maps[1].address, addressOf(x));
    EXPECT_EQ(last.maps[1].sizes[1], static_cast<uint64_t>(x.size(0)));
    return fake::calls("cuTensorMapEncodeTiled") - before;
  };
  EXPECT_EQ(made(kernel.x), 3);
  EXPECT_EQ(made(kernel.x), 0);
  EXPECT_EQ(kernel.allocated, 0);
  EXPECT_EQ(made(elsewhere), 1) << "another address";
  EXPECT_EQ(kernel.allocated, 0) << "nor for making one";
  EXPECT_EQ(made(kernel.x), 0);
  EXPECT_EQ(made(elsewhere), 0);
  EXPECT_EQ(made(kernel.x.slice(0, 0, 5)), 1) << "another size";
  EXPECT_EQ(kernel.launch(elsewhere.slice(0, 0, 4, 2), kernel.y).maps[1].strides[0], 256u) << "another stride";
}

TEST_F(GpuLaunch, ThreadsLaunchWithTheirOwnMaps) {
  MappedKernel kernel(7, threeMaps);
  std::vector<std::thread> threads;
  std::vector<Tensor> inputs;
  for (int t = 0; t < 4; ++t)
    inputs.push_back(Tensor::zeros(DType::f32, {7, 32}, Device::cuda(0)));
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Stream stream(Device::cuda(0));
      for (int i = 0; i < 50; ++i) {
        LaunchOptions options;
        options.target = Target::cuda;
        Binding binding(scaleRows, Signature(scaleRows), {inputs[(t + i) % 4], 2.0, kernel.y}, options, 0, true);
        Executable::RunOptions run;
        run.stream = &stream;
        runNow(*kernel.executable, binding.words, run);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const fake::Launch &launch : fake::launches())
    EXPECT_EQ(launch.maps[1].address, launch.words[0]);
}

TEST_F(GpuLaunch, AViewOfNothingHasAMap) {
  MappedKernel kernel(7, threeMaps);
  // The grid is that of x; y is empty, and whatever is read of it is zero.
  fake::Launch last = kernel.launch(kernel.x, kernel.y.slice(0, 0, 0));
  EXPECT_EQ(last.maps[0].sizes[0], 1u);
  EXPECT_EQ(last.maps[0].sizes[1], 1u);
  EXPECT_EQ(last.maps[0].address % 16, 0u);
  EXPECT_NE(last.maps[0].address, addressOf(kernel.y));
  EXPECT_EQ(*reinterpret_cast<const float *>(static_cast<uintptr_t>(last.maps[0].address)), 0);
  uint64_t launches = fake::launchCount();
  kernel.launch(kernel.x.slice(0, 0, 0), kernel.y);
  EXPECT_EQ(fake::launchCount(), launches) << "no rows, no blocks";
}

TEST_F(GpuLaunch, AStrideThatIsNeverTakenDoesNotMatter) {
  MappedKernel kernel(7, threeMaps);
  Tensor odd = Tensor::zeros(DType::f32, {7, 33}, Device::cuda(0));
  EXPECT_EQ(kernel.launch(odd.slice(0, 0, 1).slice(1, 0, 32), kernel.y).maps[1].strides[0], 16u);
  EXPECT_HAS(errorOf([&] { kernel.launch(odd.slice(1, 0, 32), kernel.y); }),
             "view 'x' cannot be moved by the tensor memory accelerator: the stride of dimension 1 (innermost first) "
             "is 132 bytes");
  counting = false;
}

TEST_F(GpuLaunch, MapsThatContradictTheKernelAreRefused) {
  const std::string contradiction = "kernel scale_rows has a tensor map that is of none of its views";
  auto errorFor = [](lower::KernelInfo::Gpu::TensorMap map) {
    return errorOf([&] { MappedKernel(7, {map}); });
  };
  EXPECT_EQ(errorFor(threeMaps[0]), "");
  EXPECT_HAS(errorFor({4, 4, {1, 0}, {32, 8}, 0, "f32"}), contradiction) << "no such argument";
  EXPECT_HAS(errorFor({1, 4, {1, 0}, {32, 8}, 0, "f32"}), contradiction) << "a number";
  EXPECT_HAS(errorFor({0, 4, {2, 0}, {32, 8}, 0, "f32"}), contradiction) << "no such dimension";
  EXPECT_HAS(errorFor({0, 4, {1, 0}, {32}, 0, "f32"}), contradiction) << "a box of another rank";
  EXPECT_HAS(errorFor({0, 2, {1, 0}, {32, 8}, 0, "f32"}), contradiction) << "elements of another size";
  EXPECT_HAS(errorFor({0, 4, {}, {}, 0, "f32"}), contradiction);
  EXPECT_HAS(errorOf([&] { MappedKernel(7, std::vector(17, threeMaps[0])); }), "has 17 tensor maps, more than 16");
}

//===--- Persistent kernels ---------------------------------------------------------------------------------------===//

TEST_F(GpuLaunch, APersistentKernelGetsWhatFits) {
  fake::setOccupancy(2, 25); // of 132 multiprocessors
  auto blocks = [](int64_t rows, int64_t cluster) {
    int questions = fake::calls("cuOccupancyMaxActiveClusters") +
                    fake::calls("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    MappedKernel kernel(rows, {}, [&](lower::KernelInfo &info) {
      info.gpu.persistent = true;
      info.gpu.cluster = cluster;
    });
    kernel.launch();
    fake::Launch last = kernel.launch();
    EXPECT_EQ(fake::calls("cuOccupancyMaxActiveClusters") +
                  fake::calls("cuOccupancyMaxActiveBlocksPerMultiprocessor"),
              questions + 1)
        << "once for all launches";
    EXPECT_EQ(last.cluster[0], static_cast<unsigned>(cluster));
    return last.grid[0];
  };
  EXPECT_EQ(blocks(7, 1), 7u) << "fewer than fit";
  EXPECT_EQ(blocks(264, 1), 264u);
  EXPECT_EQ(blocks(1000, 1), 264u);
  EXPECT_EQ(blocks(7, 2), 14u);
  EXPECT_EQ(blocks(1000, 2), 50u);
  EXPECT_EQ(blocks(1000, 4), 100u);
  fake::setOccupancy(0, 0);
  EXPECT_EQ(blocks(1000, 1), 1u);
  EXPECT_EQ(blocks(1000, 4), 4u);

  MappedKernel plain(1000, {});
  EXPECT_EQ(plain.launch().grid[0], 1000u);
}

TEST_F(GpuLaunch, TheSimulatorsDeviceIsSmall) {
  // The kernel does not loop by itself: what it leaves out tells how many blocks there were.
  for (int64_t rows : {2, 3, 8}) {
    Tensor x = Tensor::zeros(DType::f32, {rows, 32}), y = Tensor::zeros(DType::f32, {rows, 32});
    x.fillRandom(1, 1, 2);
    Compiled compiled = compile(scaleRows, {x, 2.0, y}, Target::sim);
    compiled.code.info.gpu.persistent = true;
    runNow(*makeSimExecutable(compiled.code.info, compiled.code.host, compiled.code.device), compiled.words, {});
    for (int64_t i = 0; i < rows; ++i)
      EXPECT_EQ(y.get({i, 5}), i < 3 ? 2 * x.get({i, 5}) : 0) << "row " << i << " of " << rows;
  }
}

TEST_F(GpuLaunch, TheSimulatorRefusesMapsAsADeviceDoes) {
  Tensor x = Tensor::zeros(DType::f32, {3, 33}), y = Tensor::zeros(DType::f32, {3, 32});
  Compiled compiled = compile(scaleRows, {x, 2.0, y}, Target::sim);
  compiled.code.info.gpu.tensorMaps = threeMaps;
  auto executable = makeSimExecutable(compiled.code.info, compiled.code.host, compiled.code.device);
  EXPECT_HAS(errorOf([&] { runNow(*executable, compiled.words, {}); }),
             "view 'x' cannot be moved by the tensor memory accelerator: the stride");
}

//===--- Kernels that start early ---------------------------------------------------------------------------------===//

TEST_F(GpuLaunch, AKernelStartsEarlyWhereItsCodeWaits) {
  for (bool waits : {true, false})
    for (int64_t cluster : {1, 2}) {
      MappedKernel kernel(7, {}, [&](lower::KernelInfo &info) {
        EXPECT_TRUE(info.gpu.startsEarly) << "sm_90a";
        info.gpu.startsEarly = waits;
        info.gpu.cluster = cluster;
      });
      fake::Launch last = kernel.launch();
      EXPECT_EQ(last.startsEarly, waits ? 1 : 0);
      EXPECT_EQ(last.cluster[0], static_cast<unsigned>(cluster));
    }
}

TEST_F(GpuLaunch, OverlapIsSwitchedOff) {
  for (const char *choice : {"", "1", "0"}) {
    ::setenv("TENON_OVERLAP_LAUNCHES", choice, 1);
    MappedKernel kernel(7, {});
    EXPECT_EQ(kernel.launch().startsEarly, *choice == '0' ? 0 : 1) << choice;
  }
  ::setenv("TENON_OVERLAP_LAUNCHES", "no", 1);
  EXPECT_EQ(errorOf([] { MappedKernel(7, {}); }), "TENON_OVERLAP_LAUNCHES is 'no' and should be 0 or 1");
  ::unsetenv("TENON_OVERLAP_LAUNCHES");
}

TEST_F(GpuLaunch, MemoryIsTouchedAfterTheWaitOnly) {
  Tensor x = Tensor::zeros(DType::f32, {3, 32}), y = Tensor::zeros(DType::f32, {3, 32});
  for (const char *gpu : {"sm_90", "sm_90a"}) {
    std::string text = ptxOf(scaleRows, {x, 2.0, y}, gpu);
    expectInOrder(text, {"%ctaid", "griddepcontrol.wait", "griddepcontrol.launch_dependents", "ld.global"});
    expectInOrder(text, {"griddepcontrol.wait", "st.global"});
    // The assembler would put the wait first if it did not need the address of what is loaded behind it.
    expectInOrder(text, {"mul.lo", "@waits griddepcontrol.wait", "ld.global"});
  }
  EXPECT_EQ(ptxOf(scaleRows, {x, 2.0, y}, "sm_89").find("griddepcontrol"), std::string::npos);
  EXPECT_EQ(ptxOf(scaleRows, {x, 2.0, y}, "sm_80").find("griddepcontrol"), std::string::npos);

  // What it takes to find the place of an instance, and of a kernel that only writes.
  Kernel copyTiles("copy_tiles(x, y)", [](View x, View y) {
    auto [i, j] = grid(x.size(0), cdiv(x.size(1), 8));
    y.store({i, j * 8}, x.load({i, j * 8}, {1, 8}));
  });
  expectInOrder(ptxOf(copyTiles, {x, y}, "sm_90a"),
                {"div.u32", "@waits griddepcontrol.wait", "griddepcontrol.launch_dependents", "ld.global"});
  Kernel fill("fill(y)", [](View y) {
    Index i = grid(y.size(0));
    y.store({i, 0}, full(f32, {1, 32}, 7));
  });
  expectInOrder(ptxOf(fill, {y}, "sm_90a"),
                {"@waits griddepcontrol.wait", "griddepcontrol.launch_dependents", "st.global"});

  // Reports of asserts are in memory as well; loops and branches are waited for before they begin.
  Kernel checked("checked(x, y)", [](View x, View y) {
    Index i = grid(x.size(0));
    device_assert(i < 100, "few rows");
    for (Index j : range(i))
      y.store({j, 0}, x.load({i, 0}, {1, 32}));
  });
  std::string text = ptxOf(checked, {x, y}, "sm_90a");
  expectInOrder(text, {"griddepcontrol.wait", "atom.relaxed"});
  EXPECT_EQ(text.find("@waits"), std::string::npos) << "the word that is zero elsewhere is an address here";
  EXPECT_EQ(text.find("griddepcontrol.wait"), text.rfind("griddepcontrol.wait"));
}

//===--- The rest -------------------------------------------------------------------------------------------------===//

TEST_F(GpuLaunch, TheSimulatorsSeed) {
  Tensor x = Tensor::zeros(DType::f32, {3, 32}), y = Tensor::zeros(DType::f32, {3, 32});
  x.fillRandom(1, 1, 2);
  LaunchOptions options;
  options.target = Target::sim;
  for (const char *seed : {"", "0", "7", "18446744073709551615"}) {
    ::setenv("TENON_SIM_SEED", seed, 1);
    launch(scaleRows, {x, 2.0, y}, options);
    EXPECT_EQ(y.get({2, 5}), 2 * x.get({2, 5}));
  }
  for (const char *seed : {"seven", "-1", "1 2", "18446744073709551616"}) {
    ::setenv("TENON_SIM_SEED", seed, 1);
    EXPECT_EQ(errorOf([&] { launch(scaleRows, {x, 2.0, y}, options); }),
              "TENON_SIM_SEED is '" + std::string(seed) + "' and should be a number");
  }
  ::unsetenv("TENON_SIM_SEED");
}

TEST_F(GpuLaunch, WhatIsKnownOfAKernelIsKeptOnDisk) {
  lower::KernelInfo info;
  info.name = "kernel";
  info.gpu.threads = 384;
  info.gpu.tensorMaps = threeMaps;
  info.gpu.persistent = true;
  info.gpu.startsEarly = true;
  std::vector<std::byte> bytes = encodeObject(info, std::string("host"), std::string("device"));
  std::optional<Object> object = decodeObject(bytes);
  ASSERT_TRUE(object);
  const lower::KernelInfo::Gpu &gpu = object->info.gpu;
  EXPECT_EQ(gpu.threads, 384);
  EXPECT_TRUE(gpu.persistent);
  EXPECT_TRUE(gpu.startsEarly);
  ASSERT_EQ(gpu.tensorMaps.size(), threeMaps.size());
  for (size_t i = 0; i < threeMaps.size(); ++i) {
    const auto &[argument, elementBytes, dims, box, swizzleBytes, element] = gpu.tensorMaps[i];
    EXPECT_EQ(argument, threeMaps[i].argument);
    EXPECT_EQ(elementBytes, threeMaps[i].elementBytes);
    EXPECT_EQ(dims, threeMaps[i].dims);
    EXPECT_EQ(box, threeMaps[i].box);
    EXPECT_EQ(swizzleBytes, threeMaps[i].swizzleBytes);
    EXPECT_EQ(element, threeMaps[i].element);
  }
  EXPECT_EQ(std::string(object->device.begin(), object->device.end()), "device");
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decodeObject(std::span(bytes).first(size))) << size;
  info.gpu.startsEarly = false;
  EXPECT_FALSE(decodeObject(encodeObject(info, std::string("host")))->info.gpu.startsEarly);
  info.gpu.persistent = false;
  info.gpu.tensorMaps.clear();
  object = decodeObject(bytes = encodeObject(info, std::string("host")));
  ASSERT_TRUE(object);
  EXPECT_FALSE(object->info.gpu.persistent);
  EXPECT_TRUE(object->info.gpu.tensorMaps.empty());
}

} // namespace
