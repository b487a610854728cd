// SPDX-License-Identifier: Apache-2.0
//
// tile.dot: which instruction, and its operands in shared memory. An operand is there already when it is loaded
// asynchronously (Pipeline.cpp) or when a loop around the dot does not change it (keepOperands); otherwise it is
// written just before, from the registers it is in, rows along the dimension in which a thread has neighbours: a
// transposed operand is transposed on its way back, by ldmatrix.
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {

LogicalResult ThreadEmitter::emitDot(tile::DotOp op) {
  DotPlan plan = planDot(op, options_.architecture);
  auto a = typeOf(op.getA()), b = typeOf(op.getB());
  int64_t m = a.getDimSize(0), n = b.getDimSize(1), k = a.getDimSize(1);
  auto sizes = [](int64_t m, int64_t n, int64_t k) {
    return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  };
  std::string text = "dot of " + sizes(m, n, k) + ": " + plan.instruction;
  if (!plan.limit.empty())
    text += " (" + plan.limit + ")";
  if (plan.matrixUnit) {
    int64_t paddedM = llvm::alignTo(m, 16), paddedN = llvm::alignTo(n, 8), paddedK = llvm::alignTo(k, plan.depth);
    if (paddedM != m || paddedN != n || paddedK != k)
      text += ", padded to " + sizes(paddedM, paddedN, paddedK);
  }
  remark(op.getLoc(), text);

  int64_t mark = markShared();
  if (plan.matrixUnit)
    emitMatrixDot(op, plan);
  else
    emitPlainDot(op, plan);
  releaseShared(mark);
  return success();
}

ThreadEmitter::OperandKey ThreadEmitter::operandKey(Value value, const DotPlan &plan, int64_t kDim) {
  return {value, kDim + 2 * plan.matrixUnit + 4 * plan.elementBytes};
}

ThreadEmitter::StagedOperand ThreadEmitter::operandOf(Value value, const DotPlan &plan, int64_t kDim) {
  if (isAsync(value)) {
    LoadedOperand loaded = *traceToLoad(value);
    StagedOperand operand = copied_.find(loaded.load)->second;
    operand.alongK = loaded.dims[kDim] == *contiguousDim(loaded.load.getView());
    return operand;
  }
  if (auto kept = keptOperands_.find(operandKey(value, plan, kDim)); kept != keptOperands_.end())
    return kept->second;
  return stageOperand(value, plan, kDim);
}

void ThreadEmitter::keepOperands(scf::ForOp loop, SmallVectorImpl<OperandKey> &kept) {
  loop.walk([&](tile::DotOp dot) {
    DotPlan plan = planDot(dot, options_.architecture);
    for (int64_t kDim : {1, 0}) {
      Value value = kDim == 1 ? dot.getA() : dot.getB();
      OperandKey key = operandKey(value, plan, kDim);
      if (!loop.isDefinedOutsideOfLoop(value) || isAsync(value) || keptOperands_.contains(key))
        continue;
      if (kDim == 1 && plan.matrixUnit && holdsFragments(value, distribution(dot), plan))
        continue;
      keptOperands_[key] = stageOperand(value, plan, kDim);
      kept.push_back(key);
    }
  });
}

ThreadEmitter::StagedOperand ThreadEmitter::stageOperand(Value value, const DotPlan &plan, int64_t kDim) {
  const Distribution &matrix = distribution(value);
  Type element = kDim == 1 ? plan.stagedA : plan.stagedB;
  StagedOperand operand;
  operand.alongK = plan.mustRunAlongK() || matrix.consecutive(kDim) >= matrix.consecutive(1 - kDim);
  int64_t columnDim = operand.alongK ? kDim : 1 - kDim, rowDim = 1 - columnDim;
  OperandTile &tile = operand.tile;
  tile = planOperandTile(matrix.shape()[rowDim], matrix.shape()[columnDim], plan.elementBytes,
                         operandMultiple(plan, rowDim == kDim), operandMultiple(plan, columnDim == kDim),
                         useOf(plan, operand.alongK));
  int64_t begin = allocateShared(tile.bytes());
  operand.window = {begin, begin + tile.bytes()};
  operand.at = i32(begin);
  operand.group = newGroup();
  int group = newGroup();

  int64_t bytes = plan.elementBytes;
  int64_t width = std::min({16 / bytes, matrix.consecutive(columnDim), tile.columns & -tile.columns});
  if (plan.mustRunAlongK() && matrix.consecutive(rowDim) > width)
    remark(value.getLoc(), "8-bit operand of a dot is transposed on its way to shared memory, element by element: its "
                           "memory is not contiguous along K");
  Type memory = memoryType(element), moved = width == 1 ? memory : VectorType::get({width}, memory);
  // Bits of a thread's and a register's coordinates do not overlap, so that sums are xors and the chunk's place is the
  // xor of a part of the thread and a part of the register.
  auto swizzle = [&](int64_t row) { return (row >> tile.swizzleShift & tile.swizzleMask) * 16; };
  Value row = threadCoords(matrix)[rowDim];
  Value column = b_.create<arith::MulIOp>(threadCoords(matrix)[columnDim], i32(bytes));
  Value chunk = b_.create<arith::AndIOp>(column, i32(~int64_t(15)));
  chunk = swizzled(tile, row, chunk);
  Value base = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(row, i32(tile.pitch)),
                                        b_.create<arith::AndIOp>(column, i32(15)));
  Value owner = isOwner(matrix);
  for (int reg = 0; reg < matrix.registers(); reg += static_cast<int>(width)) {
    if (!matrix.exists(reg))
      continue;
    int64_t rowOffset = matrix.offset(reg)[rowDim], columnOffset = matrix.offset(reg)[columnDim] * bytes;
    int64_t chunkOffset = (columnOffset & ~int64_t(15)) ^ swizzle(rowOffset);
    Value at = b_.create<arith::AddIOp>(
        base, chunkOffset ? b_.create<arith::XOrIOp>(chunk, i32(chunkOffset)).getResult() : chunk);
    Value packed = packMemory(ArrayRef<Value>(registers(value)).slice(reg, width), element, moved);
    storeShared(packed, at, begin + rowOffset * tile.pitch + columnOffset % 16, both(holdsElement(matrix, reg), owner),
                operand.window, group);
  }
  zeroPadding(tile, begin, operand.window, group);
  return operand;
}

