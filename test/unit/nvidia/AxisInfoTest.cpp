// SPDX-License-Identifier: Apache-2.0
//
// What AxisAnalysis says of a tile, against the tile: exactly in chosen cases, and as a property of random programs
// that the interpreter runs.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Interpreter.h"
#include "tenon/compiler/target/nvidia/threads/AxisInfo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;

namespace tenon::nvidia {
namespace {

constexpr int64_t most = Divisibility::most;

std::string text(const AxisInfo &info) {
  auto number = [](int64_t value) { return value == most ? std::string("most") : std::to_string(value); };
  std::string result;
  for (const AxisInfo::Axis &axis : info.axes)
    result += (result.empty() ? "" : ", ") + number(axis.contiguity) + "/" + number(axis.constancy) + "/" +
              number(axis.divisibility);
  return result;
}

/// contiguity/constancy/divisibility per dimension of the value named %r in the body. The view %x has a multiple of 8
/// rows and of 16 columns, %n is a multiple of 4, %p of nothing.
std::string axesOf(const std::string &body) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  tile::loadTileDialects(context);
  auto module = parseSourceString<ModuleOp>(R"(
    func.func @kernel(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 8, 16, 16, 1>},
                      %n: index {tile.divisible = array<i64: 4>}, %p: index) {
      %rows = tile.size %x, 0 : !tile.view<2, f32>
      %columns = tile.size %x, 1 : !tile.view<2, f32>
      %n64 = tile.cast %n : index -> i64
      %columns64 = tile.cast %columns : index -> i64
      )" + body + "\nreturn }",
                                            ParserConfig(&context));
  EXPECT_TRUE(module) << body;
  if (!module)
    return "";
  Block &block = (*module->getOps<func::FuncOp>().begin()).getBody().front();
  Divisibility scalars;
  return text(AxisAnalysis(scalars).of(std::prev(block.end(), 2)->getResult(0)));
}

TEST(AxisInfo, Leaves) {
  EXPECT_EQ(axesOf("%r = tile.iota 0 : tensor<6xi64>"), "8/1/most");
  EXPECT_EQ(axesOf("%r = tile.iota 1 : tensor<4x64xi32>"), "1/most/1, 64/1/most");
  EXPECT_EQ(axesOf("%r = tile.iota 0 : tensor<1x8xi32>"), "1/most/most, 1/most/most"); // zeros
  EXPECT_EQ(axesOf("%r = tile.splat %n64 : i64 -> tensor<4x8xi64>"), "1/most/4, 1/most/4");
  EXPECT_EQ(axesOf("%r = tile.splat %columns64 : i64 -> tensor<8xi64>"), "1/most/16");
  EXPECT_EQ(axesOf("%c = arith.constant -9223372036854775808 : i64\n%r = tile.splat %c : i64 -> tensor<8xi64>"),
            "1/most/most"); // the least integer, which has no negation
  EXPECT_EQ(axesOf("%r = arith.constant dense<24> : tensor<8xi32>"), "1/most/8");
  EXPECT_EQ(axesOf("%r = arith.constant dense<0> : tensor<8xi32>"), "1/most/most");
  EXPECT_EQ(axesOf("%r = arith.constant dense<[1, 2]> : tensor<2xi32>"), "1/1/1");
  EXPECT_EQ(axesOf("%r = arith.constant dense<true> : tensor<2xi1>"), "1/1/1");
}

