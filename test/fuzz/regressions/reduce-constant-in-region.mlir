// SPDX-License-Identifier: Apache-2.0
// Constants were moved out of a combine region, which must not use anything from outside.
module {
  func.func @kernel(%arg0: !tile.view<2, i32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 3, 40>, fuzz.strides = array<i64: 40, 1>, tile.unit_stride = 1 : i64}, %arg1: !tile.view<2, i32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 3, 1>, fuzz.strides = array<i64: 1, 1>, tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 19 : i64} {
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %0 = tile.grid %c1
    %1 = tile.load %arg0[%c0, %c0] : <2, i32> -> tensor<3x40xi32>
    %2 = tile.reduce %1 dim 1 : (tensor<3x40xi32>) -> tensor<3x1xi32> {
    ^bb0(%a: i32, %b: i32):
      %sum = arith.addi %a, %b : i32
      %c255_i32 = arith.constant 255 : i32
      %low = arith.andi %sum, %c255_i32 : i32
      tile.yield %low : i32
    }
    tile.store %2, %arg1[%c0, %c0] : tensor<3x1xi32>, <2, i32>
    return
  }
}
