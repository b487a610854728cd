// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/RangeMagnitudes.h"

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

constexpr int minimumWithoutSign = 0b1000;
constexpr int currentRounding = 4;

struct Magnitude {
  Value *x = nullptr, *bound = nullptr;
};

bool match(Instruction &instruction, Magnitude &found) {
  auto *type = dyn_cast<FixedVectorType>(instruction.getType());
  if (!type || !type->getElementType()->isFloatTy() || type->getNumElements() % lanesOfRegister != 0)
    return false;
  FCmpInst::Predicate predicate;
  const APFloat *bound = nullptr;
  return PatternMatch::match(&instruction, m_FAbs(m_Select(m_FCmp(predicate, m_Value(found.x), m_Value(found.bound)),
                                                           m_Deferred(found.x), m_Deferred(found.bound)))) &&
         predicate == FCmpInst::FCMP_OLT && PatternMatch::match(found.bound, m_APFloat(bound)) && !bound->isNaN() &&
         !bound->isNegative();
}

} // namespace

void rangeMagnitudes(Module &module, const Isa &isa) {
  if (isa.vectorBytes < 64)
    return;
  for (Function &function : module) {
    SmallVector<std::pair<Instruction *, Magnitude>> all;
    for (Instruction &instruction : instructions(function))
      if (Magnitude found; match(instruction, found))
        all.push_back({&instruction, found});
    for (auto &[instruction, magnitude] : all) {
      IRBuilder<> b(instruction);
      // Of a NaN and a number it takes the number.
      instruction->replaceAllUsesWith(
          perRegister(b, {magnitude.x, magnitude.bound}, [&](ArrayRef<Value *> parts) -> Value * {
            return b.CreateIntrinsic(Intrinsic::x86_avx512_mask_range_ps_512, {},
                                     {parts[0], parts[1], b.getInt32(minimumWithoutSign), parts[0], b.getInt16(-1),
                                      b.getInt32(currentRounding)});
          }));
      instruction->eraseFromParent();
    }
  }
}

} // namespace tenon::cpu
