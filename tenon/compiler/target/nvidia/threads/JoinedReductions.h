// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tenon::nvidia {

/// Makes one reduction of two, one of the other's result, along neighbouring dimensions.
void joinReductions(mlir::func::FuncOp kernel);

} // namespace tenon::nvidia
