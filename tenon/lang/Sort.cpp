// SPDX-License-Identifier: Apache-2.0
//
// Sorting as a network (Batcher's bitonic one): every step compares elements at one distance, all pairs at once, so it
// is made of what the language has already. Distance j of n elements, as blocks of two halves of j:
//
//     x as [n / 2j][2][j];  lower = x[:][0][:], upper = x[:][1][:]
#include "tenon/lang/Operators.h"

#include "tenon/lang/trace/Tracer.h"

#include "llvm/ADT/bit.h"

namespace tenon {
namespace {

/// A NaN is larger than everything else.
Tile isLarger(const Tile &a, const Tile &b) {
  Tile larger = a > b;
  return isFloat(a.dtype()) ? larger | (isnan(a) & !isnan(b)) : larger;
}

} // namespace

std::vector<Tile> sort(const std::vector<Tile> &tiles, int dim, bool descending, std::source_location where) {
  Tracer::currentAt(where);
  if (tiles.empty())
    throw Error(where, "sort() needs at least one tile");
  Tracer::Pin pin(where);
  Shape shape = tiles[0].shape();
  checkDim(dim, static_cast<int>(shape.size()), where);
  for (const Tile &tile : tiles)
    if (tile.shape() != shape)
      throw Error(where, "sort() of several tiles needs them to have one shape, not " + toString(shape) + " and " +
                             toString(tile.shape()));
  int64_t n = shape[dim], before = 1, behind = 1;
  if (!llvm::has_single_bit(static_cast<uint64_t>(n)))
    throw Error(where, "sort() needs a power of two of elements, not " + std::to_string(n) +
                           ": load more, with padding that comes last (inf, or -inf descending)");
  for (int d = 0; d < static_cast<int>(shape.size()); ++d)
    (d < dim ? before : behind) *= d == dim ? 1 : shape[d];

  std::vector<Tile> sorted = tiles;
  for (int64_t run = 2; run <= n; run *= 2)
    for (int64_t distance = run / 2; distance > 0; distance /= 2) {
      int64_t blocks = n / (2 * distance);
      std::vector<Tile> lower, upper;
      for (const Tile &tile : sorted) {
        Tile pairs = reshape(tile, {before, blocks, 2, distance * behind});
        lower.push_back(slice(pairs, 2, 0, 1));
        upper.push_back(slice(pairs, 2, 1, 1));
      }
      Tile swap = descending ? isLarger(upper[0], lower[0]) : isLarger(lower[0], upper[0]);
      if (run < n) { // every other run the other way, so that two of them rise and then fall
        Tile other = descending ? isLarger(lower[0], upper[0]) : isLarger(upper[0], lower[0]);
        Tile rises = (iota(i32, {1, blocks, 1, 1}, 1) * (2 * distance) & run) == 0;
        swap = tenon::where(rises, swap, other);
      }
      for (size_t i = 0; i < sorted.size(); ++i)
        sorted[i] =
            reshape(concat({tenon::where(swap, upper[i], lower[i]), tenon::where(swap, lower[i], upper[i])}, 2), shape);
    }
  return sorted;
}

Tile sort(const Tile &x, int dim, bool descending, std::source_location where) {
  return sort(std::vector<Tile>{x}, dim, descending, where)[0];
}

} // namespace tenon
