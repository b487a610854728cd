// SPDX-License-Identifier: Apache-2.0
//
// The zoo where it hurts: views with odd strides, NaN and infinity, inputs that are outputs, other tile sizes.
#include "tenon/kernels/CpuTiles.h"
#include "tenon/kernels/Problems.h"
#include "tenon/kernels/dropout/Reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace tenon;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr Target targets[] = {Target::cpu, Target::interpreter, Target::sim};

LaunchOptions optionsFor(const Params &params, Target target) {
  LaunchOptions options;
  options.params = params;
  options.target = target;
  return options;
}

void expectRight(const Problem &problem, const Kernel &kernel, const Params &params = {}) {
  for (Target target : targets) {
    Verdict verdict = verify(problem, kernel, optionsFor(params, target));
    EXPECT_TRUE(verdict.passed) << kernel.name() << " " << problem.label << " on " << nameOf(target) << ": "
                                << verdict.reason;
  }
}

/// The error of a launch, empty if there is none.
std::string errorOf(const Problem &problem, const Kernel &kernel, const Params &params, Target target) {
  LaunchOptions options = optionsFor(params, target);
  options.params.insert(problem.params.begin(), problem.params.end());
  try {
    launch(kernel, problem.arguments, options);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

Problem problemOf(const char *name, std::vector<int64_t> shape, DType dtype = f32) {
  return zoo::find(name).makeProblem(shape, dtype, /*seed=*/5);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Strides
//===--------------------------------------------------------------------------------------------------------------===//

/// Another tensor of the same shape and content, laid out differently inside a larger one.
using Layout = Tensor (*)(DType, std::span<const int64_t>);

/// A box cut out of a larger tensor.
Tensor boxed(DType type, std::span<const int64_t> sizes) {
  std::vector<int64_t> larger(sizes.begin(), sizes.end());
  for (int64_t &size : larger)
    size += 3;
  Tensor tensor = Tensor::zeros(type, larger);
  for (size_t d = 0; d < sizes.size(); ++d)
    tensor = tensor.slice(static_cast<int64_t>(d), 1, sizes[d]);
  return tensor;
}

/// Every second element in every dimension.
Tensor spread(DType type, std::span<const int64_t> sizes) {
  std::vector<int64_t> larger(sizes.begin(), sizes.end());
  for (int64_t &size : larger)
    size *= 2;
  Tensor tensor = Tensor::zeros(type, larger);
  for (size_t d = 0; d < sizes.size(); ++d)
    tensor = tensor.slice(static_cast<int64_t>(d), 0, sizes[d], 2);
  return tensor;
}

/// Column-major: the first dimension is the dense one.
Tensor columnMajor(DType type, std::span<const int64_t> sizes) {
  std::vector<int64_t> reversed(sizes.rbegin(), sizes.rend()), order;
  for (size_t d = sizes.size(); d-- > 0;)
    order.push_back(static_cast<int64_t>(d));
  return Tensor::zeros(type, reversed).transpose(order);
}

/// Every dimension runs towards lower addresses.
Tensor backwards(DType type, std::span<const int64_t> sizes) {
  Tensor tensor = Tensor::zeros(type, sizes);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 0)
      tensor = tensor.slice(static_cast<int64_t>(d), sizes[d] - 1, sizes[d], -1);
  return tensor;
}

Tensor relaid(const Tensor &tensor, Layout layout) {
  Tensor copy = layout(tensor.dtype(), tensor.sizes());
  if (isFloat(tensor.dtype()))
    setValues(copy, valuesOf<double>(tensor));
  else
    setValues(copy, valuesOf<int64_t>(tensor));
  return copy;
}

struct LayoutCase {
  const zoo::Entry *entry;
  DType dtype;
  const char *name;
  Layout layout;
};

std::vector<LayoutCase> layoutCases() {
  std::vector<LayoutCase> cases;
  for (const zoo::Entry &entry : zoo::entries())
    for (DType dtype : {f32, bf16}) {
      cases.push_back({&entry, dtype, "boxed", boxed});
      cases.push_back({&entry, dtype, "spread", spread});
      cases.push_back({&entry, dtype, "columnMajor", columnMajor});
      cases.push_back({&entry, dtype, "backwards", backwards});
    }
  return cases;
}

class Strides : public testing::TestWithParam<LayoutCase> {};
INSTANTIATE_TEST_SUITE_P(Zoo, Strides, testing::ValuesIn(layoutCases()), [](const auto &info) {
  return info.param.entry->name + "_" + std::string(nameOf(info.param.dtype)) + "_" + info.param.name;
});

/// A shape with an edge in every dimension.
std::vector<int64_t> oddShape(const zoo::Entry &entry) {
  if (entry.name == "attention")
    return {2, 4, 2, 37, 20};
  if (entry.name == "rotary")
    return {5, 11, 34};
  if (entry.dimensions.size() == 3)
    return {35, 41, 39};
  if (entry.dimensions.size() == 4)
    return {3, 35, 21, 19};
  return entry.dimensions.size() == 1 ? std::vector<int64_t>{4500} : std::vector<int64_t>{19, 77};
}

TEST_P(Strides, OfEveryArgument) {
  const LayoutCase &c = GetParam();
  Problem problem = c.entry->makeProblem(oddShape(*c.entry), c.dtype, 3);
  for (Argument &argument : problem.arguments)
    if (argument.isTensor())
      argument = relaid(argument.tensor(), c.layout);
  expectRight(problem, c.entry->kernel);
}

TEST_P(Strides, OfInputsOnly) {
  const LayoutCase &c = GetParam();
  Problem problem = c.entry->makeProblem(oddShape(*c.entry), c.dtype, 3);
  for (size_t i = 0; i < problem.arguments.size(); ++i)
    if (problem.arguments[i].isTensor() && i != problem.outputs.back())
      problem.arguments[i] = relaid(problem.arguments[i].tensor(), c.layout);
  expectRight(problem, c.entry->kernel);
}

TEST(ZooIsa, OlderProcessorsAgreeToo) {
  for (const zoo::Entry &entry : zoo::entries())
    for (DType dtype : {f32, bf16})
      for (const char *isa : {"avx2", "baseline", "amx-emulated"}) {
        LaunchOptions options;
        options.compile.isa = isa;
        Verdict verdict = verify(entry.makeProblem(oddShape(entry), dtype, 3), entry.kernel, options);
        EXPECT_TRUE(verdict.passed) << entry.name << " " << nameOf(dtype) << " " << isa << ": " << verdict.reason;
      }
}

TEST(ZooStrides, HalvesOfOneTensorAreGateAndUp) {
  Problem problem = problemOf("swiglu", {19, 77});
  Tensor packed = Tensor::zeros(f32, {19, 154});
  packed.fillRandom(1, -4, 4);
  problem.arguments[0] = packed.slice(1, 0, 77);
  problem.arguments[1] = packed.slice(1, 77, 77);
  expectRight(problem, zoo::swiglu);
}

TEST(ZooStrides, OneRowServesAll) {
  // A stride of zero: every row of x is the same memory.
  Problem problem = problemOf("softmax", {5, 33});
  Tensor row = Tensor::zeros(f32, {33});
  row.fillRandom(1, -4, 4);
  problem.arguments[0] = Tensor::borrow(row.data(), row.bufferBytes(), f32, {5, 33}, {0, 1});
  expectRight(problem, zoo::softmax);
}

TEST(ZooStrides, TransposedOperandsOfMatmul) {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true}) {
      Problem problem = problemOf("matmul", {35, 41, 39});
      if (transposeA)
        problem.arguments[0] = relaid(problem.arguments[0].tensor(), columnMajor);
      if (transposeB)
        problem.arguments[1] = relaid(problem.arguments[1].tensor(), columnMajor);
      expectRight(problem, zoo::matmul);
    }
}

