// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/transform/Passes.h"

#include "tenon/compiler/transform/ExpandMath.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

namespace tenon {

mlir::LogicalResult simplifyTileIr(mlir::ModuleOp module) {
  mlir::PassManager pm(module.getContext());
  pm.enableVerifier(false); // the input is verified, and the passes are tested
  pm.addPass(createExpandRandomPass());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
  return pm.run(module);
}

void registerTransformPasses() {
  mlir::registerPass(createExpandRandomPass);
  mlir::registerPass(createExpandMathPass);
}

} // namespace tenon
