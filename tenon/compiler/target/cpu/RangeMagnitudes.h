// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace tenon::cpu {

struct Isa;

/// The magnitude of x, or of a constant above 0 where x is no less or NaN (math/Gelu.h), is one instruction of AVX-512.
/// To be run before the optimiser, which would put the magnitude into the choice.
///
///     fabs (select (fcmp olt %x, c), %x, c)   ->   vrangeps min, sign cleared
void rangeMagnitudes(llvm::Module &module, const Isa &isa);

} // namespace tenon::cpu
