// SPDX-License-Identifier: Apache-2.0
//
// The frame of a program: arguments, grid, blocks, loops, branches, scalars.
#include "ProgramGenerator.h"

#include "Launch.h"

#include <limits>

using namespace mlir;

namespace tenon::fuzz {

OwningOpRef<ModuleOp> generateProgram(MLIRContext &context, uint64_t seed) {
  return ProgramGenerator(context, seed).run();
}

ProgramGenerator::ProgramGenerator(MLIRContext &context, uint64_t seed)
    : context_(context), seed_(seed), random_(seed), b_(UnknownLoc::get(&context), &context) {
  tile::loadTileDialects(context);
}

OwningOpRef<ModuleOp> ProgramGenerator::run() {
  module_ = ModuleOp::create(b_.getLoc());
  b_.setInsertionPointToEnd(module_->getBody());
  kernel_ = b_.create<func::FuncOp>("kernel", b_.getFunctionType({}, {}));
  kernel_->setAttr(seedAttr, b_.getI64IntegerAttr(static_cast<int64_t>(seed_ >> 1)));
  Block *entry = kernel_.addEntryBlock();
  b_.setInsertionPointToEnd(entry);
  chooseSizes();
  makeArguments();
  makeGrid();
  if (random_.chance(10))
    makeWorkspace();
  int count = random_.chance(70) ? random_.range(2, 8) : random_.range(8, 20);
  statements(count);
  storeLeftovers();
  b_.create<func::ReturnOp>();
  return std::move(module_);
}

void ProgramGenerator::chooseSizes() {
  Type all[] = {b_.getF32Type(),  b_.getF64Type(),  b_.getF16Type(),        b_.getBF16Type(),
                b_.getI32Type(),  b_.getI64Type(),  b_.getI16Type(),        b_.getI8Type(),
                b_.getI1Type(),   b_.getFloat8E4M3FNType(), b_.getFloat8E5M2Type()};
  elements_.push_back(random_.chance(60) ? b_.getF32Type() : random_.pick(all));
  for (int i = random_.range(1, 2); i > 0; --i)
    elements_.push_back(random_.pick(all));
  for (int i = 0; i < 3; ++i)
    extents_.push_back(random_.pick({1, 2, 3, 4, 7, 8, 16, 17, 32, 33, 64, 100}));
  budget_ = random_.chance(90) ? 60'000 : 400'000;
  if (random_.chance(65)) {
    axes_ = random_.pick({1, 1, 2, 3});
    for (int axis = 0; axis < axes_; ++axis)
      grid_[axis] = axes_ == 1 ? random_.range(2, 7) : random_.range(1, 3);
    if (random_.chance(1))
      grid_[0] = 0;
  } else {
    axes_ = random_.pick({1, 2, 3});
  }
  instances_ = grid_[0] * grid_[1] * grid_[2];
}

//===--- Arguments ------------------------------------------------------------------------------------------------===//

ProgramGenerator::Shape ProgramGenerator::makeStrides(const Shape &sizes, bool written) {
  Shape strides(sizes.size()), order;
  for (size_t d = sizes.size(); d-- > 0;)
    order.push_back(d); // innermost first
  if (random_.chance(25))
    for (size_t d = order.size(); d-- > 1;)
      std::swap(order[d], order[random_.range(0, d)]);
  int64_t next = random_.chance(80) ? 1 : random_.range(2, 3);
  for (int64_t d : order) {
    strides[d] = next;
    next = next * std::max<int64_t>(sizes[d], 1) + (random_.chance(30) ? random_.range(1, 5) : 0);
    if (random_.chance(5))
      strides[d] = -strides[d];
    else if (!written && random_.chance(4))
      strides[d] = random_.range(0, 1); // one element, or windows, seen many times
  }
  return strides;
}

void ProgramGenerator::makeView(Role role) {
  View view;
  view.role = role;
  view.element = anyElement();
  int64_t rank = random_.pick({1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 5});
  bool written = role == Role::output;
  if (role == Role::atomic) {
    view.element = random_.pick({Type(b_.getI32Type()), Type(b_.getI64Type()), Type(b_.getI32Type()),
                                 Type(b_.getF32Type()), Type(b_.getF64Type())});
    view.kind = random_.pick({tile::AtomicKind::add, tile::AtomicKind::max, tile::AtomicKind::min});
    if (instances_ == 1 && random_.chance(20))
      view.kind = tile::AtomicKind::exchange;
    view.isUnsigned = random_.chance(30) && view.element.isIntOrIndex();
    written = true;
    rank = random_.range(1, 2);
  }
  for (int64_t d = 0; d < rank; ++d) {
    int64_t extent = random_.chance(75) ? anyExtent() : random_.range(1, 40);
    if (rank > 3)
      extent = std::min<int64_t>(extent, random_.range(1, 8));
    view.sizes.push_back(std::max<int64_t>(random_.chance(2) ? 0 : 1, extent + random_.pick({0, 0, 0, 1, -1, 3, 9})));
  }
  std::string fill = random_.pick({"ints", "unit", "unit", "any"});
  if (role == Role::output) {
    view.ownDim = random_.range(0, rank - 1);
    view.ownRows = rank == 1 ? std::max<int64_t>(anyExtent(), 2) : random_.pick<int64_t>({1, 1, 2, 3, anyExtent()});
    view.sizes[view.ownDim] =
        std::max<int64_t>(1, view.ownRows * std::max<int64_t>(instances_, 1) + random_.pick({0, 0, 0, -1, 2, -3}));
  }
  if (role == Role::atomic)
    fill = view.kind == tile::AtomicKind::add ? "ints" : "unit";
  view.isExact = fill == "ints" && role == Role::input;
  while (true) { // not more memory than needed: programs should be quick
    int64_t elements = 1;
    for (int64_t size : view.sizes)
      elements *= std::max<int64_t>(size, 1);
    if (elements <= 20'000)
      break;
    int64_t d = random_.range(0, rank - 1);
    if (role != Role::output || d != view.ownDim)
      view.sizes[d] = (view.sizes[d] + 1) / 2;
    else if (view.ownRows > 1 && view.sizes[d] > 64)
      view.ownRows = 1, view.sizes[d] = std::max<int64_t>(1, instances_);
  }
  unsigned number = kernel_.getNumArguments();
  auto type = tile::ViewType::get(&context_, rank, view.element);
  Shape strides = makeStrides(view.sizes, written);
  SmallVector<NamedAttribute> attributes;
  auto add = [&](StringRef name, Attribute value) { attributes.push_back(b_.getNamedAttr(name, value)); };
  // Two outputs over the same memory: the second possibly cut off at the front of a dimension that is not its own.
  View *other = nullptr;
  int otherNumber = 0;
  if (role == Role::output && random_.chance(20))
    for (auto [i, candidate] : llvm::enumerate(views_))
      if (candidate.role == Role::output)
        other = &candidate, otherNumber = i;
  if (other) {
    auto shared = llvm::cast<DenseI64ArrayAttr>(kernel_.getArgAttr(otherNumber, stridesAttr)).asArrayRef();
    strides.assign(shared.begin(), shared.end());
    view.element = other->element;
    view.sizes = other->sizes;
    view.ownDim = other->ownDim;
    view.ownRows = other->ownRows;
    type = llvm::cast<tile::ViewType>(other->value.getType());
    int64_t shift = 0, d = random_.range(0, view.rank() - 1);
    if (d != view.ownDim && view.sizes[d] > 1 && random_.chance(60)) {
      int64_t by = random_.range(1, std::min<int64_t>(view.sizes[d] - 1, 3));
      view.sizes[d] -= by;
      shift = by * strides[d];
    }
    // A shared view may itself share: name the owner of the memory, and add up the shifts.
    auto before = llvm::dyn_cast_if_present<IntegerAttr>(kernel_.getArgAttr(otherNumber, shiftAttr));
    auto owner = llvm::dyn_cast_if_present<IntegerAttr>(kernel_.getArgAttr(otherNumber, sharesAttr));
    add(sharesAttr, b_.getI64IntegerAttr(owner ? owner.getInt() : otherNumber));
    add(shiftAttr, b_.getI64IntegerAttr(shift + (before ? before.getInt() : 0)));
  }
  add(sizesAttr, b_.getDenseI64ArrayAttr(view.sizes));
  add(stridesAttr, b_.getDenseI64ArrayAttr(strides));
  add(fillAttr, b_.getStringAttr(fill));
  for (size_t d = strides.size(); d-- > 0;)
    if (strides[d] == 1) {
      if (random_.chance(80))
        add(tile::unitStrideAttr, b_.getI64IntegerAttr(d));
      break;
    }
  kernel_.insertArgument(number, type, b_.getDictionaryAttr(attributes), b_.getLoc());
  view.value = kernel_.getArgument(number);
  views_.push_back(view);
}

void ProgramGenerator::makeArguments() {
  int inputs = random_.pick({1, 1, 1, 2, 2, 3}), outputs = random_.pick({1, 1, 2, 2});
  for (int i = 0; i < inputs; ++i)
    makeView(Role::input);
  for (int i = 0; i < outputs; ++i)
    makeView(Role::output);
  if (random_.chance(20))
    makeView(Role::atomic);
  auto scalar = [&](Type type, int64_t word) {
    unsigned number = kernel_.getNumArguments();
    kernel_.insertArgument(number, type, b_.getDictionaryAttr(b_.getNamedAttr(wordAttr, b_.getI64IntegerAttr(word))),
                           b_.getLoc());
    (type.isIndex() ? pool_.indices : pool_.scalars).push_back(kernel_.getArgument(number));
  };
  if (random_.chance(40))
    scalar(b_.getIndexType(), random_.pick<int64_t>({0, 1, 2, 5, -1, 100, int64_t(1) << 33}));
  if (random_.chance(30))
    scalar(b_.getF64Type(), llvm::bit_cast<int64_t>(random_.pick({0.5, -1.0, 3.0, 1e10, 0.1})));
}

Value ProgramGenerator::extentValue(int64_t extent) {
  // The same number, found in different ways.
  for (const View &view : views_)
    for (int64_t d = 0; d < view.rank(); ++d) {
      if (view.sizes[d] <= 0 || !random_.chance(15))
        continue;
      Value size = b_.create<tile::SizeOp>(view.value, d);
      if (view.sizes[d] == extent)
        return size;
      for (int64_t by = 2; extent > 0 && by <= view.sizes[d]; ++by)
        if ((view.sizes[d] + by - 1) / by == extent)
          return b_.create<tile::DivOp>(b_.create<arith::AddIOp>(size, constant(by - 1)), constant(by),
                                        random_.chance(50));
    }
  for (Value argument : pool_.indices)
    if (auto word = kernel_.getArgAttrOfType<IntegerAttr>(llvm::cast<BlockArgument>(argument).getArgNumber(), wordAttr);
        word.getInt() == extent)
      return argument;
  return constant(extent);
}

void ProgramGenerator::makeGrid() {
  SmallVector<Value> extents;
  for (int axis = 0; axis < axes_; ++axis)
    extents.push_back(extentValue(grid_[axis]));
  if (random_.chance(5)) {
    Value holds = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, extents[0], constant(0));
    b_.create<tile::RequireOp>(holds, "a grid that is not negative");
  }
  auto grid = b_.create<tile::GridOp>(extents);
  for (int axis = axes_; axis-- > 0;) {
    Value id = grid.getIds()[axis];
    pool_.indices.push_back(id);
    instance_ = instance_ ? b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(instance_, extents[axis]), id).getResult()
                          : id;
  }
  pool_.indices.push_back(constant(0));
  pool_.indices.push_back(constant(random_.range(1, 9)));
}

