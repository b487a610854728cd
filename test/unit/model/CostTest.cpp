// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/model/Cost.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tenon;
using namespace tenon::model;

namespace {

CountPlan planOf(const std::string &text) {
  mlir::MLIRContext context;
  tile::loadTileDialects(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context));
  EXPECT_TRUE(module);
  return CountPlan::fromTileIr(*module->getOps<mlir::func::FuncOp>().begin());
}

CountPlan addition() {
  return planOf(R"(
    func.func @add(%a: !tile.view<1, f16>, %b: !tile.view<1, f16>, %c: !tile.view<1, f16>) {
      %block = arith.constant 4096 : index
      %n = tile.size %c, 0 : <1, f16>
      %g = arith.ceildivsi %n, %block : index
      %i = tile.grid %g
      %o = arith.muli %i, %block : index
      %x = tile.load %a[%o] : <1, f16> -> tensor<4096xf16>
      %y = tile.load %b[%o] : <1, f16> -> tensor<4096xf16>
      %s = arith.addf %x, %y : tensor<4096xf16>
      tile.store %s, %c[%o] : tensor<4096xf16>, <1, f16>
      return
    })");
}

/// c = a * b in bf16, tiles of `tile` x `tile`.
CountPlan product(int64_t tile) {
  std::string n = std::to_string(tile), shape = "tensor<" + n + "x" + n;
  return planOf(R"(
    func.func @matmul(%a: !tile.view<2, bf16>, %b: !tile.view<2, bf16>, %c: !tile.view<2, f32>) {
      %c0 = arith.constant 0 : index
      %t = arith.constant )" + n + R"( : index
      %zero = arith.constant dense<0.0> : )" + shape + R"(xf32>
      %m = tile.size %c, 0 : <2, f32>
      %n = tile.size %c, 1 : <2, f32>
      %k = tile.size %a, 1 : <2, bf16>
      %gm = arith.ceildivsi %m, %t : index
      %gn = arith.ceildivsi %n, %t : index
      %i, %j = tile.grid %gm, %gn
      %row = arith.muli %i, %t : index
      %col = arith.muli %j, %t : index
      %r = scf.for %p = %c0 to %k step %t iter_args(%acc = %zero) -> ()" + shape + R"(xf32>) {
        %x = tile.load %a[%row, %p] : <2, bf16> -> )" + shape + R"(xbf16>
        %y = tile.load %b[%p, %col] : <2, bf16> -> )" + shape + R"(xbf16>
        %z = tile.dot %x, %y, %acc : )" + shape + "xbf16>, " + shape + "xbf16>, " + shape + R"(xf32>
        scf.yield %z : )" + shape + R"(xf32>
      }
      tile.store %r, %c[%row, %col] : )" + shape + R"(xf32>, <2, f32>
      return
    })");
}

std::vector<int64_t> vectors(int64_t length) { return {0, length, 1, 0, length, 1, 0, length, 1}; }
std::vector<int64_t> squares(int64_t n) { return {0, n, n, n, 1, 0, n, n, n, 1, 0, n, n, n, 1}; }

Ceilings processor() {
  Ceilings ceilings;
  ceilings.device = "a made-up processor";
  ceilings.processors = 4;
  ceilings.levels = {{"L2", 4e6, 400e9, 400e9}, {"L3", 32e6, 100e9, 100e9}, {"memory", 0, 20e9, 20e9}};
  ceilings.matrix.fill(200e9);
  ceilings.vector.fill(200e9);
  ceilings.special = 5e9;
  ceilings.integer = 100e9;
  ceilings.launchSeconds = 1e-6;
  return ceilings;
}

TEST(Cost, AdditionIsBoundByMemory) {
  CountPlan plan = addition();
  auto words = vectors(1 << 24);
  Counts counts = plan.count(words);
  Cost found = cost(plan, words, counts, processor());
  EXPECT_EQ(found.boundBy, "memory");
  EXPECT_DOUBLE_EQ(found.memoryBytes, 6.0 * (1 << 24));
  EXPECT_NEAR(found.seconds, 1e-6 + 6.0 * (1 << 24) / 20e9, 1e-9);
  EXPECT_EQ(found.terms.back().resource, "launch");
  for (size_t i = 0; i + 2 < found.terms.size(); ++i)
    EXPECT_GE(found.terms[i].seconds, found.terms[i + 1].seconds);
}

