// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/lower/Elements.h"
#include "tenon/compiler/lower/KernelInfo.h"
#include "tenon/compiler/target/nvidia/threads/AccessWidth.h"
#include "tenon/compiler/target/nvidia/threads/AxisInfo.h"
#include "tenon/compiler/target/nvidia/threads/ChooseInstructions.h"
#include "tenon/compiler/target/nvidia/threads/Distribution.h"
#include "tenon/compiler/target/nvidia/threads/Divisibility.h"
#include "tenon/compiler/target/nvidia/threads/DotPlan.h"
#include "tenon/compiler/target/nvidia/threads/Layouts.h"
#include "tenon/compiler/target/nvidia/threads/ThreadOptions.h"
#include "tenon/compiler/target/nvidia/threads/ThreadValues.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <array>
#include <string>
#include <vector>

/// Tile IR with layouts to the function that one thread runs. A tile value becomes its registers, one scalar each; an
/// element-wise op becomes one op per register; what needs other threads' elements is an exchange through lanes, shared
/// memory or the cluster. Shared memory is handed out like a stack while the program is walked, so its peak is known
/// before any code is generated from the result. Barriers are not placed here: accesses to shared memory say which bytes
/// they may touch, and tenon-nvidia-insert-barriers reads that.
///
/// The pieces, one file each, whose heads say what they do: program and control flow are in ThreadEmitter.cpp, memory in
/// Memory, Ordering and Indexed, exchanges in Movement, Reduce and Scan, dots in *Dot, loads by a warp of their own in
/// Roles, Rings and Streams, and which instances a block has in Schedule and its neighbours.
namespace tenon::nvidia {

struct SharedAccess;

/// Threads of a block that load for the others, where loads have a warp of their own: a warpgroup, which can give
/// registers away, of which one thread works.
inline constexpr int64_t producerThreads = 128;
/// Barriers of the block: all threads, those that hold tiles, and warpgroup i of them.
inline constexpr int32_t allBarrier = 0, workerBarrier = 1, firstGroupBarrier = 2;
/// What panels of shared memory begin at a multiple of: the swizzle's pattern repeats so.
inline constexpr int64_t panelAlignment = 1024;

/// Bytes that each value takes in an exchange.
int64_t exchangedBytes(llvm::ArrayRef<llvm::SmallVector<mlir::Value>> lists);

/// Whether two views may have memory in common, as far as the launch checks it.
bool mayOverlap(mlir::func::FuncOp kernel, mlir::Value a, mlir::Value b);

class ThreadEmitter {
public:
  ThreadEmitter(mlir::func::FuncOp kernel, mlir::ModuleOp target, const ThreadOptions &options);
  ~ThreadEmitter();

  mlir::LogicalResult run();
  int64_t sharedBytes() const { return peakShared_; }
  /// What most of it is for, by lines of the kernel: "65536 for a.cpp:7, ...".
  std::string sharedUses() const;
  /// "file:line: ..." for everything worth telling the user.
  std::vector<std::string> remarks() const { return remarks_; }
  using Assert = lower::KernelInfo::Gpu::Assert;
  using Print = lower::KernelInfo::Gpu::Print;
  const std::vector<Assert> &asserts() const { return asserts_; }
  const std::vector<Print> &prints() const { return prints_; }
  using TensorMap = lower::KernelInfo::Gpu::TensorMap;
  const std::vector<TensorMap> &tensorMaps() const { return tensorMaps_; }
  /// Shared memory that it has less since tiles are stored in slices.
  int64_t savedBySlices() const { return savedBySlices_; }
  /// Whether it has more because of ThreadOptions::wholeRows.
  bool storesWholeRows() const { return storesWholeRows_; }
  /// What a slot fewer in each ring saves at most, but for alignment.
  int64_t stageBytes() const { return stageBytes_; }
  int64_t accumulators();
  bool isPersistent() const { return !rings_.empty(); }
  bool sharesTail() const { return tail_.has_value(); }
  bool buffersOperands() const { return buffersOperands_; }
  bool computesOperands() const { return buffersOperands_ || takesOperands_; }

private:
  //--- The program (ThreadEmitter.cpp) ---
  void bindArguments();
  ViewWords readView(tile::ViewType type, int unitStride);
  void flatten(mlir::Value value, llvm::SmallVectorImpl<mlir::Value> &flat);
  void unflatten(mlir::Value value, mlir::ValueRange &flat);
  mlir::LogicalResult emitProgram();
  mlir::LogicalResult emitBlock(mlir::Block &block);
  mlir::LogicalResult emitInOrder(mlir::Operation &op);
  mlir::LogicalResult emitOp(mlir::Operation &op);
  mlir::LogicalResult emitFor(mlir::scf::ForOp loop);
  mlir::LogicalResult emitIf(mlir::scf::IfOp branch);
  void emitGrid(tile::GridOp op);
  /// The ids of the program instance of that number (i32), the last axis fastest.
  void setInstance(tile::GridOp op, mlir::Value number);
  void emitElementwise(mlir::Operation &op);
  void roundPairs(Registers &values);
  void emitConstant(mlir::arith::ConstantOp op);
  /// Each register of the result is the operand's register at map(offset): broadcast, transpose, reshape.
  void relabel(mlir::Value from, mlir::Value to, llvm::function_ref<Coords(const Coords &)> map);

