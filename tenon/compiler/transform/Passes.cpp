// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/transform/Passes.h"

#include "tenon/compiler/transform/ExpandMath.h"
#include "tenon/compiler/transform/HideMath.h"
#include "tenon/compiler/transform/SplitReduction.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

namespace tenon {

mlir::LogicalResult simplifyTileIr(mlir::ModuleOp module, RandomBits randomBits) {
  mlir::PassManager pm(module.getContext());
  pm.enableVerifier(false); // the input is verified, and the passes are tested
  pm.addPass(createExpandRandomPass(randomBits));
  pm.addPass(createHideMathPass());
  pm.addPass(mlir::createCanonicalizerPass());
  pm.addPass(mlir::createCSEPass());
  pm.addPass(createShowMathPass());
  pm.addPass(createCompareIntegersPass());
  pm.addPass(createShiftEqualityPass());
  return pm.run(module);
}

void registerTransformPasses() {
  mlir::registerPass([] { return createExpandRandomPass(); });
  mlir::registerPass(createCompareIntegersPass);
  mlir::registerPass(createExpandMathPass);
  mlir::registerPass(createHideMathPass);
  mlir::registerPass(createShiftEqualityPass);
  mlir::registerPass(createShowMathPass);
  mlir::registerPass([] { return createSplitReductionPass(); });
}

} // namespace tenon
