// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

namespace tenon::nvidia {

/// Operands that a loop computes, each in one of several buffers of shared memory (OperandBuffers.cpp).
struct ThreadEmitter::OperandBuffers {
  struct Operand {
    tile::DotOp dot;        ///< the first that reads it
    int64_t kDim;           ///< as operandOf() has it
    StagedOperand staged;   ///< `at` is the iteration's
    int64_t begin;          ///< in the first buffer
    bool isWritten = false; ///< in this iteration

    mlir::Value value() { return kDim == 1 ? dot.getA() : dot.getB(); }
  };
  llvm::SmallVector<Operand> operands;
  int64_t bytes = 0; ///< of a buffer
  SharedWindow window;
  int group;

  // While the body is emitted:
  mlir::Block *body = nullptr;
  mlir::Value at; ///< i32: how far from the first buffer the iteration's is
};

} // namespace tenon::nvidia
