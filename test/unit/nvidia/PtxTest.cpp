// SPDX-License-Identifier: Apache-2.0
//
// From thread functions to PTX, and on to machine code where NVIDIA's assembler is installed.
#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"
#include "tenon/compiler/target/nvidia/ptx/Architecture.h"
#include "tenon/compiler/target/nvidia/ptx/Assembler.h"
#include "tenon/compiler/target/nvidia/ptx/PtxEmitter.h"
#include "test/nvidia/Instructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

using namespace mlir;
using namespace tenon::nvidia;
using tenon::test::InstructionTest;

namespace {

const char *const architectures[] = {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"};

bool runs(const InstructionTest &test, const Architecture &architecture) {
  return test.minimumArchitecture <= architecture.number && (architecture.specific || !test.specific);
}

class Ptx : public testing::Test {
public:
  Ptx() {
    context.loadDialect<NvidiaDialect, arith::ArithDialect, ::mlir::math::MathDialect, scf::SCFDialect,
                        cf::ControlFlowDialect, func::FuncDialect, vector::VectorDialect>();
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module;
  }

  /// A kernel of 64 threads around some ops on %in, %out: i64.
  OwningOpRef<ModuleOp> kernel(const std::string &body) {
    return parse("func.func @kernel(%in: i64, %out: i64) attributes {nvidia.threads = 64 : i64, "
                 "nvidia.cluster = 1 : i64, nvidia.shared_bytes = 0 : i64} {\n" +
                 body + "\nreturn\n}");
  }
  std::string ptx(const std::string &body, const std::string &architecture = "sm_90a") {
    return emitPtx(*kernel(body), {architecture}).text;
  }

  /// All one-instruction kernels that an architecture can run, in one module, each under its own name.
  OwningOpRef<ModuleOp> instructions(const std::string &architecture) {
    OwningOpRef<ModuleOp> all = ModuleOp::create(UnknownLoc::get(&context));
    for (const InstructionTest &test : tenon::test::instructionTests()) {
      if (!runs(test, architectureOf(architecture)))
        continue;
      auto one = parse(test.mlir);
      auto function = *one->getOps<func::FuncOp>().begin();
      function.setName("k_" + test.name);
      function->moveBefore(all->getBody(), all->getBody()->end());
    }
    return all;
  }

  MLIRContext context;
};

size_t count(const std::string &text, const std::string &what) {
  size_t number = 0;
  for (size_t place = text.find(what); place != std::string::npos; place = text.find(what, place + 1))
    ++number;
  return number;
}

#define EXPECT_HAS(text, what) EXPECT_NE((text).find(what), std::string::npos) << "no " << (what) << " in\n" << (text)
#define EXPECT_HAS_NOT(text, what) EXPECT_EQ((text).find(what), std::string::npos) << (what) << " in\n" << (text)

TEST_F(Ptx, EveryOpHasAnInstructionTest) {
  std::set<std::string> seen, all;
  for (const InstructionTest &test : tenon::test::instructionTests())
    parse(test.mlir)->walk([&](Operation *op) { seen.insert(op->getName().getStringRef().str()); });
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == "nvidia")
      all.insert(name.getStringRef().str());
  for (const char *ofTiles : {"nvidia.again", "nvidia.combine", "nvidia.convert", "nvidia.share"}) // not of threads
    all.erase(ofTiles);
  all.erase("nvidia.anything"); // takes none
  for (const std::string &name : all)
    EXPECT_TRUE(seen.count(name)) << name;
}

TEST_F(Ptx, EveryInstructionAssembles) {
  for (const char *architecture : architectures) {
    std::string text = emitPtx(*instructions(architecture), {architecture}).text;
    EXPECT_HAS(text, std::string(".target ") + architecture);
    if (!hasAssembler())
      continue;
    auto report = assemble(text, architecture);
    ASSERT_TRUE(report);
    EXPECT_GT(report->registers, 0);
    EXPECT_EQ(report->spillStoreBytes, 0);
    EXPECT_FALSE(report->cubin.empty());
    EXPECT_NE(report->sass.empty(), report->noSass.empty());
    for (const std::string &warning : report->warnings)
      ADD_FAILURE() << architecture << ": " << warning;
  }
  if (!hasAssembler())
    GTEST_SKIP() << "no ptxas on this machine: PTX was written but not assembled";
}

TEST_F(Ptx, InstructionsAnArchitectureLacksAreRefused) {
  int refused = 0;
  for (const InstructionTest &test : tenon::test::instructionTests()) {
    if (test.minimumArchitecture == 80)
      continue;
    try {
      emitPtx(*parse(test.mlir), {"sm_80"});
      ADD_FAILURE() << test.name << " was not refused";
    } catch (const tenon::InternalError &error) {
      ++refused;
      EXPECT_HAS(std::string(error.what()), "needs sm_" + std::to_string(test.minimumArchitecture) +
                                                (test.specific ? "a" : "") + ", not sm_80");
    }
  }
  EXPECT_GT(refused, 10);
  auto store = kernel("%c = arith.constant 0 : i32\n%v = arith.constant dense<0> : vector<4xi32>\n"
                      "nvidia.stmatrix %c, %v : vector<4xi32>");
  try {
    emitPtx(*store, {"sm_89"});
    ADD_FAILURE();
  } catch (const tenon::InternalError &error) {
    EXPECT_HAS(std::string(error.what()), "stmatrix needs sm_90, not sm_89");
  }
}

TEST_F(Ptx, UnknownArchitecture) {
  auto module = kernel("");
  try {
    emitPtx(*module, {"sm_70"});
    ADD_FAILURE();
  } catch (const tenon::InternalError &error) {
    ADD_FAILURE() << error.what();
  } catch (const tenon::Error &error) {
    EXPECT_STREQ(error.what(), "unknown architecture \"sm_70\": use sm_80, sm_86, sm_89, sm_90 or sm_90a");
  }
}

/// Asm that exchanges something, and not convergent.
std::vector<std::string> notConvergent(llvm::Module &module, size_t &convergent) {
  std::vector<std::string> wrong;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (!call)
        continue;
      std::string text;
      if (call->isInlineAsm()) {
        auto *assembly = llvm::cast<llvm::InlineAsm>(call->getCalledOperand());
        text = assembly->getAsmString();
        if (!assembly->hasSideEffects() && text.find(".sync") == std::string::npos)
          continue;
      } else {
        text = call->getCalledFunction()->getName().str();
        if (text.find("bar") == std::string::npos && text.find("shfl") == std::string::npos &&
            text.find("vote") == std::string::npos)
          continue;
      }
      if (call->isConvergent())
        ++convergent;
      else
        wrong.push_back(text);
    }
  return wrong;
}

