// SPDX-License-Identifier: Apache-2.0
//
// Elements that change threads: layout conversions, slices, concatenations, reshapes that mix dimensions. Where layouts
// agree they are only other registers of the same threads (Layouts.h: sliced, concatenated, reshaped). The general way
// is through shared memory: everybody writes what it has (each element once), everybody reads what it needs. Rows are
// padded by 16 bytes so that a column does not sit in one bank.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

/// How an element lies in shared memory: as in a view, so that 16-bit floats take 16 bits.
Type stagedType(Type element) { return memoryType(element); }

} // namespace

/// The dimension along which both sides have the longest runs; the last one when they do not care.
int64_t ThreadEmitter::fastestFor(const Distribution &from, const Distribution &to) {
  int64_t best = from.rank() - 1;
  auto runs = [&](int64_t d) { return from.consecutive(d) + to.consecutive(d); };
  for (int64_t d = from.rank() - 1; d >= 0; --d)
    if (runs(d) > runs(best))
      best = d;
  return best;
}

ThreadEmitter::Staged ThreadEmitter::planStaging(ArrayRef<int64_t> shape, Type element, int64_t fastest, bool padded) {
  Staged staged = layOut(shape, element, fastest, padded);
  int64_t bytes = staged.window.end;
  staged.window.begin = allocateShared(bytes);
  staged.window.end = staged.window.begin + bytes;
  return staged;
}

/// How it would lie there, from address 0 on.
ThreadEmitter::Staged ThreadEmitter::layOut(ArrayRef<int64_t> shape, Type element, int64_t fastest, bool padded) {
  Staged staged;
  staged.element = element;
  staged.fastest = fastest;
  int64_t bytes = byteSize(stagedType(element)), rows = 1;
  staged.strides.assign(shape.size(), 0);
  staged.strides[fastest] = bytes;
  int64_t stride = shape[fastest] * bytes;
  for (size_t d = 0; d < shape.size(); ++d)
    rows *= static_cast<int64_t>(d) == fastest ? 1 : shape[d];
  if (padded && rows > 1)
    stride = llvm::alignTo(stride, 16) + 16;
  for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d)
    if (d != fastest) {
      staged.strides[d] = stride;
      stride *= shape[d];
    }
  staged.window.begin = 0;
  staged.window.end = stride;
  return staged;
}

/// How many consecutive registers move at once, given where the tile begins in the staged one.
int64_t ThreadEmitter::stagedWidth(const Staged &staged, const Distribution &tile, ArrayRef<int64_t> origin) {
  int64_t bytes = byteSize(stagedType(staged.element));
  int64_t width = std::min<int64_t>(16 / bytes, tile.consecutive(staged.fastest));
  auto limit = [&](int64_t multiple) {
    if (multiple)
      width = std::min(width, multiple & -multiple);
  };
  limit(tile.shape()[staged.fastest]);
  limit(origin[staged.fastest]);
  for (int64_t d = 0; d < tile.rank(); ++d)
    if (d != staged.fastest && tile.shape()[d] > 1)
      limit(staged.strides[d] / bytes);
  return width;
}

/// The thread's part of the address, i32.
Value ThreadEmitter::stagedBase(const Staged &staged, const Distribution &tile) {
  Value sum;
  for (int64_t d = 0; d < tile.rank(); ++d) {
    if (tile.shape()[d] == 1)
      continue;
    Value part = b_.create<arith::MulIOp>(threadCoords(tile)[d], i32(staged.strides[d]));
    sum = sum ? b_.create<arith::AddIOp>(sum, part).getResult() : part;
  }
  if (!sum || !staged.ofGroup)
    return sum ? sum : staged.ofGroup ? staged.ofGroup : i32(0);
  return b_.create<arith::AddIOp>(sum, staged.ofGroup);
}

void ThreadEmitter::writeStaged(const Staged &staged, Value value, ArrayRef<int64_t> origin, int group) {
  const Distribution &tile = distribution(value);
  int64_t width = stagedWidth(staged, tile, origin);
  Type memory = stagedType(staged.element), moved = width == 1 ? memory : VectorType::get({width}, memory);
  Value base = stagedBase(staged, tile), owner = isOwner(tile, /*ofBlock=*/true, bool(staged.ofGroup));
  for (int reg = 0; reg < tile.registers(); reg += static_cast<int>(width)) {
    if (!tile.exists(reg))
      continue;
    int64_t offset = staged.window.begin;
    for (int64_t d = 0; d < tile.rank(); ++d)
      offset += (tile.offset(reg)[d] + origin[d]) * staged.strides[d];
    Value packed = packMemory(ArrayRef<Value>(registers(value)).slice(reg, width), staged.element, moved);
    storeShared(packed, base, offset, both(holdsElement(tile, reg), owner), staged.window, group);
  }
}

