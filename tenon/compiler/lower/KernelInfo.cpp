// SPDX-License-Identifier: Apache-2.0
#include "tenon/compiler/lower/KernelInfo.h"

#include "tenon/compiler/dialect/TileDialect.h"
#include "tenon/compiler/lower/Elements.h"

using namespace mlir;

namespace tenon::lower {

func::FuncOp kernelOf(ModuleOp module) { return *module.getOps<func::FuncOp>().begin(); }

Value viewWrittenBy(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<tile::StoreOp, tile::ScatterOp, tile::AtomicRMWOp, tile::AtomicCASOp>([](auto o) { return o.getView(); })
      .Default([](Operation *) { return Value(); });
}

std::string placeOf(Location where) {
  auto loc = llvm::dyn_cast<FileLineColLoc>(where);
  return loc ? loc.getFilename().str() + ":" + std::to_string(loc.getLine()) : "";
}

KernelInfo describeKernel(ModuleOp module) {
  KernelInfo info;
  func::FuncOp kernel = kernelOf(module);
  info.name = kernel.getName().str();
  for (BlockArgument argument : kernel.getArguments()) {
    auto name = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(), tile::argumentNameAttr);
    auto view = llvm::dyn_cast<tile::ViewType>(argument.getType());
    info.arguments.push_back({name ? name.str() : "argument " + std::to_string(argument.getArgNumber()), bool(view),
                              view ? byteSize(memoryType(view.getElementType())) : 0, view ? view.getRank() : 0});
  }
  info.promisesNoOverlap = kernel->hasAttr(tile::promisesNoOverlapAttr);
  info.written.resize(kernel.getNumArguments());
  kernel.walk([&](Operation *op) {
    if (Value view = viewWrittenBy(op))
      if (auto argument = llvm::dyn_cast<BlockArgument>(view))
        info.written[argument.getArgNumber()] = true;
    if (auto require = llvm::dyn_cast<tile::RequireOp>(op))
      info.requirements.push_back({require.getMessage().str(), placeOf(op->getLoc())});
    if (auto workspace = llvm::dyn_cast<tile::WorkspaceOp>(op)) {
      auto type = workspace.getView().getType();
      info.workspaces.push_back({byteSize(memoryType(type.getElementType())), type.getRank(), workspace.getInitial()});
    }
  });
  return info;
}

} // namespace tenon::lower
