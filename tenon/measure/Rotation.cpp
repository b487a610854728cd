// SPDX-License-Identifier: Apache-2.0
#include "tenon/measure/Rotation.h"

#include "tenon/measure/Machine.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

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

} // namespace

Arguments copyArguments(const Arguments &arguments) {
  std::map<const Buffer *, std::shared_ptr<Buffer>> copies;
  Arguments result;
  for (const Argument &argument : arguments) {
    if (!argument.isTensor()) {
      result.push_back(argument);
      continue;
    }
    const Tensor &tensor = argument.tensor();
    auto strides = tensor.strides();
    if (tensor.bufferBytes() == 0 || std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 0; })) {
      result.push_back(tensor.clone());
      continue;
    }
    std::shared_ptr<Buffer> &copy = copies[tensor.buffer().get()];
    if (!copy) {
      copy = std::make_shared<Buffer>(tensor.bufferBytes());
      std::memcpy(copy->begin(), tensor.bufferBegin(), tensor.bufferBytes());
    }
    size_t offset = static_cast<size_t>(static_cast<std::byte *>(tensor.data()) -
                                        static_cast<std::byte *>(tensor.bufferBegin()));
    result.push_back(Tensor::borrow(static_cast<std::byte *>(copy->begin()) + offset, tensor.bufferBytes() - offset,
                                    tensor.dtype(), tensor.sizes(), strides, [copy] {}));
  }
  return result;
}

Rotation::Rotation(const Arguments &arguments) : Rotation(arguments, Options()) {}

Rotation::Rotation(const Arguments &arguments, Options options) : bytesPerSet_(bytesOf(arguments)) {
  const Machine &machine = thisMachine();
  size_t cache = options.cacheBytes ? options.cacheBytes : machine.lastLevelCacheBytes();
  size_t limit = options.maxBytes ? options.maxBytes : std::min<size_t>(size_t(2) << 30, machine.availableBytes / 4);
  size_t each = std::max<size_t>(bytesPerSet_, 1);
  // A set larger than that evicts itself: by the time its end is written, its beginning is gone.
  size_t wanted = each > 2 * cache ? 1 : 2 * cache / each + 2;
  size_t sets = std::clamp<size_t>(std::min(wanted, limit / each), 1, options.maxSets);
  cold_ = sets >= wanted;
  sets_.push_back(arguments);
  while (sets_.size() < sets)
    sets_.push_back(copyArguments(arguments));
}

} // namespace tenon