//===--------------------------------------------------------------------------------------------------------------===//
// NaN and infinity
//===--------------------------------------------------------------------------------------------------------------===//

class SpecialValues : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Zoo, SpecialValues, testing::Values(f32, f16, bf16, f64),
                         [](const auto &info) { return std::string(nameOf(info.param)); });

/// Rows 1.. of a matrix: some -inf, all -inf, a NaN first, a NaN last, +inf, both infinities, signed zeros.
void spoil(const Tensor &x) {
  int64_t last = x.size(1) - 1;
  for (int64_t col = 0; col <= last; ++col) {
    if (col % 3 == 0)
      x.set({1, col}, -inf);
    x.set({2, col}, -inf);
    x.set({7, col}, col % 2 ? 0.0 : -0.0);
  }
  x.set({3, 0}, nan);
  x.set({4, last}, nan);
  x.set({5, last / 2}, inf);
  x.set({6, 0}, inf);
  x.set({6, last}, -inf);
}

TEST_P(SpecialValues, InRows) {
  for (const char *name : {"gelu", "gelu_tanh", "softmax", "dropout"}) {
    Problem problem = problemOf(name, {9, 41}, GetParam());
    spoil(problem.arguments[0].tensor());
    expectRight(problem, zoo::find(name).kernel);
  }
}

