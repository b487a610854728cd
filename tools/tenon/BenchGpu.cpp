// SPDX-License-Identifier: Apache-2.0
//
// `tenon bench gpu`: the zoo's memory-bound kernels on a CUDA device beside PyTorch, Triton and JAX, what compiling and
// launching cost there, and sweeps of the tilings. The other suite is in BenchMatmul.cpp.
#include "BenchGpu.h"
#include "Commands.h"
#include "Format.h"
#include "GpuCases.h"
#include "GpuFigures.h"
#include "GpuMachine.h"
#include "GpuPeers.h"
#include "Options.h"
#include "Progress.h"
#include "Table.h"

#include "tenon/base/Error.h"
#include "tenon/jit/BuildId.h"
#include "tenon/measure/GpuBench.h"
#include "tenon/measure/LaunchCost.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

namespace tenon::tool {
namespace {

//===--- What compiling costs -------------------------------------------------------------------------------------===//
// Asked of a fresh process, whose first kernel pays for whatever is set up once (LLVM, the driver's assembler) and the
// second of which does not.

const GpuCase &caseOf(const std::vector<GpuCase> &cases, const std::string &kernel) {
  for (const GpuCase &one : cases)
    if (one.entry->name == kernel && one.shape.size() == 2 && one.shape[1] == 8192)
      return one;
  throw Error("no case of kernel '" + kernel + "' to compile");
}

/// The fresh process: compiles the kernels named and prints one line of JSON.
int probe(const GpuRequest &request) {
  if (!request.probeCache.empty())
    ::setenv("TENON_CACHE_DIR", request.probeCache.c_str(), 1);
  ::setenv("CUDA_CACHE_DISABLE", "1", 1); // the driver remembers what it assembled, too
  std::vector<GpuCase> cases = gpuCases(/*quick=*/false);
  Device device = Device::cuda(0);
  Tensor opened = Tensor::zeros(u8, {16}, device); // opening the device is not compiling
  Json results = Json::array();
  std::stringstream names(request.probe);
  for (std::string name; std::getline(names, name, ',');) {
    const GpuCase &one = caseOf(cases, name);
    LaunchOptions options = one.launchOptions(one.tiling);
    options.compile.useDiskCache = !request.probeCache.empty();
    // Nothing runs: memory of the right type and alignment is enough, whatever it is said to hold.
    Arguments arguments = one.problem(16).arguments;
    for (Argument &argument : arguments)
      if (argument.isTensor())
        argument = argument.tensor().to(device);
    StopWatch watch;
    CompileReport report = prepare(one.entry->kernel, arguments, options);
    double milliseconds = watch.seconds() * 1e3;
    Json result = toJson(report);
    result["kernel"] = name;
    result["wall_milliseconds"] = milliseconds;
    results.push_back(std::move(result));
  }
  fmt::print("{}\n", Json{{"compiled", results}}.dump());
  return done;
}

Json askProbe(const std::string &kernels, const std::string &cache) {
  std::vector<std::string> command = {programPath(), "bench", "gpu", "--probe", kernels};
  if (!cache.empty())
    command.insert(command.end(), {"--probe-cache", cache});
  PeerProcess process(command, 60); // what it says first is all it says
  return process.greeting().at("compiled");
}

/// One row for each kernel, place in its process and cache.
std::vector<Json> compileRows(const Stage &stage) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "tenon-bench-XXXXXX").string();
  if (!::mkdtemp(pattern.data()))
    throw Error("cannot make a folder in " + fs::temp_directory_path().string());
  struct RemoveFolder {
    std::string folder;
    ~RemoveFolder() {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
  } remove{pattern};
  struct Run {
    const char *kernels;
    bool disk;
    const char *how;
  };
  const Run runs[] = {{"gelu_tanh,softmax", false, "cold"},
                      {"softmax,gelu_tanh", false, "cold"},
                      {"gelu_tanh,softmax", true, ""}, // fills the cache
                      {"gelu_tanh,softmax", true, "from disk"},
                      {"softmax,gelu_tanh", true, "from disk"}};
  std::vector<Json> rows;
  for (const Run &run : runs) {
    stage(std::string("compiling ") + run.kernels);
    Json compiled = askProbe(run.kernels, run.disk ? pattern : "");
    for (size_t i = 0; i < compiled.size() && *run.how; ++i) {
      std::string kernel = compiled[i].at("kernel");
      rows.push_back({{"kind", "compile"},
                      {"case", "compile " + kernel},
                      {"kernel", kernel},
                      {"how", fmt::format("{}, {} in its process", run.how, i ? "second" : "first")},
                      {"wall_milliseconds", compiled[i].at("wall_milliseconds")},
                      {"phases", compiled[i].at("phases")},
                      {"from_disk", compiled[i].at("from_disk")}});
    }
  }
  return rows;
}

void printCompileRows(const std::vector<Json> &rows) {
  using enum Table::Align;
  Table table({{"compile"}, {"how"}, {"ms", right}, {"phases", left, Table::Narrow::shrinks}});
  for (const Json &row : rows) {
    std::vector<std::string> phases;
    for (const Json &phase : row["phases"])
      phases.push_back(fmt::format("{} {:.1f}", phase["name"].get<std::string>(), phase["milliseconds"].get<double>()));
    table.add({row["kernel"].get<std::string>(), row["how"].get<std::string>(),
               fmt::format("{:.1f}", row["wall_milliseconds"].get<double>()), joined(phases)});
  }
  table.print();
}

//===--- What launching costs -------------------------------------------------------------------------------------===//

Json launchRow(GpuPeers *peers) {
  LaunchCost cost = measureLaunchCost(10000, Device::cuda(0));
  Json row = {{"kind", "launch"},
              {"case", "launch cost"},
              {"launches", cost.launches},
              {"time", toJson(cost.launch)},
              {"profiled", toJson(cost.profiled)},
              {"driver_call", toJson(cost.driver)}};
  Json others = Json::object();
  for (const char *name : {"torch_eager", "triton"}) {
    if (!peers) {
      others[name] = {{"status", "not asked"}};
      continue;
    }
    PeerReady ready = peers->prepare(name, {{"kernel", "launch_cost"}, {"shape", {1024}}, {"sets", 1}});
    others[name] = {{"status", ready.status}, {"detail", ready.detail}};
    if (ready.status != "ready")
      continue;
    try {
      std::vector<double> samples;
      for (int i = 0; i < 15; ++i)
        samples.push_back(peers->burst(name));
      others[name] = {{"status", "measured"}, {"time", toJson(estimate(samples))}};
    } catch (const Error &error) {
      others[name] = {{"status", "failed"}, {"detail", error.what()}};
    }
  }
  row["peers"] = others;
  return row;
}

void printLaunchRow(const Json &row) {
  auto text = [](const Json &time) { return secondsText(time["median"].get<double>()); };
  std::string line = fmt::format("launch, host time: {}, of which an empty kernel's takes {}", text(row["time"]),
                                 text(row["driver_call"]));
  for (const auto &[name, peer] : row["peers"].items())
    line += fmt::format("; {} {}", name,
                        peer.contains("time") ? text(peer["time"]) : peer["status"].get<std::string>());
  fmt::print("{}\n", line);
}

//===--- The table ------------------------------------------------------------------------------------------------===//

Table caseTable() {
  using enum Table::Align;
  using enum Table::Narrow;
  return Table({{"case", left, shrinks, "cross_entropy 4096x128256"},
                {"time", right, stays, "100.0 us ±0.5%"},
                {"GB/s", right, stays, "4000"},
                {"of bandwidth", right, stays, "0.95 [0.95, 0.95]"},
                {"eager", right, stays, "missing"},
                {"compile", right, stays, "missing"},
                {"triton", right, goes, "missing"},
                {"jax", right, stays, "missing"},
                {"best peer", right, goes, "1.00x [1.00, 1.00]"},
                {"goals", left, stays, "bandwidth no"}});
}

std::string goalsText(const GpuFigures &figures) {
  std::vector<std::string> missed;
  std::optional<bool> bandwidth = figures.bandwidthGoal(), peer = figures.peerGoal();
  if (bandwidth && !*bandwidth)
    missed.push_back(fmt::format("not {}", figures.one->bandwidthGoal));
  if (peer && !*peer)
    missed.push_back("slower");
  return !missed.empty() ? joined(missed) : bandwidth || peer ? "reached" : "-";
}

void addRow(Table &table, const GpuFigures &figures) {
  if (!figures.passed()) {
    table.add({figures.one->name(), {figures.verdict && !figures.verdict->passed ? "wrong" : "error", Style::bad}, "",
               "", "", "", "", "", "", ""});
    return;
  }
  auto withInterval = [](const PeerFigures *peer, const char *unit) {
    return peer ? fmt::format("{:.2f}{} [{:.2f}, {:.2f}]", peer->ratio.median, unit, peer->ratio.low, peer->ratio.high)
                : std::string("-");
  };
  std::string goals = goalsText(figures);
  table.add({figures.one->name(), secondsText(figures.seconds()),
             fmt::format("{:.0f}", figures.bytesPerSecond() / 1e9), withInterval(figures.yardstick(), ""),
             peerCell(figures.peers, "torch_eager"), peerCell(figures.peers, "torch_compile"), peerCell(figures.peers, "triton"),
             peerCell(figures.peers, "jax"), withInterval(figures.bestPeer(), "x"),
             {goals, goals == "reached" ? Style::good : goals == "-" ? Style::plain : Style::warn}});
}

//===--- The command ----------------------------------------------------------------------------------------------===//

class GpuBench {
public:
  explicit GpuBench(const GpuRequest &request)
      : request_(request), seconds_(request.seconds > 0 ? request.seconds : 330), report_("bench gpu", request.json, 0),
        wanted_(wantedCases(request)) {
    describeGpuRun(report_, request_, seconds_);
    for (GpuCase &one : gpuCases(request.quick))
      if (isWanted(one.name())) {
        one.tiling.without = request.without;
        cases_.push_back(std::move(one));
      }
    if (cases_.empty() && !isWanted("compile") && !isWanted("launch cost"))
      throw Error("no case matches '" + request.cases + "'");
    describe();
  }

