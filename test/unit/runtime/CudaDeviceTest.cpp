// SPDX-License-Identifier: Apache-2.0
//
// The CUDA runtime on a real device, with kernels written in PTX; skipped where there is none.
#include "tenon/base/Error.h"
#include "tenon/runtime/LaunchGraph.h"
#include "tenon/runtime/Stream.h"
#include "tenon/runtime/Tensor.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Memory.h"
#include "tenon/runtime/cuda/Module.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace tenon;
using namespace tenon::cuda;

namespace {

const Device device = Device::cuda(0);

const char *const kernels = R"(.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];

.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) { ret; }

.visible .entry add_one(.param .u64 data, .param .u64 count) {
  .reg .pred %past;
  .reg .b32 %block, %width, %thread, %value;
  .reg .b64 %data, %count, %i, %at;
  ld.param.u64 %data, [data];
  ld.param.u64 %count, [count];
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %i, %block, %width;
  cvt.u64.u32 %at, %thread;
  add.u64 %i, %i, %at;
  setp.ge.u64 %past, %i, %count;
  @%past bra end;
  shl.b64 %at, %i, 2;
  add.u64 %at, %at, %data;
  ld.global.u32 %value, [%at];
  add.u32 %value, %value, 1;
  st.global.u32 [%at], %value;
end:
  ret;
}

.visible .entry report(.param .u64 to, .param .u64 value) {
  .reg .b64 %to, %value;
  ld.param.u64 %to, [to];
  ld.param.u64 %value, [value];
  st.global.u64 [%to], %value;
  ret;
}

.visible .entry wait(.param .u64 cycles) {
  .reg .pred %on;
  .reg .b64 %cycles, %begin, %now;
  ld.param.u64 %cycles, [cycles];
  mov.u64 %begin, %clock64;
again:
  mov.u64 %now, %clock64;
  sub.u64 %now, %now, %begin;
  setp.lt.u64 %on, %now, %cycles;
  @%on bra again;
  ret;
}

.visible .entry last_word(.param .u64 to, .param .u64 bytes) {
  .reg .b32 %at, %value;
  .reg .b64 %to, %bytes;
  ld.param.u64 %to, [to];
  ld.param.u64 %bytes, [bytes];
  cvt.u32.u64 %value, %bytes;
  mov.u32 %at, dynamic;
  add.u32 %at, %at, %value;
  st.shared.u32 [%at + -4], %value;
  ld.shared.u32 %value, [%at + -4];
  st.global.u32 [%to], %value;
  ret;
}

.visible .entry wrong() {
  .reg .b64 %to;
  mov.u64 %to, 16;
  st.global.u64 [%to], %to;
  ret;
}
)";

const char *const clusterKernel = R"(.version 7.8
.target sm_90
.address_size 64

.visible .entry cluster_size(.param .u64 to) {
  .reg .b32 %value, %block;
  .reg .b64 %to, %at;
  ld.param.u64 %to, [to];
  mov.u32 %value, %cluster_nctaid.x;
  mov.u32 %block, %ctaid.x;
  mul.wide.u32 %at, %block, 4;
  add.u64 %at, %at, %to;
  st.global.u32 [%at], %value;
  ret;
}
)";

