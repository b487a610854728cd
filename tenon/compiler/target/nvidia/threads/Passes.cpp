// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/target/nvidia/threads/Passes.h"

#include "mlir/Pass/PassRegistry.h"

namespace tenon::nvidia {

void registerThreadPasses() {
  mlir::registerPass([] { return createRelaxPrecisionPass(); });
  mlir::registerPass([] { return createChooseInstructionsPass(); });
  mlir::registerPass([] { return createChooseLayoutsPass(); });
  mlir::registerPass([] { return createRecomputePass(); });
  mlir::registerPass([] { return createPipelineLoadsPass(); });
  mlir::registerPass([] { return createInsertBarriersPass(); });
  mlir::registerPass([] { return createSeparateTeamsPass(); });
  mlir::registerPass([] { return createShortenLivesPass(); });
  mlir::registerPass([] { return createSinkToUsesPass(); });
  mlir::registerPass([] { return createEarlyLoadsPass(); });
  mlir::registerPass([] { return createShareTailPass(); });
}

} // namespace tenon::nvidia
