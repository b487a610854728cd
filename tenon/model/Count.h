// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

/// What a kernel must do: operations by the unit that does them, and bytes from and to memory, counted from its Tile IR
/// for given argument words (the ABI of compiler/interpret/Interpreter.h: sizes are known, contents are not).
///
/// Operations
///   matrix   tile.dot: 2 M N K
///   vector   float add, subtract, multiply, max, min, negate, floor, ...; a fused multiply-add is two
///   special  division, square roots, exp, log, tanh, erf, sin, cos, pow, ...: one each
///   integer  integer arithmetic, comparisons, selections, conversions, absolute values: no FLOPs
/// A reduction or scan of n elements applies its combination n times (the textbook's count; n - 1 is what a tree
/// needs). Arithmetic on scalars is not counted: it is done once an instance, not once an element.
///   useful    on elements that come from inside the views: a row of 1000 in a tile of 1024 counts 1000
///   executed  on whole tiles: what the code does
///
/// Bytes of a view
///   requested   every element of every access of every instance that lies inside the view, re-reads included
///   compulsory  each element that is touched, once: what no cache can save
///
/// How: every integer is a range over the launch's instances and the loops' iterations. Where a clamp at a view's
/// edge, a trip count or a condition is not the same all over the range, the range is split, the edge first; so a grid
/// of a million instances is a handful of classes. What cannot be known before the run (indices of a gather, a
/// condition on data) is counted as the most it can be and noted: then `exact` is false and the figure an upper bound,
/// except where a note says otherwise.
namespace tenon::model {

enum class Precision : uint8_t { f64, f32, tf32, f16, bf16, f8, i8, other };
inline constexpr size_t precisions = 8;
std::string_view nameOf(Precision precision);

struct Work {
  std::array<double, precisions> matrix{}, vector{}, special{}; ///< by the type of the operands
  double integer = 0;

  double matrixFlops() const;
  double vectorFlops() const;
  double specialFlops() const;
  /// matrix + vector + special
  double flops() const { return matrixFlops() + vectorFlops() + specialFlops(); }
  Work &add(const Work &other, double times = 1);
};

struct Traffic {
  double requested = 0, compulsory = 0;
  bool exact = true; ///< otherwise both are upper bounds
};

struct ViewCounts {
  std::string name;  ///< of the argument, or "workspace 0"
  int argument = -1; ///< of the function; -1 for a workspace
  unsigned elementBytes = 0;
  Traffic read, written;
};

struct Counts {
  std::string refusal; ///< why the launch would be refused; everything else is zero then
  int64_t grid[3] = {1, 1, 1};
  double instances = 0;
  Work useful, executed;          ///< of the whole grid
  std::vector<ViewCounts> views;  ///< those that are accessed
  double busiestShare = 0;        ///< executed work of the busiest instance over the mean: 1 when all are alike
  double liveTileBytes = 0;       ///< most bytes of tiles alive at once in one instance
  double loopTileBytes = 0;       ///< of that, in loops around dots
  Work inLoops;                   ///< of `executed`, what stands in loops around dots
  double loopLoadBytes = 0;       ///< bytes of the tiles that one iteration of the innermost loop around a dot loads
  double loopIterations = 0;      ///< of that loop, mean of the instances; 0: there is none
  bool isLeftToMemory = false;    ///< how often it runs is read from memory: the most it can be is counted
  struct LoopLoad {
    double lineBytes = 0;   ///< of the tile, its rows as whole lines of 128 bytes
    bool straddles = false; ///< rows of the view are no multiples of a line
    bool byThreads = false; ///< nor of 16 bytes: no tensor map describes them
    float cut = 0;          ///< more lines, of each, that are touched since tiles begin within one
  };
  std::vector<LoopLoad> loopLoads; ///< of that loop
  struct DotShape {
    int64_t rows = 0, columns = 0; ///< of the result
    int64_t depth = 0;             ///< of the tile of K
    bool addsSums = false;         ///< sums of f8, which the matrix unit makes too coarsely, are added up beside it
  };
  std::vector<DotShape> dots;     ///< all that are in loops
  bool exact = true;
  std::vector<std::string> notes; ///< "file:line: ..." what is a bound, and why

  double readBytes() const;       ///< compulsory
  double writtenBytes() const;    ///< compulsory
  double bytes() const { return readBytes() + writtenBytes(); }
  double requestedBytes() const;  ///< reads and writes
  /// useful FLOPs per compulsory byte
  double intensity() const { return bytes() > 0 ? useful.flops() / bytes() : 0; }
};

/// A kernel reduced to what counting needs; without MLIR, so it outlives its module. Cheap to copy and to evaluate
/// (tens of microseconds), safe to share between threads.
class CountPlan {
public:
  /// From Tile IR as traced or simplified. Operations whose results nothing uses are left out.
  static CountPlan fromTileIr(mlir::func::FuncOp kernel);

  /// At most about `maxClasses` kinds of instances and iterations are told apart; when a kernel has more (a causal
  /// loop has one for each row of blocks), the rest is sampled, evenly, and noted.
  Counts count(std::span<const int64_t> argumentWords, int64_t maxClasses = 20000) const;

  /// A box of the grid: instances first[d] to last[d], both included.
  struct Box {
    int64_t first[3] = {0, 0, 0}, last[3] = {0, 0, 0};
  };
  struct Unique {
    double read = 0, written = 0;
  };
  /// Bytes that these instances touch, each byte once. An upper bound where the coordinates of an access depend on
  /// each other. What W instances that run at the same time touch, times the number of such waves, is what memory sees
  /// when the cache holds one wave's worth.
  Unique uniqueBytes(std::span<const int64_t> argumentWords, const Box &box) const;

  /// The integers that appear in the kernel: tile sizes, constants.
  const std::vector<int64_t> &constants() const { return constants_; }

private:
  friend class ParametricPlan;
  friend class PlanBuilder;
  std::shared_ptr<const struct PlanStructure> structure_;
  std::vector<int64_t> constants_;
};

/// A plan for any values of the kernel's Params, from plans for a few: where each integer in the kernel is a linear
/// function of the Params, and they change nothing else (no op appears or disappears), it says what the integers are at
/// other values, and the kernel need not be traced again. Evaluating is as cheap as CountPlan::count.
class ParametricPlan {
public:
  struct Sample {
    std::map<std::string, int64_t> params;
    CountPlan plan;
  };
  /// Samples: a base, then one for each Param that shall be free with just that Param changed, then any number with
  /// several changed, which are checks. Nothing when the plans differ in more than linear integers.
  static std::optional<ParametricPlan> fit(std::span<const Sample> samples);

  CountPlan at(const std::map<std::string, int64_t> &params) const;

private:
  struct Slope {
    std::string param;
    int64_t base = 0;
    std::vector<std::pair<size_t, int64_t>> perUnit; ///< constant, change per unit of the Param, times `denominator`
    int64_t denominator = 1;
  };
  CountPlan base_;
  std::vector<Slope> slopes_;
};

} // namespace tenon::model
