// SPDX-License-Identifier: Apache-2.0
//
// Internal to jit/: the views that a GPU kernel's tensor maps are of, found among the words of a launch. Part of every
// launch of such a kernel, and therefore without allocations.
#pragma once

#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/runtime/cuda/TensorMap.h"

#include <span>
#include <vector>

namespace tenon::jit {

class MappedViews {
public:
  /// Refers to `info`. Throws InternalError when its maps contradict its arguments.
  explicit MappedViews(const lower::KernelInfo &info);

  size_t size() const { return maps_.size(); }
  /// The view of a map in a launch with these words.
  cuda::TiledTensor tensor(size_t map, std::span<const int64_t> words) const;
  static bool isEmpty(const cuda::TiledTensor &tensor);

private:
  struct Map {
    size_t firstWord; ///< the view's address; its sizes and strides follow
    unsigned rank;    ///< of the view
    std::vector<unsigned> dims;
    cuda::TiledTensor tensor; ///< without what a launch decides
  };
  std::vector<Map> maps_;
};

} // namespace tenon::jit
