// SPDX-License-Identifier: Apache-2.0
//
// tenon-nvidia-choose-layouts: which thread holds which element of every tile.
//
//   1. Memory decides: a tile shape that is loaded or stored gets the layout in which neighbouring threads move
//      neighbouring vectors of 16 bytes (or as wide as is known to be right), by default.
//   2. A dot decides about its accumulator: the fragments of the matrix instruction.
//   3. The rest follows, in program order. An element-wise op takes the layout of its operands (a dot's before memory's);
//      a reduction's result is its operand's layout with the dimension projected away; a loop-carried tile has its
//      body's; slices and concatenations follow their operands where that takes other registers and no exchange.
//   4. What costs nothing to make again (constants, iota, splats, broadcasts, element-wise ops of only those) has no
//      layout of its own: it is made in each that somebody asks for. So is a load too small to be worth an exchange.
//   5. Where an operand is needed in another layout than it has, nvidia.convert.
//
//     %t = tile.load ... : tensor<1x1024xbf16>        tensor<1x1024xbf16, #memory>
//     %m = tile.reduce %t dim 1 ...             ->    tensor<1x1xbf16, #memory without columns>
//     %d = tile.dot %a, %b, %c : tensor<64x64xf32>    tensor<64x64xf32, #fragments>
//     tile.store %d, ...                              tile.store (nvidia.convert %d : #fragments -> #memory)
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "tenon/compiler/target/nvidia/layout/Fragments.h"
#include "tenon/compiler/target/nvidia/threads/Coalescing.h"
#include "tenon/compiler/target/nvidia/threads/JoinedReductions.h"
#include "tenon/compiler/target/nvidia/threads/Layouts.h"
#include "tenon/compiler/target/nvidia/threads/RegisterOperands.h"
#include "tenon/compiler/target/nvidia/threads/Staging.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }
int64_t elementBytes(Value view) {
  return lower::byteSize(lower::memoryType(llvm::cast<tile::ViewType>(view.getType()).getElementType()));
}
ArrayRef<int64_t> shapeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getShape(); }
int64_t registersOf(LayoutAttr layout) { return int64_t(1) << (layout.getReg().size() / layout.getRank()); }
int64_t elementsOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getNumElements(); }

/// Elements of a tile that each warpgroup may have in whole: two loads of 16 bytes a thread, and little shared memory
/// where they have to change threads.
constexpr int64_t mostForGroups = 512;

/// What is known of a tile value's layout.
struct Choice {
  enum Kind {
    Unknown, ///< a loop-carried tile before its loop was seen
    Free,    ///< made again in any layout at no cost
    Relay,   ///< a broadcast or the like of something that is not free: made again, its operand may need converting
    Fixed,
  } kind = Unknown;
  LayoutAttr layout;
  bool ofDot = false;
};

class Chooser {
public:
  Chooser(func::FuncOp kernel, const LayoutOptions &options) : kernel_(kernel), options_(options) {
    isForGroups_ = options.groupExchange && options.warps > 4 && options.cluster == 1 && hasTransfer(kernel);
  }

  void run() {
    collectMemory();
    forRegisters_ = layoutsForRegisters(kernel_, options_.warps);
    visit(kernel_.getBody().front());
    rewrite();
  }

private:
  //--- 1. What memory wants ---

  struct Wish {
    SmallVector<int64_t> votes; ///< per dimension: how many accesses have it contiguous
    int64_t vector = 1, aligned = 1; ///< neighbours of a thread; those that alignment allows
    int64_t stored = 16;             ///< neighbours that a thread stores at once, of the widest elements
    bool singly = false; ///< some access moves elements one by one: neighbours are then better in neighbouring threads
  };

