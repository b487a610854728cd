// SPDX-License-Identifier: Apache-2.0
//
// The tensor memory accelerator: boxes of tensors, and groups of their copies.
#include "tenon/compiler/target/nvidia/ptx/PtxBuilder.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

using Values = SmallVector<Value>;

/// "[$map, {$first, $first+1, ...}]"
std::string boxAt(unsigned map, unsigned first, unsigned count) {
  return "[$" + std::to_string(map) + ", " + registerList(first, count) + "]";
}

Values lowerPrefetchTensorMap(PrefetchTensorMapOp, PrefetchTensorMapOp::Adaptor operands, PtxBuilder &e) {
  e.assembly({}, {operands.getMap()}, "prefetch.tensormap [$0];", Effect::Memory);
  return {};
}

Values lowerTmaLoad(TmaLoadOp op, TmaLoadOp::Adaptor operands, PtxBuilder &e) {
  unsigned rank = op.getCoordinates().size();
  Values inputs{e.sharedAddress(operands.getShared()), operands.getMap()};
  llvm::append_range(inputs, operands.getCoordinates());
  inputs.push_back(e.sharedAddress(operands.getMbarrier()));
  std::string mbarrier = "[$" + std::to_string(2 + rank) + "]", multicast, mask;
  if (operands.getMulticast()) {
    inputs.push_back(operands.getMulticast());
    multicast = ".multicast::cluster";
    mask = ", $" + std::to_string(3 + rank);
  }
  if (op.getOnce()) {
    mask += ", $" + std::to_string(inputs.size());
    inputs.push_back(
        e.assembly(e.b.getI64Type(), {}, "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;", Effect::None)[0]);
    multicast += ".L2::cache_hint";
  }
  e.assembly({}, inputs,
             "cp.async.bulk.tensor." + std::to_string(rank) +
                 "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" + multicast + " [$0], " +
                 boxAt(1, 2, rank) + ", " + mbarrier + mask + ";",
             Effect::Memory);
  return {};
}

Values lowerTmaPrefetch(TmaPrefetchOp op, TmaPrefetchOp::Adaptor operands, PtxBuilder &e) {
  unsigned rank = op.getCoordinates().size();
  Values inputs{operands.getMap()};
  llvm::append_range(inputs, operands.getCoordinates());
  e.assembly({}, inputs,
             "cp.async.bulk.prefetch.tensor." + std::to_string(rank) + "d.L2.global.tile " + boxAt(0, 1, rank) + ";",
             Effect::Memory);
  return {};
}

Values lowerTmaStore(TmaStoreOp op, TmaStoreOp::Adaptor operands, PtxBuilder &e) {
  unsigned rank = op.getCoordinates().size();
  Values inputs{operands.getMap()};
  llvm::append_range(inputs, operands.getCoordinates());
  inputs.push_back(e.sharedAddress(operands.getShared()));
  e.assembly({}, inputs,
             "cp.async.bulk.tensor." + std::to_string(rank) + "d.global.shared::cta.tile.bulk_group " +
                 boxAt(0, 1, rank) + ", [$" + std::to_string(1 + rank) + "];",
             Effect::Memory);
  return {};
}

Values lowerBulkCommit(BulkCommitOp, BulkCommitOp::Adaptor, PtxBuilder &e) {
  e.assembly({}, {}, "cp.async.bulk.commit_group;", Effect::Memory);
  return {};
}

Values lowerBulkWait(BulkWaitOp op, BulkWaitOp::Adaptor, PtxBuilder &e) {
  e.assembly({}, {},
             "cp.async.bulk.wait_group" + llvm::Twine(op.getRead() ? ".read " : " ") + llvm::Twine(op.getPending()) +
                 ";",
             Effect::Memory);
  return {};
}

} // namespace

LogicalResult placeTensorMaps(func::FuncOp function) {
  auto count = function->getAttrOfType<IntegerAttr>(tensorMapsAttr);
  MLIRContext *context = function.getContext();
  SmallVector<Value> maps;
  for (int64_t i = 0; count && i < count.getInt(); ++i) {
    NamedAttribute attributes[] = {
        {StringAttr::get(context, LLVM::LLVMDialect::getByValAttrName()),
         TypeAttr::get(LLVM::LLVMArrayType::get(IntegerType::get(context, 8), tensorMapBytes))},
        {StringAttr::get(context, LLVM::LLVMDialect::getAlignAttrName()),
         IntegerAttr::get(IntegerType::get(context, 64), tensorMapAlignment)}};
    unsigned index = function.getNumArguments();
    function.insertArgument(index, LLVM::LLVMPointerType::get(context), DictionaryAttr::get(context, attributes),
                            function.getLoc());
    maps.push_back(function.getArgument(index));
  }
  bool missing = false;
  function.walk([&](TensorMapOp op) {
    if (op.getNumber() >= maps.size()) {
      op.emitError() << "there is no tensor map " << op.getNumber() << ": " << tensorMapsAttr << " says "
                     << maps.size();
      missing = true;
      return;
    }
    OpBuilder b(op);
    op.replaceAllUsesWith(b.create<LLVM::PtrToIntOp>(op.getLoc(), b.getI64Type(), maps[op.getNumber()]).getResult());
    op.erase();
  });
  return failure(missing);
}

void addBulkPatterns(RewritePatternSet &patterns, LLVMTypeConverter &converter, const Architecture &architecture) {
  addPattern<PrefetchTensorMapOp>(patterns, converter, architecture, lowerPrefetchTensorMap);
  addPattern<TmaLoadOp>(patterns, converter, architecture, lowerTmaLoad);
  addPattern<TmaPrefetchOp>(patterns, converter, architecture, lowerTmaPrefetch);
  addPattern<TmaStoreOp>(patterns, converter, architecture, lowerTmaStore);
  addPattern<BulkCommitOp>(patterns, converter, architecture, lowerBulkCommit);
  addPattern<BulkWaitOp>(patterns, converter, architecture, lowerBulkWait);
}

} // namespace tenon::nvidia
