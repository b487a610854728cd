// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/lang/Tile.h"

#include <array>
#include <functional>

/// Everything one can compute from tiles. Operands broadcast against each other: shapes are aligned at the last dimension
/// and a dimension of size 1 repeats. Element types must agree; C++ numbers adapt, an Index combines with integers as a
/// 64-bit one. f16 and bf16 operations are computed in f32 and rounded; the 8-bit floats are for storage: convert first.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

// Arithmetic. Integers wrap; integer division is towards zero, x / 0 is 0 and x % 0 is x.
Tile operator+(Arg a, Arg b);
Tile operator-(Arg a, Arg b);
Tile operator*(Arg a, Arg b);
Tile operator/(Arg a, Arg b);
Tile operator%(Arg a, Arg b);
Tile operator-(Arg a);

// Bits (integers and booleans). A shift by the width or more gives 0, or the sign when shifting a negative number right.
Tile operator&(Arg a, Arg b);
Tile operator|(Arg a, Arg b);
Tile operator^(Arg a, Arg b);
Tile operator~(Arg a);
Tile operator!(const Tile &a); ///< booleans only
Tile operator<<(Arg a, Arg b);
Tile operator>>(Arg a, Arg b);

// Comparison. With a NaN on either side everything is false except !=.
Tile operator==(Arg a, Arg b);
Tile operator!=(Arg a, Arg b);
Tile operator<(Arg a, Arg b);
Tile operator<=(Arg a, Arg b);
Tile operator>(Arg a, Arg b);
Tile operator>=(Arg a, Arg b);

/// a where the condition holds, else b.
Tile where(Arg condition, Arg a, Arg b);
/// NaN if either is NaN; +0 is greater than -0.
Tile maximum(Arg a, Arg b);
Tile minimum(Arg a, Arg b);
/// minimum(maximum(x, low), high): high if low is greater, NaN if x is NaN.
Tile clamp(Arg x, Arg low, Arg high);
/// -1, 0 or 1 of the operand's type; of a float zero or NaN, itself.
Tile sign(Arg x);
/// Of floats, as booleans.
Tile isnan(Arg x);
Tile isinf(Arg x);
/// a * b + c with one rounding.
Tile fma(Arg a, Arg b, Arg c);
/// ceil(a / b) for non-negative integers.
Tile cdiv(Arg a, Arg b);

// Functions of one float tile, accurate to 2 ulp.
Tile exp(Arg x);
Tile exp2(Arg x);
Tile expm1(Arg x); ///< exp(x) - 1, as accurate where x is small
Tile log(Arg x);
Tile log2(Arg x);
Tile log1p(Arg x); ///< log(1 + x), as accurate where x is small
Tile sqrt(Arg x);
Tile rsqrt(Arg x);
Tile sin(Arg x);
Tile cos(Arg x);
Tile tanh(Arg x);
Tile erf(Arg x);
Tile sigmoid(Arg x);
Tile floor(Arg x);
Tile ceil(Arg x);
/// To the nearest integer, ties to even.
Tile round(Arg x);
Tile abs(Arg x);
/// x to the power y: within 1 ulp, of f64 within 2 + |y log2(x)|. NaN for negative finite x unless y is whole; x^0 and
/// 1^y are 1; the sign of a zero x does not count. Powers of f32 are computed in f64, but for 2 and -1,
/// which is a quotient.
Tile pow(Arg x, Arg y);

// Making tiles; full and zeros of an empty shape, {}, are a scalar.
Tile full(DType type, const Shape &shape, Arg value, std::source_location where = std::source_location::current());
Tile zeros(DType type, const Shape &shape, std::source_location where = std::source_location::current());
/// 0, 1, 2, ... along dimension dim of the shape.
Tile iota(DType type, const Shape &shape, int dim, std::source_location where = std::source_location::current());
/// 0, 1, ..., n-1 as i32.
Tile iota(int64_t n, std::source_location where = std::source_location::current());

// Moving elements.
Tile broadcast(const Tile &x, const Shape &shape, std::source_location where = std::source_location::current());
/// Inserts a dimension of size 1 before `dim`.
Tile expand(const Tile &x, int dim, std::source_location where = std::source_location::current());
Tile reshape(const Tile &x, const Shape &shape, std::source_location where = std::source_location::current());
/// Dimension d of the result is dimension permutation[d] of x.
Tile transpose(const Tile &x, const std::vector<int> &permutation,
               std::source_location where = std::source_location::current());
/// Of a matrix.
Tile transpose(const Tile &x, std::source_location where = std::source_location::current());
Tile slice(const Tile &x, int dim, int64_t begin, int64_t length,
           std::source_location where = std::source_location::current());
Tile concat(const std::vector<Tile> &tiles, int dim, std::source_location where = std::source_location::current());
/// The element of a tile of one element, as a scalar: for if_(), an Index, an offset.
Tile scalar(const Tile &x, std::source_location where = std::source_location::current());

