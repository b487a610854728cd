// SPDX-License-Identifier: Apache-2.0
//
// The differential fuzzer of Tile IR: random programs (ProgramGenerator.h), each put through the checks of
// Differential.h.
//
//     fuzz-programs --seed 1 --count 2100 --skip sim/     what ctest runs: the same programs every time
//     fuzz-programs --seed 1 --count 1000 --check sim/    and fewer of them in the simulator of a GPU
//     fuzz-programs --seed $RANDOM$RANDOM --seconds 3600 --all-variants
//                                                         soak: new programs for an hour, each check in every form
//     fuzz-programs --seed 42 --count 1 --print           look at one program
//     fuzz-programs --replay test/fuzz/regressions        programs that once failed, all checks
//     fuzz-programs --replay fuzz-42.mlir --check cpu/avx2/t1 --emit loops
//                                                         what the compiler makes of one of them
//
// Programs are run by a child process; when it dies, the program it was at has failed and another child goes on behind
// it. A failing program is shrunk, each attempt in a process of its own, printed, and written to fuzz-<seed>.mlir in
// the working directory; `--replay` takes that file. Exit status: 0, 1 when a program failed, 2 for wrong
// use.
#include "Differential.h"
#include "ProgramGenerator.h"
#include "Shrink.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace tenon::fuzz;

namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t count = 100;
  double seconds = 0;
  std::string check, skip, replay, emit;
  bool allVariants = false, print = false, noShrink = false;
  int maxFailures = 5, attempts = 400;
};

/// What a child tells its parent, through shared memory so that it survives the child.
struct Report {
  struct Line {
    char name[40];
    uint64_t count;
  };
  uint64_t current;  ///< the program it is at
  uint64_t programs, checks, cpuChecks, simChecks;
  char check[64], kind[16], detail[2048];
  Line ops[256], phases[32];

  template <size_t n> static void set(char (&to)[n], const std::string &text) {
    std::strncpy(to, text.c_str(), n - 1);
    to[n - 1] = 0;
  }
  void count(const std::string &name) {
    for (Line &line : ops) {
      if (!line.name[0])
        set(line.name, name);
      if (name == line.name) {
        ++line.count;
        return;
      }
    }
  }
  void fail(const Failure &failure) {
    set(kind, failure.kind);
    set(detail, failure.detail);
  }
};

Report *makeReport() {
  void *memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Report();
}

constexpr int failed_ = 10;

/// What a check may take: of processors, so that others on the machine do not count, and by the clock what only waits.
void limitCheck() {
  itimerval busy{{}, {60, 0}};
  setitimer(ITIMER_PROF, &busy, nullptr);
  alarm(900);
}
void liftLimits() {
  itimerval none{};
  setitimer(ITIMER_PROF, &none, nullptr);
  alarm(0);
}

