// SPDX-License-Identifier: Apache-2.0
//
// Internal to model/: runs a plan on ranges of instances and iterations.
#pragma once

#include "tenon/model/PlanStructure.h"

#include <set>
#include <span>

namespace tenon::model {

/// How much of each dimension of a tile comes from inside the views.
using Extent = std::array<int64_t, PlanStructure::maxRank>;

/// What an access touches over a set of instances.
struct Touched {
  struct Dim {
    int64_t first = 0, last = 0; ///< of the hull, last not included
    double count = 0;            ///< of the positions in it that are touched
    uint32_t mask = 0;           ///< what it depends on
  };
  int view = -1;
  bool isWrite = false, exact = true;
  unsigned rank = 0;
  std::array<Dim, PlanStructure::maxRank> all;
  std::span<const Dim> dims() const { return {all.data(), rank}; }
};

/// What one class of instances adds up to.
struct Tally {
  Work useful, executed;
  std::vector<double> read, written; ///< bytes requested, by view
  double loopLoadBytes = 0, loopIterations = 0;
  Work inLoops; ///< of `executed`, what stands in loops around dots
  bool isLeftToMemory = false; ///< how often such a loop runs

  /// Nothing, of so many views; in the memory that it has.
  void clear(size_t views) {
    useful = executed = inLoops = {};
    read.assign(views, 0);
    written.assign(views, 0);
    loopLoadBytes = loopIterations = 0;
    isLeftToMemory = false;
  }
};

class Evaluator {
public:
  Evaluator(const PlanStructure &plan, std::span<const int64_t> constants, std::span<const int64_t> words);

  /// Evaluates what stands before the grid: the extents and requirements. A refusal, or "".
  std::string launch(int64_t (&grid)[3]);

  void setAxis(unsigned axis, int64_t first, int64_t last) { ranges_[axis] = {first, last}; }

  /// Counts one instance of the classes that the axes span, if all are alike. Otherwise returns the variable to split.
  int count(Tally &tally);

  /// What the axes' instances touch, without splitting.
  std::vector<Touched> touched();

  /// A number of bodies that may be evaluated; when they are used up, loops are sampled.
  void setBudget(int64_t bodies) { budget_ = bodies; }
  int64_t budget() const { return budget_; }

  void note(uint32_t place, const char *text) { notes_.insert({place, text}); }
  void noteSampled() { isSampled_ = true; }
  /// In words, sorted.
  std::set<std::string> notes() const;
  /// By view: a read or write that is a bound.
  std::vector<bool> readBound, writeBound;

private:
  static constexpr int done = -1, notAlike = -2; ///< otherwise the variable to split
  using Step = PlanStructure::Step;

  int run(const PlanStructure::Block &block, double weight, Tally &tally);
  int step(const Step &step, double weight, Tally &tally);
  int access(const Step &step, double weight, Tally &tally);
  void indexed(const Step &step, double weight, Tally &tally);
  int loop(const PlanStructure::Loop &loop, double weight, Tally &tally);
  int iterations(const PlanStructure::Loop &loop, const Range &count, int64_t trips, double weight, Tally &tally);
  void describe(const PlanStructure::Loop &loop, int64_t trips, double weight, Tally &tally) const;
  int allAtOnce(const PlanStructure::Loop &loop, int64_t trips, double weight, Tally &tally);
  int iterate(const PlanStructure::Loop &loop, int64_t trips, bool isSplit, double weight, Tally &tally);
  int branch(const PlanStructure::Branch &branch, double weight, Tally &tally);
  void arrange(const Step &step);
  void work(const PlanStructure::Effort &effort, double useful, double executed, Tally &tally);
  void deferred(const Step &step, const Extent &wanted, double weight, Tally &tally);

  void touch(const PlanStructure::Block &block, std::vector<Touched> &all, bool certain);
  void touchAccess(const Step &step, std::vector<Touched> &all, bool certain);

  void evaluate(uint32_t number);
  /// The trip count over all instances: from lo to hi.
  Range trips(const PlanStructure::Loop &loop) const;
  int64_t dim(uint32_t tile, unsigned d) const { return constants_[plan_.tiles[tile].shape + d]; }
  double volume(uint32_t tile) const { return wholes_[tile].volume; }
  double volume(uint32_t tile, const Extent &extent) const;
  const Extent &whole(uint32_t tile) const { return wholes_[tile].extent; }

  struct Span {
    int64_t first = 0, last = 0;
  };
  const PlanStructure &plan_;
  std::span<const int64_t> constants_, words_;
  std::vector<Range> scalars_;
  struct Whole {
    Extent extent{};
    double volume = 1;
  };
  std::vector<Whole> wholes_; ///< of each tile
  std::vector<Extent> extents_;
  std::vector<Tally> attempts_; ///< by a loop's variable: memory that is used again
  std::array<Span, PlanStructure::maxVariables> ranges_{};
  std::array<uint32_t, PlanStructure::maxVariables> tripMasks_{};
  std::set<std::pair<uint32_t, const char *>> notes_; ///< by place
  bool isSampled_ = false;
  int64_t budget_ = 20000;
};

} // namespace tenon::model
