// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file -tenon-cpu-lower-to-loops %s > /dev/null
//
// The loops are valid IR as they are emitted: the verifier runs after the pass. The starting value of a reduction inside
// an outer loop once came after that loop, where it does not dominate its use; constant folding in the next phase
// happened to repair it.

func.func @row_sums(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<4x64xf32>
  %s = tile.reduce %t dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<4x1xf32>, !tile.view<2, f32>
  return
}
