// SPDX-License-Identifier: Apache-2.0
#include "tenon/model/Count.h"

#include "tenon/base/Error.h"
#include "tenon/model/Evaluator.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace tenon::model {
namespace {

double sum(const std::array<double, precisions> &values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// Part of the grid.
struct Box {
  int64_t first[3], last[3];

  double instances() const {
    double product = 1;
    for (int d = 0; d < 3; ++d)
      product *= static_cast<double>(last[d] - first[d] + 1);
    return product;
  }
  bool operator<(const Box &other) const { return instances() < other.instances(); }
};

//===--- Compulsory bytes -----------------------------------------------------------------------------------------===//

bool isInside(const Touched &inner, const Touched &outer) {
  for (size_t d = 0; d < inner.rank; ++d)
    if (inner.all[d].first < outer.all[d].first || inner.all[d].last > outer.all[d].last)
      return false;
  return true;
}

bool isDense(const Touched &touched) {
  std::span<const Touched::Dim> dims = touched.dims();
  return std::all_of(dims.begin(), dims.end(), [](const Touched::Dim &dim) {
    return dim.count == static_cast<double>(dim.last - dim.first);
  });
}

double elements(const Touched &touched) {
  double product = 1;
  for (const Touched::Dim &dim : touched.dims())
    product *= dim.count;
  return product;
}

/// The elements in any of several boxes: cut space at every face, dimension by dimension.
double unionOf(const std::vector<const Touched *> &boxes, size_t d) {
  if (boxes.empty())
    return 0;
  if (d == boxes.front()->rank)
    return 1;
  std::vector<int64_t> cuts;
  for (const Touched *box : boxes) {
    cuts.push_back(box->all[d].first);
    cuts.push_back(box->all[d].last);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  double total = 0;
  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::vector<const Touched *> here;
    for (const Touched *box : boxes)
      if (box->all[d].first <= cuts[i] && box->all[d].last >= cuts[i + 1])
        here.push_back(box);
    total += static_cast<double>(cuts[i + 1] - cuts[i]) * unionOf(here, d + 1);
  }
  return total;
}

/// Elements of a view that any access touches, each once.
double uniqueElements(const std::vector<Touched> &all, int view, bool isWrite, bool &exact) {
  // What lies inside a box that is certainly touched all over adds nothing, certain or not.
  auto covers = [](const Touched &outer, const Touched &inner) {
    return outer.exact && isDense(outer) && isInside(inner, outer);
  };
  std::vector<const Touched *> boxes;
  for (const Touched &one : all) {
    if (one.view != view || one.isWrite != isWrite || elements(one) == 0)
      continue;
    if (std::any_of(boxes.begin(), boxes.end(), [&](const Touched *other) { return covers(*other, one); }))
      continue;
    std::erase_if(boxes, [&](const Touched *other) { return covers(one, *other); });
    boxes.push_back(&one);
  }
  for (const Touched *box : boxes)
    exact &= box->exact;
  if (boxes.size() == 1)
    return elements(*boxes.front());
  // Boxes with gaps may or may not meet: their hull is a bound.
  exact &= std::all_of(boxes.begin(), boxes.end(), [](const Touched *box) { return isDense(*box); });
  return unionOf(boxes, 0);
}

struct Alive {
  double most = 0, inLoops = 0;
};

/// The most bytes of tiles alive at once, and in loops around dots.
Alive mostAlive(const PlanStructure &plan, std::span<const int64_t> constants) {
  std::vector<double> change(plan.steps + 2);
  for (const PlanStructure::Tile &tile : plan.tiles) {
    if (!tile.occupies)
      continue;
    double bytes = tile.bytes;
    for (unsigned d = 0; d < tile.rank; ++d)
      bytes *= static_cast<double>(constants[tile.shape + d]);
    change[tile.born] += bytes;
    change[tile.dies + 1] -= bytes;
  }
  Alive result;
  for (size_t i = 1; i < change.size(); ++i)
    change[i] += change[i - 1];
  for (double alive : change)
    result.most = std::max(result.most, alive);
  for (const PlanStructure::Loop &loop : plan.loops)
    for (size_t i = loop.first; loop.aroundDot && i <= loop.last && i < change.size(); ++i)
      result.inLoops = std::max(result.inLoops, change[i]);
  return result;
}

/// Tiles of so many bytes lie side by side, and a transfer brings in panels of a line. Where a tile ends within a line,
/// the panels of the next one begin there, and lie in two lines each: how many more lines they touch, of each panel.
double cutLines(int64_t bytes, int64_t line) {
  int64_t step = std::gcd(bytes, line), rest = bytes % line; // tiles begin at multiples of the step, equally often
  auto part = [&](int64_t of) { return static_cast<double>(of) / static_cast<double>(line); };
  double more = static_cast<double>(bytes / line) * (1 - part(step)) + (rest ? part(rest - step) : 0);
  return more / static_cast<double>(bytes / line + (rest != 0));
}

/// Of the loop around a dot that loads most, its loads; and of all loops, their dots.
void describeLoops(const PlanStructure &plan, std::span<const int64_t> constants, std::span<const int64_t> words,
                   Counts &counts) {
  constexpr int64_t line = 128;
  double most = 0;
  for (const PlanStructure::Loop &loop : plan.loops) {
    std::vector<Counts::LoopLoad> loads;
    double all = 0;
    for (const PlanStructure::Step &step : loop.body.steps) {
      if (step.kind == PlanStructure::Step::Kind::dot) {
        uint32_t shape = plan.tiles[static_cast<size_t>(step.result)].shape;
        uint32_t first = plan.tiles[step.operands.front()].shape;
        counts.dots.push_back({constants[shape], constants[shape + 1], constants[first + 1], step.extra.front() != 0});
      }
      if (step.kind != PlanStructure::Step::Kind::load)
        continue;
      const PlanStructure::Tile &tile = plan.tiles[static_cast<size_t>(step.result)];
      const PlanStructure::View &view = plan.views[static_cast<size_t>(step.view)];
      Counts::LoopLoad load;
      load.lineBytes = 1;
      for (unsigned d = 0; d < tile.rank; ++d) {
        int64_t size = constants[tile.shape + d];
        int64_t stride = view.hasStrides ? words[view.strides + d] : d + 1 == tile.rank;
        if (stride == 1) {
          load.lineBytes *= static_cast<double>((size * tile.bytes + line - 1) / line * line);
          bool isWhole = view.hasStrides && size >= words[view.strides - view.rank + d]; // every tile begins a row
          load.cut = isWhole ? 0 : static_cast<float>(cutLines(size * tile.bytes, line));
        } else {
          load.lineBytes *= static_cast<double>(size);
        }
        bool isRow = view.hasStrides && stride != 1 && size > 1;
        load.straddles |= isRow && stride * tile.bytes % line != 0;
        load.byThreads |= isRow && stride * tile.bytes % 16 != 0;
      }
      all += load.lineBytes;
      loads.push_back(load);
    }
    if (loop.aroundDot && all > most) {
      most = all;
      counts.loopLoads = std::move(loads);
    }
  }
}

/// What counting a grid adds up.
struct Total {
  Work useful, executed, inLoops;
  std::vector<double> read, written;
  double loopLoadBytes = 0, loopIterations = 0, busiest = 0, all = 0;
  bool isLeftToMemory = false;

  explicit Total(size_t views) : read(views), written(views) {}

  void add(const Tally &tally, double times) {
    useful.add(tally.useful, times);
    executed.add(tally.executed, times);
    inLoops.add(tally.inLoops, times);
    double bytes = 0;
    for (size_t view = 0; view < read.size(); ++view) {
      read[view] += times * tally.read[view];
      written[view] += times * tally.written[view];
      bytes += tally.read[view] + tally.written[view];
    }
    loopLoadBytes = std::max(loopLoadBytes, tally.loopLoadBytes);
    loopIterations += times * tally.loopIterations;
    isLeftToMemory |= tally.isLeftToMemory;
    double weight = tally.executed.flops() + tally.executed.integer + bytes;
    busiest = std::max(busiest, weight);
    all += times * weight;
  }
};

/// Goes through the grid, the largest part first, so that what is sampled when the budget ends is small.
void countGrid(Evaluator &evaluator, const int64_t (&grid)[3], Total &total) {
  std::priority_queue<Box> todo;
  Tally tally;
  todo.push({{0, 0, 0}, {grid[0] - 1, grid[1] - 1, grid[2] - 1}});
  while (!todo.empty()) {
    Box box = todo.top();
    todo.pop();
    bool sampled = evaluator.budget() <= 0 && box.instances() > 1;
    for (unsigned axis = 0; axis < 3; ++axis) {
      int64_t middle = box.first[axis] + (box.last[axis] - box.first[axis]) / 2;
      evaluator.setAxis(axis, sampled ? middle : box.first[axis], sampled ? middle : box.last[axis]);
    }
    int split = evaluator.count(tally);
    if (split < 0) {
      total.add(tally, box.instances());
      if (sampled)
        evaluator.noteSampled();
      continue;
    }
    if (split > 2 || box.first[split] == box.last[split])
      throw InternalError("counting asks to split what cannot be split");
    int64_t lo = box.first[split], hi = box.last[split];
    // The edge first: all but the last tile are alike as a rule.
    int64_t end = lo == 0 && hi == grid[split] - 1 ? hi - 1 : lo + (hi - lo) / 2;
    Box lower = box, upper = box;
    lower.last[split] = end;
    upper.first[split] = end + 1;
    todo.push(lower);
    todo.push(upper);
  }
}

} // namespace

std::string_view nameOf(Precision precision) {
  constexpr std::string_view names[precisions] = {"f64", "f32", "tf32", "f16", "bf16", "f8", "i8", "integer"};
  return names[static_cast<size_t>(precision)];
}

double Work::matrixFlops() const { return sum(matrix); }
double Work::vectorFlops() const { return sum(vector); }
double Work::specialFlops() const { return sum(special); }

Work &Work::add(const Work &other, double times) {
  for (size_t i = 0; i < precisions; ++i) {
    matrix[i] += times * other.matrix[i];
    vector[i] += times * other.vector[i];
    special[i] += times * other.special[i];
  }
  integer += times * other.integer;
  return *this;
}

double Counts::readBytes() const {
  return std::accumulate(views.begin(), views.end(), 0.0,
                         [](double total, const ViewCounts &view) { return total + view.read.compulsory; });
}
double Counts::writtenBytes() const {
  return std::accumulate(views.begin(), views.end(), 0.0,
                         [](double total, const ViewCounts &view) { return total + view.written.compulsory; });
}
double Counts::requestedBytes() const {
  return std::accumulate(views.begin(), views.end(), 0.0, [](double total, const ViewCounts &view) {
    return total + view.read.requested + view.written.requested;
  });
}

Counts CountPlan::count(std::span<const int64_t> words, int64_t maxClasses) const {
  const PlanStructure &plan = *structure_;
  Counts counts;
  if (words.size() != plan.words) {
    counts.refusal = "the kernel takes " + std::to_string(plan.words) + " argument words, not " +
                     std::to_string(words.size());
    return counts;
  }
  Evaluator evaluator(plan, constants_, words);
  evaluator.setBudget(maxClasses);
  counts.refusal = evaluator.launch(counts.grid);
  if (!counts.refusal.empty())
    return counts;
  Alive alive = mostAlive(plan, constants_);
  counts.liveTileBytes = alive.most;
  counts.loopTileBytes = alive.inLoops;
  if (counts.grid[0] <= 0 || counts.grid[1] <= 0 || counts.grid[2] <= 0)
    return counts;
  counts.instances = static_cast<double>(counts.grid[0]) * static_cast<double>(counts.grid[1]) *
                     static_cast<double>(counts.grid[2]);

  Total total(plan.views.size());
  countGrid(evaluator, counts.grid, total);
  counts.useful = total.useful;
  counts.executed = total.executed;
  counts.inLoops = total.inLoops;
  counts.loopLoadBytes = total.loopLoadBytes;
  counts.loopIterations = total.loopIterations / counts.instances;
  counts.isLeftToMemory = total.isLeftToMemory;
  describeLoops(plan, constants_, words, counts);
  counts.busiestShare = total.all > 0 ? total.busiest * counts.instances / total.all : 1;

  for (unsigned axis = 0; axis < 3; ++axis)
    evaluator.setAxis(axis, 0, counts.grid[axis] - 1);
  std::vector<Touched> touched = evaluator.touched();
  for (size_t view = 0; view < plan.views.size(); ++view) {
    const PlanStructure::View &described = plan.views[view];
    ViewCounts one{described.name, described.argument, described.elementBytes, {}, {}};
    for (bool isWrite : {false, true}) {
      Traffic &traffic = isWrite ? one.written : one.read;
      bool exact = true;
      traffic.requested = (isWrite ? total.written : total.read)[view];
      traffic.compulsory = uniqueElements(touched, static_cast<int>(view), isWrite, exact) * described.elementBytes;
      // Nothing is touched that was not asked for.
      if (traffic.compulsory > traffic.requested) {
        traffic.compulsory = traffic.requested;
        exact = false;
      }
      bool isBound = (isWrite ? evaluator.writeBound : evaluator.readBound)[view];
      traffic.exact = exact && !isBound;
      if (!exact)
        counts.exact = false;
      if (!exact && !isBound)
        counts.notes.push_back("which bytes of " + described.name + " are " + (isWrite ? "written" : "read") +
                               " is known only as a bound: their coordinates depend on each other");
    }
    if (one.read.requested > 0 || one.written.requested > 0)
      counts.views.push_back(std::move(one));
  }
  std::set<std::string> notes = evaluator.notes();
  counts.exact &= notes.empty();
  counts.notes.insert(counts.notes.end(), notes.begin(), notes.end());
  return counts;
}

CountPlan::Unique CountPlan::uniqueBytes(std::span<const int64_t> words, const Box &box) const {
  const PlanStructure &plan = *structure_;
  Evaluator evaluator(plan, constants_, words);
  int64_t grid[3] = {1, 1, 1};
  if (words.size() != plan.words || !evaluator.launch(grid).empty())
    return {};
  for (unsigned axis = 0; axis < 3; ++axis)
    evaluator.setAxis(axis, box.first[axis], std::min(box.last[axis], grid[axis] - 1));
  std::vector<Touched> touched = evaluator.touched();
  Unique bytes;
  bool ignored = true;
  for (size_t view = 0; view < plan.views.size(); ++view)
    for (bool isWrite : {false, true})
      (isWrite ? bytes.written : bytes.read) +=
          uniqueElements(touched, static_cast<int>(view), isWrite, ignored) * plan.views[view].elementBytes;
  return bytes;
}

//===--- Params ---------------------------------------------------------------------------------------------------===//

std::optional<ParametricPlan> ParametricPlan::fit(std::span<const Sample> samples) {
  if (samples.empty())
    return std::nullopt;
  const Sample &base = samples.front();
  ParametricPlan fitted;
  fitted.base_ = base.plan;
  for (const Sample &sample : samples.subspan(1)) {
    bool alike = sample.params.size() == base.params.size() &&
                 sample.plan.constants_.size() == base.plan.constants_.size() &&
                 *sample.plan.structure_ == *base.plan.structure_;
    std::vector<std::string> changed;
    for (const auto &[name, value] : base.params) {
      auto found = sample.params.find(name);
      alike &= found != sample.params.end();
      if (alike && found->second != value)
        changed.push_back(name);
    }
    if (!alike)
      return std::nullopt;
    if (changed.size() != 1) { // a check of what was found so far
      if (fitted.at(sample.params).constants_ != sample.plan.constants_)
        return std::nullopt;
      continue;
    }
    Slope slope{changed.front(), base.params.at(changed.front()), {}, 1};
    slope.denominator = sample.params.at(slope.param) - slope.base;
    for (size_t i = 0; i < base.plan.constants_.size(); ++i)
      if (int64_t change = sample.plan.constants_[i] - base.plan.constants_[i])
        slope.perUnit.emplace_back(i, change);
    fitted.slopes_.push_back(std::move(slope));
  }
  return fitted;
}

CountPlan ParametricPlan::at(const std::map<std::string, int64_t> &params) const {
  CountPlan plan = base_;
  for (const Slope &slope : slopes_) {
    auto found = params.find(slope.param);
    if (found == params.end())
      continue;
    for (auto [constant, change] : slope.perUnit)
      plan.constants_[constant] += change * (found->second - slope.base) / slope.denominator;
  }
  return plan;
}

} // namespace tenon::model
