// SPDX-License-Identifier: Apache-2.0
//
// arith, and the integer operations of the tile dialect. Where arith leaves a result undefined (division by zero, wide
// shifts) the tile dialect's rule is used: any result would do, and the interpreter must not crash.
#include "tenon/compiler/dialect/IntegerRules.h"
#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Elementwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::interpret {
namespace {

Kernel floatArithmetic(Operation *op, Type type) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](arith::AddFOp) { return floatBinary(type, [](auto a, auto b) { return a + b; }); })
      .Case([&](arith::SubFOp) { return floatBinary(type, [](auto a, auto b) { return a - b; }); })
      .Case([&](arith::MulFOp) { return floatBinary(type, [](auto a, auto b) { return a * b; }); })
      .Case([&](arith::DivFOp) { return floatBinary(type, [](auto a, auto b) { return a / b; }); })
      .Case([&](arith::RemFOp) { return floatBinary(type, [](auto a, auto b) { return std::fmod(a, b); }); })
      .Case([&](arith::NegFOp) { return floatUnary(type, [](auto a) { return -a; }); })
      .Case([&](arith::MaximumFOp) { return floatBinary(type, [](auto a, auto b) { return maximum(a, b); }); })
      .Case([&](arith::MinimumFOp) { return floatBinary(type, [](auto a, auto b) { return minimum(a, b); }); })
      .Case([&](arith::MaxNumFOp) {
        return floatBinary(type, [](auto a, auto b) { return std::isnan(a) ? b : std::isnan(b) ? a : maximum(a, b); });
      })
      .Case([&](arith::MinNumFOp) {
        return floatBinary(type, [](auto a, auto b) { return std::isnan(a) ? b : std::isnan(b) ? a : minimum(a, b); });
      })
      .Default([](Operation *) { return Kernel(); });
}

using IntegerRule = llvm::APInt (*)(const llvm::APInt &, const llvm::APInt &, bool);

/// tile.div and its like, by the rules that the folders use.
Kernel byRule(unsigned width, IntegerRule rule, bool isUnsigned) {
  return integerBinary(width, [=](uint64_t a, uint64_t b) {
    return rule(llvm::APInt(width, a), llvm::APInt(width, b), isUnsigned).getZExtValue();
  });
}

/// Quotients that are not rounded towards zero: `adjust` says, from the signs, which way an inexact one moves.
template <class Adjust> Kernel roundedDivision(unsigned width, bool isUnsigned, Adjust adjust) {
  return integerBinary(width, [=](uint64_t a, uint64_t b) {
    llvm::APInt lhs(width, a), rhs(width, b);
    uint64_t quotient = tile::divide(lhs, rhs, isUnsigned).getZExtValue();
    if (rhs.isZero() || tile::remainder(lhs, rhs, isUnsigned).isZero())
      return quotient;
    bool isNegative = !isUnsigned && lhs.isNegative() != rhs.isNegative();
    return quotient + static_cast<uint64_t>(adjust(isNegative));
  });
}

template <class Wide> Kernel extendedProduct(unsigned width, Wide (*extend)(uint64_t, unsigned)) {
  return [=](size_t count, Inputs in, Outputs out) {
    for (size_t i = 0; i < count; ++i) {
      Wide product = extend(in[0][i], width) * extend(in[1][i], width);
      out[0][i] = lowBits(static_cast<uint64_t>(product), width);
      out[1][i] = lowBits(static_cast<uint64_t>(product >> width), width);
    }
  };
}

