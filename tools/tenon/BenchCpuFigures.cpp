// SPDX-License-Identifier: Apache-2.0
#include "BenchCpuFigures.h"

#include "tenon/base/Error.h"
#include "tenon/measure/Bursts.h"
#include "tenon/measure/Rotation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace tenon::tool {
namespace {

/// As many pairs as the time allows, if each takes so many `seconds`.
Pairs measurePairs(const std::function<double()> &ours, const std::function<double()> &theirs, double seconds,
                   const CpuFigureOptions &options) {
  PairOptions pairs{.minPairs = options.minPairs, .maxPairs = options.maxPairs, .spread = 0.01};
  auto inTime = static_cast<int>(options.pairSeconds / std::max(seconds, 1e-6));
  pairs.maxPairs = std::clamp(inTime, pairs.minPairs, pairs.maxPairs);
  return comparePairs(ours, theirs, pairs);
}

bool isCopy(const std::string &peer) { return peer == "copy" || peer == "host_copy"; }
bool isYardstick(const std::string &peer) { return isCopy(peer) || peer == "host_read"; }

/// Memory to copy from and to, or to read: so many pairs that they exceed twice the last-level cache.
class ColdMemory {
public:
  explicit ColdMemory(size_t bytes) : bytes_(std::max<size_t>(bytes, 64)) {
    size_t cache = thisMachine().lastLevelCacheBytes();
    size_t pairs = bytes_ > cache ? 1 : cache / bytes_ + 2;
    for (size_t i = 0; i < pairs; ++i) {
      memory_.push_back(Tensor::empty(u8, {static_cast<int64_t>(2 * bytes_)}));
      memory_.back().fillBytes(1); // so that the pages are there
    }
  }
  std::vector<std::pair<const void *, void *>> places() const {
    std::vector<std::pair<const void *, void *>> places;
    for (const Tensor &both : memory_)
      places.emplace_back(both.data(), static_cast<std::byte *>(both.data()) + bytes_);
    return places;
  }
  size_t bytes() const { return bytes_; }
  /// Both of a pair, to be read as one.
  std::vector<const void *> wholes() const {
    std::vector<const void *> wholes;
    for (const Tensor &both : memory_)
      wholes.push_back(both.data());
    return wholes;
  }

private:
  size_t bytes_;
  std::vector<Tensor> memory_;
};

/// The worst of the parts, or the first that fails.
Verdict verifyParts(const CpuCase &one, const Problem &whole, const LaunchOptions &options) {
  Verdict worst{.passed = true, .reason = {}};
  double most = -1;
  std::vector<CpuPart> parts = one.parts(whole);
  for (const CpuPart &part : parts)
    for (const Tensor &output : part.outputs)
      output.fillBytes(0xff); // what is not written shows
  launch(*one.kernel, whole.arguments, options);
  for (CpuPart &part : parts) {
    Verdict verdict = verify(part.problem, [&](const Arguments &arguments) {
      for (size_t i = 0; i < part.outputs.size(); ++i)
        arguments[part.problem.outputs[i]].tensor().copyFrom(part.outputs[i]);
    });
    if (!verdict.passed)
      return verdict;
    double share = verdict.allowed > 0 ? verdict.error / verdict.allowed : 0;
    if (share > most) {
      most = share;
      worst = verdict;
    }
  }
  return worst;
}

void setCpuParams(Problem &problem, int threads) {
  if (problem.cpuParams)
    for (const auto &[name, value] : problem.cpuParams(threads))
      problem.params[name] = value;
}

LaunchOptions launchOptionsOf(const Params &params, int threads) {
  LaunchOptions options;
  options.params = params;
  options.threads = threads;
  return options;
}

} // namespace

//===--- Roofs ----------------------------------------------------------------------------------------------------===//

const Peak &Roofs::peakFor(const CpuCase &one) const {
  bool isProduct = one.copyGoal == 0; // else it is bound by memory
  return one.dtype == bf16 ? peaks.bf16 : one.dtype == i8 ? peaks.int8 : isProduct ? peaks.f32Products : peaks.f32;
}

