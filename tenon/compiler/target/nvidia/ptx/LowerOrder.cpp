// SPDX-License-Identifier: Apache-2.0
//
// Numbers of threads and blocks, barriers and fences, order between kernels, exchange inside a warp.
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

using Values = SmallVector<Value>;

/// Intrinsics, not assembly: LLVM knows their ranges.
template <class OpT> Values lowerNumber(OpT op, typename OpT::Adaptor, PtxBuilder &e) {
  StringRef name = std::is_same_v<OpT, ThreadIdOp>   ? "llvm.nvvm.read.ptx.sreg.tid.x"
                   : std::is_same_v<OpT, BlockIdOp>  ? "llvm.nvvm.read.ptx.sreg.ctaid.x"
                   : std::is_same_v<OpT, GridSizeOp> ? "llvm.nvvm.read.ptx.sreg.nctaid.x"
                                                     : "llvm.nvvm.read.ptx.sreg.cluster.ctarank";
  return {e.b.create<LLVM::CallIntrinsicOp>(e.b.getI32Type(), e.b.getStringAttr(name), ValueRange())->getResult(0)};
}

Values statement(PtxBuilder &e, ValueRange operands, const llvm::Twine &text) {
  e.assembly({}, operands, text, Effect::Memory);
  return {};
}

Values lowerBarrier(BarrierOp op, BarrierOp::Adaptor operands, PtxBuilder &e) {
  if (Value number = operands.getNumber()) {
    Value id = e.b.create<LLVM::AddOp>(number, e.b.create<LLVM::ConstantOp>(e.b.getI32Type(), op.getId()));
    return statement(e, {id}, "bar.sync $0, " + llvm::Twine(op.getThreads()) + ";");
  }
  // The whole block at barrier 0 needs no count; that is also the form the assembler knows best.
  auto function = op->getParentOfType<FunctionOpInterface>();
  auto threads = function ? function->getAttrOfType<IntegerAttr>(threadsAttr) : IntegerAttr();
  if (threads && threads.getInt() == op.getThreads() && op.getId() == 0)
    return statement(e, {}, "bar.sync 0;");
  return statement(e, {}, "bar.sync " + llvm::Twine(op.getId()) + ", " + llvm::Twine(op.getThreads()) + ";");
}

Values lowerWarpBarrier(WarpBarrierOp, WarpBarrierOp::Adaptor, PtxBuilder &e) {
  return statement(e, {}, "bar.warp.sync 0xffffffff;");
}

Values lowerClusterArrive(ClusterArriveOp op, ClusterArriveOp::Adaptor, PtxBuilder &e) {
  return statement(e, {}, llvm::Twine("barrier.cluster.arrive.") + (op.getRelaxed() ? "relaxed" : "release") +
                              ".aligned;");
}

Values lowerClusterWait(ClusterWaitOp, ClusterWaitOp::Adaptor, PtxBuilder &e) {
  return statement(e, {}, "barrier.cluster.wait.acquire.aligned;");
}

Values lowerMbarrierInit(MbarrierInitOp, MbarrierInitOp::Adaptor operands, PtxBuilder &e) {
  return statement(e, {e.sharedAddress(operands.getAddress()), operands.getCount()},
                   "mbarrier.init.shared::cta.b64 [$0], $1;");
}

Values lowerMbarrierArrive(MbarrierArriveOp op, MbarrierArriveOp::Adaptor operands, PtxBuilder &e) {
  Value address = op.getCluster() ? operands.getAddress() : e.sharedAddress(operands.getAddress());
  // Not .release.cluster: the assembler makes a fence of the whole device of it, 600 ns an arrival.
  const char *where = op.getCluster() ? ".shared::cluster" : ".shared::cta";
  if (operands.getBytes())
    return statement(e, {address, operands.getBytes()},
                     llvm::Twine("mbarrier.arrive.expect_tx") + where + ".b64 _, [$0], $1;");
  if (operands.getBehind()) // in the address, which it does not change
    return statement(e, {address, operands.getBehind()},
                     llvm::Twine("{ .reg .b32 at; shr.u32 at, $1, 31; add.u32 at, at, $0; mbarrier.arrive") + where +
                         ".b64 _, [at]; }");
  return statement(e, {address}, llvm::Twine("mbarrier.arrive") + where + ".b64 _, [$0];");
}

Values lowerMbarrierWait(MbarrierWaitOp, MbarrierWaitOp::Adaptor operands, PtxBuilder &e) {
  // try_wait sleeps for a while by itself; test_wait, all that sm_80 has, returns at once.
  const char *wait = e.architecture.number >= 90 ? "try_wait" : "test_wait";
  return statement(e, {e.sharedAddress(operands.getAddress()), operands.getParity()},
                   llvm::Twine("{ .reg .pred done; again${:uid}: mbarrier.") + wait +
                       ".parity.shared::cta.b64 done, [$0], $1; @!done bra again${:uid}; }");
}

