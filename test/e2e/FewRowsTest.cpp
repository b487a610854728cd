// SPDX-License-Identifier: Apache-2.0
//
// Products of a few rows: on warpgroups they are columns, padded to a multiple of 8. Any number of rows a tile, one as
// well, of matrices, of vectors and of views with more dimensions; in the simulator, which finds barriers that wait for
// bytes that never come and accumulators that are not handed on.
#include "SimSupport.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const Kernel few("few(a, b, c, bm, bn=64, bk=64)", [](View a, View b, View c, Param bm, Param bn, Param bk) {
  promise_no_overlap();
  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, a.size(1), bk))
    acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  c.store({i * bm, j * bn}, acc.to(c.dtype()));
});

/// One row, found in the second dimension of three; a vector; the row is loaded before the loop.
const Kernel oneOfMany("one_of_many(a, b, c, h, bn=64, bk=128)",
                       [](View a, View b, View c, Index h, Param bn, Param bk) {
                         promise_no_overlap();
                         auto [s, j] = grid(a.size(0), cdiv(c.size(1), bn));
                         Tile row = reshape(a.load({s, h, 0}, {1, 1, bk}), {1, bk});
                         c.store({s, j * bn}, dot(row, b.load({0, j * bn}, {bk, bn})).to(c.dtype()));
                       });

const Kernel ofVector("of_vector(a, b, c, bn=64, bk=64)", [](View a, View b, View c, Param bn, Param bk) {
  promise_no_overlap();
  Index j = grid(cdiv(c.size(0), bn));
  Tile acc = zeros(f32, {1, bn});
  for (Index k : range(0, a.size(0), bk))
    acc = dot(reshape(a.load({k}, {bk}), {1, bk}), b.load({k, j * bn}, {bk, bn}), acc);
  c.store({j * bn}, reshape(acc, {bn}).to(c.dtype()));
});

/// By the CPU, whose products are summed in f32 as well: of bf16 numbers of few bits, exactly.
void expectAsOnCpu(const Kernel &kernel, Arguments arguments, size_t output, LaunchOptions options) {
  launch(kernel, arguments, {options.params});
  std::vector<double> wanted = valuesOf(arguments[output].tensor());
  arguments[output].tensor().fillBytes(0xff);
  launch(kernel, arguments, options);
  EXPECT_EQ(valuesOf(arguments[output].tensor()), wanted) << kernel.name();
}

Tensor small(IndexList sizes, uint64_t seed) {
  Tensor integers = Tensor::empty(i32, sizes), tensor = Tensor::empty(bf16, sizes);
  integers.fillRandom(seed, -8, 8);
  forEachIndex(tensor.sizes(), [&](const std::vector<int64_t> &i) { tensor.set(i, double(integers.getInt(i))); });
  return tensor;
}

TEST(FewRows, AnyNumber) {
  for (int64_t bm : {1, 2, 3, 7, 8, 9, 10, 15, 16, 17, 25, 33, 40, 63}) {
    SCOPED_TRACE(bm);
    Arguments arguments = {small({70, 128}, 1), small({128, 64}, 2), Tensor::zeros(f32, {70, 64})};
    expectAsOnCpu(few, arguments, 2, onSimulator({{"bm", bm}}));
  }
  Arguments arguments = {small({70, 128}, 1), small({128, 64}, 2), Tensor::zeros(f32, {70, 64})};
  expectParts(remarksOf(few, arguments, onSimulator({{"bm", 10}})), {"dot of 10 x 64 x 64: wgmma"});
  expectParts(remarksOf(few, arguments, onSimulator({{"bm", 9}})),
              {"not wgmma: its rows are one more than a multiple"});
}

TEST(FewRows, OneOfMany) {
  for (int64_t h : {0, 1, 2}) {
    Arguments arguments = {small({4, 3, 128}, 1), small({128, 72}, 2), Tensor::zeros(f32, {4, 72}), h};
    expectAsOnCpu(oneOfMany, arguments, 2, onSimulator({}));
  }
}

TEST(FewRows, Vector) {
  for (int64_t k : {0, 64, 200}) {
    Arguments arguments = {small({k}, 1), small({k, 128}, 2), Tensor::zeros(f32, {128})};
    expectAsOnCpu(ofVector, arguments, 2, onSimulator({}));
  }
}

} // namespace
