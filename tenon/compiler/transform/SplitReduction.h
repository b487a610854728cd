// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace tenon {

/// A kernel's one loop at the top level, whose carried tiles begin at zero and are only added to: its iterations may be
/// made by several, each of whom has a part of the sums.
struct SumLoop {
  tile::GridOp grid;
  mlir::scf::ForOp loop;
  std::string refusal; ///< why there is none; "": there is
};
SumLoop findSumLoop(mlir::func::FuncOp kernel);

/// Preconditions and workspaces behind the loop, which stand at the top level, in front of it: with what they are
/// computed from.
void moveHostOpsBefore(mlir::scf::ForOp loop);

/// What became of a kernel, in words.
struct SplitOutcome {
  bool isSplit = false;
  std::string remark;   ///< what was done, or why not
  mlir::Location where; ///< what it speaks of
};

/// Lets `factor` program instances (two at least) share the loop of a kernel that only adds up. In place; a kernel that
/// is not made so stays as it is.
SplitOutcome splitReduction(mlir::func::FuncOp kernel, int64_t factor);

/// tenon-split-reduction: the same as a pass, which says what became of the kernel in a remark.
std::unique_ptr<mlir::Pass> createSplitReductionPass(int64_t factor = 2);

} // namespace tenon
