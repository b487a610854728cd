// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/RangeExtremes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace tenon::cpu {
namespace {

/// The instruction's operand: which of the two to take, and the sign of that one.
constexpr int takeMinimum = 0b0100, takeMaximum = 0b0101;
constexpr int currentRounding = 4;

Intrinsic::ID rangeOf(bool isDouble, unsigned bits) {
  switch (bits) {
  case 128: return isDouble ? Intrinsic::x86_avx512_mask_range_pd_128 : Intrinsic::x86_avx512_mask_range_ps_128;
  case 256: return isDouble ? Intrinsic::x86_avx512_mask_range_pd_256 : Intrinsic::x86_avx512_mask_range_ps_256;
  default: return isDouble ? Intrinsic::x86_avx512_mask_range_pd_512 : Intrinsic::x86_avx512_mask_range_ps_512;
  }
}

/// One register's worth.
Value *range(IRBuilder<> &b, Value *x, Value *y, bool isMaximum, bool hasNoNans) {
  auto *type = cast<FixedVectorType>(x->getType());
  bool isDouble = type->getElementType()->isDoubleTy();
  unsigned lanes = type->getNumElements(), bits = lanes * type->getScalarSizeInBits();
  SmallVector<Value *> arguments = {x, y, b.getInt32(isMaximum ? takeMaximum : takeMinimum), x,
                                    b.getIntN(std::max(8u, lanes), ~uint64_t(0))};
  if (bits == 512)
    arguments.push_back(b.getInt32(currentRounding));
  Value *taken = b.CreateIntrinsic(rangeOf(isDouble, bits), {}, arguments);
  if (hasNoNans)
    return taken;
  // Of a NaN and a number the instruction takes the number: their sum is the NaN.
  return b.CreateSelect(b.CreateFCmpUNO(x, y), b.CreateFAdd(x, y), taken);
}

void replace(IntrinsicInst *call) {
  auto *type = cast<FixedVectorType>(call->getType());
  unsigned lanes = type->getNumElements(), size = type->getScalarSizeInBits();
  unsigned perRegister = std::min(lanes, 512 / size);
  IRBuilder<> b(call);
  bool isMaximum = call->getIntrinsicID() == Intrinsic::maximum, hasNoNans = call->hasNoNaNs();
  Value *x = call->getArgOperand(0), *y = call->getArgOperand(1), *whole = nullptr;
  if (perRegister == lanes) {
    whole = range(b, x, y, isMaximum, hasNoNans);
  } else {
    SmallVector<Value *> parts;
    for (unsigned first = 0; first < lanes; first += perRegister) {
      SmallVector<int> mask;
      for (unsigned i = 0; i < perRegister; ++i)
        mask.push_back(static_cast<int>(first + i));
      parts.push_back(range(b, b.CreateShuffleVector(x, mask), b.CreateShuffleVector(y, mask), isMaximum, hasNoNans));
    }
    while (parts.size() > 1) { // side by side, two and two
      SmallVector<Value *> pairs;
      unsigned length = cast<FixedVectorType>(parts[0]->getType())->getNumElements();
      SmallVector<int> mask;
      for (unsigned i = 0; i < 2 * length; ++i)
        mask.push_back(static_cast<int>(i));
      for (size_t i = 0; i < parts.size(); i += 2)
        pairs.push_back(b.CreateShuffleVector(parts[i], parts[i + 1], mask));
      parts = std::move(pairs);
    }
    whole = parts[0];
  }
  call->replaceAllUsesWith(whole);
  call->eraseFromParent();
}

bool isWanted(const Instruction &instruction) {
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call || (call->getIntrinsicID() != Intrinsic::maximum && call->getIntrinsicID() != Intrinsic::minimum))
    return false;
  auto *type = dyn_cast<FixedVectorType>(call->getType());
  if (!type || !(type->getElementType()->isFloatTy() || type->getElementType()->isDoubleTy()))
    return false;
  unsigned bits = type->getNumElements() * type->getScalarSizeInBits();
  return bits >= 128 && isPowerOf2_32(bits);
}

} // namespace

void rangeExtremes(Module &module, const Isa &isa) {
  if (isa.vectorBytes < 64) // vrange came with AVX512_DQ, which the level includes
    return;
  SmallVector<IntrinsicInst *> calls;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isWanted(instruction))
        calls.push_back(cast<IntrinsicInst>(&instruction));
  for (IntrinsicInst *call : calls)
    replace(call);
}

} // namespace tenon::cpu
