// SPDX-License-Identifier: Apache-2.0
//
// The choice, from the space to the winner: prune, rank, look up; then, if the policy says so, measure what the
// strategy asks for until it has enough or the budget is spent.
#include "tenon/tune/Tune.h"

#include "tenon/base/Error.h"
#include "tenon/measure/Machine.h"
#include "tenon/measure/MeasuredCeilings.h"
#include "tenon/tune/Features.h"
#include "tenon/tune/Measurer.h"
#include "tenon/tune/TileProgram.h"
#include "tenon/tune/Worker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

namespace tenon {
namespace {

using tuning::Measurer;
using Clock = std::chrono::steady_clock;

std::string plural(size_t count, const char *noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// "12 crash, for example ...": every kind of failure once, the most frequent first.
std::string reasonsText(const std::vector<TuneReport::Tried> &tried) {
  std::map<std::string, std::pair<size_t, const TuneReport::Tried *>> kinds;
  for (const TuneReport::Tried &one : tried)
    if (!one.outcome.measured()) {
      auto &[count, example] = kinds[std::string(nameOf(one.outcome.status))];
      example = count++ ? example : &one;
    }
  std::string text;
  for (const auto &[name, kind] : kinds)
    text += (text.empty() ? "" : "; ") + std::to_string(kind.first) + " " + name + " (" +
            kind.second->configuration.str() + ": " + kind.second->outcome.reason + ")";
  return text;
}

std::string refusalsText(const Space::Refusals &refusals) {
  std::string text;
  for (const auto &[reason, count] : refusals)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + ": " + reason;
  return text;
}

/// One run of tune().
class Run {
public:
  Run(const Kernel &kernel, const Space &space, const Arguments &arguments, const TuneOptions &options)
      : kernel_(kernel), space_(space), arguments_(arguments), options_(options),
        key_(tuneKeyOf(kernel, space, arguments, options.launch)) {
    rank();
  }

  TuneReport choose() {
    if (options_.policy == TunePolicy::cached) {
      openDatabase();
      if (auto best = bestOf(database_->find(key_), [&](const TuneRecord &record) { return isCurrent(record); })) {
        finish(best->configuration, TuneReport::Source::database, best->outcome.seconds);
        report_.reason = "the best of what was measured here before";
        return std::move(report_);
      }
    }
    finish(byModel(), TuneReport::Source::model, 0);
    report_.reason = std::string("the model's first choice of ") + plural(report_.valid, "configuration") +
                     (options_.policy == TunePolicy::off ? ": tuning is off"
                                                         : ": nothing was measured here for this kernel, shape, device "
                                                           "and compiler");
    return std::move(report_);
  }

  TuneReport measure(const Problem &problem) {
    openDatabase();
    readKnown();
    tuning::StrategyOptions strategy;
    strategy.policy = options_.policy;
    strategy.quickCount = options_.quickCount;
    strategy.seed = options_.seed;
    if (options_.maxConfigurations)
      strategy.most = options_.maxConfigurations;
    std::vector<tuning::Experience> experience;
    if (options_.warmStart)
      experience = tuning::experienceFrom(database_->related(key_.kernel, key_.target), key_);
    tuning::Strategy search(candidates_, strategy, std::move(experience));
    Measurer measurer(kernel_, space_, problem, options_);
    progress_.candidates = asked(configurations_.size());
    for (std::vector<size_t> batch; !mustStop() && !(batch = search.next()).empty();)
      measureBatch(measurer, search, batch);
    if (!measurer.idle())
      playOff(measurer);
    return choice(measurer);
  }

private:
  /// How many of so many the policy asks for.
  size_t asked(size_t valid) const {
    size_t most = options_.maxConfigurations ? options_.maxConfigurations : valid;
    return std::min({most, options_.policy == TunePolicy::quick ? options_.quickCount : valid, valid});
  }

  void rank() {
    report_.combinations = space_.combinations();
    std::vector<Configuration> valid = space_.configurations(limitsOf(options_.launch), &report_.refusals);
    std::unique_ptr<Ranker> own;
    const Ranker *ranker = options_.ranker;
    if (!ranker && !valid.empty()) {
      bool measures = options_.policy == TunePolicy::quick || options_.policy == TunePolicy::full;
      if (measures && options_.launch.target == Target::cpu) {
        progress_.candidates = asked(valid.size());
        tell("measuring this machine, unless that was done before");
        cpuCeilings({false, options_.launch.threads, ""}); // once a machine: from now on they are known
      }
      ranker = (own = defaultRanker(kernel_, space_, arguments_, options_.launch)).get();
    }
    double least = std::numeric_limits<double>::infinity();
    for (Configuration &configuration : valid) {
      Prediction prediction = ranker->predict(configuration);
      if (!prediction.refusal.empty()) {
        ++report_.refusals[prediction.refusal];
        continue;
      }
      least = std::min(least, prediction.seconds);
      configurations_.push_back(std::move(configuration));
      predictions_.push_back(std::move(prediction));
    }
    report_.valid = configurations_.size();
    if (configurations_.empty())
      throw Error("no configuration of kernel " + kernel_.name() + " can be used: of " +
                  plural(report_.combinations, "combination") + ", " + refusalsText(report_.refusals));
    std::vector<double> shape = tuning::shapeFeatures(arguments_);
    for (size_t i = 0; i < configurations_.size(); ++i) {
      std::vector<double> features = tuning::featuresOf(space_, configurations_[i], predictions_[i], least, shape);
      candidates_.push_back({predictions_[i].seconds, tuning::asFloats(features),
                             tuning::placeOf(space_, configurations_[i])});
    }
  }

  void openDatabase() {
    database_ = options_.database;
    if (!database_)
      database_ = &ownDatabase_.emplace();
  }

  std::string programOf(const Configuration &configuration) const {
    try {
      return tuning::traceToText(kernel_, arguments_, space_.apply(configuration, options_.launch)).hash;
    } catch (const Error &) {
      return ""; // refused while tracing
    }
  }
  bool isCurrent(const TuneRecord &record) const {
    return std::find(configurations_.begin(), configurations_.end(), record.configuration) != configurations_.end() &&
           record.program == programOf(record.configuration);
  }

  /// What earlier runs found out about these configurations. Fails count, too, except for time-outs, which may have
  /// been the machine's fault.
  void readKnown() {
    std::map<Configuration, size_t> index;
    for (size_t i = 0; i < configurations_.size(); ++i)
      index[configurations_[i]] = i;
    std::map<Configuration, std::string> programs;
    for (const TuneRecord &record : database_->find(key_)) {
      auto found = index.find(record.configuration);
      if (found == index.end() || record.outcome.status == Outcome::Status::timedOut)
        continue;
      auto [program, isNew] = programs.try_emplace(record.configuration);
      if (isNew)
        program->second = programOf(record.configuration);
      if (record.program != program->second)
        continue;
      records_.push_back(record);
      auto [known, first] = known_.try_emplace(found->second, record.outcome);
      if (!first && known->second.measured() &&
          (!record.outcome.measured() || record.outcome.seconds < known->second.seconds))
        known->second = record.outcome;
    }
  }

  double secondsSince(Clock::time_point start) const {
    return std::chrono::duration<double>(options_.now() - start).count();
  }

  bool mustStop() {
    if (report_.stopped)
      return true;
    report_.stopped =
        (options_.stop && options_.stop()) || secondsSince(start_) + decisionSeconds() > options_.budgetSeconds;
    return report_.stopped;
  }

  /// What deciding will take: the best few again, and each further problem as long as the first candidate took, whose
  /// reference had to be computed too.
  double decisionSeconds() const {
    if (firstSeconds_ == 0)
      return 0;
    return firstSeconds_ * static_cast<double>(options_.checks.size()) + 2 * finalists * options_.timingSeconds;
  }

  void tell(const std::string &doing) {
    if (!options_.progress)
      return;
    progress_.doing = doing;
    progress_.elapsedSeconds = secondsSince(start_);
    progress_.leftSeconds = std::max(0.0, options_.budgetSeconds - progress_.elapsedSeconds);
    options_.progress(progress_);
  }

  void measureBatch(Measurer &measurer, tuning::Strategy &search, const std::vector<size_t> &batch) {
    std::vector<size_t> fresh;
    for (size_t candidate : batch)
      if (auto known = known_.find(candidate); known != known_.end())
        note(search, candidate, known->second, /*isKnown=*/true);
      else
        fresh.push_back(candidate);
    if (fresh.empty())
      return;
    // No more at once than keeps the workers busy: what is compiled when the budget is spent was compiled in vain.
    measurer.forget();
    for (size_t begin = 0, end = 0; begin < fresh.size() && !mustStop(); begin = end) {
      end = std::min(begin + measurer.atOnce(), fresh.size());
      tell("compiling " + std::to_string(end - begin));
      std::vector<Configuration> wanted;
      for (size_t i = begin; i < end; ++i)
        wanted.push_back(configurations_[fresh[i]]);
      measurer.compile(wanted);
      for (size_t i = begin; i < end && !mustStop(); ++i)
        measure(measurer, search, fresh[i]);
    }
  }

  void measure(Measurer &measurer, tuning::Strategy &search, size_t candidate) {
    tell(configurations_[candidate].str());
    auto start = options_.now();
    Outcome outcome = measurer.measure(configurations_[candidate]);
    if (outcome.measured() && firstSeconds_ == 0)
      firstSeconds_ = secondsSince(start);
    keep(candidate, measurer.programOf(configurations_[candidate]), outcome);
    known_[candidate] = outcome;
    note(search, candidate, outcome, /*isKnown=*/false);
  }

  void keep(size_t candidate, const std::string &program, const Outcome &outcome) {
    TuneRecord record;
    record.key = key_;
    record.configuration = configurations_[candidate];
    record.program = program;
    record.outcome = outcome;
    record.predicted = predictions_[candidate].seconds;
    record.features = {candidates_[candidate].features.begin(), candidates_[candidate].features.end()};
    record.time =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    database_->add(record);
    records_.push_back(std::move(record));
  }

  void note(tuning::Strategy &search, size_t candidate, const Outcome &outcome, bool isKnown) {
    search.tell(candidate, outcome.measured() ? std::optional(outcome.seconds) : std::nullopt);
    report_.tried.push_back({configurations_[candidate], outcome, predictions_[candidate].seconds, isKnown});
    ++progress_.tried;
    progress_.failed += !outcome.measured();
    if (!isKnown) {
      ++report_.measured;
      report_.failed += !outcome.measured();
    }
    if (outcome.measured() && (progress_.bestSeconds == 0 || outcome.seconds < progress_.bestSeconds)) {
      progress_.best = configurations_[candidate];
      progress_.bestSeconds = outcome.seconds;
    }
    tell(configurations_[candidate].str());
  }

  /// The best few once more, in turn: they were measured at different times, and the weather changes.
  void playOff(Measurer &measurer) {
    std::vector<TuneReport::Tried> best;
    for (const TuneReport::Tried &one : report_.tried)
      if (one.outcome.measured() && one.outcome.seconds <= progress_.bestSeconds * 1.1)
        best.push_back(one);
    std::stable_sort(best.begin(), best.end(), [](const auto &a, const auto &b) {
      return a.outcome.seconds < b.outcome.seconds;
    });
    best.resize(std::min<size_t>(best.size(), finalists));
    if (best.size() < 2)
      return;
    tell("comparing the best " + std::to_string(best.size()));
    std::vector<Configuration> again;
    for (const TuneReport::Tried &one : best)
      again.push_back(one.configuration);
    std::vector<Outcome> outcomes = measurer.compare(again);
    playedOff_ = !outcomes.empty();
    for (size_t i = 0; i < outcomes.size(); ++i) {
      auto found = std::find(configurations_.begin(), configurations_.end(), again[i]);
      keep(static_cast<size_t>(found - configurations_.begin()), measurer.programOf(again[i]), outcomes[i]);
    }
  }

  /// The fastest that is right on the other problems, too.
  TuneReport choice(Measurer &measurer) {
    std::set<Configuration> out;
    for (;;) {
      std::optional<TuneRecord> best =
          bestOf(records_, [&](const TuneRecord &record) { return !out.contains(record.configuration); });
      if (!best) {
        if (report_.tried.empty())
          throw Error("the budget was spent before anything was measured: give more than " +
                      std::to_string(options_.budgetSeconds) + " s");
        throw Error("every candidate of kernel " + kernel_.name() + " failed: " + reasonsText(report_.tried));
      }
      std::optional<Outcome> failure;
      for (size_t i = 0; i < options_.checks.size() && !failure; ++i)
        failure = measurer.check(best->configuration, options_.checks[i]);
      if (!failure) {
        finish(best->configuration, report_.measured ? TuneReport::Source::measured : TuneReport::Source::database,
               best->outcome.seconds);
        report_.reason = "the fastest of " + plural(report_.tried.size(), "configuration") + " tried" +
                         (playedOff_ ? ", the best few of them twice" : "") +
                         (report_.stopped ? ", when it was stopped" : "") +
                         (report_.measured ? "" : ", all known from earlier runs");
        return std::move(report_);
      }
      out.insert(best->configuration);
      auto found = std::find(configurations_.begin(), configurations_.end(), best->configuration);
      keep(static_cast<size_t>(found - configurations_.begin()), best->program, *failure);
      report_.tried.push_back({best->configuration, *failure, best->predicted, false});
      ++report_.failed;
    }
  }

  Configuration byModel() const {
    size_t best = 0;
    for (size_t i = 1; i < predictions_.size(); ++i)
      if (predictions_[i].seconds < predictions_[best].seconds)
        best = i;
    return configurations_[best];
  }

  void finish(const Configuration &configuration, TuneReport::Source source, double seconds) {
    report_.source = source;
    report_.configuration = configuration;
    report_.options = space_.apply(configuration, options_.launch);
    report_.seconds = seconds;
    for (size_t i = 0; i < configurations_.size(); ++i)
      if (configurations_[i] == configuration)
        report_.prediction = predictions_[i];
    report_.elapsedSeconds = secondsSince(start_);
  }

  static constexpr int finalists = 4;

  const Kernel &kernel_;
  const Space &space_;
  const Arguments &arguments_;
  const TuneOptions &options_;
  TuneKey key_;
  Clock::time_point start_ = options_.now();
  std::vector<Configuration> configurations_; ///< that can be used
  std::vector<Prediction> predictions_;       ///< of each
  std::vector<tuning::Candidate> candidates_;   ///< of each
  std::optional<Database> ownDatabase_;
  Database *database_ = nullptr;
  std::map<size_t, Outcome> known_;
  std::vector<TuneRecord> records_; ///< of this key and these programs, from earlier runs and this one
  TuneProgress progress_;
  TuneReport report_;
  double firstSeconds_ = 0; ///< that running, judging and timing the first candidate took
  bool playedOff_ = false; ///< the times that decided are not those of report_.tried
};

/// What the problem suggests goes before defaults, and what the caller says before both.
TuneOptions withParams(TuneOptions options, const Problem &problem) {
  options.launch.params.insert(problem.params.begin(), problem.params.end());
  return options;
}

} // namespace

TuneKey tuneKeyOf(const Kernel &kernel, const Space &space, const Arguments &arguments, const LaunchOptions &options) {
  TuneKey key;
  key.kernel = kernel.name();
  auto add = [&](const std::string &text) { key.problem += (key.problem.empty() ? "" : " ") + text; };
  for (const Argument &argument : arguments) {
    if (!argument.isTensor())
      continue;
    const Tensor &tensor = argument.tensor();
    std::string text = std::string(nameOf(tensor.dtype())) + "[";
    for (int64_t d = 0; d < tensor.rank(); ++d)
      text += (d ? "," : "") + std::to_string(tensor.size(d));
    text += "]";
    for (int64_t d = 0; d < tensor.rank() && !tensor.isContiguous(); ++d)
      text += (d ? "," : "/") + std::to_string(tensor.stride(d));
    add(text);
  }
  auto isTuned = [&](const std::string &name) {
    return std::any_of(space.dimensions().begin(), space.dimensions().end(),
                       [&](const Space::Dimension &dimension) { return dimension.name == name; });
  };
  for (const auto &[name, value] : options.params)
    if (!isTuned(name))
      add(name + "=" + std::to_string(value));
  if (options.threads && !isTuned("threads"))
    add("threads=" + std::to_string(options.threads));
  const CompileOptions &compile = options.compile;
  for (auto [name, value] : {std::pair("warps", compile.warps), {"cluster", compile.cluster},
                             {"stages", compile.stages}, {"split", compile.split}, {"tail", int(compile.shareTail)},
                             {"pingpong", int(compile.pingPong)}})
    if (value && !isTuned(name))
      add(std::string(name) + "=" + std::to_string(value));
  if (options.compile.isa != "native" && !isTuned("vector_bits"))
    add("isa=" + options.compile.isa);
  key.target = nameOf(options.target);
  key.compiler = tuning::compilerId();
  if (options.target == Target::cuda) {
    key.device = cudaProperties(options.compile.device).name;
    key.driver = std::to_string(cudaDriverVersion());
  } else {
    key.device = thisMachine().cpu + ", " + plural(static_cast<size_t>(thisMachine().processors), "processor");
    if (options.target == Target::sim)
      key.device += ", simulating " + options.compile.gpu;
  }
  return key;
}

TuneReport tune(const Kernel &kernel, const Space &space, const Problem &problem, const TuneOptions &given) {
  TuneOptions options = withParams(given, problem);
  Run run(kernel, space, problem.arguments, options);
  bool measures = options.policy == TunePolicy::quick || options.policy == TunePolicy::full;
  return measures ? run.measure(problem) : run.choose();
}

TuneReport choose(const Kernel &kernel, const Space &space, const Arguments &arguments, const TuneOptions &options) {
  if (options.policy != TunePolicy::off && options.policy != TunePolicy::cached)
    throw Error("choosing with policy '" + std::string(nameOf(options.policy)) +
                "' would measure, and that needs a problem with a reference to judge by: call tune()");
  return Run(kernel, space, arguments, options).choose();
}

} // namespace tenon
