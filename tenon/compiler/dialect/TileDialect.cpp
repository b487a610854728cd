// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "tenon/compiler/dialect/TileDialect.cpp.inc"
#include "tenon/compiler/dialect/TileEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "tenon/compiler/dialect/TileTypes.cpp.inc"
#define GET_OP_CLASSES
#include "tenon/compiler/dialect/TileOps.cpp.inc"

namespace tenon::tile {

void TileDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "tenon/compiler/dialect/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "tenon/compiler/dialect/TileOps.cpp.inc"
      >();
}

mlir::Operation *TileDialect::materializeConstant(mlir::OpBuilder &builder, mlir::Attribute value, mlir::Type type,
                                                  mlir::Location loc) {
  return mlir::arith::ConstantOp::materialize(builder, value, type, loc);
}

void loadTileDialects(mlir::MLIRContext &context) {
  context.loadDialect<TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                      mlir::func::FuncDialect>();
}

} // namespace tenon::tile