TEST(AxisInfo, Arithmetic) {
  std::string iota = "%i = tile.iota 0 : tensor<64xi64>\n";
  EXPECT_EQ(axesOf(iota + "%s = tile.splat %n64 : i64 -> tensor<64xi64>\n %r = arith.addi %s, %i : tensor<64xi64>"),
            "64/1/4");
  EXPECT_EQ(axesOf(iota + "%s = tile.splat %n64 : i64 -> tensor<64xi64>\n %r = arith.subi %i, %s : tensor<64xi64>"),
            "64/1/4");
  EXPECT_EQ(axesOf(iota + "%s = tile.splat %n64 : i64 -> tensor<64xi64>\n %r = arith.subi %s, %i : tensor<64xi64>"),
            "1/1/1"); // it falls
  EXPECT_EQ(axesOf(iota + "%r = arith.addi %i, %i : tensor<64xi64>"), "1/1/1");
  EXPECT_EQ(axesOf(iota + "%s = tile.splat %n64 : i64 -> tensor<64xi64>\n %r = arith.muli %i, %s : tensor<64xi64>"),
            "1/1/4");
  EXPECT_EQ(axesOf(iota + "%s = arith.constant dense<3> : tensor<64xi64>\n %r = tile.shl %i, %s : tensor<64xi64>"),
            "1/1/8");
  EXPECT_EQ(axesOf(iota + "%s = arith.constant dense<64> : tensor<64xi64>\n %r = tile.shl %i, %s : tensor<64xi64>"),
            "1/1/most");
  EXPECT_EQ(axesOf(iota + "%s = arith.constant dense<2> : tensor<64xi64>\n %r = tile.shr %i, %s : tensor<64xi64>"),
            "1/4/1");
  // Both together: quarters of a number, four times over, and what is left of it.
  EXPECT_EQ(axesOf(iota + R"(%s = arith.constant dense<2> : tensor<64xi64>
                             %q = tile.shr unsigned %i, %s : tensor<64xi64>
                             %f = tile.shl %q, %s : tensor<64xi64>
                             %r = arith.subi %i, %f : tensor<64xi64>)"),
            "4/1/4");
}

TEST(AxisInfo, Conversions) {
  // Narrower keeps everything. Wider keeps what cannot wrap.
  EXPECT_EQ(axesOf("%i = tile.iota 0 : tensor<64xi64>\n %r = tile.cast %i : tensor<64xi64> -> tensor<64xi32>"),
            "64/1/most");
  EXPECT_EQ(axesOf("%i = tile.iota 0 : tensor<64xi32>\n %r = tile.cast %i : tensor<64xi32> -> tensor<64xi64>"),
            "64/1/most");
  std::string from = "%i = tile.iota 0 : tensor<64xi32>\n %n32 = tile.cast %n : index -> i32\n"
                     "%s = tile.splat %n32 : i32 -> tensor<64xi32>\n %t = arith.addi %i, %s : tensor<64xi32>\n";
  EXPECT_EQ(axesOf(from + "%r = tile.cast unsigned %t : tensor<64xi32> -> tensor<64xi64>"), "4/1/4");
  EXPECT_EQ(axesOf(from + "%r = arith.extsi %t : tensor<64xi32> to tensor<64xi64>"), "4/1/4");
  EXPECT_EQ(axesOf(from + "%r = tile.cast %t : tensor<64xi32> -> tensor<64xf32>"), "1/1/1");
  // After 127 comes -128.
  EXPECT_EQ(axesOf(R"(%i = tile.iota 0 : tensor<512xi32>
                      %t = tile.cast %i : tensor<512xi32> -> tensor<512xi8>
                      %r = tile.cast %t : tensor<512xi8> -> tensor<512xi64>)"),
            "128/1/128");
}

TEST(AxisInfo, ThePositionsOfAMatrix) {
  std::string position = R"(
      %c32 = arith.constant 32 : index
      %j = arith.muli %p, %c32 : index
      %j64 = tile.cast %j : index -> i64
      %js = tile.splat %j64 : i64 -> tensor<1x32xi64>
      %i1 = tile.iota 1 : tensor<1x32xi64>
      %column = arith.addi %i1, %js : tensor<1x32xi64>
      %width = tile.splat %columns64 : i64 -> tensor<4x1xi64>
      %i0 = tile.iota 0 : tensor<4x1xi64>
      %row = arith.muli %i0, %width : tensor<4x1xi64>
      %rows2 = tile.broadcast %row : tensor<4x1xi64> -> tensor<4x32xi64>
      %columns2 = tile.broadcast %column : tensor<1x32xi64> -> tensor<4x32xi64>
      %at = arith.addi %rows2, %columns2 : tensor<4x32xi64>
      )";
  EXPECT_EQ(axesOf(position + "%r = tile.reshape %at : tensor<4x32xi64> -> tensor<4x32x1xi64>"),
            "1/1/1, 32/1/16, 1/most/1");
  EXPECT_EQ(axesOf(position + "%r = tile.transpose %at [1, 0] : tensor<4x32xi64> -> tensor<32x4xi64>"),
            "32/1/16, 1/1/1");
  EXPECT_EQ(axesOf(position + "%r = tile.reshape %at : tensor<4x32xi64> -> tensor<128xi64>"), "1/1/1");
}

