// SPDX-License-Identifier: Apache-2.0
//
// `tenon bench classic`: what fusing is worth. GELU and softmax step by step, as one kernel of Tenon, as plain CUDA C++
// and by PyTorch, on the CPU and on the GPU that is there.
#include "ClassicKernels.h"
#include "Commands.h"
#include "Format.h"
#include "GpuCases.h"
#include "GpuMachine.h"
#include "Options.h"
#include "Progress.h"
#include "Report.h"
#include "Table.h"

#include "tenon/base/Error.h"
#include "tenon/measure/GpuBench.h"
#include "tenon/measure/Pairs.h"
#include "tenon/measure/PeerProcess.h"
#include "tenon/measure/Rotation.h"
#include "tenon/runtime/cuda/CudaSource.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Module.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace tenon::tool {
namespace {

namespace fs = std::filesystem;

struct ClassicRequest {
  std::string target = "all", shape, dtype, cuda, peerScript, python, json;
  double seconds = 2;
  int threads = 0;
  bool noPeers = false;
};

/// One way to do the work.
struct Variant {
  std::string name, status = "measured", detail; ///< why it was not measured
  size_t launches = 0;                           ///< 0: not known
  std::optional<Verdict> verdict;
  Estimate seconds, ratio; ///< ratio: its time over the fused kernel's
  bool measured() const { return status == "measured"; }
};

/// One computation in one place.
struct Setting {
  std::string work; ///< of the zoo: "gelu_tanh", "softmax"
  std::vector<int64_t> shape;
  DType dtype;
  Device device;
  LaunchOptions options; ///< of the fused kernel

  const zoo::Entry &entry() const { return zoo::find(work); }
  Problem problem(int64_t rows) const {
    std::vector<int64_t> sizes = shape;
    sizes[0] = rows;
    return entry().makeProblem(sizes, dtype, 1);
  }
  std::string place() const { return device.isCuda() ? "cuda" : "cpu"; }
};

using Run = std::function<void(const Arguments &arguments, Stream *stream)>;

//===--- Time -----------------------------------------------------------------------------------------------------===//

/// Calls in a row over sets of arguments that exceed the cache: by the device's clock, or by the host's.
class Bursts {
public:
  Bursts(Run run, const std::vector<Arguments> &sets, Device device)
      : run_(std::move(run)), sets_(sets), isCuda_(device.isCuda()) {
    if (isCuda_)
      stream_.emplace(device);
    for (int i = 0; i < 3; ++i)
      time(1);
    constexpr double wanted = 5e-3;
    calls_ = static_cast<size_t>(std::clamp(wanted / std::max(time(2), 1e-7), 1.0, 2000.0));
  }

  double operator()() { return time(calls_); }

private:
  double time(size_t calls) {
    Stream *stream = stream_ ? &*stream_ : nullptr;
    auto call = [&] { run_(sets_[turn_++ % sets_.size()], stream); };
    if (!stream) {
      auto start = std::chrono::steady_clock::now();
      for (size_t i = 0; i < calls; ++i)
        call();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
             static_cast<double>(calls);
    }
    Event start, end;
    call(); // the device is busy while the host queues the rest
    stream->record(start);
    for (size_t i = 0; i < calls; ++i)
      call();
    stream->record(end);
    stream->synchronize();
    return elapsedMilliseconds(start, end) * 1e-3 / static_cast<double>(calls);
  }

  Run run_;
  const std::vector<Arguments> &sets_;
  bool isCuda_;
  std::optional<Stream> stream_;
  size_t turn_ = 0, calls_ = 1;
};

//===--- Right or wrong -------------------------------------------------------------------------------------------===//

/// Judges on few rows, which a host can check soon; the code is that of many.
Verdict judge(const Setting &setting, const Problem &problem, const Run &run) {
  return verify(problem, [&](const Arguments &host) {
    if (!setting.device.isCuda())
      return run(host, nullptr);
    Arguments there;
    for (const Argument &argument : host)
      there.push_back(argument.tensor().to(setting.device));
    Stream stream(setting.device);
    run(there, &stream);
    stream.synchronize();
    for (size_t i = 0; i < host.size(); ++i)
      host[i].tensor().copyFrom(there[i].tensor());
  });
}

//===--- Plain CUDA C++ -------------------------------------------------------------------------------------------===//

std::string findPeerFile(const std::string &name) {
  for (const char *place : {"../scripts/peers", "../../scripts/peers", "../share/tenon/peers"}) {
    fs::path file = fs::path(programDirectory()) / place / name;
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored))
      return fs::weakly_canonical(file, ignored).string();
  }
  throw Error(fmt::format("scripts/peers/{} is not beside the program", name));
}

