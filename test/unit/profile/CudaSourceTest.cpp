// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cuda/CudaSource.h"

#include "tenon/base/Error.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace tenon;

namespace {

class CudaSource : public testing::Test {
protected:
  static void SetUpTestSuite() { ::setenv("TENON_NVRTC", TENON_FAKE_NVRTC, 1); }
};

TEST_F(CudaSource, BecomesPtxForTheArchitecture) {
  EXPECT_EQ(cuda::whyNoNvrtc(), "");
  std::string ptx = cuda::compileCudaSource("extern \"C\" __global__ void f() {}", "f.cu", "sm_90a");
  EXPECT_NE(ptx.find("--gpu-architecture=compute_90a"), std::string::npos) << ptx;
  EXPECT_NE(ptx.find(".version"), std::string::npos);
}

TEST_F(CudaSource, AnErrorHasTheCompilersWords) {
  try {
    cuda::compileCudaSource("an error", "mine.cu", "sm_80");
    FAIL() << "it compiled";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "mine.cu does not compile: classic.cu(3): error: expected a \";\"");
  }
}

} // namespace
