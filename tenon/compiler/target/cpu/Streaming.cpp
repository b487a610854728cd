// SPDX-License-Identifier: Apache-2.0
//
// Stores past the cache. Before a line that is not in the cache can be written in part, it is read from memory; a store
// of a whole line that is said to be streaming is spared that, and pushes nothing else out of the cache. A result
// larger than the cache gains by it (a copy: one and a half times as fast); one that fits would not be there for
// whoever reads it next. How large that is, Loader.cpp says.
//
// A nest has a streaming twin if it writes views that the kernel does not read, whole vectors at a time. The twin runs
// when the views are large and every vector starts at a multiple of its size, which is found out before the loops:
//
//     scf.if %inside { scf.if %streams { stores past the cache } else { plain stores } } else { checked, plain stores }
//
// A processor writes and reads pages of memory, and prefetches within one: where it gains by it (Isa::bringsRows), a
// streaming loop along a row of several pages goes over up to four of them at once.
//
//     for j = 0 to 4096 step 32            ->   for j = 0 to 1024 step 32 { for p = 0 to 4096 step 1024 { ... p + j ...
//     } }
//
// So do the reductions of a kernel that goes over rows more than once and stores none of them (a cross-entropy), and
// those of a kernel that stores such rows, whether this streams or not: what is added up in which order
// must not depend on how large a result is, and all loops of a row can be one (Overlap.cpp).
//
// Such stores may become visible late: tenon_run ends with a fence (Entry.cpp).
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tenon::cpu {

/// Whether what `lanes` lanes of the store write is a number of whole vector registers in a row.
bool Nest::storesWholeVectors(tile::StoreOp op, unsigned lanes) {
  const ViewParts &view = e_.view(op.getView());
  unsigned bytes = lanes * byteSize(memoryType(view.element));
  return view.unitStride == vectorDim_ && lanes > 1 && bytes % e_.isa().vectorBytes == 0;
}

/// Whether the twin should run; null where there is none.
Value Nest::streams() {
  if (!e_.isa().streams || vectorDim_ < 0)
    return {};
  auto lanes = static_cast<unsigned>(std::min<int64_t>(group_.shape[vectorDim_], preferredLanes(e_.isa())));
  SmallVector<tile::StoreOp> stores;
  for (const NestRoot &root : group_.roots)
    if (auto store = llvm::dyn_cast_if_present<tile::StoreOp>(root.op);
        store && storesWholeVectors(store, lanes) && e_.isOnlyStored(store.getView()))
      stores.push_back(store);
  if (stores.empty())
    return {};

  Type i64 = b_.getI64Type();
  auto wide = [&](Value index) -> Value { return b_.create<arith::IndexCastOp>(i64, index); };
  Value low, threshold = e_.streamingThreshold(), large;
  for (tile::StoreOp store : stores) {
    b_.setLoc(store.getLoc());
    const ViewParts &view = e_.view(store.getView());
    int64_t bytes = byteSize(memoryType(view.element));
    Value size = constantBits(b_, i64, bytes), total = size;
    // What must be a multiple of a vector: the address, the steps from row to row and where the window starts in a row.
    SmallVector<Value> multiples = {b_.create<LLVM::PtrToIntOp>(i64, view.pointer)};
    for (auto [d, offset] : llvm::enumerate(store.getOffsets())) {
      bool isVectors = static_cast<int>(d) == vectorDim_;
      Value step = wide(isVectors ? e_.scalar(offset) : view.strides[d]);
      multiples.push_back(b_.create<arith::MulIOp>(step, size));
      total = b_.create<arith::MulIOp>(total, wide(view.sizes[d]));
    }
    for (Value multiple : multiples)
      low = low ? b_.create<arith::OrIOp>(low, multiple).getResult() : multiple;
    Value isLarge = b_.create<arith::CmpIOp>(arith::CmpIPredicate::sge, total, threshold);
    Prefetch::Window window{store, view.pointer, {}, view.strides, view.unitStride, bytes, isLarge};
    for (Value offset : store.getOffsets())
      window.offsets.push_back(e_.scalar(offset));
    e_.prefetch().writes(std::move(window));
    large = large ? b_.create<arith::AndIOp>(large, isLarge).getResult() : isLarge;
  }
  low = b_.create<arith::AndIOp>(low, constantBits(b_, i64, e_.isa().vectorBytes - 1));
  Value aligned = b_.create<arith::CmpIOp>(arith::CmpIPredicate::eq, low, constantBits(b_, i64, 0));
  return b_.create<arith::AndIOp>(aligned, large);
}

/// Into how many parts of whole pages a loop along `extent` is cut that goes over all of them at once; 1: it is not.
int64_t Nest::partsOfRow(int64_t extent, int64_t step) {
  constexpr int64_t pageBytes = 4096, mostParts = 4;
  if (!e_.isa().bringsRows || vectorDim_ < 0)
    return 1;
  int64_t parts = mostParts, stores = 0;
  e_.kernel().walk([&](tile::StoreOp store) {
    if (store.getValue().getType().getShape() != ArrayRef(group_.shape))
      return;
    parts = std::min(parts, extent * byteSize(memoryType(store.getView().getType().getElementType())) / pageBytes);
    ++stores;
  });
  // Where nothing of that shape is stored, rows that more than one loop goes over: those can be one (Overlap.cpp).
  int64_t reductions = 0;
  if (!stores)
    e_.kernel().walk([&](Operation *op) {
      auto load = llvm::dyn_cast<tile::LoadOp>(op);
      if (load && load.getType().getShape() == ArrayRef(group_.shape))
        parts = std::min(parts, extent * byteSize(memoryType(load.getView().getType().getElementType())) / pageBytes);
      auto reduce = llvm::dyn_cast<tile::ReduceOp>(op);
      bool isOfRow =
          reduce && llvm::cast<RankedTensorType>(reduce.getValues()[0].getType()).getShape() == ArrayRef(group_.shape);
      reductions += isOfRow && llvm::isa<func::FuncOp>(op->getParentOp());
    });
  while (parts > 1 && extent % (parts * step) != 0)
    --parts;
  return stores || reductions > 1 ? std::max<int64_t>(parts, 1) : 1;
}

SmallVector<Value> Nest::loopOverParts(int64_t begin, Value end, int64_t whole, int64_t parts, int64_t step,
                                       ArrayRef<Value> inits,
                                       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  if (parts == 1)
    return loop(begin, end, step, inits, body);
  return loop(begin, end, step, inits, [&](Value counter, ValueRange outer) {
    return loop(0, e_.index(whole), whole / parts, SmallVector<Value>(outer), [&](Value start, ValueRange carried) {
      Value place = b_.create<arith::AddIOp>(start, counter);
      depths_[place] = levels_.size() - 1;
      return body(place, carried);
    });
  });
}

} // namespace tenon::cpu
