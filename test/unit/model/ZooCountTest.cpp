// SPDX-License-Identifier: Apache-2.0
//
// The zoo: counts against what each entry states by hand, and against the interpreter on its test shapes.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Interpreter.h"
#include "tenon/jit/Count.h"
#include "tenon/kernels/Zoo.h"
#include "tenon/lang/Kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <unordered_set>

using namespace tenon;

namespace {

LaunchOptions optionsOf(const Problem &problem) {
  LaunchOptions options;
  options.params = problem.params;
  return options;
}

model::Counts countsOf(const zoo::Entry &entry, const Problem &problem) {
  LaunchOptions options = optionsOf(problem);
  return jit::countPlan(entry.kernel, problem.arguments, options)
      .count(jit::argumentWords(entry.kernel, problem.arguments, options));
}

double volumeOf(const std::vector<int64_t> &shape) {
  double product = 1;
  for (int64_t size : shape)
    product *= static_cast<double>(size);
  return product;
}

/// Shapes at which tiles hang over the edges and one can wait for the answer.
std::vector<std::vector<int64_t>> oddShapes(const zoo::Entry &entry) {
  std::vector<std::vector<int64_t>> shapes;
  for (const auto &shape : entry.testShapes)
    if (volumeOf(shape) > 0 && volumeOf(shape) <= 70000)
      shapes.push_back(shape);
  return shapes;
}

const std::vector<std::string> matrixKernels = {"matmul", "matmul_bias_gelu", "attention"};
bool isMatrix(const zoo::Entry &entry) {
  return std::find(matrixKernels.begin(), matrixKernels.end(), entry.name) != matrixKernels.end();
}
/// The entries whose statements are exact; others have products of tiles whose count is a matter of taste.
const std::vector<std::string> elementwise = {"vector_add", "gelu",       "gelu_tanh", "bias_gelu", "swiglu", "softmax",
                                              "layer_norm", "rms_norm",   "rotary",    "dropout",   "cross_entropy"};

TEST(ZooCount, BytesAreTheStatedOnes) {
  for (const std::string &name : elementwise) {
    const zoo::Entry &entry = zoo::find(name);
    for (DType dtype : {f32, bf16})
      for (const auto &shape : oddShapes(entry)) {
        Problem problem = entry.makeProblem(shape, dtype, 1);
        model::Counts counts = countsOf(entry, problem);
        EXPECT_EQ(counts.refusal, "") << name;
        EXPECT_DOUBLE_EQ(counts.bytes(), problem.bytes) << name << " " << problem.label;
      }
  }
  for (const std::string &name : matrixKernels) {
    const zoo::Entry &entry = zoo::find(name);
    for (const auto &shape : oddShapes(entry)) {
      Problem problem = entry.makeProblem(shape, f32, 1);
      EXPECT_DOUBLE_EQ(countsOf(entry, problem).bytes(), problem.bytes) << name << " " << problem.label;
    }
  }
}

TEST(ZooCount, FlopsAreTheStatedOnes) {
  // An element's operations are stated; those of a row, of which there is one for many elements, are not.
  for (const char *name : {"layer_norm", "rms_norm", "cross_entropy"}) {
    const zoo::Entry &entry = zoo::find(name);
    Problem problem = entry.makeProblem(std::vector<int64_t>{4, 32768}, f32, 1);
    model::Counts counts = countsOf(entry, problem);
    EXPECT_NEAR(counts.useful.flops(), problem.flops, 0.01 * problem.flops) << name;
  }
  for (const char *name : {"vector_add", "gelu", "gelu_tanh", "bias_gelu", "swiglu", "softmax", "rotary", "dropout"}) {
    const zoo::Entry &entry = zoo::find(name);
    for (const auto &shape : oddShapes(entry)) {
      Problem problem = entry.makeProblem(shape, f32, 1);
      EXPECT_DOUBLE_EQ(countsOf(entry, problem).useful.flops(), problem.flops) << name << " " << problem.label;
    }
  }
  const zoo::Entry &matmul = zoo::find("matmul");
  for (const auto &shape : oddShapes(matmul)) {
    Problem problem = matmul.makeProblem(shape, f32, 1);
    EXPECT_DOUBLE_EQ(countsOf(matmul, problem).useful.matrixFlops(), problem.flops) << problem.label;
  }
  // Blocks on the diagonal are computed whole, and half of each is masked.
  const zoo::Entry &attention = zoo::find("attention");
  Problem problem = attention.makeProblem(std::vector<int64_t>{1, 8, 8, 1024, 64}, f32, 1);
  double stated = problem.flops, counted = countsOf(attention, problem).useful.matrixFlops();
  EXPECT_GT(counted, stated);
  EXPECT_LT(counted, 1.08 * stated);
}

TEST(ZooCount, AFewClassesAreEnough) {
  // Counting costs what its classes cost: the tuner counts hundreds of configurations at a time.
  auto notes = [](const zoo::Entry &entry, const Problem &problem, int64_t maxClasses) {
    LaunchOptions options = optionsOf(problem);
    return jit::countPlan(entry.kernel, problem.arguments, options)
        .count(jit::argumentWords(entry.kernel, problem.arguments, options), maxClasses)
        .notes;
  };
  for (const char *name :
       {"gelu", "bias_gelu", "swiglu", "softmax", "layer_norm", "rms_norm", "dropout", "cross_entropy"}) {
    const zoo::Entry &entry = zoo::find(name);
    Problem problem = entry.makeProblem(std::vector<int64_t>{1001, 3001}, f32, 1);
    EXPECT_EQ(notes(entry, problem, 20), notes(entry, problem, 20000)) << name;
  }
  const zoo::Entry &matmul = zoo::find("matmul");
  Problem problem = matmul.makeProblem(std::vector<int64_t>{1001, 1003, 1005}, f32, 1);
  EXPECT_EQ(notes(matmul, problem, 30), notes(matmul, problem, 20000));
  // A causal loop is of another length for each block of queries.
  const zoo::Entry &attention = zoo::find("attention");
  problem = attention.makeProblem(std::vector<int64_t>{1, 2, 2, 4001, 64}, f32, 1);
  EXPECT_EQ(notes(attention, problem, 600), notes(attention, problem, 20000));
}

TEST(ZooCount, IntegersAreNoFlops) {
  const zoo::Entry &entry = zoo::find("vector_add");
  Problem problem = entry.makeProblem(std::vector<int64_t>{1000}, i32, 1);
  model::Counts counts = countsOf(entry, problem);
  EXPECT_DOUBLE_EQ(counts.useful.flops(), 0);
  EXPECT_DOUBLE_EQ(counts.useful.integer, 1000);
}

TEST(ZooCount, TellsWhatMemoryDecides) {
  auto isLeftToMemory = [](const char *name) {
    const zoo::Entry &entry = zoo::find(name);
    return countsOf(entry, entry.makeProblem(entry.demoShape, f32, 1)).isLeftToMemory;
  };
  EXPECT_TRUE(isLeftToMemory("grouped_matmul"));
  EXPECT_FALSE(isLeftToMemory("matmul"));
  EXPECT_FALSE(isLeftToMemory("attention")) << "loops of different lengths, all of them known";

  // Of each row of blocks, as many columns of a as `lengths` says.
  Kernel cut("cut(a, b, lengths, c)", [](View a, View b, View lengths, View c) {
    Index i = grid(cdiv(c.size(0), 16));
    Tile sum = zeros(f32, {16, 16});
    for (Index k : range(0, Index(lengths.at({i})), 16))
      sum = dot(a.load({i * 16, k}, {16, 16}), b.load({k, 0}, {16, 16}), sum);
    c.store({i * 16, 0}, sum);
  });
  Arguments arguments = {Tensor::zeros(f32, {64, 64}), Tensor::zeros(f32, {64, 16}), Tensor::zeros(i32, {4}),
                         Tensor::zeros(f32, {64, 16})};
  EXPECT_TRUE(jit::countPlan(cut, arguments, {}).count(jit::argumentWords(cut, arguments, {})).isLeftToMemory);
}

TEST(ZooCount, RefusesWhatTheLaunchRefuses) {
  const zoo::Entry &entry = zoo::find("softmax");
  Problem problem = entry.makeProblem(std::vector<int64_t>{4, 100}, f32, 1);
  problem.params["cols"] = 16;
  EXPECT_NE(countsOf(entry, problem).refusal.find("the tile must span the row"), std::string::npos);
}

/// The launch of a problem in the interpreter, with every access.
class Watched {
public:
  struct Seen {
    double requested = 0;
    std::unordered_set<const void *> unique;
  };