/// Of booleans, too.
TEST(AxisInfo, ConstantInRuns) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  tile::loadTileDialects(context);
  auto module = parseSourceString<ModuleOp>(R"(
    func.func @kernel(%end: i64, %any: tensor<8x32xi1>, %rows: tensor<8x1xi1>) {
      %i0 = tile.iota 0 : tensor<8x1xi64>
      %i1 = tile.iota 1 : tensor<8x32xi64>
      %ends = tile.splat %end : i64 -> tensor<8x1xi64>
      %below = arith.cmpi slt, %i0, %ends : tensor<8x1xi64>
      %row = tile.broadcast %below : tensor<8x1xi1> -> tensor<8x32xi1>
      %other = tile.broadcast %rows : tensor<8x1xi1> -> tensor<8x32xi1>
      %both = arith.andi %row, %other : tensor<8x32xi1>
      %wide = tile.splat %end : i64 -> tensor<8x32xi64>
      %column = arith.cmpi slt, %i1, %wide : tensor<8x32xi64>
      %eight = arith.constant dense<3> : tensor<8x32xi64>
      %chunk = arith.shrui %i1, %eight : tensor<8x32xi64>
      %odd = arith.cmpi eq, %chunk, %wide : tensor<8x32xi64>
      %mixed = arith.ori %both, %any : tensor<8x32xi1>
      return
    })",
                                            ParserConfig(&context));
  ASSERT_TRUE(module);
  Block &block = (*module->getOps<func::FuncOp>().begin()).getBody().front();
  Divisibility scalars;
  AxisAnalysis axes(scalars);
  std::string runs; // of 8 and 16 along columns
  for (Operation &op : block.without_terminator())
    if (auto type = llvm::dyn_cast<RankedTensorType>(op.getResult(0).getType()))
      for (int64_t run : {8, 16})
        runs += axes.isConstantInRuns(op.getResult(0), 1, run) ? "y" : "n";
  //              i0 i1 ends below row other both wide column eight chunk odd mixed
  EXPECT_EQ(runs, "yy" "nn" "yy" "yy" "yy" "yy" "yy" "yy" "nn" "yy" "yn" "yn" "nn");
  EXPECT_FALSE(axes.isConstantInRuns(block.getArgument(1), 1, 2));
}

//===--- Random programs ------------------------------------------------------------------------------------------===//

using Shape = std::vector<int64_t>;

/// A kernel of a few integer tiles, each of which is stored, and what the interpreter finds in them.
class RandomProgram {
public:
  explicit RandomProgram(uint64_t seed)
      : random_(seed), context_(MLIRContext::Threading::DISABLED), b_(UnknownLoc::get(&context_), &context_) {
    tile::loadTileDialects(context_);
    module_ = ModuleOp::create(b_.getLoc());
    b_.setInsertionPointToEnd(module_->getBody());
    // A view whose sizes, and scalars which themselves, are multiples of what is said of them.
    Type index = b_.getIndexType(), i64 = b_.getI64Type();
    auto view = tile::ViewType::get(&context_, 1, i64);
    kernel_ = b_.create<func::FuncOp>("kernel", b_.getFunctionType({view, view, index, index}, {}));
    b_.setInsertionPointToStart(kernel_.addEntryBlock());
    int64_t facts[3];
    for (int64_t &fact : facts)
      fact = int64_t(1) << below(6);
    kernel_.setArgAttr(0, tile::divisibleAttr, b_.getDenseI64ArrayAttr({1, facts[0], 1}));
    for (int n = 0; n < 2; ++n)
      kernel_.setArgAttr(2 + n, tile::divisibleAttr, b_.getDenseI64ArrayAttr({facts[1 + n]}));
    size_ = facts[0] * below(20);
    for (int n = 0; n < 2; ++n)
      numbers_[n] = facts[1 + n] * (chance(20) ? static_cast<int64_t>(random_()) : below(41) - 20);
    scalars_ = {b_.create<tile::SizeOp>(kernel_.getArgument(0), 0), kernel_.getArgument(2), kernel_.getArgument(3)};
    for (int n = 0; n < 25; ++n)
      addTile();
    storeTiles();
    b_.create<func::ReturnOp>();
  }

