// SPDX-License-Identifier: Apache-2.0
//
// Tensor maps: what the driver is asked for, what is refused before, which are kept, and how kernels get them; and how
// many blocks of a kernel fit a device. Over the fake driver.
#include "CudaFixture.h"

#include "tenon/runtime/Stream.h"
#include "tenon/runtime/cuda/CudaStream.h"
#include "tenon/runtime/cuda/Gpu.h"
#include "tenon/runtime/cuda/Launch.h"
#include "tenon/runtime/cuda/Module.h"
#include "tenon/runtime/cuda/TensorMap.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

using namespace tenon;
using namespace tenon::cuda;

namespace {

fake::TensorMap decoded(const TensorMap &map) {
  fake::TensorMap result;
  std::memcpy(&result, &map, sizeof result);
  return result;
}

/// bf16 [batch 3, rows 1000, columns 520], rows 528 elements apart.
TiledTensor someTensor() {
  TiledTensor tensor;
  tensor.name = "x";
  tensor.element = "bf16";
  tensor.elementBytes = 2;
  tensor.rank = 3;
  tensor.address = 0x7f0000001230;
  tensor.sizes = {520, 1000, 3};
  tensor.byteStrides = {2, 1056, 1056 * 1024};
  tensor.box = {64, 128, 1};
  tensor.swizzleBytes = 128;
  return tensor;
}

TEST_F(Cuda, ATensorMapSaysWhatIsAsked) {
  TensorMap map;
  encodeTensorMap(Gpu::get(0), someTensor(), map);
  fake::TensorMap made = decoded(map);
  EXPECT_EQ(made.address, 0x7f0000001230u);
  EXPECT_EQ(made.rank, 3);
  EXPECT_EQ(made.type, 9) << "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16";
  EXPECT_EQ(std::vector<uint64_t>(made.sizes, made.sizes + 3), (std::vector<uint64_t>{520, 1000, 3}));
  EXPECT_EQ(std::vector<uint64_t>(made.strides, made.strides + 2), (std::vector<uint64_t>{1056, 1056 * 1024}));
  EXPECT_EQ(std::vector<int>(made.box, made.box + 3), (std::vector<int>{64, 128, 1}));
  EXPECT_EQ(std::vector<int>(made.elementStrides, made.elementStrides + 3), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(made.interleave, 0);
  EXPECT_EQ(made.swizzle, 3);
  EXPECT_EQ(made.l2Promotion, 2) << "128 bytes";
  EXPECT_EQ(made.fill, 0) << "zeros";

  TiledTensor aligned = someTensor(); // rows that begin at multiples of 256 bytes
  aligned.address = 0x7f0000001200;
  aligned.byteStrides = {2, 1280, 1280 * 1024};
  encodeTensorMap(Gpu::get(0), aligned, map);
  EXPECT_EQ(decoded(map).l2Promotion, 3) << "256 bytes";
}

TEST_F(Cuda, TypesAndSwizzlesOfATensorMap) {
  struct {
    const char *element;
    int bytes, type;
  } types[] = {{"f16", 2, 6},      {"bf16", 2, 9}, {"f32", 4, 7}, {"f64", 8, 8}, {"i8", 1, 0}, {"f8E4M3FN", 1, 0},
               {"f8E5M2", 1, 0},   {"i16", 2, 1},  {"i32", 4, 2}, {"i64", 8, 4}, {"i1", 1, 0}};
  for (const auto &[element, bytes, type] : types) {
    TiledTensor tensor = someTensor();
    tensor.element = element;
    tensor.elementBytes = bytes;
    tensor.box[0] = 128 / bytes;
    TensorMap map;
    encodeTensorMap(Gpu::get(0), tensor, map);
    EXPECT_EQ(decoded(map).type, type) << element;
  }
  for (auto [bytes, mode] : {std::pair(0, 0), {32, 1}, {64, 2}, {128, 3}}) {
    TiledTensor tensor = someTensor();
    tensor.swizzleBytes = bytes;
    tensor.box[0] = 16;
    TensorMap map;
    encodeTensorMap(Gpu::get(0), tensor, map);
    EXPECT_EQ(decoded(map).swizzle, mode) << bytes;
  }
}

TEST_F(Cuda, ATensorMapOfEveryRank) {
  for (size_t rank = 1; rank <= 5; ++rank) {
    TiledTensor tensor = someTensor();
    tensor.rank = rank;
    tensor.sizes = {520, 1000, 3, 7, 2};
    tensor.byteStrides = {2, 1056, 1 << 21, 1 << 23, 16};
    tensor.box = {64, 8, 1, 1, 2};
    TensorMap map;
    encodeTensorMap(Gpu::get(0), tensor, map);
    EXPECT_EQ(decoded(map).rank, rank);
    EXPECT_EQ(decoded(map).sizes[rank - 1], static_cast<uint64_t>(tensor.sizes[rank - 1]));
    if (rank > 1)
      EXPECT_EQ(decoded(map).strides[rank - 2], static_cast<uint64_t>(tensor.byteStrides[rank - 1]));
  }
}

TEST_F(Cuda, TheReasonAgainstATensorMap) {
  auto reason = [](auto change) {
    TiledTensor tensor = someTensor();
    change(tensor);
    TensorMap map;
    std::string text = errorOf([&] { encodeTensorMap(Gpu::get(0), tensor, map); });
    EXPECT_HAS(text, "view 'x' cannot be moved by the tensor memory accelerator: ");
    return text;
  };
  EXPECT_HAS(reason([](TiledTensor &t) { t.address += 8; }), "its address is no multiple of 16 bytes");
  EXPECT_HAS(reason([](TiledTensor &t) { t.byteStrides[1] = 1054; }),
             "the stride of dimension 1 (innermost first) is 1054 bytes, which is no multiple of 16");
  EXPECT_HAS(reason([](TiledTensor &t) { t.byteStrides[2] = -1056; }), "is -1056 bytes, and one of a map 0 to 2^40");
  EXPECT_HAS(reason([](TiledTensor &t) { t.byteStrides[2] = int64_t(1) << 40; }), "is 1099511627776 bytes");
  EXPECT_HAS(reason([](TiledTensor &t) { t.sizes[1] = (int64_t(1) << 32) + 1; }),
             "dimension 1 (innermost first) has 4294967297 elements, and one of a map 1 to 2^32");
  EXPECT_HAS(reason([](TiledTensor &t) { t.sizes[2] = 0; }), "has 0 elements");
  EXPECT_HAS(reason([](TiledTensor &t) { t.box[1] = 257; }),
             "the box has 257 elements in dimension 1 (innermost first), and one of a map 1 to 256");
  EXPECT_HAS(reason([](TiledTensor &t) { t.box[2] = 0; }), "the box has 0 elements");
  EXPECT_HAS(reason([](TiledTensor &t) { t.box[0] = 60; }),
             "a row of the box is 120 bytes, which is no multiple of 16");
  EXPECT_HAS(reason([](TiledTensor &t) { t.box[0] = 128; }),
             "a row of the box is 256 bytes, more than the 128 of its swizzle");
  EXPECT_HAS(reason([](TiledTensor &t) { t.swizzleBytes = 16; }), "there is no swizzle of 16 bytes");
  EXPECT_HAS(reason([](TiledTensor &t) { t.rank = 0; }), "it has 0 dimensions");
  EXPECT_HAS(reason([](TiledTensor &t) { t.rank = 6; }), "it has 6 dimensions");
  EXPECT_HAS(reason([](TiledTensor &t) {
               t.element = "i128";
               t.elementBytes = 16;
               t.box[0] = 8;
             }),
             "its elements have 16 bytes");
  EXPECT_EQ(fake::calls("cuTensorMapEncodeTiled"), 0);

  fake::failNext("cuTensorMapEncodeTiled", 1);
  TensorMap map;
  EXPECT_HAS(errorOf([&] { encodeTensorMap(Gpu::get(0), someTensor(), map); }),
             "making a tensor map of view 'x' on cuda:0 failed with CUDA_ERROR_INVALID_VALUE");
}

//===--- Keeping them ---------------------------------------------------------------------------------------------===//

TEST_F(Cuda, TensorMapsAreKeptByWhatTheySay) {
  TensorMapCache cache;
  Gpu &gpu = Gpu::get(0);
  auto made = [&](auto change) {
    TiledTensor tensor = someTensor();
    change(tensor);
    int before = fake::calls("cuTensorMapEncodeTiled");
    TensorMap map;
    cache.get(gpu, tensor, map);
    fake::TensorMap found = decoded(map);
    EXPECT_EQ(found.address, tensor.address);
    EXPECT_EQ(found.sizes[1], static_cast<uint64_t>(tensor.sizes[1]));
    EXPECT_EQ(found.strides[0], static_cast<uint64_t>(tensor.byteStrides[1]));
    return fake::calls("cuTensorMapEncodeTiled") - before;
  };
  auto same = [](TiledTensor &) {};
  auto elsewhere = [](TiledTensor &t) { t.address += 4096; };
  auto larger = [](TiledTensor &t) { t.sizes[1] = 1001; };
  auto wider = [](TiledTensor &t) { t.byteStrides[1] = 1072; };
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(made(same), round == 0);
    EXPECT_EQ(made(elsewhere), round == 0);
    EXPECT_EQ(made(larger), round == 0) << "at the same address";
    EXPECT_EQ(made(wider), round == 0);
  }
  // More than are kept: each is made again, and right.
  for (int i = 0; i < 100; ++i)
    made([&](TiledTensor &t) { t.address += 16 * static_cast<uint64_t>(i % 50); });
  fake::failNext("cuTensorMapEncodeTiled", 1);
  EXPECT_HAS(errorOf([&] { made([](TiledTensor &t) { t.address = 16; }); }), "failed with CUDA_ERROR_INVALID_VALUE");
  EXPECT_EQ(made([](TiledTensor &t) { t.address = 16; }), 1) << "what failed is not kept";
}

TEST_F(Cuda, ThreadsShareTensorMaps) {
  TensorMapCache cache;
  Gpu &gpu = Gpu::get(0);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 20000; ++i) {
        TiledTensor tensor = someTensor();
        uint64_t which = i * (2 * t + 3) % 24; // some more than are kept
        tensor.address = 1024 * (1 + which);
        tensor.sizes[1] = static_cast<int64_t>(100 + which);
        tensor.byteStrides[2] = static_cast<int64_t>(16 * (1 + which));
        TensorMap map;
        cache.get(gpu, tensor, map);
        fake::TensorMap found = decoded(map);
        wrong += found.address != tensor.address || found.sizes[1] != 100 + which ||
                 found.strides[1] != 16 * (1 + which) || found.box[0] != 64;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Cuda, AKeptTensorMapIsNotMadeAgain) {
  TensorMapCache cache;
  Gpu &gpu = Gpu::get(0);
  TiledTensor tensor = someTensor();
  TensorMap map;
  for (int i = 0; i < 100; ++i)
    cache.get(gpu, tensor, map);
  EXPECT_EQ(fake::calls("cuTensorMapEncodeTiled"), 1);
}

//===--- Passing them ---------------------------------------------------------------------------------------------===//

const char *const ptx = R"(
.visible .entry mapped(
	.param .u64 mapped_param_0,
	.param .u64 mapped_param_1,
	.param .u64 mapped_param_2,
	.param .align 64 .b8 mapped_param_3[128],
	.param .align 64 .b8 mapped_param_4[128]
) { ret; }
.visible .entry plain(.param .u64 a) { ret; }
)";

