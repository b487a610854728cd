// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the CUDA runtime: loading, launching, graphs, and what goes wrong; over the fake driver.
#include "CountAllocations.h"
#include "CudaFixture.h"

#include "tenon/runtime/LaunchGraph.h"
#include "tenon/runtime/Stream.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Driver.h"
#include "tenon/runtime/cuda/Errors.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Module.h"
#include "tenon/runtime/cuda/StatusWords.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

using namespace tenon;
using namespace tenon::cuda;

namespace {

const char *const ptx = R"(
.visible .entry add_one(.param .u64 data, .param .u64 count) { ret; }
.visible .entry report(.param .u64 to, .param .u64 value) { ret; }
.visible .entry other(.param .u64 a, .param .u64 b, .param .u64 c) { ret; }
)";

uint64_t address(const Tensor &tensor) { return reinterpret_cast<uintptr_t>(tensor.data()); }

TEST_F(Cuda, LoadsPtxAndCubin) {
  Gpu &gpu = Gpu::get(0);
  Function fromPtx(Module::fromPtx(gpu, ptx), "other", 0, 1, /*parameters=*/3);
  EXPECT_STREQ(fromPtx.name(), "other");
  EXPECT_EQ(fromPtx.attributes().registers, 40);
  EXPECT_EQ(fromPtx.attributes().localBytes, 8);
  EXPECT_EQ(fromPtx.attributes().staticSharedBytes, 256);
  EXPECT_EQ(fromPtx.attributes().maxThreads, 1024);
  EXPECT_EQ(fromPtx.parameterBytes(), 24);

  Cubin cubin = assemble(gpu, ptx, {.optimization = 3, .lineInfo = true, .verbose = true, .maxRegisters = 64});
  uint64_t value = 0;
  EXPECT_TRUE(fake::jitOption(7, value) && value == 3);
  EXPECT_TRUE(fake::jitOption(13, value) && value == 1);
  EXPECT_TRUE(fake::jitOption(0, value) && value == 64);
  int questions = fake::calls("cuFuncGetParamInfo");
  Function fromCubin(Module::fromCubin(gpu, cubin.bytes), "add_one", 0, 1, /*parameters=*/2);
  EXPECT_EQ(fromCubin.parameterBytes(), 16);
  EXPECT_EQ(fake::calls("cuFuncGetParamInfo"), questions + 1) << "none for what is not there";
  EXPECT_FALSE(fake::jitOption(7, value)) << "there is nothing to assemble";
  EXPECT_EQ(Function(Module::fromPtx(gpu, ptx), "other").parameterBytes(), -1);
  EXPECT_HAS(errorOf([&] { Function(Module::fromPtx(gpu, ptx), "other", 0, 1, /*parameters=*/4); }),
             "kernel 'other' has fewer than 4 parameters");
  EXPECT_HAS(Module::fromPtx(gpu, ptx, {.verbose = true})->log(), "Used 32 registers");

  EXPECT_HAS(errorOf([&] { Function(Module::fromPtx(gpu, ptx), "missing"); }),
             "finding kernel 'missing' on cuda:0 failed with CUDA_ERROR_NOT_FOUND");
  for (size_t bytes : {size_t(0), size_t(10), size_t(63)})
    EXPECT_HAS(errorOf([&] { Module::fromCubin(gpu, std::span(cubin.bytes).first(bytes)); }), "not a whole cubin");
  int unloads = fake::calls("cuModuleUnload");
  { Function gone(Module::fromPtx(gpu, ptx), "other"); }
  EXPECT_EQ(fake::calls("cuModuleUnload"), unloads + 1);
}