std::string errorOf(auto function) {
  try {
    function();
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

uint64_t address(const Tensor &tensor) { return reinterpret_cast<uintptr_t>(tensor.data()); }

class CudaDevice : public testing::Test {
protected:
  void SetUp() override {
    if (!whyNoCuda().empty())
      GTEST_SKIP() << whyNoCuda();
  }
  static const std::shared_ptr<Module> &module() {
    static auto &loaded = *new std::shared_ptr<Module>(Module::fromPtx(Gpu::get(0), kernels));
    return loaded;
  }
  static Function function(const char *name, uint32_t sharedBytes = 0) { return Function(module(), name, sharedBytes); }
  static void addOne(Stream &stream, const Tensor &tensor) {
    static auto &kernel = *new Function(function("add_one"));
    uint64_t words[] = {address(tensor), static_cast<uint64_t>(tensor.elements())};
    launch(kernel, {{static_cast<uint32_t>((tensor.elements() + 127) / 128), 1, 1}, {128, 1, 1}},
           CudaStream::of(stream), words);
  }
  static void wait(Stream &stream, uint64_t cycles) {
    static auto &kernel = *new Function(function("wait"));
    launch(kernel, {}, CudaStream::of(stream), std::span(&cycles, 1));
  }
  static void expectEqual(const Tensor &a, const Tensor &b) {
    Tensor left = a.to(Device::cpu()), right = b.to(Device::cpu());
    ASSERT_EQ(left.str(), right.str());
    EXPECT_EQ(std::memcmp(left.data(), right.data(), left.bufferBytes()), 0);
  }
};

TEST_F(CudaDevice, Properties) {
  const CudaProperties &p = cudaProperties(0);
  std::printf("%s %s, %d multiprocessors, %.1f GiB, %.2f TB/s, L2 %.1f MiB, shared %ld, CUDA %d\n", p.name.c_str(),
              p.architecture().c_str(), p.multiprocessors, static_cast<double>(p.memoryBytes) / (1 << 30),
              p.bytesPerSecond() * 1e-12, static_cast<double>(p.l2Bytes) / (1 << 20),
              static_cast<long>(p.sharedBytesPerBlockOptin), cudaDriverVersion());
  EXPECT_GE(p.major, 7);
  EXPECT_GT(p.multiprocessors, 0);
  EXPECT_GT(p.sharedBytesPerBlockOptin, p.sharedBytesPerBlock);
}

TEST_F(CudaDevice, CopiesAndFills) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::u8}) {
    Tensor host = Tensor::empty(dtype, {4, 6, 50});
    host.fillRandom(1, 0, 100);
    Tensor there = host.to(device);
    auto views = [](const Tensor &t) {
      return std::vector<Tensor>{t, t.transpose({2, 0, 1}), t.slice(1, 5, 3, -2), t.slice(0, 1, 2).slice(2, 0, 20, 2)};
    };
    std::vector<Tensor> expected = views(host), actual = views(there);
    for (size_t i = 0; i < expected.size(); ++i) {
      expectEqual(actual[i], expected[i]);
      expectEqual(actual[i].clone(), expected[i]);
      expectEqual(expected[i].to(device), expected[i]);
      actual[i].fill(3);
      expected[i].fill(3);
      expectEqual(there, host);
      actual[i].fillBytes(0x41);
      expected[i].fillBytes(0x41);
      expectEqual(there, host);
    }
    Tensor target = Tensor::zeros(dtype, {4, 6, 50}, device);
    target.transpose({2, 0, 1}).copyFrom(host.transpose({2, 0, 1}));
    expectEqual(target, host);
  }
}

TEST_F(CudaDevice, MoreThanFourBillionElements) {
  int64_t count = (int64_t(1) << 32) + 4096;
  if (cudaMemoryInfo(0).freeBytes < size_t(6) << 30)
    GTEST_SKIP() << "too little memory";
  Tensor large = Tensor::zeros(DType::u8, {count}, device);
  Tensor tail = large.slice(0, count - 3, 3);
  tail.fill(7);
  Tensor ends = large.slice(0, 0, 2, count - 1);
  EXPECT_EQ(ends.to(Device::cpu()).getInt({0}), 0);
  EXPECT_EQ(ends.to(Device::cpu()).getInt({1}), 7);
  Tensor pairs = large.reshape({count / 4096, 4096}).slice(1, 0, 4095);
  pairs.fill(5); // a strided fill of more than 2^32 elements
  EXPECT_EQ(large.slice(0, count - 4096, 4096, 1).to(Device::cpu()).getInt({4094}), 5);
  EXPECT_EQ(large.slice(0, count - 4096, 4096, 1).to(Device::cpu()).getInt({4095}), 7);
}