/// Runs `work` in a child. Nothing when it returns normally; else what killed it, or what it reported.
std::optional<Failure> inChild(Report &report, llvm::function_ref<std::optional<Failure>()> work) {
  report.kind[0] = report.detail[0] = 0;
  llvm::outs().flush();
  pid_t child = fork();
  if (child == 0) {
    rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    std::optional<Failure> failure = work();
    llvm::outs().flush();
    if (failure)
      report.fail(*failure);
    _exit(failure ? failed_ : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return std::nullopt;
  if (WIFEXITED(status) && WEXITSTATUS(status) == failed_)
    return Failure{report.check, report.kind, report.detail};
  int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return Failure{report.check, signal == SIGPROF || signal == SIGALRM ? "timeout" : "crash",
                 signal ? strsignal(signal) : "exit status " + std::to_string(WEXITSTATUS(status))};
}

std::optional<Failure> checkProgram(ModuleOp program, const std::vector<std::string> &checks, Report &report) {
  for (const std::string &check : checks) {
    Report::set(report.check, check);
    limitCheck();
    std::optional<Failure> failure = runCheck(program, check);
    liftLimits();
    ++report.checks;
    report.cpuChecks += llvm::StringRef(check).starts_with("cpu/");
    report.simChecks += llvm::StringRef(check).starts_with("sim/");
    if (failure)
      return failure;
  }
  return std::nullopt;
}

std::vector<std::string> wantedChecks(uint64_t seed, bool all, const Options &options) {
  std::vector<std::string> checks = checksFor(seed, all);
  llvm::erase_if(checks, [&](llvm::StringRef check) {
    return !check.starts_with(options.check) || (!options.skip.empty() && check.starts_with(options.skip));
  });
  return checks;
}

void countOps(ModuleOp program, Report &report) {
  program.walk([&](Operation *op) {
    if (!llvm::isa<ModuleOp, func::FuncOp, func::ReturnOp>(op))
      report.count(op->getName().getStringRef().str());
  });
}

/// The failing program in small, told to the user and written to a file.
void explain(ModuleOp program, const std::string &name, const Failure &failure, const Options &options) {
  llvm::outs() << "FAILED " << name << ", check " << failure.check << ", " << failure.kind << ": " << failure.detail
               << "\n";
  Report &scratch = *makeReport();
  Failure last = failure;
  auto stillFails = [&](ModuleOp candidate) {
    auto found = inChild(scratch, [&] { return checkProgram(candidate, {failure.check}, scratch); });
    // An error must stay the same error: its first words say which.
    bool same = found && found->kind == failure.kind &&
                (failure.kind != "error" || found->detail.substr(0, 24) == failure.detail.substr(0, 24));
    if (same)
      last = *found;
    return same;
  };
  OwningOpRef<ModuleOp> small(program.clone());
  if (!options.noShrink)
    small = shrink(program, stillFails, options.attempts);
  std::string file = "fuzz-" + name + ".mlir";
  std::ofstream(file) << "// SPDX-License-Identifier: Apache-2.0\n// " << name << ", check " << failure.check << ", "
                      << last.kind << ": " << llvm::StringRef(last.detail).split('\n').first.str() << "\n"
                      << printed(*small);
  llvm::outs() << "shrunk (" << file << "), " << last.kind << ": " << last.detail << "\n" << printed(*small) << "\n";
  munmap(&scratch, sizeof(Report));
}

int replay(const Options &options, Report &report) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(options.replay)) {
    for (const auto &entry : std::filesystem::directory_iterator(options.replay))
      if (entry.path().extension() == ".mlir")
        files.push_back(entry.path());
  } else {
    files.push_back(options.replay);
  }
  std::sort(files.begin(), files.end());
  int failures = 0;
  for (const auto &file : files) {
    auto failure = inChild(report, [&]() -> std::optional<Failure> {
      MLIRContext context(MLIRContext::Threading::DISABLED);
      tenon::tile::loadTileDialects(context);
      auto program = parseSourceFile<ModuleOp>(file.string(), ParserConfig(&context));
      if (!program)
        return Failure{"parse", "error", "does not parse"};
      if (!options.emit.empty()) {
        llvm::outs() << emitted(*program, options.check, options.emit) << "\n";
        return std::nullopt;
      }
      return checkProgram(*program, wantedChecks(0, /*all=*/true, options), report);
    });
    if (failure) {
      llvm::outs() << "FAILED " << file.string() << ", check " << failure->check << ", " << failure->kind << ": "
                   << failure->detail << "\n";
      ++failures;
    }
  }
  llvm::outs() << "replayed " << files.size() << " programs, " << failures << " failed\n";
  return failures;
}

