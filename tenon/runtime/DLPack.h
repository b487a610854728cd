// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The part of the DLPack C ABI that Tenon speaks, declared here so that nothing has to be installed. The names are the
/// ABI's own and global: a Tensor made here and a `DLManagedTensor *` of another library are the same type. A file that
/// also needs the official dlpack.h includes that one first, and this header then declares nothing.
#ifndef DLPACK_DLPACK_H_

enum DLDeviceType : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 };

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};

enum DLDataTypeCode : unsigned {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e5m2 = 12,
};

struct DLDataType {
  uint8_t code; ///< a DLDataTypeCode
  uint8_t bits; ///< of one lane
  uint16_t lanes;
};

struct DLTensor {
  void *data; ///< the first element is at data + byte_offset
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; ///< in elements; null means row-major
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;                 ///< the producer's own
  void (*deleter)(DLManagedTensor *); ///< called once by the consumer; may be null
};

#endif

// The layout is a contract with code compiled elsewhere.
static_assert(sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4);
static_assert(sizeof(void *) != 8 ||
              (offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16 && offsetof(DLTensor, dtype) == 20 &&
               offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32 &&
               offsetof(DLTensor, byte_offset) == 40 && sizeof(DLTensor) == 48 &&
               offsetof(DLManagedTensor, manager_ctx) == 48 && offsetof(DLManagedTensor, deleter) == 56));
