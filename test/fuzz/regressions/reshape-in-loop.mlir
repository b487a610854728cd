// SPDX-License-Identifier: Apache-2.0
// A reshape across dimensions inside a loop, of a cheap value from outside.
module {
  func.func @kernel(%arg0: !tile.view<5, i8> {fuzz.fill = "ints", fuzz.sizes = array<i64: 7, 5, 4, 1, 4>, fuzz.strides = array<i64: -125, 24, 6, 6, 1>, tile.unit_stride = 4 : i64}, %arg1: !tile.view<1, i1> {fuzz.fill = "unit", fuzz.sizes = array<i64: 32>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}, %arg2: !tile.view<1, i1> {fuzz.fill = "any", fuzz.shares = 1 : i64, fuzz.shift = 0 : i64, fuzz.sizes = array<i64: 32>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}, %arg3: index {fuzz.word = 5 : i64}) attributes {fuzz.seed = 5067 : i64} {
    %cst = arith.constant dense<1> : tensor<8x16xi32>
    %c2 = arith.constant 2 : index
    %c0 = arith.constant 0 : index
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %c1 = arith.constant 1 : index
    %0 = tile.grid %c1
    %1 = scf.for %arg4 = %c0 to %c2 step %c1 iter_args(%arg5 = %cst_0) -> (tensor<8x16xf32>) {
      %3 = tile.cast %cst : tensor<8x16xi32> -> tensor<8x16xf32>
      scf.yield %3 : tensor<8x16xf32>
    }
    %2 = tile.cast %1 : tensor<8x16xf32> -> tensor<8x16xi8>
    scf.for %arg4 = %c0 to %c2 step %c1 {
      %3 = tile.reshape %2 : tensor<8x16xi8> -> tensor<128xi8>
      %4 = tile.slice %3 [43] : tensor<128xi8> -> tensor<8xi8>
      %5 = tile.cast unsigned %4 : tensor<8xi8> -> tensor<8xi1>
      tile.store %5, %arg2[%c0] : tensor<8xi1>, <1, i1>
    }
    return
  }
}
