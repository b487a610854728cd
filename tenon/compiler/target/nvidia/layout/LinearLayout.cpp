// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/layout/LinearLayout.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/layout/Echelon.h"

#include <algorithm>
#include <bit>

namespace tenon::nvidia {

namespace {

constexpr const char *unitNames[numUnits] = {"register", "lane", "warp", "block", "offset"};

void require(bool condition, const char *what) {
  if (!condition)
    throw InternalError(std::string("layouts: ") + what);
}

unsigned log2Exactly(int64_t size) {
  require(size > 0 && std::has_single_bit(uint64_t(size)), "a size is not a power of two");
  return std::countr_zero(uint64_t(size));
}

void requirePermutation(const std::vector<unsigned> &dims, unsigned rank) {
  std::vector<bool> seen(rank);
  for (unsigned d : dims) {
    require(d < rank && !seen[d], "not a permutation of the dimensions");
    seen[d] = true;
  }
  require(dims.size() == rank, "not a permutation of the dimensions");
}

std::vector<int64_t> asIndex(const Place &place) {
  return {place.reg, place.lane, place.warp, place.block, place.offset};
}
Place asPlace(const std::vector<int64_t> &index) { return {index[0], index[1], index[2], index[3], index[4]}; }

} // namespace

//===--- Spaces ---------------------------------------------------------------------------------------------------===//

IndexSpace IndexSpace::hardware(const std::array<unsigned, numUnits> &logs) {
  IndexSpace space;
  space.logs_.assign(logs.begin(), logs.end());
  require(space.bits() < 64, "more than 63 index bits");
  return space;
}

IndexSpace IndexSpace::tensor(const Shape &extents) {
  IndexSpace space;
  space.tensor_ = true;
  for (int64_t extent : extents)
    space.logs_.push_back(log2Exactly(extent));
  require(space.bits() < 64, "more than 63 coordinate bits");
  return space;
}

unsigned IndexSpace::bits() const {
  unsigned sum = 0;
  for (unsigned log : logs_)
    sum += log;
  return sum;
}

unsigned IndexSpace::shift(unsigned axis) const {
  unsigned sum = 0;
  for (unsigned i = 0; i < axes(); ++i)
    if (tensor_ ? i > axis : i < axis)
      sum += logs_[i];
  return sum;
}

uint64_t IndexSpace::pack(const std::vector<int64_t> &index) const {
  require(index.size() == axes(), "an index has the wrong number of parts");
  uint64_t packed = 0;
  for (unsigned i = 0; i < axes(); ++i) {
    require(index[i] >= 0 && index[i] < size(i), "an index is out of range");
    packed |= uint64_t(index[i]) << shift(i);
  }
  return packed;
}

std::vector<int64_t> IndexSpace::unpack(uint64_t packed) const {
  std::vector<int64_t> index(axes());
  for (unsigned i = 0; i < axes(); ++i)
    index[i] = (packed >> shift(i)) & uint64_t(size(i) - 1);
  return index;
}

//===--- Construction ---------------------------------------------------------------------------------------------===//

LinearLayout::LinearLayout(IndexSpace in, IndexSpace out, std::vector<uint64_t> columns)
    : in_(std::move(in)), out_(std::move(out)), columns_(std::move(columns)) {
  require(columns_.size() == in_.bits(), "the number of bases does not fit the input");
  for (uint64_t column : columns_)
    require(column >> out_.bits() == 0, "a basis is outside the output");
}

LinearLayout::LinearLayout(const std::vector<UnitBases> &inputs, const Shape &extents)
    : out_(IndexSpace::tensor(extents)) {
  std::array<unsigned, numUnits> logs = {};
  for (const UnitBases &input : inputs) {
    require(logs[unsigned(input.unit)] == 0, "a unit is given twice");
    logs[unsigned(input.unit)] = input.bases.size();
  }
  in_ = IndexSpace::hardware(logs);
  columns_.resize(in_.bits());
  for (const UnitBases &input : inputs)
    for (size_t bit = 0; bit < input.bases.size(); ++bit)
      columns_[in_.shift(input.unit) + bit] = out_.pack(input.bases[bit]);
}

LinearLayout LinearLayout::identity1D(Unit unit, int64_t size, unsigned dim, unsigned rank) {
  require(dim < rank, "no such dimension");
  std::vector<Coords> bases;
  for (unsigned bit = 0; bit < log2Exactly(size); ++bit) {
    bases.emplace_back(rank, 0);
    bases.back()[dim] = int64_t(1) << bit;
  }
  Shape extents(rank, 1);
  extents[dim] = size;
  return LinearLayout({{unit, bases}}, extents);
}

LinearLayout LinearLayout::zeros1D(Unit unit, int64_t size, unsigned rank) {
  return LinearLayout({{unit, std::vector<Coords>(log2Exactly(size), Coords(rank, 0))}}, Shape(rank, 1));
}

LinearLayout operator*(const LinearLayout &low, const LinearLayout &high) {
  require(low.out_.isTensor() && high.out_.isTensor() && low.rank() == high.rank(), "a product of unlike layouts");
  Shape extents(low.rank());
  for (unsigned d = 0; d < low.rank(); ++d)
    extents[d] = low.extent(d) * high.extent(d);
  std::vector<LinearLayout::UnitBases> inputs;
  for (unsigned u = 0; u < numUnits; ++u) {
    std::vector<Coords> bases;
    for (unsigned bit = 0; bit < low.in_.log(u); ++bit)
      bases.push_back(low.basis(Unit(u), bit));
    for (unsigned bit = 0; bit < high.in_.log(u); ++bit) {
      bases.push_back(high.basis(Unit(u), bit));
      for (unsigned d = 0; d < low.rank(); ++d)
        bases.back()[d] *= low.extent(d);
    }
    inputs.push_back({Unit(u), std::move(bases)});
  }
  return LinearLayout(inputs, extents);
}

LinearLayout LinearLayout::repeat(Unit unit, unsigned dim, int64_t count) const {
  return *this * identity1D(unit, count, dim, rank());
}

//===--- Sizes, values, text --------------------------------------------------------------------------------------===//

Shape LinearLayout::shape() const {
  Shape shape;
  for (unsigned d = 0; d < rank(); ++d)
    shape.push_back(extent(d));
  return shape;
}

std::vector<uint64_t> LinearLayout::columns(Unit unit) const {
  require(!in_.isTensor(), "the input is not hardware");
  auto begin = columns_.begin() + in_.shift(unit);
  return {begin, begin + in_.log(unit)};
}

Coords LinearLayout::basis(Unit unit, unsigned bit) const {
  require(!in_.isTensor() && out_.isTensor(), "not a map from hardware to coordinates");
  require(bit < in_.log(unit), "no such basis");
  return out_.unpack(columns_[in_.shift(unit) + bit]);
}

uint64_t LinearLayout::applyPacked(uint64_t index) const {
  uint64_t image = 0;
  for (; index; index &= index - 1)
    image ^= columns_[std::countr_zero(index)];
  return image;
}

Coords LinearLayout::apply(const Place &place) const {
  require(!in_.isTensor() && out_.isTensor(), "not a map from hardware to coordinates");
  return out_.unpack(applyPacked(in_.pack(asIndex(place))));
}

std::vector<Coords> LinearLayout::applyRegisters(int64_t lane, int64_t warp, int64_t block) const {
  std::vector<Coords> held;
  for (int64_t reg = 0; reg < registers(); ++reg)
    held.push_back(apply({.reg = reg, .lane = lane, .warp = warp, .block = block}));
  return held;
}

Place LinearLayout::placeOf(const Coords &coords) const {
  require(in_.isTensor() && !out_.isTensor(), "not a map from coordinates to hardware");
  return asPlace(out_.unpack(applyPacked(in_.pack(coords))));
}

Place LinearLayout::placeOf(const Place &place) const {
  require(!in_.isTensor() && !out_.isTensor(), "not a map between places");
  return asPlace(out_.unpack(applyPacked(in_.pack(asIndex(place)))));
}

std::string LinearLayout::str() const {
  auto describe = [](const IndexSpace &space, const std::vector<int64_t> &index) {
    std::string text;
    if (!space.isTensor()) {
      for (unsigned u = 0; u < numUnits; ++u)
        if (index[u])
          text += (text.empty() ? "" : " ") + std::string(unitNames[u]) + " " + std::to_string(index[u]);
      return text.empty() ? std::string("0") : text;
    }
    for (int64_t coordinate : index)
      text += (text.empty() ? "" : ", ") + std::to_string(coordinate);
    return "(" + text + ")";
  };
  std::string text;
  for (unsigned axis = 0; axis < in_.axes(); ++axis) {
    if (!in_.log(axis))
      continue;
    text += in_.isTensor() ? "dimension " + std::to_string(axis) : std::string(unitNames[axis]);
    for (unsigned bit = 0; bit < in_.log(axis); ++bit)
      text += (bit ? ", " : " ") + std::to_string(int64_t(1) << bit) + " -> " +
              describe(out_, out_.unpack(columns_[in_.shift(axis) + bit]));
    text += "\n";
  }
  std::string onto;
  for (unsigned axis = 0; axis < out_.axes(); ++axis)
    if (out_.isTensor())
      onto += (onto.empty() ? "" : " x ") + std::to_string(out_.size(axis));
    else if (out_.log(axis))
      onto += (onto.empty() ? "" : ", ") + std::to_string(out_.size(axis)) + " " + unitNames[axis] + "s";
  return text + "onto " + (onto.empty() ? "one element" : onto) + "\n";
}

//===--- Algebra --------------------------------------------------------------------------------------------------===//

LinearLayout LinearLayout::then(const LinearLayout &next) const {
  require(out_ == next.in_, "a composition of maps that do not meet");
  std::vector<uint64_t> columns;
  for (uint64_t column : columns_)
    columns.push_back(next.applyPacked(column));
  return LinearLayout(in_, next.out_, std::move(columns));
}

bool LinearLayout::isSurjective() const { return Echelon(columns_).rank() == out_.bits(); }
bool LinearLayout::isInjective() const { return Echelon(columns_).rank() == in_.bits(); }

LinearLayout LinearLayout::inverse() const {
  require(isInjective(), "the inverse of a layout with duplicates");
  return pseudoInverse();
}

LinearLayout LinearLayout::pseudoInverse() const {
  Echelon echelon(columns_);
  require(echelon.rank() == out_.bits(), "the inverse of a layout that does not cover its tile");
  std::vector<uint64_t> columns;
  for (unsigned bit = 0; bit < out_.bits(); ++bit)
    columns.push_back(*echelon.solve(uint64_t(1) << bit));
  return LinearLayout(out_, in_, std::move(columns));
}

std::array<int64_t, numUnits> LinearLayout::freeVariableMasks() const {
  require(!in_.isTensor(), "the input is not hardware");
  std::array<int64_t, numUnits> masks = {};
  Echelon echelon;
  for (unsigned u = 0; u < numUnits; ++u)
    for (unsigned bit = 0; bit < in_.log(u); ++bit)
      if (!echelon.add(columns_[in_.shift(u) + bit]))
        masks[u] |= int64_t(1) << bit;
  return masks;
}

//===--- The tensor's side ----------------------------------------------------------------------------------------===//

namespace {

/// The same input with every image rewritten, coordinates by coordinates.
template <typename Rewrite> LinearLayout mapCoords(const LinearLayout &layout, const Shape &extents, Rewrite rewrite) {
  require(layout.out().isTensor(), "the output is not a tensor");
  IndexSpace out = IndexSpace::tensor(extents);
  std::vector<uint64_t> columns;
  for (unsigned bit = 0; bit < layout.in().bits(); ++bit)
    columns.push_back(out.pack(rewrite(layout.out().unpack(layout.column(bit)))));
  return LinearLayout(layout.in(), std::move(out), std::move(columns));
}

} // namespace

LinearLayout LinearLayout::transpose(const std::vector<unsigned> &permutation) const {
  requirePermutation(permutation, rank());
  auto permute = [&](const std::vector<int64_t> &values) {
    std::vector<int64_t> result;
    for (unsigned d : permutation)
      result.push_back(values[d]);
    return result;
  };
  return mapCoords(*this, permute(shape()), permute);
}

LinearLayout LinearLayout::project(const std::vector<unsigned> &dims) const {
  Shape extents = shape();
  for (unsigned d : dims) {
    require(d < rank(), "no such dimension");
    extents[d] = 1;
  }
  return mapCoords(*this, extents, [&](Coords coords) {
    for (unsigned d : dims)
      coords[d] = 0;
    return coords;
  });
}

LinearLayout LinearLayout::reshape(const Shape &extents) const {
  IndexSpace out = IndexSpace::tensor(extents);
  require(out_.isTensor() && out.bits() == out_.bits(), "a reshape to another number of elements");
  return LinearLayout(in_, std::move(out), columns_);
}

LinearLayout LinearLayout::insertUnitDim(unsigned position) const {
  Shape extents = shape();
  require(position <= rank(), "no such dimension");
  extents.insert(extents.begin() + position, 1);
  return reshape(extents);
}

LinearLayout LinearLayout::dropUnitDim(unsigned position) const {
  Shape extents = shape();
  require(position < rank() && extents[position] == 1, "only a dimension of extent 1 can be dropped");
  extents.erase(extents.begin() + position);
  return reshape(extents);
}

LinearLayout LinearLayout::removeDuplicateRegisters() const {
  require(!in_.isTensor(), "the input is not hardware");
  std::vector<uint64_t> kept;
  Echelon echelon;
  for (uint64_t column : columns(Unit::Register))
    if (echelon.add(column))
      kept.push_back(column);
  std::array<unsigned, numUnits> logs = {};
  for (unsigned u = 0; u < numUnits; ++u)
    logs[u] = in_.log(u);
  logs[unsigned(Unit::Register)] = kept.size();
  kept.insert(kept.end(), columns_.begin() + in_.shift(Unit::Lane), columns_.end());
  return LinearLayout(IndexSpace::hardware(logs), out_, std::move(kept));
}

int64_t LinearLayout::numConsecutiveInRegisters(unsigned dim) const {
  require(dim < rank(), "no such dimension");
  std::vector<uint64_t> bases = columns(Unit::Register);
  unsigned low = out_.shift(dim);
  unsigned bit = 0;
  while (bit < bases.size() && bit < out_.log(dim) && bases[bit] == uint64_t(1) << (low + bit))
    ++bit;
  // The vector must begin at a multiple of its width in every thread: no other basis may touch its coordinate bits.
  for (size_t other = bit; other < columns_.size(); ++other)
    if (int64_t coordinate = out_.unpack(columns_[other])[dim])
      bit = std::min<unsigned>(bit, std::countr_zero(uint64_t(coordinate)));
  return int64_t(1) << bit;
}

//===--- Blocked layouts ------------------------------------------------------------------------------------------===//

Shape powerOfTwoExtents(const Shape &shape) {
  Shape extents;
  for (int64_t size : shape) {
    require(size > 0, "an empty tile");
    extents.push_back(std::bit_ceil(uint64_t(size)));
  }
  return extents;
}

bool isInside(const Coords &coords, const Shape &shape) {
  require(coords.size() == shape.size(), "coordinates of another rank");
  for (size_t d = 0; d < shape.size(); ++d)
    if (coords[d] >= shape[d])
      return false;
  return true;
}

LinearLayout blocked(const Shape &shape, const std::vector<unsigned> &order, int64_t vectorElements, int64_t lanes,
                     int64_t warps, int64_t blocks) {
  unsigned rank = shape.size();
  requirePermutation(order, rank);
  Shape extents = powerOfTwoExtents(shape);
  std::vector<unsigned> next(rank), end(rank); // the bits of each dimension that nothing has taken
  for (unsigned d : order)
    end[d] = log2Exactly(extents[d]);
  auto basis = [&](unsigned dim, unsigned bit) {
    Coords coords(rank, 0);
    coords[dim] = int64_t(1) << bit;
    return coords;
  };
  std::array<std::vector<Coords>, numUnits> bases;
  auto take = [&](Unit unit, unsigned bits, const std::vector<unsigned> &dims) {
    for (unsigned d : dims)
      for (; bits && next[d] < end[d]; --bits)
        bases[unsigned(unit)].push_back(basis(d, next[d]++));
    return bits;
  };
  auto takeAll = [&](Unit unit, int64_t size) {
    for (unsigned missing = take(unit, log2Exactly(size), order); missing; --missing)
      bases[unsigned(unit)].emplace_back(rank, 0);
  };

  std::vector<std::pair<int, unsigned>> longest; // (less its bits, its place in the order)
  for (unsigned i = 0; i < rank; ++i)
    longest.emplace_back(-int(end[order[i]]), i);
  std::sort(longest.begin(), longest.end());
  unsigned blockBits = log2Exactly(blocks);
  std::vector<Coords> &blockBases = bases[unsigned(Unit::Block)];
  for (auto [negativeBits, place] : longest) {
    unsigned d = order[place];
    unsigned taken = std::min(blockBits, end[d]);
    end[d] -= taken;
    blockBits -= taken;
    for (unsigned bit = 0; bit < taken; ++bit)
      blockBases.push_back(basis(d, end[d] + bit));
  }
  for (; blockBits; --blockBits)
    blockBases.emplace_back(rank, 0);

  take(Unit::Register, log2Exactly(vectorElements), {order.begin(), order.begin() + (rank > 0)});
  takeAll(Unit::Lane, lanes);
  takeAll(Unit::Warp, warps);
  take(Unit::Register, 64, order);

  std::vector<LinearLayout::UnitBases> inputs;
  for (unsigned u = 0; u < numUnits; ++u)
    inputs.push_back({Unit(u), bases[u]});
  return LinearLayout(inputs, extents);
}

} // namespace tenon::nvidia
