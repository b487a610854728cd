// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/verify/Verify.h"

#include <functional>
#include <span>

/// The kernels that come with Tenon. Each lives in its folder with its reference and README.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {
namespace zoo {

/// A kernel of the zoo and how to pose problems to it.
struct Entry {
  std::string name;    ///< "softmax"
  std::string summary; ///< one line
  const Kernel &kernel;
  std::vector<DType> dtypes;              ///< the types it is tested in, the first one its default
  std::vector<std::string> dimensions;    ///< what the numbers of a shape mean: {"rows", "cols"}
  std::vector<int64_t> demoShape;         ///< what `tenon demo` and `tenon bench` measure
  std::vector<std::vector<int64_t>> testShapes; ///< odd ones: 1, 17, 1023, 4097, 0, ...
  /// A problem with random inputs (seeded), its reference and the kernel parameters that suit the shape.
  std::function<Problem(std::span<const int64_t> shape, DType dtype, uint64_t seed)> makeProblem;
  /// The same work as a plain C++ loop over f32 (what one writes without Tenon), for comparison; compiled -O3 -march
  /// baseline + auto-vectorised, single-threaded. Empty when it does not apply to the arguments' type.
  std::function<void(const Arguments &)> plainLoop;
};

/// While it lives, the problems that this thread poses have arguments of the right types and sizes with values that
/// nobody set, in memory that nobody touched: for whoever only counts.
class ShapesOnly {
public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly &) = delete;
  ShapesOnly &operator=(const ShapesOnly &) = delete;
};

const std::vector<Entry> &entries();
/// Throws Error listing the known names.
const Entry &find(std::string_view name);

} // namespace zoo
} // namespace tenon
#pragma GCC visibility pop
