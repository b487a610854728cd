// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/lang/Control.h"
#include "tenon/lang/Operators.h"
#include "tenon/lang/Tile.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default) // libtenon exports what follows
namespace tenon {

/// What a parameter of a kernel's lambda is bound to.
enum class ParameterKind : uint8_t { view, param, index, scalar };

struct KernelParameter {
  std::string name;
  ParameterKind kind;
  std::optional<int64_t> defaultValue; ///< of a Param
};

/// A kernel: a name, named parameters and the C++ function that writes its program.
///
///     Kernel scale("scale(x, y, factor, width=1024)", [](View x, View y, Scalar factor, Param width) {
///       Index i = grid(cdiv(x.size(0), width));
///       y.store({i * width}, x.load({i * width}, {width}) * factor);
///     });
///
/// The lambda may take View, Scalar, Index (bound at each launch, in order) and Param (compile-time integers, set by name,
/// with an optional default). It runs once per specialisation: element types, ranks, parameters. Values captured by the
/// lambda are read then.
class Kernel {
public:
  using BoundArgument = std::variant<View, int64_t, Index, Scalar>;
  using Body = std::function<void(std::span<const BoundArgument>)>;

  template <class F>
  Kernel(const std::string &signature, F body, std::source_location where = std::source_location::current())
      : Kernel(signature, kindsOf(&F::operator()), eraseType(std::move(body), &F::operator()), where) {}

  const std::string &name() const;
  const std::vector<KernelParameter> &parameters() const;
  const SourceLine &where() const;
  const Body &body() const;

  /// A place for the just-in-time compiler to keep what it compiled for this kernel; shared by copies of it.
  std::shared_ptr<void> &compiled() const;

private:
  Kernel(const std::string &signature, std::vector<ParameterKind> kinds, Body body, std::source_location where);

  template <class T> static constexpr ParameterKind kindOf() {
    if constexpr (std::is_same_v<T, View>)
      return ParameterKind::view;
    else if constexpr (std::is_same_v<T, Index>)
      return ParameterKind::index;
    else if constexpr (std::is_same_v<T, Scalar>)
      return ParameterKind::scalar;
    else {
      static_assert(std::is_same_v<T, Param>, "a kernel takes View, Scalar, Index and Param by value");
      return ParameterKind::param;
    }
  }
  template <class F, class... Ts> static std::vector<ParameterKind> kindsOf(void (F::*)(Ts...) const) {
    return {kindOf<Ts>()...};
  }
  template <class F, class... Ts> static Body eraseType(F body, void (F::*)(Ts...) const) {
    return [body = std::move(body)](std::span<const BoundArgument> arguments) {
      [&]<size_t... I>(std::index_sequence<I...>) {
        body(std::get<Ts>(arguments[I])...);
      }(std::index_sequence_for<Ts...>());
    };
  }

  struct Definition;
  std::shared_ptr<Definition> definition_;
};

} // namespace tenon
#pragma GCC visibility pop
