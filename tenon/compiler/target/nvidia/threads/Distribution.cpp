// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/threads/Distribution.h"

using namespace mlir;

namespace tenon::nvidia {

Distribution::Distribution(RankedTensorType type, int64_t warps)
    : Distribution(llvm::cast<LayoutAttr>(type.getEncoding()), type.getShape(), warps) {}

Distribution::Distribution(LayoutAttr layout, ArrayRef<int64_t> shape, int64_t warps)
    : shape_(shape), span_(shape.size(), 0) {
  int64_t rank = layout.getRank();
  extents_.assign(rank, 1);
  add(layout.getLane(), 0);
  add(layout.getWarp(), 5, warps);
  add(layout.getBlock(), blockBit);
  size_t bits = layout.getReg().size() / rank;
  for (int64_t d = 0; d < rank; ++d) {
    extents_[d] += span_[d];
    for (size_t bit = 0; bit < bits; ++bit)
      extents_[d] += layout.getReg()[bit * rank + d];
  }
  for (int reg = 0; reg < (1 << bits); ++reg) {
    Coords offset(rank, 0);
    for (size_t bit = 0; bit < bits; ++bit)
      if (reg >> bit & 1)
        for (int64_t d = 0; d < rank; ++d)
          offset[d] += layout.getReg()[bit * rank + d];
    bool exists = true;
    for (int64_t d = 0; d < rank; ++d)
      exists &= offset[d] < shape[d];
    byOffset_.try_emplace(key(offset), reg);
    offsets_.push_back(std::move(offset));
    exists_.push_back(exists);
  }
}

/// `count`: so many of the numbers that the bits make are there, the lowest; 0: all.
void Distribution::add(ArrayRef<int64_t> bases, int firstBit, int64_t count) {
  int64_t rank = shape_.size();
  for (size_t bit = 0; bit * rank < bases.size(); ++bit) {
    ThreadBit found{firstBit + static_cast<int>(bit), -1, 0};
    for (int64_t d = 0; d < rank; ++d)
      if (int64_t step = bases[bit * rank + d]) {
        found.dim = d;
        found.step = step;
      }
    threadBits_.push_back(found);
  }
  int64_t bits = static_cast<int64_t>(bases.size()) / rank;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t most = 0;
    for (int64_t number = 0; number < (count ? count : int64_t(1) << bits); ++number) {
      int64_t at = 0;
      for (int64_t bit = 0; bit < bits; ++bit)
        at += number >> bit & 1 ? bases[bit * rank + d] : 0;
      most = std::max(most, at);
    }
    span_[d] += most;
  }
}

bool Distribution::isPartial() const {
  for (int reg = 0; reg < registers(); ++reg)
    for (int64_t d = 0; d < rank(); ++d)
      if (exists(reg) && isPartial(reg, d))
        return true;
  return false;
}

int64_t Distribution::key(ArrayRef<int64_t> offset) const {
  int64_t key = 0;
  for (size_t d = 0; d < extents_.size(); ++d)
    key = key * extents_[d] + offset[d];
  return key;
}

int Distribution::registerAt(ArrayRef<int64_t> offset) const {
  auto found = byOffset_.find(key(offset));
  return found == byOffset_.end() ? -1 : found->second;
}

int64_t Distribution::consecutive(int64_t dim) const {
  int64_t count = 1;
  while (count < registers()) {
    Coords expected(rank(), 0);
    expected[dim] = count;
    if (offsets_[count] != expected)
      break;
    count *= 2;
  }
  return count;
}

} // namespace tenon::nvidia
