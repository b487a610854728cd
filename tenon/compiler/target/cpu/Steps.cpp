// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/Steps.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/cpu/Placement.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// Whether it is an iota that was only moved about: its elements are far from the ends of their type.
bool isMovedIota(Value tile) {
  Operation *op = tile.getDefiningOp();
  while (op && llvm::isa<tile::BroadcastOp, tile::ReshapeOp, tile::TransposeOp, tile::SliceOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return llvm::isa_and_present<tile::IotaOp>(op);
}

class Steps {
public:
  /// Programs are graphs in which a value may be met along very many ways: each is looked at once.
  std::optional<int64_t> along(Value tile, int dim) {
    auto type = llvm::dyn_cast<RankedTensorType>(tile.getType());
    if (!type || type.getDimSize(dim) == 1)
      return 0;
    Operation *op = tile.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (auto found = known_.find({tile, dim}); found != known_.end())
      return found->second;
    std::optional<int64_t> step = of(op, dim);
    known_[{tile, dim}] = step;
    return step;
  }

private:
  std::optional<int64_t> of(Operation *op, int dim) {
    if (auto numbers = llvm::dyn_cast<tile::IotaOp>(op))
      return static_cast<int>(numbers.getDim()) == dim ? 1 : 0;
    if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op))
      return llvm::isa<SplatElementsAttr>(constant.getValue()) ? std::optional<int64_t>(0) : std::nullopt;
    if (llvm::isa<tile::SplatOp>(op))
      return 0;
    if (llvm::isa<tile::BroadcastOp, tile::SliceOp>(op))
      return along(op->getOperand(0), dim);
    if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op))
      return along(transpose.getValue(), static_cast<int>(transpose.getPermutation()[dim]));
    if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op))
      return isUnitReshape(reshape) ? along(reshape.getValue(), beforeReshape(reshape, dim)) : std::nullopt;
    if (!lower::isElementwise(op))
      return std::nullopt;
    SmallVector<int64_t> steps;
    for (Value operand : op->getOperands()) {
      std::optional<int64_t> step = along(operand, dim);
      if (!step)
        return std::nullopt;
      steps.push_back(*step);
    }
    if (llvm::isa<arith::AddIOp>(op))
      return steps[0] + steps[1];
    if (llvm::isa<arith::SubIOp>(op))
      return steps[0] - steps[1];
    if (llvm::all_of(steps, [](int64_t step) { return step == 0; }))
      return 0;
    // A sum that wraps around in a narrow type does so in front of a conversion to a wider one, too; an iota does not.
    auto cast = llvm::dyn_cast<tile::CastOp>(op);
    auto bitsOf = [](Value tile) { return getElementTypeOrSelf(tile.getType()).getIntOrFloatBitWidth(); };
    bool widens = cast && llvm::isa<IntegerType>(getElementTypeOrSelf(cast.getType())) &&
                  bitsOf(cast.getResult()) >= bitsOf(cast.getValue()) && isMovedIota(cast.getValue());
    return widens ? std::optional<int64_t>(steps[0]) : std::nullopt;
  }

  llvm::DenseMap<std::pair<Value, int>, std::optional<int64_t>> known_;
};

} // namespace

std::optional<int64_t> stepAlong(Value tile, int dim) { return Steps().along(tile, dim); }

} // namespace tenon::cpu
