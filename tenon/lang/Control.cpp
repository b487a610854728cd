// SPDX-License-Identifier: Apache-2.0
//
// Loops and branches. The body of a loop is traced once, before it is known which variables it assigns. So every live
// variable gets a provisional loop argument at entry; at the end those that were not assigned are pruned again:
//
//     acc = init                          %r = scf.for ... iter_args(%acc = %init)     // init pruned: not assigned
//     for (Index k : range(0, n))    =>     %s = addf %acc, %init
//       acc = acc + init                    scf.yield %s
//
// Patching uses after the fact instead would be wrong here: `acc` and `init` hold the same value at entry.
#include "tenon/lang/Control.h"

#include "tenon/lang/Operators.h"
#include "tenon/lang/trace/Tracer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <exception>

using namespace mlir;

namespace tenon {
namespace {

/// A live variable at the entry of a loop or branch.
struct Slot {
  detail::Variable *variable; ///< null once the variable is gone
  Value before;
  DType dtype;
};

std::vector<Slot> snapshot(Tracer &t) {
  std::vector<Slot> slots;
  t.forEachVariable([&](detail::Variable &v) {
    Value value = valueOf(v.handle());
    // A value whose own loop has ended cannot enter another; any use of the variable is refused anyway.
    if (!llvm::isa<tile::ViewType>(value.getType()) &&
        value.getParentRegion()->isAncestor(t.builder().getInsertionBlock()->getParent()))
      slots.push_back({&v, value, v.handle().dtype});
  });
  return slots;
}

/// Forgets the variables that died since the snapshot.
void dropDead(Tracer &t, std::vector<Slot> &slots) {
  llvm::DenseSet<detail::Variable *> alive = t.liveVariables();
  for (Slot &slot : slots)
    if (!alive.contains(slot.variable))
      slot.variable = nullptr;
}

/// The value a variable holds at the end of a body; refuses a change of type or shape.
Value valueAtEnd(const Slot &slot, const char *construct, const SourceLine &where) {
  Value value = valueOf(slot.variable->handle());
  if (value.getType() != slot.before.getType() || slot.variable->handle().dtype != slot.dtype)
    throw Error(where, std::string("a variable changes from ") + std::string(nameOf(slot.dtype)) + " of shape " +
                           toString(shapeOf(slot.before)) + " to " +
                           std::string(nameOf(slot.variable->handle().dtype)) + " of shape " +
                           toString(shapeOf(value)) + " across " + construct +
                           ": give it the same type and shape before and after");
  return value;
}

/// scf.for without arguments builds its own terminator.
void removeTerminator(scf::ForOp loop) {
  if (!loop.getBody()->empty())
    loop.getBody()->getTerminator()->erase();
}

/// Whether a value can be computed before the launch: from sizes, scalars and constants, outside loops and branches.
bool isKnownAtLaunch(Tracer &t, Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return value.getParentBlock() == &t.function().getBody().front();
  if (op->getBlock() != &t.function().getBody().front() || op->getNumRegions() != 0 || !isMemoryEffectFree(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) { return isKnownAtLaunch(t, operand); });
}

void checkKnownAtLaunch(Tracer &t, Value value, const char *what, const SourceLine &where) {
  if (!isKnownAtLaunch(t, value))
    throw Error(where, std::string(what) + " depends on view sizes, run-time scalars and parameters only: it is "
                                           "computed before anything runs");
}

/// A step below 1, known only at run time, must not loop for ever: it is a precondition of the launch where it can be,
/// else a failed assertion, with a step of 1 for the rest of the run.
Value checkedStep(Tracer &t, Value step) {
  if (step.getDefiningOp<arith::ConstantOp>())
    return step;
  constexpr const char *message = "the step of a loop is at least 1";
  Value one = t.create<arith::ConstantOp>(t.builder().getIndexAttr(1));
  Value holds = t.create<arith::CmpIOp>(arith::CmpIPredicate::sge, step, one);
  if (isKnownAtLaunch(t, holds)) {
    t.create<tile::RequireOp>(holds, message);
    return step;
  }
  t.create<tile::AssertOp>(holds, message);
  return t.create<arith::MaxSIOp>(step, one);
}

} // namespace

//===--- Loops ----------------------------------------------------------------------------------------------------===//

struct range::State {
  Value begin, end, step;
  SourceLine where;
  Location location;
  scf::ForOp loop;
  std::vector<Slot> slots;
  llvm::DenseSet<detail::Variable *> atEntry; ///< the variables alive then
  enum { created, inBody, finished } stage = created;
  int exceptions = std::uncaught_exceptions();
};

range::range(Arg end, std::source_location where) : range(Arg(0, where), end, Arg(1, where), where) {}

range::range(Arg begin, Arg end, Arg step, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  Location location = t.location();
  if (step.kind != Arg::Kind::tile && step.integer < 1)
    throw Error(where, "the step of a loop is at least 1, not " + std::to_string(step.integer));
  Value b = materializeIndex(begin), e = materializeIndex(end), s = materializeIndex(step);
  state_ = new State{b, e, checkedStep(t, s), SourceLine(where), location, nullptr, {}, {}};
}

range::~range() {
  if (state_->stage == State::inBody && std::uncaught_exceptions() == state_->exceptions)
    if (Tracer *t = Tracer::currentOrNull())
      t->fail(Error(state_->where, "break or return out of a traced loop: the body is recorded once and runs to its end; "
                                   "use where() or if_() instead"));
  delete state_;
}

range::iterator range::begin() {
  Tracer &t = Tracer::current();
  State &s = *state_;
  t.builder().setInsertionPointToEnd(t.builder().getInsertionBlock());
  s.slots = snapshot(t);
  s.atEntry = t.liveVariables();
  llvm::SmallVector<Value> inits;
  for (const Slot &slot : s.slots)
    inits.push_back(slot.before);
  s.loop = t.builder().create<scf::ForOp>(s.location, s.begin, s.end, s.step, inits);
  removeTerminator(s.loop);
  for (auto [slot, argument] : llvm::zip(s.slots, s.loop.getRegionIterArgs()))
    Tracer::assign(*slot.variable, argument);
  t.builder().setInsertionPointToStart(s.loop.getBody());
  s.stage = State::inBody;
  return iterator(this);
}

Index range::iterator::operator*() const {
  return Index(handleOf(loop_->state_->loop.getInductionVar(), DType::i64));
}

range::iterator &range::iterator::operator++() {
  Tracer &t = Tracer::current();
  State &s = *loop_->state_;
  s.stage = State::finished;
  done_ = true;
  dropDead(t, s.slots);
  // What the next iteration would find in such a variable is not what this one left there: it has no loop argument.
  t.forEachVariable([&](detail::Variable &v) {
    if (!s.atEntry.contains(&v))
      throw Error(s.where, "a variable made inside this loop outlives the iteration: make it before the loop (a "
                           "std::vector of tiles may not grow or move inside one)");
  });

  OpBuilder &b = t.builder();
  scf::ForOp old = s.loop;
  llvm::SmallVector<Value> keptInits, yields;
  llvm::SmallVector<size_t> kept;
  for (auto [i, slot] : llvm::enumerate(s.slots)) {
    Value argument = old.getRegionIterArgs()[i];
    Value last = slot.variable ? valueAtEnd(slot, "a loop iteration", s.where) : argument;
    if (last == argument)
      continue;
    kept.push_back(i);
    keptInits.push_back(slot.before);
    yields.push_back(last);
  }
  b.setInsertionPointToEnd(old.getBody());
  b.create<scf::YieldOp>(s.location, yields);

  b.setInsertionPoint(old);
  auto loop = b.create<scf::ForOp>(s.location, s.begin, s.end, s.step, keptInits);
  removeTerminator(loop);
  auto replace = [&](Value from, Value to) {
    from.replaceAllUsesWith(to);
    t.replaceInVariables(from, to);
  };
  replace(old.getInductionVar(), loop.getInductionVar());
  size_t next = 0;
  for (size_t i = 0; i < s.slots.size(); ++i) {
    bool isKept = next < kept.size() && kept[next] == i;
    replace(old.getRegionIterArgs()[i], isKept ? Value(loop.getRegionIterArgs()[next]) : s.slots[i].before);
    next += isKept;
  }
  loop.getBody()->getOperations().splice(loop.getBody()->end(), old.getBody()->getOperations());
  for (auto [position, i] : llvm::enumerate(kept))
    Tracer::assign(*s.slots[i].variable, loop.getResult(position));
  old.erase();
  b.setInsertionPointAfter(loop);
  return *this;
}

//===--- Branches -------------------------------------------------------------------------------------------------===//

namespace {
Operation *lastOf(Block *block) { return block->empty() ? nullptr : &block->back(); }
} // namespace

struct if_::State {
  Value condition;
  SourceLine where;
  Location location;
  std::vector<Slot> slots;
  std::unique_ptr<Region> thenRegion;
  std::vector<Value> thenValues; ///< per slot: what the variable holds after the branch
  bool finished = false;
  Operation *before = nullptr; ///< what was recorded last when the branch was
  int exceptions = std::uncaught_exceptions();

