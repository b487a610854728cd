// SPDX-License-Identifier: Apache-2.0
//
// Kernels of other shapes than the zoo's, as a user might write them: several dots in a loop that feed each other,
// loops in loops, branches around whole loops, tiles whose place is found in memory. Each on the CPU and in the
// simulator, on warpgroups and without, in several orders of the threads, at sizes that end within a tile, of one and
// of nothing.
#include "OtherSupport.h"

#include <algorithm>
#include <numeric>

using namespace tenon;
using namespace tenon::test;

namespace {

//===--- A loss with smoothed labels, and its gradient ------------------------------------------------------------===//

/// Two loops over the row in one branch, one in the other.
const Kernel
    smoothedLoss("smoothed_loss(x, labels, loss, dx, smooth, ignored, cols=256)",
                 [](View x, View labels, View loss, View dx, Scalar smooth, Index ignored, Param cols) {
                   Index row = grid(x.size(0)), n = x.size(1), label = labels.at({row});
                   Tile columns = iota(i64, {1, cols}, 1);
                   if_(label == ignored, [&] {
                     loss.store({row}, zeros(f32, {1}));
                     for (Index c : range(0, n, cols))
                       dx.store({row, c}, zeros(dx.dtype(), {1, cols}));
                   }).else_([&] {
                     Tile largest = full(f32, {1, 1}, -inf), sums = zeros(f32, {1, 1}), total = zeros(f32, {1, 1});
                     for (Index c : range(0, n, cols)) {
                       Tile t = x.load({row, c}, {1, cols}, -inf).to(f32);
                       Tile next = maximum(largest, max(t, 1));
                       sums = sums * exp(largest - next) + sum(exp(t - next), 1);
                       total += sum(where(columns + c < n, t, 0), 1);
                       largest = next;
                     }
                     Tile lse = largest + log(sums), count = n.to(f32);
                     loss.store({row},
                                reshape(lse - (1 - smooth) * x.at({row, label}).to(f32) - smooth * total / count, {1}));
                     for (Index c : range(0, n, cols)) {
                       Tile p = exp(x.load({row, c}, {1, cols}, -inf).to(f32) - lse);
                       Tile target = where(columns + c == label, (1 - smooth).to(f32), 0);
                       dx.store({row, c}, (p - smooth / count - target).to(dx.dtype()));
                     }
                   });
                 });

Problem smoothed(DType type, int64_t rows, int64_t cols) {
  Arguments arguments = {random(type, {rows, cols}, 1, -4, 4),
                         random(i64, {rows}, 2, -1, double(cols - 1)),
                         Tensor::empty(f32, {rows}),
                         Tensor::empty(type, {rows, cols}),
                         0.1,
                         -1};
  return problemOf(labelOf(type, {rows, cols}), arguments, {2, 3}, {}, [](auto one, Arguments &a) {
    using T = decltype(one);
    const Tensor &x = a[0].tensor(), &labels = a[1].tensor(), &loss = a[2].tensor(), &dx = a[3].tensor();
    for (int64_t i = 0; i < x.size(0); ++i) {
      int64_t n = x.size(1), label = labels.getInt({i});
      T largest = -INFINITY, sums = 0, total = 0, smooth = T(0.1);
      for (int64_t j = 0; j < n; ++j) {
        largest = std::max(largest, T(x.get({i, j})));
        total += T(x.get({i, j}));
      }
      for (int64_t j = 0; j < n; ++j)
        sums += std::exp(T(x.get({i, j})) - largest);
      T lse = largest + std::log(sums);
      loss.set({i}, label == -1 ? 0 : lse - (1 - smooth) * T(x.get({i, label})) - smooth * total / T(n));
      for (int64_t j = 0; j < n; ++j)
        dx.set({i, j},
               label == -1 ? 0 : std::exp(T(x.get({i, j})) - lse) - smooth / T(n) - (j == label ? 1 - smooth : 0));
    }
  });
}

TEST(OtherKernels, SmoothedLoss) {
  for (DType type : {f32, bf16})
    for (auto [rows, cols] : {std::pair<int64_t, int64_t>{6, 1000}, {1, 1}, {0, 10}, {4, 256}})
      expectRightEverywhere(smoothed(type, rows, cols), smoothedLoss);
}

//===--- A state that is carried from chunk to chunk --------------------------------------------------------------===//

/// As in Mamba 2: four dots, of which one makes the state that another reads in the next iteration; a scan for decays.
const Kernel stateSpace("state_space(x, b, c, decay, y, last, chunk=64, n=64, p=64)",
                        [](View x, View b, View c, View decay, View y, View last, Param chunk, Param n, Param p) {
                          promise_no_overlap();
                          Index head = grid(x.size(0));
                          Tile state = zeros(f32, {n, p});
                          Tile before = iota(i32, {chunk, 1}, 0) >= iota(i32, {1, chunk}, 1);
                          for (Index t : range(0, x.size(1), chunk)) {
                            Tile xt = reshape(x.load({head, t, 0}, {1, chunk, p}), {chunk, p});
                            Tile bt = reshape(b.load({head, t, 0}, {1, chunk, n}), {chunk, n});
                            Tile ct = reshape(c.load({head, t, 0}, {1, chunk, n}), {chunk, n});
                            Tile sums = cumsum(reshape(decay.load({head, t}, {1, chunk}), {chunk, 1}), 0);
                            Tile within = dot(ct, transpose(bt)) * exp(where(before, sums - transpose(sums), -inf));
                            Tile carried = dot((ct.to(f32) * exp(sums)).to(x.dtype()), state.to(x.dtype()));
                            y.store({head, t, 0}, expand(dot(within.to(x.dtype()), xt, carried), 0).to(y.dtype()));
                            Tile whole = slice(sums, 0, chunk - 1, 1);
                            Tile weighted = (bt.to(f32) * exp(whole - sums)).to(x.dtype());
                            state = dot(transpose(weighted), xt, state * exp(whole));
                          }
                          last.store({head, 0, 0}, expand(state, 0));
                        });

Problem stateProblem(DType type, int64_t heads, int64_t steps, int64_t n, int64_t p) {
  Arguments arguments = {random(type, {heads, steps, p}, 1),          random(type, {heads, steps, n}, 2, -.3, .3),
                         random(type, {heads, steps, n}, 3, -.3, .3), random(f32, {heads, steps}, 4, -.2, 0),
                         Tensor::empty(type, {heads, steps, p}),      Tensor::empty(f32, {heads, n, p})};
  auto compute = [type](auto one, Arguments &a) {
    using T = decltype(one);
    const Tensor &x = a[0].tensor(), &b = a[1].tensor(), &c = a[2].tensor(), &decay = a[3].tensor();
    int64_t n = b.size(2), p = x.size(2);
    for (int64_t h = 0; h < x.size(0); ++h) {
      std::vector<T> state(n * p, 0);
      for (int64_t t = 0; t < x.size(1); ++t) {
        T factor = std::exp(T(decay.get({h, t})));
        for (int64_t i = 0; i < n * p; ++i)
          state[i] = rounded(state[i] * factor + T(b.get({h, t, i / p})) * T(x.get({h, t, i % p})), type);
        for (int64_t j = 0; j < p; ++j) {
          T sum = 0;
          for (int64_t i = 0; i < n; ++i)
            sum += T(c.get({h, t, i})) * state[i * p + j];
          a[4].tensor().set({h, t, j}, sum);
        }
      }
      for (int64_t i = 0; i < n * p; ++i)
        a[5].tensor().set({h, i / p, i % p}, state[i]);
    }
  };
  return problemOf(labelOf(type, {heads, steps, n, p}), arguments, {4, 5}, {}, compute);
}

TEST(OtherKernels, StateSpace) {
  for (DType type : {f32, bf16}) {
    expectRightEverywhere(stateProblem(type, 2, 150, 64, 64), stateSpace);
    expectRightEverywhere(stateProblem(type, 1, 70, 50, 40), stateSpace);
    expectRightEverywhere(stateProblem(type, 1, 1, 64, 64), stateSpace);
    expectRightEverywhere(stateProblem(type, 1, 0, 64, 64), stateSpace); // the state is zero
  }
}

/// The delta rule in chunks: within one, a system of equations is solved row by row, a loop in the loop.
const Kernel deltaRule("delta_rule(q, k, v, beta, y, chunk=16, dim=32)", [](View q, View k, View v, View beta, View y,
                                                                            Param chunk, Param dim) {
  promise_no_overlap();
  Index head = grid(q.size(0));
  Tile state = zeros(f32, {dim, dim});
  Tile row = iota(i32, {chunk, 1}, 0), column = iota(i32, {1, chunk}, 1);
  for (Index t : range(0, q.size(1), chunk)) {
    auto load = [&](View view) { return reshape(view.load({head, t, 0}, {1, chunk, dim}), {chunk, dim}).to(f32); };
    Tile qt = load(q), kt = load(k), weight = reshape(beta.load({head, t}, {1, chunk}), {chunk, 1});
    Tile system = where(row > column, dot(kt, transpose(kt)) * weight, 0);
    Tile update = (load(v) - dot(kt, state)) * weight;
    for (Index i : range(1, chunk)) {
      Tile here = row == i.to(i32);
      Tile factors = transpose(sum(where(here, system, 0), 0));
      update = where(here, update - sum(factors * update, 0), update);
    }
    Tile scores = where(row >= column, dot(qt, transpose(kt)), 0);
    y.store({head, t, 0}, expand(dot(scores, update) + dot(qt, state), 0).to(y.dtype()));
    state = dot(transpose(kt), update, state);
  }
});

Problem deltaProblem(DType type, int64_t heads, int64_t steps, int64_t dim) {
  Arguments arguments = {random(type, {heads, steps, dim}, 1, -.3, .3), random(type, {heads, steps, dim}, 2, -.3, .3),
                         random(type, {heads, steps, dim}, 3), random(f32, {heads, steps}, 4, 0, 1),
                         Tensor::empty(type, {heads, steps, dim})};
  return problemOf(labelOf(type, {heads, steps, dim}), arguments, {4}, {}, [](auto one, Arguments &a) {
    using T = decltype(one);
    const Tensor &q = a[0].tensor(), &k = a[1].tensor(), &v = a[2].tensor(), &beta = a[3].tensor();
    int64_t dim = q.size(2);
    for (int64_t h = 0; h < q.size(0); ++h) {
      std::vector<T> state(dim * dim, 0);
      for (int64_t t = 0; t < q.size(1); ++t) {
        for (int64_t j = 0; j < dim; ++j) { // columns of the state are independent
          T known = 0, sum = 0;
          for (int64_t i = 0; i < dim; ++i)
            known += T(k.get({h, t, i})) * state[i * dim + j];
          T update = T(beta.get({h, t})) * (T(v.get({h, t, j})) - known);
          for (int64_t i = 0; i < dim; ++i) {
            state[i * dim + j] += T(k.get({h, t, i})) * update;
            sum += T(q.get({h, t, i})) * state[i * dim + j];
          }
          a[4].tensor().set({h, t, j}, sum);
        }
      }
    }
  });
}

TEST(OtherKernels, DeltaRule) {
  for (DType type : {f32, bf16})
    for (auto [heads, steps, dim] : {std::array<int64_t, 3>{2, 40, 32}, {1, 1, 32}, {1, 20, 20}, {2, 0, 32}})
      expectRightEverywhere(deltaProblem(type, heads, steps, dim), deltaRule);
}

//===--- The gradient of attention --------------------------------------------------------------------------------===//

/// Five dots in a loop, three of them of a transposed operand that was computed; the gradient of the queries by
/// atomics.
const Kernel
    attentionGradient("attention_gradient(q, k, v, g, lse, delta, dq, dk, dv, scale, bm=64, bn=64, dim=64)",
                      [](View q, View k, View v, View g, View lse, View delta, View dq, View dk, View dv, Scalar scale,
                         Param bm, Param bn, Param dim) {
                        promise_no_overlap();
                        auto [head, j] = grid(k.size(0), cdiv(k.size(1), bn));
                        auto load = [&](View view, Index at, int64_t rows) {
                          return reshape(view.load({head, at, 0}, {1, rows, dim}), {rows, dim});
                        };
                        Index n = q.size(1);
                        Tile kt = load(k, j * bn, bn), vt = load(v, j * bn, bn);
                        Tile keys = iota(i64, {1, bn}, 1) + j * bn;
                        Tile dkt = zeros(f32, {bn, dim}), dvt = zeros(f32, {bn, dim});
                        for (Index i : range(j * bn / bm * bm, n, bm)) { // causal: from the diagonal on
                          Tile qt = load(q, i, bm), gt = load(g, i, bm);
                          Tile rows = iota(i64, {bm, 1}, 0) + i;
                          Tile p = exp(dot(qt, transpose(kt)) * scale - reshape(lse.load({head, i}, {1, bm}), {bm, 1}));
                          p = where((rows >= keys) & (rows < n), p, 0);
                          dvt = dot(transpose(p.to(q.dtype())), gt, dvt);
                          Tile dp = dot(gt, transpose(vt)) - reshape(delta.load({head, i}, {1, bm}), {bm, 1});
                          Tile ds = (p * dp * scale).to(q.dtype());
                          dkt = dot(transpose(ds), qt, dkt);
                          dq.atomic_add({full(i64, {1, 1}, head), rows, iota(i64, {1, dim}, 1)}, dot(ds, kt), rows < n);
                        }
                        dk.store({head, j * bn, 0}, expand(dkt, 0).to(dk.dtype()));
                        dv.store({head, j * bn, 0}, expand(dvt, 0).to(dv.dtype()));
                      });

Problem gradientProblem(DType type, int64_t n, int64_t dim) {
  constexpr double scale = 0.125;
  Tensor q = random(type, {2, n, dim}, 1), k = random(type, {2, n, dim}, 2), v = random(type, {2, n, dim}, 3);
  Tensor g = random(type, {2, n, dim}, 4), lse = Tensor::zeros(f32, {2, n}), delta = Tensor::zeros(f32, {2, n});
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < n; ++i) {
      double total = 0, product = 0;
      for (int64_t j = 0; j <= i; ++j) {
        double score = 0, along = 0;
        for (int64_t e = 0; e < dim; ++e) {
          score += q.get({h, i, e}) * k.get({h, j, e});
          along += g.get({h, i, e}) * v.get({h, j, e});
        }
        total += std::exp(scale * score);
        product += std::exp(scale * score) * along;
      }
      lse.set({h, i}, std::log(total));
      delta.set({h, i}, product / total);
    }
  Arguments arguments = {q,
                         k,
                         v,
                         g,
                         lse,
                         delta,
                         Tensor::zeros(f32, {2, n, dim}),
                         Tensor::empty(type, {2, n, dim}),
                         Tensor::empty(type, {2, n, dim}),
                         scale};
  Problem problem = problemOf(labelOf(type, {n, dim}), arguments, {6, 7, 8}, {}, [type](auto one, Arguments &a) {
    using T = decltype(one);
    auto at = [&](int argument, int64_t h, int64_t i, int64_t e) { return T(a[argument].tensor().get({h, i, e})); };
    int64_t n = a[0].tensor().size(1), dim = a[0].tensor().size(2);
    for (int64_t h = 0; h < 2; ++h) {
      std::vector<T> gradients[3] = {std::vector<T>(n * dim), std::vector<T>(n * dim), std::vector<T>(n * dim)};
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          T score = 0, along = 0;
          for (int64_t e = 0; e < dim; ++e) {
            score += at(0, h, i, e) * at(1, h, j, e);
            along += at(3, h, i, e) * at(2, h, j, e);
          }
          T p = std::exp(score * T(scale) - T(a[4].tensor().get({h, i})));
          T ds = rounded(p * (along - T(a[5].tensor().get({h, i}))) * T(scale), type);
          for (int64_t e = 0; e < dim; ++e) {
            gradients[0][i * dim + e] += ds * at(1, h, j, e);
            gradients[1][j * dim + e] += ds * at(0, h, i, e);
            gradients[2][j * dim + e] += rounded(p, type) * at(3, h, i, e);
          }
        }
      for (int64_t i = 0; i < n * dim; ++i)
        for (int which = 0; which < 3; ++which)
          a[6 + which].tensor().set({h, i / dim, i % dim}, gradients[which][i]);
    }
  });
  problem.inPlace = {6};
  problem.deterministic = false; // sums of floats by atomics
  return problem;
}