std::string readText(const std::string &file) {
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw Error(fmt::format("cannot read '{}'", file));
  return text.str();
}

/// The function of that name in the file: (x, y, rows, cols), a block of 256 threads a row.
Run cudaRun(const Setting &setting, const std::string &file) {
  if (setting.dtype != f32 && setting.dtype != bf16)
    throw Error(fmt::format("the CUDA source is for f32 and bf16, not {}", nameOf(setting.dtype)));
  std::string path = file.empty() ? findPeerFile("classic.cu") : file;
  std::string source = (setting.dtype == bf16 ? "#define TENON_BF16\n" : "#define TENON_F32\n") + readText(path);
  cuda::Gpu &gpu = cuda::Gpu::get(setting.device.ordinal);
  std::string ptx = cuda::compileCudaSource("#line 1\n" + source, fs::path(path).filename().string(),
                                            cudaProperties(setting.device.ordinal).architecture());
  auto function = std::make_shared<cuda::Function>(cuda::Module::fromPtx(gpu, ptx), setting.work);
  return [function](const Arguments &arguments, Stream *stream) {
    const Tensor &x = arguments[0].tensor(), &y = arguments[1].tensor();
    cuda::LaunchShape shape;
    shape.grid[0] = static_cast<uint32_t>(x.size(0));
    shape.block[0] = 256;
    const uint64_t words[] = {reinterpret_cast<uintptr_t>(x.data()), reinterpret_cast<uintptr_t>(y.data()),
                              static_cast<uint64_t>(x.size(0)), static_cast<uint64_t>(x.size(1))};
    cuda::launch(*function, shape, cuda::CudaStream::of(*stream), words);
  };
}

//===--- The command ----------------------------------------------------------------------------------------------===//

class Classic {
public:
  explicit Classic(const ClassicRequest &request)
      : request_(request), report_("bench classic", request.json, request.target == "cpu" ? -1 : 0) {}

  int run() {
    std::vector<Setting> settings = chooseSettings();
    if (!request_.noPeers)
      startPeers();
    Progress progress(settings.size());
    for (const Setting &setting : settings) {
      std::vector<Variant> variants = measure(setting, progress);
      progress.advance();
      progress.clear();
      if (!report_.quiet())
        print(setting, variants);
      report_.add(toJson(setting, variants));
    }
    report_.tellWeather();
    report_.write();
    return passed_ ? done : checkFailed;
  }

private:
  std::vector<Setting> chooseSettings() const {
    bool hasCuda = whyNoCuda().empty();
    if (request_.target != "all" && request_.target != "cpu" && request_.target != "cuda")
      throw Error(fmt::format("unknown target '{}': the targets here are all, cpu and cuda", request_.target));
    if (request_.target == "cuda" && !hasCuda)
      throw Error("there is no CUDA device to measure: " + whyNoCuda());
    std::vector<Setting> settings;
    for (Device device : {Device::cpu(), Device::cuda(0)}) {
      bool isWanted = request_.target == "all" || request_.target == (device.isCuda() ? "cuda" : "cpu");
      if (!isWanted || (device.isCuda() && !hasCuda))
        continue;
      for (const char *work : {"gelu_tanh", "softmax"})
        settings.push_back(makeSetting(work, device));
    }
    return settings;
  }

  Setting makeSetting(const std::string &work, Device device) const {
    Request wanted; // shape and type as other commands read them
    wanted.kernel = work;
    wanted.shapes = {!request_.shape.empty() ? request_.shape : device.isCuda() ? "16384x8192" : "4096x4096"};
    wanted.dtypes = {!request_.dtype.empty() ? request_.dtype : device.isCuda() ? "bf16" : "f32"};
    Case one = caseOf(wanted, Defaults::demo);
    Setting setting{work, one.shape, one.dtype, device, {}};
    setting.options.params = setting.problem(1).params;
    setting.options.threads = request_.threads;
    if (device.isCuda()) {
      setting.options.target = Target::cuda;
      for (const GpuCase &known : gpuCases(/*quick=*/false)) // the tiling that is measured there
        if (known.entry->name == work && known.shape == one.shape && !known.graphLaunches)
          setting.options = known.launchOptions(known.tiling);
    }
    return setting;
  }

