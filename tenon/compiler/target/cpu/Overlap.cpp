// SPDX-License-Identifier: Apache-2.0
//
// A kernel that goes over its row more than once (a softmax, a norm) reads memory in its first loop and writes it in
// its last. Reading alone and writing alone are each slower than both at once, and what is computed between them comes
// on top. Instances are independent and follow each other, so the loops of as many of them as an instance has loops can
// be one: while row i is read, row i - 1 is computed and row i - 2 written.
//
//     for i {                                     for i { for j {
//       for j { m = max(m, x[i, j]) }               m' = max(m', x[i, j])
//       for j { e[j] = exp(x[i, j] - m) }    ->     e'[j] = exp(x[i - 1, j] - m)
//       for j { y[i, j] = e[j] / s }                y[i - 2, j] = e[j] / s
//     }                                           } }
//
// What an instance keeps in scratch memory it keeps in a copy of its own, in turns. A step has the last loop first, so
// one that writes what a later one reads can follow it through the same copy (e' and e above): L1 is small. The first
// and the last instances of a piece of a launch, and those that are not inside of their views, run their loops one by
// one (`instance` with the number of a loop). Every loop takes its elements in the same order either way, so results
// are the same bit for bit.
//
// This is for loops that go over the same row, several pages of it at once (Streaming.cpp), and are all of a kernel.
// Where rows are so many or so long that everything comes from L2 (a layer norm of 4096 f32) it does not pay. A step
// brings in the first half of each page of the row that is read next, or the first quarter of two. The processor, which
// begins anew with every page, brings in the rest. Where no loop stores anything it brings in all of it.
#include "tenon/compiler/target/cpu/Overlap.h"

#include "tenon/compiler/target/cpu/Entry.h"
#include "tenon/compiler/target/cpu/LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr unsigned argsArgument = 0, idsArgument = 1, scratchArgument = 4, contextArgument = 5; ///< of `instance`
constexpr int64_t mostBytes = 96 << 10; ///< that a step touches: twice the L1 of processors that gain by it
constexpr int64_t partsBroughtIn = 2;   ///< a page's lines by those that a step brings in, of all that it reads

/// One loop of an instance, with what stands around it, where everything is inside and results go past the cache.
struct Stage {
  scf::IfOp nest;
  SmallVector<Value> conditions;
  Block *block = nullptr;
  scf::ForOp loop, parts;        ///< in the block, and inside of it
  SmallVector<Operation *> tail; ///< what follows the nest and is not for all stages, in order

  int64_t step() { return *getConstantIntValue(loop.getStep()); }
  int64_t part() { return *getConstantIntValue(parts.getStep()); }
  int64_t extent() { return *getConstantIntValue(parts.getUpperBound()); }
};

bool hasLoops(Operation &op) {
  return op.walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool hasBounds(scf::ForOp loop) {
  std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound());
  return lower && *lower == 0 && getConstantIntValue(loop.getUpperBound()) && getConstantIntValue(loop.getStep());
}

/// for counter { for start by parts { ... } }, which carry the same.
bool findParts(Stage &stage) {
  if (!hasBounds(stage.loop))
    return false;
  for (Operation &op : stage.loop.getBody()->without_terminator())
    if (auto inner = llvm::dyn_cast<scf::ForOp>(op); inner && !stage.parts)
      stage.parts = inner;
    else if (hasLoops(op) || !isMemoryEffectFree(&op))
      return false;
  if (!stage.parts || !hasBounds(stage.parts) || llvm::any_of(*stage.parts.getBody(), hasLoops))
    return false;
  return llvm::equal(stage.parts.getInitArgs(), stage.loop.getRegionIterArgs()) &&
         llvm::equal(stage.loop.getBody()->getTerminator()->getOperands(), stage.parts.getResults()) &&
         getConstantIntValue(stage.loop.getUpperBound()) == stage.part() && stage.part() % stage.step() == 0 &&
         stage.step() > 1 && stage.extent() >= 2 * stage.part(); // not rows of a tile
}

