// SPDX-License-Identifier: Apache-2.0
//
// `tenon bench cpu`: products, attention and the kernels that wait for memory beside PyTorch, oneDNN, OpenBLAS and
// NumPy, on all visible processors and again on one; then over sizes, and over threads.
#include "BenchCpuFigures.h"
#include "Commands.h"
#include "Format.h"
#include "GpuMachine.h"
#include "Options.h"
#include "Progress.h"
#include "Table.h"

#include "tenon/base/Error.h"
#include "tenon/jit/BuildId.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <set>

namespace tenon::tool {
namespace {

struct CpuRequest {
  std::string only, json, peerScript, peerPython;
  bool peers = false, quick = false, noVerify = false;
  double budget = 7200, seconds = 4, burst = 0.03;
  std::vector<int> threads;
  std::vector<std::string> onlyPeers;
};

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string interval(const Estimate &ratio, const char *unit = "") {
  return fmt::format("{:.2f}{} [{:.2f}, {:.2f}]", ratio.median, unit, ratio.low, ratio.high);
}

/// Columns of peers, which there are only with `--peers`, stand before the last one.
Table caseTable(bool hasPeers) {
  using enum Table::Align;
  using enum Table::Narrow;
  std::vector<Table::Column> columns = {{"case", left, stays, "attention 1x16x8192x128 bf16 causal"},
                                        {"threads", right, stays},
                                        {"time", right, stays, "1000 ms ±0.5%"},
                                        {"rate", right, stays, "1000 GFLOP/s"},
                                        {"of roof", right, goes, "0.95 arithmetic"},
                                        {"of copy", right, stays, "0.95 [0.95, 0.95]"},
                                        {"of reading", right, goes, "0.95 [0.95, 0.95]"}};
  if (hasPeers)
    columns.insert(columns.end(), {{"eager", right, stays, "missing"},
                                   {"compile", right, stays, "missing"},
                                   {"oneDNN", right, goes, "missing"},
                                   {"OpenBLAS", right, goes, "missing"},
                                   {"numpy", right, goes, "missing"},
                                   {"best peer", right, stays, "1.00x [1.00, 1.00]"}});
  columns.push_back({"verified", left, goes});
  return Table(std::move(columns));
}

void addRow(Table &table, const CpuFigures &figures, bool hasPeers) {
  constexpr size_t ofItself = 5, ofPeers = 6; // columns between `threads` and `verified`
  std::vector<Table::Cell> row = {figures.one->name(), std::to_string(figures.threads)};
  if (!figures.passed()) {
    bool isWrong = figures.verdict && !figures.verdict->passed;
    row.push_back({isWrong ? "wrong" : "error", Style::bad});
    row.insert(row.end(), ofItself - 1 + (hasPeers ? ofPeers : 0), "");
    row.emplace_back(isWrong ? "no" : "-");
    return table.add(std::move(row));
  }
  const PeerFigures *stick = figures.yardstick(), *reading = figures.reading(), *best = figures.bestPeer();
  row.insert(row.end(),
             {secondsText(figures.seconds()), rateText(figures.flops, figures.bytes, figures.seconds().median),
              fmt::format("{:.2f} {}", figures.fractionOfRoof(), figures.isMemoryRoof ? "memory" : "arithmetic"),
              stick ? interval(stick->ratio) : "-", reading ? interval(reading->ratio) : "-"});
  if (hasPeers) {
    for (const char *peer : {"torch_eager", "torch_compile", "onednn", "openblas", "numpy"})
      row.push_back(peerCell(figures.peers, peer));
    row.emplace_back(best ? interval(best->ratio, "x") : "-");
  }
  row.emplace_back(figures.verdict ? "yes" : "-");
  table.add(std::move(row));
}

/// A group of cases at one number of threads, and how it stands to its goals.
struct GroupSum {
  std::vector<double> ratios, copies;
  std::string goalPeer;
  double meanGoal = 0, leastGoal = 0, copyGoal = 0;