  void startPeers() {
    fs::path environment = fs::path(programDirectory()).parent_path() / "peers-venv" / "bin" / "python3";
    std::error_code ignored;
    std::string python = !request_.python.empty()           ? request_.python
                         : fs::exists(environment, ignored) ? environment.string()
                                                            : "python3";
    std::string script = request_.peerScript.empty() ? findPeerFile("classic_peers.py") : request_.peerScript;
    Progress progress(1);
    progress.show("starting PyTorch");
    try {
      peers_ = std::make_unique<PeerProcess>(
          std::vector<std::string>{python, script, "torch", std::to_string(request_.threads)}, 120);
      report_.set("versions", peers_->greeting().value("versions", Json::object()));
      if (peers_->greeting().contains("missing"))
        whyNoPeers_ = "PyTorch is not installed: " + peers_->greeting()["missing"].get<std::string>();
    } catch (const Error &error) {
      whyNoPeers_ = error.what();
    }
  }

  std::vector<Variant> measure(const Setting &setting, Progress &progress) {
    auto stage = [&](const std::string &what) { progress.show(setting.work + " on " + setting.place() + ": " + what); };
    stage("making inputs");
    constexpr int64_t fewRows = 64;
    int64_t rows = setting.shape[0], block = 1;
    while (rows % (2 * block) == 0 && 2 * block <= fewRows)
      block *= 2;
    Problem small = setting.problem(block);
    std::vector<Arguments> sets;
    std::optional<RepeatedProblem> repeated;
    if (setting.device.isCuda()) {
      repeated.emplace([&](int64_t count) { return setting.problem(count); }, rows, block, setting.device);
      sets = repeated->copies(setsToExceedCache(repeated->bytes(), setting.device));
    } else {
      Rotation rotation(setting.problem(rows).arguments);
      for (size_t i = 0; i < rotation.sets(); ++i)
        sets.push_back(rotation.next());
    }

    std::vector<Variant> variants;
    Run fused = [&](const Arguments &arguments, Stream *stream) {
      LaunchOptions options = setting.options;
      options.stream = stream;
      launch(setting.entry().kernel, arguments, options);
    };
    stage("the fused kernel");
    Variant first = judged(setting, small, "tenon fused", 1, fused);
    if (!first.measured()) {
      passed_ = false;
      return {first};
    }
    Bursts ours(fused, sets, setting.device);
    std::vector<double> samples;

    stage("step by step");
    UnfusedSteps few(setting.work, setting.device.isCuda() ? small.arguments[0].tensor().to(setting.device)
                                                           : small.arguments[0].tensor());
    UnfusedSteps steps(setting.work, sets[0][0].tensor());
    auto unfused = [&setting](const UnfusedSteps &which) -> Run {
      return [&setting, &which](const Arguments &arguments, Stream *stream) {
        LaunchOptions options;
        options.target = setting.options.target;
        options.threads = setting.options.threads;
        options.stream = stream;
        which(arguments[0].tensor(), arguments[1].tensor(), options);
      };
    };
    Variant apart =
        judged(setting, roundedProblem(setting.work, small), "tenon unfused", steps.launches(), unfused(few));
    if (apart.measured())
      pairWithRun(apart, ours, samples, unfused(steps), sets, setting.device);
    passed_ &= apart.measured();
    variants.push_back(std::move(apart));

    if (setting.device.isCuda()) {
      stage("plain CUDA C++");
      variants.push_back(plainCuda(setting, small, sets, ours, samples));
    } else if (setting.entry().plainLoop && setting.dtype == f32) {
      stage("the plain loop");
      Run loop = [&](const Arguments &arguments, Stream *) { setting.entry().plainLoop(arguments); };
      Variant plain = judged(setting, small, "plain C++ loop", 0, loop);
      if (plain.measured())
        pairWithRun(plain, ours, samples, loop, sets, setting.device);
      variants.push_back(std::move(plain));
    }
    for (const char *name : {"torch_unfused", "torch_eager", "torch_compile"}) {
      stage(name);
      variants.push_back(peer(setting, name, sets.size(), ours, samples));
    }
    while (samples.size() < 15)
      samples.push_back(ours());
    first.seconds = estimate(samples);
    first.ratio = {1, 1, 1};
    variants.insert(variants.begin(), std::move(first));
    return variants;
  }

