// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// How much may be measured.
enum class TunePolicy : unsigned char {
  off,    ///< nothing is measured or looked up: the model's first choice
  cached, ///< what the database knows, else the model's first choice: measures nothing
  quick,  ///< measures the model's best few
  full,   ///< goes on with a learner, within the budget
};
std::string_view nameOf(TunePolicy policy);
std::optional<TunePolicy> parsePolicy(std::string_view name);

} // namespace tenon
#pragma GCC visibility pop
