// SPDX-License-Identifier: Apache-2.0
//
// Instructions that all lanes of a warp execute together. The last lane to arrive does it for all, with the operands
// the others have left in their headers.
#include "tenon/runtime/sim/Calls.h"
#include "tenon/runtime/sim/Mma.h"
#include "tenon/runtime/sim/State.h"

#include <algorithm>
#include <cstring>

namespace tenon::sim {

using Kind = SimFinding::Kind;

namespace {

template <class Perform>
void together(Thread &thread, uint32_t place, uint32_t instruction, const char *what, Perform perform) {
  Launch &launch = *thread.launch;
  launch.step(thread, place);
  Warp &warp = *thread.warp;
  const Thread *apart = nullptr;
  if (warp.exited)
    apart = *std::find_if(warp.lanes, warp.lanes + 32, [](Thread *lane) { return lane->exited; });
  else if (warp.arrived && warp.instruction != instruction)
    apart = *std::find_if(warp.lanes, warp.lanes + 32, [&](Thread *l) { return l != &thread && l->waitsAt; });
  if (apart) {
    uint32_t other = apart->exited ? place : apart->waitsPlace;
    launch.find(Kind::divergence, place, other, [&] {
      return "divergence: " + thread.name() + " is at " + what + launch.at(place) +
             ", which needs all lanes of the warp, while " + apart->name() +
             (apart->exited ? " has exited" : " is at " + std::string(apart->waitsAt) + launch.at(other));
    });
    launch.stop(thread);
  }
  warp.instruction = instruction;
  if (++warp.arrived < 32)
    return launch.wait(thread, what, place);
  warp.arrived = 0;
  perform(warp);
  for (Thread *lane : warp.lanes)
    if (lane != &thread)
      launch.wake(*lane);
}

template <class T> T *operand(Thread *thread, int at = 0) { return reinterpret_cast<T *>(thread->operands + at); }

/// The memory of row `row` of matrix `matrix`, judged as an access of the lane that names it; null after a finding.
uint8_t *matrixRow(Warp &warp, uint32_t place, int matrix, int row, Touch touch) {
  Thread &lane = *warp.lanes[8 * matrix + row];
  uint32_t address = lane.arguments[0];
  if (!touchShared(lane, place, *lane.block, address, 16, touch, lane.window))
    return nullptr;
  return lane.block->memory.data() + address;
}

/// Which element of an 8 x 8 matrix is half `half` of a lane's register.
struct Element {
  int row, column;
};
Element elementOf(int lane, int half, bool transpose) {
  int along = lane % 4 * 2 + half, across = lane / 4;
  return transpose ? Element{along, across} : Element{across, along};
}

} // namespace

void warpBarrier(Thread *thread, uint32_t place, uint32_t instruction) {
  together(*thread, place, instruction, "a warp barrier", [](Warp &warp) {
    Gathering gathering;
    for (Thread *lane : warp.lanes)
      gathering.add(lane->clock);
    Knowledge knowledge = gathering.knowledge();
    for (Thread *lane : warp.lanes) {
      lane->clock.known = knowledge;
      ++lane->clock.own;
    }
  });
}

void shuffle(Thread *thread, uint32_t place, uint32_t instruction, int32_t mode, uint32_t lane) {
  thread->arguments[0] = lane & 31; // the hardware looks at five bits
  together(*thread, place, instruction, "a shuffle", [&](Warp &warp) {
    uint32_t values[32];
    for (int i = 0; i < 32; ++i)
      values[i] = *operand<uint32_t>(warp.lanes[i]);
    for (int i = 0; i < 32; ++i) {
      int by = warp.lanes[i]->arguments[0], from = i;
      switch (ShuffleMode(mode)) {
      case ShuffleMode::bfly: from = i ^ by; break;
      case ShuffleMode::up: from = i - by; break;
      case ShuffleMode::down: from = i + by; break;
      case ShuffleMode::idx: from = by; break;
      }
      *operand<uint32_t>(warp.lanes[i]) = values[from < 0 || from > 31 ? i : from];
    }
  });
}

int32_t vote(Thread *thread, uint32_t place, uint32_t instruction, int32_t condition) {
  thread->arguments[0] = condition != 0;
  together(*thread, place, instruction, "a vote", [](Warp &warp) {
    uint32_t bits = 0;
    for (int i = 0; i < 32; ++i)
      bits |= warp.lanes[i]->arguments[0] << i;
    for (Thread *lane : warp.lanes)
      lane->arguments[1] = bits;
  });
  return static_cast<int32_t>(thread->arguments[1]);
}

void ldmatrix(Thread *thread, uint32_t place, uint32_t instruction, uint32_t address, int32_t count, int32_t transpose,
              int32_t begin, int32_t end) {
  thread->arguments[0] = address;
  thread->window = {begin, end};
  together(*thread, place, instruction, "an ldmatrix", [&](Warp &warp) {
    for (int matrix = 0; matrix < count; ++matrix) {
      uint16_t elements[8][8] = {};
      for (int row = 0; row < 8; ++row)
        if (const uint8_t *memory = matrixRow(warp, place, matrix, row, Touch::read))
          std::memcpy(elements[row], memory, 16);
      for (int lane = 0; lane < 32; ++lane)
        for (int half = 0; half < 2; ++half) {
          Element element = elementOf(lane, half, transpose);
          operand<uint16_t>(warp.lanes[lane])[2 * matrix + half] = elements[element.row][element.column];
        }
    }
  });
}

void stmatrix(Thread *thread, uint32_t place, uint32_t instruction, uint32_t address, int32_t count, int32_t transpose,
              int32_t begin, int32_t end) {
  thread->arguments[0] = address;
  thread->window = {begin, end};
  together(*thread, place, instruction, "an stmatrix", [&](Warp &warp) {
    for (int matrix = 0; matrix < count; ++matrix) {
      uint16_t elements[8][8];
      for (int lane = 0; lane < 32; ++lane)
        for (int half = 0; half < 2; ++half) {
          Element element = elementOf(lane, half, transpose);
          elements[element.row][element.column] = operand<uint16_t>(warp.lanes[lane])[2 * matrix + half];
        }
      for (int row = 0; row < 8; ++row)
        if (uint8_t *memory = matrixRow(warp, place, matrix, row, Touch::write))
          std::memcpy(memory, elements[row], 16);
    }
  });
}

void mma(Thread *thread, uint32_t place, uint32_t instruction, int32_t a, int32_t b) {
  together(*thread, place, instruction, "an mma", [&](Warp &warp) {
    MmaFragments fragments;
    for (int lane = 0; lane < 32; ++lane) {
      fragments.a[lane] = operand<const void>(warp.lanes[lane], 0);
      fragments.b[lane] = operand<const void>(warp.lanes[lane], 16);
      fragments.c[lane] = operand<void>(warp.lanes[lane], 32);
    }
    multiplyFragments(OperandType(a), OperandType(b), fragments);
  });
}

} // namespace tenon::sim