// Reductions along one dimension, which stays with size 1. f16 and bf16 are summed in f32 and rounded once; sums and
// products of integers narrower than 32 bits, and of booleans (a count), are 32-bit.
Tile sum(const Tile &x, int dim, std::source_location where = std::source_location::current());
Tile prod(const Tile &x, int dim, std::source_location where = std::source_location::current());
Tile max(const Tile &x, int dim, std::source_location where = std::source_location::current());
Tile min(const Tile &x, int dim, std::source_location where = std::source_location::current());
Tile any(const Tile &x, int dim, std::source_location where = std::source_location::current());
Tile all(const Tile &x, int dim, std::source_location where = std::source_location::current());
/// The i32 position of the largest (smallest) element: the first of equals, and of a NaN if there is one.
Tile argmax(const Tile &x, int dim, std::source_location where = std::source_location::current());
Tile argmin(const Tile &x, int dim, std::source_location where = std::source_location::current());

/// Combines two scalars into one; associative and commutative (scan: associative).
using Combine = std::function<Tile(Tile, Tile)>;
/// Combines two groups of scalars, for reductions and scans over several tiles at once.
using CombineMany = std::function<std::vector<Tile>(const std::vector<Tile> &, const std::vector<Tile> &)>;
Tile reduce(const Tile &x, int dim, const Combine &combine,
            std::source_location where = std::source_location::current());
std::vector<Tile> reduce(const std::vector<Tile> &tiles, int dim, const CombineMany &combine,
                         std::source_location where = std::source_location::current());

// Inclusive scans along one dimension, from the first element or, reversed, from the last.
Tile scan(const Tile &x, int dim, const Combine &combine, bool reverse = false,
          std::source_location where = std::source_location::current());
/// Of several tiles at once. A linear recurrence h[i] = a[i] * h[i-1] + b[i] is the scan of {a, b} by
/// {a0 * a1, b0 * a1 + b1}, whose second result is h.
std::vector<Tile> scan(const std::vector<Tile> &tiles, int dim, const CombineMany &combine, bool reverse = false,
                       std::source_location where = std::source_location::current());
Tile cumsum(const Tile &x, int dim, bool reverse = false,
            std::source_location where = std::source_location::current());

/// Along one dimension of a power of two of elements, the smallest first; a NaN counts as larger than everything else.
Tile sort(const Tile &x, int dim, bool descending = false,
          std::source_location where = std::source_location::current());
/// The first tile sorted, and the others in the same order: positions, say, which then are where elements were. Of
/// equal elements either may come first.
std::vector<Tile> sort(const std::vector<Tile> &tiles, int dim, bool descending = false,
                       std::source_location where = std::source_location::current());

struct DotOptions {
  bool allow_tf32 = false; ///< f32 operands may be rounded to tf32
  bool fast_accum = false; ///< f8 operands: sums may have as few bits as the matrix unit adds with (docs/numerics.md)
};
/// a (M x K) times b (K x N) plus acc. f32, f16, bf16 and f8 operands accumulate in f32, f64 in f64, i8/u8 in i32.
Tile dot(const Tile &a, const Tile &b, const Tile &acc, DotOptions options = {},
         std::source_location where = std::source_location::current());
Tile dot(const Tile &a, const Tile &b, std::source_location where = std::source_location::current());

// Random numbers from a counter (Philox4x32-10): the same seed and counter give the same bits on every target.
std::array<Tile, 4> philox(Arg seed, const Tile &counter,
                           std::source_location where = std::source_location::current());
struct RandomOptions {
  int bits = 32;   ///< for each element: 32 (u32) or 16 (u16), of which twice as many come out of the generator at once
  int rounds = 10; ///< of the generator: 7 to 10. 7 are the fewest that pass its authors' tests, 10 leave a margin
};
/// 32 random bits (u32) per counter c: word c % 4 of philox(seed, c / 4). Neighbouring elements with neighbouring
/// counters share one evaluation of the generator, where philox has one for each element. Or 16 bits (u16),
/// sixteen numbers of one evaluation: any two of them are 32 uniform bits, but all sixteen have no more than the
/// generator's 128 between them (docs/numerics.md has how). Where that is not enough, draw 32.
Tile random_bits(Arg seed, const Tile &counter, RandomOptions options = {},
                 std::source_location where = std::source_location::current());
/// Uniform f32 in [0, 1), a multiple of 2^-24.
Tile random_uniform(Arg seed, const Tile &counter, std::source_location where = std::source_location::current());
/// True with the probability, rounded to a multiple of 2^-16, which is 1 for no probability less than 1: 16 random bits
/// are less than it, of 7 rounds of the generator.
Tile random_event(Arg probability, Arg seed, const Tile &counter,
                  std::source_location where = std::source_location::current());
/// x times 1 / (1 - probability), or zero where random_event is true. All zero for a probability of 1 and above; one below
/// 0 drops nothing but still scales, so a kernel that takes it from outside should `require` that it is neither. The
/// counter (i32 or i64) broadcasts against x and must be another for each element of the whole tensor, not only of the
/// tile: `iota(i64, {1, cols}, 1) + row * x.size(1)`.
Tile dropout(const Tile &x, Arg probability, Arg seed, const Tile &counter,
             std::source_location where = std::source_location::current());

} // namespace tenon
#pragma GCC visibility pop
