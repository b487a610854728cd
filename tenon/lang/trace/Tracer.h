// SPDX-License-Identifier: Apache-2.0
//
// Internal to lang/ and its callers inside the library: includes MLIR, so never included by a public header.
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/lang/Kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// What Kernel::compiled() refers to from the start, so that threads may use it without a lock: the place of the
/// just-in-time compiler's own object, which the first to need it makes.
struct CompiledPlace {
  std::once_flag once;
  std::shared_ptr<void> object;
};

/// What a specialisation knows of one argument.
struct ArgumentSpec {
  ParameterKind kind;
  DType dtype = DType::f32; ///< view
  int rank = 0;             ///< view
  int unitStride = -1;      ///< view: the dimension whose stride is 1, or -1
  bool distinct = false;    ///< view: different indices name different elements
  int64_t value = 0;        ///< param
  /// For targets that ask: powers of two that the argument's words are multiples of (tile.divisible); empty: not asked.
  std::vector<int64_t> divisible;
};

/// Whether the verifier sees what was traced: a check of Tenon itself, not of the kernel, for what is going to be
/// compiled. It takes as long as tracing does.
enum class Verified : bool { no, yes };

/// Runs the kernel's body and returns the module with its one function. Throws Error for a wrong program.
mlir::OwningOpRef<mlir::ModuleOp> traceKernel(const Kernel &kernel, std::span<const ArgumentSpec> arguments,
                                              bool noOverlap, mlir::MLIRContext &context,
                                              Verified verified = Verified::yes);

/// The state of one trace: where the next op goes, and which C++ variables are alive.
class Tracer {
public:
  Tracer(mlir::MLIRContext &context, const Kernel &kernel);
  ~Tracer();
  Tracer(const Tracer &) = delete;

  /// The trace in progress on this thread; throws Error when there is none (a tile used outside a kernel).
  static Tracer &current();
  static Tracer *currentOrNull();
  /// The same, and what is recorded from here on comes from `where`.
  static Tracer &currentAt(const std::source_location &where);

  mlir::OpBuilder &builder() { return builder_; }
  mlir::func::FuncOp function() { return function_; }
  mlir::OwningOpRef<mlir::ModuleOp> takeModule() { return std::move(module_); }

  /// Where ops created from here on come from. Also what errors without a better place name.
  mlir::Location at(const std::source_location &where);
  mlir::Location location() const { return location_; }
  const SourceLine &lastLine() const { return lastLine_; }
  /// While one lives, everything recorded comes from the line it was made for: for the library's own functions that are
  /// written with operators.
  class Pin {
  public:
    explicit Pin(const std::source_location &where) : tracer_(currentAt(where)) { ++tracer_.pins_; }
    /// To the line of what was recorded last.
    explicit Pin(Tracer &tracer) : tracer_(tracer) { ++tracer_.pins_; }
    ~Pin() { --tracer_.pins_; }
    Pin(const Pin &) = delete;

  private:
    Tracer &tracer_;
  };

  template <class Op, class... Arguments> Op create(Arguments &&...arguments) {
    return builder_.create<Op>(location_, std::forward<Arguments>(arguments)...);
  }

  /// The IR value of a variable; refuses one that is empty or whose loop or branch has ended.
  mlir::Value use(const detail::Handle &handle);

  /// Calls `visit` for every live variable that holds a value.
  template <class F> void forEachVariable(F visit) {
    for (detail::Variable *v = variables_; v; v = v->next_)
      if (v->handle_.value)
        visit(*v);
  }
  /// Every live variable, empty ones too.
  llvm::DenseSet<detail::Variable *> liveVariables() const {
    llvm::DenseSet<detail::Variable *> alive;
    for (detail::Variable *v = variables_; v; v = v->next_)
      alive.insert(v);
    return alive;
  }
  static void assign(detail::Variable &variable, mlir::Value value) {
    variable.handle_.value = value.getAsOpaquePointer();
  }
  /// After values were replaced in the IR: points every variable that held `from` at `to`.
  void replaceInVariables(mlir::Value from, mlir::Value to);

  void link(detail::Variable &variable);
  void unlink(detail::Variable &variable);

  /// Remembers an error found where throwing is impossible (a destructor); raise() throws the first.
  void fail(Error error);
  void raise() const;
  void finish(Verified verified);

  bool hasGrid = false;

private:
  Tracer *outer_;
  mlir::OpBuilder builder_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp function_;
  mlir::Location location_;
  SourceLine lastLine_;
  int pins_ = 0;
  detail::Variable *variables_ = nullptr;
  std::optional<Error> failure_;
};

//===--- Types and handles ----------------------------------------------------------------------------------------===//

mlir::Type elementType(mlir::MLIRContext *context, DType type);
/// The element type for rank 0, a tensor otherwise.
mlir::Type tileType(mlir::MLIRContext *context, DType type, const Shape &shape);
Shape shapeOf(mlir::Value value);
std::string toString(const Shape &shape);
inline mlir::Value valueOf(const detail::Handle &handle) { return mlir::Value::getFromOpaquePointer(handle.value); }
inline detail::Handle handleOf(mlir::Value value, DType type) { return {value.getAsOpaquePointer(), type}; }
/// Refuses a shape that cannot be a tile.
void checkShape(DType type, const Shape &shape, const SourceLine &where);
void checkDim(int dim, int rank, const SourceLine &where);

/// An operand brought into the IR: a tile, or a number as a scalar constant of `type`.
mlir::Value materialize(const Arg &arg, DType type, bool asIndex = false);
/// As an index value: an offset, extent or loop bound.
mlir::Value materializeIndex(const Arg &arg);
/// Repeats a value to a shape (numpy's rule); a scalar is splatted.
mlir::Value broadcastTo(mlir::Value value, const Shape &shape, const SourceLine &where);
/// The shape two shapes broadcast to; throws naming both.
Shape broadcastShapes(const Shape &a, const Shape &b, const SourceLine &where);
/// tile.cast between language types, "differs from zero" for booleans.
mlir::Value castTo(mlir::Value value, DType from, DType to);

} // namespace tenon