void ProgramGenerator::makeWorkspace() {
  View view;
  view.role = Role::output;
  view.element = anyElement();
  int64_t rank = random_.range(1, 3);
  SmallVector<Value> sizes;
  for (int64_t d = 0; d < rank; ++d)
    view.sizes.push_back(anyExtent());
  view.ownDim = random_.range(0, rank - 1);
  view.ownRows = random_.range(1, 8);
  view.sizes[view.ownDim] = view.ownRows * std::max<int64_t>(instances_, 1);
  for (int64_t d = 0; d < rank; ++d)
    sizes.push_back(constant(view.sizes[d]));
  view.value = b_.create<tile::WorkspaceOp>(tile::ViewType::get(&context_, rank, view.element), sizes);
  views_.push_back(view);
}

//===--- Statements -----------------------------------------------------------------------------------------------===//

void ProgramGenerator::statements(int count) {
  for (int i = 0; i < count; ++i)
    statement();
}

void ProgramGenerator::statement() {
  using Member = void (ProgramGenerator::*)();
  static constexpr std::pair<int, Member> kinds[] = {
      {22, &ProgramGenerator::elementwise}, {7, &ProgramGenerator::compareSelect}, {14, &ProgramGenerator::movement},
      {3, &ProgramGenerator::concat},       {9, &ProgramGenerator::reduce},        {4, &ProgramGenerator::scan},
      {4, &ProgramGenerator::dot},          {2, &ProgramGenerator::philox},        {9, &ProgramGenerator::store},
      {3, &ProgramGenerator::gather},       {3, &ProgramGenerator::scatter},       {4, &ProgramGenerator::atomic},
      {5, &ProgramGenerator::forLoop},      {2, &ProgramGenerator::accumulationLoop}, {4, &ProgramGenerator::branch},
      {1, &ProgramGenerator::assertion},    {12, &ProgramGenerator::loadStatement},
      {4, &ProgramGenerator::scalarStatement}, {6, &ProgramGenerator::windingLoop},
      {2, &ProgramGenerator::reduceBothWays},  {2, &ProgramGenerator::chain},
  };
  // A program that has everything has little of anything: each one likes some kinds and leaves out others.
  if (likes_.empty())
    for (size_t i = 0; i < std::size(kinds); ++i)
      likes_.push_back(random_.pick({0, 1, 1, 1, 5}));
  int total = 0;
  for (auto [like, kind] : llvm::zip(likes_, kinds))
    total += like * kind.first;
  int at = random_.range(0, std::max(total - 1, 0));
  for (auto [like, kind] : llvm::zip(likes_, kinds))
    if ((at -= like * kind.first) < 0)
      return (this->*kind.second)();
}

