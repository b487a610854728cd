// SPDX-License-Identifier: Apache-2.0
//
// LLVM attributes a line to the file of its scope: an op of another file than its function's gets a scope of its own
// for that file. The unit says DebugDirectivesOnly: lines, and nothing that would make ptxas think of a debugger, for
// which it gives up optimising.
#include "tenon/compiler/target/nvidia/ptx/LineInformation.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace tenon::nvidia {
namespace {

/// The innermost line of the source that a location leads to; null if none.
FileLineColLoc lineOf(Location location) {
  FileLineColLoc found;
  location->walk([&](Location part) {
    found = dyn_cast<FileLineColLoc>(part);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

LLVM::DIFileAttr fileOf(FileLineColLoc line) {
  StringRef path = line.getFilename().getValue();
  return LLVM::DIFileAttr::get(line.getContext(), llvm::sys::path::filename(path), llvm::sys::path::parent_path(path));
}

/// The line of the function, or of the first op that has one.
FileLineColLoc lineOf(LLVM::LLVMFuncOp function) {
  FileLineColLoc line = lineOf(function.getLoc());
  if (!line)
    function.walk([&](Operation *op) {
      line = lineOf(op->getLoc());
      return line ? WalkResult::interrupt() : WalkResult::advance();
    });
  return line;
}

void attachLines(LLVM::LLVMFuncOp function) {
  FileLineColLoc whole = lineOf(function);
  if (!whole)
    return;
  MLIRContext *context = function.getContext();
  LLVM::DIFileAttr file = fileOf(whole);
  auto distinct = [&] { return DistinctAttr::create(UnitAttr::get(context)); };
  auto unit = LLVM::DICompileUnitAttr::get(distinct(), llvm::dwarf::DW_LANG_C_plus_plus, file,
                                           StringAttr::get(context, "tenon"), /*isOptimized=*/true,
                                           LLVM::DIEmissionKind::DebugDirectivesOnly);
  auto type = LLVM::DISubroutineTypeAttr::get(context, llvm::dwarf::DW_CC_normal, {});
  auto flags = LLVM::DISubprogramFlags::Definition | LLVM::DISubprogramFlags::Optimized;
  auto name = StringAttr::get(context, function.getName());
  auto scope = LLVM::DISubprogramAttr::get(context, distinct(), unit, file, name, name, file, whole.getLine(),
                                           whole.getLine(), flags, type);
  auto within = [&](FileLineColLoc line) -> Location {
    Attribute place = scope;
    if (LLVM::DIFileAttr own = fileOf(line); own != file)
      place = LLVM::DILexicalBlockFileAttr::get(context, scope, own, /*discriminator=*/0);
    return FusedLoc::get(context, {line}, place);
  };
  llvm::DenseMap<Location, Location> known;
  function->walk([&](Operation *op) {
    if (op == function)
      return;
    auto [entry, isNew] = known.try_emplace(op->getLoc(), op->getLoc());
    if (isNew) {
      FileLineColLoc line = lineOf(op->getLoc());
      entry->second = within(line ? line : whole);
    }
    op->setLoc(entry->second);
  });
  function->setLoc(FusedLoc::get(context, {whole}, scope));
}

} // namespace

void attachLines(ModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      attachLines(function);
}

} // namespace tenon::nvidia