Registers ThreadEmitter::readStaged(const Staged &staged, const Distribution &tile, ArrayRef<int64_t> origin,
                                    int group) {
  int64_t width = stagedWidth(staged, tile, origin);
  Type memory = stagedType(staged.element), moved = width == 1 ? memory : VectorType::get({width}, memory);
  Value base = stagedBase(staged, tile);
  Registers values(tile.registers());
  for (int reg = 0; reg < tile.registers(); reg += static_cast<int>(width)) {
    if (!tile.exists(reg))
      continue;
    int64_t offset = staged.window.begin;
    for (int64_t d = 0; d < tile.rank(); ++d)
      offset += (tile.offset(reg)[d] + origin[d]) * staged.strides[d];
    Value raw = loadShared(moved, base, offset, holdsElement(tile, reg), staged.window, group);
    for (int64_t i = 0; i < width; ++i)
      values[reg + i] = fromMemory(b_, width == 1 ? raw : b_.create<vector::ExtractOp>(raw, i).getResult(),
                                   staged.element);
  }
  return values;
}

/// What it costs. `written`, `read`: elements of one access.
void ThreadEmitter::tellStaging(Operation *op, const char *what, const Staged &staged, int64_t written, int64_t read) {
  int64_t bytes = byteSize(stagedType(staged.element));
  remark(op->getLoc(), std::string(what) + " through " + std::to_string(staged.window.end - staged.window.begin) +
                           " bytes of shared memory, written in accesses of " + std::to_string(written * bytes) +
                           " bytes and read in accesses of " + std::to_string(read * bytes));
}

/// A coordinate says which block has the element; what all of them have is read at home.
Registers ThreadEmitter::readFromCluster(const Staged &staged, const Distribution &from, const Distribution &to) {
  Coords origin(to.rank(), 0);
  int64_t width = stagedWidth(staged, to, origin), home = 0;
  SmallVector<Distribution::ThreadBit> blockBits;
  for (const Distribution::ThreadBit &bit : from.threadBits()) {
    if (bit.bit < Distribution::blockBit)
      continue;
    if (bit.dim < 0)
      home |= int64_t(1) << (bit.bit - Distribution::blockBit);
    else
      blockBits.push_back(bit);
    if (bit.dim == staged.fastest)
      width = std::min(width, bit.step);
  }
  Type memory = stagedType(staged.element), moved = width == 1 ? memory : VectorType::get({width}, memory);
  Value base = stagedBase(staged, to);
  Value zero = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(moved)));
  Registers values(to.registers());
  for (int reg = 0; reg < to.registers(); reg += static_cast<int>(width)) {
    if (!to.exists(reg))
      continue;
    int64_t offset = staged.window.begin;
    for (int64_t d = 0; d < to.rank(); ++d)
      offset += to.offset(reg)[d] * staged.strides[d];
    Value rank = b_.create<arith::AndIOp>(clusterRank_, i32(home));
    for (const Distribution::ThreadBit &bit : blockBits) {
      Value at = b_.create<arith::AddIOp>(threadCoords(to)[bit.dim], i32(to.offset(reg)[bit.dim]));
      Value one = b_.create<arith::AndIOp>(b_.create<arith::ShRUIOp>(at, i32(llvm::Log2_64(bit.step))), i32(1));
      rank = b_.create<arith::OrIOp>(rank, b_.create<arith::ShLIOp>(one, i32(bit.bit - Distribution::blockBit)));
    }
    Value mask = holdsElement(to, reg), address = b_.create<MapSharedOp>(b_.getI32Type(), base, rank);
    Value raw = b_.create<LoadOp>(moved, Space::cluster, address, static_cast<uint32_t>(offset), mask,
                                  mask ? zero : Value(), DenseI64ArrayAttr(), IntegerAttr(), /*streaming=*/false,
                                  /*lasting=*/false);
    for (int64_t i = 0; i < width; ++i)
      values[reg + i] = fromMemory(b_, width == 1 ? raw : b_.create<vector::ExtractOp>(raw, i).getResult(),
                                   staged.element);
  }
  return values;
}

//===--- The operations -------------------------------------------------------------------------------------------===//

namespace {

/// Whether a block needs elements that it does not have.
bool crossesBlocks(const Distribution &from, const Distribution &to) {
  return llvm::any_of(llvm::zip(from.threadBits(), to.threadBits()), [](auto pair) {
    auto &[has, needs] = pair;
    return has.bit >= Distribution::blockBit && has.dim >= 0 &&
           std::tie(has.dim, has.step) != std::tie(needs.dim, needs.step);
  });
}

} // namespace

bool ThreadEmitter::sameThreads(const Distribution &a, const Distribution &b) {
  auto steps = [](const Distribution &tile) {
    SmallVector<std::tuple<int, int64_t, int64_t>> list;
    for (const Distribution::ThreadBit &bit : tile.threadBits())
      list.push_back({bit.bit, bit.dim, bit.step});
    return list;
  };
  return steps(a) == steps(b);
}