Values lowerCpAsyncArrive(CpAsyncArriveOp, CpAsyncArriveOp::Adaptor operands, PtxBuilder &e) {
  return statement(e, {e.sharedAddress(operands.getAddress())},
                   "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];");
}

Values lowerFence(FenceOp op, FenceOp::Adaptor, PtxBuilder &e) {
  switch (op.getKind()) {
  case FenceKind::block:
    return statement(e, {}, "fence.acq_rel.cta;");
  case FenceKind::device:
    return statement(e, {}, "fence.acq_rel.gpu;");
  case FenceKind::proxy_async:
    return statement(e, {}, "fence.proxy.async.shared::cta;");
  case FenceKind::mbarrier_init:
    return statement(e, {}, "fence.mbarrier_init.release.cluster;");
  }
  return {};
}

Values lowerAllowNextLaunch(AllowNextLaunchOp, AllowNextLaunchOp::Adaptor, PtxBuilder &e) {
  return statement(e, {}, "griddepcontrol.launch_dependents;");
}

Values lowerAwaitEarlierLaunches(AwaitEarlierLaunchesOp op, AwaitEarlierLaunchesOp::Adaptor operands, PtxBuilder &e) {
  if (!op.getAddress())
    return statement(e, {}, "griddepcontrol.wait;");
  return statement(e, {operands.getAddress(), operands.getZero()},
                   "{ .reg .b32 address, zero; .reg .pred waits; cvt.u32.u64 address, $0; cvt.u32.u64 zero, $1; "
                   "and.b32 address, address, zero; setp.eq.u32 waits, address, 0; @waits griddepcontrol.wait; }");
}

Values lowerShuffle(ShuffleOp op, ShuffleOp::Adaptor operands, PtxBuilder &e) {
  // The last lane that `up` may come from is 0, of the others 31.
  std::string mode = stringifyShuffleMode(op.getMode()).str();
  std::string bound = op.getMode() == ShuffleMode::up ? "0x0" : "0x1f";
  return e.assembly(op.getType(), {operands.getValue(), operands.getLane()},
                    "shfl.sync." + mode + ".b32 $0, $1, $2, " + bound + ", 0xffffffff;", Effect::Exchange);
}

Values lowerVote(VoteOp, VoteOp::Adaptor operands, PtxBuilder &e) {
  return e.assembly(e.b.getI32Type(), {operands.getCondition()}, "vote.sync.ballot.b32 $0, $1, 0xffffffff;",
                    Effect::Exchange);
}

} // namespace

void addOrderPatterns(RewritePatternSet &patterns, LLVMTypeConverter &converter, const Architecture &architecture) {
  addPattern<ThreadIdOp>(patterns, converter, architecture, lowerNumber<ThreadIdOp>);
  addPattern<BlockIdOp>(patterns, converter, architecture, lowerNumber<BlockIdOp>);
  addPattern<GridSizeOp>(patterns, converter, architecture, lowerNumber<GridSizeOp>);
  addPattern<ClusterRankOp>(patterns, converter, architecture, lowerNumber<ClusterRankOp>);
  addPattern<BarrierOp>(patterns, converter, architecture, lowerBarrier);
  addPattern<WarpBarrierOp>(patterns, converter, architecture, lowerWarpBarrier);
  addPattern<ClusterArriveOp>(patterns, converter, architecture, lowerClusterArrive);
  addPattern<ClusterWaitOp>(patterns, converter, architecture, lowerClusterWait);
  addPattern<MbarrierInitOp>(patterns, converter, architecture, lowerMbarrierInit);
  addPattern<MbarrierArriveOp>(patterns, converter, architecture, lowerMbarrierArrive);
  addPattern<MbarrierWaitOp>(patterns, converter, architecture, lowerMbarrierWait);
  addPattern<CpAsyncArriveOp>(patterns, converter, architecture, lowerCpAsyncArrive);
  addPattern<FenceOp>(patterns, converter, architecture, lowerFence);
  addPattern<AllowNextLaunchOp>(patterns, converter, architecture, lowerAllowNextLaunch);
  addPattern<AwaitEarlierLaunchesOp>(patterns, converter, architecture, lowerAwaitEarlierLaunches);
  addPattern<ShuffleOp>(patterns, converter, architecture, lowerShuffle);
  addPattern<VoteOp>(patterns, converter, architecture, lowerVote);
}

} // namespace tenon::nvidia
