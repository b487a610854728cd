// SPDX-License-Identifier: Apache-2.0
#include "tenon/base/Error.h"
#include "tenon/measure/Rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

using namespace tenon;

namespace {

Tensor counting(IndexList sizes) {
  Tensor tensor = Tensor::empty(DType::f32, sizes);
  auto *values = static_cast<float *>(tensor.data());
  std::iota(values, values + tensor.elements(), 0.0f);
  return tensor;
}

Tensor copyOf(const Tensor &tensor) { return copyArguments({tensor}).at(0).tensor(); }

/// The same to a kernel, in memory of its own.
void expectSameElsewhere(const Tensor &copy, const Tensor &original) {
  EXPECT_EQ(copy.dtype(), original.dtype());
  EXPECT_TRUE(std::ranges::equal(copy.sizes(), original.sizes()));
  EXPECT_TRUE(std::ranges::equal(copy.strides(), original.strides()));
  EXPECT_FALSE(copy.overlaps(original));
  copy.checkInsideBuffer();
  Tensor found = copy.clone(), expected = original.clone();
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.bufferBytes()), 0);
}

TEST(CopyArguments, ValuesOfEveryType) {
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i64,
                     DType::i32, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8,
                     DType::boolean}) {
    SCOPED_TRACE(nameOf(type));
    Tensor tensor = Tensor::empty(type, {5, 7});
    tensor.fillRandom(3, 0, 100);
    expectSameElsewhere(copyOf(tensor), tensor);
  }
}

TEST(CopyArguments, Strides) {
  Tensor whole = counting({4, 6, 5});
  struct View {
    const char *what;
    Tensor tensor;
  };
  const View views[] = {
      {"whole", whole},
      {"transposed", whole.transpose({2, 0, 1})},
      {"slice", whole.slice(1, 2, 3)},
      {"every other", whole.slice(2, 1, 2, 2)},
      {"backwards", whole.slice(2, 4, 5, -1)},
      {"backwards, every other", whole.slice(1, 5, 3, -2)},
      {"backwards in all", whole.slice(0, 3, 4, -1).slice(1, 5, 6, -1).slice(2, 4, 5, -1)},
      {"backwards inside", whole.slice(1, 1, 4).slice(0, 2, 2, -1)},
      {"one row", whole.slice(0, 3, 1)},
      {"rank 0", counting({})},
      {"rank 5", counting({2, 1, 3, 1, 2})},
  };
  for (const View &view : views) {
    SCOPED_TRACE(view.what);
    expectSameElsewhere(copyOf(view.tensor), view.tensor);
  }
}

TEST(CopyArguments, StridesOfBorrowedMemory) {
  float values[12];
  std::iota(values, values + 12, 0.0f);
  Tensor broadcast = Tensor::borrow(values, sizeof values, DType::f32, {3, 4}, {0, 1});
  expectSameElsewhere(copyOf(broadcast), broadcast);
  Tensor overlapping = Tensor::borrow(values, sizeof values, DType::f32, {5, 4}, {2, 1});
  expectSameElsewhere(copyOf(overlapping), overlapping);
  // The stride of a dimension of one element is never taken, and may lead anywhere.
  Tensor single = Tensor::borrow(values, sizeof values, DType::f32, {1, 4}, {-1000, 1});
  expectSameElsewhere(copyOf(single), single);
}

TEST(CopyArguments, EmptyTensors) {
  for (const Tensor &empty : {Tensor(), Tensor::empty(DType::f16, {0, 3}), counting({4, 3}).slice(0, 2, 0),
                              counting({4, 3}).slice(0, 3, 4, -1).slice(1, 1, 0)}) {
    Tensor copy = copyOf(empty);
    EXPECT_EQ(copy.dtype(), empty.dtype());
    EXPECT_TRUE(std::ranges::equal(copy.sizes(), empty.sizes()));
    EXPECT_EQ(copy.elements(), 0);
  }
}

TEST(CopyArguments, NumbersStayNumbers) {
  Arguments copy = copyArguments({int64_t(-7), 2.5, counting({2}), uint8_t(3)});
  ASSERT_EQ(copy.size(), 4u);
  EXPECT_EQ(std::get<int64_t>(copy[0].value()), -7);
  EXPECT_EQ(std::get<double>(copy[1].value()), 2.5);
  EXPECT_TRUE(copy[2].isTensor());
  EXPECT_EQ(std::get<int64_t>(copy[3].value()), 3);
  EXPECT_TRUE(copyArguments({}).empty());
}

