// SPDX-License-Identifier: Apache-2.0
//
// A mask such as "column < keys" holds everywhere in most tiles, and fails somewhere only in the last. Where a mask
// that chooses between two tiles is made of comparisons of positions, whether it holds in the whole tile is a question
// about the smallest and the largest position, asked once before the loops: the nest's fast twin then takes the first
// of the two tiles and never computes the mask.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// What the elements of an integer tile lie between, as i64, and whether computing that has overflowed (null: it
/// cannot).
struct Bounds {
  Value low, high, overflow;
};

class MaskBounds {
public:
  MaskBounds(LoopEmitter &e) : e_(e), b_(e.builder()) {}

  /// i1, true only if every element is; null if that is not known.
  Value holds(Value mask) {
    Operation *op = mask.getDefiningOp();
    if (!op || e_.buffer(mask))
      return {};
    if (Value same = moved(op))
      return holds(same);
    if (llvm::isa<arith::AndIOp>(op)) {
      Value left = holds(op->getOperand(0));
      Value right = left ? holds(op->getOperand(1)) : Value();
      return right ? b_.create<arith::AndIOp>(left, right).getResult() : Value();
    }
    auto compare = llvm::dyn_cast<arith::CmpIOp>(op);
    if (!compare)
      return {};
    auto left = bounds(compare.getLhs());
    auto right = left ? bounds(compare.getRhs()) : std::nullopt;
    if (!right)
      return {};
    Value condition;
    switch (compare.getPredicate()) {
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::sle:
      condition = b_.create<arith::CmpIOp>(compare.getPredicate(), left->high, right->low);
      break;
    case arith::CmpIPredicate::sgt:
    case arith::CmpIPredicate::sge:
      condition = b_.create<arith::CmpIOp>(compare.getPredicate(), left->low, right->high);
      break;
    default:
      return {};
    }
    for (Value overflow : {left->overflow, right->overflow})
      if (overflow) {
        Value fits = b_.create<arith::XOrIOp>(overflow, constantBits(b_, b_.getI1Type(), 1));
        condition = b_.create<arith::AndIOp>(condition, fits);
      }
    return condition;
  }

private:
  /// The operand of an op that only moves elements about.
  static Value moved(Operation *op) {
    bool moves = llvm::isa<tile::BroadcastOp, tile::TransposeOp, tile::ReshapeOp, tile::SliceOp>(op);
    return moves ? op->getOperand(0) : Value();
  }

  Value constant(int64_t value) { return constantBits(b_, b_.getI64Type(), value); }

  std::optional<Bounds> bounds(Value tile) {
    auto type = llvm::cast<RankedTensorType>(tile.getType());
    Operation *op = tile.getDefiningOp();
    if (!op || e_.buffer(tile) || !type.getElementType().isInteger(64))
      return std::nullopt;
    if (Value same = moved(op))
      return bounds(same);
    if (auto iota = llvm::dyn_cast<tile::IotaOp>(op))
      return Bounds{constant(0), constant(type.getDimSize(iota.getDim()) - 1), {}};
    if (auto splat = llvm::dyn_cast<tile::SplatOp>(op)) {
      Value scalar = e_.scalar(splat.getValue());
      return Bounds{scalar, scalar, {}};
    }
    llvm::APInt number;
    if (matchPattern(tile, m_ConstantInt(&number)))
      return Bounds{constant(number.getSExtValue()), constant(number.getSExtValue()), {}};
    if (!llvm::isa<arith::AddIOp, arith::SubIOp>(op))
      return std::nullopt;
    auto left = bounds(op->getOperand(0));
    auto right = left ? bounds(op->getOperand(1)) : std::nullopt;
    if (!right)
      return std::nullopt;
    Bounds result{{}, {}, either(left->overflow, right->overflow)};
    bool adds = llvm::isa<arith::AddIOp>(op);
    result.low = checked(adds, left->low, adds ? right->low : right->high, result.overflow);
    result.high = checked(adds, left->high, adds ? right->high : right->low, result.overflow);
    return result;
  }

  Value either(Value x, Value y) { return x && y ? b_.create<arith::OrIOp>(x, y).getResult() : x ? x : y; }

  Value checked(bool adds, Value x, Value y, Value &overflow) {
    auto type = LLVM::LLVMStructType::getLiteral(b_.getContext(), {b_.getI64Type(), b_.getI1Type()});
    Value both = adds ? b_.create<LLVM::SAddWithOverflowOp>(type, x, y).getResult()
                      : b_.create<LLVM::SSubWithOverflowOp>(type, x, y).getResult();
    overflow = either(overflow, b_.create<LLVM::ExtractValueOp>(both, 1));
    return b_.create<LLVM::ExtractValueOp>(both, 0);
  }

  LoopEmitter &e_;
  ImplicitLocOpBuilder &b_;
};

} // namespace

Value Nest::masksHold() {
  holding_.clear();
  Value all;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work;
  for (const NestRoot &root : group_.roots) {
    if (root.op)
      llvm::append_range(work, root.op->getOperands());
    else
      work.push_back(root.value);
  }
  while (!work.empty()) {
    Value tile = work.pop_back_val();
    Operation *op = tile.getDefiningOp();
    if (!llvm::isa<RankedTensorType>(tile.getType()) || !op || !isPulled(op) || e_.buffer(tile) ||
        !seen.insert(tile).second)
      continue;
    if (auto select = llvm::dyn_cast<arith::SelectOp>(op);
        select && llvm::isa<RankedTensorType>(select.getCondition().getType()) &&
        !holding_.contains(select.getCondition())) {
      b_.setLoc(op->getLoc());
      if (Value holds = MaskBounds(e_).holds(select.getCondition())) {
        all = all ? b_.create<arith::AndIOp>(all, holds).getResult() : holds;
        holding_.insert(select.getCondition());
      }
    }
    llvm::append_range(work, op->getOperands());
  }
  return all;
}

} // namespace tenon::cpu