TEST_F(Cuda, AssemblerErrorsHaveItsWords) {
  Gpu &gpu = Gpu::get(0);
  auto expectWords = [](const std::string &text) {
    EXPECT_HAS(text, "assembling a kernel on cuda:0 failed with CUDA_ERROR_INVALID_PTX");
    EXPECT_HAS(text, "line 7; error   : Unexpected 'syntax'");
  };
  expectWords(errorOf([&] { Module::fromPtx(gpu, "syntax error"); }));
  expectWords(errorOf([&] { assemble(gpu, "syntax error"); }));
  EXPECT_EQ(fake::calls("cuLinkDestroy"), 1) << "also when it failed";
}

TEST_F(Cuda, TheAssemblerIsStartedOnce) {
  Gpu &gpu = Gpu::get(0);
  fake::failNext("cuLinkAddData", 218);
  { AssemblerStart start(0); }
  EXPECT_EQ(fake::calls("cuLinkAddData"), 1) << "and nobody hears of the failure";
  { AssemblerStart again(0); }
  EXPECT_EQ(fake::calls("cuLinkAddData"), 1);
  EXPECT_EQ(fake::calls("cuLinkDestroy"), 1);
  EXPECT_FALSE(assemble(gpu, ptx).bytes.empty());
}

TEST_F(Cuda, SharedMemoryAndClusters) {
  Gpu &gpu = Gpu::get(0);
  auto module = Module::fromPtx(gpu, ptx);
  Function small(module, "other", 40000);
  EXPECT_EQ(fake::functionAttribute("other", 8), -1) << "needs no asking";
  Function large(module, "add_one", 200000, 16);
  EXPECT_EQ(fake::functionAttribute("add_one", 8), 200000);
  EXPECT_EQ(fake::functionAttribute("add_one", 14), 1);
  EXPECT_HAS(errorOf([&] { Function(module, "add_one", 232448); }),
             "kernel 'add_one' needs 232704 bytes of shared memory a block, and cuda:0 has 232448");

  Stream stream(Device::cuda(0));
  uint64_t words[] = {0, 0};
  launch(large, {{16, 2, 1}, {128, 1, 1}, {8, 2, 1}, 200000}, CudaStream::of(stream), words);
  fake::Launch last = fake::launches().back();
  EXPECT_EQ(fake::calls("cuLaunchKernelEx"), 1);
  EXPECT_EQ(fake::calls("cuLaunchKernel"), 0);
  EXPECT_EQ(last.cluster[0], 8u);
  EXPECT_EQ(last.cluster[1], 2u);
  EXPECT_EQ(last.sharedBytes, 200000u);
  EXPECT_HAS(errorOf([&] { launch(large, {{15, 1, 1}, {128, 1, 1}, {8, 1, 1}}, CudaStream::of(stream), words); }),
             "launching kernel 'add_one' (grid 15 x 1 x 1, block 128 x 1 x 1, cluster 8 x 1 x 1, ");
}

TEST_F(Cuda, LaunchesThatStartEarly) {
  Gpu &gpu = Gpu::get(0);
  Function function(Module::fromPtx(gpu, ptx), "other", 100, 2, /*parameters=*/3);
  Stream stream(Device::cuda(0));
  uint64_t words[] = {1, 2, 3};
  LaunchShape shape{{4, 1, 2}, {32, 2, 1}, {1, 1, 1}, 100};
  auto last = [&](uint32_t cluster, bool startsEarly) {
    shape.cluster[0] = cluster;
    shape.startsEarly = startsEarly;
    launch(function, shape, CudaStream::of(stream), words);
    fake::Launch last = fake::launches().back();
    EXPECT_EQ(last.cluster[0], cluster);
    EXPECT_EQ(last.cluster[1] * last.cluster[2], 1u);
    EXPECT_EQ(last.grid[0] * 100 + last.grid[1] * 10 + last.grid[2], 412u);
    EXPECT_EQ(last.block[0] * 10 + last.block[1], 322u);
    EXPECT_EQ(last.sharedBytes, 100u);
    EXPECT_EQ(last.words[2], 3u);
    EXPECT_EQ(last.stream, CudaStream::of(stream).handle());
    return last.startsEarly;
  };
  EXPECT_EQ(last(1, false), 0);
  EXPECT_EQ(last(2, false), 0);
  EXPECT_EQ(fake::calls("cuLaunchKernelEx"), 1);
  EXPECT_EQ(last(1, true), 1);
  EXPECT_EQ(last(2, true), 1);
  EXPECT_EQ(fake::calls("cuLaunchKernelEx"), 3);
  EXPECT_EQ(fake::calls("cuLaunchKernel"), 1);
  LaunchGraph graph = LaunchGraph::capture(stream, [&] {
    EXPECT_EQ(last(1, true), 1);
    EXPECT_EQ(last(2, true), 1);
  });
  EXPECT_EQ(graph.nodes(), 2u);
  fake::failNext("cuLaunchKernelEx", 701);
  EXPECT_HAS(errorOf([&] { last(1, true); }), "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");

  // A driver that has no such call.
  auto &api = const_cast<DriverApi &>(driverApi());
  auto kept = std::exchange(api.cuLaunchKernelEx, nullptr);
  EXPECT_EQ(last(1, true), 0);
  EXPECT_HAS(errorOf([&] { last(2, true); }), "launching kernel 'other' (grid 4 x 1 x 2");
  api.cuLaunchKernelEx = kept;
}

