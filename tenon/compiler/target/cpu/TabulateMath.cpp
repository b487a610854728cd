// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/cpu/TabulateMath.h"

#include "tenon/compiler/math/MlirArithmetic.h"
#include "tenon/compiler/math/Tabulated.h"
#include "tenon/compiler/target/cpu/Registers.h"
#include "tenon/compiler/transform/Cubic.h"
#include "tenon/compiler/transform/SumsWithOne.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

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

  Floats lookUp(const math::Table &table, Bits index) {
    llvm::ArrayRef<float> entries = table;
    return call("llvm.x86.avx512.vpermi2var.ps.512", {literal(entries.take_front(lanesOfRegister)), index.value,
                                                      literal(entries.drop_front(lanesOfRegister))});
  }

  Floats boundedMagnitude(Floats x, float bound) {
    constexpr int smallerMagnitude = 0b0010, withoutSign = 0b1000;
    return call("llvm.x86.avx512.mask.range.ps.512",
                {x.value, constant(bound).value, number(smallerMagnitude | withoutSign), x.value, allLanes(),
                 number(currentRounding)});
  }

  Floats positivePart(Floats x) { return byClass(x, {.negative = negativeZero, .minusInfinity = nan}); }
  Floats isPositive(Floats x) {
    return byClass(x, {.negative = zero, .minusInfinity = zero, .zero = one, .one = one, .positive = one});
  }

private:
  static constexpr int currentRounding = 4;

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

/// What the function is of, and the table of it.
std::pair<Value, std::optional<math::ComplementTable>> tableOf(SumWithOne found) {
  Value argument = found.function->getOperand(0);
  if (found.isErf()) {
    auto [x, scale] = takeScale(argument);
    return {x, math::tabulate(math::complementOfErf(scale))};
  }
  if (std::optional<Cubic> cubic = cubicOf(argument); cubic && cubic->first > 0)
    return {cubic->x, math::tabulate(math::complementOfTanh(cubic->first, cubic->third))};
  return {};
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
    auto [x, table] = tableOf(*found);
    if (!table)
      continue;
    ImplicitLocOpBuilder b(sum.getLoc(), sum);
    arith::MulFOp product = found->productWith(x);
    Value result = perRegister(b, x, [&](RegisterArithmetic &a, Value part) -> Value {
      RegisterArithmetic::Floats of{part};
      if (product)
        return math::tabulatedProduct(a, of, *table).value;
      RegisterArithmetic::Floats half = math::tabulated(a, of, *table);
      return found->half ? half.value : a.add(half, half).value;
    });
    found->replaceBy(result, product);
  }
}

} // namespace tenon::cpu
