// SPDX-License-Identifier: Apache-2.0
//
// Every one-instruction kernel on the simulator: nothing to be found, whatever the seed, and the GPU's result where one
// was recorded.
#include "test/nvidia/Instructions.h"
#include "test/unit/nvidia/SimHarness.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tenon::test {
namespace {

class Instruction : public testing::TestWithParam<InstructionTest> {};

TEST_P(Instruction, AgreesWithTheGpu) {
  const InstructionTest &test = GetParam();
  SimKernel kernel(test.mlir);
  SimBuffer in("in", test.input.size(), /*writable=*/false);
  std::memcpy(in.data(), test.input.data(), test.input.size());
  std::filesystem::path recorded = std::filesystem::path(TENON_TEST_RECORDED_DIR) / (test.name + ".bin");
  std::vector<uint8_t> first;
  for (uint64_t seed : {0, 1, 2}) {
    SimBuffer out("out", test.outputBytes);
    sim::SimOptions options;
    options.seed = seed;
    EXPECT_EQ(runSim(kernel, {&in, &out}, test.cluster, options).text(), "");
    std::vector<uint8_t> actual(out.data(), out.data() + out.bytes());
    if (seed == 0)
      first = actual;
    else
      EXPECT_EQ(first, actual) << "seed " << seed;
  }
  if (std::filesystem::exists(recorded)) {
    std::ifstream file(recorded, std::ios::binary);
    std::vector<uint8_t> expected((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(difference(test, expected, first), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, Instruction, testing::ValuesIn(instructionTests()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace tenon::test