  void collectMemory() {
    auto note = [&](auto op, Value tile) {
      Value view = op.getView();
      Wish &wish = wishes_[shapeKey(shapeOf(tile))];
      wish.votes.resize(shapeOf(tile).size());
      if (std::optional<int64_t> contiguous = contiguousDim(view)) {
        ++wish.votes[*contiguous];
        int64_t width = widthOf(op, tile);
        int64_t aligned = accessWidth(view, op.getOffsets(), shapeOf(tile), divisibility_).elements;
        // Of the operand that is made of it, of 16 bits mostly, a thread writes 16 bytes at once.
        if (op->hasAttr(readAttr))
          width = aligned = std::min<int64_t>(width, 8);
        int64_t widest = 16 / elementBytes(view);
        if (llvm::isa<tile::StoreOp>(op.getOperation()) && !op->hasAttr(bulkAttr) && width >= widest)
          wish.stored = std::min(wish.stored, widest);
        wish.vector = std::max(wish.vector, width);
        wish.aligned = std::max(wish.aligned, aligned);
        wish.singly |= width == 1;
      }
    };
    kernel_.walk([&](Operation *op) {
      if (auto load = llvm::dyn_cast<tile::LoadOp>(op); load && !load->hasAttr(lateAttr))
        note(load, load);
      if (auto store = llvm::dyn_cast<tile::StoreOp>(op))
        note(store, store.getValue());
    });
  }

  /// How many neighbours a thread should have, for a load or a store.
  template <class Op> int64_t widthOf(Op op, Value tile) {
    int64_t width = accessWidth(op.getView(), op.getOffsets(), shapeOf(tile), divisibility_).elements;
    return prefersUnaligned(op, width) ? *unalignedWidth(op.getView(), shapeOf(tile)) : width;
  }

  static std::vector<int64_t> shapeKey(ArrayRef<int64_t> shape) { return {shape.begin(), shape.end()}; }

  LayoutAttr memoryLayout(ArrayRef<int64_t> shape) {
    LayoutAttr &layout = byShape_[shapeKey(shape)];
    if (layout)
      return layout;
    Wish wish;
    if (auto found = wishes_.find(shapeKey(shape)); found != wishes_.end())
      wish = found->second;
    else
      wish.vector = 4;
    wish.vector = wish.singly ? wish.aligned : std::min(wish.vector, wish.stored);
    wish.votes.resize(shape.size());
    std::vector<unsigned> order;
    for (size_t d = shape.size(); d-- > 0;)
      order.push_back(d);
    llvm::stable_sort(order, [&](unsigned a, unsigned b) { return wish.votes[a] > wish.votes[b]; });
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= llvm::PowerOf2Ceil(size);
    Shape part(shape.begin(), shape.end()); // that so many warps have
    int64_t warps = options_.warps, all = layoutWarps(warps);
    std::optional<unsigned> divided;                 // by the three warpgroups
    if (isForGroups_ && elements <= mostForGroups) { // each warpgroup has it all
      warps = 4;
    } else if (isOfThree(warps)) {
      divided = thirdsOf(shape);
      warps = divided ? 4 : 8; // what has no thirds two have in halves, and the third what the first has
      if (divided)
        part[*divided] /= 3;
    }
    elements = 1;
    for (int64_t size : part)
      elements *= llvm::PowerOf2Ceil(size);
    int64_t perThread = std::max<int64_t>(1, elements / (warps * 32 * options_.cluster));
    LinearLayout chosen = blocked(part, order, std::min(wish.vector, perThread), 32, warps, options_.cluster);
    if (divided)
      chosen = chosen.repeat(Unit::Warp, *divided, all / warps);
    else if (all > warps)
      chosen = chosen * LinearLayout::zeros1D(Unit::Warp, all / warps, shape.size());
    return layout = attribute(chosen);
  }

  LayoutAttr attribute(const LinearLayout &layout) { return toAttribute(kernel_.getContext(), layout); }

  //--- 2. and 3. What follows ---

  Choice fixed(LayoutAttr layout, bool ofDot = false) { return {Choice::Fixed, layout, ofDot}; }
  Choice &choice(Value tile) { return choices_[tile]; }

  /// The layout that the operands agree on best.
  Choice strongest(ValueRange operands) {
    Choice best{Choice::Free, {}, false};
    for (Value operand : operands) {
      if (!isTile(operand))
        continue;
      const Choice &other = choice(operand);
      if (other.kind == Choice::Fixed && (best.kind != Choice::Fixed || (other.ofDot && !best.ofDot)))
        best = other;
      else if (best.kind != Choice::Fixed && other.kind != Choice::Fixed)
        best.kind = other.kind == Choice::Unknown || best.kind == Choice::Unknown ? Choice::Unknown
                    : other.kind == Choice::Relay || best.kind == Choice::Relay   ? Choice::Relay
                                                                                  : Choice::Free;
    }
    return best;
  }

