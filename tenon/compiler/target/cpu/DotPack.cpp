// SPDX-License-Identifier: Apache-2.0
//
// Operands in the order in which the register block reads them. B lies in panels, as wide as the block:
//
//     panel 0: row 0 | row 1 | row 2 ...     panel 1: ...            a row is panel() units; a unit is 1, 2 or 4
//                                                                    neighbours along K (DotPlan::group)
//
// and A in rows along K, of which the block broadcasts one unit at a time. What already has that form is used where it
// is. A panel is made from rows of memory: straight from the view when the tile lies inside it, otherwise (at an edge,
// or where the operand is computed) from a copy that an ordinary loop nest has made. Rows that run across K are copied,
// units of several elements interleaved; rows that run along K (a transposed operand) are transposed, a square of
// registers at a time. Units hold what is neighbouring in such a row anyway, so all types transpose alike. Elements that
// are computed with in a longer type (bf16 as f32, bytes as 16 bits, where the processor has no products of their own)
// are widened on the way.
#include "tenon/compiler/target/cpu/Dot.h"
#include "tenon/compiler/target/cpu/TransposedBlocks.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

RankedTensorType typeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()); }

/// An operand of fewer bytes is not worth code of its own.
constexpr int64_t smallBytes = 8192;

} // namespace

Type rawType(Type element) {
  return element.isF16() ? Type(IntegerType::get(element.getContext(), 16)) : memoryType(element);
}

//===--- Where the elements are -----------------------------------------------------------------------------------===//

std::optional<DotEmitter::LoadBehind> DotEmitter::loadBehind(Value tile, bool throughCasts) {
  LoadBehind found{{}, {0, 1}};
  for (;;) {
    Operation *op = tile.getDefiningOp();
    if (!op || e_.buffer(tile))
      return std::nullopt;
    if (auto transpose = llvm::dyn_cast<tile::TransposeOp>(op)) {
      for (int &dim : found.dims)
        dim = dim < 0 ? dim : static_cast<int>(transpose.getPermutation()[dim]);
      tile = transpose.getValue();
    } else if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op); reshape && isUnitReshape(reshape)) {
      // The dimensions of more than one element keep their order.
      SmallVector<int> source;
      for (auto [d, extent] : llvm::enumerate(typeOf(reshape.getValue()).getShape()))
        if (extent != 1)
          source.push_back(d);
      SmallVector<int> moved;
      int next = 0;
      for (int64_t extent : typeOf(tile).getShape())
        moved.push_back(extent == 1 ? -1 : source[next++]);
      for (int &dim : found.dims)
        dim = dim < 0 ? dim : moved[dim];
      tile = reshape.getValue();
    } else if (auto load = llvm::dyn_cast<tile::LoadOp>(op)) {
      found.load = load;
      return found;
    } else if (auto cast = llvm::dyn_cast<tile::CastOp>(op); cast && throughCasts) {
      tile = cast.getValue();
    } else {
      return std::nullopt;
    }
  }
}

Value DotEmitter::inType(Value tile, Type element) {
  RankedTensorType type = typeOf(tile);
  Type from = type.getElementType();
  if (from == element || scratchType(from) == element)
    return tile;
  OpBuilder before(op_);
  RankedTensorType wanted = type.clone(element);
  Operation *made = llvm::isa<FloatType>(from) && llvm::isa<IntegerType>(element)
                        ? before.create<arith::BitcastOp>(op_.getLoc(), wanted, tile).getOperation()
                        : before.create<tile::CastOp>(op_.getLoc(), wanted, tile, unsignedBytes_);
  temporaries_.push_back(made);
  return made->getResult(0);
}