int fuzz(const Options &options, Report &report) {
  using Clock = std::chrono::steady_clock;
  auto start = Clock::now();
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  auto goesOn = [&](uint64_t i) { return options.seconds > 0 ? elapsed() < options.seconds : i < options.count; };
  // Neighbouring seeds share nothing: the generator mixes them.
  auto seedOf = [&](uint64_t i) { return options.seed + i; };
  int failures = 0;
  uint64_t next = 0;
  while (goesOn(next)) {
    auto failure = inChild(report, [&]() -> std::optional<Failure> {
      for (uint64_t i = next; goesOn(i) && i < next + 500; ++i) { // a new child now and then: memory, and what it leaks
        report.current = i;
        Report::set(report.check, "generate");
        limitCheck();
        MLIRContext context(MLIRContext::Threading::DISABLED);
        auto program = generateProgram(context, seedOf(i));
        if (options.print)
          llvm::outs() << printed(*program) << "\n";
        countOps(*program, report);
        ++report.programs;
        if (auto found = checkProgram(*program, wantedChecks(seedOf(i), options.allVariants, options), report))
          return found;
      }
      for (auto [i, phase] : llvm::enumerate(compileTimes())) {
        Report::set(report.phases[i].name, phase.first);
        report.phases[i].count += static_cast<uint64_t>(phase.second);
      }
      return std::nullopt;
    });
    next = report.current + 1;
    if (!failure)
      continue;
    MLIRContext context(MLIRContext::Threading::DISABLED);
    if (failure->check == "generate") {
      llvm::outs() << "FAILED seed " << seedOf(report.current) << ": the generator: " << failure->detail << "\n";
    } else {
      auto program = generateProgram(context, seedOf(report.current));
      explain(*program, std::to_string(seedOf(report.current)), *failure, options);
    }
    if (++failures >= options.maxFailures)
      break;
  }
  llvm::outs() << "seed " << options.seed << ": " << report.programs << " programs, " << report.checks << " checks, "
               << report.cpuChecks << " of them on the CPU, " << report.simChecks << " in the simulator, " << failures
               << " failed, "
               << llvm::format("%.0f", elapsed()) << " s\n";
  std::vector<Report::Line> lines;
  for (const Report::Line &line : report.ops)
    if (line.name[0])
      lines.push_back(line);
  std::sort(lines.begin(), lines.end(), [](auto &a, auto &b) { return a.count > b.count; });
  for (auto [i, line] : llvm::enumerate(lines))
    llvm::outs() << llvm::format("%8llu %-22s", static_cast<unsigned long long>(line.count),
                                 static_cast<const char *>(line.name))
                 << (i % 4 == 3 ? "\n" : "");
  llvm::outs() << "\ncompilation, ms:";
  for (const Report::Line &line : report.phases)
    if (line.name[0])
      llvm::outs() << " " << line.name << " " << line.count;
  llvm::outs() << "\n";
  return failures;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Random Tile IR programs: interpreter against passes and compiled code");
  app.add_option("--seed", options.seed, "of the first program");
  app.add_option("--count", options.count, "number of programs");
  app.add_option("--seconds", options.seconds, "run this long instead");
  app.add_option("--check", options.check, "only checks whose name starts so: round-trip, canonicalize, cpu/avx2, ...");
  app.add_option("--skip", options.skip, "no checks whose name starts so");
  app.add_option("--replay", options.replay, "a file or folder of programs to check before the random ones");
  app.add_option("--emit", options.emit, "with --replay FILE --check cpu/... or sim/...: print it after this phase");
  app.add_option("--max-failures", options.maxFailures, "stop after this many");
  app.add_option("--attempts", options.attempts, "of shrinking");
  app.add_flag("--all-variants", options.allVariants, "many forms of each target's check instead of one per program");
  app.add_flag("--print", options.print, "the programs");
  app.add_flag("--no-shrink", options.noShrink, "report failing programs as generated");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Report *report = makeReport();
  if (!report)
    return 2;
  int failures = options.replay.empty() ? 0 : replay(options, *report);
  if (options.replay.empty() || app.count("--seed") || app.count("--count"))
    failures += fuzz(options, *report);
  return failures ? 1 : 0;
}
