// SPDX-License-Identifier: Apache-2.0
#include "tenon/model/Evaluator.h"

#include <algorithm>

namespace tenon::model {

using Step = PlanStructure::Step;

Evaluator::Evaluator(const PlanStructure &plan, std::span<const int64_t> constants, std::span<const int64_t> words)
    : readBound(plan.views.size()), writeBound(plan.views.size()), plan_(plan), constants_(constants), words_(words),
      scalars_(plan.scalars.size(), Range::unknown()), wholes_(plan.tiles.size()), extents_(plan.tiles.size()),
      attempts_(plan.variables) {
  // Most integers of a kernel are sizes and what follows from them. A scalar's operands stand before it.
  for (uint32_t i = 0; i < plan.scalars.size(); ++i)
    if (plan.isFixed[i])
      evaluate(i);
  for (size_t tile = 0; tile < plan.tiles.size(); ++tile)
    for (unsigned d = 0; d < plan.tiles[tile].rank; ++d) {
      int64_t size = constants[plan.tiles[tile].shape + d];
      wholes_[tile].extent[d] = size;
      wholes_[tile].volume *= static_cast<double>(size);
      extents_[tile][d] = size;
    }
}

std::set<std::string> Evaluator::notes() const {
  std::set<std::string> texts;
  for (auto [place, text] : notes_)
    texts.insert(plan_.places[place] + text);
  if (isSampled_)
    texts.insert("too many kinds of instances to count them all: some were sampled");
  return texts;
}

//===--- Integers -------------------------------------------------------------------------------------------------===//

void Evaluator::evaluate(uint32_t number) {
  using Kind = PlanStructure::Scalar::Kind;
  const PlanStructure::Scalar &s = plan_.scalars[number];
  auto a = [&]() -> const Range & { return scalars_[s.a]; };
  auto b = [&]() -> const Range & { return scalars_[s.b]; };
  auto powerOfTwo = [&] { return b().single() && b().lo >= 0 && b().lo < 61 ? Range::of(int64_t(1) << b().lo)
                                                                            : Range::unknown(); };
  Range &result = scalars_[number];
  switch (s.kind) {
  case Kind::constant:
    result = Range::of(constants_[s.a]);
    break;
  case Kind::word: {
    auto word = static_cast<uint64_t>(words_[s.a]);
    unsigned unused = 64 - s.detail;
    result = Range::of(s.detail == 1 ? static_cast<int64_t>(word & 1) : static_cast<int64_t>(word << unused) >> unused);
    break;
  }
  case Kind::gridId:
    result = Range::variable(ranges_[s.a].first, ranges_[s.a].last, s.a);
    break;
  case Kind::counter:
    result = Range::variable(ranges_[s.a].first, ranges_[s.a].last, s.a);
    result.mask |= tripMasks_[s.a];
    break;
  case Kind::add:
    result = addRanges(a(), b());
    break;
  case Kind::subtract:
    result = subtractRanges(a(), b());
    break;
  case Kind::multiply:
    result = multiplyRanges(a(), b());
    break;
  case Kind::divide:
    result = divideRanges(a(), b(), static_cast<Rounding>(s.detail));
    break;
  case Kind::remainder:
    result = remainderRanges(a(), b());
    break;
  case Kind::min:
    result = minRanges(a(), b());
    break;
  case Kind::max:
    result = maxRanges(a(), b());
    break;
  case Kind::compare:
    result = compareRanges(static_cast<Compare>(s.detail), a(), b());
    break;
  case Kind::select:
    result = selectRanges(a(), b(), scalars_[s.c]);
    break;
  case Kind::bits:
    result = combineBits(static_cast<Bitwise>(s.detail), a(), b());
    break;
  case Kind::shiftLeft:
    result = multiplyRanges(a(), powerOfTwo());
    break;
  case Kind::shiftRight:
    result = divideRanges(a(), powerOfTwo(), Rounding::down);
    break;
  case Kind::unknown:
    result = Range::unknown();
    break;
  }
}

std::string Evaluator::launch(int64_t (&grid)[3]) {
  for (uint32_t scalar : plan_.top.scalars)
    evaluate(scalar);
  for (const PlanStructure::Requirement &requirement : plan_.requirements)
    if (scalars_[requirement.condition].never())
      return requirement.message.empty() ? "a precondition does not hold" : requirement.message;
  for (size_t axis = 0; axis < plan_.extents.size(); ++axis) {
    const Range &extent = scalars_[plan_.extents[axis]];
    if (!extent.single())
      return "the grid depends on more than sizes and scalars";
    grid[axis] = extent.lo;
  }
  return "";
}

//===--- Tiles ----------------------------------------------------------------------------------------------------===//

double Evaluator::volume(uint32_t tile, const Extent &extent) const {
  double product = 1;
  for (unsigned d = 0; d < plan_.tiles[tile].rank; ++d)
    product *= static_cast<double>(extent[d]);
  return product;
}

void Evaluator::work(const PlanStructure::Effort &effort, double useful, double executed, Tally &tally) {
  auto precision = static_cast<size_t>(effort.precision);
  tally.useful.vector[precision] += effort.vector * useful;
  tally.useful.special[precision] += effort.special * useful;
  tally.useful.integer += effort.integer * useful;
  tally.executed.vector[precision] += effort.vector * executed;
  tally.executed.special[precision] += effort.special * executed;
  tally.executed.integer += effort.integer * executed;
}

void Evaluator::deferred(const Step &step, const Extent &wanted, double weight, Tally &tally) {
  for (const PlanStructure::Deferred &one : step.deferred) {
    Extent extent = whole(one.tile);
    for (unsigned d = 0; d < plan_.tiles[one.tile].rank; ++d)
      extent[d] = std::min(extent[d], wanted[d]);
    work(one.effort, weight * volume(one.tile, extent), weight * volume(one.tile), tally);
  }
}

/// What only moves elements about.
void Evaluator::arrange(const Step &step) {
  auto result = static_cast<uint32_t>(step.result);
  unsigned rank = plan_.tiles[result].rank;
  Extent extent = whole(result);
  uint32_t source = step.operands.front();
  const Extent &from = extents_[source];
  switch (step.kind) {
  case Step::Kind::broadcast:
    for (unsigned d = 0; d < rank; ++d)
      if (dim(source, d) == dim(result, d) || from[d] == 0)
        extent[d] = from[d];
    break;
  case Step::Kind::transpose:
    for (unsigned d = 0; d < rank; ++d)
      extent[d] = from[step.extra[d]];
    break;
  case Step::Kind::slice:
    for (unsigned d = 0; d < rank; ++d)
      extent[d] = std::clamp<int64_t>(from[d] - constants_[step.extra[d]], 0, extent[d]);
    break;
  case Step::Kind::concat:
    for (unsigned d = 0; d < rank; ++d) {
      int64_t sum = 0, least = extent[d];
      for (uint32_t operand : step.operands) {
        sum += extents_[operand][d];
        least = std::min(least, extents_[operand][d]);
      }
      extent[d] = d == step.extra[0] ? sum : least;
    }
    break;
  default: { // reshape: dimensions of one come and go; anything else keeps the number of elements, as whole rows
    Extent sizes{}, kept{};
    size_t count = 0, next = 0;
    bool empty = false, matches = true;
    for (unsigned d = 0; d < plan_.tiles[source].rank; ++d) {
      empty |= from[d] == 0;
      if (dim(source, d) != 1) {
        sizes[count] = dim(source, d);
        kept[count++] = from[d];
      }
    }
    for (unsigned d = 0; d < rank; ++d)
      if (dim(result, d) != 1) {
        matches &= next < count && sizes[next] == dim(result, d);
        if (matches)
          extent[d] = kept[next++];
      }
    if (!matches || next != count) {
      extent = whole(result);
      double rest = volume(source, from);
      for (unsigned d = 1; d < rank; ++d)
        rest /= static_cast<double>(extent[d]);
      if (rank > 0)
        extent[0] = std::min(extent[0], static_cast<int64_t>(rest + 0.999999));
    } else if (empty && rank > 0) {
      extent[0] = 0;
    }
  }
  }
  extents_[result] = extent;
}

//===--- Accesses -------------------------------------------------------------------------------------------------===//

int Evaluator::access(const Step &step, double weight, Tally &tally) {
  const PlanStructure::View &view = plan_.views[static_cast<size_t>(step.view)];
  uint32_t tile = step.kind == Step::Kind::load ? static_cast<uint32_t>(step.result) : step.operands.front();
  Extent extent = whole(tile);
  for (unsigned d = 0; d < view.rank; ++d) {
    const Range &offset = scalars_[step.offsets[d]], &size = scalars_[view.sizes[d]];
    int64_t length = dim(tile, d);
    if (!offset.known || !size.single()) {
      note(step.place, "an offset is known only when the kernel runs: counted as inside the view");
      (step.reads ? readBound : writeBound)[static_cast<size_t>(step.view)] = true;
      if (size.single())
        extent[d] = std::min(length, size.lo);
    } else if (offset.lo >= 0 && offset.hi <= size.lo - length) {
      extent[d] = length;
    } else if (offset.lo >= size.lo || offset.hi <= -length) {
      extent[d] = 0;
    } else if (offset.single()) {
      extent[d] = std::max<int64_t>(std::min(offset.lo + length, size.lo) - std::max<int64_t>(offset.lo, 0), 0);
    } else if (offset.canSplit()) {
      return offset.widest;
    }
  }
  double bytes = weight * volume(tile, extent) * view.elementBytes;
  (step.reads ? tally.read : tally.written)[static_cast<size_t>(step.view)] += bytes;
  deferred(step, extent, weight, tally);
  if (step.kind == Step::Kind::load)
    extents_[tile] = extent;
  return done;
}

void Evaluator::indexed(const Step &step, double weight, Tally &tally) {
  auto number = static_cast<size_t>(step.view);
  Extent extent = whole(step.operands.front());
  for (uint32_t operand : step.operands)
    for (unsigned d = 0; d < plan_.tiles[operand].rank; ++d)
      extent[d] = std::min(extent[d], extents_[operand][d]);
  note(step.place, "the indices are known only when the kernel runs: counted as if all were inside the view");
  double elements = weight * volume(step.operands.front(), extent);
  if (step.reads) {
    tally.read[number] += elements * plan_.views[number].elementBytes;
    readBound[number] = true;
  }
  if (step.writes) {
    tally.written[number] += elements * plan_.views[number].elementBytes;
    writeBound[number] = true;
  }
  work(step.effort, elements, weight * volume(step.operands.front()), tally);
  if (step.result >= 0)
    extents_[static_cast<size_t>(step.result)] = extent;
}

//===--- Steps ----------------------------------------------------------------------------------------------------===//

int Evaluator::step(const Step &step, double weight, Tally &tally) {
  auto result = static_cast<uint32_t>(step.result);
  switch (step.kind) {
  case Step::Kind::whole:
    extents_[result] = whole(result);
    return done;
  case Step::Kind::load:
  case Step::Kind::store:
    return access(step, weight, tally);
  case Step::Kind::indexed:
    indexed(step, weight, tally);
    return done;
  case Step::Kind::elementwise: {
    Extent extent = whole(result);
    for (uint32_t operand : step.operands)
      for (unsigned d = 0; d < plan_.tiles[operand].rank; ++d)
        extent[d] = std::min(extent[d], extents_[operand][d]);
    work(step.effort, weight * volume(result, extent), weight * volume(result), tally);
    deferred(step, extent, weight, tally);
    extents_[result] = extent;
    return done;
  }
  case Step::Kind::reduce:
  case Step::Kind::scan: {
    uint32_t source = step.operands.front();
    work(step.effort, weight * volume(source, extents_[source]), weight * volume(source), tally);
    Extent extent = extents_[source];
    if (step.kind == Step::Kind::reduce)
      extent[step.extra[0]] = 1;
    extents_[result] = extent;
    return done;
  }
  case Step::Kind::dot: {
    const Extent &a = extents_[step.operands[0]], &b = extents_[step.operands[1]];
    auto precision = static_cast<size_t>(step.effort.precision);
    auto m = static_cast<double>(a[0]), k = static_cast<double>(std::min(a[1], b[0])), n = static_cast<double>(b[1]);
    tally.useful.matrix[precision] += 2 * weight * m * n * k;
    tally.executed.matrix[precision] += 2 * weight * volume(step.operands[0]) * static_cast<double>(dim(result, 1));
    extents_[result] = {a[0], b[1]};
    return done;
  }
  case Step::Kind::loop:
    return loop(plan_.loops[step.extra[0]], weight, tally);
  case Step::Kind::branch:
    return branch(plan_.branches[step.extra[0]], weight, tally);
  default:
    arrange(step);
    return done;
  }
}

int Evaluator::run(const PlanStructure::Block &block, double weight, Tally &tally) {
  for (uint32_t scalar : block.scalars)
    evaluate(scalar);
  // What will have to be split is known before any tile is looked at.
  for (uint32_t number : block.loops)
    if (Range count = trips(plan_.loops[number]); count.known && !count.single() && count.canSplit())
      return count.widest;
  for (const Step &one : block.steps)
    if (int split = step(one, weight, tally); split != done)
      return split;
  return done;
}

Range Evaluator::trips(const PlanStructure::Loop &loop) const {
  Range length = subtractRanges(scalars_[loop.upper], scalars_[loop.lower]);
  return maxRanges(divideRanges(length, scalars_[loop.step], Rounding::up), Range::of(0));
}

int Evaluator::loop(const PlanStructure::Loop &loop, double weight, Tally &tally) {
  Range count = trips(loop);
  int64_t trips = count.hi;
  Work before;
  if (loop.aroundDot) {
    before = tally.executed;
    tally.isLeftToMemory |= !count.known || !count.single(); // what can be told apart has been
  }
  int split = iterations(loop, count, trips, weight, tally);
  if (loop.aroundDot && split == done)
    tally.inLoops.add(tally.executed).add(before, -1);
  return split;
}

int Evaluator::iterations(const PlanStructure::Loop &loop, const Range &count, int64_t trips, double weight,
                          Tally &tally) {
  if (!count.known) {
    note(loop.place, "how often the loop runs is known only when it does: counted once, which may be too little");
    trips = 1;
    std::fill(readBound.begin(), readBound.end(), true);
    std::fill(writeBound.begin(), writeBound.end(), true);
  }
  for (const PlanStructure::Carried &carried : loop.carried)
    extents_[carried.argument] = extents_[carried.init];
  bool isSplit = false;
  if (trips > 0 && !loop.carried.empty()) {
    int all = allAtOnce(loop, trips, weight, tally);
    isSplit = all == static_cast<int>(loop.variable);
    if (all != notAlike && !isSplit)
      return all;
    // From the second iteration on the carried tiles hold what the first one made of them: see what that is.
    if (isSplit) {
      ranges_[loop.variable] = {0, 0};
      if (int split = run(loop.body, /*weight=*/0, tally); split != done)
        return split;
    }
    for (const PlanStructure::Carried &carried : loop.carried)
      extents_[carried.argument] = extents_[carried.yielded];
  }
  for (const PlanStructure::Carried &carried : loop.carried) // as the first iteration leaves them
    extents_[carried.result] = extents_[trips > 0 ? carried.yielded : carried.init];
  describe(loop, trips, weight, tally);
  return iterate(loop, trips, isSplit, weight, tally);
}

/// Of a loop around a dot: what an iteration loads, and how many there are.
void Evaluator::describe(const PlanStructure::Loop &loop, int64_t trips, double weight, Tally &tally) const {
  if (!loop.aroundDot || trips == 0)
    return;
  double loaded = 0;
  for (const Step &one : loop.body.steps)
    if (one.kind == Step::Kind::load)
      loaded += volume(static_cast<uint32_t>(one.result)) * plan_.tiles[static_cast<size_t>(one.result)].bytes;
  tally.loopLoadBytes = std::max(tally.loopLoadBytes, loaded);
  tally.loopIterations += weight * static_cast<double>(trips);
}

/// Mostly all iterations are alike, and an iteration leaves of the carried tiles what it found: then once is enough.
/// Otherwise `notAlike`, or the variable to split.
int Evaluator::allAtOnce(const PlanStructure::Loop &loop, int64_t trips, double weight, Tally &tally) {
  ranges_[loop.variable] = {0, trips - 1};
  Tally &attempt = attempts_[loop.variable];
  attempt = tally;
  --budget_;
  if (int split = run(loop.body, weight * static_cast<double>(trips), attempt); split != done)
    return split;
  for (const PlanStructure::Carried &carried : loop.carried)
    if (extents_[carried.yielded] != extents_[carried.init])
      return notAlike;
  std::swap(tally, attempt);
  for (const PlanStructure::Carried &carried : loop.carried)
    extents_[carried.result] = extents_[carried.yielded];
  describe(loop, trips, weight, tally);
  return done;
}

/// All iterations, in classes that are alike: usually all but the last, and the last. `isSplit`: they are not all alike.
int Evaluator::iterate(const PlanStructure::Loop &loop, int64_t trips, bool isSplit, double weight, Tally &tally) {
  std::vector<Span> todo;
  if (trips > 1 && isSplit)
    todo = {{0, trips - 2}, {trips - 1, trips - 1}};
  else if (trips > 0)
    todo.push_back({0, trips - 1});
  while (!todo.empty()) {
    Span span = todo.back();
    todo.pop_back();
    bool sampled = budget_ <= 0 && span.first != span.last;
    if (sampled)
      note(loop.place, "too many kinds of iterations to count them all: some were sampled");
    int64_t middle = span.first + (span.last - span.first) / 2;
    ranges_[loop.variable] = sampled ? Span{middle, middle} : span;
    --budget_;
    Tally &attempt = attempts_[loop.variable];
    attempt = tally;
    int split = run(loop.body, weight * static_cast<double>(span.last - span.first + 1), attempt);
    if (split == done) {
      std::swap(tally, attempt);
    } else if (split != static_cast<int>(loop.variable) || span.first == span.last) {
      return split;
    } else {
      // The edge first: all but the last iteration are alike as a rule.
      int64_t end = span.first == 0 && span.last == trips - 1 ? span.last - 1 : middle;
      todo.push_back({span.first, end});
      todo.push_back({end + 1, span.last});
    }
  }
  return done;
}

int Evaluator::branch(const PlanStructure::Branch &branch, double weight, Tally &tally) {
  const Range &condition = scalars_[branch.condition];
  bool certain = condition.always() || condition.never();
  if (!certain && condition.canSplit())
    return condition.widest;
  if (certain) {
    bool yes = condition.always();
    if (int split = run(yes ? branch.yes : branch.no, weight, tally); split != done)
      return split;
    for (const PlanStructure::Choice &choice : branch.choices)
      extents_[choice.result] = extents_[yes ? choice.yes : choice.no];
    return done;
  }
  note(branch.place, "which way the branch goes is known only when it runs: the longer one is counted");
  std::fill(readBound.begin(), readBound.end(), true);
  std::fill(writeBound.begin(), writeBound.end(), true);
  Tally yes = tally, no = tally;
  if (int split = run(branch.yes, weight, yes); split != done)
    return split;
  if (int split = run(branch.no, weight, no); split != done)
    return split;
  auto longer = [](const Tally &a, const Tally &b) {
    double costs[2] = {0, 0};
    const Tally *both[2] = {&a, &b};
    for (int i = 0; i < 2; ++i) {
      costs[i] = both[i]->executed.flops();
      for (size_t view = 0; view < a.read.size(); ++view)
        costs[i] += both[i]->read[view] + both[i]->written[view];
    }
    return costs[0] >= costs[1];
  };
  bool isYes = longer(yes, no);
  tally = isYes ? std::move(yes) : std::move(no);
  for (const PlanStructure::Choice &choice : branch.choices)
    extents_[choice.result] = extents_[isYes ? choice.yes : choice.no];
  return done;
}

int Evaluator::count(Tally &tally) {
  tally.clear(plan_.views.size());
  --budget_;
  return run(plan_.top, 1, tally);
}

//===--- What is touched ------------------------------------------------------------------------------------------===//

void Evaluator::touchAccess(const Step &step, std::vector<Touched> &all, bool certain) {
  const PlanStructure::View &view = plan_.views[static_cast<size_t>(step.view)];
  Touched touched;
  touched.view = step.view;
  touched.rank = view.rank;
  touched.exact = certain && step.kind != Step::Kind::indexed;
  uint32_t seen = 0;
  for (unsigned d = 0; d < view.rank; ++d) {
    const Range &size = scalars_[view.sizes[d]];
    int64_t end = size.single() ? std::max<int64_t>(size.lo, 0) : 0;
    Touched::Dim dim;
    dim.last = end;
    dim.count = static_cast<double>(end);
    if (step.kind != Step::Kind::indexed) {
      uint32_t tile = step.kind == Step::Kind::load ? static_cast<uint32_t>(step.result) : step.operands.front();
      int64_t length = this->dim(tile, d);
      const Range &offset = scalars_[step.offsets[d]];
      touched.exact &= offset.known && offset.full && !(offset.mask & seen);
      seen |= offset.mask;
      if (offset.known) {
        dim.mask = offset.mask;
        dim.first = std::clamp<int64_t>(offset.lo, 0, end);
        dim.last = std::clamp<int64_t>(offset.hi + length, dim.first, end);
        dim.count = static_cast<double>(dim.last - dim.first);
        if (offset.full && !offset.single() && offset.stride > length) { // gaps between the tiles
          int64_t tiles = (offset.hi - offset.lo) / offset.stride + 1;
          dim.count = static_cast<double>(tiles * length);
          auto outside = [&](int64_t first) {
            return length - std::max<int64_t>(std::min(first + length, end) - std::max<int64_t>(first, 0), 0);
          };
          dim.count -= static_cast<double>(outside(offset.lo) + outside(offset.hi));
          touched.exact &= offset.lo >= -length && offset.hi <= end;
        }
      }
    }
    // A dimension of stride zero repeats one element.
    if (view.hasStrides && words_[view.strides + d] == 0 && dim.count > 0) {
      dim.count = 1;
      dim.first = 0;
      dim.last = 1;
    }
    touched.all[d] = dim;
  }
  for (bool isWrite : {false, true})
    if (isWrite ? step.writes : step.reads) {
      touched.isWrite = isWrite;
      all.push_back(touched);
    }
}

void Evaluator::touch(const PlanStructure::Block &block, std::vector<Touched> &all, bool certain) {
  for (uint32_t scalar : block.scalars)
    evaluate(scalar);
  for (const Step &step : block.steps) {
    if (step.kind == Step::Kind::load || step.kind == Step::Kind::store || step.kind == Step::Kind::indexed) {
      touchAccess(step, all, certain);
    } else if (step.kind == Step::Kind::loop) {
      const PlanStructure::Loop &loop = plan_.loops[step.extra[0]];
      Range count = trips(loop);
      if (count.known && count.hi == 0)
        continue;
      ranges_[loop.variable] = {0, count.known ? count.hi - 1 : 0};
      tripMasks_[loop.variable] = count.single() ? 0 : count.mask;
      touch(loop.body, all, certain && count.known);
      tripMasks_[loop.variable] = 0;
    } else if (step.kind == Step::Kind::branch) {
      const PlanStructure::Branch &branch = plan_.branches[step.extra[0]];
      const Range &condition = scalars_[branch.condition];
      bool always = condition.always(), never = condition.never();
      if (!never)
        touch(branch.yes, all, certain && always);
      if (!always)
        touch(branch.no, all, certain && never);
    }
  }
}

std::vector<Touched> Evaluator::touched() {
  std::vector<Touched> all;
  touch(plan_.top, all, true);
  return all;
}

} // namespace tenon::model
