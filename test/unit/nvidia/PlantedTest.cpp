// SPDX-License-Identifier: Apache-2.0
//
// Bugs planted into lowered kernels: the simulator must find each of them and name the line of the kernel. What it does
// not find in a real kernel means something only because it finds these.
#include "test/unit/nvidia/TileHarness.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <gtest/gtest.h>

namespace tenon::test {
namespace {

using namespace mlir;

/// y = part of x / sum(x) along rows of 512: a reduction across warps, and elements that change threads.
const char *normText = R"(
func.func @norm(%x: !tile.view<2, f32> FACTS0, %y: !tile.view<2, f32> FACTS1) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %program = tile.grid %one
  %t = tile.load %x[%zero, %zero] : !tile.view<2, f32> -> tensor<2x512xf32> loc("Norm.cpp":11:1)
  %s = tile.reduce %t dim 1 : (tensor<2x512xf32>) -> tensor<2x1xf32> {
  ^bb0(%left: f32, %right: f32):
    %sum = arith.addf %left, %right : f32
    tile.yield %sum : f32
  } loc("Norm.cpp":12:1)
  %b = tile.broadcast %s : tensor<2x1xf32> -> tensor<2x512xf32> loc("Norm.cpp":13:1)
  %q = arith.divf %t, %b : tensor<2x512xf32> loc("Norm.cpp":13:1)
  %r = tile.slice %q [0, 3] : tensor<2x512xf32> -> tensor<2x500xf32> loc("Norm.cpp":14:1)
  tile.store %r, %y[%zero, %zero] : tensor<2x500xf32>, !tile.view<2, f32> loc("Norm.cpp":15:1)
  return
}
)";

/// A loop over K with copies that run ahead.
const char *productText = R"(
func.func @product(%a: !tile.view<2, bf16> FACTS0, %b: !tile.view<2, bf16> FACTS1, %c: !tile.view<2, f32> FACTS2) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %step = arith.constant 32 : index
  %depth = arith.constant 128 : index
  %program = tile.grid %one
  %init = arith.constant dense<0.0> : tensor<32x32xf32>
  %sum = scf.for %k = %zero to %depth step %step iter_args(%old = %init) -> (tensor<32x32xf32>) {
    %x = tile.load %a[%zero, %k] : !tile.view<2, bf16> -> tensor<32x32xbf16> loc("Product.cpp":21:1)
    %y = tile.load %b[%k, %zero] : !tile.view<2, bf16> -> tensor<32x32xbf16> loc("Product.cpp":22:1)
    %new = tile.dot %x, %y, %old : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xf32> loc("Product.cpp":23:1)
    scf.yield %new : tensor<32x32xf32>
  } loc("Product.cpp":20:1)
  tile.store %sum, %c[%zero, %zero] : tensor<32x32xf32>, !tile.view<2, f32> loc("Product.cpp":24:1)
  return
}
)";

template <class Op> int count(TileCompiler &compiler) {
  int found = 0;
  compiler.program.module->walk([&](Op) { ++found; });
  return found;
}

/// The nth op of a kind.
template <class Op> Op nth(TileCompiler &compiler, int number) {
  Op found;
  compiler.program.module->walk([&](Op op) {
    if (number-- == 0)
      found = op;
  });
  return found;
}

class Planted : public testing::Test {
protected:
  HostMatrix x{"f32", 2, 512}, y{"f32", 2, 500};
  HostMatrix a{"bf16", 32, 128}, b{"bf16", 128, 32}, c{"f32", 32, 32};
  const std::vector<HostMatrix *> normViews{&x, &y}, productViews{&a, &b, &c};
  TileOptions options;

  void SetUp() override {
    for (HostMatrix *matrix : {&x, &a, &b})
      matrix->fill([](int64_t i, int64_t j) { return double((i * 3 + j) % 5 + 1); });
  }

  /// What the simulator says of a kernel after `plant` has been at it.
  std::string findings(const char *text, const std::vector<HostMatrix *> &views,
                       const std::function<void(TileCompiler &)> &plant) {
    TileCompiler compiler(text, views, options);
    plant(compiler);
    return runTile(compiler, views, options).findings;
  }
};

TEST_F(Planted, NothingIsFoundWhereNothingIsWrong) {
  EXPECT_EQ(findings(normText, normViews, [](TileCompiler &) {}), "");
  EXPECT_EQ(findings(productText, productViews, [](TileCompiler &) {}), "");
}

TEST_F(Planted, EveryBarrierIsMissed) {
  TileCompiler whole(normText, normViews, options);
  int barriers = count<nvidia::BarrierOp>(whole);
  ASSERT_GE(barriers, 2);
  for (int i = 0; i < barriers; ++i) {
    std::string found =
        findings(normText, normViews, [&](TileCompiler &compiler) { nth<nvidia::BarrierOp>(compiler, i).erase(); });
    EXPECT_NE(found.find("race"), std::string::npos) << "barrier " << i << ": " << found;
    EXPECT_NE(found.find("Norm.cpp:1"), std::string::npos) << "barrier " << i << ": " << found;
  }
}

TEST_F(Planted, ABarrierForHalfTheThreadsIsNone) {
  std::string found = findings(normText, normViews, [](TileCompiler &compiler) {
    auto barrier = nth<nvidia::BarrierOp>(compiler, 0);
    barrier.setThreads(barrier.getThreads() / 2);
  });
  EXPECT_NE(found.find("Norm.cpp:12"), std::string::npos) << found;
}