std::optional<Stage> stageOf(scf::IfOp nest) {
  Stage stage;
  stage.nest = nest;
  for (Operation *op = nest;;) {
    auto branch = llvm::dyn_cast<scf::IfOp>(op);
    if (!branch || branch->getNumResults() || branch.getElseRegion().empty() ||
        branch.getCondition().getParentBlock() != nest->getBlock())
      return std::nullopt;
    stage.conditions.push_back(branch.getCondition());
    stage.block = branch.thenBlock();
    if (!llvm::hasNItems(*stage.block, 2) || !llvm::isa<scf::IfOp>(stage.block->front()))
      break;
    op = &stage.block->front();
  }
  for (Operation &op : *stage.block)
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op); loop && !stage.loop)
      stage.loop = loop;
    else if (hasLoops(op) && !(stage.loop && llvm::isa<scf::IfOp>(op))) // what is seldom done goes with the stage
      return std::nullopt;
  return stage.loop && findParts(stage) ? std::optional(stage) : std::nullopt;
}

/// Gives single numbers between loops and behind them to the stage before; false if they are more than that.
bool addToTail(SmallVectorImpl<Stage> &stages, Operation &op, llvm::DenseSet<Operation *> &inTails) {
  if (stages.empty() || hasLoops(op))
    return false;
  stages.back().tail.push_back(&op);
  inTails.insert(&op);
  return true;
}

/// Whether an operation, or one inside of it, has an operand from a tail.
bool dependsOn(Operation &op, const llvm::DenseSet<Operation *> &tails) {
  return op
      .walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(),
                            [&](Value operand) { return tails.contains(operand.getDefiningOp()); })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The loops of an instance, if they, single numbers behind them and what needs no memory but its arguments are all
/// there is of it.
SmallVector<Stage> stagesOf(func::FuncOp instance) {
  SmallVector<Stage> stages;
  llvm::DenseSet<Operation *> tailOfLast, tailsBefore; // what the present stage may see, and what none may any more
  Block &body = instance.getBody().front();
  bool isKnown = !instance
                      .walk([](Operation *op) {
                        return llvm::isa<LLVM::CallOp, LLVM::AtomicRMWOp, LLVM::AtomicCmpXchgOp>(op)
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      })
                      .wasInterrupted();
  for (Operation &op : body.without_terminator()) {
    auto nest = llvm::dyn_cast<scf::IfOp>(op);
    std::optional<Stage> stage = nest ? stageOf(nest) : std::nullopt;
    if (stage) {
      stages.push_back(*stage);
      tailsBefore.insert(tailOfLast.begin(), tailOfLast.end());
      tailOfLast.clear();
    }
    auto load = llvm::dyn_cast<LLVM::LoadOp>(op);
    auto place = load ? load.getAddr().getDefiningOp<LLVM::GEPOp>() : LLVM::GEPOp();
    bool isArgument = (place && place.getBase() == instance.getArgument(argsArgument)) || (load && load.getInvariant());
    isKnown &= !dependsOn(op, tailsBefore);
    if (!stage && (dependsOn(op, tailOfLast) || !(isArgument || isMemoryEffectFree(&op))))
      isKnown &= addToTail(stages, op, tailOfLast);
  }
  bool isOne = llvm::all_of(
      stages, [&](Stage &stage) { return stage.extent() == stages[0].extent() && stage.part() == stages[0].part(); });
  // A step of the whole takes several of a stage with shorter ones, part by part: sums would have another order.
  int64_t longest = 0;
  for (Stage &stage : stages)
    longest = std::max(longest, stage.step());
  bool keepsSums =
      llvm::all_of(stages, [&](Stage &stage) { return stage.step() == longest || stage.loop.getInitArgs().empty(); });
  return isKnown && isOne && keepsSums && stages.size() > 1 ? stages : SmallVector<Stage>();
}

/// Of the rows that a step reads and writes through the cache.
int64_t touchedBytes(MutableArrayRef<Stage> stages) {
  int64_t bytes = 0;
  for (Stage &stage : stages) {
    llvm::DenseSet<Value> seen;
    stage.parts.walk([&](Operation *op) {
      auto load = llvm::dyn_cast<LLVM::LoadOp>(op);
      auto store = llvm::dyn_cast<LLVM::StoreOp>(op);
      if (!load && (!store || store.getNontemporal()))
        return;
      auto place = (load ? load.getAddr() : store.getAddr()).getDefiningOp<LLVM::GEPOp>();
      auto type = llvm::dyn_cast<VectorType>(load ? load.getRes().getType() : store.getValue().getType());
      if (place && type && seen.insert(place.getBase()).second)
        bytes += stage.extent() * byteSize(type.getElementType());
    });
  }
  return bytes;
}

