// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/layout/LinearLayout.h"

#include <limits>

/// What a dot is computed with, and how its operands lie in shared memory for that.
namespace tenon::nvidia {

/// The instruction of a dot: wgmma or mma.sync on the matrix unit, or a multiply-add per element.
struct DotPlan {
  bool matrixUnit = false;
  bool warpgroup = false; ///< wgmma (ChooseInstructions.h)
  bool promotes = false;  ///< sums of wgmma are too coarse to be accumulators: 13 bits of fraction for 8-bit floats
  OperandType a = OperandType::f16, b = OperandType::f16;
  mlir::Type stagedA, stagedB; ///< elements of the operands as the instruction wants them
  int64_t elementBytes = 4;    ///< of those
  int64_t depth = 1;           ///< of K, that one instruction takes
  std::string instruction;     ///< its name
  std::string limit;           ///< why not a better one; may be empty

  /// ldmatrix and wgmma transpose 16-bit elements only; ldmatrix's words of 32 bits need no transposition.
  bool mustRunAlongK() const { return matrixUnit && (elementBytes == 1 || (warpgroup && elementBytes != 2)); }
};

/// Whether a dot runs on the matrix units (mma.sync); otherwise each thread multiplies and adds.
bool usesMatrixUnit(tile::DotOp dot);

/// Whether its sums must not be those of wgmma: of 8-bit floats, unless the dot allows it.
bool addsInF32(tile::DotOp dot);

DotPlan planDot(tile::DotOp dot, int architecture);

/// Some of a matrix' columns, whole panels of them: what is written goes where the first of them would begin.
struct ColumnRange {
  int64_t begin = 0, end = std::numeric_limits<int64_t>::max();
  bool contains(int64_t column) const { return begin <= column && column < end; }
};

/// A matrix in shared memory. Elements of a row are neighbours. Rows and columns past the matrix, up to the padded
/// sizes, are there to be read by whole fragments, and hold zeros.
///
/// Where the matrix is read by ldmatrix, eight rows' chunks of 16 bytes in one column have to be in different banks.
/// Rows of 1, 2, 4, ... chunks have them permuted by xor, as in the swizzles of the tensor memory accelerator:
///
///     chunks a row   chunk ^= ...       rows in 128 bytes
///     8 and more     row & 7            at most one
///     4              row >> 1 & 3       two
///     2              row >> 2 & 1       four
///
/// and rows of another number of chunks are padded to an odd number.
///
/// For wgmma, and where the tensor memory accelerator moves it, the matrix is cut into panels of 128, 64 or 32 bytes of
/// each row, one panel after the other. What is stored may also have panels of an odd number of 16 bytes, in which rows
/// begin in different banks without a swizzle.
struct OperandTile {
  int64_t elementBytes = 2;
  int64_t rows = 1, columns = 1;
  int64_t paddedRows = 1, paddedColumns = 1;
  int64_t pitch = 16;                        ///< bytes from row to row
  int64_t swizzleShift = 0, swizzleMask = 0; ///< chunk ^= row >> shift & mask
  int64_t panel = 0;                         ///< bytes of a row in one panel, which is the pitch; 0: no panels

  int64_t bytes() const { return panel ? paddedRows * paddedColumns * elementBytes : paddedRows * pitch; }
  int64_t panels() const { return panel ? paddedColumns * elementBytes / panel : 1; }
  int64_t panelSize() const { return paddedRows * panel; }
  int64_t swizzleBytes() const { return swizzleMask ? panel : 0; }
  bool isPadded() const { return rows < paddedRows || columns < paddedColumns; }
  /// Where an element begins, in bytes.
  int64_t place(int64_t row, int64_t column) const;
  /// The same as a layout: offset in elements -> coordinates. Powers of two without gaps only.
  LinearLayout layout() const;
};

/// Who reads such a matrix.
enum class OperandUse {
  Matrices, ///< ldmatrix
  Words,    ///< loads of 32-bit elements, four rows and eight columns at a time
  Elements, ///< each thread the rows or columns of its own part of the result
};
OperandUse useOf(const DotPlan &plan, bool alongK);

/// Padded to the given multiples.
OperandTile planOperandTile(int64_t rows, int64_t columns, int64_t elementBytes, int64_t rowMultiple,
                            int64_t columnMultiple, OperandUse use);

/// In panels, which hold whole rows of so many bytes.
OperandTile planPanelTile(int64_t rows, int64_t columns, int64_t elementBytes, int64_t panel);

/// The multiple to which a dimension of an operand is padded for a dot: K by whole instructions, the other by
/// ldmatrix's 8.
inline int64_t operandMultiple(const DotPlan &plan, bool isK) { return !plan.matrixUnit ? 1 : isK ? plan.depth : 8; }

} // namespace tenon::nvidia
