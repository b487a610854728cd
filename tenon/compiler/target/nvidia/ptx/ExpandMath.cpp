// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/ptx/ExpandMath.h"

#include "tenon/compiler/math/MlirArithmetic.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/ptx/GpuFunctions.h"
#include "tenon/compiler/target/nvidia/ptx/NarrowIntegers.h"
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"
#include "tenon/compiler/target/nvidia/ptx/ThreadsToLlvm.h"
#include "tenon/compiler/transform/EraseDead.h"
#include "tenon/compiler/transform/ExpandMath.h"
#include "tenon/compiler/transform/Sigmoid.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// The builder of arith and math ops, with the instructions of the GPU.
class GpuArithmetic : public tenon::math::MlirArithmetic {
public:
  using Float = Value<float>;

  explicit GpuArithmetic(ImplicitLocOpBuilder &builder) : MlirArithmetic(builder, builder.getF32Type()), b(builder) {}

  Float ex2(Float x, bool flush) { return approx(ApproxFunction::ex2, x, flush); }
  Float rcp(Float x, bool flush) { return approx(ApproxFunction::rcp, x, flush); }
  Float rsqrt(Float x) { return approx(ApproxFunction::rsqrt, x, false); }
  Float minimum(Float x, Float y) { return {b.create<arith::MinimumFOp>(x.value, y.value)}; }
  Float maximum(Float x, Float y) { return {b.create<arith::MaximumFOp>(x.value, y.value)}; }

private:
  Float approx(ApproxFunction function, Float x, bool flush) {
    auto op = b.create<ApproxOp>(b.getF32Type(), function, x.value);
    if (flush)
      op->setAttr(flushAttr, b.getUnitAttr());
    return {op};
  }

  ImplicitLocOpBuilder &b;
};

/// Whether 2^x is a normal number, or infinite or NaN: x is the larger of something and a constant from -126 on.
bool isNormal(Value x) {
  auto larger = x.getDefiningOp<arith::MaximumFOp>();
  llvm::APFloat least(0.0f);
  return larger && llvm::any_of(larger->getOperands(), [&](Value operand) {
           return matchPattern(operand, m_ConstantFloat(&least)) && least.convertToDouble() >= -126;
         });
}

/// The function of one f32, or null when it has no form for the GPU.
Value expandScalar(ImplicitLocOpBuilder &b, Operation *op, Value x) {
  GpuArithmetic a(b);
  GpuArithmetic::Float operand{x};
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](::mlir::math::ExpOp) {
        return op->hasAttr(relaxedAttr) ? gpu::relaxedExp(a, operand).value : gpu::exp(a, operand).value;
      })
      .Case([&](::mlir::math::Exp2Op) {
        return op->hasAttr(relaxedAttr) || isNormal(x) ? a.ex2(operand, true).value : gpu::exp2(a, operand).value;
      })
      .Case([&](::mlir::math::TanhOp) { return gpu::tanh(a, operand).value; })
      .Case([&](::mlir::math::ErfOp) {
        return op->hasAttr(relaxedAttr) ? gpu::relaxedErf(a, operand).value : gpu::erf(a, operand).value;
      })
      .Case([&](::mlir::math::RsqrtOp) { return gpu::rsqrt(a, operand).value; })
      .Default([](Operation *) { return Value(); });
}

bool isForGpu(Operation *op) {
  if (!isa<::mlir::math::ExpOp, ::mlir::math::Exp2Op, ::mlir::math::TanhOp, ::mlir::math::ErfOp, ::mlir::math::RsqrtOp>(
          op))
    return false;
  Type element = getElementTypeOrSelf(op->getOperand(0).getType());
  auto vector = dyn_cast<VectorType>(op->getOperand(0).getType());
  return (element.isF32() || element.isF16() || element.isBF16()) && (!vector || vector.getRank() == 1);
}

Value expandElement(ImplicitLocOpBuilder &b, Operation *op, Value x) {
  Type type = x.getType();
  if (type.isF32())
    return expandScalar(b, op, x);
  Value wide = expandScalar(b, op, b.create<arith::ExtFOp>(b.getF32Type(), x));
  return b.create<arith::TruncFOp>(type, wide);
}

/// The special function unit takes one number at a time: vectors go element by element.
Value expandForGpu(ImplicitLocOpBuilder &b, Operation *op) {
  Value x = op->getOperand(0);
  auto vector = dyn_cast<VectorType>(x.getType());
  if (!vector)
    return expandElement(b, op, x);
  Value result = b.create<arith::ConstantOp>(b.getZeroAttr(vector));
  for (int64_t i = 0; i < vector.getNumElements(); ++i) {
    Value element = expandElement(b, op, b.create<vector::ExtractOp>(x, i));
    result = b.create<vector::InsertOp>(element, result, i);
  }
  return result;
}

