// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// A fuzz program carries the launch it is checked with in the attributes of its function, so that the text of the IR
/// is the whole reproducer:
///
///     func.func @k(%x: !tile.view<2, f32> {fuzz.sizes = array<i64: 3, 17>, fuzz.strides = array<i64: 20, 1>,
///                                          fuzz.fill = "ints"},
///                  %y: !tile.view<2, f32> {..., fuzz.shares = 0, fuzz.shift = 2},  // argument 0's memory, 2 on
///                  %n: index {fuzz.word = 5}) attributes {fuzz.seed = 42}
///
/// Left out, a view is dense with 16 elements along each dimension, a scalar is 0, a fill "unit".
/// Fills: "ints" (small integers: sums and products of them are exact), "unit" (moderate numbers), "any" (all bit
/// patterns, special values often).
namespace tenon::fuzz {

inline constexpr llvm::StringLiteral sizesAttr = "fuzz.sizes", stridesAttr = "fuzz.strides", fillAttr = "fuzz.fill",
                                     sharesAttr = "fuzz.shares", shiftAttr = "fuzz.shift", wordAttr = "fuzz.word",
                                     seedAttr = "fuzz.seed";

/// Elements between two pages that cannot be touched, with guard elements on both sides: a stray write nearby changes a
/// guard, one further away (or a stray read past the guards) faults.
class GuardedMemory {
public:
  GuardedMemory(size_t bytes, size_t guardBytes, bool atEnd);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory &) = delete;

  char *begin() { return data_; }          ///< the first guard
  char *payload() { return data_ + guard_; }
  size_t size() const { return size_; }    ///< guards included
  size_t guard() const { return guard_; }

private:
  char *mapping_, *data_;
  size_t mapped_, size_, guard_;
};

using Snapshot = std::vector<std::vector<char>>;

class Launch {
public:
  explicit Launch(mlir::func::FuncOp kernel);

  /// What is wrong with the attributes, or "".
  const std::string &error() const { return error_; }
  bool sharesMemory() const { return shares_; }
  /// The argument words: see Interpreter.h.
  const std::vector<int64_t> &words() const { return words_; }
  /// Brings all memory into its initial state.
  void reset();
  /// All memory, guards and gaps between strides included.
  Snapshot snapshot() const;
  /// The first element that differs from `expected`, in words; NaNs are equal. `zeroSigns`: -0 equals +0.
  std::optional<std::string> difference(const Snapshot &expected, bool zeroSigns) const;

private:
  struct View {
    size_t argument, buffer;
    int64_t base; ///< element of the payload
    std::vector<int64_t> sizes, strides;
  };
  struct Buffer {
    mlir::Type element;
    std::string fill;
    uint64_t seed;
    std::unique_ptr<GuardedMemory> memory;
    std::vector<char> initial;
  };
  std::string place(size_t buffer, int64_t element) const;

  std::vector<View> views_;
  std::vector<Buffer> buffers_;
  std::vector<int64_t> words_;
  std::string error_;
  bool shares_ = false;
};

/// Bytes of an element in memory.
unsigned elementBytes(mlir::Type element);

} // namespace tenon::fuzz
