// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace llvm {
class Module;
} // namespace llvm

namespace tenon::cpu {

struct Isa;

/// exp and exp2 end with p * 2^n as two products with powers of two made from bits (math/Exponential.h), because one
/// power cannot reach from the smallest subnormal to the largest number. AVX-512 has an instruction for it, which
/// rounds once as they do: the same bits for an eighth of the work. To be run before the optimiser, which would change
/// how it looks.
///
///     %h = lshr %sum, 1   %o = sub %sum, %h           (bits of a float whose low end is n + 254)
///     fmul (fmul %p, (%h << 23)), (%o << 23)     ->   scalef %p, (%sum - 1.5 * 2^23 - 254)
///
/// There is one for what is left of x beside the nearest whole number, too, and neither has to be kept from numbers
/// that are too large:
///
///     %sum = fadd clamp(%x), %magic   %n = fsub %sum, %magic   %r = fsub clamp(%x), %n   ->   %r = reduce %x
///                                                                                             %n = fsub %x, %r
///
/// Beside the whole number below, n is not needed at all: that is what the first takes of its operand.
///
///     %n = floor clamp(%x)   %sum = fadd %n, %magic   %r = fsub clamp(%x), %n   ->   %r = reduce %x,  scalef %p, %x
///
/// Only where nothing but such powers sees r: anything else wants that of x with its bounds.
///
/// Where 0 is taken instead of a power that would be subnormal, the instruction has that as its mask: what is masked
/// out costs nothing, a subnormal number 160 cycles.
///
///     select (fcmp olt %x, %bound), 0, (scalef %p, max(%x, %bound))   ->   scalef %p, %x {fcmp uge %x, %bound}
void scalePowers(llvm::Module &module, const Isa &isa);

} // namespace tenon::cpu
