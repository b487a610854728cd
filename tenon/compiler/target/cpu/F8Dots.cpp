// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/F8Dots.h"

#include "tenon/compiler/target/cpu/DotPlan.h"

using namespace mlir;

namespace tenon::cpu {

void widenF8Dots(func::FuncOp kernel, const Isa &isa) {
  if (!isa.dotsBf16 && isa.tiles == TileUnit::none)
    return;
  llvm::DenseMap<Value, Value> widened;
  // Where the operand is made, once: what is the same in every iteration of a loop is converted in front of it.
  auto widen = [&](Value tile) {
    Value &made = widened[tile];
    if (!made) {
      OpBuilder b(kernel.getContext());
      b.setInsertionPointAfterValue(tile);
      auto type = llvm::cast<RankedTensorType>(tile.getType()).clone(b.getBF16Type());
      made = b.create<tile::CastOp>(tile.getLoc(), type, tile, /*is_unsigned=*/false);
    }
    return made;
  };
  kernel.walk([&](tile::DotOp dot) {
    Type element = dot.getA().getType().getElementType();
    bool isF8 = element.isFloat8E4M3FN() || element.isFloat8E5M2();
    if (!isF8 || planDot(dot, isa).thin) // few rows: b is read once, and each element is converted once either way
      return;
    dot.getAMutable().assign(widen(dot.getA()));
    dot.getBMutable().assign(widen(dot.getB()));
    dot.setFastAccum(false); // sums are of f32 here
  });
}

} // namespace tenon::cpu
