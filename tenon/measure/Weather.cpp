// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Weather.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tenon {

std::optional<ProcessorTicks> parseProcStat(const std::string &text) {
  std::istringstream stream(text);
  std::string name;
  double ticks[8] = {}; // user, nice, system, idle, iowait, irq, softirq, steal
  if (!(stream >> name) || name != "cpu")
    return std::nullopt;
  for (double &one : ticks)
    if (!(stream >> one))
      return std::nullopt;
  ProcessorTicks result;
  for (double one : ticks)
    result.total += one;
  result.steal = ticks[7];
  result.busy = result.total - ticks[3] - ticks[4] - ticks[7];
  return result;
}

namespace {

ProcessorMoment momentNow() {
  ProcessorMoment moment;
  moment.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  if (auto ticks = parseProcStat(line)) {
    double perSecond = static_cast<double>(std::max(sysconf(_SC_CLK_TCK), 1L));
    moment.total = ticks->total / perSecond;
    moment.busy = ticks->busy / perSecond;
    moment.steal = ticks->steal / perSecond;
  }
  rusage usage{};
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN})
    if (getrusage(who, &usage) == 0) {
      auto seconds = [](const timeval &time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
      };
      moment.own += seconds(usage.ru_utime) + seconds(usage.ru_stime);
      moment.interruptions += static_cast<double>(usage.ru_nivcsw);
    }
  return moment;
}

bool isHeldBack(const Weather::Gpu &gpu) {
  return gpu.maxSmMegahertz > 0 && gpu.smMegahertz < 0.95 * gpu.maxSmMegahertz &&
         (gpu.powerCapped || gpu.tooHot || gpu.slowedDown);
}

} // namespace

/// A clock that is lowered while kernels run is back soon after them: it must be looked at meanwhile.
class WeatherWatch::GpuWatch {
public:
  explicit GpuWatch(int device) : device_(device), thread_([this] { watch(); }) {}
  ~GpuWatch() {
    {
      std::lock_guard lock(mutex_);
      isOver_ = true;
    }
    over_.notify_one();
    thread_.join();
  }

  void addTo(Weather &weather) {
    look();
    std::lock_guard lock(mutex_);
    weather.gpu = slowest_ ? slowest_ : last_;
    weather.heldBackShare = looks_ ? static_cast<double>(heldBack_) / static_cast<double>(looks_) : 0;
  }

private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, std::chrono::milliseconds(500), [this] { return isOver_; })) {
      lock.unlock();
      look();
      lock.lock();
    }
  }

  void look() {
    std::optional<Weather::Gpu> gpu = gpuWeather(device_);
    if (!gpu)
      return;
    std::lock_guard lock(mutex_);
    ++looks_;
    last_ = gpu;
    if (!isHeldBack(*gpu))
      return;
    ++heldBack_;
    if (!slowest_ || gpu->smMegahertz < slowest_->smMegahertz)
      slowest_ = gpu;
  }

  const int device_;
  std::mutex mutex_; ///< of what follows
  std::condition_variable over_;
  bool isOver_ = false;
  std::optional<Weather::Gpu> last_, slowest_;
  size_t looks_ = 0, heldBack_ = 0;
  std::thread thread_; ///< the last: it uses all the others
};

WeatherWatch::WeatherWatch(int gpu) : start_(momentNow()) {
  if (gpu >= 0 && gpuWeather(gpu))
    gpu_ = std::make_unique<GpuWatch>(gpu);
}

WeatherWatch::~WeatherWatch() = default;

Weather weatherBetween(const ProcessorMoment &start, const ProcessorMoment &end) {
  Weather weather;
  weather.seconds = end.seconds - start.seconds;
  // The kernel counts in ticks of 10 ms: less than a few of them says nothing.
  if (double total = end.total - start.total; total > 0.1) {
    weather.stealShare = std::clamp((end.steal - start.steal) / total, 0.0, 1.0);
    double others = (end.busy - start.busy) - (end.own - start.own);
    weather.othersShare = std::clamp((others - 0.02) / total, 0.0, 1.0);
  }
  if (weather.seconds > 0)
    weather.interruptions = (end.interruptions - start.interruptions) / weather.seconds;
  return weather;
}

Weather WeatherWatch::read() const {
  Weather weather = weatherBetween(start_, momentNow());
  if (gpu_)
    gpu_->addTo(weather);
  return weather;
}

