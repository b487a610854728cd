// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "BenchCpuCases.h"
#include "BenchCpuPeers.h"
#include "PeerFigures.h"
#include "Report.h"

#include "tenon/measure/Pairs.h"
#include "tenon/measure/Roofline.h"

#include <functional>
#include <map>
#include <optional>

namespace tenon::tool {

/// The two roofs, at one number of threads.
struct Roofs {
  Peaks peaks;
  double copyBytesPerSecond = 0;
  std::string copyWay;

  const Peak &peakFor(const CpuCase &one) const;
};
Roofs measureRoofs(int threads);
Json toJson(const Roofs &roofs);

/// All that is found out about one case at one number of threads.
struct CpuFigures {
  const CpuCase *one = nullptr;
  int threads = 1;
  Params params;
  double flops = 0, bytes = 0; ///< what the work needs at least
  double writtenBytes = 0;     ///< of these, the results'
  CompileReport compiled;
  std::optional<Verdict> verdict; ///< the worst of its parts; none if not asked for
  std::string failure;            ///< it could not be compiled, run or measured, or is wrong: why
  std::vector<double> bursts;     ///< seconds per call
  size_t sets = 1, calls = 0;     ///< argument sets taken in turn; calls in a burst
  bool cold = false;
  std::map<std::string, PeerFigures> peers; ///< by name; "host_copy", "host_read": our own yardsticks
  double roofSeconds = 0;                   ///< no faster by the roofs
  bool isMemoryRoof = false;

  bool passed() const { return failure.empty(); }
  Estimate seconds() const { return estimate(bursts); }
  double fractionOfRoof() const { return bursts.empty() ? 0 : roofSeconds / seconds().median; }
  /// Of the fastest copy, and of the fastest other peer; null where none was measured.
  const PeerFigures *yardstick() const;
  const PeerFigures *bestPeer(std::string *name = nullptr) const;
  /// It writes less than a tenth of what it reads, so that a copy of as many bytes may be out of its reach.
  bool readsOnly() const { return 10 * writtenBytes < bytes - writtenBytes; }
  /// Of a loop that only reads as many bytes; null where the kernel also writes.
  const PeerFigures *reading() const;
  /// Of the peer whose speed counts.
  const PeerFigures *goalPeer() const;
};

struct CpuFigureOptions {
  bool verify = true;
  int minPairs = 7, maxPairs = 31;
  double pairSeconds = 4;      ///< no further pairs with a peer after so many, the least number aside
  double burstSeconds = 0.03;
  CpuPeers *peers = nullptr; ///< none: only our own yardstick
};

using CpuStage = std::function<void(const std::string &)>;
CpuFigures findCpuFigures(const CpuCase &one, int threads, const Roofs &roofs, const CpuFigureOptions &options,
                          const CpuStage &stage);
Json toJson(const CpuFigures &figures);

/// A kernel beside copies of as many bytes, all from the same memory to the same memory: by memcpy, which leaves small
/// results in the cache, and past it.
struct ScalingFigures {
  struct Copy {
    std::string way; ///< of HostCopy
    Estimate seconds;
    Estimate ratio; ///< its time over ours
    size_t pairs = 0;
  };
  const ScalingCase *one = nullptr;
  int threads = 1;
  std::string failure;
  Estimate ours;
  Copy memcpy, streaming;
  size_t sets = 1;
  const Copy &fastest() const { return memcpy.ratio.median < streaming.ratio.median ? memcpy : streaming; }
};
ScalingFigures findScaling(const ScalingCase &one, int threads, const CpuFigureOptions &options);
Json toJson(const ScalingFigures &figures);

/// One kernel on one thread beside itself on all of them, in pairs. Beside each burst the processors' own rate is
/// taken: of a loop of the multiply-adds for the kernel's type that touches no memory or, for kernels that wait for
/// memory, of a copy.
struct ThreadFigures {
  const CpuCase *one = nullptr;
  int threads = 1;
  std::string failure;
  Estimate all, single;
  Estimate speedUp, machine; ///< of the kernel, of the processors
  Estimate ofMachine;        ///< the one over the other
  size_t pairs = 0;
};
ThreadFigures findThreadSpeedUp(const CpuCase &one, int threads, const CpuFigureOptions &options);
Json toJson(const ThreadFigures &figures);

} // namespace tenon::tool
