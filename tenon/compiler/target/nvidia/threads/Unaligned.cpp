// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores of 16 bytes a thread at addresses that are multiples of their elements' size only: rows of an odd
// length, say. Memory is accessed in aligned words of 16 bytes, and elements are shifted into place and out of it by as
// many bytes as the address is past one.
//
//     memory        |. . . a b c d e|f g h i j k l m|n o p . . . . .|      | : multiples of 16 bytes
//     thread 0             a b c d e f g h                                 loads the first two words
//     thread 1                             i j k l m n o p                 loads the last two
//
// A load reads one word more than its elements fill; where that is another thread's, the first-level cache has it. Words
// that reach out of the view's memory are not read, nor are those of memory that the kernel may write: their elements
// are then loaded one by one, as are those that the view's bounds cut off.
//
// A store cannot write what it does not have. Thread 1 gets "f g h" from thread 0 by a shuffle and writes the word that
// begins with them; what is left over, at both ends of a row, is stored element by element.
#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/threads/Access.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

constexpr int64_t wordBytes = 16;

/// How the registers of a tile follow each other along the contiguous dimension: runs of neighbours in one thread, runs
/// of neighbouring lanes side by side, and that several times: a row, as far as one warp has it.
struct Rows {
  int64_t run = 1;           ///< elements
  int laneBit = 0, lanes = 0; ///< bits of the lane's number that lead to the next run
  SmallVector<SmallVector<int>> rows; ///< the first registers of the runs, in order

  int64_t span() const { return run << lanes; }
};

Rows rowsOf(const Distribution &tile, int64_t dim) {
  Rows found;
  found.run = tile.consecutive(dim);
  for (const Distribution::ThreadBit &bit : tile.threadBits()) {
    if (bit.bit >= 5 || bit.dim != dim || bit.step != found.span() ||
        (found.lanes && bit.bit != found.laneBit + found.lanes))
      continue;
    if (!found.lanes)
      found.laneBit = bit.bit;
    ++found.lanes;
  }
  std::map<std::pair<Coords, int64_t>, int> ordered; // by the other coordinates, then along the row
  for (int reg = 0; reg < tile.registers(); reg += static_cast<int>(found.run))
    if (tile.exists(reg)) {
      Coords others = tile.offset(reg);
      others[dim] = 0;
      ordered[{others, tile.offset(reg)[dim]}] = reg;
    }
  const std::pair<Coords, int64_t> *last = nullptr;
  for (const auto &[place, reg] : ordered) {
    if (!last || last->first != place.first || last->second + found.span() != place.second)
      found.rows.emplace_back();
    found.rows.back().push_back(reg);
    last = &place;
  }
  return found;
}

/// Behind the last element, i64; strides are not negative.
Value memoryEnd(ImplicitLocOpBuilder &b, const ViewWords &view, int64_t bytes) {
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIntOp>(value, 64); };
  Value last = constant(1);
  for (auto [size, stride] : llvm::zip(view.sizes, view.strides))
    last = b.create<arith::AddIOp>(last,
                                   b.create<arith::MulIOp>(b.create<arith::SubIOp>(size, constant(1)), stride));
  return b.create<arith::AddIOp>(view.address, b.create<arith::MulIOp>(last, constant(bytes)));
}

} // namespace

std::optional<int64_t> unalignedWidth(Value view, ArrayRef<int64_t> shape) {
  std::optional<int64_t> contiguous = contiguousDim(view);
  int64_t bytes = byteSize(memoryType(llvm::cast<tile::ViewType>(view.getType()).getElementType()));
  if (!contiguous || bytes > 4 || shape[*contiguous] % (wordBytes / bytes))
    return std::nullopt;
  return wordBytes / bytes;
}

