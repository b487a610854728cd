// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"
#include "Format.h"
#include "Options.h"
#include "Report.h"
#include "Table.h"

#include "tenon/runtime/Device.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::tool {
namespace {

enum class State : unsigned char { fact, good, missing, broken };

struct Finding {
  std::string subject;
  State state;
  std::string text;
};

const char *nameOf(State state) {
  switch (state) {
  case State::fact: return "";
  case State::good: return "ok";
  case State::missing: return "missing";
  case State::broken: return "broken";
  }
  return "";
}

Style styleOf(State state) {
  switch (state) {
  case State::fact: return Style::plain;
  case State::good: return Style::good;
  case State::missing: return Style::warn;
  case State::broken: return Style::bad;
  }
  return Style::plain;
}

std::string cachesText(const Machine &machine) {
  std::vector<std::string> parts;
  for (const Machine::Cache &cache : machine.caches)
    if (cache.type != "Instruction")
      parts.push_back(fmt::format("L{} {}{}", cache.level, bytesText(static_cast<double>(cache.bytes)),
                                  cache.sharedBy > 1 ? fmt::format(" (shared by {})", cache.sharedBy) : ""));
  return parts.empty() ? "unknown" : joined(parts);
}

/// The driver, then each device with what bounds its speed.
std::string gpusText() {
  std::vector<std::string> parts = {fmt::format("driver for CUDA {}.{}", cudaDriverVersion() / 1000,
                                                cudaDriverVersion() % 1000 / 10)};
  for (int device = 0; device < cudaDeviceCount(); ++device) {
    const CudaProperties &p = cudaProperties(device);
    parts.push_back(fmt::format("cuda:{} {} ({}), {} multiprocessors, {} at {:.1f} TB/s, L2 {}", device, p.name,
                                p.architecture(), p.multiprocessors, bytesText(static_cast<double>(p.memoryBytes)),
                                p.bytesPerSecond() * 1e-12, bytesText(static_cast<double>(p.l2Bytes))));
  }
  return joined(parts, "; ");
}

/// Compiles, runs and checks the smallest kernel there is: the one proof that a target works here.
Finding tryTarget(Target target, const std::string &isa) {
  Finding finding{isa.empty() ? std::string(tenon::nameOf(target)) : fmt::format("cpu {}", isa), State::good, ""};
  try {
    const zoo::Entry &entry = zoo::entries().front();
    Problem problem = entry.makeProblem(entry.testShapes.front(), entry.dtypes.front(), 1);
    LaunchOptions options;
    options.params = problem.params;
    options.target = target;
    if (!isa.empty())
      options.compile.isa = isa;
    options.compile.useDiskCache = false;
    CompileReport compiled = prepare(entry.kernel, problem.arguments, options);
    Verdict verdict = verify(problem, entry.kernel, options);
    if (!verdict.passed)
      return {finding.subject, State::broken, verdict.reason};
    finding.text = target == Target::interpreter
                       ? fmt::format("{} runs and is right", entry.name)
                       : fmt::format("{} compiled in {:.1f} ms, runs and is right", entry.name,
                                     compiled.milliseconds());
  } catch (const Error &error) {
    return {finding.subject, State::broken, error.what()};
  }
  return finding;
}

std::vector<Finding> examine() {
  const Machine &machine = thisMachine();
  std::vector<Finding> findings = {
      {"tenon", State::fact, fmt::format("{} (LLVM {})", machine.tenonVersion, machine.llvmVersion)},
      {"processor", State::fact, fmt::format("{}, {} visible", machine.cpu, machine.processors)},
      {"caches", State::fact, cachesText(machine)},
      {"instructions", State::fact,
       joined(machine.isaLevels) + (machine.isaExtras.empty() ? "" : "; also " + joined(machine.isaExtras))},
      {"memory", State::fact,
       fmt::format("{}, {} available", bytesText(static_cast<double>(machine.memoryBytes)),
                   bytesText(static_cast<double>(machine.availableBytes)))},
  };
  for (const std::string &isa : machine.isaLevels)
    findings.push_back(tryTarget(Target::cpu, isa));
  findings.push_back(tryTarget(Target::interpreter, ""));

  const Machine::KernelCache &cache = machine.kernelCache;
  if (cache.enabled)
    findings.push_back({"kernel cache", State::good,
                        fmt::format("{}: {} kernel{}, {}", cache.directory, cache.entries,
                                    cache.entries == 1 ? "" : "s", bytesText(static_cast<double>(cache.bytes)))});
  else
    findings.push_back({"kernel cache", State::missing,
                        fmt::format("off: {}; kernels are compiled anew in every process", cache.reason)});

  const Machine::Gpu &gpu = machine.gpu;
  findings.push_back({"NVIDIA GPU", gpu.devices.empty() ? State::missing : State::good,
                      gpu.devices.empty() ? gpu.reason : gpusText()});
  findings.push_back({"ptxas", gpu.ptxas.empty() ? State::missing : State::good,
                      gpu.ptxas.empty() ? "not found: only needed for GPU resource reports" : gpu.ptxas});
  return findings;
}

int doctor(const std::string &jsonFile) {
  Report report("doctor", jsonFile);
  std::vector<Finding> findings = examine();
  Table table({{"what"}, {"state"}, {"found", Table::Align::left, Table::Narrow::shrinks}});
  for (const auto &[subject, state, text] : findings) {
    table.add({{subject, Style::bold}, {nameOf(state), styleOf(state)}, text});
    report.add({{"what", subject}, {"state", state == State::fact ? "fact" : nameOf(state)}, {"found", text}});
  }
  bool broken =
      std::any_of(findings.begin(), findings.end(), [](const Finding &one) { return one.state == State::broken; });
  if (!report.quiet()) {
    table.print();
    fmt::print("\n{}\n", broken ? "Something that should work here does not."
                                : "Kernels can be compiled and run on this machine.");
  }
  report.write();
  return broken ? checkFailed : done;
}

} // namespace

Command addDoctor(CLI::App &app) {
  CLI::App *command = app.add_subcommand("doctor", "What this machine can do, and what is missing");
  auto json = std::make_shared<std::string>();
  addJsonOption(*command, *json);
  addExamples(*command, {"tenon doctor", "tenon doctor --json -"});
  return [json] { return doctor(*json); };
}

} // namespace tenon::tool