TEST_P(SpecialValues, InEitherInput) {
  for (const char *name : {"swiglu", "layer_norm"})
    for (size_t argument : {0, 1}) {
      Problem problem = problemOf(name, {9, 41}, GetParam());
      spoil(problem.arguments[argument].tensor());
      expectRight(problem, zoo::find(name).kernel);
    }
}

TEST_P(SpecialValues, InNorms) {
  Problem problem = problemOf("rms_norm", {9, 41}, GetParam());
  spoil(problem.arguments[0].tensor());
  problem.arguments[1].tensor().set({5}, nan);
  problem.arguments[1].tensor().set({6}, inf);
  expectRight(problem, zoo::rmsNorm);
}

TEST_P(SpecialValues, InLogits) {
  Problem problem = problemOf("cross_entropy", {9, 41}, GetParam());
  spoil(problem.arguments[0].tensor());
  for (int64_t row = 0; row < 9; ++row)
    problem.arguments[1].tensor().setInt({row}, row * 4);
  problem.arguments[0].tensor().slice(0, 8, 1).slice(1, 0, 20).fill(-inf); // a first block without a finite logit
  expectRight(problem, zoo::crossEntropy);
  expectRight(problem, zoo::crossEntropy, {{"cols", 16}, {"rows", 2}});
  expectRight(problem, zoo::crossEntropy, {{"cols", 16}, {"rows", 2}, {"slots", 4}, {"run", 2}});
}

TEST_P(SpecialValues, InTheOperandsOfMatmul) {
  for (zoo::Activation activation : {zoo::none, zoo::relu, zoo::geluExact, zoo::silu}) {
    Problem problem = zoo::matmulProblem({12, 41, 11, /*bias=*/true, activation}, GetParam(), 5);
    spoil(problem.arguments[1].tensor().slice(0, 0, 9)); // rows of b
    problem.arguments[0].tensor().fill(0);               // 0 * inf is NaN, and only where it is multiplied
    for (int64_t i = 0; i < 11; ++i)
      problem.arguments[0].tensor().set({i, i}, 1 + i);
    expectRight(problem, zoo::matmul);
  }
}

TEST_P(SpecialValues, ANanReachesOnlyTheQueriesThatSeeIt) {
  Problem problem = zoo::attentionProblem({1, 2, 1, 40, 40, 16, /*causal=*/true}, GetParam(), 5);
  problem.arguments[1].tensor().set({0, 0, 30, 3}, nan);
  problem.arguments[0].tensor().set({0, 1, 2, 0}, nan);
  expectRight(problem, zoo::attention);
  problem.arguments[0].tensor().set({0, 1, 5, 0}, inf);
  expectRight(problem, zoo::attention);
}

TEST_P(SpecialValues, LargeNumbersDoNotOverflowOnTheWay) {
  double large = GetParam() == f16 ? 30000 : GetParam() == f64 ? 1e300 : 1e38;
  for (const char *name : {"softmax", "cross_entropy"}) {
    Problem problem = problemOf(name, {9, 41}, GetParam());
    problem.arguments[0].tensor().set({0, 3}, large);
    problem.arguments[0].tensor().set({1, 3}, -large);
    for (int64_t col = 0; col < 41; ++col) {
      problem.arguments[0].tensor().set({2, col}, large);
      problem.arguments[0].tensor().set({4, col}, -large);
    }
    expectRight(problem, zoo::find(name).kernel);
    if (std::string_view(name) == "cross_entropy")
      expectRight(problem, zoo::crossEntropy, {{"cols", 16}, {"slots", 4}, {"run", 2}});
  }
}

