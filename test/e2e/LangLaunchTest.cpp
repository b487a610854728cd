// SPDX-License-Identifier: Apache-2.0
//
// Launching: arguments, parameters, grids, streams and threads.
#include "LangSupport.h"

#include <atomic>
#include <thread>

using namespace tenon;
using namespace tenon::test;

namespace {

using Launching = OnTarget;

Kernel softmax("softmax(x, y, cols=64)", [](View x, View y, Param cols) {
  Index row = grid(x.size(0));
  require(cols >= x.size(1), "cols must span the row");
  Tile t = x.load({row, 0}, {1, cols}, -inf).to(f32);
  t = exp(t - max(t, 1));
  y.store({row, 0}, (t / sum(t, 1)).to(y.dtype()));
});

Kernel matmul("matmul(a, b, c, bm=16, bn=32, bk=8)", [](View a, View b, View c, Param bm, Param bn, Param bk) {
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  c.store({i * bm, j * bn}, acc.to(c.dtype()));
});

Kernel scale("scale(x, y, factor, shift, width=16)", [](View x, View y, Scalar factor, Index shift, Param width) {
  Index i = grid(cdiv(x.size(0), width));
  y.store({i * width}, x.load({i * width + shift}, {width}, -1) * factor);
});

TEST_P(Launching, Softmax) {
  for (DType type : {f32, f16, bf16, f64}) {
    Tensor x = Tensor::empty(type, {5, 50}), y = Tensor::empty(type, {5, 50});
    x.fillRandom(1, -4, 4);
    y.fill(NAN);
    run(softmax, {x, y});
    for (int64_t i = 0; i < 5; ++i) {
      double total = 0;
      for (int64_t j = 0; j < 50; ++j)
        total += std::exp(x.get({i, j}));
      for (int64_t j = 0; j < 50; ++j)
        EXPECT_NEAR(y.get({i, j}), std::exp(x.get({i, j})) / total, type == bf16 ? 2e-3 : type == f16 ? 2e-4 : 1e-6);
    }
  }
}

TEST_P(Launching, Matmul) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{33, 70, 19}, {1, 1, 1}, {16, 32, 8}, {5, 100, 64}}) {
    Tensor a = Tensor::empty(f32, {m, k}), b = Tensor::empty(f32, {k, n}), c = Tensor::empty(f32, {m, n});
    a.fillRandom(1, -1, 1);
    b.fillRandom(2, -1, 1);
    c.fill(NAN);
    run(matmul, {a, b, c});
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double total = 0;
        for (int64_t l = 0; l < k; ++l)
          total += a.get({i, l}) * b.get({l, j});
        EXPECT_NEAR(c.get({i, j}), total, 1e-5) << i << "," << j;
      }
  }
}

TEST_P(Launching, ArgumentsAreBoundAtEachLaunch) {
  Tensor x = counting(f32, {50}), y = Tensor::zeros(f32, {50});
  for (double factor : {2.0, -0.5})
    for (int64_t shift : {0, 3, -2})
      for (int64_t width : {16, 7}) {
        y.fill(NAN);
        run(scale, {x, y, factor, shift}, {{"width", width}});
        for (int64_t i = 0; i < 50; ++i) {
          int64_t from = i + shift;
          ASSERT_EQ(y.get({i}), (from >= 0 && from < 50 ? from : -1) * factor);
        }
      }
}

TEST_P(Launching, ScalarsKeepTheirPrecision) {
  Kernel kernel("keep(y, s, i)", [](View y, Scalar s, Index i) {
    y.store({0}, s);
    y.store({1}, i.to(f64));
  });
  Tensor y = Tensor::zeros(f64, {2});
  run(kernel, {y, 0.1, int64_t(1) << 52});
  EXPECT_EQ(valuesOf(y), (std::vector<double>{0.1, 0x1p52}));
  run(kernel, {y, 0.1f, -5});
  EXPECT_EQ(valuesOf(y), (std::vector<double>{0.1f, -5}));
  run(kernel, {y, 0xffffffffffffffffull, 1}); // a number past 2^63 is not negative
  EXPECT_EQ(y.get({0}), 0x1p64);
  run(kernel, {y, NAN, INT64_MIN});
  EXPECT_TRUE(std::isnan(y.get({0})));
  EXPECT_EQ(y.get({1}), -0x1p63);
}

TEST_P(Launching, GridOfZeroDoesNothing) {
  Kernel kernel("nothing(x, n, m)", [](View x, Index n, Index m) {
    auto [i, j] = grid(n, m);
    x.store({i + j}, full(f32, {1}, 1));
    device_assert(false, "must not run");
  });
  Tensor x = Tensor::zeros(f32, {4});
  for (auto [n, m] : {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {0, 0}, {-3, 2}, {-3, -2}})
    EXPECT_NO_THROW(run(kernel, {x, n, m}));
  EXPECT_EQ(valuesOf(x), std::vector<double>(4, 0));
  Tensor empty = Tensor::zeros(f32, {0});
  EXPECT_NO_THROW(run(scale, {empty, empty, 1.0, 0}));
}

TEST_P(Launching, WithoutGridRunsOnce) {
  Kernel kernel("once(x)", [](View x) { x.atomic_add({zeros(i32, {1})}, full(i32, {1}, 1)); });
  Tensor x = Tensor::zeros(i32, {1});
  run(kernel, {x});
  EXPECT_EQ(x.getInt({0}), 1);
}

