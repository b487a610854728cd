// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: from a configuration to its outcome.
#pragma once

#include "tenon/tune/Tune.h"
#include "tenon/tune/Turn.h"
#include "tenon/tune/Workers.h"

#include <list>
#include <map>
#include <memory>

namespace tenon::tuning {

/// Compiles candidates in workers, judges and times them there.
class Measurer {
public:
  Measurer(const Kernel &kernel, const Space &space, const Problem &problem, const TuneOptions &options);
  ~Measurer();

  /// Several at once; what fails is told by measure().
  void compile(const std::vector<Configuration> &configurations);
  /// Whether compiling and running are the work of different processes: then compileAhead() begins to compile, and
  /// measure() waits for what it needs.
  bool compilesAhead() { return workers().runsApart(); }
  void compileAhead(const std::vector<Configuration> &configurations);
  /// The code that was compiled so far.
  void forget();
  /// So many keep all workers busy.
  size_t atOnce();
  Outcome measure(const Configuration &configuration);
  /// Times those that measure() found right, in turn.
  std::vector<Outcome> compare(const std::vector<Configuration> &configurations);
  /// Whether it is right on another problem of the same shapes; nothing if it is.
  std::optional<Outcome> check(const Configuration &configuration, const Problem &problem);

  /// The hash of the configuration's Tile IR; empty where tracing refuses it.
  std::string programOf(const Configuration &configuration);
  bool idle() const { return !workers_; }

private:
  struct Traced {
    Job job;
    std::string program;
    std::optional<Outcome> failure; ///< it cannot even be compiled
    double compileSeconds = 0;
    bool isAwaited = false; ///< what compiling it comes to
  };
  Traced &trace(const Configuration &configuration);
  Workers &workers();
  std::unique_ptr<Turn> turn() const; ///< to use the device; none on the CPU
  Outcome judge(const Traced &traced);
  Outcome examine(const Traced &traced);
  std::optional<std::string> accept();
  bool comparesWithFirst() const;
  void prepareComparison();
  /// Of each output of the problem as it lies in an arena, by samples where there are some.
  std::vector<Verdict> verdictsOf(const Problem &problem, const Arena &arena) const;
  std::optional<std::string> checkBySamples(const Job &job, const Problem &problem);
  Outcome notTooFast(const Outcome &outcome) const;
  Verdict verifyIn(const Job &job, const Problem &problem, std::vector<Tensor> *outputs, double *seconds);
  void timeAndCheck(const Job &job, const std::vector<Tensor> &outputs, Outcome &outcome);

  const Kernel &kernel_;
  const Space &space_;
  Problem problem_;  ///< its references computed once
  Problem original_; ///< for samples of it, each with references of its own
  const TuneOptions &options_;
  double floor_;
  std::unique_ptr<Arena> arena_;
  /// Where only the first candidate is judged by the reference.
  struct Comparison {
    std::unique_ptr<Arena> first, second, wanted, found;
    std::vector<OutputPlace> outputs;
    std::vector<double> tolerances, relatives; ///< once there is something to compare with
  };
  std::optional<Comparison> comparison_;
  std::map<Configuration, Traced> traced_;
  std::unique_ptr<Workers> workers_; ///< whose threads may still read what is traced
  double best_ = 0;
};

/// The least that a launch can take on this machine, whatever the kernel: what it must compute and move over what the
/// machine could do if nothing ever waited.
double floorSeconds(const Problem &problem, const LaunchOptions &options);

} // namespace tenon::tuning
