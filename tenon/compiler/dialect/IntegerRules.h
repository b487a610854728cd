// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/ADT/APInt.h"

/// The value of tile.div, tile.rem, tile.shl and tile.shr for every pair of integers of one width: the folders and the
/// interpreter use these, the targets are tested against them.
namespace tenon::tile {

inline llvm::APInt divide(const llvm::APInt &lhs, const llvm::APInt &rhs, bool isUnsigned) {
  if (rhs.isZero())
    return llvm::APInt::getZero(lhs.getBitWidth());
  return isUnsigned ? lhs.udiv(rhs) : lhs.sdiv(rhs); // APInt's sdiv wraps smallest / -1 to smallest
}

inline llvm::APInt remainder(const llvm::APInt &lhs, const llvm::APInt &rhs, bool isUnsigned) {
  return lhs - divide(lhs, rhs, isUnsigned) * rhs;
}

inline llvm::APInt shiftLeft(const llvm::APInt &lhs, const llvm::APInt &rhs, bool) {
  return rhs.uge(lhs.getBitWidth()) ? llvm::APInt::getZero(lhs.getBitWidth()) : lhs.shl(rhs);
}

inline llvm::APInt shiftRight(const llvm::APInt &lhs, const llvm::APInt &rhs, bool isUnsigned) {
  if (isUnsigned)
    return rhs.uge(lhs.getBitWidth()) ? llvm::APInt::getZero(lhs.getBitWidth()) : lhs.lshr(rhs);
  return lhs.ashr(rhs.uge(lhs.getBitWidth()) ? lhs.getBitWidth() - 1 : rhs.getZExtValue());
}

} // namespace tenon::tile
