// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/model/Ceilings.h"
#include "tenon/tune/Outcome.h"
#include "tenon/tune/Space.h"

#include <string>
#include <vector>

namespace tenon {

/// Every configuration of a space, measured once: what strategies are judged by (Replay.h).
///
/// As a file: a line of JSON that says what it is a table of, then a line per configuration, its values in the order of
/// "names", then seconds and what finding out cost, or the name of the failure:
///
///     {"tenon_table": 1, "kernel": "softmax", "shape": [512, 1000], ..., "names": ["rows", "cols"]}
///     1 1008 2.31e-04 0.21
///     4096 1008 - 1.3 timed out
struct TuneTable {
  std::string kernel, dtype, target, device, compiler;
  std::vector<int64_t> shape;
  model::Ceilings ceilings; ///< of the machine, for the model: the replay may be on another
  int threads = 0;          ///< of the CPU; 0: all, or part of the space
  int rounds = 1;           ///< what is not far behind the best was measured so many times; the median counts
  size_t of = 0;            ///< configurations in the space; 0: the rows are all of them
  std::vector<std::string> names;
  struct Row {
    Configuration configuration;
    Outcome outcome;
  };
  std::vector<Row> rows;

  /// The fastest; null if all failed.
  const Row *best() const;
  double cost() const; ///< seconds that measuring all took, once each
};

std::string tableText(const TuneTable &table);
/// Throws Error, one sentence, when it is none; `name` is what the error calls it.
TuneTable parseTable(const std::string &text, const std::string &name);

} // namespace tenon