TEST_F(CudaDevice, MemoryComesBackAfterQueuedWork) {
  Stream one(device), two(device);
  Tensor total = Tensor::zeros(DType::u32, {1024}, device);
  for (int i = 0; i < 200; ++i) {
    Tensor a = Tensor::zeros(DType::u32, {1 << 16}, device);
    wait(one, 20000);
    addOne(one, a); // let go of while queued
    addOne(two, total);
  }
  one.synchronize();
  two.synchronize();
  EXPECT_EQ(total.to(Device::cpu()).getInt({1023}), 200);
  EXPECT_LT(cudaMemoryInfo(0).poolUsedBytes, size_t(64) << 20);
  std::string text = errorOf([] { Tensor::empty(DType::u8, {int64_t(1) << 45}, device); });
  EXPECT_NE(text.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << text;
  Tensor::zeros(DType::u8, {1 << 20}, device); // still works
}

TEST_F(CudaDevice, StreamsAndEvents) {
  Stream first(device), second(device);
  Tensor data = Tensor::zeros(DType::u32, {1000}, device);
  Event start, middle, end;
  first.record(start);
  wait(first, 20'000'000);
  first.record(middle);
  EXPECT_FALSE(first.idle());
  EXPECT_FALSE(middle.query());
  addOne(first, data);
  first.record(end);
  second.wait(end);
  addOne(second, data);
  bool ran = false;
  second.enqueue([&] { ran = true; });
  second.synchronize();
  EXPECT_TRUE(ran);
  EXPECT_GT(elapsedMilliseconds(start, middle), 1);
  EXPECT_LT(elapsedMilliseconds(start, middle), 1000);
  EXPECT_EQ(data.to(Device::cpu()).getInt({999}), 2);
  second.enqueue([] { throw Error("no luck"); });
  EXPECT_EQ(errorOf([&] { second.synchronize(); }), "no luck");
}

TEST_F(CudaDevice, CubinAndAssemblerLog) {
  Gpu &gpu = Gpu::get(0);
  auto begin = std::chrono::steady_clock::now();
  Cubin cubin = assemble(gpu, kernels, {.verbose = true});
  auto middle = std::chrono::steady_clock::now();
  Function loaded(Module::fromCubin(gpu, cubin.bytes), "add_one", 0, 1, /*parameters=*/2);
  auto end = std::chrono::steady_clock::now();
  auto ms = [](auto time) { return std::chrono::duration<double, std::milli>(time).count(); };
  std::printf("cubin %zu bytes, assembled in %.2f ms, loaded in %.2f ms; %d registers; log: %s\n", cubin.bytes.size(),
              ms(middle - begin), ms(end - middle), loaded.attributes().registers, cubin.log.c_str());
  EXPECT_EQ(loaded.parameterBytes(), cudaDriverVersion() >= 12040 ? 16 : -1);
  std::string text = errorOf([&] { Module::fromPtx(gpu, ".version 7.0\n.target sm_80\n.address_size 64\nbogus\n"); });
  EXPECT_NE(text.find("bogus"), std::string::npos) << text;
  text = errorOf([&] { assemble(gpu, ".version 7.0\n.target sm_80\n.address_size 64\nbogus\n"); });
  EXPECT_NE(text.find("bogus"), std::string::npos) << text;
}

TEST_F(CudaDevice, LargeSharedMemory) {
  auto bytes = static_cast<uint32_t>(cudaProperties(0).sharedBytesPerBlockOptin);
  Function kernel = function("last_word", bytes);
  Tensor out = Tensor::zeros(DType::u32, {1}, device);
  Stream stream(device);
  uint64_t words[] = {address(out), bytes};
  launch(kernel, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, bytes}, CudaStream::of(stream), words);
  stream.synchronize();
  EXPECT_EQ(out.to(Device::cpu()).getInt({0}), bytes);
  std::string text = errorOf([&] { function("last_word", bytes + 1); });
  EXPECT_NE(text.find("bytes of shared memory a block"), std::string::npos) << text;
}

