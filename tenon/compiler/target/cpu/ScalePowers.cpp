// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/ScalePowers.h"

#include "tenon/compiler/target/cpu/Isa.h"

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace tenon::cpu {
namespace {

constexpr unsigned lanesOfRegister = 16;

struct Scaling {
  Value *factor = nullptr; ///< p
  Value *sum = nullptr;    ///< the float whose low bits are n + 254
};

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

Value *scale(IRBuilder<> &b, const Scaling &scaling) {
  Value *magic = ConstantFP::get(scaling.sum->getType(), 0x1.8p23 + 254);
  Value *power = b.CreateFSub(scaling.sum, magic);
  unsigned lanes = cast<FixedVectorType>(power->getType())->getNumElements();
  SmallVector<Value *> parts;
  for (unsigned at = 0; at < lanes; at += lanesOfRegister) {
    SmallVector<int> part;
    for (unsigned i = 0; i < lanesOfRegister; ++i)
      part.push_back(static_cast<int>(at + i));
    Value *p = b.CreateShuffleVector(scaling.factor, part), *n = b.CreateShuffleVector(power, part);
    constexpr int currentRounding = 4;
    parts.push_back(b.CreateIntrinsic(Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                      {p, n, p, b.getInt16(-1), b.getInt32(currentRounding)}));
  }
  return concatenateVectors(b, parts);
}

} // namespace

void scalePowers(Module &module, const Isa &isa) {
  if (isa.vectorBytes < 64)
    return;
  for (Function &function : module) {
    SmallVector<std::pair<Instruction *, Scaling>> all;
    for (Instruction &instruction : instructions(function))
      if (Scaling found; match(instruction, found))
        all.push_back({&instruction, found});
    for (auto &[instruction, scaling] : all) {
      IRBuilder<> b(instruction);
      instruction->replaceAllUsesWith(scale(b, scaling));
      instruction->eraseFromParent();
    }
  }
}

} // namespace tenon::cpu
