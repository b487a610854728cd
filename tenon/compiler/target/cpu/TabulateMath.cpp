// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/TabulateMath.h"

#include "tenon/compiler/math/MlirArithmetic.h"
#include "tenon/compiler/math/Tabulated.h"
#include "tenon/compiler/target/cpu/Registers.h"
#include "tenon/compiler/transform/Cubic.h"
#include "tenon/compiler/transform/Relaxable.h"
#include "tenon/compiler/transform/SumsWithOne.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <cmath>
#include <functional>
#include <numeric>

using namespace mlir;

namespace tenon::cpu {
namespace {

/// On one register of f32, with what Tabulated.h asks for.
class RegisterArithmetic : public math::MlirArithmetic {
public:
  using Floats = Value<float>;
  using Bits = Value<std::uint32_t>;

  explicit RegisterArithmetic(ImplicitLocOpBuilder &b)
      : MlirArithmetic(b, VectorType::get({lanesOfRegister}, b.getF32Type())), b_(b) {}

  /// A product with a factor is computed before the loops in which the factor is always the same: LLVM takes it out.
  Floats lookUp(const math::Table &table, Bits index, const Floats *factor) {
    llvm::ArrayRef<float> entries = table;
    auto half = [&](llvm::ArrayRef<float> numbers) -> mlir::Value {
      Floats all{literal(numbers)};
      return factor ? mul(all, *factor).value : all.value;
    };
    return call("llvm.x86.avx512.vpermi2var.ps.512",
                {half(entries.take_front(lanesOfRegister)), index.value, half(entries.drop_front(lanesOfRegister))});
  }

  Floats bounded(Floats x, float bound) { return smallerMagnitude(x, bound, 0b0000); }
  Floats boundedMagnitude(Floats x, float bound) { return smallerMagnitude(x, bound, 0b1000); }

  Floats positivePart(Floats x) { return byClass(x, {.negative = negativeZero, .minusInfinity = nan}); }
  Floats isPositive(Floats x) {
    return byClass(x, {.negative = zero, .minusInfinity = zero, .zero = one, .one = one, .positive = one});
  }

private:
  static constexpr int currentRounding = 4;

  /// `sign`: how the result gets it, by the encoding of vrangeps.
  Floats smallerMagnitude(Floats x, float bound, int sign) {
    constexpr int smaller = 0b0010;
    return call("llvm.x86.avx512.mask.range.ps.512",
                {x.value, constant(bound).value, number(smaller | sign), x.value, allLanes(), number(currentRounding)});
  }

  /// What vfixupimmps puts in the place of a number.
  enum Answer : std::uint32_t { same = 0, quiet = 2, nan = 3, negativeZero = 7, zero = 8, one = 10 };
  struct Answers {
    Answer negative = same, minusInfinity = same, zero = same, one = same, positive = same;
  };

  Floats byClass(Floats x, Answers of) {
    std::uint32_t table = quiet | quiet << 4 | of.zero << 8 | of.one << 12 | of.minusInfinity << 16 |
                          of.positive << 20 | of.negative << 24 | of.positive << 28; // by class: infinity, then numbers
    return call("llvm.x86.avx512.mask.fixupimm.ps.512",
                {x.value, x.value, constant(table).value, number(0), allLanes(), number(currentRounding)});
  }

  Floats call(llvm::StringRef intrinsic, ValueRange operands) {
    Type type = VectorType::get({lanesOfRegister}, b_.getF32Type());
    return {b_.create<LLVM::CallIntrinsicOp>(TypeRange{type}, intrinsic, operands).getResults()};
  }
  mlir::Value literal(llvm::ArrayRef<float> numbers) {
    auto type = VectorType::get({lanesOfRegister}, b_.getF32Type());
    return b_.create<arith::ConstantOp>(DenseElementsAttr::get(type, numbers));
  }
  mlir::Value number(int value) { return b_.create<LLVM::ConstantOp>(b_.getI32Type(), value); }
  mlir::Value allLanes() { return b_.create<LLVM::ConstantOp>(b_.getI16Type(), -1); }

