// SPDX-License-Identifier: Apache-2.0
//
// `tenon bench gpu --suite matmul`: matrix products on a CUDA device beside cuBLAS, Triton and torch.compile, under
// sustained load and in short bursts, and sweeps of the tilings.
#include "BenchGpu.h"
#include "Commands.h"
#include "Format.h"
#include "GpuMachine.h"
#include "MatmulFigures.h"
#include "Progress.h"
#include "Table.h"

#include "tenon/base/Error.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

namespace tenon::tool {
namespace {

/// Bursts first: after a sustained load the card is warm.
std::vector<Regime> regimesOf(const GpuRequest &request) {
  std::vector<Regime> regimes;
  if (request.regime != "sustained")
    regimes.push_back(Regime::bursts());
  if (request.regime != "bursts")
    regimes.push_back(Regime::sustained());
  for (Regime &regime : regimes)
    if (request.quick) {
      regime.minRounds = 3;
      regime.maxRounds = 5;
      regime.pauseSeconds /= 10;
      regime.heatSeconds /= 20;
      regime.maxHeatSeconds /= 20;
    }
  return regimes;
}

Table caseTable() {
  using enum Table::Align;
  using enum Table::Narrow;
  return Table({{"case", left, shrinks, "fused,gated_mlp 4096x14336x4096"},
                {"regime", left, stays, "sustained"},
                {"time", right, stays, "100.0 us ±0.5%"},
                {"TFLOP/s", right, stays, "TFLOP/s"},
                {"best peer", left, goes, "triton_descriptor"},
                {"TFLOP/s", right, stays, "TFLOP/s"},
                {"ratio", right, stays, "1.000x [1.000, 1.000]"},
                {"others", left, shrinks, "triton_descriptor 1.00x, triton_persistent 1.00x"}});
}

void addRows(Table &table, const MatmulFigures &figures) {
  if (!figures.passed()) {
    bool isWrong = figures.verdict && !figures.verdict->passed;
    table.add({figures.one->name(), {isWrong ? "wrong" : "error", Style::bad}, "", "", "", "", "", ""});
    return;
  }
  for (const RegimeFigures &regime : figures.regimes) {
    std::string bestName;
    const PeerFigures *best = figures.bestPeer(regime, {}, &bestName);
    std::vector<std::string> others;
    for (const auto &[name, peer] : regime.peers)
      if (&peer != best)
        others.push_back(peer.measured() ? fmt::format("{} {:.2f}x", name, peer.ratio.median) : name + " failed");
    for (const auto &[name, peer] : figures.unready)
      if (peer.status != "not asked")
        others.push_back(name + " " + peer.status);
    table.add({figures.one->name(), regime.name, secondsText(regime.seconds),
               fmt::format("{:.4g}", figures.teraflops(regime.seconds.median)), best ? bestName : "-",
               best ? fmt::format("{:.4g}", figures.teraflops(best->seconds.median)) : "-",
               best ? Table::Cell(fmt::format("{:.3f}x [{:.3f}, {:.3f}]", best->ratio.median, best->ratio.low,
                                              best->ratio.high),
                                  best->ratio.high >= 1 ? Style::plain : Style::warn)
                    : Table::Cell("-"),
               joined(others)});
  }
}

class MatmulBench {
public:
  explicit MatmulBench(const GpuRequest &request)
      : request_(request), seconds_(request.seconds > 0 ? request.seconds : 240),
        report_("bench gpu", request.json, 0) {
    std::regex wanted = wantedCases(request);
    std::vector<Tiling> tilings;
    for (const std::string &text : request.tilings)
      tilings.push_back(parseTiling(text));
    describeGpuRun(report_, request_, seconds_);
    cases_ = matmulCases(request.quick, /*device=*/0);
    std::erase_if(cases_, [&](const MatmulCase &one) { return !std::regex_search(one.name(), wanted); });
    if (cases_.empty())
      throw Error("no case matches '" + request.cases + "'");
    for (MatmulCase &one : cases_)
      one.tilings = tilings.empty() ? one.tilings : tilings;
    for (MatmulCase &one : cases_)
      for (Tiling &tiling : one.tilings)
        if (tiling.without.empty())
          tiling.without = request.without;
    if (!report_.quiet())
      fmt::print("{}; medians and 95% intervals; ratios are the peer's time over ours, within rounds of one burst of "
                 "each{}\n",
                 cudaProperties(0).name, request_.noVerify ? "; results not verified" : "; results verified first");
  }

  int run() {
    if (request_.sweep) {
      sweep();
    } else {
      if (request_.peers) {
        Progress progress(1);
        progress.show("starting PyTorch");
        peers_.emplace(request_.peerScript, std::vector<std::string>{"torch"});
        report_.set("versions", peers_->versions());
      }
      table();
      summary();
    }
    printNotes();
    report_.set("gpu_state_after", gpuState(0));
    report_.set("seconds", watch_.seconds());
    report_.set("complete", true);
    report_.tellWeather();
    report_.write();
    return passed_ ? done : checkFailed;
  }

private:
  /// Adds a row and writes the report anew, so that what was measured outlives whatever happens next.
  void add(Json row) {
    report_.add(std::move(row));
    if (!report_.quiet())
      report_.write();
  }

  void fail(const MatmulCase &one, const std::string &why) {
    passed_ = false;
    notes_.push_back(one.name() + ": " + why);
    add({{"kind", "matmul"}, {"case", one.name()}, {"failure", why}});
  }

  /// Whether there is no time for one more case, which is then noted.
  bool isOver(const MatmulCase &one) {
    if (watch_.seconds() <= seconds_)
      return false;
    fail(one, fmt::format("not run: the {} s of --seconds are over", seconds_));
    return true;
  }

