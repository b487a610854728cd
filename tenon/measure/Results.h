// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/measure/Bench.h"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A file of measurements: what `bench` (CPU and GPU) and `demo` write with --json, and what `compare` and `report`
/// read.
///
///     {"schema": 1, "tenon": "0.1.0", "command": "bench", "commit": "...", "build": "...", "machine": {...},
///      "gpu": {...}, "options": {...}, "conditions": {...}, "complete": true, "results": [row, ...]}
///
/// A row, in the fields that everything reads (others may stand beside them, and are kept in `Row::json`):
///
///     {"kernel": "softmax", "shape": [4096, 4096], "dtype": "f32", "target": "cpu", "params": {...},
///      "flops": 8.4e7, "bytes": 1.3e8,
///      "verdict": {"passed": true, "reason": ""},      // null: not verified
///      "failure": null,                                // or a sentence
///      "time": {"seconds": {"median": ..., "low": ..., "high": ...}, "trials": 40, ...},   // null: none
///      "peers": {"torch": {"status": "measured", "time": {"median": ...}, "ratio": {...}}, ...}}
///
/// "time" may also be the estimate itself: {"median": ..., "low": ..., "high": ...}.
///
/// Two rules hold wherever a file is read: a row that failed its check has no time, whatever the file says; and a time
/// that beats the datasheet's peak of the machine is impossible, and not a time.
namespace tenon {

inline constexpr int resultsSchema = 1;

/// The peaks that no measurement can beat; 0: not known.
struct DatasheetPeaks {
  double bytesPerSecond = 0;
  /// Of the memory's caches: a working set that fits may be read faster than memory allows.
  double cacheBytes = 0;
  std::map<std::string, double> flopsPerSecond; ///< by element type: "bf16", "f32", ...
};

struct ResultRow {
  enum class Status : unsigned char {
    measured,
    wrong,      ///< failed verification
    failed,     ///< could not be compiled, run or measured
    impossible, ///< its time beats the datasheet
    untimed     ///< nothing was measured
  };
  std::string kernel, dtype, target;
  std::vector<int64_t> shape;
  std::map<std::string, int64_t> params;
  std::string variant; ///< what else tells rows apart: "graph", "2 threads", a sweep's tiling
  double flops = 0, bytes = 0;
  Status status = Status::untimed;
  std::string reason;              ///< of wrong, failed and impossible: one sentence
  bool verified = false;
  std::optional<Estimate> seconds; ///< only of measured rows
  size_t trials = 0;
  bool steady = true, cold = true;
  nlohmann::ordered_json json; ///< the whole row

  /// What the same measurement in another file is found by: kernel, shape, type, target, variant. Not the Params: they
  /// may be what changed.
  std::string key() const;
  std::string label() const; ///< "softmax 4096x4096 f32 cpu"
};
std::string_view nameOf(ResultRow::Status status);

struct Results {
  std::string name; ///< of the file
  int schema = resultsSchema;
  std::string version, command, commit, build;
  std::string machine;    ///< "AMD EPYC, 2 processors", with the GPU for rows of one
  std::string conditions; ///< what was wrong with the weather while it was measured; empty: nothing
  bool complete = true;
  DatasheetPeaks peaks;
  std::vector<ResultRow> rows;
  nlohmann::ordered_json json; ///< the whole file
};

/// Throws Error, one sentence: cannot be read, not JSON or cut short, not a results file, of another schema.
Results readResults(const std::string &file);
/// The same of a text; `name` is what errors call it.
Results parseResults(const std::string &text, const std::string &name);

/// Why this time cannot be: it beats the peak. Empty where it can, or no peak is known.
std::string whyImpossible(double seconds, double flops, double bytes, const std::string &dtype,
                          const DatasheetPeaks &peaks);
/// Of a GPU by its name, where its datasheet is known; of a processor with so many cores, more than any can do.
DatasheetPeaks gpuPeaks(const std::string &name);
/// `extras`: what the processor has of `Machine::isaExtras`. With AMX products of f32 may be made of bf16.
DatasheetPeaks cpuPeaks(int processors, const std::vector<std::string> &extras);

//===--- What changed ---------------------------------------------------------------------------------------------===//

enum class Change : unsigned char { faster, slower, same, appeared, gone, broken, mended, unmeasured };
std::string_view nameOf(Change change);

struct RowChange {
  Change change = Change::same;
  const ResultRow *before = nullptr, *after = nullptr; ///< one is null where a row is in one file only
  /// Time after over time before, and the interval that holds it: the ends of the two intervals divided crosswise.
  double ratio = 1, low = 1, high = 1;
  std::string note; ///< why a row is broken or unmeasured
};

struct CompareOptions {
  /// A change is one only if the intervals do not overlap and the medians differ by more than this: two runs of one
  /// program on a quiet machine differ by about so much.
  double noise = 0.02;
};

struct FileChange {
  std::vector<RowChange> rows; ///< in the order of the files, those that are gone last
  std::vector<std::string> remarks; ///< what makes the comparison doubtful: another machine, steal, an incomplete file
  bool regression() const;          ///< something is slower or broken
};

/// Throws Error where a comparison would say nothing: no row in common, or another kind of machine altogether unless
/// `otherMachine`.
FileChange compareResults(const Results &before, const Results &after, const CompareOptions &options = {},
                          bool otherMachine = false);

} // namespace tenon
