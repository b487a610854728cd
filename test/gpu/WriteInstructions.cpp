// SPDX-License-Identifier: Apache-2.0
//
// write-instructions <architecture> <folder>: every one-instruction kernel (test/nvidia/Instructions.h) that the
// architecture can run, as <name>.ptx and <name>.in, and index.json with how to launch them. test/gpu/record runs them.
#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/ptx/Architecture.h"
#include "tenon/compiler/target/nvidia/ptx/PtxEmitter.h"
#include "test/nvidia/Instructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write-instructions <architecture> <folder>\n");
    return 2;
  }
  try {
    std::string architecture = argv[1];
    std::filesystem::path folder = argv[2];
    std::filesystem::create_directories(folder);
    mlir::MLIRContext context;
    context.loadDialect<tenon::nvidia::NvidiaDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                        mlir::scf::SCFDialect, mlir::func::FuncDialect, mlir::vector::VectorDialect>();
    int number = tenon::nvidia::architectureOf(architecture).number;
    std::ofstream index(folder / "index.json");
    const char *separator = "[\n";
    for (const tenon::test::InstructionTest &test : tenon::test::instructionTests()) {
      if (test.minimumArchitecture > number)
        continue;
      auto module = mlir::parseSourceString<mlir::ModuleOp>(test.mlir, &context);
      std::ofstream(folder / (test.name + ".ptx")) << tenon::nvidia::emitPtx(*module, {architecture}).text;
      std::ofstream(folder / (test.name + ".in"), std::ios::binary)
          .write(reinterpret_cast<const char *>(test.input.data()), test.input.size());
      index << separator << "{\"name\": \"" << test.name << "\", \"threads\": " << test.threads
            << ", \"cluster\": " << test.cluster << ", \"shared_bytes\": " << test.sharedBytes
            << ", \"output_bytes\": " << test.outputBytes << "}";
      separator = ",\n";
    }
    index << "\n]\n";
  } catch (const tenon::Error &error) {
    std::fprintf(stderr, "write-instructions: %s\n", error.what());
    return 1;
  }
}
