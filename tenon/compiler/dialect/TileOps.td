// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TILE_OPS_TD
#define TENON_TILE_OPS_TD

include "tenon/compiler/dialect/TileDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===--------------------------------------------------------------------------------------------------------------===//
// Types of operands
//===--------------------------------------------------------------------------------------------------------------===//

def Tile_Element : AnyTypeOf<[F64, F32, F16, BF16, F8E4M3FN, F8E5M2, I64, I32, I16, I8, I1], "a tile element type">;
def Tile_Tile : StaticShapeTensorOf<[Tile_Element]>;
def Tile_IntOrIndex : AnyTypeOf<[I64, I32, I16, I8, Index], "an integer or index">;
def Tile_IntLike : AnyTypeOf<[Tile_IntOrIndex, StaticShapeTensorOf<[I64, I32, I16, I8]>],
                             "an integer, an index or a tile of integers">;
def Tile_IndexTile : StaticShapeTensorOf<[I64, I32]>;
def Tile_MaskTile : StaticShapeTensorOf<[I1]>;
def Tile_AnyScalar : AnyTypeOf<[Tile_Element, Index], "a scalar">;

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

//===--------------------------------------------------------------------------------------------------------------===//
// The launch: grid, preconditions, workspace
//===--------------------------------------------------------------------------------------------------------------===//

def Tile_GridOp : Tile_Op<"grid", [InferTypeOpAdaptor]> {
  let summary = "Declares the launch grid and gives this program instance's place in it";
  let description = [{
    The operands are the number of program instances along 1 to 3 axes, computed from view sizes, scalars and
    parameters only. The results lie in [0, extent). The op stands once in a kernel, at its top level. An extent of
    zero or less makes the launch a no-op. No order between instances is promised.

    ```mlir
    %i, %j = tile.grid %rows, %columns
    ```
  }];
  let arguments = (ins Variadic<Index>:$extents);
  let results = (outs Variadic<Index>:$ids);
  let assemblyFormat = "$extents attr-dict";
  let hasVerifier = 1;
}