  int run() {
    if (request_.sweep) {
      sweep();
    } else {
      if (request_.peers) {
        Progress progress(1);
        progress.show("starting PyTorch and JAX");
        peers_.emplace(request_.peerScript);
        report_.set("versions", peers_->versions());
      }
      costs();
      table();
    }
    report_.set("gpu_state_after", gpuState(0));
    report_.set("seconds", watch_.seconds());
    report_.set("complete", true);
    report_.tellWeather();
    report_.write();
    return passed_ ? done : checkFailed;
  }

private:
  bool isWanted(const std::string &name) const { return std::regex_search(name, wanted_); }
  bool timeIsUp() const { return watch_.seconds() > seconds_; }

  void describe() const {
    if (report_.quiet())
      return;
    const CudaProperties &gpu = cudaProperties(0);
    fmt::print("{}; bf16, forward; median and 95% interval; ratios are the other's time over ours, in alternating "
               "bursts{}\n",
               gpu.name, request_.noVerify ? "; results not verified" : "; results verified first");
  }

  /// Adds a row and writes the report anew, so that what was measured outlives whatever happens next.
  void add(Json row) {
    report_.add(std::move(row));
    if (!report_.quiet())
      report_.write();
  }

  void costs() {
    Progress progress(1);
    Stage stage = [&](const std::string &what) { progress.show(what); };
    if (isWanted("compile gelu_tanh") || isWanted("compile softmax")) {
      try {
        std::vector<Json> rows = compileRows(stage);
        progress.clear();
        if (!report_.quiet())
          printCompileRows(rows);
        for (Json &row : rows)
          add(std::move(row));
      } catch (const std::exception &error) {
        fail("compile", error.what());
      }
    }
    if (isWanted("launch cost")) {
      stage("launch cost");
      try {
        Json row = launchRow(peers_ ? &*peers_ : nullptr);
        progress.clear();
        if (!report_.quiet())
          printLaunchRow(row);
        add(std::move(row));
      } catch (const Error &error) {
        fail("launch cost", error.what());
      }
    }
  }

