// SPDX-License-Identifier: Apache-2.0
//
// What is left of a number beside a whole one may be computed without the number's bounds only where nobody but powers
// sees it for which these bounds mean nothing.
#include "tenon/compiler/target/cpu/ScalePowers.h"
#include "tenon/compiler/target/cpu/Isa.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

#include <regex>

using namespace llvm;

namespace {

/// x is bounded below by -125, where the power that follows is replaced by 0, as in math/Exponential.h.
const std::string head = R"(
define void @f(<16 x float> %x, ptr %powers, ptr %others) {
  %low = fcmp olt <16 x float> %x, splat (float -125.0)
  %c = select <16 x i1> %low, <16 x float> splat (float -125.0), <16 x float> %x
)";
const std::string toNearest = R"(
  %sum = fadd <16 x float> %c, splat (float 0x4168001FC0000000)
  %n = fsub <16 x float> %sum, splat (float 0x4168001FC0000000)
)";
const std::string toFloor = R"(
  %n = call <16 x float> @llvm.floor.v16f32(<16 x float> %c)
  %sum = fadd <16 x float> %n, splat (float 0x4168001FC0000000)
)";
const std::string powerOrZero = R"(
  %r = fsub <16 x float> %c, %n
  %bits = bitcast <16 x float> %sum to <16 x i32>
  %h = lshr <16 x i32> %bits, splat (i32 1)
  %o = sub <16 x i32> %bits, %h
  %hs = shl <16 x i32> %h, splat (i32 23)
  %os = shl <16 x i32> %o, splat (i32 23)
  %hf = bitcast <16 x i32> %hs to <16 x float>
  %of = bitcast <16 x i32> %os to <16 x float>
  %p = fadd <16 x float> %r, splat (float 1.0)
  %first = fmul <16 x float> %p, %hf
  %power = fmul <16 x float> %first, %of
  %orZero = select <16 x i1> %low, <16 x float> zeroinitializer, <16 x float> %power
  store <16 x float> %orZero, ptr %powers
)";
const std::string otherPower = R"(
  %q = fadd <16 x float> %r, splat (float 2.0)
  %first2 = fmul <16 x float> %q, %hf
  %power2 = fmul <16 x float> %first2, %of
)";
const std::string tail = R"(
  ret void
}
declare <16 x float> @llvm.floor.v16f32(<16 x float>)
)";

struct Counts {
  int scaled = 0;
  bool isReducedUnbounded = false; ///< the remainder is that of (a register of) x itself
};

Counts scaled(const std::string &text) {
  LLVMContext context;
  SMDiagnostic error;
  std::unique_ptr<Module> module = parseAssemblyString(text, error, context);
  Counts counts;
  if (!module) {
    ADD_FAILURE() << error.getMessage().str();
    return counts;
  }
  tenon::cpu::scalePowers(*module, tenon::cpu::presetIsa("avx512"));
  EXPECT_FALSE(verifyModule(*module, &errs()));
  Function &function = *module->getFunction("f");
  for (Instruction &instruction : instructions(function))
    if (auto *call = dyn_cast<IntrinsicInst>(&instruction)) {
      counts.scaled += call->getIntrinsicID() == Intrinsic::x86_avx512_mask_scalef_ps_512;
      if (call->getIntrinsicID() == Intrinsic::x86_avx512_mask_reduce_ps_512 && !call->use_empty())
        counts.isReducedUnbounded |= cast<Instruction>(call->getArgOperand(0))->getOperand(0) == function.getArg(0);
    }
  return counts;
}

TEST(ScalePowers, ARemainderOfItsPowerAlone) {
  for (const std::string &whole : {toNearest, toFloor}) {
    Counts counts = scaled(head + whole + powerOrZero + tail);
    EXPECT_EQ(counts.scaled, 1);
    EXPECT_TRUE(counts.isReducedUnbounded);
  }
}

TEST(ScalePowers, ARemainderThatIsStoredToo) {
  for (const std::string &whole : {toNearest, toFloor}) {
    Counts counts = scaled(head + whole + powerOrZero + "  store <16 x float> %r, ptr %others\n" + tail);
    EXPECT_EQ(counts.scaled, 1);
    EXPECT_FALSE(counts.isReducedUnbounded) << "what is stored has no bound: " << whole;
  }
}

TEST(ScalePowers, AFactorThatIsStoredToo) {
  EXPECT_FALSE(
      scaled(head + toNearest + powerOrZero + "  store <16 x float> %p, ptr %others\n" + tail).isReducedUnbounded);
}

TEST(ScalePowers, APowerThatNeedsTheBound) {
  for (const std::string &whole : {toNearest, toFloor}) {
    Counts counts =
        scaled(head + whole + powerOrZero + otherPower + "  store <16 x float> %power2, ptr %others\n" + tail);
    EXPECT_EQ(counts.scaled, 2);
    EXPECT_FALSE(counts.isReducedUnbounded) << "2^-125 times what x leaves, not -125: " << whole;
  }
}

TEST(ScalePowers, TwoPowersThatNeedNone) {
  for (const std::string &whole : {toNearest, toFloor}) {
    Counts counts = scaled(head + whole + powerOrZero + otherPower + R"(
  %orZero2 = select <16 x i1> %low, <16 x float> zeroinitializer, <16 x float> %power2
  store <16 x float> %orZero2, ptr %others
)" + tail);
    EXPECT_EQ(counts.scaled, 2);
    EXPECT_TRUE(counts.isReducedUnbounded);
  }
}

/// What is replaced is what the next power is made of.
TEST(ScalePowers, APowerOfAPower) {
  for (const std::string &whole : {toNearest, toFloor}) {
    std::string body = head.substr(head.find('{') + 1) + whole + powerOrZero;
    std::string again = std::regex_replace(body, std::regex("%(\\w+)"), "%$1.again");
    again = std::regex_replace(again, std::regex("%x.again"), "%orZero");
    again = std::regex_replace(again, std::regex("%powers.again"), "%others");
    Counts counts = scaled(head + whole + powerOrZero + again + tail);
    EXPECT_EQ(counts.scaled, 2);
    EXPECT_TRUE(counts.isReducedUnbounded);
  }
}

} // namespace