  double mean() const {
    double sum = 0;
    for (double ratio : ratios)
      sum += std::log(ratio);
    return std::exp(sum / static_cast<double>(ratios.size()));
  }
  static double least(const std::vector<double> &values) { return *std::min_element(values.begin(), values.end()); }
  bool reached() const {
    return (ratios.empty() || (mean() >= meanGoal && least(ratios) >= leastGoal)) &&
           (copies.empty() || least(copies) >= copyGoal);
  }
};

class CpuBench {
public:
  explicit CpuBench(const CpuRequest &request) : request_(request), report_("bench cpu", request.json) {
    try {
      wanted_ = std::regex(request.only);
    } catch (const std::regex_error &) {
      throw Error("'" + request.only + "' is no regular expression: --only takes one, for example 'softmax|gelu'");
    }
    threads_ = request.threads;
    if (threads_.empty()) {
      threads_ = {thisMachine().processors};
      if (thisMachine().processors > 1)
        threads_.push_back(1);
    }
    options_.pairSeconds = request.seconds;
    options_.burstSeconds = request.burst;
    for (CpuCase &one : cpuCases(request.quick)) {
      if (!request.onlyPeers.empty())
        std::erase_if(one.peers, [&](const std::string &peer) { return !contains(request.onlyPeers, peer); });
      if (isWanted(one.name()))
        cases_.push_back(one);
      if (isWanted("threads " + one.name()) && isForThreads(one))
        threadCases_.push_back(std::move(one));
    }
    for (ScalingCase &one : scalingCases(request.quick))
      if (isWanted(one.name()))
        scaling_.push_back(std::move(one));
    if (cases_.empty() && scaling_.empty() && threadCases_.empty())
      throw Error("no case matches '" + request.only + "'");
    options_.verify = !request.noVerify;
    if (request.quick) {
      options_.minPairs = 3;
      options_.maxPairs = 7;
      options_.pairSeconds = std::min(request.seconds, 0.2);
      options_.burstSeconds = 0.002;
    }
    describe();
  }

  int run() {
    if (request_.peers && !cases_.empty()) {
      peers_.emplace(request_.peerScript, request_.peerPython);
      if (!peers_->whyNone().empty())
        say(fmt::format("alone: {}", peers_->whyNone()));
      options_.peers = &*peers_;
    }
    Json versions = nullptr, roofs = Json::object();
    Table table = caseTable(request_.peers);
    for (int threads : threads_) {
      Roofs found = measureRoofs(threads);
      roofs[std::to_string(threads)] = toJson(found);
      report_.set("roofs", roofs);
      sayRoofs(found, threads);
      if (peers_) {
        Progress progress(1);
        progress.show("starting PyTorch and NumPy");
        peers_->start(threads);
        report_.set("versions", peers_->versions());
        progress.show("compiling what torch.compile makes of the cases");
        peers_->compile(compiledDescriptions());
      }
      measureCases(table, threads, found);
    }
    options_.peers = nullptr;
    peers_.reset(); // and the memory that they hold
    if (!cases_.empty())
      sumUp();
    if (!scaling_.empty())
      measureScaling();
    if (!threadCases_.empty())
      measureThreads();
    for (const auto &[why, names] : failures_)
      say(fmt::format("{}{}: {}", names[0], names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "",
                      why));
    for (const auto &[note, count] : peerNotes_)
      say(fmt::format("{} ({} case{})", note, count, count == 1 ? "" : "s"));
    report_.set("seconds", seconds());
    report_.set("complete", true);
    report_.tellWeather();
    report_.write();
    return passed_ ? done : checkFailed;
  }

private:
  bool isWanted(const std::string &name) const { return std::regex_search(name, wanted_); }
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool timeIsUp() const { return seconds() > request_.budget; }

  /// One of each kind: what the threads bring is a matter of the kind of work.
  bool isForThreads(const CpuCase &one) {
    static const std::set<std::string> kinds = {"matmul", "attention", "gelu"};
    bool isLarge = one.kernelName != "matmul" || one.shape == std::vector<int64_t>(3, one.shape[0]);
    int64_t wanted = one.kernelName == "matmul" ? 1024 : one.kernelName == "attention" ? 2048 : 8192;
    int64_t size = one.kernelName == "attention" ? one.shape[2] : one.shape[0];
    bool isSize = request_.quick ? size < wanted : size == wanted;
    return kinds.contains(one.kernelName) && isLarge && isSize && one.variant.empty() &&
           threadKinds_.insert(one.group).second;
  }

