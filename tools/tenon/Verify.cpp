// SPDX-License-Identifier: Apache-2.0
#include "Commands.h"
#include "Format.h"
#include "Options.h"
#include "Progress.h"
#include "Report.h"
#include "Table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::tool {
namespace {

struct VerifyRequest : Request {
  bool each = false;
};

struct Judged {
  Case one;
  Verdict verdict;
};

/// A kernel that cannot even run has failed the check.
Verdict judge(const Case &one, const Request &request) {
  Problem problem = one.problem(request);
  LaunchOptions options = launchOptionsOf(request, one, problem);
  problem.params = options.params;
  try {
    return verify(problem, one.entry->kernel, options);
  } catch (const Error &error) {
    Verdict verdict;
    verdict.reason = error.what();
    return verdict;
  }
}

Table::Cell outcome(bool passed) { return {passed ? "pass" : "FAIL", passed ? Style::good : Style::bad}; }

/// A kernel that did not run has no error to show.
std::string number(const Verdict &verdict, double value) {
  return verdict.passed || verdict.allowed > 0 ? fmt::format("{:.2g}", value) : "-";
}

void printEach(const std::vector<Judged> &all) {
  Table table({{"kernel"}, {"shape"}, {"type"}, {"result"}, {"error", Table::Align::right},
               {"allowed", Table::Align::right}, {"reason", Table::Align::left, Table::Narrow::shrinks}});
  for (const auto &[one, verdict] : all)
    table.add({one.entry->name, shapeText(one.shape), std::string(nameOf(one.dtype)), outcome(verdict.passed),
               number(verdict, verdict.error), number(verdict, verdict.allowed), verdict.reason});
  table.print();
}

/// How much of what is allowed the error takes.
double closeness(const Verdict &verdict) {
  return verdict.allowed > 0 ? verdict.error / verdict.allowed : verdict.error > 0 ? HUGE_VAL : 0;
}

/// A line per kernel and type, then every failure.
void printSummary(const std::vector<Judged> &all) {
  Table table({{"kernel"}, {"type"}, {"result"}, {"passed", Table::Align::right}, {"worst error", Table::Align::right},
               {"allowed", Table::Align::right}});
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    auto sameGroup = [&](const Judged &other) {
      return other.one.entry == all[begin].one.entry && other.one.dtype == all[begin].one.dtype;
    };
    size_t passed = 0;
    const Verdict *worst = &all[begin].verdict;
    for (; end < all.size() && sameGroup(all[end]); ++end) {
      const Verdict &verdict = all[end].verdict;
      passed += verdict.passed;
      if (std::pair(closeness(verdict), verdict.allowed) > std::pair(closeness(*worst), worst->allowed))
        worst = &verdict;
    }
    const Case &one = all[begin].one;
    table.add({one.entry->name, std::string(nameOf(one.dtype)), outcome(passed == end - begin),
               fmt::format("{}/{}", passed, end - begin), fmt::format("{:.2g}", worst->error),
               fmt::format("{:.2g}", worst->allowed)});
  }
  table.print();
  for (const auto &[one, verdict] : all)
    if (!verdict.passed)
      fmt::print("{}: {}\n", one.label(), verdict.reason);
}

int verifyKernels(const VerifyRequest &request) {
  Report report("verify", request.json);
  std::vector<Case> cases = casesOf(request, Defaults::everyTest);
  std::vector<Judged> all;
  {
    Progress progress(cases.size());
    for (const Case &one : cases) {
      progress.show(one.label());
      all.push_back({one, judge(one, request)});
      progress.advance();
      report.add({{"kernel", one.entry->name}, {"shape", one.shape}, {"dtype", nameOf(one.dtype)},
                  {"target", request.target}, {"isa", request.isa}, {"seed", request.seed},
                  {"verdict", toJson(all.back().verdict)}});
    }
  }
  size_t failed = std::count_if(all.begin(), all.end(), [](const Judged &one) { return !one.verdict.passed; });
  if (!report.quiet()) {
    request.all && !request.each ? printSummary(all) : printEach(all);
    fmt::print("{} of {} passed on {}\n", all.size() - failed, all.size(), request.target);
  }
  report.write();
  return failed ? checkFailed : done;
}

} // namespace

Command addVerify(CLI::App &app) {
  CLI::App *command = app.add_subcommand("verify", "Check kernels against their references");
  auto request = std::make_shared<VerifyRequest>();
  addKernelOption(*command, *request, Kernels::oneOrAll);
  addProblemOptions(*command, *request);
  addTargetOptions(*command, *request);
  command->add_flag("--each", request->each, "With --all: a line for each case, not for each kernel and type");
  addJsonOption(*command, request->json);
  addExamples(*command, {"tenon verify softmax", "tenon verify softmax --shape 17x1023 --dtype bf16",
                         "tenon verify --all --target interpreter --json verify.json",
                         "tenon verify attention --dtype bf16 --target sim"});
  return [request] { return verifyKernels(*request); };
}

} // namespace tenon::tool
