// SPDX-License-Identifier: Apache-2.0
//
// Slots, blocks and control flow.
#include "tenon/compiler/interpret/Program.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::interpret {
namespace {

/// Copies values to values as if all at once: a loop may yield its own arguments in another order.
void copyAll(State &state, const Slots &from, const Slots &to) {
  llvm::SmallVector<Words, 4> copies;
  for (size_t slot : from)
    copies.push_back(state.slots[slot]);
  for (auto [slot, words] : llvm::zip(to, copies))
    state.slots[slot] = std::move(words);
}

Step prepareFor(scf::ForOp op, Program &program) {
  Body body;
  size_t lower = program.slot(op.getLowerBound()), upper = program.slot(op.getUpperBound());
  size_t increment = program.slot(op.getStep()), induction = program.slot(op.getInductionVar());
  Slots initial = program.slots(op.getInitArgs()), carried = program.slots(op.getRegionIterArgs());
  Slots yielded = program.slots(op.getBody()->getTerminator()->getOperands());
  Slots results = program.slots(op.getResults());
  if (!program.prepare(*op.getBody(), body))
    return {};
  unsigned width = bitWidth(op.getInductionVar().getType());
  std::string place = locationText(op.getLoc());
  return [=](State &state) {
    int64_t from = signExtend(state.slots[lower][0], width), to = signExtend(state.slots[upper][0], width);
    int64_t by = signExtend(state.slots[increment][0], width);
    if (by <= 0)
      return state.fail("a loop needs a positive step, not " + std::to_string(by) + " (" + place + ")");
    copyAll(state, initial, carried);
    for (int64_t i = from; i < to;) {
      state.slots[induction][0] = lowBits(static_cast<uint64_t>(i), width);
      if (!runBody(body, state))
        return false;
      copyAll(state, yielded, carried);
      if (__builtin_add_overflow(i, by, &i))
        break;
    }
    copyAll(state, carried, results);
    return true;
  };
}

Step prepareIf(scf::IfOp op, Program &program) {
  size_t condition = program.slot(op.getCondition());
  Slots results = program.slots(op.getResults());
  Body thenBody, elseBody;
  Slots thenYield = program.slots(op.thenYield().getOperands()), elseYield;
  if (!program.prepare(*op.thenBlock(), thenBody))
    return {};
  if (op.elseBlock()) {
    elseYield = program.slots(op.elseYield().getOperands());
    if (!program.prepare(*op.elseBlock(), elseBody))
      return {};
  }
  return [=](State &state) {
    bool taken = state.slots[condition][0] != 0;
    if (!runBody(taken ? thenBody : elseBody, state))
      return false;
    copyAll(state, taken ? thenYield : elseYield, results);
    return true;
  };
}

Step prepareControlFlow(Operation *op, Program &program) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](scf::ForOp loop) { return prepareFor(loop, program); })
      .Case([&](scf::IfOp branch) { return prepareIf(branch, program); })
      // What they end is run by their parent, which reads their operands.
      .Case<scf::YieldOp, func::ReturnOp, tile::YieldOp>([](Operation *) { return [](State &) { return true; }; })
      // Checked before anything runs.
      .Case([](tile::RequireOp) { return [](State &) { return true; }; })
      .Case([&](tile::GridOp grid) -> Step {
        return [ids = program.slots(grid.getIds())](State &state) {
          for (auto [axis, slot] : llvm::enumerate(ids))
            state.slots[slot][0] = static_cast<uint64_t>(state.ids[axis]);
          return true;
        };
      })
      .Default([](Operation *) { return Step(); });
}

} // namespace

size_t wordsOf(Type type) {
  if (auto view = llvm::dyn_cast<tile::ViewType>(type))
    return 1 + 2 * view.getRank();
  if (auto tensor = llvm::dyn_cast<RankedTensorType>(type))
    return tensor.getNumElements();
  return 1;
}

std::string locationText(Location location) {
  if (auto place = location->findInstanceOf<FileLineColLoc>())
    return place.getFilename().str() + ":" + std::to_string(place.getLine());
  return "unknown location";
}

size_t Program::slot(Value value) {
  auto [entry, isNew] = slotOf.try_emplace(value, sizes.size());
  if (isNew)
    sizes.push_back(wordsOf(value.getType()));
  return entry->second;
}

Slots Program::slots(ValueRange values) {
  Slots result;
  for (Value value : values)
    result.push_back(slot(value));
  return result;
}

Step Program::refuse(Operation *op, const std::string &reason) {
  message = "cannot interpret " + op->getName().getStringRef().str() + " (" + locationText(op->getLoc()) +
            "): " + reason;
  return {};
}

Step Program::prepare(Operation *op) {
  for (Type type : op->getResultTypes()) {
    if (llvm::isa<TensorType>(type)) {
      if (std::string reason = tile::refuseTileType(type); !reason.empty())
        return refuse(op, reason);
      type = llvm::cast<TensorType>(type).getElementType();
    }
    if (!type.isIntOrIndexOrFloat() ? !llvm::isa<tile::ViewType>(type) : bitWidth(type) > 64)
      return refuse(op, "results of this type are not part of Tile IR");
  }
  for (auto prepareKind : {prepareControlFlow, prepareArithmetic, prepareMath, prepareCast, prepareMemory,
                           prepareMovement, prepareCombine, prepareInspect}) {
    Step step = prepareKind(op, *this);
    if (step || !message.empty())
      return step;
  }
  return refuse(op, "not an operation of Tile IR, or not on these types");
}

bool Program::prepare(Block &block, Body &body) {
  for (Operation &op : block) {
    body.push_back(prepare(&op));
    if (!body.back())
      return false;
  }
  return true;
}

void Program::extend(State &state) const {
  while (state.slots.size() < sizes.size())
    state.slots.emplace_back(sizes[state.slots.size()]);
  for (; state.constantsLoaded < constants.size(); ++state.constantsLoaded) {
    const auto &[slot, words] = constants[state.constantsLoaded];
    state.slots[slot] = words;
  }
}

bool runBody(const Body &body, State &state) {
  state.steps += static_cast<int64_t>(body.size());
  if (state.options.maxSteps > 0 && state.steps > state.options.maxSteps)
    return state.fail("step limit of " + std::to_string(state.options.maxSteps) + " reached");
  for (const Step &step : body)
    if (!step(state))
      return false;
  return true;
}

} // namespace tenon::interpret
