// SPDX-License-Identifier: Apache-2.0
//
// The judge is only worth something if it convicts: each test runs a subject with one fault and asks for the reason.
#include "tenon/verify/Values.h"
#include "tenon/verify/Verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace tenon;

namespace {

/// y = x + 1, and what a subject needs to do it rightly or wrongly.
template <class T> void addOne(const Tensor &x, const Tensor &y) {
  std::vector<T> values = valuesOf<T>(x);
  for (T &value : values)
    value += 1;
  setValues(y, values);
}

void right(const Arguments &a) {
  if (isFloat(a[0].tensor().dtype()))
    addOne<float>(a[0].tensor(), a[1].tensor());
  else
    addOne<int64_t>(a[0].tensor(), a[1].tensor());
}

Problem problemOn(Tensor x, Tensor y) {
  Problem problem;
  problem.label = "add one";
  bool floats = isFloat(x.dtype());
  problem.arguments = {x, y};
  problem.outputs = {1};
  if (floats) {
    problem.reference = [](Arguments &a) { addOne<double>(a[0].tensor(), a[1].tensor()); };
    problem.plain = [](Arguments &a) { addOne<float>(a[0].tensor(), a[1].tensor()); };
  } else {
    problem.reference = problem.plain = [](Arguments &a) { addOne<int64_t>(a[0].tensor(), a[1].tensor()); };
  }
  return problem;
}

Problem problemOf(DType type) {
  Tensor x = Tensor::empty(type, {3, 5});
  x.fillRandom(7, 0, 10);
  return problemOn(x, Tensor::zeros(type, {3, 5}));
}

/// Expects a conviction whose reason contains every one of the texts.
void expectRejected(const Problem &problem, const std::function<void(const Arguments &)> &subject,
                    std::initializer_list<const char *> texts) {
  Verdict verdict = verify(problem, subject);
  EXPECT_FALSE(verdict.passed);
  for (const char *text : texts)
    EXPECT_NE(verdict.reason.find(text), std::string::npos) << "'" << verdict.reason << "' lacks '" << text << "'";
}

void expectAccepted(const Problem &problem, const std::function<void(const Arguments &)> &subject = right) {
  Verdict verdict = verify(problem, subject);
  EXPECT_TRUE(verdict.passed) << verdict.reason;
  EXPECT_TRUE(verdict.reason.empty());
}

class EveryType : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Verify, EveryType, testing::ValuesIn(allDTypes),
                         [](const auto &info) { return std::string(nameOf(info.param)); });

TEST_P(EveryType, AcceptsWhatIsRight) { expectAccepted(problemOf(GetParam())); }

TEST_P(EveryType, RejectsAnElementNobodyWrote) {
  expectRejected(problemOf(GetParam()),
                 [](const Arguments &a) {
                   const Tensor &y = a[1].tensor();
                   Tensor before = y.clone();
                   right(a);
                   size_t bytes = sizeOf(y.dtype()), offset = 7 * bytes; // [1, 2]
                   std::memcpy(static_cast<std::byte *>(y.data()) + offset,
                               static_cast<std::byte *>(before.data()) + offset, bytes);
                 },
                 {"output argument 1", "[1, 2]"});
}

TEST_P(EveryType, RejectsAChangedInput) {
  expectRejected(problemOf(GetParam()),
                 [](const Arguments &a) {
                   right(a);
                   auto *last = static_cast<std::byte *>(a[0].tensor().data()) + 15 * sizeOf(a[0].tensor().dtype()) - 1;
                   *last ^= std::byte(1);
                 },
                 {"input argument 0", "changed", "[2, 4]"});
}

TEST_P(EveryType, RejectsWritesOutside) {
  for (int64_t elements : {-1, -500, 15, 200})
    expectRejected(problemOf(GetParam()),
                   [elements](const Arguments &a) {
                     right(a);
                     const Tensor &y = a[1].tensor();
                     auto bytes = static_cast<int64_t>(sizeOf(y.dtype()));
                     std::memset(static_cast<std::byte *>(y.data()) + elements * bytes, 0, bytes);
                   },
                   {elements < 0 ? "before" : "past", "output argument 1", "overwritten"});
}

TEST(Verify, RefusesWhatCannotBeJudged) {
  auto refusal = [](const Problem &problem) -> std::string {
    try {
      verify(problem, right);
      return "";
    } catch (const Error &error) {
      return error.what();
    }
  };
  Problem nothing = problemOf(f32), notListed = problemOf(f32);
  nothing.outputs = {};
  EXPECT_NE(refusal(nothing).find("names no outputs"), std::string::npos) << refusal(nothing);
  notListed.inPlace = {0};
  EXPECT_NE(refusal(notListed).find("in place"), std::string::npos) << refusal(notListed);
}