std::string Weather::complaint() const {
  std::string text;
  auto add = [&](const std::string &part) { text += (text.empty() ? "" : "; ") + part; };
  auto percent = [](double share) { return std::to_string(static_cast<int>(share * 100 + 0.5)) + "%"; };
  if (stealShare > 0.01)
    add("other machines on the host took " + percent(stealShare) + " of the processors' time");
  if (othersShare > 0.1)
    add("other programs took " + percent(othersShare) + " of the processors' time");
  if (gpu && isHeldBack(*gpu)) {
    std::string part = "the GPU ran at " + std::to_string(gpu->smMegahertz) + " of " +
                       std::to_string(gpu->maxSmMegahertz) + " MHz because of " +
                       (gpu->tooHot ? "its temperature" : gpu->powerCapped ? "its power limit" : "a slow-down");
    if (heldBackShare > 0 && heldBackShare < 1)
      part += ", held back " + percent(heldBackShare) + " of the time";
    add(part);
  }
  return text;
}

nlohmann::ordered_json toJson(const Weather &weather) {
  nlohmann::ordered_json json = {{"seconds", weather.seconds},
                                 {"steal_share", weather.stealShare},
                                 {"others_share", weather.othersShare},
                                 {"interruptions_per_second", weather.interruptions},
                                 {"complaint", weather.complaint()}};
  if (const auto &gpu = weather.gpu)
    json["gpu"] = {{"sm_mhz", gpu->smMegahertz}, {"max_sm_mhz", gpu->maxSmMegahertz}, {"watts", gpu->watts},
                   {"limit_watts", gpu->limitWatts}, {"celsius", gpu->celsius}, {"power_capped", gpu->powerCapped},
                   {"too_hot", gpu->tooHot}, {"slowed_down", gpu->slowedDown},
                   {"held_back_share", weather.heldBackShare}};
  return json;
}

//===--- The GPU's management library -----------------------------------------------------------------------------===//

namespace {

/// The few functions that are needed, of the library that comes with the driver.
struct Nvml {
  using Device = struct NvmlDevice *;
  int (*init)() = nullptr;
  int (*handle)(unsigned, Device *) = nullptr;
  int (*clock)(Device, int, unsigned *) = nullptr;
  int (*maxClock)(Device, int, unsigned *) = nullptr;
  int (*reasons)(Device, unsigned long long *) = nullptr;
  int (*power)(Device, unsigned *) = nullptr;
  int (*powerLimit)(Device, unsigned *) = nullptr;
  int (*temperature)(Device, int, unsigned *) = nullptr;

  bool open() {
    const char *name = std::getenv("TENON_NVML");
    void *library = ::dlopen(name && *name ? name : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return false;
    auto find = [&](auto &function, const char *symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      return function != nullptr;
    };
    return find(init, "nvmlInit_v2") && find(handle, "nvmlDeviceGetHandleByIndex_v2") &&
           find(clock, "nvmlDeviceGetClockInfo") && find(maxClock, "nvmlDeviceGetMaxClockInfo") &&
           find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") && find(power, "nvmlDeviceGetPowerUsage") &&
           find(powerLimit, "nvmlDeviceGetEnforcedPowerLimit") && find(temperature, "nvmlDeviceGetTemperature") &&
           init() == 0;
  }
};

} // namespace

std::optional<Weather::Gpu> gpuWeather(int device) {
  static const std::optional<Nvml> library = [] {
    Nvml nvml;
    return nvml.open() ? std::optional(nvml) : std::nullopt;
  }();
  Nvml::Device handle = nullptr;
  if (!library || library->handle(static_cast<unsigned>(device), &handle) != 0)
    return std::nullopt;
  constexpr int smClock = 1, gpuSensor = 0;
  unsigned clock = 0, maxClock = 0, milliwatts = 0, limit = 0, celsius = 0;
  unsigned long long reasons = 0;
  library->clock(handle, smClock, &clock);
  library->maxClock(handle, smClock, &maxClock);
  library->reasons(handle, &reasons);
  library->power(handle, &milliwatts);
  library->powerLimit(handle, &limit);
  library->temperature(handle, gpuSensor, &celsius);
  Weather::Gpu gpu;
  gpu.smMegahertz = static_cast<int>(clock);
  gpu.maxSmMegahertz = static_cast<int>(maxClock);
  gpu.watts = milliwatts * 1e-3;
  gpu.limitWatts = limit * 1e-3;
  gpu.celsius = static_cast<int>(celsius);
  gpu.powerCapped = reasons & 0x84;       // software cap, external brake
  gpu.tooHot = reasons & 0x60;            // software and hardware thermal
  gpu.slowedDown = reasons & 0x08;        // hardware slow-down
  return gpu;
}

} // namespace tenon
