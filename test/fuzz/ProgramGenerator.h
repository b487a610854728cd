// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "Random.h"

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

/// Random Tile IR with one defined result. What keeps it defined:
///   - an instance writes, and reads of what is written, only its own rows of each output view;
///   - float sums, products and dots are over small integers, so that every order gives the same bits;
///   - a NaN's bits are never looked at (bitcast, copysign), nor the sign of a zero that maxnumf chose;
///   - scatter names each element once; an atomic's result is used only where the order cannot show.
namespace tenon::fuzz {

/// The same program for the same seed. The launch is in its attributes: see Launch.h.
mlir::OwningOpRef<mlir::ModuleOp> generateProgram(mlir::MLIRContext &context, uint64_t seed);

inline bool isFloat8(mlir::Type type) { return type.isFloat8E4M3FN() || type.isFloat8E5M2(); }

class ProgramGenerator {
public:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using Tile = mlir::TypedValue<mlir::RankedTensorType>;
  using Shape = llvm::SmallVector<int64_t, 5>;

  ProgramGenerator(mlir::MLIRContext &context, uint64_t seed);
  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  /// What a reduction or scan does with its operands.
  enum Combination { Single, ArgMax, ArgMin, Pair, Masked, Affine, First, Last, FloatSum, FloatProduct };
  enum class Role { input, output, atomic };
  struct View {
    Value value;
    Type element;
    Shape sizes;
    Role role = Role::input;
    int ownDim = 0;      ///< output: instance i has rows [i * ownRows, (i + 1) * ownRows) of this dimension
    int64_t ownRows = 1;
    bool isExact = false; ///< small integers only
    tile::AtomicKind kind = tile::AtomicKind::add;
    bool isUnsigned = false;
    int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  };
  /// What can be used as an operand here; leaving a block forgets what it made.
  struct Pool {
    std::vector<Value> tiles, indices, scalars;
  };

  // ProgramGenerator.cpp: the frame, control flow, scalars
  void chooseSizes();
  void makeArguments();
  void makeView(Role role);
  Shape makeStrides(const Shape &sizes, bool written);
  void makeGrid();
  Value extentValue(int64_t extent);
  void makeWorkspace();
  void statements(int count);
  void statement();
  void loadStatement();
  void scalarStatement();
  void forLoop();
  void accumulationLoop();
  void branch();
  llvm::SmallVector<Value> carriedValues();
  llvm::SmallVector<Value> nextValues(mlir::ValueRange carried);
  void storeLeftovers();
  Value constant(int64_t value) { return b_.create<mlir::arith::ConstantIndexOp>(value); }
  Value anyIndex();
  Value smallIndex(int64_t limit); ///< in [0, limit)
  Value indexArithmetic();
  Value anyCondition();
  Value scalarOf(Type type);
  Value scalarFromTile(Type element); ///< null element: any
  mlir::TypedAttr constantAttr(Type type);
  Value castScalar(Value value, Type to);

  // GenerateTiles.cpp: what makes tiles from tiles
  Type anyElement();
  Type anyArithmeticElement(); ///< not f8: no arithmetic there
  Shape anyShape();
  int64_t anyExtent();
  Shape shapeOfElements(int64_t elements, int64_t rank);
  Tile anyTile();
  Tile tileOf(llvm::ArrayRef<int64_t> shape, Type element);
  Tile exactTile(llvm::ArrayRef<int64_t> shape, Type element, int64_t bound);
  Tile cast(Value tile, Type element);
  Tile constantTile(llvm::ArrayRef<int64_t> shape, Type element);
  Tile reshape(Value tile, llvm::ArrayRef<int64_t> shape);
  Tile withoutNaN(Value tile);
  Tile linearIndex(llvm::ArrayRef<int64_t> shape, Type element);
  void elementwise();
  void floatOperation();
  void integerOperation();
  void compareSelect();
  void movement();
  void concat();
  void reduce();
  void scan();
  llvm::SmallVector<Value> combineOperands(bool isScan, int &kind);
  void combineRegion(mlir::Region &region, mlir::ValueRange operands, int kind);
  void dot();
  Tile dotOf(Value a, Value b, Value acc, bool isAUnsigned, bool isBUnsigned);
  void philox();
  Value floatOp(llvm::ArrayRef<Value> operands, int kind);
  Value integerOp(llvm::ArrayRef<Value> operands, int kind);
  Tile keep(Value value); ///< into the pool
  static mlir::RankedTensorType typeOf(Value tile) { return llvm::cast<mlir::RankedTensorType>(tile.getType()); }
  static mlir::RankedTensorType tileType(llvm::ArrayRef<int64_t> shape, Type element) {
    return mlir::RankedTensorType::get(shape, element);
  }

  // GenerateLoops.cpp: tiles that a loop carries, read in several ways at once; long chains
  void windingLoop();
  Tile seen(Value tile);
  Tile turned(Value tile);
  Tile rotated(Value tile);
  Tile extremeOf(Value tile);
  Tile joined(Value a, Value b);
  void reduceTwo(Value a, Value b);
  void reduceBothWays();
  void chain();
  void useOf(Value tile);

  // GenerateMemory.cpp: what touches views
  Tile load();
  Tile loadFrom(View &view, llvm::ArrayRef<int64_t> shape);
  View *findView(llvm::function_ref<bool(const View &)> wanted);
  llvm::SmallVector<Value> offsetsFor(const View &view, llvm::ArrayRef<int64_t> shape);
  Value anyOffset(int64_t size, int64_t extent);
  bool canHold(const View &view, llvm::ArrayRef<int64_t> shape) const;
  void store();
  void storeTo(View &view, Value tile);
  Tile fitted(const View &view, Value tile);
  void gather();
  void gatherBy(llvm::ArrayRef<int64_t> shape, Value tile);
  void scatter();
  void scatterOf(Value tile);
  void atomic();
  llvm::SmallVector<Value> uniqueIndices(const View &view, llvm::ArrayRef<int64_t> shape);
  Value maybeMask(llvm::ArrayRef<int64_t> shape);
  void assertion();

  mlir::MLIRContext &context_;
  uint64_t seed_;
  Random random_;
  mlir::ImplicitLocOpBuilder b_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp kernel_;
  std::vector<Type> elements_;   ///< this program's favourites
  std::vector<int64_t> extents_; ///< likewise
  std::vector<int> likes_;       ///< how much this program likes each kind of statement
  std::vector<View> views_;
  std::vector<Value> stored_; ///< what a store or a loop has used
  llvm::DenseMap<Value, int64_t> exact_; ///< tiles of integers of at most this magnitude
  Pool pool_;
  int64_t grid_[3] = {1, 1, 1};
  int axes_ = 1;
  int64_t instances_ = 1;
  Value instance_; ///< this instance's number
  int depth_ = 0;
  int64_t budget_ = 0; ///< elements of tiles still allowed, so that no program takes long
};

} // namespace tenon::fuzz