  void fail(const std::string &name, const std::string &why) {
    passed_ = false;
    notes_.push_back(name + ": " + why);
    add({{"kind", "case"}, {"case", name}, {"failure", why}});
  }

  void table() {
    GpuFigureOptions options;
    options.verify = !request_.noVerify;
    options.peers = peers_ ? &*peers_ : nullptr;
    if (request_.quick)
      options.pairs = {.minPairs = 7, .maxPairs = 15, .spread = 0.02};
    Table table = caseTable();
    Progress progress(cases_.size());
    for (const GpuCase &one : cases_) {
      if (timeIsUp()) {
        fail(one.name(), fmt::format("not run: the {} s of --seconds are over", seconds_));
        continue;
      }
      GpuFigures figures = findGpuFigures(one, options, [&](const std::string &what) { progress.show(what); });
      progress.advance();
      if (!figures.passed()) {
        passed_ = false;
        notes_.push_back(one.name() + ": " + figures.failure);
      }
      for (const auto &[name, peer] : figures.peers)
        if (!peer.measured() && peer.status != "not asked")
          ++peerNotes_[peer.detail.starts_with(peer.status) ? fmt::format("{} {}", name, peer.detail)
                                                            : fmt::format("{} {}: {}", name, peer.status, peer.detail)];
      addRow(table, figures);
      progress.clear();
      if (!report_.quiet())
        table.printNew();
      add(toJson(figures));
    }
    progress.clear();
    printNotes();
  }