bool prefersUnaligned(tile::LoadOp load, int64_t width) {
  std::optional<int64_t> whole = unalignedWidth(load.getView(), load.getType().getShape());
  if (!whole || width * 2 >= *whole)
    return false;
  auto kernel = load->getParentOfType<func::FuncOp>();
  bool written = false;
  kernel.walk([&](Operation *op) {
    if (Value target = viewWrittenBy(op))
      written |= mayOverlap(kernel, target, load.getView());
  });
  return !written;
}

bool prefersUnaligned(tile::StoreOp store, int64_t width) {
  std::optional<int64_t> whole = unalignedWidth(store.getView(), store.getValue().getType().getShape());
  return whole && width * 2 < *whole;
}

/// What the two have in common: words of 16 bytes as four of 32 bits, and which elements of a row are inside the view.
struct ThreadEmitter::Unaligned {
  ThreadEmitter &e;
  ImplicitLocOpBuilder &b;
  Access &access;
  int64_t dim, width; ///< contiguous; elements of a word
  VectorType elements, words;
  Value first, end; ///< i32: coordinates in the tile between which elements are inside the view

  Unaligned(ThreadEmitter &emitter, Access &ofTile, Value offset)
      : e(emitter), b(emitter.b_), access(ofTile), dim(ofTile.view.unitStride), width(wordBytes / ofTile.bytes),
        elements(VectorType::get({width}, memoryType(ofTile.view.element))),
        words(VectorType::get({wordBytes / 4}, b.getI32Type())) {
    Value begin = e.toI64(e.scalar(offset)), none = e.i64(0), all = e.i64(access.tile.shape()[dim]);
    auto clamp = [&](Value value) -> Value {
      value = b.create<arith::MaxSIOp>(b.create<arith::MinSIOp>(value, all), none);
      return b.create<arith::TruncIOp>(b.getI32Type(), value);
    };
    first = clamp(b.create<arith::SubIOp>(none, begin));
    end = clamp(b.create<arith::SubIOp>(access.view.sizes[dim], begin));
  }

  using Word = std::array<Value, 4>;
  Word split(Value vector) {
    Value four = b.create<vector::BitCastOp>(words, vector);
    Word word;
    for (auto [i, part] : llvm::enumerate(word))
      part = b.create<vector::ExtractOp>(four, static_cast<int64_t>(i));
    return word;
  }
  Value joined(const Word &word) {
    return b.create<vector::BitCastOp>(elements, b.create<vector::FromElementsOp>(words, ArrayRef<Value>(word)));
  }
  Value add(Value a, int64_t constant) { return constant ? b.create<arith::AddIOp>(a, e.i32(constant)).getResult() : a; }
  Value compare(arith::CmpIPredicate how, Value x, Value y) { return b.create<arith::CmpIOp>(how, x, y); }

  /// The 16 bytes from byte `start` (i32, 0 to 15) of two words on.
  Word shifted(const Word &low, const Word &high, Value start) {
    Value all[8] = {low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]}, some[6], few[5];
    auto bit = [&](int64_t mask) {
      return compare(arith::CmpIPredicate::ne, b.create<arith::AndIOp>(start, e.i32(mask)), e.i32(0));
    };
    Value by8 = bit(8), by4 = bit(4);
    for (int i = 0; i < 6; ++i)
      some[i] = b.create<arith::SelectOp>(by8, all[i + 2], all[i]);
    for (int i = 0; i < 5; ++i)
      few[i] = b.create<arith::SelectOp>(by4, some[i + 1], some[i]);
    Word result = {few[0], few[1], few[2], few[3]};
    if (access.bytes == 4)
      return result;
    Type i64Type = b.getI64Type();
    Value bits = b.create<arith::ShLIOp>(b.create<arith::AndIOp>(start, e.i32(3)), e.i32(3));
    bits = b.create<arith::ExtUIOp>(i64Type, bits);
    for (int i = 0; i < 4; ++i) {
      Value both = b.create<arith::OrIOp>(
          b.create<arith::ShLIOp>(b.create<arith::ExtUIOp>(i64Type, few[i + 1]), e.i64(32)),
          b.create<arith::ExtUIOp>(i64Type, few[i]));
      result[i] = b.create<arith::TruncIOp>(b.getI32Type(), b.create<arith::ShRUIOp>(both, bits));
    }
    return result;
  }

  /// How far an address is past a multiple of 16, i32.
  Value past(Value address) {
    return b.create<arith::AndIOp>(b.create<arith::TruncIOp>(b.getI32Type(), address), e.i32(wordBytes - 1));
  }
  Value aligned(Value address) { return b.create<arith::AndIOp>(address, e.i64(-wordBytes)); }
  Value addressOf(int reg) {
    auto [address, constant] = access.address(reg);
    return constant ? b.create<arith::AddIOp>(address, e.i64(constant)).getResult() : address;
  }
  /// A register's coordinate in the tile.
  Value column(int reg) { return add(e.threadCoords(access.tile)[dim], access.tile.offset(reg)[dim]); }
};