  Watched(const zoo::Entry &entry, const Problem &problem) {
    tile::loadTileDialects(context_);
    LaunchOptions options = optionsOf(problem);
    std::string text = emit(entry.kernel, problem.arguments, "tile", options);
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context_));
    std::vector<std::pair<const char *, const char *>> places;
    for (const Argument &argument : problem.arguments) {
      const char *begin = argument.isTensor() ? static_cast<const char *>(argument.tensor().data()) : nullptr;
      size_t bytes = argument.isTensor() ? argument.tensor().elements() * sizeOf(argument.tensor().dtype()) : 0;
      places.emplace_back(begin, begin + bytes);
    }
    read.resize(places.size());
    written.resize(places.size());
    interpret::Options watch;
    watch.access = [&](const void *address, size_t bytes, bool isWrite) {
      for (size_t i = 0; i < places.size(); ++i)
        if (address >= places[i].first && address < places[i].second) {
          Seen &seen = (isWrite ? written : read)[i];
          seen.requested += static_cast<double>(bytes);
          if (seen.unique.insert(address).second)
            uniqueBytes += static_cast<double>(bytes);
        }
    };
    std::vector<int64_t> words = jit::argumentWords(entry.kernel, problem.arguments, options);
    error = interpret::interpretLaunch(*module_->getOps<mlir::func::FuncOp>().begin(), words, watch);
  }

  std::vector<Seen> read, written;
  double uniqueBytes = 0;
  std::string error;

