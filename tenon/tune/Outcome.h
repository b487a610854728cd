// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// What became of a candidate.
struct Outcome {
  enum class Status : unsigned char {
    measured, ///< right, and timed
    refused,  ///< the kernel or the compiler does not take these values
    wrong,    ///< the judge (verify/) convicted it
    crashed,
    timedOut, ///< while compiling or running
    outOfMemory,
    tooFast, ///< faster than the machine can be: it cannot have done the work
  };
  Status status = Status::refused;
  std::string reason;  ///< of a failure: one sentence
  double seconds = 0;  ///< of one launch: the fastest trial
  double median = 0;   ///< of the trials
  int trials = 0;
  double cost = 0;     ///< seconds that finding out took

  bool measured() const { return status == Status::measured; }
  static Outcome failed(Status status, std::string reason) { return {status, std::move(reason)}; }
};
std::string_view nameOf(Outcome::Status status);
std::optional<Outcome::Status> parseStatus(std::string_view name);

} // namespace tenon
#pragma GCC visibility pop
