// SPDX-License-Identifier: Apache-2.0
//
// A launch: arguments, the plan, and the loop over the grid.
#include "tenon/compiler/interpret/Interpreter.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Program.h"

#include "llvm/ADT/DenseSet.h"

#include <cstdlib>
#include <memory>

using namespace mlir;

namespace tenon::interpret {
namespace {

/// Puts the argument words into their slots. Returns what is wrong, or "".
std::string bindArguments(func::FuncOp kernel, std::span<const int64_t> arguments, Program &program, State &state) {
  if (!llvm::hasSingleElement(kernel.getBody()))
    return "a kernel has a body of one block";
  size_t next = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    Type type = argument.getType();
    if (!type.isIntOrIndexOrFloat() && !llvm::isa<tile::ViewType>(type))
      return "a kernel's arguments are views and scalars";
    size_t slot = program.slot(argument), words = wordsOf(type);
    program.extend(state);
    for (size_t i = 0; i < words && next + i < arguments.size(); ++i)
      state.slots[slot][i] = static_cast<uint64_t>(arguments[next + i]);
    if (type.isIntOrIndexOrFloat()) // the caller need not clear the bits above a narrow scalar
      state.slots[slot][0] = lowBits(state.slots[slot][0], bitWidth(type));
    next += words;
  }
  if (next != arguments.size())
    return "the kernel takes " + std::to_string(next) + " argument words, not " + std::to_string(arguments.size());
  return "";
}

/// The ABI words of a row-major view.
Words rowMajorView(uint64_t base, ArrayRef<int64_t> sizes) {
  Words words(1 + 2 * sizes.size());
  words[0] = base;
  uint64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    words[1 + d] = static_cast<uint64_t>(sizes[d]);
    words[1 + sizes.size() + d] = stride;
    stride *= static_cast<uint64_t>(sizes[d]);
  }
  return words;
}

/// Runs the part of a kernel that its launch depends on: goes through the top level in order, and for each grid,
/// precondition and workspace first runs what its operands are computed from.
class Planner {
public:
  explicit Planner(const Options &options) : state(options) {}

  LaunchPlan plan(func::FuncOp kernel, std::span<const int64_t> arguments) {
    result.refusal = bindArguments(kernel, arguments, program, state);
    if (!result.refusal.empty())
      return result;
    block = &kernel.getBody().front();
    for (Operation &op : *block) {
      if (!llvm::isa<tile::GridOp, tile::RequireOp, tile::WorkspaceOp>(op))
        continue;
      for (Value operand : op.getOperands())
        if (!evaluate(operand, op))
          return result;
      visit(op);
      if (!result.refusal.empty())
        return result;
    }
    return result;
  }

private:
  void visit(Operation &op) {
    auto value = [&](Value operand) { return state.scalar(program.slot(operand)); };
    if (auto require = llvm::dyn_cast<tile::RequireOp>(op)) {
      if (!value(require.getCondition())) {
        result.refusal = require.getMessage().empty() ? "a precondition does not hold" : require.getMessage().str();
        result.requirement = requirements;
      }
      ++requirements;
    } else if (auto grid = llvm::dyn_cast<tile::GridOp>(op)) {
      for (auto [axis, extent] : llvm::enumerate(grid.getExtents()))
        result.grid[axis] = value(extent);
    } else {
      result.workspaces.emplace_back();
      for (Value size : op.getOperands())
        result.workspaces.back().push_back(value(size));
      state.workspaces.push_back(rowMajorView(0, result.workspaces.back()));
      run(op);
    }
  }

  /// Makes a value of the top level known; false with a refusal when it is not a function of sizes and scalars.
  bool evaluate(Value value, Operation &user) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != block || done.contains(op))
      return true;
    if (llvm::isa<tile::GridOp>(op) || !isMemoryEffectFree(op)) {
      result.refusal = user.getName().getStringRef().str() + " (" + locationText(user.getLoc()) +
                       ") may depend on sizes and scalar arguments only, not on " + op->getName().getStringRef().str();
      return false;
    }
    bool known = true;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        known = known && evaluate(operand, user);
    });
    return known && run(*op);
  }

  bool run(Operation &op) {
    done.insert(&op);
    Step step = program.prepare(&op);
    program.extend(state);
    if (!step || !step(state))
      result.refusal = step ? state.error : program.error();
    return result.refusal.empty();
  }

  State state;
  Program program;
  LaunchPlan result;
  Block *block = nullptr;
  int64_t requirements = 0; ///< seen so far
  llvm::DenseSet<Operation *> done;
};

struct Free {
  void operator()(void *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

/// Zeroed memory for a workspace; null when there is not enough. A size of zero or less makes it empty.
Memory allocate(ArrayRef<int64_t> sizes, Type element) {
  uint64_t bytes = (bitWidth(element) + 7) / 8;
  for (int64_t size : sizes)
    if (size <= 0)
      return Memory(std::calloc(1, 1));
  for (int64_t size : sizes)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      return nullptr;
  return Memory(std::calloc(bytes, 1));
}

} // namespace

LaunchPlan planLaunch(func::FuncOp kernel, std::span<const int64_t> arguments) {
  Options options;
  return Planner(options).plan(kernel, arguments);
}

std::string interpretLaunch(func::FuncOp kernel, std::span<const int64_t> arguments, const Options &options) {
  LaunchPlan plan = Planner(options).plan(kernel, arguments);
  if (!plan.refusal.empty())
    return plan.refusal;
  if (plan.grid[0] <= 0 || plan.grid[1] <= 0 || plan.grid[2] <= 0)
    return "";

  Program program;
  State state(options);
  Body body;
  if (std::string error = bindArguments(kernel, arguments, program, state); !error.empty())
    return error;
  if (!program.prepare(kernel.getBody().front(), body))
    return program.error();
  program.extend(state);

  std::vector<Memory> workspaces;
  for (auto workspace : kernel.getBody().front().getOps<tile::WorkspaceOp>()) {
    const std::vector<int64_t> &sizes = plan.workspaces[workspaces.size()];
    workspaces.push_back(allocate(sizes, workspace.getView().getType().getElementType()));
    if (!workspaces.back())
      return "not enough memory for a workspace (" + locationText(workspace.getLoc()) + ")";
    state.workspaces.push_back(rowMajorView(reinterpret_cast<uint64_t>(workspaces.back().get()), sizes));
  }

  for (state.ids[2] = 0; state.ids[2] < plan.grid[2]; ++state.ids[2])
    for (state.ids[1] = 0; state.ids[1] < plan.grid[1]; ++state.ids[1])
      for (state.ids[0] = 0; state.ids[0] < plan.grid[0]; ++state.ids[0])
        if (!runBody(body, state))
          return state.error;
  return "";
}

} // namespace tenon::interpret
