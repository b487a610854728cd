// SPDX-License-Identifier: Apache-2.0
//
// Products that are more than a product, as a user might write them who has read no more than the lessons: each on the
// CPU and in the simulator, at sizes that end within a tile, of one row and of nothing. And as PTX for sm_90a, at tiles
// that one would choose there: on warpgroups, without spills.
#include "OtherSupport.h"
#include "PtxSupport.h"

#include <algorithm>

using namespace tenon;
using namespace tenon::test;

namespace {

using Sizes = std::array<int64_t, 3>; ///< m, n, k

/// sum over k of a(i, k) b(k, j)
template <class T, class A, class B> T product(int64_t k, A a, B b) {
  T sum = 0;
  for (int64_t e = 0; e < k; ++e)
    sum += a(e) * b(e);
  return sum;
}

void expectWarpgroups(const Kernel &kernel, const Problem &problem, Params params) {
  LaunchOptions options;
  options.params = std::move(params);
  std::string ptx = emit(kernel, problem.arguments, "ptx", options);
  EXPECT_GT(count(ptx, "wgmma.mma_async"), 0u) << kernel.name();
  expectAssembles(ptx);
}

//===--- A product beside one of low rank -------------------------------------------------------------------------===//

const Kernel lora("lora(x, w, a, b, y, scale, bm=64, bn=64, bk=64, r=16)",
                  [](View x, View w, View a, View b, View y, Scalar scale, Param bm, Param bn, Param bk, Param r) {
                    auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                    Tile acc = zeros(f32, {bm, bn}), low = zeros(f32, {bm, r});
                    for (Index k : range(0, x.size(1), bk)) {
                      Tile t = x.load({i * bm, k}, {bm, bk});
                      acc = dot(t, w.load({k, j * bn}, {bk, bn}), acc);
                      low = dot(t, a.load({k, 0}, {bk, r}), low);
                    }
                    acc = dot((low * scale).to(x.dtype()), b.load({0, j * bn}, {r, bn}), acc);
                    y.store({i * bm, j * bn}, acc.to(y.dtype()));
                  });

Problem loraProblem(DType type, Sizes sizes) {
  auto [m, n, k] = sizes;
  Arguments arguments = {random(type, {m, k}, 1),  random(type, {k, n}, 2),     random(type, {k, 16}, 3),
                         random(type, {16, n}, 4), Tensor::empty(type, {m, n}), 0.5};
  return problemOf(labelOf(type, {m, n, k}), arguments, {4}, {}, [type](auto one, Arguments &args) {
    using T = decltype(one);
    const Tensor &x = args[0].tensor(), &w = args[1].tensor(), &a = args[2].tensor(), &b = args[3].tensor();
    for (int64_t i = 0; i < x.size(0); ++i) {
      auto row = [&](int64_t e) { return T(x.get({i, e})); };
      T low[16];
      for (int64_t e = 0; e < 16; ++e)
        low[e] = rounded(product<T>(x.size(1), row, [&](int64_t f) { return T(a.get({f, e})); }) / 2, type);
      for (int64_t j = 0; j < w.size(1); ++j)
        args[4].tensor().set(
            {i, j}, product<T>(x.size(1), row, [&](int64_t e) { return T(w.get({e, j})); }) +
                        product<T>(16, [&](int64_t e) { return low[e]; }, [&](int64_t e) { return T(b.get({e, j})); }));
    }
  });
}

TEST(OtherProducts, OfLowRank) {
  for (DType type : {f32, bf16})
    for (Sizes sizes : {Sizes{70, 72, 136}, {1, 40, 70}, {33, 8, 0}})
      expectRightEverywhere(loraProblem(type, sizes), lora);
  expectWarpgroups(lora, loraProblem(bf16, {256, 256, 256}), {{"bm", 128}, {"bn", 256}});
}

//===--- Weights that are numbers of a table's entries, two in a byte ---------------------------------------------===//

/// The two entries of a byte become neighbours in the registers of one thread.
const Kernel codebook("codebook(x, codes, table, y, bm=64, bn=64, bk=64)",
                      [](View x, View codes, View table, View y, Param bm, Param bn, Param bk) {
                        auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                        Tile acc = zeros(f32, {bm, bn});
                        for (Index k : range(0, x.size(1), bk)) {
                          Tile both = codes.load({j * bn, k / 2}, {bn, bk / 2}).to(i32);
                          Tile low = table.gather({both & 15}), high = table.gather({both >> 4});
                          Tile w = reshape(concat({expand(low, 2), expand(high, 2)}, 2), {bn, bk});
                          acc = dot(x.load({i * bm, k}, {bm, bk}), transpose(w.to(x.dtype())), acc);
                        }
                        y.store({i * bm, j * bn}, acc.to(y.dtype()));
                      });

Problem codebookProblem(DType type, Sizes sizes) {
  auto [m, n, k] = sizes;
  Tensor codes = Tensor::empty(u8, {n, k / 2});
  codes.fillRandom(2, 0, 255);
  Arguments arguments = {random(type, {m, k}, 1), codes, random(f32, {16}, 3), Tensor::empty(type, {m, n})};
  return problemOf(labelOf(type, {m, n, k}), arguments, {3}, {}, [type](auto one, Arguments &args) {
    using T = decltype(one);
    const Tensor &x = args[0].tensor(), &codes = args[1].tensor(), &table = args[2].tensor();
    for (int64_t i = 0; i < x.size(0); ++i)
      for (int64_t j = 0; j < codes.size(0); ++j)
        args[3].tensor().set({i, j}, product<T>(
                                         x.size(1), [&](int64_t e) { return T(x.get({i, e})); },
                                         [&](int64_t e) {
                                           int64_t code = codes.getInt({j, e / 2}) >> (e % 2 * 4) & 15;
                                           return rounded(T(table.get({code})), type);
                                         }));
  });
}

TEST(OtherProducts, OfEntriesOfATable) {
  for (DType type : {f32, bf16})
    for (Sizes sizes : {Sizes{70, 72, 136}, {1, 40, 70}, {33, 8, 0}})
      expectRightEverywhere(codebookProblem(type, sizes), codebook);
  expectWarpgroups(codebook, codebookProblem(bf16, {256, 256, 256}), {{"bm", 128}, {"bn", 128}});
}

//===--- A product whose halves are rotated -----------------------------------------------------------------------===//

/// Halves of the sums' columns are other registers of the same threads.
const Kernel turned("turned(x, w, cosines, sines, y, bm=64, head=64, bk=64)",
                    [](View x, View w, View cosines, View sines, View y, Param bm, Param head, Param bk) {
                      auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), head));
                      Tile acc = zeros(f32, {bm, head});
                      for (Index k : range(0, x.size(1), bk))
                        acc = dot(x.load({i * bm, k}, {bm, bk}), w.load({k, j * head}, {bk, head}), acc);
                      Tile c = cosines.load({i * bm, 0}, {bm, head / 2}), s = sines.load({i * bm, 0}, {bm, head / 2});
                      Tile a = slice(acc, 1, 0, head / 2), b = slice(acc, 1, head / 2, head / 2);
                      y.store({i * bm, j * head}, concat({a * c - b * s, b * c + a * s}, 1).to(y.dtype()));
                    });

