// SPDX-License-Identifier: Apache-2.0
//
// A whole kernel: one block of 128 threads multiplies 64 x K by (64 x K)^T in f16, with asynchronous copies into two
// stages of shared memory, ldmatrix and mma. Right, fast enough, and wrong in the ways that pipelines go wrong.
#include "tenon/base/FloatFormats.h"
#include "test/unit/nvidia/SimHarness.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tenon::test {
namespace {

constexpr int depth = 256, pitch = 80, matrixBytes = 64 * pitch, stageBytes = 2 * matrixBytes;

/// Collects the lines of a function; values are numbered as they come.
class Text {
public:
  std::string op(const std::string &text) {
    std::string name = "%v" + std::to_string(count_++);
    line(name + " = " + text);
    return name;
  }
  void line(const std::string &text) { body += text + "\n"; }
  std::string i32(int64_t value) { return op("arith.constant " + std::to_string(value) + " : i32"); }
  std::string of(const char *what, const std::string &a, const std::string &b) {
    return op(std::string("arith.") + what + " " + a + ", " + b + " : i32");
  }
  std::string of(const char *what, const std::string &a, int64_t b) { return of(what, a, i32(b)); }

  std::string body;

private:
  int count_ = 0;
};

/// Starts the copies of the 32 columns from `column` on (a value of type i32) into the stage at byte `stage`.
void emitCopies(Text &t, const std::string &tid, const std::string &column, const std::string &stage) {
  std::string inside = t.op("arith.cmpi ult, " + column + ", " + t.i32(depth) + " : i32");
  std::string bytes = t.op("arith.select " + inside + ", " + t.i32(16) + ", " + t.i32(0) + " : i32");
  for (int matrix = 0; matrix < 2; ++matrix)
    for (int part = 0; part < 2; ++part) {
      std::string chunk = t.of("addi", tid, 128 * part);
      std::string row = t.of("divui", chunk, 4), across = t.of("remui", chunk, 4);
      std::string to = t.of("addi", t.of("addi", t.of("muli", row, pitch), t.of("muli", across, 16)), stage);
      std::string from = t.of("addi", t.of("muli", row, 2 * depth),
                              t.of("addi", t.of("muli", across, 16), t.of("muli", column, 2)));
      from = t.op("arith.extui " + from + " : i32 to i64");
      from = t.op("arith.addi " + std::string(matrix ? "%b" : "%a") + ", " + from + " : i64");
      t.line("nvidia.cp_async 16, " + t.of("addi", to, matrix * matrixBytes) + ", " + from + ", " + bytes);
    }
  t.line("nvidia.cp_async_commit");
}

/// 2 x 4 products of a warp's 32 x 32 share, for the 32 columns in the stage. Returns the new sums.
std::vector<std::string> emitProducts(Text &t, const std::string &tid, const std::string &stage,
                                      std::vector<std::string> sums) {
  std::string lane = t.of("remui", tid, 32), warp = t.of("divui", tid, 32);
  std::string rows = t.of("muli", t.of("divui", warp, 2), 32), columns = t.of("muli", t.of("remui", warp, 2), 32);
  std::string of8 = t.of("remui", lane, 8), of16 = t.of("remui", lane, 16), high = t.of("divui", lane, 16);
  std::string middle = t.of("remui", t.of("divui", lane, 8), 2);
  for (int k = 0; k < 32; k += 16) {
    std::vector<std::string> a, b;
    for (int m = 0; m < 2; ++m) {
      std::string row = t.of("addi", t.of("addi", rows, 16 * m), of16);
      std::string at = t.of("addi", t.of("muli", row, pitch), t.of("addi", t.of("muli", high, 16), 2 * k));
      a.push_back(t.op("nvidia.ldmatrix " + t.of("addi", at, stage) + " -> vector<4xi32>"));
    }
    for (int n = 0; n < 2; ++n) {
      std::string row = t.of("addi", t.of("addi", columns, 16 * n), t.of("addi", t.of("muli", high, 8), of8));
      std::string at = t.of("addi", t.of("muli", row, pitch), t.of("addi", t.of("muli", middle, 16), 2 * k));
      at = t.of("addi", t.of("addi", at, matrixBytes), stage);
      std::string four = t.op("nvidia.ldmatrix " + at + " -> vector<4xi32>");
      for (int half = 0; half < 2; ++half)
        b.push_back(t.op("vector.extract_strided_slice " + four + " {offsets = [" + std::to_string(2 * half) +
                         "], sizes = [2], strides = [1]} : vector<4xi32> to vector<2xi32>"));
    }
    for (int m = 0; m < 2; ++m)
      for (int n = 0; n < 4; ++n)
        sums[4 * m + n] = t.op("nvidia.mma f16 f16 " + a[m] + ", " + b[n] + ", " + sums[4 * m + n] +
                               " : vector<4xi32>, vector<2xi32>, vector<4xf32>");
  }
  return sums;
}

std::string matmul(int pending, bool lastBarrier) {
  Text t;
  std::string tid = t.op("nvidia.thread_id");
  emitCopies(t, tid, t.i32(0), t.i32(0));
  std::string zero = t.op("arith.constant dense<0.0> : vector<4xf32>");
  std::string list, types;
  std::vector<std::string> sums;
  for (int i = 0; i < 8; ++i) {
    sums.push_back("%s" + std::to_string(i));
    list += (i ? ", " : "") + sums[i] + " = " + zero;
    types += (i ? ", " : "") + std::string("vector<4xf32>");
  }
  std::string from = t.i32(0), to = t.i32(depth), step = t.i32(32);
  t.line("%r:8 = scf.for %k = " + from + " to " + to + " step " + step + " iter_args(" + list + ") -> (" + types +
         ") : i32 {");
  std::string parity = t.of("remui", t.of("divui", "%k", 32), 2);
  std::string here = t.of("muli", parity, stageBytes);
  emitCopies(t, tid, t.of("addi", "%k", 32), t.of("subi", t.i32(stageBytes), here));
  t.line("nvidia.cp_async_wait " + std::to_string(pending));
  t.line("nvidia.barrier 128");
  sums = emitProducts(t, tid, here, sums);
  if (lastBarrier)
    t.line("nvidia.barrier 128");
  std::string yielded;
  for (int i = 0; i < 8; ++i)
    yielded += (i ? ", " : "") + sums[i];
  t.line("scf.yield " + yielded + " : " + types);
  t.line("}");
  // Rows lane / 4 and 8 below, columns lane % 4 * 2 and the next.
  std::string lane = t.of("remui", tid, 32), warp = t.of("divui", tid, 32);
  std::string row = t.of("addi", t.of("muli", t.of("divui", warp, 2), 32), t.of("divui", lane, 4));
  std::string column =
      t.of("addi", t.of("muli", t.of("remui", warp, 2), 32), t.of("muli", t.of("remui", lane, 4), 2));
  for (int i = 0; i < 8; ++i)
    for (int half = 0; half < 2; ++half) {
      std::string pair = t.op("vector.extract_strided_slice %r#" + std::to_string(i) + " {offsets = [" +
                              std::to_string(2 * half) +
                              "], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>");
      std::string at = t.of("addi", t.of("muli", t.of("addi", row, i / 4 * 16 + half * 8), 64),
                            t.of("addi", column, i % 4 * 8));
      std::string byte = t.op("arith.extui " + t.of("muli", at, 4) + " : i32 to i64");
      std::string address = t.op("arith.addi %c, " + byte + " : i64");
      t.line("nvidia.store global " + pair + ", " + address + " : vector<2xf32>, i64");
    }
  return "func.func @kernel(%a: i64, %b: i64, %c: i64) attributes {nvidia.threads = 128 : i64, "
         "nvidia.cluster = 1 : i64, nvidia.shared_bytes = " + std::to_string(2 * stageBytes) + " : i64} {\n" +
         t.body + "return\n}\n";
}

struct Operands {
  SimBuffer a{"a", 64 * depth * 2, false}, b{"b", 64 * depth * 2, false}, c{"c", 64 * 64 * 4};
  Operands() {
    for (int i = 0; i < 64 * depth; ++i) {
      a.as<uint16_t>()[i] = f64ToF16(i * 7 % 13 - 6);
      b.as<uint16_t>()[i] = f64ToF16(i * 5 % 11 - 5);
    }
  }
};

TEST(SimulatedMatmul, IsRightAndFast) {
  SimKernel kernel(matmul(1, true));
  for (uint64_t seed : {0, 1, 2}) {
    Operands operands;
    sim::SimOptions options;
    options.seed = seed;
    auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(runSim(kernel, {&operands.a, &operands.b, &operands.c}, 1, options).text(), "");
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    RecordProperty("milliseconds with seed " + std::to_string(seed), std::to_string(elapsed.count()));
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j) {
        float sum = 0;
        for (int k = 0; k < depth; ++k)
          sum += f16ToF32(operands.a.as<uint16_t>()[i * depth + k]) *
                 f16ToF32(operands.b.as<uint16_t>()[j * depth + k]);
        ASSERT_EQ(operands.c.as<float>()[i * 64 + j], sum) << i << ", " << j;
      }
  }
}

TEST(SimulatedMatmul, FindsBrokenPipelines) {
  Operands operands;
  auto text = [&](const std::string &mlir) {
    return runSim(SimKernel(mlir), {&operands.a, &operands.b, &operands.c}).text();
  };
  EXPECT_NE(text(matmul(2, true)).find("no wait for it in between"), std::string::npos);
  EXPECT_NE(text(matmul(1, false)).find("starts a copy to"), std::string::npos);
}

} // namespace
} // namespace tenon::test