/// Whether an operation accesses what a pointer leads to, by itself or through one that is computed from it elsewhere.
bool uses(Operation &op, LLVM::GEPOp pointer) {
  return llvm::any_of(pointer->getUsers(), [&](Operation *use) {
    auto derived = llvm::dyn_cast<LLVM::GEPOp>(use);
    return op.isAncestor(use) || (derived && uses(op, derived));
  });
}

/// Whether an iteration of the stage's loop accesses what it keeps there in its own place, with all of its lanes, or
/// the stage does so before its loop (reads) and behind it (writes).
bool keepsOrder(LLVM::GEPOp buffer, Stage &stage) {
  auto isPlace = [&](Value value) {
    auto cast = value.getDefiningOp<arith::IndexCastOp>();
    auto sum = cast ? cast.getIn().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
    return sum && sum.getLhs() == stage.parts.getInductionVar() && sum.getRhs() == stage.loop.getInductionVar();
  };
  for (Operation *use : buffer->getUsers()) {
    if (!stage.block->getParentOp()->isAncestor(use) || !stage.block->findAncestorOpInBlock(*use)) {
      if (auto derived = llvm::dyn_cast<LLVM::GEPOp>(use); derived && uses(*stage.nest, derived))
        return false;
      continue;
    }
    bool isInside = stage.parts->isAncestor(use);
    if (auto element = llvm::dyn_cast<LLVM::GEPOp>(use)) {
      if (!isInside || element.getDynamicIndices().size() != 1 || !isPlace(element.getDynamicIndices()[0]))
        return false;
      for (Operation *access : element->getUsers()) {
        auto store = llvm::dyn_cast<LLVM::StoreOp>(access);
        Type type = store ? store.getValue().getType() : access->getNumResults() ? access->getResultTypes()[0] : Type();
        auto vector = llvm::dyn_cast_if_present<VectorType>(type);
        if (!llvm::isa<LLVM::LoadOp, LLVM::StoreOp>(access) || !vector || vector.getNumElements() != stage.step() ||
            vector.getElementType() != element.getElemType())
          return false;
      }
    } else if (bool isBehind = stage.loop->isBeforeInBlock(stage.block->findAncestorOpInBlock(*use));
               !llvm::isa<LLVM::LoadOp>(use) && !(isBehind && llvm::isa<LLVM::StoreOp>(use))) {
      return false;
    }
  }
  return true;
}

/// How many instances have something in scratch memory at a time; 0: it is not known. Later stages come first in a
/// step, so where an iteration writes what one that comes later has just read, the two instances share a copy.
int64_t copiesOf(func::FuncOp instance, MutableArrayRef<Stage> stages) {
  Block &body = instance.getBody().front();
  int64_t copies = 1;
  llvm::DenseSet<int64_t> seen;
  for (Operation *user : instance.getArgument(scratchArgument).getUsers()) {
    auto place = llvm::dyn_cast<LLVM::GEPOp>(user);
    if (auto select = llvm::dyn_cast<LLVM::SelectOp>(user);
        select && select.getFalseValue() == instance.getArgument(scratchArgument))
      continue; // where an access goes that is none (Access.cpp): nobody looks at what is there
    if (!place || place->getBlock() != &body || !place.getDynamicIndices().empty() ||
        !seen.insert(place.getRawConstantIndices()[0]).second)
      return 0;
    std::optional<int64_t> first, last;
    for (auto [number, stage] : llvm::enumerate(stages))
      if (uses(*stage.nest, place) || llvm::any_of(stage.tail, [&](Operation *op) { return uses(*op, place); })) {
        first = first.value_or(number);
        last = number;
      }
    bool inOrder = llvm::all_of(stages, [&](Stage &stage) {
      return keepsOrder(place, stage) && llvm::none_of(stage.tail, [&](Operation *op) { return uses(*op, place); });
    });
    if (first)
      copies = std::max(copies, *last - *first + (inOrder ? 0 : 1));
  }
  return copies;
}

/// What is the same for all of an instance, for the one with these ids.
IRMapping cloneScalars(OpBuilder &b, func::FuncOp instance, ValueRange ids, ArrayRef<Stage> stages, Value args,
                       Value scratch, Value context) {
  IRMapping map;
  map.map(instance.getArgument(argsArgument), args);
  for (auto [i, id] : llvm::enumerate(ids))
    map.map(instance.getArgument(idsArgument + i), id);
  map.map(instance.getArgument(scratchArgument), scratch);
  map.map(instance.getArgument(contextArgument), context);
  for (Operation &op : instance.getBody().front().without_terminator())
    if (llvm::none_of(stages,
                      [&](const Stage &stage) { return stage.nest == &op || llvm::is_contained(stage.tail, &op); }))
      b.clone(op, map);
  return map;
}

