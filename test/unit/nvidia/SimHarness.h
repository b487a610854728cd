// SPDX-License-Identifier: Apache-2.0
//
// From the text of a thread function to a report of its run on the simulator.
#pragma once

#include "tenon/base/SimThread.h"
#include "tenon/compiler/target/cpu/CpuTarget.h"
#include "tenon/compiler/target/cpu/Loader.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/sim/ThreadsToSim.h"
#include "tenon/runtime/sim/Simulator.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <cstring>
#include <memory>
#include <stdexcept>

namespace tenon::test {

/// A compiled thread function. Its lines are "k:<line of the text>".
struct SimKernel {
  std::unique_ptr<cpu::LinkedObject> code;
  sim::SimProgram program;

  explicit SimKernel(const std::string &text) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<mlir::func::FuncDialect, mlir::scf::SCFDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::vector::VectorDialect, mlir::cf::ControlFlowDialect,
                        nvidia::NvidiaDialect>();
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context), "k");
    if (!module)
      throw std::runtime_error("does not parse:\n" + text);
    compile(*module);
  }
  /// Changes the module.
  explicit SimKernel(mlir::ModuleOp module) { compile(module); }

private:
  void compile(mlir::ModuleOp module) {
    if (failed(nvidia::lowerThreadsToSim(module)))
      throw std::runtime_error("is not lowered");
    cpu::Isa isa = cpu::selectIsa("native");
    llvm::LLVMContext llvmContext;
    auto llvmModule = cpu::translateToLlvm(module, isa, llvmContext);
    if (!llvmModule)
      throw std::runtime_error("is not translated");
    cpu::optimize(*llvmModule, isa);
    auto object = cpu::emitObject(*llvmModule, isa);
    std::vector<cpu::ExternalSymbol> symbols;
    for (const sim::SimSymbol &symbol : sim::simSymbols())
      symbols.push_back({symbol.name, symbol.address});
    code = std::make_unique<cpu::LinkedObject>(std::span<const char>(object.data(), object.size()), symbols);
    program = sim::simProgram(code->address(sim::threadSymbol), code->address(sim::placesSymbol),
                              code->address(sim::shapeSymbol));
  }
};

/// Global memory that starts at a multiple of 256.
class SimBuffer {
public:
  SimBuffer(std::string name, size_t bytes, bool writable = true)
      : storage_(bytes + 256), name_(std::move(name)), bytes_(bytes), writable_(writable) {}

  uint8_t *data() { return storage_.data() + (256 - reinterpret_cast<uintptr_t>(storage_.data()) % 256) % 256; }
  template <class T> T *as() { return reinterpret_cast<T *>(data()); }
  int64_t address() { return reinterpret_cast<int64_t>(data()); }
  size_t bytes() const { return bytes_; }
  sim::MemoryRange range() { return {address(), int64_t(bytes_), name_, writable_}; }

private:
  std::vector<uint8_t> storage_;
  std::string name_;
  size_t bytes_;
  bool writable_;
};

/// A tensor map of a buffer whose rows are contiguous, sizes and box innermost first.
inline sim::TensorMap tensorMap(int64_t address, int elementBytes, std::vector<int64_t> sizes, std::vector<int> box,
                                int swizzleBytes) {
  sim::TensorMap map;
  map.address = address;
  map.elementBytes = elementBytes;
  map.rank = sizes.size();
  map.swizzleBytes = swizzleBytes;
  int64_t stride = elementBytes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    map.sizes[i] = sizes[i];
    map.box[i] = box[i];
    if (i)
      map.strides[i - 1] = stride;
    stride *= sizes[i];
  }
  return map;
}

/// Passes the addresses of the buffers, then the numbers, as the function's arguments.
inline sim::SimReport runSim(const SimKernel &kernel, std::vector<SimBuffer *> buffers, int64_t blocks = 0,
                             sim::SimOptions options = {}, std::vector<int64_t> numbers = {},
                             const std::vector<sim::TensorMap> &maps = {}) {
  std::vector<int64_t> words;
  sim::SimLaunch launch;
  launch.program = kernel.program;
  launch.blocks = blocks ? blocks : kernel.program.cluster;
  launch.options = options;
  for (SimBuffer *buffer : buffers) {
    words.push_back(buffer->address());
    launch.memory.push_back(buffer->range());
  }
  words.insert(words.end(), numbers.begin(), numbers.end());
  for (const sim::TensorMap &map : maps)
    words.push_back(reinterpret_cast<int64_t>(&map));
  launch.words = words;
  return sim::simulate(launch);
}

} // namespace tenon::test
