// SPDX-License-Identifier: Apache-2.0
//
// A kernel that goes over its rows more than once (a norm, a softmax) reads memory in its first loop only, and the
// processor's own prefetching stops with the loop: memory rests while the other loops compute. So these bring in what
// comes next. A tile usually follows its neighbour: the window that the next instance reads (the next iteration, where
// an offset follows a loop) lies one extent further in the dimension whose offset changes fastest.
//
//     for j { s += x[i, j] }                 for j { s += x[i, j] }
//     for j { y[i, j] = x[i, j] / s }   ->   for j { prefetch x[i + 1, j];  y[i, j] = x[i, j] / s }
//
// The later loops share the lines of the window evenly, so that memory has something to do in each; where they store
// nothing (a cross-entropy) and the processor has to be told (Isa::bringsRows), the first loop has its share too. Where
// there are several windows (a layer norm's rows of x and of the residual), only the first lines of each page of them
// are brought in, and the processor's own prefetching, which begins anew with every page, finds what it needs to go on:
// a core has 16 lines on their way at most, those that are stored past the cache among them. A window that would push
// out what is being worked on is left alone. In a kernel with one loop the next window follows at once; there it
// depends on the processor whether its own prefetching, which ends with a page of 4 KiB, is enough. Nothing happens if
// the guess is wrong, or points past the end: a prefetch never faults.
#include "tenon/compiler/target/cpu/Prefetch.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tenon::cpu {

constexpr unsigned paceOfLoops = 4; ///< of a loop more

unsigned paceOf(Value offset) {
  llvm::SmallVector<Value> work = {offset};
  llvm::SmallPtrSet<Operation *, 8> seen;
  unsigned fastest = 0;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
      auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      unsigned depth = paceOfLoops;
      for (Operation *outer = loop; outer; outer = outer->getParentOp())
        ++depth;
      if (loop && argument == loop.getInductionVar())
        fastest = std::max(fastest, depth);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (llvm::isa<tile::GridOp>(op))
      fastest = std::max(fastest, 1 + llvm::cast<OpResult>(value).getResultNumber());
    else if (seen.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
  return fastest;
}

unsigned fastestAxis(func::FuncOp kernel) {
  unsigned axes = 0;
  kernel.walk([&](tile::GridOp grid) { axes = grid->getNumResults(); });
  return axes;
}

namespace {

constexpr int64_t leastBytes = 1 << 10, mostBytes = 256 << 10; ///< of a window
constexpr int64_t pageBytes = 4096, linesOfPage = 8;           ///< what is brought in of a page where not all is

/// The dimension in which the next window lies, if its offset has at least that pace; -1: none.
int movingDim(tile::LoadOp load, unsigned least = 1) {
  int moving = -1;
  unsigned fastest = least - 1;
  for (auto [d, offset] : llvm::enumerate(load.getOffsets()))
    if (unsigned found = paceOf(offset); found > fastest) {
      fastest = found;
      moving = static_cast<int>(d);
    }
  return moving;
}

/// Lines from `first` bytes on into the row of the next window in which a loop's body is, `lines` an iteration.
/// `onlyHeads`: one of the first of the page that they are in. `ahead`: how far the window moves.
struct Share {
  int64_t first, lines;
  bool onlyHeads;
  int64_t ahead;
};

/// Extents along `moving` to what a loop brings in: the next window, or, where the same loop will read it (`alone`),
/// rows that begin a page further on. The first rows of a window that is not the first would come too late otherwise,
/// and those past the last one for nothing.
int64_t aheadIn(const Prefetch::Window &window, int moving, int vectorDim, bool alone) {
  int64_t extent = window.type().getDimSize(moving);
  if (!alone || moving == vectorDim)
    return extent;
  int64_t rowBytes = window.type().getDimSize(vectorDim) * window.elementBytes;
  return std::min(extent, (pageBytes + rowBytes - 1) / rowBytes);
}

void prefetch(ImplicitLocOpBuilder &b, const Prefetch::Window &window, ArrayRef<Value> coords, int vectorDim,
              int moving, int64_t step, const Share &share) {
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(value); };
  auto add = [&](Value x, Value y) -> Value { return x ? b.create<arith::AddIOp>(x, y).getResult() : y; };
  Value offset;
  for (auto [d, begin] : llvm::enumerate(window.offsets)) {
    Value at = begin;
    int dim = static_cast<int>(d);
    if (dim != vectorDim)
      at = add(at, coords[d]);
    if (dim == moving)
      at = add(at, constant(share.ahead));
    offset = add(offset, dim == window.unitStride ? at : b.create<arith::MulIOp>(at, window.strides[d]).getResult());
  }
  Value bytes = b.create<arith::MulIOp>(offset, constant(window.elementBytes));
  // The iteration's number times what it brings in; the step is a power of two, the bytes a multiple of it.
  Value position = b.create<arith::MulIOp>(coords[vectorDim], constant(share.lines * lineBytes / step));
  int64_t lines = share.lines;
  if (share.onlyHeads) {
    constexpr int64_t linesPerHead = pageBytes / lineBytes / linesOfPage; // in whose place there is one
    Value within = b.create<arith::AndIOp>(position, constant(pageBytes - 1));
    Value page = b.create<arith::SubIOp>(position, within);
    Value line = b.create<arith::DivUIOp>(within, constant(linesPerHead * lineBytes));
    position = b.create<arith::AddIOp>(page, b.create<arith::MulIOp>(line, constant(lineBytes)));
    lines = 1;
  }
  bytes = b.create<arith::AddIOp>(b.create<arith::AddIOp>(bytes, position), constant(share.first));
  Value wide = b.create<arith::IndexCastOp>(b.getI64Type(), bytes);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  for (int64_t line = 0; line < lines; ++line) {
    Value at = b.create<LLVM::GEPOp>(pointer, b.getI8Type(), window.pointer, ValueRange{wide});
    if (line)
      at = b.create<LLVM::GEPOp>(pointer, b.getI8Type(), at,
                                 ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(line * lineBytes)});
    b.create<LLVM::Prefetch>(at, /*rw=*/0, /*hint=*/2, /*cache=*/1); // read, to L2, data
  }
}

} // namespace

