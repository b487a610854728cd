// SPDX-License-Identifier: Apache-2.0
//
// LLVM's fatal errors, planted: the process goes on, the caller gets an exception, and later work is not disturbed.
#include "tenon/jit/FatalErrors.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/jit/Compiler.h"

#include "mlir/IR/Action.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ErrorHandling.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

using namespace tenon;
using namespace tenon::jit;

namespace {

/// What `work` throws: its text, or "" for nothing.
template <class Exception, class Work> std::string thrownBy(Work work) {
  try {
    work();
  } catch (const Exception &exception) {
    return exception.what();
  }
  return "";
}

TEST(FatalErrors, WorkIsDone) {
  int done = 0;
  for (int i = 0; i < 20; ++i)
    guardFatalErrors([&] { done += i; });
  EXPECT_EQ(done, 190);
}

TEST(FatalErrors, ExceptionsPass) {
  EXPECT_EQ(thrownBy<Error>([] { guardFatalErrors([] { throw Error("plain"); }); }), "plain");
  EXPECT_THROW(guardFatalErrors([] { throw 7; }), int);
}

TEST(FatalErrors, BecomeInternalErrors) {
  for (int i = 0; i < 3; ++i) {
    std::string text =
        thrownBy<InternalError>([] { guardFatalErrors([] { llvm::report_fatal_error("cannot select: planted"); }); });
    EXPECT_NE(text.find("internal error in Tenon"), std::string::npos) << text;
    EXPECT_NE(text.find("cannot select: planted"), std::string::npos) << text;
    bool done = false;
    guardFatalErrors([&] { done = true; });
    EXPECT_TRUE(done);
  }
}

TEST(FatalErrors, OfSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<std::string> texts(8);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      texts[i] = thrownBy<InternalError>([&] {
        guardFatalErrors([&] {
          if (i % 2)
            llvm::report_fatal_error(llvm::StringRef("number " + std::to_string(i)));
        });
      });
    });
  for (std::thread &thread : threads)
    thread.join();
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(texts[i].find("number " + std::to_string(i)) != std::string::npos, i % 2 == 1) << texts[i];
}

TEST(FatalErrors, WorkBesideTheCaller) {
  std::promise<int> given;
  int taken = 0;
  {
    GuardedWork work([&] { taken = given.get_future().get(); });
    given.set_value(7); // the work waits for it
    work.wait();
    EXPECT_EQ(taken, 7);
  }
  GuardedWork throws([] { throw Error("plain"); });
  EXPECT_EQ(thrownBy<Error>([&] { throws.wait(); }), "plain");
  GuardedWork fatal([] { llvm::report_fatal_error("cannot select: planted"); });
  EXPECT_NE(thrownBy<InternalError>([&] { fatal.wait(); }).find("cannot select: planted"), std::string::npos);
}

TEST(FatalErrors, WorkThatNobodyAsksAboutIsDoneToo) {
  auto kept = std::make_shared<int>(7);
  bool done = false;
  {
    GuardedWork work([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      done = true;
    });
  }
  EXPECT_TRUE(done);
  { GuardedWork throws([] { throw Error("plain"); }); }
  { GuardedWork fatal([kept] { llvm::report_fatal_error("planted"); }); }
  EXPECT_EQ(kept.use_count(), 2) << "LLVM's frames stay, and may refer to it";
}

// Elsewhere LLVM does what it always does.
TEST(FatalErrorsDeathTest, OutsideStillEndTheProcess) {
  guardFatalErrors([] {});
  EXPECT_DEATH(llvm::report_fatal_error("not guarded"), "LLVM ERROR: not guarded");
}

constexpr const char *kernel = R"(
func.func @kernel(%y: !tile.view<1, f32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<8xf32>
  tile.store %one, %y[%c0] : tensor<8xf32>, !tile.view<1, f32>
  return
})";

std::shared_ptr<Executable> compile(bool plant) {
  auto context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  tile::loadTileDialects(*context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kernel, mlir::ParserConfig(context.get()));
  if (plant) // MLIR tells this handler of every pass that is about to run
    context->registerActionHandler([](llvm::function_ref<void()>, const mlir::tracing::Action &) {
      llvm::report_fatal_error("planted in a pass");
    });
  CompileOptions options;
  options.useDiskCache = false;
  CompileReport report;
  return compileTileIr(std::move(context), std::move(module), Target::cpu, options, report, nullptr);
}

TEST(FatalErrors, OfACompilationLeaveAReproducer) {
  std::string text = thrownBy<InternalError>([] { compile(/*plant=*/true); });
  EXPECT_NE(text.find("planted in a pass"), std::string::npos) << text;
  constexpr const char *words = "the program that shows it: ";
  size_t at = text.find(words);
  ASSERT_NE(at, std::string::npos) << text;
  std::string path = text.substr(at + strlen(words));
  std::stringstream program;
  program << std::ifstream(path).rdbuf();
  EXPECT_NE(program.str().find("tile.store"), std::string::npos) << path;
  EXPECT_EQ(program.str().find("// Compiled for cpu, instruction set native"), 0u) << program.str();
  std::filesystem::remove(path);
  EXPECT_NE(compile(/*plant=*/false), nullptr);
}

} // namespace
