// SPDX-License-Identifier: Apache-2.0
//
// Writes the text of a one-instruction kernel: see Instructions.h.
#pragma once

#include "test/nvidia/Instructions.h"

#include <cstring>

namespace tenon::test {

/// Random bits that are the same everywhere (splitmix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t bits() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [low, high].
  int64_t between(int64_t low, int64_t high) { return low + int64_t(bits() % uint64_t(high - low + 1)); }

private:
  uint64_t state;
};

/// Collects one kernel. Values are named as they come: op() returns the name.
class KernelText {
public:
  KernelText(std::string name, int64_t threads = 32, int64_t cluster = 1, int64_t sharedBytes = 0) {
    test.name = std::move(name);
    test.threads = threads;
    test.cluster = cluster;
    test.sharedBytes = sharedBytes;
    if (cluster > 1)
      test.minimumArchitecture = 90;
    thread = op("nvidia.thread_id");
    std::string block = op("nvidia.block_id");
    number = op("arith.addi " + op("arith.muli " + block + ", " + i32(threads) + " : i32") + ", " + thread + " : i32");
    wideNumber = op("arith.extui " + number + " : i32 to i64");
  }

  int64_t allThreads() const { return test.threads * test.cluster; }

  std::string op(const std::string &text) {
    std::string name = "%v" + std::to_string(count++);
    body += "    " + name + " = " + text + "\n";
    return name;
  }
  void line(const std::string &text) { body += "    " + text + "\n"; }
  std::string i32(int64_t value) { return op("arith.constant " + std::to_string(value) + " : i32"); }
  std::string i64(int64_t value) { return op("arith.constant " + std::to_string(value) + " : i64"); }

  /// Adds data to the input buffer and gives its place there.
  template <class T> int64_t data(const std::vector<T> &values) {
    test.input.resize((test.input.size() + 15) / 16 * 16);
    int64_t place = test.input.size();
    test.input.resize(place + values.size() * sizeof(T));
    std::memcpy(test.input.data() + place, values.data(), values.size() * sizeof(T));
    return place;
  }
  /// Makes room in the output buffer for `bytes` of each thread.
  int64_t room(int64_t bytes) {
    int64_t place = test.outputBytes;
    test.outputBytes += (bytes * allThreads() + 15) / 16 * 16;
    return place;
  }
  /// buffer + place + (number of this thread) * bytes.
  std::string at(const std::string &buffer, int64_t place, int64_t bytes) {
    std::string offset = op("arith.muli " + wideNumber + ", " + i64(bytes) + " : i64");
    return op("arith.addi " + op("arith.addi " + buffer + ", " + i64(place) + " : i64") + ", " + offset + " : i64");
  }
  /// This thread's share of the input at `place`.
  std::string read(int64_t place, const std::string &type, int64_t bytes) {
    return op("nvidia.load global " + at("%in", place, bytes) + " : i64 -> " + type);
  }
  template <class T>
  std::string read(const std::vector<T> &values, const std::string &type, int64_t bytes = sizeof(T)) {
    return read(data(values), type, bytes);
  }
  /// Truth from an i8 of the input.
  std::string readMask(const std::vector<uint8_t> &values) {
    return op("arith.trunci " + read(values, "i8") + " : i8 to i1");
  }
  void write(const std::string &value, const std::string &type, int64_t bytes) {
    line("nvidia.store global " + value + ", " + at("%out", room(bytes), bytes) + " : " + type + ", i64");
  }
  /// The shared address of this thread's slot.
  std::string slot(int64_t bytes, int64_t start = 0) {
    return op("arith.addi " + op("arith.muli " + thread + ", " + i32(bytes) + " : i32") + ", " + i32(start) + " : i32");
  }
  /// The same of the thread that mirrors it: threads - 1 - thread.
  std::string mirrorSlot(int64_t bytes, int64_t start = 0) {
    std::string mirror = op("arith.subi " + i32(test.threads - 1) + ", " + thread + " : i32");
    return op("arith.addi " + op("arith.muli " + mirror + ", " + i32(bytes) + " : i32") + ", " + i32(start) + " : i32");
  }
  void storeShared(const std::string &value, const std::string &type, const std::string &address) {
    line("nvidia.store shared " + value + ", " + address + " : " + type + ", i32");
  }
  std::string loadShared(const std::string &type, const std::string &address) {
    return op("nvidia.load shared " + address + " : i32 -> " + type);
  }
  void barrier() { line("nvidia.barrier " + std::to_string(test.threads)); }

  /// The address of a new tensor map.
  std::string map(TestMap map) {
    minimum(90);
    test.maps.push_back(std::move(map));
    return op("nvidia.tensor_map " + std::to_string(test.maps.size() - 1));
  }
  /// Whether this is the first thread of its block.
  std::string first() { return op("arith.cmpi eq, " + thread + ", " + i32(0) + " : i32"); }
  /// Thread 0 makes the mbarrier at the address.
  void initMbarrier(const std::string &address, int64_t count) {
    std::string arrivals = i32(count);
    line("scf.if " + first() + " {");
    line("  nvidia.mbarrier_init " + address + ", " + arrivals);
    line("}");
    barrier();
  }

  KernelText &specific() {
    test.specific = true;
    return minimum(90);
  }
  KernelText &minimum(int architecture) {
    test.minimumArchitecture = std::max(test.minimumArchitecture, architecture);
    return *this;
  }
  KernelText &compare(Compare how, double ulps = 0, double absolute = 0) {
    test.compare = how;
    test.ulps = ulps;
    test.absolute = absolute;
    return *this;
  }

  InstructionTest finish() {
    test.mlir = "func.func @kernel(%in: i64, %out: i64) attributes {nvidia.threads = " + std::to_string(test.threads) +
                " : i64, nvidia.cluster = " + std::to_string(test.cluster) +
                " : i64, nvidia.shared_bytes = " + std::to_string(test.sharedBytes) + " : i64, nvidia.tensor_maps = " +
                std::to_string(test.maps.size()) + " : i64} {\n" + body +
                "    return\n}\n";
    return test;
  }

  std::string thread, number, wideNumber;

private:
  InstructionTest test;
  std::string body;
  int count = 0;
};

// Instructions.cpp joins these.
void addMemoryTests(std::vector<InstructionTest> &);
void addOrderTests(std::vector<InstructionTest> &);
void addExchangeTests(std::vector<InstructionTest> &);
void addMatrixTests(std::vector<InstructionTest> &);
void addArithmeticTests(std::vector<InstructionTest> &);
void addBulkTests(std::vector<InstructionTest> &);
void addWarpgroupTests(std::vector<InstructionTest> &);

} // namespace tenon::test