  //--- Loads and stores (Memory.cpp) ---
  void emitLoad(tile::LoadOp op);
  mlir::Value paddingOf(tile::LoadOp op);
  mlir::LogicalResult emitAgain(AgainOp op);
  void unpack(mlir::Value raw, mlir::Type element, llvm::MutableArrayRef<mlir::Value> values, bool byWords);
  void limitRegisters();
  void emitStore(tile::StoreOp op);
  struct Access;
  struct Unaligned; ///< Unaligned.cpp
  struct UnalignedLoad;
  /// A load in two steps, between which others may be started; null where it is no unaligned one.
  /// `isInside`: nothing of it is checked, isWellInside() having been.
  std::shared_ptr<UnalignedLoad> startUnalignedLoad(tile::LoadOp op, bool isInside = false);
  std::shared_ptr<UnalignedLoad> startUnalignedLoad(tile::LoadOp op, std::unique_ptr<Access> access,
                                                    mlir::Value padding, bool isInside);
  /// Whether a load's tile is inside the view, and the words that cover it inside the view's memory; i1, the same for
  /// all threads.
  mlir::Value isWellInside(tile::LoadOp op);
  void finishUnalignedLoad(UnalignedLoad &load);
  void loadCut(UnalignedLoad &load, mlir::Value anySlow, llvm::SmallVectorImpl<mlir::Value> &loaded);
  void emitUnalignedStore(tile::StoreOp op, Access &access);
  void tellUnaligned(mlir::Operation *op, const char *what, const AccessWidth &width);
  AccessWidth widthOf(mlir::Value view, mlir::ValueRange offsets, const Distribution &tile);
  mlir::Value packMemory(llvm::ArrayRef<mlir::Value> values, mlir::Type element, mlir::Type moved);
  void tellAccess(mlir::Operation *op, const char *what, const Access &access, const AccessWidth &width);

  //--- Ordering.cpp ---
  struct GlobalAccess {
    mlir::Operation *op;
    mlir::Value view;
    bool isWrite;
  };
  static std::optional<GlobalAccess> globalAccess(mlir::Operation *op);
  /// Whether the kernel may write the view's memory.
  bool isWritten(mlir::Value view);
  bool conflict(const GlobalAccess &a, const GlobalAccess &b);
  bool isHeldTwice(mlir::Operation *access);
  void orderGlobal(mlir::Operation *op);
  void orderLoop(mlir::Block &body);
  void orderIterations(mlir::Block &body);
  void globalBarrier();
  void blockBarrier();
  static bool touchesGlobal(mlir::Operation &op);
  void awaitEarlierLaunches();
  void delayWait();

  //--- Indexed.cpp ---
  void emitGather(tile::GatherOp op);
  void emitScatter(tile::ScatterOp op);
  void emitAtomicRMW(tile::AtomicRMWOp op);
  void emitAtomicCAS(tile::AtomicCASOp op);
  void emitAssert(tile::AssertOp op);
  void emitPrint(tile::PrintOp op);
  /// Address and whether it lies inside the view, of the element that register `reg` of the index tiles names.
  std::pair<mlir::Value, mlir::Value> indexedAddress(mlir::Value view, mlir::ValueRange indices, mlir::Value mask,
                                                     int reg);

  void shareWithDuplicates(mlir::Value tile);
  mlir::Value updateByCompareExchange(mlir::Value address, mlir::Type type, mlir::Value mask,
                                      llvm::function_ref<mlir::Value(mlir::Value)> update);

