// SPDX-License-Identifier: Apache-2.0
//
// math. What IEEE 754 rounds correctly (sqrt, fma, roundings to integers) is computed in the format's own precision;
// the rest in a wider one and rounded, so that a result is off by little more than half a unit in the last place.
#include "tenon/compiler/interpret/Elementwise.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::interpret {
namespace {

template <class Function> Kernel wideUnary(Type type, Function function) {
  return withFormat(type, [&](auto format) -> Kernel {
    using Format = decltype(format);
    return [=](size_t count, Inputs in, Outputs out) {
      for (size_t i = 0; i < count; ++i) {
        typename Format::Wide x = Format::decode(in[0][i]);
        out[0][i] = Format::encode(static_cast<typename Format::Compute>(function(x)));
      }
    };
  });
}

Kernel wideFunction(Operation *op, Type type) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](math::RsqrtOp) { return wideUnary(type, [](auto x) { return 1 / std::sqrt(x); }); })
      .Case([&](math::ExpOp) { return wideUnary(type, [](auto x) { return std::exp(x); }); })
      .Case([&](math::Exp2Op) { return wideUnary(type, [](auto x) { return std::exp2(x); }); })
      .Case([&](math::ExpM1Op) { return wideUnary(type, [](auto x) { return std::expm1(x); }); })
      .Case([&](math::LogOp) { return wideUnary(type, [](auto x) { return std::log(x); }); })
      .Case([&](math::Log2Op) { return wideUnary(type, [](auto x) { return std::log2(x); }); })
      .Case([&](math::Log1pOp) { return wideUnary(type, [](auto x) { return std::log1p(x); }); })
      .Case([&](math::SinOp) { return wideUnary(type, [](auto x) { return std::sin(x); }); })
      .Case([&](math::CosOp) { return wideUnary(type, [](auto x) { return std::cos(x); }); })
      .Case([&](math::TanOp) { return wideUnary(type, [](auto x) { return std::tan(x); }); })
      .Case([&](math::TanhOp) { return wideUnary(type, [](auto x) { return std::tanh(x); }); })
      .Case([&](math::ErfOp) { return wideUnary(type, [](auto x) { return std::erf(x); }); })
      .Default([](Operation *) { return Kernel(); });
}

Kernel exactFunction(Operation *op, Type type) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](math::AbsFOp) { return floatUnary(type, [](auto x) { return std::fabs(x); }); })
      .Case([&](math::CeilOp) { return floatUnary(type, [](auto x) { return std::ceil(x); }); })
      .Case([&](math::FloorOp) { return floatUnary(type, [](auto x) { return std::floor(x); }); })
      .Case([&](math::TruncOp) { return floatUnary(type, [](auto x) { return std::trunc(x); }); })
      .Case([&](math::RoundOp) { return floatUnary(type, [](auto x) { return std::round(x); }); })
      // Ties to even is the default rounding mode, which nothing here changes.
      .Case([&](math::RoundEvenOp) { return floatUnary(type, [](auto x) { return std::nearbyint(x); }); })
      .Case([&](math::SqrtOp) { return floatUnary(type, [](auto x) { return std::sqrt(x); }); })
      .Case([&](math::CopySignOp) { return floatBinary(type, [](auto x, auto y) { return std::copysign(x, y); }); })
      .Default([](Operation *) { return Kernel(); });
}

Kernel power(Type type) {
  return withFormat(type, [&](auto format) -> Kernel {
    using Format = decltype(format);
    return [](size_t count, Inputs in, Outputs out) {
      for (size_t i = 0; i < count; ++i) {
        typename Format::Wide x = Format::decode(in[0][i]), y = Format::decode(in[1][i]);
        out[0][i] = Format::encode(static_cast<typename Format::Compute>(std::pow(x, y)));
      }
    };
  });
}

Kernel fusedMultiplyAdd(Type type) {
  return withFormat(type, [&](auto format) -> Kernel {
    using Format = decltype(format);
    return [](size_t count, Inputs in, Outputs out) {
      for (size_t i = 0; i < count; ++i)
        out[0][i] = Format::encode(
            std::fma(Format::decode(in[0][i]), Format::decode(in[1][i]), Format::decode(in[2][i])));
    };
  });
}

} // namespace

Step prepareMath(Operation *op, Program &program) {
  if (op->getNumOperands() == 0 || op->getNumResults() == 0)
    return {};
  Type type = getElementTypeOrSelf(op->getOperand(0));
  Kernel kernel;
  if (llvm::isa<math::FmaOp>(op))
    kernel = fusedMultiplyAdd(type);
  else if (llvm::isa<math::PowFOp>(op))
    kernel = power(type);
  else if (llvm::isa<math::AbsIOp>(op)) // the smallest integer is its own absolute value
    kernel = integerUnary(bitWidth(type), [width = bitWidth(type)](uint64_t x) {
      return signExtend(x, width) < 0 ? 0 - x : x;
    });
  else if (kernel = exactFunction(op, type); !kernel)
    kernel = wideFunction(op, type);
  return elementwise(op, program, std::move(kernel));
}

} // namespace tenon::interpret