Buffer DotEmitter::copyOf(Value tile, Type element, bool transposed) {
  tile = inType(tile, element);
  if (transposed) {
    RankedTensorType type = typeOf(tile);
    OpBuilder before(op_);
    auto turned = RankedTensorType::get({type.getDimSize(1), type.getDimSize(0)}, type.getElementType());
    temporaries_.push_back(
        before.create<tile::TransposeOp>(op_.getLoc(), turned, tile, before.getDenseI64ArrayAttr({1, 0})));
    tile = temporaries_.back()->getResult(0);
  }
  // Padded, so that rows do not fall on the same cache sets; and to whole steps of the block, along K with zeros.
  ArrayRef<int64_t> shape = typeOf(tile).getShape();
  int64_t row = shape[1], padded = llvm::alignTo(row, plan_.depthStep);
  Buffer copy = e_.allocate({plan_.wholeRows(shape[0]), row}, element, padded - row + lineBytes / byteSize(element));
  copy.shape[0] = shape[0];
  Buffer target = copy;
  target.element = typeOf(tile).getElementType(); // which may be a small float, whose register form is `element`
  e_.materialize(tile, target);
  e_.flush();
  b_.setLoc(op_.getLoc());
  zeroRowEnds(copy, row, padded);
  return copy;
}

void DotEmitter::zeroRowEnds(const Buffer &buffer, int64_t begin, int64_t end) {
  if (begin == end)
    return;
  Type element = scratchType(buffer.element);
  forRange(0, buffer.shape[0], 1, [&](Value i) {
    Value from = at(buffer.pointer, plus(times(i, buffer.strides[0]), e_.index(begin)), element);
    store(zero(vectorOf(element, end - begin)), from, end - begin);
  });
}

DotEmitter::Origin DotEmitter::originOf(Value tile) {
  Origin origin;
  origin.base = tile;
  for (;;) {
    auto transpose = origin.base.getDefiningOp<tile::TransposeOp>();
    if (!transpose || e_.buffer(origin.base))
      break;
    origin.isTransposed ^= transpose.getPermutation()[0] == 1;
    origin.base = transpose.getValue();
  }
  origin.contiguous = origin.isTransposed ? 0 : 1;
  if (auto source = loadBehind(tile)) {
    int unit = e_.view(source->load.getView()).unitStride;
    for (int d : {0, 1})
      if (unit >= 0 && source->dims[d] == unit) {
        origin.contiguous = d;
        origin.source = source;
      }
  }
  return origin;
}

DotEmitter::Window DotEmitter::windowOf(const Origin &origin, Value neededRows) {
  b_.setLoc(op_.getLoc());
  LoadBehind source = *origin.source;
  const ViewParts &view = e_.view(source.load.getView());
  Window window;
  Value offset;
  int rowDim = source.dims[origin.contiguous == 0 ? 1 : 0];
  for (auto [d, start, extent] : llvm::enumerate(source.load.getOffsets(), source.load.getType().getShape())) {
    Value first = e_.scalar(start);
    Value above = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, first, e_.index(0));
    Value there = b_.create<arith::SubIOp>(view.sizes[d], first), needed = e_.index(extent);
    if (static_cast<int>(d) == rowDim) {
      window.rowsThere = there;
      needed = neededRows ? neededRows : needed;
    }
    Value below = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, there, needed);
    Value both = b_.create<arith::AndIOp>(above, below);
    window.inside = window.inside ? b_.create<arith::AndIOp>(window.inside, both).getResult() : both;
    Value term = static_cast<int>(d) == view.unitStride ? first
                                                        : b_.create<arith::MulIOp>(first, view.strides[d]).getResult();
    offset = offset ? plus(offset, term) : term;
  }
  window.pointer = at(view.pointer, offset, memoryType(view.element));
  window.stride = rowDim < 0 ? e_.index(0) : view.strides[rowDim];
  return window;
}

