// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "FakeCuda.h"

#include "tenon/base/Error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

/// Tests against the fake driver; none touches memory that is not allocated at that time.
class Cuda : public testing::Test {
protected:
  static void SetUpTestSuite() { ::setenv("TENON_CUDA_DRIVER", TENON_FAKE_CUDA, 1); }
  void SetUp() override { fake::reset(); }
  void TearDown() override {
    EXPECT_EQ(fake::violations(), 0) << "memory used before it was allocated or after it was freed";
    fake::reset();
  }
};

inline std::string errorOf(auto function) {
  try {
    function();
    return "";
  } catch (const tenon::Error &error) {
    return error.what();
  }
}

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)
