// SPDX-License-Identifier: Apache-2.0
//
// Internal to model/: a kernel as counting sees it. Integers are not here but in a table beside it
// (CountPlan::constants), so that one structure serves many values of the Params.
#pragma once

#include "tenon/model/Count.h"
#include "tenon/model/Range.h"

namespace tenon::model {

struct PlanStructure {
  static constexpr int maxRank = 5;
  static constexpr unsigned firstLoopVariable = 3; ///< 0 to 2 are the axes of the grid
  static constexpr unsigned maxVariables = 32;

  struct Scalar {
    enum class Kind : uint8_t {
      constant, ///< a: in the table
      word,     ///< a: of the arguments; detail: its bits
      gridId,   ///< a: the axis
      counter,  ///< a: the loop's variable, which counts its iterations from 0
      add, subtract, multiply,
      divide, ///< detail: Rounding
      remainder, min, max,
      compare, ///< detail: Compare
      select,
      bits, ///< detail: Bitwise
      shiftLeft, shiftRight,
      unknown
    };
    Kind kind = Kind::unknown;
    uint8_t detail = 0;
    uint32_t a = 0, b = 0, c = 0;
    bool operator==(const Scalar &) const = default;
  };

  struct Tile {
    uint32_t shape = 0; ///< the first of `rank` numbers in the table
    uint8_t rank = 0;
    uint8_t bytes = 0;     ///< of an element
    bool occupies = false; ///< it is held somewhere; constants and rearrangements of others are not
    uint32_t born = 0, dies = 0; ///< in the order of the steps
    bool operator==(const Tile &) const = default;
  };

  struct View {
    std::string name;
    int argument = -1;
    unsigned elementBytes = 0, rank = 0;
    uint32_t sizes[maxRank] = {};   ///< scalars
    uint32_t strides = 0;           ///< the argument word of the first
    bool hasStrides = false;        ///< of an argument; a workspace is row-major
    bool operator==(const View &) const = default;
  };

  /// What an op does to one element.
  struct Effort {
    Precision precision = Precision::other;
    double vector = 0, special = 0, integer = 0;
    bool operator==(const Effort &) const = default;
  };

  /// The effort of a tile that owes nothing to memory (made of an iota, random numbers), to be counted where it meets
  /// one that does: what is wanted there is what was useful.
  struct Deferred {
    uint32_t tile = 0;
    Effort effort;
    bool operator==(const Deferred &) const = default;
  };

  struct Step {
    enum class Kind : uint8_t {
      whole, ///< a tile that owes nothing to memory: a constant, a splat, an iota
      load, store,
      indexed, ///< gather, scatter, atomics
      elementwise, reduce, scan, dot, broadcast, reshape, transpose, slice, concat,
      loop,  ///< extra[0]: which
      branch ///< extra[0]: which
    };
    Kind kind = Kind::whole;
    int result = -1; ///< a tile
    std::vector<uint32_t> operands; ///< tiles
    std::vector<uint32_t> offsets;  ///< scalars, of a load or store
    std::vector<uint32_t> extra;    ///< a dimension, a permutation; of a slice the numbers of its offsets in the table;
                                    ///< of a dot whether sums are added up beside the matrix unit
    Effort effort;
    std::vector<Deferred> deferred;
    int view = -1;
    bool reads = false, writes = false;
    uint32_t place = 0;
    bool operator==(const Step &) const = default;
  };

  /// Scalars come from scalars alone: all of a block's stand before its steps. What is the same in all instances and
  /// iterations is not among them, nor are steps that leave a whole tile and do no work.
  struct Block {
    std::vector<uint32_t> scalars;
    std::vector<uint32_t> loops; ///< among the steps
    std::vector<Step> steps;
    bool operator==(const Block &) const = default;
  };

  struct Carried {
    uint32_t init = 0, argument = 0, yielded = 0, result = 0; ///< tiles
    bool operator==(const Carried &) const = default;
  };
  struct Loop {
    uint32_t lower = 0, upper = 0, step = 0, variable = 0, place = 0;
    uint32_t first = 0, last = 0; ///< in the order of the steps
    bool aroundDot = false;
    Block body;
    std::vector<Carried> carried;
    bool operator==(const Loop &) const = default;
  };
  struct Choice {
    uint32_t yes = 0, no = 0, result = 0; ///< tiles
    bool operator==(const Choice &) const = default;
  };
  struct Branch {
    uint32_t condition = 0, place = 0;
    Block yes, no;
    std::vector<Choice> choices;
    bool operator==(const Branch &) const = default;
  };
  struct Requirement {
    uint32_t condition = 0;
    std::string message;
    bool operator==(const Requirement &) const = default;
  };

  std::vector<Scalar> scalars;
  std::vector<bool> isFixed; ///< of each scalar: the same in all instances and iterations
  std::vector<Tile> tiles;
  std::vector<View> views;
  std::vector<Loop> loops;
  std::vector<Branch> branches;
  std::vector<Requirement> requirements;
  std::vector<uint32_t> extents; ///< of the grid: scalars
  std::vector<std::string> places;
  Block top;
  uint32_t words = 0, steps = 0;
  unsigned variables = firstLoopVariable;

  bool operator==(const PlanStructure &) const = default;
};

} // namespace tenon::model