/// In a process of its own, with a driver that does not capture the attribute.
TEST_F(Cuda, GraphsOfOlderDriversOverlapNothing) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  ::setenv("FAKE_CUDA_VERSION", "12020", 1);
  auto tell = [] {
    Function function(Module::fromPtx(Gpu::get(0), ptx), "other");
    Stream stream(Device::cuda(0));
    auto once = [&] {
      uint64_t words[] = {1, 2, 3};
      launch(function, {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0, /*startsEarly=*/true}, CudaStream::of(stream), words);
      std::fprintf(stderr, "%d ", fake::launches().back().startsEarly);
    };
    once();
    LaunchGraph::capture(stream, [&] {
      once();
      once();
    });
    once();
    std::_Exit(3);
  };
  EXPECT_EXIT(tell(), testing::ExitedWithCode(3), "1 0 0 1 ");
  ::unsetenv("FAKE_CUDA_VERSION");
}

TEST_F(Cuda, PassesParameters) {
  Gpu &gpu = Gpu::get(1);
  Function function(Module::fromPtx(gpu, ptx), "other", 0, 1, /*parameters=*/3);
  Stream stream(Device::cuda(1));
  CudaStream &raw = CudaStream::of(stream);
  uint64_t words[] = {uint64_t(1) << 40, UINT64_MAX, 42};
  launch(function, {{7, 8, 9}, {32, 2, 1}, {1, 1, 1}, 100}, raw, words);
  fake::Launch last = fake::launches().back();
  EXPECT_STREQ(last.name, "other");
  EXPECT_EQ(last.wordCount, 3u);
  EXPECT_EQ(last.words[0], uint64_t(1) << 40);
  EXPECT_EQ(last.words[1], UINT64_MAX);
  EXPECT_EQ(last.words[2], 42u);
  EXPECT_EQ(last.grid[0] * 100 + last.grid[1] * 10 + last.grid[2], 789u);
  EXPECT_EQ(last.block[0], 32u);
  EXPECT_EQ(last.block[1], 2u);
  EXPECT_EQ(last.sharedBytes, 100u);
  EXPECT_EQ(last.stream, raw.handle());

  uint64_t count = fake::launchCount();
  launch(function, {{7, 0, 9}, {32, 2, 1}}, raw, words);
  EXPECT_EQ(fake::launchCount(), count) << "an empty grid is no work";
  EXPECT_HAS(errorOf([&] { launch(function, {{1, 1, 1}, {32, 1, 1}}, raw, std::span(words).first(2)); }),
             "takes 24 bytes of parameters and was given 16");
  Stream other(Device::cuda(0)), host;
  EXPECT_HAS(errorOf([&] { launch(function, {}, CudaStream::of(other), words); }),
             "kernel 'other' was loaded on cuda:1 and cannot run on a stream of cuda:0");
  EXPECT_HAS(errorOf([&] { CudaStream::of(host); }), "the stream is the CPU's");
  fake::failNext("cuLaunchKernel", 701);
  std::string text = errorOf([&] { launch(function, {{1, 1, 1}, {1024, 1, 1}}, raw, words); });
  EXPECT_HAS(text, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
  EXPECT_HAS(text, "40 registers a thread");
  EXPECT_HAS(text, "use fewer warps or smaller tiles");
  launch(function, {{1, 1, 1}, {32, 1, 1}}, raw, words); // not lost
}

TEST_F(Cuda, LaunchesAllocateNothing) {
  Gpu &gpu = Gpu::get(0);
  auto module = Module::fromPtx(gpu, ptx);
  Function plain(module, "other"), clustered(module, "report", 0, 2);
  Stream stream(Device::cuda(0));
  CudaStream &raw = CudaStream::of(stream);
  uint64_t words[] = {1, 2, 3}, pair[] = {0, 0};
  pair[0] = raw.statusPointer();
  auto both = [&] {
    launch(plain, {{4, 1, 1}, {128, 1, 1}}, raw, words);
    launch(clustered, {{4, 1, 1}, {128, 1, 1}, {2, 1, 1}}, raw, pair);
    launch(clustered, {{4, 1, 1}, {128, 1, 1}, {2, 1, 1}, 0, /*startsEarly=*/true}, raw, pair);
  };
  both();
  allocations = 0;
  counting = true;
  for (int i = 0; i < 100; ++i)
    both();
  counting = false;
  EXPECT_EQ(allocations, 0);
}

TEST_F(Cuda, ThreadsLaunchAtOnce) {
  Function function(Module::fromPtx(Gpu::get(0), ptx), "add_one");
  Stream shared(Device::cuda(0));
  constexpr int threads = 4, rounds = 500;
  Tensor common = Tensor::zeros(DType::u32, {4}, Device::cuda(0));
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&] { // no context is current here yet
      Stream own(Device::cuda(0));
      Tensor mine = Tensor::zeros(DType::u32, {4}, Device::cuda(0));
      for (int i = 0; i < rounds; ++i) {
        uint64_t words[] = {address(mine), 4}, theirs[] = {address(common), 4};
        launch(function, {{1, 1, 1}, {32, 1, 1}}, CudaStream::of(own), words);
        launch(function, {{1, 1, 1}, {32, 1, 1}}, CudaStream::of(shared), theirs);
      }
      own.synchronize();
      EXPECT_EQ(mine.to(Device::cpu()).getInt({3}), rounds);
    });
  for (std::thread &worker : workers)
    worker.join();
  shared.synchronize();
  EXPECT_EQ(common.to(Device::cpu()).getInt({0}), threads * rounds);
}

