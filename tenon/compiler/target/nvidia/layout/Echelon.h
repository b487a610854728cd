// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::nvidia {

/// A growing set of vectors over F2 (64-bit words) that knows its span, and how to write a member of the span as a sum
/// of the vectors that were added. Everything the layouts need of linear algebra: rank, membership, inverse.
class Echelon {
public:
  Echelon() = default;
  explicit Echelon(const std::vector<uint64_t> &vectors) {
    for (uint64_t vector : vectors)
      add(vector);
  }

  /// Whether the vector was independent of those before it; it gets the next index either way.
  bool add(uint64_t vector) {
    auto [rest, sum] = reduce(vector);
    uint64_t self = uint64_t(1) << count_++;
    if (rest)
      rows_.push_back({rest, sum ^ self});
    return rest != 0;
  }

  unsigned rank() const { return rows_.size(); }
  bool contains(uint64_t vector) const { return reduce(vector).vector == 0; }

  /// The added vectors (bit i: the i-th) that sum to this one. A vector that was dependent when it was added is never
  /// used.
  std::optional<uint64_t> solve(uint64_t vector) const {
    auto [rest, sum] = reduce(vector);
    return rest ? std::nullopt : std::optional(sum);
  }

private:
  /// `vector` is the sum of the added vectors of `sum`; its highest bit is in no later row.
  struct Row {
    uint64_t vector, sum;
  };

  Row reduce(uint64_t vector) const {
    uint64_t sum = 0;
    for (const Row &row : rows_)
      if (vector & std::bit_floor(row.vector)) {
        vector ^= row.vector;
        sum ^= row.sum;
      }
    return {vector, sum};
  }

  std::vector<Row> rows_;
  unsigned count_ = 0;
};

} // namespace tenon::nvidia
