// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/model/Ceilings.h"
#include "tenon/model/Count.h"

#include <string>
#include <vector>

/// What a launch on a GPU should take by its tiles: finer than Cost.h, which asks only how many rounds of blocks there
/// are. It is what orders a space of configurations; its factors are properties of multiprocessors and of the code that
/// Tenon generates for them.
///
/// A multiprocessor holds b blocks at once, as registers and shared memory allow, and works on its part of the
/// instances in rounds:
///
///     words      of live tiles a thread, registers about half of them + 48: what the tensor memory accelerator loads
///                for a dot never is in a register
///     slots      of the ring of a loop around a dot: as many as said, or as fit (2 to 8)
///
/// With a loop around a dot, of one instance on its multiprocessor:
///
///     m          matrix operations / rate / `matrix`; times `crossed` where the warpgroups cannot share the result in
///                parts of 64 rows and 8 columns; times `pieces` where f8 has its sums added up in pieces, since there
///                are not registers for all of them beside the accumulators (for steps of 128, and the less above 1 the
///                longer they are); times `uneven` where columns are no power
///                of two (not f8); times 1 + `narrow` * (256 / columns of a warpgroup's instruction - 1) where v does
///                not matter
///     v          other operations of the loop / rate * (`plain` + `lone` / (warpgroups of the blocks, at most 2)^2):
///     few
///                warps wait for themselves. a: the same of what stands behind the loop
///     l          steps * bytes of the lines that a step loads / min(`load`, (slots - `lag`) * bytes / `latency`); half
///                a slot more instead of the lag where v matters, `waited` where a step waits for its products, to add
///                up f8's sums. Rows of a tile are whole lines of 128 bytes, and
///                straddle two where rows of the view are no multiples of a line (times `straddling`) or are loaded by
///                threads where they are no multiples of 16 bytes (times `byThreads`); those that end within a line
///                leave the rest of it to a neighbour, and both ask for it (`cut` times that part of them more);
///                in a cluster each block loads its part of the larger operand, for all
///     rounds     of blocks: clusters have whole rows (or columns) of instances, and those of more than two blocks
///                cannot use every multiprocessor: as many as the device says (`Ceilings::clusters`), else 11/12 in
///                fours and 5/6 in eights
///     round      max(b max(m, v) + min(m, v), b l) + steps * (`dependent` where v matters, else `step`, and `deep`
///                where there are more than three slots) + `begin` + `meet` for each warpgroup but one +
///                b * (a + bytes written / `end`, times `slices` where they do not fit beside the ring) +
///                (`gather` + steps * `coupled` in a cluster)
///     once       `first` where there are three slots or fewer: the first loads come one after the other
///     seconds    launch + the fourth root of (memory^4 + (rounds * round)^4); for a loop that is shared by several
///                instances `sharing` more, and its partial results once out and in
///
/// Where memory decides how long an instance takes, blocks take instances from a counter and drift apart: m times
/// `adrift`, but for clusters, whose blocks run in step.
///
/// Where two warpgroups take instances in turns there is one block, and what is around the products of one instance
/// goes on during those of the next, but for the other operations, which take from them what they gain:
///
///     round      max(m * `alone` + v, l) + steps * (...) + `turn`, and once, at the end, `begin` + bytes written /
///     `end`.
///                A warpgroup alone with its tile has nobody to share what it reads of shared memory with
///
/// Otherwise instances load, compute and store, and other blocks fill the gaps:
///
///     wait       `barrier` * (1 + warps / 8) + words * `word` + (`cluster` in a cluster)
///     seconds    launch + hypot(rounds * wait, max(memory, work)) + (min(memory, work) + wait) / b
///
/// memory: compulsory bytes / (bandwidth * `memory`).
namespace tenon::model {

struct GpuFactors {
  double memory = 0.9, matrix = 0.85;      ///< of the rate that the datasheet states
  double crossed = 2.5, pieces = 1.08;
  double plain = 1.7, lone = 0.95;
  double load = 160e9;                     ///< bytes a second that a multiprocessor loads
  double latency = 1.05e-6;                ///< from a load to its data
  double lag = 1.4, waited = 1;            ///< slots
  double straddling = 2.05, byThreads = 3, cut = 2;
  double uneven = 1.04, narrow = 0.08;
  double slices = 1.1;
  double gather = 0.3e-6, coupled = 8e-9;  ///< seconds
  double step = 25e-9, dependent = 140e-9; ///< seconds
  double begin = 1.5e-6;                   ///< seconds
  double end = 40e9;                       ///< bytes a second that a multiprocessor stores
  double sharing = 9e-6;                   ///< seconds
  double turn = 0.4e-6;                    ///< seconds
  double adrift = 1.05;
  double meet = 0.2e-6;             ///< seconds
  double deep = 4e-9, first = 2e-6; ///< seconds
  double alone = 1.045;
  double barrier = 0.6e-6, word = 15e-9, cluster = 3e-6; ///< seconds
};

/// How a configuration spreads an instance over blocks.
struct GpuShape {
  int warps = 0;   ///< that hold tiles; 0: chosen by the size of the tiles
  int cluster = 1; ///< blocks that share an instance, or what two instances load
  int stages = 0;  ///< slots of the ring; 0: as many as fit
  int split = 1;   ///< instances that share a loop
  bool pingPong = false; ///< two warpgroups take instances in turns, each alone with its own
};

struct GpuCost {
  struct Part {
    std::string name; ///< "memory", "matrix", "other work", "loads", "overheads", "launch"
    double seconds = 0;
  };
  double seconds = 0;
  std::vector<Part> parts; ///< the largest first
  int blocks = 1;          ///< of a multiprocessor
  double rounds = 1;
};

GpuCost gpuCost(const Counts &counts, const Ceilings &ceilings, const GpuShape &shape, const GpuFactors &factors = {});

} // namespace tenon::model
