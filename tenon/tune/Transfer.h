// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/tune/Strategy.h"

#include <vector>

/// What measurements of other shapes say about this one.
///
/// How much slower than the best of its shape a configuration is carries over from shape to shape; how much slower the
/// model says it is carries over less. So for a candidate x with prediction p(x), both as logarithms of a ratio to the
/// best,
///
///     slowness(x) = a p(x) + sum over shapes s of w(s) r(s, x) / sum of w(s)
///     r(s, x)     = mean over the configurations y of s of measured(s, y) - a p(s, y), weighted by
///                   exp(-(d(x, y) / h)^2)
///     w(s)        = exp(-distance of the sizes, in doublings / 2)
///
/// d adds up over the dimensions how far apart the values are: in doublings, or in place, from the least to the largest
/// value of the dimension, where that is nearer (a tile that spans the row is as long as the row, whatever its length).
/// h is small: where x itself was measured, that decides; where it was not, its neighbours do. a is a quarter: found on
/// the tables of bench/tables, where anything from 0 to 3/4 does nearly as well.
namespace tenon::tuning {

/// For each candidate; nothing where there is no experience of its kind.
std::vector<double> slownessFrom(const std::vector<Experience> &experience, const std::vector<Candidate> &candidates);

} // namespace tenon::tuning
