// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>

/// From a kernel in the llvm dialect to PTX text, through LLVM's NVPTX back end: no CUDA toolkit, no GPU needed.
///
/// This is the end of the NVIDIA pipeline, and so far all of it: the loop nests that one program instance consists of are
/// run by one thread, scratch lives in that thread's local memory. It is right and slow; the distribution of tiles over
/// threads (layouts, shared memory, tensor cores) goes between Tile IR and here.
namespace tenon::nvidia {

/// `module` holds `instance` (see target/cpu/LoopEmitter.h for its parameters). The PTX has one entry of the kernel's name:
/// (const int64_t *arguments); the block's index gives the program ids. Throws Error when the architecture is unknown or
/// the kernel cannot run there.
std::string emitPtx(mlir::ModuleOp module, const std::string &kernelName, int64_t scratchBytes,
                    const std::string &architecture);

} // namespace tenon::nvidia
