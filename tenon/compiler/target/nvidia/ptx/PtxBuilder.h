// SPDX-License-Identifier: Apache-2.0
//
// What the lowering of every op of the nvidia dialect uses: addresses, registers, inline PTX.
#pragma once

#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/ptx/Architecture.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tenon::nvidia {

/// The one symbol of dynamic shared memory: shared addresses of the dialect count from here.
inline constexpr llvm::StringLiteral sharedSymbol = "tenon_shared";
/// Its alignment: that of the widest swizzle pattern.
inline constexpr int64_t sharedAlignment = 1024;

/// A tensor map, as the driver encodes it and a kernel takes it.
inline constexpr int64_t tensorMapBytes = 128, tensorMapAlignment = 64;

/// The instruction that needs to know with how many registers a thread starts.
inline constexpr llvm::StringLiteral setMaxRegisters = "setmaxnreg";

/// On nvidia.approx: subnormal operands and results may be flushed to zero, since what uses the result cannot tell.
/// Saves the three instructions around ex2, rcp or rsqrt that treat them.
inline constexpr llvm::StringLiteral flushAttr = "nvidia.flush";

/// How an asm statement may be moved, merged or dropped. MLIR cannot say this; PtxEmitter reads it off the asm: without
/// side effects it is a function of its operands, without "~{memory}" it touches no memory that LLVM knows of.
enum class Effect {
  None,     // a function of its operands
  Exchange, // executed as often, and by the same lanes, as written
  Memory,   // reads or writes memory besides
};

/// Builds what one op becomes.
class PtxBuilder {
public:
  PtxBuilder(mlir::ConversionPatternRewriter &rewriter, mlir::Location loc, const Architecture &architecture,
                const mlir::TypeConverter &converter)
      : b(loc, rewriter), architecture(architecture), converter(converter) {}

  /// One inline PTX statement. In the text $0, $1, ... are the results, then the operands. The first `tied` operands
  /// are the initial values of the first results: not named in the text, but counted.
  mlir::SmallVector<mlir::Value> assembly(mlir::TypeRange results, mlir::ValueRange operands, const llvm::Twine &text,
                                          Effect effect, unsigned tied = 0);

  /// The absolute 32-bit address, in the shared window, of an address of the dialect.
  mlir::Value sharedAddress(mlir::Value address);
  /// A pointer for a plain access of global or shared memory.
  mlir::Value pointer(Space space, mlir::Value address, int64_t offset);

  /// The value in machine registers, as ld and st move them: i16 (1 or 2 bytes), i32 or i64 (64-bit elements).
  mlir::SmallVector<mlir::Value> registers(mlir::Value value);
  mlir::Value fromRegisters(mlir::ValueRange registers, mlir::Type type);
  /// The types of the registers of a value.
  mlir::SmallVector<mlir::Type> registerTypes(mlir::Type type);

  mlir::ImplicitLocOpBuilder b;
  const Architecture &architecture;
  const mlir::TypeConverter &converter;
};

/// "{$first, $first+1, ...}".
std::string registerList(unsigned first, unsigned count);

/// Lowers ops of one kind with a function (op, adaptor, builder) -> the values that replace the results.
template <class OpT> class ThreadPattern : public mlir::ConvertOpToLLVMPattern<OpT> {
public:
  using Values = mlir::SmallVector<mlir::Value>;
  using Lower = Values (*)(OpT, typename OpT::Adaptor, PtxBuilder &);

  ThreadPattern(mlir::LLVMTypeConverter &converter, const Architecture &architecture, Lower lower)
      : mlir::ConvertOpToLLVMPattern<OpT>(converter), architecture(architecture), lower(lower) {}

  mlir::LogicalResult matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                                      mlir::ConversionPatternRewriter &rewriter) const override {
    PtxBuilder builder(rewriter, op.getLoc(), architecture, *this->getTypeConverter());
    rewriter.replaceOp(op, lower(op, adaptor, builder));
    return mlir::success();
  }

private:
  const Architecture &architecture;
  Lower lower;
};

template <class OpT>
void addPattern(mlir::RewritePatternSet &patterns, mlir::LLVMTypeConverter &converter, const Architecture &architecture,
                mlir::SmallVector<mlir::Value> (*lower)(OpT, typename OpT::Adaptor, PtxBuilder &)) {
  patterns.add(std::make_unique<ThreadPattern<OpT>>(converter, architecture, lower));
}

/// The patterns by theme; `architecture` must outlive them.
void addMemoryPatterns(mlir::RewritePatternSet &, mlir::LLVMTypeConverter &, const Architecture &);
void addOrderPatterns(mlir::RewritePatternSet &, mlir::LLVMTypeConverter &, const Architecture &);
void addMatrixPatterns(mlir::RewritePatternSet &, mlir::LLVMTypeConverter &, const Architecture &);
void addBulkPatterns(mlir::RewritePatternSet &, mlir::LLVMTypeConverter &, const Architecture &);
void addWarpgroupPatterns(mlir::RewritePatternSet &, mlir::LLVMTypeConverter &, const Architecture &);

/// Before the patterns: tensor maps become parameters by value after the function's own, and nvidia.tensor_map their
/// addresses. Reports and fails on a number that there is no map of.
mlir::LogicalResult placeTensorMaps(mlir::func::FuncOp function);

} // namespace tenon::nvidia
