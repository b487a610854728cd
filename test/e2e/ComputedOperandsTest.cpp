// SPDX-License-Identifier: Apache-2.0
//
// Operands of dots on warpgroups that are computed in the loop: what they are made of comes through slots, and they are
// written while the dots before are under way. In the simulator, in several orders of the threads; the result is that
// of loads that the threads make, and of dots that are waited for, bit by bit. And as PTX.
#include "PtxSupport.h"
#include "SimSupport.h"

#include "tenon/kernels/Kernels.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char *read = "where threads read it", *buffered = "is computed while the dots of the iterations before",
                     *registers = "dot takes what is computed for it from registers";

/// Two weights of 4 bits in a byte, half a step of K apart; a scale for each column and group of rows.
const Kernel int4Product("int4_product(a, b, scale, c, bm=16, bn=64, bk=128, group=128)",
                         [](View a, View b, View scale, View c, Param bm, Param bn, Param bk, Param group) {
                           promise_no_overlap();
                           auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                           Tile acc = zeros(f32, {bm, bn});
                           for (Index k : range(0, a.size(1), bk)) {
                             Tile pairs = b.load({k / 2, j * bn}, {bk / 2, bn});
                             Tile factors = scale.load({k / group, j * bn}, {1, bn}).to(f32);
                             Tile low = ((pairs << 4) >> 4).to(f32) * factors, high = (pairs >> 4).to(f32) * factors;
                             acc = dot(a.load({i * bm, k}, {bm, bk / 2}), low.to(a.dtype()), acc);
                             acc = dot(a.load({i * bm, k + bk / 2}, {bm, bk / 2}), high.to(a.dtype()), acc);
                           }
                           c.store({i * bm, j * bn}, acc.to(c.dtype()));
                         });

/// A function of the activations on their way in, over so much of K.
void storeSiluProduct(View a, View b, View c, Index i, Index j, Index depth, Param bm, Param bn, Param bk) {
  Tile acc = zeros(f32, {bm, bn});
  for (Index k : range(0, depth, bk)) {
    Tile x = a.load({i * bm, k}, {bm, bk}).to(f32);
    acc = dot((x * sigmoid(x)).to(a.dtype()), b.load({k, j * bn}, {bk, bn}), acc);
  }
  c.store({i * bm, j * bn}, acc.to(c.dtype()));
}

const Kernel siluProduct("silu_product(a, b, c, bm=128, bn=128, bk=64)",
                         [](View a, View b, View c, Param bm, Param bn, Param bk) {
                           promise_no_overlap();
                           auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                           storeSiluProduct(a, b, c, i, j, a.size(1), bm, bn, bk);
                         });

/// The same where memory says how long an instance takes: blocks take the next one when they are free.
const Kernel raggedSilu("ragged_silu(a, b, lengths, c, bm=64, bn=64, bk=64)",
                        [](View a, View b, View lengths, View c, Param bm, Param bn, Param bk) {
                          promise_no_overlap();
                          auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                          storeSiluProduct(a, b, c, i, j, lengths.at({i}), bm, bn, bk);
                        });

/// Few rows, and weights of which a function is multiplied: those of 2 : 4 sparsity that a mask keeps, squared.
const Kernel maskedSquares("masked_squares(a, b, keep, bias, c, bm=16, bn=128, bk=64)",
                           [](View a, View b, View keep, View bias, View c, Param bm, Param bn, Param bk) {
                             promise_no_overlap();
                             auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                             Tile acc = zeros(f32, {bm, bn});
                             for (Index k : range(0, a.size(1), bk)) {
                               Tile w = b.load({k, j * bn}, {bk, bn}).to(f32);
                               Tile kept = keep.load({k, j * bn}, {bk, bn}) > 0;
                               acc = dot(a.load({i * bm, k}, {bm, bk}), where(kept, w * w, 0.0f).to(a.dtype()), acc);
                             }
                             c.store({i * bm, j * bn}, acc + bias.load({0, j * bn}, {1, bn}));
                           });

