// SPDX-License-Identifier: Apache-2.0
//
// Lesson 9: branches, gather and scatter, atomics, random numbers.
//
// A mixture of experts sends each token to one of several experts. This is the bookkeeping around it: choose an expert
// per token, count the tokens of each, give every token a place in its expert's queue, move the tokens there; and
// dropout.
#include "Lesson.h"

#include <tenon/tenon.h>

#include <cmath>
#include <set>

using namespace tenon;

// 1. Choose and count. Several instances add to the same counters, so the additions are atomic; what an atomic returns
//    is what was there before, which is at once the token's place in the queue.
static const Kernel route("route(logits, expert, place, counts, block=16, experts)",
                          [](View logits, View expert, View place, View counts, Param block, Param experts) {
  Index at = grid(cdiv(logits.size(0), block)) * block;
  Tile score = logits.load({at, 0}, {block, experts}, -inf);
  // The largest score of each row, and the first column that has it: where() gives the others a number too large.
  Tile column = iota(i64, {block, experts}, 1);
  Tile best = reshape(min(where(score == max(score, 1), column, experts), 1), {block});

  // Rows past the end are switched off by a mask: nothing is added for them.
  Tile real = iota(i64, {block}, 0) + at < logits.size(0);
  Tile before = counts.atomic_add({best}, full(i32, {block}, 1), real);
  expert.store({at}, best.to(i32)); // stores past the end are dropped anyway
  place.store({at}, before);
});

// 2. Move. Row t of x goes to row (start of its expert's queue + its place). The indices are tiles: a gather reads the
//    queue's start for each token, a scatter writes each row to where it belongs.
static const Kernel permute("permute(x, expert, place, starts, y, block=16, dim)",
                            [](View x, View expert, View place, View starts, View y, Param block, Param dim) {
  require(x.size(1) <= dim, "the tile must span the row");
  promise_no_overlap();
  Index at = grid(cdiv(x.size(0), block)) * block;
  Tile e = expert.load({at}, {block}, -1);                     // -1 past the end: outside every view below
  Tile target = starts.gather({e}, e >= 0) + place.load({at}, {block});
  Tile rows = expand(where(e >= 0, target, -1), 1);            // {block, 1}
  Tile columns = iota(i32, {1, dim}, 1);                       // {1, dim}: the two broadcast to {block, dim}
  y.scatter({rows, columns}, x.load({at, 0}, {block, dim}));   // what lies outside y is dropped
});

// 3. A branch: if_() is decided at run time, once per instance, and only one side runs. Variables assigned in it keep
//    their old value where the other side runs. Here a block of zeros skips the arithmetic.
static const Kernel activate("activate(x, y, skipped, block=64)", [](View x, View y, View skipped, Param block) {
  Index at = grid(cdiv(x.size(0), block)) * block;
  Tile t = x.load({at}, {block});
  Tile result = t;
  if_(scalar(any(t != 0, 0)), [&] {
    result = t * tanh(exp(t));
  }).else_([&] {
    skipped.atomic_add({zeros(i32, {1})}, full(i32, {1}, 1));
  });
  y.store({at}, result);
});

// 4. Random numbers come from a counter, here the element's position: no state, no order. Any instance can draw any
//    number, and the mask of the forward pass can be drawn again in the backward pass instead of being stored.
static const Kernel drop("drop(x, y, probability, seed, block=256)",
                         [](View x, View y, Scalar probability, Index seed, Param block) {
  Index at = grid(cdiv(x.size(0), block)) * block;
  Tile position = iota(i64, {block}, 0) + at;
  y.store({at}, dropout(x.load({at}, {block}), probability, seed, position));
});

int main() {
  constexpr int64_t tokens = 100, experts = 6, dim = 24;
  Tensor logits = Tensor::empty(f32, {tokens, experts}), x = Tensor::empty(f32, {tokens, dim});
  logits.fillRandom(1, -1, 1);
  x.fillRandom(2, -1, 1);

  Tensor expert = Tensor::empty(i32, {tokens}), place = Tensor::empty(i32, {tokens});
  Tensor counts = Tensor::zeros(i32, {experts}), starts = Tensor::zeros(i32, {experts});
  LaunchOptions options;
  options.params = {{"experts", experts}};
  launch(route, {logits, expert, place, counts}, options);
  int64_t total = 0;
  std::printf("tokens per expert:");
  for (int64_t e = 0; e < experts; ++e) {
    starts.setInt({e}, total);
    total += counts.getInt({e});
    std::printf(" %ld", long(counts.getInt({e})));
  }
  std::printf("\n");
  bool best = true;
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t e = 0; e < experts; ++e)
      best &= logits.get({t, e}) <= logits.get({t, expert.getInt({t})});
    places.insert({expert.getInt({t}), place.getInt({t})});
  }
  lesson::expect(best, "every token went to its best expert");
  lesson::expect(total == tokens && places.size() == tokens, "counted once each, and no place was given twice");

  // Which token got which place may differ from run to run, as the instances race; that each has its own may not.
  Tensor y = Tensor::empty(f32, {tokens, dim});
  options.params = {{"dim", 32}};
  launch(permute, {x, expert, place, starts, y}, options);
  bool moved = true;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t d = 0; d < dim; ++d)
      moved &= y.get({starts.getInt({expert.getInt({t})}) + place.getInt({t}), d}) == x.get({t, d});
  lesson::expect(moved, "each row stands in its expert's queue");

  Tensor sparse = Tensor::zeros(f32, {1000}), active = Tensor::empty(f32, {1000}), skipped = Tensor::zeros(i32, {1});
  sparse.set({100}, 1.5);
  launch(activate, {sparse, active, skipped});
  std::printf("%ld of 16 blocks skipped, f(1.5) = %g\n", long(skipped.getInt({0})), active.get({100}));
  lesson::expect(skipped.getInt({0}) == 15, "15 of 16 blocks took the other branch");
  lesson::expect(std::abs(active.get({100}) - 1.5 * std::tanh(std::exp(1.5))) < 1e-6, "and one was computed");

  constexpr int64_t n = 100000;
  Tensor ones = Tensor::empty(f32, {n}), a = Tensor::empty(f32, {n}), b = Tensor::empty(f32, {n});
  ones.fill(1);
  launch(drop, {ones, a, 0.25, 7});
  options.params = {{"block", 1000}};
  launch(drop, {ones, b, 0.25, 7}, options);
  int64_t zeros = 0, different = 0;
  for (int64_t i = 0; i < n; ++i) {
    zeros += a.get({i}) == 0;
    different += a.get({i}) != b.get({i});
  }
  std::printf("dropout: %.2f%% dropped, the others are %g\n", 100.0 * zeros / n, a.get({1}) ? a.get({1}) : a.get({2}));
  lesson::expect(std::abs(zeros / double(n) - 0.25) < 0.01, "a quarter is dropped");
  lesson::expect(different == 0, "the same elements whatever the tile size");
  return lesson::finish();
}
