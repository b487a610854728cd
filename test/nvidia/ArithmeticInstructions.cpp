// SPDX-License-Identifier: Apache-2.0
//
// The special function unit, packing, and the plain arithmetic whose rounding the pipeline promises.
#include "test/nvidia/KernelText.h"

#include <array>
#include <bit>

namespace tenon::test {
namespace {

using Tests = std::vector<InstructionTest>;

constexpr int64_t threads = 256;

uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

/// Values at which something happens: ends of f32, f16, bf16 and of the exponential's range, ties of rounding, each
/// with its neighbours.
std::vector<uint32_t> specialFloats() {
  std::vector<uint32_t> values = {0x7fc00000, 0xffc00000, 0x7fffffff, 0x7f800001, 0xffffffff};
  auto around = [&](uint32_t magnitude) {
    for (uint32_t value : {magnitude - 1, magnitude, magnitude + 1})
      if (value <= 0x7f800000)
        values.push_back(value), values.push_back(value | 0x80000000);
  };
  for (uint32_t value : {0x00000001u, 0x007fffffu, 0x00800000u, 0x7f7fffffu, 0x7f800000u}) // f32
    around(value);
  for (float value : {65504.0f, 65519.996f, 65520.0f, 65536.0f, 0x1p-14f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.8p-24f})
    around(bits(value));                                                      // f16
  for (uint32_t value : {0x7f7f0000u, 0x7f7f8000u, 0x00008000u, 0x00018000u}) // bf16
    around(value);
  for (float value : {1 + 0x1p-11f, 1 + 0x1.8p-10f, 1 + 0x1p-8f, 1 + 0x1.8p-7f}) // ties of both
    around(bits(value));
  for (float value : {126.0f, 127.0f, 128.0f, 149.0f, 150.0f, 0.5f, 1.0f, 2.0f, 4.0f, 9.0f, 0x1p24f})
    around(bits(value));
  return values;
}

/// Special values, all bit patterns, numbers of ordinary size.
std::vector<uint32_t> floats(Random &random, int64_t count) {
  std::vector<uint32_t> values = specialFloats();
  while (int64_t(values.size()) < count)
    values.push_back(values.size() % 2 ? uint32_t(random.bits())
                                       : uint32_t((random.bits() & 0x83ffffff) + 0x3d000000));
  values.resize(count);
  return values;
}

/// The same in another order.
std::vector<uint32_t> shuffled(Random &random, std::vector<uint32_t> values) {
  for (int64_t i = values.size() - 1; i > 0; --i)
    std::swap(values[i], values[random.between(0, i)]);
  return values;
}

constexpr int rounds = 4;

/// Writes `rounds` results of one op of f32 operands. `text` has {0}, {1}, {2} for the operands.
void overFloats(Tests &tests, const std::string &name, const std::string &text, const std::string &result,
                int64_t resultBytes, Compare compare, double ulps = 0, double absolute = 0) {
  Random random(40);
  KernelText k(name, threads);
  std::vector<uint32_t> values = floats(random, threads * rounds);
  for (int round = 0; round < rounds; ++round) {
    std::string op = text;
    for (int operand = 0; operand < 3; ++operand) {
      std::string hole = "{" + std::to_string(operand) + "}";
      size_t place = op.find(hole);
      if (place == std::string::npos)
        continue;
      std::vector<uint32_t> all = operand == 0 ? values : shuffled(random, values);
      std::vector<uint32_t> share(all.begin() + round * threads, all.begin() + (round + 1) * threads);
      op.replace(place, 3, k.read(share, "f32"));
    }
    k.write(k.op(op), result, resultBytes);
  }
  tests.push_back(k.compare(compare, ulps, absolute).finish());
}

/// Widening of every 16-bit pattern of the ends of a format, and some between.
void widening(Tests &tests, const std::string &type) {
  Random random(41);
  KernelText k("extend_" + type, threads);
  for (int round = 0; round < rounds; ++round) {
    std::vector<uint16_t> values(threads);
    for (uint16_t &value : values)
      value = random.bits();
    for (int i = 0; i < 64; ++i)
      values[i] = (i < 16 ? 0x0000 : i < 32 ? 0x7bf8 : i < 48 ? 0x7c00 : 0x7f78) + i % 16 + (round % 2 ? 0x8000 : 0);
    k.write(k.op("arith.extf " + k.read(values, type) + " : " + type + " to f32"), "f32", 4);
  }
  tests.push_back(k.compare(Compare::F32).finish());
}

/// Bytes of two words by selectors of which every place is asked for everywhere, by their signs too.
void permutingBytes(Tests &tests) {
  Random random(42);
  KernelText k("permute_bytes", threads);
  for (int round = 0; round < rounds; ++round) {
    std::array<std::vector<uint32_t>, 3> words;
    for (std::vector<uint32_t> &each : words)
      for (int i = 0; i < threads; ++i)
        each.push_back(uint32_t(random.bits()) << 16 | random.bits());
    std::string operands;
    for (const std::vector<uint32_t> &each : words)
      operands += (operands.empty() ? "" : ", ") + k.read(each, "i32");
    k.write(k.op("nvidia.permute_bytes " + operands), "i32", 4);
  }
  tests.push_back(k.compare(Compare::Bits).finish());
}

} // namespace

void addArithmeticTests(Tests &tests) {
  // How far the simulator's stand-in may be from the unit, whose errors stand at nvidia.approx.
  for (const char *function : {"ex2", "rcp", "rsqrt"})
    overFloats(tests, std::string("approx_") + function, std::string("nvidia.approx ") + function + " {0}", "f32", 4,
               Compare::F32, 4);
  overFloats(tests, "approx_lg2", "nvidia.approx lg2 {0}", "f32", 4, Compare::F32, 4, /*absolute=*/0x1p-22);
  overFloats(tests, "approx_tanh", "nvidia.approx tanh {0}", "f32", 4, Compare::F32, 1 << 14);
  overFloats(tests, "pack_f16", "nvidia.pack f16 {0}, {1}", "i32", 4, Compare::F16);
  overFloats(tests, "pack_bf16", "nvidia.pack bf16 {0}, {1}", "i32", 4, Compare::BF16);
  permutingBytes(tests);
  widening(tests, "f16");
  widening(tests, "bf16");
  overFloats(tests, "truncate_f16", "arith.truncf {0} : f32 to f16", "f16", 2, Compare::F16);
  overFloats(tests, "truncate_bf16", "arith.truncf {0} : f32 to bf16", "bf16", 2, Compare::BF16);
  overFloats(tests, "divide", "arith.divf {0}, {1} : f32", "f32", 4, Compare::F32, 2); // div.full
  overFloats(tests, "multiply", "arith.mulf {0}, {1} : f32", "f32", 4, Compare::F32);
  overFloats(tests, "add", "arith.addf {0}, {1} : f32", "f32", 4, Compare::F32);
  overFloats(tests, "fma", "math.fma {0}, {1}, {2} : f32", "f32", 4, Compare::F32);
  overFloats(tests, "sqrt", "math.sqrt {0} : f32", "f32", 4, Compare::F32);
  overFloats(tests, "maximum", "arith.maximumf {0}, {1} : f32", "f32", 4, Compare::F32);
  overFloats(tests, "minimum", "arith.minimumf {0}, {1} : f32", "f32", 4, Compare::F32);
}

} // namespace tenon::test
