// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// Where the elements of a tile live: linear layouts.
///
/// An example first. A 4 x 4 tile lies in a shared memory of four banks, one element wide. Stored row by row, a column
/// sits in one bank and is read in four steps. So row i is stored with its columns permuted by xor with i:
///
///     offset    0..3          4..7          8..11         12..15
///     bank      0  1  2  3    0  1  2  3    0  1  2  3    0  1  2  3
///     row       0  0  0  0    1  1  1  1    2  2  2  2    3  3  3  3
///     column    0  1  2  3    1  0  3  2    2  3  0  1    3  2  1  0
///
/// Column 2 is now at offsets 2, 7, 8, 13: banks 2, 3, 0, 1. The table has sixteen entries but only four facts, where
/// the powers of two go:
///
///     offset 1 -> (0, 1)    offset 2 -> (0, 2)    offset 4 -> (1, 1)    offset 8 -> (2, 2)
///
/// and the rest follows by writing the offset in binary and taking the xor of the parts: 13 = 8 ^ 4 ^ 1 goes to (2, 2)
/// ^ (1, 1) ^ (0, 1) = (3, 2), which is what the table says. A map with f(a ^ b) = f(a) ^ f(b) is linear over F2, the
/// field of two elements; the images of the powers of two are its *bases*, the columns of a matrix of zeros and ones.
///
/// Registers are the same thing with more inputs. Let four lanes hold that tile, each one row, so that lane l, register
/// r has element (l, r): register 1 -> (0, 1), register 2 -> (0, 2), lane 1 -> (1, 0), lane 2 -> (2, 0). Where does
/// lane 3 find its register 2 in the shared memory above? Follow the first map to (3, 2), and the second one backwards
/// to 13. That is a matrix product, as are the other questions a compiler has:
///
///     the shared address of a register                       registers.then(shared.inverse())
///     which thread and register hold what I need             needed.then(held.pseudoInverse())
///     how wide can a vector access be                        which bases are 1, 2, 4 ... along one dimension
///     do two lanes hit the same bank                         the rank of a part of a matrix
///     who holds a duplicate (must not store, not add twice)  bases that are zero or the sum of others
///
/// A basis of zero means that both halves of the hardware hold the same elements: a row sum that every lane of a row
/// has.
///
/// Direction: layouts map hardware to tensor coordinates, never the reverse, because hardware may hold duplicates.
/// Extents are powers of two; a tile of another size has the layout of the next power of two, and its users leave out
/// coordinates that are outside (isInside). Element (0, 0) is always at index zero.
namespace tenon::nvidia {

/// The inputs of a layout: a register of a thread, a lane of a warp, a warp of a block, a block of a cluster; or, for
/// shared memory, an element's offset (of a block's memory: Offset and Block may occur together). Registers are counted
/// in elements: two 16-bit elements in one 32-bit machine register are registers 2i (low half) and 2i + 1.
enum class Unit : uint8_t { Register, Lane, Warp, Block, Offset };
inline constexpr unsigned numUnits = 5;

using Shape = std::vector<int64_t>;
using Coords = std::vector<int64_t>;

/// One place of the hardware.
struct Place {
  int64_t reg = 0, lane = 0, warp = 0, block = 0, offset = 0;
  bool operator==(const Place &) const = default;
};

/// The indices on one side of a map. A hardware space has every unit (size 1 when it plays no part), the first in the
/// lowest bits of the packed index; a tensor space packs row-major, so that reshaping does not change a packed index.
class IndexSpace {
public:
  static IndexSpace hardware(const std::array<unsigned, numUnits> &logs = {});
  static IndexSpace tensor(const Shape &extents); ///< extents: powers of two

  bool isTensor() const { return tensor_; }
  unsigned axes() const { return logs_.size(); }
  unsigned log(unsigned axis) const { return logs_[axis]; }
  unsigned log(Unit unit) const { return logs_[unsigned(unit)]; }
  int64_t size(unsigned axis) const { return int64_t(1) << logs_[axis]; }
  unsigned bits() const;
  /// Where the bits of an axis begin in the packed index.
  unsigned shift(unsigned axis) const;
  unsigned shift(Unit unit) const { return shift(unsigned(unit)); }

  uint64_t pack(const std::vector<int64_t> &index) const;
  std::vector<int64_t> unpack(uint64_t packed) const;
  bool operator==(const IndexSpace &) const = default;

private:
  bool tensor_ = false;
  std::vector<unsigned> logs_;
};

/// A linear map: from hardware to tensor coordinates (a layout proper), and what comes of layouts by inversion and
/// composition: coordinates to hardware, hardware to hardware. Misuse is an InternalError.
class LinearLayout {
public:
  struct UnitBases {
    Unit unit;
    std::vector<Coords> bases; ///< of index 1, 2, 4, ...
  };
  LinearLayout(const std::vector<UnitBases> &inputs, const Shape &extents);
  /// The general map, by packed columns: columns[i] is the image of the input's bit i.
  LinearLayout(IndexSpace in, IndexSpace out, std::vector<uint64_t> columns);

