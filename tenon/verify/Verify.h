// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"

#include <functional>
#include <span>
#include <string>

/// The one judge of "is this kernel right?". Tests, the bench and the command line all ask here.
///
/// The rule (after FlashAttention): with `ref` the reference computed in high precision and then rounded to the output's
/// type, and `plain` the straightforward computation in the kernel's own precision,
///     max|out - ref| <= 2 * max|plain - ref| + 2 * max|ref + 0.3 - 0.3 - ref|      (the last in the output's type)
/// where 0.3 gives way to max|ref| if that is smaller (or small outputs would hardly be checked), and the last term is at
/// least one unit in the last place of the largest |ref| (for few elements it can be zero by chance, which would ask for
/// equality). NaN and infinity must stand where the reference has them. Before each run outputs are poisoned (NaN, or
/// another pattern), surrounded by guard zones that must survive, and inputs must be unchanged afterwards; two runs
/// must agree bit for bit where the problem promises determinism.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// One set of inputs and what is claimed of the outputs.
struct Problem {
  std::string label;           ///< "8192x4096 f32"
  Arguments arguments;         ///< in launch order; outputs may hold anything
  std::vector<size_t> outputs; ///< which arguments are written (an in-place argument is listed here and keeps its input)
  std::vector<size_t> inPlace; ///< the outputs whose initial content is an input: not poisoned
  Params params;
  /// The same problem where parameters that decide what is computed (a bias, a causal mask, tf32) have other values;
  /// null: there are none.
  std::function<Problem(const Params &params)> withParams;
  /// Those that a CPU with so many threads wants otherwise, where speed matters: larger tiles. Null: none.
  std::function<Params(int threads)> cpuParams;
  /// Writes the outputs. `reference` gets every floating-point tensor widened to f64 (same shapes), `plain` the tensors as
  /// they are (it computes in f32, or f64 for f64 tensors, and rounds to the output's type).
  std::function<void(Arguments &)> reference, plain;
  bool deterministic = true;
  double flops = 0, bytes = 0; ///< what the work needs at least, for rates
};

struct Verdict {
  bool passed = false;
  std::string reason;                       ///< why not: one sentence
  double error = 0, plainError = 0, allowed = 0; ///< of the worst output
};

/// Judges anything that can be run on arguments: a kernel, a hand-written loop, a candidate from elsewhere.
Verdict verify(const Problem &problem, const std::function<void(const Arguments &)> &subject);
Verdict verify(const Problem &problem, const Kernel &kernel, LaunchOptions options = {});

} // namespace tenon
#pragma GCC visibility pop
