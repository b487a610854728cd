// SPDX-License-Identifier: Apache-2.0
//
// Layout conversions whose accesses of shared memory would get in each other's way: rows that are padded (Movement.cpp)
// keep a column of whole rows apart, but not what a thread has of several columns, or runs of neighbours along one row.
// Elements then lie where layout/Swizzle.cpp wants them, and an address is the exclusive or of what the thread's number
// and the register's contribute:
//
//     transpose of 64 x 64 in bf16, a thread with 8 columns of a row: it writes 8 times 2 bytes, of which 8 lanes have
//     the same bank in padded rows of 144 bytes (8 columns are 1152 bytes, nine times the 128 of all banks), and none
//     by xor
#include "tenon/compiler/target/nvidia/threads/ThreadEmitter.h"

#include "tenon/compiler/target/nvidia/layout/Conversion.h"
#include "tenon/compiler/target/nvidia/threads/Layouts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <set>

using namespace mlir;
using namespace tenon::lower;

namespace tenon::nvidia {
namespace {

/// Passes and instructions of a warp that accesses a tile in padded rows, `width` elements at once.
int64_t paddedCost(ArrayRef<int64_t> strides, const Distribution &tile, int64_t width, int64_t bytes) {
  int64_t access = std::max<int64_t>(width * bytes, 4), together = std::max<int64_t>(1, 128 / access), passes = 0;
  for (int64_t first = 0; first < 32; first += together) {
    std::map<int64_t, std::set<int64_t>> words; // by bank
    for (int64_t lane = first; lane < std::min<int64_t>(first + together, 32); ++lane) {
      int64_t address = 0;
      for (const Distribution::ThreadBit &bit : tile.threadBits())
        if (bit.bit < 5 && bit.dim >= 0 && lane >> bit.bit & 1)
          address += bit.step * strides[bit.dim];
      for (int64_t word = address / 4; word < (address + access) / 4; ++word)
        words[word % 32].insert(word);
    }
    size_t most = 1;
    for (const auto &[bank, wanted] : words)
      most = std::max(most, wanted.size());
    passes += static_cast<int64_t>(most);
  }
  return tile.registers() / width * (passes + 1);
}

bool isWhole(const Distribution &tile) {
  return !tile.isPartial() && llvm::all_of(llvm::seq(tile.registers()), [&](int reg) { return tile.exists(reg); });
}

int64_t byteOffset(const SharedAccess &access, uint64_t place, int64_t bytes) {
  return static_cast<int64_t>(place >> access.places.out().shift(Unit::Offset)) * bytes;
}

} // namespace

/// The thread's part of the address, i32: bits of its number that move by the same distance are moved at once.
Value ThreadEmitter::swizzledBase(const SharedAccess &access, int64_t bytes, int64_t &bits) {
  std::map<int64_t, int64_t> moved; // distance -> bits of the thread's number
  bits = 0;
  int64_t bit = 0;
  for (Unit unit : {Unit::Lane, Unit::Warp})
    for (uint64_t column : access.places.columns(unit)) {
      int64_t offset = byteOffset(access, column, bytes);
      bits |= offset;
      for (int64_t to = 0; offset >> to; ++to)
        if (offset >> to & 1)
          moved[to - bit] |= int64_t(1) << bit;
      ++bit;
    }
  Value base;
  for (auto [distance, mask] : moved) {
    Value part = b_.create<arith::AndIOp>(threadId_, i32(mask));
    if (distance > 0)
      part = b_.create<arith::ShLIOp>(part, i32(distance));
    else if (distance < 0)
      part = b_.create<arith::ShRUIOp>(part, i32(-distance));
    base = base ? b_.create<arith::XOrIOp>(base, part).getResult() : part;
  }
  return base ? base : i32(0);
}

/// Whether the conversion was one.
bool ThreadEmitter::emitSwizzledConvert(ConvertOp op, ArrayRef<int64_t> strides, int64_t written, int64_t read) {
  const Distribution &from = distribution(op.getValue()), &to = distribution(op);
  Type element = typeOf(op).getElementType(), memory = memoryType(element);
  int64_t bytes = byteSize(memory);
  if (options_.cluster > 1 || isOfThree(options_.threads / 32) || !isWhole(from) || !isWhole(to))
    return false;
  SharedChoice choice = chooseShared(toLayout(layoutOf(op.getValue().getType())), toLayout(layoutOf(op.getType())),
                                     static_cast<unsigned>(bytes));
  auto cost = [](const SharedAccess &access, const Wavefronts &passes) {
    return passes.actual + static_cast<int64_t>(access.registers.size());
  };
  if (cost(choice.store, choice.storeCost) + cost(choice.load, choice.loadCost) >=
      paddedCost(strides, from, written, bytes) + paddedCost(strides, to, read, bytes))
    return false;

  int64_t mark = markShared(), size = bytes << choice.shared.in().log(Unit::Offset);
  SharedWindow window;
  window.begin = allocateShared(size);
  window.end = window.begin + size;
  auto forEach = [&](const SharedAccess &access, auto visit) {
    int64_t threadBits = 0;
    Value base = swizzledBase(access, bytes, threadBits);
    std::map<int64_t, Value> bases; // by the part of a register's offset that meets bits of the thread's
    Type moved = access.vectorElements == 1 ? memory : VectorType::get({access.vectorElements}, memory);
    for (const std::vector<int64_t> &vector : access.registers) {
      int64_t offset = byteOffset(access, access.places.applyPacked(vector[0]), bytes), mixed = offset & threadBits;
      Value &at = bases[mixed];
      if (!at)
        at = mixed ? b_.create<arith::XOrIOp>(base, i32(mixed)).getResult() : base;
      visit(vector, moved, at, window.begin + (offset & ~threadBits));
    }
  };
  int group = newGroup();
  Value owner = isOwner(from, /*ofBlock=*/true);
  forEach(choice.store, [&](const std::vector<int64_t> &vector, Type moved, Value at, int64_t offset) {
    SmallVector<Value> values;
    for (int64_t reg : vector)
      values.push_back(registers(op.getValue())[reg]);
    storeShared(packMemory(values, element, moved), at, offset, owner, window, group);
  });
  group = newGroup();
  std::map<int64_t, Value> found; // by offset: registers that hold the same element
  forEach(choice.load, [&](const std::vector<int64_t> &vector, Type moved, Value at, int64_t offset) {
    Value raw = loadShared(moved, at, offset, {}, window, group);
    for (auto [i, reg] : llvm::enumerate(vector)) {
      Value one = vector.size() == 1 ? raw : b_.create<vector::ExtractOp>(raw, static_cast<int64_t>(i)).getResult();
      found[byteOffset(choice.load, choice.load.places.applyPacked(reg), bytes)] = fromMemory(b_, one, element);
    }
  });
  Registers values(to.registers());
  for (int reg = 0; reg < to.registers(); ++reg)
    values[reg] = found.at(byteOffset(choice.load, choice.load.places.applyPacked(reg), bytes));
  registers(op) = std::move(values);
  remark(op.getLoc(), "layout conversion through " + std::to_string(size) +
                          " bytes of shared memory, swizzled, written in accesses of " +
                          std::to_string(choice.store.vectorElements * bytes) + " bytes and read in accesses of " +
                          std::to_string(choice.load.vectorElements * bytes));
  releaseShared(mark);
  return true;
}

} // namespace tenon::nvidia