TEST_F(Cuda, KeepsTheContextOfOthers) {
  const DriverApi &api = driverApi();
  Gpu &gpu = Gpu::get(0);
  api.cuCtxSetCurrent(Gpu::get(1).context());
  Tensor tensor = Tensor::zeros(DType::u32, {4}, Device::cuda(0));
  ContextHandle now = nullptr;
  api.cuCtxGetCurrent(&now);
  EXPECT_EQ(now, Gpu::get(1).context());
  api.cuCtxSetCurrent(nullptr);
  { CurrentContext current(gpu); }
  api.cuCtxGetCurrent(&now);
  EXPECT_EQ(now, gpu.context()) << "a thread that had none keeps it";
}

TEST_F(Cuda, StatusWords) {
  Function report(Module::fromPtx(Gpu::get(0), ptx), "report");
  Stream stream(Device::cuda(0)), innocent(Device::cuda(0));
  CudaStream &raw = CudaStream::of(stream);
  EXPECT_NE(raw.statusPointer(), CudaStream::of(innocent).statusPointer());
  uint64_t words[] = {raw.statusPointer(), 7};
  launch(report, {{1, 1, 1}, {32, 1, 1}}, raw, words);
  Event event;
  stream.record(event);
  EXPECT_HAS(errorOf([&] { event.synchronize(); }), "failure number 7");
  innocent.synchronize();
  setStatusText([](uint64_t status) { return "assert " + std::to_string(status) + " failed"; });
  EXPECT_EQ(errorOf([&] { stream.synchronize(); }), "assert 7 failed");
  EXPECT_EQ(errorOf([&] { stream.synchronize(); }), "") << "told once";
  launch(report, {{1, 1, 1}, {32, 1, 1}}, raw, words);
  EXPECT_EQ(raw.takeStatus(), 7u);
  EXPECT_EQ(raw.takeStatus(), 0u);
  setStatusText(nullptr);
}

