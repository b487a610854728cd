// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace mlir {
class Pass;
} // namespace mlir

/// The phases of CpuTarget.h as passes, for tenon-opt and the tests; the jit calls the functions themselves.
namespace tenon::cpu {

/// tenon-cpu-lower-to-loops{isa=avx512|avx2|baseline}: replaces the one kernel of a module by what cpu::lowerToLoops
/// makes of it. The instruction set is a preset, so that the result does not depend on the machine. The bytes of
/// scratch memory of a program instance are left in the module attribute `tenon.scratch_bytes`.
std::unique_ptr<mlir::Pass> createLowerToLoopsPass();

/// tenon-cpu-lower-to-llvm: cpu::lowerToLlvmDialect.
std::unique_ptr<mlir::Pass> createLowerToLlvmPass();

void registerCpuPasses();

} // namespace tenon::cpu