TEST(Cost, TinyIsBoundByTheLaunch) {
  CountPlan plan = addition();
  auto words = vectors(16);
  EXPECT_EQ(cost(plan, words, plan.count(words), processor()).boundBy, "launch");
}

TEST(Cost, LargeProductsAreBoundByTheMatrixUnits) {
  CountPlan plan = product(256);
  auto words = squares(8192);
  Counts counts = plan.count(words);
  Configuration configuration;
  configuration.block = {256, 168, 160 * 1024};
  configuration.stages = 4;
  Cost found = cost(plan, words, counts, *gpuDatasheet("NVIDIA H200"), configuration);
  EXPECT_EQ(found.boundBy, "matrix bf16");
  EXPECT_EQ(found.occupancy.blocks, 1);
  EXPECT_GT(found.seconds, 2.0 * 8192 * 8192 * 8192 / 989.4e12);
  EXPECT_LT(found.seconds, 1.2 * 2.0 * 8192 * 8192 * 8192 / 989.4e12);
  // What memory sees lies between the two counts.
  EXPECT_GE(found.memoryBytes, counts.bytes());
  EXPECT_LT(found.memoryBytes, counts.requestedBytes());
}

TEST(Cost, SmallTilesReadMore) {
  auto words = squares(4096);
  CountPlan small = product(32), large = product(128);
  Ceilings h200 = *gpuDatasheet("NVIDIA H200");
  Cost a = cost(small, words, small.count(words), h200), b = cost(large, words, large.count(words), h200);
  EXPECT_EQ(a.boundBy, "L2");
  EXPECT_GT(a.seconds, b.seconds);
}

TEST(Cost, WaveQuantisation) {
  // 133 blocks on 132 multiprocessors that hold one each take twice the time of 132.
  CountPlan plan = product(256);
  Configuration configuration;
  configuration.block = {256, 168, 160 * 1024};
  configuration.stages = 4;
  auto time = [&](int64_t rows) {
    std::vector<int64_t> words = {0, rows, 8192, 8192, 1, 0, 8192, 256, 256, 1, 0, rows, 256, 256, 1};
    return cost(plan, words, plan.count(words), *gpuDatasheet("NVIDIA H200"), configuration);
  };
  Cost full = time(132 * 256), oneMore = time(133 * 256);
  EXPECT_DOUBLE_EQ(full.balance, 1);
  EXPECT_NEAR(oneMore.balance, 133.0 / 264, 1e-9);
  EXPECT_EQ(oneMore.waves.tailBlocks, 1);
  EXPECT_NEAR(oneMore.seconds, 2 * full.seconds, 0.05 * full.seconds);
}

TEST(Cost, WhatDoesNotFitTakesForever) {
  CountPlan plan = addition();
  auto words = vectors(1 << 20);
  Configuration configuration;
  configuration.block.sharedBytes = 1 << 20;
  Cost found = cost(plan, words, plan.count(words), *gpuDatasheet("sm_90a"), configuration);
  EXPECT_TRUE(std::isinf(found.seconds));
  EXPECT_NE(found.refusal.find("shared memory"), std::string::npos);
}

TEST(Cost, FewInstancesLeaveProcessorsIdle) {
  CountPlan plan = product(64);
  auto one = cost(plan, squares(64), plan.count(squares(64)), processor());
  EXPECT_DOUBLE_EQ(one.balance, 0.25);
}

TEST(Cost, GuessesABlock) {
  CountPlan plan = product(128);
  BlockShape block = guessBlock(plan.count(squares(512)));
  EXPECT_GE(block.threads, 128);
  EXPECT_LE(block.registersPerThread, 255);
  EXPECT_EQ(guessBlock(plan.count(squares(512)), 8).threads, 256);
}

} // namespace
