// SPDX-License-Identifier: Apache-2.0
//
// bf16 to f32 with one instruction a register instead of two. Where only vectors of bf16 come in, and go out, are added
// up or kept for another such loop (PairedTiles.h), the order of lanes is nobody's business: 32 numbers are loaded as
// 16 pairs, and their first and second members become a register each.
//
//     memory       a b c d ...
//     first        a c ...           a shift by 16 bits
//     second       b d ...           a mask
//
// A store puts the pairs together again, one permutation for 32 numbers (PackBf16.cpp). The other way is vpmovzxwd,
// which only one unit has, and a shift.
#include "tenon/compiler/target/cpu/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/ErrorHandling.h"

#include <numeric>

using namespace mlir;

namespace tenon::cpu {

bool Nest::pairsLanes() {
  if (vectorDim_ < 0)
    return false;
  PairedTiles::Loop loop{vectorDim_};
  bool can = vectorLanes_ % pairedLanes == 0 && e_.isa().vectorBytes >= 2 * pairedLanes;
  for (const NestRoot &root : group_.roots) {
    can &= e_.pairedTiles().allows(loop, root.op, root.op ? Value() : root.value);
    can &= !llvm::isa_and_present<tile::StoreOp>(root.op) || vectorLanes_ == pairedLanes;
  }
  if (!can && !loop.touched.empty())
    llvm::report_fatal_error("loops that share a tile do not agree on its order"); // or results would change places
  return can && (loop.loads || !loop.touched.empty());
}

/// Whether so many lanes are in pairs: whole steps, and of what they leave of a row the pieces of 32.
bool Nest::isPaired(unsigned lanes) const { return paired_ && lanes != 0 && lanes % pairedLanes == 0; }

/// The places of the lanes' elements, from the first of them on, as a constant.
Value Nest::placesOfLanes(Type element) {
  SmallVector<int64_t> places(lanes_);
  std::iota(places.begin(), places.end(), 0);
  if (isPaired(lanes_))
    for (auto [lane, place] : llvm::enumerate(places)) {
      int64_t half = pairedLanes / 2, at = lane % pairedLanes;
      place += (at % half * 2 + at / half) - at;
    }
  SmallVector<Attribute> values;
  for (int64_t place : places)
    values.push_back(b_.getIntegerAttr(element, place));
  return b_.create<arith::ConstantOp>(DenseElementsAttr::get(VectorType::get({lanes_}, element), values));
}

/// Of 16 pairs of bf16 the first members, then the second ones; then of the next 16.
Value Nest::unpackPairs(Value raw) {
  unsigned lanes = lanesOf(raw);
  auto words = VectorType::get({lanes / 2}, b_.getI32Type()), floats = VectorType::get({lanes / 2}, b_.getF32Type());
  Value pairs = b_.create<LLVM::BitcastOp>(words, raw);
  Value first = b_.create<arith::ShLIOp>(pairs, constantBits(b_, words, 16));
  Value second = b_.create<arith::AndIOp>(pairs, constantBits(b_, words, 0xffff0000));
  SmallVector<int32_t> both;
  constexpr int32_t half = pairedLanes / 2;
  for (int32_t lane = 0; lane < static_cast<int32_t>(lanes); ++lane) {
    bool isSecond = lane / half % 2;
    both.push_back(lane / half / 2 * half + lane % half + (isSecond ? static_cast<int32_t>(lanes) / 2 : 0));
  }
  return b_.create<LLVM::ShuffleVectorOp>(b_.create<LLVM::BitcastOp>(floats, first),
                                          b_.create<LLVM::BitcastOp>(floats, second), both);
}

Value Nest::packPairs(Value halves) {
  constexpr int32_t half = pairedLanes / 2;
  assert(lanesOf(halves) == pairedLanes && "a store of bf16 writes one register");
  SmallVector<int32_t> paired;
  for (int32_t i = 0; i < half; ++i)
    paired.append({i, half + i});
  return b_.create<LLVM::ShuffleVectorOp>(halves, halves, paired);
}

} // namespace tenon::cpu
