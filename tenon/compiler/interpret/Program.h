// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/interpret/Interpreter.h"
#include "tenon/compiler/interpret/Scalars.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

/// A kernel prepared for execution. Each SSA value gets a slot: a vector of words (one for a scalar, one per element in
/// row-major order for a tile, the ABI words for a view). Each operation becomes a step: a function that reads and
/// writes slots. What can be decided from the types is decided when the step is made, so that running it is a loop.
namespace tenon::interpret {

using Words = std::vector<uint64_t>;

/// Everything that changes while a kernel runs.
struct State {
  explicit State(const Options &options) : options(options) {}

  std::vector<Words> slots;
  size_t constantsLoaded = 0;
  int64_t ids[3] = {0, 0, 0};
  std::vector<Words> workspaces; ///< the ABI words of each workspace's view
  const Options &options;
  int64_t steps = 0;
  std::string error;

  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }
  /// An index or integer scalar of 64 bits.
  int64_t scalar(size_t slot) const { return static_cast<int64_t>(slots[slot][0]); }
};

/// Returns false, with State::error set, when the launch must stop.
using Step = std::function<bool(State &)>;
using Body = std::vector<Step>;
using Slots = llvm::SmallVector<size_t, 4>;

class Program {
public:
  /// The slot of a value, made at the first call.
  size_t slot(mlir::Value value);
  Slots slots(mlir::ValueRange values);

  /// The step of an operation; empty, with error() set, when there is none.
  Step prepare(mlir::Operation *op);
  /// All operations of a block; false, with error() set, when one cannot be run.
  bool prepare(mlir::Block &block, Body &body);

  /// The value is known before anything runs.
  void setConstant(mlir::Value value, Words words) { constants.emplace_back(slot(value), std::move(words)); }

  /// Makes room in `state` for what was prepared since the last call.
  void extend(State &state) const;

  Step refuse(mlir::Operation *op, const std::string &reason);
  const std::string &error() const { return message; }

private:
  llvm::DenseMap<mlir::Value, size_t> slotOf;
  std::vector<size_t> sizes;
  std::vector<std::pair<size_t, Words>> constants;
  std::string message;
};

bool runBody(const Body &body, State &state);

/// Number of words of a value: see Program.
size_t wordsOf(mlir::Type type);

/// "file:line", or "unknown location".
std::string locationText(mlir::Location location);

// What each file contributes: the step of an operation, empty when the operation is not its concern.
Step prepareArithmetic(mlir::Operation *op, Program &program);
Step prepareMath(mlir::Operation *op, Program &program);
Step prepareCast(mlir::Operation *op, Program &program);
Step prepareMemory(mlir::Operation *op, Program &program);
Step prepareMovement(mlir::Operation *op, Program &program);
Step prepareCombine(mlir::Operation *op, Program &program);
Step prepareInspect(mlir::Operation *op, Program &program);

} // namespace tenon::interpret
