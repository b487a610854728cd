// SPDX-License-Identifier: Apache-2.0
//
// Devices, memory, tensors and streams of the CUDA runtime, over the fake driver.
#include "CudaFixture.h"

#include "tenon/runtime/DLPack.h"
#include "tenon/runtime/Stream.h"
#include "tenon/runtime/Tensor.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Driver.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Module.h"

#include <cstring>
#include <thread>

using namespace tenon;

namespace {

const Device gpu0 = Device::cuda(0), gpu1 = Device::cuda(1);

Tensor counting(IndexList sizes, DType dtype = DType::f32) {
  Tensor flat = Tensor::empty(dtype, sizes);
  Tensor line = flat.reshape({flat.elements()});
  for (int64_t i = 0; i < line.elements(); ++i)
    line.set({i}, static_cast<double>(i % 100));
  return flat;
}

void expectEqual(const Tensor &a, const Tensor &b) {
  ASSERT_EQ(a.str(), b.str());
  Tensor left = a.to(Device::cpu()), right = b.to(Device::cpu());
  EXPECT_EQ(std::memcmp(left.data(), right.data(), left.bufferBytes()), 0);
}

cuda::Function addOne(Device device) {
  return cuda::Function(cuda::Module::fromPtx(cuda::Gpu::get(device.ordinal),
                                              ".visible .entry add_one(.param .u64 a, .param .u64 b) { ret; }"),
                        "add_one");
}

void launchAddOne(const cuda::Function &function, Stream &stream, const Tensor &tensor) {
  uint64_t words[] = {reinterpret_cast<uintptr_t>(tensor.data()), static_cast<uint64_t>(tensor.elements())};
  cuda::launch(function, {{1, 1, 1}, {32, 1, 1}}, cuda::CudaStream::of(stream), words);
}

TEST_F(Cuda, ReasonsForHavingNoDevice) {
  EXPECT_HAS(cuda::Driver("libnosuchcuda.so.1").reason(),
             "no NVIDIA driver on this machine (libnosuchcuda.so.1 not found)");
  EXPECT_HAS(cuda::Driver("libm.so.6").reason(), "libm.so.6 is not a CUDA driver");
  EXPECT_HAS(cuda::Driver(TENON_FAKE_OLD_CUDA).reason(), "too old (CUDA 10.2");
  EXPECT_HAS(cuda::Driver("none").reason(), "switched off");

  fake::setDeviceCount(0);
  cuda::Driver without(TENON_FAKE_CUDA);
  EXPECT_HAS(without.reason(), "NVIDIA driver found (CUDA 13.0) but no device");
  EXPECT_EQ(without.devices(), 0);
  fake::setInitResult(100);
  EXPECT_HAS(cuda::Driver(TENON_FAKE_CUDA).reason(), "but no device");
  fake::setInitResult(803);
  EXPECT_HAS(cuda::Driver(TENON_FAKE_CUDA).reason(),
             "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (the driver's words): the driver's library and its kernel module are "
             "of different versions");
  fake::reset();
  cuda::Driver right(TENON_FAKE_CUDA);
  EXPECT_TRUE(right.available()) << right.reason();
  EXPECT_EQ(right.devices(), fake::devices);
  EXPECT_EQ(whyNoCuda(), "");
}

TEST_F(Cuda, Properties) {
  EXPECT_EQ(cudaDeviceCount(), fake::devices);
  const CudaProperties &p = cudaProperties(0);
  EXPECT_EQ(p.name, "Fake H200");
  EXPECT_EQ(p.architecture(), "sm_90a");
  EXPECT_EQ(p.uuid, "00102030405060708090a0b0c0d0e0f0");
  EXPECT_EQ(p.multiprocessors, 132);
  EXPECT_EQ(p.sharedBytesPerBlockOptin, 232448);
  EXPECT_NEAR(p.bytesPerSecond(), 4.9e12, 0.1e12);
  CudaProperties ampere;
  ampere.major = 8;
  EXPECT_EQ(ampere.architecture(), "sm_80");
  EXPECT_HAS(errorOf([] { cudaProperties(9); }), "there is no device cuda:9; this machine has cuda:0 to cuda:3");
  EXPECT_HAS(errorOf([] { Tensor::empty(DType::f32, {2}, Device::cuda(-1)); }), "no device cuda:-1");
  EXPECT_EQ(gpu1.str(), "cuda:1");
}

TEST_F(Cuda, CopiesThereAndBack) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::u8}) {
    Tensor host = counting({3, 5}, dtype);
    Tensor device = host.to(gpu0);
    EXPECT_EQ(device.device(), gpu0);
    EXPECT_TRUE(device.isContiguous());
    expectEqual(device, host);
    expectEqual(device.clone(), host);
    EXPECT_EQ(device.clone().device(), gpu0);
    expectEqual(device.to(gpu1), host);
  }
  EXPECT_EQ(fake::poolAttribute(4), UINT64_MAX) << "the pool keeps what it has";
  EXPECT_EQ(Tensor::empty(DType::f32, {0, 4}, gpu0).data(), nullptr);
  expectEqual(Tensor::empty(DType::f32, {0, 4}, gpu0), Tensor::empty(DType::f32, {0, 4}));
}

