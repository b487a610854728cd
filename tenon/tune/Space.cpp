// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/Space.h"

#include "tenon/base/Error.h"
#include "tenon/measure/Machine.h"

#include <algorithm>
#include <charconv>

namespace tenon {
namespace {

/// An option by the name it has in a space. One more is one more line here.
struct Option {
  const char *name;
  void (*set)(LaunchOptions &, int64_t);
};

const char *isaOfBits(int64_t bits) {
  switch (bits) {
  case 512: return "avx512";
  case 256: return "avx2";
  case 128: return "baseline";
  }
  throw Error("no instruction set has vectors of " + std::to_string(bits) + " bits: vector_bits is 512, 256 or 128");
}

constexpr Option options[] = {
    {"threads", [](LaunchOptions &o, int64_t value) { o.threads = static_cast<int>(value); }},
    {"vector_bits", [](LaunchOptions &o, int64_t value) { o.compile.isa = isaOfBits(value); }},
    {"warps", [](LaunchOptions &o, int64_t value) { o.compile.warps = static_cast<int>(value); }},
    {"cluster", [](LaunchOptions &o, int64_t value) { o.compile.cluster = static_cast<int>(value); }},
    {"stages", [](LaunchOptions &o, int64_t value) { o.compile.stages = static_cast<int>(value); }},
    {"split", [](LaunchOptions &o, int64_t value) { o.compile.split = static_cast<int>(value); }},
    {"tail", [](LaunchOptions &o, int64_t value) { o.compile.shareTail = value != 0; }},
    {"pingpong", [](LaunchOptions &o, int64_t value) { o.compile.pingPong = value != 0; }},
};

const Option *findOption(std::string_view name) {
  for (const Option &option : options)
    if (option.name == name)
      return &option;
  return nullptr;
}

} // namespace

//===--- Configuration --------------------------------------------------------------------------------------------===//

const Configuration::Value *Configuration::find(std::string_view name) const {
  for (const Value &value : values_)
    if (value.first == name)
      return &value;
  return nullptr;
}

int64_t Configuration::operator[](std::string_view name) const {
  const Value *found = find(name);
  if (!found)
    throw Error("configuration '" + str() + "' has no '" + std::string(name) + "'");
  return found->second;
}

int64_t Configuration::get(std::string_view name, int64_t otherwise) const {
  const Value *found = find(name);
  return found ? found->second : otherwise;
}

void Configuration::set(std::string_view name, int64_t value) {
  auto place = std::lower_bound(values_.begin(), values_.end(), name,
                                [](const Value &one, std::string_view wanted) { return one.first < wanted; });
  if (place == values_.end() || place->first != name)
    place = values_.emplace(place, std::string(name), value);
  place->second = value;
}

std::string Configuration::str() const {
  std::string text;
  for (const auto &[name, value] : values_)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

Configuration Configuration::parse(std::string_view text) {
  Configuration configuration;
  while (!text.empty()) {
    size_t space = std::min(text.find(' '), text.size());
    std::string_view item = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    size_t equals = item.find('=');
    int64_t value = 0;
    bool good = equals != std::string_view::npos && equals > 0;
    if (good) {
      auto [end, error] = std::from_chars(item.data() + equals + 1, item.data() + item.size(), value);
      good = error == std::errc() && end == item.data() + item.size();
    }
    if (!good)
      throw Error("'" + std::string(item) + "' is no part of a configuration: write NAME=VALUE with a whole number");
    configuration.set(item.substr(0, equals), value);
  }
  return configuration;
}

//===--- Limits ---------------------------------------------------------------------------------------------------===//

Limits limitsOf(const LaunchOptions &options) {
  Limits limits;
  if (options.target == Target::cuda) {
    const CudaProperties &device = cudaProperties(options.compile.device);
    limits.sharedBytes = static_cast<double>(device.sharedBytesPerBlockOptin);
    limits.registersPerBlockBytes = 4.0 * device.registersPerBlock;
    limits.registersPerThreadBytes = 255 * 4;
  } else if (options.target == Target::sim) {
    // What a block may ask for: 227 KiB from sm_90 on, 163 KiB on sm_80; 99 KiB on its smaller relatives.
    const std::string &gpu = options.compile.gpu;
    limits.sharedBytes = 1024.0 * (gpu.starts_with("sm_9") ? 227 : gpu == "sm_80" ? 163 : 99);
    limits.registersPerBlockBytes = 65536 * 4;
    limits.registersPerThreadBytes = 255 * 4;
  } else {
    limits.cacheBytes = static_cast<double>(thisMachine().lastLevelCacheBytes());
  }
  return limits;
}

//===--- Space ----------------------------------------------------------------------------------------------------===//

Space &Space::add(const std::string &name, std::vector<int64_t> values, bool isOption) {
  for (const Dimension &dimension : dimensions_)
    if (dimension.name == name)
      throw Error("the space names '" + name + "' twice");
  if (values.empty())
    throw Error("the space gives '" + name + "' no values");
  // A value twice (two roundings of one size) is one choice.
  std::vector<int64_t> distinct;
  for (int64_t value : values)
    if (std::find(distinct.begin(), distinct.end(), value) == distinct.end())
      distinct.push_back(value);
  dimensions_.push_back({name, std::move(distinct), isOption});
  return *this;
}

Space &Space::param(const std::string &name, std::vector<int64_t> values) {
  if (findOption(name))
    throw Error("'" + name + "' is the name of an option: a parameter of a space must be called something else");
  return add(name, std::move(values), /*isOption=*/false);
}

Space &Space::option(const std::string &name, std::vector<int64_t> values) {
  if (!findOption(name)) {
    std::string known;
    for (const Option &option : options)
      known += (known.empty() ? "" : ", ") + std::string(option.name);
    throw Error("there is no option '" + name + "' to tune: the options are " + known);
  }
  return add(name, std::move(values), /*isOption=*/true);
}

Space &Space::require(std::string otherwise, std::function<bool(const Configuration &)> holds) {
  constraints_.push_back({std::move(otherwise), std::move(holds)});
  return *this;
}

Space &Space::fix(const std::string &name, int64_t value) {
  for (Dimension &dimension : dimensions_)
    if (dimension.name == name)
      dimension.values = {value};
  return *this;
}

Space &Space::footprint(std::function<Footprint(const Configuration &)> footprint) {
  footprint_ = std::move(footprint);
  return *this;
}

size_t Space::combinations() const {
  size_t count = 1;
  for (const Dimension &dimension : dimensions_)
    if (__builtin_mul_overflow(count, dimension.values.size(), &count) || count > size_t(1) << 24)
      throw Error("the space has more than 16 million combinations: give its dimensions fewer values");
  return count;
}

std::string_view Space::refusalOf(const Configuration &configuration, const Limits &limits) const {
  for (const Constraint &constraint : constraints_)
    if (!constraint.holds(configuration))
      return constraint.otherwise;
  if (!footprint_)
    return "";
  Footprint footprint = footprint_(configuration);
  auto exceeds = [](double wanted, double limit) { return limit > 0 && wanted > limit; };
  if (exceeds(footprint.sharedBytes, limits.sharedBytes))
    return "more shared memory than a block can have";
  // Where the number of warps is left to the compiler, it takes as many as it needs, up to the 32 of a block.
  int64_t warps = configuration.get("warps", 0);
  double threads = 32.0 * static_cast<double>(warps > 0 ? warps : 32) *
                   static_cast<double>(std::max<int64_t>(configuration.get("cluster", 1), 1));
  if (exceeds(footprint.registerBytes, limits.registersPerThreadBytes * threads) ||
      exceeds(footprint.registerBytes, limits.registersPerBlockBytes *
                                           static_cast<double>(std::max<int64_t>(configuration.get("cluster", 1), 1))))
    return "more registers than a block can have";
  if (exceeds(footprint.cacheBytes, limits.cacheBytes))
    return "tiles that exceed the last-level cache";
  return "";
}

std::vector<Configuration> Space::configurations(const Limits &limits, Refusals *refusals) const {
  std::vector<Configuration> valid;
  // There are thousands of combinations, most of them refused: one configuration goes through them all.
  Configuration configuration;
  std::vector<size_t> places(dimensions_.size());
  for (const Dimension &dimension : dimensions_)
    configuration.set(dimension.name, dimension.values.front());
  std::map<std::string_view, size_t> refused;
  for (size_t left = combinations(); left > 0; --left) {
    std::string_view refusal = refusalOf(configuration, limits);
    if (refusal.empty())
      valid.push_back(configuration);
    else
      ++refused[refusal];
    for (size_t d = dimensions_.size(); d-- > 0;) {
      const std::vector<int64_t> &values = dimensions_[d].values;
      bool isLast = ++places[d] == values.size();
      places[d] = isLast ? 0 : places[d];
      configuration.set(dimensions_[d].name, values[places[d]]);
      if (!isLast)
        break;
    }
  }
  for (auto [refusal, count] : refused)
    if (refusals)
      (*refusals)[std::string(refusal)] += count;
  return valid;
}

LaunchOptions Space::apply(const Configuration &configuration, LaunchOptions launch) const {
  for (const Dimension &dimension : dimensions_) {
    int64_t value = configuration[dimension.name];
    if (dimension.isOption)
      findOption(dimension.name)->set(launch, value);
    else
      launch.params[dimension.name] = value;
  }
  return launch;
}

} // namespace tenon