TEST(OtherKernels, AttentionGradient) {
  for (DType type : {f32, bf16})
    for (auto [n, dim] : {std::pair<int64_t, int64_t>{150, 64}, {1, 64}, {64, 40}, {0, 64}})
      expectRightEverywhere(gradientProblem(type, n, dim), attentionGradient);
}

//===--- Keys and values in pages ---------------------------------------------------------------------------------===//

/// One query for each head of a group; where the next page is stands in memory, and so does how many there are.
const Kernel pagedAttention("paged_attention(q, keys, values, table, lengths, o, scale, group, page, dim)",
                            [](View q, View keys, View values, View table, View lengths, View o, Scalar scale,
                               Param group, Param page, Param dim) {
                              require((keys.size(1) == page) & (q.size(1) == keys.size(2) * group),
                                      "pages and heads must fit the parameters");
                              auto [sequence, head] = grid(q.size(0), keys.size(2));
                              Index n = lengths.at({sequence});
                              Tile qt = reshape(q.load({sequence, head * group, 0}, {1, group, dim}), {group, dim});
                              Tile largest = full(f32, {group, 1}, -inf), total = zeros(f32, {group, 1}),
                                   acc = zeros(f32, {group, dim});
                              for (Index p : range(0, cdiv(n, page))) {
                                Index place = table.at({sequence, p});
                                auto load = [&](View cache) {
                                  return reshape(cache.load({place, 0, head, 0}, {1, page, 1, dim}), {page, dim});
                                };
                                Tile scores = dot(qt, transpose(load(keys))) * scale;
                                scores = where(iota(i64, {1, page}, 1) + p * page < n, scores, -inf);
                                Tile next = maximum(largest, max(scores, 1));
                                Tile weights = exp(scores - next), correction = exp(largest - next);
                                total = total * correction + sum(weights, 1);
                                acc = dot(weights.to(values.dtype()), load(values), acc * correction);
                                largest = next;
                              }
                              o.store({sequence, head * group, 0},
                                      expand(acc / where(total == 0, 1, total), 0).to(o.dtype()));
                            });