void ProgramGenerator::loadStatement() { load(); }

void ProgramGenerator::scalarStatement() {
  if (random_.chance(50))
    pool_.indices.push_back(indexArithmetic());
  else
    pool_.scalars.push_back(scalarFromTile(Type()));
}

SmallVector<Value> ProgramGenerator::carriedValues() {
  SmallVector<Value> values;
  for (int i = random_.range(1, 3); i > 0; --i) {
    if (random_.chance(75))
      values.push_back(anyTile());
    else if (random_.chance(50))
      values.push_back(anyIndex());
    else if (!pool_.scalars.empty())
      values.push_back(random_.pick(pool_.scalars));
  }
  if (!values.empty() && random_.chance(20)) // one value carried twice
    values.push_back(values.front());
  return values;
}

SmallVector<Value> ProgramGenerator::nextValues(ValueRange carried) {
  SmallVector<Value> values;
  for (Value value : carried) {
    Type type = value.getType();
    if (auto tensor = llvm::dyn_cast<RankedTensorType>(type)) {
      Value same;
      for (Value other : carried) // traded with another, or unchanged
        if (other.getType() == type && random_.chance(15))
          same = other;
      values.push_back(same ? same : tileOf(tensor.getShape(), tensor.getElementType()));
    } else if (type.isIndex()) {
      values.push_back(anyIndex());
    } else {
      values.push_back(scalarOf(type));
    }
  }
  return values;
}

