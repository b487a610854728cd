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
// Where a step would go over too many rows at a time for that (a layer norm, which reads two and writes two, and has a
// weight and a bias for each column), or sums would have another order, only the first and the last loop are one, of
// rows i and i - 1, and those between follow by themselves.
//
// What an instance keeps in scratch memory it keeps in a copy of its own, in turns. A step has the last loop first, so
// one that writes what a later one reads can follow it through the same copy (e' and e above), where it goes along the
// row: L1 is small. The first and the last instances of a piece of a launch, and those that are not inside of their
// views, run their loops one by one (`instance` with the number of a loop). Every loop takes its elements in the same
// order either way, so results are the same bit for bit.
//
// This is for loops that go over the same row and are all of a kernel (Stages.cpp). What is read next is brought in, in
// one of two ways:
//
// - Where processors gain by several pages of a row at once (Isa::bringsRows, Streaming.cpp), a step brings in the
//   first half of each page of the row that is read next to L2, or the first quarter of two. The processor, which
//   begins anew with every page, brings in the rest. Where no loop stores anything a step brings in all of it. If rows
//   are so many or so long that everything comes from L2 anyway (a layer norm of 4096 f32), it does not pay.
// - Others go along the row, and bring in to L1 what is some KiB further on, in the same row or at the begin of the
//   next. Loops that follow by themselves bring in to L2 what the next step begins with.
#include "tenon/compiler/target/cpu/Overlap.h"

#include "tenon/compiler/target/cpu/Entry.h"
#include "tenon/compiler/target/cpu/LoopEmitter.h"
#include "tenon/compiler/target/cpu/Stages.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <numeric>

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr int64_t partsBroughtIn = 2; ///< a page's lines by those that a step brings in, of all that it reads
constexpr int64_t bytesAhead = 8 << 10, bytesAheadOfReading = 12 << 10; ///< of all that a step along rows reads
constexpr int64_t leastStep = 16;     ///< elements, of a loop that brings in something
constexpr int32_t toL1 = 3, toL2 = 2; ///< where a prefetch goes

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

