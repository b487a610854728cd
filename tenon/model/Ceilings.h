// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/model/Count.h"
#include "tenon/model/Occupancy.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How fast a machine can be at most: the roofs of the roofline. measure/MeasuredCeilings.h finds them on this
/// machine; for NVIDIA GPUs the datasheet is here, too, and no measurement may beat it.
namespace tenon::model {

struct Ceilings {
  struct Level {
    std::string name;               ///< "L1", "L2", "L3", "memory"
    double bytes = 0;               ///< its size, of all of them together; 0 for memory
    double readBytesPerSecond = 0;  ///< all processors reading
    double copyBytesPerSecond = 0;  ///< read plus written
  };
  std::string device;        ///< "AMD EPYC (2 processors)", "NVIDIA H200"
  bool isGpu = false;
  bool measured = false;     ///< otherwise from the datasheet
  int processors = 1;        ///< cores that are used, or multiprocessors
  double clockHertz = 0;     ///< of a GPU
  std::vector<Level> levels; ///< nearest first; the last is memory
  std::array<double, precisions> matrix{}, vector{}; ///< FLOP/s; 0: no such unit, or not known
  double special = 0;        ///< exp, division, ...: results a second, as Tenon generates them
  double integer = 0;        ///< operations a second
  double launchSeconds = 0;  ///< from one launch to the next
  std::optional<GpuLimits> limits; ///< of a GPU
  /// Clusters of 2, 4 and 8 blocks that run at the same time, each block on a multiprocessor of its own; 0: not known.
  std::array<int, 3> clusters{};

  const Level &memory() const { return levels.back(); }
  /// Bytes a second of memory for a mixture of reads and writes: a copy's for what is written and as much of what is
  /// read, the reader's for the rest.
  double memoryRate(double readBytes, double writtenBytes) const;
  /// Of the matrix units in a type, or of whatever does its work where there is none: f16 in f32's vectors, say.
  double matrixRate(Precision precision) const;
  double vectorRate(Precision precision) const;
};

/// The datasheet of a GPU by its name as the driver tells it, or its architecture ("sm_90a" is an H100 SXM): dense
/// matrix rates, boost clock. Nothing for one that is not in the table.
std::optional<Ceilings> gpuDatasheet(std::string_view nameOrArchitecture);
/// What it knows, for messages.
std::vector<std::string> datasheetArchitectures();
std::vector<std::string> datasheetNames();

} // namespace tenon::model