  static Variant judged(const Setting &setting, const Problem &problem, const std::string &name, size_t launches,
                        const Run &run) {
    Variant variant;
    variant.name = name;
    variant.launches = launches;
    try {
      variant.verdict = judge(setting, problem, run);
      if (!variant.verdict->passed) {
        variant.status = "wrong";
        variant.detail = variant.verdict->reason;
      }
    } catch (const Error &error) {
      variant.status = "failed";
      variant.detail = error.what();
    }
    return variant;
  }

  void pairWithRun(Variant &variant, Bursts &ours, std::vector<double> &samples, const Run &run,
                   const std::vector<Arguments> &sets, Device device) const {
    Bursts theirs(run, sets, device);
    pair(variant, ours, samples, [&] { return theirs(); });
  }

  void pair(Variant &variant, Bursts &ours, std::vector<double> &samples, const std::function<double()> &theirs) const {
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(request_.seconds);
    PairOptions options;
    options.minPairs = request_.seconds < 0.5 ? 3 : 9;
    options.maxPairs = options.minPairs;
    Pairs pairs = comparePairs([&] { return ours(); }, theirs, options);
    while (std::chrono::steady_clock::now() < until && pairs.ours.size() < 45 && pairs.ratio().spread() > 0.01) {
      Pairs more = comparePairs([&] { return ours(); }, theirs, options);
      pairs.ours.insert(pairs.ours.end(), more.ours.begin(), more.ours.end());
      pairs.theirs.insert(pairs.theirs.end(), more.theirs.begin(), more.theirs.end());
    }
    samples.insert(samples.end(), pairs.ours.begin(), pairs.ours.end());
    variant.seconds = pairs.theirsEstimate();
    variant.ratio = pairs.ratio();
  }

  Variant plainCuda(const Setting &setting, const Problem &small, const std::vector<Arguments> &sets, Bursts &ours,
                    std::vector<double> &samples) {
    Variant variant;
    variant.name = "cuda c++";
    variant.launches = 1;
    if (std::string why = cuda::whyNoNvrtc(); !why.empty()) {
      variant.status = "not installed";
      variant.detail = why;
      return variant;
    }
    try {
      Run run = cudaRun(setting, request_.cuda);
      variant = judged(setting, small, variant.name, 1, run);
      if (variant.measured())
        pairWithRun(variant, ours, samples, run, sets, setting.device);
    } catch (const Error &error) {
      variant.status = "failed";
      variant.detail = error.what();
    }
    if (!request_.cuda.empty())
      passed_ &= variant.measured();
    return variant;
  }

  Variant peer(const Setting &setting, const std::string &name, size_t sets, Bursts &ours,
               std::vector<double> &samples) {
    Variant variant;
    variant.name = name;
    if (!peers_ || !whyNoPeers_.empty() || !peers_->alive()) {
      variant.status = request_.noPeers ? "not asked" : "not installed";
      variant.detail = whyNoPeers_;
      return variant;
    }
    try {
      Json description = {{"kernel", setting.work},
                          {"shape", setting.shape},
                          {"dtype", nameOf(setting.dtype)},
                          {"device", setting.place()},
                          {"sets", sets}};
      Json answer = peers_->ask({{"case", description}, {"peer", name}}, 180);
      if (!answer.value("ready", false))
        throw Error(answer.value("error", "no reason given"));
      variant.detail = answer.value("variant", "");
      pair(variant, ours, samples, [&] { return peers_->ask({{"burst", true}}, 60).at("ms").get<double>() * 1e-3; });
    } catch (const std::exception &error) {
      variant.status = "failed";
      variant.detail = error.what();
    }
    return variant;
  }

