// SPDX-License-Identifier: Apache-2.0
//
// tile.load and tile.store: every thread moves the elements of its own registers, as wide as is known to be right.
//
// The address of a register is (view + offsets + the thread's coordinates), computed once, plus what the register adds:
// a constant along the contiguous dimension, a multiple of the stride along the others. An access of several elements must
// be aligned, and bounds must not cut it: both follow from what the view's address, sizes and strides and the offsets are
// known to be multiples of.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

AccessWidth accessWidth(Value view, ValueRange offsets, ArrayRef<int64_t> shape, Divisibility &divisibility) {
  int64_t bytes = byteSize(memoryType(llvm::cast<tile::ViewType>(view.getType()).getElementType()));
  AccessWidth found{16 / bytes, 16 / bytes, ""};
  std::optional<int64_t> contiguous = contiguousDim(view);
  if (!contiguous) {
    found.limitTo(1, "no dimension of the view has stride 1");
    return found;
  }
  ViewAlignment known = alignmentOf(view);
  found.limitTo(known.bytes / bytes, "the view's address is not known to be a multiple of 16 bytes");
  for (size_t d = 0; d < shape.size(); ++d)
    if (static_cast<int64_t>(d) != *contiguous)
      found.limitTo(known.strides[d], "the view's rows are not known to begin at multiples of 16 bytes");
  found.limitTo(divisibility.of(offsets[*contiguous]), "the offset is not known to be a multiple of 16 bytes");
  found.limitTo(known.sizes[*contiguous], "the view's size is not known to be a multiple of 16 bytes");
  int64_t size = shape[*contiguous];
  found.limitTo(size & -size, "the tile's size is no multiple of 16 bytes");
  return found;
}

namespace {

/// The bytes that one access moves, as a type.
Type accessType(Type memory, int64_t width) { return width == 1 ? memory : VectorType::get({width}, memory); }

} // namespace

/// Addresses and bounds of one load or store.
struct ThreadEmitter::Access {
  ThreadEmitter &e;
  const ViewWords &view;
  const Distribution &tile;
  int64_t bytes; ///< per element
  SmallVector<Value> origin; ///< i64: offset + the thread's coordinate, per dimension
  Value base;                ///< i64: the address at `origin`
  std::map<std::pair<int64_t, int64_t>, Value> inside, rows; ///< by dimension and register offset

  Access(ThreadEmitter &emitter, Value viewValue, ValueRange offsets, const Distribution &distribution)
      : e(emitter), view(emitter.views_.find(viewValue)->second), tile(distribution),
        bytes(byteSize(memoryType(view.element))) {
    auto &b = e.b_;
    Value linear;
    for (int64_t d = 0; d < tile.rank(); ++d) {
      Value thread = b.create<arith::ExtUIOp>(b.getI64Type(), e.threadCoords(tile)[d]);
      origin.push_back(b.create<arith::AddIOp>(e.toI64(e.scalar(offsets[d])), thread));
      Value part = static_cast<int>(d) == view.unitStride ? origin[d]
                                                           : b.create<arith::MulIOp>(origin[d], view.strides[d]).getResult();
      linear = linear ? b.create<arith::AddIOp>(linear, part).getResult() : part;
    }
    base = b.create<arith::AddIOp>(view.address, b.create<arith::MulIOp>(linear, e.i64(bytes)));
  }

  Value mask(int reg) {
    auto &b = e.b_;
    Value all;
    for (int64_t d = 0; d < tile.rank(); ++d) {
      int64_t offset = tile.offset(reg)[d];
      Value &one = inside[{d, offset}];
      if (!one) {
        Value at = offset ? b.create<arith::AddIOp>(origin[d], e.i64(offset)).getResult() : origin[d];
        one = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, at, view.sizes[d]); // before the view counts as far past
      }
      all = e.both(all, one);
    }
    return all;
  }

  /// The address of a register and the constant to add to it.
  std::pair<Value, int64_t> address(int reg) {
    auto &b = e.b_;
    Value at = base;
    int64_t constant = 0;
    for (int64_t d = 0; d < tile.rank(); ++d) {
      int64_t offset = tile.offset(reg)[d];
      if (static_cast<int>(d) == view.unitStride) {
        constant = offset * bytes;
      } else if (offset) {
        Value &row = rows[{d, offset}];
        if (!row)
          row = b.create<arith::MulIOp>(view.strides[d], e.i64(offset * bytes));
        at = b.create<arith::AddIOp>(at, row);
      }
    }
    return {at, constant};
  }
};

