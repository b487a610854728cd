// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/Tensor.h"

#include "tenon/base/Error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sys/mman.h>

using namespace tenon;

namespace {

std::vector<int64_t> list(std::span<const int64_t> values) { return {values.begin(), values.end()}; }
using Dims = std::vector<int64_t>;

/// 0, 1, 2, ... in row-major order.
Tensor counting(DType dtype, IndexList sizes) {
  Tensor flat = Tensor::empty(dtype, sizes);
  Tensor line = flat.reshape({flat.elements()});
  for (int64_t i = 0; i < flat.elements(); ++i)
    line.set({i}, static_cast<double>(i));
  return flat;
}

void expectError(auto function, const char *part) {
  try {
    function();
    ADD_FAILURE() << "no error; expected one about \"" << part << '"';
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Tensor, EmptyIsRowMajorAndAligned) {
  Tensor t = Tensor::empty(f16, {2, 3, 4});
  EXPECT_EQ(t.dtype(), f16);
  EXPECT_EQ(t.rank(), 3);
  EXPECT_EQ(list(t.sizes()), (Dims{2, 3, 4}));
  EXPECT_EQ(list(t.strides()), (Dims{12, 4, 1}));
  EXPECT_EQ(t.size(1), 3);
  EXPECT_EQ(t.elements(), 24);
  EXPECT_EQ(t.bufferBytes(), 48u);
  EXPECT_EQ(t.data(), t.bufferBegin());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_TRUE(t.isContiguous());
  EXPECT_EQ(t.str(), "f16[2, 3, 4]");
  t.checkInsideBuffer();
}

TEST(Tensor, RankZeroAndEmptyDimensions) {
  Tensor scalar = Tensor::zeros(f64, {});
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  scalar.set({}, 2.5);
  EXPECT_EQ(scalar.get({}), 2.5);
  scalar.fill(-1);
  EXPECT_EQ(scalar.clone().reshape({1, 1}).get({0, 0}), -1);

  Tensor none = Tensor::zeros(f32, {3, 0, 2});
  EXPECT_EQ(none.elements(), 0);
  none.fill(1);
  none.checkInsideBuffer();
  EXPECT_EQ(none.clone().elements(), 0);
  EXPECT_EQ(list(none.reshape({0, 7}).sizes()), (Dims{0, 7}));
  expectError([&] { none.get({0, 0, 0}); }, "has no element [0, 0, 0]");
  EXPECT_EQ(Tensor().elements(), 0);
  Tensor().checkInsideBuffer();
}

TEST(Tensor, RefusesImpossibleShapes) {
  expectError([] { Tensor::empty(f32, {1, 1, 1, 1, 1, 1}); }, "rank 6");
  expectError([] { Tensor::empty(f32, {2, -1}); }, "[2, -1]");
  expectError([] { Tensor::empty(f32, {int64_t(1) << 40, int64_t(1) << 40}); }, "too large");
  expectError([] { Tensor::empty(f32, {int64_t(1) << 40, int64_t(1) << 40, 0}); }, "too large");
  expectError([] { Tensor::empty(f64, {int64_t(1) << 61}); }, "too large"); // elements fit, bytes do not
  float x;
  expectError([&] { Tensor::borrow(&x, 4, f32, {2}, {int64_t(1) << 62}); }, "too large");
  expectError([&] { Tensor::borrow(&x, 4, f32, {2, 3}, {1}); }, "differ in length");
  expectError([] { Tensor::zeros(f32, {2}).size(1); }, "no dimension 1");
  expectError([] { Tensor::zeros(f32, {2}).size(-1); }, "no dimension -1");
}

TEST(Tensor, EveryTypeReadsBackWhatItCanHold) {
  for (DType type : allDTypes) {
    SCOPED_TRACE(nameOf(type));
    Tensor t = Tensor::zeros(type, {3});
    t.set({0}, 1);
    EXPECT_EQ(t.get({0}), 1);
    EXPECT_EQ(t.get({1}), 0);
    t.set({2}, std::numeric_limits<double>::quiet_NaN());
    if (isFloat(type))
      EXPECT_TRUE(std::isnan(t.get({2})));
    else
      EXPECT_EQ(t.get({2}), type == boolean ? 1 : 0);
    t.set({1}, std::numeric_limits<double>::infinity());
    double largest = type == f8e4m3 ? 448 : type == f8e5m2 ? 57344 : std::numeric_limits<double>::infinity();
    if (isFloat(type))
      EXPECT_EQ(t.get({1}), largest);
  }
  Tensor half = Tensor::zeros(f16, {1});
  half.set({0}, 1 + 0x1p-11 + 0x1p-40); // a rounding through f32 would see a tie and go down
  EXPECT_EQ(half.get({0}), 1 + 0x1p-10);
}

TEST(Tensor, IntegersTruncateAndSaturate) {
  Tensor t = Tensor::zeros(i8, {1});
  const std::pair<double, double> cases[] = {{-3.9, -3}, {3.9, 3}, {127.9, 127}, {1e30, 127}, {-1e30, -128}, {-0.5, 0}};
  for (auto [in, out] : cases) {
    t.set({0}, in);
    EXPECT_EQ(t.get({0}), out) << in;
  }
  Tensor u = Tensor::zeros(u64, {1});
  u.set({0}, -5);
  EXPECT_EQ(u.get({0}), 0);
  u.set({0}, 0x1p64);
  EXPECT_EQ(u.getInt({0}), -1);
  EXPECT_EQ(u.get({0}), 0x1p64);
  Tensor s = Tensor::zeros(i64, {1});
  s.set({0}, 0x1p63);
  EXPECT_EQ(s.getInt({0}), std::numeric_limits<int64_t>::max());
  s.set({0}, -0x1p63);
  EXPECT_EQ(s.getInt({0}), std::numeric_limits<int64_t>::min());
}

TEST(Tensor, IntegersAreExactThroughTheIntegerAccess) {
  int64_t odd = (int64_t(1) << 53) + 1;
  for (DType type : {i64, u64}) {
    Tensor t = Tensor::zeros(type, {2});
    t.setInt({1}, odd);
    EXPECT_EQ(t.getInt({1}), odd);
    t.setInt({0}, -1);
    EXPECT_EQ(t.getInt({0}), -1);
  }
  Tensor bytes = Tensor::zeros(u8, {1});
  bytes.setInt({0}, 255);
  EXPECT_EQ(bytes.getInt({0}), 255);
  expectError([&] { bytes.setInt({0}, 256); }, "0 to 255");
  expectError([&] { bytes.setInt({0}, -1); }, "does not fit");
  EXPECT_EQ(bytes.getInt({0}), 255);
  Tensor truth = Tensor::zeros(boolean, {1});
  truth.fillBytes(0x80); // any byte but zero reads as true
  EXPECT_EQ(truth.getInt({0}), 1);
  EXPECT_EQ(truth.get({0}), 1);
  expectError([] { Tensor::zeros(f32, {1}).getInt({0}); }, "use get");
  expectError([] { Tensor::zeros(f32, {1}).setInt({0}, 1); }, "use set");
}

TEST(Tensor, ViewsShareTheBuffer) {
  Tensor t = counting(i32, {3, 4});
  Tensor transposed = t.transpose({1, 0});
  EXPECT_EQ(list(transposed.sizes()), (Dims{4, 3}));
  EXPECT_EQ(transposed.get({3, 1}), t.get({1, 3}));
  EXPECT_FALSE(transposed.isContiguous());
  transposed.set({0, 2}, 99);
  EXPECT_EQ(t.get({2, 0}), 99);

  Tensor middle = t.slice(0, 1, 2).slice(1, 1, 2, 2);
  EXPECT_EQ(list(middle.sizes()), (Dims{2, 2}));
  EXPECT_EQ(middle.get({0, 0}), 5);
  EXPECT_EQ(middle.get({0, 1}), 7);
  EXPECT_EQ(middle.get({1, 1}), 11);

  Tensor backwards = t.slice(1, 3, 4, -1);
  EXPECT_EQ(backwards.get({1, 0}), 7);
  EXPECT_EQ(backwards.get({1, 3}), 4);
  backwards.checkInsideBuffer();

  Tensor copy = middle.clone();
  EXPECT_TRUE(copy.isContiguous());
  EXPECT_EQ(copy.get({1, 0}), middle.get({1, 0}));
  middle.fill(-7);
  EXPECT_EQ(copy.get({0, 0}), 5);
  EXPECT_EQ(t.get({1, 1}), -7);
  EXPECT_EQ(t.get({1, 2}), 6); // between the elements of the view
  middle.fillBytes(0xff);
  EXPECT_EQ(t.get({2, 3}), -1);
  EXPECT_EQ(t.get({2, 2}), 10);
}

TEST(Tensor, ViewsOfAllRanksVisitEveryElementOnce) {
  Tensor t = counting(f32, {2, 3, 2, 3, 2});
  Tensor view = t.transpose({4, 2, 0, 3, 1}).slice(3, 2, 3, -1);
  Tensor copy = view.clone();
  for (int64_t a = 0; a < 2; ++a)
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t c = 0; c < 2; ++c)
        for (int64_t d = 0; d < 3; ++d)
          for (int64_t e = 0; e < 3; ++e)
            ASSERT_EQ(copy.get({a, b, c, d, e}), t.get({c, e, b, 2 - d, a}));
}

TEST(Tensor, RefusesWrongViews) {
  Tensor t = Tensor::zeros(f32, {3, 4});
  expectError([&] { t.transpose({0}); }, "each of its 2 dimensions once");
  expectError([&] { t.transpose({0, 0}); }, "[0, 0]");
  expectError([&] { t.transpose({0, 2}); }, "[0, 2]");
  expectError([&] { t.slice(1, 2, 3); }, "leaves dimension 1");
  expectError([&] { t.slice(1, -1, 1); }, "leaves dimension 1");
  expectError([&] { t.slice(1, 4, 1); }, "leaves dimension 1");
  expectError([&] { t.slice(1, 0, -1); }, "leaves dimension 1");
  expectError([&] { t.slice(1, 0, 2, 0); }, "step must not be 0");
  expectError([&] { t.slice(1, 0, 2, -1); }, "leaves dimension 1");
  expectError([&] { t.slice(1, 0, 3, std::numeric_limits<int64_t>::max()); }, "leaves dimension 1");
  expectError([&] { t.slice(2, 0, 1); }, "no dimension 2");
  EXPECT_EQ(t.slice(1, 4, 0).elements(), 0);
  EXPECT_EQ(t.slice(1, 3, 1, std::numeric_limits<int64_t>::max()).elements(), 3);
  expectError([&] { t.reshape({5}); }, "cannot be reshaped");
  expectError([&] { t.transpose({1, 0}).reshape({12}); }, "clone()");
  expectError([&] { t.get({0}); }, "one index per dimension");
  expectError([&] { t.get({0, 4}); }, "has no element [0, 4]");
  expectError([&] { t.set({-1, 0}, 0); }, "has no element [-1, 0]");
}

TEST(Tensor, BorrowedMemoryIsReleasedOnceByTheLastView) {
  float storage[6] = {0, 1, 2, 3, 4, 5};
  int released = 0;
  {
    Tensor view;
    {
      Tensor t = Tensor::borrow(storage, sizeof storage, f32, {2, 3}, {}, [&] { ++released; });
      EXPECT_EQ(t.get({1, 2}), 5);
      view = t.slice(0, 1, 1);
    }
    EXPECT_EQ(released, 0);
    view.set({0, 0}, 42);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(storage[3], 42);
  EXPECT_THROW(Tensor::borrow(storage, sizeof storage, f32, {-1}, {}, [&] { ++released; }), Error);
  EXPECT_EQ(released, 1);
}

TEST(Tensor, CheckInsideBuffer) {
  alignas(8) float storage[8] = {};
  auto check = [&](size_t bytes, Dims sizes, Dims strides) {
    Tensor::borrow(storage, bytes, f32, sizes, strides).checkInsideBuffer();
  };
  check(32, {8}, {1});
  check(32, {4}, {2});
  check(32, {5, 8}, {0, 1});
  check(0, {0, 100}, {1000, 1});
  check(32, {8, 1}, {1, std::numeric_limits<int64_t>::max()}); // the stride of one element is never used
  expectError([&] { check(32, {9}, {1}); }, "to byte 36 of a buffer of 32 bytes");
  expectError([&] { check(31, {8}, {1}); }, "of a buffer of 31 bytes");
  expectError([&] { check(32, {4}, {3}); }, "correct its sizes or strides");
  expectError([&] { check(32, {2}, {-1}); }, "from byte -4");
  expectError([&] { Tensor::borrow(nullptr, 32, f32, {8}).checkInsideBuffer(); }, "data is null");
  Tensor::borrow(nullptr, 0, f32, {0}).checkInsideBuffer();
  auto *odd = reinterpret_cast<std::byte *>(storage) + 1;
  expectError([&] { Tensor::borrow(odd, 16, f32, {2}).checkInsideBuffer(); }, "not a multiple of its element size");

  Tensor beyond = Tensor::borrow(storage, sizeof storage, f32, {100});
  EXPECT_EQ(beyond.get({7}), 0); // what is there can be read
  expectError([&] { beyond.get({8}); }, "of a buffer of 32 bytes");
  expectError([&] { beyond.fill(0); }, "of a buffer of 32 bytes");
  expectError([&] { beyond.clone(); }, "of a buffer of 32 bytes");
}

TEST(Tensor, Overlap) {
  Tensor t = Tensor::zeros(f32, {4, 4});
  Tensor top = t.slice(0, 0, 2), bottom = t.slice(0, 2, 2);
  EXPECT_TRUE(t.overlaps(t));
  EXPECT_TRUE(top.overlaps(t));
  EXPECT_FALSE(top.overlaps(bottom));
  EXPECT_FALSE(bottom.overlaps(top));
  EXPECT_TRUE(top.overlaps(t.slice(0, 3, 4, -1)));
  EXPECT_FALSE(top.overlaps(bottom.slice(0, 1, 2, -1)));
  EXPECT_FALSE(t.overlaps(Tensor::zeros(f32, {4, 4})));
  EXPECT_FALSE(t.overlaps(t.slice(0, 1, 0)));
  EXPECT_TRUE(t.slice(1, 0, 2, 2).overlaps(t.slice(1, 1, 2, 2))); // interleaved: conservative
}

TEST(Tensor, RandomIsTheSameEverywhere) {
  Tensor t = Tensor::empty(f64, {4});
  t.fillRandom(1, -1, 1);
  Tensor again = Tensor::empty(f64, {2, 2}).transpose({1, 0});
  again.fillRandom(1, -1, 1);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(again.get({i / 2, i % 2}), t.get({i})); // whatever the strides
  // Fixed values: what a seed means must not change between versions or machines.
  EXPECT_EQ(t.get({0}), -0x1.0df2a7bc5e350p-2);
  EXPECT_EQ(t.get({3}), 0x1.1c186c6e4cc8ap-1);
  Tensor other = Tensor::empty(f64, {4});
  other.fillRandom(2, -1, 1);
  EXPECT_NE(other.get({0}), t.get({0}));
  EXPECT_NE(other.get({0}), t.get({1}));
}

TEST(Tensor, RandomIsTheSameHoweverManyFillIt) {
  // So many elements are filled by several threads; those of a transposed tensor by one.
  Tensor many = Tensor::empty(bf16, {1025, 1031}), turned = Tensor::empty(bf16, {1031, 1025}).transpose({1, 0});
  many.fillRandom(5, -1, 1);
  turned.fillRandom(5, -1, 1);
  Tensor copy = turned.clone();
  EXPECT_EQ(std::memcmp(many.data(), copy.data(), static_cast<size_t>(many.elements()) * 2), 0);
}

TEST(Tensor, RandomStaysInRange) {
  for (DType type : allDTypes) {
    SCOPED_TRACE(nameOf(type));
    Tensor t = Tensor::empty(type, {2000});
    double lo = isUnsigned(type) || type == boolean ? 0 : -3, hi = type == boolean ? 1 : 5, sum = 0;
    t.fillRandom(7, lo, hi);
    bool reachesLow = false, reachesHigh = false;
    for (int64_t i = 0; i < t.elements(); ++i) {
      double value = t.get({i});
      ASSERT_GE(value, lo);
      ASSERT_LE(value, hi);
      reachesLow |= value == lo;
      reachesHigh |= value == hi;
      sum += value;
    }
    EXPECT_NEAR(sum / 2000, (lo + hi) / 2, 0.2);
    if (!isFloat(type))
      EXPECT_TRUE(reachesLow && reachesHigh);
  }
  Tensor all = Tensor::empty(i64, {64});
  all.fillRandom(3, -0x1p63, 0x1p63); // the whole type
  bool negative = false, positive = false;
  for (int64_t i = 0; i < 64; ++i)
    (all.getInt({i}) < 0 ? negative : positive) = true;
  EXPECT_TRUE(negative && positive);
  expectError([&] { all.fillRandom(0, 1, 0); }, "the lower one first");
  expectError([&] { all.fillRandom(0, 0, std::nan("")); }, "finite");
  expectError([&] { all.fillRandom(0, 0.2, 0.8); }, "no integer");
  expectError([&] { Tensor::zeros(f64, {1}).fillRandom(0, -1.7e308, 1.7e308); }, "finite");
}

TEST(Tensor, PoisonIsNaNInEveryFloatType) {
  for (DType type : allDTypes) {
    Tensor t = Tensor::zeros(type, {2});
    t.slice(0, 1, 1).fillBytes(0xff);
    EXPECT_EQ(t.get({0}), 0);
    if (isFloat(type))
      EXPECT_TRUE(std::isnan(t.get({1}))) << nameOf(type);
  }
}

TEST(Tensor, MoreThan32BitsOfElements) {
  // Address space only: the pages that are never touched cost nothing.
  size_t bytes = (size_t(1) << 32) + 4096 + 16;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    GTEST_SKIP() << "cannot reserve 4 GiB of address space here";
  auto count = static_cast<int64_t>(bytes);
  {
    Tensor t = Tensor::borrow(memory, bytes, u8, {count}, {}, [=] { munmap(memory, bytes); });
    t.checkInsideBuffer();
    t.set({count - 1}, 17);
    EXPECT_EQ(t.get({count - 1}), 17);
    EXPECT_EQ(t.slice(0, count - 1, 2, -(count - 1)).get({0}), 17);
    Tensor rows = t.slice(0, 0, int64_t(1) << 32).reshape({2, int64_t(1) << 31});
    EXPECT_EQ(rows.stride(0), int64_t(1) << 31);
    rows.set({1, 5}, 3);
    EXPECT_EQ(t.get({(int64_t(1) << 31) + 5}), 3);
    EXPECT_FALSE(rows.overlaps(t.slice(0, int64_t(1) << 32, 8)));
    EXPECT_TRUE(rows.overlaps(t.slice(0, (int64_t(1) << 32) - 1, 8)));
  }
  // A broadcast of one element is larger still.
  float one = 1;
  Tensor broadcast = Tensor::borrow(&one, 4, f32, {int64_t(1) << 31, int64_t(1) << 31}, {0, 0});
  EXPECT_EQ(broadcast.elements(), int64_t(1) << 62);
  broadcast.checkInsideBuffer();
  EXPECT_EQ(broadcast.get({(int64_t(1) << 31) - 1, 7}), 1);
}

/// Large tensors begin with a large page (2 MiB), small ones with a cache line; both are given back.
TEST(Tensor, LargeOnesBeginWithALargePage) {
  for (int round = 0; round < 3; ++round)
    for (int64_t bytes : {int64_t(1), int64_t(4096), (int64_t(4) << 20) - 1, int64_t(4) << 20, (int64_t(9) << 20) + 5}) {
      Tensor t = Tensor::empty(u8, {bytes});
      t.fillBytes(7);
      uintptr_t alignment = bytes >= (int64_t(4) << 20) ? uintptr_t(2) << 20 : 64;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % alignment, 0u) << bytes;
      EXPECT_EQ(t.get({bytes - 1}), 7);
    }
}

} // namespace