TEST_F(Cuda, TensorMapsArePassedByValue) {
  Gpu &gpu = Gpu::get(0);
  auto module = Module::fromPtx(gpu, ptx);
  Function function(module, "mapped", 0, 2, /*parameters=*/5);
  EXPECT_EQ(function.parameterBytes(), 48 + 2 * 128); // aligned where the device has parameters, 0x210 bytes on
  TensorMap maps[3];
  for (int i = 0; i < 3; ++i) {
    TiledTensor tensor = someTensor();
    tensor.sizes[1] = 100 + i;
    encodeTensorMap(gpu, tensor, maps[i]);
  }
  Stream stream(Device::cuda(0));
  CudaStream &raw = CudaStream::of(stream);
  uint64_t words[] = {11, 12, 13};
  for (uint32_t cluster : {1u, 2u}) {
    launch(function, {{4, 1, 1}, {32, 1, 1}, {cluster, 1, 1}}, raw, words, std::span(maps).first(2));
    fake::Launch last = fake::launches().back();
    EXPECT_EQ(last.wordCount, 3u);
    EXPECT_EQ(last.words[0] * 10000 + last.words[1] * 100 + last.words[2], 111213u);
    ASSERT_EQ(last.mapCount, 2u);
    EXPECT_EQ(last.maps[0].sizes[1], 100u);
    EXPECT_EQ(last.maps[1].sizes[1], 101u);
    EXPECT_EQ(last.maps[1].address, someTensor().address);
    EXPECT_TRUE(last.aligned);
  }
  auto with = [&](size_t wordCount, size_t mapCount) {
    launch(function, {{1, 1, 1}, {32, 1, 1}}, raw, std::span(words).first(wordCount), std::span(maps).first(mapCount));
  };
  EXPECT_HAS(errorOf([&] { with(3, 1); }), "kernel 'mapped' takes 304 bytes of parameters and was given 152");
  EXPECT_HAS(errorOf([&] { with(3, 3); }), "takes 304 bytes of parameters and was given 408");
  EXPECT_HAS(errorOf([&] { with(3, 0); }), "takes 304 bytes of parameters and was given 24");
  Function unchecked(module, "mapped");
  EXPECT_HAS(errorOf([&] { launch(unchecked, {}, raw, words, maps); }),
             "kernel 'mapped' has tensor maps, which need a driver of CUDA 12.4 or later");
}