  void visit(Block &block) {
    for (Operation &op : block)
      visit(op);
  }

  void visit(Operation &op) {
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op))
      return visitLoop(loop);
    if (auto branch = llvm::dyn_cast<scf::IfOp>(op))
      return visitBranch(branch);
    if (op.getNumResults() == 0 || !isTile(op.getResult(0)))
      return;
    Value result = op.getResult(0);
    auto own = [&] { return fixed(memoryLayout(shapeOf(result))); };
    Choice chosen =
        llvm::TypeSwitch<Operation *, Choice>(&op)
            .Case<arith::ConstantOp>([&](auto constant) {
              return llvm::cast<DenseElementsAttr>(constant.getValue()).isSplat() ? Choice{Choice::Free, {}} : own();
            })
            .Case<tile::SplatOp, tile::IotaOp>([&](auto) { return Choice{Choice::Free, {}}; })
            .Case<tile::BroadcastOp>([&](auto broadcast) {
              Choice operand = choice(broadcast.getValue());
              return operand.kind == Choice::Fixed ? Choice{Choice::Relay, {}} : operand;
            })
            .Case<tile::ReshapeOp>([&](auto reshape) { return visitReshape(reshape); })
            .Case<tile::TransposeOp>([&](auto transpose) {
              Choice operand = choice(transpose.getValue());
              return operand.kind == Choice::Fixed
                         ? fixed(transposed(operand.layout, transpose.getPermutation()))
                         : operand;
            })
            .Case<tile::ReduceOp>([&](auto reduce) {
              Choice operand = strongest(reduce.getValues());
              if (operand.kind == Choice::Unknown)
                return operand;
              LayoutAttr layout =
                  operand.kind == Choice::Fixed ? operand.layout : memoryLayout(shapeOf(reduce.getValues()[0]));
              operandLayouts_[reduce] = layout;
              return fixed(projected(layout, shapeOf(result)), operand.ofDot);
            })
            .Case<tile::ScanOp>([&](auto scan) { return fixed(scanLayout(shapeOf(result), scan.getDim())); })
            .Case<tile::DotOp>([&](auto dot) { return fixed(dotLayout(dot), /*ofDot=*/true); })
            .Case<tile::GatherOp>([&](auto op) { return visitIndexed(op.getIndices(), op.getMask(), result); })
            .Case<tile::AtomicRMWOp>([&](auto atomic) { return visitIndexed(atomic.getValue(), {}, result); })
            .Case<tile::AtomicCASOp>([&](auto atomic) { return visitIndexed(atomic.getDesired(), {}, result); })
            .Case<tile::LoadOp>([&](auto load) {
              if (LayoutAttr layout = forRegisters_.lookup(load))
                return fixed(layout);
              return load->hasAttr(lateAttr) ? fixed(dotLayout(dotBefore(load)), /*ofDot=*/true) : own();
            })
            .Case<tile::SliceOp>([&](auto slice) {
              Choice operand = choice(slice.getValue());
              auto layout = operand.kind == Choice::Fixed ? sliced(slice, operand.layout) : std::nullopt;
              return operand.kind == Choice::Unknown ? operand : layout ? fixed(*layout, operand.ofDot) : own();
            })
            .Case<tile::ConcatOp>([&](auto concat) {
              Choice part = strongest(concat.getValues());
              auto layout = part.kind == Choice::Fixed ? concatenated(concat, part.layout) : std::nullopt;
              if (layout && !part.ofDot && registersOf(*layout) > 2 * registersOf(memoryLayout(shapeOf(result))))
                layout.reset(); // what many threads have would be with all of them
              operandLayouts_[concat] = layout ? part.layout : LayoutAttr();
              return part.kind == Choice::Unknown ? part : layout ? fixed(*layout, part.ofDot) : own();
            })
            .Default([&](Operation *) { // element-wise
              Choice operand = strongest(op.getOperands());
              return operand.kind == Choice::Relay ? own() : operand;
            });
    for (Value each : op.getResults())
      choice(each) = chosen;
  }

  Choice visitIndexed(ValueRange operands, Value mask, Value result) {
    Choice chosen = strongest(operands);
    if (chosen.kind != Choice::Fixed && mask)
      chosen = strongest(mask);
    if (chosen.kind == Choice::Fixed || chosen.kind == Choice::Unknown)
      return chosen;
    return fixed(memoryLayout(shapeOf(result)));
  }

  Choice visitReshape(tile::ReshapeOp reshape) {
    Choice operand = choice(reshape.getValue());
    ArrayRef<int64_t> from = shapeOf(reshape.getValue()), to = shapeOf(reshape);
    // Any layout tells whether shapes like these can be relabelled.
    if (!reshaped(memoryLayout(from), from, to))
      return fixed(memoryLayout(to));
    if (operand.kind != Choice::Fixed)
      return operand;
    std::optional<LayoutAttr> layout = reshaped(operand.layout, from, to);
    return layout ? fixed(*layout, operand.ofDot) : fixed(memoryLayout(to));
  }

  /// A tile that the body carries gets the layout in which the body gives it back, found by walking the body without
  /// knowing it; then everything inside is walked again.
  void visitLoop(scf::ForOp loop) {
    auto yield = llvm::cast<scf::YieldOp>(loop.getBody()->getTerminator());
    for (BlockArgument argument : loop.getRegionIterArgs())
      if (isTile(argument))
        choice(argument) = Choice{};
    for (int round = 0; round < 2; ++round) {
      visit(*loop.getBody());
      for (auto [argument, next, init, result] :
           llvm::zip(loop.getRegionIterArgs(), yield.getOperands(), loop.getInitArgs(), loop.getResults())) {
        if (!isTile(argument))
          continue;
        Choice given = choice(next);
        if (given.kind != Choice::Fixed)
          given = choice(init);
        if (given.kind != Choice::Fixed)
          given = fixed(memoryLayout(shapeOf(argument)));
        if (round == 0)
          choice(argument) = given;
        choice(result) = choice(argument);
      }
    }
  }

  void visitBranch(scf::IfOp branch) {
    visit(branch.getThenRegion().front());
    if (!branch.getElseRegion().empty())
      visit(branch.getElseRegion().front());
    for (OpResult result : branch.getResults()) {
      if (!isTile(result))
        continue;
      Value then = branch.thenYield().getOperand(result.getResultNumber());
      Value otherwise = branch.elseYield().getOperand(result.getResultNumber());
      Choice chosen = strongest(ValueRange{then, otherwise});
      choice(result) = chosen.kind == Choice::Fixed ? chosen : fixed(memoryLayout(shapeOf(result)));
    }
  }

  /// Along the scanned dimension each thread has one run of neighbours, lanes follow each other, then warps.
  LayoutAttr scanLayout(ArrayRef<int64_t> shape, int64_t dim) {
    std::vector<unsigned> order = {static_cast<unsigned>(dim)};
    for (size_t d = shape.size(); d-- > 0;)
      if (static_cast<int64_t>(d) != dim)
        order.push_back(d);
    int64_t warps = isOfThree(options_.warps) ? 4 : options_.warps; // of three, each warpgroup scans for itself
    int64_t extent = llvm::PowerOf2Ceil(shape[dim]), threads = warps * 32;
    LinearLayout layout = blocked(Shape(shape.begin(), shape.end()), order, std::max<int64_t>(1, extent / threads), 32,
                                  warps, options_.cluster);
    if (int64_t copies = layoutWarps(options_.warps) / warps; copies > 1)
      layout = layout * LinearLayout::zeros1D(Unit::Warp, copies, shape.size());
    return attribute(layout);
  }

  LayoutAttr dotLayout(tile::DotOp dot) {
    if (dot->hasAttr(warpgroupAttr))
      return warpgroupLayout(dot, options_.warps);
    ArrayRef<int64_t> shape = shapeOf(dot);
    // Warps side by side over the rows first: a row then belongs to one warp, and reductions of it need no exchange.
    // Without reductions, squarer parts per warp read fewer operands.
    bool reduces = false;
    kernel_.walk([&](tile::ReduceOp) { reduces = true; });
    int64_t rows = llvm::PowerOf2Ceil(shape[0]), columns = llvm::PowerOf2Ceil(shape[1]);
    LinearLayout layout = usesMatrixUnit(dot) ? mmaAccumulator() : plainAccumulator(rows, columns);
    int64_t atomRows = layout.extent(0), atomColumns = layout.extent(1), overRows = 1, overColumns = 1;
    while (overRows * overColumns < options_.warps) {
      bool moreRows = rows / (overRows * atomRows) > 1, moreColumns = columns / (overColumns * atomColumns) > 1;
      bool tall = rows / overRows >= columns / overColumns;
      if (moreRows && (reduces || tall || !moreColumns))
        overRows *= 2;
      else if (moreColumns)
        overColumns *= 2;
      else
        break;
    }
    layout = layout.repeat(Unit::Register, 1, std::max<int64_t>(1, columns / (atomColumns * overColumns)));
    layout = layout.repeat(Unit::Register, 0, std::max<int64_t>(1, rows / (atomRows * overRows)));
    layout = layout.repeat(Unit::Warp, 0, overRows).repeat(Unit::Warp, 1, overColumns);
    int64_t idle = options_.warps / (overRows * overColumns);
    if (idle > 1)
      layout = layout * LinearLayout::zeros1D(Unit::Warp, idle, 2);
    return attribute(layout);
  }

  //--- 4. and 5. Into the program ---

  LayoutAttr finalLayout(Value tile) {
    const Choice &chosen = choice(tile);
    return chosen.kind == Choice::Fixed ? chosen.layout : memoryLayout(shapeOf(tile));
  }

  void rewrite() {
    SmallVector<Operation *> ops;
    kernel_.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op != kernel_ && !op->getParentOfType<tile::ReduceOp>() && !op->getParentOfType<tile::ScanOp>())
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      for (Value result : op->getResults())
        if (isTile(result))
          setLayout(result, finalLayout(result));
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            if (isTile(argument))
              setLayout(argument, finalLayout(argument));
    }
    // Users first: what is made again in a user's layout is made from operands as the program has them, not from
    // operands that were brought into the layout of the first making.
    for (Operation *op : llvm::reverse(ops))
      giveOperands(op);
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op) || (llvm::isa<tile::LoadOp, tile::GatherOp>(op) && op->use_empty()))
        op->erase();
    eraseDeadClones();
  }

  static void setLayout(Value tile, LayoutAttr layout) {
    RankedTensorType type = withLayout(tile.getType(), layout);
    tile.setType(type);
    if (auto constant = tile.getDefiningOp<arith::ConstantOp>()) {
      auto elements = llvm::cast<DenseElementsAttr>(constant.getValue());
      constant.setValueAttr(elements.isSplat() ? DenseElementsAttr::get(type, elements.getSplatValue<Attribute>())
                                               : elements.reshape(type));
    }
  }

  /// Puts every operand of an op into the layout it needs.
  void giveOperands(Operation *op) {
    auto give = [&](OpOperand &operand, LayoutAttr layout) {
      if (isTile(operand.get()))
        operand.set(demand(operand.get(), layout));
    };
    auto giveAll = [&](LayoutAttr layout) {
      for (OpOperand &operand : op->getOpOperands())
        give(operand, layout);
    };
    if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
      for (auto [init, argument] : llvm::zip(loop.getInitArgsMutable(), loop.getRegionIterArgs()))
        if (isTile(argument))
          give(init, layoutOf(argument.getType()));
    } else if (auto yield = llvm::dyn_cast<scf::YieldOp>(op)) {
      for (auto [operand, result] : llvm::zip(yield->getOpOperands(), yield->getParentOp()->getResults()))
        if (isTile(result))
          give(operand, layoutOf(result.getType()));
    } else if (auto store = llvm::dyn_cast<tile::StoreOp>(op)) {
      give(store.getValueMutable(), storeLayout(store));
    } else if (auto scatter = llvm::dyn_cast<tile::ScatterOp>(op); scatter && scatter->hasAttr(stagedAttr)) {
      LayoutAttr pieces = attribute(piecesLayout(scatter.getValue(), scatter.getView(), options_.warps));
      for (OpOperand &operand : op->getOpOperands())
        if (&operand != &scatter.getValueMutable())
          give(operand, pieces);
      if (choice(scatter.getValue()).kind != Choice::Fixed)
        give(scatter.getValueMutable(), memoryLayout(shapeOf(scatter.getValue())));
    } else if (auto scatter = llvm::dyn_cast<tile::ScatterOp>(op)) {
      giveAll(indexedLayout(scatter.getValue(), scatter.getIndices()));
    } else if (auto reduce = llvm::dyn_cast<tile::ReduceOp>(op)) {
      giveAll(operandLayouts_.lookup(reduce) ? operandLayouts_.lookup(reduce)
                                             : memoryLayout(shapeOf(reduce.getValues()[0])));
    } else if (llvm::isa<tile::ConcatOp>(op)) {
      if (LayoutAttr part = operandLayouts_.lookup(op))
        giveAll(part);
    } else if (auto dot = llvm::dyn_cast<tile::DotOp>(op)) {
      give(dot.getAccMutable(), layoutOf(dot.getType()));
      if (dot->hasAttr(registersAttr))
        give(registerOperand(dot), registerLayout(dot, options_.warps));
    } else if (auto broadcast = llvm::dyn_cast<tile::BroadcastOp>(op)) {
      giveAll(projected(layoutOf(broadcast.getType()), shapeOf(broadcast.getValue())));
    } else if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op)) {
      if (auto layout = reshaped(layoutOf(reshape.getType()), shapeOf(reshape), shapeOf(reshape.getValue())))
        giveAll(*layout);
    } else if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op)) {
      giveAll(untransposed(transpose, layoutOf(transpose.getType())));
    } else if (op->getNumResults() && isTile(op->getResult(0)) &&
               !llvm::isa<tile::SliceOp, tile::ConcatOp, ConvertOp, scf::IfOp, tile::LoadOp>(op)) {
      giveAll(layoutOf(op->getResult(0).getType())); // element-wise, scan, gather, atomics
    }
  }

  LayoutAttr indexedLayout(Value value, ValueRange indices) {
    if (choice(value).kind == Choice::Fixed)
      return choice(value).layout;
    Choice chosen = strongest(indices);
    return chosen.kind == Choice::Fixed ? chosen.layout : memoryLayout(shapeOf(value));
  }

  /// A store keeps the layout of its value where that is as good for memory as the default.
  LayoutAttr storeLayout(tile::StoreOp store) {
    Value value = store.getValue();
    LayoutAttr preferred = memoryLayout(shapeOf(value)), has = layoutOf(value.getType());
    if (choice(value).kind != Choice::Fixed)
      return preferred;
    if (store->hasAttr(bulkAttr))
      return has; // every layout goes through shared memory
    if (store.getView().getDefiningOp<tile::WorkspaceOp>() && choice(value).ofDot)
      return has; // only other instances read it: not worth an exchange
    std::optional<int64_t> contiguous = contiguousDim(store.getView());
    if (elementsOf(value) <= options_.warps * 32)
      return has;
    int64_t width = widthOf(store, value);
    auto useful = [&](LayoutAttr layout) {
      return contiguous ? std::min(width, Distribution(layout, shapeOf(value)).consecutive(*contiguous)) : 1;
    };
    // Of a dot's result a thread mostly has too few neighbours, whatever their number is elsewhere.
    bool isGood = !choice(value).ofDot || useful(has) * elementBytes(store.getView()) >= 16;
    // A thread with many neighbours (of a scan) writes them one vector after the other.
    auto together = [&](LayoutAttr layout) {
      Distribution tile(layout, shapeOf(value));
      return contiguous ? ofSector(tile, *contiguous, useful(layout), elementBytes(store.getView())) : 1;
    };
    return isGood && useful(has) >= useful(preferred) && together(has) >= together(preferred) ? has : preferred;
  }

  static LayoutAttr untransposed(tile::TransposeOp transpose, LayoutAttr layout) {
    SmallVector<int64_t> inverse(transpose.getPermutation().size());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      inverse[from] = to;
    return transposed(layout, inverse);
  }

  /// The value in a layout: itself, a copy made again, or a conversion; next to where it is defined.
  Value demand(Value value, LayoutAttr layout) {
    if (layoutOf(value.getType()) == layout)
      return value;
    Value &made = versions_[{value, layout}];
    if (made)
      return made;
    Operation *definition = value.getDefiningOp();
    OpBuilder b(kernel_.getContext());
    if (definition)
      b.setInsertionPointAfter(definition);
    else
      b.setInsertionPointToStart(llvm::cast<BlockArgument>(value).getOwner());
    Value result;
    if (definition && isMadeAgain(value, layout)) {
      Operation *clone = b.clone(*definition);
      clones_.push_back(clone);
      result = clone->getResult(0);
      choices_[result] = Choice(choice(value));
      setLayout(result, layout);
      giveOperands(clone);
    } else {
      auto convert = b.create<ConvertOp>(value.getLoc(), withLayout(value.getType(), layout), value);
      clones_.push_back(convert);
      result = convert;
    }
    versions_[{value, layout}] = result;
    return result;
  }

  bool isMadeAgain(Value value, LayoutAttr layout) {
    Operation *definition = value.getDefiningOp();
    Choice::Kind kind = choice(value).kind;
    if (kind == Choice::Free || kind == Choice::Relay) {
      auto reshape = llvm::dyn_cast<tile::ReshapeOp>(definition);
      return !reshape || reshaped(layout, shapeOf(value), shapeOf(reshape.getValue()));
    }
    auto load = llvm::dyn_cast<tile::LoadOp>(definition);
    if (!load)
      return false;
    return elementsOf(value) <= 8 * options_.warps * 32;
  }

  void eraseDeadClones() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Operation *&clone : clones_)
        if (clone && clone->use_empty()) {
          clone->erase();
          clone = nullptr;
          changed = true;
        }
    }
  }

  func::FuncOp kernel_;
  LayoutOptions options_;
  bool isForGroups_;
  Divisibility divisibility_;
  std::map<std::vector<int64_t>, Wish> wishes_;
  std::map<std::vector<int64_t>, LayoutAttr> byShape_;
  llvm::DenseMap<Value, Choice> choices_;
  llvm::DenseMap<Value, LayoutAttr> forRegisters_;
  llvm::DenseMap<Operation *, LayoutAttr> operandLayouts_;
  llvm::DenseMap<std::pair<Value, LayoutAttr>, Value> versions_;
  SmallVector<Operation *> clones_;
};