int dimMovedByLoop(tile::LoadOp load) { return movingDim(load, paceOfLoops + 1); }

void Prefetch::beginNest(Block *block, ArrayRef<int64_t> shape, int vectorDim, int64_t step) {
  current_ = block;
  Nest nest;
  nest.shape.assign(shape.begin(), shape.end());
  nest.vectorDim = vectorDim;
  nest.step = step;
  nests_[block].push_back(std::move(nest));
}

void Prefetch::addLoop(scf::ForOp loop, ArrayRef<Value> coords) {
  nests_[current_].back().loops.push_back({loop.getBody(), SmallVector<Value>(coords)});
}

/// Whether loops after the first are to bring in more than one window.
bool Prefetch::isShared(llvm::ArrayRef<Nest> nests) {
  llvm::SmallPtrSet<Operation *, 8> loads;
  bool areRead = false;
  for (const Nest &nest : nests) {
    areRead |= loads.size() > 1 && !nest.loops.empty();
    for (const Window &window : nest.windows) {
      int64_t bytes = window.type().getNumElements() * window.elementBytes;
      if (movingDim(window.op()) >= 0 && window.unitStride == nest.vectorDim &&
          window.type().getShape() == ArrayRef(nest.shape) && bytes >= leastBytes && bytes <= mostBytes)
        loads.insert(window.load);
    }
  }
  return areRead;
}

bool Prefetch::storesSomething(const Nest *nest) {
  return llvm::any_of(nest->loops, [](const Loop &loop) { return !loop.body->getOps<LLVM::StoreOp>().empty(); });
}

void Prefetch::emit(ImplicitLocOpBuilder &b, bool always) const {
  for (const auto &[block, nests] : nests_) {
    llvm::SmallPtrSet<Operation *, 8> seen;
    size_t turn = 0; // windows begin with different loops
    bool onlyHeads = isShared(nests);
    for (const auto &[number, nest] : llvm::enumerate(nests))
      for (const Window &window : nest.windows) {
        RankedTensorType type = window.type();
        int moving = movingDim(window.op());
        if (!seen.insert(window.load).second || moving < 0 || nest.vectorDim < 0 ||
            window.unitStride != nest.vectorDim || type.getShape() != ArrayRef(nest.shape) || lineBytes % nest.step != 0)
          continue;
        int64_t rowBytes = type.getDimSize(nest.vectorDim) * window.elementBytes;
        int64_t allBytes = type.getNumElements() * window.elementBytes;
        SmallVector<const Nest *> later;
        for (const Nest &other : llvm::drop_begin(nests, number + 1))
          if (other.shape == nest.shape && other.vectorDim == nest.vectorDim && lineBytes % other.step == 0 &&
              !other.loops.empty())
            later.push_back(&other);
        bool isAlone = later.empty();
        if (always && !nest.loops.empty() && llvm::none_of(later, storesSomething))
          later.insert(later.begin(), &nest);
        if (later.empty() || allBytes < leastBytes || allBytes > mostBytes)
          continue;
        // Loops may differ in what they do at once: one that only reduces has longer vectors.
        int64_t lines = rowBytes / lineBytes, extent = type.getDimSize(nest.vectorDim), mostIterations = 0;
        for (const Nest *other : later)
          mostIterations = std::max(mostIterations, extent / other->step);
        if (mostIterations == 0)
          continue;
        int64_t ahead = aheadIn(window, moving, nest.vectorDim, isAlone);
        auto sharers = std::clamp<int64_t>(lines / mostIterations, 1, static_cast<int64_t>(later.size()));
        for (int64_t i = 0; i < sharers; ++i) {
          const Nest &sharer = *later[(turn + i) % later.size()];
          int64_t iterations = std::max<int64_t>(1, extent / sharer.step);
          int64_t each = std::max<int64_t>(1, lines / (sharers * iterations));
          for (const Loop &loop : sharer.loops) {
            if (Operation *place = loop.coords[nest.vectorDim].getDefiningOp())
              b.setInsertionPointAfter(place);
            else
              b.setInsertionPointToStart(loop.body);
            b.setLoc(window.load->getLoc());
            prefetch(b, window, loop.coords, nest.vectorDim, moving, sharer.step,
                     {i * (lines / sharers) * lineBytes, each, onlyHeads, ahead});
          }
        }
        turn += static_cast<size_t>(sharers);
      }
  }
}

} // namespace tenon::cpu
