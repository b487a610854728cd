// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/NvidiaTarget.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/Passes.h"
#include "tenon/compiler/target/nvidia/threads/PipelineLoads.h"
#include "tenon/compiler/target/nvidia/threads/Schedule.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <utility>

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// More registers than this per thread and tile would spill whatever the assembler does.
constexpr int64_t maxRegistersPerTile = 512;
constexpr int64_t warpgroup = 128; ///< threads
/// With as many, and what is made of them, a thread may need more registers than it has where two blocks of two
/// warpgroups divide them evenly, and certainly more than three would leave it.
constexpr int64_t accumulatorsOfOneBlock = 64;

/// Slots of bulk copies, when nobody says how many: as many as fit, up to this.
constexpr int64_t mostStages = 8;
/// Each of two blocks that share a multiprocessor has at least so many.
constexpr int64_t leastSlotsOfTwo = 3;
/// And a kernel beside stores that are staged in whole rows: with two slots it would wait for its loads.
constexpr int64_t leastSlotsBesideRows = 3;
/// Buffers of copies that threads make.
constexpr int64_t usualStages = 3;

/// Accumulators of a thread: of each dot, of all dots of a kernel if that is what they come to, and of a dot of a
/// warpgroup alone with its tile. That one has nobody to share its operands with, and gains more from a larger tile
/// than registers are worth to its epilogue.
constexpr int64_t accumulatorsOfOneDot = 128, accumulatorsOfAllDots = 160, accumulatorsInTurns = 192;
/// Of a thread of three warpgroups, which has 160 registers.
constexpr int64_t accumulatorsOfThree = 128;

int architectureNumber(const std::string &architecture) {
  return architecture.size() >= 5 ? std::stoi(architecture.substr(3, 2)) : 0;
}

/// Whether blocks of a cluster could share the kernel's tiles: only reductions cross from one to the other.
bool canUseCluster(func::FuncOp kernel) {
  bool can = true;
  kernel.walk([&](Operation *op) {
    can &= !llvm::isa<tile::DotOp, tile::ScanOp, tile::SliceOp, tile::ConcatOp, tile::TransposeOp, tile::AssertOp,
                      tile::PrintOp, tile::AtomicRMWOp, tile::AtomicCASOp, tile::GatherOp, tile::ScatterOp>(op);
    if (auto reshape = llvm::dyn_cast<tile::ReshapeOp>(op)) {
      auto units = [](Type type) {
        SmallVector<int64_t> rest;
        llvm::copy_if(llvm::cast<RankedTensorType>(type).getShape(), std::back_inserter(rest),
                      [](int64_t size) { return size != 1; });
        return rest;
      };
      can &= units(reshape.getType()) == units(reshape.getValue().getType());
    }
  });
  return can;
}

/// Accumulators that the dots of a loop have at a time, of all threads.
int64_t carriedByOneLoop(func::FuncOp kernel) {
  int64_t most = 0;
  kernel.walk([&](scf::ForOp loop) {
    int64_t all = 0;
    for (tile::DotOp dot : loop.getBody()->getOps<tile::DotOp>())
      if (auto acc = llvm::dyn_cast<BlockArgument>(dot.getAcc()); acc && acc.getOwner() == loop.getBody())
        all += dot.getType().getNumElements();
    most = std::max(most, all);
  });
  return most;
}

} // namespace

int64_t sharedBytesOf(const std::string &architecture) {
  int number = architectureNumber(architecture);
  return number >= 90 ? 227 * 1024 : number == 80 ? 163 * 1024 : 99 * 1024;
}

void checkOptions(const TargetOptions &options) {
  bool isPower = (options.warps & (options.warps - 1)) == 0;
  if (options.warps < 0 || options.warps > 32 || (!isPower && !isOfThree(options.warps)))
    throw Error("a block has 1, 2, 4, 8, 12, 16 or 32 warps, not " + std::to_string(options.warps));
  if (options.cluster < 0 || options.cluster > 16 || (options.cluster & (options.cluster - 1)))
    throw Error("a cluster has 1, 2, 4, 8 or 16 blocks, not " + std::to_string(options.cluster));
  if (options.cluster > 1 && architectureNumber(options.architecture) < 90)
    throw Error("clusters need sm_90, not " + options.architecture);
}