  void say(const std::string &text) {
    if (!report_.quiet()) {
      fmt::print("{}\n", text);
      std::fflush(stdout);
    }
  }

  void describe() {
    report_.set("commit", commitText());
    std::string build;
    for (unsigned char byte : jit::buildId())
      build += fmt::format("{:02x}", byte);
    report_.set("build", build);
    report_.set("versions", nullptr);
    report_.set("options", {{"only", request_.only},
                            {"peers", request_.peers},
                            {"quick", request_.quick},
                            {"verify", options_.verify},
                            {"threads", threads_},
                            {"budget", request_.budget},
                            {"seconds", request_.seconds},
                            {"burst", request_.burst},
                            {"peer", request_.onlyPeers}});
    report_.set("complete", false);
    say(fmt::format("{}; median and 95% interval; ratios are the other's time over ours, in alternating bursts{}",
                    thisMachine().cpu, request_.noVerify ? "; results not verified" : "; results verified first"));
    if (!cases_.empty())
      say(fmt::format("of copy: 1.00 is as fast as a copy of as many bytes; of reading: as adding up as many; of roof: "
                      "as the machine's peak allows{}",
                      request_.peers ? "" : "; --peers adds PyTorch, oneDNN, OpenBLAS and NumPy"));
    if (request_.quick)
      say("--quick: sizes are too small for the goals below; what they are for takes minutes");
  }

  void sayRoofs(const Roofs &roofs, int threads) {
    auto peak = [](const char *type, const Peak &one) {
      return fmt::format("{} {:.0f} Gop/s ({})", type, one.operationsPerSecond / 1e9, one.instructions);
    };
    say(fmt::format("{} thread{}: {}, {}, {}, {}; copy {:.1f} GB/s ({})", threads, threads == 1 ? "" : "s",
                    peak("f32", roofs.peaks.f32), peak("f32 products", roofs.peaks.f32Products),
                    peak("bf16", roofs.peaks.bf16), peak("int8", roofs.peaks.int8),
                    roofs.copyBytesPerSecond / 1e9, roofs.copyWay));
  }

  /// Adds a row and writes the report anew, so that what was measured outlives whatever happens next.
  void add(Json row) {
    report_.add(std::move(row));
    if (!report_.quiet())
      report_.write();
  }

  bool skipForTime(const std::string &name) {
    if (!timeIsUp())
      return false;
    std::string why = fmt::format("not run: the {} s of --budget are over", request_.budget);
    add({{"kind", "case"}, {"case", name}, {"failure", why}});
    fail(name, why);
    return true;
  }

  void fail(const std::string &name, const std::string &why) {
    passed_ = false;
    std::vector<std::string> &names = failures_[why];
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }

  Json compiledDescriptions() const {
    Json all = Json::array();
    for (const CpuCase &one : cases_)
      if (contains(one.peers, "torch_compile"))
        all.push_back(one.description());
    return all;
  }

  void measureCases(Table &table, int threads, const Roofs &roofs) {
    Progress progress(cases_.size());
    for (const CpuCase &one : cases_) {
      if (skipForTime(one.name()))
        continue;
      CpuFigures figures =
          findCpuFigures(one, threads, roofs, options_, [&](const std::string &what) { progress.show(what); });
      progress.advance();
      if (!figures.passed())
        fail(one.name(), figures.failure);
      for (const auto &[name, peer] : figures.peers)
        if (!peer.measured() && peer.status != "not asked" && peer.status != "none" && peer.detail != peers_->whyNone())
          ++peerNotes_[peer.detail.starts_with(peer.status) ? fmt::format("{} {}", name, peer.detail)
                                                            : fmt::format("{} {}: {}", name, peer.status, peer.detail)];
      addRow(table, figures, request_.peers);
      progress.clear();
      if (!report_.quiet())
        table.printNew();
      add(toJson(figures));
      GroupSum &sum = sums_[{one.group, threads}];
      sum.goalPeer = one.goalPeer;
      sum.meanGoal = one.meanGoal;
      sum.leastGoal = one.leastGoal;
      sum.copyGoal = one.copyGoal;
      if (const PeerFigures *peer = figures.goalPeer())
        sum.ratios.push_back(peer->ratio.median);
      if (const PeerFigures *stick = figures.yardstick())
        sum.copies.push_back(stick->ratio.median);
    }
  }

