// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: the worker processes as the tuner sees them.
#pragma once

#include "tenon/measure/PeerProcess.h"
#include "tenon/tune/Arena.h"
#include "tenon/tune/Examination.h"
#include "tenon/tune/Outcome.h"
#include "tenon/tune/Space.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tenon::tuning {

/// A candidate that workers can compile.
struct Job {
  size_t number = 0; ///< no other job of these workers has it
  Configuration configuration;
  LaunchOptions options;
  std::string ir;
};

/// Processes that compile several candidates at once, and run one at a time. One that dies, hangs or had an error while
/// running is replaced, and what it had compiled is compiled again when it is needed (the disk cache has it).
///
/// Used by one thread, and destroyed by it: workers end with the thread that started them.
class Workers {
public:
  struct Options {
    std::vector<std::string> command; ///< that starts one; empty: found by defaultCommand()
    int count = 1;
    uint64_t memoryBytes = 0; ///< each may use; 0: no limit
    double startSeconds = 60, compileSeconds = 60, runSeconds = 20;
    bool useDiskCache = true;
    /// The first one runs and the others only compile; what they did is found in the disk cache. On a device that is
    /// one set of arguments instead of as many as there are workers, and compiling goes on beside what is timed.
    bool runsApart = false;
  };
  Workers(Options options, const Arena &arena, Target target, int device);
  ~Workers();

  /// Of a job: nothing where it went well; and what it took.
  struct Compiled {
    std::optional<Outcome> failure;
    double seconds = 0; ///< with the others compiling beside it: of the time of all, its part
  };
  /// Compiles all that are not compiled, in parallel.
  std::vector<Compiled> compile(const std::vector<const Job *> &jobs);
  /// Begins to compile them and returns, where one runs apart. Each is to be awaited; until then jobs stay where they
  /// are.
  void compileAhead(const std::vector<const Job *> &jobs);
  Compiled await(const Job &job);
  bool runsApart() const { return options_.runsApart; }

  struct Failure {
    Outcome outcome;
  };
  /// What run(), time() and examine() do first. Throws Failure.
  void load(const Job &job) { slotOf(job); }
  /// One launch on the shared memory. Throws Failure.
  double run(const Job &job);
  /// Times jobs in turn; all run in one worker. With `check`, the shared memory holds afterwards what a launch left.
  struct TimeRequest {
    double seconds = 0.1;
    bool check = true, deterministic = true;
  };
  std::vector<Outcome> time(const std::vector<const Job *> &jobs, const TimeRequest &request);

  /// What candidates are compared with where each is not judged by the reference (Examination.h): of the same layout
  /// as the arena. The arguments before a launch, poisoned in one way and in another; what a right candidate left; and
  /// where a worker puts what the candidate in question left.
  struct Images {
    const Arena *first, *second, *wanted, *found;
    std::vector<OutputPlace> outputs;
  };
  void setImages(Images images) { images_ = std::move(images); }
  struct ExamineRequest {
    double seconds = 0.1;
    double slow = 0;              ///< a launch that takes longer is timed once; 0: none does
    bool hasWanted = false;       ///< otherwise it is not timed, and `found` holds what it left
    bool deterministic = true;
    std::vector<double> tolerances, relatives; ///< by output: how far apart from what is wanted, see mostApart()
  };
  /// Runs, compares and times a candidate. Throws Failure.
  Outcome examine(const Job &job, const ExamineRequest &request);
  size_t count() const { return slots_.size(); }
  /// Lets go of everything compiled.
  void forget();

  /// The `tenon` command that belongs to this library: beside it, or in PATH.
  static std::vector<std::string> defaultCommand();

private:
  struct Slot {
    std::unique_ptr<PeerProcess> process;
    std::set<size_t> jobs;        ///< compiled there
  };
  /// What is compiled beside what runs. Threads end when there is nothing to do, or their worker is gone.
  struct Ahead {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<const Job *> open; ///< the last one first
    std::map<size_t, Compiled> done;
    std::vector<std::thread> threads; ///< by slot
    std::vector<bool> busy;
  };
  void ensure(Slot &slot);
  Compiled compileIn(Slot &slot, const Job &job, bool keep = true);
  Slot &slotOf(const Job &job);
  void startThreads();
  void work(size_t slot);

  Options options_;
  const Arena &arena_;
  Target target_;
  int device_;
  std::optional<Images> images_;
  std::vector<Slot> slots_;
  Ahead ahead_;
};

} // namespace tenon::tuning