TEST_F(Cuda, GraphsRepeatLaunches) {
  Function function(Module::fromPtx(Gpu::get(0), ptx), "add_one");
  Stream stream(Device::cuda(0)), side(Device::cuda(0));
  Tensor data = Tensor::zeros(DType::u32, {4}, Device::cuda(0));
  auto addOne = [&](Stream &on) {
    uint64_t words[] = {address(data), 4};
    launch(function, {{1, 1, 1}, {32, 1, 1}}, CudaStream::of(on), words);
  };
  addOne(stream);
  LaunchGraph graph = LaunchGraph::capture(stream, [&] {
    addOne(stream);
    // Allocations, copies and frees meanwhile are done at once and spoil nothing.
    EXPECT_EQ(data.to(Device::cpu()).getInt({0}), 1);
    Tensor::zeros(DType::f32, {100}, Device::cuda(0)).fill(3);
    EXPECT_HAS(errorOf([&] { stream.synchronize(); }), "while it is being captured");
    EXPECT_HAS(errorOf([&] { stream.enqueue([] {}); }), "a graph repeats kernels only");
    EXPECT_FALSE(stream.idle());
    EXPECT_HAS(errorOf([&] { LaunchGraph::capture(stream, [] {}); }), "cannot be captured again");
    Event fork, join;
    stream.record(fork);
    side.wait(fork);
    addOne(side);
    Tensor::zeros(DType::f32, {100}, Device::cuda(0)).fill(3);
    side.record(join);
    stream.wait(join);
    addOne(stream);
  });
  EXPECT_EQ(graph.nodes(), 3u);
  EXPECT_EQ(data.to(Device::cpu()).getInt({0}), 1) << "nothing ran";
  graph.launch(stream);
  graph.launch(side);
  EXPECT_EQ(data.to(Device::cpu()).getInt({0}), 7);
  graph.keep(data);

  EXPECT_EQ(errorOf([&] { LaunchGraph::capture(stream, [] { throw Error("midway"); }); }), "midway");
  stream.synchronize(); // as it was
  EXPECT_HAS(errorOf([&] { LaunchGraph().launch(stream); }), "empty graph");
  Stream host, elsewhere(Device::cuda(1));
  EXPECT_HAS(errorOf([&] { LaunchGraph::capture(host, [] {}); }), "the stream is the CPU's");
  EXPECT_HAS(errorOf([&] { graph.launch(elsewhere); }), "captured on cuda:0 cannot run on a stream of cuda:1");
  int destroyed = fake::calls("cuGraphExecDestroy");
  graph = LaunchGraph();
  EXPECT_EQ(fake::calls("cuGraphExecDestroy"), destroyed + 1);
}