Kernel integerArithmetic(Operation *op, Type type) {
  if (!type.isIntOrIndex())
    return {};
  unsigned width = bitWidth(type);
  auto binary = [&](auto function) { return integerBinary(width, function); };
  auto isSignedLess = [width](uint64_t a, uint64_t b) { return signExtend(a, width) < signExtend(b, width); };
  auto ceiling = [](bool isNegative) { return isNegative ? 0 : 1; };
  auto flooring = [](bool isNegative) { return isNegative ? -1 : 0; };
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](arith::AddIOp) { return binary([](uint64_t a, uint64_t b) { return a + b; }); })
      .Case([&](arith::SubIOp) { return binary([](uint64_t a, uint64_t b) { return a - b; }); })
      .Case([&](arith::MulIOp) { return binary([](uint64_t a, uint64_t b) { return a * b; }); })
      .Case([&](arith::AndIOp) { return binary([](uint64_t a, uint64_t b) { return a & b; }); })
      .Case([&](arith::OrIOp) { return binary([](uint64_t a, uint64_t b) { return a | b; }); })
      .Case([&](arith::XOrIOp) { return binary([](uint64_t a, uint64_t b) { return a ^ b; }); })
      .Case([&](arith::MaxSIOp) { return binary([=](uint64_t a, uint64_t b) { return isSignedLess(a, b) ? b : a; }); })
      .Case([&](arith::MinSIOp) { return binary([=](uint64_t a, uint64_t b) { return isSignedLess(a, b) ? a : b; }); })
      .Case([&](arith::MaxUIOp) { return binary([](uint64_t a, uint64_t b) { return std::max(a, b); }); })
      .Case([&](arith::MinUIOp) { return binary([](uint64_t a, uint64_t b) { return std::min(a, b); }); })
      .Case([&](tile::DivOp div) { return byRule(width, tile::divide, div.getIsUnsigned()); })
      .Case([&](tile::RemOp rem) { return byRule(width, tile::remainder, rem.getIsUnsigned()); })
      .Case([&](tile::ShlOp shl) { return byRule(width, tile::shiftLeft, shl.getIsUnsigned()); })
      .Case([&](tile::ShrOp shr) { return byRule(width, tile::shiftRight, shr.getIsUnsigned()); })
      .Case([&](arith::DivSIOp) { return byRule(width, tile::divide, false); })
      .Case([&](arith::DivUIOp) { return byRule(width, tile::divide, true); })
      .Case([&](arith::RemSIOp) { return byRule(width, tile::remainder, false); })
      .Case([&](arith::RemUIOp) { return byRule(width, tile::remainder, true); })
      .Case([&](arith::ShLIOp) { return byRule(width, tile::shiftLeft, true); })
      .Case([&](arith::ShRSIOp) { return byRule(width, tile::shiftRight, false); })
      .Case([&](arith::ShRUIOp) { return byRule(width, tile::shiftRight, true); })
      .Case([&](arith::CeilDivSIOp) { return roundedDivision(width, false, ceiling); })
      .Case([&](arith::CeilDivUIOp) { return roundedDivision(width, true, ceiling); })
      .Case([&](arith::FloorDivSIOp) { return roundedDivision(width, false, flooring); })
      .Case([&](arith::MulSIExtendedOp) {
        return extendedProduct<__int128>(width, [](uint64_t a, unsigned w) { return __int128(signExtend(a, w)); });
      })
      .Case([&](arith::MulUIExtendedOp) {
        return extendedProduct<unsigned __int128>(width, [](uint64_t a, unsigned) { return (unsigned __int128)(a); });
      })
      .Default([](Operation *) { return Kernel(); });
}

Kernel compareIntegers(arith::CmpIPredicate predicate, unsigned width) {
  auto compare = [](auto relation) { return integerBinary(1, relation); };
  auto compareSigned = [width](auto relation) {
    return integerBinary(1, [=](uint64_t a, uint64_t b) {
      return relation(signExtend(a, width), signExtend(b, width));
    });
  };
  switch (predicate) {
  case arith::CmpIPredicate::eq: return compare(std::equal_to<uint64_t>());
  case arith::CmpIPredicate::ne: return compare(std::not_equal_to<uint64_t>());
  case arith::CmpIPredicate::slt: return compareSigned(std::less<int64_t>());
  case arith::CmpIPredicate::sle: return compareSigned(std::less_equal<int64_t>());
  case arith::CmpIPredicate::sgt: return compareSigned(std::greater<int64_t>());
  case arith::CmpIPredicate::sge: return compareSigned(std::greater_equal<int64_t>());
  case arith::CmpIPredicate::ult: return compare(std::less<uint64_t>());
  case arith::CmpIPredicate::ule: return compare(std::less_equal<uint64_t>());
  case arith::CmpIPredicate::ugt: return compare(std::greater<uint64_t>());
  case arith::CmpIPredicate::uge: return compare(std::greater_equal<uint64_t>());
  }
  return {};
}