  //--- Movement.cpp ---
  /// A tile in shared memory.
  struct Staged {
    SharedWindow window;
    llvm::SmallVector<int64_t> strides; ///< bytes, per dimension
    int64_t fastest;                    ///< the dimension whose elements are neighbours
    mlir::Type element;
    mlir::Value ofGroup = {};           ///< i32: where this warpgroup's own copy begins; null: there is one
  };
  Staged planStaging(llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t fastest, bool padded);
  static Staged layOut(llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t fastest, bool padded);
  int64_t stagedWidth(const Staged &staged, const Distribution &tile, llvm::ArrayRef<int64_t> origin);
  mlir::Value stagedBase(const Staged &staged, const Distribution &tile);
  /// Writes a tile, each element that the block has once, with its element (0, 0, ...) at `origin`.
  void writeStaged(const Staged &staged, mlir::Value tile, llvm::ArrayRef<int64_t> origin, int group);
  /// Reads the elements that a thread holds of a tile that begins at `origin`.
  Registers readStaged(const Staged &staged, const Distribution &tile, llvm::ArrayRef<int64_t> origin, int group);
  /// The same where the blocks of a cluster staged what they had of it.
  Registers readFromCluster(const Staged &staged, const Distribution &from, const Distribution &to);
  void tellStaging(mlir::Operation *op, const char *what, const Staged &staged, int64_t written, int64_t read);
  void emitConvert(ConvertOp op);
  //--- Swizzled.cpp ---
  mlir::Value swizzledBase(const SharedAccess &access, int64_t bytes, int64_t &bits);
  bool emitSwizzledConvert(ConvertOp op, llvm::ArrayRef<int64_t> strides, int64_t written, int64_t read);
  //--- Movement.cpp ---
  static bool sameThreads(const Distribution &a, const Distribution &b);
  static int64_t fastestFor(const Distribution &from, const Distribution &to);
  void emitSlice(tile::SliceOp op);
  void emitConcat(tile::ConcatOp op);
  void emitReshape(tile::ReshapeOp op);
  void emitScalar(tile::ScalarOp op);

  //--- Random.cpp ---
  void emitRandomBits(tile::RandomBitsOp op);

  //--- Reduce.cpp, Scan.cpp ---
  void emitReduce(tile::ReduceOp op);
  using CombineLists = llvm::function_ref<llvm::SmallVector<mlir::Value>(const llvm::SmallVector<mlir::Value> &,
                                                                        const llvm::SmallVector<mlir::Value> &)>;
  void combineAcrossWarps(llvm::MutableArrayRef<llvm::SmallVector<mlir::Value>> lists, llvm::ArrayRef<int> bits,
                          int64_t same, CombineLists combine);
  //--- ClusterReduce.cpp ---
  void combineAcrossBlocks(llvm::MutableArrayRef<llvm::SmallVector<mlir::Value>> lists, llvm::ArrayRef<int> bits,
                           int64_t same, CombineLists combine);
  void sendAcrossBlocks(llvm::MutableArrayRef<llvm::SmallVector<mlir::Value>> lists, llvm::ArrayRef<int> bits,
                        int64_t same, CombineLists combine);
  mlir::Value gatherBits(mlir::Value number, int64_t mask);
  bool canSendAcrossBlocks();
  void prepareSending();
  int64_t bytesForSending();
  int64_t takeForSending(int64_t bytes);
  int64_t sendingBarrier(int64_t bytes);
  /// Waits, once, until all blocks of the cluster have begun; before anything that needs it or may run more than once.
  void joinCluster();
  Partial joinPartials(mlir::Region &combine, const Partial &left, const Partial &right);
  void emitScan(tile::ScanOp op);
  Partial scanAcrossWarps(const Partial &total, mlir::Value place, int64_t lastPlace, mlir::Value warp, int warpBits,
                          bool reverse, mlir::Region &combine);

