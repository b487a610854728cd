// SPDX-License-Identifier: Apache-2.0
//
// Tile IR to a plan: 1. mark what the kernel's effects depend on, 2. walk the rest away, 3. write down each op that is
// left as a step, with its integers in the table.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/model/PlanStructure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::model {
namespace {

using Scalar = PlanStructure::Scalar;
using Step = PlanStructure::Step;

bool hasEffect(Operation *op) {
  return isa<tile::StoreOp, tile::ScatterOp, tile::AtomicRMWOp, tile::AtomicCASOp, tile::PrintOp, tile::AssertOp,
             tile::GridOp, tile::RequireOp, tile::WorkspaceOp>(op);
}

/// The ops that the kernel's effects depend on.
llvm::DenseSet<Operation *> findLive(func::FuncOp kernel) {
  llvm::DenseSet<Operation *> live;
  SmallVector<Operation *> todo;
  auto mark = [&](Operation *op) {
    if (op && op != kernel && live.insert(op).second)
      todo.push_back(op);
  };
  kernel.walk([&](Operation *op) {
    if (hasEffect(op))
      mark(op);
  });
  while (!todo.empty()) {
    Operation *op = todo.pop_back_val();
    mark(op->getParentOp());
    if (isa<scf::ForOp, scf::IfOp>(op))
      for (Region &region : op->getRegions())
        for (Block &block : region)
          mark(block.getTerminator());
    for (Value operand : op->getOperands())
      mark(operand.getDefiningOp() ? operand.getDefiningOp() : cast<BlockArgument>(operand).getOwner()->getParentOp());
  }
  return live;
}

Precision precisionOf(Type type, bool allowTf32 = false) {
  Type element = getElementTypeOrSelf(type);
  if (element.isF64())
    return Precision::f64;
  if (element.isF32())
    return allowTf32 ? Precision::tf32 : Precision::f32;
  if (element.isF16())
    return Precision::f16;
  if (element.isBF16())
    return Precision::bf16;
  if (isa<FloatType>(element))
    return Precision::f8;
  return element.isInteger(8) ? Precision::i8 : Precision::other;
}

PlanStructure::Effort effortOf(Operation *op) {
  PlanStructure::Effort effort;
  effort.precision = precisionOf(op->getResult(0).getType());
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
          arith::MaxNumFOp, arith::MinNumFOp, math::CeilOp, math::FloorOp, math::TruncOp, math::RoundOp,
          math::RoundEvenOp>(op))
    effort.vector = 1;
  else if (isa<math::AbsFOp, math::CopySignOp>(op)) // a bit
    effort.integer = 1;
  else if (isa<math::FmaOp>(op))
    effort.vector = 2;
  else if (isa<arith::DivFOp, arith::RemFOp>(op) || (isa<math::MathDialect>(op->getDialect()) && isFloat))
    effort.special = 1;
  else if (isa<tile::PhiloxOp>(op)) // ten rounds of two wide products and four exclusive ors
    effort.integer = 100;
  else if (auto bits = dyn_cast<tile::RandomBitsOp>(op))
    effort.integer = 10.0 * bits.getRounds() / (bits.areHalves() ? 8 : 4); // neighbours share one, in a GPU's thread
  else
    effort.integer = 1;
  return effort;
}

/// Of a combine region, applied once.
PlanStructure::Effort effortOf(Region &region) {
  PlanStructure::Effort sum;
  for (Operation &op : region.front().without_terminator()) {
    if (isa<arith::ConstantOp>(op) || op.getNumResults() == 0)
      continue;
    PlanStructure::Effort one = effortOf(&op);
    if (one.precision != Precision::other || sum.precision == Precision::other)
      sum.precision = one.precision;
    sum.vector += one.vector;
    sum.special += one.special;
    sum.integer += one.integer;
  }
  return sum;
}

unsigned bytesOf(Type element) {
  return element.isIndex() ? 8 : std::max(1u, element.getIntOrFloatBitWidth() / 8);
}

uint8_t bitsOf(Type scalar) {
  return static_cast<uint8_t>(scalar.isIndex() ? 64 : scalar.getIntOrFloatBitWidth());
}

bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

} // namespace

class PlanBuilder {
public:
  explicit PlanBuilder(func::FuncOp kernel) : live_(findLive(kernel)) {
    bindArguments(kernel);
    build(kernel.getBody().front(), plan_.top);
    plan_.steps = order_;
  }

