// SPDX-License-Identifier: Apache-2.0
//
// tile.dot: both operands are brought into scratch in the accumulator's type (which is where conversions and whatever else
// feeds them is computed), then a block of the result is held in registers over the whole of K:
//
//     for n in columns step NR vectors:            a panel of B that stays in L1
//       for m in rows step MR:
//         acc[MR][NR] = C[m.., n..]
//         for k: acc[i][j] += A[m+i][k] * B[k][n+j]      MR broadcasts, NR loads, MR*NR multiply-adds
//         C[m.., n..] = acc
//
// MR x NR is chosen so that accumulators, the row of B and one broadcast fit the register file. Rows and columns that are
// left over get smaller blocks of the same code; all sizes are static.
#include "tenon/compiler/target/cpu/LoopEmitter.h"
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// Columns of one register block: vectors of the given lengths, side by side.
struct ColumnBlock {
  SmallVector<unsigned> lanes;
  int64_t width = 0;
};

class DotEmitter {
public:
  DotEmitter(LoopEmitter &e, const Buffer &a, const Buffer &b, const Buffer &c, bool startsAtZero)
      : e_(e), b_(e.builder()), a_(a), bm_(b), c_(c), startsAtZero_(startsAtZero), element_(c.element) {}

  void emit() {
    int64_t m = c_.shape[0], n = c_.shape[1];
    unsigned native = std::max(1u, e_.isa().vectorBytes / byteSize(element_));
    unsigned perBlock = e_.isa().registers >= 32 ? 4 : 2;
    if (n <= 2 * native)
      perBlock = 2;
    // Accumulators + one row of B + one broadcast.
    rows_ = std::max<int64_t>(1, (e_.isa().registers - perBlock - 1) / perBlock);
    int64_t blockWidth = perBlock * native, wholeColumns = n / blockWidth * blockWidth;
    ColumnBlock full{SmallVector<unsigned>(perBlock, native), blockWidth};
    if (wholeColumns)
      columnLoop(0, wholeColumns, full, m);
    if (int64_t rest = n - wholeColumns) {
      ColumnBlock partial;
      for (partial.width = rest; rest > 0; rest -= native)
        partial.lanes.push_back(std::min<int64_t>(rest, native));
      columnLoop(wholeColumns, n, partial, m);
    }
  }

private:
  void columnLoop(int64_t begin, int64_t end, const ColumnBlock &columns, int64_t m) {
    forRange(begin, end, columns.width, [&](Value column) {
      int64_t wholeRows = m / rows_ * rows_;
      if (wholeRows)
        forRange(0, wholeRows, rows_, [&](Value row) { block(row, rows_, column, columns); });
      if (wholeRows < m)
        block(e_.index(wholeRows), m - wholeRows, column, columns);
    });
  }

  void forRange(int64_t begin, int64_t end, int64_t step, llvm::function_ref<void(Value)> body) {
    if (begin + step >= end) {
      body(e_.index(begin));
      return;
    }
    auto loop = b_.create<scf::ForOp>(e_.index(begin), e_.index(end), e_.index(step));
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint(loop.getBody()->getTerminator());
    body(loop.getInductionVar());
  }

