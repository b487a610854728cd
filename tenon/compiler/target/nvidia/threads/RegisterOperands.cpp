// SPDX-License-Identifier: Apache-2.0
//
// Operands of dots on warpgroups that never see shared memory. wgmma takes its left operand from registers as well,
// where each warp has 16 rows of every 64. Of a product with few rows, which is computed as columns, that is the larger
// operand: the weights. Where they are computed (dequantised), each thread reads those that it will multiply, and hands
// them over as they are. Products of more rows are computed as columns for it, too, if they have few sums:
//
//     w = load q                  // a slot, as the instruction divides the operand among threads
//     b = cast(cast(w) * s)       // 4 words for each 64 rows and 16 of K
//     for each 16 of K:
//       fence; wgmma b, x
//     wait                        // in the same iteration: until then the assembler keeps b where it is
//
// Which row of the operand is which of the instruction's is free, as long as the result's are the same. Where memory
// has neighbouring rows side by side a thread takes those (WarpgroupShape::place), so that it reads and scales several
// at once. Along K the other operand's order, in shared memory, decides: two neighbours of every eight.
#include "tenon/compiler/target/nvidia/threads/RegisterOperands.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/nvidia/layout/Fragments.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// Registers of a thread: of accumulators, and of these and the operand, all of which is kept until the wait. What the
/// operand is computed from, addresses and the rest have the others.
constexpr int64_t mostAccumulators = 64, mostWithOperand = 128;

bool isTile(Value value) { return llvm::isa<RankedTensorType>(value.getType()); }

/// Whether the dot's operand is computed element by element, in the dot's iteration, from tiles that are read in slots.
/// If so, whether memory has the first of them contiguous along K.
std::optional<bool> isAlongK(tile::DotOp dot, Value operand, int64_t kDim) {
  std::optional<bool> alongK;
  llvm::DenseSet<Value> seen;
  SmallVector<std::pair<Value, int64_t>> open = {{operand, kDim}};
  while (!open.empty()) {
    auto [value, dim] = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!isTile(value) || !seen.insert(value).second ||
        llvm::isa_and_nonnull<tile::BroadcastOp, tile::SplatOp, tile::IotaOp, arith::ConstantOp>(op))
      continue; // made again in any layout, of little
    if (!op || op->getBlock() != dot->getBlock())
      return std::nullopt;
    if (std::optional<LoadedOperand> loaded = traceToLoad(value)) {
      if (!loaded->load->hasAttr(readAttr))
        return std::nullopt;
      if (!alongK)
        alongK = loaded->dims[dim] == contiguousDim(loaded->load.getView());
    } else if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op)) {
      open.push_back({transpose.getValue(), transpose.getPermutation()[dim]});
    } else if (lower::isElementwise(op)) {
      for (Value next : llvm::reverse(op->getOperands()))
        open.push_back({next, dim});
    } else {
      return std::nullopt;
    }
  }
  return alongK;
}

