// SPDX-License-Identifier: Apache-2.0
//
// Conversions: tile.cast, and those of arith, which follow the same rules where arith leaves them open.
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Elementwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::interpret {
namespace {

// Every float type is exact in double, so a conversion between two of them is a decoding and one rounding.
using Decoder = double (*)(uint64_t);
using Encoder = uint64_t (*)(double);

Decoder decoderOf(Type type) {
  return withFormat(type, [](auto format) -> Decoder {
    return [](uint64_t word) -> double { return decltype(format)::decode(word); };
  });
}

Encoder encoderOf(Type type) {
  return withFormat(type, [](auto format) -> Encoder { return decltype(format)::encode; });
}

/// Towards zero, saturating; NaN gives 0.
uint64_t toInteger(double value, unsigned width, bool isUnsigned) {
  if (std::isnan(value))
    return 0;
  value = std::trunc(value);
  double beyond = std::ldexp(1.0, static_cast<int>(isUnsigned ? width : width - 1)); // one past the largest
  uint64_t largest = lowBits(~uint64_t(0), isUnsigned ? width : width - 1);
  if (value >= beyond)
    return largest;
  if (isUnsigned)
    return value <= 0 ? 0 : static_cast<uint64_t>(value);
  if (value <= -beyond)
    return largest + 1; // the smallest, in two's complement
  return lowBits(static_cast<uint64_t>(static_cast<int64_t>(value)), width);
}

/// An integer as a double that still rounds correctly to any format of at most 51 bits: what a 64-bit integer has
/// beyond a double's 53 bits is or-ed into the last bit kept ("round to odd"), so that it can never look like a tie.
double toOddDouble(uint64_t word, bool isNegative) {
  uint64_t magnitude = isNegative ? 0 - word : word;
  double value = static_cast<double>(magnitude);
  if (magnitude >> 53)
    value = std::ldexp(static_cast<double>((magnitude >> 11) | ((magnitude & 0x7ff) != 0)), 11);
  return isNegative ? -value : value;
}

Kernel floatToFloat(Type from, Type to) {
  return integerUnary(64, [decode = decoderOf(from), encode = encoderOf(to)](uint64_t x) { return encode(decode(x)); });
}

Kernel floatToInteger(Type from, Type to, bool isUnsigned) {
  return integerUnary(64, [=, decode = decoderOf(from), width = bitWidth(to)](uint64_t x) {
    return toInteger(decode(x), width, isUnsigned);
  });
}

Kernel integerToFloat(Type from, Type to, bool isUnsigned) {
  unsigned width = bitWidth(from);
  if (to.isF64())
    return integerUnary(64, [=](uint64_t x) {
      return F64::encode(isUnsigned ? static_cast<double>(x) : static_cast<double>(signExtend(x, width)));
    });
  return integerUnary(64, [=, encode = encoderOf(to)](uint64_t x) {
    int64_t extended = signExtend(x, width);
    return encode(isUnsigned ? toOddDouble(x, false) : toOddDouble(static_cast<uint64_t>(extended), extended < 0));
  });
}

Kernel integerToInteger(Type from, Type to, bool isUnsigned) {
  return integerUnary(bitWidth(to), [=, width = bitWidth(from)](uint64_t x) {
    return isUnsigned ? x : static_cast<uint64_t>(signExtend(x, width));
  });
}

Kernel convert(Type from, Type to, bool isUnsigned) {
  bool isFromFloat = llvm::isa<FloatType>(from), isToFloat = llvm::isa<FloatType>(to);
  if ((isFromFloat && !decoderOf(from)) || (isToFloat && !encoderOf(to)))
    return {};
  if (isFromFloat)
    return isToFloat ? floatToFloat(from, to) : floatToInteger(from, to, isUnsigned);
  return isToFloat ? integerToFloat(from, to, isUnsigned) : integerToInteger(from, to, isUnsigned);
}

} // namespace

Step prepareCast(Operation *op, Program &program) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return {};
  Type from = getElementTypeOrSelf(op->getOperand(0)), to = getElementTypeOrSelf(op->getResult(0));
  if (auto truncate = llvm::dyn_cast<arith::TruncFOp>(op))
    if (truncate.getRoundingmode().value_or(arith::RoundingMode::to_nearest_even) !=
        arith::RoundingMode::to_nearest_even)
      return program.refuse(op, "only rounding to nearest, ties to even, is part of Tile IR");
  Kernel kernel =
      llvm::TypeSwitch<Operation *, Kernel>(op)
          .Case([&](tile::CastOp cast) {
            // A boolean is 0 or 1 on either side.
            bool isBoolean = from.isInteger(1) || (to.isInteger(1) && llvm::isa<FloatType>(from));
            return convert(from, to, cast.getIsUnsigned() || isBoolean);
          })
          .Case<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp, arith::FPToSIOp,
                arith::IndexCastOp>([&](Operation *) { return convert(from, to, /*isUnsigned=*/false); })
          .Case<arith::ExtUIOp, arith::UIToFPOp, arith::FPToUIOp, arith::IndexCastUIOp>(
              [&](Operation *) { return convert(from, to, /*isUnsigned=*/true); })
          .Case([&](arith::BitcastOp) { return integerUnary(64, [](uint64_t x) { return x; }); })
          .Default([](Operation *) { return Kernel(); });
  return elementwise(op, program, std::move(kernel));
}

} // namespace tenon::interpret