/// Weights of 8 bits and a few that are not, of the same sums.
const Kernel withOutliers("with_outliers(a, b, d, c, bm=16, bn=64, bk=64)",
                          [](View a, View b, View d, View c, Param bm, Param bn, Param bk) {
                            promise_no_overlap();
                            auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                            Tile acc = zeros(f32, {bm, bn});
                            for (Index k : range(0, a.size(1), bk)) {
                              Tile x = a.load({i * bm, k}, {bm, bk});
                              acc = dot(x, exp(b.load({k, j * bn}, {bk, bn}).to(f32) * 0.01f).to(a.dtype()), acc);
                              acc = dot(x, d.load({k, j * bn}, {bk, bn}), acc);
                            }
                            c.store({i * bm, j * bn}, acc);
                          });

/// Operands that are not computed, and whose elements something else needs as well: norms of rows, sums of columns.
const Kernel cosines("cosines(a, b, c, sums, bm=64, bn=64, bk=64)",
                     [](View a, View b, View c, View sums, Param bm, Param bn, Param bk) {
                       promise_no_overlap();
                       auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                       Tile acc = zeros(f32, {bm, bn}), ofA = zeros(f32, {bm, 1}), ofB = zeros(f32, {1, bn});
                       for (Index k : range(0, a.size(1), bk)) {
                         Tile x = a.load({i * bm, k}, {bm, bk}), y = transpose(b.load({j * bn, k}, {bn, bk}));
                         acc = dot(x, y, acc);
                         ofA += sum(x.to(f32) * x.to(f32), 1);
                         ofB += sum(y.to(f32), 0);
                       }
                       c.store({i * bm, j * bn}, acc / sqrt(ofA + 1));
                       if_(i == 0, [&] { sums.store({0, j * bn}, ofB); });
                     });

/// Both operands are computed, one of two loads, for two dots that read the same left one; sums begin at a load.
const Kernel gatedProducts("gated_products(x, gate, b, d, start, c, e, bm=64, bn=64, bk=64)",
                           [](View x, View gate, View b, View d, View start, View c, View e, Param bm, Param bn,
                              Param bk) {
                             promise_no_overlap();
                             auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                             Tile first = start.load({i * bm, j * bn}, {bm, bn}), second = zeros(f32, {bm, bn});
                             for (Index k : range(0, x.size(1), bk)) {
                               Tile left = x.load({i * bm, k}, {bm, bk}) * gate.load({i * bm, k}, {bm, bk});
                               Tile right = maximum(b.load({k, j * bn}, {bk, bn}), 0);
                               first = dot(left, right, first);
                               second = dot(left, transpose(d.load({j * bn, k}, {bn, bk})), second);
                             }
                             c.store({i * bm, j * bn}, first);
                             e.store({i * bm, j * bn}, second);
                           });

/// A dot whose result the iteration itself needs reads what another, carried one reads too, before or behind it.
Kernel twoReaders(bool carriedFirst) {
  return Kernel("two_readers(x, b, d, c, e, bm=64, bn=64, bk=64)",
                [=](View x, View b, View d, View c, View e, Param bm, Param bn, Param bk) {
                  promise_no_overlap();
                  auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                  Tile carried = zeros(f32, {bm, bn}), largest = zeros(f32, {bm, bn});
                  for (Index k : range(0, x.size(1), bk)) {
                    Tile left = maximum(x.load({i * bm, k}, {bm, bk}), 0);
                    Tile first = b.load({k, j * bn}, {bk, bn}), second = d.load({k, j * bn}, {bk, bn});
                    if (carriedFirst)
                      carried = dot(left, second, carried);
                    largest = maximum(largest, dot(left, first, zeros(f32, {bm, bn})));
                    if (!carriedFirst)
                      carried = dot(left, second, carried);
                  }
                  c.store({i * bm, j * bn}, carried);
                  e.store({i * bm, j * bn}, largest);
                });
}

/// Two products in one kernel: scales are loaded before the loop of the first one and weights behind it.
const Kernel twoLayers("two_layers(x, b, scale, d, c, bm=64, bh=64, bn=64, bk=32)",
                       [](View x, View b, View scale, View d, View c, Param bm, Param bh, Param bn, Param bk) {
                         promise_no_overlap();
                         auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
                         Tile acc = zeros(f32, {bm, bn});
                         for (Index h : range(0, b.size(1), bh)) {
                           Tile factors = scale.load({h, j * bn}, {bh, bn}).to(f32);
                           Tile hidden = zeros(f32, {bm, bh});
                           for (Index k : range(0, x.size(1), bk))
                             hidden = dot(x.load({i * bm, k}, {bm, bk}), b.load({k, h}, {bk, bh}), hidden);
                           Tile weights = d.load({h, j * bn}, {bh, bn}).to(f32) * factors;
                           acc = dot(maximum(hidden, 0).to(x.dtype()), weights.to(x.dtype()), acc);
                         }
                         c.store({i * bm, j * bn}, acc);
                       });

