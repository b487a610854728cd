// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/layout/LinearLayout.h"

/// The layouts that the hardware prescribes: what each thread holds of a matrix instruction's operands, how a panel
/// lies in shared memory for TMA and wgmma, and what ldmatrix and stmatrix move.
///
/// Element sizes are in bits, 8, 16 or 32 (tf32 is 32). Registers are counted in elements (LinearLayout.h), so that one
/// layout serves the operands of every type of a size. Larger tiles are these with repeat(): two consumer warpgroups
/// that divide the rows are wgmmaAccumulator(n).repeat(Unit::Warp, 0, 2).
namespace tenon::nvidia {

//--- Matrix instructions

/// The accumulator of wgmma.m64nNk*: 64 x n over the four warps of a warpgroup, n a multiple of 8 up to 256. When n is
/// no power of two the extent is the next one and the registers from n / 2 on do not exist: they are exactly those
/// whose column is outside.
LinearLayout wgmmaAccumulator(int64_t n);
/// Operand A of wgmma from registers: 64 x (256 / elementBits), over a warpgroup.
LinearLayout wgmmaOperandA(unsigned elementBits);

/// The fragments of mma.sync.m16n8k(256 / elementBits), over one warp: A is 16 x k, B is k x 8, C and D are 16 x 8.
LinearLayout mmaOperandA(unsigned elementBits);
LinearLayout mmaOperandB(unsigned elementBits);
LinearLayout mmaAccumulator();
/// What a warp has at least of a product without the matrix unit, of so many rows and columns (powers of two): up to
/// four columns of a row in a thread.
LinearLayout plainAccumulator(int64_t rows, int64_t columns);

//--- Shared memory

/// rows x (swizzleBytes / element size), one row after the other, the 16-byte chunks of a row permuted as TMA's and
/// wgmma's swizzle of that name does: address bits 4.. ^= address bits 7.. (three of them for 128 bytes, two for 64,
/// one for 32). 16 means no swizzle: a column of 16-byte rows. Right for panels at multiples of 1024 bytes.
LinearLayout swizzledPanel(int64_t rows, unsigned swizzleBytes, unsigned elementBits);
/// rows x columns as whole panels side by side: what one TMA box per panel leaves behind. Powers of two.
LinearLayout swizzledTile(int64_t rows, int64_t columns, unsigned swizzleBytes, unsigned elementBits);

//--- ldmatrix and stmatrix

/// One ldmatrix or stmatrix of 1, 2 or 4 matrices, each eight rows of 16 bytes in shared memory.
struct MatrixMove {
  /// Lane -> coordinates of the first element of the row whose address this lane supplies. Lanes beyond eight times the
  /// number of matrices are duplicates: their addresses are not used.
  LinearLayout rowOfLane;
  /// Register and lane -> the coordinates of the elements that are delivered (or stored).
  LinearLayout registers;
};

/// The tile that such an instruction moves, for matrices arranged so: bit i of the matrix number goes to the next 8
/// rows (0) or the next 16 bytes (1), as arrangement[i] says. {0, 1} is the order of four matrices in operand A and in
/// the accumulators. Transposed, which needs 16-bit elements, a thread gets what lies below each other; the tile's
/// coordinates remain those of the memory.
MatrixMove matrixMove(const std::vector<unsigned> &arrangement, unsigned elementBits, bool transposed = false);

} // namespace tenon::nvidia