TEST_F(Ptx, ExchangeIsConvergentBeforeAndAfterOptimisation) {
  PtxOptions options{"sm_90a"};
  llvm::LLVMContext llvmContext;
  auto module = translateThreads(*instructions("sm_90a"), options, llvmContext);
  size_t before = 0, after = 0;
  EXPECT_EQ(notConvergent(*module, before), std::vector<std::string>());
  optimizeThreads(*module, options);
  EXPECT_EQ(notConvergent(*module, after), std::vector<std::string>());
  EXPECT_GT(before, 100u);
  EXPECT_EQ(before, after);
}

TEST_F(Ptx, AFunctionOfItsOperandsMayGoAway) {
  std::string text = ptx("%c = arith.constant 1.0 : f32\n%a = nvidia.approx ex2 %c\n"
                         "%v = arith.constant dense<0> : vector<4xi32>\n%w = arith.constant dense<0> : vector<2xi32>\n"
                         "%f = arith.constant dense<0.0> : vector<4xf32>\n"
                         "%m = nvidia.mma f16 f16 %v, %w, %f : vector<4xi32>, vector<2xi32>, vector<4xf32>\n");
  EXPECT_HAS_NOT(text, "ex2");
  EXPECT_HAS_NOT(text, "mma");
}

TEST_F(Ptx, BarriersAreNeitherDuplicatedNorMoved) {
  // The branch on %odd could be pulled over the barrier, or the barrier into both branches.
  std::string text = ptx(R"(
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %n = nvidia.load global %in : i64 -> i32
    %t = nvidia.thread_id
    %four = arith.constant 4 : i32
    %place = arith.muli %t, %four : i32
    %odd = arith.trunci %t : i32 to i1
    %sum = scf.for %i = %zero to %n step %one iter_args(%s = %zero) -> (i32) : i32 {
      %x = scf.if %odd -> i32 {
        nvidia.store shared %i, %place : i32, i32
        scf.yield %s : i32
      } else {
        %d = arith.divsi %i, %t : i32
        scf.yield %d : i32
      }
      nvidia.barrier 64
      %y = scf.if %odd -> i32 {
        %l = nvidia.load shared %zero : i32 -> i32
        scf.yield %l : i32
      } else {
        scf.yield %x : i32
      }
      nvidia.barrier 32 {id = 1 : i32}
      scf.yield %y : i32
    }
    nvidia.store global %sum, %out : i32, i64)");
  EXPECT_EQ(count(text, "bar.sync 0;"), 1u) << text;
  EXPECT_EQ(count(text, "bar.sync 1, 32;"), 1u) << text;
}

