// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Options.h"

#include "tenon/tune/Replay.h"
#include "tenon/tune/Tune.h"

/// What the parts of `tenon tune` share.
namespace tenon::tool {

struct TuneRequest : Request {
  std::string policy = "quick", budget = "60s", database;
  size_t configurations = 0;
  uint64_t searchSeed = 1;
  bool explain = false, exhaustive = false, heldOut = false;
  int rounds = 3;
  std::string table, exportFile, importFile;
  std::vector<std::string> replay;
};

/// "60s", "1.5m", "90": seconds.
double parseBudget(const std::string &text);
/// The kernel's space; what the request states (--param, --threads, --isa, --warps, ...) is not chosen.
Space spaceFor(const TuneRequest &request, const Case &one, const Problem &problem, const LaunchOptions &launch);
/// This program as a worker.
std::vector<std::string> workerCommand();
/// From now on an interrupt only raises a flag; the second one ends the program as ever.
void catchInterrupts();
bool interrupted();

int measureTable(const TuneRequest &request); ///< --exhaustive
int replayTables(const TuneRequest &request); ///< --replay
int judgeHeldOut(const TuneRequest &request); ///< --held-out

/// A table with what the model says of each row.
struct LoadedTable {
  tuning::ReplayCase one;
  double rankSeconds = 0; ///< what the analytic choice took
  size_t outside = 0;     ///< rows that the space no longer has: they do not count
  Problem problem;
  std::unique_ptr<Space> space;
  std::unique_ptr<Ranker> ranker; ///< refers to these
};
LoadedTable loadTable(const std::string &file);
/// The part of the optimum that the ranker's first choice reaches.
double analyticFraction(const LoadedTable &table, std::string *choice = nullptr);

} // namespace tenon::tool