  CountPlan take() {
    CountPlan plan;
    plan.structure_ = std::make_shared<const PlanStructure>(std::move(plan_));
    plan.constants_ = std::move(constants_);
    return plan;
  }

private:
  //===--- Values -------------------------------------------------------------------------------------------------===//

  uint32_t constant(int64_t value) {
    constants_.push_back(value);
    return static_cast<uint32_t>(constants_.size() - 1);
  }
  /// A scalar of this kind has scalars as operands.
  static bool isComputed(Scalar::Kind kind) {
    return kind > Scalar::Kind::counter && kind != Scalar::Kind::unknown;
  }
  uint32_t add(Scalar scalar) {
    bool isFixed = scalar.kind != Scalar::Kind::gridId && scalar.kind != Scalar::Kind::counter;
    if (isComputed(scalar.kind))
      for (uint32_t operand : {scalar.a, scalar.b, scalar.c})
        isFixed &= plan_.isFixed[operand];
    plan_.isFixed.push_back(isFixed);
    plan_.scalars.push_back(scalar);
    return static_cast<uint32_t>(plan_.scalars.size() - 1);
  }
  /// A scalar that is computed here.
  uint32_t emit(Scalar scalar) {
    uint32_t number = add(scalar);
    if (!plan_.isFixed[number])
      block_->scalars.push_back(number);
    return number;
  }
  uint32_t scalarOf(Value value) {
    auto found = scalars_.find(value);
    return found == scalars_.end() ? unknown_ : found->second;
  }

  uint32_t newTile(Value value, bool occupies) {
    auto type = cast<RankedTensorType>(value.getType());
    PlanStructure::Tile tile;
    tile.rank = static_cast<uint8_t>(type.getRank());
    tile.bytes = static_cast<uint8_t>(bytesOf(type.getElementType()));
    tile.occupies = occupies;
    tile.shape = static_cast<uint32_t>(constants_.size());
    for (int64_t size : type.getShape())
      constant(size);
    tile.born = tile.dies = order_;
    plan_.tiles.push_back(tile);
    bornInLoop_.push_back(loopEnds_.size());
    uint32_t number = static_cast<uint32_t>(plan_.tiles.size() - 1);
    tiles_[value] = number;
    return number;
  }
  uint32_t use(Value value) {
    uint32_t number = tiles_.at(value);
    PlanStructure::Tile &tile = plan_.tiles[number];
    tile.dies = std::max(tile.dies, order_);
    // A tile from outside a loop is needed until the loop's last iteration.
    if (bornInLoop_[number] < loopEnds_.size())
      loopEnds_[bornInLoop_[number]].push_back(number);
    return number;
  }

  uint32_t place(Location where) {
    auto loc = dyn_cast<FileLineColLoc>(where);
    plan_.places.push_back(loc ? loc.getFilename().str() + ":" + std::to_string(loc.getLine()) + ": " : "");
    return static_cast<uint32_t>(plan_.places.size() - 1);
  }