//===--- Blocks at once -------------------------------------------------------------------------------------------===//

TEST_F(Cuda, BlocksAtOnce) {
  Gpu &gpu = Gpu::get(0); // of 132 multiprocessors
  Function function(Module::fromPtx(gpu, ptx), "plain", 0, 8);
  fake::setOccupancy(2, 13);
  EXPECT_EQ(function.blocksAtOnce(128, 1000, 1), 264);
  EXPECT_EQ(function.blocksAtOnce(128, 1000, 2), 26);
  EXPECT_EQ(function.blocksAtOnce(128, 1000, 8), 104);
  fake::setOccupancy(0, 0);
  EXPECT_EQ(function.blocksAtOnce(128, 1000, 1), 1) << "the launch says why it cannot be";
  EXPECT_EQ(function.blocksAtOnce(128, 1000, 4), 4);
  fake::failNext("cuOccupancyMaxActiveClusters", 1);
  EXPECT_HAS(errorOf([&] { function.blocksAtOnce(128, 1000, 4); }),
             "asking how many blocks of a kernel fit on cuda:0 failed with CUDA_ERROR_INVALID_VALUE");
  fake::failNext("cuOccupancyMaxActiveBlocksPerMultiprocessor", 1);
  EXPECT_HAS(errorOf([&] { function.blocksAtOnce(128, 1000, 1); }), "CUDA_ERROR_INVALID_VALUE");
}

/// Of a kernel that takes a multiprocessor's shared memory, and asked once.
TEST_F(Cuda, ClustersAtOnce) {
  Gpu &gpu = Gpu::get(0);
  fake::failNext("cuOccupancyMaxActiveClusters", 1);
  EXPECT_HAS(errorOf([&] { clustersAtOnce(gpu, 8); }), "CUDA_ERROR_INVALID_VALUE");
  fake::setOccupancy(1, 14);
  EXPECT_EQ(clustersAtOnce(gpu, 8), 14) << "a failure is not remembered";
  fake::setOccupancy(1, 30);
  EXPECT_EQ(clustersAtOnce(gpu, 4), 30);
  EXPECT_EQ(clustersAtOnce(gpu, 8), 14);
  EXPECT_EQ(fake::calls("cuOccupancyMaxActiveClusters"), 3);
}

} // namespace
