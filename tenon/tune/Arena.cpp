// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Arena.h"

#include "tenon/base/Error.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tenon::tuning {
namespace {

constexpr auto guardByte = std::byte{0xcb};

std::byte *mapShared(int file, size_t bytes) {
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    throw Error("cannot map " + std::to_string(bytes) + " bytes of shared memory: " + std::strerror(errno));
  return static_cast<std::byte *>(memory);
}

} // namespace

Arena::Arena(const Kernel &kernel, const Arguments &arguments) {
  std::vector<ParameterKind> kinds;
  for (const KernelParameter &parameter : kernel.parameters())
    if (parameter.kind != ParameterKind::param) {
      kinds.push_back(parameter.kind);
      names_.push_back(parameter.name);
    }
  if (kinds.size() != arguments.size())
    throw Error("kernel " + kernel.name() + " takes " + std::to_string(kinds.size()) + " run-time arguments, not " +
                std::to_string(arguments.size()));
  findRegions(arguments);
  offsets_.resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor()) {
      const auto *integer = std::get_if<int64_t>(&arguments[i].value());
      if (kinds[i] == ParameterKind::index && integer)
        words_.push_back(*integer);
      else
        words_.push_back(std::bit_cast<int64_t>(
            integer ? static_cast<double>(*integer) : std::get<double>(arguments[i].value())));
      continue;
    }
    const Tensor &tensor = arguments[i].tensor();
    for (const Region &region : regions_)
      if (std::find(region.members.begin(), region.members.end(), i) != region.members.end()) {
        uintptr_t base = arguments[region.first].tensor().addresses().first;
        addresses_.push_back(words_.size());
        offsets_[i] = region.offset + (reinterpret_cast<uintptr_t>(tensor.data()) - base);
        words_.push_back(static_cast<int64_t>(offsets_[i]));
      }
    words_.insert(words_.end(), tensor.sizes().begin(), tensor.sizes().end());
    words_.insert(words_.end(), tensor.strides().begin(), tensor.strides().end());
  }
  file_ = ::memfd_create("tenon-tune", MFD_CLOEXEC);
  if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(bytes_)) != 0) {
    int error = errno;
    if (file_ >= 0)
      ::close(file_);
    throw Error("cannot make " + std::to_string(bytes_) + " bytes of shared memory: " + std::strerror(error));
  }
  try {
    memory_ = mapShared(file_, bytes_);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

Arena::~Arena() {
  ::munmap(memory_, bytes_);
  ::close(file_);
}

void Arena::findRegions(const Arguments &arguments) {
  struct Range {
    uintptr_t low, high;
    size_t argument;
  };
  std::vector<Range> ranges;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].isTensor()) {
      const Tensor &tensor = arguments[i].tensor();
      if (!tensor.device().isCpu())
        throw Error("tuning starts from arguments in the host's memory: argument '" + names_[i] + "' is on " +
                    tensor.device().str());
      tensor.checkInsideBuffer();
      auto [low, high] = tensor.addresses();
      ranges.push_back({low, high, i});
    }
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) {
    return std::tie(a.low, a.argument) < std::tie(b.low, b.argument);
  });
  uintptr_t reached = 0;
  for (const Range &range : ranges) {
    if (regions_.empty() || range.low >= reached || range.low == range.high) {
      // Alignment decides which code a launch takes, so the copy keeps it.
      size_t guard = std::clamp<size_t>(range.high - range.low, 4096, size_t(1) << 20);
      constexpr size_t unit = 4096;
      size_t offset = (bytes_ + guard + unit - 1) / unit * unit + range.low % Buffer::alignment;
      regions_.push_back({range.argument, offset, 0, guard, {}});
    }
    Region &region = regions_.back();
    region.members.push_back(range.argument);
    uintptr_t low = arguments[region.first].tensor().addresses().first;
    region.bytes = std::max<size_t>(region.bytes, range.high - low);
    reached = std::max(reached, range.high);
    bytes_ = region.offset + region.bytes + region.guard;
  }
  bytes_ = (std::max<size_t>(bytes_, 1) + 4095) / 4096 * 4096;
}

std::string Arena::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_);
}

void Arena::load(const Arguments &arguments) {
  for (const Region &region : regions_) {
    std::fill_n(at(region.offset - region.guard), region.guard, guardByte);
    if (region.bytes > 0)
      std::memcpy(at(region.offset), reinterpret_cast<void *>(arguments[region.first].tensor().addresses().first),
                  region.bytes);
    std::fill_n(at(region.offset + region.bytes), region.guard, guardByte);
  }
}

void Arena::store(const Arguments &arguments) const {
  for (const Region &region : regions_) {
    auto intact = [&](size_t from) {
      return std::all_of(at(from), at(from + region.guard), [](std::byte byte) { return byte == guardByte; });
    };
    bool below = intact(region.offset - region.guard);
    if (!below || !intact(region.offset + region.bytes))
      throw Error(std::string("the candidate wrote ") + (below ? "past the end" : "before the start") + " of '" +
                  names_[region.members.front()] + "'");
    if (region.bytes > 0)
      std::memcpy(reinterpret_cast<void *>(arguments[region.first].tensor().addresses().first), at(region.offset),
                  region.bytes);
  }
}

MappedArena::MappedArena(const std::string &path, size_t bytes) : bytes_(bytes) {
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    throw Error("cannot open the tuner's shared memory: " + std::string(std::strerror(errno)));
  try {
    memory_ = mapShared(file, bytes);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
}

MappedArena::~MappedArena() { ::munmap(memory_, bytes_); }

} // namespace tenon::tuning
