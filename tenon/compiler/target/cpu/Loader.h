// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/target/cpu/CpuTarget.h"

#include <memory>
#include <span>

namespace tenon::cpu {

/// A name that compiled code calls, and where the function is.
struct ExternalSymbol {
  const char *name;
  void *address;
};

/// Machine code linked into this process; unloaded when destroyed.
class LinkedObject {
public:
  /// Throws InternalError when the object cannot be linked. Other names that it uses come from this process.
  LinkedObject(std::span<const char> object, std::span<const ExternalSymbol> symbols);
  ~LinkedObject();
  LinkedObject(const LinkedObject &) = delete;

  /// Throws InternalError when there is no such symbol.
  void *address(const char *name) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The code of a CPU kernel.
class LoadedObject {
public:
  /// Throws InternalError when the object cannot be linked.
  explicit LoadedObject(std::span<const char> object);

  RunFunction run() const { return run_; }
  PlanFunction plan() const { return plan_; }
  size_t noteBytes() const { return static_cast<size_t>(*noteBytes_); }

private:
  LinkedObject code_;
  RunFunction run_;
  PlanFunction plan_;
  const int64_t *noteBytes_;
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