void ThreadEmitter::tellUnaligned(Operation *op, const char *what, const AccessWidth &width) {
  remark(op->getLoc(), std::string(what) + " of 16 bytes a thread at any address, in aligned words that are shifted into "
                       "place: " + width.limit);
  remark(op->getLoc(), std::string(what) + " checks bounds of every vector, and of the words that cover it");
}

Value ThreadEmitter::isWellInside(tile::LoadOp op) {
  const ViewWords &view = views_.find(op.getView())->second;
  int64_t bytes = byteSize(memoryType(view.element));
  using Predicate = arith::CmpIPredicate;
  auto holds = [&](Predicate how, Value x, Value y) -> Value { return b_.create<arith::CmpIOp>(how, x, y); };
  Value inside, first = view.address, last = view.address;
  for (auto [d, offset] : llvm::enumerate(op.getOffsets())) {
    Value begin = toI64(scalar(offset)), end = b_.create<arith::AddIOp>(begin, i64(op.getType().getDimSize(d)));
    Value stride = b_.create<arith::MulIOp>(view.strides[d], i64(bytes));
    inside = both(inside, holds(Predicate::sge, begin, i64(0)));
    inside = both(inside, holds(Predicate::sle, end, view.sizes[d]));
    inside = both(inside, holds(Predicate::sge, stride, i64(0)));
    first = b_.create<arith::AddIOp>(first, b_.create<arith::MulIOp>(begin, stride));
    last = b_.create<arith::AddIOp>(last,
                                    b_.create<arith::MulIOp>(b_.create<arith::SubIOp>(end, i64(1)), stride));
  }
  Value before = b_.create<arith::AddIOp>(view.address, i64(wordBytes));
  Value behind = b_.create<arith::SubIOp>(memoryEnd(b_, view, bytes), i64(wordBytes + bytes));
  return both(inside, both(holds(Predicate::sge, first, before), holds(Predicate::sle, last, behind)));
}

/// A load whose words are under way.
struct ThreadEmitter::UnalignedLoad {
  /// 16 bytes of a run: the words that hold them, and when those do.
  struct Piece {
    int reg;
    Unaligned::Word low, high;
    Value start, fast, slow; ///< the byte where they begin; whether words, or elements one by one, are to be used (null:
                             ///< words)
    Value value = {};
  };
  tile::LoadOp op;
  std::unique_ptr<Access> access;
  Unaligned unaligned;
  Value padding;
  SmallVector<Piece> pieces;

  UnalignedLoad(ThreadEmitter &e, tile::LoadOp load, std::unique_ptr<Access> of, Value with)
      : op(load), access(std::move(of)), unaligned(e, *access, op.getOffsets()[access->view.unitStride]), padding(with) {}
};

