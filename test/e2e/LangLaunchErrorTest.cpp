// SPDX-License-Identifier: Apache-2.0
//
// Wrong launches are refused before anything runs: the outputs keep what they held.
#include "LangSupport.h"

#include <array>

using namespace tenon;
using namespace tenon::test;

namespace {

using RefusedLaunches = OnTarget;

Kernel scale("scale(x, y, factor, shift, width=4)", [](View x, View y, Scalar factor, Index shift, Param width) {
  Index i = grid(cdiv(x.size(0), width));
  require(x.size(0) == y.size(0), "x and y have one size");
  require(shift >= 0, "shift is not negative");
  y.store({i * width}, (x.load({i * width + shift}, {width}).to(f32) * factor).to(y.dtype()));
});

class Refusal {
public:
  Refusal(const OnTarget &, const LaunchOptions &options) : options_(options) { y_.fill(-7); }
  void expect(const Kernel &kernel, const Arguments &arguments, std::initializer_list<std::string> parts,
              Params params = {}) {
    LaunchOptions options = options_;
    options.params = std::move(params);
    expectParts(errorOf([&] { launch(kernel, arguments, options); }), parts);
    EXPECT_EQ(valuesOf(y_), std::vector<double>(8, -7)) << "an output was written";
  }
  const Tensor &y() const { return y_; }

private:
  LaunchOptions options_;
  Tensor y_ = Tensor::empty(f32, {8});
};

TEST_P(RefusedLaunches, Arguments) {
  Refusal refusal(*this, options());
  Tensor x = counting(f32, {8}), y = refusal.y();
  refusal.expect(
      scale, {x, y, 2.0},
      {"kernel scale(x, y, factor, shift, width)", "takes 4 run-time arguments, not 3: x, y, factor, shift"});
  refusal.expect(scale, {x, y, 2.0, 0, 4}, {"takes 4 run-time arguments, not 5"});
  refusal.expect(scale, {}, {"not 0"});
  refusal.expect(scale, {x, 3, 2.0, 0}, {"argument 'y' of kernel scale must be a tensor"});
  refusal.expect(scale, {x, y, x, 0}, {"argument 'factor' of kernel scale must be a number"});
  refusal.expect(scale, {x, y, 2.0, x}, {"argument 'shift' of kernel scale must be an integer"});
  refusal.expect(scale, {x, y, 2.0, 1.5}, {"argument 'shift' of kernel scale must be an integer"});
  refusal.expect(scale, {x, y, 2.0, 0xffffffffffffffffull}, {"argument 'shift' of kernel scale must be an integer"});
  Tensor rank0 = Tensor::zeros(f32, {});
  refusal.expect(scale, {rank0, y, 2.0, 0}, {"argument 'x'", "has no dimensions", "1 to 5"});
}

TEST_P(RefusedLaunches, Parameters) {
  Refusal refusal(*this, options());
  Tensor x = counting(f32, {8}), y = refusal.y();
  refusal.expect(scale, {x, y, 2.0, 0}, {"unknown parameter 'size' of kernel scale", "it has width"}, {{"size", 3}});
  refusal.expect(scale, {x, y, 2.0, 0}, {"unknown parameter 'x'"}, {{"x", 3}}); // a view is no parameter
  Kernel bare("bare(x, n)", [](View v, Param n) { v.store({0}, zeros(f32, {n})); });
  refusal.expect(bare, {y}, {"LangLaunchErrorTest.cpp:", "parameter 'n' of kernel bare has no default", "params"});
  Kernel none("none(x)", [](View v) { v.store({0}, zeros(f32, {1})); });
  refusal.expect(none, {y}, {"unknown parameter 'n' of kernel none", "none"}, {{"n", 1}});
  refusal.expect(bare, {y}, {"every dimension of a tile is at least 1", "LangLaunchErrorTest.cpp"}, {{"n", 0}});
  refusal.expect(bare, {y}, {"too large"}, {{"n", int64_t(1) << 40}});
  refusal.expect(bare, {y}, {"too large"}, {{"n", INT64_MAX}});
}

TEST_P(RefusedLaunches, Memory) {
  Refusal refusal(*this, options());
  Tensor x = counting(f32, {8}), y = refusal.y();
  std::array<float, 8> storage{};
  Tensor tooLarge = Tensor::borrow(storage.data(), sizeof(storage), f32, {9});
  refusal.expect(scale, {tooLarge, y, 2.0, 0}, {"f32[9]"});
  Tensor strided = Tensor::borrow(storage.data(), sizeof(storage), f32, {8}, {2});
  refusal.expect(scale, {strided, y, 2.0, 0}, {"f32[8]"});
  Tensor before = Tensor::borrow(storage.data(), sizeof(storage), f32, {8}, {-1});
  refusal.expect(scale, {before, y, 2.0, 0}, {"f32[8]"});
  Tensor unaligned = Tensor::borrow(reinterpret_cast<char *>(storage.data()) + 1, 20, f32, {4});
  refusal.expect(scale, {unaligned, y, 2.0, 0}, {"aligned"});
  std::string null = errorOf([&] {
    Tensor nothing = Tensor::borrow(nullptr, 0, f32, {8});
    launch(scale, {nothing, y, 2.0, 0}, options());
  });
  EXPECT_NE(null, "(nothing was thrown)");
  std::string nullWithBytes = errorOf([&] {
    Tensor nothing = Tensor::borrow(nullptr, 32, f32, {8});
    launch(scale, {nothing, y, 2.0, 0}, options());
  });
  EXPECT_NE(nullWithBytes, "(nothing was thrown)");
  EXPECT_EQ(valuesOf(y), std::vector<double>(8, -7));
}

TEST_P(RefusedLaunches, Preconditions) {
  Refusal refusal(*this, options());
  Tensor x = counting(f32, {8}), y = refusal.y(), shorter = counting(f32, {7});
  refusal.expect(scale, {shorter, y, 2.0, 0}, {"x and y have one size", "LangLaunchErrorTest.cpp:"});
  refusal.expect(scale, {x, y, 2.0, -1}, {"shift is not negative"});
  launch(scale, {x, y, 2.0, 0}, options());
  EXPECT_EQ(y.get({7}), 14);
}

// Two preconditions in the same words: the line tells which.
TEST_P(RefusedLaunches, PreconditionsWithOneMessage) {
  constexpr unsigned first = __LINE__ + 2;
  Kernel kernel("twice(y, a, b)", [](View y, Index a, Index b) {
    require(a > 0, "a size is positive");
    require(b > 0, "a size is positive");
    y.store({0}, full(f32, {1}, 1));
  });
  Refusal refusal(*this, options());
  auto at = [](unsigned line) { return "LangLaunchErrorTest.cpp:" + std::to_string(line) + ": a size is positive"; };
  refusal.expect(kernel, {refusal.y(), 0, 1}, {at(first)});
  refusal.expect(kernel, {refusal.y(), 1, 0}, {at(first + 1)});
  refusal.expect(kernel, {refusal.y(), 0, 0}, {at(first)});
}

TEST_P(RefusedLaunches, BrokenPromise) {
  Kernel kernel("apart(x, y)", [](View x, View y) {
    promise_no_overlap();
    y.store({0}, x.load({0}, {8}) + 1);
  });
  Refusal refusal(*this, options());
  Tensor memory = counting(f32, {20}), y = refusal.y();
  refusal.expect(kernel, {y, y}, {"promises that no output overlaps another view", "'y' overlaps 'x'"});
  Tensor a = memory.slice(0, 0, 8), b = memory.slice(0, 7, 8), c = memory.slice(0, 8, 8);
  expectParts(errorOf([&] { launch(kernel, {a, b}, options()); }), {"'y' overlaps 'x'"});
  EXPECT_EQ(valuesOf(memory), valuesOf(counting(f32, {20})));
  launch(kernel, {a, c}, options());
  EXPECT_EQ(memory.get({15}), 8);
  // Two inputs may share memory.
  Kernel sum("sum(a, b, c)", [](View x, View z, View out) {
    promise_no_overlap();
    out.store({0}, x.load({0}, {8}) + z.load({0}, {8}));
  });
  Tensor out = Tensor::zeros(f32, {8});
  launch(sum, {a, a, out}, options());
  EXPECT_EQ(out.get({3}), 6);
}

TEST_P(RefusedLaunches, LoopSteps) {
  Kernel kernel("steps(y, step)", [](View y, Index step) {
    for (Index k : range(0, 8, step))
      y.store({k}, full(f32, {1}, 1));
  });
  Refusal refusal(*this, options());
  refusal.expect(kernel, {refusal.y(), 0}, {"the step of a loop is at least 1"});
  refusal.expect(kernel, {refusal.y(), -3}, {"the step of a loop is at least 1", "LangLaunchErrorTest.cpp:"});
  // A step that only the run knows: the loop ends, and the launch fails.
  Kernel fromMemory("steps(x, y)", [](View x, View y) {
    for (Index k : range(0, 8, x.at({0})))
      y.store({k}, full(f32, {1}, 1));
  });
  Tensor x = Tensor::zeros(i32, {1}), y = Tensor::zeros(f32, {8});
  expectParts(errorOf([&] { launch(fromMemory, {x, y}, options()); }), {"the step of a loop is at least 1"});
  x.setInt({0}, 3);
  y.fill(0);
  launch(fromMemory, {x, y}, options());
  EXPECT_EQ(valuesOf(y), (std::vector<double>{1, 0, 0, 1, 0, 0, 1, 0}));
}

TEST_P(RefusedLaunches, Sizes) {
  Refusal refusal(*this, options());
  Kernel grids("grids(y, n)", [](View y, Index n) {
    auto [i, j, k] = grid(n, n, n);
    y.store({i + j + k}, full(f32, {1}, 1));
  });
  refusal.expect(grids, {refusal.y(), int64_t(1) << 31}, {"2147483648 x 2147483648 x 2147483648"});
  Kernel work("work(y, n)", [](View y, Index n) {
    View w = workspace(f32, {n, n});
    w.store({0, 0}, zeros(f32, {1, 1}));
    y.store({0}, reshape(w.load({0, 0}, {1, 1}), {1}));
  });
  refusal.expect(work, {refusal.y(), int64_t(1) << 40}, {"workspace"});
  refusal.expect(work, {refusal.y(), int64_t(3) << 20}, {"memory", "workspace"}); // 36 TiB
  refusal.expect(work, {refusal.y(), -1}, {"kernel work", "workspace", "-1"});
  for (int threads : {-2, 1000000}) {
    LaunchOptions wrong = options();
    wrong.threads = threads;
    if (GetParam() == Target::cpu) {
      EXPECT_THROW(launch(grids, {refusal.y(), 1}, wrong), Error);
    }
  }
}

TENON_ON_EACH_TARGET(RefusedLaunches);

} // namespace