  //--- Dots: Dot.cpp (operands), MatrixDot.cpp (fragments), PlainDot.cpp ---
  /// An operand in shared memory.
  struct StagedOperand {
    OperandTile tile;
    bool alongK;     ///< whether its rows run along K
    mlir::Value at;  ///< i32: where it begins
    SharedWindow window;
    int group;       ///< of the accesses that read it
  };
  using OperandKey = std::pair<mlir::Value, int64_t>;
  mlir::LogicalResult emitDot(tile::DotOp op);
  void emitWarpgroupDot(tile::DotOp op, const DotPlan &plan);
  llvm::SmallVector<mlir::Value> registerFragment(mlir::Value operand, const WarpgroupShape &shape, OperandType type,
                                                  int64_t row, int64_t k); ///< RegisterOperands.cpp
  void emitMatrixDot(tile::DotOp op, const DotPlan &plan);
  void emitPlainDot(tile::DotOp op, const DotPlan &plan);
  /// `kDim`: which dimension of the operand is K.
  StagedOperand operandOf(mlir::Value value, const DotPlan &plan, int64_t kDim);
  StagedOperand stageOperand(mlir::Value value, const DotPlan &plan, int64_t kDim);
  /// How it will lie there, but not where.
  StagedOperand planStaged(mlir::Value value, const DotPlan &plan, int64_t kDim);
  /// `begin`, `slot`: as writeMatrix() has them.
  void writeOperand(mlir::Value value, const StagedOperand &operand, const DotPlan &plan, int64_t kDim, int64_t begin,
                    int group, mlir::Value slot = {});
  static OperandKey operandKey(mlir::Value value, const DotPlan &plan, int64_t kDim);
  //--- SharedMatrix.cpp ---
  void writeMatrices(mlir::Value value, mlir::Type element, const OperandTile &tile, int64_t begin, int64_t rowDim,
                     int64_t columnDim, SharedWindow window, int group, ColumnRange columns);
  /// From `begin`, and `slot` (i32) further on if there is one.
  void writeMatrix(mlir::Value value, mlir::Type element, const OperandTile &tile, int64_t begin, int64_t rowDim,
                   int64_t columnDim, SharedWindow window, int group, ColumnRange columns = {}, mlir::Value slot = {});
  /// What a thread's number contributes to the places of its elements in a matrix, i32: a sum, and what is still to be
  /// combined with the registers' part of the swizzle.
  struct ThreadPlaces {
    mlir::Value base, chunk;
  };
  /// `rowDim` -1: there is one row.
  ThreadPlaces placesIn(const OperandTile &tile, const Distribution &matrix, int64_t rowDim, int64_t columnDim);
  /// Where the element of a register, `row` and `column` further on, lies: a number and what to add to it.
  std::pair<mlir::Value, int64_t> matrixPlace(const ThreadPlaces &places, const OperandTile &tile, int64_t row,
                                              int64_t column);
  mlir::Value panelStart(const OperandTile &tile, mlir::Value byte);
  /// Where a byte of a row lies in it, i32.
  mlir::Value swizzled(const OperandTile &tile, mlir::Value row, mlir::Value byte);
  void zeroPadding(const OperandTile &tile, int64_t begin, SharedWindow window, int group);
  /// Stages the operands of the loop's dots that it does not change; until `kept` is forgotten.
  void keepOperands(mlir::scf::ForOp loop, llvm::SmallVectorImpl<OperandKey> &kept);
  bool holdsFragments(mlir::Value a, const Distribution &result, const DotPlan &plan);
  class FragmentReader;
  /// The words of one fragment of A out of registers.
  llvm::SmallVector<mlir::Value> packFragment(mlir::Value a, int64_t row, int64_t k, const DotPlan &plan);
  mlir::Value roundToTf32(mlir::Value word);

  //--- Pipeline.cpp: loads that run ahead of their loop ---
  struct Copy;
  struct Pipeline;
  std::unique_ptr<Pipeline> planPipeline(mlir::scf::ForOp loop);
  /// The first iterations' copies, before the loop.
  void startPipeline(Pipeline &pipeline);
  /// At the beginning of the body: waits for this iteration's tiles and starts the copies of a later one. Returns the
  /// next iteration's slot.
  mlir::Value enterIteration(Pipeline &pipeline, mlir::Value variable, mlir::Value slot);
  void startCopies(Pipeline &pipeline, mlir::Value variable, mlir::Value slot, int group);
  void startCopy(const Pipeline &pipeline, const Copy &copy, mlir::Value active, mlir::Value slot, int group);
  /// A tile that lies in such a buffer, or a relabelling of one: it has no registers.
  bool isAsync(mlir::Value tile) const { return async_.contains(tile); }

  //--- Ahead.cpp: loads by threads, one iteration ahead ---
  struct Ahead;
  std::unique_ptr<Ahead> planAhead(mlir::scf::ForOp loop);
  /// The first iteration's, before the loop.
  void startAhead(Ahead &ahead);
  void enterAhead(Ahead &ahead, mlir::Value slot);
  /// At the end of the body, before its dots are waited for: the next iteration's. Returns its slot.
  mlir::Value leaveAhead(Ahead &ahead, mlir::Value variable, mlir::Value slot);
  void loadAhead(Ahead &ahead, mlir::Value variable, mlir::Value slot, int group);

