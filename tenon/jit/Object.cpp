// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/Object.h"

#include <cstring>

namespace tenon::jit {
namespace {

class Writer {
public:
  void number(uint64_t value) {
    for (int i = 0; i < 8; ++i)
      bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void text(std::span<const char> value) {
    number(value.size());
    auto data = std::as_bytes(value);
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

private:
  std::vector<std::byte> bytes_;
};

class Reader {
public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    if (!need(8))
      return 0;
    for (int i = 0; i < 8; ++i)
      value |= static_cast<uint64_t>(bytes_[at_ + i]) << (8 * i);
    at_ += 8;
    return value;
  }
  std::span<const char> text() {
    uint64_t size = number();
    if (!need(size))
      return {};
    auto data = reinterpret_cast<const char *>(bytes_.data() + at_);
    at_ += size;
    return {data, size};
  }
  std::string string() {
    auto value = text();
    return {value.begin(), value.end()};
  }
  bool failed() const { return failed_; }
  bool atEnd() const { return at_ == bytes_.size(); }
  /// A count of things of at least one byte each: more than there are bytes left is nonsense.
  uint64_t count() {
    uint64_t value = number();
    return need(value) ? value : 0;
  }

private:
  bool need(uint64_t size) {
    failed_ |= size > bytes_.size() - at_;
    return !failed_;
  }
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

void encodeGpu(Writer &w, const lower::KernelInfo::Gpu &gpu) {
  for (int64_t value : {gpu.threads, gpu.cluster, gpu.sharedBytes, gpu.stages})
    w.number(value);
  w.number(gpu.asserts.size());
  for (const auto &check : gpu.asserts) {
    w.text(check.message);
    w.text(check.where);
    w.number(check.rank);
  }
  w.number(gpu.prints.size());
  for (const auto &print : gpu.prints) {
    w.text(print.label);
    w.text(print.element);
    w.number(print.shape.size());
    for (int64_t size : print.shape)
      w.number(size);
    w.number(print.isUnsigned);
  }
  w.number(gpu.tensorMaps.size());
  for (const auto &map : gpu.tensorMaps) {
    w.number(map.argument);
    w.number(map.elementBytes);
    w.number(map.dims.size());
    for (unsigned dim : map.dims)
      w.number(dim);
    w.number(map.box.size());
    for (int64_t size : map.box)
      w.number(size);
    w.number(map.swizzleBytes);
    w.text(map.element);
  }
  w.number(gpu.persistent);
  w.number(gpu.sharesTail);
  w.number(gpu.startsEarly);
}

lower::KernelInfo::Gpu decodeGpu(Reader &r) {
  lower::KernelInfo::Gpu gpu;
  for (int64_t *value : {&gpu.threads, &gpu.cluster, &gpu.sharedBytes, &gpu.stages})
    *value = static_cast<int64_t>(r.number());
  for (uint64_t i = r.count(); i > 0; --i) {
    std::string message = r.string(), where = r.string();
    gpu.asserts.push_back({message, where, static_cast<int64_t>(r.number())});
  }
  for (uint64_t i = r.count(); i > 0; --i) {
    lower::KernelInfo::Gpu::Print print;
    print.label = r.string();
    print.element = r.string();
    for (uint64_t d = r.count(); d > 0; --d)
      print.shape.push_back(static_cast<int64_t>(r.number()));
    print.isUnsigned = r.number() != 0;
    gpu.prints.push_back(std::move(print));
  }
  for (uint64_t i = r.count(); i > 0; --i) {
    lower::KernelInfo::Gpu::TensorMap map;
    map.argument = static_cast<unsigned>(r.number());
    map.elementBytes = static_cast<unsigned>(r.number());
    for (uint64_t d = r.count(); d > 0; --d)
      map.dims.push_back(static_cast<unsigned>(r.number()));
    for (uint64_t d = r.count(); d > 0; --d)
      map.box.push_back(static_cast<int64_t>(r.number()));
    map.swizzleBytes = static_cast<int64_t>(r.number());
    map.element = r.string();
    gpu.tensorMaps.push_back(std::move(map));
  }
  gpu.persistent = r.number() != 0;
  gpu.sharesTail = r.number() != 0;
  gpu.startsEarly = r.number() != 0;
  return gpu;
}

} // namespace

std::vector<std::byte> encodeObject(const lower::KernelInfo &info, std::span<const char> code,
                                    std::span<const char> device) {
  Writer w;
  w.text(info.name);
  w.number(info.arguments.size());
  for (const auto &argument : info.arguments) {
    w.text(argument.name);
    w.number(argument.isView);
    w.number(argument.elementBytes);
    w.number(argument.rank);
  }
  encodeGpu(w, info.gpu);
  w.number(info.scratchBytes);
  w.number(info.promisesNoOverlap);
  w.number(info.requirements.size());
  for (const auto &requirement : info.requirements) {
    w.text(requirement.message);
    w.text(requirement.where);
  }
  w.number(info.workspaces.size());
  for (const auto &workspace : info.workspaces) {
    w.number(workspace.elementBytes);
    w.number(workspace.rank);
    w.number(static_cast<uint64_t>(workspace.initial));
  }
  w.number(info.remarks.size());
  for (const std::string &remark : info.remarks)
    w.text(remark);
  w.number(info.written.size());
  for (bool written : info.written)
    w.number(written);
  w.text(code);
  w.text(device);
  return w.take();
}

std::optional<Object> decodeObject(std::span<const std::byte> bytes) {
  Reader r(bytes);
  Object object;
  object.info.name = r.string();
  for (uint64_t i = r.count(); i > 0; --i) {
    lower::KernelInfo::Argument argument;
    argument.name = r.string();
    argument.isView = r.number() != 0;
    argument.elementBytes = static_cast<unsigned>(r.number());
    argument.rank = static_cast<unsigned>(r.number());
    object.info.arguments.push_back(std::move(argument));
  }
  object.info.gpu = decodeGpu(r);
  object.info.scratchBytes = static_cast<int64_t>(r.number());
  object.info.promisesNoOverlap = r.number() != 0;
  for (uint64_t i = r.count(); i > 0; --i) {
    std::string message = r.string();
    object.info.requirements.push_back({message, r.string()});
  }
  for (uint64_t i = r.count(); i > 0; --i) {
    auto elementBytes = static_cast<unsigned>(r.number());
    auto rank = static_cast<unsigned>(r.number());
    object.info.workspaces.push_back({elementBytes, rank, static_cast<tile::Initial>(r.number())});
  }
  for (uint64_t i = r.count(); i > 0; --i)
    object.info.remarks.push_back(r.string());
  for (uint64_t i = r.count(); i > 0; --i)
    object.info.written.push_back(r.number() != 0);
  object.code = r.text();
  object.device = r.text();
  if (r.failed() || !r.atEnd())
    return std::nullopt;
  return object;
}

} // namespace tenon::jit
