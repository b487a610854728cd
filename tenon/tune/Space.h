// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/jit/Jit.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the tuner may choose for a kernel, declared beside it:
///
///     Space space;
///     space.param("rows", {1, 2, 4, 8, 16}).param("cols", {1024}).option("threads", {1, 0});
///     space.require("a tile of more than 64 Ki elements", [](const Configuration &c) {
///       return c["rows"] * c["cols"] <= 65536;
///     });
///
/// A space is for one problem: its values may depend on the sizes of the arguments.
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// One point of a space: a value for every name.
class Configuration {
public:
  Configuration() = default;
  Configuration(const std::map<std::string, int64_t> &values) : values_(values.begin(), values.end()) {}

  /// Throws Error when there is no such name.
  int64_t operator[](std::string_view name) const;
  int64_t get(std::string_view name, int64_t otherwise) const;
  void set(std::string_view name, int64_t value);
  std::map<std::string, int64_t> values() const { return {values_.begin(), values_.end()}; }

  /// "bk=32 bm=64": by name. parse() reads it.
  std::string str() const;
  static Configuration parse(std::string_view text);

  friend bool operator==(const Configuration &, const Configuration &) = default;
  friend auto operator<=>(const Configuration &, const Configuration &) = default;

private:
  using Value = std::pair<std::string, int64_t>;
  const Value *find(std::string_view name) const;

  std::vector<Value> values_; ///< by name; a handful, and looked up thousands of times
};

/// What a configuration holds on to at least, for refusing it before any code is generated. Zero: not known.
struct Footprint {
  double sharedBytes = 0;   ///< of a GPU block
  double registerBytes = 0; ///< that a GPU block keeps in registers
  double cacheBytes = 0;    ///< that an instance on the CPU uses over and over
};

/// What the machine has of it. Zero: no limit known.
struct Limits {
  double sharedBytes = 0, registersPerThreadBytes = 0, registersPerBlockBytes = 0, cacheBytes = 0;
};
/// Of the target that the options name: this machine's processor, its device, or the architecture the simulator has.
Limits limitsOf(const LaunchOptions &options);

class Space {
public:
  /// Values of a Param of the kernel.
  Space &param(const std::string &name, std::vector<int64_t> values);
  /// Values of an option: "threads", "vector_bits" (of the CPU: 512, 256, 128); "warps", "cluster", "stages", "split",
  /// "tail", "pingpong" (of a GPU).
  Space &option(const std::string &name, std::vector<int64_t> values);
  /// A condition that every configuration must meet; `otherwise` names those that do not.
  Space &require(std::string otherwise, std::function<bool(const Configuration &)> holds);
  /// From now on the only value of a dimension, if the space has that dimension.
  Space &fix(const std::string &name, int64_t value);
  Space &footprint(std::function<Footprint(const Configuration &)> footprint);

  struct Dimension {
    std::string name;
    std::vector<int64_t> values;
    bool isOption = false;
  };
  const std::vector<Dimension> &dimensions() const { return dimensions_; }
  /// Of all combinations, valid or not.
  size_t combinations() const;

  /// How many combinations were refused, by reason.
  using Refusals = std::map<std::string, size_t>;
  /// What is left once the constraints are met and what cannot fit is taken out, in the order of declaration (the last
  /// dimension varies fastest). Generates no code.
  std::vector<Configuration> configurations(const Limits &limits, Refusals *refusals = nullptr) const;

  /// The launch with the configuration's values; what the space does not name stays as it is.
  LaunchOptions apply(const Configuration &configuration, LaunchOptions options) const;

private:
  Space &add(const std::string &name, std::vector<int64_t> values, bool isOption);
  std::string_view refusalOf(const Configuration &configuration, const Limits &limits) const;

  struct Constraint {
    std::string otherwise;
    std::function<bool(const Configuration &)> holds;
  };
  std::vector<Dimension> dimensions_;
  std::vector<Constraint> constraints_;
  std::function<Footprint(const Configuration &)> footprint_;
};

} // namespace tenon
#pragma GCC visibility pop