TEST(CopyArguments, CopiesAreIndependent) {
  Tensor original = counting({3});
  Tensor first = copyOf(original), second = copyOf(original);
  first.set({1}, 10);
  original.set({1}, 20);
  EXPECT_EQ(first.get({1}), 10);
  EXPECT_EQ(second.get({1}), 1);
  EXPECT_EQ(original.get({1}), 20);
}

TEST(CopyArguments, ViewsOfOneBufferStayViewsOfOneBuffer) {
  Tensor whole = counting({4, 6});
  Arguments copy =
      copyArguments({whole, whole, whole.transpose({1, 0}), whole.slice(0, 1, 2), whole.slice(1, 5, 6, -1)});
  copy[0].tensor().set({2, 1}, 100);
  EXPECT_EQ(copy[1].tensor().get({2, 1}), 100);
  EXPECT_EQ(copy[2].tensor().get({1, 2}), 100);
  EXPECT_EQ(copy[3].tensor().get({1, 1}), 100);
  EXPECT_EQ(copy[4].tensor().get({2, 4}), 100);
  EXPECT_EQ(whole.get({2, 1}), 13);
}

TEST(CopyArguments, DisjointViewsKeepTheirDistance) {
  Tensor whole = counting({10});
  Tensor left = whole.slice(0, 0, 4), right = whole.slice(0, 6, 4);
  Arguments copy = copyArguments({right, left});
  EXPECT_FALSE(copy[0].tensor().overlaps(copy[1].tensor()));
  EXPECT_EQ(static_cast<float *>(copy[0].tensor().data()) - static_cast<float *>(copy[1].tensor().data()), 6);
}

TEST(CopyArguments, BuffersOfTheirOwnStaySo) {
  Tensor a = counting({4}), b = counting({4});
  Arguments copy = copyArguments({a, b});
  EXPECT_FALSE(copy[0].tensor().overlaps(copy[1].tensor()));
  copy[0].tensor().fill(9);
  EXPECT_EQ(copy[1].tensor().get({3}), 3);
}

TEST(CopyArguments, CopyOutlivesTheOriginalAndTheOtherCopies) {
  bool released = false;
  float values[] = {1, 2, 3};
  Tensor kept;
  {
    Tensor borrowed = Tensor::borrow(values, sizeof values, DType::f32, {3}, {}, [&] { released = true; });
    kept = copyArguments({borrowed, borrowed.slice(0, 1, 2)}).at(1).tensor();
  }
  EXPECT_TRUE(released); // a copy holds nothing of the original
  std::ranges::fill(values, 0.0f);
  EXPECT_EQ(kept.get({0}), 2);
  EXPECT_EQ(kept.get({1}), 3);
}

TEST(CopyArguments, AlignmentIsKept) {
  // It decides which code a launch takes.
  Tensor whole = counting({64});
  for (int64_t begin : {0, 1, 4, 16})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copyOf(whole.slice(0, begin, 8)).data()) % Buffer::alignment,
              reinterpret_cast<uintptr_t>(whole.slice(0, begin, 8).data()) % Buffer::alignment);
}

TEST(CopyArguments, TensorThatLeavesItsBufferIsRefused) {
  float values[4] = {};
  EXPECT_THROW(copyOf(Tensor::borrow(values, sizeof values, DType::f32, {5})), Error);
  EXPECT_THROW(copyOf(Tensor::borrow(values, sizeof values, DType::f32, {2}, {-1})), Error);
}

// --- Sets in turn.

TEST(Rotation, SetsComeInTurnAndAreIndependent) {
  Rotation rotation({counting({256}), 5}, {.cacheBytes = 2048, .maxBytes = size_t(1) << 20});
  ASSERT_EQ(rotation.bytesPerSet(), 1024u);
  ASSERT_EQ(rotation.sets(), 6u);
  std::set<const void *> seen;
  for (size_t i = 0; i < rotation.sets(); ++i) {
    const Arguments &set = rotation.next();
    ASSERT_EQ(set.size(), 2u);
    EXPECT_EQ(std::get<int64_t>(set[1].value()), 5);
    EXPECT_EQ(set[0].tensor().get({255}), 255); // whatever was written to the sets before it
    set[0].tensor().fill(-1);
    seen.insert(set[0].tensor().data());
  }
  EXPECT_EQ(seen.size(), rotation.sets());
  const void *first = rotation.next()[0].tensor().data();
  for (size_t i = 1; i < rotation.sets(); ++i)
    EXPECT_NE(rotation.next()[0].tensor().data(), first);
  EXPECT_EQ(rotation.next()[0].tensor().data(), first);
}

