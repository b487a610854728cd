// SPDX-License-Identifier: Apache-2.0
//
// One-instruction kernels: for each op of the nvidia dialect a thread function that reads its operands from global
// memory and writes what the op gives back there. Run on a GPU their outputs say what the hardware does; run on the
// simulator they say what we believe. test/nvidia/recorded.tar holds the former, as <name>.bin, once recorded (test/gpu/).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::test {

/// How two outputs are compared.
enum class Compare {
  Bits, // every bit
  F32,  // f32 elements, up to `ulps`; any NaN equals any NaN
  F64,  // f64 elements, likewise
  F16,  // f16 elements, likewise
  BF16, // bf16 elements, likewise
};

/// A tensor map of a part of one of the buffers; dimensions are counted from the innermost.
struct TestMap {
  bool output = false;  // of the output buffer, else of the input
  int64_t place = 0;    // of element (0, 0, ...) there: a multiple of 16
  int elementBytes = 0; // 1, 2 or 4
  std::vector<int64_t> sizes, strides; // in elements; in bytes, one fewer
  std::vector<int> box;
  int swizzleBytes = 0;
};

struct InstructionTest {
  std::string name; // letters, digits and underscores: the name of a file
  /// One `func.func @kernel(%in: i64, %out: i64)` in a module. %in and %out are the addresses, multiples of 256, of a
  /// buffer that holds `input` and of one of `outputBytes` zeros.
  std::string mlir;
  int64_t threads = 32;
  int64_t cluster = 1; // blocks in a cluster; the grid is one cluster
  int64_t sharedBytes = 0;
  std::vector<uint8_t> input;
  int64_t outputBytes = 0;
  int minimumArchitecture = 80; // 80, 89, 90
  bool specific = false;        // that architecture's own variant (sm_90a), and no other
  std::vector<TestMap> maps;    // the kernel's tensor maps
  Compare compare = Compare::Bits;
  double ulps = 0;
  double absolute = 0; // f32: so much is allowed besides, where the unit's error is not relative
};

/// All of them, the same at every call.
std::vector<InstructionTest> instructionTests();

/// "" when two outputs of `test` agree, else the first element that does not, in words.
std::string difference(const InstructionTest &test, const std::vector<uint8_t> &expected,
                       const std::vector<uint8_t> &actual);

} // namespace tenon::test
