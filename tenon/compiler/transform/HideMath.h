// SPDX-License-Identifier: Apache-2.0
//
// tenon-hide-math, tenon-show-math: around passes that fold (canonicalize, sccp), so that a maths function of a
// constant has the same bits as of a value that only the run knows.
#pragma once

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

namespace tenon {

/// Puts a stand-in that nothing folds in the place of every function that tenon-expand-math expands.
std::unique_ptr<mlir::Pass> createHideMathPass();
/// Undoes it. Fast-math flags are gone afterwards: the expansion takes no notice of them either.
std::unique_ptr<mlir::Pass> createShowMathPass();

} // namespace tenon