TEST_F(Ptx, NothingMovesAcrossTheWaitForEarlierKernels) {
  std::string text = ptx(R"(
    nvidia.allow_next_launch
    %early = nvidia.load global %in : i64 -> i32
    nvidia.store global %early, %out : i32, i64
    nvidia.await_earlier_launches
    %late = nvidia.load global %in : i64 -> i32
    %both = arith.addi %early, %late : i32
    nvidia.store global %both, %out : i32, i64)");
  size_t allowed = text.find("griddepcontrol.launch_dependents;"), waited = text.find("griddepcontrol.wait;");
  ASSERT_NE(waited, std::string::npos) << text;
  EXPECT_LT(allowed, text.find("ld.global")) << text;
  for (const std::string &part : {text.substr(0, waited), text.substr(waited)}) {
    EXPECT_EQ(count(part, "ld.global"), 1u) << text;
    EXPECT_EQ(count(part, "st.global"), 1u) << text;
  }
}

TEST_F(Ptx, LaunchBounds) {
  auto module = kernel("");
  std::string text = emitPtx(*module, {"sm_80", true, 3}).text;
  EXPECT_HAS(text, ".visible .entry kernel(");
  EXPECT_HAS(text, ".param .u64 kernel_param_1");
  EXPECT_TRUE(std::regex_search(text, std::regex("\\.reqntid 64, 1, 1"))) << text;
  EXPECT_HAS(text, ".minnctapersm 3");
}

TEST_F(Ptx, SourceLines) {
  std::string body = R"(
    %v = nvidia.load global %in : i64 -> f32 loc("lib/kernel.cpp":12:3)
    %w = arith.addf %v, %v : f32 loc(callsite("other.h":7:1 at "lib/kernel.cpp":13:3))
    %x = arith.mulf %w, %v : f32 loc(fused["name"("lib/kernel.cpp":14:3), "lib/kernel.cpp":15:3])
    nvidia.store global %x, %out : f32, i64 loc("lib/kernel.cpp":16:3)
    return loc("lib/kernel.cpp":17:1)
  } loc("lib/kernel.cpp":10:1)
)";
  auto module = parse("func.func @kernel(%in: i64, %out: i64) attributes {nvidia.threads = 32 : i64} {" + body);
  std::string text = emitPtx(*module, {"sm_90"}).text;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex("\\.file\\s+(\\d+) \"lib[/\"].*kernel.cpp\""))) << text;
  std::string kernelFile = found[1];
  ASSERT_TRUE(std::regex_search(text, found, std::regex("\\.file\\s+(\\d+) .*other\\.h\""))) << text;
  std::string otherFile = found[1];
  auto at = [&](const std::string &file, int line) {
    return std::regex_search(text, std::regex("\\.loc\\s+" + file + " " + std::to_string(line) + " "));
  };
  for (int line : {12, 14, 16, 17})
    EXPECT_TRUE(at(kernelFile, line)) << line << "\n" << text;
  EXPECT_TRUE(at(otherFile, 7)) << text;
  EXPECT_HAS_NOT(text, ", debug"); // after .target: ptxas would stop optimising
  EXPECT_HAS_NOT(emitPtx(*module, {"sm_90", false}).text, ".loc");
  if (hasAssembler())
    EXPECT_TRUE(assemble(text, "sm_90"));
}

