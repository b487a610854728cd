// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/Steps.h"

#include <cstdint>

namespace tenon::nvidia {

/// What ThreadEmitter is to make of a kernel.
struct ThreadOptions {
  int64_t threads = 128; ///< per block, a multiple of 32; those that hold tiles
  int64_t cluster = 1;   ///< blocks that work on one program instance together
  int architecture = 90; ///< 80 for sm_80, ...
  int64_t stages = 3;    ///< buffers of a loop's asynchronous loads; 0 and 1: none (bulk copies have one at least)
  int64_t sharers = 1;   ///< blocks of a cluster that share loads, each with an instance of its own
  int64_t teams = 1;     ///< so many times `threads`, each with program instances of its own; more than one: of 128
  int64_t blocks = 1;    ///< of a multiprocessor, between which registers are divided that move between warps
  bool keepOperands = true; ///< a dot's operand that a loop does not change stays in shared memory
  bool bufferOperands = true; ///< one that it computes has several buffers there
  bool wholeRows = true; ///< rows that are no multiple of 32 bytes are staged whole on their way to memory
  Steps steps = {};
};

} // namespace tenon::nvidia
