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

namespace {

template <class T> std::string list(const std::vector<T> &numbers) {
  std::string text;
  for (T number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

std::string json(const tenon::test::TestMap &map) {
  return "{\"output\": " + std::string(map.output ? "true" : "false") + ", \"place\": " + std::to_string(map.place) +
         ", \"element_bytes\": " + std::to_string(map.elementBytes) + ", \"sizes\": " + list(map.sizes) +
         ", \"strides\": " + list(map.strides) + ", \"box\": " + list(map.box) +
         ", \"swizzle\": " + std::to_string(map.swizzleBytes) + "}";
}

} // namespace

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
    tenon::nvidia::Architecture known = tenon::nvidia::architectureOf(architecture);
    std::ofstream index(folder / "index.json");
    const char *separator = "[\n";
    for (const tenon::test::InstructionTest &test : tenon::test::instructionTests()) {
      if (test.minimumArchitecture > known.number || (test.specific && !known.specific))
        continue;
      auto module = mlir::parseSourceString<mlir::ModuleOp>(test.mlir, &context);
      std::ofstream(folder / (test.name + ".ptx")) << tenon::nvidia::emitPtx(*module, {architecture}).text;
      std::ofstream(folder / (test.name + ".in"), std::ios::binary)
          .write(reinterpret_cast<const char *>(test.input.data()), test.input.size());
      index << separator << "{\"name\": \"" << test.name << "\", \"threads\": " << test.threads
            << ", \"cluster\": " << test.cluster << ", \"shared_bytes\": " << test.sharedBytes
            << ", \"output_bytes\": " << test.outputBytes << ", \"maps\": [";
      for (size_t i = 0; i < test.maps.size(); ++i)
        index << (i ? ", " : "") << json(test.maps[i]);
      index << "]}";
      separator = ",\n";
    }
    index << "\n]\n";
  } catch (const tenon::Error &error) {
    std::fprintf(stderr, "write-instructions: %s\n", error.what());
    return 1;
  }
}
