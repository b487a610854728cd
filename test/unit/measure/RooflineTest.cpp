// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Roofline.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

using namespace tenon;

namespace {

/// Which of several instructions is the fastest is the machine's affair at the moment; how much each does is not.
TEST(Roofline, PeaksAreThereAndNarrowTypesDoNoLessAtATime) {
  Peaks peaks = measurePeaks(1, 0.002);
  for (const Peak *peak : {&peaks.f32, &peaks.f32Products, &peaks.bf16, &peaks.int8}) {
    EXPECT_GT(peak->operationsPerSecond, 0);
    EXPECT_FALSE(peak->instructions.empty());
    EXPECT_GT(peak->loop(1), 0);
  }
  EXPECT_GE(peaks.bf16.loop(1), peaks.f32.loop(1));
  EXPECT_GE(peaks.int8.loop(1), peaks.f32.loop(1));
}

TEST(Roofline, TheRateOfAMomentIsThere) {
  Peaks peaks = measurePeaks(1, 0.002);
  for (const Peak *peak : {&peaks.f32, &peaks.f32Products, &peaks.bf16, &peaks.int8})
    for (int threads : {1, 2})
      EXPECT_GT(rateNow(*peak, threads, 0.002), 0);
}

/// Every way of copying is tried when the copy is made, so every one has to be right whatever the sizes and addresses.
TEST(Roofline, CopiesEveryByteAndNoOther) {
  for (size_t bytes : {1u, 63u, 64u, 65u, 1000u, 65536u, 200001u})
    for (size_t misaligned : {0u, 3u})
      for (int threads : {1, 2}) {
        std::vector<unsigned char> from(bytes + 128), to(bytes + 128, 7), other(bytes + 128, 7);
        std::iota(from.begin(), from.end(), 0);
        HostCopy copy({{from.data() + misaligned, to.data() + 16}, {from.data() + misaligned, other.data() + 64}},
                      bytes, threads);
        std::fill(to.begin(), to.end(), 7);
        std::fill(other.begin(), other.end(), 7);
        copy();
        copy(); // two places, taken in turn
        EXPECT_EQ(std::memcmp(to.data() + 16, from.data() + misaligned, bytes), 0) << bytes;
        EXPECT_EQ(std::memcmp(other.data() + 64, from.data() + misaligned, bytes), 0) << bytes;
        EXPECT_EQ(to[15], 7);
        EXPECT_EQ(to[16 + bytes], 7);
        EXPECT_FALSE(copy.way().empty());
      }
}

/// Where one way of storing is asked for, the other is not taken, however fast.
TEST(Roofline, CopiesInTheWayAskedFor) {
  std::vector<unsigned char> from(4096, 1), to(4096);
  for (int threads : {1, 2}) {
    HostCopy plain({{from.data(), to.data()}}, from.size(), threads, {HostCopy::Stores::memcpy});
    HostCopy past({{from.data(), to.data()}}, from.size(), threads, {HostCopy::Stores::streaming});
    EXPECT_TRUE(plain.way().starts_with("memcpy")) << plain.way();
    EXPECT_TRUE(past.way().starts_with("streaming stores")) << past.way();
  }
}

/// Every way of reading is tried too, and each has to have read every byte and no other.
TEST(Roofline, ReadsEveryByteAndNoOther) {
  for (size_t bytes : {1u, 63u, 64u, 66u, 1000u, 65536u, 200001u})
    for (size_t misaligned : {0u, 3u})
      for (int threads : {1, 2}) {
        std::vector<unsigned char> from(bytes + 128, 255);
        std::iota(from.begin() + misaligned, from.begin() + misaligned + bytes, 1);
        uint32_t sum = 0;
        for (size_t i = 0; i < bytes; ++i)
          sum += static_cast<uint32_t>(from[misaligned + i]) << (i < bytes / 4 * 4 ? i % 4 * 8 : 0);
        HostRead read({from.data() + misaligned}, bytes, threads);
        EXPECT_EQ(read(), sum) << bytes;
        EXPECT_TRUE(read.way().starts_with("reading"));
      }
}

} // namespace
