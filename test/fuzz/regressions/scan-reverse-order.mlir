// SPDX-License-Identifier: Apache-2.0
// A reverse scan keeps the order of its elements: x -> a x + b, composed, does not commute.
module {
  func.func @kernel(%arg0: !tile.view<2, i32> {fuzz.fill = "ints", fuzz.sizes = array<i64: 3, 9>, fuzz.strides = array<i64: 9, 1>, tile.unit_stride = 1 : i64}, %arg1: !tile.view<2, i32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 3, 9>, fuzz.strides = array<i64: 9, 1>, tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 7 : i64} {
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %0 = tile.grid %c1
    %1 = tile.load %arg0[%c0, %c0] : <2, i32> -> tensor<3x9xi32>
    %2 = tile.iota 1 : tensor<3x9xi32>
    %3:2 = tile.scan %2, %1 dim 1 reverse : (tensor<3x9xi32>, tensor<3x9xi32>) -> (tensor<3x9xi32>, tensor<3x9xi32>) {
    ^bb0(%a0: i32, %b0: i32, %a1: i32, %b1: i32):
      %a = arith.muli %a0, %a1 : i32
      %t = arith.muli %b0, %a1 : i32
      %b = arith.addi %t, %b1 : i32
      tile.yield %a, %b : i32, i32
    }
    tile.store %3#1, %arg1[%c0, %c0] : tensor<3x9xi32>, <2, i32>
    return
  }
}
