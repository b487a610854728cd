// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/model/Ceilings.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

/// The roofs of this machine, measured once (about two seconds) and kept in the cache directory:
///
///     bandwidth     of each cache and of memory: every thread reads, or copies, a buffer of its own that fills half of
///                   the level (of memory: all of them four times the last cache); the widest instructions; the best
///                   of five
///     f32, bf16, i8 independent chains of the fastest multiply-add that the processor has (measure/Roofline.h)
///     special       exp as Tenon compiles it, on tiles in the nearest cache
///     launch        of a kernel that does nothing
///
/// The file says what machine and what version it is of; another one is measured anew.
namespace tenon {

struct CeilingOptions {
  bool remeasure = false; ///< whatever the cache says
  int threads = 0;        ///< 0: all visible processors
  std::string directory;  ///< of the file; empty: the kernel cache's. Where that is off, nothing is kept
};
model::Ceilings cpuCeilings(const CeilingOptions &options = {});
/// What was measured earlier, if it was: measures nothing.
std::optional<model::Ceilings> knownCpuCeilings(const CeilingOptions &options = {});
/// As if these had been measured: for tests, which shall find the same ones every time.
void keepCpuCeilings(const model::Ceilings &ceilings, const CeilingOptions &options = {});

/// Of a CUDA device: the datasheet where its name is known, otherwise what the driver tells; a copy and multiply-adds
/// are measured on it. Throws Error where there is no such device.
model::Ceilings gpuCeilings(int device, const CeilingOptions &options = {});

/// With how many clusters the device runs at the same time. The driver is asked, and nothing is measured.
model::Ceilings withClusters(model::Ceilings ceilings, int device);

/// Not where a level of memory is read at less than half the rate of the next one out: something else had the machine
/// while it was measured. Then it is measured again, twice at most, and the faster counts.
bool isPlausible(const model::Ceilings &ceilings);

nlohmann::ordered_json toJson(const model::Ceilings &ceilings);
/// Nothing unless it is what toJson gives.
std::optional<model::Ceilings> ceilingsFromJson(const nlohmann::ordered_json &json);

} // namespace tenon
