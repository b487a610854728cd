// SPDX-License-Identifier: Apache-2.0
//
// Lesson 7: proving a kernel right.
//
// "Close enough" needs a rule, or every test invents its own. Tenon has one judge: a kernel may be at most twice as far
// from a reference in high precision as the straightforward computation in the same precision is, plus a small floor.
// Along the way it looks for what comparing results alone would miss: outputs not written, inputs changed, writes next
// to the tensors, NaN in the wrong places, two runs that differ.
#include "Lesson.h"

#include <tenon/tenon.h>

#include <cmath>

using namespace tenon;

// Root-mean-square norm of each row, y = x / sqrt(mean(x^2) + eps), and four versions with a mistake in each.
enum Mistake : int64_t { none, wrongMean, lowPrecision, forgetsLastRow, spoilsInput };

static const Kernel rmsNorm("rms_norm(x, y, eps, cols, mistake=0)",
                            [](View x, View y, Scalar eps, Param cols, Param mistake) {
  require(x.size(1) <= cols, "the tile must span the row");
  Index row = mistake == forgetsLastRow ? grid(x.size(0) - 1) : grid(x.size(0));
  Tile t = x.load({row, 0}, {1, cols});
  Tile squares = t * t;
  if (mistake == lowPrecision)
    squares = squares.to(bf16).to(f32);
  Tile count = x.size(1).to(f32);
  if (mistake == wrongMean) // a classic: the size of the tile. It is right in every test whose rows happen to fill it.
    count = full(f32, {1, 1}, cols);
  Tile scale = rsqrt(sum(squares, 1) / count + eps);
  y.store({row, 0}, t * scale);
  if (mistake == spoilsInput)
    x.store({row, 0}, t * 2);
});

// The mathematics, written for reading. T is double for the reference and float for the plain computation; what matters
// is that it is simple enough to be believed.
template <class T> static void norm(Arguments &arguments) {
  const Tensor &x = arguments[0].tensor(), &y = arguments[1].tensor();
  T eps = static_cast<T>(std::get<double>(arguments[2].value()));
  for (int64_t i = 0; i < x.size(0); ++i) {
    T total = 0;
    for (int64_t j = 0; j < x.size(1); ++j)
      total += static_cast<T>(x.get({i, j})) * static_cast<T>(x.get({i, j}));
    T scale = 1 / std::sqrt(total / static_cast<T>(x.size(1)) + eps);
    for (int64_t j = 0; j < x.size(1); ++j)
      y.set({i, j}, static_cast<T>(x.get({i, j})) * scale);
  }
}

// Every instance writes the same element: which of them is last is nobody's decision.
static const Kernel racy("racy(x, y)", [](View x, View y) {
  Index i = grid(x.size(0));
  y.store({0}, x.load({i}, {1}));
});

static Problem problem(int64_t rows, int64_t cols) {
  Problem p;
  p.label = std::to_string(rows) + "x" + std::to_string(cols) + " f32";
  Tensor x = Tensor::empty(f32, {rows, cols});
  x.fillRandom(1, -3, 3);
  p.arguments = {x, Tensor::empty(f32, {rows, cols}), 1e-6};
  p.outputs = {1};           // argument 1 is written; the others must come back unchanged
  p.reference = norm<double>; // called with every float tensor widened to f64
  p.plain = norm<float>;      // called with the tensors as they are
  p.params = {{"cols", 1024}};
  return p;
}

int main() {
  for (auto [rows, cols] : {std::pair(7, 1024), std::pair(5, 1000), std::pair(1, 1), std::pair(0, 10)}) {
    Problem p = problem(rows, cols);
    Verdict verdict = verify(p, rmsNorm);
    std::printf("%-12s error %.1e, plain %.1e, allowed %.1e %s\n", p.label.c_str(), verdict.error, verdict.plainError,
                verdict.allowed, verdict.reason.c_str());
    lesson::expect(verdict.passed, "the kernel is right");
  }

  const char *names[] = {"none", "wrong mean", "low precision", "forgets the last row", "spoils its input"};
  for (int64_t mistake : {wrongMean, lowPrecision, forgetsLastRow, spoilsInput}) {
    Problem p = problem(5, 1000);
    p.params["mistake"] = mistake;
    Verdict verdict = verify(p, rmsNorm);
    std::printf("planted: %s\n  judged: %s\n", names[mistake], verdict.reason.c_str());
    lesson::expect(!verdict.passed, "caught");
  }

  // Why odd shapes matter: where rows fill the tile, the wrong mean is right.
  Problem even = problem(5, 1024);
  even.params["mistake"] = wrongMean;
  lesson::expect(verify(even, rmsNorm).passed, "the wrong mean passes on 1024 columns: test odd shapes as well");

  // The judge takes anything that can be called with arguments: a loop of your own, say.
  Problem p = problem(5, 1000);
  lesson::expect(verify(p, [](const Arguments &arguments) {
                   Arguments copy = arguments;
                   norm<float>(copy);
                 }).passed, "a hand-written loop under the same judge");

  // The same kernel elsewhere: on the interpreter, slow and right by definition, and on the simulator of a GPU.
  LaunchOptions elsewhere;
  for (Target target : {Target::interpreter, Target::sim}) {
    elsewhere.target = target;
    lesson::expect(verify(p, rmsNorm, elsewhere).passed, "right there, too");
  }

  // The simulator looks for races, which the CPU does not: there a race is a result that happens to be one or the other.
  Tensor from = Tensor::empty(f32, {8}), to = Tensor::zeros(f32, {1});
  from.fillRandom(2, 1, 2);
  launch(racy, {from, to});
  try {
    launch(racy, {from, to}, elsewhere);
    lesson::expect(false, "the race is found");
  } catch (const Error &error) {
    std::printf("%s\n", error.what());
  }
  return lesson::finish();
}
