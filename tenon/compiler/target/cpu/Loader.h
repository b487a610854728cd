// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/CpuTarget.h"

#include <memory>
#include <span>

namespace tenon::cpu {

/// Machine code linked into this process; unloaded when destroyed.
class LoadedObject {
public:
  /// Throws InternalError when the object cannot be linked.
  explicit LoadedObject(std::span<const char> object);
  ~LoadedObject();
  LoadedObject(const LoadedObject &) = delete;

  RunFunction run() const { return run_; }
  PlanFunction plan() const { return plan_; }

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  RunFunction run_ = nullptr;
  PlanFunction plan_ = nullptr;
};

/// What device_assert and device_print report to while instances run; compiled code gets a pointer to it. Called from
/// several threads at once.
class LaunchContext {
public:
  virtual ~LaunchContext() = default;
  virtual void assertFailed(const std::string &message) = 0;
  virtual void print(const std::string &text) = 0;
};

} // namespace tenon::cpu
