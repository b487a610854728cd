// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/threads/DotPlan.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tenon::nvidia {

/// f64, and f32 that must not be rounded, are the only ones without an instruction.
bool usesMatrixUnit(tile::DotOp dot) {
  Type element = dot.getA().getType().getElementType();
  return !element.isF64() && (!element.isF32() || dot.getAllowTf32());
}

bool addsInF32(tile::DotOp dot) {
  Type element = dot.getA().getType().getElementType();
  return (element.isFloat8E4M3FN() || element.isFloat8E5M2()) && !dot.getFastAccum();
}

DotPlan planDot(tile::DotOp dot, int architecture) {
  Type a = dot.getA().getType().getElementType(), b = dot.getB().getType().getElementType();
  DotPlan plan;
  plan.matrixUnit = usesMatrixUnit(dot);
  plan.stagedA = a;
  plan.stagedB = b;
  if (!plan.matrixUnit) {
    plan.elementBytes = lower::byteSize(a);
    plan.instruction = a.isF64() ? "fma.f64" : "fma.f32";
    plan.limit = a.isF64() ? "there is no faster one for f64 here"
                           : "the matrix unit would round f32 operands to tf32, which the dot does not allow";
    return plan;
  }
  bool isByteFloat = a.isFloat8E4M3FN() || a.isFloat8E5M2();
  if (isByteFloat && architecture < 89) {
    plan.stagedA = plan.stagedB = Float16Type::get(dot.getContext());
    plan.limit = "operands are converted to f16: instructions for 8-bit floats need sm_89";
  }
  auto typeOf = [](Type element, bool isUnsigned) {
    if (element.isF16())
      return OperandType::f16;
    if (element.isBF16())
      return OperandType::bf16;
    if (element.isF32())
      return OperandType::tf32;
    if (element.isFloat8E4M3FN())
      return OperandType::e4m3;
    if (element.isFloat8E5M2())
      return OperandType::e5m2;
    return isUnsigned ? OperandType::u8 : OperandType::s8;
  };
  plan.a = typeOf(plan.stagedA, dot.getAUnsigned());
  plan.b = typeOf(plan.stagedB, dot.getBUnsigned());
  plan.elementBytes = lower::byteSize(plan.stagedA);
  plan.depth = 32 / plan.elementBytes;
  plan.warpgroup = dot->hasAttr(warpgroupAttr);
  plan.promotes = plan.warpgroup && addsInF32(dot);
  plan.instruction = (plan.warpgroup ? "wgmma.m64k" : "mma.sync.m16n8k") + std::to_string(plan.depth) + " " +
                     stringifyOperandType(plan.a).str();
  if (auto reason = dot->getAttrOfType<StringAttr>(notWarpgroupAttr); reason && plan.limit.empty())
    plan.limit = "not wgmma: " + reason.str();
  if (plan.a != plan.b)
    plan.instruction += " x " + stringifyOperandType(plan.b).str();
  return plan;
}

int64_t OperandTile::place(int64_t row, int64_t column) const {
  int64_t byte = column * elementBytes, swizzle = row >> swizzleShift & swizzleMask, before = 0;
  if (panel) {
    before = byte / panel * panelSize();
    byte %= panel;
  }
  return before + row * pitch + (byte / 16 ^ swizzle) * 16 + byte % 16;
}

LinearLayout OperandTile::layout() const {
  if (panel || pitch != paddedColumns * elementBytes || !llvm::isPowerOf2_64(pitch) || !llvm::isPowerOf2_64(paddedRows))
    throw InternalError("an operand tile with gaps has no layout");
  std::vector<Coords> bases;
  for (int64_t column = 1; column < paddedColumns; column *= 2)
    bases.push_back({0, column});
  for (int64_t row = 1; row < paddedRows; row *= 2) // what stands at the row's beginning
    bases.push_back({row, (row >> swizzleShift & swizzleMask) * 16 / elementBytes});
  return LinearLayout({{Unit::Offset, bases}}, {paddedRows, paddedColumns});
}

OperandUse useOf(const DotPlan &plan, bool alongK) {
  if (!plan.matrixUnit)
    return OperandUse::Elements;
  return plan.elementBytes == 4 && !alongK ? OperandUse::Words : OperandUse::Matrices;
}

OperandTile planOperandTile(int64_t rows, int64_t columns, int64_t elementBytes, int64_t rowMultiple,
                            int64_t columnMultiple, OperandUse use) {
  OperandTile tile;
  tile.elementBytes = elementBytes;
  tile.rows = rows;
  tile.columns = columns;
  tile.paddedRows = llvm::alignTo(rows, rowMultiple);
  tile.paddedColumns = llvm::alignTo(columns, columnMultiple);
  int64_t chunks = llvm::divideCeil(tile.paddedColumns * elementBytes, 16);
  switch (use) {
  case OperandUse::Matrices:
    if (llvm::isPowerOf2_64(chunks)) {
      tile.swizzleMask = std::min<int64_t>(chunks, 8) - 1;
      tile.swizzleShift = chunks >= 8 ? 0 : 3 - llvm::Log2_64(chunks);
    } else {
      chunks |= 1;
    }
    tile.pitch = chunks * 16;
    break;
  case OperandUse::Words: // four rows of eight words are the 32 banks: row r begins at bank 8 r
    tile.pitch = llvm::alignTo(std::max<int64_t>(chunks * 16 - 32, 0), 128) + 32;
    break;
  case OperandUse::Elements:
    tile.pitch = (chunks + (rows > 1)) * 16;
    break;
  }
  return tile;
}

OperandTile planPanelTile(int64_t rows, int64_t columns, int64_t elementBytes, int64_t panel) {
  OperandTile tile;
  tile.elementBytes = elementBytes;
  tile.rows = rows;
  tile.columns = columns;
  tile.paddedRows = llvm::alignTo(rows, 8);
  tile.paddedColumns = llvm::alignTo(columns * elementBytes, panel) / elementBytes;
  tile.pitch = tile.panel = panel;
  int64_t chunks = panel / 16;
  if (llvm::isPowerOf2_64(static_cast<uint64_t>(chunks))) {
    tile.swizzleMask = chunks - 1;
    tile.swizzleShift = 3 - llvm::Log2_64(chunks);
  }
  return tile;
}

} // namespace tenon::nvidia