  //--- OperandBuffers.cpp: operands that are computed while the dots of the iterations before are under way ---
  struct OperandBuffers;
  /// Of what these dots read and the loop computes; null: nothing.
  std::unique_ptr<OperandBuffers> planOperandBuffers(llvm::ArrayRef<tile::DotOp> dots);
  void startOperandBuffers(const OperandBuffers &buffers);
  /// At the beginning of the body; `at` (i32): the buffer that it has from the loop.
  void enterOperandBuffers(OperandBuffers &buffers, mlir::Value at);
  mlir::Value nextBuffer(const OperandBuffers &buffers);
  /// Nothing where the operand has no buffers.
  std::optional<StagedOperand> bufferedOperand(mlir::Value value, const DotPlan &plan, int64_t kDim);
  /// Before a dot that may be under way at the end of its iteration: writes what it reads, and makes it known to all.
  void publishOperands(tile::DotOp dot);

  //--- Roles.cpp: one warp loads, the warpgroups that hold tiles compute ---
  /// The program instances of this block, i32: how many there are, this block's first, how far from one to the next,
  /// where they end.
  struct Instances {
    mlir::Value count, first, step, end;
    llvm::SmallVector<mlir::Value> firstToLoad; ///< where the first one is, in threads that load
  };
  /// What numbers of instances are divided by, i32. With its inverse, floor((2^32 - 1) / value), that takes a few cycles.
  struct Divisor {
    mlir::Value value, inverse; ///< null: is not known
  };
  struct Divisors {
    Divisor plane, group;       ///< instances of two axes, of the rows that are walked together
    Divisor height, lastHeight; ///< those rows, and how many the last such group has
  };
  mlir::LogicalResult emitSpecialised();
  mlir::LogicalResult emitInstances(tile::GridOp grid, bool produces, llvm::function_ref<mlir::LogicalResult()> body);
  mlir::Value clustersAlong(tile::GridOp grid, size_t axis);
  int64_t rowsTogether();
  void planInstances(tile::GridOp grid);
  void planStreams(tile::GridOp grid); ///< Streams.cpp
  void prefetchFirstLoads(tile::GridOp grid, llvm::ArrayRef<mlir::Operation *> program, const ProducerSlice &slice);
  Divisors divisorsOf(tile::GridOp grid, bool inverses);
  std::pair<mlir::Value, mlir::Value> divide(mlir::Value number, const Divisor &by);
  llvm::SmallVector<mlir::Value> groupedIds(tile::GridOp grid, mlir::Value number, const Divisors &by);
  void setIds(tile::GridOp grid, llvm::SmallVector<mlir::Value> ids);
  void setLive(tile::GridOp grid, mlir::Value id);
  void emitProducer(mlir::Operation &op, const ProducerSlice &slice);
  void emitProducerLoop(mlir::scf::ForOp loop, const ProducerSlice &slice);
  void emitProducerBranch(mlir::scf::IfOp branch, const ProducerSlice &slice);
  void emitIfLive(mlir::Operation &op);
  mlir::Value warpgroupLeader(); ///< whether this is the first thread of its warpgroup

  //--- Rings.cpp: buffers in shared memory between the two ---
  struct Transfer;
  struct Ring;
  void planRings();
  int tensorMap(mlir::Value view, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> box, int64_t swizzleBytes);
  mlir::Value boxCoordinate(mlir::Value offset);
  void initialiseRings();
  void prefetchTensorMaps();
  void awaitRings();
  void awaitSharers();
  void advance(Ring &ring);
  void startTransfers(Ring &ring);
  void startBoxes(Ring &ring, mlir::Value slotBegin);
  void startShare(const Ring &ring, const Transfer &transfer, mlir::Value slotBegin);
  void startTransfer(const Ring &ring, const Transfer &transfer, int mapNumber, mlir::Value slotBegin,
                     mlir::Value firstRow);
  void takeSlot(Ring &ring);
  void emitBulkLoad(tile::LoadOp op);
  void startPanels(const Ring &ring, const Transfer &transfer, int mapNumber, mlir::Value slotBegin,
                   mlir::Value firstRow, int64_t begin, int64_t end);
  //--- LateLoads.cpp
  struct LateStep;
  void planLate(Ring &ring);
  void startLate(Ring &ring);
  void readLate(Ring &ring);
  void sinkLateReads();
  //--- SlotReads.cpp
  void readSlot(const Transfer &transfer);
  void releaseReadSlot(Ring &ring);
  void waitForFull(Ring &ring);
  mlir::Value letsGo(const Ring &ring);
  void releaseSlot(Ring &ring, mlir::Value slot);
  llvm::SmallVector<Ring *> ringsIn(mlir::Operation *op);
  mlir::Value barrierAt(int64_t first, mlir::Value slot);
  void arriveByWarp(mlir::Value barrier);
  struct CarriedRings;
  CarriedRings carriedBy(mlir::scf::ForOp loop);
  static llvm::SmallVector<tile::DotOp> addedBy(mlir::Value sums);
  void append(const CarriedRings &carried, llvm::SmallVectorImpl<mlir::Value> &values);
  void take(const CarriedRings &carried, mlir::ValueRange &values);