Tensor matrix(DType dtype, int64_t rows, int64_t columns, unsigned seed) {
  double most = dtype == i8 ? 127 : 2;
  return zoo::randomTensor(dtype, {rows, columns}, seed, -most, most);
}

/// The same with rows that begin where the tensor memory accelerator cannot.
Tensor shifted(DType dtype, int64_t rows, int64_t columns, unsigned seed) {
  return matrix(dtype, rows, columns + 8, seed).slice(1, 3, columns);
}

Arguments int4Arguments(int64_t m, int64_t n, int64_t k) {
  return {matrix(bf16, m, k, 1), matrix(i8, (k + 1) / 2, n, 2), matrix(f32, (k + 127) / 128, n, 3),
          Tensor::zeros(bf16, {m, n})};
}

Arguments siluArguments(int64_t m, int64_t n, int64_t k) {
  return {matrix(bf16, m, k, 1), matrix(bf16, k, n, 2), Tensor::zeros(bf16, {m, n})};
}

Arguments raggedArguments(int64_t m, int64_t n, int64_t k) {
  Tensor lengths = Tensor::zeros(i64, {(m + 63) / 64});
  for (int64_t i = 0; i < lengths.size(0); ++i)
    lengths.setInt({i}, k * ((i * 3 + 2) % 4) / 3);
  return {matrix(bf16, m, k, 1), matrix(bf16, k, n, 2), lengths, Tensor::zeros(bf16, {m, n})};
}

/// Of whole numbers: sums are exact, whatever adds them up.
Arguments cosineArguments(int64_t m, int64_t n, int64_t k, DType dtype = bf16) {
  Tensor a = matrix(dtype, m, k, 1), b = matrix(dtype, n, k, 2);
  for (Tensor &tensor : {std::ref(a), std::ref(b)})
    forEachIndex(tensor.sizes(), [&](const std::vector<int64_t> &i) { tensor.set(i, std::round(tensor.get(i))); });
  return {a, b, Tensor::zeros(f32, {m, n}), Tensor::zeros(f32, {1, n})};
}

Arguments gatedArguments(int64_t m, int64_t n, int64_t k) {
  return {matrix(f16, m, k, 1), matrix(f16, m, k, 2),       matrix(f16, k, n, 3),      matrix(f16, n, k, 4),
          matrix(f32, m, n, 5), Tensor::zeros(f32, {m, n}), Tensor::zeros(f32, {m, n})};
}

/// The bytes of all tensors, of which the kernel writes some.
std::vector<std::vector<std::byte>> run(const Kernel &kernel, const Arguments &arguments,
                                        const LaunchOptions &options) {
  launch(kernel, arguments, options);
  std::vector<std::vector<std::byte>> all;
  for (const Argument &argument : arguments) {
    auto *begin = static_cast<const std::byte *>(argument.tensor().data());
    all.emplace_back(begin, begin + argument.tensor().bufferBytes());
  }
  return all;
}

void expectSame(const Kernel &kernel, const Arguments &arguments, LaunchOptions options,
                const std::vector<std::string> &told) {
  std::string remarks = remarksOf(kernel, arguments, options);
  for (const std::string &part : told)
    EXPECT_NE(remarks.find(part), std::string::npos) << part << "\n" << remarks;
  LaunchOptions plain = options;
  plain.compile.without = "operands-ahead,late-loads";
  remarks = remarksOf(kernel, arguments, plain);
  for (const char *part : {read, buffered, registers})
    EXPECT_EQ(remarks.find(part), std::string::npos) << remarks;
  auto expected = run(kernel, arguments, plain);
  for (int seed : {0, 1, 5}) {
    SimulatorSeed set(seed);
    EXPECT_EQ(run(kernel, arguments, options), expected) << seed;
  }
}

