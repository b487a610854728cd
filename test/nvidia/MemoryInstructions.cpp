// SPDX-License-Identifier: Apache-2.0
//
// Loads, stores, atomics and asynchronous copies.
#include "test/nvidia/KernelText.h"

namespace tenon::test {
namespace {

using Tests = std::vector<InstructionTest>;

struct Access {
  const char *name, *type;
  int64_t bytes;
};
const Access accesses[] = {{"i8", "i8", 1},
                           {"i16", "i16", 2},
                           {"i32", "i32", 4},
                           {"i64", "i64", 8},
                           {"f16", "f16", 2},
                           {"bf16", "bf16", 2},
                           {"f32", "f32", 4},
                           {"f64", "f64", 8},
                           {"v2i8", "vector<2xi8>", 2},
                           {"v4i8", "vector<4xi8>", 4},
                           {"v8i8", "vector<8xi8>", 8},
                           {"v16i8", "vector<16xi8>", 16},
                           {"v2f16", "vector<2xf16>", 4},
                           {"v4bf16", "vector<4xbf16>", 8},
                           {"v8f16", "vector<8xf16>", 16},
                           {"v2f32", "vector<2xf32>", 8},
                           {"v4f32", "vector<4xf32>", 16},
                           {"v4i32", "vector<4xi32>", 16},
                           {"v2i64", "vector<2xi64>", 16},
                           {"v2f64", "vector<2xf64>", 16}};

std::vector<uint8_t> randomBytes(Random &random, int64_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t &byte : bytes)
    byte = random.bits();
  return bytes;
}

void plainAccess(Tests &tests, const Access &access) {
  Random random(1);
  std::string type = access.type;
  KernelText k(std::string("access_") + access.name, 64, 1, 64 * access.bytes);
  // Global memory, shared memory, and both with an offset of one element back from the next.
  std::string value = k.read(randomBytes(random, 64 * access.bytes), type, access.bytes);
  k.write(value, type, access.bytes);
  k.storeShared(value, type, k.slot(access.bytes));
  k.barrier();
  k.write(k.loadShared(type, k.mirrorSlot(access.bytes)), type, access.bytes);
  std::string minus = std::to_string(-access.bytes);
  int64_t place = k.data(randomBytes(random, 64 * access.bytes));
  std::string next = k.at("%in", place + access.bytes, access.bytes);
  value = k.op("nvidia.load global " + next + " {offset = " + minus + " : i32, streaming} : i64 -> " + type);
  std::string out = k.at("%out", k.room(access.bytes) + access.bytes, access.bytes);
  std::string how = " {offset = " + minus + " : i32, streaming} : ";
  k.line("nvidia.store global " + value + ", " + out + how + type + ", i64");
  tests.push_back(k.finish());
}

void maskedAccess(Tests &tests, const Access &access) {
  Random random(2);
  std::string type = access.type;
  KernelText k(std::string("masked_") + access.name, 64, 1, 64 * access.bytes);
  auto values = [&] { return randomBytes(random, 64 * access.bytes); };
  std::vector<uint8_t> mask = randomBytes(random, 64);
  std::string on = k.readMask(mask), off = k.op("arith.xori " + on + ", " + k.op("arith.constant true") + " : i1");
  std::string otherwise = k.read(values(), type, access.bytes);
  int64_t place = k.data(values());
  // Where the mask is false the address is nobody's memory: it must not be touched.
  std::string good = k.at("%in", place, access.bytes);
  std::string address = k.op("arith.select " + on + ", " + good + ", " + k.i64(0) + " : i64");
  std::string tail = " otherwise " + otherwise + " : " + type;
  for (const char *how : {"", " {streaming}"}) {
    std::string value = k.op("nvidia.load global " + address + " mask " + on + tail + how + " : i64 -> " + type);
    k.write(value, type, access.bytes);
    std::string out = k.at("%out", k.room(access.bytes), access.bytes);
    k.line("nvidia.store global " + value + ", " + out + " mask " + on + how + " : " + type + ", i64");
  }
  k.storeShared(otherwise, type, k.slot(access.bytes));
  k.barrier();
  std::string value = k.read(values(), type, access.bytes);
  k.line("nvidia.store shared " + value + ", " + k.slot(access.bytes) + " mask " + on + " : " + type + ", i32");
  k.barrier();
  k.write(k.op("nvidia.load shared " + k.mirrorSlot(access.bytes) + " mask " + off + tail + " : i32 -> " + type), type,
          access.bytes);
  tests.push_back(k.finish());
}

/// Loads of bytes that the L2 cache is to keep, with and without a mask.
void lastingAccess(Tests &tests, const Access &access) {
  Random random(3);
  std::string type = access.type;
  KernelText k(std::string("lasting_") + access.name, 64, 1, 0);
  std::string on = k.readMask(randomBytes(random, 64));
  std::string otherwise = k.read(randomBytes(random, 64 * access.bytes), type, access.bytes);
  std::string good = k.at("%in", k.data(randomBytes(random, 64 * access.bytes)), access.bytes);
  k.write(k.op("nvidia.load global " + good + " {lasting} : i64 -> " + type), type, access.bytes);
  std::string address = k.op("arith.select " + on + ", " + good + ", " + k.i64(0) + " : i64");
  k.write(k.op("nvidia.load global " + address + " mask " + on + " otherwise " + otherwise + " : " + type +
               " {lasting} : i64 -> " + type),
          type, access.bytes);
  tests.push_back(k.finish());
}

/// Numbers that show what an atomic does: small, random, special.
std::vector<uint32_t> words(Random &random, bool isFloat, int64_t count) {
  const uint32_t special[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x00000001,
                              0x007fffff, 0x00800000, 0x7f7fffff, 0x80000001, 0x7fffffff, 0xffffffff};
  std::vector<uint32_t> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(i % 2 ? special[random.between(0, 12)]
                           : isFloat ? uint32_t((random.bits() & 0x80ffffff) + 0x3f000000) : uint32_t(random.bits()));
  return result;
}
std::vector<uint64_t> longWords(Random &random, bool isFloat, int64_t count) {
  const uint64_t special[] = {0, uint64_t(1) << 63, 0x3ff0000000000000, 0x7ff0000000000000, 0xfff0000000000000, 1,
                              0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, ~uint64_t(0)};
  std::vector<uint64_t> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(i % 2 ? special[random.between(0, 9)]
                           : isFloat ? (random.bits() & 0x801fffffffffffff) + 0x3fe0000000000000 : random.bits());
  return result;
}

template <class T> void atomic(Tests &tests, const std::string &kind, const std::string &type) {
  Random random(3);
  bool isFloat = type[0] == 'f';
  auto values = [&] {
    if constexpr (sizeof(T) == 4)
      return words(random, isFloat, 256);
    else
      return longWords(random, isFloat, 256);
  };
  KernelText k("atomic_" + kind + "_" + type, 256);
  // Each thread updates a place of its own twice, the second time under a mask.
  std::string address = k.at("%out", k.room(sizeof(T)), sizeof(T));
  k.line("nvidia.store global " + k.read(values(), type) + ", " + address + " : " + type + ", i64");
  std::vector<uint8_t> mask(256);
  for (uint8_t &bit : mask)
    bit = random.bits() & 1;
  std::string on = k.readMask(mask);
  for (std::string masked : {"", " mask "}) {
    std::string old;
    if (kind == "cas") {
      std::string expected = k.read(values(), type), desired = k.read(values(), type);
      std::string current = k.op("nvidia.load global " + address + " : i64 -> " + type);
      std::string hit = k.op("arith.trunci " + k.number + " : i32 to i1"); // every second one succeeds
      expected = k.op("arith.select " + hit + ", " + current + ", " + expected + " : " + type);
      old = k.op("nvidia.atomic_cas " + address + ", " + expected + ", " + desired +
                 (masked.empty() ? "" : masked + on) + " : " + type);
    } else {
      old = k.op("nvidia.atomic " + kind + " " + address + ", " + k.read(values(), type) +
                 (masked.empty() ? "" : masked + on) + " : " + type);
    }
    k.write(old, type, sizeof(T));
  }
  if (kind == "fadd")
    k.compare(sizeof(T) == 4 ? Compare::F32 : Compare::F64);
  tests.push_back(k.finish());
}

/// 256 threads, one place. Only the sum is recorded: the order is the hardware's.
void contended(Tests &tests) {
  Random random(4);
  KernelText k("atomic_contended", 256);
  std::vector<uint32_t> values(256);
  for (uint32_t &value : values)
    value = random.bits();
  k.op("nvidia.atomic add " + k.op("arith.addi %out, " + k.i64(k.room(4)) + " : i64") + ", " + k.read(values, "i32") +
       " : i32");
  tests.push_back(k.finish());
}

void copy(Tests &tests, int64_t bytes) {
  Random random(5);
  KernelText k("cp_async_" + std::to_string(bytes), 64, 1, 64 * 16);
  std::string type = bytes == 4 ? "i32" : bytes == 8 ? "i64" : "vector<4xi32>";
  k.storeShared(k.read(randomBytes(random, 64 * 16), "vector<4xi32>", 16), "vector<4xi32>", k.slot(16));
  k.barrier();
  std::vector<uint32_t> sizes(64);
  for (uint32_t &size : sizes)
    size = random.between(0, bytes);
  sizes[0] = 0, sizes[1] = bytes;
  std::string source = k.at("%in", k.data(randomBytes(random, 64 * bytes)), bytes), size = k.read(sizes, "i32");
  std::string slot = k.slot(16, 16 - bytes);
  k.line("nvidia.cp_async " + std::to_string(bytes) + ", " + slot + ", " + source + ", " + size);
  k.line("nvidia.cp_async_commit");
  k.line("nvidia.cp_async_wait 0");
  k.barrier();
  k.write(k.loadShared("vector<4xi32>", k.mirrorSlot(16)), "vector<4xi32>", 16);
  tests.push_back(k.finish());
}

/// Two groups; the first is complete when one is still pending.
void copyGroups(Tests &tests) {
  Random random(6);
  KernelText k("cp_async_groups", 32, 1, 32 * 32);
  for (int group = 0; group < 2; ++group) {
    std::string source = k.at("%in", k.data(randomBytes(random, 32 * 16)), 16);
    k.line("nvidia.cp_async 16, " + k.slot(16, group * 512) + ", " + source + ", " + k.i32(16));
    k.line("nvidia.cp_async_commit");
  }
  k.line("nvidia.cp_async_wait 1");
  k.write(k.loadShared("vector<4xi32>", k.slot(16)), "vector<4xi32>", 16);
  k.line("nvidia.cp_async_wait 0");
  k.write(k.loadShared("vector<4xi32>", k.slot(16, 512)), "vector<4xi32>", 16);
  tests.push_back(k.finish());
}

} // namespace

void addMemoryTests(Tests &tests) {
  for (const Access &access : accesses)
    plainAccess(tests, access);
  for (const Access &access : accesses)
    maskedAccess(tests, access);
  for (const Access &access : accesses)
    lastingAccess(tests, access);
  for (const char *kind : {"add", "smax", "smin", "umax", "umin", "exchange", "cas"}) {
    atomic<uint32_t>(tests, kind, "i32");
    atomic<uint64_t>(tests, kind, "i64");
  }
  for (const char *kind : {"fadd", "exchange"}) {
    atomic<uint32_t>(tests, kind, "f32");
    atomic<uint64_t>(tests, kind, "f64");
  }
  contended(tests);
  for (int64_t bytes : {4, 8, 16})
    copy(tests, bytes);
  copyGroups(tests);
}

} // namespace tenon::test
