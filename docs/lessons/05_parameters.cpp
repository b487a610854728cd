// SPDX-License-Identifier: Apache-2.0
//
// Lesson 5: tunable parameters.
//
// A Param is an integer known when the kernel is compiled: a tile size, a flag, a number of stages. It has a name, so
// that a caller (or a tuner) can set it without touching the kernel, and may have a default. Each set of values is
// compiled once; what is right stays right, what changes is how fast it is.
#include "Lesson.h"

#include <tenon/tenon.h>

#include <chrono>
#include <cmath>

using namespace tenon;

static const Kernel matmul("matmul(a, b, c, bm=64, bn=64, bk=64, relu=0)",
                           [](View a, View b, View c, Param bm, Param bn, Param bk, Param relu) {
  require((a.size(0) == c.size(0)) & (b.size(1) == c.size(1)) & (a.size(1) == b.size(0)),
          "a must be M x K, b K x N and c M x N");
  promise_no_overlap();
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  if (relu) // plain C++: decided while the kernel is recorded, so there is no branch in the program
    acc = maximum(acc, 0);
  c.store({i * bm, j * bn}, acc);
});

static double milliseconds(const Arguments &arguments, const LaunchOptions &options) {
  launch(matmul, arguments, options); // compiles, and warms up
  double best = INFINITY;
  for (int i = 0; i < 5; ++i) {
    auto start = std::chrono::steady_clock::now();
    launch(matmul, arguments, options);
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count());
  }
  return best;
}

int main() {
  constexpr int64_t size = 512;
  Tensor a = Tensor::empty(f32, {size, size}), b = Tensor::empty(f32, {size, size});
  a.fillRandom(1, -1, 1);
  b.fillRandom(2, -1, 1);

  // A kernel knows its parameters, with their defaults: what a tuner starts from.
  std::printf("%s has the parameters", matmul.name().c_str());
  for (const KernelParameter &parameter : matmul.parameters())
    if (parameter.kind == ParameterKind::param)
      std::printf(" %s=%ld", parameter.name.c_str(), long(parameter.defaultValue.value_or(-1)));
  std::printf("\n");

  // The same kernel with several tile sizes. Those that are not named keep their defaults.
  Tensor first;
  double largest = 0, fastest = INFINITY, slowest = 0;
  for (const Params &params : {Params{}, {{"bm", 8}, {"bn", 8}, {"bk", 8}}, {{"bm", 16}, {"bn", 128}},
                               {{"bm", 128}, {"bn", 128}}, {{"bm", 96}, {"bn", 80}, {"bk", 128}}}) {
    LaunchOptions options;
    options.params = params;
    Tensor c = Tensor::empty(f32, {size, size});
    double time = milliseconds({a, b, c}, options);
    fastest = std::min(fastest, time);
    slowest = std::max(slowest, time);
    std::string text;
    for (const auto &[name, value] : params)
      text += name + "=" + std::to_string(value) + " ";
    std::printf("  %-24s %7.3f ms  %6.1f GFLOP/s\n", text.empty() ? "(defaults)" : text.c_str(), time,
                2.0 * size * size * size / time * 1e-6);
    if (first.elements() == 0)
      first = c;
    for (int64_t i = 0; i < size; i += 7)
      for (int64_t j = 0; j < size; j += 5)
        largest = std::max(largest, std::abs(c.get({i, j}) - first.get({i, j})));
  }
  std::printf("from the fastest to the slowest: a factor of %.1f\n", slowest / fastest);
  lesson::expect(largest < 1e-4, "every choice computes the same, up to the order of the sums");

  // A flag is a parameter too.
  LaunchOptions options;
  options.params = {{"relu", 1}};
  Tensor c = Tensor::empty(f32, {size, size});
  launch(matmul, {a, b, c}, options);
  lesson::expect(c.get({3, 4}) == std::max(0.0, first.get({3, 4})), "relu=1 is another program");

  // Names are checked, and so is what the kernel requires.
  for (const Params &params : {Params{{"bq", 64}}, Params{{"bm", 0}}})
    try {
      options.params = params;
      launch(matmul, {a, b, c}, options);
      lesson::expect(false, "should have been refused");
    } catch (const Error &error) {
      std::printf("refused: %s\n", error.what());
    }
  return lesson::finish();
}
