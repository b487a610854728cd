// SPDX-License-Identifier: Apache-2.0
//
// Lesson 4: loops, and values carried around them.
//
// A matrix product needs a loop whose length is known only at run time. range() is such a loop: the C++ body runs once,
// while the kernel is recorded, and becomes the body of a loop in the program. Variables that it assigns to are carried
// from one iteration to the next, as you would expect of C++.
#include "Lesson.h"

#include <tenon/tenon.h>

#include <cmath>

using namespace tenon;

// One tile of c for each instance. bm, bn and bk are plain integers in here: known when the kernel is compiled.
static const Kernel matmul("matmul(a, b, c, bm=32, bn=48, bk=16)",
                           [](View a, View b, View c, Param bm, Param bn, Param bk) {
  require((a.size(0) == c.size(0)) & (b.size(1) == c.size(1)) & (a.size(1) == b.size(0)),
          "a must be M x K, b K x N and c M x N");
  promise_no_overlap(); // c is neither a nor b; checked at launch, and worth something to the compiler
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));

  // The accumulator is f32 whatever a and b are: dot() of f16 or bf16 tiles multiplies and adds in f32.
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  c.store({i * bm, j * bn}, acc.to(c.dtype())); // rounded once, here
});

// Two variables may start from the same value and go their own ways: each C++ variable is carried by itself.
static const Kernel fibonacci("fibonacci(out)", [](View out) {
  Index last = grid(1);          // one instance, so this is 0
  Tile a = full(i64, {1}, 1);
  Tile b = a;                    // a copy of the value, not another name for the variable
  for (Index k : range(last, out.size(0))) {
    out.store({k}, a);
    Tile next = a + b;           // made anew in each iteration: not carried
    a = b;
    b = next;
  }
});

// What a loop cannot do is change a variable's shape or type on the way round, or be left early: the body is recorded
// once, so both are refused.
static const Kernel grows("grows(out)", [](View out) {
  Index i = grid(1);
  Tile t = zeros(f32, {4});
  for ([[maybe_unused]] Index k : range(0, 3))
    t = concat({t, t}, 0);
  out.store({i}, t);
});
static const Kernel leaves("leaves(out)", [](View out) {
  Index i = grid(1);
  for (Index k : range(0, 10)) {
    out.store({i + k}, full(f32, {1}, 1));
    break;
  }
});

// A plain C++ loop over a constant also works, and is something else: it is unrolled, because the C++ really runs it.
static const Kernel power("power(x, y, n=3, block=64)", [](View x, View y, Param n, Param block) {
  Index at = grid(cdiv(x.size(0), block)) * block;
  Tile t = x.load({at}, {block}), result = full(x.dtype(), {block}, 1);
  for (int64_t k = 0; k < n; ++k) // n multiplications in the program, and no loop
    result *= t;
  y.store({at}, result);
});

int main() {
  constexpr int64_t m = 70, n = 90, k = 110; // no multiple of any tile size
  for (DType type : {f32, bf16}) {
    Tensor a = Tensor::empty(type, {m, k}), b = Tensor::empty(type, {k, n}), c = Tensor::empty(type, {m, n});
    a.fillRandom(1, -1, 1);
    b.fillRandom(2, -1, 1);
    launch(matmul, {a, b, c});
    double worst = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double wanted = 0;
        for (int64_t l = 0; l < k; ++l)
          wanted += a.get({i, l}) * b.get({l, j});
        worst = std::max(worst, std::abs(c.get({i, j}) - wanted));
      }
    std::printf("matmul in %s: largest error %.1e\n", std::string(nameOf(type)).c_str(), worst);
    lesson::expect(worst < (type == f32 ? 1e-5 : 0.05), "as exact as the type allows");
  }

  Tensor numbers = Tensor::empty(i64, {50});
  launch(fibonacci, {numbers});
  std::printf("fibonacci: %ld %ld %ld %ld %ld ... %ld\n", long(numbers.getInt({0})), long(numbers.getInt({1})),
              long(numbers.getInt({2})), long(numbers.getInt({3})), long(numbers.getInt({4})),
              long(numbers.getInt({49})));
  lesson::expect(numbers.getInt({49}) == 12586269025, "two carried variables, 50 iterations");

  Tensor x = Tensor::empty(f32, {100}), y = Tensor::empty(f32, {100});
  x.fill(2);
  LaunchOptions tenth;
  tenth.params = {{"n", 10}};
  launch(power, {x, y}, tenth);
  lesson::expect(y.get({99}) == 1024, "a C++ loop of ten multiplications");

  for (const Kernel *wrong : {&grows, &leaves})
    try {
      launch(*wrong, {y});
      lesson::expect(false, "should have been refused");
    } catch (const Error &error) {
      std::printf("refused: %s\n", error.what());
    }
  return lesson::finish();
}
