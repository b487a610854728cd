// SPDX-License-Identifier: Apache-2.0
//
// A tile that is reduced along one dimension and then along the one beside it (the channels and pixels of a group) is
// reduced along both at once, as what it is in memory, one row:
//
//     %r = tile.reduce %x dim 1 : tensor<16x4096xf32> -> tensor<16x1xf32>
//     %s = tile.reduce %r dim 0 : tensor<16x1xf32> -> tensor<1x1xf32>
//  -> %y = tile.reshape %x : tensor<16x4096xf32> -> tensor<1x65536xf32>
//     %s = tile.reduce %y dim 1 : tensor<1x65536xf32> -> tensor<1x1xf32>
//
// A thread then has one number to exchange with others, not one for each of its rows, and the block waits once. The
// reshape costs nothing where all sizes are powers of two. Not for narrow floats, whose partial sums are rounded.
#include "tenon/compiler/target/nvidia/threads/JoinedReductions.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

bool hasSameCombine(tile::ReduceOp a, tile::ReduceOp b) {
  Block &first = a.getCombine().front(), &second = b.getCombine().front();
  if (first.getOperations().size() != 2 || second.getOperations().size() != 2)
    return false; // one operation and its yield
  Operation &one = first.front(), &other = second.front();
  return one.getName() == other.getName() && one.getAttrDictionary() == other.getAttrDictionary() &&
         one.getNumOperands() == 2 && one.getOperands() == ValueRange(first.getArguments()) &&
         other.getOperands() == ValueRange(second.getArguments());
}

/// The reduction whose result this one reduces, if the two can be one.
tile::ReduceOp innerOf(tile::ReduceOp outer) {
  if (outer.getValues().size() != 1)
    return {};
  auto inner = outer.getValues()[0].getDefiningOp<tile::ReduceOp>();
  if (!inner || inner.getValues().size() != 1 || !inner->hasOneUse() || !hasSameCombine(inner, outer))
    return {};
  auto type = llvm::cast<RankedTensorType>(inner.getValues()[0].getType());
  bool isWide = type.getElementType().getIntOrFloatBitWidth() >= 32;
  bool arePowers = llvm::all_of(type.getShape(), [](int64_t size) { return llvm::isPowerOf2_64(size); });
  int64_t low = std::min(inner.getDim(), outer.getDim()), high = std::max(inner.getDim(), outer.getDim());
  bool areNeighbours = llvm::all_of(llvm::seq(low + 1, high), [&](int64_t d) { return type.getDimSize(d) == 1; });
  return isWide && arePowers && areNeighbours && type.getDimSize(low) > 1 && type.getDimSize(high) > 1
             ? inner
             : tile::ReduceOp();
}

} // namespace

void joinReductions(func::FuncOp kernel) {
  SmallVector<tile::ReduceOp> outers;
  kernel.walk([&](tile::ReduceOp reduce) { outers.push_back(reduce); });
  for (tile::ReduceOp outer : outers) {
    tile::ReduceOp inner = innerOf(outer);
    if (!inner)
      continue;
    Value tile = inner.getValues()[0];
    auto type = llvm::cast<RankedTensorType>(tile.getType());
    int64_t low = std::min(inner.getDim(), outer.getDim()), high = std::max(inner.getDim(), outer.getDim());
    SmallVector<int64_t> shape(type.getShape());
    shape[high] *= std::exchange(shape[low], 1);
    OpBuilder b(inner);
    auto row = RankedTensorType::get(shape, type.getElementType());
    Value flat = b.create<tile::ReshapeOp>(tile.getLoc(), row, tile);
    outer->setOperand(0, flat);
    outer.setDim(high);
    outer->moveBefore(inner);
    inner->erase();
  }
}

} // namespace tenon::nvidia
