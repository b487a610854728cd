// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/DotPlan.h"

#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/target/cpu/AmxTiles.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

/// So many rows are computed by streaming over B. With one more, packing B pays: its cost is shared by the rows.
constexpr int64_t thinRows = 4;

/// Every x86-64 has vpmaddwd, or what it is called on its 16 bytes.
constexpr unsigned leastPairBytes = 16;

/// Two by two tiles of accumulators leave two for A and two for B. A product takes as long as two loads from L1, and the
/// block needs one load for each.
void planTiles(DotPlan &plan, Type from, int64_t n) {
  plan.family = from.isInteger(8) ? DotFamily::byteTiles : DotFamily::bf16Tiles;
  plan.packed = from.isInteger(8) ? from : IntegerType::get(from.getContext(), 16);
  plan.group = 4 / lower::byteSize(plan.packed);
  plan.lanes = tileRowBytes / 4;
  plan.vectors = n > plan.lanes ? 2 : 1;
  plan.rows = 2 * tileRows;
  plan.rowStep = tileRows;
  plan.depthStep = tileRowBytes / lower::byteSize(plan.packed);
}

/// f32 is three pieces of 8 bits. Each product is the one before with another piece on one side, so that 14 loads serve
/// 24 instructions. The three that are left out are below 2^-22 of the whole.
constexpr PieceProduct productsOfF32[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {0, 0}, {2, 0}};
constexpr PieceProduct productsOfTf32[] = {{0, 1}, {0, 0}, {1, 0}}; ///< two pieces are 16 bits, of which tf32 has 11
constexpr PieceProduct productsOfF16[] = {{1, 1}, {0, 1}, {0, 0}, {1, 0}}; ///< all of them

/// Of f32 and f16, what AMX multiplies in pieces; empty: other types.
ArrayRef<PieceProduct> productsOf(tile::DotOp op) {
  Type from = op.getA().getType().getElementType();
  if (from.isF16())
    return productsOfF16;
  if (!from.isF32())
    return {};
  return op.getAllowTf32() ? ArrayRef(productsOfTf32) : ArrayRef(productsOfF32);
}

/// Whether taking operands apart pays: each element costs as much as some products, so there have to be rows and columns
/// that share it. In cycles for each element of K, as measured on an Emerald Rapids: elements come from L2 or L3, and the
/// core's other thread has its share of the tiles. Where tiles are functions, for tests, it always does.
bool takesApart(tile::DotOp op, size_t products, const Isa &isa) {
  if (isa.tiles != TileUnit::hardware)
    return isa.tiles == TileUnit::emulated;
  int64_t m = op.getType().getDimSize(0), n = op.getType().getDimSize(1), k = op.getA().getType().getDimSize(1);
  constexpr double takingApart = 1, packing = 0.1, ofVectors = 30, ofTiles = 300; // products in a cycle
  auto whole = [](int64_t extent, int64_t step) { return static_cast<double>(llvm::alignTo(extent, step)); };
  double sum = static_cast<double>(m + n), product = static_cast<double>(m * n);
  double inPieces = sum * takingApart + static_cast<double>(products) * whole(m, tileRows) * whole(n, tileRows) *
                                            whole(k, 2 * tileRows) / static_cast<double>(k) / ofTiles;
  return inPieces < sum * packing + product / ofVectors;
}

} // namespace

Type DotPlan::operand() const { return pieces > 1 ? Float32Type::get(packed.getContext()) : packed; }
int64_t DotPlan::unitBytes() const { return group * lower::byteSize(packed); }

DotPlan planDot(tile::DotOp op, const Isa &isa) {
  DotPlan plan;
  int64_t m = op.getType().getDimSize(0), n = op.getType().getDimSize(1);
  Type from = op.getA().getType().getElementType();
  plan.accumulator = op.getType().getElementType();
  plan.packed = plan.accumulator;
  plan.lanes = std::max<int64_t>(1, isa.vectorBytes / lower::byteSize(plan.accumulator));
  plan.thin = m <= thinRows;
  if (!plan.thin && isa.tiles != TileUnit::none && (from.isBF16() || from.isInteger(8))) {
    planTiles(plan, from, n);
    return plan;
  }
  ArrayRef<PieceProduct> products = productsOf(op);
  if (!plan.thin && !products.empty() && takesApart(op, products.size(), isa)) {
    planTiles(plan, from, n);
    plan.products = products;
    for (PieceProduct product : products)
      plan.pieces = std::max<int64_t>(plan.pieces, product.a + 1);
    return plan;
  }
  if (!plan.thin && from.isBF16() && isa.dotsBf16) {
    plan.family = DotFamily::bf16Pairs;
    plan.packed = lower::memoryType(from);
    plan.group = 2;
  } else if (!plan.thin && from.isInteger(8) && isa.dotsBytes) {
    plan.family = DotFamily::byteQuads;
    plan.packed = from;
    plan.group = 4;
    plan.flipsA = op.getAUnsigned() == op.getBUnsigned();
    plan.aIsUnsigned = !op.getBUnsigned();
  } else if (!plan.thin && from.isInteger(8) && isa.vectorBytes >= leastPairBytes) {
    plan.family = DotFamily::bytePairs;
    plan.packed = IntegerType::get(op.getContext(), 16);
    plan.group = 2;
  }
  plan.depthStep = plan.group;
  // Accumulators + one row of B + one broadcast fill the register file. With 32 registers a block of 6 x 4 has 34
  // instructions for 24 multiply-adds, one of 14 x 2 has 44 for 28: a core that two threads share gives each three
  // instructions a cycle, and two of them should be multiply-adds. Products of pairs and quads take twice as long.
  int64_t most = isa.registers >= 32 && plan.family == DotFamily::multiplyAdd ? 4 : 2;
  plan.vectors = std::min<int64_t>(most, llvm::divideCeil(n, plan.lanes));
  plan.rows = std::max<int64_t>(1, (isa.registers - plan.vectors - 1) / plan.vectors);
  // 12 x 2, 8 x 3 and 28 x 1 are as fast as 14 x 2, 9 x 3 and 30 x 1, and what they leave over has half the cases.
  if (plan.family == DotFamily::multiplyAdd && plan.rows >= 8)
    plan.rows = plan.rows / 4 * 4;
  return plan;
}

} // namespace tenon::cpu