BlockShape chooseBlock(func::FuncOp kernel, const TargetOptions &options) {
  checkOptions(options);
  bool hasDots = false;
  kernel.walk([&](tile::DotOp) { hasDots = true; });
  bool shares = options.cluster > 1 && hasDots && options.architecture == "sm_90a";
  if (options.cluster > 1 && !shares && !canUseCluster(kernel))
    throw Error("kernel " + kernel.getName().str() +
                " cannot be spread over a cluster: it moves elements between threads in other ways than by reductions");
  int64_t largest = 1, carried = carriedByOneLoop(kernel);
  bool hasDot = false, hasReduction = false, fitsTwoGroups = true;
  kernel.walk([&](Operation *op) {
    if (auto dot = llvm::dyn_cast<tile::DotOp>(op)) {
      hasDot = true;
      constexpr int64_t warps = warpgroup / 32;
      fitsTwoGroups &= warpgroupShape(dot, 2 * warps) || !warpgroupShape(dot, warps);
    }
    hasReduction |= llvm::isa<tile::ReduceOp, tile::ScanOp>(op);
    for (Value result : op->getResults())
      if (auto type = llvm::dyn_cast<RankedTensorType>(result.getType()))
        largest = std::max(largest, type.getNumElements());
  });
  BlockShape block;
  // Above 32768 elements a block's registers are short; a cluster shares the tile if the kernel lets it.
  constexpr int64_t perBlock = 32768;
  if (shares)
    block.sharers = options.cluster;
  else if (options.cluster)
    block.cluster = options.cluster;
  else if (architectureNumber(options.architecture) >= 90 && canUseCluster(kernel))
    while (block.cluster < 16 && largest > block.cluster * perBlock)
      block.cluster *= 2;
  block.hasWarpgroups = options.architecture == "sm_90a" && block.cluster == 1;
  int64_t mine = largest / block.cluster;
  // A row waits for its slowest thread twice or more: fewer threads with more each, and more blocks to take turns. Without
  // reductions a thread needs only enough to have several loads under way.
  auto threadsFor = [&](int64_t each, int64_t most) {
    return std::clamp<int64_t>(llvm::PowerOf2Ceil(mine / each), 32, most);
  };
  if (options.warps)
    block.threads = options.warps * 32;
  else if (hasDot)
    block.threads = mine >= 128 * 128 || (carried > warpgroup * accumulatorsOfAllDots && fitsTwoGroups) ? 256 : 128;
  else
    block.threads = hasReduction ? threadsFor(32, 512) : threadsFor(8, 256);
  while (!options.warps && mine / block.threads > 128 && block.threads < 1024)
    block.threads *= 2; // more would not fit a thread's registers
  constexpr int64_t mostThreads = 1024;
  block.hasWarpgroups &= block.threads + producerThreads <= mostThreads; // those that load come on top
  return block;
}

namespace {

/// Of a thread, in all dots.
int64_t allAccumulators(func::FuncOp kernel, const BlockShape &block) {
  int64_t all = 0;
  kernel.walk([&](tile::DotOp dot) { all += dot.getType().getNumElements() / block.threads; });
  return all;
}

/// More than usual where there is nothing else to multiply: two warpgroups move fewer bytes for 256 x 160 than for 128
/// x 256.
int64_t mostAccumulators(func::FuncOp kernel, const BlockShape &block) {
  if (block.teams > 1)
    return accumulatorsInTurns;
  if (isOfThree(block.threads / 32))
    return accumulatorsOfThree;
  return allAccumulators(kernel, block) <= accumulatorsOfAllDots ? accumulatorsOfAllDots : accumulatorsOfOneDot;
}

} // namespace

/// Whether teams that take turns can have late loads (LateLoads.cpp). All instances have equally many panels, so none
/// is in a loop; and where one thread takes instances and loads everything for them, it would wait for one team's slot
/// with what the other multiplies.
static bool hasLateLoadsInTurns(func::FuncOp kernel) {
  bool isInLoop = false;
  kernel.walk([&](tile::LoadOp load) {
    if (load->getParentOp() == kernel)
      return;
    for (Operation *op = load->getPrevNode(); op; op = op->getPrevNode())
      op->walk([&](tile::DotOp dot) { isInLoop |= dot.getType().getShape() == load.getType().getShape(); });
  });
  return !isInLoop && !takesInstances(kernel);
}

LogicalResult chooseLayouts(ModuleOp module, const BlockShape &block, const Steps &steps) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  pm.addNestedPass<func::FuncOp>(createRelaxPrecisionPass());
  pm.addNestedPass<func::FuncOp>(createChooseInstructionsPass(
      {block.hasWarpgroups && steps.warpgroups, block.threads / 32, steps.bulkStores,
       mostAccumulators(lower::kernelOf(module), block), steps.operandsAhead,
       steps.lateLoads && (block.teams == 1 || hasLateLoadsInTurns(lower::kernelOf(module))), steps.registerOperands}));
  pm.addNestedPass<func::FuncOp>(createChooseLayoutsPass({block.threads / 32, block.cluster, steps.groupExchange}));
  pm.addNestedPass<func::FuncOp>(createRecomputePass());
  if (steps.earlyLoads)
    pm.addNestedPass<func::FuncOp>(createEarlyLoadsPass());
  return pm.run(module);
}