TEST(ComputedOperands, WeightsOf4Bits) {
  LaunchOptions few = onSimulator({{"bm", 16}, {"bn", 64}}, 4), many = onSimulator({{"bm", 64}, {"bn", 128}}, 8);
  expectSame(int4Product, int4Arguments(16, 128, 0), few, {});
  for (int64_t k : {128, 256, 384, 640})
    expectSame(int4Product, int4Arguments(16, 128, k), few, {read, registers});
  expectSame(int4Product, int4Arguments(13, 144, 512), few,
             {read, registers}); // rows and columns that end within a tile
  expectSame(int4Product, int4Arguments(70, 144, 512), many, {read, registers});
  few.compile.stages = 2;
  few.compile.cluster = 2;
  expectSame(int4Product, int4Arguments(30, 144, 640), few, {read, registers});
  few.compile.stages = 0;
  few.compile.cluster = 1;
  few.compile.split = 2;
  expectSame(int4Product, int4Arguments(16, 64, 896), few, {read, registers});
  few.compile.without = "register-operands";
  EXPECT_NE(remarksOf(int4Product, int4Arguments(16, 64, 896), few).find(buffered), std::string::npos);
}

/// Several blocks of 64 of the operand's rows in one warpgroup and in several; K that is no power of two.
TEST(ComputedOperands, FromRegisters) {
  for (auto [bm, bn, bk, warps] :
       {std::array<int, 4>{8, 128, 64, 4}, {16, 256, 32, 4}, {64, 128, 96, 8}, {3, 64, 64, 4}})
    for (bool alongK : {false, true}) {
      auto weights = [&](DType dtype, unsigned seed) {
        return alongK ? matrix(dtype, 144, 208, seed).transpose({1, 0}) : matrix(dtype, 208, 144, seed);
      };
      Arguments arguments = {matrix(f16, bm, 208, 1), weights(f16, 2), weights(i8, 3), matrix(f32, 1, 144, 4),
                             Tensor::zeros(f32, {bm, 144})};
      LaunchOptions options = onSimulator({{"bm", bm}, {"bn", bn}, {"bk", bk}}, warps);
      expectSame(maskedSquares, arguments, options, {read, registers});
    }
}

/// Integers and floats; scales of groups of rows, or of all.
TEST(ComputedOperands, WeightsOf8Bits) {
  for (DType dtype : {i8, u8, f8e4m3, f8e5m2})
    for (int64_t group : {0, 32, 64}) {
      int64_t bk = group ? group : 64, groups = group ? (200 + group - 1) / group : 1;
      DType rounded = group ? f16 : bf16;
      Tensor weights = isFloat(dtype) ? matrix(dtype, 200, 144, 2) : zoo::randomTensor(dtype, {200, 144}, 2, 0, 127);
      expectSame(zoo::dequantMatmul,
                 {matrix(rounded, 13, 200, 1), weights, matrix(f32, groups, 144, 3), Tensor::zeros(rounded, {13, 144})},
                 onSimulator({{"bm", 16}, {"bn", 64}, {"bk", bk}, {"group", group}}, 4), {read, registers});
    }
}

/// Where products of other operands are added as well, all of them go through shared memory.
TEST(ComputedOperands, OtherProductsOfTheSameSums) {
  Arguments arguments = {matrix(f16, 13, 200, 1), matrix(i8, 200, 144, 2), matrix(f16, 200, 144, 3),
                         Tensor::zeros(f32, {13, 144})};
  expectSame(withOutliers, arguments, onSimulator({}, 4), {read, buffered});
  EXPECT_EQ(remarksOf(withOutliers, arguments, onSimulator({}, 4)).find(registers), std::string::npos);
}

TEST(ComputedOperands, ActivationsOnTheirWayIn) {
  LaunchOptions options = onSimulator({}, 8);
  expectSame(siluProduct, siluArguments(136, 136, 0), options, {});
  for (int64_t k : {64, 72, 128, 200, 328}) // one iteration, two, ...; K that ends within a tile
    expectSame(siluProduct, siluArguments(136, 136, k), options, {read, buffered});
  options.compile.stages = 2;
  expectSame(siluProduct, siluArguments(264, 136, 328), options, {read, buffered});
  options.compile.stages = 0;
  options.compile.cluster = 2;
  expectSame(siluProduct, siluArguments(264, 264, 200), options, {read, buffered});
}