void ProgramGenerator::forLoop() {
  if (depth_ >= 2)
    return;
  SmallVector<Value> inits = random_.chance(85) ? carriedValues() : SmallVector<Value>();
  int64_t trips = random_.pick({0, 1, 1, 2, 2, 3, 4}), step = random_.pick({1, 1, 2, 7});
  int64_t lower = random_.pick({0, 0, -3, 5});
  Value from = constant(lower), to = constant(lower + trips * step - (trips > 0 ? random_.range(0, step - 1) : 0));
  if (random_.chance(20))
    to = b_.create<arith::AddIOp>(from, smallIndex(4));
  auto loop = b_.create<scf::ForOp>(from, to, constant(step), inits);
  Pool saved = pool_;
  ++depth_;
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    pool_.indices.push_back(loop.getInductionVar());
    for (Value argument : loop.getRegionIterArgs()) {
      auto &list = llvm::isa<RankedTensorType>(argument.getType()) ? pool_.tiles
                   : argument.getType().isIndex()                 ? pool_.indices
                                                                  : pool_.scalars;
      list.push_back(argument);
      if (llvm::isa<RankedTensorType>(argument.getType()))
        list.push_back(argument); // likely to be used
    }
    budget_ -= 2000;
    statements(random_.range(1, 4));
    if (!inits.empty()) {
      b_.setInsertionPointToEnd(loop.getBody());
      b_.create<scf::YieldOp>(nextValues(loop.getRegionIterArgs()));
    }
  }
  --depth_;
  pool_ = std::move(saved);
  for (Value result : loop.getResults()) {
    if (llvm::isa<RankedTensorType>(result.getType()))
      keep(result);
    else
      (result.getType().isIndex() ? pool_.indices : pool_.scalars).push_back(result);
  }
}

