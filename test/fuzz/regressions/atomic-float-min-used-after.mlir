// SPDX-License-Identifier: Apache-2.0
// The old values of a float atomic that the hardware has no instruction for, used afterwards.
module {
  func.func @kernel(%arg0: !tile.view<1, f32> {fuzz.fill = "ints", fuzz.sizes = array<i64: 1>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}, %arg1: !tile.view<1, f64> {fuzz.fill = "unit", fuzz.sizes = array<i64: 34>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 5052 : i64} {
    %c0 = arith.constant 0 : index
    %cst = arith.constant dense<280> : tensor<7x40x1x1xi64>
    %cst_0 = arith.constant dense<1> : tensor<7x40x1x1xi64>
    %cst_1 = arith.constant dense<227> : tensor<7x40x1x1xi64>
    %cst_2 = arith.constant dense<40> : tensor<7x40x1x1xi64>
    %cst_3 = arith.constant dense<1.000000e+00> : tensor<7x40x1x1xf64>
    %c1 = arith.constant 1 : index
    %0:3 = tile.grid %c1, %c1, %c1
    %1 = tile.iota 3 : tensor<7x40x1x1xi64>
    %2 = tile.iota 2 : tensor<7x40x1x1xi64>
    %3 = arith.addi %1, %2 : tensor<7x40x1x1xi64>
    %4 = tile.iota 1 : tensor<7x40x1x1xi64>
    %5 = arith.addi %3, %4 : tensor<7x40x1x1xi64>
    %6 = tile.iota 0 : tensor<7x40x1x1xi64>
    %7 = arith.muli %6, %cst_2 : tensor<7x40x1x1xi64>
    %8 = arith.addi %5, %7 : tensor<7x40x1x1xi64>
    %9 = arith.muli %8, %cst_1 : tensor<7x40x1x1xi64>
    %10 = arith.addi %9, %cst_0 : tensor<7x40x1x1xi64>
    %11 = tile.rem unsigned %10, %cst : tensor<7x40x1x1xi64>
    %12 = tile.atomic_rmw min %cst_3, %arg1[%11 : tensor<7x40x1x1xi64>] : tensor<7x40x1x1xf64>, <1, f64>
    %13 = tile.reshape %12 : tensor<7x40x1x1xf64> -> tensor<280xf64>
    %14 = tile.cast %13 : tensor<280xf64> -> tensor<280xf32>
    tile.store %14, %arg0[%c0] : tensor<280xf32>, <1, f32>
    return
  }
}