/// Two warpgroups that take program instances in turns: buffers and slots are each one's own.
TEST(ComputedOperands, InTurns) {
  constexpr const char *inTurns = "two warpgroups take program instances in turns";
  LaunchOptions options = onSimulator({{"bm", 64}, {"bn", 64}}, 8);
  options.compile.pingPong = true;
  for (int64_t k : {64, 328})
    expectSame(siluProduct, siluArguments(200, 136, k), options, {inTurns, read, buffered});
  expectSame(int4Product, int4Arguments(72, 144, 384), options, {inTurns, read, registers});
  expectSame(raggedSilu, raggedArguments(456, 72, 328), options, {inTurns, read, buffered});
}

TEST(ComputedOperands, InstancesOfDifferentLength) {
  LaunchOptions options = onSimulator({}, 4);
  expectSame(raggedSilu, raggedArguments(456, 72, 328), options,
             {"blocks take the next one when they are free", read, buffered});
  options.compile.cluster = 2;
  expectSame(raggedSilu, raggedArguments(456, 72, 328), options, {read, buffered});
}

/// Where all blocks share the last instances, each with a part of K; sums are then added in another order.
TEST(ComputedOperands, SharedTails) {
  LaunchOptions options = onSimulator({{"bm", 64}, {"bn", 64}}, 4);
  options.compile.shareTail = true;
  expectSame(siluProduct, siluArguments(128, 128, 640), options,
             {"the last program instances are shared by all blocks", read, buffered});
  expectSame(int4Product, int4Arguments(64, 128, 1280), options, {read, registers});
  options.compile.cluster = 2;
  expectSame(siluProduct, siluArguments(128, 192, 640), options, {read, buffered});
}

/// What a dot multiplies comes through slots even where something else reads it, which reads a slot of its own.
TEST(ComputedOperands, AlsoReadByOthers) {
  constexpr const char *bulk = "load is made by the tensor memory accelerator";
  LaunchOptions options = onSimulator({}, 4);
  expectSame(cosines, cosineArguments(72, 72, 0), options, {});
  for (int64_t k : {64, 328})
    expectSame(cosines, cosineArguments(136, 72, k), options, {bulk, read});
  expectSame(cosines, cosineArguments(136, 136, 200, f16), onSimulator({{"bm", 128}, {"bn", 128}}, 8), {bulk, read});
  options.compile.pingPong = true;
  options.compile.warps = 8;
  expectSame(cosines, cosineArguments(264, 136, 200), options, {bulk, read});
  LaunchOptions large;
  large.params = {{"bm", 128}, {"bn", 128}};
  std::string ptx = emit(cosines, cosineArguments(256, 256, 256), "ptx", large);
  EXPECT_GT(count(ptx, "wgmma.mma_async"), 0u);
  expectAssembles(ptx);
}

TEST(ComputedOperands, BothOfThem) {
  expectSame(gatedProducts, gatedArguments(72, 72, 0), onSimulator({}, 4), {});
  for (int64_t k : {64, 136, 328})
    expectSame(gatedProducts, gatedArguments(72, 72, k), onSimulator({}, 4), {read, buffered});
  expectSame(gatedProducts, gatedArguments(136, 136, 200), onSimulator({{"bm", 128}, {"bn", 64}}, 8), {read});
}

/// Of rows that begin anywhere the threads load what they need, in the iteration that needs it.
TEST(ComputedOperands, RowsThatBeginAnywhere) {
  Arguments arguments = siluArguments(136, 136, 200);
  arguments[0] = shifted(bf16, 136, 200, 1);
  expectSame(siluProduct, arguments, onSimulator({}, 8), {buffered});
  arguments = int4Arguments(16, 128, 384);
  arguments[1] = shifted(i8, 192, 128, 2);
  expectSame(int4Product, arguments, onSimulator({}, 4), {buffered});
}