Problem turnedProblem(DType type, Sizes sizes, int64_t head) {
  auto [m, n, k] = sizes;
  Arguments arguments = {random(type, {m, k}, 1), random(type, {k, n}, 2), random(f32, {m, head / 2}, 3),
                         random(f32, {m, head / 2}, 4), Tensor::empty(type, {m, n})};
  return problemOf(labelOf(type, {m, n, k}), arguments, {4}, {{"head", head}}, [head](auto one, Arguments &args) {
    using T = decltype(one);
    const Tensor &x = args[0].tensor(), &w = args[1].tensor(), &c = args[2].tensor(), &s = args[3].tensor();
    for (int64_t i = 0; i < x.size(0); ++i)
      for (int64_t j = 0; j < w.size(1); ++j) {
        auto sum = [&](int64_t column) {
          return product<T>(
              x.size(1), [&](int64_t e) { return T(x.get({i, e})); }, [&](int64_t e) { return T(w.get({e, column})); });
        };
        int64_t half = head / 2, at = j % half;
        bool isFirst = j % head < half;
        T other = sum(isFirst ? j + half : j - half), turned = other * T(s.get({i, at}));
        args[4].tensor().set({i, j}, sum(j) * T(c.get({i, at})) + (isFirst ? -turned : turned));
      }
  });
}

