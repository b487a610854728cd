// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/interpret/Program.h"

#include "mlir/IR/TypeUtilities.h"

/// Operations that treat each element alone. A kernel is the loop over the elements, with the element type and the
/// function already chosen; the same kernel serves scalars (a count of one) and tiles.
namespace tenon::interpret {

using Inputs = llvm::ArrayRef<const uint64_t *>;
using Outputs = llvm::ArrayRef<uint64_t *>;
using Kernel = std::function<void(size_t count, Inputs in, Outputs out)>;

/// The step that applies a kernel to all of an operation's operands and results; empty for an empty kernel.
inline Step elementwise(mlir::Operation *op, Program &program, Kernel kernel) {
  if (!kernel)
    return {};
  size_t count = wordsOf(op->getResult(0).getType());
  return [=, operands = program.slots(op->getOperands()), results = program.slots(op->getResults())](State &state) {
    llvm::SmallVector<const uint64_t *, 4> in;
    llvm::SmallVector<uint64_t *, 4> out;
    for (size_t slot : operands)
      in.push_back(state.slots[slot].data());
    for (size_t slot : results)
      out.push_back(state.slots[slot].data());
    kernel(count, in, out);
    return true;
  };
}

/// A function of words, for integers of any width: the result is cut to `resultWidth`.
template <class Function> Kernel integerUnary(unsigned resultWidth, Function function) {
  return [=](size_t count, Inputs in, Outputs out) {
    for (size_t i = 0; i < count; ++i)
      out[0][i] = lowBits(function(in[0][i]), resultWidth);
  };
}

template <class Function> Kernel integerBinary(unsigned resultWidth, Function function) {
  return [=](size_t count, Inputs in, Outputs out) {
    for (size_t i = 0; i < count; ++i)
      out[0][i] = lowBits(function(in[0][i], in[1][i]), resultWidth);
  };
}

/// A function of floats computed in the format's Compute type and rounded to the format. Empty for other types.
template <class Function> Kernel floatUnary(mlir::Type type, Function function) {
  return withFormat(type, [&](auto format) -> Kernel {
    using Format = decltype(format);
    return [=](size_t count, Inputs in, Outputs out) {
      for (size_t i = 0; i < count; ++i)
        out[0][i] = Format::encode(function(Format::decode(in[0][i])));
    };
  });
}

template <class Function> Kernel floatBinary(mlir::Type type, Function function) {
  return withFormat(type, [&](auto format) -> Kernel {
    using Format = decltype(format);
    return [=](size_t count, Inputs in, Outputs out) {
      for (size_t i = 0; i < count; ++i)
        out[0][i] = Format::encode(function(Format::decode(in[0][i]), Format::decode(in[1][i])));
    };
  });
}

} // namespace tenon::interpret