  void sumUp() {
    using enum Table::Align;
    Table table({{"group"}, {"threads", right}, {"cases", right}, {"against"}, {"mean", right}, {"least", right},
                 {"goal", right}, {"of copy, least", right}, {"goal", right}, {"reached"}});
    Json sums = Json::array();
    for (const auto &[key, sum] : sums_) {
      if (sum.ratios.empty() && sum.copies.empty())
        continue;
      auto [group, threads] = key;
      auto number = [](bool there, double value) { return there ? fmt::format("{:.2f}", value) : std::string("-"); };
      bool hasRatios = !sum.ratios.empty(), hasCopies = !sum.copies.empty();
      std::string against = sum.goalPeer.empty() ? "best peer" : sum.goalPeer;
      std::string goal = number(true, sum.meanGoal);
      if (sum.leastGoal > 0)
        goal += fmt::format(", {:.2f}", sum.leastGoal);
      table.add({group, std::to_string(threads), std::to_string(std::max(sum.ratios.size(), sum.copies.size())),
                 hasRatios ? against : "-", number(hasRatios, hasRatios ? sum.mean() : 0),
                 number(hasRatios, hasRatios ? GroupSum::least(sum.ratios) : 0), hasRatios ? goal : "-",
                 number(hasCopies, hasCopies ? GroupSum::least(sum.copies) : 0), number(hasCopies, sum.copyGoal),
                 {sum.reached() ? "yes" : "no", sum.reached() ? Style::good : Style::warn}});
      sums.push_back({{"group", group},
                      {"threads", threads},
                      {"against", against},
                      {"geometric_mean", hasRatios ? Json(sum.mean()) : Json(nullptr)},
                      {"least", hasRatios ? Json(GroupSum::least(sum.ratios)) : Json(nullptr)},
                      {"mean_goal", sum.meanGoal},
                      {"least_goal", sum.leastGoal},
                      {"least_of_copy", hasCopies ? Json(GroupSum::least(sum.copies)) : Json(nullptr)},
                      {"copy_goal", sum.copyGoal},
                      {"reached", sum.reached()}});
    }
    report_.set("groups", sums);
    if (!table.empty() && !report_.quiet()) {
      fmt::print("\n");
      table.print();
    }
  }

  void measureScaling() {
    using enum Table::Align;
    Table table({{"scaling", left, Table::Narrow::stays, "scaling softmax 1000000000"},
                 {"threads", right},
                 {"time", right, Table::Narrow::stays, "1000 ms ±0.5%"},
                 {"copy", right, Table::Narrow::stays, "1000 ms ±0.5%"},
                 {"of memcpy", right, Table::Narrow::stays, "0.95 [0.95, 0.95]"},
                 {"of streaming", right, Table::Narrow::stays, "0.95 [0.95, 0.95]"},
                 {"copied by", left, Table::Narrow::goes, "streaming stores, one thread"}});
    say("");
    for (const ScalingCase &one : scaling_)
      for (int threads : threads_) {
        if (skipForTime(one.name()))
          continue;
        ScalingFigures figures = findScaling(one, threads, options_);
        auto ratio = [](const ScalingFigures::Copy &copy) -> Table::Cell {
          return {interval(copy.ratio), copy.ratio.high >= 0.9 ? Style::plain : Style::warn};
        };
        if (figures.failure.empty())
          table.add({one.name(), std::to_string(threads), secondsText(figures.ours),
                     secondsText(figures.fastest().seconds), ratio(figures.memcpy), ratio(figures.streaming),
                     figures.fastest().way});
        else
          fail(one.name(), figures.failure);
        if (!report_.quiet())
          table.printNew();
        add(toJson(figures));
      }
  }

