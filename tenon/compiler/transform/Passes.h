// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

/// Tile IR to Tile IR, for every target.
namespace tenon {

/// tenon-expand-random: tile.philox becomes integer arithmetic.
std::unique_ptr<mlir::Pass> createExpandRandomPass();

/// What every target runs first: canonicalisation, common subexpressions, random numbers expanded.
mlir::LogicalResult simplifyTileIr(mlir::ModuleOp module);

/// For tenon-opt.
void registerTransformPasses();

} // namespace tenon