/// Whether an operation is a prefetch, or a branch with nothing else: a step has its own.
bool onlyBringsIn(Operation &op) {
  auto branch = llvm::dyn_cast<scf::IfOp>(op);
  if (!branch || branch->getNumResults())
    return llvm::isa<LLVM::Prefetch>(op);
  return !branch
              ->walk([&](Operation *inner) {
                bool isHarmless = inner == branch || llvm::isa<LLVM::Prefetch, scf::YieldOp>(inner) || isPure(inner);
                return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Emits one step of all stages. `maps`: of each stage's instance; `nexts`: of the one that it has in the next step.
class Step {
public:
  Step(ImplicitLocOpBuilder &b, func::FuncOp instance, MutableArrayRef<Stage> stages, MutableArrayRef<IRMapping> maps,
       ArrayRef<IRMapping> nexts)
      : b_(b), instance_(instance), stages_(stages), maps_(maps), nexts_(nexts) {
    for (auto [number, stage] : llvm::enumerate(stages))
      if (stage.isJoined) {
        joined_.push_back(number);
        step_ = std::max(step_, stage.step());
      }
  }

  void emit() {
    SmallVector<Value> inits;
    for (size_t number : joined_) {
      Stage &stage = stages_[number];
      for (Operation &op : llvm::make_range(stage.block->begin(), stage.loop->getIterator()))
        b_.clone(op, maps_[number]);
      for (Value init : stage.loop.getInitArgs())
        inits.push_back(maps_[number].lookup(init));
    }
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
    for (size_t number : llvm::reverse(joined_)) {
      Stage &stage = stages_[number];
      size_t count = stage.loop->getNumResults();
      maps_[number].map(stage.loop.getResults(), results.take_back(count));
      results = results.drop_back(count);
      emitBehind(number, std::next(stage.loop->getIterator()));
    }
    for (auto [number, stage] : llvm::enumerate(stages_))
      if (!stage.isJoined)
        emitBehind(number, stage.block->begin());
  }

private:
  /// What a stage has in its block from there on, and what follows it.
  void emitBehind(size_t number, Block::iterator from) {
    for (Operation &op : llvm::make_range(from, std::prev(stages_[number].block->end())))
      emitAlone(op, maps_[number]);
    for (Operation *op : stages_[number].tail)
      emitAlone(*op, maps_[number]);
  }

  void emitAlone(Operation &op, IRMapping &map) {
    Operation *placed = b_.clone(op, map);
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op); loop && !bringsBegins_)
      bringsBegins_ = bringBegins(loop, llvm::cast<scf::ForOp>(placed));
  }

  SmallVector<Value> emitBody(Value counter, Value start, ValueRange carried) {
    std::vector<Window> windows = windowsRead();
    for (const Window &window : windows)
      if (stages_[window.stage].parts)
        bringHeads(window, windows.size(), counter, start);
      else
        bringAhead(window, windows.size(), counter);
    SmallVector<Value> yields(carried);
    size_t end = yields.size();
    for (size_t number : llvm::reverse(joined_)) {
      Stage &stage = stages_[number];
      IRMapping &map = maps_[number];
      size_t count = stage.loop.getInitArgs().size();
      MutableArrayRef<Value> values = MutableArrayRef(yields).slice(end -= count, count);
      for (int64_t at = 0; at < step_; at += stage.step()) {
        Value place =
            at ? b_.create<arith::AddIOp>(counter, b_.create<arith::ConstantIndexOp>(at)).getResult() : counter;
        map.map(stage.loop.getInductionVar(), place);
        map.map(stage.loop.getRegionIterArgs(), values);
        if (stage.parts) {
          map.map(stage.parts.getInductionVar(), start);
          map.map(stage.parts.getRegionIterArgs(), values);
          for (Operation &op : stage.loop.getBody()->without_terminator())
            if (&op != stage.parts)
              b_.clone(op, map);
        }
        Block *body = stage.innermost().getBody();
        for (Operation &op : body->without_terminator())
          if (!onlyBringsIn(op))
            b_.clone(op, map);
        for (auto [value, yielded] : llvm::zip(values, body->getTerminator()->getOperands()))
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
    auto [known, isNew] = ofInstance_.insert({value, false});
    if (!isNew)
      return known->second;
    bool isOf =
        llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value operand) { return isOfInstance(operand); });
    return ofInstance_[value] = isOf;
  }

  /// A row of a view that the stage is the first to read.
  struct Window {
    size_t stage;
    LLVM::GEPOp place;
    int64_t elementBytes;

    Value base() { return place.getBase(); }
    Value address() const { return place->getResult(0); }
  };

  /// What a load reads, if that is a row of a view that depends on the instance.
  std::optional<Window> windowOf(LLVM::LoadOp load) {
    auto place = load.getAddr().getDefiningOp<LLVM::GEPOp>();
    auto view = place ? place.getBase().getDefiningOp<LLVM::LoadOp>() : LLVM::LoadOp();
    auto type = llvm::dyn_cast<VectorType>(load.getRes().getType());
    if (!view || !type || !isOfInstance(place))
      return std::nullopt;
    return Window{0, place, byteSize(type.getElementType())};
  }

  std::vector<Window> windowsRead() {
    std::vector<Window> windows;
    for (size_t number : joined_)
      for (auto load : stages_[number].innermost().getBody()->getOps<LLVM::LoadOp>()) {
        std::optional<Window> window = windowOf(load);
        if (!window || llvm::any_of(windows, [&](Window &other) { return other.base() == window->base(); }))
          continue;
        window->stage = number;
        windows.push_back(*window);
      }
    return windows;
  }

  bool storesRows() {
    return llvm::any_of(joined_, [&](size_t number) {
      return !stages_[number].innermost().getBody()->getOps<LLVM::StoreOp>().empty();
    });
  }

  Value constant(int64_t value) { return b_.create<arith::ConstantIndexOp>(value); }

  void prefetch(Value address, int32_t locality) {
    b_.create<LLVM::Prefetch>(address, /*rw=*/false, locality, /*cache=*/1); // data
  }

  /// The first lines of each page of what a stage reads of its next instance.
  void bringHeads(const Window &window, size_t windows, Value counter, Value start) {
    Stage &stage = stages_[window.stage];
    int64_t parts = (storesRows() ? partsBroughtIn : 1) * static_cast<int64_t>(windows);
    int64_t elementsOfLine = lineBytes / window.elementBytes;
    int64_t lines = std::max<int64_t>(1, step_ / elementsOfLine / parts);
    Value first =
        b_.create<arith::DivUIOp>(b_.create<arith::MulIOp>(counter, constant(lines * elementsOfLine)), constant(step_));
    for (int64_t line = 0; line < lines; ++line) {
      IRMapping map = nexts_[window.stage];
      map.map(stage.loop.getInductionVar(),
              b_.create<arith::AddIOp>(first, constant(line * elementsOfLine)).getResult());
      map.map(stage.parts.getInductionVar(), start);
      prefetch(cloneAddress(window.address(), map), toL2);
    }
  }

  /// How many elements further on a joined stage along rows brings them in.
  int64_t awayOf(const Window &window, size_t windows) {
    int64_t bytes = (storesRows() ? bytesAhead : bytesAheadOfReading) / static_cast<int64_t>(windows);
    return std::min(std::max<int64_t>(bytes / window.elementBytes / step_, 1) * step_, stages_[window.stage].extent());
  }

  /// The lines of so many bytes from an address on.
  void prefetchLines(Value address, int64_t bytes, int32_t locality) {
    auto pointer = LLVM::LLVMPointerType::get(b_.getContext());
    for (int64_t byte = 0; byte < bytes; byte += lineBytes)
      prefetch(
          b_.create<LLVM::GEPOp>(pointer, b_.getI8Type(), address, ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(byte)}),
          locality);
  }

  /// Has a copy of a loop along the row, which runs by itself, bring in what the next step begins with instead of what
  /// the loop did for its own instance; false if it is no such loop, or the first to read something itself.
  bool bringBegins(scf::ForOp loop, scf::ForOp placed) {
    std::vector<Window> windows = windowsRead();
    std::optional<int64_t> extent = getConstantIntValue(loop.getUpperBound()),
                           step = getConstantIntValue(loop.getStep());
    bool readsOthers = llvm::any_of(loop.getBody()->getOps<LLVM::LoadOp>(), [&](LLVM::LoadOp load) {
      std::optional<Window> window = windowOf(load);
      return window && llvm::none_of(windows, [&](Window &other) { return other.base() == window->base(); });
    });
    if (stages_[0].parts || readsOthers || !loop.getInductionVar().getType().isIndex() || !extent || !step ||
        *extent < stages_[0].extent() || *step < leastStep)
      return false;
    for (Operation &op : llvm::make_early_inc_range(*placed.getBody()))
      if (onlyBringsIn(op))
        op.erase();
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(placed.getBody());
    for (const Window &window : windows) {
      int64_t begins = awayOf(window, windows.size());
      Value place = b_.create<arith::DivUIOp>(b_.create<arith::MulIOp>(placed.getInductionVar(), constant(begins)),
                                              constant(*extent));
      IRMapping next = nexts_[window.stage];
      next.map(stages_[window.stage].loop.getInductionVar(), place);
      prefetchLines(cloneAddress(window.address(), next), begins * *step / *extent * window.elementBytes, toL2);
    }
    return true;
  }

  /// What a stage reads some steps on: in the same row, and towards its end in that of its next instance.
  void bringAhead(const Window &window, size_t windows, Value counter) {
    Stage &stage = stages_[window.stage];
    Value place = b_.create<arith::AddIOp>(counter, constant(awayOf(window, windows)));
    Value beyond = b_.create<arith::SubIOp>(place, constant(stage.extent()));
    IRMapping same = maps_[window.stage], next = nexts_[window.stage];
    same.map(stage.loop.getInductionVar(), place);
    next.map(stage.loop.getInductionVar(), beyond);
    Value isBeyond = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, beyond, constant(0));
    Value address = b_.create<arith::SelectOp>(isBeyond, cloneAddress(window.address(), next),
                                               cloneAddress(window.address(), same));
    prefetchLines(address, step_ * window.elementBytes, toL1);
  }

  ImplicitLocOpBuilder &b_;
  func::FuncOp instance_;
  MutableArrayRef<Stage> stages_;
  MutableArrayRef<IRMapping> maps_;
  ArrayRef<IRMapping> nexts_;
  SmallVector<size_t> joined_; ///< stages
  llvm::DenseMap<Value, bool> ofInstance_; ///< as far as it was asked
  bool bringsBegins_ = false;  ///< a loop that runs by itself does
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
  SmallVector<Stage> stages = isa.overlapsRows ? stagesOf(instance) : SmallVector<Stage>();
  if (stages.empty() || !chooseJoined(stages))
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
  SmallVector<Value> numbers, conditions; // by lag
  int64_t rows = 1 + llvm::max_element(stages, [](Stage &x, Stage &y) { return x.lag < y.lag; })->lag;
  for (int64_t lag = 0; lag < rows; ++lag) {
    numbers.push_back(b.create<arith::SubIOp>(newest, constant(lag)));
    SmallVector<Value> arguments = {args};
    arguments.append(idsOfExisting(numbers[lag]));
    conditions.push_back(exists(numbers[lag]));
    conditions.push_back(b.create<func::CallOp>(holdsSymbol, b.getI1Type(), arguments).getResult(0));
  }
  auto branch = b.create<scf::IfOp>(all(b, conditions), /*withElseRegion=*/true);
  b.create<func::ReturnOp>();

  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  auto scalarsOf = [&](Value number, Value scratch) {
    return cloneScalars(b, instance, idsOfExisting(number), stages, args, scratch, context);
  };
  SmallVector<IRMapping> ofLags, maps, nexts;
  for (Value number : numbers)
    ofLags.push_back(scalarsOf(number, scratchOf(number)));
  IRMapping following = scalarsOf(b.create<arith::AddIOp>(newest, constant(1)), scratch);
  for (const Stage &stage : stages) {
    maps.push_back(ofLags[stage.lag]);
    nexts.push_back(stage.lag ? ofLags[stage.lag - 1] : following);
  }
  Step(b, instance, stages, maps, nexts).emit();

  b.setInsertionPoint(branch.elseBlock()->getTerminator());
  SmallVector<size_t> order(stages.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t x, size_t y) { return std::pair(-stages[x].lag, x) < std::pair(-stages[y].lag, y); });
  for (size_t stage : order) {
    Value number = numbers[stages[stage].lag];
    auto alone = b.create<scf::IfOp>(exists(number));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(alone.thenBlock()->getTerminator());
    SmallVector<Value> arguments = {args};
    arguments.append(idsOf(b, kernel, number, extents));
    arguments.append({scratchOf(number), context, constant(static_cast<int64_t>(stage))});
    b.create<func::CallOp>("instance", TypeRange{}, arguments);
  }

  chooseStages(b, instance, stages);
  return Overlap{rows, copies};
}

} // namespace tenon::cpu