  void table() {
    MatmulOptions options;
    options.verify = !request_.noVerify;
    options.regimes = regimesOf(request_);
    options.peers = peers_ ? &*peers_ : nullptr;
    Table table = caseTable();
    Progress progress(cases_.size());
    for (const MatmulCase &one : cases_) {
      if (isOver(one))
        continue;
      MatmulFigures figures = findMatmulFigures(one, options, [&](const std::string &what) { progress.show(what); });
      progress.advance();
      notePeers(figures);
      addRows(table, figures);
      progress.clear();
      if (!report_.quiet())
        table.printNew();
      add(toJson(figures));
      all_.push_back(std::move(figures));
    }
  }

  void notePeers(const MatmulFigures &figures) {
    if (!figures.passed()) {
      passed_ = false;
      notes_.push_back(figures.one->name() + ": " + figures.failure);
    }
    auto note = [&](const std::string &name, const PeerFigures &peer) {
      if (!peer.measured() && peer.status != "not asked")
        ++peerNotes_[fmt::format("{} {}: {}", name, peer.status, peer.detail)];
    };
    for (const auto &[name, peer] : figures.unready)
      note(name, peer);
    for (const RegimeFigures &regime : figures.regimes)
      for (const auto &[name, peer] : regime.peers)
        note(name, peer);
  }

  /// What the groups reached, beside their goals.
  void summary() {
    std::vector<GoalFigures> goals = goalFigures(all_);
    Json rows = Json::array();
    for (const GoalFigures &one : goals)
      rows.push_back(toJson(one));
    report_.set("summary", rows);
    if (report_.quiet() || goals.empty())
      return;
    using enum Table::Align;
    Table table({{"group"}, {"regime"}, {"against"}, {"cases", right}, {"mean", right}, {"least", right},
                 {"of", left, Table::Narrow::shrinks}, {"goal"}});
    for (const GoalFigures &one : goals) {
      std::vector<std::string> wanted;
      if (one.goal->mean > 0)
        wanted.push_back(fmt::format("mean {:.2f}", one.goal->mean));
      if (one.goal->least > 0)
        wanted.push_back(fmt::format("each {:.2f}", one.goal->least));
      std::string outcome = one.reached ? "reached" : one.missing ? "incomplete" : "missed";
      table.add({one.goal->group, one.regime, one.goal->peers.empty() ? "best peer" : joined(one.goal->peers),
                 fmt::format("{}/{}", one.cases, one.cases + one.missing), fmt::format("{:.3f}", one.mean),
                 fmt::format("{:.3f}", one.least), one.leastCase,
                 {joined(wanted) + ": " + outcome, one.reached ? Style::good : Style::warn}});
    }
    fmt::print("\n");
    table.print();
  }

  /// The tilings of each case side by side, and how much of the best the default reaches.
  void sweep() {
    Regime regime = regimesOf(request_).back();
    regime.minRounds = std::min(regime.minRounds, 5);
    regime.maxRounds = 9;
    using enum Table::Align;
    Progress progress(cases_.size());
    double logs = 0;
    size_t compared = 0;
    for (const MatmulCase &one : cases_) {
      if (isOver(one))
        continue;
      std::vector<MatmulFigures> all;
      try {
        all = sweepMatmul(one, !request_.noVerify, regime, [&](const std::string &what) { progress.show(what); });
      } catch (const Error &error) {
        fail(one, error.what());
      }
      progress.advance();
      progress.clear();
      Table table({{one.name()}, {"time", right}, {"TFLOP/s", right}, {"note", left, Table::Narrow::shrinks}});
      for (const MatmulFigures &figures : all) {
        bool isDefault = figures.tiling.text() == one.tilings.front().text(), isMeasured = !figures.regimes.empty();
        double seconds = isMeasured ? figures.regimes[0].seconds.median : 0;
        if (isDefault && isMeasured) {
          logs += std::log(all.front().regimes[0].seconds.median / seconds);
          ++compared;
        }
        passed_ &= figures.passed() || !figures.verdict || figures.verdict->passed; // to be refused is no failure
        table.add({figures.tiling.text(), isMeasured ? secondsText(figures.regimes[0].seconds) : "-",
                   isMeasured ? fmt::format("{:.4g}", figures.teraflops(seconds)) : "-",
                   isMeasured ? (isDefault ? "default" : "") : figures.failure});
        Json row = toJson(figures);
        row["kind"] = "sweep";
        row["default"] = isDefault;
        add(std::move(row));
      }
      if (!report_.quiet() && !table.empty()) {
        table.print();
        fmt::print("\n");
        std::fflush(stdout);
      }
    }
    if (!compared)
      return;
    double mean = std::exp(logs / static_cast<double>(compared));
    report_.set("summary", {{"default_of_best", mean}, {"cases", compared}});
    if (!report_.quiet())
      fmt::print("the default reaches {:.3f} of the best tiling, geometric mean of {} case{}\n", mean, compared,
                 compared == 1 ? "" : "s");
  }

  void printNotes() const {
    if (report_.quiet())
      return;
    for (const std::string &note : notes_)
      fmt::print("{}\n", note);
    for (const auto &[note, count] : peerNotes_)
      fmt::print("{} ({} time{})\n", note, count, count == 1 ? "" : "s");
  }

  const GpuRequest &request_;
  double seconds_;
  StopWatch watch_;
  Report report_;
  std::vector<MatmulCase> cases_;
  std::vector<MatmulFigures> all_;
  std::optional<GpuPeers> peers_;
  std::vector<std::string> notes_;
  std::map<std::string, int> peerNotes_; ///< how often each was said
  bool passed_ = true;
};

} // namespace

int benchMatmul(const GpuRequest &request) { return MatmulBench(request).run(); }

} // namespace tenon::tool
