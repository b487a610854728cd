// SPDX-License-Identifier: Apache-2.0
#include "Differential.h"

#include "Launch.h"
#include "Random.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/interpret/Interpreter.h"
#include "tenon/compiler/target/cpu/Isa.h"
#include "tenon/compiler/transform/ExpandMath.h"
#include "tenon/compiler/transform/Passes.h"
#include "tenon/jit/Compiler.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <cstring>
#include <map>

using namespace mlir;

namespace tenon::fuzz {
namespace {

/// More than any program of the generator needs.
constexpr int64_t maxSteps = 3'000'000;

std::map<std::string, double> &times() {
  static std::map<std::string, double> map;
  return map;
}

func::FuncOp kernelOf(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

bool hasExpandableMath(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return llvm::isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::SinOp, math::CosOp, math::TanhOp,
                         math::ErfOp, math::RsqrtOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Where maxnumf and minnumf may give either zero, signs of zeros say nothing.
bool hasLooseZeros(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return llvm::isa<arith::MaxNumFOp, arith::MinNumFOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult runPass(ModuleOp module, std::unique_ptr<Pass> pass) {
  PassManager pm(module.getContext());
  pm.addPass(std::move(pass));
  return pm.run(module);
}

/// Runs on fresh memory; returns what went wrong or "".
std::string interpretOn(ModuleOp module, Launch &launch) {
  launch.reset();
  interpret::Options options;
  options.maxSteps = maxSteps;
  return interpret::interpretLaunch(kernelOf(module), launch.words(), options);
}

std::string checkRoundTrip(ModuleOp module) {
  if (failed(verify(module)))
    return "does not verify";
  std::string text = printed(module);
  MLIRContext context(MLIRContext::Threading::DISABLED);
  tile::loadTileDialects(context);
  auto parsed = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!parsed)
    return "its text does not parse";
  if (printed(*parsed) != text)
    return "its text parses as something else:\n" + printed(*parsed);
  return "";
}

std::optional<std::string> transform(ModuleOp module, const std::string &pass) {
  LogicalResult done = pass == "canonicalize"    ? runPass(module, createCanonicalizerPass())
                       : pass == "cse"           ? runPass(module, createCSEPass())
                       : pass == "expand-random" ? runPass(module, createExpandRandomPass())
                       : pass == "expand-math"   ? runPass(module, createExpandMathPass())
                                                 : simplifyTileIr(module);
  if (failed(done))
    return pass + " failed";
  if (failed(verify(module)))
    return pass + " made invalid IR";
  return std::nullopt;
}

struct Variant {
  std::string isa;
  int threads = 1;
  bool noOverlap = false, noUnit = false;
};

Variant parseVariant(const std::string &check) {
  Variant variant;
  SmallVector<StringRef> parts;
  StringRef(check).split(parts, '/');
  for (StringRef part : ArrayRef<StringRef>(parts).drop_front()) {
    if (part == "t1" || part == "t2")
      variant.threads = part == "t2" ? 2 : 1;
    else if (part == "no-overlap")
      variant.noOverlap = true;
    else if (part == "no-unit")
      variant.noUnit = true;
    else
      variant.isa = part.str();
  }
  return variant;
}

bool haveDistinctElements(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  static std::byte somewhere; // never touched
  return Tensor::borrow(&somewhere, 0, u8, std::vector<int64_t>(sizes), std::vector<int64_t>(strides))
      .hasDistinctElements();
}

/// Throws what compilation throws. With `emit`, null.
std::shared_ptr<jit::Executable> compile(ModuleOp program, const Variant &variant, jit::EmitRequest *emit) {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  tile::loadTileDialects(*context);
  auto module = parseSourceString<ModuleOp>(printed(program), ParserConfig(context.get()));
  if (!module)
    throw Error("its text does not parse");
  func::FuncOp kernel = kernelOf(*module);
  if (variant.noOverlap)
    kernel->setAttr(tile::noOverlapAttr, UnitAttr::get(context.get()));
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    auto sizes = kernel.getArgAttrOfType<DenseI64ArrayAttr>(i, sizesAttr);
    auto strides = kernel.getArgAttrOfType<DenseI64ArrayAttr>(i, stridesAttr);
    if (sizes && strides && haveDistinctElements(sizes, strides)) // what a launch would find out
      kernel.setArgAttr(i, tile::distinctAttr, UnitAttr::get(context.get()));
  }
  if (variant.noUnit)
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      kernel.removeArgAttr(i, tile::unitStrideAttr);
  CompileOptions options;
  options.isa = variant.isa;
  options.useDiskCache = false;
  CompileReport report;
  auto executable = jit::compileTileIr(std::move(context), std::move(module), Target::cpu, options, report, emit);
  for (const auto &phase : report.phases)
    times()[phase.name] += phase.milliseconds;
  return executable;
}

/// Compiles and launches as Launch.cpp does. Returns what went wrong or "".
std::string runOnCpu(ModuleOp program, const Variant &variant, Launch &launch, std::string &guardDamage) {
  try {
    auto executable = compile(program, variant, nullptr);
    launch.reset();
    std::vector<int64_t> words = launch.words();
    jit::Executable::Plan plan = executable->plan(words);
    interpret::LaunchPlan expected = interpret::planLaunch(kernelOf(program), words);
    if (!std::equal(plan.grid, plan.grid + 3, expected.grid) || plan.refusal.empty() != expected.refusal.empty() ||
        plan.workspaces != expected.workspaces)
      return "the plan of the launch differs from the interpreter's";
    if (!plan.refusal.empty() || llvm::any_of(plan.grid, [](int64_t extent) { return extent <= 0; }))
      return "";
    std::vector<std::unique_ptr<GuardedMemory>> workspaces;
    constexpr size_t guard = 256;
    for (auto [i, sizes] : llvm::enumerate(plan.workspaces)) {
      int64_t elements = 1;
      std::vector<int64_t> strides(sizes.size());
      for (size_t d = sizes.size(); d-- > 0; elements *= sizes[d])
        strides[d] = elements;
      workspaces.push_back(
          std::make_unique<GuardedMemory>(elements * executable->info.workspaces[i].elementBytes, guard, false));
      std::memset(workspaces.back()->begin(), 0x7e, workspaces.back()->size());
      std::memset(workspaces.back()->payload(), 0, workspaces.back()->size() - 2 * guard);
      words.push_back(reinterpret_cast<int64_t>(workspaces.back()->payload()));
      words.insert(words.end(), sizes.begin(), sizes.end());
      words.insert(words.end(), strides.begin(), strides.end());
    }
    jit::Executable::RunOptions options;
    options.threads = variant.threads;
    executable->run(plan, words, options);
    for (auto &workspace : workspaces)
      for (size_t at = 0; at < guard; ++at)
        if (workspace->begin()[at] != 0x7e || workspace->begin()[workspace->size() - 1 - at] != 0x7e)
          guardDamage = "memory beside a workspace was written";
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

} // namespace

std::string printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

std::vector<std::string> checksFor(uint64_t seed, bool all) {
  std::vector<std::string> checks = {"round-trip", "canonicalize", "cse", "expand-random", "simplify"};
  Random random(seed ^ 0x5eed);
  static const bool hasAvx512 = cpu::selectIsa("native").name == "avx512";
  static const bool hasAvx2 = cpu::selectIsa("native").name != "baseline";
  std::vector<std::string> isas = {"baseline"};
  if (hasAvx2)
    isas.insert(isas.end(), {"avx2", "avx2"});
  if (hasAvx512)
    isas.insert(isas.end(), {"avx512", "avx512", "avx512"});
  if (!all) {
    checks.push_back("cpu/" + random.pick(isas) + random.pick({"/t1", "/t2"}) + random.pick({"", "/no-overlap"}) +
                     random.pick({"", "", "", "/no-unit"}));
    return checks;
  }
  isas.erase(std::unique(isas.begin(), isas.end()), isas.end());
  for (const std::string &isa : isas)
    for (const char *overlap : {"", "/no-overlap"})
      for (const char *unit : {"", "/no-unit"})
        checks.push_back("cpu/" + isa + (*overlap ? "/t1" : "/t2") + overlap + unit);
  return checks;
}

std::optional<Failure> runCheck(ModuleOp program, const std::string &check) {
  auto fail = [&](const char *kind, std::string detail) { return Failure{check, kind, std::move(detail)}; };
  if (check == "round-trip") {
    std::string wrong = checkRoundTrip(program);
    return wrong.empty() ? std::nullopt : std::optional(fail("error", wrong));
  }
  bool isCpu = StringRef(check).starts_with("cpu/");
  OwningOpRef<ModuleOp> reference(program.clone());
  if (hasExpandableMath(program)) // what every target computes, constant or not; the interpreter's own are close to it
    if (auto wrong = transform(*reference, "expand-math"))
      return fail("error", *wrong);
  Launch launch(kernelOf(program));
  if (!launch.error().empty())
    return fail("error", launch.error());
  if (std::string wrong = interpretOn(*reference, launch); !wrong.empty())
    return fail("error", "interpreter: " + wrong);
  Snapshot expected = launch.snapshot();

  if (isCpu) {
    Variant variant = parseVariant(check);
    variant.noOverlap &= !launch.sharesMemory();
    std::string damage;
    if (std::string wrong = runOnCpu(program, variant, launch, damage); !wrong.empty())
      return fail("error", wrong);
    if (!damage.empty())
      return fail("mismatch", damage);
  } else {
    OwningOpRef<ModuleOp> changed(reference->clone());
    if (auto wrong = transform(*changed, check))
      return fail("error", *wrong);
    if (std::string wrong = interpretOn(*changed, launch); !wrong.empty())
      return fail("error", "interpreter after the pass: " + wrong);
  }
  if (auto where = launch.difference(expected, hasLooseZeros(program)))
    return fail("mismatch", *where);
  return std::nullopt;
}

std::string emitted(ModuleOp program, const std::string &check, const std::string &phase) {
  jit::EmitRequest request{phase, ""};
  try {
    compile(program, parseVariant(check), &request);
  } catch (const std::exception &error) {
    return error.what();
  }
  return request.text;
}

std::vector<std::pair<std::string, double>> compileTimes() { return {times().begin(), times().end()}; }

} // namespace tenon::fuzz