Problem pagedProblem(DType type, int64_t group, int64_t page, int64_t dim) {
  Tensor lengths = Tensor::zeros(i32, {3});
  lengths.setInt({1}, 3 * page + 1);
  lengths.setInt({2}, 9 * page);
  Arguments arguments = {random(type, {3, 2 * group, dim}, 1, -2, 2),
                         random(type, {12, page, 2, dim}, 2),
                         random(type, {12, page, 2, dim}, 3),
                         random(i32, {3, 9}, 4, 0, 11),
                         lengths,
                         Tensor::empty(type, {3, 2 * group, dim}),
                         0.25};
  auto compute = [=](auto one, Arguments &a) {
    using T = decltype(one);
    const Tensor &q = a[0].tensor(), &table = a[3].tensor();
    for (int64_t s = 0; s < 3; ++s)
      for (int64_t h = 0; h < 2 * group; ++h) {
        int64_t n = a[4].tensor().getInt({s});
        auto at = [&](int argument, int64_t j, int64_t e) {
          return T(a[argument].tensor().get({table.getInt({s, j / page}), j % page, h / group, e}));
        };
        std::vector<T> weights(n, 0);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t e = 0; e < dim; ++e)
            weights[j] += T(q.get({s, h, e})) * at(1, j, e) / 4;
        T largest = n ? *std::max_element(weights.begin(), weights.end()) : 0, total = 0;
        for (T &weight : weights) {
          total += weight = std::exp(weight - largest);
          weight = rounded(weight, type);
        }
        for (int64_t e = 0; e < dim; ++e) {
          T sum = 0;
          for (int64_t j = 0; j < n; ++j)
            sum += weights[j] * at(2, j, e);
          a[5].tensor().set({s, h, e}, n ? sum / total : 0);
        }
      }
  };
  return problemOf(labelOf(type, {group, page, dim}), arguments, {5}, {{"group", group}, {"page", page}, {"dim", dim}},
                   compute);
}