// Nothing written is a large error for outputs around 1e-4, whatever the type's granularity is around 0.3.
TEST(Verify, RejectsZerosWhereOutputsAreSmall) {
  for (DType type : {f32, f16, bf16}) {
    Problem problem;
    problem.arguments = {Tensor::empty(type, {64}), Tensor::empty(type, {64})};
    problem.arguments[0].tensor().fillRandom(1, 1e-4, 2e-4);
    problem.outputs = {1};
    auto copy = [](Arguments &a) {
      for (int64_t i = 0; i < 64; ++i)
        a[1].tensor().set({i}, a[0].tensor().get({i}));
    };
    problem.reference = problem.plain = copy;
    EXPECT_TRUE(verify(problem, [&](const Arguments &a) {
                  Arguments mine = a;
                  copy(mine);
                }).passed);
    EXPECT_FALSE(verify(problem, [](const Arguments &a) { Tensor(a[1].tensor()).fill(0); }).passed);
  }
}

TEST(Verify, NamesOutputIndexGotAndWanted) {
  Problem problem = problemOf(f32);
  problem.arguments[0].tensor().set({2, 1}, 4);
  expectRejected(problem,
                 [](const Arguments &a) {
                   right(a);
                   a[1].tensor().set({2, 1}, 5.5);
                 },
                 {"output argument 1", "[2, 1]", "is 5.5", "has 5", "error of 0.5"});
}

TEST(Verify, ReportsTheFigures) {
  Problem problem = problemOf(f32);
  Verdict verdict = verify(problem, [](const Arguments &a) {
    right(a);
    a[1].tensor().set({0, 0}, a[1].tensor().get({0, 0}) + 1);
  });
  EXPECT_NEAR(verdict.error, 1, 1e-6);
  EXPECT_GT(verdict.allowed, 0);
  EXPECT_LT(verdict.allowed, 1e-5);
  EXPECT_GE(verdict.plainError, 0);
}

TEST(Verify, RejectsOneUnitTooMuchOfAnInteger) {
  for (DType type : {i64, i32, i16, i8, u64, u32, u16, u8})
    expectRejected(problemOf(type),
                   [](const Arguments &a) {
                     right(a);
                     a[1].tensor().setInt({0, 3}, a[1].tensor().getInt({0, 3}) + 1);
                   },
                   {"output argument 1", "[0, 3]"});
}

TEST(Verify, RejectsABooleanThatIsNeither0Nor1) {
  expectRejected(problemOf(boolean),
                 [](const Arguments &a) {
                   right(a);
                   static_cast<uint8_t *>(a[1].tensor().data())[0] = 2;
                 },
                 {"stored as 0 or 1"});
}

TEST(Verify, NanAndInfinityMustStandWhereTheReferenceHasThem) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  auto wrongly = [](double value) {
    return [value](const Arguments &a) {
      right(a);
      a[1].tensor().set({1, 1}, value);
    };
  };
  for (DType type : {f64, f32, f16, bf16}) {
    Problem finite = problemOf(type);
    for (double value : {nan, inf, -inf})
      expectRejected(finite, wrongly(value), {"[1, 1]", std::isnan(value) ? "nan" : "inf"});

    Problem special = problemOf(type);
    special.arguments[0].tensor().set({0, 0}, inf);
    special.arguments[0].tensor().set({0, 1}, -inf);
    special.arguments[0].tensor().set({1, 1}, nan);
    expectAccepted(special);
    expectRejected(special, wrongly(3), {"[1, 1]", "is 3", "nan"});
    expectRejected(special,
                   [](const Arguments &a) {
                     right(a);
                     a[1].tensor().set({0, 0}, -inf);
                   },
                   {"[0, 0]", "is -inf", "has inf"});
  }
}

TEST(Verify, AnUnwrittenNanIsNotAnAnswer) {
  for (DType type : {f64, f32, f16, bf16}) {
    Problem problem = problemOf(type);
    problem.arguments[0].tensor().fill(std::numeric_limits<double>::quiet_NaN());
    expectAccepted(problem);
    expectRejected(problem, [](const Arguments &) {}, {"[0, 0]", "never written"});
  }
}

// Said of what still holds the poison, whatever the type; not of a NaN or a wrong number that a kernel computed.
TEST(Verify, UnwrittenElementsAreCalledThat) {
  for (DType type : {f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, u32, i16, i8, boolean}) {
    Problem problem = problemOf(type);
    auto except = [](double value, bool writes) {
      return [=](const Arguments &a) {
        const Tensor &y = a[1].tensor();
        Tensor before = y.clone();
        right(a);
        if (writes)
          y.set({2, 3}, value);
        else
          std::memcpy(static_cast<std::byte *>(y.data()) + 13 * sizeOf(y.dtype()),
                      static_cast<const std::byte *>(before.data()) + 13 * sizeOf(y.dtype()), sizeOf(y.dtype()));
      };
    };
    expectRejected(problem, except(0, false), {"[2, 3]", "never written", "where the reference has"});
    if (type == boolean)
      continue;
    double wrong = isFloat(type) ? std::numeric_limits<double>::quiet_NaN() : 77;
    std::string reason = verify(problem, except(wrong, true)).reason;
    EXPECT_NE(reason.find("[2, 3] is "), std::string::npos) << reason;
    EXPECT_EQ(reason.find("never written"), std::string::npos) << reason;
  }
}

