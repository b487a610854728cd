// SPDX-License-Identifier: Apache-2.0
// A choice between f8 values moves them: an infinity must not be rounded to the largest finite value on the way.
module {
  func.func @kernel(%arg0: !tile.view<1, f8E5M2> {fuzz.fill = "any", fuzz.sizes = array<i64: 40>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}, %arg1: !tile.view<1, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 40>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 12 : i64} {
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %0 = tile.grid %c1
    %1 = tile.load %arg0[%c0] : <1, f8E5M2> -> tensor<40xf8E5M2>
    %inf = arith.constant dense<0x7C> : tensor<40xf8E5M2>
    %2 = tile.iota 0 : tensor<40xi32>
    %c20 = arith.constant dense<20> : tensor<40xi32>
    %3 = arith.cmpi slt, %2, %c20 : tensor<40xi32>
    %4 = arith.select %3, %1, %inf : tensor<40xi1>, tensor<40xf8E5M2>
    %5 = tile.cast %4 : tensor<40xf8E5M2> -> tensor<40xf32>
    tile.store %5, %arg1[%c0] : tensor<40xf32>, <1, f32>
    return
  }
}
