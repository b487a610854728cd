// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/lang/Tile.h"

#include <array>
#include <functional>
#include <string>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// Declares the launch grid and gives this program instance's place in it, once per kernel:
///     auto [i, j] = grid(cdiv(c.size(0), bm), cdiv(c.size(1), bn));
/// The extents may depend on view sizes, run-time scalars and parameters only.
Index grid(Arg extent, std::source_location where = std::source_location::current());
std::array<Index, 2> grid(Arg extent0, Arg extent1, std::source_location where = std::source_location::current());
std::array<Index, 3> grid(Arg extent0, Arg extent1, Arg extent2,
                          std::source_location where = std::source_location::current());

/// A precondition of the launch, checked before anything runs. Depends on the same things as the grid.
void require(Arg condition, const std::string &message,
             std::source_location where = std::source_location::current());

/// Promises that no view the kernel writes overlaps another view; a launch that breaks it is refused.
void promise_no_overlap(std::source_location where = std::source_location::current());

/// Memory shared by the instances of one launch, zero at its start.
View workspace(DType type, std::initializer_list<Arg> sizes,
               std::source_location where = std::source_location::current());

/// Fails the launch when the condition is false anywhere.
void device_assert(Arg condition, const std::string &message,
                   std::source_location where = std::source_location::current());
/// Prints a label, the program ids and the value.
void device_print(const std::string &label, Arg value, std::source_location where = std::source_location::current());

/// A loop in the recorded program: for (Index k : range(0, n, step)). The body is traced once; variables assigned in it are
/// carried from one iteration to the next. break and return out of it are refused.
class range {
public:
  explicit range(Arg end, std::source_location where = std::source_location::current());
  range(Arg begin, Arg end, Arg step = 1, std::source_location where = std::source_location::current());
  range(const range &) = delete;
  ~range();

  class iterator {
  public:
    bool operator!=(const iterator &) const { return !done_; }
    Index operator*() const;
    iterator &operator++();

  private:
    friend class range;
    explicit iterator(range *loop) : loop_(loop) {}
    range *loop_;
    bool done_ = false;
  };
  iterator begin();
  iterator end() { return iterator(this); }

private:
  struct State;
  State *state_;
};

/// A run-time branch: if_(cond, [&] { ... }).else_([&] { ... }). Variables assigned in a branch keep their old value
/// where the other branch runs.
class if_ {
public:
  if_(Arg condition, const std::function<void()> &then, std::source_location where = std::source_location::current());
  if_(const if_ &) = delete;
  ~if_();
  void else_(const std::function<void()> &otherwise) &&;

private:
  struct State;
  State *state_;
};

} // namespace tenon
#pragma GCC visibility pop
