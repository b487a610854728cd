// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace tenon::sim {

/// A function with a stack of its own. One that is suspended may simply be forgotten: nothing on its stack is
/// destroyed, which is why this stands on the plain context switch of Boost.Context and not on its fiber class, whose
/// destructor unwinds (compiled thread code has no tables for that).
class Fiber {
public:
  static constexpr size_t stackBytes = 256 << 10;

  /// The stack of `stackBytes` bytes ends at `top`.
  void start(void *top, void (*body)(void *), void *argument);
  /// From outside: runs it until it suspends itself or its body returns.
  void resume();
  /// From inside.
  void suspend();
  bool done() const { return done_; }

private:
  static void enter(Fiber *fiber);
  friend struct FiberEntry;

  void *context_ = nullptr, *caller_ = nullptr, *top_ = nullptr;
  void (*body_)(void *) = nullptr;
  void *argument_ = nullptr;
  bool done_ = false;
  // For the address sanitizer, which wants to know which stack is in use.
  const void *callerStack_ = nullptr;
  size_t callerBytes_ = 0;
  void *fakeStack_ = nullptr;
};

/// Stacks with a page below each that must not be touched, kept for reuse.
class StackPool {
public:
  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool &) = delete;

  /// The upper end of a stack.
  void *take();
  void giveBack(void *top) { free_.push_back(top); }

private:
  std::vector<void *> free_;
  std::vector<void *> mapped_;
};

} // namespace tenon::sim
