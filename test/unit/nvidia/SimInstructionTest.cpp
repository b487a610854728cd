// SPDX-License-Identifier: Apache-2.0
//
// Every one-instruction kernel on the simulator: nothing to be found, whatever the seed, and the GPU's result where one
// was recorded.
#include "test/nvidia/Instructions.h"
#include "test/unit/nvidia/SimHarness.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace tenon::test {
namespace {

/// The files of test/nvidia/recorded.tar by name: what test/gpu/record wrote on an H200. A tar file is a header of 512
/// bytes for each file (its name first, its size in octal at 124), then the file, filled up to a multiple of 512.
const std::map<std::string, std::vector<uint8_t>> &recordedOutputs() {
  static const auto outputs = [] {
    std::ifstream file(TENON_TEST_RECORDED, std::ios::binary);
    EXPECT_TRUE(file) << "cannot read " TENON_TEST_RECORDED;
    std::map<std::string, std::vector<uint8_t>> found;
    char header[512];
    while (file.read(header, sizeof header) && header[0]) {
      std::vector<uint8_t> bytes(std::stoul(std::string(header + 124, 11), nullptr, 8));
      file.read(reinterpret_cast<char *>(bytes.data()), bytes.size());
      file.seekg((512 - bytes.size() % 512) % 512, std::ios::cur);
      found[header] = std::move(bytes);
    }
    return found;
  }();
  return outputs;
}

std::vector<sim::TensorMap> mapsOf(const InstructionTest &test, SimBuffer &in, SimBuffer &out) {
  std::vector<sim::TensorMap> maps;
  for (const TestMap &from : test.maps) {
    sim::TensorMap map = tensorMap((from.output ? out : in).address() + from.place, from.elementBytes, from.sizes,
                                   from.box, from.swizzleBytes);
    std::copy(from.strides.begin(), from.strides.end(), map.strides);
    maps.push_back(map);
  }
  return maps;
}

class Instruction : public testing::TestWithParam<InstructionTest> {};

TEST_P(Instruction, AgreesWithTheGpu) {
  const InstructionTest &test = GetParam();
  SimKernel kernel(test.mlir);
  SimBuffer in("in", test.input.size(), /*writable=*/false);
  std::memcpy(in.data(), test.input.data(), test.input.size());
  std::vector<uint8_t> first;
  for (uint64_t seed : {0, 1, 2}) {
    SimBuffer out("out", test.outputBytes);
    sim::SimOptions options;
    options.seed = seed;
    EXPECT_EQ(runSim(kernel, {&in, &out}, test.cluster, options, {}, mapsOf(test, in, out)).text(), "");
    std::vector<uint8_t> actual(out.data(), out.data() + out.bytes());
    if (seed == 0)
      first = actual;
    else
      EXPECT_EQ(first, actual) << "seed " << seed;
  }
  auto recorded = recordedOutputs().find(test.name + ".bin");
  if (recorded == recordedOutputs().end())
    GTEST_SKIP() << "not recorded on a GPU yet: the simulator's output was compared with itself alone";
  EXPECT_EQ(difference(test, recorded->second, first), "");
}

/// What no test reads any more should not stay in the archive.
TEST(Recorded, BelongToTests) {
  std::map<std::string, std::vector<uint8_t>> left = recordedOutputs();
  EXPECT_GT(left.size(), 100u);
  for (const InstructionTest &test : instructionTests())
    left.erase(test.name + ".bin");
  for (const auto &[name, bytes] : left)
    ADD_FAILURE() << name;
}

INSTANTIATE_TEST_SUITE_P(All, Instruction, testing::ValuesIn(instructionTests()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace tenon::test
