// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <map>

namespace tenon::nvidia {

/// Addresses and bounds of one load or store.
struct ThreadEmitter::Access {
  ThreadEmitter &e;
  const ViewWords &view;
  const Distribution &tile;
  int64_t bytes; ///< per element
  llvm::SmallVector<mlir::Value> origin; ///< i64: offset + the thread's coordinate, per dimension
  mlir::Value base;                      ///< i64: the address at `origin`
  std::map<std::pair<int64_t, int64_t>, mlir::Value> inside, rows; ///< by dimension and register offset

  Access(ThreadEmitter &emitter, mlir::Value viewValue, mlir::ValueRange offsets, const Distribution &distribution)
      : e(emitter), view(emitter.views_.find(viewValue)->second), tile(distribution),
        bytes(lower::byteSize(lower::memoryType(view.element))) {
    auto &b = e.b_;
    mlir::Value linear;
    for (int64_t d = 0; d < tile.rank(); ++d) {
      mlir::Value thread = b.create<mlir::arith::ExtUIOp>(b.getI64Type(), e.threadCoords(tile)[d]);
      origin.push_back(b.create<mlir::arith::AddIOp>(e.toI64(e.scalar(offsets[d])), thread));
      mlir::Value part = origin[d];
      if (static_cast<int>(d) != view.unitStride)
        part = b.create<mlir::arith::MulIOp>(part, view.strides[d]);
      linear = linear ? b.create<mlir::arith::AddIOp>(linear, part).getResult() : part;
    }
    base = b.create<mlir::arith::AddIOp>(view.address, b.create<mlir::arith::MulIOp>(linear, e.i64(bytes)));
  }

  /// Whether a register lies inside the view; `without` a dimension: inside in the others.
  mlir::Value mask(int reg, int64_t without = -1) {
    auto &b = e.b_;
    mlir::Value all;
    for (int64_t d = 0; d < tile.rank(); ++d) {
      if (d == without)
        continue;
      int64_t offset = tile.offset(reg)[d];
      mlir::Value &one = inside[{d, offset}];
      if (!one) {
        mlir::Value at = offset ? b.create<mlir::arith::AddIOp>(origin[d], e.i64(offset)).getResult() : origin[d];
        // Before the view counts as far past.
        one = b.create<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, at, view.sizes[d]);
      }
      all = e.both(all, one);
    }
    return all;
  }

  /// The address of a register and the constant to add to it.
  std::pair<mlir::Value, int64_t> address(int reg) {
    auto &b = e.b_;
    mlir::Value at = base;
    int64_t constant = 0;
    for (int64_t d = 0; d < tile.rank(); ++d) {
      int64_t offset = tile.offset(reg)[d];
      if (static_cast<int>(d) == view.unitStride) {
        constant = offset * bytes;
      } else if (offset) {
        mlir::Value &row = rows[{d, offset}];
        if (!row)
          row = b.create<mlir::arith::MulIOp>(view.strides[d], e.i64(offset * bytes));
        at = b.create<mlir::arith::AddIOp>(at, row);
      }
    }
    return {at, constant};
  }
};

} // namespace tenon::nvidia
