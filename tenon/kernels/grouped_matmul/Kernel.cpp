// SPDX-License-Identifier: Apache-2.0
//
// The products of a layer with experts in one launch: the rows of a belong to experts, expert after expert, and each
// expert's rows meet its own matrix. offsets[e] is the first row of expert e, and offsets[experts] is behind the last.
//
// A tile belongs to one expert. Expert e gets the places from offsets[e] / bm + e on, which are enough for its rows
// whatever the number: floor((x + n) / bm) - floor(x / bm) + 1 >= ceil(n / bm). That grows with e, so a program
// instance finds its expert by bisection, and the grid is known before any number of rows is. Instances go through one
// expert after the other, each column by column: what they read at a time is few columns of one matrix, once.
//
// `pair` instances that follow each other are neighbours, of which a cluster of as many blocks reads once what they
// have in common: `pair` tiles of rows of the same columns; or, of the rows that are left, the same ones in `pair`
// columns.
//
//               columns          the numbers of pairs, in the order in which they are taken:
//     rows       0  1            0 and 1 share columns of b, 2 the rows of a that are left
//                0  1
//                2  2
#include "tenon/kernels/Kernels.h"

namespace tenon::zoo {

const Kernel groupedMatmul(
    "grouped_matmul(a, b, offsets, c, bm=64, bn=64, bk=64, search=16, pair=1)",
    [](View a, View b, View offsets, View c, Param bm, Param bn, Param bk, Param search, Param pair) {
      Index experts = b.size(0);
      require((a.size(0) == c.size(0)) & (b.size(2) == c.size(1)) & (a.size(1) == b.size(1)),
              "a must be rows x K, b experts x K x N and c rows x N");
      require(offsets.size(0) == experts + 1, "offsets must have one element more than there are experts");
      require(experts <= (int64_t(1) << search),
              "more experts than the search finds: choose search at least their log2");
      promise_no_overlap();
      Index columns = cdiv(c.size(1), pair * bn);
      auto [instance, part] = grid((a.size(0) / bm + experts) * columns, pair);

      Index place = instance / columns;
      Index expert = 0, beyond = experts;
      for (Index step : range(0, search)) {
        (void)step;
        Index middle = (expert + beyond) / 2;
        Tile isBehind = Index(offsets.at({middle})) / bm + middle <= place;
        expert = where(isBehind, middle, expert);
        beyond = where(isBehind, beyond, middle);
      }
      Index begin = offsets.at({expert}), end = offsets.at({expert + 1});
      Index first = begin / bm + expert, places = end / bm + expert + 1 - first, inExpert = instance - first * columns;
      Index j = inExpert / places, i = inExpert % places;
      Index row = begin + i * bm;                 // not before `end` in a place that the expert does not need
      Tile isThere = (row < end) & (j < columns); // nor among the columns behind the last expert's places
      Index column = j * pair * bn;
      if (pair > 1) {
        Tile ofRows = i < cdiv(end - begin, bm) / pair * pair; // else of columns
        isThere = isThere & (where(ofRows, (j * pair + i % pair) * bn, Index(0)) < c.size(1));
        row = where(ofRows, begin + (i / pair * pair + part) * bm, row);
        column = column + where(ofRows, i % pair, part) * bn;
      }

      Tile acc = zeros(accumulatorType(a), {bm, bn});
      for (Index k : range(0, where(isThere, a.size(1), 0), bk)) {
        Tile weight = reshape(b.load({expert, k, column}, {1, bk, bn}), {bk, bn});
        acc = dot(a.load({row, k}, {bm, bk}), weight, acc);
      }

      // The rows behind the expert's last belong to the next one.
      Tile result = acc.to(c.dtype());
      if_(row + bm <= end, [&] { c.store({row, column}, result); }).else_([&] {
        if_(isThere, [&] {
          Tile to = iota(i64, {bm, 1}, 0) + row;
          c.scatter({to, iota(i64, {1, bn}, 1) + column}, result, to < end);
        });
      });
    });

} // namespace tenon::zoo