TEST_F(CudaDevice, Clusters) {
  if (!cudaProperties(0).hasClusters)
    GTEST_SKIP() << "no clusters";
  Tensor out = Tensor::zeros(DType::u32, {32}, device);
  Stream stream(device);
  for (uint32_t size : {1u, 2u, 8u, 16u}) {
    Function kernel(Module::fromPtx(Gpu::get(0), clusterKernel), "cluster_size", 0, size);
    uint64_t words[] = {address(out)};
    launch(kernel, {{32, 1, 1}, {32, 1, 1}, {size, 1, 1}}, CudaStream::of(stream), words);
    stream.synchronize();
    EXPECT_EQ(out.to(Device::cpu()).getInt({31}), size);
  }
  Function kernel(Module::fromPtx(Gpu::get(0), clusterKernel), "cluster_size", 0, 8);
  uint64_t words[] = {address(out)};
  std::string text =
      errorOf([&] { launch(kernel, {{9, 1, 1}, {32, 1, 1}, {8, 1, 1}}, CudaStream::of(stream), words); });
  EXPECT_NE(text.find("cluster 8 x 1 x 1"), std::string::npos) << text;
  std::printf("%s\n", text.c_str());
}

TEST_F(CudaDevice, StatusWords) {
  Stream stream(device);
  CudaStream &raw = CudaStream::of(stream);
  uint64_t words[] = {raw.statusPointer(), 77};
  launch(function("report"), {}, raw, words);
  std::string text = errorOf([&] { stream.synchronize(); });
  EXPECT_NE(text.find("77"), std::string::npos) << text;
  stream.synchronize();
}

TEST_F(CudaDevice, Graphs) {
  Stream stream(device), side(device);
  Tensor data = Tensor::zeros(DType::u32, {1000}, device);
  addOne(stream, data);
  wait(stream, 1'000'000);
  LaunchGraph graph = LaunchGraph::capture(stream, [&] {
    addOne(stream, data);
    Tensor::zeros(DType::f32, {1000}, device).fill(3); // done at once, and no part of it
    Event fork, join;
    stream.record(fork);
    side.wait(fork);
    addOne(side, data);
    Tensor::zeros(DType::f32, {1000}, device).fill(3);
    side.record(join);
    stream.wait(join);
    addOne(stream, data);
  });
  EXPECT_EQ(graph.nodes(), 3u);
  for (int i = 0; i < 10; ++i)
    graph.launch(stream);
  stream.synchronize();
  EXPECT_EQ(data.to(Device::cpu()).getInt({0}), 31);
  EXPECT_EQ(errorOf([&] { LaunchGraph::capture(stream, [] { throw Error("midway"); }); }), "midway");
  addOne(stream, data);
  stream.synchronize();
}

TEST_F(CudaDevice, ThreadsLaunchAtOnce) {
  Tensor common = Tensor::zeros(DType::u32, {4}, device);
  Stream shared(device);
  addOne(shared, common);
  std::vector<std::thread> workers;
  for (int t = 0; t < 8; ++t)
    workers.emplace_back([&] {
      Stream own(device);
      Tensor mine = Tensor::zeros(DType::u32, {100}, device);
      for (int i = 0; i < 500; ++i) {
        addOne(own, mine);
        addOne(shared, common);
      }
      own.synchronize();
      EXPECT_EQ(mine.to(Device::cpu()).getInt({99}), 500);
    });
  for (std::thread &worker : workers)
    worker.join();
  EXPECT_EQ(common.to(Device::cpu()).getInt({0}), 4001);
}

/// In a process of its own, which loses its device.
TEST(CudaDeviceDeathTest, IllegalAddress) {
  if (!whyNoCuda().empty())
    GTEST_SKIP() << whyNoCuda();
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto lose = [] {
    Function kernel(Module::fromPtx(Gpu::get(0), kernels), "wrong");
    {
      Stream stream(device);
      launch(kernel, {}, CudaStream::of(stream), {});
      std::fprintf(stderr, "first: %s\n", errorOf([&] { stream.synchronize(); }).c_str());
    }
    std::fprintf(stderr, "second: %s\n", errorOf([&] { Tensor::zeros(DType::f32, {4}, device); }).c_str());
    std::_Exit(3);
  };
  EXPECT_EXIT(lose(), testing::ExitedWithCode(3),
              "first: running the work of a stream on cuda:0 failed with CUDA_ERROR_ILLEGAL_ADDRESS.*'wrong'.*\n.*"
              "second: cuda:0 is unusable since");
}

} // namespace
