// SPDX-License-Identifier: Apache-2.0
//
// From the text of Tile IR to a report of its run on the simulator of a GPU.
#pragma once

#include "test/unit/nvidia/SimHarness.h"

#include "tenon/base/FloatFormats.h"
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/NvidiaTarget.h"
#include "tenon/compiler/target/nvidia/ptx/ExpandMath.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <functional>

namespace tenon::test {

/// A matrix in memory, by columns when transposed: its view then has the dimensions in the other order.
class HostMatrix {
public:
  HostMatrix(std::string type, int64_t rows, int64_t columns, bool transposed = false)
      : type(std::move(type)), rows(rows), columns(columns), transposed(transposed),
        memory("matrix", size_t(std::max<int64_t>(rows * columns, 1) * bytes())) {}

  int64_t bytes() const {
    if (type == "f64")
      return 8;
    return type == "f32" || type == "i32" ? 4 : type == "f16" || type == "bf16" ? 2 : 1;
  }

  void fill(const std::function<double(int64_t, int64_t)> &value) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        set(i, j, value(i, j));
  }
  void set(int64_t i, int64_t j, double value) {
    int64_t at = index(i, j);
    if (type == "f64")
      memory.as<double>()[at] = value;
    else if (type == "f32")
      memory.as<float>()[at] = float(value);
    else if (type == "i32")
      memory.as<int32_t>()[at] = int32_t(value);
    else if (type == "i8")
      memory.as<int8_t>()[at] = int8_t(value);
    else if (type == "f16")
      memory.as<uint16_t>()[at] = f64ToF16(value);
    else if (type == "bf16")
      memory.as<uint16_t>()[at] = f64ToBF16(value);
    else
      memory.as<uint8_t>()[at] = type == "f8E4M3FN" ? f64ToF8e4m3(value) : f64ToF8e5m2(value);
  }
  double at(int64_t i, int64_t j) {
    int64_t at = index(i, j);
    if (type == "f64")
      return memory.as<double>()[at];
    if (type == "f32")
      return memory.as<float>()[at];
    if (type == "i32")
      return memory.as<int32_t>()[at];
    if (type == "i8")
      return memory.as<int8_t>()[at];
    if (type == "f16")
      return f16ToF32(memory.as<uint16_t>()[at]);
    if (type == "bf16")
      return bf16ToF32(memory.as<uint16_t>()[at]);
    return type == "f8E4M3FN" ? f8e4m3ToF32(memory.as<uint8_t>()[at]) : f8e5m2ToF32(memory.as<uint8_t>()[at]);
  }

  std::vector<int64_t> sizes() const {
    std::vector<int64_t> list = transposed ? std::vector{columns, rows} : std::vector{rows, columns};
    if (leadingOne)
      list.insert(list.begin(), 1);
    return list;
  }
  std::vector<int64_t> strides() const {
    int64_t row = transposed ? rows : columns;
    return leadingOne ? std::vector<int64_t>{rows * columns, row, 1} : std::vector<int64_t>{row, 1};
  }
  /// The attributes of the view's argument.
  std::string facts(bool aligned) const {
    std::string list;
    auto add = [&](int64_t value) {
      int64_t power = value ? value & -value : 16;
      list += (list.empty() ? "" : ", ") + std::to_string(aligned ? std::min<int64_t>(power, 16) : 1);
    };
    add(aligned ? 16 : 1);
    for (int64_t size : sizes())
      add(size);
    for (int64_t stride : strides())
      add(stride);
    return "{tile.distinct, tile.unit_stride = " + std::to_string(leadingOne ? 2 : 1) +
           " : i64, tile.divisible = array<i64: " + list + ">}";
  }

  std::string type;
  int64_t rows, columns;
  bool transposed, leadingOne = false;
  SimBuffer memory;

private:
  int64_t index(int64_t i, int64_t j) const { return transposed ? j * rows + i : i * columns + j; }
};