Roofs measureRoofs(int threads) {
  Roofs roofs;
  roofs.peaks = measurePeaks(threads);
  ColdMemory memory(std::max<size_t>(size_t(128) << 20, 2 * thisMachine().lastLevelCacheBytes()));
  HostCopy copy(memory.places(), memory.bytes(), threads);
  double fastest = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto start = std::chrono::steady_clock::now();
    copy();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fastest = attempt ? std::min(fastest, seconds) : seconds;
  }
  roofs.copyBytesPerSecond = 2.0 * static_cast<double>(memory.bytes()) / fastest; // read and written
  roofs.copyWay = copy.way();
  return roofs;
}

Json toJson(const Roofs &roofs) {
  auto peak = [](const Peak &one) {
    return Json{{"operations_per_s", one.operationsPerSecond}, {"instructions", one.instructions}};
  };
  return {{"f32", peak(roofs.peaks.f32)},
          {"f32_products", peak(roofs.peaks.f32Products)},
          {"bf16", peak(roofs.peaks.bf16)},
          {"int8", peak(roofs.peaks.int8)},
          {"copy_bytes_per_s", roofs.copyBytesPerSecond},
          {"copy", roofs.copyWay}};
}

//===--- A row of the table ---------------------------------------------------------------------------------------===//

namespace {

/// Bursts of ours and of a peer in pairs; ours count for our own figure too.
PeerFigures measurePeer(CpuFigures &figures, Bursts &ours, const std::function<double()> &theirs,
                        const CpuFigureOptions &options) {
  double about = 2 * ours.seconds(); // a peer is not much slower
  Pairs pairs = measurePairs([&] { return ours(); }, theirs, about, options);
  figures.bursts.insert(figures.bursts.end(), pairs.ours.begin(), pairs.ours.end());
  return {"measured", "", pairs.theirsEstimate(), pairs.ratio(), pairs.ours.size()};
}

/// A yardstick of ours, which says in what way it was the fastest, as if it were a peer.
template <class Yardstick>
void measureYardstick(const char *name, Yardstick yardstick, CpuFigures &figures, Bursts &ours,
                      const CpuFigureOptions &options) {
  Bursts theirs([&] { yardstick(); }, options.burstSeconds);
  PeerFigures peer = measurePeer(figures, ours, [&] { return theirs(); }, options);
  peer.detail = yardstick.way();
  figures.peers[name] = peer;
}

/// A copy of as many bytes as the kernel reads and writes and, for one that writes hardly any, reading as many.
void measureYardsticks(CpuFigures &figures, Bursts &ours, const CpuFigureOptions &options) {
  ColdMemory memory(static_cast<size_t>(figures.bytes / 2)); // read once, written once
  measureYardstick("host_copy", HostCopy(memory.places(), memory.bytes(), figures.threads), figures, ours, options);
  if (figures.readsOnly())
    measureYardstick("host_read", HostRead(memory.wholes(), 2 * memory.bytes(), figures.threads), figures, ours,
                     options);
}

void measurePeers(CpuFigures &figures, Bursts &ours, const CpuFigureOptions &options, const CpuStage &stage) {
  const CpuCase &one = *figures.one;
  for (const std::string &name : one.peers) {
    PeerFigures &peer = figures.peers[name];
    if (!options.peers) {
      peer.status = "not asked";
      continue;
    }
    stage(one.name() + ": preparing " + name);
    Json description = one.description();
    description["bytes"] = static_cast<int64_t>(figures.bytes);
    description["sets"] = figures.sets;
    description["burst_ms"] = 1e3 * options.burstSeconds;
    PeerReady ready = options.peers->prepare(name, description);
    if (ready.status != "ready") {
      peer.status = ready.status;
      peer.detail = ready.detail;
      continue;
    }
    stage(one.name() + ": measuring beside " + name);
    try {
      peer = measurePeer(figures, ours, [&] { return options.peers->burst(name); }, options);
      peer.detail = ready.detail;
    } catch (const Error &error) {
      peer.status = "failed";
      peer.detail = error.what();
    }
  }
}

} // namespace

