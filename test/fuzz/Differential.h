// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

/// The checks of one fuzz program, each by name:
///
///     round-trip      verifies; printed, parsed and printed again it is the same text
///     canonicalize, cse, expand-random, simplify
///                     interpret(p) == interpret(pass(p))
///     cpu/ISA/tN[/no-overlap][/no-unit]
///                     interpret(p) == compiled for ISA, on N threads; with the fact that outputs overlap nothing;
///                     without the facts about unit strides
///     sim/wN[/cN][/sN][/no-overlap][/no-unit][/no-facts]
///                     interpret(p) == compiled for a GPU and run in the simulator, which finds nothing; on N warps (0:
///                     chosen; more where tiles are large), with N stages of copies; without the facts about what
///                     addresses, sizes and strides are multiples of; in clusters of N blocks, ones in place of what
///                     those cannot do
///
/// Maths functions: the interpreter takes them from the C library, the targets from tenon-expand-math. A program that
/// has any is therefore expanded first; what is left is IEEE operations, on which all must agree bit for bit. A GPU has
/// functions and quotients of its own: it gets the expanded program, products in place of quotients.
namespace tenon::fuzz {

struct Failure {
  std::string check;
  std::string kind;   ///< "mismatch", "error" (a compiler or the interpreter refused it), "crash", "timeout"
  std::string detail; ///< the first differing element, the message, the signal
};

/// The names of the checks that a program gets: all passes, and one of the many forms of each target's (all: many).
std::vector<std::string> checksFor(uint64_t seed, bool all);

/// Nothing when the check passes.
std::optional<Failure> runCheck(mlir::ModuleOp program, const std::string &check);

/// What the compiler makes of the program for a target's check, as text after one of its phases (tile, ptx, ...).
std::string emitted(mlir::ModuleOp program, const std::string &check, const std::string &phase);

/// Milliseconds spent in all phases of compilation so far, by name.
std::vector<std::pair<std::string, double>> compileTimes();

std::string printed(mlir::ModuleOp module);

} // namespace tenon::fuzz