/// acc = acc + f(...), or acc = dot(a, b, acc): what most kernels do.
void ProgramGenerator::accumulationLoop() {
  if (depth_ >= 2)
    return;
  bool isDot = random_.chance(60);
  int64_t trips = random_.range(0, 4);
  Type element = isDot ? Type(b_.getF32Type()) : anyArithmeticElement();
  Shape shape = isDot ? Shape{anyExtent(), anyExtent()} : anyShape();
  int64_t inner = std::min<int64_t>(anyExtent(), 33);
  if (isDot)
    shape[0] = std::min<int64_t>(shape[0], 33), shape[1] = std::min<int64_t>(shape[1], 64);
  Type operand = random_.pick({Type(b_.getF32Type()), Type(b_.getF16Type()), Type(b_.getBF16Type())});
  auto zero = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(tileType(shape, element))));
  auto loop = b_.create<scf::ForOp>(constant(0), constant(trips), constant(1), ValueRange{zero});
  Pool saved = pool_;
  ++depth_;
  {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    pool_.indices.push_back(loop.getInductionVar());
    Value acc = loop.getRegionIterArgs()[0], next;
    if (isDot)
      next = dotOf(exactTile({shape[0], inner}, operand, 3), exactTile({inner, shape[1]}, operand, 3), acc, false,
                   false);
    else if (llvm::isa<FloatType>(element))
      next = b_.create<arith::AddFOp>(acc, tileOf(shape, element));
    else
      next = b_.create<arith::AddIOp>(acc, tileOf(shape, element));
    if (random_.chance(30))
      keep(next), store();
    b_.setInsertionPointToEnd(loop.getBody());
    b_.create<scf::YieldOp>(next);
  }
  --depth_;
  pool_ = std::move(saved);
  keep(loop.getResult(0));
}

void ProgramGenerator::branch() {
  if (depth_ >= 2)
    return;
  Value condition = anyCondition();
  SmallVector<Value> like = random_.chance(70) ? carriedValues() : SmallVector<Value>();
  SmallVector<Type> types(ValueRange(like).getTypes());
  bool hasElse = !types.empty() || random_.chance(30);
  auto branch = b_.create<scf::IfOp>(types, condition, hasElse);
  ++depth_;
  for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
    if (region->empty())
      continue;
    Pool saved = pool_;
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(&region->front());
    if (types.empty())
      store();
    statements(random_.range(types.empty() ? 0 : 1, 3));
    if (!types.empty()) {
      b_.setInsertionPointToEnd(&region->front());
      b_.create<scf::YieldOp>(nextValues(like));
    }
    pool_ = std::move(saved);
  }
  --depth_;
  for (Value result : branch.getResults()) {
    if (llvm::isa<RankedTensorType>(result.getType()))
      keep(result);
    else
      (result.getType().isIndex() ? pool_.indices : pool_.scalars).push_back(result);
  }
}

void ProgramGenerator::storeLeftovers() {
  SmallVector<Value> leftovers;
  for (Value tile : pool_.tiles)
    if (tile.use_empty() && !llvm::is_contained(leftovers, tile))
      leftovers.push_back(tile);
  if (leftovers.empty())
    leftovers.push_back(anyTile());
  // Each store costs compile time: the newest ones matter, since they hang on the others.
  size_t count = std::min<size_t>(leftovers.size(), 3);
  for (Value tile : ArrayRef<Value>(leftovers).take_back(count)) {
    std::vector<View *> outputs;
    for (View &view : views_)
      if (view.role == Role::output)
        outputs.push_back(&view);
    storeTo(*random_.pick(outputs), tile);
  }
}

} // namespace tenon::fuzz
