// SPDX-License-Identifier: Apache-2.0
#include "tenon/verify/Sandbox.h"

#include "tenon/verify/Values.h"

#include <algorithm>
#include <cstring>

namespace tenon {
namespace {

enum Use : uint8_t { read = 1, written = 2 };

constexpr uintptr_t alignment = Buffer::alignment;

bool contains(const std::vector<size_t> &list, size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

} // namespace

std::string argumentName(size_t argument, const std::vector<std::string> &names) {
  return argument < names.size() ? "'" + names[argument] + "'" : "argument " + std::to_string(argument);
}

Sandbox::Sandbox(const Problem &problem, bool alternate) : arguments_(problem.arguments) {
  written_.resize(arguments_.size());
  for (size_t output : problem.outputs)
    written_[output] = true;
  poisoned_ = written_;
  for (size_t output : problem.inPlace)
    poisoned_[output] = false;
  findRegions(problem);
  for (Region &region : regions_) {
    allocate(problem, region, alternate);
    for (size_t member : region.members)
      arguments_[member] = place(problem.arguments[member].tensor(), region);
  }
}

void Sandbox::findRegions(const Problem &problem) {
  struct Range {
    uintptr_t low, high;
    size_t argument;
  };
  std::vector<Range> ranges;
  auto startRegion = [&](const Range &range) {
    Region &region = regions_.emplace_back();
    region.low = range.low;
    region.high = range.high;
    region.members = {range.argument};
  };
  for (size_t i = 0; i < problem.arguments.size(); ++i) {
    if (!problem.arguments[i].isTensor())
      continue;
    const Tensor &tensor = problem.arguments[i].tensor();
    tensor.checkInsideBuffer();
    auto [low, high] = tensor.addresses();
    if (low == high)
      startRegion({low, high, i}); // empty: shares nothing, and still has guards
    else
      ranges.push_back({low, high, i});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.low < b.low; });
  uintptr_t reached = 0;
  for (const Range &range : ranges) {
    if (range.low >= reached) {
      startRegion(range);
    } else {
      regions_.back().members.push_back(range.argument);
      regions_.back().high = std::max(regions_.back().high, range.high);
    }
    reached = regions_.back().high;
  }
}

void Sandbox::allocate(const Problem &problem, Region &region, bool alternate) const {
  // As wide as the region within reason: a tile that hangs over the edge reaches a few rows further.
  size_t bytes = region.bytes();
  region.guard = std::clamp<size_t>(bytes, 4096, size_t(1) << 20);
  region.memory = std::make_shared<Buffer>(bytes + 2 * region.guard + 2 * alignment);
  // Alignment decides which code a launch takes, so the copy keeps it.
  auto start = reinterpret_cast<uintptr_t>(region.memory->begin()) + region.guard;
  start += (alignment + region.low % alignment - start % alignment) % alignment;
  region.begin = reinterpret_cast<std::byte *>(start);

  bool hasFloats = std::any_of(region.members.begin(), region.members.end(), [&](size_t member) {
    return isFloat(problem.arguments[member].tensor().dtype());
  });
  region.poison = static_cast<std::byte>(alternate ? 0x5a : hasFloats ? 0xff : 0xa5);
  findUses(problem, region);
  std::fill_n(region.begin - region.guard, bytes + 2 * region.guard, region.poison);
  if (region.uses.empty() && (region.use & read) && bytes > 0)
    std::memcpy(region.begin, region.original(), bytes);
  for (size_t i = 0; i < region.uses.size(); ++i)
    if (region.uses[i] & read)
      region.begin[i] = region.original()[i];
}

void Sandbox::findUses(const Problem &problem, Region &region) const {
  auto useOf = [&](size_t member) -> uint8_t {
    return !written_[member] ? read : contains(problem.inPlace, member) ? read | written : written;
  };
  // The common case, one dense tensor, needs no table.
  if (region.members.size() == 1 && problem.arguments[region.members[0]].tensor().isContiguous()) {
    region.use = useOf(region.members[0]);
    return;
  }
  region.uses.assign(region.bytes(), 0);
  for (size_t member : region.members) {
    const Tensor &tensor = problem.arguments[member].tensor();
    forEachElement(tensor, [&, size = sizeOf(tensor.dtype()), use = useOf(member)](int64_t, std::byte *element) {
      size_t offset = reinterpret_cast<uintptr_t>(element) - region.low;
      for (size_t i = 0; i < size; ++i)
        region.uses[offset + i] |= use;
    });
  }
}

Tensor Sandbox::place(const Tensor &original, const Region &region) const {
  size_t offset = original.addresses().first - region.low;
  return original.movedTo(region.begin + offset, Device::cpu(), [memory = region.memory] {});
}

std::optional<std::byte> Sandbox::poisonOf(size_t argument) const {
  if (poisoned_[argument])
    for (const Region &region : regions_)
      if (contains(region.members, argument))
        return region.poison;
  return std::nullopt;
}

std::optional<size_t> Sandbox::Region::firstStrayWrite() const {
  const std::byte *start = begin - guard;
  for (size_t i = 0; i < guard; ++i)
    if (start[i] != poison)
      return i;
  bool wholeMayChange = uses.empty() && (use & written);
  bool wholeIsIntact = uses.empty() && use == read && std::memcmp(begin, original(), bytes()) == 0;
  for (size_t i = 0; i < bytes() && !wholeMayChange && !wholeIsIntact; ++i)
    if (!(useOf(i) & written) && begin[i] != (useOf(i) & read ? original()[i] : poison))
      return guard + i;
  for (size_t i = guard + bytes(); i < bytes() + 2 * guard; ++i)
    if (start[i] != poison)
      return i;
  return std::nullopt;
}

std::optional<std::string> Sandbox::damage(const std::vector<std::string> &names) const {
  for (const Region &region : regions_) {
    std::optional<size_t> stray = region.firstStrayWrite();
    if (!stray)
      continue;
    size_t i = *stray, bytes = region.bytes();
    const std::byte *start = region.begin - region.guard;

    // An input's element, if it is one; else the nearest thing to blame is the region's output.
    for (size_t member : region.members) {
      std::optional<std::string> sentence;
      const Tensor &tensor = arguments_[member].tensor();
      if (!written_[member])
        forEachElement(tensor, [&](int64_t index, std::byte *element) {
          auto offset = static_cast<size_t>(element - start);
          if (!sentence && i >= offset && i < offset + sizeOf(tensor.dtype()))
            sentence = "the input " + argumentName(member, names) + " was changed at " + positionText(tensor, index);
        });
      if (sentence)
        return sentence;
    }
    size_t blamed = region.members.front();
    for (size_t member : region.members)
      if (written_[member])
        blamed = member;
    std::string what = (written_[blamed] ? "the output " : "the input ") + argumentName(blamed, names);
    if (i < region.guard)
      return "memory before " + what + " was overwritten, " + std::to_string(region.guard - i) +
             " bytes ahead of its first";
    if (i >= region.guard + bytes)
      return "memory past " + what + " was overwritten, " + std::to_string(i - region.guard - bytes) +
             " bytes after its last";
    return "memory between the elements of " + what + " was overwritten, " + std::to_string(i - region.guard) +
           " bytes after its first";
  }
  return std::nullopt;
}

} // namespace tenon