TEST(Rotation, AllButOneExceedTwiceTheCache) {
  for (size_t cache : {1000, 4096, 100000})
    for (int64_t elements : {1, 100, 256, 511, 512, 513, 5000}) {
      Rotation rotation({counting({elements})},
                        {.cacheBytes = cache, .maxBytes = size_t(1) << 30, .maxSets = size_t(1) << 20});
      size_t bytes = rotation.bytesPerSet();
      EXPECT_EQ(bytes, static_cast<size_t>(elements) * 4);
      EXPECT_TRUE(rotation.cold());
      if (bytes > 2 * cache) {
        EXPECT_EQ(rotation.sets(), 1u); // evicts itself
        continue;
      }
      EXPECT_GT((rotation.sets() - 1) * bytes, 2 * cache);
      EXPECT_LE((rotation.sets() - 2) * bytes, 2 * cache) << "more than needed";
    }
}

TEST(Rotation, MemoryIsLimited) {
  Rotation rotation({counting({256})}, {.cacheBytes = 100000, .maxBytes = 10000});
  EXPECT_EQ(rotation.sets(), 9u);
  EXPECT_LE(rotation.sets() * rotation.bytesPerSet(), 10000u);
  EXPECT_FALSE(rotation.cold());
}

TEST(Rotation, LimitThatIsJustEnough) {
  EXPECT_TRUE(Rotation({counting({256})}, {.cacheBytes = 2048, .maxBytes = 6 * 1024}).cold());
  EXPECT_FALSE(Rotation({counting({256})}, {.cacheBytes = 2048, .maxBytes = 6 * 1024 - 1}).cold());
}

TEST(Rotation, OneSetIsAlwaysThere) {
  Tensor tensor = counting({256});
  Rotation rotation({tensor}, {.cacheBytes = 100000, .maxBytes = 1});
  EXPECT_EQ(rotation.sets(), 1u);
  EXPECT_FALSE(rotation.cold());
  EXPECT_EQ(rotation.next()[0].tensor().data(), tensor.data()); // without a copy, which might not fit
  EXPECT_EQ(rotation.next()[0].tensor().data(), tensor.data());
}

TEST(Rotation, SetsAreLimited) {
  Rotation rotation({counting({1})}, {.cacheBytes = size_t(1) << 20, .maxBytes = size_t(1) << 30, .maxSets = 10});
  EXPECT_EQ(rotation.sets(), 10u);
  EXPECT_FALSE(rotation.cold());
}

TEST(Rotation, ABufferCountsOnce) {
  Tensor whole = counting({16, 16}), other = counting({10});
  Arguments arguments = {whole, whole.transpose({1, 0}), whole.slice(0, 15, 16, -1), other, 1.5};
  EXPECT_EQ(Rotation(arguments, {.cacheBytes = 1, .maxBytes = 1}).bytesPerSet(), 1024u + 40u);
}

TEST(Rotation, InPlaceArgumentsStaySoInEverySet) {
  Tensor tensor = counting({256});
  Rotation rotation({tensor, tensor.slice(0, 255, 256, -1)}, {.cacheBytes = 2048, .maxBytes = size_t(1) << 20});
  ASSERT_GT(rotation.sets(), 1u);
  for (size_t i = 0; i < rotation.sets(); ++i) {
    const Arguments &set = rotation.next();
    set[0].tensor().set({0}, 77);
    EXPECT_EQ(set[1].tensor().get({255}), 77);
  }
}

TEST(Rotation, NumbersAlone) {
  Rotation rotation({1, 2.5}, {.cacheBytes = 1000, .maxBytes = 1000, .maxSets = 3});
  EXPECT_EQ(rotation.bytesPerSet(), 0u);
  EXPECT_GE(rotation.sets(), 1u);
  EXPECT_EQ(rotation.next().size(), 2u);
}

TEST(Rotation, DefaultsAreThoseOfThisMachine) {
  Rotation rotation({counting({1024})});
  EXPECT_GE(rotation.sets(), 1u);
  EXPECT_LE(rotation.sets(), Rotation::Options().maxSets);
}

} // namespace
