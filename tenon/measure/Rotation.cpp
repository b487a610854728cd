// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Rotation.h"

#include "tenon/measure/Machine.h"

#include <algorithm>
#include <map>

namespace tenon {
namespace {

/// Every buffer once, however many arguments are views of it.
size_t bytesOf(const Arguments &arguments) {
  std::map<const Buffer *, size_t> buffers;
  for (const Argument &argument : arguments)
    if (argument.isTensor())
      buffers[argument.tensor().buffer().get()] = argument.tensor().bufferBytes();
  size_t total = 0;
  for (const auto &[buffer, bytes] : buffers)
    total += bytes;
  return total;
}

/// What `tensor` is of its buffer, of a copy of that buffer.
Tensor viewOfCopy(const Tensor &tensor, const Tensor &copy) {
  // A borrowed tensor starts at its lowest address: lay it out with every stride positive, then turn dimensions around.
  std::vector<int64_t> strides(tensor.strides().begin(), tensor.strides().end());
  std::vector<int64_t> reversed;
  auto offset = static_cast<std::byte *>(tensor.data()) - static_cast<std::byte *>(tensor.bufferBegin());
  for (int64_t d = 0; d < tensor.rank() && tensor.elements() > 0; ++d)
    if (int64_t &stride = strides[static_cast<size_t>(d)]; tensor.size(d) > 1 && stride < 0) {
      offset += (tensor.size(d) - 1) * stride * static_cast<int64_t>(sizeOf(tensor.dtype()));
      stride = -stride;
      reversed.push_back(d);
    }
  Tensor view = Tensor::borrow(static_cast<std::byte *>(copy.data()) + offset,
                               copy.bufferBytes() - static_cast<size_t>(offset), tensor.dtype(), tensor.sizes(),
                               strides, [copy] {}, copy.device());
  for (int64_t d : reversed)
    view = view.slice(d, view.size(d) - 1, view.size(d), -1);
  return view;
}

} // namespace

Arguments copyArguments(const Arguments &arguments, Device device) {
  std::map<const Buffer *, Tensor> copies; // of their bytes
  Arguments result;
  for (const Argument &argument : arguments) {
    if (!argument.isTensor()) {
      result.push_back(argument);
      continue;
    }
    const Tensor &tensor = argument.tensor();
    tensor.checkInsideBuffer();
    if (tensor.bufferBytes() == 0) {
      result.push_back(tensor.to(device));
      continue;
    }
    auto [found, isNew] = copies.try_emplace(tensor.buffer().get());
    if (isNew) {
      auto bytes = static_cast<int64_t>(tensor.bufferBytes());
      found->second = Tensor::borrow(tensor.bufferBegin(), tensor.bufferBytes(), DType::u8, {bytes}).to(device);
    }
    result.push_back(viewOfCopy(tensor, found->second));
  }
  return result;
}

Rotation::Rotation(const Arguments &arguments) : Rotation(arguments, Options()) {}

Rotation::Rotation(const Arguments &arguments, Options options) : bytesPerSet_(bytesOf(arguments)) {
  const Machine &machine = thisMachine();
  size_t cache = options.cacheBytes         ? options.cacheBytes
                 : options.device.isCuda() ? static_cast<size_t>(cudaProperties(options.device.ordinal).l2Bytes)
                                           : machine.lastLevelCacheBytes();
  size_t limit = options.maxBytes ? options.maxBytes : std::min<size_t>(size_t(2) << 30, machine.availableBytes / 4);
  size_t each = std::max<size_t>(bytesPerSet_, 1);
  // A set larger than that evicts itself: by the time its end is written, its beginning is gone.
  size_t wanted = each > 2 * cache ? 1 : 2 * cache / each + 2;
  size_t sets = std::clamp<size_t>(std::min(wanted, limit / each), 1, options.maxSets);
  cold_ = sets >= wanted;
  sets_.push_back(options.device.isCuda() ? copyArguments(arguments, options.device) : arguments);
  while (sets_.size() < sets)
    sets_.push_back(copyArguments(arguments, options.device));
}

} // namespace tenon