  /// Traces one branch into a region of its own (ops may use values from outside, so it hangs in a detached scf.if).
  std::vector<Value> trace(const std::function<void()> &body, std::unique_ptr<Region> &region);
  void finish(std::unique_ptr<Region> elseRegion, std::vector<Value> elseValues);
};

std::vector<Value> if_::State::trace(const std::function<void()> &body, std::unique_ptr<Region> &region) {
  Tracer &t = Tracer::current();
  OpBuilder &b = t.builder();
  // A placeholder inside the enclosing block, so that dominance and insertion work while the branch is traced.
  auto holder = b.create<scf::IfOp>(location, condition, /*withElseRegion=*/false);
  holder.thenBlock()->getTerminator()->erase();
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(holder.thenBlock());
    body();
  }
  dropDead(t, slots);
  std::vector<Value> values;
  for (Slot &slot : slots) {
    values.push_back(slot.variable ? valueAtEnd(slot, "a branch", where) : slot.before);
    if (slot.variable)
      Tracer::assign(*slot.variable, slot.before);
  }
  region = std::make_unique<Region>();
  region->takeBody(holder.getThenRegion());
  holder.erase();
  return values;
}

void if_::State::finish(std::unique_ptr<Region> elseRegion, std::vector<Value> elseValues) {
  finished = true;
  Tracer &t = Tracer::current();
  OpBuilder &b = t.builder();
  llvm::SmallVector<Value> thenYields, elseYields;
  llvm::SmallVector<Type> types;
  llvm::SmallVector<size_t> changed;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].variable || (thenValues[i] == slots[i].before && elseValues[i] == slots[i].before))
      continue;
    changed.push_back(i);
    types.push_back(slots[i].before.getType());
    thenYields.push_back(thenValues[i]);
    elseYields.push_back(elseValues[i]);
  }
  OperationState opState(location, scf::IfOp::getOperationName());
  opState.addOperands(condition);
  opState.addTypes(types);
  opState.addRegion(std::move(thenRegion));
  bool needsElse = elseRegion || !changed.empty();
  if (!elseRegion)
    elseRegion = std::make_unique<Region>();
  if (needsElse && elseRegion->empty())
    elseRegion->push_back(new Block());
  opState.addRegion(std::move(elseRegion));
  auto op = llvm::cast<scf::IfOp>(b.create(opState));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(op.thenBlock());
    b.create<scf::YieldOp>(location, thenYields);
    if (needsElse) {
      b.setInsertionPointToEnd(op.elseBlock());
      b.create<scf::YieldOp>(location, elseYields);
    }
  }
  for (auto [position, i] : llvm::enumerate(changed))
    Tracer::assign(*slots[i].variable, op.getResult(position));
  b.setInsertionPointAfter(op);
}

