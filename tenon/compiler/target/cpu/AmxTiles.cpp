// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/AmxTiles.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tenon::cpu {
namespace {

constexpr const char *configurationName = "tile_configuration";

/// The operand of ldtilecfg: palette 1, then for each of eight tiles the bytes of a row (16 bits each, from byte 16), and
/// the number of rows (from byte 48).
std::string configurationBytes() {
  std::string bytes(64, '\0');
  bytes[0] = 1;
  for (int tile = 0; tile < 8; ++tile) {
    bytes[16 + 2 * tile] = static_cast<char>(tileRowBytes);
    bytes[48 + tile] = static_cast<char>(tileRows);
  }
  return bytes;
}

void callFunction(ImplicitLocOpBuilder &b, ModuleOp target, StringRef name, ValueRange arguments) {
  if (!target.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(target.getBody());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                            llvm::to_vector(arguments.getTypes()));
    b.create<LLVM::LLVMFuncOp>(name, type);
  }
  b.create<LLVM::CallOp>(TypeRange{}, name, arguments);
}

} // namespace

void TileEmitter::call(StringRef intrinsic, StringRef emulation, ArrayRef<int> tiles, ValueRange rest) {
  SmallVector<Value> operands;
  Type number = unit_ == TileUnit::emulated ? b_.getI64Type() : b_.getI8Type();
  for (int tile : tiles)
    operands.push_back(b_.create<LLVM::ConstantOp>(number, b_.getIntegerAttr(number, tile)));
  llvm::append_range(operands, rest);
  if (unit_ == TileUnit::emulated)
    callFunction(b_, target_, emulation, operands);
  else
    b_.create<LLVM::CallIntrinsicOp>(TypeRange{}, b_.getStringAttr(intrinsic), operands);
}

void TileEmitter::zero(int tile) { call("llvm.x86.tilezero", "tenon_tile_zero", tile); }

void TileEmitter::load(int tile, Value pointer, Value stride) {
  call("llvm.x86.tileloadd64", "tenon_tile_load", tile, {pointer, stride});
}

void TileEmitter::store(int tile, Value pointer, Value stride) {
  call("llvm.x86.tilestored64", "tenon_tile_store", tile, {pointer, stride});
}

void TileEmitter::multiply(TileProduct product, int sum, int a, int b) {
  if (!usesTiles()) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(target_.getBody());
    auto type = LLVM::LLVMArrayType::get(b_.getI8Type(), 64);
    b_.create<LLVM::GlobalOp>(type, /*isConstant=*/true, LLVM::Linkage::Internal, configurationName,
                              b_.getStringAttr(configurationBytes()), /*alignment=*/64);
  }
  switch (product) {
  case TileProduct::bf16:
    return call("llvm.x86.tdpbf16ps", "tenon_tile_multiply_bf16", {sum, a, b});
  case TileProduct::signedSigned:
    return call("llvm.x86.tdpbssd", "tenon_tile_multiply_ss", {sum, a, b});
  case TileProduct::signedUnsigned:
    return call("llvm.x86.tdpbsud", "tenon_tile_multiply_su", {sum, a, b});
  case TileProduct::unsignedSigned:
    return call("llvm.x86.tdpbusd", "tenon_tile_multiply_us", {sum, a, b});
  case TileProduct::unsignedUnsigned:
    return call("llvm.x86.tdpbuud", "tenon_tile_multiply_uu", {sum, a, b});
  }
}

bool TileEmitter::usesTiles() { return target_.lookupSymbol(configurationName); }

void TileEmitter::configure() {
  if (!usesTiles())
    return;
  Value configuration =
      b_.create<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(b_.getContext()), configurationName);
  call("llvm.x86.ldtilecfg", "tenon_tile_configure", {}, configuration);
}

void TileEmitter::release() {
  if (usesTiles())
    call("llvm.x86.tilerelease", "tenon_tile_release", {});
}

} // namespace tenon::cpu
