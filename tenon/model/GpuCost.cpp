// SPDX-License-Identifier: Apache-2.0
#include "tenon/model/GpuCost.h"

#include "tenon/model/Cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::model {
namespace {

/// Whether whole warpgroups can take equal parts of a dot's result.
bool isShared(const Counts::DotShape &dot, int warps) {
  int64_t rows = dot.rows, columns = dot.columns, groups = warps / 4;
  if (rows < 64)
    std::swap(rows, columns);
  if (warps % 4 || rows % 64 || columns % 8)
    return false;
  int64_t overColumns = groups / std::gcd(rows / 64, groups);
  bool isPower = (columns & (columns - 1)) == 0;
  return overColumns == 1 || (isPower && columns / overColumns >= 8);
}

/// Columns of one instruction of a warpgroup, which reads them from shared memory for its 64 rows.
double widthOf(const Counts::DotShape &dot, int warps) {
  int64_t rows = dot.rows, columns = dot.columns, groups = std::max(warps / 4, 1);
  if (rows < 64)
    return 256; // few rows: memory is the bound, and the columns are those of the other operand
  auto overColumns = static_cast<double>(groups / std::gcd(std::max<int64_t>(rows / 64, 1), groups));
  return std::min(static_cast<double>(columns) / overColumns, 256.0);
}

/// What the whole launch does on the whole device, at full rate.
struct Totals {
  double memory = 0, matrix = 0, other = 0, written = 0;
  double inLoops = 0; ///< of `other`

  Totals(const Counts &counts, const Ceilings &ceilings, const GpuFactors &factors) {
    memory = counts.bytes() / (ceilings.memory().readBytesPerSecond * factors.memory);
    for (size_t i = 0; i < precisions; ++i)
      if (counts.executed.matrix[i] > 0)
        matrix += counts.executed.matrix[i] / (ceilings.matrixRate(static_cast<Precision>(i)) * factors.matrix);
    other = otherSeconds(counts.executed, ceilings);
    inLoops = std::min(otherSeconds(counts.inLoops, ceilings), other);
    for (const ViewCounts &view : counts.views)
      written += view.written.requested;
  }

private:
  static double otherSeconds(const Work &work, const Ceilings &ceilings) {
    double seconds = 0;
    for (size_t i = 0; i < precisions; ++i)
      if (work.vector[i] > 0) // a multiply-add is two; a plain operation uses the same slot for one
        seconds += work.vector[i] / (ceilings.vectorRate(static_cast<Precision>(i)) / 2);
    if (ceilings.special > 0)
      seconds += work.specialFlops() / ceilings.special;
    if (ceilings.integer > 0)
      seconds += work.integer / ceilings.integer;
    return seconds;
  }
};

class Launch {
public:
  Launch(const Counts &counts, const Ceilings &ceilings, const GpuShape &shape, const GpuFactors &factors)
      : counts_(counts), ceilings_(ceilings), shape_(shape), f_(factors), totals_(counts, ceilings, factors) {
    cost_.parts.reserve(6);
    warps_ = shape.pingPong ? 4 : shape.warps; // that hold one instance
    // As the compiler chooses: by the largest tile, whose words a thread has about 64 of.
    for (int most = counts.loopIterations > 0 ? 8 : 16; warps_ == 0;)
      for (warps_ = 4; warps_ < most && counts.liveTileBytes / 4 > warps_ * 32 * 64; warps_ *= 2) {
      }
  }

  GpuCost cost() {
    if (counts_.instances == 0)
      finish(0);
    else if (counts_.loopIterations > 0)
      loopAroundDot();
    else
      plainInstances();
    return std::move(cost_);
  }

private:
  double wordsOf(double blocks) const { return counts_.liveTileBytes / 4 / (warps_ * 32) / blocks; }

  /// Blocks that a multiprocessor holds at once.
  double blocksOf(double registers, double threads, double sharedBytes) const {
    GpuLimits limits = ceilings_.limits.value_or(GpuLimits());
    double blocks = std::min({std::floor(limits.registers / (std::clamp(registers, 32.0, 255.0) * threads)),
                              std::floor(limits.warps * 32 / threads), static_cast<double>(limits.blocks)});
    if (sharedBytes > 0 && limits.sharedBytes > 0)
      blocks = std::min(blocks, std::floor(static_cast<double>(limits.sharedBytes) / sharedBytes));
    return std::max(blocks, 1.0);
  }

