// SPDX-License-Identifier: Apache-2.0
//
// Internal to tune/: how a worker judges a candidate without the reference, which for large problems costs thousands of
// times as much as a launch. The first candidate is judged by the reference (or by samples of it); then each is
//
//     1. run on arguments whose outputs are poison: nothing but the outputs may change,
//     2. run again on other poison: the outputs must be the same, bit for bit, where the problem promises it,
//     3. compared with what the first right one left: no further apart than the rule of verify/ leaves room for,
//     4. timed on copies that exceed the caches, and every copy must hold that result afterwards.
//
// All of it is done where the data is: on a device by kernels (Compare.h).
#pragma once

#include "tenon/jit/Jit.h"
#include "tenon/tune/Arena.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace tenon::tuning {

/// Seconds. A first launch, with everything in it cold and others on its processor, may take this long however fast the
/// kernel is: it says nothing, and timing it costs next to nothing.
constexpr double coldLaunch = 1e-3;

/// Where a contiguous output lies in an arena.
struct OutputPlace {
  size_t offset = 0; ///< of its first byte
  int64_t elements = 0;
  DType dtype = DType::f32;
  std::string name;

  size_t bytes() const { return static_cast<size_t>(elements) * sizeOf(dtype); }
};
nlohmann::ordered_json toJson(const std::vector<OutputPlace> &outputs);

/// The worker's side: what candidates start from and are compared with, in the memory of the device that they run on.
class Examination {
public:
  Examination(const nlohmann::ordered_json &images, size_t bytes, Device device);
  ~Examination();

  const Tensor &first() const { return first_; }
  const Tensor &second() const { return second_; }

  struct Complaint {
    std::string text;
    bool damaged = false; ///< it wrote where it must not
  };
  /// Whether anything but the outputs differs from what the launch started from.
  std::optional<Complaint> damage(const Tensor &after, const Tensor &before) const;
  /// Whether outputs differ between two launches on the same inputs, the one begun from first(), the other from
  /// second().
  std::optional<Complaint> difference(const Tensor &one, const Tensor &other) const;
  /// Whether an output is further from what is wanted than it may be.
  std::optional<Complaint> distance(const Tensor &after, const std::vector<double> &tolerances,
                                    const std::vector<double> &relatives);
  /// For the tuner to judge.
  void show(const Tensor &after) const;

private:
  Tensor part(const Tensor &all, const OutputPlace &output, bool asBytes) const;

  size_t bytes_;
  Device device_;
  std::vector<OutputPlace> outputs_; ///< by offset
  std::string wantedPath_;
  MappedArena found_;
  Tensor first_, second_;
  std::optional<Tensor> wanted_; ///< once there is one, it stays
};

} // namespace tenon::tuning
