// SPDX-License-Identifier: Apache-2.0
//
// The tile dialect: what arith, math and scf on tensors lack to describe one program instance of a tile kernel.
#ifndef TENON_TILE_DIALECT_TD
#define TENON_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tenon::tile";
  let summary = "Tile-level programs over windows of memory";
  let description = [{
    A tile value is a builtin ranked tensor of static shape with 1 to 5 dimensions, every one at least 1. Element-wise
    maths is arith and math on tensors, control flow is scf, one program instance is a func.func. This dialect adds
    views (typed windows on memory), the operations that touch memory, the ones that move elements inside and between
    tiles, reductions, dot, random numbers, and the integer operations and conversions for which arith is undefined or
    poison somewhere: here every result is defined.

    Memory model: the loads and stores of one program instance appear in program order; between instances there is no
    order except through atomics.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

def Tile_ViewType : TypeDef<Tile_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "A typed window on memory: base address, run-time sizes and strides (in elements, 64-bit)";
  let description = [{
    `!tile.view<2, f32>` is a two-dimensional window on f32 elements. A boolean element (i1) occupies one byte.
    What is known of a view's strides or alignment is not part of its type: see the `tile.unit_stride` argument
    attribute.
  }];
  let parameters = (ins "unsigned":$rank, "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $rank `,` $elementType `>`";
  let genVerifyDecl = 1;
}

def Tile_AtomicKind : I32EnumAttr<"AtomicKind", "what an atomic update does", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>, I32EnumAttrCase<"exchange", 3>,
  ]> {
  let cppNamespace = "::tenon::tile";
}

def Tile_Initial : I32EnumAttr<"Initial", "what a workspace holds when a launch starts", [
    I32EnumAttrCase<"zero", 0>, I32EnumAttrCase<"anything", 1>, I32EnumAttrCase<"restored", 2>,
  ]> {
  let cppNamespace = "::tenon::tile";
}

#endif // TENON_TILE_DIALECT_TD
