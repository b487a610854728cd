// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/ApproximateQuotients.h"

#include "tenon/compiler/target/cpu/Registers.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace tenon::cpu {
namespace {

bool isWhole(Type *quotient) {
  auto *type = dyn_cast<FixedVectorType>(quotient);
  return type && type->getElementType()->isFloatTy() && type->getNumElements() % lanesOfRegister == 0;
}

} // namespace

void approximateQuotients(Module &module, const Isa &isa) {
  SmallVector<Instruction *> quotients;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (instruction.getOpcode() == Instruction::FDiv && instruction.hasAllowReciprocal())
        quotients.push_back(&instruction);
  for (Instruction *quotient : quotients) {
    if (isa.vectorBytes < 64 || !isWhole(quotient->getType())) {
      // The code generator would approximate square roots, too, and make NaN of 1 / 0.
      quotient->setHasAllowReciprocal(false);
      continue;
    }
    IRBuilder<> b(quotient);
    Value *reciprocal = perRegister(b, {quotient->getOperand(1)}, [&](ArrayRef<Value *> parts) -> Value * {
      return b.CreateIntrinsic(Intrinsic::x86_avx512_rcp14_ps_512, {}, {parts[0], parts[0], b.getInt16(-1)});
    });
    quotient->replaceAllUsesWith(b.CreateFMul(quotient->getOperand(0), reciprocal));
    quotient->eraseFromParent();
  }
}

} // namespace tenon::cpu
