// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/ScalePowers.h"

#include "tenon/compiler/target/cpu/Isa.h"
#include "tenon/compiler/target/cpu/Registers.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/ValueHandle.h"

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

  Instruction *rest = nullptr;  ///< r = x - n, where n is the whole number nearest to x, or the one below; may be null
  bool isOfFloor = false;       ///< the one below
  WeakTrackingVH unbounded;     ///< x without its bounds; a handle: it may be a power itself, which is replaced before
  Instruction *first = nullptr; ///< of what is computed of x
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

/// Finds r = x - n, where sum = x + magic and n = sum - magic, or n = floor(x) and sum = n + magic. Both are exact.
void matchRest(Scaling &found) {
  Value *x = nullptr, *inner = nullptr;
  const APFloat *magic = nullptr;
  if (!PatternMatch::match(found.sum, m_FAdd(m_Value(x), m_APFloat(magic))) || magic->convertToDouble() != magicOfZero)
    return;
  if (PatternMatch::match(x, m_Intrinsic<Intrinsic::floor>(m_Value(inner)))) {
    found.isOfFloor = true;
    found.first = cast<Instruction>(x);
    found.rest = differenceFrom(inner, x);
    x = inner;
  } else {
    found.first = cast<Instruction>(found.sum);
    for (User *user : found.sum->users())
      if (const APFloat *other = nullptr;
          !found.rest && PatternMatch::match(user, m_FSub(m_Specific(found.sum), m_APFloat(other))) && *other == *magic)
        found.rest = differenceFrom(x, user);
  }
  if (found.rest)
    found.unbounded = withoutBounds(x, found);
}

/// Whether all that becomes of a value ends in these instructions.
bool endsIn(Value *value, const SmallPtrSetImpl<Instruction *> &ends) {
  SmallVector<Value *> work = {value};
  SmallPtrSet<Value *, 16> seen;
  while (!work.empty())
    for (User *user : work.pop_back_val()->users()) {
      auto *instruction = cast<Instruction>(user);
      if (ends.contains(instruction) || !seen.insert(instruction).second)
        continue;
      if (instruction->isTerminator() || instruction->mayHaveSideEffects())
        return false;
      work.push_back(instruction);
    }
  return true;
}

/// Whoever else sees what is left of x wants that of x with its bounds: then it stays as it is.
void keepSharedRests(MutableArrayRef<std::pair<Instruction *, Scaling>> all) {
  SmallPtrSet<Instruction *, 4> shared;
  for (auto &[_, scaling] : all) {
    SmallPtrSet<Instruction *, 4> ends;
    for (auto &[power, other] : all)
      if (other.rest == scaling.rest && other.unbounded == scaling.unbounded)
        ends.insert(power);
    if (scaling.rest && !endsIn(scaling.rest, ends))
      shared.insert(scaling.rest);
  }
  for (auto &[_, scaling] : all)
    if (shared.contains(scaling.rest))
      scaling.rest = nullptr;
}

/// What is left of x, by the instruction, and what the power has as its exponent then: n, or x itself where the
/// instruction that scales takes the floor. Null: x is not taken apart, or others want to see what is left.
Value *reduceByInstruction(const Scaling &scaling) {
  if (!scaling.rest)
    return nullptr;
  IRBuilder<> b(scaling.first);
  Value *x = scaling.unbounded, *reduced = rest(b, x, scaling.isOfFloor ? below : nearest);
  scaling.rest->replaceAllUsesWith(reduced);
  return scaling.isOfFloor ? x : b.CreateFSub(x, reduced);
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
        matchRest(found);
        all.push_back({&instruction, found});
      }
    keepSharedRests(all);
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
