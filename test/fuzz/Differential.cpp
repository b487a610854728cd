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

#include <algorithm>
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

/// A GPU's quotient of two small floats may be an ulp off where it is rounded further; its product is not.
void replaceDivisions(ModuleOp module) {
  module.walk([](arith::DivFOp op) {
    if (getElementTypeOrSelf(op.getType()).isF64())
      return;
    OpBuilder b(op);
    op.replaceAllUsesWith(b.create<arith::MulFOp>(op.getLoc(), op.getLhs(), op.getRhs()).getResult());
    op.erase();
  });
}

bool keepsToItsThreads(Operation *op) {
  if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op)) {
    auto larger = [](Type type) {
      SmallVector<int64_t> sizes(llvm::cast<RankedTensorType>(type).getShape());
      llvm::erase(sizes, 1);
      return sizes;
    };
    return larger(reshape.getType()) == larger(reshape.getValue().getType());
  }
  return !llvm::isa<tile::DotOp, tile::ScanOp, tile::SliceOp, tile::ConcatOp, tile::TransposeOp, tile::AssertOp,
                    tile::PrintOp, tile::AtomicRMWOp, tile::AtomicCASOp, tile::GatherOp, tile::ScatterOp>(op);
}

/// What blocks of a cluster cannot do together gives ones, so that the rest of any program can be spread over them.
void makeSpreadable(ModuleOp module) {
  module.walk([](Operation *op) {
    if (keepsToItsThreads(op))
      return;
    OpBuilder b(op);
    for (Value result : op->getResults()) {
      auto type = llvm::cast<RankedTensorType>(result.getType());
      Type element = type.getElementType();
      Attribute one = llvm::isa<FloatType>(element) ? Attribute(b.getFloatAttr(element, 1))
                                                    : Attribute(b.getIntegerAttr(element, 1));
      result.replaceAllUsesWith(b.create<arith::ConstantOp>(op->getLoc(), SplatElementsAttr::get(type, one)));
    }
    op->erase();
  });
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
  Target target = Target::cpu;
  std::string isa = "native";
  int threads = 1;
  int warps = 0, cluster = 0, stages = 0;
  bool noOverlap = false, noUnit = false, noFacts = false;
};

Variant parseVariant(const std::string &check) {
  Variant variant;
  SmallVector<StringRef> parts;
  StringRef(check).split(parts, '/');
  variant.target = parts[0] == "sim" ? Target::sim : Target::cpu;
  for (StringRef part : ArrayRef<StringRef>(parts).drop_front()) {
    StringRef number = part.drop_front();
    bool counts = !number.empty() && llvm::all_of(number, llvm::isDigit);
    if (part == "no-overlap")
      variant.noOverlap = true;
    else if (part == "no-unit")
      variant.noUnit = true;
    else if (part == "no-facts")
      variant.noFacts = true;
    else if (!counts)
      variant.isa = part.str();
    else
      (part[0] == 't'   ? variant.threads
       : part[0] == 'w' ? variant.warps
       : part[0] == 'c' ? variant.cluster
                        : variant.stages) = std::stoi(number.str());
  }
  return variant;
}

bool haveDistinctElements(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  static std::byte somewhere; // never touched
  return Tensor::borrow(&somewhere, 0, u8, std::vector<int64_t>(sizes), std::vector<int64_t>(strides))
      .hasDistinctElements();
}

/// As many warps as asked for, or more: hundreds of registers per tile are slow to compile and show nothing new.
int warpsFor(func::FuncOp kernel, int wanted) {
  int64_t largest = 1;
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tile = llvm::dyn_cast<RankedTensorType>(type))
        largest = std::max(largest, tile.getNumElements());
  });
  constexpr int64_t perWarp = 32 * 32;
  return wanted == 0 ? 0 : std::max<int>(wanted, llvm::PowerOf2Ceil((largest + perWarp - 1) / perWarp));
}

/// The powers of two, up to 16, in an argument's words: what a launch on a GPU would find out.
std::vector<int64_t> divisors(ArrayRef<int64_t> words) {
  std::vector<int64_t> found;
  for (int64_t word : words)
    found.push_back(word ? std::min<int64_t>(word & -word, 16) : 16);
  return found;
}