  Value address(const Buffer &buffer, Value row, Value column) {
    Value offset = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(row, e_.index(buffer.strides[0])), column);
    Value wide = b_.create<arith::IndexCastOp>(b_.getI64Type(), offset);
    return b_.create<LLVM::GEPOp>(LLVM::LLVMPointerType::get(b_.getContext()), element_, buffer.pointer,
                                  ValueRange{wide});
  }
  Value advance(Value pointer, int64_t elements) {
    if (elements == 0)
      return pointer;
    return b_.create<LLVM::GEPOp>(pointer.getType(), element_, pointer,
                                  ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(elements)});
  }
  Type vectorType(unsigned lanes) { return VectorType::get({lanes}, element_); }

  Value multiplyAdd(Value a, Value b, Value c) {
    if (llvm::isa<FloatType>(element_))
      return b_.create<math::FmaOp>(a, b, c);
    return b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(a, b), c);
  }

  void block(Value row, int64_t rows, Value column, const ColumnBlock &columns) {
    int64_t k = a_.shape[1];
    unsigned align = byteSize(element_);
    Value c = address(c_, row, column), a = address(a_, row, e_.index(0)), b = address(bm_, e_.index(0), column);
    SmallVector<Value> accumulators;
    auto eachVector = [&](llvm::function_ref<void(int64_t, unsigned, int64_t)> visit) {
      for (int64_t i = 0; i < rows; ++i) {
        int64_t at = 0;
        for (unsigned lanes : columns.lanes) {
          visit(i, lanes, at);
          at += lanes;
        }
      }
    };
    eachVector([&](int64_t i, unsigned lanes, int64_t at) {
      if (startsAtZero_)
        accumulators.push_back(
            b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(vectorType(lanes)))));
      else
        accumulators.push_back(
            b_.create<LLVM::LoadOp>(vectorType(lanes), advance(c, i * c_.strides[0] + at), align));
    });
    auto step = [&](Value at, int64_t unrolled, SmallVector<Value> values) {
      Value wide = b_.create<arith::IndexCastOp>(b_.getI64Type(), at);
      Value rowOfB = b_.create<arith::MulIOp>(wide, constantBits(b_, b_.getI64Type(), bm_.strides[0]));
      Value bAt = b_.create<LLVM::GEPOp>(b.getType(), element_, b, ValueRange{rowOfB});
      Value aAt = b_.create<LLVM::GEPOp>(a.getType(), element_, a, ValueRange{wide});
      for (int64_t u = 0; u < unrolled; ++u) {
        SmallVector<Value> bRow;
        int64_t offset = 0;
        for (unsigned lanes : columns.lanes) {
          bRow.push_back(b_.create<LLVM::LoadOp>(vectorType(lanes), advance(bAt, u * bm_.strides[0] + offset), align));
          offset += lanes;
        }
        for (int64_t i = 0; i < rows; ++i) {
          Value scalar = b_.create<LLVM::LoadOp>(element_, advance(aAt, i * a_.strides[0] + u), align);
          for (auto [j, lanes] : llvm::enumerate(columns.lanes)) {
            Value &value = values[i * columns.lanes.size() + j];
            value = multiplyAdd(splatTo(b_, scalar, lanes), bRow[j], value);
          }
        }
      }
      return values;
    };
    int64_t unroll = k % 2 == 0 ? 2 : 1;
    if (k == unroll) {
      accumulators = step(e_.index(0), unroll, accumulators);
    } else {
      auto loop = b_.create<scf::ForOp>(e_.index(0), e_.index(k), e_.index(unroll), accumulators);
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToEnd(loop.getBody());
      b_.create<scf::YieldOp>(step(loop.getInductionVar(), unroll, SmallVector<Value>(loop.getRegionIterArgs())));
      accumulators.assign(loop.getResults().begin(), loop.getResults().end());
    }
    unsigned next = 0;
    eachVector([&](int64_t i, unsigned, int64_t at) {
      b_.create<LLVM::StoreOp>(accumulators[next++], advance(c, i * c_.strides[0] + at), align);
    });
  }

  LoopEmitter &e_;
  ImplicitLocOpBuilder &b_;
  const Buffer &a_, &bm_, &c_;
  bool startsAtZero_;
  Type element_;
  int64_t rows_ = 1;
};

} // namespace

void LoopEmitter::emitDot(tile::DotOp op) {
  Type element = op.getType().getElementType();
  bool isInteger = llvm::isa<IntegerType>(element);
  Buffer result = bufferFor(op.getResult());
  int64_t scratchKept = usedScratch_;

  // Operands: what already lies in scratch in the right type is used where it is.
  auto operand = [&](Value tile, bool isUnsigned, int64_t rowPadding) -> Buffer {
    Type from = llvm::cast<RankedTensorType>(tile.getType()).getElementType();
    if (const Buffer *present = this->buffer(tile); present && scratchType(from) == element)
      return *present;
    auto shape = llvm::cast<RankedTensorType>(tile.getType()).getShape();
    Buffer packed = allocate(shape, element, rowPadding);
    if (!isInteger) { // the register form of every float operand is the accumulator's type already
      packed.element = from;
      materialize(tile, packed);
      flush();
      packed.element = element;
      return packed;
    }
    OpBuilder temporary(op);
    Value wide = temporary.create<tile::CastOp>(op.getLoc(), RankedTensorType::get(shape, element), tile, isUnsigned);
    materialize(wide, packed);
    flush();
    wide.getDefiningOp()->erase();
    return packed;
  };
  // A row of A is read down its columns: pad it so that rows do not fall on the same cache sets.
  Buffer a = operand(op.getA(), op.getAUnsigned(), 64 / byteSize(element));
  Buffer b = operand(op.getB(), op.getBUnsigned(), 0);

  bool startsAtZero = matchPattern(op.getAcc(), m_PosZeroFloat()) || matchPattern(op.getAcc(), m_Zero());
  const Buffer *acc = this->buffer(op.getAcc());
  bool inPlace = acc && acc->pointer == result.pointer;
  if (!startsAtZero && !inPlace) {
    materialize(op.getAcc(), result);
    flush();
  }
  b_.setLoc(op.getLoc());
  DotEmitter(*this, a, b, result, startsAtZero).emit();
  usedScratch_ = scratchKept;
  buffers_[op.getResult()] = result;
}

} // namespace tenon::cpu