  void sweep() {
    using enum Table::Align;
    Progress progress(cases_.size());
    for (const GpuCase &one : cases_) {
      if (timeIsUp()) {
        fail(one.name(), fmt::format("not run: the {} s of --seconds are over", seconds_));
        continue;
      }
      std::vector<GpuFigures> all =
          sweepTilings(one, !request_.noVerify, [&](const std::string &what) { progress.show(what); });
      progress.advance();
      progress.clear();
      Table table({{one.name()}, {"time", right}, {"GB/s", right}, {"note", left, Table::Narrow::shrinks}});
      for (const GpuFigures &figures : all) {
        bool isDefault = figures.tiling.text() == one.tiling.text();
        table.add({figures.tiling.text(), figures.passed() ? secondsText(figures.seconds()) : "-",
                   figures.passed() ? fmt::format("{:.0f}", figures.bytesPerSecond() / 1e9) : "-",
                   figures.passed() ? (isDefault ? "default" : "") : figures.failure});
        Json row = toJson(figures);
        row["kind"] = "sweep";
        add(std::move(row));
      }
      if (!report_.quiet()) {
        table.print();
        fmt::print("\n");
        std::fflush(stdout);
      }
    }
    printNotes();
  }

  void printNotes() {
    if (report_.quiet())
      return;
    for (const std::string &note : notes_)
      fmt::print("{}\n", note);
    for (const auto &[note, count] : peerNotes_)
      fmt::print("{} ({} case{})\n", note, count, count == 1 ? "" : "s");
  }

  const GpuRequest &request_;
  double seconds_;
  StopWatch watch_;
  Report report_;
  std::regex wanted_;
  std::vector<GpuCase> cases_;
  std::optional<GpuPeers> peers_;
  std::vector<std::string> notes_;
  std::map<std::string, int> peerNotes_; ///< how often each was said
  bool passed_ = true;
};

} // namespace