  /// Instances that blocks are there for: a cluster has whole rows or columns of them, whichever share the larger load.
  double instancesInClusters() const {
    double instances = counts_.instances * shape_.split;
    if (shape_.cluster == 1 || shape_.split > 1 || counts_.dots.empty())
      return instances;
    const Counts::DotShape &dot = counts_.dots.front();
    int last = counts_.grid[2] > 1 ? 2 : 1;
    auto extent = static_cast<double>(counts_.grid[dot.rows > dot.columns ? last : last - 1]);
    return instances / extent * std::ceil(extent / shape_.cluster) * shape_.cluster;
  }

  /// Multiprocessors that clusters can have: those of a larger one must be near each other, and some are left over.
  /// Where nobody asked the device how many, fewer of the largest than any card was seen to have.
  double processorsForClusters() const {
    double size = shape_.cluster, processors = ceilings_.processors;
    for (size_t i = 0; i < ceilings_.clusters.size(); ++i)
      if (shape_.cluster == 2 << i && ceilings_.clusters[i] > 0)
        return std::min(processors, ceilings_.clusters[i] * size);
    return size <= 2 ? processors : std::floor(processors * (size <= 4 ? 11.0 / 12 : 5.0 / 6) / size) * size;
  }

  /// Whether sums of products are added up beside the accumulators,
  bool addsSums() const {
    return std::any_of(counts_.dots.begin(), counts_.dots.end(),
                       [](const Counts::DotShape &dot) { return dot.addsSums; });
  }
  /// and there are not registers for all of them.
  bool addsPieces() const {
    double accumulators = 0; // words
    for (const Counts::DotShape &dot : counts_.dots)
      accumulators += static_cast<double>(dot.rows * dot.columns) / (warps_ * 32);
    return accumulators > mostPromoted && addsSums();
  }

  void loopAroundDot() {
    double instances = instancesInClusters(), steps = counts_.loopIterations / shape_.split;
    double processors = processorsForClusters();
    // Of the whole launch's time at full rate, an instance's on its own.
    double each = ceilings_.processors / (counts_.instances * shape_.split);
    double loaded = 0, lines = 0, largest = 0;
    bool byThreads = false;
    for (const Counts::LoopLoad &load : counts_.loopLoads) {
      loaded += load.lineBytes;
      byThreads |= load.byThreads;
      double bytes = load.lineBytes * (load.byThreads   ? f_.byThreads
                                       : load.straddles ? f_.straddling
                                                        : 1 + load.cut * f_.cut);
      lines += bytes;
      largest = std::max(largest, bytes);
    }
    if (shape_.cluster > 1 && shape_.split == 1 && !byThreads) // only transfers go to several blocks
      lines -= largest * (1 - 1.0 / shape_.cluster);
    double written = totals_.written / counts_.instances;
    GpuLimits limits = ceilings_.limits.value_or(GpuLimits());
    auto room = static_cast<double>(limits.sharedBytesPerBlock);
    double slots = shape_.stages;
    if (shape_.stages == 0) // a result that does not fit beside them goes in slices
      slots = loaded > 0 ? std::clamp(std::floor((room - std::min(written, leastRoom)) / loaded), 2.0, 8.0) : 2;
    bool inSlices = !shape_.pingPong && slots * loaded + written > room;
    // A warpgroup of its own starts the loads.
    double words = counts_.loopTileBytes / 4 / (warps_ * 32), threads = warps_ * 32 + 128;
    double blocks = blocksOf(0.5 * words + 48, threads, slots * loaded + written);
    blocks = shape_.pingPong ? 1 : std::min(blocks, std::ceil(instances / processors));
    double rounds = std::ceil(instances / processors / blocks);

    double matrix = totals_.matrix * each;
    for (const Counts::DotShape &dot : counts_.dots)
      if (!isShared(dot, warps_)) {
        matrix *= f_.crossed;
        break;
      }
    if (shape_.pingPong)
      matrix *= f_.alone;
    if (addsPieces())
      matrix *= 1 + (f_.pieces - 1) * 128 / static_cast<double>(counts_.dots.front().depth);
    for (const Counts::DotShape &dot : counts_.dots) // sums that are added up between products leave time for it
      if (!shape_.pingPong && !addsSums() && dot.columns & (dot.columns - 1)) {
        matrix *= f_.uneven;
        break;
      }
    double groups = shape_.pingPong ? 2 : std::min(blocks * warps_ / 4, 2.0);
    double slowness = f_.plain + f_.lone / (groups * groups);
    double other = totals_.inLoops * each * slowness, after = (totals_.other - totals_.inLoops) * each * slowness;
    other *= 1 + 0.02 * std::max(0.0, warps_ / 4.0 - 2); // barriers of more warps take longer
    if (words > mostWords)
      other *= 1 + (words - mostWords) / (mostWords / 2); // spilled
    bool isDependent = other > 0.1 * matrix;
    if (!counts_.dots.empty() && !isDependent && !shape_.pingPong)
      matrix *= 1 + f_.narrow * (256 / std::max(widthOf(counts_.dots.front(), warps_), 32.0) - 1);
    // Of a loop that does nothing but multiply, some slots are always being read or given back; one that waits for
    // itself has read a slot long before the step is over.
    double lag = addsSums() ? f_.waited : f_.lag;
    double filling = isDependent ? slots + 0.5 : std::max(slots - lag, 0.5);
    double loads = steps * lines / std::min(f_.load, filling * loaded / f_.latency);
    // Blocks that take instances from a counter do not run in step, but for those of a cluster: each reads what its
    // neighbours read for itself.
    if (counts_.isLeftToMemory && shape_.cluster == 1)
      matrix *= f_.adrift;
    double core = blocks * std::max(matrix, other) + std::min(matrix, other);
    double fixed = steps * (isDependent ? f_.dependent : f_.step) + f_.begin + std::max(warps_ / 4 - 1, 0) * f_.meet +
                   blocks * (after + written / f_.end * (inSlices ? f_.slices : 1));
    if (shape_.cluster > 1)
      fixed += f_.gather + steps * f_.coupled;
    // Beyond three slots are a little in the way, but the first loads are there sooner.
    bool isDeep = slots > 3;
    if (isDeep && !shape_.pingPong)
      fixed += steps * f_.deep;
    double around = 0; // the last round, where others have the next one's products around it
    if (shape_.pingPong) {
      around = f_.begin + written / f_.end;
      fixed += f_.turn - around;
      around += f_.meet;
    }
    double busy = rounds * (std::max(core, blocks * loads) + fixed) + around + (isDeep ? 0 : f_.first);
    if (shape_.split > 1) // partial results are in f32
      busy += f_.sharing + instances * written * 4 / (ceilings_.memory().readBytesPerSecond * f_.memory);
    cost_.blocks = static_cast<int>(blocks);
    cost_.rounds = rounds;
    cost_.parts.push_back({"matrix", rounds * blocks * matrix});
    cost_.parts.push_back({"other work", rounds * blocks * (other + after)});
    cost_.parts.push_back({"loads", rounds * blocks * loads});
    cost_.parts.push_back({"overheads", rounds * fixed + around + (isDeep ? 0 : f_.first)});
    finish(std::pow(std::pow(totals_.memory, 4) + std::pow(busy, 4), 0.25));
  }