  void measureThreads() {
    int threads = thisMachine().processors;
    if (threads == 1)
      return;
    using enum Table::Align;
    Table table({{"threads", left, Table::Narrow::stays, "attention 1x16x2048x64 bf16"},
                 {"one", right, Table::Narrow::stays, "1000 ms ±0.5%"},
                 {fmt::format("{}", threads), right, Table::Narrow::stays, "1000 ms ±0.5%"},
                 {"speed-up", right, Table::Narrow::stays, "1.95x [1.95, 1.95]"},
                 {"the machine's", right, Table::Narrow::stays, "1.95x [1.95, 1.95]"},
                 {"of it", right, Table::Narrow::stays, "0.95 [0.95, 0.95]"}});
    say("");
    for (const CpuCase &one : threadCases_) {
      if (skipForTime("threads " + one.name()))
        continue;
      ThreadFigures figures = findThreadSpeedUp(one, threads, options_);
      if (figures.failure.empty())
        table.add({one.name(), secondsText(figures.single), secondsText(figures.all), interval(figures.speedUp, "x"),
                   interval(figures.machine, "x"), interval(figures.ofMachine)});
      else
        fail("threads " + one.name(), figures.failure);
      if (!report_.quiet())
        table.printNew();
      add(toJson(figures));
    }
  }

  const CpuRequest &request_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Report report_;
  std::regex wanted_;
  std::vector<int> threads_;
  std::vector<CpuCase> cases_, threadCases_;
  std::vector<ScalingCase> scaling_;
  std::set<std::string> threadKinds_;
  CpuFigureOptions options_;
  std::optional<CpuPeers> peers_;
  std::map<std::pair<std::string, int>, GroupSum> sums_;
  std::map<std::string, std::vector<std::string>> failures_; ///< why, and what
  std::map<std::string, int> peerNotes_;                     ///< how often each was said
  bool passed_ = true;
};

} // namespace

Command addBenchCpu(CLI::App &bench) {
  CLI::App *command =
      bench.add_subcommand("cpu", "Measure kernels on the processor, beside PyTorch, oneDNN, OpenBLAS and NumPy");
  auto request = std::make_shared<CpuRequest>();
  command->add_flag("--peers", request->peers, "Measure the libraries too (in what `make peers` has installed)");
  command->add_option("--only", request->only, "Only the rows in whose name this regular expression is found")
      ->type_name("REGEX");
  command->add_option("--threads", request->threads, "How many; may be repeated (all visible processors, then one)")
      ->check(between(1, 1024))
      ->allow_extra_args(false)
      ->type_name("N");
  command->add_flag("--quick", request->quick, "Small sizes and few bursts, to see that it runs");
  command->add_option("--budget", request->budget, "No row is begun after so many seconds")
      ->check(between(0.0, 360000.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_option("--seconds", request->seconds, "For the pairs with each peer, the least number of them aside")
      ->check(between(0.0, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_option("--burst", request->burst, "How long the calls of a burst take together")
      ->check(between(1e-4, 60.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_option("--peer", request->onlyPeers, "Only this one of a row's peers; may be repeated")
      ->check(CLI::IsMember({"copy", "torch_eager", "torch_compile", "onednn", "openblas", "numpy"}).description(""))
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->add_flag("--no-verify", request->noVerify, "Do not check the results first");
  command->add_option("--peer-python", request->peerPython, "The Python that has the libraries")->type_name("FILE");
  command->add_option("--peer-script", request->peerScript, "The peers' program, if not the one that came along")
      ->type_name("FILE");
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon bench cpu --peers --json cpu.json", "tenon bench cpu --only 'softmax|rms_norm'",
                         "tenon bench cpu --only scaling --threads 1"});
  return [request] { return CpuBench(*request).run(); };
}

} // namespace tenon::tool
