// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tenon::cpu {

/// Where tile instructions (AMX) are executed: nowhere, by functions of ours, or by the processor.
enum class TileUnit { none, emulated, hardware };

/// What the code generator needs to know of the processor.
struct Isa {
  std::string name;             ///< the level: "avx512", "avx2", ...; with `cpu` and `features` it says everything
  std::string cpu;              ///< LLVM's name of the processor to tune for
  std::string features;         ///< LLVM's feature string
  unsigned vectorBytes = 16;    ///< width of a vector register
  unsigned registers = 16;      ///< number of vector registers
  bool masksSmallTypes = false; ///< masked loads and stores of 8- and 16-bit elements
  bool streams = false;         ///< large results are written past the cache; not of a preset
  bool masksWords = false;      ///< masked loads and stores of 32- and 64-bit elements
  bool dotsBf16 = false;        ///< vdpbf16ps on 512 bits
  bool dotsBytes = false;       ///< vpdpbusd on 512 bits
  bool comparesHalves = false;  ///< vmaxph and vcmpph on 512 bits; of "amx-emulated" LLVM's code for them
  /// Its own prefetching is too short, as it ends with a page: loops and dots bring in what is next (Prefetch,
  /// DotAhead, DotThin), and go over several pages at once (Streaming, Overlap).
  bool bringsRows = false;
  /// Its own prefetching is not enough for loops whose results go through the cache, at least for some: these bring in
  /// what is next, and what is stored to (Prefetch). So do all where there is `bringsRows`.
  bool bringsCached = false;
  bool overlapsRows = false; ///< the loops of several rows are one (Overlap)
  TileUnit tiles = TileUnit::none;
};

/// A level by name, the same on every machine: for printing code, not for running it. "amx" (AVX-512 with tiles),
/// "avx512-dot" (with AVX512_VNNI and AVX512_BF16), "avx512", "avx2", "baseline", "amx-emulated", or "scalar": next to
/// no vectors, for other processors. Throws Error for a level that does not exist.
Isa presetIsa(const std::string &name);

/// The level asked for, with everything else this machine has where that is its best one; "native" is the best.
/// "avx512-dot" is everything but AMX, and "amx-emulated" the code for AMX on any machine, with functions that do the
/// tile instructions; there f32 and f16 are taken apart in all dots of more than a few rows, for tests. Throws Error for
/// a level the machine lacks or that does not exist.
Isa selectIsa(const std::string &limit);

/// Whether this process may use AMX: the processor has it (tiles, bf16 and bytes), and the system, which is asked once,
/// permits it.
bool mayUseTiles();

} // namespace tenon::cpu