if_::if_(Arg condition, const std::function<void()> &then, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  Location location = t.location();
  if (condition.kind == Arg::Kind::tile &&
      (condition.handle.dtype != DType::boolean || !shapeOf(t.use(condition.handle)).empty()))
    throw Error(where, "if_() needs a boolean scalar: reduce a tile with any() or all() and take its scalar()");
  Value value = materialize(condition, DType::boolean);
  auto state = std::make_unique<State>(State{value, SourceLine(where), location, snapshot(t), nullptr, {}});
  state->thenValues = state->trace(then, state->thenRegion);
  state->before = lastOf(t.builder().getInsertionBlock());
  state_ = state.release();
}

void if_::else_(const std::function<void()> &otherwise) && {
  std::unique_ptr<Region> region;
  std::vector<Value> values = state_->trace(otherwise, region);
  state_->finish(std::move(region), std::move(values));
}

if_::~if_() {
  if (!state_->finished && Tracer::currentOrNull() && std::uncaught_exceptions() == state_->exceptions) {
    // Kept in a variable, the branch would be recorded after whatever came in between.
    if (Tracer &t = Tracer::current(); lastOf(t.builder().getInsertionBlock()) != state_->before)
      t.fail(Error(state_->where, "if_() is a statement of its own: do not keep it in a variable"));
    std::vector<Value> unchanged;
    for (const Slot &slot : state_->slots)
      unchanged.push_back(slot.before);
    state_->finish(nullptr, std::move(unchanged));
  }
  delete state_;
}

