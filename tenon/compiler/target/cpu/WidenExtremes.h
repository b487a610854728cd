// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace tenon::cpu {

/// Computes llvm.maximum and its like of 16-bit floats in f32. Programs say it so in the first place, but LLVM's optimiser
/// narrows maximum(fpext x, fpext y) to fpext(maximum(x, y)), and for x86 without 16-bit arithmetic LLVM 19 then takes
/// vectors apart, element by element, and loses NaNs: maximum(NaN, 0) becomes 0. To be run after the optimiser.
void widenExtremes(llvm::Module &module);

} // namespace tenon::cpu
