// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

namespace llvm {
class Module;
} // namespace llvm

namespace tenon::cpu {

/// Computes llvm.maximum and llvm.minimum of vectors with vrangeps and vrangepd, where the processor has them: these
/// know that +0 is greater than -0, which leaves the NaN to be seen to, three instructions where LLVM takes six. To be
/// run after the optimiser, on vectors of f32 and f64.
void rangeExtremes(llvm::Module &module, const Isa &isa);

} // namespace tenon::cpu
