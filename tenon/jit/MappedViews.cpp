// SPDX-License-Identifier: Apache-2.0
#include "tenon/jit/MappedViews.h"

#include "tenon/base/Error.h"

#include <algorithm>

namespace tenon::jit {
namespace {

using TensorMap = lower::KernelInfo::Gpu::TensorMap;
using cuda::TiledTensor;

struct View {
  size_t firstWord;
  std::string_view name;
  bool isView;
  unsigned elementBytes, rank;
};

/// All arguments and workspaces, in the order of their words.
std::vector<View> viewsOf(const lower::KernelInfo &info) {
  std::vector<View> views;
  size_t word = 0;
  auto add = [&](std::string_view name, bool isView, unsigned elementBytes, unsigned rank) {
    views.push_back({word, name, isView, elementBytes, rank});
    word += isView ? 1 + 2 * rank : 1;
  };
  for (const auto &argument : info.arguments)
    add(argument.name, argument.isView, argument.elementBytes, argument.rank);
  for (const auto &workspace : info.workspaces)
    add("a workspace", true, workspace.elementBytes, workspace.rank);
  return views;
}

/// Checked here so that no launch has to.
bool agree(const TensorMap &map, std::span<const View> views) {
  if (map.argument >= views.size() || map.dims.empty() || map.dims.size() > TiledTensor::maxRank ||
      map.box.size() != map.dims.size())
    return false;
  const View &view = views[map.argument];
  return view.isView && view.elementBytes == map.elementBytes &&
         std::ranges::all_of(map.dims, [&](unsigned dim) { return dim < view.rank; });
}

} // namespace

MappedViews::MappedViews(const lower::KernelInfo &info) {
  std::vector<View> views = viewsOf(info);
  if (info.gpu.tensorMaps.size() > cuda::maxTensorMaps)
    throw InternalError("kernel " + info.name + " has " + std::to_string(info.gpu.tensorMaps.size()) +
                        " tensor maps, more than " + std::to_string(cuda::maxTensorMaps));
  for (const TensorMap &map : info.gpu.tensorMaps) {
    if (!agree(map, views))
      throw InternalError("kernel " + info.name + " has a tensor map that is of none of its views");
    const View &view = views[map.argument];
    TiledTensor tensor;
    tensor.name = view.name;
    tensor.element = map.element;
    tensor.elementBytes = map.elementBytes;
    tensor.rank = map.dims.size();
    tensor.swizzleBytes = map.swizzleBytes;
    std::ranges::copy(map.box, tensor.box.begin());
    maps_.push_back({view.firstWord, view.rank, map.dims, tensor});
  }
}

TiledTensor MappedViews::tensor(size_t number, std::span<const int64_t> words) const {
  const Map &map = maps_[number];
  TiledTensor tensor = map.tensor;
  const int64_t *view = words.data() + map.firstWord, *sizes = view + 1, *strides = sizes + map.rank;
  tensor.address = static_cast<uint64_t>(*view);
  for (size_t d = 0; d < map.dims.size(); ++d) {
    unsigned dim = map.dims[d];
    tensor.sizes[d] = sizes[dim];
    // The stride of what has one element means nothing, and need not be one that a map can have.
    tensor.byteStrides[d] = sizes[dim] == 1 && d > 0 ? 16 : strides[dim] * tensor.elementBytes;
  }
  return tensor;
}

bool MappedViews::isEmpty(const TiledTensor &tensor) {
  return std::ranges::any_of(std::span(tensor.sizes).first(tensor.rank), [](int64_t size) { return size == 0; });
}

} // namespace tenon::jit
