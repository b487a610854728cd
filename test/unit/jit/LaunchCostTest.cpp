// SPDX-License-Identifier: Apache-2.0
//
// What a launch costs the host once its kernel is compiled: no allocation; and that what is found quickly is the right
// thing. How long it takes is told by `tenon bench launch`; instructions are counted by
//   valgrind --tool=callgrind --toggle-collect='tenon::launch(tenon::Kernel*' \
//     unit-launch-cost --gtest_filter='*NothingIsAllocated'
#include "../runtime/CudaFixture.h"

#include "tenon/jit/Jit.h"
#include "tenon/runtime/CpuPool.h"
#include "tenon/runtime/LaunchGraph.h"
#include "tenon/tenon.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <thread>
#include <tuple>

#include <dlfcn.h>
#include <sys/mman.h>

using namespace tenon;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define TENON_SANITIZED 1
#endif
#endif

//===--- Counting allocations -------------------------------------------------------------------------------------===//

namespace {
thread_local bool counting = false;
std::atomic<int> allocations{0};

/// TBB makes itself a task or two where those it has are still in the hands of a worker. How many is a matter of when
/// that one is given a processor.
bool isOfTbb(const void *caller) {
  Dl_info place{};
  return ::dladdr(caller, &place) && place.dli_fname && std::strstr(place.dli_fname, "/libtbb");
}

void count(const void *caller) {
  if (counting && !isOfTbb(caller))
    ++allocations;
}
} // namespace