def Tile_RequireOp : Tile_Op<"require"> {
  let summary = "A precondition of the launch";
  let description = [{
    Evaluated once before anything runs, from view sizes, scalars and parameters only; when it does not hold the launch
    is refused with the message. Stands at the top level of a kernel.
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
  let hasVerifier = 1;
}

def Tile_WorkspaceOp : Tile_Op<"workspace"> {
  let summary = "Memory shared by all instances of one launch";
  let description = [{
    A row-major view of the given sizes (computed like the grid's), owned by the runtime, undefined after the launch.
    Stands at the top level of a kernel. When the launch starts it is `zero`; or it holds `anything`, which costs
    nothing; or it is zero and the launch leaves it so (`restored`), which has to be seen to only once.
  }];
  let arguments = (ins Variadic<Index>:$sizes,
                       DefaultValuedAttr<Tile_Initial, "::tenon::tile::Initial::zero">:$initial);
  let results = (outs Tile_ViewType:$view);
  let assemblyFormat = "$sizes attr-dict `:` type($view)";
  let hasVerifier = 1;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Views and memory
//===--------------------------------------------------------------------------------------------------------------===//

def Tile_SizeOp : Tile_Op<"size", [Pure]> {
  let summary = "The run-time size of one dimension of a view";
  let arguments = (ins Tile_ViewType:$view, I64Attr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$view `,` $dim attr-dict `:` type($view)";
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "Reads a tile at an element offset";
  let description = [{
    Element (i, j, ...) of the result is the view's element (offset0 + i, offset1 + j, ...); where that lies outside the
    view in any dimension (before it or past it) the result is `padding`, zero when absent. Memory outside the view is
    not touched. A stored boolean byte other than 0 reads as true.

    ```mlir
    %t = tile.load %x[%row, %c0] padding %ninf : f32 : !tile.view<2, f32> -> tensor<1x1024xf32>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$offsets, Optional<Tile_Element>:$padding);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $view `[` $offsets `]` (`padding` $padding^ `:` type($padding))? attr-dict `:` type($view) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a tile at an element offset";
  let description = [{
    The mirror image of `tile.load`: elements that fall outside the view are dropped. A boolean is written as 0 or 1.
  }];
  let arguments = (ins Tile_Tile:$value, Tile_ViewType:$view, Variadic<Index>:$offsets);
  let assemblyFormat = "$value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` type($view)";
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "Reads elements named by tiles of indices";
  let description = [{
    One tile of indices per dimension of the view, all of the result's shape. An element whose index lies outside the
    view, or whose mask is false, is `padding` (zero when absent).
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Tile_IndexTile>:$indices, Optional<Tile_MaskTile>:$mask,
                       Optional<Tile_Element>:$padding);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $view `[` $indices `:` type($indices) `]` (`mask` $mask^ `:` type($mask))?
    (`padding` $padding^ `:` type($padding))? attr-dict `:` type($view) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ScatterOp : Tile_Op<"scatter", [AttrSizedOperandSegments, MemoryEffects<[MemWrite]>]> {
  let summary = "Writes elements named by tiles of indices";
  let description = [{
    Elements outside the view or masked off are dropped. When one tile names an element twice, one of the values is
    written; which one is not defined.
  }];
  let arguments = (ins Tile_Tile:$value, Tile_ViewType:$view, Variadic<Tile_IndexTile>:$indices,
                       Optional<Tile_MaskTile>:$mask);
  let assemblyFormat = [{
    $value `,` $view `[` $indices `:` type($indices) `]` (`mask` $mask^ `:` type($mask))? attr-dict
    `:` type($value) `,` type($view)
  }];
  let hasVerifier = 1;
}

def Tile_AtomicRMWOp : Tile_Op<"atomic_rmw", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>,
                                             AllTypesMatch<["value", "old"]>]> {
  let summary = "Atomic updates of elements named by tiles of indices";
  let description = [{
    Each element is updated once, atomically and sequentially consistent, in no defined order; the result is what was
    there before (zero outside the view or where masked off, and nothing is updated there). Elements are 32 or 64 bits
    wide; max and min on floats propagate NaN; integer max and min are signed unless `unsigned`. Determinism: integer
    results in memory are the same run to run, float additions are not.
  }];
  let arguments = (ins Tile_AtomicKind:$kind, Tile_Tile:$value, Tile_ViewType:$view, Variadic<Tile_IndexTile>:$indices,
                       Optional<Tile_MaskTile>:$mask, UnitAttr:$is_unsigned);
  let results = (outs Tile_Tile:$old);
  let assemblyFormat = [{
    $kind $value `,` $view `[` $indices `:` type($indices) `]` (`mask` $mask^ `:` type($mask))?
    (`unsigned` $is_unsigned^)? attr-dict `:` type($value) `,` type($view)
  }];
  let hasVerifier = 1;
}

def Tile_AtomicCASOp : Tile_Op<"atomic_cas", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>,
                                             AllTypesMatch<["expected", "desired", "old"]>]> {
  let summary = "Atomic compare-exchange of elements named by tiles of indices";
  let description = [{
    Where the element equals `expected` bit for bit it becomes `desired`; the result is what was there before. Bounds,
    mask and widths as in `tile.atomic_rmw`.
  }];
  let arguments = (ins Tile_Tile:$expected, Tile_Tile:$desired, Tile_ViewType:$view,
                       Variadic<Tile_IndexTile>:$indices, Optional<Tile_MaskTile>:$mask);
  let results = (outs Tile_Tile:$old);
  let assemblyFormat = [{
    $expected `,` $desired `,` $view `[` $indices `:` type($indices) `]` (`mask` $mask^ `:` type($mask))? attr-dict
    `:` type($expected) `,` type($view)
  }];
  let hasVerifier = 1;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Making and moving elements
//===--------------------------------------------------------------------------------------------------------------===//

def Tile_SplatOp : Tile_Op<"splat", [Pure]> {
  let summary = "A tile with every element equal to a scalar";
  let arguments = (ins Tile_Element:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "0, 1, 2, ... along one dimension";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Tile_IndexTile:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure]> {
  let summary = "Repeats the dimensions of size 1";
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_ReshapeOp : Tile_Op<"reshape", [Pure]> {
  let summary = "The same elements, in row-major order, in another shape";
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_TransposeOp : Tile_Op<"transpose", [Pure]> {
  let summary = "Permutes dimensions: dimension d of the result is dimension permutation[d] of the operand";
  let arguments = (ins Tile_Tile:$value, DenseI64ArrayAttr:$permutation);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value $permutation attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_SliceOp : Tile_Op<"slice", [Pure]> {
  let summary = "A box cut out of a tile at a static offset";
  let arguments = (ins Tile_Tile:$value, DenseI64ArrayAttr:$offsets);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value $offsets attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_ConcatOp : Tile_Op<"concat", [Pure]> {
  let summary = "Tiles laid end to end along one dimension";
  let arguments = (ins Variadic<Tile_Tile>:$values, I64Attr:$dim);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$values `dim` $dim attr-dict `:` type($values) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ScalarOp : Tile_Op<"scalar", [Pure, InferTypeOpAdaptor]> {
  let summary = "The element of a tile of one element";
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Element:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Arithmetic that arith leaves undefined
//===--------------------------------------------------------------------------------------------------------------===//

def Tile_CastOp : Tile_Op<"cast", [Pure]> {
  let summary = "Converts between element types, every case defined";
  let description = [{
    | from | to | rule |
    |---|---|---|
    | float | wider float | exact |
    | float | f32, f16, bf16 | nearest, ties to even (tile.ties_away: away from zero); overflow gives infinity |
    | float | f8 | nearest, ties to even; beyond the largest finite value, infinity included, gives the largest finite value |
    | float | integer | towards zero, saturating; NaN gives 0 |
    | integer | float | nearest, ties to even |
    | integer | narrower integer | the low bits |
    | integer | wider integer | sign-extended, or zero-extended when `unsigned` |
    | i1 | any | 0 or 1 (i1 is always unsigned) |

    `unsigned` speaks of the integer side; between two integers, of the operand. NaN stays NaN. Works on scalars, on
    index (a signed 64-bit integer) and on tiles.
  }];
  let arguments = (ins AnyTypeOf<[Tile_AnyScalar, Tile_Tile]>:$value, UnitAttr:$is_unsigned);
  let results = (outs AnyTypeOf<[Tile_AnyScalar, Tile_Tile]>:$result);
  let assemblyFormat = "(`unsigned` $is_unsigned^)? $value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

class Tile_IntBinaryOp<string mnemonic> : Tile_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let arguments = (ins Tile_IntLike:$lhs, Tile_IntLike:$rhs, UnitAttr:$is_unsigned);
  let results = (outs Tile_IntLike:$result);
  let assemblyFormat = "(`unsigned` $is_unsigned^)? $lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_DivOp : Tile_IntBinaryOp<"div"> {
  let summary = "Integer division towards zero; x / 0 is 0, and the smallest integer / -1 is itself";
}
def Tile_RemOp : Tile_IntBinaryOp<"rem"> {
  let summary = "The remainder that goes with tile.div: lhs - (lhs / rhs) * rhs, so x rem 0 is x";
}
def Tile_ShlOp : Tile_IntBinaryOp<"shl"> {
  let summary = "Shift left; by the width or more (the amount read as unsigned) gives 0";
}
def Tile_ShrOp : Tile_IntBinaryOp<"shr"> {
  let summary = "Shift right, arithmetic unless `unsigned`; by the width or more gives the sign (or 0)";
}

def Tile_PhiloxOp : Tile_Op<"philox", [Pure]> {
  let summary = "Counter-based random bits: Philox4x32-10";
  let description = [{
    For each element: key = the 64-bit seed, counter = the 64-bit element in the low two words, zero in the high two.
    The four results are the four 32-bit words of the generator. The same on every target.
    Where each element needs one word, tile.random_bits costs a quarter.
  }];
  let arguments = (ins I64:$seed, StaticShapeTensorOf<[I64]>:$counter);
  let results = (outs StaticShapeTensorOf<[I32]>:$word0, StaticShapeTensorOf<[I32]>:$word1,
                      StaticShapeTensorOf<[I32]>:$word2, StaticShapeTensorOf<[I32]>:$word3);
  let assemblyFormat = "$seed `,` $counter attr-dict `:` type($counter) `->` type($word0) `,` type($word1) `,` type($word2) `,` type($word3)";
  let hasVerifier = 1;
}

def Tile_RandomBitsOp : Tile_Op<"random_bits", [Pure]> {
  let summary = "Counter-based random bits, 32 or 16 for each element";
  let description = [{
    The element with the 64-bit counter c (read as unsigned) gets word c mod 4 of Philox4x32 with the seed as key and
    c / 4 as counter, as tile.philox has them. Four neighbouring counters share one evaluation of the generator, and a
    target that finds them in one thread or vector makes use of it. The same on every target.

    Of 16 bits, an evaluation makes sixteen. The upper byte of a number is one of the 16 bytes that are evaluated, the
    lower one the exclusive or of two that others have for upper ones: any two numbers are 32 uniform bits, three of one
    evaluation need not be 48. With h the lower or upper half of word 0 or 1 (lower of 0, upper of 0, lower of 1, upper
    of 1), g the same of words 2 and 3, and s() for the two bytes of a half exchanged, the numbers are

    ```
    0 .. 3           4 .. 7              8 .. 11                12 .. 15
    h ^ (g & 0xff)   g ^ (s(h) & 0xff)   s(h) ^ (s(g) & 0xff)   s(g) ^ (h & 0xff)
    ```

    so the last eight are the first eight of words whose bytes are exchanged. 64 neighbours share four evaluations:
    first come the first eight numbers of each of the four, then their last eight. (Registers of 512 bits then have them in
    order, and eight neighbours have one evaluation.) With c = 64 q + 32 b + 8 k + i, the counter is 4 q + k, and the
    element gets number 8 b + i.

    The generator has so many `rounds`; 7 are the fewest that pass the tests of its authors.

    ```mlir
    %bits = tile.random_bits %seed, %counter : tensor<4x1024xi64> -> tensor<4x1024xi32>
    %half = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<4x1024xi64> -> tensor<4x1024xi16>
    ```
  }];
  let arguments = (ins I64:$seed, StaticShapeTensorOf<[I64]>:$counter, DefaultValuedAttr<I64Attr, "10">:$rounds);
  let results = (outs StaticShapeTensorOf<[I16, I32]>:$bits);
  let assemblyFormat = "$seed `,` $counter attr-dict `:` type($counter) `->` type($bits)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool areHalves() { return getType().getElementTypeBitWidth() == 16; } ///< of words, mixed
    /// Elements that share an evaluation of the generator.
    int64_t getSharers() { return areHalves() ? 16 : 4; }
    /// Elements, from a multiple of as many on, that whole evaluations make.
    int64_t getPeriod() { return areHalves() ? 64 : 4; }
  }];
}

//===--------------------------------------------------------------------------------------------------------------===//
// Reductions, scans, dot
//===--------------------------------------------------------------------------------------------------------------===//

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ParentOneOf<["ReduceOp", "ScanOp"]>]> {
  let summary = "Ends a combine region";
  let arguments = (ins Variadic<Tile_Element>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Tile_ReduceOp : Tile_Op<"reduce", [RecursiveMemoryEffects, SingleBlock, IsolatedFromAbove]> {
  let summary = "Combines the elements along one dimension, which stays with size 1";
  let description = [{
    The region combines two partial results (all left ones, then all right ones) by straight-line code: scalar ops of
    arith, math and tile without side effects, and nothing from outside the region. It
    must be associative and commutative up to rounding: the order is not defined, but is the same from run to run on
    one target. A single element is passed through unchanged.

    ```mlir
    %s = tile.reduce %t dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$values, I64Attr:$dim);
  let results = (outs Variadic<Tile_Tile>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = "$values `dim` $dim attr-dict `:` functional-type($values, $results) $combine";
  let hasVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [RecursiveMemoryEffects, SingleBlock, IsolatedFromAbove]> {
  let summary = "Inclusive running combination along one dimension";
  let description = [{
    Element i of the result combines elements 0..i of the operand along the dimension (i..n-1 when `reverse`), in their
    order; how they are grouped is not defined. The region is as in `tile.reduce`; associativity is required,
    commutativity is not.
  }];
  let arguments = (ins Variadic<Tile_Tile>:$values, I64Attr:$dim, UnitAttr:$reverse);
  let results = (outs Variadic<Tile_Tile>:$results);
  let regions = (region SizedRegion<1>:$combine);
  let assemblyFormat = [{
    $values `dim` $dim (`reverse` $reverse^)? attr-dict `:` functional-type($values, $results) $combine
  }];
  let hasVerifier = 1;
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a * b";
  let description = [{
    a is M x K, b is K x N, acc and the result M x N.

    | a and b | acc |
    |---|---|
    | f64 | f64 |
    | f32, f16, bf16, f8e4m3, f8e5m2 (both the same type, or any two f8) | f32 |
    | i8 | i32 (wraps); a_unsigned and b_unsigned say how the bytes are read |

    Products of 16- and 8-bit operands are exact in the accumulator type; the order of summation and whether products
    and sums are contracted into fused multiply-adds is not defined, but is the same from run to run on one target.
    f32 operands are not rounded unless `allow_tf32`. Sums of f8 are of f32 unless `fast_accum`, which leaves them to the
    matrix unit: with 13 bits of fraction where it has no more.
  }];
  let arguments = (ins Tile_Tile:$a, Tile_Tile:$b, Tile_Tile:$acc, UnitAttr:$a_unsigned, UnitAttr:$b_unsigned,
                       UnitAttr:$allow_tf32, UnitAttr:$fast_accum);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc)";
  let hasVerifier = 1;
}

//===--------------------------------------------------------------------------------------------------------------===//
// Looking inside
//===--------------------------------------------------------------------------------------------------------------===//

def Tile_AssertOp : Tile_Op<"assert", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Fails the launch when any element is false";
  let arguments = (ins AnyTypeOf<[I1, Tile_MaskTile]>:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
  let hasVerifier = 1;
}

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Prints a label, the program ids and a scalar or tile";
  let arguments = (ins StrAttr:$label, AnyTypeOf<[Tile_AnyScalar, Tile_Tile]>:$value, UnitAttr:$is_unsigned);
  let assemblyFormat = "$label `,` (`unsigned` $is_unsigned^)? $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

#endif // TENON_TILE_OPS_TD
