// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/Divisibility.h"

/// What is known, before the program runs, of how the integers of a tile follow each other.
///
/// Along each dimension the tile is cut into runs of n = 2^k elements, from coordinates 0, n, 2n, ... on; the last run
/// may be cut off by the tile's edge. Three numbers, powers of two up to Divisibility::most, say for every dimension:
///
///   contiguity    in runs of so many, each element is its left neighbour plus one (modulo 2^width);
///   constancy     in runs of so many, all elements are equal;
///   divisibility  the first elements of the runs of contiguity are multiples of this.
///
///     tile.iota 0 : tensor<6xi64>                 0 1 2 3 4 5       contiguity 8, constancy 1, divisibility most
///     8 + 2 * (tile.iota 0)                       8 10 12 14 16 18  contiguity 1, constancy 1, divisibility 2
///     tile.splat of a multiple of 16              contiguity 1, constancy most, divisibility 16
///     their sum, iota plus splat                  contiguity 8, constancy 1, divisibility 16
///
/// A dimension of one element has contiguity 1: a broadcast along it then needs no thought.
namespace tenon::nvidia {

struct AxisInfo {
  struct Axis {
    int64_t contiguity = 1, constancy = 1, divisibility = 1;
  };
  llvm::SmallVector<Axis, 5> axes;

  /// What all elements are multiples of.
  int64_t divisibility() const;
  /// What the elements at the coordinates 0, run, 2 * run, ... along `dim` are multiples of.
  int64_t divisibilityOfRuns(size_t dim, int64_t run) const;
  /// The largest n such that runs of n elements along `dim` are consecutive and begin with a multiple of n.
  int64_t alignedRun(size_t dim) const;
};

/// Follows iota, splats, constants, broadcasts, transposes, reshapes that add or drop dimensions of one element, sums,
/// differences, products, shifts by constants and conversions between integers; anything else may hold anything.
class AxisAnalysis {
public:
  /// `scalars` answers for what is splatted, and must outlive this.
  explicit AxisAnalysis(Divisibility &scalars) : scalars_(scalars) {}

  AxisInfo of(mlir::Value tile);
  /// Whether in runs of `run` along `dim`, from coordinates 0, run, 2 * run, ... on, all elements are equal; of a tile of
  /// booleans, too.
  bool isConstantInRuns(mlir::Value tile, size_t dim, int64_t run);

private:
  AxisInfo compute(mlir::Value tile);

  Divisibility &scalars_;
  llvm::DenseMap<mlir::Value, AxisInfo> known_;
};

} // namespace tenon::nvidia