CpuFigures findCpuFigures(const CpuCase &one, int threads, const Roofs &roofs, const CpuFigureOptions &options,
                          const CpuStage &stage) {
  CpuFigures figures;
  figures.one = &one;
  figures.threads = threads;
  try {
    stage(one.name() + ": making inputs");
    Problem problem = one.problem();
    setCpuParams(problem, threads);
    figures.params = problem.params;
    figures.flops = problem.flops;
    figures.bytes = problem.bytes;
    for (size_t output : problem.outputs) {
      const Tensor &written = problem.arguments[output].tensor();
      figures.writtenBytes += static_cast<double>(written.elements()) * static_cast<double>(sizeOf(written.dtype()));
    }
    double computing = problem.flops / roofs.peakFor(one).operationsPerSecond;
    double moving = problem.bytes / roofs.copyBytesPerSecond;
    figures.isMemoryRoof = moving >= computing;
    figures.roofSeconds = std::max(computing, moving);

    stage(one.name() + ": compiling and verifying");
    LaunchOptions launchOptions = launchOptionsOf(problem.params, threads);
    launchOptions.compile.useDiskCache = false;
    figures.compiled = prepare(*one.kernel, problem.arguments, launchOptions);
    if (options.verify) {
      figures.verdict = verifyParts(one, problem, launchOptions);
      if (!figures.verdict->passed) {
        figures.failure = "wrong: " + figures.verdict->reason;
        return figures;
      }
    }
    stage(one.name() + ": measuring");
    Rotation rotation(problem.arguments);
    figures.sets = rotation.sets();
    figures.cold = rotation.cold();
    Bursts ours([&] { launch(*one.kernel, rotation.next(), launchOptions); }, options.burstSeconds);
    figures.calls = ours.calls();
    if (one.copyGoal > 0)
      measureYardsticks(figures, ours, options);
    measurePeers(figures, ours, options, stage);
    while (figures.bursts.size() < static_cast<size_t>(options.minPairs))
      figures.bursts.push_back(ours());
  } catch (const Error &error) {
    figures.failure = error.what();
  }
  return figures;
}

const PeerFigures *CpuFigures::yardstick() const { return fastestOf(peers, isCopy, /*yardsticks=*/true); }

const PeerFigures *CpuFigures::bestPeer(std::string *bestName) const {
  return fastestOf(peers, isYardstick, /*yardsticks=*/false, bestName);
}

const PeerFigures *CpuFigures::reading() const {
  auto found = peers.find("host_read");
  return found != peers.end() ? &found->second : nullptr;
}

const PeerFigures *CpuFigures::goalPeer() const {
  if (one->goalPeer.empty())
    return bestPeer();
  auto found = peers.find(one->goalPeer);
  return found != peers.end() && found->second.measured() ? &found->second : nullptr;
}

Json toJson(const CpuFigures &figures) {
  const CpuCase &one = *figures.one;
  double median = figures.bursts.empty() ? 0 : figures.seconds().median;
  Json result = {{"kind", "case"},
                 {"case", one.name()},
                 {"group", one.group},
                 {"kernel", one.kernelName},
                 {"shape", one.shape},
                 {"dtype", nameOf(one.dtype)},
                 {"variant", one.variant},
                 {"threads", figures.threads},
                 {"params", figures.params},
                 {"flops", figures.flops},
                 {"bytes", figures.bytes},
                 {"written_bytes", figures.writtenBytes},
                 {"argument_sets", figures.sets},
                 {"cold", figures.cold},
                 {"calls_per_burst", figures.calls},
                 {"compile", toJson(figures.compiled)},
                 {"verdict", figures.verdict ? toJson(*figures.verdict) : Json(nullptr)},
                 {"failure", figures.failure.empty() ? Json(nullptr) : Json(figures.failure)},
                 {"time", figures.bursts.empty() ? Json(nullptr) : toJson(figures.seconds())},
                 {"spread", figures.bursts.empty() ? Json(nullptr) : Json(figures.seconds().spread())},
                 {"bursts", figures.bursts.size()},
                 {"gb_per_s", median > 0 ? figures.bytes / median / 1e9 : 0},
                 {"gflop_per_s", median > 0 ? figures.flops / median / 1e9 : 0},
                 {"roof", figures.isMemoryRoof ? "memory" : "arithmetic"},
                 {"fraction_of_roof", figures.fractionOfRoof()}};
  result["peers"] = toJson(figures.peers);
  const PeerFigures *stick = figures.yardstick();
  result["fraction_of_copy"] = stick ? toJson(stick->ratio) : Json(nullptr);
  const PeerFigures *reading = figures.reading();
  result["fraction_of_reading"] = reading ? toJson(reading->ratio) : Json(nullptr);
  std::string bestName;
  const PeerFigures *best = figures.bestPeer(&bestName);
  result["best_peer"] = best ? Json(bestName) : Json(nullptr);
  result["best_peer_ratio"] = best ? toJson(best->ratio) : Json(nullptr);
  return result;
}