// Every instance runs exactly once, whatever the number of threads.
TEST_P(Launching, EveryInstanceOnce) {
  Kernel kernel("once(x, n0, n1, n2)", [](View x, Index n0, Index n1, Index n2) {
    auto [i, j, k] = grid(n0, n1, n2);
    Tile at = full(i64, {1}, (i * n1 + j) * n2 + k);
    x.atomic_add({at}, full(i32, {1}, 1));
  });
  for (int threads : {0, 1, 2, 5}) {
    Tensor x = Tensor::zeros(i32, {7 * 11 * 13});
    LaunchOptions o = options();
    o.threads = threads;
    launch(kernel, {x, 7, 11, 13}, o);
    EXPECT_EQ(intsOf(x), std::vector<int64_t>(7 * 11 * 13, 1)) << threads << " threads";
  }
}

TEST_P(Launching, KernelsAreValues) {
  std::vector<Kernel> kernels;
  for (int64_t add : {1, 10, 100})
    kernels.push_back(Kernel("add(x)", [add](View x) { x.store({0}, x.load({0}, {4}) + add); }));
  Tensor x = Tensor::zeros(i32, {4});
  for (const Kernel &kernel : kernels) {
    Kernel copy = kernel;
    run(copy, {x});
    run(kernel, {x});
  }
  EXPECT_EQ(intsOf(x), std::vector<int64_t>(4, 222));
}

//===--- Streams and threads --------------------------------------------------------------------------------------===//

TEST_P(Launching, StreamRunsInOrder) {
  Kernel step("step(x, a, b)", [](View x, Index a, Index b) {
    x.store({0}, x.load({0}, {100}) * a.to(i64) + b.to(i64));
  });
  Stream stream;
  LaunchOptions o = options();
  o.stream = &stream;
  Tensor x = Tensor::zeros(i64, {100});
  int64_t expected = 0;
  for (int64_t i = 1; i < 20; ++i) {
    launch(step, {x, 2, i}, o);
    expected = expected * 2 + i;
  }
  stream.synchronize();
  EXPECT_EQ(intsOf(x), std::vector<int64_t>(100, expected));
}

TEST_P(Launching, StreamKeepsItsArguments) {
  Stream stream;
  LaunchOptions o = options();
  o.stream = &stream;
  Tensor y = Tensor::zeros(f32, {50});
  {
    Tensor x = counting(f32, {50});
    Kernel temporary = scale;
    launch(temporary, {x, y, 3.0, 0}, o);
  }
  stream.synchronize();
  EXPECT_EQ(y.get({49}), 147);
}

TEST_P(Launching, ErrorsComeThroughTheStream) {
  Kernel check("check(x)", [](View x) { device_assert(x.load({0}, {4}) < 3, "small"); });
  Kernel write("write(x)", [](View x) { x.store({0}, full(f32, {4}, 9)); });
  Stream stream;
  LaunchOptions o = options();
  o.stream = &stream;
  Tensor x = counting(f32, {4});
  launch(check, {x}, o); // fails later
  launch(write, {x}, o); // and what follows is skipped
  expectParts(errorOf([&] { stream.synchronize(); }), {"assertion failed: small", "LangLaunchTest.cpp"});
  EXPECT_EQ(x.get({0}), 0);
  EXPECT_NO_THROW(stream.synchronize());
  launch(write, {x}, o); // the stream works again
  stream.synchronize();
  EXPECT_EQ(x.get({0}), 9);
  // What is wrong with the launch itself is said at once.
  Tensor wide = Tensor::zeros(f32, {2, 100});
  EXPECT_THROW(launch(softmax, {wide, wide}, o), Error);
  EXPECT_NO_THROW(stream.synchronize());
}

// The same kernel, not compiled yet, launched from many threads with several specialisations.
TEST_P(Launching, ManyThreadsOneKernel) {
  Kernel kernel("shared(x, y, width=8)", [](View x, View y, Param width) {
    Index i = grid(cdiv(x.size(0), width));
    y.store({i * width}, x.load({i * width}, {width}) + x.load({i * width}, {width}));
  });
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      try {
        for (int repeat = 0; repeat < 5; ++repeat) {
          Tensor x = counting(t % 2 ? f32 : i32, {40}), y = Tensor::zeros(x.dtype(), {40});
          run(kernel, {x, y}, {{"width", 8 + t % 3}});
          for (int64_t i = 0; i < 40; ++i)
            wrong += y.get({i}) != 2 * i;
        }
      } catch (const std::exception &error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

// Different kernels traced at the same time: a trace belongs to its thread.
TEST_P(Launching, ManyThreadsManyKernels) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      try {
        Kernel own("own(x)", [t](View x) {
          Tile acc = zeros(i32, {3});
          for (Index k : range(t))
            acc = acc + k.to(i32);
          x.store({0}, acc + 100 * t);
        });
        Tensor x = Tensor::zeros(i32, {3});
        run(own, {x});
        EXPECT_EQ(x.getInt({1}), 100 * t + t * (t - 1) / 2);
        Kernel wrong("wrong(x)", [](View x) { x.store({0}, zeros(f32, {3})); });
        EXPECT_THROW(run(wrong, {x}), Error);
      } catch (const std::exception &error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

// A kernel's lambda may itself launch another: each trace has its own state.
TEST_P(Launching, LaunchInsideATrace) {
  Kernel inner("inner(x)", [](View x) { x.store({0}, full(i32, {2}, 5)); });
  Tensor side = Tensor::zeros(i32, {2});
  Kernel outer("outer(x)", [&](View x) {
    Tile t = x.load({0}, {2});
    for (Index k : range(3)) {
      if (side.getInt({0}) == 0)
        run(inner, {side});
      t = t + k.to(i32);
    }
    x.store({0}, t);
  });
  Tensor x = Tensor::zeros(i32, {2});
  run(outer, {x});
  EXPECT_EQ(intsOf(x), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(intsOf(side), (std::vector<int64_t>{5, 5}));
}

TENON_ON_EACH_TARGET(Launching);

} // namespace