TEST(OtherKernels, PagedAttention) {
  for (DType type : {f32, bf16})
    for (auto [group, page, dim] : {std::array<int64_t, 3>{4, 16, 64}, {1, 8, 32}, {8, 64, 128}})
      expectRightEverywhere(pagedProblem(type, group, page, dim), pagedAttention);
}

//===--- A convolution --------------------------------------------------------------------------------------------===//

/// A dot in three loops, over tiles that begin outside the picture.
const Kernel convolution("convolution(x, w, y, bw=64, bo=64, bc=32)", [](View x, View w, View y, Param bw, Param bo,
                                                                         Param bc) {
  promise_no_overlap();
  auto [line, j, o] = grid(y.size(0) * y.size(1), cdiv(y.size(2), bw), cdiv(y.size(3), bo));
  Index picture = line / y.size(1), row = line % y.size(1);
  Tile acc = zeros(f32, {bw, bo});
  for (Index u : range(0, w.size(0)))
    for (Index v : range(0, w.size(1)))
      for (Index c : range(0, x.size(3), bc)) {
        Tile a = x.load({picture, row + u - w.size(0) / 2, j * bw + v - w.size(1) / 2, c}, {1, 1, bw, bc});
        acc = dot(reshape(a, {bw, bc}), reshape(w.load({u, v, c, o * bo}, {1, 1, bc, bo}), {bc, bo}), acc);
      }
  y.store({picture, row, j * bw, o * bo}, reshape(acc, {1, 1, bw, bo}).to(y.dtype()));
});

