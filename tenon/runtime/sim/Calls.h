// SPDX-License-Identifier: Apache-2.0
//
// The instructions: what compiled thread code calls, by the names in Calls.cpp. `place` numbers the line in the C++
// source, `instruction` the instruction itself where the lanes of a warp have to be at the same one; wide operands lie
// in the thread's header (base/SimThread.h).
#pragma once

#include <cstdint>

namespace tenon::sim {

struct TensorMap;
struct Thread;

// Memory.cpp
void load(Thread *, uint32_t place, int32_t space, int64_t address, int32_t bytes, int32_t mask, int32_t begin,
          int32_t end);
void store(Thread *, uint32_t place, int32_t space, int64_t address, int32_t bytes, int32_t mask, int32_t begin,
           int32_t end);
void atomic(Thread *, uint32_t place, int32_t kind, int64_t address, int32_t bytes, int32_t mask);
void atomicCas(Thread *, uint32_t place, int64_t address, int32_t bytes, int32_t mask);
void storeAsync(Thread *, uint32_t place, uint32_t address, int32_t bytes, uint32_t mbarrier, int32_t mask,
                int32_t begin, int32_t end);
int32_t mapShared(Thread *, uint32_t place, uint32_t address, uint32_t rank);

// Copies.cpp
void cpAsync(Thread *, uint32_t place, int32_t bytes, uint32_t shared, int64_t global, int32_t sourceBytes,
             int32_t begin, int32_t end);
void cpAsyncCommit(Thread *, uint32_t place);
void cpAsyncWait(Thread *, uint32_t place, int32_t pending);
void cpAsyncArrive(Thread *, uint32_t place, uint32_t address);

// Order.cpp
void barrier(Thread *, uint32_t place, uint32_t instruction, int32_t id, int32_t threads);
void clusterArrive(Thread *, uint32_t place, int32_t relaxed);
void clusterWait(Thread *, uint32_t place);
void mbarrierInit(Thread *, uint32_t place, uint32_t address, int32_t count);
/// bytes: -1 expects none.
void mbarrierArrive(Thread *, uint32_t place, uint32_t address, int64_t bytes, int32_t space, int32_t isBehindReads);
void mbarrierWait(Thread *, uint32_t place, uint32_t address, int32_t parity);
void fence(Thread *, uint32_t place, int32_t kind);
/// First of all, in a kernel that waits for the kernels before it.
void startEarly(Thread *, uint32_t place);
void awaitEarlierLaunches(Thread *, uint32_t place);

// Warp.cpp
void warpBarrier(Thread *, uint32_t place, uint32_t instruction);
void shuffle(Thread *, uint32_t place, uint32_t instruction, int32_t mode, uint32_t lane);
int32_t vote(Thread *, uint32_t place, uint32_t instruction, int32_t condition);
void ldmatrix(Thread *, uint32_t place, uint32_t instruction, uint32_t address, int32_t count, int32_t transpose,
              int32_t begin, int32_t end);
void stmatrix(Thread *, uint32_t place, uint32_t instruction, uint32_t address, int32_t count, int32_t transpose,
              int32_t begin, int32_t end);
void mma(Thread *, uint32_t place, uint32_t instruction, int32_t a, int32_t b);

// Bulk.cpp
void tmaLoad(Thread *, uint32_t place, uint32_t shared, const TensorMap *map, int32_t rank, uint32_t mbarrier,
             int32_t multicast, int32_t begin, int32_t end); ///< multicast -1: to its own block alone
void tmaStore(Thread *, uint32_t place, const TensorMap *map, int32_t rank, uint32_t shared, int32_t begin,
              int32_t end);
void bulkCommit(Thread *, uint32_t place);
void bulkWait(Thread *, uint32_t place, int32_t pending, int32_t read);

// Warpgroup.cpp
void wgmmaFence(Thread *, uint32_t place, uint32_t instruction);
/// `majors`: bit 0 trans_a, bit 1 trans_b; `fromRegisters`: a is not a descriptor, and this the number that names its
/// registers.
void wgmma(Thread *, uint32_t place, uint32_t instruction, int32_t a, int32_t b, int32_t n, int32_t majors,
           int32_t fromRegisters, int64_t descriptorA, int64_t descriptorB, int32_t scaleD, int32_t beginA,
           int32_t endA, int32_t beginB, int32_t endB);
void wgmmaCommit(Thread *, uint32_t place, uint32_t instruction);
void wgmmaWait(Thread *, uint32_t place, uint32_t instruction, int32_t pending, int32_t count);
/// Before a use of an accumulator by anything but the two above.
void wgmmaRead(Thread *, uint32_t place, int32_t value);
/// Before registers are written that the wgmma of this number takes as `a`.
void wgmmaWrite(Thread *, uint32_t place, int32_t number);
void setMaxRegisters(Thread *, uint32_t place, uint32_t instruction, int32_t count, int32_t increase);

// Arithmetic.cpp
float approx(Thread *, uint32_t place, int32_t function, float value);
int32_t pack(Thread *, uint32_t place, int32_t type, float low, float high);
int32_t permuteBytes(Thread *, uint32_t place, uint32_t low, uint32_t high, uint32_t selector);

} // namespace tenon::sim