Value ThreadEmitter::swizzled(const OperandTile &tile, Value row, Value byte) {
  if (!tile.swizzleMask)
    return byte;
  Value chunks = tile.swizzleShift ? b_.create<arith::ShRUIOp>(row, i32(tile.swizzleShift)).getResult() : row;
  chunks = b_.create<arith::AndIOp>(chunks, i32(tile.swizzleMask));
  return b_.create<arith::XOrIOp>(byte, b_.create<arith::ShLIOp>(chunks, i32(4)));
}

/// Writes the zeros: the columns past the matrix in all rows, then the rows past it.
void ThreadEmitter::zeroPadding(const OperandTile &tile, int64_t begin, SharedWindow window, int group) {
  auto zero = [&](int64_t firstRow, int64_t rows, int64_t firstByte, int64_t endByte) {
    int64_t rowBytes = endByte - firstByte, unit = 16;
    while (firstByte % unit || endByte % unit)
      unit /= 2;
    int64_t perRow = rowBytes / unit, count = rows * perRow;
    if (count <= 0)
      return;
    Type type = unit <= 4 ? Type(b_.getIntegerType(unit * 8)) : VectorType::get({unit / 4}, b_.getI32Type());
    Value nothing = b_.create<arith::ConstantOp>(llvm::cast<TypedAttr>(b_.getZeroAttr(type)));
    for (int64_t first = 0; first < count; first += options_.threads) {
      Value number = b_.create<arith::AddIOp>(threadId_, i32(first));
      Value mask;
      if (first + options_.threads > count)
        mask = b_.create<arith::CmpIOp>(arith::CmpIPredicate::ult, number, i32(count));
      Value row = b_.create<arith::AddIOp>(b_.create<arith::DivUIOp>(number, i32(perRow)), i32(firstRow));
      Value byte = b_.create<arith::AddIOp>(
          b_.create<arith::MulIOp>(b_.create<arith::RemUIOp>(number, i32(perRow)), i32(unit)), i32(firstByte));
      Value at = b_.create<arith::AddIOp>(b_.create<arith::MulIOp>(row, i32(tile.pitch)), swizzled(tile, row, byte));
      storeShared(nothing, at, begin, mask, window, group);
    }
  };
  int64_t used = tile.columns * tile.elementBytes;
  zero(0, tile.paddedRows, used, tile.paddedColumns * tile.elementBytes);
  zero(tile.rows, tile.paddedRows - tile.rows, 0, used);
}

} // namespace tenon::nvidia
