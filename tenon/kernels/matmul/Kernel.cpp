// SPDX-License-Identifier: Apache-2.0
//
// c = activation(a * b + bias): one tile of c per program instance, walking along the shared dimension.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel matmul("matmul(a, b, bias, c, bm=64, bn=64, bk=64, use_bias=0, activation=0, tf32=0, fast_accum=0)",
                    [](View a, View b, View bias, View c, Param bm, Param bn, Param bk, Param use_bias,
                       Param activation, Param tf32, Param fast_accum) {
                      require((a.size(0) == c.size(0)) & (b.size(1) == c.size(1)) & (a.size(1) == b.size(0)),
                              "a must be M x K, b K x N and c M x N");
                      if (use_bias)
                        require(bias.size(0) == c.size(1), "bias must have one element per column of c");
                      promise_no_overlap();
                      auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));

                      Tile acc = zeros(accumulatorType(a), {bm, bn});
                      for (Index k : range(0, a.size(1), bk))
                        acc = dot(a.load({i * bm, k}, {bm, bk}), b.load({k, j * bn}, {bk, bn}), acc,
                                  {.allow_tf32 = tf32 != 0, .fast_accum = fast_accum != 0});

                      // The epilogue works on the accumulator, before it is rounded. Parameters are plain C++ integers
                      // here.
                      if (use_bias || activation)
                        acc = acc.to(computeType(a));
                      if (use_bias)
                        acc = acc + bias.load({j * bn}, {bn}).to(acc.dtype());
                      if (activation == Activation::relu)
                        acc = maximum(acc, 0);
                      else if (activation == Activation::geluExact)
                        acc = 0.5 * acc * (1 + erf(acc * 0.7071067811865476)); // 1 / sqrt(2)
                      else if (activation == Activation::silu)
                        acc = acc * sigmoid(acc);
                      c.store({i * bm, j * bn}, acc.to(c.dtype()));
                    });

} // namespace tenon::zoo
