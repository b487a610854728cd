// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/WidenExtremes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace tenon::cpu {
namespace {

bool isNarrowExtreme(const Instruction &instruction) {
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call)
    return false;
  switch (call->getIntrinsicID()) {
  case Intrinsic::maximum:
  case Intrinsic::minimum:
  case Intrinsic::maxnum:
  case Intrinsic::minnum:
    return call->getType()->getScalarSizeInBits() == 16;
  default:
    return false;
  }
}

void widen(Function &function) {
  SmallVector<IntrinsicInst *> calls;
  for (Instruction &instruction : instructions(function))
    if (isNarrowExtreme(instruction))
      calls.push_back(cast<IntrinsicInst>(&instruction));
  DenseMap<Value *, Value *> wide; // of a chain only the ends are converted
  for (IntrinsicInst *call : calls) {
    IRBuilder<> b(call);
    Type *type = call->getType()->getWithNewType(b.getFloatTy());
    auto widened = [&](Value *operand) {
      Value *known = wide.lookup(operand);
      return known ? known : b.CreateFPExt(operand, type);
    };
    Value *x = widened(call->getArgOperand(0)), *y = widened(call->getArgOperand(1));
    wide[call] = b.CreateBinaryIntrinsic(call->getIntrinsicID(), x, y, call);
  }
  // Users before what they use: the calls among them are gone by then.
  for (IntrinsicInst *call : reverse(calls)) {
    Value *result = wide[call];
    for (User *user : make_early_inc_range(call->users()))
      if (auto *extension = dyn_cast<FPExtInst>(user); extension && extension->getType() == result->getType()) {
        extension->replaceAllUsesWith(result);
        extension->eraseFromParent();
      }
    if (!call->use_empty()) {
      IRBuilder<> b(call);
      call->replaceAllUsesWith(b.CreateFPTrunc(result, call->getType())); // exact: it is one of the operands
    }
    call->eraseFromParent();
  }
}

} // namespace

void widenExtremes(Module &module) {
  for (Function &function : module)
    widen(function);
}

} // namespace tenon::cpu