/// Where loops are split, slots are so many that two blocks fit; not where somebody says how many.
TEST(ComputedOperands, TwoBlocks) {
  LaunchOptions options = onSimulator({}, 4);
  options.compile.without = "register-operands"; // which need no buffers
  auto bytes = [&] { return prepare(int4Product, int4Arguments(16, 256, 1024), options).gpu->sharedBytes; };
  constexpr int64_t halfOfAll = 113 * 1024;
  EXPECT_GT(bytes(), halfOfAll);
  options.compile.split = 2;
  EXPECT_LE(bytes(), halfOfAll);
  options.compile.stages = 8;
  EXPECT_GT(bytes(), halfOfAll);
}

/// Weights whose columns are contiguous, and scales that no transfer can bring.
TEST(ComputedOperands, TransposedWeights) {
  Arguments arguments = int4Arguments(16, 128, 512);
  arguments[1] = matrix(i8, 128, 256, 2).transpose({1, 0});
  arguments[2] = matrix(f32, 128, 4, 3).transpose({1, 0});
  expectSame(int4Product, arguments, onSimulator({}, 4), {read, registers});
}

/// Where shared memory has not room for three buffers there is one, and where not for slots besides, threads load.
TEST(ComputedOperands, LargeTiles) {
  for (auto [bk, told] : {std::pair<int64_t, std::vector<std::string>>{128, {read}}, {256, {}}}) {
    LaunchOptions options = onSimulator({{"bm", 256}, {"bn", 64}, {"bk", bk}}, 8);
    expectSame(siluProduct, siluArguments(256, 64, 520), options, told);
  }
}

/// A row of scales that one transfer cannot bring.
TEST(ComputedOperands, LongRow) {
  LaunchOptions options = onSimulator({{"bm", 64}, {"bn", 512}, {"bk", 64}}, 8);
  expectSame(int4Product, int4Arguments(64, 512, 192), options, {});
}

TEST(ComputedOperands, AlsoReadByADotThatIsWaitedFor) {
  for (bool carriedFirst : {false, true})
    expectSame(twoReaders(carriedFirst),
               {matrix(bf16, 72, 200, 1), matrix(bf16, 200, 72, 2), matrix(bf16, 200, 72, 3),
                Tensor::zeros(f32, {72, 72}), Tensor::zeros(f32, {72, 72})},
               onSimulator({}, 4), {read});
}

/// More iterations of the inner loop than slots.
TEST(ComputedOperands, LoadsAroundALoop) {
  LaunchOptions options = onSimulator({}, 4);
  options.compile.stages = 2;
  expectSame(twoLayers,
             {matrix(bf16, 64, 256, 1), matrix(bf16, 256, 128, 2), matrix(bf16, 128, 64, 3), matrix(bf16, 128, 64, 4),
              Tensor::zeros(f32, {64, 64})},
             options, {read});
}

TEST(ComputedOperands, DotsAreNotWaitedFor) {
  LaunchOptions options;
  options.params = {{"bm", 128}, {"bn", 256}};
  std::string ptx = emit(siluProduct, siluArguments(256, 512, 256), "ptx", options);
  EXPECT_GT(count(ptx, "wgmma.wait_group.sync.aligned \t1") + count(ptx, "wgmma.wait_group.sync.aligned 1"), 0u);
  expectAssembles(ptx);
  options.params = {{"bm", 16}, {"bn", 256}, {"bk", 64}};
  ptx = emit(int4Product, int4Arguments(16, 512, 1024), "ptx", options);
  EXPECT_GT(count(ptx, "}, {%r"), 0u); // registers instead of a descriptor
  expectAssembles(ptx);
  options.params = {};
  expectAssembles(emit(int4Product, int4Arguments(16, 256, 1024), "ptx", options));
  expectAssembles(emit(gatedProducts, gatedArguments(128, 128, 256), "ptx", options));
}

/// Where an operand would take more registers than there are beside the sums, it goes through shared memory.
TEST(ComputedOperands, LongStepsAreWritten) {
  LaunchOptions options;
  options.params = {{"bm", 16}, {"bn", 128}, {"bk", 128}};
  options.compile.warps = 4;
  auto fromRegisters = [&] { return count(emit(int4Product, int4Arguments(16, 512, 1024), "ptx", options), "}, {%r"); };
  EXPECT_GT(fromRegisters(), 0u);
  options.params["bk"] = 512; // 256 for each half of a byte
  EXPECT_EQ(fromRegisters(), 0u);
}

} // namespace