private:
  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST(ZooCount, AgreesWithTheInterpreter) {
  for (const zoo::Entry &entry : zoo::entries()) {
    int shapes = 0;
    for (const auto &shape : oddShapes(entry)) {
      if (volumeOf(shape) > (isMatrix(entry) ? 5000 : 20000) || shapes == 4)
        continue;
      ++shapes;
      Problem problem = entry.makeProblem(shape, entry.dtypes.front(), 1);
      model::Counts counts = countsOf(entry, problem);
      Watched watched(entry, problem);
      ASSERT_EQ(watched.error, "") << entry.name;
      for (const model::ViewCounts &view : counts.views) {
        ASSERT_GE(view.argument, 0);
        auto number = static_cast<size_t>(view.argument);
        std::string label = entry.name + " " + problem.label + " " + view.name;
        for (auto [traffic, seen] : {std::pair(&view.read, &watched.read[number]),
                                     std::pair(&view.written, &watched.written[number])}) {
          double unique = static_cast<double>(seen->unique.size()) * view.elementBytes;
          if (traffic->exact) {
            EXPECT_DOUBLE_EQ(traffic->requested, seen->requested) << label;
            EXPECT_DOUBLE_EQ(traffic->compulsory, unique) << label;
          } else {
            EXPECT_GE(traffic->requested, seen->requested) << label;
            EXPECT_GE(traffic->compulsory, unique) << label;
          }
        }
      }
    }
    EXPECT_GT(shapes, 0) << entry.name;
  }
}

} // namespace