TEST(OtherProducts, WhoseHalvesAreRotated) {
  for (DType type : {f32, bf16})
    for (Sizes sizes : {Sizes{70, 128, 136}, {1, 64, 70}, {33, 192, 0}}) {
      expectRightEverywhere(turnedProblem(type, sizes, 64), turned);
      expectRightEverywhere(turnedProblem(type, {sizes[0], 96, sizes[2]}, 96),
                            turned); // halves that are no power of two
    }
  expectWarpgroups(turned, turnedProblem(bf16, {256, 256, 256}, 128), {{"bm", 128}, {"head", 128}});
}

//===--- Three products of the same rows --------------------------------------------------------------------------===//

/// What the dots of the loop add up is more than the registers of one warpgroup hold.
const Kernel gates("gates(x, a, b, c, y, bm=128, bn=64, bk=64)",
                   [](View x, View a, View b, View c, View y, Param bm, Param bn, Param bk) {
                     auto [i, j] = grid(cdiv(y.size(0), bm), cdiv(y.size(1), bn));
                     Tile sums[3] = {zeros(f32, {bm, bn}), zeros(f32, {bm, bn}), zeros(f32, {bm, bn})};
                     for (Index k : range(0, x.size(1), bk)) {
                       Tile t = x.load({i * bm, k}, {bm, bk});
                       View of[] = {a, b, c};
                       for (int q = 0; q < 3; ++q)
                         sums[q] = dot(t, of[q].load({k, j * bn}, {bk, bn}), sums[q]);
                     }
                     y.store({i * bm, j * bn}, (sums[0] * sigmoid(sums[1]) + tanh(sums[2])).to(y.dtype()));
                   });

Problem gatesProblem(DType type, Sizes sizes) {
  auto [m, n, k] = sizes;
  Arguments arguments = {random(type, {m, k}, 1), random(type, {k, n}, 2), random(type, {k, n}, 3),
                         random(type, {k, n}, 4), Tensor::empty(type, {m, n})};
  return problemOf(labelOf(type, {m, n, k}), arguments, {4}, {}, [](auto one, Arguments &args) {
    using T = decltype(one);
    const Tensor &x = args[0].tensor(), &y = args[4].tensor();
    for (int64_t i = 0; i < y.size(0); ++i)
      for (int64_t j = 0; j < y.size(1); ++j) {
        T sums[3];
        for (size_t q = 0; q < 3; ++q)
          sums[q] = product<T>(
              x.size(1), [&](int64_t e) { return T(x.get({i, e})); },
              [&](int64_t e) { return T(args[q + 1].tensor().get({e, j})); });
        y.set({i, j}, sums[0] / (1 + std::exp(-sums[1])) + std::tanh(sums[2]));
      }
  });
}

TEST(OtherProducts, ThreeOfTheSameRows) {
  expectRightEverywhere(gatesProblem(bf16, {136, 72, 136}), gates);
  expectRightEverywhere(gatesProblem(f16, {1, 40, 70}), gates);
  expectWarpgroups(gates, gatesProblem(bf16, {256, 256, 256}), {});
  expectWarpgroups(gates, gatesProblem(f16, {256, 240, 256}), {{"bn", 80}});
}

//===--- The gradient of a linear layer ---------------------------------------------------------------------------===//

/// Both matrices are read along the other dimension than K, and the gradient of the bias reads one of them too.
const Kernel linearGradient("linear_gradient(x, g, dw, db, bm=64, bn=64, bk=64)",
                            [](View x, View g, View dw, View db, Param bm, Param bn, Param bk) {
                              auto [i, j] = grid(cdiv(dw.size(0), bm), cdiv(dw.size(1), bn));
                              Tile acc = zeros(f32, {bm, bn}), sums = zeros(f32, {1, bn});
                              for (Index k : range(0, x.size(0), bk)) {
                                Tile t = g.load({k, j * bn}, {bk, bn});
                                acc = dot(transpose(x.load({k, i * bm}, {bk, bm})), t, acc);
                                sums += sum(t.to(f32), 0);
                              }
                              dw.store({i * bm, j * bn}, acc);
                              if_(i == 0, [&] { db.store({j * bn}, reshape(sums, {bn})); });
                            });