void ThreadEmitter::emitConvert(ConvertOp op) {
  const Distribution &from = distribution(op.getValue()), &to = distribution(op);
  if (sameThreads(from, to)) { // other register numbers
    relabel(op.getValue(), op, [](const Coords &at) { return at; });
    return;
  }
  if (emitGroupExchange(op))
    return;
  int64_t mark = markShared(), fastest = fastestFor(from, to);
  Coords origin(from.rank(), 0);
  Staged plan = layOut(from.shape(), typeOf(op).getElementType(), fastest, /*padded=*/true);
  if (emitSwizzledConvert(op, plan.strides, stagedWidth(plan, from, origin), stagedWidth(plan, to, origin)))
    return;
  Staged staged = planStaging(from.shape(), typeOf(op).getElementType(), fastest, /*padded=*/true);
  writeStaged(staged, op.getValue(), origin, newGroup());
  if (crossesBlocks(from, to)) {
    blockBarrier();
    registers(op) = readFromCluster(staged, from, to);
    blockBarrier(); // before anybody writes there again, or ends
  } else {
    registers(op) = readStaged(staged, to, origin, newGroup());
  }
  tellStaging(op, "layout conversion", staged, stagedWidth(staged, from, origin), stagedWidth(staged, to, origin));
  releaseShared(mark);
}

void ThreadEmitter::emitSlice(tile::SliceOp op) {
  const Distribution &from = distribution(op.getValue()), &to = distribution(op);
  if (sliced(op, layoutOf(op.getValue().getType())) == layoutOf(op.getType())) { // other registers
    relabel(op.getValue(), op, [&](const Coords &at) {
      Coords source = at;
      for (auto [coordinate, offset] : llvm::zip(source, op.getOffsets()))
        coordinate += offset;
      return source;
    });
    return;
  }
  int64_t mark = markShared();
  Staged staged = planStaging(from.shape(), typeOf(op).getElementType(), fastestFor(from, to), /*padded=*/true);
  Coords origin(from.rank(), 0);
  writeStaged(staged, op.getValue(), origin, newGroup());
  registers(op) = readStaged(staged, to, op.getOffsets(), newGroup());
  tellStaging(op, "slice", staged, stagedWidth(staged, from, origin), stagedWidth(staged, to, op.getOffsets()));
  releaseShared(mark);
}

void ThreadEmitter::emitConcat(tile::ConcatOp op) {
  const Distribution &to = distribution(op);
  LayoutAttr part = layoutOf(op.getValues()[0].getType());
  auto hasPart = [&](Value value) { return layoutOf(value.getType()) == part; };
  if (llvm::all_of(op.getValues(), hasPart) && concatenated(op, part) == layoutOf(op.getType())) {
    int64_t size = typeOf(op.getValues()[0]).getDimSize(op.getDim());
    Registers values(to.registers());
    for (int reg = 0; reg < to.registers(); ++reg) {
      if (!to.exists(reg))
        continue;
      Coords at = to.offset(reg);
      Value from = op.getValues()[at[op.getDim()] / size];
      at[op.getDim()] %= size;
      values[reg] = registers(from)[distribution(from).registerAt(at)];
    }
    registers(op) = std::move(values);
    return;
  }
  int64_t mark = markShared();
  Staged staged = planStaging(to.shape(), typeOf(op).getElementType(), to.rank() - 1, /*padded=*/true);
  Coords origin(to.rank(), 0);
  int group = newGroup();
  for (Value value : op.getValues()) {
    writeStaged(staged, value, origin, group);
    origin[op.getDim()] += typeOf(value).getDimSize(op.getDim());
  }
  registers(op) = readStaged(staged, to, Coords(to.rank(), 0), newGroup());
  releaseShared(mark);
}

/// The offsets of a reshape between layouts that agree (see layoutAfterReshape) correspond in row-major order of the
/// padded extents; otherwise the tile is written without padding and read in its new shape.
void ThreadEmitter::emitReshape(tile::ReshapeOp op) {
  auto from = typeOf(op.getValue()), to = typeOf(op);
  if (reshapesInPlace(from, to)) {
    auto extents = [](RankedTensorType type) {
      SmallVector<int64_t> list;
      for (int64_t size : type.getShape())
        list.push_back(llvm::PowerOf2Ceil(size));
      return list;
    };
    SmallVector<int64_t> fromExtents = extents(from), toExtents = extents(to);
    relabel(op.getValue(), op, [&](const Coords &at) {
      int64_t linear = 0;
      for (size_t d = 0; d < at.size(); ++d)
        linear = linear * toExtents[d] + at[d];
      Coords source(fromExtents.size());
      for (size_t d = fromExtents.size(); d-- > 0;) {
        source[d] = linear % fromExtents[d];
        linear /= fromExtents[d];
      }
      return source;
    });
    return;
  }
  int64_t mark = markShared();
  Staged written = planStaging(from.getShape(), from.getElementType(), from.getRank() - 1, /*padded=*/false);
  writeStaged(written, op.getValue(), Coords(from.getRank(), 0), newGroup());
  releaseShared(mark);
  Staged read = planStaging(to.getShape(), to.getElementType(), to.getRank() - 1, /*padded=*/false);
  registers(op) = readStaged(read, distribution(op), Coords(to.getRank(), 0), newGroup());
  releaseShared(mark);
}

/// A tile of one element is held by every thread.
void ThreadEmitter::emitScalar(tile::ScalarOp op) { scalars_[op] = registers(op.getValue())[0]; }

} // namespace tenon::nvidia
