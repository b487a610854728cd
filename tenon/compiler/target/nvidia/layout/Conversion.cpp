// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/layout/Conversion.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/layout/Echelon.h"

#include <algorithm>
#include <bit>

namespace tenon::nvidia {

namespace {

constexpr Unit threadUnits[] = {Unit::Register, Unit::Lane, Unit::Warp, Unit::Block};

void require(bool condition, const char *what) {
  if (!condition)
    throw InternalError(std::string("layout conversion: ") + what);
}

unsigned log2Exactly(uint64_t size) {
  require(std::has_single_bit(size), "a size is not a power of two");
  return std::countr_zero(size);
}

} // namespace

//===--- Classification -------------------------------------------------------------------------------------------===//

Conversion classifyConversion(const LinearLayout &source, const LinearLayout &destination) {
  require(source.out() == destination.out(), "the layouts are of different tiles");
  for (Unit unit : {Unit::Lane, Unit::Warp, Unit::Block})
    require(source.size(unit) == destination.size(unit), "the layouts have different numbers of threads");

  // What a thread, a warp, a block and the cluster hold, apart from where its share begins. A solution over these
  // vectors is a packed place of the source, because registers, lanes, warps and blocks are packed in this order.
  std::vector<Echelon> held;
  Echelon echelon;
  for (Unit unit : threadUnits) {
    for (uint64_t column : source.columns(unit))
      echelon.add(column);
    held.push_back(echelon);
  }

  for (unsigned reach = 0; reach < held.size(); ++reach) {
    std::vector<uint64_t> columns;
    // The nearest source of what bit `bit` of a unit adds: with the unit's own bit kept, or (within reach) without.
    auto findSource = [&](Unit unit, unsigned bit, uint64_t column) -> std::optional<uint64_t> {
      if (unit != Unit::Register) {
        unsigned own = source.in().shift(unit) + bit;
        for (unsigned near = 0; near <= reach; ++near)
          if (auto rest = held[near].solve(column ^ source.column(own)))
            return *rest ^ (uint64_t(1) << own);
      }
      for (unsigned near = 0; near <= reach && unsigned(unit) <= reach; ++near)
        if (auto place = held[near].solve(column))
          return place;
      return std::nullopt;
    };
    for (Unit unit : threadUnits)
      for (unsigned bit = 0; bit < destination.in().log(unit); ++bit)
        if (auto place = findSource(unit, bit, destination.columns(unit)[bit]))
          columns.push_back(*place);
    if (columns.size() != destination.in().bits())
      continue;
    if (source == destination)
      for (unsigned bit = 0; bit < columns.size(); ++bit)
        columns[bit] = uint64_t(1) << bit;
    auto kind = source == destination ? ConversionKind::Identical
                                      : ConversionKind(unsigned(ConversionKind::Registers) + reach);
    return {kind, LinearLayout(destination.in(), source.in(), std::move(columns))};
  }
  throw InternalError("layout conversion: the source does not hold the destination's elements");
}

//===--- Accesses -------------------------------------------------------------------------------------------------===//

LinearLayout sharedPlaces(const LinearLayout &registers, const LinearLayout &shared) {
  require(registers.out() == shared.out(), "the layouts are of different tiles");
  for (Unit unit : {Unit::Register, Unit::Lane, Unit::Warp})
    require(shared.size(unit) == 1, "not a layout of shared memory");
  std::vector<uint64_t> offsets = shared.columns(Unit::Offset), blocks = shared.columns(Unit::Block);
  Echelon own(offsets), all(offsets);
  for (uint64_t column : blocks)
    all.add(column);
  // A solution has the offset's bits first; a packed place has the block's.
  auto asPlace = [&](uint64_t solution) {
    uint64_t offset = solution & ((uint64_t(1) << offsets.size()) - 1), block = solution >> offsets.size();
    return offset << shared.in().shift(Unit::Offset) | block << shared.in().shift(Unit::Block);
  };
  std::vector<uint64_t> columns;
  for (Unit unit : threadUnits)
    for (unsigned bit = 0; bit < registers.in().log(unit); ++bit) {
      uint64_t column = registers.columns(unit)[bit];
      bool hasOwnBlock = unit == Unit::Block && bit < blocks.size();
      auto solution = own.solve(column ^ (hasOwnBlock ? blocks[bit] : 0));
      uint64_t ownBlock = hasOwnBlock ? uint64_t(1) << (offsets.size() + bit) : 0;
      if (!solution) {
        solution = all.solve(column);
        ownBlock = 0;
      }
      require(solution.has_value(), "an element is not in shared memory");
      columns.push_back(asPlace(*solution | ownBlock));
    }
  return LinearLayout(registers.in(), shared.in(), std::move(columns));
}

namespace {

/// The bits of a place within one block's memory.
uint64_t offsetOf(const LinearLayout &places, uint64_t place) { return place >> places.out().shift(Unit::Offset); }

std::vector<uint64_t> offsetsOf(const LinearLayout &places, Unit unit) {
  std::vector<uint64_t> offsets;
  for (uint64_t place : places.columns(unit))
    offsets.push_back(offsetOf(places, place));
  return offsets;
}

/// How often a pass repeats: lanes (by the offsets of their bits) that each want `granule` elements of a row of banks.
int64_t conflictDegree(const std::vector<uint64_t> &lanes, unsigned logGranule, unsigned logRow) {
  Echelon addresses, banks;
  for (uint64_t lane : lanes) {
    addresses.add(lane >> logGranule);
    banks.add((lane & ((uint64_t(1) << logRow) - 1)) >> logGranule);
  }
  return int64_t(1) << (addresses.rank() - banks.rank());
}

} // namespace

SharedAccess planSharedAccess(const LinearLayout &registers, const LinearLayout &shared, unsigned elementBytes,
                              unsigned maxVectorBytes) {
  LinearLayout places = sharedPlaces(registers, shared);
  std::vector<uint64_t> columns = places.columns(Unit::Register);
  Echelon echelon;
  uint64_t duplicates = 0;
  for (size_t bit = 0; bit < columns.size(); ++bit)
    if (!echelon.add(columns[bit]))
      duplicates |= uint64_t(1) << bit;

  unsigned logVector = log2Exactly(std::max(maxVectorBytes / elementBytes, 1u));
  logVector = std::min(logVector, shared.in().log(Unit::Offset));
  for (Unit unit : {Unit::Lane, Unit::Warp, Unit::Block})
    for (uint64_t offset : offsetsOf(places, unit))
      if (offset)
        logVector = std::min<unsigned>(logVector, std::countr_zero(offset));
  std::vector<uint64_t> steps; // the register bits that lead to offset 1, 2, 4, ...
  for (unsigned bit = 0; bit < logVector; ++bit) {
    auto step = echelon.solve(uint64_t(1) << (places.out().shift(Unit::Offset) + bit));
    if (!step)
      break;
    steps.push_back(*step);
  }

  SharedAccess access{int64_t(1) << steps.size(), {}, std::move(places)};
  for (uint64_t first = 0; first < uint64_t(registers.registers()); ++first) {
    uint64_t offset = offsetOf(access.places, access.places.applyPacked(first));
    if (first & duplicates || offset & uint64_t(access.vectorElements - 1))
      continue;
    std::vector<int64_t> vector;
    for (int64_t element = 0; element < access.vectorElements; ++element) {
      uint64_t reg = first;
      for (size_t bit = 0; bit < steps.size(); ++bit)
        if (element >> bit & 1)
          reg ^= steps[bit];
      vector.push_back(reg);
    }
    access.registers.push_back(std::move(vector));
  }
  return access;
}

std::optional<MatrixAccess> planMatrixAccess(const LinearLayout &registers, const LinearLayout &shared,
                                             unsigned elementBits, bool transposed) {
  if (registers.size(Unit::Lane) != 32 || registers.removeDuplicateRegisters() != registers ||
      (transposed && elementBits != 16))
    return std::nullopt;
  LinearLayout places = sharedPlaces(registers, shared);
  unsigned logWord = log2Exactly(32 / elementBits), logRow = logWord + 2, base = places.out().shift(Unit::Offset);
  std::vector<uint64_t> regs = places.columns(Unit::Register), lanes = places.columns(Unit::Lane);
  if (regs.size() < logWord)
    return std::nullopt;

  // A matrix is one register of every lane. Its bits: first those along a row, then those that number the rows.
  std::vector<uint64_t> along(regs.begin(), regs.begin() + logWord), rows = {lanes[2], lanes[3], lanes[4]};
  along.push_back(lanes[0]);
  along.push_back(lanes[1]);
  if (transposed)
    std::swap(along, rows);
  for (unsigned bit = 0; bit < logRow; ++bit)
    if (along[bit] != uint64_t(1) << (base + bit))
      return std::nullopt;
  std::vector<uint64_t> others = rows;
  others.insert(others.end(), regs.begin() + logWord, regs.end());
  for (Unit unit : {Unit::Warp, Unit::Block})
    for (uint64_t place : places.columns(unit))
      others.push_back(place);
  for (uint64_t place : others)
    if (offsetOf(places, place) & ((uint64_t(1) << logRow) - 1))
      return std::nullopt;

  unsigned logMatrices = std::min<unsigned>(2, regs.size() - logWord), used = logWord + logMatrices;
  std::array<unsigned, numUnits> logs = {unsigned(regs.size()) - used, 5, registers.in().log(Unit::Warp),
                                         registers.in().log(Unit::Block), 0};
  std::vector<uint64_t> columns(regs.begin() + used, regs.end());
  columns.insert(columns.end(), rows.begin(), rows.end());
  columns.insert(columns.end(), regs.begin() + logWord, regs.begin() + used);
  columns.resize(logs[0] + 5); // lanes whose address is not used
  for (Unit unit : {Unit::Warp, Unit::Block})
    for (uint64_t place : places.columns(unit))
      columns.push_back(place);
  return MatrixAccess{1u << logMatrices, int64_t(1) << used,
                      LinearLayout(IndexSpace::hardware(logs), places.out(), std::move(columns))};
}

//===--- Cost -----------------------------------------------------------------------------------------------------===//

Wavefronts countWavefronts(const SharedAccess &access, unsigned elementBytes) {
  unsigned bytes = access.vectorElements * elementBytes, granule = std::max(bytes, 4u);
  std::vector<uint64_t> lanes = offsetsOf(access.places, Unit::Lane);
  size_t pass = std::min<size_t>(log2Exactly(128 / granule), lanes.size());
  int64_t ideal = int64_t(access.registers.size()) << (lanes.size() - pass);
  lanes.resize(pass);
  // Of elements smaller than a word several are in one: the granule is the word, and which of its elements is no
  // matter.
  int64_t degree = conflictDegree(lanes, log2Exactly(std::max(granule / elementBytes, 1u)),
                                  log2Exactly(std::max(128 / elementBytes, 1u)));
  return {ideal * degree, ideal};
}

Wavefronts countWavefronts(const MatrixAccess &access, unsigned elementBits) {
  std::vector<uint64_t> rows = offsetsOf(access.rowPlaces, Unit::Lane);
  rows.resize(3);
  int64_t ideal = access.rowPlaces.registers() * access.matrices;
  return {ideal * conflictDegree(rows, log2Exactly(128 / elementBits), log2Exactly(1024 / elementBits)), ideal};
}

Wavefronts countWavefronts(const LinearLayout &registers, const LinearLayout &shared, unsigned elementBytes,
                           int64_t vectorElements) {
  SharedAccess access = planSharedAccess(registers, shared, elementBytes, vectorElements * elementBytes);
  require(access.vectorElements == vectorElements, "vectors of this width are not contiguous in shared memory");
  return countWavefronts(access, elementBytes);
}

} // namespace tenon::nvidia
