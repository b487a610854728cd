// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/layout/Conversion.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/layout/Echelon.h"

#include <algorithm>
#include <bit>

/// Which layout shared memory should have between a store by one register layout and a load by another.
///
/// The elements of a block are a vector space over F2; a shared layout is a basis of it in some order, basis i being
/// where offset 2^i is. The lowest bases V make up a vector access, the next ones run through the banks, the highest
/// ones S say which row of banks ("segment"). Two lanes of one pass disturb each other when their elements differ by
/// something in span(V, S) that is not in span(V): same bank, another segment. So, modulo V, S must have only zero in
/// common with the span A of the storing lanes, and with the span B of the loading lanes.
///
/// Such an S always exists when V is a vector for both. Let I be A n B, E what completes I to A, F what completes I to
/// B, C what completes A + B to everything. C and the sums e_i + f_i span a space that meets neither A nor B. Of d
/// dimensions it has d - max(dim A, dim B). The lanes of one pass want at most 128 bytes, as many as there are banks,
/// so that neither A nor B has more dimensions than the banks, and the d - (bank bits) dimensions that S needs are
/// there.
///
/// What remains is V. A vector for both sides has to lie in the registers of both. Beyond that (a transposed tile has
/// nothing in common) it may be better to give one side its wide vectors and let the other pay. The candidates are few:
/// V begins with some of the common registers and goes on with those of the source, or of the destination, to every
/// width. They are built and counted.
namespace tenon::nvidia {

namespace {

using Vectors = std::vector<uint64_t>;

/// What one side's registers, lanes and warps add to an element's position in its block.
struct Side {
  Vectors registers, lanes, warps;
};

Vectors independent(const Vectors &vectors) {
  Vectors kept;
  Echelon echelon;
  for (uint64_t vector : vectors)
    if (echelon.add(vector))
      kept.push_back(vector);
  return kept;
}

/// Up to `most` independent vectors of span(a) that are in span(b), those of the fewest and lowest vectors of a first.
Vectors common(const Vectors &a, const Vectors &b, size_t most) {
  Echelon inB(b), found;
  Vectors result;
  for (uint64_t subset = 1; subset < uint64_t(1) << a.size() && result.size() < most; ++subset) {
    uint64_t sum = 0;
    for (size_t i = 0; i < a.size(); ++i)
      if (subset >> i & 1)
        sum ^= a[i];
    if (inB.contains(sum) && !found.contains(sum)) {
      found.add(sum);
      result.push_back(sum);
    }
  }
  return result;
}

/// Extends a basis by those of the candidates that it needs, up to a number of dimensions; returns what was added.
Vectors extend(Echelon &basis, const Vectors &candidates, size_t most = 64) {
  Vectors added;
  for (uint64_t vector : candidates)
    if (added.size() < most && !basis.contains(vector)) {
      basis.add(vector);
      added.push_back(vector);
    }
  return added;
}

void append(Vectors &vectors, const Vectors &more) { vectors.insert(vectors.end(), more.begin(), more.end()); }

/// Projection on the second of two complementary spaces.
class Projection {
public:
  Projection(const Vectors &away, const Vectors &onto) : onto_(onto), removed_(away.size()), echelon_(away) {
    for (uint64_t vector : onto)
      echelon_.add(vector);
  }
  Vectors operator()(const Vectors &vectors) const {
    Vectors result;
    for (uint64_t vector : vectors) {
      std::optional<uint64_t> parts = echelon_.solve(vector);
      if (!parts)
        throw InternalError("layout conversion: the source does not hold the destination's elements");
      uint64_t image = 0;
      for (uint64_t sum = *parts >> removed_; sum; sum &= sum - 1)
        image ^= onto_[std::countr_zero(sum)];
      result.push_back(image);
    }
    return result;
  }

private:
  Vectors onto_;
  unsigned removed_;
  Echelon echelon_;
};

/// The lanes of one pass. A side accesses as much of the vector, from its lowest basis on, as its registers have.
Vectors passLanes(const Side &side, const Vectors &vector, unsigned elementBytes) {
  Echelon registers(side.registers);
  auto end = std::find_if(vector.begin(), vector.end(), [&](uint64_t v) { return !registers.contains(v); });
  unsigned bytes = std::max(elementBytes << (end - vector.begin()), 4u);
  size_t pass = std::min<size_t>(std::countr_zero(128 / bytes), side.lanes.size());
  return {side.lanes.begin(), side.lanes.begin() + pass};
}

/// The bases of offset 1, 2, 4, ...: vector, rest of the word, banks, segments.
Vectors arrange(const Vectors &vector, const Side &source, const Side &destination, const Vectors &everything,
                unsigned elementBytes) {
  // What is not in the vector. A lane or warp with a part in the vector could not use it (its elements would be
  // permuted there), so the lanes and warps themselves are taken, as far as they are independent.
  Vectors rest;
  Echelon whole(vector);
  for (const Vectors *part : {&source.lanes, &source.warps, &destination.lanes, &destination.warps, &everything})
    append(rest, extend(whole, *part));

  // Which elements share a word does not matter to the banks: the last ones, which are registers if there are enough.
  size_t wordBits = std::countr_zero(std::max(4 / elementBytes, 1u));
  size_t fill = std::min(wordBits - std::min(wordBits, vector.size()), rest.size());
  Vectors low = vector;
  low.insert(low.end(), rest.end() - fill, rest.end());
  rest.resize(rest.size() - fill);

  size_t rowBits = std::countr_zero(128 / elementBytes);
  size_t bankBits = std::min(rowBits - std::min(rowBits, low.size()), rest.size());

  Projection project(low, rest);
  Vectors a = independent(project(passLanes(source, vector, elementBytes)));
  Vectors b = independent(project(passLanes(destination, vector, elementBytes)));
  Vectors both = common(a, b, 64);
  Echelon spanA(both), spanB(both);
  Vectors onlyA = extend(spanA, a), onlyB = extend(spanB, b);
  Echelon sum(a);
  extend(sum, b);
  Vectors segments = extend(sum, rest);
  for (size_t i = 0; i < std::min(onlyA.size(), onlyB.size()); ++i)
    segments.push_back(onlyA[i] ^ onlyB[i]);

  // Not enough of them (one side cannot use the vectors): some conflicts cannot be avoided.
  size_t segmentBits = rest.size() - bankBits;
  Echelon used(segments);
  append(segments, extend(used, rest));
  segments.resize(segmentBits);

  Vectors bases = low;
  Echelon placed(low);
  extend(placed, segments);
  for (const Vectors *part : {&a, &b, &rest})
    append(bases, extend(placed, *part));
  append(bases, segments);
  return bases;
}

} // namespace

SharedChoice chooseShared(const LinearLayout &source, const LinearLayout &destination, unsigned elementBytes) {
  if (source.out() != destination.out())
    throw InternalError("layout conversion: the layouts are of different tiles");
  // One block's elements, apart from where its share begins; then the blocks', for destinations beyond the own block.
  Vectors everything;
  for (Unit unit : {Unit::Register, Unit::Lane, Unit::Warp})
    append(everything, source.columns(unit));
  everything = independent(everything);
  Vectors blocks = source.columns(Unit::Block);
  Echelon reach(everything);
  Vectors beyond = extend(reach, blocks);
  Projection inBlock(beyond, everything);
  auto side = [&](const LinearLayout &layout) {
    return Side{inBlock(layout.columns(Unit::Register)), inBlock(layout.columns(Unit::Lane)),
                inBlock(layout.columns(Unit::Warp))};
  };
  Side from = side(source), to = side(destination);

  std::array<unsigned, numUnits> logs = {};
  logs[unsigned(Unit::Block)] = blocks.size();
  logs[unsigned(Unit::Offset)] = everything.size();
  auto build = [&](const Vectors &vector) {
    Vectors columns = blocks;
    append(columns, arrange(vector, from, to, everything, elementBytes));
    LinearLayout shared(IndexSpace::hardware(logs), source.out(), columns);
    SharedChoice choice{shared, planSharedAccess(source, shared, elementBytes),
                        planSharedAccess(destination, shared, elementBytes), {}, {}};
    choice.storeCost = countWavefronts(choice.store, elementBytes);
    choice.loadCost = countWavefronts(choice.load, elementBytes);
    return choice;
  };
  auto cost = [](const SharedChoice &choice) {
    return choice.storeCost.actual + choice.loadCost.actual + choice.store.registers.size() +
           choice.load.registers.size();
  };

  size_t widest = std::countr_zero(std::max(16 / elementBytes, 1u));
  Vectors shareable = common(independent(from.registers), to.registers, widest);
  SharedChoice best = build({});
  for (size_t shared = 0; shared <= shareable.size(); ++shared)
    for (const Side *wide : {&from, &to}) {
      Vectors registers(shareable.begin(), shareable.begin() + shared);
      Echelon basis(registers);
      append(registers, extend(basis, wide->registers));
      for (size_t width = std::max<size_t>(shared, 1); width <= std::min(widest, registers.size()); ++width) {
        SharedChoice choice = build({registers.begin(), registers.begin() + width});
        if (cost(choice) < cost(best))
          best = std::move(choice);
      }
    }
  return best;
}

} // namespace tenon::nvidia