TEST(Verify, DeterminismIsTestedWherePromised) {
  Problem problem = problemOf(f32);
  int run = 0;
  auto wavering = [&run](const Arguments &a) {
    right(a);
    if (run++ % 2)
      a[1].tensor().set({2, 2}, std::nextafterf(static_cast<float>(a[1].tensor().get({2, 2})), 100));
  };
  expectRejected(problem, wavering, {"output argument 1", "differs between two runs", "[2, 2]"});
  problem.deterministic = false;
  expectAccepted(problem, wavering);
}

TEST(Verify, AWrongSecondRunIsWrong) {
  Problem problem = problemOf(f32);
  problem.deterministic = false;
  int run = 0;
  expectRejected(problem,
                 [&run](const Arguments &a) {
                   right(a);
                   if (run++)
                     a[1].tensor().set({2, 2}, 0);
                 },
                 {"[2, 2]"});
}

TEST(Verify, RoundingOfTheTypeIsAllowedAndNoMore) {
  Problem problem = problemOf(f16);
  auto off = [](double relative) {
    return [relative](const Arguments &a) {
      right(a);
      a[1].tensor().set({0, 0}, a[1].tensor().get({0, 0}) * (1 + relative));
    };
  };
  expectAccepted(problem, off(0x1p-10));
  expectRejected(problem, off(0x1p-5), {"[0, 0]"});
}

//===--------------------------------------------------------------------------------------------------------------===//
// Views: strides and shared memory
//===--------------------------------------------------------------------------------------------------------------===//

/// Every second column of every second row of a larger tensor.
Tensor sparse(DType type) { return Tensor::zeros(type, {9, 12}).slice(0, 1, 3, 2).slice(1, 1, 5, 2); }

TEST(Verify, StridesAreKept) {
  for (DType type : {f32, bf16, i32, u8}) {
    std::vector<Tensor> layouts = {sparse(type), Tensor::zeros(type, {5, 3}).transpose({1, 0}),
                                   Tensor::zeros(type, {3, 5}).slice(1, 4, 5, -1),
                                   sparse(type).slice(0, 2, 3, -1).slice(1, 4, 5, -1)};
    for (const Tensor &x : layouts)
      for (const Tensor &y : layouts) {
        x.fillRandom(3, 0, 10);
        Problem problem = problemOn(x, Tensor(y).buffer() == x.buffer() ? Tensor::zeros(type, {3, 5}) : y);
        expectAccepted(problem, [&](const Arguments &a) {
          for (size_t i : {0, 1})
            EXPECT_TRUE(std::ranges::equal(a[i].tensor().strides(), problem.arguments[i].tensor().strides()));
          right(a);
        });
      }
  }
}

TEST(Verify, AlignmentIsKept) {
  Tensor large = Tensor::zeros(f32, {100});
  for (int64_t offset : {0, 1, 4, 15}) {
    Problem problem = problemOn(large.slice(0, offset, 7), large.slice(0, offset + 50, 7));
    expectAccepted(problem, [&](const Arguments &a) {
      for (size_t i : {0, 1})
        EXPECT_EQ(reinterpret_cast<uintptr_t>(a[i].tensor().data()) % 64,
                  reinterpret_cast<uintptr_t>(problem.arguments[i].tensor().data()) % 64);
      right(a);
    });
  }
}

TEST(Verify, RejectsWritesBetweenTheElementsOfAView) {
  Problem problem = problemOn(problemOf(f32).arguments[0].tensor(), sparse(f32));
  expectAccepted(problem);
  expectRejected(problem,
                 [](const Arguments &a) {
                   right(a);
                   static_cast<float *>(a[1].tensor().data())[1] = 0;
                 },
                 {"between the elements of the output argument 1"});
}

TEST(Verify, InPlaceSharesMemory) {
  Tensor x = problemOf(f32).arguments[0].tensor();
  Problem twoArguments = problemOn(x, x);
  expectAccepted(twoArguments, [](const Arguments &a) {
    EXPECT_EQ(a[0].tensor().data(), a[1].tensor().data());
    right(a);
  });
  expectRejected(twoArguments, [](const Arguments &) {}, {"output argument 1", "[0, 0]"});

  Problem oneArgument;
  oneArgument.arguments = {x};
  oneArgument.outputs = oneArgument.inPlace = {0};
  oneArgument.reference = [](Arguments &a) { addOne<double>(a[0].tensor(), a[0].tensor()); };
  oneArgument.plain = [](Arguments &a) { addOne<float>(a[0].tensor(), a[0].tensor()); };
  expectAccepted(oneArgument, [](const Arguments &a) { addOne<float>(a[0].tensor(), a[0].tensor()); });
}

