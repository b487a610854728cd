// SPDX-License-Identifier: Apache-2.0
//
// Lesson 10: streams, run-time scalars and workspace.
//
// launch() without a stream runs the kernel and returns when it is done. With a stream it queues the work and returns
// at once; the stream works through its queue in order. Two streams have no order between them except through events.
#include "Lesson.h"

#include <tenon/tenon.h>

#include <cmath>

using namespace tenon;

// A Scalar is a number given at each launch: another value is not another compilation. An Index is the same for
// integers.
static const Kernel axpy("axpy(a, x, y, block=1024)", [](Scalar a, View x, View y, Param block) {
  Index at = grid(cdiv(x.size(0), block)) * block;
  y.store({at}, a * x.load({at}, {block}) + y.load({at}, {block}));
});

// The sum of a long vector: one instance alone would leave the other cores idle. So each of `splits` instances sums its
// share and leaves the result in the workspace, memory that the instances of one launch share and that is zero when it
// starts. The last one to finish, which it knows from an atomic counter, adds the shares up. They are added in a fixed
// order, so the result is the same every time, however the instances raced.
static const Kernel total("total(x, out, splits, block=1024, most=64)",
                          [](View x, View out, Index splits, Param block, Param most) {
  require((splits >= 1) & (splits <= most), "splits must be at least 1 and at most `most`");
  View shares = workspace(f32, {splits});
  View done = workspace(i32, {1});
  Index split = grid(splits);

  Index length = cdiv(cdiv(x.size(0), block), splits) * block; // of a share, in whole tiles
  Tile sums = zeros(f32, {block});
  for (Index at : range(split * length, minimum((split + 1) * length, x.size(0)), block))
    sums += x.load({at}, {block});
  shares.store({split}, sum(sums, 0));

  Tile before = done.atomic_add({zeros(i32, {1})}, full(i32, {1}, 1));
  if_(scalar(before).to(i64) == splits - 1, [&] {
    out.store({0}, sum(shares.load({0}, {most}), 0)); // past the end of the shares the padding is zero
  });
});

static const Kernel positive("positive(x, block=256)", [](View x, Param block) {
  Index at = grid(cdiv(x.size(0), block)) * block;
  device_assert(x.load({at}, {block}, 1) > 0, "every element must be positive");
});

int main() {
  constexpr int64_t n = 1 << 20;
  Tensor x = Tensor::empty(f32, {n}), y = Tensor::zeros(f32, {n}), sum = Tensor::empty(f32, {1});
  x.fill(1);

  // In order: three updates, then the sum. None of these calls waits.
  Stream stream;
  LaunchOptions queued;
  queued.stream = &stream;
  Event start, end;
  stream.record(start);
  for (double a : {1.0, 2.0, 0.5})
    launch(axpy, {a, x, y}, queued);
  launch(total, {y, sum, 8}, queued);
  stream.record(end);
  std::printf("queued four launches; idle already: %s\n", stream.idle() ? "yes" : "no");
  stream.synchronize();
  std::printf("sum = %.1f after %.2f ms\n", sum.get({0}), elapsedMilliseconds(start, end));
  lesson::expect(sum.get({0}) == 3.5 * n, "1 + 2 + 0.5, a million times");
  lesson::expect(prepare(axpy, {7.0, x, y}).fromMemory, "three values of a, one compilation");

  // The split sum is the same from run to run, and whatever number of threads there is.
  x.fillRandom(1, -1, 1);
  bool same = true;
  launch(total, {x, sum, 13});
  double first = sum.get({0});
  for (int run = 0; run < 20; ++run) {
    LaunchOptions options;
    options.threads = run % 4 + 1;
    launch(total, {x, sum, 13}, options);
    same &= sum.get({0}) == first;
  }
  double exact = 0;
  for (int64_t i = 0; i < n; ++i)
    exact += x.get({i});
  std::printf("sum of random numbers: %.4f, in double precision %.4f\n", first, exact);
  lesson::expect(same, "20 runs on 1 to 4 threads: the same bits");
  lesson::expect(std::abs(first - exact) < 0.05, "and right");

  // Two streams, ordered by an event: the second waits for the first, the caller for nobody.
  Stream other;
  Event filled;
  stream.enqueue([=] { y.fill(2); }); // any C++ can be queued
  stream.record(filled);
  other.wait(filled);
  LaunchOptions second;
  second.stream = &other;
  launch(total, {y, sum, 4}, second);
  other.synchronize();
  lesson::expect(sum.get({0}) == 2.0 * n, "the second stream saw what the first had written");

  // An error that only shows while running is thrown by synchronize(), and what was queued behind it is skipped.
  y.set({12345}, -1);
  launch(positive, {y}, queued);
  launch(total, {y, sum, 4}, queued);
  try {
    stream.synchronize();
    lesson::expect(false, "the assertion should have failed");
  } catch (const Error &error) {
    std::printf("failed: %s\n", error.what());
  }
  lesson::expect(sum.get({0}) == 2.0 * n, "the sum behind the failed launch was skipped");
  stream.synchronize();
  lesson::expect(stream.idle(), "the stream is good again");
  return lesson::finish();
}