struct ChooseLayouts : PassWrapper<ChooseLayouts, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChooseLayouts)
  ChooseLayouts(const LayoutOptions &options) {
    warps = options.warps, cluster = options.cluster, groupExchange = options.groupExchange;
  }
  ChooseLayouts(const ChooseLayouts &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "tenon-nvidia-choose-layouts"; }
  StringRef getDescription() const override { return "Decide which thread holds which element of every tile"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<NvidiaDialect>(); }

  void runOnOperation() override {
    LayoutOptions options;
    options.warps = warps;
    options.cluster = cluster;
    options.groupExchange = groupExchange;
    joinReductions(getOperation());
    Chooser(getOperation(), options).run();
  }

  Option<int64_t> warps{*this, "warps", llvm::cl::desc("warps per block"), llvm::cl::init(4)};
  Option<int64_t> cluster{*this, "cluster", llvm::cl::desc("blocks per program instance"), llvm::cl::init(1)};
  Option<bool> groupExchange{*this, "group-exchange", llvm::cl::desc("small tiles in every warpgroup"),
                             llvm::cl::init(true)};
};

} // namespace

std::unique_ptr<Pass> createChooseLayoutsPass(const LayoutOptions &options) {
  return std::make_unique<ChooseLayouts>(options);
}

} // namespace tenon::nvidia