func::FuncOp createFunction(ImplicitLocOpBuilder &b, StringRef name, ArrayRef<Type> arguments, TypeRange results) {
  auto function = b.create<func::FuncOp>(name, b.getFunctionType(arguments, results));
  function.setPrivate();
  b.setInsertionPointToEnd(function.addEntryBlock());
  return function;
}

Value all(ImplicitLocOpBuilder &b, ArrayRef<Value> conditions) {
  Value holds = conditions[0];
  for (Value condition : conditions.drop_front())
    holds = b.create<arith::AndIOp>(holds, condition);
  return holds;
}

void emitHolds(ImplicitLocOpBuilder &b, func::FuncOp instance, ArrayRef<Stage> stages) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  func::FuncOp function = createFunction(b, holdsSymbol, {pointer, i64, i64, i64}, {b.getI1Type()});
  Value null = b.create<LLVM::ZeroOp>(pointer);
  IRMapping map =
      cloneScalars(b, instance, function.getArguments().drop_front(), stages, function.getArgument(0), null, null);
  SmallVector<Value> conditions;
  for (const Stage &stage : stages)
    for (Value condition : stage.conditions)
      conditions.push_back(map.lookup(condition));
  b.create<func::ReturnOp>(all(b, conditions));
}

/// Emits one step of all stages. `maps`: of each stage's instance; `next`: of the one that the first stage has next.
class Step {
public:
  Step(ImplicitLocOpBuilder &b, func::FuncOp instance, MutableArrayRef<Stage> stages, MutableArrayRef<IRMapping> maps,
       const IRMapping &next)
      : b_(b), instance_(instance), stages_(stages), maps_(maps), next_(next) {
    for (Stage &stage : stages)
      step_ = std::max(step_, stage.step());
  }

  void emit() {
    SmallVector<Value> inits;
    for (auto [stage, map] : llvm::zip(stages_, maps_)) {
      for (Operation &op : llvm::make_range(stage.block->begin(), stage.loop->getIterator()))
        b_.clone(op, map);
      for (Value init : stage.loop.getInitArgs())
        inits.push_back(map.lookup(init));
    }
    auto constant = [&](int64_t value) -> Value { return b_.create<arith::ConstantIndexOp>(value); };
    Value zero = constant(0), part = constant(stages_[0].part());
    auto outer = b_.create<scf::ForOp>(zero, part, constant(step_), inits);
    {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(outer.getBody());
      Value extent = constant(stages_[0].extent());
      auto inner = b_.create<scf::ForOp>(zero, extent, part, outer.getRegionIterArgs());
      if (!inits.empty())
        b_.create<scf::YieldOp>(inner.getResults());
      b_.setInsertionPointToStart(inner.getBody());
      SmallVector<Value> yields = emitBody(outer.getInductionVar(), inner.getInductionVar(), inner.getRegionIterArgs());
      if (!inits.empty())
        b_.create<scf::YieldOp>(yields);
    }
    ValueRange results = outer.getResults();
    for (auto [stage, map] : llvm::reverse(llvm::zip(stages_, maps_))) {
      size_t count = stage.loop->getNumResults();
      map.map(stage.loop.getResults(), results.take_back(count));
      results = results.drop_back(count);
      for (Operation &op : llvm::make_range(std::next(stage.loop->getIterator()), std::prev(stage.block->end())))
        b_.clone(op, map);
      for (Operation *op : stage.tail)
        b_.clone(*op, map);
    }
  }

private:
  SmallVector<Value> emitBody(Value counter, Value start, ValueRange carried) {
    bringIn(counter, start);
    SmallVector<Value> yields(carried);
    size_t end = yields.size();
    for (auto [stage, map] : llvm::reverse(llvm::zip(stages_, maps_))) {
      size_t count = stage.loop.getInitArgs().size();
      MutableArrayRef<Value> values = MutableArrayRef(yields).slice(end -= count, count);
      for (int64_t at = 0; at < step_; at += stage.step()) {
        Value place =
            at ? b_.create<arith::AddIOp>(counter, b_.create<arith::ConstantIndexOp>(at)).getResult() : counter;
        map.map(stage.loop.getInductionVar(), place);
        map.map(stage.parts.getInductionVar(), start);
        map.map(stage.loop.getRegionIterArgs(), values);
        map.map(stage.parts.getRegionIterArgs(), values);
        for (Operation &op : stage.loop.getBody()->without_terminator())
          if (&op != stage.parts)
            b_.clone(op, map);
        for (Operation &op : stage.parts.getBody()->without_terminator())
          if (!llvm::isa<LLVM::Prefetch>(op))
            b_.clone(op, map);
        for (auto [value, yielded] : llvm::zip(values, stage.parts.getBody()->getTerminator()->getOperands()))
          value = map.lookupOrDefault(yielded);
      }
    }
    return yields;
  }