struct TileOptions {
  int64_t warps = 4, stages = 3;
  std::string architecture = "sm_90a";
  uint64_t seed = 0;
  bool aligned = true;
};

/// The thread function. FACTS0, FACTS1, ... in the text become what is known of the views.
struct TileCompiler {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  nvidia::ThreadProgram program;

  TileCompiler(std::string text, const std::vector<HostMatrix *> &views, const TileOptions &options) {
    for (size_t i = 0; i < views.size(); ++i) {
      std::string name = "FACTS" + std::to_string(i);
      text.replace(text.find(name), name.size(), views[i]->facts(options.aligned));
    }
    tile::loadTileDialects(context);
    context.loadDialect<nvidia::NvidiaDialect, mlir::vector::VectorDialect, mlir::cf::ControlFlowDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context), "k");
    if (!module)
      throw std::runtime_error("does not parse:\n" + text);
    nvidia::BlockShape block =
        nvidia::chooseBlock(lower::kernelOf(*module), {.architecture = options.architecture, .warps = options.warps});
    if (failed(nvidia::chooseLayouts(*module, block)))
      throw std::runtime_error("has no layouts:\n" + text);
    program = nvidia::lowerToThreads(*module, block, options.architecture, {options.stages});
    mlir::PassManager pm(&context);
    pm.addPass(nvidia::createExpandMathPass());
    if (!program.module || failed(mlir::verify(*program.module)) || failed(pm.run(*program.module)))
      throw std::runtime_error("is not lowered:\n" + text);
  }
};

struct TileRun {
  std::string findings;
  std::vector<std::string> remarks;
  std::string allRemarks() const {
    std::string text;
    for (const std::string &remark : remarks)
      text += remark + "\n";
    return text;
  }
};

/// What the launch would encode for a view.
inline sim::TensorMap mapOf(HostMatrix &view, const lower::KernelInfo::Gpu::TensorMap &wanted) {
  sim::TensorMap map;
  map.address = view.memory.address();
  map.elementBytes = static_cast<int32_t>(view.bytes());
  map.rank = static_cast<int32_t>(wanted.dims.size());
  map.swizzleBytes = static_cast<int32_t>(wanted.swizzleBytes);
  for (size_t d = 0; d < wanted.dims.size(); ++d) {
    map.sizes[d] = view.sizes()[wanted.dims[d]];
    map.box[d] = static_cast<int32_t>(wanted.box[d]);
    if (d > 0)
      map.strides[d - 1] = view.strides()[wanted.dims[d]] * view.bytes();
  }
  return map;
}

/// One block. Changes the compiler's program.
inline TileRun runTile(TileCompiler &compiler, const std::vector<HostMatrix *> &views, const TileOptions &options) {
  SimKernel kernel(*compiler.program.module);
  SimBuffer status("status", 4096), prints("prints", 4096);
  sim::SimLaunch launch;
  launch.program = kernel.program;
  launch.options.seed = options.seed;
  std::vector<int64_t> words;
  for (HostMatrix *view : views) {
    words.push_back(view->memory.address());
    for (int64_t size : view->sizes())
      words.push_back(size);
    for (int64_t stride : view->strides())
      words.push_back(stride);
    launch.memory.push_back(view->memory.range());
  }
  for (SimBuffer *buffer : {&status, &prints}) {
    words.push_back(buffer->address());
    launch.memory.push_back(buffer->range());
  }
  std::vector<sim::TensorMap> maps;
  for (const auto &map : compiler.program.tensorMaps)
    maps.push_back(mapOf(*views[map.argument], map));
  for (const sim::TensorMap &map : maps)
    words.push_back(reinterpret_cast<int64_t>(&map));
  launch.words = words;
  return {sim::simulate(launch).text(), compiler.program.remarks};
}

inline TileRun runTile(const std::string &text, const std::vector<HostMatrix *> &views, const TileOptions &options) {
  TileCompiler compiler(text, views, options);
  return runTile(compiler, views, options);
}

} // namespace tenon::test