TEST_F(Ptx, NumbersAreRoundedAsWritten) {
  std::string text = ptx(R"(
    %a = nvidia.load global %in : i64 -> f32
    %b = nvidia.load global %in {offset = 4 : i32} : i64 -> f32
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %b : f32
    %d = arith.divf %s, %a : f32
    %r = math.sqrt %d : f32
    %f = math.fma %r, %a, %b : f32
    nvidia.store global %f, %out : f32, i64)");
  for (const char *what : {"mul.rn.f32", "add.rn.f32", "div.full.f32", "sqrt.rn.f32", "fma.rn.f32"})
    EXPECT_EQ(count(text, what), 1u) << what << text;
  EXPECT_HAS_NOT(text, "ftz");
}

TEST_F(Ptx, MasksArePredicates) {
  std::string text = ptx(R"(
    %z = arith.constant dense<0.0> : vector<4xf32>
    %t = nvidia.thread_id
    %m = arith.trunci %t : i32 to i1
    %v = nvidia.load global %in mask %m otherwise %z : vector<4xf32> {offset = 32 : i32} : i64 -> vector<4xf32>
    nvidia.store global %v, %out mask %m : vector<4xf32>, i64)");
  EXPECT_TRUE(std::regex_search(text, std::regex("@%p\\d+ ld\\.global\\.v4\\.b32 \\{.*\\+32\\];"))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("@%p\\d+ st\\.global\\.v4\\.b32"))) << text;
  EXPECT_HAS_NOT(text, "bra");
}

TEST_F(Ptx, PlainAccessesAreWhole) {
  for (const char *type : {"vector<8xf16>", "vector<8xbf16>", "vector<16xi8>", "vector<4xf32>"}) {
    std::string text = ptx(std::string("%v = nvidia.load global %in : i64 -> ") + type +
                           "\nnvidia.store global %v, %out : " + type + ", i64");
    EXPECT_EQ(count(text, "ld.global.v4."), 1u) << text;
    EXPECT_EQ(count(text, "st.global.v4."), 1u) << text;
  }
}

TEST_F(Ptx, LastingLoadsHaveAPolicy) {
  std::string text = ptx(R"(
    %z = arith.constant dense<0.0> : vector<4xf32>
    %t = nvidia.thread_id
    %m = arith.trunci %t : i32 to i1
    %a = nvidia.load global %in {lasting} : i64 -> vector<4xf32>
    %b = nvidia.load global %in mask %m otherwise %z : vector<4xf32> {lasting, offset = 16 : i32} : i64 -> vector<4xf32>
    %c = arith.addf %a, %b : vector<4xf32>
    nvidia.store global %c, %out : vector<4xf32>, i64)");
  EXPECT_EQ(count(text, "createpolicy.fractional.L2::evict_last.b64"), 1u) << text;
  EXPECT_EQ(count(text, "ld.global.L2::cache_hint.v4.b32"), 2u) << text;
  std::regex masked("@%p\\d+ ld\\.global\\.L2::cache_hint\\.v4\\.b32 \\{.*\\}, \\[%rd\\d+\\+16\\], %rd\\d+;");
  EXPECT_TRUE(std::regex_search(text, masked)) << text;
}