  ImplicitLocOpBuilder &b_;
};

/// What the first register of x has; all of it where its lanes are the same.
Value firstRegister(ImplicitLocOpBuilder &b, Value x) {
  SmallVector<int32_t> part(lanesOfRegister);
  std::iota(part.begin(), part.end(), 0);
  return b.create<LLVM::ShuffleVectorOp>(x, x, part);
}

/// `function` of each register of x.
Value perRegister(ImplicitLocOpBuilder &b, Value x, llvm::function_ref<Value(RegisterArithmetic &, Value)> function) {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  SmallVector<Value> parts;
  for (int64_t first = 0; first < lanes; first += lanesOfRegister) {
    SmallVector<int32_t> part(lanesOfRegister);
    std::iota(part.begin(), part.end(), static_cast<int32_t>(first));
    RegisterArithmetic arithmetic(b);
    parts.push_back(function(arithmetic, b.create<LLVM::ShuffleVectorOp>(x, x, part)));
  }
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) // a power of two
    for (size_t i = 0; i < parts.size() / 2; ++i) {
      SmallVector<int32_t> both(2 * cast<VectorType>(parts[2 * i].getType()).getNumElements());
      std::iota(both.begin(), both.end(), 0);
      parts[i] = b.create<LLVM::ShuffleVectorOp>(parts[2 * i], parts[2 * i + 1], both);
    }
  return parts[0];
}

bool isWholeRegisters(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 && !vector.isScalable() && vector.getNumElements() % lanesOfRegister == 0 &&
         llvm::isPowerOf2_64(vector.getNumElements());
}

/// What the function is of, and how its complement falls; null where it is none that tables are for.
struct Argument {
  Value x;
  std::function<double(double)> complement;
};

Argument argumentOf(SumWithOne found) {
  Value argument = found.function->getOperand(0);
  if (found.isErf()) {
    auto [x, scale] = takeScale(argument);
    return {x, math::complementOfErf(scale)};
  }
  if (std::optional<Cubic> cubic = cubicOf(argument); cubic && cubic->first > 0)
    return {cubic->x, math::complementOfTanh(cubic->first, cubic->third)};
  return {};
}

/// Whether the value is one number for all lanes, and for all iterations of the loop around the operation.
bool isSameAround(Value value, Operation *op) {
  if (constantOf(value))
    return true;
  auto splat = value.getDefiningOp<vector::SplatOp>();
  auto loop = op->getParentOfType<scf::ForOp>();
  return splat && loop && loop.isDefinedOutsideOfLoop(splat.getInput());
}

/// The product of a value, which nothing else wants, with a number that is the same for many of them; null else.
arith::MulFOp scalingOf(arith::MulFOp value) {
  auto product = value->hasOneUse() ? dyn_cast<arith::MulFOp>(*value->user_begin()) : arith::MulFOp();
  if (!product || product.getLhs() == product.getRhs())
    return {};
  return isSameAround(product.getLhs() == value ? product.getRhs() : product.getLhs(), product) ? product : nullptr;
}

/// Whether the factor is known to make coefficients infinite.
bool overflows(Value factor, const math::RangeTable &table) {
  llvm::APFloat number(0.f);
  DenseFPElementsAttr all;
  if (matchPattern(factor, m_Constant(&all)) && all.isSplat())
    number = all.getSplatValue<llvm::APFloat>();
  else if (auto splat = factor.getDefiningOp<vector::SplatOp>();
           !splat || !matchPattern(splat.getInput(), m_ConstantFloat(&number)))
    return false;
  float largest = 1; // of what max(x, 0) is multiplied with
  for (const math::Table &coefficients : table.coefficients)
    for (float coefficient : coefficients)
      largest = std::max(largest, std::abs(coefficient));
  return !std::isfinite(number.convertToFloat() * largest);
}

} // namespace

void tabulateMath(ModuleOp module) {
  SmallVector<arith::AddFOp> sums;
  module->walk([&](arith::AddFOp sum) {
    if (sum->hasAttr(tabulatedAttr) && isWholeRegisters(sum.getType()))
      sums.push_back(sum);
  });
  for (arith::AddFOp sum : sums) {
    std::optional<SumWithOne> found = matchSumWithOne(sum);
    if (!found)
      continue;
    Argument argument = argumentOf(*found);
    arith::MulFOp product = argument.x ? found->productWith(argument.x) : arith::MulFOp();
    bool isCoarse = sum->hasAttr(coarseAttr);
    std::optional<math::RangeTable> table;
    if (product)
      table = math::tabulateProduct(argument.complement, isCoarse ? math::SeenAs::Bf16 : math::SeenAs::F32);
    else if (argument.x && isCoarse)
      table = math::tabulate(argument.complement);
    if (!table)
      continue;
    arith::MulFOp scaling = product && isCoarse ? scalingOf(product) : arith::MulFOp();
    Value factor = !scaling ? Value() : scaling.getLhs() == product ? scaling.getRhs() : scaling.getLhs();
    if (factor && overflows(factor, *table))
      scaling = {}, factor = {};
    ImplicitLocOpBuilder b(sum.getLoc(), scaling ? scaling : sum);
    Value result = perRegister(b, argument.x, [&](RegisterArithmetic &a, Value part) -> Value {
      RegisterArithmetic::Floats of{part};
      if (product) {
        RegisterArithmetic::Floats times{factor ? firstRegister(b, factor) : Value()};
        return math::tabulatedProduct(a, of, *table, factor ? &times : nullptr).value;
      }
      RegisterArithmetic::Floats half = math::tabulated(a, of, *table);
      return found->half ? half.value : a.add(half, half).value;
    });
    if (scaling) {
      scaling.replaceAllUsesWith(result);
      scaling.erase();
    }
    found->replaceBy(result, product);
  }
}

} // namespace tenon::cpu
