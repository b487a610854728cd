// SPDX-License-Identifier: Apache-2.0
//
// Intrinsics of AVX-512 have one register of f32; vectors of the program are as long as two or four.
#pragma once

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"

namespace tenon::cpu {

inline constexpr unsigned lanesOfRegister = 16;

/// An intrinsic that has one register of operands, on each register of these.
inline llvm::Value *perRegister(llvm::IRBuilder<> &b, llvm::ArrayRef<llvm::Value *> operands,
                                llvm::function_ref<llvm::Value *(llvm::ArrayRef<llvm::Value *> parts)> intrinsic) {
  unsigned lanes = llvm::cast<llvm::FixedVectorType>(operands[0]->getType())->getNumElements();
  llvm::SmallVector<llvm::Value *> results;
  for (unsigned at = 0; at < lanes; at += lanesOfRegister) {
    llvm::SmallVector<int> part;
    for (unsigned i = 0; i < lanesOfRegister; ++i)
      part.push_back(static_cast<int>(at + i));
    llvm::SmallVector<llvm::Value *> parts;
    for (llvm::Value *operand : operands)
      parts.push_back(b.CreateShuffleVector(operand, part));
    results.push_back(intrinsic(parts));
  }
  return llvm::concatenateVectors(b, results);
}

} // namespace tenon::cpu
