// SPDX-License-Identifier: Apache-2.0
//
// wgmma, and the registers of a warpgroup. Operands lie in shared memory, and accumulators in registers, as the test
// finds them: which element is where is for the hardware to say.
#include "test/nvidia/Elements.h"

namespace tenon::test {
namespace {

using Tests = std::vector<InstructionTest>;

/// How an operand lies in shared memory: what its descriptor says, and how many bytes it takes.
struct Layout {
  std::string name;
  int swizzleBytes; // 0: none
  bool transposed;
  int64_t leading, stride;
  int64_t bytesPerRow; // of the operand: so much of shared memory for each row of a or column of b
  int64_t start = 0;   // where the operand starts, in bytes

  uint64_t descriptor(int64_t address) const {
    uint64_t mode = swizzleBytes == 128 ? 1 : swizzleBytes == 64 ? 2 : swizzleBytes == 32 ? 3 : 0;
    return uint64_t(address + start) >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | mode << 62;
  }
};
const Layout swizzled128{"k128", 128, false, 16, 1024, 128};

/// What one test multiplies.
struct Product {
  std::string name, aType, bType;
  int n;
  Layout a = swizzled128, b = swizzled128;
  bool fromRegisters = false, accumulates = true;
  int64_t blocks = 1; // of a cluster, with operands of their own
};

/// The elements of words, from what randomElement or the bits themselves give.
template <class Element> std::vector<uint32_t> wordsOf(int64_t count, int elementBits, Element element) {
  std::vector<uint32_t> words(count);
  for (uint32_t &word : words)
    for (int shift = 0; shift < 32; shift += elementBits)
      word |= element() << shift;
  return words;
}

/// Fills `bytes` of shared memory from `start` on with words of the input.
void fill(KernelText &k, int64_t start, const std::vector<uint32_t> &words) {
  int64_t place = k.data(words), rounds = 4 * words.size() / (16 * k.allThreads());
  std::string from = k.at("%in", place, 16), to = k.slot(16, start);
  for (int64_t round = 0; round < rounds; ++round) {
    auto offset = [&](int64_t threads) {
      return " {offset = " + std::to_string(round * 16 * threads) + " : i32} : ";
    };
    std::string value = k.op("nvidia.load global " + from + offset(k.allThreads()) + "i64 -> vector<4xi32>");
    k.line("nvidia.store shared " + value + ", " + to + offset(128) + "vector<4xi32>, i32");
  }
}

template <class A, class B, class C>
InstructionTest multiply(const Product &product, int aBits, int bBits, A a, B b, C c, const std::string &sumType) {
  int64_t aBytes = 64 * product.a.bytesPerRow, bBytes = std::max<int64_t>(product.n * product.b.bytesPerRow, 2048);
  aBytes = (aBytes + 1023) / 1024 * 1024;
  bBytes = (bBytes + 2047) / 2048 * 2048;
  KernelText k(product.name, 128, product.blocks, aBytes + bBytes);
  fill(k, 0, wordsOf(product.blocks * aBytes / 4, aBits, a));
  fill(k, aBytes, wordsOf(product.blocks * bBytes / 4, bBits, b));
  int words = product.n / 2;
  std::string quad = "vector<4x" + sumType + ">", sums, registers, results;
  std::string from = k.at("%in", k.data(wordsOf(k.allThreads() * words, 32, c)), 4 * words);
  for (int i = 0; i < words; ++i) {
    sums += (i ? ", " : "") + k.op("nvidia.load global " + from + " {offset = " + std::to_string(4 * i) +
                                   " : i32} : i64 -> " + sumType);
    results += (i ? ", %d#" : "%d#") + std::to_string(i);
  }
  std::string left = k.i64(int64_t(product.a.descriptor(0)));
  if (product.fromRegisters) {
    std::string fragment = k.read(wordsOf(k.allThreads() * 4, aBits, a), "vector<4xi32>", 16);
    left = "";
    for (int i = 0; i < 4; ++i)
      left += (i ? ", " : "") + k.op("vector.extract " + fragment + "[" + std::to_string(i) + "] : i32 from vector<4xi32>");
  }
  std::string right = k.i64(int64_t(product.b.descriptor(aBytes)));
  std::string scale = k.op(std::string("arith.constant ") + (product.accumulates ? "true" : "false"));
  k.line("nvidia.fence proxy_async");
  k.barrier();
  k.line("nvidia.wgmma_fence");
  std::string count = std::to_string(words), raw = results;
  for (size_t at = raw.find("%d"); at != std::string::npos; at = raw.find("%d", at))
    raw[at + 1] = 'r';
  k.line("%r:" + count + " = nvidia.wgmma " + product.aType + " " + product.bType + " " + std::to_string(product.n) +
         " [" + sums + "], (" + left + "), " + right + ", " + scale + (product.a.transposed ? " {trans_a}" : "") +
         (product.b.transposed ? " {trans_b}" : "") + " : " +
         (product.fromRegisters ? "i32, i32, i32, i32" : "i64") + " : " + sumType);
  k.line("nvidia.wgmma_commit");
  k.line("%d:" + count + " = nvidia.wgmma_wait 0 [" + raw + "] : " + sumType);
  std::string to = k.at("%out", k.room(4 * words), 4 * words);
  for (int i = 0; i < words; i += 4) {
    std::string four;
    for (int j = i; j < i + 4; ++j)
      four += (j > i ? ", %d#" : "%d#") + std::to_string(j);
    k.line("nvidia.store global " + k.op("vector.from_elements " + four + " : " + quad) + ", " + to +
           " {offset = " + std::to_string(4 * i) + " : i32} : " + quad + ", i64");
  }
  return k.specific().compare(sumType == "f32" ? Compare::F32 : Compare::Bits).finish();
}

InstructionTest multiplyFloats(Product product, const Format &a, const Format &b, Inputs inputs) {
  Random random(50 + int(inputs));
  product.aType = a.name;
  product.bType = b.name;
  return multiply(
      product, a.bits, b.bits, [&] { return randomElement(random, a, inputs); },
      [&] { return randomElement(random, b, inputs); }, [&] { return randomElement(random, f32, inputs); }, "f32");
}

InstructionTest multiplyIntegers(Product product) {
  Random random(60);
  auto byte = [&] { return uint32_t(random.bits() & 255); };
  return multiply(product, 8, 8, byte, byte, [&] { return uint32_t(random.bits()); }, "i32");
}

/// Every type, and what its sums are like.
void types(Tests &tests) {
  auto add = [&](const Format &a, const Format &b) {
    std::string name = "wgmma_" + std::string(a.name) + (&a == &b ? "" : "_" + std::string(b.name)) + "_";
    for (Inputs inputs : {Inputs::Integers, Inputs::Near, Inputs::Far, Inputs::Special})
      tests.push_back(multiplyFloats({name + nameOf(inputs), "", "", 16}, a, b, inputs));
    Product registers{name + "registers", "", "", 16};
    registers.fromRegisters = true;
    tests.push_back(multiplyFloats(registers, a, b, Inputs::Near));
  };
  for (const Format *format : {&f16, &bf16, &tf32})
    add(*format, *format);
  for (const Format *a : {&e4m3, &e5m2})
    for (const Format *b : {&e4m3, &e5m2})
      add(*a, *b);
  for (const char *a : {"s8", "u8"})
    for (const char *b : {"s8", "u8"}) {
      Product product{std::string("wgmma_") + a + "_" + b, a, b, 16};
      tests.push_back(multiplyIntegers(product));
      product.name += "_registers";
      product.fromRegisters = true;
      tests.push_back(multiplyIntegers(product));
    }
}

/// Every number of columns takes its own instruction; and accumulators that are not looked at.
void columns(Tests &tests) {
  for (int n : {8, 24, 104, 256})
    tests.push_back(multiplyFloats({"wgmma_n" + std::to_string(n), "", "", n}, bf16, bf16, Inputs::Integers));
  for (int n : {8, 24, 80})
    tests.push_back(multiplyIntegers({"wgmma_s8_n" + std::to_string(n), "s8", "s8", n}));
  Product fresh{"wgmma_fresh", "", "", 16};
  fresh.accumulates = false;
  tests.push_back(multiplyFloats(fresh, bf16, bf16, Inputs::Special));
}

/// Both majors with each swizzle, of either operand.
void layouts(Tests &tests) {
  std::vector<Layout> all = {
      {"k", 0, false, 128, 256, 32},
      {"k_apart", 0, false, 2048, 128, 64},
      {"k32", 32, false, 16, 256, 32},
      {"k64", 64, false, 16, 512, 64},
      {"k64_second", 64, false, 16, 512, 64, 32},
      {"k128_fourth", 128, false, 16, 1024, 128, 96},
      {"k128_leading", 128, false, 1024, 1024, 128},
      {"mn", 0, true, 128, 256, 32},
      {"mn_apart", 0, true, 2048, 128, 64},
      {"mn32", 32, true, 512, 256, 32},
      {"mn64", 64, true, 1024, 512, 32},
      {"mn128", 128, true, 2048, 1024, 32},
  };
  for (const Layout &layout : all) {
    Product left{"wgmma_a_" + layout.name, "", "", 16, layout};
    tests.push_back(multiplyFloats(left, f16, f16, Inputs::Integers));
    int n = layout.transposed && layout.swizzleBytes == 128 ? 128 : 64; // so that every offset counts
    Product right{"wgmma_b_" + layout.name, "", "", n, swizzled128, layout};
    tests.push_back(multiplyFloats(right, f16, f16, Inputs::Integers));
  }
}

/// The second block's shared memory has other addresses than the first's; a descriptor has its offset alone.
void clusters(Tests &tests) {
  Layout panels{"mn128", 128, true, 2048, 1024, 32};
  Product product{"wgmma_cluster", "", "", 128, swizzled128, panels};
  product.blocks = 2;
  tests.push_back(multiplyFloats(product, bf16, bf16, Inputs::Integers));
}

void registers(Tests &tests) {
  KernelText k("set_max_registers", 128);
  k.line("nvidia.set_max_registers 64 {increase = false}");
  k.line("nvidia.set_max_registers 128 {increase = true}");
  k.write(k.thread, "i32", 4);
  tests.push_back(k.specific().finish());
}

} // namespace

void addWarpgroupTests(Tests &tests) {
  types(tests);
  columns(tests);
  layouts(tests);
  clusters(tests);
  registers(tests);
}

} // namespace tenon::test
