// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/transform/Cubic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <array>
#include <cmath>

using namespace mlir;

namespace tenon {
namespace {

constexpr size_t mostOperations = 16;

/// By degree.
using Polynomial = std::array<double, 4>;

/// Adds a term, unless it takes away from what is there: (x + c) - c rounds x, and is not x.
bool addTerm(double &sum, double term) {
  if (sum * term < 0)
    return false;
  sum += term;
  return true;
}

/// The value as a polynomial in x; none where it is something else, or of a higher degree, or where terms cancel.
std::optional<Polynomial> polynomialIn(Value x, Value value) {
  if (value == x)
    return Polynomial{0, 1, 0, 0};
  if (std::optional<double> number = constantOf(value))
    return Polynomial{*number, 0, 0, 0};
  Operation *op = value.getDefiningOp();
  if (!op || !isa<arith::MulFOp, arith::AddFOp>(op))
    return std::nullopt;
  std::optional<Polynomial> left = polynomialIn(x, op->getOperand(0));
  std::optional<Polynomial> right = left ? polynomialIn(x, op->getOperand(1)) : std::nullopt;
  if (!right)
    return std::nullopt;
  Polynomial result{};
  for (size_t i = 0; i < result.size(); ++i) {
    if (isa<arith::AddFOp>(op)) {
      result[i] = (*left)[i];
      if (!addTerm(result[i], (*right)[i]))
        return std::nullopt;
      continue;
    }
    for (size_t j = 0; j < result.size(); ++j) {
      double product = (*left)[i] * (*right)[j];
      if (i + j < result.size() ? !addTerm(result[i + j], product) : product != 0)
        return std::nullopt;
    }
  }
  return result;
}

/// Far from what f32 cannot hold, with any constant factor.
bool isModerate(double factor) { return std::abs(factor) >= 0x1p-60 && std::abs(factor) <= 0x1p60; }

} // namespace

std::optional<double> constantOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && op->getNumOperands() == 1 && op->getName().getStringRef() == "vector.splat")
    value = op->getOperand(0);
  llvm::APFloat found(0.0);
  if (!matchPattern(value, m_ConstantFloat(&found)))
    return std::nullopt;
  return found.convertToDouble();
}

std::optional<Cubic> cubicOf(Value value) {
  // x may be a sum itself (of a bias, say), so it is looked for among all values that lead to this one.
  llvm::SmallSetVector<Value, 16> values;
  values.insert(value);
  size_t operations = 0;
  for (size_t i = 0; i < values.size(); ++i)
    if (Operation *op = values[i].getDefiningOp(); op && isa<arith::MulFOp, arith::AddFOp>(op)) {
      if (++operations > mostOperations)
        return std::nullopt;
      values.insert(op->operand_begin(), op->operand_end());
    }
  for (Value x : llvm::drop_begin(values)) {
    if (constantOf(x))
      continue;
    std::optional<Polynomial> found = polynomialIn(x, value);
    if (!found)
      continue;
    auto [zeroth, first, second, third] = *found;
    if (zeroth == 0 && second == 0 && first * third > 0 && isModerate(first) && isModerate(third))
      return Cubic{x, first, third};
  }
  return std::nullopt;
}

} // namespace tenon