/// x as a product with a constant, if it is one that nobody else uses.
std::pair<Value, double> scaled(Value x) {
  auto product = x.getDefiningOp<arith::MulFOp>();
  llvm::APFloat factor(0.0f);
  if (product && product->hasOneUse())
    for (auto [number, other] : {std::pair(product.getRhs(), product.getLhs()),
                                 std::pair(product.getLhs(), product.getRhs())})
      if (matchPattern(number, m_ConstantFloat(&factor)) && factor.isFiniteNonZero())
        return {other, factor.convertToDouble()};
  return {x, 1.0};
}

/// Takes the half out of (x / 2) * sum, whose only use that is; whether there was one.
bool takeHalf(arith::AddFOp sum) {
  auto product = sum->hasOneUse() ? dyn_cast<arith::MulFOp>(*sum->getUsers().begin()) : arith::MulFOp();
  if (!product)
    return false;
  unsigned other = product.getLhs() == sum.getResult() ? 1 : 0;
  auto [x, factor] = scaled(product->getOperand(other));
  if (factor != 0.5)
    return false;
  product->setOperand(other, x);
  return true;
}

/// 1 + erf(x) for results that are rounded to 16 bits. The factor of GELU's x / sqrt(2), and the half of the x / 2 that
/// it is multiplied with, become part of it.
Value expandOnePlusErf(GpuArithmetic &a, arith::AddFOp add, Value x) {
  auto [inner, factor] = scaled(x);
  if (factor <= 1.0 / 16 || factor >= 16)
    std::tie(inner, factor) = std::pair(x, 1.0);
  return gpu::relaxedOnePlusErf(a, GpuArithmetic::Float{inner}, factor, takeHalf(add)).value;
}

/// 0.5 * (1 + tanh(x)); null for anything else.
Value expandHalfOnePlus(ImplicitLocOpBuilder &b, arith::MulFOp mul) {
  llvm::APFloat half(0.0f);
  if (!mul.getType().isF32())
    return {};
  for (auto [number, other] : {std::pair(mul.getRhs(), mul.getLhs()), std::pair(mul.getLhs(), mul.getRhs())}) {
    auto add = other.getDefiningOp<arith::AddFOp>();
    if (!add || !add->hasOneUse() || !matchPattern(number, m_ConstantFloat(&half)) || !half.isExactlyValue(0.5))
      continue;
    for (auto [one, function] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
      if (auto tanh = function.getDefiningOp<::mlir::math::TanhOp>();
          tanh && tanh->hasOneUse() && matchPattern(one, m_OneFloat())) {
        GpuArithmetic a(b);
        auto [x, factor] = scaled(tanh.getOperand());
        return gpu::halfOnePlusTanh(a, GpuArithmetic::Float{x}, factor).value;
      }
  }
  return {};
}

/// 1 + tanh(x), and 1 + erf(x) where a small error does not matter, for which there are shorter and better ways than to
/// expand the function; null for anything else.
Value expandOnePlus(ImplicitLocOpBuilder &b, arith::AddFOp add) {
  if (!add.getType().isF32())
    return {};
  for (auto [one, other] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())}) {
    Operation *function = other.getDefiningOp();
    if (!function || !function->hasOneUse() || !matchPattern(one, m_OneFloat()))
      continue;
    GpuArithmetic a(b);
    if (auto tanh = dyn_cast<::mlir::math::TanhOp>(function)) {
      auto [x, factor] = scaled(tanh.getOperand());
      return gpu::onePlusTanh(a, GpuArithmetic::Float{x}, factor).value;
    }
    if (auto erf = dyn_cast<::mlir::math::ErfOp>(function); erf && add->hasAttr(relaxedAttr))
      return expandOnePlusErf(a, add, erf.getOperand());
  }
  return {};
}

/// A sigmoid, where a small error does not matter: five instructions instead of thirteen. Null for anything else.
Value expandSigmoid(ImplicitLocOpBuilder &b, arith::DivFOp quotient) {
  Value x = quotient->hasAttr(relaxedAttr) && quotient.getType().isF32() ? sigmoidOf(quotient) : Value();
  if (!x)
    return {};
  GpuArithmetic a(b);
  return gpu::relaxedSigmoid(a, GpuArithmetic::Float{x}).value;
}

/// Whether a number is 0, infinite, NaN or at least 2^-100 in magnitude, so that its reciprocal is a number of f32. A sum
/// with a constant c is: if the other summand is less than |c| / 2, at least |c| / 2 remains, and otherwise both are
/// multiples of half a unit in the last place of c, and so is what remains of them.
bool isNeverTiny(Value x) {
  constexpr int least = -100;
  auto isLarge = [](Value value, int digits) {
    llvm::APFloat number(0.0f);
    return matchPattern(value, m_ConstantFloat(&number)) && number.isFiniteNonZero() &&
           ilogb(number) - digits >= least;
  };
  Operation *op = x.getDefiningOp();
  if (!op || isLarge(x, 0))
    return op;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<arith::SIToFPOp, arith::UIToFPOp>([](Operation *) { return true; })
      .Case<arith::AddFOp, arith::SubFOp>([&](Operation *sum) {
        auto type = llvm::dyn_cast<FloatType>(sum->getResult(0).getType());
        return type && llvm::any_of(sum->getOperands(), [&](Value operand) {
                 return isLarge(operand, static_cast<int>(type.getFPMantissaWidth()));
               });
      })
      .Case<arith::TruncFOp, arith::ExtFOp, arith::NegFOp, ::mlir::math::AbsFOp>(
          [](Operation *same) { return isNeverTiny(same->getOperand(0)); })
      .Default([](Operation *) { return false; });
}

