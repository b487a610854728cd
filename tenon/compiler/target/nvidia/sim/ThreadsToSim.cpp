// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/sim/ThreadsToSim.h"

#include "tenon/base/Error.h"
#include "tenon/base/SimThread.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"

#include "tenon/compiler/lower/ToLlvm.h"

#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <cstddef>

using namespace mlir;

namespace tenon::nvidia {
namespace {

template <class A, class B> constexpr bool agree(A a, B b) { return static_cast<int>(a) == static_cast<int>(b); }
static_assert(agree(Space::global, sim::Space::global) && agree(Space::shared, sim::Space::shared) &&
              agree(Space::cluster, sim::Space::cluster));
static_assert(agree(AtomicKind::add, sim::AtomicKind::add) && agree(AtomicKind::fadd, sim::AtomicKind::fadd) &&
              agree(AtomicKind::smax, sim::AtomicKind::smax) && agree(AtomicKind::smin, sim::AtomicKind::smin) &&
              agree(AtomicKind::umax, sim::AtomicKind::umax) && agree(AtomicKind::umin, sim::AtomicKind::umin) &&
              agree(AtomicKind::exchange, sim::AtomicKind::exchange));
static_assert(agree(FenceKind::device, sim::FenceKind::device) && agree(ShuffleMode::bfly, sim::ShuffleMode::bfly) &&
              agree(ShuffleMode::up, sim::ShuffleMode::up) && agree(ShuffleMode::down, sim::ShuffleMode::down) &&
              agree(ShuffleMode::idx, sim::ShuffleMode::idx));
static_assert(agree(OperandType::f16, sim::OperandType::f16) && agree(OperandType::bf16, sim::OperandType::bf16) &&
              agree(OperandType::tf32, sim::OperandType::tf32) && agree(OperandType::s8, sim::OperandType::s8) &&
              agree(OperandType::u8, sim::OperandType::u8) && agree(OperandType::e4m3, sim::OperandType::e4m3) &&
              agree(OperandType::e5m2, sim::OperandType::e5m2) && agree(OperandType::f64, sim::OperandType::f64));
static_assert(agree(ApproxFunction::ex2, sim::ApproxFunction::ex2) &&
              agree(ApproxFunction::rcp, sim::ApproxFunction::rcp) &&
              agree(ApproxFunction::rsqrt, sim::ApproxFunction::rsqrt) &&
              agree(ApproxFunction::lg2, sim::ApproxFunction::lg2) &&
              agree(ApproxFunction::tanh, sim::ApproxFunction::tanh));

/// Replaces the ops of one thread function.
class CallEmitter {
public:
  CallEmitter(ModuleOp module, func::FuncOp function)
      : module_(module), function_(function), b_(function.getLoc(), function.getContext()),
        pointer_(LLVM::LLVMPointerType::get(function.getContext())) {}