  //--- Schedule.cpp: instances that blocks take when they are free ---
  struct Schedule;
  void planSchedule(tile::GridOp grid, llvm::ArrayRef<mlir::Operation *> program, const ProducerSlice &slice);
  void planFindings(llvm::ArrayRef<mlir::Operation *> program, const ProducerSlice &slice);
  void initialiseSchedule();
  void handOverInstance(mlir::Value number, llvm::ArrayRef<mlir::Value> rest);
  void handOverFindings();
  mlir::Value takeNumber();
  void awaitTaken(mlir::Value parity);
  void takeNumberAhead(mlir::scf::ForOp loop);
  mlir::Value nextNumber();
  void takeFindings(tile::GridOp grid, mlir::Value begin, SharedWindow window);
  mlir::LogicalResult emitTakenInstances(tile::GridOp grid, mlir::Value count, const CarriedRings &carried,
                                         bool produces, llvm::function_ref<mlir::LogicalResult()> body);

  //--- ShareTail.cpp: the last instances, made by all blocks ---
  struct Tail {
    ShareOp op;
    mlir::Value block, blocks, iterations;      ///< i32: this one's number, how many there are; of a whole instance
    mlir::Value whole, length, longer;          ///< i32: instances that are not shared; of a span; spans with one more
    int64_t records;                            ///< in shared memory: this block's pieces
    int group;
    std::array<mlir::Value, 5> piece;           ///< i32: what ShareOp gives, of the piece at hand
  };
  mlir::Value planTail(mlir::Value count, mlir::Value first, mlir::Value step);
  mlir::Value spanBegin(mlir::Value span);
  mlir::Value spanOf(mlir::Value iteration);
  void writePieces();
  mlir::Value takePiece(mlir::Value number);
  void emitShare(ShareOp op);
  mlir::LogicalResult emitCombine(CombineOp op);
  mlir::Value countPiece(CombineOp op, mlir::Value slot, mlir::Value parts);

  //--- JoinedDots.cpp: dots that one instruction computes ---
  struct Joinable;
  std::optional<Joinable> joinable(tile::DotOp dot);
  static bool mayJoin(const Joinable &first, const Joinable &next, int64_t columns);
  void planJoinedDots();
  llvm::SmallVector<tile::DotOp> startedWith(tile::DotOp dot);

  //--- LiveRows.cpp: warpgroups whose rows nobody needs ---
  mlir::Value scalarAhead(mlir::Value value, mlir::scf::ForOp loop);
  bool onlyMultiplies(mlir::scf::ForOp loop, const CarriedRings &rings);
  mlir::Value needsRows(mlir::scf::ForOp loop, const CarriedRings &rings);
  std::array<mlir::Value, 2> passSlots(mlir::scf::ForOp loop, Ring &ring);

  //--- WarpgroupDot.cpp: dots under way ---
  /// Waits for all of them; what they read is free.
  void settle();
  bool isUnderWay(mlir::Value tile) const { return llvm::is_contained(underWay_, tile); }
  void settleFor(mlir::Operation &op);
  static bool isZeroTile(mlir::Value tile);
  void forgetZeros(mlir::scf::ForOp loop, llvm::ArrayRef<tile::DotOp> dots, llvm::MutableArrayRef<mlir::Value> inits);
  void waitForDots(int32_t pending, llvm::ArrayRef<mlir::Value> tiles);
  void releaseHeld();

  //--- EndOfK.cpp: no products behind the end of both matrices ---
  mlir::Value columnsToEnd(llvm::ArrayRef<tile::DotOp> dots, const DotPlan &plan);
  Registers upToEnd(mlir::Value columns, int64_t steps, int64_t depth, const Registers &sums,
                    llvm::function_ref<Registers(int64_t)> emit);

