// SPDX-License-Identifier: Apache-2.0
// The same with sums of f8, which begin at something else than zero.
module {
  func.func @kernel(%arg0: !tile.view<1, i32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 64>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 38656 : i64} {
    %cst = arith.constant dense<2177> : tensor<17x128xi32>
    %cst_0 = arith.constant dense<4> : tensor<17x128xi32>
    %cst_1 = arith.constant dense<1086> : tensor<17x128xi32>
    %cst_2 = arith.constant dense<1> : tensor<17x64xi32>
    %cst_3 = arith.constant dense<1.000000e+00> : tensor<64x64xf8E5M2>
    %cst_4 = arith.constant dense<1.000000e+00> : tensor<17x64xf8E5M2>
    %c1 = arith.constant 1 : index
    %0 = tile.grid %c1
    %1 = tile.cast %cst_2 : tensor<17x64xi32> -> tensor<17x64xf32>
    %2 = tile.dot %cst_4, %cst_3, %1 : tensor<17x64xf8E5M2>, tensor<64x64xf8E5M2>, tensor<17x64xf32>
    %3 = tile.concat %2, %2 dim 1 : tensor<17x64xf32>, tensor<17x64xf32> -> tensor<17x128xf32>
    %4 = tile.cast unsigned %3 : tensor<17x128xf32> -> tensor<17x128xi32>
    %5 = tile.iota 0 : tensor<2176xi32>
    %6 = tile.reshape %5 : tensor<2176xi32> -> tensor<17x128xi32>
    %7 = arith.muli %6, %cst_1 : tensor<17x128xi32>
    %8 = arith.addi %7, %cst_0 : tensor<17x128xi32>
    %9 = tile.rem unsigned %8, %cst : tensor<17x128xi32>
    tile.scatter %4, %arg0[%9 : tensor<17x128xi32>] : tensor<17x128xi32>, <1, i32>
    return
  }
}