std::regex wantedCases(const GpuRequest &request) {
  try {
    return std::regex(request.cases);
  } catch (const std::regex_error &) {
    throw Error("'" + request.cases + "' is no regular expression: --cases takes one, for example 'softmax|gelu'");
  }
}

void describeGpuRun(Report &report, const GpuRequest &request, double seconds) {
  if (!whyNoCuda().empty())
    throw Error("there is no CUDA device to measure: " + whyNoCuda());
  report.set("gpu", gpuProperties(0));
  report.set("gpu_state_before", gpuState(0));
  report.set("commit", commitText());
  std::string build;
  for (unsigned char byte : jit::buildId())
    build += fmt::format("{:02x}", byte);
  report.set("build", build);
  report.set("versions", nullptr);
  report.set("options", {{"suite", request.suite},
                         {"cases", request.cases},
                         {"peers", request.peers},
                         {"quick", request.quick},
                         {"sweep", request.sweep},
                         {"regime", request.regime},
                         {"tilings", request.tilings},
                         {"without", request.without},
                         {"verify", !request.noVerify},
                         {"seconds", seconds}});
  report.set("complete", false);
}

Command addBenchGpu(CLI::App &bench) {
  CLI::App *command = bench.add_subcommand("gpu", "Measure kernels on a CUDA device, beside PyTorch, Triton and JAX");
  auto request = std::make_shared<GpuRequest>();
  command->add_option("--suite", request->suite, "What to measure: memory-bound kernels, or matrix products")
      ->check(CLI::IsMember({"memory", "matmul"}).description(""))
      ->capture_default_str()
      ->type_name("memory|matmul");
  command->add_flag("--peers", request->peers, "Measure PyTorch, Triton and JAX too (python3 and what is installed)");
  command->add_option("--cases,--only", request->cases, "Only what this regular expression is found in")
      ->type_name("REGEX");
  command->add_option("--regime", request->regime, "Matrix products: under sustained load, in short bursts, or both")
      ->check(CLI::IsMember({"both", "sustained", "bursts"}).description(""))
      ->capture_default_str()
      ->type_name("both|sustained|bursts");
  command->add_flag("--quick", request->quick, "A sixteenth of the rows (products: 512 of each), and fewer bursts");
  command->add_flag("--sweep", request->sweep, "Try the tilings of each case instead, and print them fastest first");
  command->add_option("--tiling", request->tilings, "Products: this one, for example bm=128,bn=256,bk=64,warps=8")
      ->allow_extra_args(false)
      ->type_name("NAME=N,...");
  addWithoutOption(*command, request->without);
  command->add_flag("--no-verify", request->noVerify, "Do not check the results first");
  command->add_option("--seconds,--budget", request->seconds, "No case is begun after so many (330; products: 240)")
      ->check(between(0.0, 36000.0))
      ->type_name("S");
  command->add_option("--peer-script", request->peerScript, "The peers' program, if not the one that came along")
      ->type_name("FILE");
  // How a fresh process is asked what compiling costs: empty groups are not shown.
  command->add_option("--probe", request->probe)->group("");
  command->add_option("--probe-cache", request->probeCache)->group("");
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon bench gpu --peers --json gpu.json", "tenon bench gpu --cases 'softmax .*graph'",
                         "tenon bench gpu --sweep --cases 'gelu_tanh 16384'",
                         "tenon bench gpu --suite matmul --peers --json matmul.json",
                         "tenon bench gpu --suite matmul --peers --only 'bf16.* 4096x' --regime sustained"});
  return [request] {
    if (!request->probe.empty())
      return probe(*request);
    if (!request->tilings.empty() && request->suite != "matmul")
      throw Error("--tiling is one of a product: say --suite matmul");
    return request->suite == "matmul" ? benchMatmul(*request) : GpuBench(*request).run();
  };
}

} // namespace tenon::tool