/// Throws what compilation throws. With `emit`, null.
std::shared_ptr<jit::Executable> compile(ModuleOp program, const Variant &variant, ArrayRef<int64_t> words,
                                         jit::EmitRequest *emit) {
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
    auto view = llvm::dyn_cast<tile::ViewType>(kernel.getArgumentTypes()[i]);
    size_t count = view ? 1 + 2 * view.getRank() : 1;
    if (variant.target == Target::sim && !variant.noFacts && (view || kernel.getArgumentTypes()[i].isIndex()))
      kernel.setArgAttr(i, tile::divisibleAttr,
                        DenseI64ArrayAttr::get(context.get(), divisors(words.take_front(count))));
    words = words.drop_front(count);
  }
  if (variant.noUnit)
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      kernel.removeArgAttr(i, tile::unitStrideAttr);
  CompileOptions options;
  options.isa = variant.isa;
  options.useDiskCache = false;
  options.warps = warpsFor(kernel, variant.warps);
  options.cluster = variant.cluster;
  options.stages = variant.stages;
  CompileReport report;
  auto executable = jit::compileTileIr(std::move(context), std::move(module), variant.target, options, report, emit);
  for (const auto &phase : report.phases)
    times()[phase.name] += phase.milliseconds;
  return executable;
}

/// Compiles and launches as Launch.cpp does. Returns what went wrong or "".
std::string runCompiled(ModuleOp program, const Variant &variant, Launch &launch, std::string &guardDamage) {
  try {
    auto executable = compile(program, variant, launch.words(), nullptr);
    launch.reset();
    std::vector<int64_t> words = launch.words();
    jit::Executable::Plan plan = executable->plan(words);
    interpret::LaunchPlan expected = interpret::planLaunch(kernelOf(program), words);
    if (!std::equal(plan.grid, plan.grid + 3, expected.grid) || plan.refusal.empty() != expected.refusal.empty() ||
        !std::ranges::equal(plan.workspaces, expected.workspaces,
                            [](const auto &ours, const auto &theirs) { return std::ranges::equal(ours, theirs); }))
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
  if (!all)
    checks.push_back(std::string("sim/") + random.pick({"w0", "w1", "w2", "w4", "w8"}) +
                     random.pick({"", "", "", "/c2", "/c4"}) + random.pick({"", "/s1", "/s2", "/s4"}) +
                     random.pick({"", "/no-overlap"}) + random.pick({"", "", "", "/no-unit", "/no-facts"}));
  else
    for (const char *form : {"w0", "w1", "w2/c2", "w4/s1", "w8/no-overlap", "w4/no-facts", "w2/no-unit", "w16/c4"})
      checks.push_back(std::string("sim/") + form);
  static const bool hasAvx512 = cpu::selectIsa("native").name == "avx512";
  static const bool hasAvx2 = cpu::selectIsa("native").name != "baseline";
  std::vector<std::string> isas = {"baseline", "amx-emulated"};
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
  bool isSim = StringRef(check).starts_with("sim/"), isCompiled = isSim || StringRef(check).starts_with("cpu/");
  OwningOpRef<ModuleOp> reference(program.clone());
  if (hasExpandableMath(program)) // what every target computes, constant or not; the interpreter's own are close to it
    if (auto wrong = transform(*reference, "expand-math"))
      return fail("error", *wrong);
  if (isSim)
    replaceDivisions(*reference);
  if (isSim && parseVariant(check).cluster > 1)
    makeSpreadable(*reference);
  Launch launch(kernelOf(program));
  if (!launch.error().empty())
    return fail("error", launch.error());
  if (std::string wrong = interpretOn(*reference, launch); !wrong.empty())
    return fail("error", "interpreter: " + wrong);
  Snapshot expected = launch.snapshot();

  if (isCompiled) {
    Variant variant = parseVariant(check);
    variant.noOverlap &= !launch.sharesMemory();
    std::string damage;
    if (std::string wrong = runCompiled(isSim ? *reference : program, variant, launch, damage); !wrong.empty())
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
    compile(program, parseVariant(check), Launch(kernelOf(program)).words(), &request);
  } catch (const std::exception &error) {
    return error.what();
  }
  return request.text;
}

std::vector<std::pair<std::string, double>> compileTimes() { return {times().begin(), times().end()}; }

} // namespace tenon::fuzz
