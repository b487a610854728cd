// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

namespace llvm {
class Module;
}

namespace tenon::cpu {

/// Quotients of f32 that may be a product with a reciprocal (RelaxPrecision.cpp marks them: their results are seen as
/// bf16 or less, and no divisor is so small that its reciprocal is infinite), by AVX-512's approximation of it:
///
///     %q = fdiv arcp <16 x float> %a, %b          %r = vrcp14ps %b
///                                                 %q = fmul %a, %r
///
/// Within 2^-14, a thirty-second of half a unit in the last place of bf16. Reciprocals of 0, of infinity and of the
/// largest numbers are what they should be; a step of Newton's, which would make it 2^-23, makes NaN of them. A
/// division of 16 lanes takes 9 cycles on a Xeon, this 2. The approximation of AVX2 has 2^-11.4, too little: it
/// divides.
void approximateQuotients(llvm::Module &module, const Isa &isa);

} // namespace tenon::cpu
