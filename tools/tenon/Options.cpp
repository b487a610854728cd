// SPDX-License-Identifier: Apache-2.0
#include "Options.h"

#include "Format.h"

#include "tenon/measure/Machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tenon::tool {
namespace {

std::optional<int64_t> parseInteger(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::vector<int64_t> parseShape(const std::string &text, const zoo::Entry &entry) {
  std::vector<int64_t> shape;
  for (size_t begin = 0;;) {
    size_t cross = text.find_first_of("xX", begin);
    auto size = parseInteger(std::string_view(text).substr(begin, cross - begin));
    if (!size || *size < 0)
      throw Error(fmt::format("bad shape '{}': a shape is whole numbers of 0 or more joined by x, for example {}", text,
                              shapeText(entry.demoShape)));
    shape.push_back(*size);
    if (cross == std::string::npos)
      break;
    begin = cross + 1;
  }
  if (shape.size() != entry.dimensions.size())
    throw Error(fmt::format("shape '{}' has {} dimension{}, but {} takes {}: {}", text, shape.size(),
                            shape.size() == 1 ? "" : "s", entry.name, entry.dimensions.size(),
                            joined(entry.dimensions)));
  return shape;
}

DType parseType(const std::string &text) {
  if (std::optional<DType> type = parseDType(text))
    return *type;
  throw Error(fmt::format("unknown type '{}': the types are {}", text, dtypesText(allDTypes)));
}

bool comesIn(const zoo::Entry &entry, DType type) {
  return std::find(entry.dtypes.begin(), entry.dtypes.end(), type) != entry.dtypes.end();
}

Target parseTargetName(const std::string &text) {
  if (std::optional<Target> target = parseTarget(text))
    return *target;
  throw Error(fmt::format("unknown target '{}': the targets are cpu, interpreter, sim and cuda", text));
}

/// Of the test shapes, the one in the middle by size: not trivial, and soon done.
std::vector<int64_t> smallShape(const zoo::Entry &entry) {
  auto volume = [](const std::vector<int64_t> &shape) {
    double product = 1;
    for (int64_t size : shape)
      product *= static_cast<double>(size);
    return product;
  };
  if (entry.testShapes.empty())
    return entry.demoShape;
  auto shapes = entry.testShapes;
  std::sort(shapes.begin(), shapes.end(),
            [&](const auto &a, const auto &b) { return std::pair(volume(a), a) < std::pair(volume(b), b); });
  return shapes[shapes.size() / 2];
}

std::vector<const zoo::Entry *> selectedEntries(const Request &request) {
  if (request.all != request.kernel.empty())
    throw Error(request.all ? "give a kernel or --all, not both" : "which kernel? `tenon list` names them");
  if (!request.all)
    return {&zoo::find(request.kernel)};
  if (!request.shapes.empty() || !request.params.empty())
    throw Error("--shape and --param mean something else for each kernel: name one instead of --all");
  std::vector<const zoo::Entry *> entries;
  for (const zoo::Entry &entry : zoo::entries())
    entries.push_back(&entry);
  return entries;
}

} // namespace

void addKernelOption(CLI::App &app, Request &request, Kernels kernels) {
  app.add_option("kernel", request.kernel, "A kernel of the zoo: see `tenon list`")->type_name("KERNEL");
  if (kernels == Kernels::oneOrAll)
    app.add_flag("--all", request.all, "Every kernel of the zoo");
}

void addProblemOptions(CLI::App &app, Request &request) {
  // Without allow_extra_args(false) an option that may be repeated would swallow the kernel's name after it.
  app.add_option("--shape", request.shapes, "Sizes, for example 128x512; may be repeated where it makes sense")
      ->type_name("SHAPE")
      ->allow_extra_args(false);
  app.add_option("--dtype", request.dtypes, "Element type, for example bf16; may be repeated where it makes sense")
      ->type_name("TYPE")
      ->allow_extra_args(false);
  app.add_option("--param", request.params, "Set a compile-time parameter of the kernel; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--seed", request.seed, "Of the random inputs")->capture_default_str()->type_name("N");
}

void addIsaOption(CLI::App &app, Request &request) {
  app.add_option("--isa", request.isa,
                 "Instruction set: native (the best there is), avx512, avx512-dot (without AMX), avx2, baseline, or "
                 "amx-emulated "
                 "(AMX's code on any processor, for tests)")
      ->capture_default_str()
      ->type_name("ISA");
}

void addTargetOptions(CLI::App &app, Request &request) {
  app.add_option("--target", request.target,
                 "cpu; interpreter (slow, right by definition); cuda, or sim, a simulator of it (slow, finds races)")
      ->capture_default_str()
      ->type_name("TARGET");
  addIsaOption(app, request);
  app.add_option("--threads", request.threads, "Threads to run on; 0: all visible processors")
      ->check(between(0, 1024))
      ->capture_default_str()
      ->type_name("N");
  addGpuOptions(app, request);
}

void addGpuOptions(CLI::App &app, Request &request) {
  app.add_option("--gpu", request.gpu, "Architecture that the simulator has, and phases of a GPU are for")
      ->capture_default_str()
      ->type_name("ARCH");
  auto add = [&](const char *name, int &value, int most, const char *text) {
    app.add_option(name, value, text)->check(between(0, most))->capture_default_str()->type_name("N");
  };
  add("--warps", request.warps, 32, "GPU: warps of a block, a power of two or 12; 0: chosen");
  add("--cluster", request.cluster, 16, "GPU: blocks that share a program instance, a power of two; 0: chosen");
  add("--stages", request.stages, 16, "GPU: slots of asynchronous loads in loops around a dot; 0: chosen, 1: none");
  add("--split", request.split, 256, "GPU: program instances that share a loop which only adds up; 0 and 1: none do");
  app.add_flag("--share-tail", request.shareTail,
               "GPU: the last program instances, fewer than there are blocks, are made by all of them");
  app.add_flag("--ping-pong", request.pingPong,
               "GPU: two warpgroups of a block take program instances in turns: one multiplies, the other stores");
  addWithoutOption(app, request.without);
}

void addWithoutOption(CLI::App &app, std::string &without) {
  app.add_option("--without", without, "GPU: steps of code generation to leave out, to see what they are worth: " +
                                           joined(gpuSteps()))
      ->type_name("STEP,...");
}

void addJsonOption(CLI::App &app, std::string &file) {
  app.add_option("--json", file, "Write the results as JSON to FILE; - for the standard output and nothing else there")
      ->type_name("FILE");
}

/// CLI::Range says of "abc" that it is "not in range 0.000000 to 3600.000000", and lets "nan" pass.
template <typename Number> static CLI::Validator numbersBetween(Number least, Number most, const char *kind) {
  return {[=](std::string &text) -> std::string {
            Number value{};
            auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            bool isNumber = error == std::errc() && end == text.data() + text.size();
            return isNumber && value >= least && value <= most
                       ? ""
                       : fmt::format("'{}' is no {} from {} to {}", text, kind, least, most);
          },
          ""};
}

CLI::Validator between(int least, int most) { return numbersBetween(least, most, "whole number"); }
CLI::Validator between(double least, double most) { return numbersBetween(least, most, "number"); }

void addExamples(CLI::App &app, const std::vector<std::string> &commands) {
  app.footer("\nExamples:\n  " + joined(commands, "\n  "));
}

Problem Case::problem(const Request &request) const {
  Problem problem = entry->makeProblem(shape, dtype, request.seed);
  Params given; // what is wrong with one of them, launchOptionsOf() says
  for (const std::string &text : request.params)
    if (size_t equals = text.find('='); equals != std::string::npos)
      if (auto value = parseInteger(std::string_view(text).substr(equals + 1)))
        given[text.substr(0, equals)] = *value;
  return given.empty() || !problem.withParams ? problem : problem.withParams(given);
}

std::string Case::label() const { return fmt::format("{} {} {}", entry->name, shapeText(shape), nameOf(dtype)); }

std::vector<Case> casesOf(const Request &request, Defaults defaults) {
  Target target = parseTargetName(request.target);
  std::vector<DType> types;
  for (const std::string &text : request.dtypes)
    types.push_back(parseType(text));
  std::vector<Case> cases;
  for (const zoo::Entry *entry : selectedEntries(request)) {
    std::vector<std::vector<int64_t>> shapes;
    for (const std::string &text : request.shapes)
      shapes.push_back(parseShape(text, *entry));
    if (shapes.empty() && defaults == Defaults::everyTest)
      shapes = entry->testShapes;
    else if (shapes.empty())
      shapes = {target == Target::interpreter || target == Target::sim ? smallShape(*entry) : entry->demoShape};
    std::vector<DType> entryTypes = types;
    if (types.empty())
      entryTypes = defaults == Defaults::everyTest ? entry->dtypes : std::vector<DType>{entry->dtypes.front()};
    for (DType type : entryTypes) {
      if (!comesIn(*entry, type)) {
        if (request.all)
          continue; // --all --dtype u8: those that have it
        throw Error(fmt::format("{} does not come in {}: its types are {}", entry->name, nameOf(type),
                                dtypesText(entry->dtypes)));
      }
      for (const auto &shape : shapes)
        cases.push_back({entry, shape, type});
    }
  }
  if (cases.empty())
    throw Error(fmt::format("no kernel of the zoo comes in {}", joined(request.dtypes)));
  return cases;
}

Case caseOf(const Request &request, Defaults defaults) {
  if (request.shapes.size() > 1 || request.dtypes.size() > 1)
    throw Error("this command takes one shape and one type");
  return casesOf(request, defaults).front();
}

LaunchOptions launchOptionsOf(const Request &request, const Case &one, const Problem &problem) {
  LaunchOptions options;
  options.params = problem.params;
  options.target = parseTargetName(request.target);
  if (options.target == Target::cpu && problem.cpuParams)
    for (const auto &[name, value] : problem.cpuParams(request.threads ? request.threads : thisMachine().processors))
      options.params[name] = value;
  options.compile.isa = request.isa;
  options.threads = request.threads;
  bool isGpu = options.target == Target::sim || options.target == Target::cuda;
  if (!isGpu && (request.warps || request.cluster || request.stages || request.split || request.shareTail ||
                 request.pingPong || !request.without.empty()))
    throw Error("--warps, --cluster, --stages, --split, --share-tail, --ping-pong and --without are a GPU's: say "
                "--target sim or cuda");
  options.compile.gpu = request.gpu;
  options.compile.warps = request.warps;
  options.compile.cluster = request.cluster;
  options.compile.stages = request.stages;
  options.compile.split = request.split;
  options.compile.shareTail = request.shareTail;
  options.compile.pingPong = request.pingPong;
  options.compile.without = request.without;
  checkCompileOptions(options.target, options.compile);
  std::vector<std::string> known;
  for (const KernelParameter &parameter : one.entry->kernel.parameters())
    if (parameter.kind == ParameterKind::param)
      known.push_back(parameter.name);
  for (const std::string &text : request.params) {
    size_t equals = text.find('=');
    std::optional<int64_t> value;
    if (equals != std::string::npos)
      value = parseInteger(std::string_view(text).substr(equals + 1));
    if (!value)
      throw Error(fmt::format("bad parameter '{}': write NAME=VALUE with a whole number, for example {}=64", text,
                              known.empty() ? "cols" : known.front()));
    std::string name = text.substr(0, equals);
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(fmt::format("{} has no parameter '{}': it has {}", one.entry->name, name,
                              known.empty() ? "none" : joined(known)));
    options.params[name] = *value;
  }
  return options;
}

} // namespace tenon::tool
