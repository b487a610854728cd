// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/ScalePowers.h"

#include "tenon/compiler/target/cpu/Isa.h"
#include "tenon/compiler/target/cpu/Registers.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace tenon::cpu {
namespace {

struct Scaling {
  Value *factor = nullptr;      ///< p
  Value *sum = nullptr;         ///< the float whose low bits are n + 254
  SelectInst *orZero = nullptr; ///< the only user, if it takes 0 instead where a number is below a bound
  Value *number = nullptr;
  double bound = 0;
};

/// select(x < bound, 0, power), where the power is wanted for nothing else.
void matchZero(Instruction &power, Scaling &found) {
  Value *number = nullptr;
  const APFloat *bound = nullptr;
  FCmpInst::Predicate predicate;
  auto *select = power.hasOneUse() ? dyn_cast<SelectInst>(*power.user_begin()) : nullptr;
  if (select &&
      PatternMatch::match(
          select, m_Select(m_FCmp(predicate, m_Value(number), m_APFloat(bound)), m_PosZeroFP(), m_Specific(&power))) &&
      predicate == FCmpInst::FCMP_OLT) {
    found.orZero = select;
    found.number = number;
    found.bound = bound->convertToDouble();
  }
}

bool match(Instruction &instruction, Scaling &found) {
  auto *type = dyn_cast<FixedVectorType>(instruction.getType());
  if (!type || !type->getElementType()->isFloatTy() || type->getNumElements() % lanesOfRegister != 0)
    return false;
  Value *half = nullptr, *otherHalf = nullptr, *rounded = nullptr;
  auto power = [](Value *&field) { return m_BitCast(m_Shl(m_Value(field), m_SpecificInt(23))); };
  return PatternMatch::match(&instruction, m_FMul(m_FMul(m_Value(found.factor), power(half)), power(otherHalf))) &&
         PatternMatch::match(half, m_LShr(m_Value(rounded), m_SpecificInt(1))) &&
         PatternMatch::match(otherHalf, m_Sub(m_Specific(rounded), m_Specific(half))) &&
         PatternMatch::match(rounded, m_BitCast(m_Value(found.sum))) && found.sum->getType() == type;
}

constexpr double magicOfZero = 0x1.8p23 + 254;
constexpr int currentRounding = 4;

/// Without bounds past which 2^x is 0, or infinity, or not looked at: the instructions have no need of them.
Value *withoutBounds(Value *x, const Scaling &scaling) {
  constexpr double isZero = -151, isInfinite = 129;
  for (;;) {
    Value *inner = nullptr;
    const APFloat *bound = nullptr, *chosen = nullptr;
    FCmpInst::Predicate predicate;
    bool isBelow = PatternMatch::match(
        x, m_Select(m_FCmp(predicate, m_Value(inner), m_APFloat(bound)), m_APFloat(chosen), m_Deferred(inner)));
    bool isAbove = !isBelow && PatternMatch::match(x, m_Select(m_FCmp(predicate, m_APFloat(bound), m_Value(inner)),
                                                               m_APFloat(chosen), m_Deferred(inner)));
    if (!(isBelow || isAbove) || predicate != FCmpInst::FCMP_OLT || *bound != *chosen)
      return x;
    double limit = bound->convertToDouble();
    bool isMasked = scaling.orZero && inner == scaling.number && limit <= scaling.bound;
    if (!(isBelow ? limit <= isZero || isMasked : limit >= isInfinite))
      return x;
    x = inner;
  }
}

/// What x is beside a whole number, whatever x is (0 for an infinity). Nothing is said about lost digits: the callers
/// know that there are none.
enum Whole { nearest = 8, below = 9 };

Value *rest(IRBuilder<> &b, Value *x, Whole whole) {
  return perRegister(b, {x}, [&](ArrayRef<Value *> parts) -> Value * {
    return b.CreateIntrinsic(Intrinsic::x86_avx512_mask_reduce_ps_512, {},
                             {parts[0], b.getInt32(whole), parts[0], b.getInt16(-1), b.getInt32(currentRounding)});
  });
}

/// The user that is x less the value; null if there is none.
Instruction *differenceFrom(Value *x, Value *value) {
  for (User *user : value->users())
    if (PatternMatch::match(user, m_FSub(m_Specific(x), m_Specific(value))))
      return cast<Instruction>(user);
  return nullptr;
}

/// Where sum = x + magic, n = sum - magic and r = x - n: the instruction that computes r, and n = x - r, which is
/// returned; null if that is not so.
Value *reduceToNearest(Instruction *add, Value *x, const APFloat &magic, const Scaling &scaling) {
  Instruction *whole = nullptr;
  for (User *user : add->users())
    if (const APFloat *other = nullptr;
        PatternMatch::match(user, m_FSub(m_Specific(add), m_APFloat(other))) && *other == magic)
      whole = cast<Instruction>(user);
  Instruction *difference = whole ? differenceFrom(x, whole) : nullptr;
  if (!difference)
    return nullptr;
  IRBuilder<> b(add);
  Value *unbounded = withoutBounds(x, scaling), *reduced = rest(b, unbounded, nearest);
  difference->replaceAllUsesWith(reduced);
  return b.CreateFSub(unbounded, reduced);
}

/// Where sum = n + magic, n = floor(x) and r = x - n, which is exact: r, and x itself is returned, because the
/// instruction that scales takes the floor.
Value *reduceToFloor(Value *floor, Value *x, const Scaling &scaling) {
  Instruction *difference = differenceFrom(x, floor);
  if (!difference)
    return nullptr;
  IRBuilder<> b(cast<Instruction>(floor));
  Value *unbounded = withoutBounds(x, scaling);
  difference->replaceAllUsesWith(rest(b, unbounded, below));
  return unbounded;
}

Value *reduceByInstruction(const Scaling &scaling) {
  auto *add = dyn_cast<Instruction>(scaling.sum);
  Value *x = nullptr, *inner = nullptr;
  const APFloat *magic = nullptr;
  if (!add || !PatternMatch::match(add, m_FAdd(m_Value(x), m_APFloat(magic))) ||
      magic->convertToDouble() != magicOfZero)
    return nullptr;
  if (PatternMatch::match(x, m_Intrinsic<Intrinsic::floor>(m_Value(inner))))
    return reduceToFloor(x, inner, scaling);
  return reduceToNearest(add, x, *magic, scaling);
}

Value *scale(IRBuilder<> &b, const Scaling &scaling) {
  Value *power = reduceByInstruction(scaling);
  if (!power)
    power = b.CreateFSub(scaling.sum, ConstantFP::get(scaling.sum->getType(), magicOfZero));
  SmallVector<Value *> operands = {scaling.factor, power};
  if (scaling.orZero)
    operands.push_back(b.CreateNot(scaling.orZero->getCondition()));
  return perRegister(b, operands, [&](ArrayRef<Value *> parts) -> Value * {
    Value *mask = parts.size() > 2 ? b.CreateBitCast(parts[2], b.getInt16Ty()) : b.getInt16(-1);
    return b.CreateIntrinsic(
        Intrinsic::x86_avx512_mask_scalef_ps_512, {},
        {parts[0], parts[1], Constant::getNullValue(parts[0]->getType()), mask, b.getInt32(currentRounding)});
  });
}

} // namespace

void scalePowers(Module &module, const Isa &isa) {
  if (isa.vectorBytes < 64)
    return;
  for (Function &function : module) {
    SmallVector<std::pair<Instruction *, Scaling>> all;
    for (Instruction &instruction : instructions(function))
      if (Scaling found; match(instruction, found)) {
        matchZero(instruction, found);
        all.push_back({&instruction, found});
      }
    for (auto &[instruction, scaling] : all) {
      // The choice of 0 stands behind what it is made of, and all of that before it.
      Instruction *replaced = scaling.orZero ? scaling.orZero : instruction;
      IRBuilder<> b(replaced);
      replaced->replaceAllUsesWith(scale(b, scaling));
      replaced->eraseFromParent();
      if (replaced != instruction)
        instruction->eraseFromParent();
    }
  }
}

} // namespace tenon::cpu
