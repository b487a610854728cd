// SPDX-License-Identifier: Apache-2.0
//
// Run in a sandbox, look for damage, compare with the reference; then once more in a fresh one, and compare the two.
#include "tenon/verify/Verify.h"

#include "tenon/verify/Judge.h"
#include "tenon/verify/Sandbox.h"
#include "tenon/verify/Values.h"

#include <algorithm>

namespace tenon {
namespace {

bool contains(const std::vector<size_t> &list, size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void check(const Problem &problem) {
  if (!problem.reference || !problem.plain)
    throw Error("problem '" + problem.label + "' cannot be judged: it needs both a reference and a plain computation");
  if (problem.outputs.empty())
    throw Error("problem '" + problem.label + "' names no outputs, so that nothing would be judged; list the positions " +
                "of the tensors that the kernel writes");
  for (size_t place : problem.inPlace)
    if (!contains(problem.outputs, place))
      throw Error("problem '" + problem.label + "' says that argument " + std::to_string(place) +
                  " is changed in place, but does not list it among the outputs");
  for (const Argument &argument : problem.arguments)
    if (argument.isTensor() && argument.tensor().device().isCuda())
      throw Error("problem '" + problem.label + "' has a tensor on " + argument.tensor().device().str() +
                  "; a problem's tensors are in host memory, and copied to where the kernel runs");
  for (size_t output : problem.outputs)
    if (output >= problem.arguments.size() || !problem.arguments[output].isTensor())
      throw Error("problem '" + problem.label + "' names argument " + std::to_string(output) +
                  " as an output, but it is no tensor; list the positions of the tensors that the kernel writes");
}

/// Copies of the arguments that share nothing, row-major: the reference may then write an output while it still reads
/// the input that the problem keeps in the same memory.
Arguments separateCopies(const Problem &problem, bool widen) {
  Arguments copies;
  for (size_t i = 0; i < problem.arguments.size(); ++i) {
    const Argument &argument = problem.arguments[i];
    if (!argument.isTensor()) {
      copies.push_back(argument);
      continue;
    }
    const Tensor &tensor = argument.tensor();
    bool isInput = !contains(problem.outputs, i) || contains(problem.inPlace, i);
    DType type = widen && isFloat(tensor.dtype()) ? DType::f64 : tensor.dtype();
    if (!isInput)
      copies.push_back(Tensor::zeros(type, tensor.sizes()));
    else
      copies.push_back(type == tensor.dtype() ? tensor.clone() : convert(tensor, type));
  }
  return copies;
}

/// What a function of the problem (its reference or its plain computation) writes, rounded to the outputs' types.
std::vector<Tensor> wantedFrom(const Problem &problem, const std::function<void(Arguments &)> &function, bool widen) {
  Arguments copies = separateCopies(problem, widen);
  function(copies);
  std::vector<Tensor> wanted;
  for (size_t output : problem.outputs) {
    const Tensor &tensor = copies[output].tensor();
    DType type = problem.arguments[output].tensor().dtype();
    wanted.push_back(tensor.dtype() == type ? tensor : convert(tensor, type));
  }
  return wanted;
}

/// How close to failing, for choosing which output's figures to report.
double severity(const OutputComparison &c) { return c.allowed > 0 ? c.error / c.allowed : c.error; }

Verdict verifyNamed(const Problem &problem, const std::function<void(const Arguments &)> &subject,
                    const std::vector<std::string> &names) {
  check(problem);
  std::vector<Tensor> reference = wantedFrom(problem, problem.reference, /*widen=*/true);
  std::vector<Tensor> plain = wantedFrom(problem, problem.plain, /*widen=*/false);

  Verdict verdict;
  double worst = -1;
  auto outputOf = [&](size_t i, const Sandbox &run) { return run.arguments()[problem.outputs[i]].tensor(); };
  auto outputName = [&](size_t i) { return "the output " + argumentName(problem.outputs[i], names); };
  auto runIn = [&](const Sandbox &sandbox) {
    subject(sandbox.arguments());
    if (auto damage = sandbox.damage(names)) {
      verdict.reason = *damage;
      return;
    }
    for (size_t i = 0; i < problem.outputs.size(); ++i) {
      OutputComparison comparison = judge(outputOf(i, sandbox), reference[i], plain[i], sandbox.poisonOf(problem.outputs[i]));
      if (comparison.complaint && verdict.reason.empty())
        verdict.reason = outputName(i) + " " + *comparison.complaint;
      if (severity(comparison) > worst || comparison.complaint) {
        worst = severity(comparison);
        verdict.error = comparison.error;
        verdict.plainError = comparison.plainError;
        verdict.allowed = comparison.allowed;
      }
      if (comparison.complaint)
        return;
    }
  };

  // The second run starts from another poison, so that an integer or a NaN that is right only because nobody wrote it
  // shows.
  Sandbox first(problem, /*alternate=*/false);
  runIn(first);
  if (!verdict.reason.empty())
    return verdict;
  Sandbox second(problem, /*alternate=*/true);
  runIn(second);
  if (!verdict.reason.empty())
    return verdict;
  for (size_t i = 0; problem.deterministic && i < problem.outputs.size(); ++i)
    if (auto difference = firstDifference(outputOf(i, first), outputOf(i, second))) {
      verdict.reason = outputName(i) + " differs between two runs on the same inputs " + *difference;
      return verdict;
    }
  verdict.passed = true;
  return verdict;
}

} // namespace

Verdict verify(const Problem &problem, const std::function<void(const Arguments &)> &subject) {
  return verifyNamed(problem, subject, {});
}

Verdict verify(const Problem &problem, const Kernel &kernel, LaunchOptions options) {
  // What the caller asks for goes before what the problem suggests: the tuner tries other parameters on one problem.
  options.params.insert(problem.params.begin(), problem.params.end());
  std::vector<std::string> names;
  for (const KernelParameter &parameter : kernel.parameters())
    if (parameter.kind != ParameterKind::param)
      names.push_back(parameter.name);
  return verifyNamed(
      problem,
      [&](const Arguments &arguments) {
        launch(kernel, arguments, options);
        if (options.stream)
          options.stream->synchronize();
      },
      names);
}

} // namespace tenon