//===--- Over sizes and threads -----------------------------------------------------------------------------------===//

ScalingFigures findScaling(const ScalingCase &one, int threads, const CpuFigureOptions &options) {
  ScalingFigures figures;
  figures.one = &one;
  figures.threads = threads;
  try {
    size_t bytes = static_cast<size_t>(one.elements()) * sizeOf(f32);
    if (2 * bytes > thisMachine().availableBytes / 10 * 7)
      throw Error("not run: it needs more than 70% of the free memory");
    Tensor x = Tensor::empty(f32, one.shape), y = Tensor::zeros(f32, one.shape);
    // Random numbers, a million of them over and over: drawing a thousand million would take longer than all the rest.
    int64_t block = std::min<int64_t>(one.elements(), 1'000'000);
    Tensor flat = x.reshape({one.elements()});
    flat.slice(0, 0, block).fillRandom(1, -4, 4);
    for (int64_t at = block; at < one.elements(); at += block)
      std::memcpy(static_cast<float *>(x.data()) + at, x.data(),
                  static_cast<size_t>(std::min(block, one.elements() - at)) * sizeOf(f32));
    Rotation rotation({x, y}, {.maxSets = size_t(1) << 14}); // small ones have to exceed the cache too
    figures.sets = rotation.sets();
    std::vector<std::pair<const void *, void *>> places;
    for (size_t i = 0; i < rotation.sets(); ++i) {
      const Arguments &set = rotation.next();
      places.emplace_back(set[0].tensor().data(), set[1].tensor().data());
    }
    LaunchOptions launchOptions = launchOptionsOf(one.params, threads);
    prepare(*one.kernel, rotation.next(), launchOptions);
    Bursts ours([&] { launch(*one.kernel, rotation.next(), launchOptions); }, options.burstSeconds);
    auto measure = [&](ScalingFigures::Copy &figure, HostCopy::Stores stores) {
      HostCopy copy(places, bytes, threads, {stores});
      Bursts theirs([&] { copy(); }, options.burstSeconds);
      Pairs pairs =
          measurePairs([&] { return ours(); }, [&] { return theirs(); }, ours.seconds() + theirs.seconds(), options);
      figure = {copy.way(), pairs.theirsEstimate(), pairs.ratio(), pairs.ours.size()};
      return pairs;
    };
    Pairs pairs = measure(figures.memcpy, HostCopy::Stores::memcpy);
    std::vector<double> seconds = measure(figures.streaming, HostCopy::Stores::streaming).ours;
    pairs.ours.insert(pairs.ours.end(), seconds.begin(), seconds.end());
    figures.ours = pairs.oursEstimate();
  } catch (const Error &error) {
    figures.failure = error.what();
  }
  return figures;
}

