// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>
#include <span>
#include <string>
#include <vector>

/// The reference interpreter of Tile IR: the executable specification. It is written to be read and believed, one
/// element after the other; what it computes is by definition what a kernel means.
///
/// Arguments come as 64-bit words, the ABI shared with compiled kernels. For each argument of the function, in order:
/// - a view of rank r gives [base address, size_0 .. size_{r-1}, stride_0 .. stride_{r-1}], strides in elements;
/// - a scalar gives one word with its bits in the low end (f32: its bit pattern; i1: 0 or 1).
namespace tenon::interpret {

struct Options {
  /// Receives the text of each tile.print, without a newline. Empty: nothing is printed.
  std::function<void(const std::string &)> print;
  /// Fails the launch after this many operations, those inside loops and combine regions counted each time they run.
  /// Zero: no limit.
  int64_t maxSteps = 0;
  /// Told of each element that is read or written: what counting (model/) is tested against. Empty: nobody is.
  std::function<void(const void *address, size_t bytes, bool isWrite)> access;
};

/// What a launch needs before anything runs.
struct LaunchPlan {
  int64_t grid[3] = {1, 1, 1};
  /// Why the launch is refused: the message of the first tile.require that does not hold, or what is wrong with the
  /// arguments or the kernel. Empty when it may run; otherwise the other members are not complete.
  std::string refusal;
  /// Which tile.require does not hold, counted from 0 in the order of the kernel; -1 when none is the reason.
  int64_t requirement = -1;
  /// The sizes of each tile.workspace, in the order of the kernel.
  std::vector<std::vector<int64_t>> workspaces;
};

/// Evaluates what the grid, the preconditions and the workspace sizes depend on, and nothing else: no memory is read,
/// and operations that the interpreter does not know may stand elsewhere in the kernel.
LaunchPlan planLaunch(mlir::func::FuncOp kernel, std::span<const int64_t> arguments);

/// Runs all program instances in order, axis 0 fastest. Returns "" or what went wrong: a refusal, a failed assertion,
/// the step limit, an operation that is not part of Tile IR. A grid extent of zero or less makes it a no-op.
std::string interpretLaunch(mlir::func::FuncOp kernel, std::span<const int64_t> arguments, const Options &options = {});

} // namespace tenon::interpret
