// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices as Tile IR, run by the simulator and compared with sums on the host. Elements are small
// integers, so that every order of summation gives the same; what the simulator finds (races, reads of what nobody
// wrote) is a failure.
#pragma once

#include "test/unit/nvidia/TileHarness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon::test {

/// A loop over K around one dot: c (m x n) = a (m x depth) b (depth x n), in steps of k.
struct Product {
  std::string type = "bf16", acc = "f32";
  int64_t m = 32, n = 32, k = 32, depth = 64;
  bool transposedA = false, transposedB = false; ///< the view has the other order, and the tile is transposed
  bool aligned = true;                           ///< whether the kernel is told what the views are multiples of
  std::string attributes = {};                   ///< of the dot
  int64_t warps = 4, stages = 3;
  std::string architecture = "sm_90a";
  uint64_t seed = 0;
  std::string typeB = {}; ///< when it is another one
  int64_t first = 0;      ///< where the loop begins; before 0 there are zeros

  std::string text() const {
    std::string b = typeB.empty() ? type : typeB;
    auto tensor = [](int64_t rows, int64_t columns, const std::string &element) {
      return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "x" + element + ">";
    };
    auto view = [](const std::string &element) { return "!tile.view<2, " + element + ">"; };
    auto operand = [&](const char *name, const char *from, std::string rowAt, std::string columnAt, int64_t rows,
                       int64_t columns, bool transposed, const std::string &element) {
      std::string loaded = tensor(transposed ? columns : rows, transposed ? rows : columns, element), result;
      if (transposed)
        std::swap(rowAt, columnAt);
      result = "    %" + std::string(name) + (transposed ? "0" : "") + " = tile.load %" + from + "[%" + rowAt + ", %" +
               columnAt + "] : " + view(element) + " -> " + loaded + "\n";
      if (transposed)
        result += "    %" + std::string(name) + " = tile.transpose %" + name + "0 [1, 0] : " + loaded + " -> " +
                  tensor(rows, columns, element) + "\n";
      return result;
    };
    std::string accTile = tensor(m, n, acc), zero = acc[0] == 'i' ? "0" : "0.0";
    return "func.func @product(%a: " + view(type) + " FACTS0, %b: " + view(b) + " FACTS1, %c: " + view(acc) +
           " FACTS2) attributes {tile.no_overlap} {\n"
           "  %zero = arith.constant 0 : index\n  %one = arith.constant 1 : index\n"
           "  %first = arith.constant " + std::to_string(first) + " : index\n"
           "  %step = arith.constant " + std::to_string(k) + " : index\n"
           "  %program = tile.grid %one\n"
           "  %depth = tile.size %a, " + (transposedA ? "0" : "1") + " : " + view(type) + "\n"
           "  %init = arith.constant dense<" + zero + "> : " + accTile + "\n"
           "  %sum = scf.for %k = %first to %depth step %step iter_args(%old = %init) -> (" + accTile + ") {\n" +
           operand("x", "a", "zero", "k", m, k, transposedA, type) +
           operand("y", "b", "k", "zero", k, n, transposedB, b) +
           "    %new = tile.dot %x, %y, %old " + attributes + " : " + tensor(m, k, type) + ", " + tensor(k, n, b) +
           ", " + accTile + "\n    scf.yield %new : " + accTile + "\n  }\n"
           "  tile.store %sum, %c[%zero, %zero] : " + accTile + ", " + view(acc) + "\n  return\n}\n";
  }
};

inline TileRun check(const Product &p) {
  std::string typeB = p.typeB.empty() ? p.type : p.typeB;
  bool isInteger = p.acc == "i32";
  bool aUnsigned = p.attributes.find("a_unsigned") != std::string::npos;
  bool bUnsigned = p.attributes.find("b_unsigned") != std::string::npos;
  HostMatrix a(p.type, p.m, p.depth, p.transposedA), b(typeB, p.depth, p.n, p.transposedB), c(p.acc, p.m, p.n);
  int64_t low = isInteger ? -128 : -4, high = isInteger ? 127 : 4;
  a.fill([&](int64_t i, int64_t k) { return low + (i * 7 + k * 13 + i * k) % (high - low + 1); });
  b.fill([&](int64_t k, int64_t j) { return low + (k * 5 + j * 11 + k * j * 3) % (high - low + 1); });
  TileRun run = runTile(p.text(), {&a, &b, &c},
                        {.warps = p.warps, .stages = p.stages, .architecture = p.architecture, .seed = p.seed,
                         .aligned = p.aligned});
  EXPECT_EQ(run.findings, "") << p.text();
  auto byte = [](double value, bool isUnsigned) { return isUnsigned ? double(uint8_t(int8_t(value))) : value; };
  int wrong = 0;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < p.depth; ++k)
        sum += byte(a.at(i, k), aUnsigned) * byte(b.at(k, j), bUnsigned);
      if (c.at(i, j) != sum && ++wrong <= 3)
        ADD_FAILURE() << "element " << i << ", " << j << ": " << c.at(i, j) << " instead of " << sum << "\n"
                      << p.text();
    }
  EXPECT_EQ(wrong, 0);
  return run;
}

inline bool mentions(const TileRun &run, const std::string &text) {
  return std::any_of(run.remarks.begin(), run.remarks.end(),
                     [&](const std::string &remark) { return remark.find(text) != std::string::npos; });
}

} // namespace tenon::test
