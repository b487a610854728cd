// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/threads/Steps.h"

#include "tenon/base/Error.h"

#include <algorithm>
#include <utility>

namespace tenon::nvidia {
namespace {

constexpr std::pair<const char *, bool Steps::*> table[] = {
    {"warpgroups", &Steps::warpgroups},
    {"persistence", &Steps::persistence},
    {"order", &Steps::order},
    {"registers", &Steps::registers},
    {"overlap", &Steps::overlap},
    {"bulk-stores", &Steps::bulkStores},
    {"slices", &Steps::slices},
    {"early-loads", &Steps::earlyLoads},
    {"late-loads", &Steps::lateLoads},
    {"group-exchange", &Steps::groupExchange},
    {"sinking", &Steps::sinking},
    {"first-loads", &Steps::firstLoads},
    {"joined-dots", &Steps::joinedDots},
    {"live-rows", &Steps::liveRows},
    {"end-of-k", &Steps::endOfK},
    {"streams", &Steps::streams},
    {"operands-ahead", &Steps::operandsAhead},
    {"register-operands", &Steps::registerOperands},
};

} // namespace

const std::vector<std::string> &Steps::names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto &[name, member] : table)
      all.emplace_back(name);
    return all;
  }();
  return names;
}

Steps Steps::without(std::string_view list) {
  Steps steps;
  while (!list.empty()) {
    std::string_view name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    auto found = std::find_if(std::begin(table), std::end(table), [&](const auto &entry) { return entry.first == name; });
    if (found == std::end(table)) {
      std::string known;
      for (const std::string &each : names())
        known += (known.empty() ? "" : ", ") + each;
      throw Error("there is no step '" + std::string(name) + "' to leave out: the steps are " + known);
    }
    steps.*found->second = false;
  }
  return steps;
}

} // namespace tenon::nvidia