Problem convolutionProblem(DType type, std::array<int64_t, 4> x, int64_t outputs) {
  Arguments arguments = {random(type, {x[0], x[1], x[2], x[3]}, 1), random(type, {3, 3, x[3], outputs}, 2),
                         Tensor::empty(type, {x[0], x[1], x[2], outputs})};
  return problemOf(labelOf(type, {x[0], x[1], x[2], x[3]}), arguments, {2}, {}, [](auto one, Arguments &a) {
    using T = decltype(one);
    const Tensor &x = a[0].tensor(), &w = a[1].tensor(), &y = a[2].tensor();
    forEachIndex(y.sizes(), [&](const std::vector<int64_t> &i) {
      T sum = 0;
      for (int64_t u = std::max<int64_t>(0, 1 - i[1]); u < 3 && i[1] + u - 1 < x.size(1); ++u)
        for (int64_t v = std::max<int64_t>(0, 1 - i[2]); v < 3 && i[2] + v - 1 < x.size(2); ++v)
          for (int64_t c = 0; c < x.size(3); ++c)
            sum += T(x.get({i[0], i[1] + u - 1, i[2] + v - 1, c})) * T(w.get({u, v, c, i[3]}));
      y.set(i, sum);
    });
  });
}

TEST(OtherKernels, Convolution) {
  for (DType type : {f32, bf16}) {
    expectRightEverywhere(convolutionProblem(type, {1, 3, 40, 40}, 70), convolution);
    expectRightEverywhere(convolutionProblem(type, {2, 2, 70, 64}, 64), convolution);
    expectRightEverywhere(convolutionProblem(type, {1, 1, 1, 1}, 1), convolution);
    expectRightEverywhere(convolutionProblem(type, {0, 3, 3, 3}, 3), convolution);
  }
}

} // namespace