Problem linearGradientProblem(DType type, Sizes sizes) {
  auto [m, n, k] = sizes;
  Arguments arguments = {random(type, {k, m}, 1), random(type, {k, n}, 2), Tensor::empty(f32, {m, n}),
                         Tensor::empty(f32, {n})};
  return problemOf(labelOf(type, {m, n, k}), arguments, {2, 3}, {}, [](auto one, Arguments &args) {
    using T = decltype(one);
    const Tensor &x = args[0].tensor(), &g = args[1].tensor();
    for (int64_t j = 0; j < g.size(1); ++j) {
      auto column = [&](int64_t e) { return T(g.get({e, j})); };
      args[3].tensor().set({j}, product<T>(g.size(0), column, [](int64_t) { return T(1); }));
      for (int64_t i = 0; i < x.size(1); ++i)
        args[2].tensor().set({i, j}, product<T>(g.size(0), column, [&](int64_t e) { return T(x.get({e, i})); }));
    }
  });
}

TEST(OtherProducts, GradientOfALinearLayer) {
  for (DType type : {f32, bf16})
    for (Sizes sizes : {Sizes{72, 136, 200}, {1, 40, 71}, {8, 8, 0}})
      expectRightEverywhere(linearGradientProblem(type, sizes), linearGradient);
  expectWarpgroups(linearGradient, linearGradientProblem(bf16, {256, 256, 256}), {{"bm", 128}, {"bn", 128}});
}

//===--- A loss over a product that is never stored ---------------------------------------------------------------===//

const Kernel linearLoss("linear_loss(x, w, labels, loss, bm=64, bn=64, bk=64)",
                        [](View x, View w, View labels, View loss, Param bm, Param bn, Param bk) {
                          Index i = grid(cdiv(x.size(0), bm)), n = w.size(0);
                          Tile largest = full(f32, {bm, 1}, -inf), total = zeros(f32, {bm, 1}),
                               hit = zeros(f32, {bm, 1});
                          Tile label = expand(labels.load({i * bm}, {bm}), 1);
                          for (Index j : range(0, n, bn)) {
                            Tile acc = zeros(f32, {bm, bn});
                            for (Index k : range(0, x.size(1), bk))
                              acc = dot(x.load({i * bm, k}, {bm, bk}), transpose(w.load({j, k}, {bn, bk})), acc);
                            Tile columns = iota(i64, {1, bn}, 1) + j;
                            acc = where(columns < n, acc, -inf);
                            hit += sum(where(columns == label, acc, 0), 1);
                            Tile next = maximum(largest, max(acc, 1));
                            total = total * exp(largest - next) + sum(exp(acc - next), 1);
                            largest = next;
                          }
                          loss.store({i * bm}, reshape(largest + log(total) - hit, {bm}));
                        });

Problem linearLossProblem(DType type, Sizes sizes) {
  auto [m, n, k] = sizes;
  Arguments arguments = {random(type, {m, k}, 1), random(type, {n, k}, 2), random(i64, {m}, 3, 0, double(n - 1)),
                         Tensor::empty(f32, {m})};
  return problemOf(labelOf(type, {m, n, k}), arguments, {3}, {}, [](auto one, Arguments &args) {
    using T = decltype(one);
    const Tensor &x = args[0].tensor(), &w = args[1].tensor(), &labels = args[2].tensor();
    for (int64_t i = 0; i < x.size(0); ++i) {
      std::vector<T> row(w.size(0));
      for (int64_t j = 0; j < w.size(0); ++j)
        row[j] = product<T>(
            x.size(1), [&](int64_t e) { return T(x.get({i, e})); }, [&](int64_t e) { return T(w.get({j, e})); });
      T largest = *std::max_element(row.begin(), row.end()), total = 0;
      for (T value : row)
        total += std::exp(value - largest);
      args[3].tensor().set({i}, largest + std::log(total) - row[labels.getInt({i})]);
    }
  });
}