  /// How many claims of more than one were confirmed; fails the test where one is wrong.
  int64_t check() {
    EXPECT_TRUE(succeeded(verify(*module_)));
    std::vector<int64_t> out(total_, 0);
    auto address = reinterpret_cast<int64_t>(out.data());
    std::vector<int64_t> words = {0, size_, 1, address, total_, 1, numbers_[0], numbers_[1]};
    EXPECT_EQ(interpret::interpretLaunch(kernel_, words), "");
    Divisibility scalars;
    AxisAnalysis analysis(scalars);
    int64_t confirmed = 0, at = 0;
    for (Value tile : tiles_) {
      AxisInfo info = analysis.of(tile);
      Shape shape = shapeOf(tile);
      size_t inner = 1;
      for (size_t d = shape.size(); d-- > 0; inner *= shape[d])
        confirmed += checkAxis(tile, info, d, inner, out.data() + at);
      at += elementsOf(shape);
    }
    return confirmed;
  }

private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % n); }
  bool chance(int percent) { return below(100) < percent; }
  static Shape shapeOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getShape().vec(); }
  static Type elementOf(Value tile) { return llvm::cast<RankedTensorType>(tile.getType()).getElementType(); }
  static int64_t elementsOf(const Shape &shape) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return count;
  }
  Type anyElement() { return b_.getIntegerType(std::array{8, 16, 32, 32, 64, 64}[below(6)]); }
  Shape anyShape() {
    Shape shape(1 + below(3));
    for (int64_t &size : shape)
      size = std::array{1, 2, 4, 5, 8, 12, 16}[below(7)];
    return shape;
  }

  Value anyTile() { return tiles_[below(tiles_.size())]; }

  /// Of the given type: one there is, or a new leaf.
  Value tileOf(RankedTensorType type) {
    std::vector<Value> found;
    for (Value tile : tiles_)
      if (tile.getType() == type)
        found.push_back(tile);
    return !found.empty() && chance(50) ? found[below(found.size())] : leaf(type);
  }

  Value constant(RankedTensorType type, int64_t value) {
    APInt bits(type.getElementTypeBitWidth(), static_cast<uint64_t>(value), /*isSigned=*/true);
    return b_.create<arith::ConstantOp>(DenseElementsAttr::get(type, bits));
  }

  Value leaf(RankedTensorType type) {
    switch (below(4)) {
    case 0: return constant(type, chance(50) ? below(64) : -(int64_t(1) << below(8)));
    case 1: {
      Value number = scalars_[below(scalars_.size())];
      if (chance(30))
        number = b_.create<arith::MulIOp>(number, b_.create<arith::ConstantIndexOp>(below(20)));
      return b_.create<tile::SplatOp>(type, b_.create<tile::CastOp>(type.getElementType(), number, chance(50)));
    }
    default: {
      if (type.getElementTypeBitWidth() >= 32)
        return b_.create<tile::IotaOp>(type, below(type.getRank()));
      auto wide = RankedTensorType::get(type.getShape(), b_.getI32Type());
      return b_.create<tile::CastOp>(type, b_.create<tile::IotaOp>(wide, below(type.getRank())), chance(50));
    }
    }
  }

  void addTile() {
    if (tiles_.empty() || chance(25)) {
      tiles_.push_back(leaf(RankedTensorType::get(anyShape(), anyElement())));
      return;
    }
    Value tile = anyTile();
    auto type = llvm::cast<RankedTensorType>(tile.getType());
    Shape shape = shapeOf(tile);
    switch (below(9)) {
    case 0: tile = b_.create<arith::AddIOp>(tile, tileOf(type)); break;
    case 1: tile = b_.create<arith::AddIOp>(tileOf(type), tile); break;
    case 2: tile = b_.create<arith::SubIOp>(tile, tileOf(type)); break;
    case 3: tile = b_.create<arith::MulIOp>(tile, tileOf(type)); break;
    case 4: { // a shift by up to more than the width
      Value amount = constant(type, chance(80) ? below(5) : below(type.getElementTypeBitWidth() + 3));
      tile = chance(40) ? b_.create<tile::ShlOp>(tile, amount, false).getResult()
                        : b_.create<tile::ShrOp>(tile, amount, chance(50)).getResult();
      break;
    }
    case 5: {
      auto to = RankedTensorType::get(shape, anyElement());
      if (to != type)
        tile = b_.create<tile::CastOp>(to, tile, chance(50));
      break;
    }
    case 6: // a broadcast
      for (int64_t &size : shape)
        if (size == 1)
          size = 1 + below(9);
      if (shape != shapeOf(tile))
        tile = b_.create<tile::BroadcastOp>(RankedTensorType::get(shape, type.getElementType()), tile);
      break;
    case 7: // a dimension of one element more or less
      if (shape.size() < 4 && chance(60))
        shape.insert(shape.begin() + below(shape.size() + 1), 1);
      else if (auto unit = std::find(shape.begin(), shape.end(), 1); unit != shape.end() && shape.size() > 1)
        shape.erase(unit);
      if (shape != shapeOf(tile))
        tile = b_.create<tile::ReshapeOp>(RankedTensorType::get(shape, type.getElementType()), tile);
      break;
    case 8: {
      std::vector<int64_t> permutation(shape.size());
      std::iota(permutation.begin(), permutation.end(), 0);
      std::shuffle(permutation.begin(), permutation.end(), random_);
      Shape permuted;
      for (int64_t d : permutation)
        permuted.push_back(shape[d]);
      tile = b_.create<tile::TransposeOp>(RankedTensorType::get(permuted, type.getElementType()), tile, permutation);
      break;
    }
    }
    if (elementsOf(shapeOf(tile)) <= 4096)
      tiles_.push_back(tile);
  }

  void storeTiles() {
    for (Value tile : tiles_) {
      Shape flat = {elementsOf(shapeOf(tile))};
      Value wide = tile;
      if (!elementOf(tile).isInteger(64))
        wide = b_.create<tile::CastOp>(RankedTensorType::get(shapeOf(tile), b_.getI64Type()), tile, false);
      if (shapeOf(tile).size() > 1)
        wide = b_.create<tile::ReshapeOp>(RankedTensorType::get(flat, b_.getI64Type()), wide);
      Value at = b_.create<arith::ConstantIndexOp>(total_);
      b_.create<tile::StoreOp>(wide, kernel_.getArgument(1), at);
      total_ += flat[0];
    }
  }

  int64_t checkAxis(Value tile, const AxisInfo &info, size_t d, int64_t inner, const int64_t *values) {
    Shape shape = shapeOf(tile);
    const AxisInfo::Axis &axis = info.axes[d];
    unsigned width = elementOf(tile).getIntOrFloatBitWidth();
    uint64_t mask = width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
    auto fail = [&](const char *what, int64_t i) {
      std::string program;
      llvm::raw_string_ostream(program) << tile << "\nin\n" << *module_;
      ADD_FAILURE() << what << " along dimension " << d << " at element " << i << ": " << text(info) << " of "
                    << program;
    };
    if (shape[d] == 1 && axis.contiguity != 1)
      fail("one element is a run", 0);
    for (int64_t i = 0; i < elementsOf(shape); ++i) {
      int64_t coord = i / inner % shape[d];
      auto left = static_cast<uint64_t>(coord ? values[i - inner] : 0), value = static_cast<uint64_t>(values[i]);
      if (coord % axis.contiguity && ((left + 1) & mask) != (value & mask))
        return fail("contiguity", i), 0;
      if (coord % axis.constancy && left != value)
        return fail("constancy", i), 0;
      if (coord % axis.contiguity == 0 && (value & mask) % static_cast<uint64_t>(axis.divisibility))
        return fail("divisibility", i), 0;
      if (coord % info.alignedRun(d) == 0 && (value & mask) % static_cast<uint64_t>(info.alignedRun(d)))
        return fail("aligned run", i), 0;
    }
    return shape[d] > 1 ? (axis.contiguity > 1) + (axis.constancy > 1) + (axis.divisibility > 1) : 0;
  }

  std::mt19937_64 random_;
  MLIRContext context_;
  ImplicitLocOpBuilder b_;
  OwningOpRef<ModuleOp> module_;
  func::FuncOp kernel_;
  int64_t size_ = 0, numbers_[2] = {}, total_ = 0;
  std::vector<Value> scalars_, tiles_;
};

TEST(AxisInfo, HoldsInRandomPrograms) {
  int64_t confirmed = 0;
  for (uint64_t seed = 0; seed < 400 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    confirmed += RandomProgram(seed).check();
  }
  EXPECT_GT(confirmed, 5000); // it is not silent
}

} // namespace
} // namespace tenon::nvidia