TEST_F(Planted, SharedMemoryReadFromTheWrongPlace) {
  for (int64_t shift : {4, 64, 4096}) {
    std::string found = findings(normText, normViews, [&](TileCompiler &compiler) {
      compiler.program.module->walk([&](nvidia::LoadOp load) {
        if (load.getSpace() == nvidia::Space::shared)
          load.setOffset(load.getOffset() + static_cast<uint32_t>(shift));
      });
    });
    EXPECT_NE(found.find("Norm.cpp:1"), std::string::npos) << shift << ": " << found;
  }
}

TEST_F(Planted, GlobalMemoryBesideTheViews) {
  for (bool writes : {false, true}) {
    std::string found = findings(normText, normViews, [&](TileCompiler &compiler) {
      compiler.program.module->walk([&](Operation *op) {
        auto load = llvm::dyn_cast<nvidia::LoadOp>(op);
        auto store = llvm::dyn_cast<nvidia::StoreOp>(op);
        if (load && !writes && load.getSpace() == nvidia::Space::global)
          load.setOffset(load.getOffset() + 4096);
        if (store && writes && store.getSpace() == nvidia::Space::global)
          store.setOffset(store.getOffset() + 4096);
      });
    });
    EXPECT_NE(found.find("out of bounds"), std::string::npos) << found;
    EXPECT_NE(found.find(writes ? "Norm.cpp:15" : "Norm.cpp:11"), std::string::npos) << found;
  }
}

TEST_F(Planted, AStoreThatIsNotAlignedForItsWidth) {
  std::string found = findings(normText, normViews, [&](TileCompiler &compiler) {
    compiler.program.module->walk([&](nvidia::LoadOp load) {
      if (load.getSpace() == nvidia::Space::global && llvm::isa<VectorType>(load.getType()))
        load.setOffset(load.getOffset() + 4);
    });
  });
  EXPECT_NE(found.find("misaligned"), std::string::npos) << found;
  EXPECT_NE(found.find("Norm.cpp:11"), std::string::npos) << found;
}

TEST_F(Planted, CopiesThatNobodyWaitsFor) {
  TileCompiler whole(productText, productViews, options);
  ASSERT_GT(count<nvidia::CpAsyncOp>(whole), 0);
  std::string found = findings(productText, productViews, [](TileCompiler &compiler) {
    nth<nvidia::CpAsyncWaitOp>(compiler, 0).erase();
  });
  EXPECT_NE(found.find("Product.cpp:2"), std::string::npos) << found;
}

TEST_F(Planted, TheWaitForTheKernelsBefore) {
  for (auto [text, views, line] : {std::tuple(normText, normViews, "Norm.cpp:11"),
                                   std::tuple(productText, productViews, "Product.cpp:21")}) {
    // Too late: behind the first access, or at the end.
    for (bool atEnd : {false, true}) {
      std::string found = findings(text, views, [&](TileCompiler &compiler) {
        auto wait = nth<nvidia::AwaitEarlierLaunchesOp>(compiler, 0);
        ASSERT_TRUE(wait);
        ASSERT_EQ(count<nvidia::AwaitEarlierLaunchesOp>(compiler), 1);
        Operation *access = nullptr;
        compiler.program.module->walk([&](Operation *op) {
          auto load = llvm::dyn_cast<nvidia::LoadOp>(op);
          if (!access && ((load && load.getSpace() == nvidia::Space::global) || llvm::isa<nvidia::CpAsyncOp>(op)))
            access = op;
        });
        if (atEnd)
          wait->moveBefore(wait->getBlock()->getTerminator());
        else
          wait->moveAfter(wait->getBlock()->findAncestorOpInBlock(*access));
      });
      EXPECT_NE(found.find("misuse"), std::string::npos) << found;
      EXPECT_NE(found.find(std::string("global memory at ") + line), std::string::npos) << found;
      EXPECT_NE(found.find("has not waited for the kernels before this one"), std::string::npos) << found;
    }
  }
}

TEST_F(Planted, OlderArchitecturesWaitForNobody) {
  for (const char *architecture : {"sm_80", "sm_89", "sm_90"}) {
    options.architecture = architecture;
    bool waits = std::string(architecture) == "sm_90";
    TileCompiler compiler(normText, normViews, options);
    EXPECT_EQ(count<nvidia::AwaitEarlierLaunchesOp>(compiler), waits);
    EXPECT_EQ(count<nvidia::AllowNextLaunchOp>(compiler), waits);
    EXPECT_EQ(compiler.program.startsEarly, waits);
  }
}

TEST_F(Planted, OneStageTooMany) {
  // Waiting for one group fewer than is needed.
  std::string found = findings(productText, productViews, [](TileCompiler &compiler) {
    auto wait = nth<nvidia::CpAsyncWaitOp>(compiler, 0);
    wait.setPending(wait.getPending() + 1);
  });
  EXPECT_NE(found.find("Product.cpp:2"), std::string::npos) << found;
}

TEST_F(Planted, TheBarrierOfALoopWithCopies) {
  TileCompiler whole(productText, productViews, options);
  auto inLoop = [](TileCompiler &compiler) {
    nvidia::BarrierOp found;
    compiler.program.module->walk([&](nvidia::BarrierOp op) {
      if (op->getParentOfType<scf::ForOp>())
        found = op;
    });
    return found;
  };
  ASSERT_TRUE(inLoop(whole));
  std::string found =
      findings(productText, productViews, [&](TileCompiler &compiler) { inLoop(compiler).erase(); });
  EXPECT_NE(found.find("race"), std::string::npos) << found;
  EXPECT_NE(found.find("Product.cpp:2"), std::string::npos) << found;
}

} // namespace
} // namespace tenon::test