TEST(Verify, NeighboursInOneBufferAreToldApart) {
  // x and y are interleaved columns: y is poisoned, x is not, and x must survive.
  Tensor both = Tensor::zeros(f32, {3, 10});
  both.fillRandom(1, 0, 1);
  Problem problem = problemOn(both.slice(1, 0, 5, 2), both.slice(1, 1, 5, 2));
  int run = 0;
  expectAccepted(problem, [&](const Arguments &a) {
    EXPECT_EQ(static_cast<float *>(a[0].tensor().data()) + 1, a[1].tensor().data());
    EXPECT_EQ(std::isnan(a[1].tensor().get({1, 1})), run++ == 0);
    right(a);
  });
  expectRejected(problem,
                 [](const Arguments &a) {
                   right(a);
                   a[0].tensor().set({2, 3}, 9);
                 },
                 {"input argument 0 was changed at [2, 3]"});
}

TEST(Verify, TheProblemItselfIsNotTouched) {
  Problem problem = problemOf(f32);
  Tensor x = problem.arguments[0].tensor().clone(), y = problem.arguments[1].tensor().clone();
  verify(problem, [](const Arguments &a) {
    a[0].tensor().fill(1);
    a[1].tensor().fill(2);
  });
  EXPECT_EQ(valuesOf<double>(x), valuesOf<double>(problem.arguments[0].tensor()));
  EXPECT_EQ(valuesOf<double>(y), valuesOf<double>(problem.arguments[1].tensor()));
}

TEST(Verify, EmptyOutputsHaveGuardsToo) {
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{0}, {0, 5}, {5, 0}}) {
    Problem problem = problemOn(Tensor::zeros(f32, sizes), Tensor::zeros(f32, sizes));
    expectAccepted(problem);
    expectRejected(problem, [](const Arguments &a) { *static_cast<float *>(a[1].tensor().data()) = 1; },
                   {"past the output argument 1"});
  }
}

TEST(Verify, ScalarsAndRankZero) {
  Problem problem = problemOn(Tensor::zeros(f32, {}), Tensor::zeros(f32, {}));
  problem.arguments.push_back(3.5);
  expectAccepted(problem, [](const Arguments &a) {
    EXPECT_EQ(std::get<double>(a[2].value()), 3.5);
    right(a);
  });
}

TEST(Verify, SaysWhatIsWrongWithAProblem) {
  Problem problem = problemOf(f32);
  problem.outputs = {2};
  EXPECT_THROW(verify(problem, right), Error);
  problem = problemOf(f32);
  problem.reference = nullptr;
  EXPECT_THROW(verify(problem, right), Error);
}

TEST(Verify, AnErrorOfTheSubjectIsPassedOn) {
  EXPECT_THROW(verify(problemOf(f32), [](const Arguments &) { throw Error("no"); }), Error);
}

//===--------------------------------------------------------------------------------------------------------------===//
// Values
//===--------------------------------------------------------------------------------------------------------------===//

TEST(Values, UlpIsTheDistanceToTheNextNumber) {
  EXPECT_EQ(ulp(f32, 1), 0x1p-23);
  EXPECT_EQ(ulp(f32, -1.5), 0x1p-23);
  EXPECT_EQ(ulp(f32, 0), 0x1p-149);
  EXPECT_EQ(ulp(f16, 1), 0x1p-10);
  EXPECT_EQ(ulp(f16, 0), 0x1p-24);
  EXPECT_EQ(ulp(bf16, 2), 0x1p-6);
  EXPECT_EQ(ulp(f64, 1), 0x1p-52);
  EXPECT_EQ(ulp(f8e4m3, 1), 0x1p-3);
  EXPECT_EQ(ulp(f8e5m2, 1), 0x1p-2);
}

TEST(Values, GoThroughStridesInRowMajorOrder) {
  Tensor t = Tensor::zeros(i32, {2, 3});
  setValues(t, std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(valuesOf<int64_t>(t.transpose({1, 0})), (std::vector<int64_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(valuesOf<double>(t.slice(1, 2, 3, -1)), (std::vector<double>{3, 2, 1, 6, 5, 4}));
  setValues(t.transpose({1, 0}), std::vector<int64_t>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(valuesOf<int64_t>(t), (std::vector<int64_t>{1, 3, 5, 2, 4, 6}));
}

} // namespace