//===--- The launch and looking inside ----------------------------------------------------------------------------===//

namespace {

template <size_t N> std::array<Index, N> declareGrid(const std::array<Arg, N> &extents, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  if (t.hasGrid)
    throw Error(where, "a kernel declares its grid once");
  if (t.builder().getInsertionBlock() != &t.function().getBody().front())
    throw Error(where, "a kernel declares its grid outside loops and branches");
  t.hasGrid = true;
  llvm::SmallVector<Value> values;
  for (const Arg &extent : extents) {
    values.push_back(materializeIndex(extent));
    checkKnownAtLaunch(t, values.back(), "the grid", where);
  }
  auto op = t.create<tile::GridOp>(values);
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::array<Index, N>{Index(handleOf(op.getResult(I), DType::i64))...};
  }(std::make_index_sequence<N>());
}

void checkTopLevel(const char *what, const std::source_location &where) {
  Tracer &t = Tracer::current();
  if (t.builder().getInsertionBlock() != &t.function().getBody().front())
    throw Error(where, std::string(what) + " stands outside loops and branches");
}

} // namespace

Index grid(Arg extent, std::source_location where) { return declareGrid<1>({extent}, where)[0]; }
std::array<Index, 2> grid(Arg extent0, Arg extent1, std::source_location where) {
  return declareGrid<2>({extent0, extent1}, where);
}
std::array<Index, 3> grid(Arg extent0, Arg extent1, Arg extent2, std::source_location where) {
  return declareGrid<3>({extent0, extent1, extent2}, where);
}

void require(Arg condition, const std::string &message, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  checkTopLevel("require()", where);
  if (condition.kind == Arg::Kind::tile &&
      (condition.handle.dtype != DType::boolean || !shapeOf(t.use(condition.handle)).empty()))
    throw Error(where, "require() needs a boolean scalar");
  Value holds = materialize(condition, DType::boolean);
  checkKnownAtLaunch(t, holds, "require()", where);
  t.create<tile::RequireOp>(holds, message);
}

void promise_no_overlap(std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  t.function()->setAttr(tile::promisesNoOverlapAttr, t.builder().getUnitAttr());
}

View workspace(DType type, std::initializer_list<Arg> sizes, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  checkTopLevel("workspace()", where);
  if (sizes.size() < 1 || sizes.size() > tile::maxRank)
    throw Error(where, "a workspace has 1 to 5 dimensions, not " + std::to_string(sizes.size()));
  llvm::SmallVector<Value> values;
  for (const Arg &size : sizes) {
    values.push_back(materializeIndex(size));
    checkKnownAtLaunch(t, values.back(), "workspace()", where);
  }
  MLIRContext *context = t.builder().getContext();
  auto viewType = tile::ViewType::get(context, sizes.size(), elementType(context, type));
  return View(handleOf(t.create<tile::WorkspaceOp>(viewType, values), type));
}

void device_assert(Arg condition, const std::string &message, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  if (condition.kind == Arg::Kind::tile && condition.handle.dtype != DType::boolean)
    throw Error(where, "device_assert() needs a boolean, not " + std::string(nameOf(condition.handle.dtype)));
  t.create<tile::AssertOp>(materialize(condition, DType::boolean), message);
}

void device_print(const std::string &label, Arg value, std::source_location where) {
  Tracer &t = Tracer::currentAt(where);
  DType type = value.kind == Arg::Kind::real ? DType::f64 : value.kind == Arg::Kind::truth ? DType::boolean : DType::i64;
  if (value.kind == Arg::Kind::tile)
    type = value.handle.dtype;
  t.create<tile::PrintOp>(label, materialize(value, type), isUnsigned(type));
}

} // namespace tenon
