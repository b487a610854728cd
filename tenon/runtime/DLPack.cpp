// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/DLPack.h"

#include "tenon/base/Error.h"
#include "tenon/runtime/Tensor.h"

namespace tenon {
namespace {

DLDataType toDLPack(DType type) {
  auto bits = static_cast<uint8_t>(8 * sizeOf(type));
  auto code = [&]() -> unsigned {
    switch (type) {
    case DType::bf16: return kDLBfloat;
    case DType::f8e4m3: return kDLFloat8_e4m3fn;
    case DType::f8e5m2: return kDLFloat8_e5m2;
    case DType::boolean: return kDLBool;
    default: return isFloat(type) ? kDLFloat : isSigned(type) ? kDLInt : kDLUInt;
    }
  }();
  return {static_cast<uint8_t>(code), bits, 1};
}

DType fromDLPack(DLDataType type) {
  if (type.lanes != 1)
    throw Error("a DLPack tensor with vector elements (" + std::to_string(type.lanes) +
                " lanes) cannot be used; make the lanes a dimension");
  for (DType candidate : allDTypes) {
    DLDataType ours = toDLPack(candidate);
    if (ours.code == type.code && ours.bits == type.bits)
      return candidate;
  }
  throw Error("DLPack element type (code " + std::to_string(type.code) + ", " + std::to_string(type.bits) +
              " bits) is not one of Tenon's; convert it to a type such as f32, bf16 or i32 first");
}

Device deviceFromDLPack(DLDevice device) {
  std::string refusal =
      "a DLPack tensor on device type " + std::to_string(static_cast<int>(device.device_type)) + " cannot be used";
  if (device.device_type == kDLCPU)
    return Device::cpu();
  if (device.device_type != kDLCUDA)
    throw Error(refusal + "; copy it to the CPU (device type 1) or to a CUDA device (2) first");
  try {
    cudaProperties(device.device_id); // there must be such a device
  } catch (const Error &error) {
    throw Error(refusal + ": " + error.what());
  }
  return Device::cuda(device.device_id);
}

/// What an exported tensor points to: shape and strides live here, and the buffer lives as long as this does.
struct Exported {
  DLManagedTensor managed;
  Tensor tensor;
};

} // namespace

Tensor Tensor::from_dlpack(DLManagedTensor *managed) {
  if (!managed)
    throw Error("from_dlpack was given a null pointer; pass a DLManagedTensor");
  const DLTensor &source = managed->dl_tensor;
  Device device = deviceFromDLPack(source.device);
  if (source.ndim < 0 || (source.ndim > 0 && !source.shape))
    throw Error("a DLPack tensor of rank " + std::to_string(source.ndim) +
                " without a valid shape cannot be used; ndim must be 0 or more and shape must be set");
  std::span<const int64_t> sizes(source.shape, static_cast<size_t>(source.ndim));
  std::span<const int64_t> strides(source.strides, source.strides ? sizes.size() : 0);

  Tensor result;
  result.setShape(fromDLPack(source.dtype), sizes, strides);
  if (result.elements() > 0 && !source.data)
    throw Error("DLPack tensor " + result.str() + " has elements but no data; data must not be null");
  // DLPack does not say how much memory there is; what the strides reach is the producer's promise.
  result.data_ = source.data ? static_cast<std::byte *>(source.data) + source.byte_offset : nullptr;
  std::byte *begin = result.data_ ? result.data_ + result.extent_.low : nullptr;
  result.buffer_ = std::make_shared<Buffer>(begin, static_cast<size_t>(result.extent_.high - result.extent_.low),
                                            nullptr, device);
  result.checkInsideBuffer();
  result.buffer_->onRelease([managed] {
    if (managed->deleter)
      managed->deleter(managed);
  });
  return result;
}

DLManagedTensor *Tensor::to_dlpack() const {
  auto *exported = new Exported{{}, *this};
  Tensor &tensor = exported->tensor;
  DLTensor &view = exported->managed.dl_tensor;
  view.data = tensor.data_;
  Device device = tensor.device();
  view.device = {device.isCuda() ? kDLCUDA : kDLCPU, static_cast<int32_t>(device.ordinal)};
  view.ndim = static_cast<int32_t>(tensor.rank_);
  view.dtype = toDLPack(tensor.dtype_);
  view.shape = tensor.sizes_.data();
  view.strides = tensor.strides_.data();
  view.byte_offset = 0;
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = [](DLManagedTensor *self) { delete static_cast<Exported *>(self->manager_ctx); };
  return &exported->managed;
}

} // namespace tenon