  /// A value of an iteration, for the instance and the place that `map` has.
  Value cloneAddress(Value value, IRMapping &map) {
    if (Value known = map.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      cloneAddress(operand, map);
    b_.clone(*op, map);
    return map.lookup(value);
  }

  /// Whether a value depends on which instance it is.
  bool isOfInstance(Value value) {
    if (auto argument = llvm::dyn_cast<BlockArgument>(value))
      return llvm::is_contained(instance_.getArguments().slice(idsArgument, scratchArgument - idsArgument), argument);
    return llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value operand) { return isOfInstance(operand); });
  }

  /// The first lines of each page of what a stage reads of its next instance, if no stage before it did.
  void bringIn(Value counter, Value start) {
    struct Window {
      size_t stage;
      LLVM::GEPOp place;
      int64_t elementBytes;
    };
    SmallVector<Window> windows;
    llvm::DenseSet<Value> seen;
    for (auto [number, stage] : llvm::enumerate(stages_))
      for (auto load : stage.parts.getBody()->getOps<LLVM::LoadOp>()) {
        auto place = load.getAddr().getDefiningOp<LLVM::GEPOp>();
        auto view = place ? place.getBase().getDefiningOp<LLVM::LoadOp>() : LLVM::LoadOp();
        auto type = llvm::dyn_cast<VectorType>(load.getRes().getType());
        if (view && type && seen.insert(place.getBase()).second && isOfInstance(place))
          windows.push_back({number, place, byteSize(type.getElementType())});
      }
    bool stores =
        llvm::any_of(stages_, [](Stage &stage) { return !stage.parts.getBody()->getOps<LLVM::StoreOp>().empty(); });
    auto constant = [&](int64_t value) -> Value { return b_.create<arith::ConstantIndexOp>(value); };
    for (Window &window : windows) {
      int64_t parts = (stores ? partsBroughtIn : 1) * static_cast<int64_t>(windows.size());
      int64_t elementsOfLine = lineBytes / window.elementBytes;
      int64_t lines = std::max<int64_t>(1, step_ / elementsOfLine / parts);
      Value first = b_.create<arith::DivUIOp>(b_.create<arith::MulIOp>(counter, constant(lines * elementsOfLine)),
                                              constant(step_));
      for (int64_t line = 0; line < lines; ++line) {
        Stage &stage = stages_[window.stage];
        IRMapping map = window.stage == 0 ? next_ : maps_[window.stage - 1];
        Value at = b_.create<arith::AddIOp>(first, constant(line * elementsOfLine));
        map.map(stage.loop.getInductionVar(), at);
        map.map(stage.parts.getInductionVar(), start);
        b_.create<LLVM::Prefetch>(cloneAddress(window.place, map), /*rw=*/false, /*hint=*/2,
                                  /*cache=*/1); // to L2, data
      }
    }
  }

  ImplicitLocOpBuilder &b_;
  func::FuncOp instance_;
  MutableArrayRef<Stage> stages_;
  MutableArrayRef<IRMapping> maps_;
  const IRMapping &next_;
  int64_t step_ = 1;
};

/// Every nest of `instance` runs only if it is asked for.
void chooseStages(ImplicitLocOpBuilder &b, func::FuncOp instance, ArrayRef<Stage> stages) {
  Block &body = instance.getBody().front();
  Type i64 = b.getI64Type();
  Value chosen = body.addArgument(i64, instance.getLoc());
  SmallVector<Type> types(body.getArgumentTypes());
  instance.setFunctionType(b.getFunctionType(types, {}));
  for (auto [number, stage] : llvm::enumerate(stages)) {
    b.setInsertionPointAfter(stage.tail.empty() ? stage.nest : stage.tail.back()); // what these need stands before
    auto is = [&](int64_t which) -> Value {
      return b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, chosen, constantBits(b, i64, which));
    };
    auto branch = b.create<scf::IfOp>(b.create<arith::OrIOp>(is(-1), is(static_cast<int64_t>(number))));
    stage.nest->moveBefore(branch.thenBlock()->getTerminator());
    for (Operation *op : stage.tail)
      op->moveBefore(branch.thenBlock()->getTerminator());
  }
}

} // namespace