std::shared_ptr<ThreadEmitter::UnalignedLoad>
ThreadEmitter::startUnalignedLoad(tile::LoadOp op, std::unique_ptr<Access> ofLoad, Value padding, bool isInside) {
  auto load = std::make_shared<UnalignedLoad>(*this, op, std::move(ofLoad), padding);
  Unaligned &u = load->unaligned;
  Access &access = *load->access;
  const Distribution &tile = access.tile;
  using Predicate = arith::CmpIPredicate;
  Value lastWord = b_.create<arith::SubIOp>(memoryEnd(b_, access.view, access.bytes), i64(wordBytes));
  Value nothing = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(u.words)));

  int64_t run = tile.consecutive(u.dim);
  for (int reg = 0; reg < tile.registers(); reg += static_cast<int>(run)) {
    if (!tile.exists(reg))
      continue;
    Value address = u.addressOf(reg), start = u.past(address), from = u.aligned(address);
    Value isAligned = u.compare(Predicate::eq, start, i32(0)), isPast = u.compare(Predicate::ne, start, i32(0));
    int64_t count = run / u.width;
    SmallVector<Unaligned::Word> words;
    auto loadWord = [&](int64_t i, Value mask) {
      words.push_back(u.split(loadGlobal(u.words, from, i * wordBytes, i == count ? both(mask, isPast) : mask,
                                         mask || i == count ? nothing : Value())));
    };
    if (isInside) {
      for (int64_t i = 0; i <= count; ++i)
        loadWord(i, holdsElement(tile, reg));
      for (int64_t i = 0; i < count; ++i)
        load->pieces.push_back({reg + static_cast<int>(i * u.width), words[i], words[i + 1], start, {}, {}});
      continue;
    }
    Value row = access.mask(reg, u.dim);
    SmallVector<Value> whole, some, readable; // of the pieces: inside the view, partly; of the words
    for (int64_t i = 0; i < count; ++i) {
      Value column = u.add(u.column(reg), i * u.width), beyond = u.add(column, u.width);
      whole.push_back(
          both(row, both(u.compare(Predicate::sge, column, u.first), u.compare(Predicate::sle, beyond, u.end))));
      some.push_back(
          both(row, both(u.compare(Predicate::sgt, beyond, u.first), u.compare(Predicate::slt, column, u.end))));
    }
    for (int64_t i = 0; i <= count; ++i) {
      Value at = i ? b_.create<arith::AddIOp>(from, i64(i * wordBytes)).getResult() : from;
      readable.push_back(
          both(u.compare(Predicate::uge, at, access.view.address), u.compare(Predicate::sle, at, lastWord)));
      Value wanted = i == 0 ? whole[0] : whole[i - 1];
      if (i > 0 && i < count)
        wanted = b_.create<arith::OrIOp>(wanted, whole[i]);
      loadWord(i, both(wanted, readable[i]));
    }
    for (int64_t i = 0; i < count; ++i) {
      Value fast = both(whole[i], both(readable[i], b_.create<arith::OrIOp>(isAligned, readable[i + 1])));
      Value slow = both(some[i], b_.create<arith::XOrIOp>(fast, boolean(true)));
      load->pieces.push_back({reg + static_cast<int>(i * u.width), words[i], words[i + 1], start, fast, slow});
    }
  }
  return load;
}

void ThreadEmitter::finishUnalignedLoad(UnalignedLoad &load) {
  Unaligned &u = load.unaligned;
  Access &access = *load.access;
  SmallVector<UnalignedLoad::Piece> &pieces = load.pieces;
  using Predicate = arith::CmpIPredicate;
  Unaligned::Word padded = u.split(b_.create<vector::SplatOp>(u.elements, load.padding));
  Value anySlow;
  for (UnalignedLoad::Piece &piece : pieces) {
    Unaligned::Word word = u.shifted(piece.low, piece.high, piece.start);
    if (piece.fast)
      for (auto [part, fill] : llvm::zip(word, padded))
        part = b_.create<arith::SelectOp>(piece.fast, part, fill);
    piece.value = u.joined(word);
    if (piece.slow)
      anySlow = anySlow ? b_.create<arith::OrIOp>(anySlow, piece.slow).getResult() : piece.slow;
  }
  SmallVector<Value> loaded;
  for (const UnalignedLoad::Piece &piece : pieces)
    loaded.push_back(piece.value);
  if (anySlow)
    loadCut(load, anySlow, loaded);
  Registers values(access.tile.registers());
  loaded_[load.op].assign(loaded);
  for (auto [piece, vector] : llvm::zip(pieces, loaded))
    for (int64_t i = 0; i < u.width; ++i)
      values[piece.reg + i] = fromMemory(b_, b_.create<vector::ExtractOp>(vector, i), access.view.element);
  registers(load.op) = std::move(values);
}