namespace {

/// Why the dots of a kernel do not all run on the warpgroups of such a block; "" when they do.
std::string refuseBlock(ModuleOp module, const BlockShape &block, const Steps &steps) {
  std::string refusal, groups = block.threads == warpgroup ? "one warpgroup" : "three warpgroups";
  OwningOpRef<ModuleOp> trial = module.clone();
  if (failed(chooseLayouts(*trial, block, steps)))
    return "tiles have no layout in " + groups;
  lower::kernelOf(*trial).walk([&](Operation *op) {
    if (auto reason = op->getAttrOfType<StringAttr>(notWarpgroupAttr))
      refusal = "a dot does not run on " + groups + ": " + reason.str();
    else if (block.teams > 1 && op->hasAttr(aheadAttr))
      refusal = "a dot's operand is loaded by threads";
  });
  if (refusal.empty() && !hasTransfer(lower::kernelOf(*trial)))
    refusal = "no dot reads what the tensor memory accelerator loads";
  return refusal;
}

} // namespace

std::string refuseThreeGroups(ModuleOp module, const BlockShape &block, const Steps &steps) {
  if (!block.hasWarpgroups)
    return "only sm_90a multiplies by warpgroup, in blocks that have their program instances alone";
  if (int64_t all = allAccumulators(lower::kernelOf(module), block); all > accumulatorsOfThree)
    return "a thread of them would have " + std::to_string(all) + " sums, more than " +
           std::to_string(accumulatorsOfThree);
  return refuseBlock(module, block, steps);
}

PingPong pingPongBlock(ModuleOp module, const BlockShape &block, int64_t warps, const Steps &steps) {
  constexpr int64_t teams = 2;
  if (!block.hasWarpgroups)
    return {{}, "only sm_90a multiplies by warpgroup"};
  if (warps && warps * 32 != teams * warpgroup)
    return {{}, "it takes 8 warps, not " + std::to_string(warps)};
  BlockShape one = block;
  one.threads = warpgroup;
  one.teams = teams;
  std::string refusal = refuseBlock(module, one, steps);
  return refusal.empty() ? PingPong{one, ""} : PingPong{{}, refusal};
}

namespace {

/// How many find room for that much shared memory each; a block costs the multiprocessor a kilobyte besides.
int64_t blocksWith(int64_t sharedBytes, const std::string &architecture) {
  constexpr int64_t ofEach = 1024;
  return (sharedBytesOf(architecture) + ofEach) / (sharedBytes + ofEach);
}

/// How many slots a ring has to lose at least, where a program needs more than `mostBytes`: one more may be too much,
/// and lowering once more is cheaper than a slot.
int64_t slotsTooMany(const ThreadEmitter &emitter, int64_t mostBytes) {
  int64_t over = emitter.sharedBytes() - mostBytes - panelAlignment; // what follows the slots may be aligned otherwise
  return over <= 0 || !emitter.stageBytes() ? 1 : llvm::divideCeil(over, emitter.stageBytes());
}

} // namespace

