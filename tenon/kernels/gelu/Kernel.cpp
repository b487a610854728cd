// SPDX-License-Identifier: Apache-2.0
//
// The Gaussian error linear unit, element by element: y = x * Phi(x), Phi the normal distribution function.
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel gelu("gelu(x, y, tanh_form=0, rows=1, cols=1024)",
                  [](View x, View y, Param tanh_form, Param rows, Param cols) {
  require((x.size(0) == y.size(0)) & (x.size(1) == y.size(1)), "x and y must have the same shape");
  auto [i, j] = grid(cdiv(x.size(0), rows), cdiv(x.size(1), cols));
  Tile t = x.load({i * rows, j * cols}, {rows, cols}).to(computeType(x));

  // tanh_form is known when the kernel is compiled: only one of the two is in the program.
  Tile phi;
  if (tanh_form)
    phi = 0.5 * (1 + tanh(0.7978845608028654 * (t + 0.044715 * t * t * t))); // sqrt(2 / pi)
  else
    phi = 0.5 * (1 + erf(t * 0.7071067811865476)); // 1 / sqrt(2)

  y.store({i * rows, j * cols}, (t * phi).to(y.dtype()));
});

} // namespace tenon::zoo