  void bindArguments(func::FuncOp kernel) {
    unknown_ = add({});
    for (BlockArgument argument : kernel.getArguments()) {
      auto view = dyn_cast<tile::ViewType>(argument.getType());
      if (!view) {
        Type type = argument.getType();
        if (type.isIntOrIndex())
          scalars_[argument] = add({Scalar::Kind::word, bitsOf(type), plan_.words});
        ++plan_.words;
        continue;
      }
      PlanStructure::View described;
      auto name = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(), tile::argumentNameAttr);
      described.name = name ? name.str() : "argument " + std::to_string(argument.getArgNumber());
      described.argument = static_cast<int>(argument.getArgNumber());
      described.elementBytes = bytesOf(view.getElementType());
      described.rank = view.getRank();
      for (unsigned d = 0; d < view.getRank(); ++d)
        described.sizes[d] = add({Scalar::Kind::word, 64, plan_.words + 1 + d});
      described.strides = plan_.words + 1 + view.getRank();
      described.hasStrides = true;
      plan_.words += 1 + 2 * view.getRank();
      views_[argument] = static_cast<int>(plan_.views.size());
      plan_.views.push_back(std::move(described));
    }
  }

  //===--- Steps --------------------------------------------------------------------------------------------------===//

  void build(Block &block, PlanStructure::Block &into) {
    PlanStructure::Block *outer = std::exchange(block_, &into);
    for (Operation &op : block)
      if (live_.contains(&op)) {
        ++order_;
        buildOp(&op);
      }
    deferEfforts(into);
    leaveOutIdle(into);
    block_ = outer;
  }

  /// What owes nothing to memory is whole, whatever the instance.
  void leaveOutIdle(PlanStructure::Block &block) {
    std::erase_if(block.steps, [&](const Step &step) {
      bool onlyShapes = step.kind == Step::Kind::whole || step.kind == Step::Kind::elementwise ||
                        step.kind == Step::Kind::broadcast || step.kind == Step::Kind::reshape ||
                        step.kind == Step::Kind::transpose;
      bool isIdle = step.effort.vector == 0 && step.effort.special == 0 && step.effort.integer == 0;
      return onlyShapes && isIdle && step.deferred.empty() && freeTiles_.contains(static_cast<uint32_t>(step.result));
    });
  }

  /// Moves the effort of tiles that owe nothing to memory to the first op of the block where they meet one that does.
  void deferEfforts(PlanStructure::Block &block) {
    auto isFree = [&](uint32_t tile) { return freeTiles_.contains(tile); };
    for (size_t i = 0; i < block.steps.size(); ++i) {
      if (block.steps[i].kind != Step::Kind::elementwise || !isFree(static_cast<uint32_t>(block.steps[i].result)))
        continue;
      auto tile = static_cast<uint32_t>(block.steps[i].result);
      llvm::DenseSet<uint32_t> made = {tile};
      for (size_t j = i + 1; j < block.steps.size(); ++j) {
        Step &user = block.steps[j];
        if (llvm::none_of(user.operands, [&](uint32_t operand) { return made.contains(operand); }))
          continue;
        bool moves = user.kind == Step::Kind::elementwise || user.kind == Step::Kind::broadcast;
        bool keepsRank = plan_.tiles[user.operands.front()].rank == plan_.tiles[tile].rank;
        if (moves && keepsRank && isFree(static_cast<uint32_t>(user.result))) {
          made.insert(static_cast<uint32_t>(user.result));
        } else if (keepsRank && (user.kind == Step::Kind::elementwise || user.kind == Step::Kind::store)) {
          user.deferred.push_back({tile, block.steps[i].effort});
          block.steps[i].effort = {};
          break;
        }
      }
    }
  }

  void buildOp(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return buildLoop(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return buildBranch(branch);
    if (auto grid = dyn_cast<tile::GridOp>(op)) {
      for (auto [axis, id] : llvm::enumerate(grid.getIds())) {
        plan_.extents.push_back(scalarOf(grid.getExtents()[axis]));
        scalars_[id] = emit({Scalar::Kind::gridId, 0, static_cast<uint32_t>(axis)});
      }
    } else if (auto require = dyn_cast<tile::RequireOp>(op)) {
      plan_.requirements.push_back({scalarOf(require.getCondition()), require.getMessage().str()});
    } else if (auto workspace = dyn_cast<tile::WorkspaceOp>(op)) {
      buildWorkspace(workspace);
    } else if (isa<tile::PrintOp, tile::AssertOp>(op)) {
      for (Value operand : op->getOperands())
        if (isTile(operand))
          use(operand);
    } else if (isa<tile::LoadOp, tile::StoreOp, tile::GatherOp, tile::ScatterOp, tile::AtomicRMWOp, tile::AtomicCASOp>(
                   op)) {
      buildAccess(op);
    } else if (op->getNumResults() > 0 && isTile(op->getResult(0))) {
      buildTileOp(op);
    } else {
      buildScalarOp(op);
    }
  }

  void buildWorkspace(tile::WorkspaceOp op) {
    PlanStructure::View view;
    size_t number = llvm::count_if(plan_.views, [](const auto &other) { return other.argument < 0; });
    view.name = "workspace " + std::to_string(number);
    view.elementBytes = bytesOf(op.getView().getType().getElementType());
    view.rank = op.getView().getType().getRank();
    for (auto [d, size] : llvm::enumerate(op.getSizes()))
      view.sizes[d] = scalarOf(size);
    views_[op.getView()] = static_cast<int>(plan_.views.size());
    plan_.views.push_back(std::move(view));
  }

  void buildAccess(Operation *op) {
    Step step;
    step.place = place(op->getLoc());
    TypeSwitch<Operation *>(op)
        .Case([&](tile::LoadOp load) {
          step.kind = Step::Kind::load;
          step.reads = true;
          step.view = views_.at(load.getView());
          for (Value offset : load.getOffsets())
            step.offsets.push_back(scalarOf(offset));
        })
        .Case([&](tile::StoreOp store) {
          step.kind = Step::Kind::store;
          step.writes = true;
          step.view = views_.at(store.getView());
          for (Value offset : store.getOffsets())
            step.offsets.push_back(scalarOf(offset));
        })
        .Case<tile::GatherOp, tile::ScatterOp, tile::AtomicRMWOp, tile::AtomicCASOp>([&](auto access) {
          step.kind = Step::Kind::indexed;
          step.reads = !isa<tile::ScatterOp>(op);
          step.writes = !isa<tile::GatherOp>(op);
          step.view = views_.at(access.getView());
        });
    if (auto atomic = dyn_cast<tile::AtomicRMWOp>(op)) {
      step.effort.precision = precisionOf(atomic.getValue().getType());
      bool isFloat = isa<FloatType>(atomic.getValue().getType().getElementType());
      (isFloat ? step.effort.vector : step.effort.integer) = 1;
    }
    for (Value operand : op->getOperands())
      if (isTile(operand))
        step.operands.push_back(use(operand));
    if (op->getNumResults() > 0)
      step.result = static_cast<int>(newTile(op->getResult(0), /*occupies=*/true));
    block_->steps.push_back(std::move(step));
  }

  void buildTileOp(Operation *op) {
    Step step;
    step.place = place(op->getLoc());
    bool occupies = false;
    for (Value operand : op->getOperands())
      if (isTile(operand))
        step.operands.push_back(use(operand));
    TypeSwitch<Operation *>(op)
        .Case<arith::ConstantOp, tile::SplatOp, tile::IotaOp>([&](auto) { step.kind = Step::Kind::whole; })
        .Case([&](tile::BroadcastOp) { step.kind = Step::Kind::broadcast; })
        .Case([&](tile::ReshapeOp) { step.kind = Step::Kind::reshape; })
        .Case([&](tile::TransposeOp transpose) {
          step.kind = Step::Kind::transpose;
          for (int64_t dim : transpose.getPermutation())
            step.extra.push_back(static_cast<uint32_t>(dim));
        })
        .Case([&](tile::SliceOp slice) {
          step.kind = Step::Kind::slice;
          for (int64_t offset : slice.getOffsets())
            step.extra.push_back(constant(offset));
        })
        .Case([&](tile::ConcatOp concat) {
          step.kind = Step::Kind::concat;
          step.extra = {static_cast<uint32_t>(concat.getDim())};
        })
        .Case<tile::ReduceOp, tile::ScanOp>([&](auto combine) {
          step.kind = isa<tile::ReduceOp>(op) ? Step::Kind::reduce : Step::Kind::scan;
          step.extra = {static_cast<uint32_t>(combine.getDim())};
          step.effort = effortOf(combine.getCombine());
          occupies = true;
        })
        .Case([&](tile::DotOp dot) {
          step.kind = Step::Kind::dot;
          step.effort.precision = precisionOf(dot.getA().getType(), dot.getAllowTf32());
          step.extra = {step.effort.precision == Precision::f8 && !dot.getFastAccum()};
          occupies = true;
        })
        .Default([&](Operation *) {
          step.kind = Step::Kind::elementwise;
          step.effort = effortOf(op);
          occupies = true;
        });
    bool isFree = llvm::all_of(step.operands, [&](uint32_t operand) { return freeTiles_.contains(operand); });
    // Further results (of a reduction of several tiles, of philox) are like the first; the effort is counted once.
    for (Value result : op->getResults()) {
      step.result = static_cast<int>(newTile(result, occupies));
      if (isFree)
        freeTiles_.insert(static_cast<uint32_t>(step.result));
      block_->steps.push_back(step);
      step.effort.vector = step.effort.special = step.effort.integer = 0;
    }
  }

  void buildScalarOp(Operation *op) {
    if (op->getNumResults() != 1 || op->hasTrait<OpTrait::IsTerminator>())
      return;
    Value result = op->getResult(0);
    if (auto size = dyn_cast<tile::SizeOp>(op)) {
      scalars_[result] = plan_.views[views_.at(size.getView())].sizes[size.getDim()];
      return;
    }
    if (auto cast = dyn_cast<tile::CastOp>(op)) {
      if (result.getType().isIntOrIndex() && cast.getValue().getType().isIntOrIndex())
        scalars_[result] = scalarOf(cast.getValue()); // sizes fit the types that they are cast to
      return;
    }
    if (auto number = dyn_cast<arith::ConstantOp>(op)) {
      if (auto integer = dyn_cast<IntegerAttr>(number.getValue()))
        scalars_[result] = emit({Scalar::Kind::constant, 0,
                                 constant(integer.getType().isInteger(1) ? integer.getValue().getZExtValue()
                                                                         : integer.getValue().getSExtValue())});
      return;
    }
    if (Scalar scalar = integerOp(op); scalar.kind != Scalar::Kind::unknown)
      scalars_[result] = emit(scalar);
  }

  Scalar integerOp(Operation *op) {
    using Kind = Scalar::Kind;
    auto binary = [&](Kind kind, uint8_t detail = 0) {
      return Scalar{kind, detail, scalarOf(op->getOperand(0)), scalarOf(op->getOperand(1))};
    };
    auto rounded = [&](Rounding rounding) { return binary(Kind::divide, static_cast<uint8_t>(rounding)); };
    auto bits = [&](Bitwise bitwise) { return binary(Kind::bits, static_cast<uint8_t>(bitwise)); };
    return TypeSwitch<Operation *, Scalar>(op)
        .Case([&](arith::AddIOp) { return binary(Kind::add); })
        .Case([&](arith::SubIOp) { return binary(Kind::subtract); })
        .Case([&](arith::MulIOp) { return binary(Kind::multiply); })
        .Case<tile::DivOp, arith::DivSIOp, arith::DivUIOp>([&](auto) { return rounded(Rounding::towardsZero); })
        .Case([&](arith::FloorDivSIOp) { return rounded(Rounding::down); })
        .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>([&](auto) { return rounded(Rounding::up); })
        .Case<tile::RemOp, arith::RemSIOp, arith::RemUIOp>([&](auto) { return binary(Kind::remainder); })
        .Case<arith::MinSIOp, arith::MinUIOp>([&](auto) { return binary(Kind::min); })
        .Case<arith::MaxSIOp, arith::MaxUIOp>([&](auto) { return binary(Kind::max); })
        .Case([&](tile::ShlOp) { return binary(Kind::shiftLeft); })
        .Case([&](tile::ShrOp) { return binary(Kind::shiftRight); })
        .Case([&](arith::AndIOp) { return bits(Bitwise::bitAnd); })
        .Case([&](arith::OrIOp) { return bits(Bitwise::bitOr); })
        .Case([&](arith::XOrIOp) { return bits(Bitwise::bitXor); })
        .Case([&](arith::SelectOp) {
          return Scalar{Kind::select, 0, scalarOf(op->getOperand(0)), scalarOf(op->getOperand(1)),
                        scalarOf(op->getOperand(2))};
        })
        .Case([&](arith::CmpIOp compare) {
          using enum arith::CmpIPredicate;
          auto as = [&](Compare how) { return binary(Kind::compare, static_cast<uint8_t>(how)); };
          switch (compare.getPredicate()) {
          case eq: return as(Compare::equal);
          case ne: return as(Compare::notEqual);
          case slt: case ult: return as(Compare::less);
          case sle: case ule: return as(Compare::lessEqual);
          case sgt: case ugt: return as(Compare::greater);
          case sge: case uge: return as(Compare::greaterEqual);
          }
          return Scalar{};
        })
        .Default([](Operation *) { return Scalar{}; });
  }

  //===--- Regions ------------------------------------------------------------------------------------------------===//

  /// An integer that every iteration changes by the same amount: known from the number of the iteration.
  void bindCounter(scf::ForOp loop, unsigned index, uint32_t counter) {
    BlockArgument argument = loop.getRegionIterArg(index);
    auto step = loop.getBody()->getTerminator()->getOperand(index).getDefiningOp<arith::AddIOp>();
    if (!step || !argument.getType().isIntOrIndex())
      return;
    Value change = step.getLhs() == argument ? step.getRhs() : step.getRhs() == argument ? step.getLhs() : Value();
    if (!change)
      return;
    uint32_t amount = unknown_;
    if (loop.isDefinedOutsideOfLoop(change))
      amount = scalarOf(change);
    else if (auto number = change.getDefiningOp<arith::ConstantOp>())
      amount = emit({Scalar::Kind::constant, 0, constant(cast<IntegerAttr>(number.getValue()).getInt())});
    uint32_t moved = emit({Scalar::Kind::multiply, 0, counter, amount});
    scalars_[argument] = emit({Scalar::Kind::add, 0, scalarOf(loop.getInitArgs()[index]), moved});
  }

  void buildLoop(scf::ForOp op) {
    PlanStructure::Loop loop;
    loop.lower = scalarOf(op.getLowerBound());
    loop.upper = scalarOf(op.getUpperBound());
    loop.step = scalarOf(op.getStep());
    loop.place = place(op.getLoc());
    loop.variable = std::min(plan_.variables, PlanStructure::maxVariables - 1); // more loops share the last bit
    plan_.variables = loop.variable + 1;
    op.getBody()->walk([&](Operation *inner) {
      // The innermost: the dot stands in this loop itself.
      loop.aroundDot |= isa<tile::DotOp>(inner) && inner->getParentOfType<scf::ForOp>() == op;
    });
    for (auto [index, init] : llvm::enumerate(op.getInitArgs()))
      if (isTile(init))
        loop.carried.push_back({use(init), 0, 0, 0});

    loop.first = order_ + 1;
    loopEnds_.emplace_back();
    PlanStructure::Block *outer = std::exchange(block_, &loop.body);
    uint32_t counter = emit({Scalar::Kind::counter, 0, loop.variable});
    uint32_t moved = emit({Scalar::Kind::multiply, 0, counter, loop.step});
    scalars_[op.getInductionVar()] = emit({Scalar::Kind::add, 0, loop.lower, moved});
    size_t carried = 0;
    for (auto [index, argument] : llvm::enumerate(op.getRegionIterArgs())) {
      if (isTile(argument))
        loop.carried[carried++].argument = newTile(argument, /*occupies=*/true);
      else
        bindCounter(op, static_cast<unsigned>(index), counter);
    }
    build(*op.getBody(), loop.body);
    loop.last = ++order_;
    carried = 0;
    for (Value yielded : op.getBody()->getTerminator()->getOperands())
      if (isTile(yielded))
        loop.carried[carried++].yielded = use(yielded);
    block_ = outer;
    for (uint32_t number : loopEnds_.back())
      plan_.tiles[number].dies = std::max(plan_.tiles[number].dies, order_);
    for (const PlanStructure::Carried &one : loop.carried) // the next iteration reads it
      plan_.tiles[one.argument].dies = order_;
    loopEnds_.pop_back();
    ++order_; // the last iteration's tiles become the results, not others beside them
    carried = 0;
    for (Value result : op.getResults())
      if (isTile(result))
        loop.carried[carried++].result = newTile(result, /*occupies=*/true);
    Step step;
    step.kind = Step::Kind::loop;
    step.extra = {static_cast<uint32_t>(plan_.loops.size())};
    block_->loops.push_back(step.extra[0]);
    plan_.loops.push_back(std::move(loop));
    block_->steps.push_back(std::move(step));
  }

  void buildBranch(scf::IfOp op) {
    PlanStructure::Branch branch;
    branch.condition = scalarOf(op.getCondition());
    branch.place = place(op.getLoc());
    build(op.getThenRegion().front(), branch.yes);
    if (!op.getElseRegion().empty())
      build(op.getElseRegion().front(), branch.no);
    for (auto [index, result] : llvm::enumerate(op.getResults()))
      if (isTile(result)) {
        uint32_t yes = use(op.thenYield().getOperand(index)), no = use(op.elseYield().getOperand(index));
        branch.choices.push_back({yes, no, 0});
      }
    ++order_;
    size_t next = 0;
    for (Value result : op.getResults())
      if (isTile(result)) {
        branch.choices[next++].result = newTile(result, /*occupies=*/true);
      }
    Step step;
    step.kind = Step::Kind::branch;
    step.extra = {static_cast<uint32_t>(plan_.branches.size())};
    plan_.branches.push_back(std::move(branch));
    block_->steps.push_back(std::move(step));
  }

  llvm::DenseSet<Operation *> live_;
  PlanStructure plan_;
  std::vector<int64_t> constants_;
  PlanStructure::Block *block_ = nullptr;
  uint32_t unknown_ = 0, order_ = 0;
  llvm::DenseMap<Value, uint32_t> scalars_, tiles_;
  llvm::DenseMap<Value, int> views_;
  llvm::DenseSet<uint32_t> freeTiles_; ///< that owe nothing to memory
  std::vector<size_t> bornInLoop_;              ///< per tile: how many loops are around it
  std::vector<std::vector<uint32_t>> loopEnds_; ///< per open loop: tiles that live until its end
};

CountPlan CountPlan::fromTileIr(func::FuncOp kernel) { return PlanBuilder(kernel).take(); }

} // namespace tenon::model
