// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/ptx/Architecture.h"

#include "tenon/base/Error.h"
#include "tenon/compiler/target/nvidia/dialect/NvidiaDialect.h"

#include "llvm/ADT/TypeSwitch.h"

namespace tenon::nvidia {

Architecture architectureOf(const std::string &name) {
  // mma of 8-bit floats came with PTX 8.4; what sm_80 and sm_86 have, older drivers understand too.
  static const Architecture known[] = {{"sm_80", 80, false, "+ptx80"},
                                       {"sm_86", 86, false, "+ptx80"},
                                       {"sm_89", 89, false, "+ptx84"},
                                       {"sm_90", 90, false, "+ptx84"},
                                       {"sm_90a", 90, true, "+ptx84"}};
  for (const Architecture &architecture : known)
    if (architecture.name == name)
      return architecture;
  throw Error("unknown architecture \"" + name + "\": use sm_80, sm_86, sm_89, sm_90 or sm_90a");
}

int minimumArchitecture(mlir::Operation *op) {
  auto isByteFloat = [](OperandType type) { return type == OperandType::e4m3 || type == OperandType::e5m2; };
  return llvm::TypeSwitch<mlir::Operation *, int>(op)
      .Case<ClusterRankOp, MapSharedOp, ClusterArriveOp, ClusterWaitOp, StoreAsyncOp, StMatrixOp, TensorMapOp,
            PrefetchTensorMapOp, TmaLoadOp, TmaPrefetchOp, TmaStoreOp, BulkCommitOp, BulkWaitOp, AllowNextLaunchOp, AwaitEarlierLaunchesOp>(
          [](auto) { return 90; })
      .Case<LoadOp, StoreOp>([](auto access) { return access.getSpace() == Space::cluster ? 90 : 80; })
      .Case([](MbarrierArriveOp arrive) { return arrive.getBytes() || arrive.getCluster() ? 90 : 80; })
      .Case([](FenceOp fence) {
        return fence.getKind() == FenceKind::proxy_async || fence.getKind() == FenceKind::mbarrier_init ? 90 : 80;
      })
      .Case([&](MmaOp mma) { return isByteFloat(mma.getAType()) ? 89 : 80; })
      .Default([&](mlir::Operation *) { return isSpecific(op) ? 90 : 80; });
}

bool isSpecific(mlir::Operation *op) {
  if (auto load = llvm::dyn_cast<TmaLoadOp>(op))
    return bool(load.getMulticast()); // sm_90 has it too, but the assembler warns of it there
  return llvm::isa<WgmmaFenceOp, WgmmaOp, WgmmaCommitOp, WgmmaWaitOp, SetMaxRegistersOp>(op);
}

namespace {

/// What the user of the compiler would look for in NVIDIA's manual.
std::string describe(mlir::Operation *op) {
  std::string name = op->getName().stripDialect().str();
  return llvm::TypeSwitch<mlir::Operation *, std::string>(op)
      .Case([&](LoadOp) { return "load from another block's shared memory"; })
      .Case([&](StoreOp) { return "store to another block's shared memory"; })
      .Case([&](MbarrierArriveOp arrive) {
        return arrive.getCluster() ? "mbarrier_arrive in another block" : "mbarrier_arrive that expects bytes";
      })
      .Case([&](TmaLoadOp load) { return load.getMulticast() ? "tma_load to several blocks" : "tma_load"; })
      .Case([&](FenceOp fence) { return "fence " + stringifyFenceKind(fence.getKind()).str(); })
      .Case([&](MmaOp mma) { return "mma of " + stringifyOperandType(mma.getAType()).str(); })
      .Default([&](mlir::Operation *) { return name; });
}

} // namespace

mlir::LogicalResult refuseMissing(mlir::Operation *root, const Architecture &architecture) {
  bool missing = false;
  root->walk([&](mlir::Operation *op) {
    int needed = minimumArchitecture(op);
    bool specific = isSpecific(op);
    if (needed <= architecture.number && (!specific || architecture.specific))
      return;
    op->emitError() << describe(op) << " needs sm_" << needed << (specific ? "a" : "") << ", not "
                    << architecture.name;
    missing = true;
  });
  return mlir::failure(missing);
}

} // namespace tenon::nvidia
