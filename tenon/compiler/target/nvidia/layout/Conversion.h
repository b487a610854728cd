// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/layout/LinearLayout.h"

#include <optional>

/// What moving a tile from one layout to another needs: which hardware the elements must cross, the accesses of a trip
/// through shared memory and what they cost, and the arrangement of that memory that costs least.
namespace tenon::nvidia {

//--- Classification

/// The nearest way that suffices, cheapest first.
enum class ConversionKind : uint8_t {
  Identical,    ///< nothing to do
  Registers,    ///< every thread has what it needs, in other registers
  Shuffle,      ///< every warp has what it needs, in other lanes
  SharedMemory, ///< every block has what it needs, in other warps
  Cluster,      ///< other blocks of the cluster have it
};

struct Conversion {
  ConversionKind kind;
  /// Place of the destination -> a place of the source that has its element; the same block, warp and lane as far as
  /// the kind promises. With kind Registers the source's register may still depend on the lane or warp: a select.
  LinearLayout sourceOf;
};

/// Both layouts are of one tile, over as many lanes, warps and blocks; the source holds every element of the
/// destination.
Conversion classifyConversion(const LinearLayout &source, const LinearLayout &destination);

//--- Shared memory: accesses

/// Register place -> place (offset, block) in shared memory, of which `shared` is the layout; the own block's memory
/// when it has the element.
LinearLayout sharedPlaces(const LinearLayout &registers, const LinearLayout &shared);

/// A thread's loads or stores of its registers.
struct SharedAccess {
  int64_t vectorElements;
  /// One entry per access: the registers of the vector, in the order of memory. Registers that duplicate a lower one of
  /// the thread are in no entry.
  std::vector<std::vector<int64_t>> registers;
  LinearLayout places; ///< sharedPlaces(); the address of an access is that of its first register
};

/// The widest vectors (up to maxVectorBytes) that are contiguous in memory and aligned in every thread. The registers
/// of a vector need not be consecutive: their numbers are known when the code is made.
SharedAccess planSharedAccess(const LinearLayout &registers, const LinearLayout &shared, unsigned elementBytes,
                              unsigned maxVectorBytes = 16);

/// Rows for ldmatrix or stmatrix: instruction i moves registers [i * n, (i + 1) * n), n = registersPerInstruction.
struct MatrixAccess {
  unsigned matrices; ///< 1, 2 or 4
  int64_t registersPerInstruction;
  /// Instruction (as Register), lane, warp, block -> where the row begins whose address the lane supplies.
  LinearLayout rowPlaces;
};

/// Those instructions when they fit: every row of a matrix is 16 contiguous, aligned bytes. No duplicate registers.
std::optional<MatrixAccess> planMatrixAccess(const LinearLayout &registers, const LinearLayout &shared,
                                             unsigned elementBits, bool transposed = false);

//--- Shared memory: cost

/// What one warp's accesses take, in passes through the 32 banks of four bytes, and what they would take without
/// conflicts. A pass serves as many consecutive lanes as 128 bytes do: 32 up to 4 bytes a lane, 16 of 8, 8 of 16. In
/// it, lanes that want different words of one bank wait for each other; lanes that want the same word do not.
struct Wavefronts {
  int64_t actual = 0, ideal = 0;
  bool operator==(const Wavefronts &) const = default;
};

Wavefronts countWavefronts(const SharedAccess &access, unsigned elementBytes);
Wavefronts countWavefronts(const MatrixAccess &access, unsigned elementBits);
/// The same for vectors of a given width, at most the widest.
Wavefronts countWavefronts(const LinearLayout &registers, const LinearLayout &shared, unsigned elementBytes,
                           int64_t vectorElements);

//--- Shared memory: choice

struct SharedChoice {
  /// Offset (and Block) -> coordinates. A block's memory has as many elements as the source's block.
  LinearLayout shared;
  SharedAccess store, load;
  Wavefronts storeCost, loadCost;
};

/// The arrangement of shared memory for store-by-source, load-by-destination with the least passes and instructions
/// (their sum). Swizzle.cpp has the construction; padding is not among the candidates because for vectors that both
/// sides use an xor without conflicts always exists, and takes no room.
SharedChoice chooseShared(const LinearLayout &source, const LinearLayout &destination, unsigned elementBytes);

} // namespace tenon::nvidia
