// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What compiled thread code and the simulator agree on. The code is one function, `threadSymbol`, that every thread of
/// a launch runs; each op of the nvidia dialect in it is a call of `tenon_sim_<op>(thread, place, ...)`
/// (runtime/sim/Calls.cpp lists them), where `place` numbers a line of the C++ source in the table at `placesSymbol`.
namespace tenon::sim {

inline constexpr int wideOperands = 2048; ///< bytes of the accumulators that one thread waits for at once, at most

/// The beginning of a thread, which the code reads and writes itself.
struct ThreadHeader {
  /// Of the call at hand: operands too wide for a register go in here, and come back as results.
  ///     load, ldmatrix          result at 0
  ///     store, stmatrix         value at 0
  ///     atomic, shuffle         value and result at 0
  ///     atomic_cas              expected value and result at 0, desired value at 8
  ///     mma                     a at 0, b at 16, c and result at 32
  ///     tma_load, tma_store     coordinates at 0
  ///     wgmma, wgmma_wait       accumulators and results at 0; of wgmma, registers of a at `wideOperands`
  alignas(16) unsigned char operands[wideOperands + 16];
  int32_t threadId, blockId, clusterRank, gridSize;
};

inline constexpr const char *threadSymbol = "tenon_sim_thread"; ///< void (ThreadHeader *, const int64_t *words)
inline constexpr const char *placesSymbol = "tenon_sim_places"; ///< "file:line\0file:line\0...\0"
/// int64_t[5]: threads, cluster, shared bytes, whether there are instructions of asynchronous units (tma_load, wgmma),
/// and how many blocks divide the registers of a multiprocessor.
inline constexpr const char *shapeSymbol = "tenon_sim_shape";

// The numbers of the dialect's enumerations; compiler/target/nvidia/sim checks that they agree.
enum class Space { global, shared, cluster };
enum class AtomicKind { add, fadd, smax, smin, umax, umin, exchange };
enum class FenceKind { block, device, proxyAsync, mbarrierInit };
enum class ShuffleMode { bfly, up, down, idx };
enum class OperandType { f16, bf16, tf32, s8, u8, e4m3, e5m2, f64 };
enum class ApproxFunction { ex2, rcp, rsqrt, lg2, tanh };

} // namespace tenon::sim
