// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

/// Tile IR to Tile IR, for every target.
namespace tenon {

/// What becomes of tile.random_bits: integer arithmetic, or itself for a target that knows which elements are neighbours.
enum class RandomBits { expand, keep };

/// tenon-expand-random: tile.philox and, if so wanted, tile.random_bits become integer arithmetic.
std::unique_ptr<mlir::Pass> createExpandRandomPass(RandomBits randomBits = RandomBits::expand);

/// tenon-compare-integers: integers that were converted to f32 are compared with a threshold as what they are.
std::unique_ptr<mlir::Pass> createCompareIntegersPass();

/// tenon-shift-equality: what is added to all elements before they are compared for equality with one number goes to
/// the number.
std::unique_ptr<mlir::Pass> createShiftEqualityPass();

/// What every target runs first: canonicalisation, common subexpressions, random numbers expanded.
mlir::LogicalResult simplifyTileIr(mlir::ModuleOp module, RandomBits randomBits = RandomBits::expand);

/// For tenon-opt.
void registerTransformPasses();

} // namespace tenon
