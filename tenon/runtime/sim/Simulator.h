// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/runtime/sim/TensorMap.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Runs the threads of a GPU kernel as fibers on the CPU, and watches them.
///
/// A thread runs until it has to wait for another. What the GPU leaves open is decided here: asynchronous copies move
/// their bytes, and asynchronous multiplications read theirs, at the latest moment that is legal, and threads run in
/// the order of their numbers; with a seed, both are random. Whether two accesses are a race does not depend on that:
/// it is decided by the order that barriers give (vector clocks, see Clock.h), not by the order in which they happened
/// to run.
///
/// Numbers are an H200's bit for bit (mma and wgmma too: see Mma.cpp), with two exceptions: nvidia.approx gives the
/// correctly rounded value, and the bits of a NaN that arithmetic on the CPU gives are the CPU's.
namespace tenon::sim {

struct ThreadHeader;

/// What the compiler made: see base/SimThread.h.
struct SimProgram {
  void (*thread)(ThreadHeader *, const int64_t *words) = nullptr;
  int threads = 32; ///< of a block: a multiple of 32
  int cluster = 1;  ///< blocks of a cluster
  int blocks = 1;   ///< of a multiprocessor, at least, which divide its registers
  int64_t sharedBytes = 0;
  bool asynchronous = false; ///< it has instructions of the tensor memory accelerator or of wgmma
  std::vector<std::string> places; ///< "file:line"
};
/// From the three symbols of a linked object.
SimProgram simProgram(void *thread, const void *places, const void *shape);

/// A name that compiled thread code calls, and where the function is.
struct SimSymbol {
  const char *name;
  void *address;
};
std::span<const SimSymbol> simSymbols();

/// Global memory that a kernel may touch.
struct MemoryRange {
  int64_t address = 0, bytes = 0;
  std::string name; ///< as findings call it
  bool writable = true;
};

struct SimOptions {
  uint64_t seed = 0;               ///< 0: everything at the latest moment and in order
  bool checks = true;              ///< false: only what would crash this process, and what cannot go on
  int maxFindings = 16;            ///< different ones; later ones are only counted
  int64_t maxOperations = 1 << 26; ///< of one thread, before it is said never to end
};

struct SimLaunch {
  SimProgram program;
  int64_t blocks = 1; ///< a multiple of the cluster
  std::span<const int64_t> words; ///< the function's arguments, then the address of a TensorMap for each tensor map
  std::vector<MemoryRange> memory;
  SimOptions options;
};

struct SimFinding {
  enum class Kind {
    race,          ///< two accesses that nothing orders
    outOfBounds,   ///< of global or shared memory, or of the window that the compiler declared
    misaligned,
    uninitialised, ///< a read of shared memory that nobody wrote
    divergence,    ///< threads of a warp at different places where all have to be at one
    deadlock,      ///< threads wait and none can run; or one never ends
    misuse,        ///< an instruction used as the PTX manual forbids
  };
  Kind kind;
  std::string text;      ///< one sentence: what, on which lines, which threads, which address
  int64_t count = 1;     ///< how often: the same kind at the same lines
};
const char *nameOf(SimFinding::Kind kind);

struct SimReport {
  std::vector<SimFinding> findings;
  int64_t omitted = 0;     ///< findings beyond SimOptions::maxFindings
  bool completed = true;   ///< false after a finding that nothing could follow
  /// All findings, a line each; "" when there are none.
  std::string text() const;
};

/// Throws Error when the launch itself is impossible.
SimReport simulate(const SimLaunch &launch);

} // namespace tenon::sim
