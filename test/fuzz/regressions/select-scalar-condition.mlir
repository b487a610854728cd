// SPDX-License-Identifier: Apache-2.0
// A scalar condition chose between whole tiles, and was taken for a tile.
module {
  func.func @kernel(%arg0: !tile.view<1, bf16> {fuzz.fill = "unit", fuzz.sizes = array<i64: 5>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 31 : i64} {
    %c0 = arith.constant 0 : index
    %cst = arith.constant dense<1> : tensor<16x13xi64>
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<16x13xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<16x13xf32>
    %cst_2 = arith.constant dense<1> : tensor<4x13xi32>
    %c1 = arith.constant 1 : index
    %0:2 = tile.grid %c1, %c1
    %1 = tile.cast %cst_2 : tensor<4x13xi32> -> tensor<4x13xi1>
    %2 = tile.slice %1 [0, 4] : tensor<4x13xi1> -> tensor<1x1xi1>
    %3 = tile.scalar %2 : tensor<1x1xi1>
    %4 = arith.select %3, %cst_1, %cst_0 : tensor<16x13xf32>
    %5 = tile.cast %4 : tensor<16x13xf32> -> tensor<16x13xi32>
    %6:2 = tile.reduce %5, %cst dim 1 : (tensor<16x13xi32>, tensor<16x13xi64>) -> (tensor<16x1xi32>, tensor<16x1xi64>) {
    ^bb0(%arg1: i32, %arg2: i64, %arg3: i32, %arg4: i64):
      %10 = arith.addi %arg1, %arg3 : i32
      %11 = arith.maxsi %arg2, %arg4 : i64
      tile.yield %10, %11 : i32, i64
    }
    %7 = tile.reshape %6#0 : tensor<16x1xi32> -> tensor<16xi32>
    %8 = tile.slice %7 [9] : tensor<16xi32> -> tensor<4xi32>
    %9 = tile.cast unsigned %8 : tensor<4xi32> -> tensor<4xbf16>
    tile.store %9, %arg0[%c0] : tensor<4xbf16>, <1, bf16>
    return
  }
}