  void plainInstances() {
    double cluster = std::max(shape_.cluster, 1), words = wordsOf(cluster);
    double blocks = blocksOf(words + 24, warps_ * 32, 0);
    double rounds = std::ceil(counts_.instances * cluster / ceilings_.processors / blocks);
    double wait = f_.barrier * (1 + warps_ / 8.0) + words * f_.word + (cluster > 1 ? f_.cluster : 0);
    double groups = blocks * warps_ / 4, work = totals_.other * (f_.plain + f_.lone / (groups * groups));
    if (words > mostWords)
      work *= 1 + (words - mostWords) / (mostWords / 2);
    work += totals_.matrix;
    cost_.blocks = static_cast<int>(blocks);
    cost_.rounds = rounds;
    cost_.parts.push_back({"other work", work});
    cost_.parts.push_back({"overheads", rounds * wait});
    finish(std::hypot(rounds * wait, std::max(totals_.memory, work)) +
           (std::min(totals_.memory, work) + wait) / blocks);
  }

  void finish(double seconds) {
    cost_.seconds = ceilings_.launchSeconds + seconds;
    cost_.parts.push_back({"memory", totals_.memory});
    cost_.parts.push_back({"launch", ceilings_.launchSeconds});
    sortLargestFirst(cost_.parts);
  }

  static constexpr double mostPromoted = 96; ///< words of accumulators whose sums fit beside them
  static constexpr double leastRoom = 32768; ///< bytes for a slice of a result on its way out
  static constexpr double mostWords = 240; ///< of live tiles that a thread holds without spilling

  const Counts &counts_;
  const Ceilings &ceilings_;
  const GpuShape &shape_;
  const GpuFactors &f_;
  Totals totals_;
  int warps_ = 0;
  GpuCost cost_;
};

} // namespace

GpuCost gpuCost(const Counts &counts, const Ceilings &ceilings, const GpuShape &shape, const GpuFactors &factors) {
  return Launch(counts, ceilings, shape, factors).cost();
}

} // namespace tenon::model
