// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/DotPlan.h"

#include "tenon/base/PiecesCost.h"
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
/// 24 instructions. The largest comes last: without what x2 takes away, x0 + x1 may be past the largest number. The three
/// that are left out are below 2^-22 of the product.
constexpr PieceProduct productsOfF32[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};
constexpr PieceProduct productsOfTf32[] = {{0, 1}, {0, 0}, {1, 0}}; ///< two pieces are 16 bits, of which tf32 has 11
constexpr PieceProduct productsOfF16[] = {{1, 1}, {0, 1}, {0, 0}, {1, 0}}; ///< all of them; nothing is rounded

/// Of f32 and f16, what AMX multiplies in pieces; empty: other types.
ArrayRef<PieceProduct> productsOf(tile::DotOp op) {
  Type from = op.getA().getType().getElementType();
  if (from.isF16())
    return productsOfF16;
  if (!from.isF32())
    return {};
  return op.getAllowTf32() ? ArrayRef(productsOfTf32) : ArrayRef(productsOfF32);
}

static_assert(std::size(productsOfF32) == productsOfF32Pieces && std::size(productsOfTf32) == productsOfTf32Pieces &&
              std::size(productsOfF16) == productsOfF16Pieces);

/// Where tiles are functions, for tests, everything is taken apart.
bool takesApart(tile::DotOp op, size_t products, const Isa &isa) {
  if (isa.tiles != TileUnit::hardware)
    return isa.tiles == TileUnit::emulated;
  int64_t m = op.getType().getDimSize(0), n = op.getType().getDimSize(1), k = op.getA().getType().getDimSize(1);
  return arePiecesFaster(m, n, k, static_cast<int>(products));
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
