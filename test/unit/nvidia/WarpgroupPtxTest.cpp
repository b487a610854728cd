// SPDX-License-Identifier: Apache-2.0
//
// The instructions of Hopper alone, as PTX: what the assembler says about a whole kernel of them, and how tensor maps
// arrive.
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/ptx/Assembler.h"
#include "tenon/compiler/target/nvidia/ptx/PtxEmitter.h"
#include "test/unit/nvidia/WarpgroupKernel.h"

#include "tenon/base/Error.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <regex>

using namespace mlir;
using namespace tenon::nvidia;

namespace {

class WarpgroupPtx : public testing::Test {
public:
  WarpgroupPtx() {
    context.loadDialect<NvidiaDialect, arith::ArithDialect, scf::SCFDialect, func::FuncDialect,
                        vector::VectorDialect>();
  }
  std::string ptx(const std::string &text, const std::string &architecture = "sm_90a") {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module ? emitPtx(*module, {architecture, /*lines=*/false}).text : "";
  }
  /// A kernel of 128 threads around some ops on %out: i64, %c: i32 and, if any, tensor maps.
  std::string kernel(const std::string &body, int maps = 0) {
    return "func.func @kernel(%out: i64) attributes {nvidia.threads = 128 : i64, nvidia.tensor_maps = " +
           std::to_string(maps) + " : i64} {\n%c = arith.constant 0 : i32\n" + body + "\nreturn\n}";
  }

  MLIRContext context;
};

#define EXPECT_HAS(text, what) EXPECT_NE((text).find(what), std::string::npos) << "no " << (what) << " in\n" << (text)
#define EXPECT_HAS_NOT(text, what) EXPECT_EQ((text).find(what), std::string::npos) << (what) << " in\n" << (text)

TEST_F(WarpgroupPtx, TensorMapsAreParametersInPlace) {
  std::string text = ptx(kernel(R"(%a = nvidia.tensor_map 1
    nvidia.tma_load %c, %a[%c, %c], %c
    nvidia.tma_store %a[%c], %c)",
                                2));
  EXPECT_TRUE(std::regex_search(text, std::regex("\\.param \\.align 64 \\.b8 kernel_param_1\\[128\\]"))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("\\.param \\.align 64 \\.b8 kernel_param_2\\[128\\]"))) << text;
  EXPECT_HAS(text, "kernel_param_2;");
  EXPECT_HAS(text, "cvta.param.u64");
  EXPECT_HAS_NOT(text, "ld.param");
  EXPECT_HAS_NOT(text, ".local");
}

TEST_F(WarpgroupPtx, ATensorMapThatIsNotThere) {
  try {
    ptx(kernel("%a = nvidia.tensor_map 2\nnvidia.tma_store %a[%c], %c", 2));
    ADD_FAILURE();
  } catch (const tenon::InternalError &error) {
    EXPECT_HAS(std::string(error.what()), "there is no tensor map 2: nvidia.tensor_maps says 2");
  }
}

TEST_F(WarpgroupPtx, SpecificInstructionsNeedTheirArchitecture) {
  try {
    ptx(kernel("nvidia.wgmma_fence"), "sm_90");
    ADD_FAILURE();
  } catch (const tenon::InternalError &error) {
    EXPECT_HAS(std::string(error.what()), "wgmma_fence needs sm_90a, not sm_90");
  }
}

TEST_F(WarpgroupPtx, RegistersAtTheStartAreKnownWhereTheyChange) {
  std::string text = ptx(kernel("nvidia.set_max_registers 40 {increase = false}"));
  EXPECT_HAS(text, ".minnctapersm 1");
  EXPECT_HAS(text, ".reqntid 128");
  EXPECT_HAS(text, "setmaxnreg.dec.sync.aligned.u32 40;");
  EXPECT_HAS_NOT(ptx(kernel("nvidia.barrier 128")), ".minnctapersm");
}

/// Such a program is not given to a linker, which would leave the changes out.
TEST_F(WarpgroupPtx, SaysWhetherRegistersChangeHands) {
  auto moves = [&](const std::string &body) {
    return emitPtx(*parseSourceString<ModuleOp>(kernel(body), &context), {"sm_90a"}).movesRegisters;
  };
  EXPECT_TRUE(moves("nvidia.set_max_registers 40 {increase = false}"));
  EXPECT_FALSE(moves("nvidia.barrier 128"));
}

/// No multiplication waits for another, no register is spilled, and the registers do change hands.
class WholeKernel : public WarpgroupPtx, public testing::WithParamInterface<bool> {};

TEST_P(WholeKernel, AssemblesWithoutAWord) {
  std::string text = ptx(tenon::test::WarpgroupKernel::text(/*fromRegisters=*/GetParam()));
  EXPECT_HAS(text, "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16");
  EXPECT_HAS_NOT(text, ".local");
  auto report = assemble(text, "sm_90a");
  if (!report)
    GTEST_SKIP() << "no ptxas on this machine: PTX was written but not assembled";
  EXPECT_EQ(report->spillStoreBytes, 0);
  EXPECT_EQ(report->registers, 168);
  for (const std::string &warning : report->warnings)
    ADD_FAILURE() << warning;
  if (!report->sass.empty()) {
    EXPECT_HAS(report->sass, "HGMMA.64x128x16.F32.BF16");
    EXPECT_HAS(report->sass, "USETMAXREG");
    EXPECT_HAS(report->sass, "UTMALDG.2D");
  }
}

INSTANTIATE_TEST_SUITE_P(All, WholeKernel, testing::Bool(),
                         [](const auto &info) { return info.param ? "fromRegisters" : "fromSharedMemory"; });

} // namespace