/// Quotients by one divisor (a row's sum), where a small error does not matter, share its reciprocal. One quotient alone
/// is as cheap as it is.
void shareReciprocals(Operation *root) {
  llvm::MapVector<Value, SmallVector<arith::DivFOp>> byDivisor;
  root->walk([&](arith::DivFOp op) {
    if (op->hasAttr(relaxedAttr) && op.getType().isF32())
      byDivisor[op.getRhs()].push_back(op);
  });
  for (auto &[divisor, quotients] : byDivisor) {
    // Quotients in nested blocks may stand before the first one seen: only those of one block are taken together.
    Block *block = quotients[0]->getBlock();
    llvm::erase_if(quotients, [&](arith::DivFOp op) { return op->getBlock() != block; });
    if (quotients.size() < 2)
      continue;
    Operation *first = *llvm::min_element(quotients, [](arith::DivFOp a, arith::DivFOp b) {
      return a->isBeforeInBlock(b);
    });
    ImplicitLocOpBuilder b(first->getLoc(), first);
    GpuArithmetic a(b);
    GpuArithmetic::Float number{divisor}, reciprocal, scale;
    if (isNeverTiny(divisor)) {
      reciprocal = a.rcp(number, false);
    } else {
      gpu::SharedReciprocal<GpuArithmetic> shared(a, number);
      std::tie(reciprocal, scale) = std::pair(shared.reciprocal, shared.scale);
    }
    for (arith::DivFOp op : quotients) {
      ImplicitLocOpBuilder at(op->getLoc(), op);
      Value quotient = at.create<arith::MulFOp>(op.getLhs(), reciprocal.value);
      if (scale.value)
        quotient = at.create<arith::MulFOp>(quotient, scale.value);
      op.replaceAllUsesWith(quotient);
      op.erase();
    }
  }
}

struct ExpandMath : PassWrapper<ExpandMath, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  StringRef getArgument() const override { return "tenon-nvidia-expand-math"; }
  StringRef getDescription() const override {
    return "Expand the functions of the math dialect for a GPU thread, through the special function unit";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, ::mlir::math::MathDialect, vector::VectorDialect, NvidiaDialect>();
  }

  void runOnOperation() override {
    // All walks in post-order: the walk has left an op before it is erased.
    getOperation()->walk([&](arith::MulFOp op) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      if (Value result = expandHalfOnePlus(b, op)) {
        op.replaceAllUsesWith(result);
        op.erase();
      }
    });
    getOperation()->walk([&](arith::AddFOp op) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      if (Value result = expandOnePlus(b, op)) {
        op.replaceAllUsesWith(result);
        op.erase();
      }
    });
    getOperation()->walk([&](arith::DivFOp op) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      if (Value result = expandSigmoid(b, op)) {
        op.replaceAllUsesWith(result);
        eraseIfDead(op);
      }
    });
    shareReciprocals(getOperation());
    convertNarrowIntegers(getOperation());
    getOperation()->walk([&](Operation *op) {
      if (isOpTriviallyDead(op)) {
        op->erase();
        return;
      }
      ImplicitLocOpBuilder b(op->getLoc(), op);
      Value result = isForGpu(op) ? expandForGpu(b, op) : expandMathOp(b, op);
      if (!result)
        return;
      op->getResult(0).replaceAllUsesWith(result);
      op->erase();
    });
  }
};

struct LowerToLlvm : PassWrapper<LowerToLlvm, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerToLlvm)
  LowerToLlvm() = default;
  LowerToLlvm(const LowerToLlvm &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "tenon-nvidia-lower-to-llvm"; }
  StringRef getDescription() const override { return "Lower thread functions to the llvm dialect with inline PTX"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, cf::ControlFlowDialect, vector::VectorDialect, NvidiaDialect>();
  }
  Option<std::string> architecture{*this, "architecture", llvm::cl::desc("sm_80, sm_86, sm_89, sm_90 or sm_90a"),
                                   llvm::cl::init("sm_90a")};

  void runOnOperation() override {
    if (failed(lowerThreadsToNvvm(getOperation(), architectureOf(architecture))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createExpandMathPass() { return std::make_unique<ExpandMath>(); }

void registerPtxPasses() {
  PassRegistration<ExpandMath>();
  PassRegistration<LowerToLlvm>();
}

} // namespace tenon::nvidia
