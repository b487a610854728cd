// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/F8Dots.h"

#include "tenon/compiler/target/cpu/DotPlan.h"

using namespace mlir;

namespace tenon::cpu {

void widenF8Dots(func::FuncOp kernel, const Isa &isa) {
  if (!isa.dotsBf16 && isa.tiles == TileUnit::none)
    return;
  kernel.walk([&](tile::DotOp dot) {
    Type element = dot.getA().getType().getElementType();
    bool isF8 = element.isFloat8E4M3FN() || element.isFloat8E5M2();
    if (!isF8 || planDot(dot, isa).thin) // few rows: b is read once, and each element is converted once either way
      return;
    OpBuilder b(dot);
    auto widened = [&](TypedValue<RankedTensorType> tile) -> Value {
      return b.create<tile::CastOp>(dot.getLoc(), tile.getType().clone(b.getBF16Type()), tile, /*is_unsigned=*/false);
    };
    dot.getAMutable().assign(widened(dot.getA()));
    dot.getBMutable().assign(widened(dot.getB()));
    dot.setFastAccum(false); // sums are of f32 here
  });
}

} // namespace tenon::cpu