/// Element by element, what words cannot be used for.
void ThreadEmitter::loadCut(UnalignedLoad &load, Value anySlow, SmallVectorImpl<Value> &loaded) {
  Unaligned &u = load.unaligned;
  Access &access = *load.access;
  SmallVector<UnalignedLoad::Piece> &pieces = load.pieces;
  using Predicate = arith::CmpIPredicate;

  SmallVector<Type> types(pieces.size(), u.elements);
  auto branch = b_.create<scf::IfOp>(types, anySlow, /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b_);
    SmallVector<Value> values(loaded.begin(), loaded.end());
    b_.setInsertionPointToStart(branch.elseBlock());
    b_.create<scf::YieldOp>(values);
    b_.setInsertionPointToStart(branch.thenBlock());
    for (auto [value, piece] : llvm::zip(values, pieces)) {
      Value address = u.addressOf(piece.reg), column = u.column(piece.reg);
      SmallVector<Value> each;
      for (int64_t i = 0; i < u.width; ++i) {
        Value at = u.add(column, i);
        Value mask = both(piece.slow, both(u.compare(Predicate::sge, at, u.first), u.compare(Predicate::slt, at, u.end)));
        each.push_back(loadGlobal(u.elements.getElementType(), address, i * access.bytes, mask,
                                  b_.create<vector::ExtractOp>(piece.value, i)));
      }
      value = b_.create<vector::FromElementsOp>(u.elements, each);
    }
    b_.create<scf::YieldOp>(values);
  }
  loaded.assign(branch.getResults().begin(), branch.getResults().end());
}

