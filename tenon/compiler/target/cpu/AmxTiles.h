// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/Isa.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

/// AMX: eight registers of 16 rows of 64 bytes, and instructions that multiply two of them into a third. They are named
/// by number here, so none is ever spilled, and have one shape that is set up once per call of `tenon_run`:
///
///     ldtilecfg tile_configuration                     all eight: 16 rows of 64 bytes
///     for each program instance: ... tileloadd, tdpbf16ps or tdpb[su][su]d, tilestored ...
///     tilerelease                                      or every context switch would save 8 KiB
///
/// Where the processor has no such registers, the same calls go to functions that do what the manual says of each
/// instruction (TileEmulation.h): code for AMX is tested everywhere, addresses and all.
namespace tenon::cpu {

constexpr int64_t tileRows = 16, tileRowBytes = 64;

enum class TileProduct {
  bf16,             ///< pairs of bf16 to f32
  signedSigned,     ///< quads of bytes to i32; A's signedness, then B's
  signedUnsigned,
  unsignedSigned,
  unsignedUnsigned,
};

/// Emits tile instructions. `stride`: bytes from row to row (i64).
class TileEmitter {
public:
  TileEmitter(mlir::ImplicitLocOpBuilder &b, mlir::ModuleOp target, TileUnit unit) : b_(b), target_(target), unit_(unit) {}

  void zero(int tile);
  void load(int tile, mlir::Value pointer, mlir::Value stride);
  void store(int tile, mlir::Value pointer, mlir::Value stride);
  /// sum += a * b
  void multiply(TileProduct product, int sum, int a, int b);

  /// For `tenon_run`: at its begin and its end. They emit nothing where the module has no tile instructions.
  void configure();
  void release();

private:
  void call(llvm::StringRef intrinsic, llvm::StringRef emulation, llvm::ArrayRef<int> tiles,
            mlir::ValueRange rest = {});
  bool usesTiles();

  mlir::ImplicitLocOpBuilder &b_;
  mlir::ModuleOp target_;
  TileUnit unit_;
};

} // namespace tenon::cpu
