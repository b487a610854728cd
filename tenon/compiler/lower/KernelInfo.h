// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::lower {

/// What the launcher must know of a kernel besides its code, on every target.
struct KernelInfo {
  struct Requirement {
    std::string message, where;
  };
  struct Workspace {
    unsigned elementBytes, rank;
    tile::Initial initial = tile::Initial::zero;
  };
  /// A run-time argument of the kernel.
  struct Argument {
    std::string name;
    bool isView;
    unsigned elementBytes, rank; ///< of a view
  };
  /// What a GPU's block is, and what its numbers for the host mean.
  struct Gpu {
    struct Assert {
      std::string message, where;
      int64_t rank; ///< of the condition; 0 for a scalar
    };
    struct Print {
      std::string label, element;
      std::vector<int64_t> shape; ///< empty for a scalar
      bool isUnsigned;
    };
    /// A view as the tensor memory accelerator is told of it: a parameter of its own, made anew for every launch.
    struct TensorMap {
      unsigned argument;          ///< which view: its position among `arguments`, then among `workspaces`
      unsigned elementBytes;      ///< of the view
      std::vector<unsigned> dims; ///< of the view, for each dimension of the map; innermost (unit stride) first
      std::vector<int64_t> box;   ///< elements that one transfer moves; innermost first
      int64_t swizzleBytes;       ///< of the box in shared memory: 0 (none), 32, 64, 128
      std::string element;        ///< as MLIR spells it
    };
    int64_t threads = 0, cluster = 1, sharedBytes = 0;
    int64_t stages = 1; ///< slots of the loads that run ahead of their loop
    std::vector<Assert> asserts; ///< by the number, from 1, that a failing thread reports
    std::vector<Print> prints;
    std::vector<TensorMap> tensorMaps; ///< by the number that nvidia.tensor_map has
    /// The blocks loop over the program instances themselves: no more are launched than the device runs at once.
    bool persistent = false;
    /// Blocks beyond the program instances have work, too.
    bool sharesTail = false;
    /// It may be launched while the kernel before it still runs, and waits for that one's end by itself.
    bool startsEarly = false;
  };
  std::string name;
  std::vector<Argument> arguments;
  Gpu gpu;
  int64_t scratchBytes = 0; ///< per worker of the CPU
  std::vector<Requirement> requirements;
  std::vector<Workspace> workspaces;
  bool promisesNoOverlap = false;
  std::vector<std::string> remarks; ///< "file:line: ...": what the compiler did or declined, and why
  std::vector<bool> written;        ///< per function argument: whether the kernel writes through it
};

/// Read off the Tile IR; scratch and remarks are the target's to add.
KernelInfo describeKernel(mlir::ModuleOp tileModule);

/// The kernel of a module of Tile IR: its only function.
mlir::func::FuncOp kernelOf(mlir::ModuleOp module);

/// The view that a store, scatter or atomic writes; null for any other op.
mlir::Value viewWrittenBy(mlir::Operation *op);

/// "file:line", or "" for an op that came from no source line.
std::string placeOf(mlir::Location where);

} // namespace tenon::lower
