// SPDX-License-Identifier: Apache-2.0
//
// tenon-shift-equality: "is this element number label?" adds the tile's offset to one number instead of to every
// element:
//
//     %p = arith.addi %iota, splat(%c)                     %d = arith.subi %label, %c       one number
//     %e = arith.cmpi eq, %p, splat(%label)          ->    %e = arith.cmpi eq, %iota, splat(%d)
//
// Right for all integers, which wrap; not so for an order. In a loop over %c it saves registers as well as additions:
// LLVM would bring %label minus each element's own number, one register each (two of 64 bits), out of the loop.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/transform/EraseDead.h"
#include "tenon/compiler/transform/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace tenon {
namespace {

int64_t elementsOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getNumElements(); }

/// A tile that is another one plus, or minus, one number for all.
struct Shifted {
  Value tile, by;
  bool isMinus = false;
};

std::optional<Shifted> shifted(Value value) {
  auto number = [](Value tile) -> Value {
    auto splat = tile.getDefiningOp<tile::SplatOp>();
    return splat ? splat.getValue() : Value();
  };
  if (auto sum = value.getDefiningOp<arith::AddIOp>()) {
    if (Value by = number(sum.getRhs()))
      return Shifted{sum.getLhs(), by};
    if (Value by = number(sum.getLhs()))
      return Shifted{sum.getRhs(), by};
  }
  if (auto difference = value.getDefiningOp<arith::SubIOp>())
    if (Value by = number(difference.getRhs()))
      return Shifted{difference.getLhs(), by, /*isMinus=*/true};
  return std::nullopt;
}

/// Null unless the left side is shifted and the right one is made of fewer elements.
Value shiftRight(arith::CmpIOp op, Value left, Value right) {
  auto type = llvm::dyn_cast<RankedTensorType>(left.getType());
  if (!type)
    return {};
  auto repeated = left.getDefiningOp<tile::BroadcastOp>();
  std::optional<Shifted> found = shifted(repeated ? repeated.getValue() : left);
  if (!found)
    return {};
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto moved = [&](Value from, Value by) -> Value {
    if (found->isMinus)
      return b.create<arith::AddIOp>(from, by);
    return b.create<arith::SubIOp>(from, by);
  };
  Value other;
  if (auto splat = right.getDefiningOp<tile::SplatOp>()) {
    other = b.create<tile::SplatOp>(type, moved(splat.getValue(), found->by));
  } else if (auto few = right.getDefiningOp<tile::BroadcastOp>();
             few && elementsOf(few.getValue()) < elementsOf(found->tile)) {
    Value by = b.create<tile::SplatOp>(few.getValue().getType(), found->by);
    other = b.create<tile::BroadcastOp>(type, moved(few.getValue(), by));
  } else {
    return {};
  }
  Value same = repeated ? b.create<tile::BroadcastOp>(type, found->tile) : found->tile;
  return b.create<arith::CmpIOp>(op.getPredicate(), same, other);
}

struct ShiftEquality : PassWrapper<ShiftEquality, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ShiftEquality)
  StringRef getArgument() const override { return "tenon-shift-equality"; }
  StringRef getDescription() const override {
    return "Compare elements for equality before a number is added to them all, with what remains of the other side";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, tile::TileDialect>();
  }
  void runOnOperation() override {
    SmallVector<arith::CmpIOp> comparisons;
    getOperation()->walk([&](arith::CmpIOp op) {
      if (op.getPredicate() == arith::CmpIPredicate::eq || op.getPredicate() == arith::CmpIPredicate::ne)
        comparisons.push_back(op);
    });
    for (arith::CmpIOp op : comparisons) {
      Value replacement = shiftRight(op, op.getLhs(), op.getRhs());
      if (!replacement)
        replacement = shiftRight(op, op.getRhs(), op.getLhs());
      if (!replacement)
        continue;
      op.replaceAllUsesWith(replacement);
      eraseIfDead(op);
    }
  }
};

} // namespace

std::unique_ptr<Pass> createShiftEqualityPass() { return std::make_unique<ShiftEquality>(); }

} // namespace tenon