std::optional<Overlap> overlapInstances(func::FuncOp kernel, ModuleOp target, const Isa &isa, int64_t scratchBytes) {
  auto instance = target.lookupSymbol<func::FuncOp>("instance");
  SmallVector<Stage> stages = isa.bringsRows ? stagesOf(instance) : SmallVector<Stage>();
  if (stages.empty() || touchedBytes(stages) > mostBytes)
    return std::nullopt;
  int64_t copies = copiesOf(instance, stages);
  if (!copies)
    return std::nullopt;

  ImplicitLocOpBuilder b(instance.getLoc(), target.getContext());
  b.setInsertionPointToEnd(target.getBody());
  emitHolds(b, instance, stages);
  b.setInsertionPointToEnd(target.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  func::FuncOp function =
      createFunction(b, overlapSymbol, {pointer, i64, i64, i64, pointer, pointer, pointer}, TypeRange());
  Value args = function.getArgument(0), newest = function.getArgument(1), begin = function.getArgument(2);
  Value end = function.getArgument(3), extents = function.getArgument(4), scratch = function.getArgument(5);
  Value context = function.getArgument(6);
  auto constant = [&](int64_t value) { return constantBits(b, i64, value); };
  auto is = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
    return b.create<arith::CmpIOp>(predicate, x, y);
  };
  auto exists = [&](Value number) -> Value {
    return all(b, {is(arith::CmpIPredicate::sge, number, begin), is(arith::CmpIPredicate::slt, number, end)});
  };
  auto scratchOf = [&](Value number) -> Value {
    Value copy = b.create<arith::RemUIOp>(number, constant(copies));
    Value offset = b.create<arith::MulIOp>(copy, constant(scratchBytes));
    return b.create<LLVM::GEPOp>(pointer, b.getI8Type(), scratch, ValueRange{offset});
  };
  // Where there is none with this number, scalars are those of one that exists: some cannot be computed otherwise.
  auto idsOfExisting = [&](Value number) {
    Value last = b.create<arith::SubIOp>(end, constant(1));
    number = b.create<arith::MinSIOp>(b.create<arith::MaxSIOp>(number, begin), last);
    return idsOf(b, kernel, number, extents);
  };
  SmallVector<Value> numbers, conditions;
  for (size_t k = 0; k < stages.size(); ++k) {
    numbers.push_back(b.create<arith::SubIOp>(newest, constant(static_cast<int64_t>(k))));
    SmallVector<Value> arguments = {args};
    arguments.append(idsOfExisting(numbers[k]));
    conditions.push_back(exists(numbers[k]));
    conditions.push_back(b.create<func::CallOp>(holdsSymbol, b.getI1Type(), arguments).getResult(0));
  }
  auto branch = b.create<scf::IfOp>(all(b, conditions), /*withElseRegion=*/true);
  b.create<func::ReturnOp>();

  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  SmallVector<IRMapping> maps;
  for (Value number : numbers)
    maps.push_back(cloneScalars(b, instance, idsOfExisting(number), stages, args, scratchOf(number), context));
  Value following = b.create<arith::AddIOp>(newest, constant(1));
  IRMapping next = cloneScalars(b, instance, idsOfExisting(following), stages, args, scratch, context);
  Step(b, instance, stages, maps, next).emit();

  b.setInsertionPoint(branch.elseBlock()->getTerminator());
  auto count = static_cast<int64_t>(stages.size());
  auto loop = b.create<scf::ForOp>(constant(0), constant(count), constant(1));
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value stage = b.create<arith::SubIOp>(constant(count - 1), loop.getInductionVar());
  Value number = b.create<arith::SubIOp>(newest, stage);
  auto alone = b.create<scf::IfOp>(exists(number));
  b.setInsertionPoint(alone.thenBlock()->getTerminator());
  SmallVector<Value> arguments = {args};
  arguments.append(idsOf(b, kernel, number, extents));
  arguments.append({scratchOf(number), context, stage});
  b.create<func::CallOp>("instance", TypeRange{}, arguments);

  chooseStages(b, instance, stages);
  return Overlap{static_cast<int64_t>(stages.size()), copies};
}

} // namespace tenon::cpu