TEST_P(SpecialValues, SumsInSlotsAreAsAccurate) {
  // Rising logits, so that each step raises the largest; and large ones, of which a product with log2(e) rounds much.
  for (double scale : {1.0, 300.0}) {
    Problem problem = problemOf("cross_entropy", {3, 200}, GetParam());
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t col = 0; col < 200; ++col)
        problem.arguments[0].tensor().set({row, col}, scale * (row + 0.05 * col));
    expectRight(problem, zoo::crossEntropy, {{"cols", 16}, {"slots", 8}, {"run", 1}});
    expectRight(problem, zoo::crossEntropy, {{"cols", 32}, {"slots", 2}, {"run", 4}});
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Memory that is both read and written
//===--------------------------------------------------------------------------------------------------------------===//

TEST(ZooInPlace, AnInputMayBeTheOutput) {
  struct {
    const char *name;
    size_t input, output;
    std::vector<int64_t> shape;
  } cases[] = {{"vector_add", 0, 2, {5000}},   {"vector_add", 1, 2, {5000}}, {"gelu", 0, 1, {19, 77}},
               {"swiglu", 0, 2, {19, 77}},     {"swiglu", 1, 2, {19, 77}},   {"softmax", 0, 1, {19, 77}},
               {"layer_norm", 0, 4, {19, 77}}, {"layer_norm", 1, 5, {19, 77}}, {"rms_norm", 0, 2, {19, 77}},
               {"rotary", 0, 3, {5, 11, 34}},  {"dropout", 0, 1, {19, 77}},  {"bias_gelu", 0, 2, {19, 77}}};
  for (const auto &c : cases)
    for (DType dtype : {f32, f16}) {
      Problem problem = problemOf(c.name, c.shape, dtype);
      problem.arguments[c.output] = problem.arguments[c.input];
      expectRight(problem, zoo::find(c.name).kernel);
    }
}

TEST(ZooInPlace, MatmulAndAttentionRefuse) {
  Problem matmul = problemOf("matmul", {17, 17, 17}), attention = problemOf("attention", {1, 1, 1, 17, 16});
  matmul.arguments[3] = matmul.arguments[0];
  attention.arguments[3] = attention.arguments[2];
  for (Target target : targets) {
    EXPECT_NE(errorOf(matmul, zoo::matmul, {}, target), "");
    EXPECT_NE(errorOf(attention, zoo::attention, {}, target), "");
  }
}

//===--------------------------------------------------------------------------------------------------------------===//
// Variants and tile sizes
//===--------------------------------------------------------------------------------------------------------------===//

TEST(ZooVariants, EpiloguesOfMatmul) {
  for (bool bias : {false, true})
    for (zoo::Activation activation : {zoo::none, zoo::relu, zoo::geluExact, zoo::silu})
      for (DType dtype : {f32, bf16})
        expectRight(zoo::matmulProblem({35, 41, 39, bias, activation}, dtype, 5), zoo::matmul);
}

TEST(ZooVariants, KindsOfAttention) {
  zoo::AttentionShape shapes[] = {
      {1, 2, 2, 33, 33, 16, false}, // every query sees every key
      {1, 6, 2, 17, 70, 16, false}, // three heads share a key head; more keys than queries
      {1, 6, 1, 17, 70, 16, true},  // a continued sequence: 53 keys came before
      {2, 1, 1, 1, 100, 24, true},  // decoding: one query
      {1, 1, 1, 40, 10, 16, true},  // the first 30 queries see nothing and give zero
      {1, 2, 1, 70, 33, 16, true},  // whole blocks of queries see nothing
      {1, 1, 1, 5, 0, 16, false},   // no key at all
  };
  for (const zoo::AttentionShape &shape : shapes)
    for (DType dtype : {f32, f16})
      expectRight(zoo::attentionProblem(shape, dtype, 5), zoo::attention);
}

TEST(ZooVariants, AttentionWithScaledQueries) {
  for (bool causal : {false, true})
    for (DType dtype : {f32, f64}) {
      Problem problem = zoo::attentionProblem({1, 2, 1, 150, 150, 24, causal}, dtype, 5);
      for (int threads : {1, 4}) {
        Params tiles = problem.cpuParams(threads);
        EXPECT_EQ(tiles["scaled"], 1);
        expectRight(problem, zoo::attention, tiles);
      }
    }
  Problem halves = zoo::attentionProblem({1, 1, 1, 20, 20, 16, false}, bf16, 5);
  EXPECT_EQ(halves.cpuParams(1)["scaled"], 0);
  EXPECT_NE(errorOf(halves, zoo::attention, {{"scaled", 1}}, Target::cpu).find("can be scaled ahead"),
            std::string::npos);
}

// The memory that a program instance needs is that of its tiles: the code for 131072 keys is the code for 4096, scratch
// and all, and there is no workspace.
TEST(ZooVariants, AttentionOverVeryManyKeys) {
  for (DType dtype : {f32, bf16}) {
    std::set<std::string> keys;
    for (int64_t length : {4096, 131072}) {
      Problem problem = zoo::attentionProblem({1, 1, 1, 8, length, 64, false}, dtype, 5);
      LaunchOptions options = optionsFor(problem.params, Target::cpu);
      Verdict verdict = verify(problem, zoo::attention, options);
      EXPECT_TRUE(verdict.passed) << problem.label << ": " << verdict.reason;
      keys.insert(prepare(zoo::attention, problem.arguments, options).key);
    }
    EXPECT_EQ(keys.size(), 1u) << nameOf(dtype);
  }
}

TEST(ZooVariants, ScoresOfMinusInfinityCountForNothing) {
  // The first 40 keys are out of sight for every query, so the running maximum starts at minus infinity.
  Problem problem = zoo::attentionProblem({1, 1, 1, 8, 70, 16, false}, f32, 5);
  problem.arguments[0].tensor().fill(1);
  problem.arguments[1].tensor().slice(2, 0, 40).slice(3, 0, 1).fill(-inf);
  expectRight(problem, zoo::attention);
}

TEST(ZooTiles, SizesNeedNotBePowersOfTwo) {
  Problem problem = problemOf("matmul", {65, 70, 50});
  expectRight(problem, zoo::matmul, {{"bm", 24}, {"bn", 48}, {"bk", 7}});
  expectRight(problem, zoo::matmul, {{"bm", 1}, {"bn", 70}, {"bk", 50}});
  expectRight(problem, zoo::matmul, {{"bm", 80}, {"bn", 96}, {"bk", 64}}); // larger than the matrix
  Problem rows = problemOf("softmax", {19, 77});
  expectRight(rows, zoo::softmax, {{"rows", 3}, {"cols", 77}});
  expectRight(rows, zoo::softmax, {{"rows", 20}, {"cols", 100}});
  Problem scores = problemOf("attention", {1, 2, 1, 50, 20});
  expectRight(scores, zoo::attention, {{"bm", 12}, {"bn", 20}, {"dim", 20}});
  Problem loss = problemOf("cross_entropy", {5, 100});
  expectRight(loss, zoo::crossEntropy, {{"rows", 3}, {"cols", 7}});
}

TEST(ZooTiles, LongRowsHaveAnInstanceEachWhereTheyOverlap) {
  auto rows = [](int64_t cols, bool overlaps) {
    Params tiles = zoo::fullRowCpuTiles(cols, overlaps);
    EXPECT_GE(tiles.at("cols"), cols);
    return tiles.at("rows");
  };
  EXPECT_EQ(rows(1024, true), 1);
  EXPECT_EQ(rows(1024, false), 4);
  EXPECT_EQ(rows(1001, true), 4);  // short
  EXPECT_EQ(rows(1030, true), 3);  // the tile hangs over the end
  EXPECT_EQ(rows(5000, false), 1); // wide
}

TEST(ZooTiles, ATileThatDoesNotSpanTheRowIsRefused) {
  for (Target target : targets)
    for (const char *name : {"softmax", "layer_norm", "rms_norm"}) {
      std::string error = errorOf(problemOf(name, {19, 77}), zoo::find(name).kernel, {{"cols", 64}}, target);
      EXPECT_NE(error.find("span the row"), std::string::npos) << error;
    }
}

TEST(ZooTiles, ShapesThatDoNotFitAreRefused) {
  Problem problem = problemOf("softmax", {19, 77});
  problem.arguments[1] = Tensor::zeros(f32, {19, 78});
  for (Target target : targets)
    EXPECT_NE(errorOf(problem, zoo::softmax, {{"cols", 128}}, target).find("same shape"), std::string::npos);
}

TEST(ZooDropout, DoesNotDependOnTileSizes) {
  Problem problem = problemOf("dropout", {19, 77});
  expectRight(problem, zoo::dropout, {{"rows", 5}, {"cols", 13}});
  problem.arguments[2] = 0.0; // keep all
  expectRight(problem, zoo::dropout);
}

TEST(ZooDropout, ReferencePhiloxMatchesThePublishedVector) {
  // Random123's known-answer test for zero key and counter.
  std::array<uint32_t, 4> published = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(zoo::philoxWords(0, 0), published);
  for (uint64_t position = 0; position < 4; ++position)
    EXPECT_EQ(zoo::randomWord(0, position), published[position]);
}

TEST(ZooDropout, DropsAboutAsManyAsAsked) {
  Problem problem = problemOf("dropout", {100, 1000});
  launch(zoo::dropout, problem.arguments, optionsFor(problem.params, Target::cpu));
  std::vector<double> values = valuesOf<double>(problem.arguments[1].tensor());
  auto dropped = static_cast<double>(std::count(values.begin(), values.end(), 0.0));
  EXPECT_NEAR(dropped / 1e5, 0.1, 0.005);
}

} // namespace