  static void print(const Setting &setting, const std::vector<Variant> &variants) {
    using enum Table::Align;
    double bytes = 2.0 * sizeOf(setting.dtype);
    for (int64_t size : setting.shape)
      bytes *= static_cast<double>(size);
    Table table({{fmt::format("{} {} {} on {}", setting.work, shapeText(setting.shape), nameOf(setting.dtype),
                              setting.place())},
                 {"launches", right},
                 {"verified"},
                 {"time", right},
                 {"useful GB/s", right},
                 {"over fused", right},
                 {"fused is"},
                 {"note", left, Table::Narrow::shrinks}});
    for (const Variant &variant : variants) {
      std::string verified = variant.verdict ? (variant.verdict->passed ? "yes" : "wrong") : "-";
      if (!variant.measured()) {
        table.add({variant.name, "", verified, "-", "-", "-", "-",
                   variant.detail.empty() ? variant.status : variant.status + ": " + variant.detail});
        continue;
      }
      table.add({variant.name, variant.launches ? std::to_string(variant.launches) : "-", verified,
                 secondsText(variant.seconds), fmt::format("{:.3g}", bytes / variant.seconds.median / 1e9),
                 fmt::format("{:.2f}x", variant.ratio.median),
                 &variant == &variants.front() ? "" : std::string(answerOf(variant.ratio)), variant.detail});
    }
    table.print();
    fmt::print("\n");
  }

  static Json toJson(const Setting &setting, const std::vector<Variant> &variants) {
    const Variant &fused = variants.front();
    Problem one = setting.problem(1);
    double rows = static_cast<double>(setting.shape[0]);
    Json row = {{"kind", "case"},
                {"case", setting.work + " " + shapeText(setting.shape)},
                {"kernel", setting.work},
                {"shape", setting.shape},
                {"dtype", nameOf(setting.dtype)},
                {"target", setting.place()},
                {"variant", "classic"},
                {"params", setting.options.params},
                {"flops", one.flops * rows},
                {"bytes", one.bytes * rows},
                {"verdict", fused.verdict ? tool::toJson(*fused.verdict) : Json(nullptr)},
                {"failure", fused.status == "failed" ? Json(fused.detail) : Json(nullptr)},
                {"time", fused.measured() ? tool::toJson(fused.seconds) : Json(nullptr)}};
    Json peers = Json::object();
    for (size_t i = 1; i < variants.size(); ++i) {
      const Variant &variant = variants[i];
      Json &peer =
          peers[variant.name] = {{"status", variant.status},
                                 {"detail", variant.detail},
                                 {"launches", variant.launches ? Json(variant.launches) : Json(nullptr)},
                                 {"verdict", variant.verdict ? tool::toJson(*variant.verdict) : Json(nullptr)}};
      if (variant.measured()) {
        peer["time"] = tool::toJson(variant.seconds);
        peer["ratio"] = tool::toJson(variant.ratio);
        peer["answer"] = answerOf(variant.ratio);
      }
    }
    row["peers"] = peers;
    return row;
  }

  const ClassicRequest &request_;
  Report report_;
  std::unique_ptr<PeerProcess> peers_;
  std::string whyNoPeers_;
  bool passed_ = true;
};

} // namespace

Command addClassic(CLI::App &bench) {
  CLI::App *command = bench.add_subcommand(
      "classic", "What fusing is worth: GELU and softmax step by step, fused, in CUDA C++, in PyTorch");
  auto request = std::make_shared<ClassicRequest>();
  auto text = [&](const char *name, std::string &value, const char *about, const char *type) {
    return command->add_option(name, value, about)->type_name(type);
  };
  text("--target", request->target, "all (what is there), cpu or cuda", "TARGET")->capture_default_str();
  text("--shape", request->shape, "Rows and columns; 4096x4096 on the CPU, 16384x8192 on a GPU", "SHAPE");
  text("--dtype", request->dtype, "Element type; f32 on the CPU, bf16 on a GPU", "TYPE");
  text("--cuda", request->cuda, "Your CUDA C++ instead of scripts/peers/classic.cu, which says what it must have",
       "FILE");
  text("--peer-script", request->peerScript, "PyTorch's side, if not the one that came along", "FILE");
  text("--python", request->python, "The Python that has PyTorch", "PROGRAM");
  command->add_flag("--no-peers", request->noPeers, "Without PyTorch");
  command->add_option("--threads", request->threads, "Threads to run on; 0: all visible processors")
      ->check(between(0, 1024))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--seconds", request->seconds, "Time for each comparison")
      ->check(between(0.0, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  addJsonOption(*command, request->json);
  addExamples(*command,
              {"tenon bench classic", "tenon bench classic --target cuda --cuda mine.cu --json classic.json"});
  return [request] { return Classic(*request).run(); };
}

} // namespace tenon::tool
