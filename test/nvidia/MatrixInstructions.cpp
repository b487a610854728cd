// SPDX-License-Identifier: Apache-2.0
//
// mma, ldmatrix and stmatrix. The fragments of mma are read as they are, one lane after another: which element is where
// is for the hardware to say.
#include "test/nvidia/Elements.h"
#include "test/nvidia/KernelText.h"

namespace tenon::test {
namespace {

using Tests = std::vector<InstructionTest>;

/// Registers full of elements.
std::vector<uint32_t> fragment(Random &random, const Format &format, Inputs inputs, int64_t registers) {
  std::vector<uint32_t> words(32 * registers);
  for (uint32_t &word : words)
    for (int shift = 0; shift < 32; shift += format.bits)
      word |= randomElement(random, format, inputs) << shift;
  return words;
}

void mmaFloat(Tests &tests, const Format &a, const Format &b) {
  for (Inputs inputs : {Inputs::Integers, Inputs::Near, Inputs::Far, Inputs::Special}) {
    Random random(20 + int(inputs));
    std::string types = std::string(a.name) + "_" + b.name;
    KernelText k("mma_" + (&a == &b ? std::string(a.name) : types) + "_" + nameOf(inputs));
    for (int round = 0; round < 4; ++round) {
      std::string left = k.read(fragment(random, a, inputs, 4), "vector<4xi32>", 16);
      std::string right = k.read(fragment(random, b, inputs, 2), "vector<2xi32>", 8);
      std::string sum = k.read(fragment(random, f32, inputs, 4), "vector<4xf32>", 16);
      k.write(k.op(std::string("nvidia.mma ") + a.name + " " + b.name + " " + left + ", " + right + ", " + sum +
                   " : vector<4xi32>, vector<2xi32>, vector<4xf32>"),
              "vector<4xf32>", 16);
    }
    tests.push_back(k.minimum(std::max(a.architecture, b.architecture)).compare(Compare::F32).finish());
  }
}

void mmaInteger(Tests &tests, const std::string &a, const std::string &b) {
  Random random(30);
  KernelText k("mma_" + a + "_" + b);
  auto words = [&](int64_t registers, uint32_t mask) {
    std::vector<uint32_t> values(32 * registers);
    for (uint32_t &value : values)
      value = random.bits() & mask;
    return values;
  };
  for (uint32_t mask : {0x07070707u, 0xffffffffu}) { // the second round wraps around
    std::string left = k.read(words(4, mask), "vector<4xi32>", 16), right = k.read(words(2, mask), "vector<2xi32>", 8);
    std::string sum = k.read(words(4, mask | mask << 28), "vector<4xi32>", 16);
    k.write(k.op("nvidia.mma " + a + " " + b + " " + left + ", " + right + ", " + sum +
                 " : vector<4xi32>, vector<2xi32>, vector<4xi32>"),
            "vector<4xi32>", 16);
  }
  tests.push_back(k.finish());
}

void mmaDouble(Tests &tests) {
  Random random(31);
  KernelText k("mma_f64");
  auto values = [&](int64_t count, bool far) {
    std::vector<uint64_t> result(32 * count);
    for (uint64_t &value : result)
      value = (random.bits() & 0x800fffffffffffff) | uint64_t(1023 + (far ? random.between(-30, 30) : 0)) << 52;
    return result;
  };
  for (bool far : {false, true}) {
    std::string left = k.read(values(1, far), "vector<1xf64>", 8), right = k.read(values(1, far), "vector<1xf64>", 8);
    k.write(k.op("nvidia.mma f64 f64 " + left + ", " + right + ", " + k.read(values(2, far), "vector<2xf64>", 16) +
                 " : vector<1xf64>, vector<1xf64>, vector<2xf64>"),
            "vector<2xf64>", 16);
  }
  tests.push_back(k.compare(Compare::F64).finish());
}

/// 32 rows of 16 bytes in shared memory; each lane names one, in any order.
void matrixMoves(Tests &tests, int64_t count, bool transpose) {
  Random random(32);
  std::string suffix = "_x" + std::to_string(count) + (transpose ? "_transpose" : "");
  std::string type = "vector<" + std::to_string(count) + "xi32>", how = transpose ? "transpose " : "";
  auto rows = [&] {
    std::vector<uint32_t> places(32);
    for (uint32_t i = 0; i < 32; ++i)
      places[i] = 16 * i;
    for (int i = 31; i > 0; --i)
      std::swap(places[i], places[random.between(0, i)]);
    return places;
  };
  auto words = [&](int64_t number) {
    std::vector<uint32_t> values(number);
    for (uint32_t &value : values)
      value = random.bits();
    return values;
  };
  KernelText l("ldmatrix" + suffix, 32, 1, 512);
  l.storeShared(l.read(words(128), "vector<4xi32>", 16), "vector<4xi32>", l.slot(16));
  l.line("nvidia.warp_barrier");
  l.write(l.op("nvidia.ldmatrix " + how + l.read(rows(), "i32") + " -> " + type), type, 4 * count);
  tests.push_back(l.finish());

  KernelText s("stmatrix" + suffix, 32, 1, 512);
  s.storeShared(s.read(words(128), "vector<4xi32>", 16), "vector<4xi32>", s.slot(16));
  s.line("nvidia.warp_barrier");
  std::string address = s.read(rows(), "i32"), value = s.read(words(32 * count), type, 4 * count);
  s.line("nvidia.stmatrix " + how + address + ", " + value + " : " + type);
  s.line("nvidia.warp_barrier");
  s.write(s.loadShared("vector<4xi32>", s.slot(16)), "vector<4xi32>", 16);
  tests.push_back(s.minimum(90).finish());
}

} // namespace

void addMatrixTests(Tests &tests) {
  for (int64_t count : {1, 2, 4})
    for (bool transpose : {false, true})
      matrixMoves(tests, count, transpose);
  for (const Format *format : {&f16, &bf16, &tf32})
    mmaFloat(tests, *format, *format);
  for (const Format *a : {&e4m3, &e5m2})
    for (const Format *b : {&e4m3, &e5m2})
      mmaFloat(tests, *a, *b);
  for (const char *a : {"s8", "u8"})
    for (const char *b : {"s8", "u8"})
      mmaInteger(tests, a, b);
  mmaDouble(tests);
}

} // namespace tenon::test