Json toJson(const ScalingFigures &figures) {
  bool passed = figures.failure.empty();
  const ScalingFigures::Copy &copy = figures.fastest();
  return {{"kind", "scaling"},
          {"case", figures.one->name()},
          {"kernel", figures.one->kernelName},
          {"shape", figures.one->shape},
          {"dtype", "f32"},
          {"elements", figures.one->elements()},
          {"threads", figures.threads},
          {"failure", passed ? Json(nullptr) : Json(figures.failure)},
          {"argument_sets", figures.sets},
          {"time", passed ? toJson(figures.ours) : Json(nullptr)},
          {"copy", passed ? toJson(copy.seconds) : Json(nullptr)},
          {"copy_way", copy.way},
          {"fraction_of_copy", passed ? toJson(copy.ratio) : Json(nullptr)},
          {"fraction_of_memcpy", passed ? toJson(figures.memcpy.ratio) : Json(nullptr)},
          {"fraction_of_streaming", passed ? toJson(figures.streaming.ratio) : Json(nullptr)},
          {"pairs", figures.memcpy.pairs + figures.streaming.pairs}};
}

ThreadFigures findThreadSpeedUp(const CpuCase &one, int threads, const CpuFigureOptions &options) {
  ThreadFigures figures;
  figures.one = &one;
  figures.threads = threads;
  try {
    Problem problem = one.problem();
    Rotation rotation(problem.arguments);
    auto bursts = [&](int count) {
      setCpuParams(problem, count);
      return Bursts([&, options = launchOptionsOf(problem.params, count)] {
        launch(*one.kernel, rotation.next(), options);
      }, options.burstSeconds);
    };
    std::optional<ColdMemory> memory;
    std::optional<HostCopy> copyAll, copySingle;
    std::function<double(int)> rateOfMachine;
    if (one.copyGoal > 0) {
      memory.emplace(static_cast<size_t>(problem.bytes / 2));
      copyAll.emplace(memory->places(), memory->bytes(), threads);
      copySingle.emplace(memory->places(), memory->bytes(), 1);
      rateOfMachine = [&](int count) {
        auto start = std::chrono::steady_clock::now();
        (*(count == 1 ? copySingle : copyAll))();
        return 1 / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      };
    } else {
      Roofs roofs{.peaks = measurePeaks(1, 0.002), .copyWay = {}};
      rateOfMachine = [peak = roofs.peakFor(one)](int count) { return rateNow(peak, count); };
    }
    Bursts all = bursts(threads), single = bursts(1);
    Pairs machine; // rates
    Pairs pairs = measurePairs(
        [&] {
          machine.theirs.push_back(rateOfMachine(threads));
          return all();
        },
        [&] {
          machine.ours.push_back(rateOfMachine(1));
          return single();
        },
        all.seconds() + single.seconds(), options);
    figures.all = pairs.oursEstimate();
    figures.single = pairs.theirsEstimate();
    figures.speedUp = pairs.ratio();
    figures.machine = machine.ratio();
    Pairs both;
    for (size_t i = 0; i < pairs.ours.size(); ++i) {
      both.theirs.push_back(pairs.theirs[i] / pairs.ours[i]);
      both.ours.push_back(machine.theirs[i] / machine.ours[i]);
    }
    figures.ofMachine = both.ratio();
    figures.pairs = pairs.ours.size();
  } catch (const Error &error) {
    figures.failure = error.what();
  }
  return figures;
}

Json toJson(const ThreadFigures &figures) {
  bool passed = figures.failure.empty();
  return {{"kind", "threads"},
          {"case", "threads " + figures.one->name()},
          {"kernel", figures.one->kernelName},
          {"shape", figures.one->shape},
          {"dtype", nameOf(figures.one->dtype)},
          {"threads", figures.threads},
          {"failure", passed ? Json(nullptr) : Json(figures.failure)},
          {"time", passed ? toJson(figures.all) : Json(nullptr)},
          {"one_thread", passed ? toJson(figures.single) : Json(nullptr)},
          {"speed_up", passed ? toJson(figures.speedUp) : Json(nullptr)},
          {"machine", passed ? toJson(figures.machine) : Json(nullptr)},
          {"of_machine", passed ? toJson(figures.ofMachine) : Json(nullptr)},
          {"pairs", figures.pairs}};
}

} // namespace tenon::tool