TEST_F(Ptx, SharedAddressesHave32Bits) {
  std::string text = ptx(R"(
    %t = nvidia.thread_id
    %four = arith.constant 4 : i32
    %a = arith.muli %t, %four : i32
    nvidia.store shared %t, %a {offset = 128 : i32} : i32, i32
    nvidia.barrier 64
    %v = nvidia.load shared %a {offset = 64 : i32} : i32 -> i32
    nvidia.store global %v, %out : i32, i64)");
  EXPECT_HAS(text, ".extern .shared .align 1024 .b8 tenon_shared[]");
  EXPECT_TRUE(std::regex_search(text, std::regex("ld\\.shared\\.u32\\s+%r\\d+, \\[%r\\d+\\+64\\]"))) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("st\\.shared\\.u32\\s+\\[%r\\d+\\+128\\]"))) << text;
}

TEST_F(Ptx, OffsetsHaveASign) {
  std::string text = ptx(R"(
    %z = arith.constant 0 : i32
    %t = nvidia.thread_id
    %m = arith.trunci %t : i32 to i1
    %four = arith.constant 4 : i32
    %a = arith.muli %t, %four : i32
    %v = nvidia.load global %in {offset = -4 : i32} : i64 -> i32
    %w = nvidia.load global %in mask %m otherwise %z : i32 {offset = -8 : i32} : i64 -> i32
    %x = nvidia.load global %in {offset = -12 : i32, streaming} : i64 -> i32
    nvidia.store shared %x, %a mask %m {offset = -16 : i32} : i32, i32
    nvidia.barrier 64
    %y = nvidia.load shared %a {offset = -20 : i32} : i32 -> i32
    nvidia.store global %v, %out {offset = -24 : i32} : i32, i64
    nvidia.store global %w, %out mask %m {offset = -28 : i32} : i32, i64
    nvidia.store global %y, %out {offset = -32 : i32, streaming} : i32, i64)");
  for (int offset = -32; offset < 0; offset += 4)
    EXPECT_EQ(count(text, "+" + std::to_string(offset) + "]"), 1u) << offset << "\n" << text;
  EXPECT_HAS_NOT(text, "+429496");
  if (hasAssembler())
    EXPECT_TRUE(assemble(text, "sm_90a"));
}

/// Instructions of a PTX text that become machine instructions. Moves between register files do not, abs is part of the
/// instruction that uses it, and an `or` joins the `and` before it.
size_t instructionsIn(const std::string &text) {
  size_t number = 0;
  std::istringstream stream(text);
  std::regex instruction("^\t?(@%p[0-9]+ )?(?!mov|abs|or\\.)[a-z][a-z0-9_.]+[ \t].*;$");
  for (std::string line; std::getline(stream, line);)
    number += std::regex_match(line, instruction);
  return number;
}

