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
// The later loops share the lines of the window evenly, so that memory has something to do in each; where the processor
// has to be told (Isa::bringsCached), the first loop has its share too: an even one where they store nothing (a
// cross-entropy), else an eighth. So has a loop before it that reads nothing (it draws random numbers): this brings in
// what the first loop is about to read. Where there are several windows (a layer norm's rows of x and of the residual),
// only the first lines of each page of them are brought in, and the processor's own prefetching, which begins anew with
// every page, finds what it needs to go on: a core has 16 lines on their way at most, those that are stored past the
// cache among them. A window that would push out what is being worked on is left alone. In a kernel with one loop the
// next window follows at once; there it depends on the processor whether its own prefetching is enough: it may end with
// a page of 4 KiB (Isa::bringsRows), or be found wanting only where results go through the cache (Isa::bringsCached).
// Such a processor does well past the cache as long as the window is all that a loop reads. Beside other streams (a row
// that is the same for all, random numbers in scratch) it does not, nor where a line of 16-bit elements takes the loop
// twice as long: there the loop brings in what lies 8 KiB further along the row, to L1.
// Nothing happens if the guess is wrong, or points past the end: a prefetch never faults.
//
// There, lines that will be written through the cache are asked for as well, with the intent to write them. They come
// from memory as what is read does, and the processor asks for them only when a store is about to leave the core: too
// few are on their way at a time. The loop that stores asks for them, a little ahead. Of short rows the loop before it
// does, where that has its own operands from the cache (the exponentials of a softmax), since memory would rest there.
#include "tenon/compiler/target/cpu/Prefetch.h"

#include "tenon/compiler/target/cpu/DotKept.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <set>

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
    if (auto grid = llvm::dyn_cast<tile::GridOp>(op)) {
      SmallVector<int64_t> order = orderOfAxes(grid);
      auto place = llvm::find(order, llvm::cast<OpResult>(value).getResultNumber()) - order.begin();
      fastest = std::max(fastest, 1 + static_cast<unsigned>(place));
    } else if (seen.insert(op).second) {
      llvm::append_range(work, op->getOperands());
    }
  }
  return fastest;
}

