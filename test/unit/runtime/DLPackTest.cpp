// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/DLPack.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/Tensor.h"

#include <gtest/gtest.h>

#include <limits>

using namespace tenon;

namespace {

/// A tensor as another library would hand it over; counts how often it is given back.
struct Foreign {
  float values[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  int64_t shape[6] = {3, 4, 1, 1, 1, 1}, strides[6] = {4, 1, 1, 1, 1, 1};
  int deleted = 0;
  DLManagedTensor managed{};

  Foreign() {
    managed.dl_tensor = {values, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor *self) { ++static_cast<Foreign *>(self->manager_ctx)->deleted; };
  }

  void expectRefused(const char *part) {
    try {
      Tensor::from_dlpack(&managed);
      ADD_FAILURE() << "no error; expected one about \"" << part << '"';
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_EQ(deleted, 0) << "a refused tensor stays the caller's";
  }
};

TEST(DLPack, TakesOverAndGivesBackOnce) {
  Foreign foreign;
  {
    Tensor view;
    {
      Tensor t = Tensor::from_dlpack(&foreign.managed);
      EXPECT_EQ(t.dtype(), f32);
      EXPECT_EQ(t.get({2, 3}), 11);
      EXPECT_EQ(t.data(), foreign.values);
      EXPECT_EQ(t.bufferBytes(), sizeof foreign.values);
      view = t.transpose({1, 0});
    }
    EXPECT_EQ(foreign.deleted, 0);
    EXPECT_EQ(view.get({3, 0}), 3);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DLPack, StridesAndOffset) {
  Foreign foreign;
  foreign.managed.dl_tensor.strides = foreign.strides;
  foreign.managed.dl_tensor.byte_offset = 8 * sizeof(float);
  foreign.strides[0] = -4; // rows backwards, from the last
  {
    Tensor t = Tensor::from_dlpack(&foreign.managed);
    EXPECT_EQ(t.get({0, 0}), 8);
    EXPECT_EQ(t.get({2, 3}), 3);
    EXPECT_EQ(t.bufferBegin(), foreign.values);
    EXPECT_EQ(t.bufferBytes(), sizeof foreign.values);
    t.checkInsideBuffer();
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DLPack, NoDeleterIsAllowed) {
  Foreign foreign;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(Tensor::from_dlpack(&foreign.managed).get({0, 1}), 1);
}

TEST(DLPack, ScalarsAndEmptyTensors) {
  Foreign scalar;
  scalar.managed.dl_tensor.ndim = 0;
  scalar.managed.dl_tensor.shape = nullptr;
  scalar.managed.dl_tensor.byte_offset = 4;
  EXPECT_EQ(Tensor::from_dlpack(&scalar.managed).get({}), 1);
  Foreign none;
  none.shape[0] = 0;
  none.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(Tensor::from_dlpack(&none.managed).elements(), 0);
  EXPECT_EQ(none.deleted, 1);
}

TEST(DLPack, Refusals) {
  EXPECT_THROW(Tensor::from_dlpack(nullptr), Error);
  auto refused = [](auto change, const char *part) {
    Foreign foreign;
    change(foreign, foreign.managed.dl_tensor);
    foreign.expectRefused(part);
  };
  refused([](Foreign &, DLTensor &t) { t.device = {kDLCUDA, 4096}; }, "device type 2");
  refused([](Foreign &, DLTensor &t) { t.device.device_type = kDLCUDAHost; }, "device type 3");
  refused([](Foreign &, DLTensor &t) { t.dtype.lanes = 4; }, "4 lanes");
  refused([](Foreign &, DLTensor &t) { t.dtype = {5, 64, 1}; }, "code 5"); // complex
  refused([](Foreign &, DLTensor &t) { t.dtype = {kDLInt, 4, 1}; }, "4 bits");
  refused([](Foreign &, DLTensor &t) { t.dtype = {kDLBfloat, 32, 1}; }, "code 4");
  refused([](Foreign &, DLTensor &t) { t.ndim = -1; }, "rank -1");
  refused([](Foreign &, DLTensor &t) { t.ndim = 6; }, "rank 6");
  refused([](Foreign &, DLTensor &t) { t.shape = nullptr; }, "shape must be set");
  refused([](Foreign &, DLTensor &t) { t.data = nullptr; }, "data must not be null");
  refused([](Foreign &, DLTensor &t) { t.byte_offset = 2; }, "not a multiple of its element size");
  refused([](Foreign &f, DLTensor &) { f.shape[1] = -4; }, "0 or more");
  refused([](Foreign &f, DLTensor &) { f.shape[0] = std::numeric_limits<int64_t>::max(); }, "too large");
}

TEST(DLPack, EveryTypeMakesTheRoundTrip) {
  const std::pair<DType, DLDataType> expected[] = {
      {f64, {2, 64, 1}},   {f32, {2, 32, 1}}, {f16, {2, 16, 1}}, {bf16, {4, 16, 1}}, {f8e4m3, {10, 8, 1}},
      {f8e5m2, {12, 8, 1}}, {i64, {0, 64, 1}}, {i32, {0, 32, 1}}, {i16, {0, 16, 1}},  {i8, {0, 8, 1}},
      {u64, {1, 64, 1}},   {u32, {1, 32, 1}}, {u16, {1, 16, 1}}, {u8, {1, 8, 1}},    {boolean, {6, 8, 1}}};
  ASSERT_EQ(std::size(expected), std::size(allDTypes));
  for (auto [type, code] : expected) {
    SCOPED_TRACE(nameOf(type));
    Tensor t = Tensor::zeros(type, {2, 3});
    t.set({1, 2}, 1);
    DLManagedTensor *managed = t.to_dlpack();
    EXPECT_EQ(managed->dl_tensor.dtype.code, code.code);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, code.bits);
    EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1);
    Tensor back = Tensor::from_dlpack(managed);
    EXPECT_EQ(back.dtype(), type);
    EXPECT_EQ(back.get({1, 2}), 1);
    EXPECT_EQ(back.data(), t.data());
  }
}

TEST(DLPack, AnExportKeepsTheBufferAlive) {
  int released = 0;
  float storage[6] = {0, 1, 2, 3, 4, 5};
  DLManagedTensor *managed;
  {
    Tensor t = Tensor::borrow(storage, sizeof storage, f32, {2, 3}, {}, [&] { ++released; });
    managed = t.transpose({1, 0}).slice(0, 1, 2).to_dlpack();
  }
  EXPECT_EQ(released, 0);
  const DLTensor &view = managed->dl_tensor;
  EXPECT_EQ(view.device.device_type, kDLCPU);
  EXPECT_EQ(view.ndim, 2);
  EXPECT_EQ(view.shape[0], 2);
  EXPECT_EQ(view.shape[1], 2);
  EXPECT_EQ(view.strides[0], 1);
  EXPECT_EQ(view.strides[1], 3);
  EXPECT_EQ(static_cast<float *>(view.data) + view.byte_offset / 4, storage + 1);
  managed->deleter(managed);
  EXPECT_EQ(released, 1);
}

} // namespace