TEST_F(Cuda, CopiesStridedViews) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::i8}) {
    Tensor host = counting({4, 6, 5}, dtype), device = host.to(gpu0);
    auto views = [](const Tensor &t) {
      return std::vector<Tensor>{t.transpose({2, 0, 1}), t.slice(1, 5, 3, -2), t.slice(0, 1, 2).slice(2, 0, 3, 2),
                                 t.slice(1, 2, 1)};
    };
    std::vector<Tensor> expected = views(host), actual = views(device);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(actual[i].to(gpu0).isContiguous());
      expectEqual(actual[i], expected[i]);            // device to host
      expectEqual(expected[i].to(gpu0), expected[i]); // host to device
      expectEqual(actual[i].clone(), expected[i]);    // on the device
      expectEqual(actual[i].to(gpu1), expected[i]);   // to another
    }
    // Into a view, from everywhere.
    Tensor values = counting({5, 4, 6}, dtype);
    values.fillRandom(3, 0, 100);
    for (const Tensor &source : {values, values.to(gpu0), values.to(gpu1)}) {
      Tensor target = Tensor::zeros(dtype, {4, 6, 5}, gpu0);
      target.transpose({2, 0, 1}).copyFrom(source);
      expectEqual(target.transpose({2, 0, 1}), values);
    }
    Tensor onHost = Tensor::zeros(dtype, {4, 6, 5});
    onHost.transpose({2, 0, 1}).copyFrom(values.to(gpu0));
    expectEqual(onHost.transpose({2, 0, 1}), values);
  }
  EXPECT_HAS(errorOf([] { counting({2}).to(gpu0).copyFrom(counting({3})); }), "same type and sizes");
  // Overlapping views of one buffer.
  Tensor line = counting({8}).to(gpu0);
  line.slice(0, 1, 7).copyFrom(line.slice(0, 0, 7));
  EXPECT_EQ(line.to(Device::cpu()).get({7}), 6);
}

TEST_F(Cuda, FillsOnTheDevice) {
  Tensor device = Tensor::zeros(DType::bf16, {4, 6}, gpu0);
  EXPECT_EQ(device.to(Device::cpu()).get({3, 5}), 0);
  device.fill(1.5);
  device.slice(1, 0, 3, 2).fill(-2);
  device.slice(0, 3, 1).fillBytes(0xff);
  Tensor host = Tensor::empty(DType::bf16, {4, 6});
  host.fill(1.5);
  host.slice(1, 0, 3, 2).fill(-2);
  host.slice(0, 3, 1).fillBytes(0xff);
  expectEqual(device, host);
  device.fillRandom(7, -1, 1);
  host.fillRandom(7, -1, 1);
  expectEqual(device, host);
}

TEST_F(Cuda, ElementsAreNotReadFromTheHost) {
  Tensor device = counting({2, 3}).to(gpu0);
  for (std::string text : {errorOf([&] { device.get({0, 0}); }), errorOf([&] { device.set({0, 0}, 1); })})
    EXPECT_HAS(text, "tensor f32[2, 3] is on cuda:0 and its elements cannot be read or written from the host; copy it "
                     "with to(Device::cpu()) first");
}

TEST_F(Cuda, MemoryIsReturned) {
  size_t before = fake::liveBytes();
  {
    Tensor a = Tensor::empty(DType::f32, {1000}, gpu0), b = a.slice(0, 10, 5);
    EXPECT_EQ(fake::liveBytes(), before + 4000);
    a = Tensor();
    EXPECT_EQ(fake::liveBytes(), before + 4000);
  }
  EXPECT_EQ(fake::liveBytes(), before);
  CudaMemoryInfo info = cudaMemoryInfo(0);
  EXPECT_EQ(info.freeBytes + info.poolUsedBytes, info.totalBytes);
}