void ThreadEmitter::emitUnalignedStore(tile::StoreOp op, Access &access) {
  Unaligned u(*this, access, op.getOffsets()[access.view.unitStride]);
  const Distribution &tile = access.tile;
  const Registers &values = registers(op.getValue());
  using Predicate = arith::CmpIPredicate;
  Rows rows = rowsOf(tile, u.dim);
  Value owner = isOwner(tile), lane = b_.create<arith::AndIOp>(threadId_, i32(31)), isLastLane, left;
  if (rows.lanes) {
    int64_t mask = ((int64_t(1) << rows.lanes) - 1) << rows.laneBit, step = int64_t(1) << rows.laneBit;
    Value place = b_.create<arith::AndIOp>(lane, i32(mask));
    isLastLane = u.compare(Predicate::eq, place, i32(mask));
    // The lane before, and before the first the last.
    left = b_.create<arith::AndIOp>(b_.create<arith::SubIOp>(place, i32(step)), i32(mask));
    left = b_.create<arith::OrIOp>(b_.create<arith::AndIOp>(lane, i32(31 & ~mask)), left);
  }
  Value zero = i32(0);
  Unaligned::Word zeros = {zero, zero, zero, zero};

  for (ArrayRef<int> row : rows.rows) {
    Value inside = both(access.mask(row[0], u.dim), owner);
    for (int64_t d = 0; d < tile.rank(); ++d)
      if (d != u.dim && tile.isPartial(row[0], d))
        inside = both(inside, u.compare(Predicate::ult, threadCoords(tile)[d],
                                        i32(tile.shape()[d] - tile.offset(row[0])[d])));
    Value past = u.past(u.addressOf(row[0]));
    Value start = b_.create<arith::AndIOp>(b_.create<arith::SubIOp>(i32(wordBytes), past), i32(wordBytes - 1));
    Value isAligned = u.compare(Predicate::eq, past, zero);
    Value elementsPast = b_.create<arith::ShRUIOp>(past, i32(llvm::Log2_64(access.bytes)));
    // What of the row this warp has begins here: in front of it is what others write.
    Value begin = u.column(row[0]);
    if (rows.lanes) {
      Value before = b_.create<arith::ShRUIOp>(
          b_.create<arith::AndIOp>(lane, i32(((1 << rows.lanes) - 1) << rows.laneBit)), i32(rows.laneBit));
      begin = b_.create<arith::SubIOp>(begin, b_.create<arith::MulIOp>(before, i32(rows.run)));
    }
    Value rowEnd = u.add(begin, rows.span() * static_cast<int64_t>(row.size()));
    begin = b_.create<arith::MaxSIOp>(begin, u.first);
    rowEnd = b_.create<arith::MinSIOp>(rowEnd, u.end);

    /// Elements `column` ... of the word at `address` + `offset`, as far as they are this row's.
    auto store = [&](const Unaligned::Word &word, Value address, int64_t offset, Value column, Value mask) {
      Value vector = u.joined(word), beyond = u.add(column, u.width);
      Value whole = both(u.compare(Predicate::sge, column, begin), u.compare(Predicate::sle, beyond, rowEnd));
      Value some = both(u.compare(Predicate::sgt, beyond, begin), u.compare(Predicate::slt, column, rowEnd));
      storeGlobal(vector, address, offset, both(mask, whole));
      Value isCut = both(both(mask, some), b_.create<arith::XOrIOp>(whole, boolean(true)));
      auto branch = b_.create<scf::IfOp>(isCut);
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(branch.thenBlock());
      for (int64_t i = 0; i < u.width; ++i) {
        Value at = u.add(column, i);
        storeGlobal(b_.create<vector::ExtractOp>(vector, i), address, offset + i * access.bytes,
                    both(u.compare(Predicate::sge, at, begin), u.compare(Predicate::slt, at, rowEnd)));
      }
    };
    /// The word that begins `past` bytes before `own`; `before` holds the 16 bytes in front of it.
    auto wordOf = [&](const Unaligned::Word &before, const Unaligned::Word &own) {
      Unaligned::Word word = u.shifted(before, own, start);
      for (auto [part, plain] : llvm::zip(word, own))
        part = b_.create<arith::SelectOp>(isAligned, plain, part);
      return word;
    };

    Unaligned::Word lastOfRun = zeros;
    for (auto [number, reg] : llvm::enumerate(row)) {
      SmallVector<Unaligned::Word> own;
      for (int64_t i = 0; i < rows.run; i += u.width)
        own.push_back(
            u.split(packMemory(ArrayRef<Value>(values).slice(reg + i, u.width), access.view.element, u.elements)));
      Unaligned::Word before = lastOfRun;
      if (rows.lanes)
        for (int i = 0; i < 4; ++i) {
          // The last lane's is wanted by the first, which is one run further on.
          Value sent = own.back()[i];
          if (number)
            sent = b_.create<arith::SelectOp>(isLastLane, lastOfRun[i], sent);
          before[i] = shuffle(ShuffleMode::idx, sent, left);
        }
      Value address = u.aligned(u.addressOf(reg)), column = b_.create<arith::SubIOp>(u.column(reg), elementsPast);
      for (auto [i, word] : llvm::enumerate(own))
        store(wordOf(i ? own[i - 1] : before, word), address, static_cast<int64_t>(i) * wordBytes,
              u.add(column, static_cast<int64_t>(i) * u.width), inside);
      lastOfRun = own.back();
      if (number + 1 == row.size()) // what is left behind the last whole word
        store(wordOf(lastOfRun, zeros), address, rows.run * access.bytes, u.add(column, rows.run),
              both(inside, isLastLane));
    }
  }
}

} // namespace tenon::nvidia
