// SPDX-License-Identifier: Apache-2.0
//
// tenon-opt: the compiler writer's driver. Reads IR, runs the passes named on the command line, prints IR.
//
//     tenon-opt kernel.mlir --canonicalize --cse --tenon-cpu-lower-to-loops=isa=avx2
//
// It knows the dialects of the layers and nothing else: a pass that leaks an op of another dialect fails here.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/target/cpu/Passes.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/ptx/ExpandMath.h"
#include "tenon/compiler/target/nvidia/threads/Passes.h"
#include "tenon/compiler/transform/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  // Tile IR.
  registry.insert<tenon::tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::func::FuncDialect>();
  // What the CPU phases add.
  registry.insert<mlir::vector::VectorDialect, mlir::LLVM::LLVMDialect, mlir::cf::ControlFlowDialect>();
  // One thread of a GPU kernel.
  registry.insert<tenon::nvidia::NvidiaDialect>();

  tenon::registerTransformPasses();
  tenon::cpu::registerCpuPasses();
  tenon::nvidia::registerThreadPasses();
  tenon::nvidia::registerPtxPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tenon compiler driver\n", registry));
}