TEST_F(Cuda, MemoryOfQueuedWorkStays) {
  cuda::Function kernel = addOne(gpu0);
  Stream one(gpu0), two(gpu0);
  fake::setLazy(true);
  size_t before = fake::liveBytes();
  {
    Tensor a = Tensor::zeros(DType::u32, {64}, gpu0), b = Tensor::zeros(DType::u32, {64}, gpu0);
    launchAddOne(kernel, one, a);
    launchAddOne(kernel, two, b);
    launchAddOne(kernel, two, a);
  }
  // An allocation runs what is queued for the memory itself.
  Tensor first = Tensor::empty(DType::u32, {1}, gpu0);
  EXPECT_EQ(fake::liveBytes(), before + 512 + 4) << "kernels that use it have not run yet";
  two.synchronize();
  Tensor second = Tensor::empty(DType::u32, {1}, gpu0);
  EXPECT_EQ(fake::liveBytes(), before + 512 + 8) << "the other stream might use it as well";
  one.synchronize();
  Tensor third = Tensor::empty(DType::u32, {1}, gpu0);
  EXPECT_EQ(fake::liveBytes(), before + 12);
}

TEST_F(Cuda, OutOfMemoryWaitsForWhatIsOnItsWay) {
  cuda::Function kernel = addOne(gpu0);
  Stream stream(gpu0);
  fake::setLazy(true);
  size_t before = fake::liveBytes();
  fake::setMemoryLimit(before + 5000);
  {
    Tensor first = Tensor::zeros(DType::u32, {1000}, gpu0);
    launchAddOne(kernel, stream, first);
  }
  Tensor second = Tensor::empty(DType::u32, {1000}, gpu0);
  EXPECT_TRUE(stream.idle());
  std::string text = errorOf([] { Tensor::empty(DType::u32, {1000}, gpu0); });
  EXPECT_HAS(text, "allocating 4000 bytes (");
  EXPECT_HAS(text, "on cuda:0 failed with CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_HAS(text, "free tensors, or use smaller ones");
}

TEST_F(Cuda, CopiesSeeWhatWasQueued) {
  cuda::Function kernel = addOne(gpu0);
  fake::setLazy(true);
  Tensor data = Tensor::zeros(DType::u32, {16}, gpu0);
  Stream stream(gpu0);
  launchAddOne(kernel, stream, data);
  EXPECT_FALSE(stream.idle());
  EXPECT_EQ(data.to(Device::cpu()).getInt({5}), 1) << "no synchronize() is needed";
  launchAddOne(kernel, stream, data);
  data.fill(10); // after it
  launchAddOne(kernel, stream, data);
  EXPECT_EQ(data.clone().to(Device::cpu()).getInt({15}), 11);
  launchAddOne(kernel, stream, data);
  EXPECT_EQ(data.to(gpu1).to(Device::cpu()).getInt({15}), 12);
}

TEST_F(Cuda, BorrowedMemoryIsReleasedAfterQueuedWork) {
  cuda::Function kernel = addOne(gpu0);
  Tensor owner = Tensor::zeros(DType::u32, {8}, gpu0);
  Stream stream(gpu0);
  fake::setLazy(true);
  bool released = false, ranBefore = false;
  {
    Tensor view = Tensor::borrow(owner.data(), 32, DType::u32, {8}, {}, [&] {
      released = true;
      ranBefore = stream.idle();
    }, gpu0);
    EXPECT_EQ(view.device(), gpu0);
    launchAddOne(kernel, stream, view);
  }
  EXPECT_TRUE(released);
  EXPECT_TRUE(ranBefore);
  EXPECT_HAS(errorOf([&] { Tensor::borrow(owner.data(), 32, DType::u32, {8}, {}, {}, Device::cuda(7)); }), "cuda:7");
}

TEST_F(Cuda, EventsOrderStreams) {
  cuda::Function kernel = addOne(gpu0);
  Tensor data = Tensor::zeros(DType::u32, {4}, gpu0);
  Stream first(gpu0), second(gpu0);
  fake::setLazy(true);
  Event start, middle, end;
  first.record(start);
  launchAddOne(kernel, first, data);
  first.record(middle);
  second.wait(middle);
  launchAddOne(kernel, second, data);
  second.record(end);
  EXPECT_FALSE(middle.query());
  EXPECT_HAS(errorOf([&] { elapsedMilliseconds(start, end); }), "the start event of a time is not reached yet");
  end.synchronize();
  EXPECT_TRUE(start.query() && middle.query() && end.query());
  EXPECT_TRUE(first.idle());
  EXPECT_GT(elapsedMilliseconds(start, middle), 0);
  EXPECT_GT(elapsedMilliseconds(start, end), elapsedMilliseconds(start, middle));
  // Recording again leaves those who hold the old moment alone.
  Event old = middle;
  launchAddOne(kernel, first, data);
  first.record(middle);
  EXPECT_TRUE(old.query());
  EXPECT_FALSE(middle.query());
  first.synchronize();
  EXPECT_TRUE(middle.query());

  Stream elsewhere(gpu1), host;
  Event other, cpu;
  elsewhere.record(other);
  host.record(cpu);
  other.synchronize();
  cpu.synchronize();
  EXPECT_HAS(errorOf([&] { elapsedMilliseconds(start, other); }), "different clocks");
  EXPECT_HAS(errorOf([&] { elapsedMilliseconds(cpu, start); }), "an event of cpu and one of cuda:0");
  EXPECT_HAS(errorOf([&] { elapsedMilliseconds(Event(), start); }), "never recorded");
}

TEST_F(Cuda, StreamsOfBothKindsWaitForEachOther) {
  cuda::Function kernel = addOne(gpu0);
  Tensor data = Tensor::zeros(DType::u32, {4}, gpu0);
  Stream device(gpu0), host;
  launchAddOne(kernel, device, data);
  Event done;
  device.record(done);
  host.wait(done);
  int64_t seen = 0;
  host.enqueue([&] { seen = data.to(Device::cpu()).getInt({0}); });
  Event afterwards;
  host.record(afterwards);
  device.wait(afterwards); // blocks
  EXPECT_EQ(seen, 1);
  host.enqueue([] { throw Error("no luck"); });
  host.record(afterwards);
  EXPECT_EQ(errorOf([&] { device.wait(afterwards); }), "no luck");
}

TEST_F(Cuda, FunctionsOnACudaStream) {
  Stream stream(gpu0);
  EXPECT_EQ(stream.device(), gpu0);
  std::vector<int> order;
  auto held = std::make_shared<Tensor>(Tensor::zeros(DType::u32, {4}, gpu0));
  fake::setLazy(true);
  stream.enqueue([&order, held] { order.push_back(1); });
  stream.enqueue([&] { order.push_back(2); });
  EXPECT_TRUE(order.empty());
  std::weak_ptr<Tensor> watch = held;
  held.reset();
  stream.synchronize();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_TRUE(watch.expired());

  Event event;
  stream.enqueue([] { throw Error("first"); });
  stream.enqueue([&] { order.push_back(3); });
  stream.record(event);
  EXPECT_EQ(errorOf([&] { event.synchronize(); }), "first");
  EXPECT_EQ(errorOf([&] { stream.synchronize(); }), "first");
  EXPECT_EQ(errorOf([&] { stream.synchronize(); }), "");
  EXPECT_EQ(order.size(), 2u) << "what is behind a failure is skipped";
  stream.enqueue([&] { order.push_back(4); });
  size_t streams = fake::streamCount();
  stream = Stream(); // finishes its work
  EXPECT_EQ(order.back(), 4);
  EXPECT_EQ(fake::streamCount(), streams - 1);
}

TEST_F(Cuda, DLPackRoundTrip) {
  Tensor device = counting({3, 4}).to(gpu1);
  void *data = device.data();
  DLManagedTensor *exported = device.transpose({1, 0}).to_dlpack();
  device = Tensor();
  EXPECT_EQ(exported->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(exported->dl_tensor.device.device_id, 1);
  EXPECT_EQ(exported->dl_tensor.data, data);
  Tensor back = Tensor::from_dlpack(exported);
  EXPECT_EQ(back.device(), gpu1);
  EXPECT_EQ(back.data(), data);
  expectEqual(back, counting({3, 4}).transpose({1, 0}));
  exported = back.to_dlpack();
  exported->dl_tensor.device.device_id = 17;
  EXPECT_HAS(errorOf([&] { Tensor::from_dlpack(exported); }),
             "device type 2 cannot be used: there is no device cuda:17");
  exported->deleter(exported);
}

TEST_F(Cuda, ThreadsAllocateCopyAndFree) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      Stream stream(Device::cuda(t % 2));
      for (int i = 0; i < 50; ++i) {
        Tensor host = counting({7, 3 + i});
        expectEqual(host.to(Device::cuda(t % 2)).transpose({1, 0}), host.transpose({1, 0}));
        Event event;
        stream.record(event);
        event.synchronize();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
