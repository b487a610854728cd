// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/base/DType.h"
#include "tenon/base/Error.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <source_location>
#include <type_traits>
#include <vector>

/// The values of a kernel. A kernel's body is C++ that runs once per specialisation and records what it does; a Tile is a
/// variable of that recorded program, not data. Assigning to one inside a traced loop makes it loop-carried, so each
/// variable is tracked by its own identity (two variables that hold the same value stay two).
#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

class Tracer; // records the program; defined inside the library

/// A compile-time integer of a kernel, known by name to the tuner: it arrives as a plain integer.
using Param = int64_t;

/// The shape of a tile: 1 to 5 extents, each at least 1. Empty for a scalar.
using Shape = std::vector<int64_t>;

inline constexpr double inf = std::numeric_limits<double>::infinity();

namespace detail {

/// A value of the recorded program: an opaque IR value and its element type (the IR itself is signless).
struct Handle {
  void *value = nullptr;
  DType dtype = DType::f32;
};

/// A program variable: registered with the tracer for as long as it lives.
class Variable {
public:
  Variable() { link(); }
  explicit Variable(Handle handle) : handle_(handle) { link(); }
  Variable(const Variable &other) : handle_(other.handle_) { link(); }
  Variable &operator=(const Variable &other) {
    handle_ = other.handle_;
    if (!tracer_) // made before the trace, outside the kernel
      link();
    return *this;
  }
  ~Variable() { unlink(); }

  const Handle &handle() const { return handle_; }

private:
  friend class tenon::Tracer;
  void link();
  void unlink();

  Handle handle_;
  Tracer *tracer_ = nullptr;
  Variable *previous_ = nullptr, *next_ = nullptr;
};

} // namespace detail

class Arg;

/// A tile: a small dense array of static shape, or a scalar (rank 0).
class Tile : public detail::Variable {
public:
  Tile() = default; ///< holds nothing until assigned
  explicit Tile(detail::Handle handle) : Variable(handle) {}
  Tile(const Tile &) = default;
  Tile &operator=(const Tile &) = default;

  DType dtype() const { return handle().dtype; }
  Shape shape(std::source_location where = std::source_location::current()) const;
  int64_t size(int dim, std::source_location where = std::source_location::current()) const;
  int rank() const { return static_cast<int>(shape().size()); }

  /// Converts the element type. Narrowing floats round to nearest even (docs/numerics.md has one exception); float to
  /// integer truncates and saturates, NaN gives 0; the 8-bit floats saturate; integers wrap. To boolean: whether the element differs from zero.
  Tile to(DType type, std::source_location where = std::source_location::current()) const;
  /// The same bits as another type of the same width.
  Tile bitcast(DType type, std::source_location where = std::source_location::current()) const;

  Tile &operator+=(Arg rhs);
  Tile &operator-=(Arg rhs);
  Tile &operator*=(Arg rhs);
  Tile &operator/=(Arg rhs);

  /// Refused: the value is not known while the kernel is traced. Use where(), if_() or, for parameters, plain C++.
  explicit operator bool() const;
};

/// A run-time scalar argument of a kernel (a scale, a probability): f64, and of a float tile's type where it meets one.
class Scalar : public Tile {
public:
  Scalar() = default;
  explicit Scalar(detail::Handle handle) : Tile(handle) {}
};

/// A 64-bit run-time integer: program ids, offsets, sizes, loop counters.
class Index : public Tile {
public:
  Index() = default;
  explicit Index(detail::Handle handle) : Tile(handle) {}
  Index(int64_t value, std::source_location where = std::source_location::current());
  /// From any integer scalar.
  Index(const Tile &scalar, std::source_location where = std::source_location::current());
};

/// An operand: a tile, scalar, index or C++ number, and the source line that wrote it (an operator cannot have a default
/// argument, so its operands carry the line). A number takes the type of what it is combined with.
class Arg {
public:
  Arg(const Tile &tile, std::source_location where = std::source_location::current())
      : handle(tile.handle()), where(where) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Arg(Number number, std::source_location where = std::source_location::current())
      : kind(std::is_floating_point_v<Number> ? Kind::real : std::is_same_v<Number, bool> ? Kind::truth : Kind::integer),
        isUnsigned(std::is_unsigned_v<Number>), real(static_cast<double>(number)),
        integer(wholePart(number)), where(where) {}

  /// Of a C++ real: where it has one that fits, else 0 (only asked for where reals are refused).
  template <class Number> static constexpr int64_t wholePart(Number number) {
    if constexpr (std::is_floating_point_v<Number>)
      return number > -0x1p63 && number < 0x1p63 ? static_cast<int64_t>(number) : 0;
    else
      return static_cast<int64_t>(number);
  }

  enum class Kind : uint8_t { tile, integer, real, truth };
  Kind kind = Kind::tile;
  bool isUnsigned = false; ///< of an integer
  detail::Handle handle;
  double real = 0;
  int64_t integer = 0; ///< when unsigned, the same 64 bits
  std::source_location where;
};

/// A window on memory: an argument of a kernel or its workspace. Offsets are in elements. Every element outside the view
/// reads as the padding value and is dropped when written, whether the tile overhangs the view or lies wholly outside.
class View {
public:
  explicit View(detail::Handle handle) : handle_(handle) {}

  DType dtype() const { return handle_.dtype; }
  int rank() const;
  Index size(int dim, std::source_location where = std::source_location::current()) const;

  Tile load(std::initializer_list<Arg> offset, const Shape &shape, Arg padding = 0,
            std::source_location where = std::source_location::current()) const;
  void store(std::initializer_list<Arg> offset, const Tile &value,
             std::source_location where = std::source_location::current()) const;
  /// One element as a scalar; outside the view it is zero.
  Tile at(std::initializer_list<Arg> index, std::source_location where = std::source_location::current()) const;

  /// Elements named by integer tiles, one per dimension, broadcast against each other and the mask.
  Tile gather(const std::vector<Tile> &indices, Arg mask = true, Arg padding = 0,
              std::source_location where = std::source_location::current()) const;
  void scatter(const std::vector<Tile> &indices, const Tile &value, Arg mask = true,
               std::source_location where = std::source_location::current()) const;

  /// Atomic updates; each returns what was there before. 32- and 64-bit elements.
  Tile atomic_add(const std::vector<Tile> &indices, const Tile &value, Arg mask = true,
                  std::source_location where = std::source_location::current()) const;
  Tile atomic_max(const std::vector<Tile> &indices, const Tile &value, Arg mask = true,
                  std::source_location where = std::source_location::current()) const;
  Tile atomic_min(const std::vector<Tile> &indices, const Tile &value, Arg mask = true,
                  std::source_location where = std::source_location::current()) const;
  Tile atomic_exchange(const std::vector<Tile> &indices, const Tile &value, Arg mask = true,
                       std::source_location where = std::source_location::current()) const;
  Tile atomic_compare_exchange(const std::vector<Tile> &indices, const Tile &expected, const Tile &desired,
                               Arg mask = true, std::source_location where = std::source_location::current()) const;

  const detail::Handle &handle() const { return handle_; }

private:
  detail::Handle handle_;
};

} // namespace tenon
#pragma GCC visibility pop
