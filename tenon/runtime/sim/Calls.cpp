// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/sim/Calls.h"

#include "tenon/runtime/sim/Simulator.h"

namespace tenon::sim {

std::span<const SimSymbol> simSymbols() {
  static const SimSymbol symbols[] = {
#define CALL(name, function) {"tenon_sim_" name, reinterpret_cast<void *>(&function)}
      CALL("load", load),
      CALL("store", store),
      CALL("atomic", atomic),
      CALL("atomic_cas", atomicCas),
      CALL("map_shared", mapShared),
      CALL("cp_async", cpAsync),
      CALL("cp_async_commit", cpAsyncCommit),
      CALL("cp_async_wait", cpAsyncWait),
      CALL("cp_async_arrive", cpAsyncArrive),
      CALL("barrier", barrier),
      CALL("warp_barrier", warpBarrier),
      CALL("cluster_arrive", clusterArrive),
      CALL("cluster_wait", clusterWait),
      CALL("store_async", storeAsync),
      CALL("mbarrier_init", mbarrierInit),
      CALL("mbarrier_arrive", mbarrierArrive),
      CALL("mbarrier_wait", mbarrierWait),
      CALL("fence", fence),
      CALL("start_early", startEarly),
      CALL("await_earlier_launches", awaitEarlierLaunches),
      CALL("shuffle", shuffle),
      CALL("vote", vote),
      CALL("ldmatrix", ldmatrix),
      CALL("stmatrix", stmatrix),
      CALL("mma", mma),
      CALL("tma_load", tmaLoad),
      CALL("tma_store", tmaStore),
      CALL("bulk_commit", bulkCommit),
      CALL("bulk_wait", bulkWait),
      CALL("wgmma_fence", wgmmaFence),
      CALL("wgmma", wgmma),
      CALL("wgmma_commit", wgmmaCommit),
      CALL("wgmma_wait", wgmmaWait),
      CALL("wgmma_read", wgmmaRead),
      CALL("wgmma_write", wgmmaWrite),
      CALL("set_max_registers", setMaxRegisters),
      CALL("approx", approx),
      CALL("pack", pack),
      CALL("permute_bytes", permuteBytes),
#undef CALL
  };
  return symbols;
}

} // namespace tenon::sim