  //--- GroupExchange.cpp ---
  void planGroupExchanges();
  bool emitGroupExchange(ConvertOp op);

  //--- PingPong.cpp: teams take program instances in turns ---
  struct Turns {
    mlir::Value team;                ///< i32
    int64_t barriers, states, bytes; ///< in shared memory: whose turn it is, and the rings as it finds them, of each team
    int group;
    mlir::Operation *first, *last;   ///< of the program: from here to there it is this team's turn
    mlir::Value phase;               ///< i32: parity of this team's instances
    bool isPassed;                   ///< by the code of `last` itself
  };
  int64_t workers() const { return options_.teams * options_.threads; } ///< threads that hold tiles
  void planTurns(llvm::ArrayRef<mlir::Operation *> program);
  void initialiseTurns();
  void awaitTurn();
  void passTurn();

  //--- BulkStore.cpp ---
  void planBulkStores();
  void emitBulkStore(tile::StoreOp op);
  void groupBarrier(mlir::Value group, int64_t groups);
  struct StorePlan;
  StorePlan planStore(mlir::Value value, mlir::Value view);
  void awaitBuffer(const StorePlan &plan, int64_t slice);
  void awaitFirstBuffer(tile::StoreOp op);
  tile::StoreOp storeBehind(mlir::scf::ForOp loop);
  void byOneOfGroup(int64_t groups, llvm::function_ref<void()> body);

  //--- StagedScatter.cpp ---
  void emitStagedScatter(tile::ScatterOp op);

  //--- Shared by the pieces (Support.cpp) ---
  mlir::Value scalar(mlir::Value value) { return scalars_.lookup(value); }
  Registers &registers(mlir::Value tile) { return tiles_[tile]; }
  static mlir::RankedTensorType typeOf(mlir::Value tile) { return llvm::cast<mlir::RankedTensorType>(tile.getType()); }
  const Distribution &distribution(mlir::Value tile);
  mlir::Value i64(int64_t value);
  mlir::Value i32(int64_t value);
  mlir::Value boolean(bool value);
  mlir::Value toI64(mlir::Value indexOrInteger);
  /// What the thread's number contributes to each coordinate, i32; cached.
  llvm::ArrayRef<mlir::Value> threadCoords(const Distribution &tile);
  /// The coordinate of a register along `dim`, i64.
  mlir::Value coordinate(const Distribution &tile, int reg, int64_t dim);
  /// Whether a register of this thread holds an element of the tile at all; null when all threads' do.
  mlir::Value holdsElement(const Distribution &tile, int reg);
  /// Whether this thread is the one, of those that hold the same elements, that acts; null when no elements are held
  /// twice. `ofBlock`: one in each block of the cluster; `ofGroup`: one in each warpgroup.
  mlir::Value isOwner(const Distribution &tile, bool ofBlock = false, bool ofGroup = false);
  mlir::Value both(mlir::Value a, mlir::Value b); ///< conjunction; null counts as true

  /// The value of lane ^ mask, lane - delta or lane `source`, for a register value of any element type.
  mlir::Value shuffle(ShuffleMode mode, mlir::Value value, mlir::Value lane);

  /// Any register value as 32 or 64 bits, and back.
  mlir::Value toBits(mlir::Value value);
  mlir::Value fromBits(mlir::Value bits, mlir::Type type);

  mlir::Value loadGlobal(mlir::Type type, mlir::Value address, int64_t offset, mlir::Value mask,
                         mlir::Value otherwise, bool lasting = false);
  void storeGlobal(mlir::Value value, mlir::Value address, int64_t offset, mlir::Value mask);

  /// Shared memory, handed out as a stack: everything allocated after mark() is free after release(mark), except what
  /// other blocks may still read.
  int64_t allocateShared(int64_t bytes, int64_t alignment = 16);
  int64_t markShared() const { return usedShared_; }
  void releaseShared(int64_t mark) { usedShared_ = std::max(mark, neverReleased_); }
  int newGroup() { return nextGroup_++; }
  void storeShared(mlir::Value value, mlir::Value address, int64_t offset, mlir::Value mask, SharedWindow window,
                   int group);
  /// Zero where `mask` (null: nowhere) is false.
  mlir::Value loadShared(mlir::Type type, mlir::Value address, int64_t offset, mlir::Value mask, SharedWindow window,
                         int group);

  void remark(mlir::Location where, const std::string &text);