TEST_F(Cuda, MemoryFreedDuringACaptureWaitsForWhatRanBefore) {
  Function function(Module::fromPtx(Gpu::get(0), ptx), "add_one");
  Stream stream(Device::cuda(0));
  fake::setLazy(true);
  auto data = std::make_unique<Tensor>(Tensor::zeros(DType::u32, {4}, Device::cuda(0)));
  uint64_t words[] = {address(*data), 4};
  launch(function, {{1, 1, 1}, {32, 1, 1}}, CudaStream::of(stream), words);
  size_t before = fake::liveBytes();
  Tensor next;
  LaunchGraph::capture(stream, [&] {
    data.reset();
    next = Tensor::empty(DType::u32, {4}, Device::cuda(0)); // runs what is queued for the memory itself
  });
  EXPECT_EQ(fake::liveBytes(), before + 16);
  stream.synchronize();
}

TEST_F(Cuda, ErrorTexts) {
  const DriverApi &api = driverApi();
  EXPECT_EQ(describe(api, 700),
            "CUDA_ERROR_ILLEGAL_ADDRESS (the driver's words): a kernel read or wrote memory that it was not given");
  EXPECT_EQ(describe(api, 12345), "CUDA error 12345");
  for (int code : {700, 702, 714, 715, 716, 717, 718, 719, 214, 220})
    EXPECT_TRUE(isSticky(code)) << code;
  for (int code : {0, 1, 2, 218, 600, 701, 900, 912, 12345})
    EXPECT_FALSE(isSticky(code)) << code;
}

TEST_F(Cuda, ALostDeviceIsReportedOnce) {
  Device device = Device::cuda(3);
  Function function(Module::fromPtx(Gpu::get(3), ptx), "add_one");
  Stream stream(device), other(device);
  Tensor data = Tensor::zeros(DType::u32, {4}, device);
  uint64_t words[] = {address(data), 4};
  launch(function, {{1, 1, 1}, {32, 1, 1}}, CudaStream::of(stream), words);
  fake::failNext("cuStreamSynchronize", 700, /*sticky=*/true);
  std::string first = errorOf([&] { other.synchronize(); });
  EXPECT_HAS(first, "running the work of a stream on cuda:3 failed with CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_HAS(first, "a kernel read or wrote memory that it was not given");
  EXPECT_HAS(first, "the kernel that ran was 'add_one'");
  EXPECT_HAS(first, "must be restarted");
  int calls = fake::calls("cuLaunchKernel");
  for (std::string text : {errorOf([&] { stream.synchronize(); }),
                           errorOf([&] { Tensor::empty(DType::f32, {2}, device); }),
                           errorOf([&] { data.to(Device::cpu()); }), errorOf([&] { Stream another(device); }),
                           errorOf([&] { launch(function, {}, CudaStream::of(stream), words); }),
                           errorOf([&] { Module::fromPtx(Gpu::get(3), ptx); })})
    EXPECT_HAS(text, "cuda:3 is unusable since an earlier failure (CUDA_ERROR_ILLEGAL_ADDRESS while running the work "
                     "of a stream; the kernel that ran was 'add_one'); restart the process");
  EXPECT_EQ(fake::calls("cuLaunchKernel"), calls);
  Tensor::zeros(DType::u32, {4}, Device::cuda(0)); // the others work
}

TEST_F(Cuda, ALossFoundByADestructorIsToldByTheNextCall) {
  Device device = Device::cuda(2);
  Function function(Module::fromPtx(Gpu::get(2), ptx), "other");
  Tensor data = Tensor::zeros(DType::u32, {4}, device);
  {
    Stream stream(device);
    uint64_t words[] = {1, 2, 3};
    launch(function, {{1, 1, 1}, {32, 1, 1}}, CudaStream::of(stream), words);
    fake::failNext("cuStreamSynchronize", 716, /*sticky=*/true);
  }
  EXPECT_HAS(errorOf([&] { data.to(Device::cpu()); }),
             "finishing a stream's work on cuda:2 failed with CUDA_ERROR_MISALIGNED_ADDRESS");
  EXPECT_HAS(errorOf([&] { data.to(Device::cpu()); }), "cuda:2 is unusable since");
}

} // namespace
