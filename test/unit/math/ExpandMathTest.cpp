// SPDX-License-Identifier: Apache-2.0
//
// tenon-expand-math: what it replaces, what it leaves, and that the result is valid IR. Its numbers are those of the
// host arithmetic (MathAccuracyTest), since both come from the same source.
#include "tenon/compiler/math/Functions.h"
#include "tenon/compiler/transform/ExpandMath.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

using namespace mlir;
using tenon::math::allFunctions;
using tenon::math::Function;
using tenon::math::name;

namespace {

class ExpandMath : public testing::Test {
protected:
  ExpandMath() { context.loadDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect>(); }

  OwningOpRef<ModuleOp> parse(const std::string &source) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
    EXPECT_TRUE(module) << source;
    return module;
  }

  OwningOpRef<ModuleOp> expand(const std::string &source) {
    OwningOpRef<ModuleOp> module = parse(source);
    PassManager passes(&context);
    passes.addPass(tenon::createExpandMathPass());
    EXPECT_TRUE(succeeded(passes.run(*module)));
    EXPECT_TRUE(succeeded(verify(*module)));
    return module;
  }

  static std::string function(const std::string &op, const std::string &type) {
    return "func.func @f(%x: " + type + ") -> " + type + " { %y = math." + op + " %x : " + type + " return %y : " +
           type + " }";
  }

  static std::map<std::string, int> countOps(ModuleOp module) {
    std::map<std::string, int> counts;
    module.walk([&](Operation *op) { ++counts[op->getName().getStringRef().str()]; });
    return counts;
  }

  MLIRContext context;
};

TEST_F(ExpandMath, EveryFunctionAndShape) {
  for (const char *type : {"f32", "f64", "f16", "bf16", "vector<16xf32>", "vector<2x8xf64>", "vector<32xbf16>",
                           "vector<f32>", "tensor<4x8xf32>", "tensor<4x8xf64>", "tensor<128x64xbf16>", "tensor<f32>",
                           "tensor<3x5xf16>"})
    for (Function f : allFunctions) {
      OwningOpRef<ModuleOp> module = expand(function(name(f), type));
      for (auto &[op, count] : countOps(*module)) {
        bool allowed = op.starts_with("arith.") || op.starts_with("func.") || op == "builtin.module" ||
                       op == "math.fma" || op == "math.sqrt" || op == "math.absf";
        EXPECT_TRUE(allowed) << op << " left of " << name(f) << " on " << type;
      }
    }
}

TEST_F(ExpandMath, KeepsTypeAndLayout) {
  const std::string type = "tensor<4x8xf32, \"layout\">";
  OwningOpRef<ModuleOp> module = expand(function("tanh", type));
  Type expected = parseType(type, &context);
  module->walk([&](arith::SubFOp op) { EXPECT_EQ(op.getType(), expected); });
}

TEST_F(ExpandMath, NarrowFloatsAreComputedInFloat) {
  std::map<std::string, int> counts = countOps(*expand(function("exp", "vector<16xbf16>")));
  EXPECT_EQ(counts["arith.extf"], 1);
  EXPECT_EQ(counts["arith.truncf"], 1);
}

TEST_F(ExpandMath, CarriesNoFastMathFlags) {
  OwningOpRef<ModuleOp> module =
      expand("func.func @f(%x: f32) -> f32 { %y = math.exp %x fastmath<fast> : f32 return %y : f32 }");
  module->walk([](arith::ArithFastMathInterface op) {
    EXPECT_EQ(op.getFastMathFlagsAttr().getValue(), arith::FastMathFlags::none);
  });
}

TEST_F(ExpandMath, LeavesTheRestAlone) {
  for (const std::string &source :
       {function("absf", "f32"), function("exp", "tensor<?xf32>"), function("exp", "vector<[4]xf32>"),
        function("exp", "f128"), function("exp", "f8E5M2"),
        function("floor", "vector<16xf32>"), function("sqrt", "f64")}) {
    std::map<std::string, int> before = countOps(*parse(source));
    EXPECT_EQ(countOps(*expand(source)), before) << source;
  }
}

TEST_F(ExpandMath, ReplacesInsideRegionsAndChains) {
  OwningOpRef<ModuleOp> module = expand(R"(
    module { func.func @f(%x: f32) -> f32 {
      %a = math.exp %x : f32
      %b = math.log %a : f32
      %c = arith.addf %a, %b : f32
      return %c : f32
    } })");
  std::map<std::string, int> counts = countOps(*module);
  EXPECT_EQ(counts.count("math.exp") + counts.count("math.log"), 0u);
}

/// 1 + erf(x) is cheaper than erf(x), whichever side the 1 stands on; not where somebody wants erf(x) itself, or the
/// sum is another one.
TEST_F(ExpandMath, SumsWithOne) {
  auto cost = [&](const std::string &source) {
    int total = 0;
    for (auto &[op, count] : countOps(*expand(source))) {
      EXPECT_TRUE(op != "math.erf" && op != "math.tanh") << source;
      if ((op.starts_with("arith.") || op.starts_with("math.")) && op != "arith.constant" && op != "arith.bitcast")
        total += count;
    }
    return total;
  };
  for (std::string name : {"erf", "tanh"})
    for (std::string type : {"f32", "vector<16xf32>"}) {
      auto sum = [&](const std::string &operands, const std::string &constant = "1.0", const std::string &more = "") {
        std::string value = type == "f32" ? constant : "dense<" + constant + ">";
        return "func.func @f(%x: " + type + ") -> " + type + " { %one = arith.constant " + value + " : " + type +
               " %y = math." + name + " %x : " + type + " %s = arith.addf " + operands + " : " + type + more +
               " return %s : " + type + " }";
      };
      int alone = cost(function(name, type));
      EXPECT_LT(cost(sum("%one, %y")), alone) << name << " " << type;
      EXPECT_LT(cost(sum("%y, %one")), alone) << name << " " << type;
      EXPECT_GT(cost(sum("%one, %y", "2.0")), alone);
      EXPECT_GT(cost(sum("%y, %y")), alone);
      EXPECT_GT(cost(sum("%one, %y", "1.0", " %p = arith.mulf %s, %y : " + type)), alone);
    }
}

/// How much code a function costs (constants and reinterpretations are free): kernels must stay small. docs/maths.md
/// gives the same numbers.
TEST_F(ExpandMath, OperationCounts) {
  struct Limit {
    Function function;
    int f32, f64;
  };
  const Limit limits[] = {{Function::Exp, 20, 25},   {Function::Exp2, 19, 24}, {Function::Log, 30, 34},
                          {Function::Log2, 28, 35},  {Function::Sin, 43, 158}, {Function::Cos, 42, 157},
                          {Function::Tanh, 29, 40},  {Function::Erf, 33, 54},  {Function::Rsqrt, 2, 2},
                          {Function::Expm1, 24, 29}, {Function::Log1p, 39, 43}};
  for (const Limit &limit : limits)
    for (const char *type : {"f32", "f64"}) {
      int total = 0;
      for (auto &[op, count] : countOps(*expand(function(name(limit.function), type))))
        if ((op.starts_with("arith.") || op.starts_with("math.")) && op != "arith.constant" && op != "arith.bitcast")
          total += count;
      std::printf("%-6s %s  %d operations\n", name(limit.function), type, total);
      EXPECT_LE(total, type == std::string("f32") ? limit.f32 : limit.f64) << name(limit.function) << " " << type;
    }
}

} // namespace