ThreadProgram lowerToThreads(ModuleOp module, const BlockShape &block, const std::string &architecture,
                             const LoweringOptions &lowering) {
  MLIRContext *context = module.getContext();
  context->loadDialect<NvidiaDialect, vector::VectorDialect>();
  func::FuncOp kernel = lower::kernelOf(module);
  kernel.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (auto type = llvm::dyn_cast<RankedTensorType>(result.getType()))
        if (int64_t count = type.getNumElements() / (block.threads * block.cluster); count > maxRegistersPerTile)
          throw Error("kernel " + kernel.getName().str() + ": a tile of " + std::to_string(type.getNumElements()) +
                      " elements is " + std::to_string(count) + " registers in each of " +
                      std::to_string(block.threads * block.cluster) + " threads, and the limit is " +
                      std::to_string(maxRegistersPerTile) + ": use smaller tiles");
  });
  ThreadProgram program;
  program.block = block;
  int64_t stages = lowering.stages;
  bool wanted = stages != 0;
  if (!wanted)
    stages = hasTransfer(kernel) ? mostStages : usualStages;
  ThreadOptions options{block.threads, block.cluster, architectureNumber(architecture), stages, block.sharers};
  options.teams = block.teams;
  options.steps = lowering.steps;
  options.steps.slices &= !wanted; // of stores, for another slot: first whether those that are asked for fit without
  std::string notShared;
  if (block.sharers > 1) {
    notShared = hasTransfer(kernel) ? sharedLoads(kernel, block.sharers).refusal
                                    : "no load is made by the tensor memory accelerator";
    if (!notShared.empty())
      options.sharers = 1;
  }
  bool triedWhole = wanted, triedHalf = wanted || !lowering.isSplit;
  int64_t beforeHalving = 0;
  while (true) {
    markAsyncLoads(kernel, options.stages, options.architecture);
    program.module = ModuleOp::create(module.getLoc());
    ThreadEmitter emitter(kernel, *program.module, options);
    if (failed(emitter.run())) {
      program.module = nullptr;
      return program;
    }
    program.block.sharedBytes = emitter.sharedBytes();
    program.remarks = emitter.remarks();
    program.asserts = emitter.asserts();
    program.prints = emitter.prints();
    program.tensorMaps = emitter.tensorMaps();
    program.persistent = emitter.isPersistent() && lowering.steps.persistence;
    program.sharesTail = emitter.sharesTail();
    program.block.cluster = options.cluster * options.sharers;
    program.startsEarly = program.module->walk([](AwaitEarlierLaunchesOp) { return WalkResult::interrupt(); })
                              .wasInterrupted();
    program.block.producers = emitter.isPersistent() ? producerThreads : 0;
    if (emitter.sharedBytes() <= sharedBytesOf(architecture)) {
      // What the slots leave may be enough for whole tiles after all.
      bool isEnough = emitter.sharedBytes() + emitter.savedBySlices() <= sharedBytesOf(architecture);
      if (emitter.savedBySlices() && isEnough && block.teams == 1 && !std::exchange(triedWhole, true)) {
        options.steps.slices = false;
        continue;
      }
      // Whole rows are worth a slot, but not one of the last.
      if (emitter.storesWholeRows() && options.stages < leastSlotsBesideRows && !wanted) {
        options.wholeRows = false;
        options.stages = stages;
        continue;
      }
      // Few sums beside operands that are computed: what takes time is making those, which two blocks do in turns. With
      // half of the slots each they have as many bytes on their way. A block that stays alone would be slower for it.
      bool hasPairs = blocksWith(emitter.sharedBytes(), architecture) >= 2;
      if (!hasPairs && emitter.isPersistent() && options.threads * options.teams == warpgroup &&
          emitter.accumulators() < accumulatorsOfOneBlock && emitter.computesOperands() &&
          options.stages >= 2 * leastSlotsOfTwo && !std::exchange(triedHalf, true)) {
        beforeHalving = std::exchange(options.stages, options.stages / 2);
        continue;
      }
      if (!hasPairs && beforeHalving) {
        options.stages = std::exchange(beforeHalving, 0);
        continue;
      }
      // Registers are what would keep a second block away.
      if (emitter.isPersistent() && options.threads * options.teams == warpgroup && options.blocks == 1 &&
          (emitter.accumulators() >= accumulatorsOfOneBlock || emitter.computesOperands()) && hasPairs) {
        options.blocks = 2;
        continue;
      }
      break;
    }
    // What shared memory is used for besides exchanges can be had with less of it.
    if (options.steps.slices != lowering.steps.slices)
      options.steps.slices = lowering.steps.slices;
    else if (wanted && emitter.storesWholeRows())
      options.wholeRows = false;
    else if (int64_t fewest = emitter.buffersOperands() ? 2 : 1; options.stages > fewest)
      options.stages = std::max(options.stages - slotsTooMany(emitter, sharedBytesOf(architecture)), fewest);
    else if (emitter.buffersOperands()) {
      options.bufferOperands = false;
      options.stages = stages;
    } else if (dropSlotReads(kernel)) {
      options.bufferOperands = true;
      options.stages = stages;
    } else if (options.keepOperands) {
      options.keepOperands = false;
    } else if (emitter.storesWholeRows()) {
      options.wholeRows = false;
      options.stages = stages;
    } else {
      std::string uses = emitter.sharedUses();
      throw Error("kernel " + kernel.getName().str() + " needs " + std::to_string(emitter.sharedBytes()) +
                  " bytes of shared memory per block" + (uses.empty() ? "" : " (" + uses + ")") + ", and " +
                  architecture + " has " + std::to_string(sharedBytesOf(architecture)) + ": use smaller tiles");
    }
  }
  kernel.walk([&](tile::LoadOp load) {
    if (load->hasAttr(bulkAttr) || load->hasAttr(asyncAttr))
      program.stages = std::max<int64_t>(options.stages, 1);
  });
  if (wanted && options.stages < stages)
    program.remarks.push_back("shared memory has room for " + std::to_string(options.stages) + " of " +
                              std::to_string(stages) + " stages of asynchronous loads");
  if (!notShared.empty())
    program.remarks.push_back("no cluster of blocks that share loads: " + notShared);
  PassManager pm(context);
  pm.enableVerifier(false);
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createInsertBarriersPass());
  pm.addNestedPass<func::FuncOp>(createSeparateTeamsPass());
  pm.addNestedPass<func::FuncOp>(createShortenLivesPass());
  if (failed(pm.run(*program.module)))
    program.module = nullptr;
  return program;
}

} // namespace tenon::nvidia
