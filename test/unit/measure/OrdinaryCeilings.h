// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/measure/Machine.h"
#include "tenon/measure/MeasuredCeilings.h"

/// The ceilings of an ordinary machine, kept as this one's. Measured ones would depend on what else ran meanwhile, and
/// with them what is tuned and told.
inline void keepOrdinaryCeilings() {
  using namespace tenon;
  for (int threads : {1, thisMachine().processors}) {
    double cycles = 3e9 * threads;
    model::Ceilings ceilings;
    ceilings.device = "an ordinary machine";
    ceilings.measured = true;
    ceilings.processors = threads;
    ceilings.levels = {{"L1", 48e3 * threads, 64 * cycles, 64 * cycles},
                       {"L2", 2e6 * threads, 32 * cycles, 32 * cycles},
                       {"L3", 32e6, 8 * cycles, 8 * cycles},
                       {"memory", 0, 4 * cycles, 4 * cycles}};
    ceilings.vector.fill(32 * cycles);
    ceilings.matrix.fill(32 * cycles);
    ceilings.special = cycles;
    ceilings.integer = 16 * cycles;
    ceilings.launchSeconds = 3e-6;
    keepCpuCeilings(ceilings, {false, threads, ""});
  }
}