  LogicalResult run() {
    takeWords();
    noteEarlyStart();
    guardAccumulators();
    guardOperands();
    SmallVector<Operation *> ops;
    function_.walk([&](Operation *op) {
      if (isa_and_nonnull<NvidiaDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      b_.setInsertionPoint(op);
      b_.setLoc(op->getLoc());
      LogicalResult done =
          TypeSwitch<Operation *, LogicalResult>(op)
              .Case<ThreadIdOp, BlockIdOp, GridSizeOp, ClusterRankOp, LoadOp, StoreOp, AtomicOp, AtomicCasOp,
                    MapSharedOp, CpAsyncOp, CpAsyncCommitOp, CpAsyncWaitOp, CpAsyncArriveOp, TensorMapOp,
                    PrefetchTensorMapOp, TmaLoadOp, TmaPrefetchOp, TmaStoreOp, BulkCommitOp, BulkWaitOp, BarrierOp,
                    WarpBarrierOp,
                    ClusterArriveOp, ClusterWaitOp, StoreAsyncOp, MbarrierInitOp, MbarrierArriveOp, MbarrierWaitOp,
                    FenceOp,
                    AllowNextLaunchOp, AwaitEarlierLaunchesOp, ShuffleOp, VoteOp, MmaOp, LdMatrixOp, StMatrixOp,
                    WgmmaFenceOp, WgmmaOp, WgmmaCommitOp, WgmmaWaitOp, SetMaxRegistersOp, ApproxOp,
                    AnythingOp, PackOp, PermuteBytesOp>([&](auto op) {
                emit(op);
                op.erase();
                return success();
              })
              .Default([](Operation *op) { return op->emitOpError("is nothing a thread can do"); });
      if (failed(done))
        return failure();
      ++instruction_;
    }
    emitConstants();
    return success();
  }

private:
  //===--- The function and its tables ----------------------------------------------------------------------------===//

  /// (%w0: i64, %w1: i64, ...) becomes (%thread, %words).
  void takeWords() {
    Block &entry = function_.front();
    b_.setInsertionPointToStart(&entry);
    unsigned count = arguments_ = entry.getNumArguments();
    thread_ = entry.addArgument(pointer_, function_.getLoc());
    Value words = words_ = entry.addArgument(pointer_, function_.getLoc());
    for (unsigned i = 0; i < count; ++i)
      entry.getArgument(i).replaceAllUsesWith(
          b_.create<LLVM::LoadOp>(b_.getI64Type(), offset(words, 8 * i), /*alignment=*/8));
    entry.eraseArguments(0, count);
    function_.removeArgAttrsAttr();
    function_.setFunctionType(b_.getFunctionType({pointer_, pointer_}, {}));
    function_.setName(sim::threadSymbol);
    function_.setPublic();
  }

  /// Threads of a kernel that may start early owe the wait for the kernels before it from their beginning on.
  void noteEarlyStart() {
    b_.setInsertionPointToStart(&function_.front());
    b_.setLoc(function_.getLoc());
    function_.walk([&](AwaitEarlierLaunchesOp) {
      call("start_early", {});
      return WalkResult::interrupt();
    });
  }

  /// The bounds of the block, and the lines that findings name.
  void emitConstants() {
    b_.setInsertionPointToStart(module_.getBody());
    auto number = [&](StringRef name, int64_t otherwise) {
      auto attribute = function_->getAttrOfType<IntegerAttr>(name);
      return attribute ? attribute.getInt() : otherwise;
    };
    int64_t shape[] = {number(threadsAttr, 32), number(clusterAttr, 1), number(sharedBytesAttr, 0), asynchronous_,
                       number(minimumBlocksAttr, 1)};
    for (StringRef name : {threadsAttr, clusterAttr, sharedBytesAttr, tensorMapsAttr})
      function_->removeAttr(name);
    b_.create<LLVM::GlobalOp>(LLVM::LLVMArrayType::get(b_.getI64Type(), std::size(shape)), /*isConstant=*/true,
                              LLVM::Linkage::External, sim::shapeSymbol, b_.getI64TensorAttr(shape));
    std::string text;
    for (auto &[place, number] : places_)
      text += place + '\0';
    text += '\0';
    b_.create<LLVM::GlobalOp>(LLVM::LLVMArrayType::get(b_.getI8Type(), text.size()), /*isConstant=*/true,
                              LLVM::Linkage::External, sim::placesSymbol, b_.getStringAttr(text));
  }

  Value place() {
    std::string text = "an unknown line";
    if (auto line = b_.getLoc()->findInstanceOf<FileLineColLoc>())
      text = line.getFilename().str() + ":" + std::to_string(line.getLine());
    return i32(places_.insert({text, static_cast<int64_t>(places_.size())}).first->second);
  }

  //===--- Values -------------------------------------------------------------------------------------------------===//

  Value i32(int64_t value) { return b_.create<LLVM::ConstantOp>(b_.getI32Type(), static_cast<int32_t>(value)); }
  Value i64(int64_t value) { return b_.create<LLVM::ConstantOp>(b_.getI64Type(), value); }
  Value flag(Value condition) { // true where there is none
    return condition ? b_.create<arith::ExtUIOp>(b_.getI32Type(), condition).getResult() : i32(1);
  }
  Value offset(Value base, int64_t bytes) {
    return bytes ? b_.create<LLVM::GEPOp>(pointer_, b_.getI8Type(), base, LLVM::GEPArg(static_cast<int32_t>(bytes)))
                       .getResult()
                 : base;
  }
  /// Adds the offset in the width of the address, as the hardware does.
  Value address(Value base, IntegerAttr offset) {
    if (int64_t bytes = offset.getInt())
      base = b_.create<arith::AddIOp>(
          base, b_.create<arith::ConstantOp>(b_.getIntegerAttr(base.getType(), bytes)).getResult());
    return base.getType().isInteger(64) ? base : b_.create<arith::ExtUIOp>(b_.getI64Type(), base).getResult();
  }

  static int64_t bytesOf(Type type) {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.getNumElements() * vector.getElementTypeBitWidth() / 8;
    return type.getIntOrFloatBitWidth() / 8;
  }
  /// LLVM has no floats of 8 bits: they travel as integers.
  Type carrier(Type type) {
    Type element = getElementTypeOrSelf(type);
    Type plain = isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8 ? b_.getI8Type() : element;
    if (auto vector = dyn_cast<VectorType>(type))
      return VectorType::get(vector.getNumElements(), plain);
    return plain;
  }
  /// Into and out of ThreadHeader::operands.
  void put(Value value, int64_t at = 0) {
    if (Type type = carrier(value.getType()); type != value.getType()) {
      if (auto vector = dyn_cast<VectorType>(value.getType()); vector && vector.getRank() != 1)
        value = b_.create<vector::ShapeCastOp>(
            VectorType::get(vector.getNumElements(), vector.getElementType()), value);
      if (value.getType() != type)
        value = b_.create<arith::BitcastOp>(type, value);
    }
    b_.create<LLVM::StoreOp>(value, offset(thread_, at), /*alignment=*/8);
  }
  Value get(Type type, int64_t at = 0) {
    Value value = b_.create<LLVM::LoadOp>(carrier(type), offset(thread_, at), /*alignment=*/8);
    if (value.getType() == type)
      return value;
    if (auto vector = dyn_cast<VectorType>(type)) {
      auto flat = VectorType::get(vector.getNumElements(), vector.getElementType());
      if (value.getType() != flat)
        value = b_.create<arith::BitcastOp>(flat, value);
      return flat == type ? value : b_.create<vector::ShapeCastOp>(type, value).getResult();
    }
    return b_.create<arith::BitcastOp>(type, value);
  }

  Value call(StringRef op, ArrayRef<Value> operands, Type result = {}) {
    SmallVector<Value> all{thread_, place()};
    all.append(operands.begin(), operands.end());
    std::string name = ("tenon_sim_" + op).str();
    auto function = module_.lookupSymbol<LLVM::LLVMFuncOp>(name);
    if (!function) {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(module_.getBody());
      Type nothing = LLVM::LLVMVoidType::get(b_.getContext());
      function = b_.create<LLVM::LLVMFuncOp>(
          name, LLVM::LLVMFunctionType::get(result ? result : nothing, llvm::to_vector(TypeRange(ValueRange(all)))));
    }
    auto made = b_.create<LLVM::CallOp>(function, all);
    return result ? made.getResult() : Value();
  }

  std::pair<Value, Value> window(std::optional<ArrayRef<int64_t>> window) {
    return {i32(window ? (*window)[0] : 0), i32(window ? (*window)[1] : -1)};
  }

  //===--- Ops ----------------------------------------------------------------------------------------------------===//

  void number(Operation *op, size_t at) {
    Value value = b_.create<LLVM::LoadOp>(b_.getI32Type(), offset(thread_, at), /*alignment=*/4, /*isVolatile=*/false,
                                          /*isNonTemporal=*/false, /*isInvariant=*/true);
    op->getResult(0).replaceAllUsesWith(value);
  }
  void emit(ThreadIdOp op) { number(op, offsetof(sim::ThreadHeader, threadId)); }
  void emit(BlockIdOp op) { number(op, offsetof(sim::ThreadHeader, blockId)); }
  void emit(GridSizeOp op) { number(op, offsetof(sim::ThreadHeader, gridSize)); }
  void emit(ClusterRankOp op) { number(op, offsetof(sim::ThreadHeader, clusterRank)); }

  Value i32Of(auto enumerator) { return i32(static_cast<int64_t>(enumerator)); }

  void emit(LoadOp op) {
    auto [begin, end] = window(op.getWindow());
    if (op.getOtherwise())
      put(op.getOtherwise());
    call("load", {i32Of(op.getSpace()), address(op.getAddress(), op.getOffsetAttr()), i32(bytesOf(op.getType())),
                  flag(op.getMask()), begin, end});
    op.replaceAllUsesWith(get(op.getType()));
  }
  void emit(StoreOp op) {
    auto [begin, end] = window(op.getWindow());
    put(op.getValue());
    call("store", {i32Of(op.getSpace()), address(op.getAddress(), op.getOffsetAttr()),
                   i32(bytesOf(op.getValue().getType())), flag(op.getMask()), begin, end});
  }
  void emit(AtomicOp op) {
    put(op.getValue());
    call("atomic", {i32Of(op.getKind()), op.getAddress(), i32(bytesOf(op.getType())), flag(op.getMask())});
    op.replaceAllUsesWith(get(op.getType()));
  }
  void emit(AtomicCasOp op) {
    put(op.getExpected());
    put(op.getDesired(), 8);
    call("atomic_cas", {op.getAddress(), i32(bytesOf(op.getType())), flag(op.getMask())});
    op.replaceAllUsesWith(get(op.getType()));
  }
  void emit(StoreAsyncOp op) {
    asynchronous_ = true;
    auto [begin, end] = window(op.getWindow());
    put(op.getValue());
    call("store_async", {op.getAddress(), i32(bytesOf(op.getValue().getType())), op.getMbarrier(), flag(op.getMask()),
                         begin, end});
  }
  void emit(MapSharedOp op) {
    op.replaceAllUsesWith(call("map_shared", {op.getAddress(), op.getRank()}, b_.getI32Type()));
  }

  void emit(CpAsyncOp op) {
    auto [begin, end] = window(op.getWindow());
    call("cp_async", {i32(op.getBytes()), op.getShared(), op.getGlobal(), op.getSourceBytes(), begin, end});
  }
  void emit(CpAsyncCommitOp) { call("cp_async_commit", {}); }
  void emit(CpAsyncWaitOp op) { call("cp_async_wait", {i32(op.getPending())}); }
  void emit(CpAsyncArriveOp op) { call("cp_async_arrive", {op.getAddress()}); }

  Value instruction() { return i32(instruction_); }

  void emit(BarrierOp op) {
    Value id = i32(op.getId());
    if (op.getNumber())
      id = b_.create<arith::AddIOp>(id, op.getNumber());
    call("barrier", {instruction(), id, i32(op.getThreads())});
  }
  void emit(WarpBarrierOp) { call("warp_barrier", {instruction()}); }
  void emit(ClusterArriveOp op) { call("cluster_arrive", {i32(op.getRelaxed())}); }
  void emit(ClusterWaitOp) { call("cluster_wait", {}); }
  void emit(MbarrierInitOp op) { call("mbarrier_init", {op.getAddress(), op.getCount()}); }
  void emit(MbarrierArriveOp op) {
    Value bytes = op.getBytes() ? b_.create<arith::ExtUIOp>(b_.getI64Type(), op.getBytes()).getResult() : i64(-1);
    call("mbarrier_arrive", {op.getAddress(), bytes, i32Of(op.getCluster() ? Space::cluster : Space::shared),
                             i32(op.getBehind() ? 1 : 0)});
  }
  void emit(MbarrierWaitOp op) { call("mbarrier_wait", {op.getAddress(), op.getParity()}); }
  void emit(FenceOp op) { call("fence", {i32Of(op.getKind())}); }

  void emit(AllowNextLaunchOp) {} // the simulator runs one kernel at a time
  void emit(AwaitEarlierLaunchesOp) { call("await_earlier_launches", {}); }

  void emit(ShuffleOp op) {
    put(op.getValue());
    call("shuffle", {instruction(), i32Of(op.getMode()), op.getLane()});
    op.replaceAllUsesWith(get(op.getType()));
  }
  void emit(VoteOp op) {
    op.replaceAllUsesWith(call("vote", {instruction(), flag(op.getCondition())}, b_.getI32Type()));
  }
  void emit(MmaOp op) {
    put(op.getA(), 0);
    put(op.getB(), 16);
    put(op.getC(), 32);
    call("mma", {instruction(), i32Of(op.getAType()), i32Of(op.getBType())});
    op.replaceAllUsesWith(get(op.getType(), 32));
  }
  void emit(LdMatrixOp op) {
    auto [begin, end] = window(op.getWindow());
    call("ldmatrix", {instruction(), op.getAddress(), i32(bytesOf(op.getType()) / 4), i32(op.getTranspose()),
                      begin, end});
    op.replaceAllUsesWith(get(op.getType()));
  }
  void emit(StMatrixOp op) {
    auto [begin, end] = window(op.getWindow());
    put(op.getValue());
    call("stmatrix", {instruction(), op.getAddress(), i32(bytesOf(op.getValue().getType()) / 4), i32(op.getTranspose()),
                      begin, end});
  }

  //===--- Asynchronous units -------------------------------------------------------------------------------------===//

  void emit(TensorMapOp op) {
    Value address = offset(words_, 8 * (arguments_ + op.getNumber()));
    op.replaceAllUsesWith(b_.create<LLVM::LoadOp>(b_.getI64Type(), address, /*alignment=*/8).getResult());
  }
  /// 32-bit values, one after another from `at` on.
  void putWords(ValueRange values, int64_t at) {
    for (auto [i, value] : llvm::enumerate(values))
      b_.create<LLVM::StoreOp>(value, offset(thread_, at + 4 * i), /*alignment=*/4);
  }
  void getWords(Operation *op) {
    for (OpResult result : op->getResults())
      result.replaceAllUsesWith(b_.create<LLVM::LoadOp>(result.getType(), offset(thread_, 4 * result.getResultNumber()),
                                                        /*alignment=*/4));
  }

  void emit(TmaLoadOp op) {
    asynchronous_ = true;
    auto [begin, end] = window(op.getWindow());
    putWords(op.getCoordinates(), 0);
    Value multicast = op.getMulticast() ? b_.create<arith::ExtUIOp>(b_.getI32Type(), op.getMulticast()).getResult()
                                        : i32(-1);
    call("tma_load", {op.getShared(), op.getMap(), i32(op.getCoordinates().size()), op.getMbarrier(), multicast, begin,
                      end});
  }
  void emit(TmaStoreOp op) {
    asynchronous_ = true;
    auto [begin, end] = window(op.getWindow());
    putWords(op.getCoordinates(), 0);
    call("tma_store", {op.getMap(), i32(op.getCoordinates().size()), op.getShared(), begin, end});
  }
  void emit(PrefetchTensorMapOp) {}
  void emit(TmaPrefetchOp) {}
  void emit(BulkCommitOp) { call("bulk_commit", {}); }
  void emit(BulkWaitOp op) { call("bulk_wait", {i32(op.getPending()), i32(op.getRead())}); }

  void emit(WgmmaFenceOp op) {
    call("wgmma_fence", {instruction()});
    op.replaceAllUsesWith(op.getRegisters());
  }
  void emit(WgmmaOp op) {
    asynchronous_ = true;
    int fromRegisters = readers_.lookup(op);
    putWords(op.getAccumulators(), 0);
    if (fromRegisters)
      putWords(op.getA(), sim::wideOperands);
    auto [beginA, endA] = window(op.getWindowA());
    auto [beginB, endB] = window(op.getWindowB());
    call("wgmma", {instruction(), i32Of(op.getAType()), i32Of(op.getBType()), i32(op.getN()),
                   i32(op.getTransA() | op.getTransB() << 1), i32(fromRegisters), fromRegisters ? i64(0) : op.getA()[0],
                   op.getB(), flag(op.getScaleD()), beginA, endA, beginB, endB});
    getWords(op);
  }
  void emit(WgmmaCommitOp) { call("wgmma_commit", {instruction()}); }
  void emit(WgmmaWaitOp op) {
    if (4 * op.getAccumulators().size() > sim::wideOperands)
      throw tenon::Error("a thread of the simulator waits for " + std::to_string(sim::wideOperands / 4) +
                  " accumulators at most, not for " + std::to_string(op.getAccumulators().size()) + ": use smaller tiles");
    putWords(op.getAccumulators(), 0);
    call("wgmma_wait", {instruction(), i32(op.getPending()), i32(op.getAccumulators().size())});
    getWords(op);
  }
  void emit(SetMaxRegistersOp op) {
    call("set_max_registers", {instruction(), i32(op.getCount()), i32(op.getIncrease())});
  }

  /// Where a value that may be an accumulator in flight goes next without being looked at; none for another use.
  static SmallVector<Value> passedOn(OpOperand &use) {
    Operation *owner = use.getOwner();
    unsigned number = use.getOperandNumber();
    if (auto loop = dyn_cast<scf::ForOp>(owner))
      return {loop.getTiedLoopRegionIterArg(&use), loop.getTiedLoopResult(&use)};
    if (auto loop = dyn_cast<scf::WhileOp>(owner))
      return {loop.getBeforeArguments()[number]};
    if (isa<scf::ConditionOp>(owner) && number > 0) {
      auto loop = cast<scf::WhileOp>(owner->getParentOp());
      return {loop.getAfterArguments()[number - 1], loop.getResult(number - 1)};
    }
    if (isa<scf::YieldOp>(owner)) {
      Operation *parent = owner->getParentOp();
      if (auto loop = dyn_cast<scf::WhileOp>(parent))
        return {loop.getBeforeArguments()[number]};
      if (auto loop = dyn_cast<scf::ForOp>(parent))
        return {loop.getRegionIterArg(number), loop.getResult(number)};
      return {parent->getResult(number)};
    }
    if (auto branch = dyn_cast<BranchOpInterface>(owner))
      if (auto argument = branch.getSuccessorBlockArgument(number))
        return {*argument};
    if (isa<arith::SelectOp>(owner) && number > 0)
      return {owner->getResult(0)};
    if (auto wait = dyn_cast<WgmmaWaitOp>(owner); wait && wait.getPending() > 0)
      return {wait.getResult(number)};
    return {};
  }

  /// Accumulators are in flight from a wgmma to the wait that covers it: anything else that may use one asks first.
  void guardAccumulators() {
    llvm::SetVector<Value> flying;
    function_.walk([&](WgmmaOp op) { flying.insert(op.result_begin(), op.result_end()); });
    llvm::SetVector<std::pair<Operation *, Value>> uses;
    for (size_t i = 0; i < flying.size(); ++i) // grows
      for (OpOperand &use : flying[i].getUses()) {
        Operation *owner = use.getOwner();
        auto multiplication = dyn_cast<WgmmaOp>(owner);
        if (isa<WgmmaWaitOp>(owner) ||
            (multiplication && use.getOperandNumber() < multiplication.getAccumulators().size()) ||
            !passedOn(use).empty()) {
          for (Value next : passedOn(use))
            flying.insert(next);
          continue;
        }
        uses.insert({owner, use.get()});
      }
    for (auto [owner, value] : uses) {
      b_.setInsertionPoint(owner);
      b_.setLoc(owner->getLoc());
      if (!value.getType().isInteger(32))
        value = b_.create<arith::BitcastOp>(b_.getI32Type(), value);
      call("wgmma_read", {value});
    }
  }

  /// Registers of `a` are read from a wgmma to the wait that covers it: whatever writes them (again, in a loop) asks
  /// first. A value is a register: what it holds is written where it is defined, a loop's argument where the loop
  /// yields.
  void guardOperands() {
    llvm::SetVector<std::pair<Operation *, int>> writers;
    function_.walk([&](WgmmaOp op) {
      if (op.getA().size() != 4)
        return;
      int number = readers_[op] = static_cast<int>(readers_.size()) + 1;
      for (Value word : op.getA()) {
        auto argument = dyn_cast<BlockArgument>(word);
        writers.insert({argument ? argument.getOwner()->getTerminator() : word.getDefiningOp(), number});
      }
    });
    for (auto [writer, number] : writers) {
      b_.setInsertionPoint(writer);
      b_.setLoc(writer->getLoc());
      call("wgmma_write", {i32(number)});
    }
  }

  void emit(ApproxOp op) {
    op.replaceAllUsesWith(call("approx", {i32Of(op.getFunction()), op.getValue()}, b_.getF32Type()));
  }
  void emit(AnythingOp op) { op.replaceAllUsesWith(b_.create<LLVM::UndefOp>(op.getType()).getResult()); }
  void emit(PackOp op) {
    op.replaceAllUsesWith(call("pack", {i32Of(op.getType()), op.getLow(), op.getHigh()}, b_.getI32Type()));
  }

  void emit(PermuteBytesOp op) {
    op.replaceAllUsesWith(call("permute_bytes", {op.getLow(), op.getHigh(), op.getSelector()}, b_.getI32Type()));
  }

  ModuleOp module_;
  func::FuncOp function_;
  ImplicitLocOpBuilder b_;
  LLVM::LLVMPointerType pointer_;
  Value thread_, words_;
  unsigned arguments_ = 0;
  bool asynchronous_ = false;
  llvm::MapVector<std::string, int64_t, std::map<std::string, unsigned>> places_;
  int64_t instruction_ = 0;
  llvm::DenseMap<Operation *, int> readers_; ///< wgmma whose `a` is in registers, and numbers from 1 on that name them
};

} // namespace

LogicalResult lowerThreadsToSim(ModuleOp module) {
  MLIRContext *context = module.getContext();
  context->loadDialect<LLVM::LLVMDialect, arith::ArithDialect, vector::VectorDialect>();
  auto functions = module.getOps<func::FuncOp>();
  if (!llvm::hasSingleElement(functions))
    return module.emitError("has no single thread function");
  if (failed(CallEmitter(module, *functions.begin()).run()))
    return failure();

  PassManager pm(context);
  pm.enableVerifier(false);
  pm.addPass(createConvertSCFToCFPass());
  if (failed(pm.run(module)))
    return failure();
  RewritePatternSet expansions(context); // not every processor has bf16, nor the C library of every system
  arith::populateExpandBFloat16Patterns(expansions);
  if (failed(applyPatternsAndFoldGreedily(module, std::move(expansions))))
    return failure();
  return lower::convertToLlvm(module);
}

} // namespace tenon::nvidia
