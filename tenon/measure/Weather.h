// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

/// What else went on while something was measured: neighbours on the host, other programs, a GPU that lowered its
/// clock. A figure from bad weather is marked, not thrown away: whoever reads it decides.
namespace tenon {

struct Weather {
  double seconds = 0;     ///< that were watched
  double stealShare = 0;  ///< of the processors' time, taken by other machines on the same host
  double othersShare = 0; ///< of the processors' time, taken by other programs
  double interruptions = 0; ///< of this process, a second
  /// Of a GPU, where its management library can be asked.
  struct Gpu {
    int smMegahertz = 0, maxSmMegahertz = 0;
    double watts = 0, limitWatts = 0;
    int celsius = 0;
    bool powerCapped = false, tooHot = false, slowedDown = false; ///< why the clock is lower than it could be
  };
  std::optional<Gpu> gpu;    ///< at its slowest moment of those in which something held it back, otherwise at the end
  double heldBackShare = 0; ///< of the moments looked at, those in which something held the GPU back

  /// What spoils the figures, in words; empty when nothing does: more than 1% stolen, more than a tenth of a processor
  /// taken by others, a clock under 95% of its maximum for want of power or for heat.
  std::string complaint() const;
};
nlohmann::ordered_json toJson(const Weather &weather);

/// The processors at a moment, in seconds since some beginning.
struct ProcessorMoment {
  double seconds = 0; ///< of the clock
  double total = 0, busy = 0, steal = 0, own = 0; ///< of all processors together; `own`: this process's
  double interruptions = 0; ///< of this process
};
/// What went on between the two.
Weather weatherBetween(const ProcessorMoment &start, const ProcessorMoment &end);

/// Watches from its construction on.
class WeatherWatch {
public:
  /// `gpu`: the CUDA device to ask about as well, twice a second; -1: none.
  explicit WeatherWatch(int gpu = -1);
  ~WeatherWatch();
  Weather read() const;

private:
  ProcessorMoment start_;
  class GpuWatch;
  std::unique_ptr<GpuWatch> gpu_; ///< none: nobody asked, or there is nothing to ask
};

/// What the GPU's management library says now; nothing where there is none (libnvidia-ml.so.1, or what the environment
/// variable TENON_NVML names).
std::optional<Weather::Gpu> gpuWeather(int device);

/// Lines of /proc/stat: the processors' time in ticks, of which busy and stolen. For tests.
struct ProcessorTicks {
  double total = 0, busy = 0, steal = 0;
};
std::optional<ProcessorTicks> parseProcStat(const std::string &text);

} // namespace tenon
