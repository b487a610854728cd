// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/model/Ceilings.h"
#include "tenon/model/Count.h"
#include "tenon/model/Occupancy.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <vector>

/// What a launch should take: the one formula behind `tenon roofline` and the tuner's first choice.
///
///     seconds = launch + max(memory, cache, matrix, core) / balance
///
///     memory   bytes that memory sees / its bandwidth / e
///     cache    bytes that the instances request / the bandwidth of the cache they share / e
///     matrix   sum over types of executed matrix FLOPs / rate
///     core     (vector + special + integer operations, each / its rate); on a CPU the matrix work too, since the same
///              ports do it
///     balance  how much of the machine is busy. CPU: instances / (processors x rounds). GPU: the wave efficiency, with
///              the blocks of a multiprocessor as rounds' unit. Both divided by how much the busiest instance exceeds
///              the mean, as far as one instance is more than a processor's share.
///     e        latency hiding, of a GPU: bytes in flight over bytes needed in flight (Little's law), at most 1
///
/// Bytes that memory sees lie between compulsory and requested. Instances run in the order of the grid, axis 0
/// fastest; the largest run of them (some of axis 0, whole rows of axis 0, whole planes) whose bytes fit the cache is
/// touched once, and memory sees that for each run. At least one wave's instances run together whether they fit or
/// not.
///
/// Padding counts: `executed` work, not `useful`. So a tile that hangs over the edge costs what it costs.
namespace tenon::model {

/// What the code generator will make of a configuration, or was told to.
struct Configuration {
  BlockShape block;   ///< of a GPU
  int cluster = 1;    ///< blocks that share an instance
  int stages = 1;     ///< asynchronous copies in flight around a dot
  double matrixEfficiency = 1; ///< the part of the matrix rate that this kind of code reaches at best
};

struct Cost {
  struct Term {
    std::string resource; ///< "memory", "L2", "matrix bf16", "vector", "special", "integer", "launch"
    double amount = 0;    ///< bytes or operations
    double rate = 0;      ///< a second
    double seconds = 0;
  };
  double seconds = 0;
  std::vector<Term> terms;  ///< every resource that is used, the slowest first; launch last
  std::string boundBy;      ///< the resource of the slowest
  double memoryBytes = 0;   ///< what memory sees
  double balance = 1;
  Occupancy occupancy;      ///< of a GPU
  Waves waves;              ///< of a GPU
  std::string refusal;      ///< why it cannot run: does not fit; seconds are infinite then
};

/// By seconds, equal ones as they were. There are a few terms, and thousands of such lists: no memory is asked for.
template <class Terms> void sortLargestFirst(Terms &terms) {
  for (auto next = terms.begin(); next != terms.end(); ++next) {
    auto place = std::upper_bound(terms.begin(), next, *next,
                                  [](const auto &a, const auto &b) { return a.seconds > b.seconds; });
    std::rotate(place, next, std::next(next));
  }
}

/// `words` are those that `counts` was made for.
Cost cost(const CountPlan &plan, std::span<const int64_t> words, const Counts &counts, const Ceilings &ceilings,
          const Configuration &configuration = {});

/// A block as the compiler would choose it where nothing better is known: threads by the size of the largest tile,
/// registers by the tiles that are alive at once.
BlockShape guessBlock(const Counts &counts, int warps = 0);

} // namespace tenon::model
