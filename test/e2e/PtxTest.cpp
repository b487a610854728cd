// SPDX-License-Identifier: Apache-2.0
//
// Every kernel of the zoo as PTX; assembled where ptxas is at hand.
#include "tenon/kernels/Zoo.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace tenon;

namespace {

bool havePtxas() { return std::system("command -v ptxas > /dev/null 2>&1") == 0; }

class Ptx : public testing::TestWithParam<std::string> {};

TEST_P(Ptx, Assembles) {
  const zoo::Entry &entry = zoo::find(GetParam());
  Problem problem = entry.makeProblem(entry.testShapes.front(), entry.dtypes.front(), 1);
  for (const char *gpu : {"sm_80", "sm_90", "sm_90a"}) {
    LaunchOptions options;
    options.params = problem.params;
    options.compile.gpu = gpu;
    std::string text = emit(entry.kernel, problem.arguments, "ptx", options);
    EXPECT_NE(text.find(".visible .entry " + entry.kernel.name()), std::string::npos);
    EXPECT_NE(text.find(std::string(".target ") + gpu), std::string::npos);
    if (!havePtxas())
      continue;
    auto path = std::filesystem::temp_directory_path() / ("tenon-" + entry.name + "-" + std::to_string(::getpid()) + ".ptx");
    std::ofstream(path) << text;
    std::string command = std::string("ptxas -arch=") + gpu + " -o /dev/null " + path.string();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::filesystem::remove(path);
  }
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const zoo::Entry &entry : zoo::entries())
    result.push_back(entry.name);
  return result;
}
INSTANTIATE_TEST_SUITE_P(Zoo, Ptx, testing::ValuesIn(names()), [](const auto &info) { return info.param; });

TEST(Ptx, RefusesWhatItCannotDo) {
  Kernel prints("prints(x)", [](View x) {
    Index i = grid(x.size(0));
    device_print("i", i);
  });
  Tensor x = Tensor::zeros(f32, {4});
  auto messageOf = [&](const char *gpu) -> std::string {
    LaunchOptions options;
    options.compile.gpu = gpu;
    try {
      emit(prints, {x}, "ptx", options);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(messageOf("sm_90a").find("prints or asserts"), std::string::npos);
  EXPECT_NE(messageOf("sm_12").find("unknown architecture \"sm_12\""), std::string::npos);
}

} // namespace