TEST(OtherProducts, LossOverAProduct) {
  expectRightEverywhere(linearLossProblem(f32, {33, 140, 64}), linearLoss);
  for (Sizes sizes : {Sizes{70, 150, 136}, {1, 40, 71}, {5, 64, 0}})
    expectRightEverywhere(linearLossProblem(bf16, sizes), linearLoss);
  expectWarpgroups(linearLoss, linearLossProblem(bf16, {256, 512, 256}), {{"bm", 128}, {"bn", 256}});
}

//===--- The gradient of a norm -----------------------------------------------------------------------------------===//

/// No product: rows that wait for two reductions, and sums over rows by atomics, each with an address of its own.
const Kernel normGradient("norm_gradient(x, g, dy, dx, dg, rows=1, cols=512)",
                          [](View x, View g, View dy, View dx, View dg, Param rows, Param cols) {
                            Index i = grid(cdiv(x.size(0), rows));
                            Tile xt = x.load({i * rows, 0}, {rows, cols}).to(f32);
                            Tile gt = g.load({0, 0}, {1, cols}).to(f32);
                            Tile dt = dy.load({i * rows, 0}, {rows, cols}).to(f32), n = x.size(1).to(f32);
                            Tile r = rsqrt(sum(xt * xt, 1) / n + 1e-5), unit = xt * r, weighted = dt * gt;
                            Tile along = sum(weighted * unit, 1) / n, columns = iota(i64, {1, cols}, 1);
                            dx.store({i * rows, 0}, ((weighted - unit * along) * r).to(dx.dtype()));
                            dg.atomic_add({zeros(i64, {1, 1}), columns}, sum(dt * unit, 0), columns < x.size(1));
                          });

Problem normGradientProblem(DType type, int64_t rows, int64_t columns) {
  Arguments arguments = {random(type, {rows, columns}, 1), random(type, {1, columns}, 2),
                         random(type, {rows, columns}, 3), Tensor::empty(type, {rows, columns}),
                         Tensor::zeros(f32, {1, columns})};
  Problem problem = problemOf(labelOf(type, {rows, columns}), arguments, {3, 4}, {}, [](auto one, Arguments &args) {
    using T = decltype(one);
    const Tensor &x = args[0].tensor(), &g = args[1].tensor(), &dy = args[2].tensor();
    int64_t n = x.size(1);
    std::vector<T> sums(n, 0);
    for (int64_t i = 0; i < x.size(0); ++i) {
      auto at = [&](int64_t j) { return T(x.get({i, j})); };
      auto weighted = [&](int64_t j) { return T(dy.get({i, j})) * T(g.get({0, j})); };
      T r = 1 / std::sqrt(product<T>(n, at, at) / T(n) + T(1e-5)), along = product<T>(n, at, weighted) * r / T(n);
      for (int64_t j = 0; j < n; ++j) {
        args[3].tensor().set({i, j}, (weighted(j) - at(j) * r * along) * r);
        sums[j] += T(dy.get({i, j})) * at(j) * r;
      }
    }
    for (int64_t j = 0; j < n; ++j)
      args[4].tensor().set({0, j}, sums[j]);
  });
  problem.inPlace = {4};
  problem.deterministic = false; // sums of floats by atomics
  return problem;
}

TEST(OtherProducts, GradientOfANorm) {
  for (DType type : {f32, bf16})
    for (auto [rows, columns] : {std::pair<int64_t, int64_t>{5, 500}, {1, 1}, {0, 10}})
      expectRightEverywhere(normGradientProblem(type, rows, columns), normGradient);
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 4096}, {4, 4096}, {2, 8192}}) {
    LaunchOptions options;
    options.params = {{"rows", rows}, {"cols", columns}};
    expectAssembles(emit(normGradient, normGradientProblem(bf16, rows, columns).arguments, "ptx", options));
  }
}

} // namespace