/// The tanh form of GELU, of as many words of two bf16 each.
std::string gelu(int words) {
  std::string type = "vector<" + std::to_string(words) + "xi32>", results;
  std::string body = "%words = nvidia.load global %in : i64 -> " + type + R"(
    %c16 = arith.constant 16 : i32
    %mask = arith.constant 0xffff0000 : i32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %k = arith.constant 0.7978845608 : f32
    %c = arith.constant 0.044715 : f32
)";
  auto element = [&](const std::string &n) {
    body += "%x" + n + " = arith.bitcast %b" + n + " : i32 to f32\n" +     //
            "%s" + n + " = arith.mulf %x" + n + ", %x" + n + " : f32\n" +  //
            "%q" + n + " = arith.mulf %s" + n + ", %x" + n + " : f32\n" +  //
            "%i" + n + " = math.fma %q" + n + ", %c, %x" + n + " : f32\n" + //
            "%u" + n + " = arith.mulf %i" + n + ", %k : f32\n" +           //
            "%t" + n + " = math.tanh %u" + n + " : f32\n" +                //
            "%p" + n + " = arith.addf %t" + n + ", %one : f32\n" +         //
            "%h" + n + " = arith.mulf %x" + n + ", %half : f32\n" +        //
            "%g" + n + " = arith.mulf %p" + n + ", %h" + n + " : f32\n";
  };
  for (int word = 0; word < words; ++word) {
    std::string n = std::to_string(word), low = n + "low", high = n + "high";
    body += "%w" + n + " = vector.extract %words[" + n + "] : i32 from " + type + "\n%b" + low +
            " = arith.shli %w" + n + ", %c16 : i32\n%b" + high + " = arith.andi %w" + n + ", %mask : i32\n";
    element(low);
    element(high);
    body += "%r" + n + " = nvidia.pack bf16 %g" + low + ", %g" + high + "\n";
    results += (word ? ", %r" : "%r") + n;
  }
  return body + "%all = vector.from_elements " + results + " : " + type + "\nnvidia.store global %all, %out : " + type +
         ", i64";
}

TEST_F(Ptx, GeluStaysWithinItsBudget) {
  std::string two = ptx(gelu(1)), eight = ptx(gelu(4));
  double each = double(instructionsIn(eight) - instructionsIn(two)) / 6;
  std::printf("GELU (tanh form) of bf16: %.1f instructions an element\n", each);
  EXPECT_LE(each, 25) << two;
}

TEST_F(Ptx, FunctionsAreExpanded) {
  std::string text = ptx(R"(
    %a = nvidia.load global %in : i64 -> f32
    %e = math.exp %a : f32
    %l = math.log %e : f32
    %s = math.sin %l : f32
    %t = math.tanh %s : f32
    %f = math.erf %t : f32
    %r = math.rsqrt %f : f32
    %w = arith.extf %r : f32 to f64
    %d = math.exp %w : f64
    nvidia.store global %d, %out : f64, i64)");
  EXPECT_EQ(count(text, "ex2.approx.ftz.f32"), 3u);
  EXPECT_EQ(count(text, "rcp.approx.ftz.f32"), 1u);
  EXPECT_EQ(count(text, "rsqrt.approx.f32"), 1u);
  EXPECT_HAS_NOT(text, "call");
}

TEST_F(Ptx, AssemblerSaysWhatItRefuses) {
  if (!hasAssembler())
    GTEST_SKIP() << "no ptxas on this machine";
  try {
    assemble(".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { nonsense; }\n", "sm_90");
    ADD_FAILURE();
  } catch (const tenon::InternalError &error) {
    EXPECT_HAS(std::string(error.what()), "nonsense");
  }
}

TEST_F(Ptx, SpillsAreReported) {
  if (!hasAssembler())
    GTEST_SKIP() << "no ptxas on this machine";
  // 128 values live across a barrier, and registers for half of them.
  std::string body, tail;
  for (int i = 0; i < 128; ++i) {
    std::string n = std::to_string(i);
    body += "%v" + n + " = nvidia.load global %in {offset = " + std::to_string(4 * i) + " : i32} : i64 -> f32\n";
    tail += "nvidia.store global %v" + n + ", %out {offset = " + std::to_string(4 * (127 - i)) + " : i32} : f32, i64\n";
  }
  auto module = kernel(body + "nvidia.barrier 64\n" + tail);
  auto roomy = assemble(emitPtx(*module, {"sm_90"}).text, "sm_90");
  auto tight = assemble(emitPtx(*module, {"sm_90", true, 16}).text, "sm_90");
  EXPECT_GT(roomy->registers, 120);
  EXPECT_EQ(roomy->spillLoadBytes, 0);
  EXPECT_LE(tight->registers, 64);
  EXPECT_GT(tight->spillStoreBytes, 0);
  EXPECT_GT(tight->stackBytes, 0);
  EXPECT_EQ(roomy->barriers, 1);
}

} // namespace