  mlir::func::FuncOp kernel_;
  mlir::ModuleOp target_;
  ThreadOptions options_;
  mlir::ImplicitLocOpBuilder b_;
  mlir::func::FuncOp function_;
  Divisibility divisibility_;
  AxisAnalysis axes_{divisibility_};
  mlir::Value threadId_, clusterRank_; ///< i32; of the team
  mlir::Value threadOfBlock_;          ///< i32
  mlir::Value status_, printBuffer_;   ///< i64 addresses
  llvm::SmallVector<mlir::Value> programIds_; ///< i64
  llvm::DenseMap<mlir::Value, mlir::Value> scalars_;
  llvm::DenseMap<mlir::Value, Registers> tiles_;
  /// What a load brought in, as it lies in memory: one value for each access, from register 0 on.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> loaded_;
  llvm::DenseMap<mlir::Value, ViewWords> views_;
  llvm::DenseMap<mlir::Type, std::unique_ptr<Distribution>> distributions_;
  llvm::DenseMap<const Distribution *, llvm::SmallVector<mlir::Value>> threadCoords_;
  mlir::Operation *prologueEnd_ = nullptr; ///< before it goes what depends on the thread's number alone
  llvm::SmallVector<GlobalAccess> pendingGlobal_; ///< since the last barrier
  llvm::DenseMap<mlir::Value, bool> written_;
  llvm::DenseMap<OperandKey, StagedOperand> keptOperands_;
  llvm::DenseMap<mlir::Operation *, StagedOperand> copied_; ///< by tile.load; `alongK` is not known here
  llvm::DenseSet<mlir::Value> async_;
  OperandBuffers *buffers_ = nullptr; ///< of the loop at hand; null: it has none
  bool buffersOperands_ = false;      ///< a loop has
  bool takesOperands_ = false;        ///< dots take computed operands from registers
  std::vector<std::unique_ptr<Ring>> rings_;
  std::vector<llvm::SmallVector<mlir::Operation *>> lateReads_; ///< each in one run of operations
  std::optional<bool> startsLate_; ///< of the transfers, the late ones only, or all others; none: all
  Instances instances_;
  bool isPrefetching_ = false; ///< transfers go to the L2 cache
  std::unique_ptr<Schedule> schedule_; ///< null: blocks have fixed shares
  std::optional<Tail> tail_;
  std::optional<Turns> turns_;
  int64_t teamsBegin_ = 0; ///< from here on shared memory is a team's
  SharedLoads shared_;    ///< by the blocks of the cluster
  mlir::Value isLive_;    ///< whether the instance is one of the grid's: a cluster may reach beyond; null: always
  llvm::SmallVector<mlir::Value> underWay_; ///< results of dots that no wait has covered yet
  llvm::DenseSet<mlir::Operation *> awaited_; ///< stores whose first buffer is free when they begin
  llvm::DenseSet<mlir::Operation *> carriedDots_;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<tile::DotOp>> joined_; ///< by the first of them: all
  llvm::DenseSet<mlir::Operation *> startedBefore_;                          ///< by another dot, which stands for it
  llvm::DenseMap<mlir::Operation *, mlir::Value> addsFrom_; ///< by dot: whether there are sums yet; none: there are
  struct StagingMemory {
    int64_t begin;
    int group;
  };
  llvm::DenseMap<mlir::Operation *, StagingMemory> bulkStaging_; ///< by store and scatter
  llvm::DenseMap<mlir::Operation *, Staged> groupExchanges_; ///< by conversion
  std::vector<TensorMap> tensorMaps_;
  unsigned nextWord_ = 0;
  struct SharedUse {
    int64_t begin, end;
    mlir::Location where;
  };
  llvm::SmallVector<SharedUse> sharedUses_, usesAtPeak_; ///< the former: some may be released already
  int64_t usedShared_ = 0, peakShared_ = 0, neverReleased_ = 0, savedBySlices_ = 0, stageBytes_ = 0;
  int nextGroup_ = 0;
  bool readsOtherBlocks_ = false; ///< of the cluster
  mlir::Operation *sending_ = nullptr; ///< where one thread makes the mbarriers of exchanges; null: there are none
  int64_t sendingFree_ = 0; ///< shared memory for exchanges, from here on
  bool joinedCluster_ = false, storesWholeRows_ = false;
  std::vector<std::string> remarks_;
  std::vector<Assert> asserts_;
  std::vector<Print> prints_;
};

} // namespace tenon::nvidia
