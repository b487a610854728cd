// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/kernels/Zoo.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

/// What the commands that work on kernels share: which kernel, on what, how.
namespace tenon::tool {

/// As typed. Empty lists mean the command's defaults.
struct Request {
  std::string kernel;
  bool all = false;
  std::vector<std::string> shapes, dtypes, params;
  std::string target = "cpu", isa = "native", gpu = "sm_90a";
  int threads = 0, warps = 0, cluster = 0, stages = 0, split = 0;
  bool shareTail = false, pingPong = false;
  std::string without;
  uint64_t seed = 1;
  std::string json;
};

enum class Kernels : unsigned char { one, oneOrAll };
void addKernelOption(CLI::App &app, Request &request, Kernels kernels);
void addProblemOptions(CLI::App &app, Request &request); ///< --shape --dtype --param --seed
void addTargetOptions(CLI::App &app, Request &request);  ///< --target --isa --threads, and the GPU's
void addGpuOptions(CLI::App &app, Request &request);     ///< --gpu --warps --cluster --stages --split --share-tail --ping-pong --without
void addWithoutOption(CLI::App &app, std::string &without); ///< --without, which addGpuOptions adds too
void addIsaOption(CLI::App &app, Request &request);
void addJsonOption(CLI::App &app, std::string &file);
/// Refuses what is no number, or none of these.
CLI::Validator between(int least, int most);
CLI::Validator between(double least, double most);
/// The indented block below the options of --help.
void addExamples(CLI::App &app, const std::vector<std::string> &commands);

/// One kernel of the zoo on one shape and type.
struct Case {
  const zoo::Entry *entry;
  std::vector<int64_t> shape;
  DType dtype;

  Problem problem(const Request &request) const;
  std::string label() const; ///< "softmax 128x512 f32"
};

/// What a command does when no shape or type is given.
enum class Defaults : unsigned char {
  demo,     ///< the demo shape in the default type; interpreter and simulator, being slow, get a small shape
  everyTest ///< every test shape in every type
};
/// The cases asked for; throws Error, one sentence, for whatever does not exist or does not fit.
std::vector<Case> casesOf(const Request &request, Defaults defaults);
/// For commands that take one shape and one type.
Case caseOf(const Request &request, Defaults defaults);

/// The options of a launch: the problem's parameters, overridden by --param.
LaunchOptions launchOptionsOf(const Request &request, const Case &one, const Problem &problem);

} // namespace tenon::tool