// Under a sanitizer, which has a malloc of its own, operator new is watched; otherwise all that new comes down to.
#ifdef TENON_SANITIZED
void *operator new(size_t bytes) {
  count(__builtin_return_address(0));
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#else
#pragma GCC visibility push(default) // in place of the C library's for all of its users
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes) noexcept {
  count(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void *calloc(size_t number, size_t bytes) noexcept {
  count(__builtin_return_address(0));
  return __libc_calloc(number, bytes);
}
void *realloc(void *memory, size_t bytes) noexcept {
  count(__builtin_return_address(0));
  return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) noexcept {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
}
#pragma GCC visibility pop
#endif

namespace {

/// Of this thread, but for TBB's own.
template <class F> int allocationsOf(F work) {
  allocations = 0;
  counting = true;
  work();
  counting = false;
  return allocations;
}

//===--- Kernels --------------------------------------------------------------------------------------------------===//

Kernel scale("scale(x, y, factor, shift, width=64)", [](View x, View y, Scalar factor, Index shift, Param width) {
  Index i = grid(cdiv(x.size(0), width));
  y.store({i * width}, x.load({i * width + shift}, {width}) * factor);
});

Kernel addRows("add_rows(x, y, z, rows=16, cols=32)", [](View x, View y, View z, Param rows, Param cols) {
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  Tile a = x.load({i * rows, j * cols}, {rows, cols}), b = y.load({i * rows, j * cols}, {rows, cols});
  z.store({i * rows, j * cols}, a + b);
});

Kernel withWorkspace("with_workspace(x, y, width=64)", [](View x, View y, Param width) {
  Index i = grid(cdiv(x.size(0), width));
  View sums = workspace(DType::f32, {cdiv(x.size(0), width), width});
  sums.store({i, 0}, reshape(x.load({i * width}, {width}), {1, width}));
  y.store({i * width}, reshape(sums.load({i, 0}, {1, width}), {width}));
});

class LaunchCost : public Cuda {};

/// Arguments of both kernels; one instance each, so that the work itself is nearly nothing.
struct Case {
  const Kernel &kernel;
  Arguments arguments;
  Params params;
};
std::vector<Case> casesOn(Device device) {
  auto vector = [&] { return Tensor::zeros(DType::f32, {64}, device); };
  auto matrix = [&] { return Tensor::zeros(DType::f32, {16, 32}, device); };
  std::vector<Case> cases;
  cases.push_back({scale, {vector(), vector(), 2.0, 0}, {}});
  cases.push_back({scale, {vector(), vector(), 2.0, 0}, {{"width", 32}}});
  cases.push_back({addRows, {matrix(), matrix(), matrix()}, {{"rows", 16}, {"cols", 32}}});
  cases.push_back({addRows, {matrix(), matrix().transpose({1, 0}).transpose({1, 0}), matrix()}, {}});
  return cases;
}

LaunchOptions optionsFor(const Case &c, Target target, Stream *stream) {
  LaunchOptions options;
  options.params = c.params;
  options.target = target;
  options.stream = stream;
  return options;
}

/// All that launches may wake, so that none of them is made while allocations are counted.
void startThreads() {
  CpuPool pool(std::max(3, CpuPool::global().threads()));
  std::atomic<int64_t> awaited = pool.threads();
  pool.run(awaited, 0, &awaited, [](void *context, int64_t begin, int64_t end, void *) {
    auto &left = *static_cast<std::atomic<int64_t> *>(context);
    left -= end - begin;
    while (left > 0)
      std::this_thread::yield();
  });
}

TEST_F(LaunchCost, OnTheCpuNothingIsAllocated) {
  startThreads();
  for (Case &c : casesOn(Device::cpu()))
    for (int threads : {0, 1, 3}) {
      LaunchOptions options = optionsFor(c, Target::cpu, nullptr);
      options.threads = threads;
      launch(c.kernel, c.arguments, options);
      EXPECT_EQ(allocationsOf([&] {
                  for (int i = 0; i < 100; ++i)
                    launch(c.kernel, c.arguments, options);
                }),
                0)
          << c.kernel.name() << " on " << threads << " threads";
    }
}

TEST_F(LaunchCost, OnACudaDeviceNothingIsAllocated) {
  Device device = Device::cuda(1);
  Stream stream(device);
  for (Case &c : casesOn(device))
    for (Stream *on : {&stream, static_cast<Stream *>(nullptr)}) {
      LaunchOptions options = optionsFor(c, Target::cuda, on);
      launch(c.kernel, c.arguments, options);
      uint64_t before = fake::launchCount();
      EXPECT_EQ(allocationsOf([&] {
                  for (int i = 0; i < 100; ++i)
                    launch(c.kernel, c.arguments, options);
                }),
                0)
          << c.kernel.name() << (on ? " on a stream" : " without a stream");
      EXPECT_EQ(fake::launchCount(), before + 100);
    }
}

TEST_F(LaunchCost, WorkspacesAreKept) {
  Stream stream(Device::cuda(0));
  for (Device device : {Device::cpu(), stream.device()}) {
    Arguments arguments{Tensor::zeros(DType::f32, {64}, device), Tensor::zeros(DType::f32, {64}, device)};
    LaunchOptions options;
    if (device.isCuda()) {
      options.target = Target::cuda;
      options.stream = &stream;
    }
    launch(withWorkspace, arguments, options);
    EXPECT_EQ(allocationsOf([&] { launch(withWorkspace, arguments, options); }), 0) << device.str();
  }
}

//===--- Workspaces of a device -----------------------------------------------------------------------------------===//

TEST_F(LaunchCost, AWorkspaceIsZeroedByTheStream) {
  Stream stream(Device::cuda(0));
  Tensor x = Tensor::zeros(DType::f32, {640}, stream.device()), y = Tensor::zeros(DType::f32, {640}, stream.device());
  LaunchOptions options;
  options.target = Target::cuda;
  options.stream = &stream;
  launch(withWorkspace, {x.slice(0, 0, 128), y}, options);
  fake::setLazy(true);
  int fills = fake::calls("cuMemsetD8Async"), waits = fake::calls("cuStreamSynchronize");
  launch(withWorkspace, {x.slice(0, 0, 128), y}, options);
  EXPECT_EQ(fake::calls("cuMemsetD8Async"), fills + 1);
  EXPECT_EQ(fake::calls("cuStreamSynchronize"), waits) << "nobody waits for it";
  EXPECT_FALSE(stream.idle());
  launch(withWorkspace, {x, y}, options); // more than there is: the old one stays until the first launches are done
  stream.synchronize();
}

TEST_F(LaunchCost, AGraphHasItsOwnWorkspace) {
  Tensor x = Tensor::zeros(DType::f32, {64}, Device::cuda(0)), y = Tensor::zeros(DType::f32, {64}, Device::cuda(0));
  LaunchGraph graph;
  {
    Stream stream(Device::cuda(0));
    LaunchOptions options;
    options.target = Target::cuda;
    options.stream = &stream;
    launch(withWorkspace, {x, y}, options);
    graph = LaunchGraph::capture(stream, [&] { launch(withWorkspace, {x, y}, options); });
    EXPECT_EQ(graph.nodes(), 2u) << "a fill and a kernel";
    launch(withWorkspace, {x, y}, options);
  }
  Stream other(Device::cuda(0));
  uint64_t before = fake::launchCount();
  graph.launch(other);
  graph.launch(other);
  other.synchronize(); // the fixture finds uses of freed memory
  EXPECT_EQ(fake::launchCount(), before);
}

TEST_F(LaunchCost, AGraphKeepsItsCode) {
  Tensor x = Tensor::zeros(DType::f32, {64}, Device::cuda(0)), y = Tensor::zeros(DType::f32, {64}, Device::cuda(0));
  LaunchGraph graph;
  Stream stream(Device::cuda(0));
  int before = fake::calls("cuModuleUnload");
  {
    Kernel kernel("gone(x, y)", [](View x, View y) {
      Index i = grid(cdiv(x.size(0), 64));
      y.store({i * 64}, x.load({i * 64}, {64}) + 1);
    });
    LaunchOptions options;
    options.target = Target::cuda;
    options.stream = &stream;
    launch(kernel, {x, y}, options);
    graph = LaunchGraph::capture(stream, [&] { launch(kernel, {x, y}, options); });
  }
  EXPECT_EQ(fake::calls("cuModuleUnload"), before) << "the graph runs it";
  graph.launch(stream);
  stream.synchronize();
  graph = {};
  EXPECT_EQ(fake::calls("cuModuleUnload"), before + 1);
}

//===--- Tensors of the host --------------------------------------------------------------------------------------===//

/// The words of the last launch's first two views.
std::pair<uint64_t, uint64_t> placesOfViews() {
  fake::Launch launch = fake::launches().back();
  return {launch.words[0], launch.words[3]};
}

TEST_F(LaunchCost, MemoryBorrowedTwiceIsOneCopy) {
  std::vector<float> memory(96);
  Tensor x = Tensor::borrow(memory.data(), 64 * 4, DType::f32, {64});
  Tensor y = Tensor::borrow(memory.data() + 32, 64 * 4, DType::f32, {64});
  LaunchOptions options;
  options.target = Target::cuda;
  launch(scale, {x, y, 2.0, 0}, options);
  auto [atX, atY] = placesOfViews();
  EXPECT_EQ(atY - atX, 32 * sizeof(float));
  Tensor apart = Tensor::borrow(memory.data() + 64, 32 * 4, DType::f32, {32});
  launch(scale, {x.slice(0, 0, 32), apart, 2.0, 0}, options);
  std::tie(atX, atY) = placesOfViews();
  EXPECT_EQ(atX % 256, reinterpret_cast<uintptr_t>(memory.data()) % 256) << "an address of the same alignment";
  EXPECT_EQ(atY % 256, reinterpret_cast<uintptr_t>(memory.data() + 64) % 256);
}

TEST_F(LaunchCost, OnlyWhatIsWrittenComesBack) {
  // A copy back to memory that cannot be written would end the program.
  void *constant = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(constant, MAP_FAILED);
  Tensor x = Tensor::borrow(constant, 64 * 4, DType::f32, {64}), y = Tensor::zeros(DType::f32, {64});
  LaunchOptions options;
  options.target = Target::cuda;
  launch(scale, {x, y, 2.0, 0}, options);
  launch(scale, {x.slice(0, 63, 64, -1), y.slice(0, 63, 64, -1), 2.0, 0}, options); // backwards
  auto [atX, atY] = placesOfViews();
  EXPECT_EQ(atX % 256, 63 * sizeof(float));
  ::munmap(constant, 4096);
}

TEST_F(LaunchCost, WithoutTensorsTheStreamSaysWhere) {
  Kernel kernel("nothing(n)", [](Index n) {
    View memory = workspace(DType::f32, {64});
    Index i = grid(n);
    memory.store({i * 0}, zeros(f32, {64}));
  });
  Stream stream(Device::cuda(0));
  LaunchOptions options;
  options.target = Target::cuda;
  options.stream = &stream;
  uint64_t before = fake::launchCount();
  launch(kernel, {3}, options);
  stream.synchronize();
  EXPECT_EQ(fake::launchCount(), before + 1);
}

//===--- What is found --------------------------------------------------------------------------------------------===//

TEST_F(LaunchCost, WhatDiffersIsCompiledApart) {
  Kernel kernel("scaled(x, y, shift, width=64)", [](View x, View y, Index shift, Param width) {
    Index i = grid(cdiv(x.size(0), width));
    y.store({i * width}, x.load({i * width + shift}, {width}).to(y.dtype()));
  });
  Device device = Device::cuda(0);
  auto vector = [&](int64_t size) { return Tensor::zeros(DType::f32, {size}, device); };
  LaunchOptions plain;
  plain.target = Target::cuda;
  auto known = [&](const Arguments &arguments, const LaunchOptions &options) {
    bool first = prepare(kernel, arguments, options).fromMemory;
    EXPECT_TRUE(prepare(kernel, arguments, options).fromMemory) << "the second time";
    return first;
  };
  Tensor x = vector(64), y = vector(64), all = vector(256);
  EXPECT_FALSE(known({x, y, 0}, plain));
  EXPECT_TRUE(known({y, x, 32}, plain)) << "both are multiples of 16";
  EXPECT_TRUE(known({vector(1024), vector(48), 16}, plain)) << "sizes count by what divides them";
  EXPECT_FALSE(known({vector(72), y, 0}, plain)) << "a multiple of 8 alone";
  EXPECT_FALSE(known({all.slice(0, 2, 64), y, 0}, plain)) << "an address that is a multiple of 8 alone";
  EXPECT_FALSE(known({x, y, 3}, plain)) << "an odd index";
  EXPECT_FALSE(known({x, x, 0}, plain)) << "an overlap";
  EXPECT_FALSE(known({all.slice(0, 0, 64, 2), y, 0}, plain)) << "no unit stride";
  EXPECT_FALSE(known({Tensor::zeros(DType::f16, {64}, device), y, 0}, plain)) << "another type";
  auto with = [&](auto change) {
    LaunchOptions options = plain;
    change(options);
    return known({x, y, 0}, options);
  };
  EXPECT_FALSE(with([](LaunchOptions &o) { o.params["width"] = 32; }));
  EXPECT_TRUE(with([](LaunchOptions &o) { o.params["width"] = 64; })) << "the default";
  EXPECT_FALSE(with([](LaunchOptions &o) { o.compile.warps = 2; }));
  EXPECT_FALSE(with([](LaunchOptions &o) { o.compile.stages = 2; }));
  EXPECT_FALSE(with([](LaunchOptions &o) { o.compile.split = 2; }));
  EXPECT_FALSE(with([](LaunchOptions &o) { o.compile.isa = "baseline"; })) << "of its part on the host";
  EXPECT_TRUE(with([](LaunchOptions &o) { o.compile.gpu = "sm_80"; })) << "a device has its own";
  EXPECT_TRUE(with([](LaunchOptions &o) { o.threads = 3; }));
  Device other = Device::cuda(1);
  EXPECT_FALSE(known({Tensor::zeros(DType::f32, {64}, other), Tensor::zeros(DType::f32, {64}, other), 0}, plain));
}

/// The interpreter compiles nothing: a specialisation is had for the price of tracing it.
Kernel makeFilled() {
  return Kernel("filled(y, width)", [](View y, Param width) {
    Index i = grid(cdiv(y.size(0), width));
    y.store({i * width}, zeros(i32, {width}) + width);
  });
}

TEST_F(LaunchCost, ManySpecialisations) {
  Kernel filled = makeFilled();
  LaunchOptions options;
  options.target = Target::interpreter;
  Tensor y = Tensor::zeros(DType::i32, {4});
  for (bool again : {false, true})
    for (int64_t width = 1; width <= 100; ++width) {
      options.params["width"] = width;
      EXPECT_EQ(prepare(filled, {y}, options).fromMemory, again) << width;
    }
}

TEST_F(LaunchCost, ThreadsLookUpWhileOthersCompile) {
  Kernel filled = makeFilled();
  std::vector<std::thread> workers;
  for (int t = 0; t < 4; ++t)
    workers.emplace_back([&, t] {
      LaunchOptions options;
      options.target = Target::interpreter;
      Tensor y = Tensor::zeros(DType::i32, {3});
      for (int64_t i = 0; i < 120; ++i) {
        int64_t width = 1 + (i * (t + 1)) % 40;
        options.params["width"] = width;
        launch(filled, {y}, options);
        EXPECT_EQ(y.getInt({2}), width);
      }
    });
  for (std::thread &worker : workers)
    worker.join();
}

TEST_F(LaunchCost, AKernelWithoutTensorsRunsOnADevice) {
  Kernel kernel("nothing(n)", [](Index n) { grid(n); });
  LaunchOptions options;
  options.target = Target::cuda;
  uint64_t before = fake::launchCount();
  launch(kernel, {3}, options);
  EXPECT_EQ(fake::launchCount(), before + 1);
}

} // namespace