/// Two floats stand in exactly one of four relations; a predicate is the set of those for which it holds.
enum Relation : unsigned { Less = 1, Equal = 2, Greater = 4, Unordered = 8 };

unsigned relationsOf(arith::CmpFPredicate predicate) {
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse: return 0;
  case arith::CmpFPredicate::OEQ: return Equal;
  case arith::CmpFPredicate::OGT: return Greater;
  case arith::CmpFPredicate::OGE: return Greater | Equal;
  case arith::CmpFPredicate::OLT: return Less;
  case arith::CmpFPredicate::OLE: return Less | Equal;
  case arith::CmpFPredicate::ONE: return Less | Greater;
  case arith::CmpFPredicate::ORD: return Less | Equal | Greater;
  case arith::CmpFPredicate::UEQ: return Unordered | Equal;
  case arith::CmpFPredicate::UGT: return Unordered | Greater;
  case arith::CmpFPredicate::UGE: return Unordered | Greater | Equal;
  case arith::CmpFPredicate::ULT: return Unordered | Less;
  case arith::CmpFPredicate::ULE: return Unordered | Less | Equal;
  case arith::CmpFPredicate::UNE: return Unordered | Less | Greater;
  case arith::CmpFPredicate::UNO: return Unordered;
  case arith::CmpFPredicate::AlwaysTrue: return Less | Equal | Greater | Unordered;
  }
  return 0;
}

Kernel compareFloats(arith::CmpFPredicate predicate, Type type) {
  unsigned relations = relationsOf(predicate);
  return withFormat(type, [&](auto format) -> Kernel {
    using Format = decltype(format);
    return integerBinary(1, [=](uint64_t x, uint64_t y) -> uint64_t {
      auto a = Format::decode(x), b = Format::decode(y);
      unsigned relation = a < b ? Less : a > b ? Greater : a == b ? Equal : Unordered;
      return (relations & relation) != 0;
    });
  });
}

/// One condition may choose between whole tiles.
Kernel selectKernel(bool hasScalarCondition) {
  return [=](size_t count, Inputs in, Outputs out) {
    for (size_t i = 0; i < count; ++i)
      out[0][i] = in[0][hasScalarCondition ? 0 : i] ? in[1][i] : in[2][i];
  };
}

Step prepareConstant(arith::ConstantOp op, Program &program) {
  Words words;
  auto addInteger = [&](const llvm::APInt &value) { words.push_back(value.getZExtValue()); };
  Attribute value = op.getValue();
  if (auto integer = llvm::dyn_cast<IntegerAttr>(value)) {
    addInteger(integer.getValue());
  } else if (auto number = llvm::dyn_cast<FloatAttr>(value)) {
    addInteger(number.getValue().bitcastToAPInt());
  } else if (auto elements = llvm::dyn_cast<DenseElementsAttr>(value)) {
    if (llvm::isa<FloatType>(elements.getElementType()))
      for (const llvm::APFloat &element : elements.getValues<llvm::APFloat>())
        addInteger(element.bitcastToAPInt());
    else
      for (const llvm::APInt &element : elements.getValues<llvm::APInt>())
        addInteger(element);
  } else {
    return program.refuse(op, "a constant is a number or dense numbers");
  }
  program.setConstant(op, std::move(words));
  return [](State &) { return true; };
}

} // namespace

Step prepareArithmetic(Operation *op, Program &program) {
  if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op))
    return prepareConstant(constant, program);
  if (op->getNumOperands() == 0 || op->getNumResults() == 0)
    return {};
  Type type = getElementTypeOrSelf(op->getOperand(0));
  Kernel kernel;
  if (auto compare = llvm::dyn_cast<arith::CmpIOp>(op))
    kernel = compareIntegers(compare.getPredicate(), bitWidth(type));
  else if (auto compare = llvm::dyn_cast<arith::CmpFOp>(op))
    kernel = compareFloats(compare.getPredicate(), type);
  else if (llvm::isa<arith::SelectOp>(op))
    kernel = selectKernel(!llvm::isa<TensorType>(op->getOperand(0).getType()));
  else if (kernel = integerArithmetic(op, type); !kernel)
    kernel = floatArithmetic(op, type);
  return elementwise(op, program, std::move(kernel));
}

} // namespace tenon::interpret