/// Whether sums may as well be computed as columns: the loop only adds to them, and behind it they are stored, or what
/// becomes of each on its own. Reductions of rows would cross warps, and loads of whole tiles come for rows
/// (late-loads).
bool mayBeColumns(tile::DotOp dot) {
  for (OpOperand &use : dot->getUses())
    if (!llvm::isa<scf::YieldOp>(use.getOwner()) &&
        !(llvm::isa<tile::DotOp>(use.getOwner()) && use.getOperandNumber() == 2))
      return false;
  auto hasItsShape = [&](Value value) {
    auto tile = llvm::dyn_cast<RankedTensorType>(value.getType());
    return tile && tile.getShape() == dot.getType().getShape();
  };
  auto loop = llvm::cast<scf::ForOp>(dot->getParentOp());
  return !dot->getParentOfType<func::FuncOp>()
              .walk([&](Operation *op) {
                bool minds = !loop->isAncestor(op) && !lower::isElementwise(op) &&
                             !llvm::isa<tile::StoreOp, tile::BroadcastOp, tile::SplatOp, arith::ConstantOp, CombineOp,
                                        scf::ForOp, scf::IfOp, scf::YieldOp>(op);
                if (auto load = llvm::dyn_cast<tile::LoadOp>(op)) // in a branch: of sums that others left
                  minds &= static_cast<bool>(dotBefore(load));
                minds &= llvm::any_of(op->getOperands(), hasItsShape) || llvm::any_of(op->getResults(), hasItsShape);
                return minds ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

/// The same layout with other numbers along a dimension.
LayoutAttr withPlaces(LayoutAttr layout, int64_t dim, llvm::function_ref<int64_t(int64_t)> place) {
  int64_t rank = layout.getRank();
  auto moved = [&](ArrayRef<int64_t> bases) {
    SmallVector<int64_t> all(bases);
    for (size_t i = dim; i < all.size(); i += rank)
      all[i] = place(all[i]);
    return all;
  };
  return LayoutAttr::get(layout.getContext(), rank, moved(layout.getReg()), moved(layout.getLane()),
                         moved(layout.getWarp()), moved(layout.getBlock()));
}

/// Registers in another order: those along `dim` first, neighbours beside each other.
LayoutAttr withFirst(LayoutAttr layout, int64_t dim) {
  using Bit = std::array<int64_t, 2>; // of two dimensions
  SmallVector<Bit> first, rest;
  for (size_t i = 0; i < layout.getReg().size(); i += 2) {
    Bit bit = {layout.getReg()[i], layout.getReg()[i + 1]};
    (bit[dim] ? first : rest).push_back(bit);
  }
  llvm::sort(first, [&](const Bit &a, const Bit &b) { return a[dim] < b[dim]; });
  SmallVector<int64_t> bases;
  for (const Bit &bit : llvm::concat<Bit>(first, rest))
    bases.append(bit.begin(), bit.end());
  return LayoutAttr::get(layout.getContext(), 2, bases, layout.getLane(), layout.getWarp(), layout.getBlock());
}

LayoutAttr oriented(const WarpgroupShape &shape, LayoutAttr layout) {
  return shape.swapped ? transposed(layout, {1, 0}) : layout;
}

/// Rows as the instruction numbers them, to those of the result.
LayoutAttr placed(const WarpgroupShape &shape, MLIRContext *context, const LinearLayout &layout) {
  return withPlaces(toAttribute(context, layout), 0, [&](int64_t row) { return shape.place(row); });
}

} // namespace

int64_t WarpgroupShape::place(int64_t row) const {
  if (!neighbours)
    return row;
  // Bits of the instruction's rows: three of lanes, one of registers, two of warps, then blocks; and of warpgroups.
  int64_t ofBlocks = llvm::Log2_64(rowBlocks()), inGroup = 64 * rowBlocks();
  int64_t lanes = row & 7, half = row >> 3 & 1, warps = row >> 4 & 3, blocks = row % inGroup >> 6;
  return half | blocks << 1 | lanes << (1 + ofBlocks) | warps << (4 + ofBlocks) | row / inGroup * inGroup;
}

OpOperand &registerOperand(tile::DotOp dot) { return dot.getBMutable(); }

void chooseRegisterOperands(ArrayRef<tile::DotOp> dots, int64_t warps) {
  for (tile::DotOp dot : dots) {
    if (!dot->hasAttr(warpgroupAttr) || !llvm::isa<scf::ForOp>(dot->getParentOp()) || warps == 12)
      continue;
    bool hasFewRows = dot.getType().getDimSize(0) < 64; // and is computed as columns anyway
    Value operand = registerOperand(dot).get();
    if (traceToLoad(operand) || (!hasFewRows && (!traceToLoad(dot.getA()) || !mayBeColumns(dot))) ||
        lower::byteSize(lower::memoryType(getElementTypeOrSelf(operand.getType()))) != 2 ||
        !llvm::all_of(operand.getUsers(), [](Operation *user) { return llvm::isa<tile::DotOp>(user); }))
      continue;
    std::optional<bool> alongK = isAlongK(dot, operand, /*kDim=*/0);
    if (!alongK)
      continue;
    dot->setAttr(registersAttr, BoolAttr::get(dot.getContext(), !*alongK));
    std::optional<WarpgroupShape> shape = warpgroupShape(dot, warps);
    int64_t depth = dot.getA().getType().getDimSize(1);
    if (!shape || shape->overColumns > 1 || shape->accumulators() > mostAccumulators ||
        shape->accumulators() + shape->rowBlocks() * depth / 4 > mostWithOperand)
      dot->removeAttr(registersAttr);
  }
  // Dots that add to the same sums have them in the same registers.
  for (bool changed = true; changed;) {
    changed = false;
    for (tile::DotOp dot : dots)
      if (auto before = dot.getAcc().getDefiningOp<tile::DotOp>();
          before && before->getBlock() == dot->getBlock() &&
          before->getAttr(registersAttr) != dot->getAttr(registersAttr)) {
        before->removeAttr(registersAttr);
        dot->removeAttr(registersAttr);
        changed = true;
      }
  }
}

LayoutAttr warpgroupLayout(tile::DotOp dot, int64_t warps) {
  WarpgroupShape shape = *warpgroupShape(dot, warps);
  LayoutAttr layout = placed(shape, dot.getContext(),
                             wgmmaAccumulator(shape.n)
                                 .repeat(Unit::Register, 1, shape.columnBlocks())
                                 .repeat(Unit::Register, 0, shape.rowBlocks())
                                 .repeat(Unit::Warp, 0, layoutWarps(shape.overRows))
                                 .repeat(Unit::Warp, 1, layoutWarps(shape.overColumns)));
  return oriented(shape, shape.neighbours ? withFirst(layout, 0) : layout);
}

LayoutAttr registerLayout(tile::DotOp dot, int64_t warps) {
  WarpgroupShape shape = *warpgroupShape(dot, warps);
  int64_t steps = dot.getA().getType().getDimSize(1) / 16;
  LinearLayout layout = wgmmaOperandA(16)
                            .repeat(Unit::Register, 1, static_cast<int64_t>(llvm::PowerOf2Ceil(steps)))
                            .repeat(Unit::Register, 0, shape.rowBlocks())
                            .repeat(Unit::Warp, 0, shape.overRows);
  return oriented(shape, withFirst(placed(shape, dot.getContext(), layout), shape.neighbours ? 0 : 1));
}

llvm::DenseMap<Value, LayoutAttr> layoutsForRegisters(func::FuncOp kernel, int64_t warps) {
  llvm::DenseMap<Value, LayoutAttr> layouts;
  kernel.walk([&](tile::DotOp dot) {
    if (!dot->hasAttr(registersAttr))
      return;
    SmallVector<std::pair<Value, LayoutAttr>> open = {{registerOperand(dot).get(), registerLayout(dot, warps)}};
    while (!open.empty()) {
      auto [value, layout] = open.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || op->getBlock() != dot->getBlock() || !layouts.try_emplace(value, layout).second)
        continue;
      auto shape = llvm::cast<RankedTensorType>(value.getType()).getShape();
      if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op)) {
        SmallVector<int64_t> inverse(transpose.getPermutation().size());
        for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
          inverse[from] = static_cast<int64_t>(to);
        open.push_back({transpose.getValue(), transposed(layout, inverse)});
      } else if (auto broadcast = llvm::dyn_cast<tile::BroadcastOp>(op)) {
        open.push_back({broadcast.getValue(), projected(layout, broadcast.getValue().getType().getShape())});
      } else if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op)) {
        if (auto before = reshaped(layout, shape, reshape.getValue().getType().getShape()))
          open.push_back({reshape.getValue(), *before});
      } else if (lower::isElementwise(op)) {
        for (Value operand : op->getOperands())
          if (isTile(operand))
            open.push_back({operand, layout});
      }
    }
  });
  return layouts;
}

/// The words of a block of 64 rows and 16 of K. Rounding to 16 bits is part of the packing.
SmallVector<Value> ThreadEmitter::registerFragment(Value operand, const WarpgroupShape &shape, OperandType type,
                                                   int64_t row, int64_t k) {
  const Distribution &tile = distribution(operand);
  Value source = operand;
  if (auto cast = operand.getDefiningOp<tile::CastOp>())
    if (isTile(cast.getValue()) && typeOf(cast.getValue()).getElementType().isF32())
      source = cast.getValue();
  auto element = [&](int64_t row, int64_t k) {
    int64_t at = shape.place(row);
    return registers(source)[tile.registerAt(shape.swapped ? ArrayRef<int64_t>{k, at} : ArrayRef<int64_t>{at, k})];
  };
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i) {
    int64_t r = row + 8 * (i % 2), c = k + 8 * (i / 2);
    words.push_back(b_.create<PackOp>(b_.getI32Type(), type, element(r, c), element(r, c + 1)));
  }
  return words;
}

} // namespace tenon::nvidia