void ThreadEmitter::emitLoad(tile::LoadOp op) {
  const Distribution &tile = distribution(op);
  Access access(*this, op.getView(), op.getOffsets(), tile);
  AccessWidth width = widthOf(op.getView(), op.getOffsets(), tile);
  if (auto reason = op->getAttrOfType<StringAttr>(notAsyncAttr))
    remark(op.getLoc(), "load does not run ahead of its loop: " + reason.str());
  Type element = access.view.element, memory = memoryType(element), moved = accessType(memory, width.elements);
  Value padding = op.getPadding() ? toMemory(b_, scalar(op.getPadding()), element)
                  : llvm::isa<FloatType>(memory) ? constantLike(b_, memory, 0)
                                                 : constantBits(b_, memory, 0);
  if (width.elements > 1)
    padding = b_.create<vector::SplatOp>(moved, padding);
  Registers values(tile.registers());
  for (int reg = 0; reg < tile.registers(); reg += static_cast<int>(width.elements)) {
    if (!tile.exists(reg))
      continue;
    auto [address, constant] = access.address(reg);
    // Past the tile's edge is memory of another instance, which may be writing it.
    Value mask = isWritten(op.getView()) ? both(access.mask(reg), holdsElement(tile, reg)) : access.mask(reg);
    Value raw = loadGlobal(moved, address, constant, mask, padding);
    for (int64_t i = 0; i < width.elements; ++i) {
      Value one = width.elements == 1 ? raw : b_.create<vector::ExtractOp>(raw, i).getResult();
      values[reg + i] = fromMemory(b_, one, element);
    }
  }
  registers(op) = std::move(values);
  tellAccess(op, "load", access, width);
}

void ThreadEmitter::emitStore(tile::StoreOp op) {
  if (op->hasAttr(bulkAttr))
    return emitBulkStore(op);
  const Distribution &tile = distribution(op.getValue());
  Access access(*this, op.getView(), op.getOffsets(), tile);
  AccessWidth width = widthOf(op.getView(), op.getOffsets(), tile);
  Type element = access.view.element, moved = accessType(memoryType(element), width.elements);
  Value owner = isOwner(tile);
  const Registers &values = registers(op.getValue());
  for (int reg = 0; reg < tile.registers(); reg += static_cast<int>(width.elements)) {
    if (!tile.exists(reg))
      continue;
    Value value = packMemory(ArrayRef<Value>(values).slice(reg, width.elements), element, moved);
    auto [address, constant] = access.address(reg);
    Value mask = both(both(access.mask(reg), holdsElement(tile, reg)), owner);
    storeGlobal(value, address, constant, mask);
  }
  tellAccess(op, "store", access, width);
}

AccessWidth ThreadEmitter::widthOf(Value view, ValueRange offsets, const Distribution &tile) {
  AccessWidth width = accessWidth(view, offsets, tile.shape(), divisibility_);
  if (std::optional<int64_t> contiguous = contiguousDim(view))
    width.limitTo(tile.consecutive(*contiguous), "a thread holds too few consecutive elements");
  return width;
}

/// Register values of one access in the form memory has.
Value ThreadEmitter::packMemory(ArrayRef<Value> values, Type element, Type moved) {
  if (values.size() == 1)
    return toMemory(b_, values[0], element);
  SmallVector<Value> raw;
  for (Value value : values)
    raw.push_back(toMemory(b_, value, element));
  return b_.create<vector::FromElementsOp>(moved, raw);
}

/// What an access does not do as well as it could: its width, and the bounds that are checked as the kernel runs.
void ThreadEmitter::tellAccess(Operation *op, const char *what, const Access &access, const AccessWidth &width) {
  if (width.elements < width.widest)
    remark(op->getLoc(), std::string(what) + " of " + std::to_string(width.elements * access.bytes) +
                             " bytes a thread instead of 16: " + width.limit);
  std::map<int64_t, int> checks; // by dimension
  for (const auto &[place, compare] : access.inside)
    ++checks[place.first];
  if (checks.empty())
    return;
  std::string dimensions;
  int all = 0;
  for (auto [dim, count] : checks) {
    dimensions += (dimensions.empty() ? "" : ", ") + std::to_string(dim);
    all += count;
  }
  remark(op->getLoc(), std::string(what) + " checks bounds in dimension" + (checks.size() > 1 ? "s " : " ") +
                           dimensions + ": " + std::to_string(all) + " comparisons a thread");
}

} // namespace tenon::nvidia