RawRows DotEmitter::rawRows(Value tile, int items, Type element, Value neededRows) {
  Origin origin = originOf(tile);
  bool alongDepth = origin.contiguous != items;
  auto fromBuffer = [&](const Buffer &buffer) {
    int64_t stride = buffer.strides[0];
    return RawRows{buffer.pointer, e_.index(stride), alongDepth, element, stride > buffer.shape[1] ? stride : 0};
  };
  if (const Buffer *present = e_.buffer(origin.base)) {
    Type stored = typeOf(origin.base).getElementType();
    bool isThere = present->strides[1] == 1 && scratchType(stored) == element;
    return fromBuffer(isThere ? *present : copyOf(origin.base, element, false));
  }
  if (!origin.source)
    return fromBuffer(copyOf(origin.base, element, false));
  bool transposed = origin.contiguous == 0;
  if (rawType(e_.view(origin.source->load.getView()).element) != element)
    return fromBuffer(copyOf(tile, element, transposed));

  Window window = windowOf(origin, neededRows);
  // Inside the view: there. Otherwise: a copy.
  SmallVector<Value> there = {window.pointer, window.stride};
  auto branch = b_.create<scf::IfOp>(ValueRange(there).getTypes(), window.inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPointToEnd(branch.thenBlock());
  b_.create<scf::YieldOp>(there);
  b_.setInsertionPointToEnd(branch.elseBlock());
  auto end = b_.create<scf::YieldOp>(there);
  b_.setInsertionPoint(end);
  Buffer copy = copyOf(tile, element, transposed);
  end->setOperands({copy.pointer, e_.index(copy.strides[0])});
  return {branch.getResult(0), branch.getResult(1), alongDepth, element};
}

RawRows DotEmitter::rowsToWiden(Value tile, int items, Value neededRows) {
  Type from = typeOf(tile).getElementType();
  Origin origin = originOf(tile);
  if (!origin.source || e_.buffer(origin.base) || rawType(from) == plan_.operand())
    return rawRows(tile, items, plan_.operand(), neededRows);
  RawRows rows = rawRows(tile, items, rawType(from), neededRows);
  rows.widenedFrom = from;
  rows.isUnsigned = unsignedBytes_;
  return rows;
}

//===--- The operands ---------------------------------------------------------------------------------------------===//

/// Rows of A as they lie in a view. Those that are inside are copied by the first register block that reads them, which
/// then has them in L1; tiles are loaded from where they lie, or from a copy of a few rows (stripOf).
Buffer DotEmitter::copyRows(Value tile, const Origin &origin) {
  Type element = plan_.packed;
  int64_t step = lineBytes / byteSize(element);
  if (m_ * k_ * byteSize(element) < smallBytes || (k_ % plan_.group && !plan_.usesTiles()))
    return copyOf(tile, element, false);
  // What nobody needs of the rows need not be there, nor be zero.
  Window window = windowOf(origin, plan_.usesTiles() ? limits_.rows : Value());
  int64_t padded = llvm::alignTo(k_, plan_.depthStep);
  Buffer copy = e_.allocate({plan_.wholeRows(m_), k_}, element, padded - k_ + step);
  copy.shape[0] = m_;
  unpackedA_ = {copy, window};
  auto branch = b_.create<scf::IfOp>(window.inside, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(branch.elseBlock()->getTerminator());
  Buffer target = copy;
  Value same = inType(tile, element);
  target.element = typeOf(same).getElementType();
  e_.materialize(same, target);
  e_.flush();
  b_.setLoc(op_.getLoc());
  zeroRowEnds(copy, k_, padded);
  return copy;
}

void DotEmitter::copyRowsOfA(Value begin, Value end, Value to) {
  const auto &[copy, window] = unpackedA_;
  Type element = plan_.packed, from = typeOf(op_.getA()).getElementType(), raw = rawType(from);
  int64_t step = lineBytes / byteSize(element), whole = k_ / step * step, padded = llvm::alignTo(k_, plan_.depthStep);
  forRange(begin, end, 1, [&](Value row) {
    Value start = at(window.pointer, b_.create<arith::MulIOp>(row, window.stride), raw);
    Value into = at(to, times(b_.create<arith::SubIOp>(row, begin), copy.strides[0]), element);
    auto piece = [&](Value column, int64_t count, int64_t stored) {
      Value values = load(at(start, column, raw), raw, count, stored);
      if (raw != element)
        values = elementsAs(element, values, from, op_.getAUnsigned());
      if (plan_.flipsA)
        values = b_.create<arith::XOrIOp>(values, constantBits(b_, values.getType(), -128));
      store(values, at(into, column, element), stored);
    };
    forRange(0, whole, step, [&](Value column) { piece(column, step, step); });
    if (whole < k_)
      piece(e_.index(whole), k_ - whole, padded - whole);
  });
}

PackedOperand DotEmitter::packA() {
  if (plan_.pieces > 1) {
    findRowsOfA();
    return {};
  }
  unsignedBytes_ = op_.getAUnsigned();
  Value tile = op_.getA();
  Type element = typeOf(tile).getElementType();
  if (plan_.flipsA) {
    OpBuilder before(op_);
    auto bits = before.create<arith::ConstantOp>(
        op_.getLoc(), DenseElementsAttr::get(typeOf(tile), before.getIntegerAttr(element, -128)));
    temporaries_.push_back(bits);
    temporaries_.push_back(before.create<arith::XOrIOp>(op_.getLoc(), tile, bits));
    tile = temporaries_.back()->getResult(0);
  }
  auto inRows = [&](const Buffer &buffer) {
    int64_t stride = buffer.strides[0] / plan_.group;
    return PackedOperand{buffer.pointer, stride, 1, 0};
  };
  // What lies in scratch in the right type, or as the bits of it (KeepOperands.h), is used where it is.
  auto bits = tile.getDefiningOp<arith::BitcastOp>();
  const Buffer *present = e_.buffer(tile);
  if (!present && bits)
    present = e_.buffer(bits.getIn());
  if (present && scratchType(present->element) == plan_.packed && present->strides[1] == 1 &&
      present->strides[0] % plan_.group == 0 && k_ % plan_.depthStep == 0 && m_ % plan_.rowStep == 0)
    return inRows(*present);
  if (Origin origin = originOf(op_.getA()); origin.contiguous == 1)
    return inRows(origin.source ? copyRows(tile, origin) : copyOf(tile, plan_.packed, false));
  // Neighbours in memory are rows of A: keep them together, all rows in one panel.
  if (plan_.group == 1) {
    Buffer copy = copyOf(tile, plan_.packed, true);
    return {copy.pointer, 1, copy.strides[0], 0};
  }
  RawRows rows = rowsToWiden(tile, 0);
  PackedOperand panel = pack(rows, m_, llvm::alignTo(m_, plan_.panel()));
  return plan_.usesTiles() ? turned(panel) : panel;
}

/// One panel of A as rows along K, for tiles.
PackedOperand DotEmitter::turned(const PackedOperand &panel) {
  Type unit = unitType();
  int64_t lanes = plan_.lanes;
  PackedOperand to;
  to.itemStride = units_ + lineBytes / plan_.unitBytes(); // padded, as copies are
  to.pointer = e_.allocate({plan_.wholeRows(m_) * to.itemStride}, unit).pointer;
  forRange(0, m_, lanes, [&](Value item) {
    forRange(0, units_, lanes, [&](Value first) {
      Value from = at(panel.pointer, plus(times(first, panel.depthStride), item), unit);
      Value into = at(to.pointer, plus(times(item, to.itemStride), first), unit);
      SmallVector<Value> square;
      for (int64_t i = 0; i < lanes; ++i)
        square.push_back(load(at(from, i * panel.depthStride, unit), unit, lanes, lanes));
      transposeSquare(b_, square);
      for (int64_t i = 0; i < lanes; ++i)
        store(square[i], at(into, i * to.itemStride, unit), lanes);
    });
  });
  return to;
}

PackedOperand DotEmitter::packB() {
  unsignedBytes_ = op_.getBUnsigned();
  if (plan_.pieces > 1)
    return packPiecesOfB();
  if (auto kept = packKept())
    return *kept;
  RawRows rows = rowsToWiden(op_.getB(), 1);
  if (rows.paddedStride && !rows.alongDepth && plan_.group == 1 && n_ % plan_.panel() == 0)
    return {rows.pointer, 1, rows.paddedStride, plan_.panel()}; // a copy of its own that can be read as it is
  // A panel is packed when its turn comes, always in the same place, which is then in L1. Not where something is to be
  // known of all panels first, nor for tiles, whose blocks are so fast that packing has a loop of its own.
  if (!plan_.flipsA && !plan_.usesTiles()) {
    unpackedB_ = rows;
    return placeForPanels(1, plan_.panel());
  }
  PackedOperand packed = pack(rows, n_, plan_.panel());
  if (plan_.flipsA)
    correction_ = addCorrection(packed);
  return packed;
}

void DotEmitter::packPanel(Value number, int64_t width, const PackedOperand &to) {
  RawRows rows = unpackedB_;
  Value first = times(number, plan_.panel());
  rows.pointer = at(rows.pointer, rows.alongDepth ? b_.create<arith::MulIOp>(first, rows.stride).getResult() : first,
                    rows.element);
  packInto(rows, width, plan_.panel(), to);
}

PackedOperand DotEmitter::stridesOfPanels(int64_t panel) {
  PackedOperand to;
  to.depthStride = panel;
  // One cache line more than it holds, so that neighbouring panels do not fall on the same cache sets.
  to.panelStride = plan_.pieces * units_ * panel + lineBytes / plan_.unitBytes();
  return to;
}

PackedOperand DotEmitter::placeForPanels(int64_t count, int64_t panel) {
  PackedOperand to = stridesOfPanels(panel);
  to.pointer = e_.allocate({unitsOfPanels(to, count)}, unitType()).pointer;
  return to;
}

int64_t DotEmitter::unitsOfPanels(const PackedOperand &to, int64_t count) const {
  int64_t note = plan_.pieces > 1 ? plan_.lanes : 0;
  return count * to.panelStride + note;
}

PackedOperand DotEmitter::pack(const RawRows &from, int64_t items, int64_t panel) {
  b_.setLoc(op_.getLoc());
  PackedOperand to = placeForPanels(llvm::divideCeil(items, panel), panel);
  packInto(from, items, panel, to);
  return to;
}

void DotEmitter::packInto(const RawRows &from, int64_t items, int64_t panel, const PackedOperand &to) {
  if (plan_.pieces > 1)
    return packPieces(from, items, to);
  if (from.alongDepth)
    packAlong(from, items, panel, to);
  else
    packAcross(from, items, panel, to);
  padDepth(items, panel, to);
}

/// Units past the end of K, up to a whole step of the block.
void DotEmitter::padDepth(int64_t items, int64_t panel, const PackedOperand &to) {
  int64_t end = llvm::divideCeil(k_, plan_.group), panels = llvm::divideCeil(items, panel);
  if (end < units_)
    forRange(0, panels, 1, [&](Value number) {
      forRange(end, units_, 1, [&](Value unit) {
        Value start = plus(times(number, to.panelStride), times(unit, to.depthStride));
        store(zero(vectorOf(unitType(), panel)), at(to.pointer, start, unitType()), panel);
      });
    });
}

Value DotEmitter::loadToPack(const RawRows &from, Value start, int64_t count, int64_t lanes) {
  Value row = load(at(from.pointer, start, from.element), from.element, count, lanes);
  return from.widenedFrom ? elementsAs(plan_.operand(), row, from.widenedFrom, from.isUnsigned) : row;
}

/// Rows across K: `group` of them at a time, interleaved.
void DotEmitter::packAcross(const RawRows &from, int64_t items, int64_t panel, const PackedOperand &to) {
  int64_t width = plan_.panel(), group = plan_.group, lanes = plan_.lanes;
  Value none = zero(vectorOf(plan_.packed, width));
  auto piece = [&](Value unit, int64_t present, Value item, Value into, int64_t count) {
    SmallVector<Value> rows;
    for (int64_t g = 0; g < group; ++g) {
      Value depth = plus(times(unit, group), e_.index(g));
      Value start = plus(b_.create<arith::MulIOp>(depth, from.stride), item);
      rows.push_back(g < present ? loadToPack(from, start, count, width) : none);
    }
    // Pairs of rows, then pairs of pairs, as wider and wider elements.
    while (rows.size() > 1) {
      SmallVector<Value> wider;
      auto type = llvm::cast<VectorType>(rows[0].getType());
      int64_t size = type.getDimSize(0);
      SmallVector<int64_t> mask;
      for (int64_t i = 0; i < size; ++i)
        mask.append({i, size + i});
      Type twice = b_.getIntegerType(2 * type.getElementTypeBitWidth());
      for (size_t i = 0; i < rows.size(); i += 2) {
        Value both = b_.create<vector::ShuffleOp>(rows[i], rows[i + 1], mask);
        wider.push_back(b_.create<vector::BitCastOp>(llvm::cast<VectorType>(vectorOf(twice, size)), both));
      }
      rows = std::move(wider);
    }
    for (int64_t v = 0; v < width / lanes; ++v) {
      Value part = width == lanes ? rows[0]
                                  : b_.create<vector::ExtractStridedSliceOp>(rows[0], v * lanes, lanes, 1).getResult();
      store(part, at(into, v * lanes, unitType()), lanes);
    }
  };
  auto row = [&](Value unit, int64_t present) {
    // Item i is in panel i / panel: where panels are as wide as a piece, their number grows with i.
    auto into = [&](Value item) {
      Value inPanel = times(unit, to.depthStride);
      if (panel != width)
        return at(to.pointer, plus(inPanel, item), unitType());
      Value number = b_.create<arith::DivUIOp>(item, e_.index(width));
      return at(to.pointer, plus(times(number, to.panelStride), inPanel), unitType());
    };
    int64_t whole = items / width * width;
    forRange(0, whole, width, [&](Value item) { piece(unit, present, item, into(item), width); });
    if (whole < items)
      piece(unit, present, e_.index(whole), into(e_.index(whole)), items - whole);
  };
  int64_t wholeUnits = k_ / group;
  forRange(0, wholeUnits, 1, [&](Value unit) { row(unit, group); });
  if (k_ % group)
    row(e_.index(wholeUnits), k_ % group);
}

/// A square of lanes x lanes units out of rows along K: of `count` rows, from the element `first` of K on, of which
/// `depth` are there.
SmallVector<Value> DotEmitter::transposedRows(const RawRows &from, Value item, int64_t count, Value first,
                                              int64_t depth, int64_t group) {
  int64_t lanes = plan_.lanes;
  SmallVector<Value> rows;
  SmallVector<int64_t> repeating(lanes, 0);
  for (int64_t i = 0; i < std::min(depth, lanes); ++i)
    repeating[i] = i;
  for (int64_t i = 0; i < lanes; ++i) {
    // What is not there is never stored, or is in columns that are not, and may be anything. Not zeros: LLVM 19 crashes
    // when it combines the shuffles of a constant.
    if (i >= count) {
      rows.push_back(rows[0]);
      continue;
    }
    Value start = plus(b_.create<arith::MulIOp>(plus(item, e_.index(i)), from.stride), first);
    Value row = loadToPack(from, start, depth, group == 1 ? depth : lanes * group);
    if (group == 1 && depth < lanes)
      row = b_.create<vector::ShuffleOp>(row, row, repeating);
    if (group > 1)
      row = b_.create<vector::BitCastOp>(llvm::cast<VectorType>(vectorOf(unitType(), lanes)), row);
    rows.push_back(row);
  }
  transposeSquare(b_, rows);
  return rows;
}

/// Rows along K: squares, transposed in registers.
void DotEmitter::packAlong(const RawRows &from, int64_t items, int64_t panel, const PackedOperand &to) {
  Type unit = unitType();
  int64_t lanes = plan_.lanes, group = plan_.group;
  Type type = vectorOf(unit, lanes);
  auto square = [&](Value item, int64_t count, Value firstUnit, int64_t depth) {
    SmallVector<Value> rows = transposedRows(from, item, count, times(firstUnit, group), depth, group);
    Value number = b_.create<arith::DivUIOp>(item, e_.index(panel));
    Value within = b_.create<arith::RemUIOp>(item, e_.index(panel));
    Value start = plus(plus(times(number, to.panelStride), within), times(firstUnit, to.depthStride));
    Value into = at(to.pointer, start, unit);
    for (int64_t i = 0; i < (depth + group - 1) / group; ++i)
      store(rows[i], at(into, i * to.depthStride, unit), lanes);
  };
  int64_t wholeItems = items / lanes * lanes, step = lanes * group, wholeDepth = k_ / step * step;
  auto stripe = [&](Value item, int64_t count) {
    forRange(0, wholeDepth / group, lanes, [&](Value firstUnit) { square(item, count, firstUnit, step); });
    if (wholeDepth < k_)
      square(item, count, e_.index(wholeDepth / group), k_ - wholeDepth);
  };
  forRange(0, wholeItems, lanes, [&](Value item) { stripe(item, lanes); });
  if (wholeItems < items)
    stripe(e_.index(wholeItems), items - wholeItems);
  // The register block reads whole panels.
  int64_t end = (items + lanes - 1) / lanes * lanes, panelEnd = (items + panel - 1) / panel * panel;
  for (int64_t item = end; item < panelEnd; item += lanes)
    forRange(0, units_, 1, [&](Value depth) {
      int64_t start = item / panel * to.panelStride + item % panel;
      store(zero(type), at(to.pointer, plus(e_.index(start), times(depth, to.depthStride)), unit), lanes);
    });
}

/// 128 times the sum of each column of B, with the sign that undoes the flipped bits of A.
Value DotEmitter::addCorrection(const PackedOperand &b) {
  int64_t lanes = plan_.lanes, panel = plan_.panel(), panels = (n_ + panel - 1) / panel;
  Value sums = e_.allocate({panels * panel}, plan_.accumulator).pointer;
  Type type = vectorOf(plan_.accumulator, lanes);
  Value ones = constantBits(b_, type, 0x01010101);
  forRange(0, panels, 1, [&](Value number) {
    for (int64_t v = 0; v < plan_.vectors; ++v) {
      Value start = at(b.pointer, plus(times(number, b.panelStride), e_.index(v * lanes)), plan_.accumulator);
      auto loop = b_.create<scf::ForOp>(e_.index(0), e_.index(units_), e_.index(1), ValueRange{zero(type)});
      {
        OpBuilder::InsertionGuard guard(b_);
        b_.setInsertionPointToEnd(loop.getBody());
        Value place = at(start, times(loop.getInductionVar(), b.depthStride), plan_.accumulator);
        Value units = b_.create<LLVM::LoadOp>(type, place, 4);
        b_.create<scf::YieldOp>(ValueRange{multiplyAdd(ones, units, loop.getRegionIterArg(0))});
      }
      Value factor = constantBits(b_, type, plan_.aIsUnsigned ? -128 : 128);
      store(b_.create<arith::MulIOp>(loop.getResult(0), factor),
            at(sums, plus(times(number, panel), e_.index(v * lanes)), plan_.accumulator), lanes);
    }
  });
  return sums;
}

} // namespace tenon::cpu