  /// Index i of the unit is coordinate i of one dimension; the other dimensions have extent 1.
  static LinearLayout identity1D(Unit unit, int64_t size, unsigned dim, unsigned rank);
  /// Every index of the unit is coordinate 0: `size` duplicates.
  static LinearLayout zeros1D(Unit unit, int64_t size, unsigned rank);

  /// Both layouts at once, on separate bits: of every unit and every dimension, `low` has the lower bits and `high` the
  /// higher ones. The tile of `low` is repeated as `high` says.
  friend LinearLayout operator*(const LinearLayout &low, const LinearLayout &high);
  /// The product with identity1D: `count` copies of the tile side by side along a dimension, spread over a unit.
  LinearLayout repeat(Unit unit, unsigned dim, int64_t count) const;

  bool operator==(const LinearLayout &) const = default;
  /// One line per unit that plays a part: "lane 1 -> (0, 2), 2 -> (0, 4), ...", then "onto 64 x 16".
  std::string str() const;

  //--- Sizes

  const IndexSpace &in() const { return in_; }
  const IndexSpace &out() const { return out_; }
  int64_t size(Unit unit) const { return in_.size(unsigned(unit)); }
  int64_t registers() const { return size(Unit::Register); }
  unsigned rank() const { return out_.axes(); }
  int64_t extent(unsigned dim) const { return out_.size(dim); }
  Shape shape() const;
  Coords basis(Unit unit, unsigned bit) const;

  //--- Values

  Coords apply(const Place &place) const;
  /// What each register of one thread holds.
  std::vector<Coords> applyRegisters(int64_t lane, int64_t warp, int64_t block = 0) const;
  /// Of a map from coordinates (an inverse).
  Place placeOf(const Coords &coords) const;
  /// Of a map between places.
  Place placeOf(const Place &place) const;
  uint64_t applyPacked(uint64_t index) const;
  uint64_t column(unsigned bit) const { return columns_[bit]; }
  /// The images of one unit's bits, packed.
  std::vector<uint64_t> columns(Unit unit) const;

  //--- Algebra

  /// This map, then the next: next.apply(this->apply(x)).
  LinearLayout then(const LinearLayout &next) const;
  /// Of a bijective map.
  LinearLayout inverse() const;
  /// Of a surjective map: one place for every coordinate, with the bits of freeVariableMasks() zero.
  LinearLayout pseudoInverse() const;
  bool isSurjective() const;
  bool isInjective() const;
  /// For every unit (by its number) the index bits that add nothing: their basis is zero or a sum of bases of earlier
  /// bits (registers first). The places with all these bits zero hold every element exactly once.
  std::array<int64_t, numUnits> freeVariableMasks() const;

  //--- The tensor's side

  /// Dimension i of the result is dimension permutation[i] of this.
  LinearLayout transpose(const std::vector<unsigned> &permutation) const;
  /// The layout of the tile that has extent 1 in these dimensions and is found where its broadcast is needed; also that
  /// of a reduction's result, where every thread of the reduced dimension has it.
  LinearLayout project(const std::vector<unsigned> &dims) const;
  /// Row-major, as many elements.
  LinearLayout reshape(const Shape &extents) const;
  LinearLayout insertUnitDim(unsigned position) const;
  LinearLayout dropUnitDim(unsigned position) const;
  /// Only the registers of which no lower register of the same thread is a duplicate.
  LinearLayout removeDuplicateRegisters() const;

  /// How many registers, a power of two, beginning with each multiple of it, hold consecutive elements along the
  /// dimension: the vector width of an access to memory that is contiguous there.
  int64_t numConsecutiveInRegisters(unsigned dim) const;

private:
  IndexSpace in_, out_;
  std::vector<uint64_t> columns_;
};

/// The layout for streaming through a tile: neighbouring lanes hold neighbouring vectors.
///
/// Dimensions are filled in `order`, the fastest first. Blocks come first in importance: they take the highest bits of
/// the longest dimension (the first such in `order`), then of the next longest, so that a block has one contiguous
/// slab. Then, from the lowest bits up, a thread takes `vectorElements` along order[0] (fewer if there are not so
/// many), the lanes continue along order[0] until it is covered and then along order[1] and so on, the warps go on
/// where the lanes stopped, and what remains become further registers. Lanes, warps and blocks that find nothing left
/// hold duplicates. Sizes need not be powers of two; the extents are the next ones.
LinearLayout blocked(const Shape &shape, const std::vector<unsigned> &order, int64_t vectorElements, int64_t lanes,
                     int64_t warps, int64_t blocks = 1);

/// The extents of the layouts of a tile of this shape: each size's next power of two.
Shape powerOfTwoExtents(const Shape &shape);
/// Whether the coordinates are those of an element of a tile of this shape: the mask where sizes are no powers of two.
bool isInside(const Coords &coords, const Shape &shape);

} // namespace tenon::nvidia