namespace {

constexpr int64_t leastBytes = 1 << 10, mostBytes = 256 << 10; ///< of a window
constexpr int64_t pageBytes = 4096, linesOfPage = 8;           ///< what is brought in of a page where not all is
constexpr int64_t mostWrittenBytes = 16 << 10; ///< of a tile that the loop before asks for: a third of L1
constexpr int64_t alongBytes = 8 << 10;        ///< how far along a row a loop past the cache brings it in
constexpr int64_t partsOfRow = 8;              ///< one of which the first loop brings in where a later one stores

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

/// What a loop brings in lies `extents` further along `dim`.
struct Ahead {
  int dim;
  int64_t extents;
};

/// How many rows on one lies that begins so many bytes further on.
int64_t rowsTo(int64_t bytes, int64_t rowBytes) { return (bytes + rowBytes - 1) / rowBytes; }

/// The dimension in which the next row of a tile lies; -1: it has one.
int rowsOf(ArrayRef<int64_t> shape, int vectorDim) {
  int rows = -1;
  for (int d = 0; d < static_cast<int>(shape.size()); ++d)
    if (d != vectorDim && shape[d] > 1)
      rows = d;
  return rows;
}

/// The next window, or, where the same loop will read it (`alone`), rows that begin a page further on: the first rows
/// of a window that is not the first would come too late otherwise, and those past the last one for nothing.
Ahead aheadOf(const Prefetch::Window &window, int moving, int vectorDim, bool alone) {
  ArrayRef<int64_t> shape = window.type().getShape();
  int64_t rowBytes = shape[vectorDim] * window.elementBytes;
  int rows = rowsOf(shape, vectorDim);
  if (alone && moving != vectorDim)
    return {moving, rowsTo(pageBytes, rowBytes)};
  if (alone && rows >= 0 && rowBytes < pageBytes)
    return {rows, rowsTo(pageBytes, rowBytes)};
  return {moving, shape[moving]};
}

/// So many `bytes`, from `first` on, of the row of the next window in which a loop's body is. `onlyHeads`: in an
/// iteration one of the first lines of the page that its own are in. `isWrite`: with the intent to write them. `along`,
/// if not 0: so much further along the row instead, and behind its end along the next, to L1.
struct Share {
  int64_t first, bytes;
  bool onlyHeads;
  Ahead ahead;
  bool isWrite = false;
  int64_t along = 0;
};

void prefetch(ImplicitLocOpBuilder &b, const Prefetch::Window &window, ArrayRef<Value> coords, int vectorDim,
              int64_t extent, int64_t step, const Share &share) {
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(value); };
  auto add = [&](Value x, Value y) -> Value { return x ? b.create<arith::AddIOp>(x, y).getResult() : y; };
  // From where the iteration is to where the next one begins; what is no whole line belongs to both.
  Value position = b.create<arith::MulIOp>(coords[vectorDim],
                                           constant(share.bytes % extent == 0 ? share.bytes / extent : share.bytes));
  if (share.bytes % extent != 0)
    position = b.create<arith::DivUIOp>(position, constant(extent));
  Value extents = constant(share.ahead.extents);
  if (share.along) {
    Value further = b.create<arith::AddIOp>(position, constant(share.along)), end = constant(share.bytes);
    Value isNext = b.create<arith::CmpIOp>(arith::CmpIPredicate::uge, further, end);
    position = b.create<arith::SelectOp>(isNext, b.create<arith::SubIOp>(further, end), further);
    extents = b.create<arith::SelectOp>(isNext, extents, constant(0));
  }
  Value offset;
  for (auto [d, begin] : llvm::enumerate(window.offsets)) {
    Value at = begin;
    int dim = static_cast<int>(d);
    if (dim != vectorDim)
      at = add(at, coords[d]);
    if (dim == share.ahead.dim)
      at = add(at, extents);
    offset = add(offset, dim == window.unitStride ? at : b.create<arith::MulIOp>(at, window.strides[d]).getResult());
  }
  Value bytes = b.create<arith::MulIOp>(offset, constant(window.elementBytes));
  int64_t lines = (share.bytes * step + extent * lineBytes - 1) / (extent * lineBytes);
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
    b.create<LLVM::Prefetch>(at, /*rw=*/share.isWrite, /*hint=*/share.along ? 3 : 2, /*cache=*/1); // L1 or L2, data
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

void Prefetch::addLoop(scf::ForOp loop, ArrayRef<Value> coords, bool streaming) {
  nests_[current_].back().loops.push_back({loop.getBody(), SmallVector<Value>(coords), streaming});
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

/// Whether the nest reads something beside windows that move as this one does: from scratch, or the same for every row.
bool Prefetch::readsBesides(const Nest &nest, const Window &window) {
  auto pacesOf = [](const Window &one) {
    std::set<unsigned> paces = {0};
    for (Value offset : one.op().getOffsets())
      paces.insert(paceOf(offset));
    return paces;
  };
  return nest.readsScratch || llvm::any_of(nest.windows, [&](const Window &other) {
    return pacesOf(other) != pacesOf(window);
  });
}

bool Prefetch::storesSomething(const Nest *nest) {
  return llvm::any_of(nest->loops, [](const Loop &loop) { return !loop.body->getOps<LLVM::StoreOp>().empty(); });
}

/// Whether the nest has loops, and what the window's offsets are was computed before them.
bool Prefetch::isKnownIn(const Window &window, const Nest &nest) {
  return !nest.loops.empty() && llvm::all_of(window.offsets, [&](Value offset) {
    Operation *made = offset.getDefiningOp();
    Operation *loop = made ? made->getBlock()->findAncestorOpInBlock(*nest.loops.front().body->getParentOp()) : nullptr;
    return !made || (loop && made->isBeforeInBlock(loop));
  });
}

void Prefetch::setInsertionPoint(ImplicitLocOpBuilder &b, const Loop &loop, int vectorDim) {
  if (Operation *place = loop.coords[vectorDim].getDefiningOp())
    b.setInsertionPointAfter(place);
  else
    b.setInsertionPointToStart(loop.body);
}

/// Whether the nest with that number is to ask for the lines that the next one writes.
bool Prefetch::mayBringInFor(ArrayRef<Nest> nests, size_t number, const Window &written) {
  const Nest &nest = nests[number], &next = nests[number + 1];
  int64_t bytes = written.elementBytes;
  for (int64_t size : next.shape)
    bytes *= size;
  // What it reads was read before: it does not wait for memory itself.
  auto wasRead = [&](const Window &window) {
    return llvm::any_of(nests.take_front(number), [&](const Nest &earlier) {
      return llvm::any_of(earlier.windows, [&](const Window &other) { return other.load == window.load; });
    });
  };
  return number > 0 && nest.shape == next.shape && nest.vectorDim == next.vectorDim && bytes <= mostWrittenBytes &&
         nest.step * written.elementBytes % lineBytes == 0 && nest.written.empty() && isKnownIn(written, nest) &&
         llvm::all_of(nest.windows, wasRead);
}

/// Computes `value`, which only needs what the block has from its begin, in front of `place`.
static void hoist(Value value, Operation *place) {
  Operation *made = value.getDefiningOp();
  if (!made || made->getBlock() != place->getBlock() || made->isBeforeInBlock(place))
    return;
  for (Value operand : made->getOperands())
    hoist(operand, place);
  made->moveBefore(place);
}

void Prefetch::emitWrites(ImplicitLocOpBuilder &b, ArrayRef<Nest> nests, size_t number) {
  // Half a page ahead is enough, in the same row or in one further on: L1, which lines to be written come to, is small.
  constexpr int64_t bytesAhead = pageBytes / 2;
  const Nest &nest = nests[number];
  for (const Window &window : nest.written) {
    ArrayRef<int64_t> shape = nest.shape;
    int64_t rowBytes = shape[nest.vectorDim] * window.elementBytes;
    if (nest.step * window.elementBytes % lineBytes != 0 || window.unitStride != nest.vectorDim)
      continue;
    bool isEarly = rowBytes < bytesAhead && number > 0 && mayBringInFor(nests, number - 1, window);
    const Nest &asking = isEarly ? nests[number - 1] : nest;
    Share share{bytesAhead, rowBytes, /*onlyHeads=*/false, {-1, 0}, /*isWrite=*/true};
    if (isEarly)
      share.first = 0;
    else if (int rows = rowsOf(shape, nest.vectorDim); rows >= 0 && rowBytes < bytesAhead)
      share = {0, rowBytes, /*onlyHeads=*/false, {rows, rowsTo(bytesAhead, rowBytes)}, /*isWrite=*/true};
    for (const Loop &loop : asking.loops) {
      if (loop.streaming)
        continue;
      setInsertionPoint(b, loop, nest.vectorDim);
      b.setLoc(window.load->getLoc());
      if (isEarly) {
        Value isLarge = window.isLarge;
        hoist(isLarge, isLarge.getParentBlock()->findAncestorOpInBlock(*loop.body->getParentOp()));
        auto large = b.create<scf::IfOp>(isLarge, /*withElseRegion=*/true);
        b.setInsertionPointToStart(large.elseBlock());
      }
      prefetch(b, window, loop.coords, nest.vectorDim, shape[nest.vectorDim], asking.step, share);
    }
  }
}

void Prefetch::emit(ImplicitLocOpBuilder &b, bool always, bool streaming) const {
  for (const auto &[block, nests] : nests_) {
    for (size_t number = 0; always && number < nests.size(); ++number)
      emitWrites(b, nests, number);
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
        int64_t lines = rowBytes / lineBytes, extent = type.getDimSize(nest.vectorDim), linesOfFirst = 0;
        if (always && !nest.loops.empty() && llvm::none_of(later, storesSomething))
          later.insert(later.begin(), &nest);
        else if (always && !nest.loops.empty() && !onlyHeads)
          linesOfFirst = lines / partsOfRow;
        // What reads nothing and comes before (random numbers) brings in this window, not the next.
        SmallVector<const Nest *> earlier;
        for (const Nest &other : llvm::ArrayRef(nests).take_front(number))
          if (always && other.windows.empty() && other.shape == nest.shape && other.vectorDim == nest.vectorDim &&
              isKnownIn(window, other))
            earlier.push_back(&other);
        later.append(earlier); // the last to have a share where there is not a line for each
        if (later.empty() || allBytes < leastBytes || allBytes > mostBytes)
          continue;
        // Loops may differ in what they do at once: one that only reduces has longer vectors.
        int64_t mostIterations = 0;
        for (const Nest *other : later)
          mostIterations = std::max(mostIterations, extent / other->step);
        if (mostIterations == 0)
          continue;
        Ahead toNext = aheadOf(window, moving, nest.vectorDim, isAlone);
        auto bringIn = [&](const Nest &sharer, int64_t first, int64_t count) {
          Ahead ahead = llvm::is_contained(earlier, &sharer) ? Ahead{-1, 0} : toNext;
          for (const Loop &loop : sharer.loops) {
            Share share{first * lineBytes, count * lineBytes, onlyHeads, ahead};
            if (isAlone && loop.streaming && !streaming) {
              // Measured: two windows of 16 bits and nothing else are a little slower with it, and f32 in short rows is
              // not faster.
              bool isLong = rowBytes >= pageBytes && rowBytes % lineBytes == 0, isNarrow = window.elementBytes <= 2;
              bool isOnlyOne = nest.windows.size() == 1;
              if (isLong ? !readsBesides(nest, window) && !(isNarrow && isOnlyOne) : !isNarrow)
                continue;
              int rows = rowsOf(type.getShape(), nest.vectorDim);
              Ahead nextRow = rows >= 0 ? Ahead{rows, 1} : Ahead{moving, type.getDimSize(moving)};
              if (isLong)
                share = {0, rowBytes, /*onlyHeads=*/false, nextRow, /*isWrite=*/false, std::min(alongBytes, rowBytes)};
            }
            setInsertionPoint(b, loop, nest.vectorDim);
            b.setLoc(window.load->getLoc());
            prefetch(b, window, loop.coords, nest.vectorDim, extent, sharer.step, share);
          }
        };
        int64_t linesOfLater = lines - linesOfFirst;
        if (linesOfFirst)
          bringIn(nest, linesOfLater, linesOfFirst);
        auto sharers = std::clamp<int64_t>(lines / mostIterations, 1, static_cast<int64_t>(later.size()));
        for (int64_t i = 0; i < sharers; ++i)
          bringIn(*later[(turn + i) % later.size()], i * (linesOfLater / sharers), linesOfLater / sharers);
        turn += static_cast<size_t>(sharers);
      }
  }
}

} // namespace tenon::cpu
