// SPDX-License-Identifier: Apache-2.0
// An atomic exchange whose values come from the memory it changes.
module {
  func.func @kernel(%arg0: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 3, 11>, fuzz.strides = array<i64: 11, 1>, tile.unit_stride = 1 : i64}, %arg1: !tile.view<1, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 23>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}, %arg2: index {fuzz.word = 2 : i64}) attributes {fuzz.seed = 5305 : i64} {
    %c4 = arith.constant 4 : index
    %c7 = arith.constant 7 : index
    %cst = arith.constant 1.500000e+00 : f32
    %cst_0 = arith.constant dense<25> : tensor<1x7xi32>
    %cst_1 = arith.constant dense<3> : tensor<1x7xi32>
    %cst_2 = arith.constant dense<18> : tensor<1x7xi32>
    %c0 = arith.constant 0 : index
    %cst_3 = arith.constant 1.000000e+02 : f32
    %c1 = arith.constant 1 : index
    %0:3 = tile.grid %c1, %c1, %c1
    %1 = tile.load %arg1[%c0] padding %cst_3 : f32 : <1, f32> -> tensor<7xf32>
    %2 = tile.reshape %1 : tensor<7xf32> -> tensor<1x7xf32>
    %3 = tile.iota 0 : tensor<7xi32>
    %4 = tile.reshape %3 : tensor<7xi32> -> tensor<1x7xi32>
    %5 = arith.muli %4, %cst_2 : tensor<1x7xi32>
    %6 = arith.addi %5, %cst_1 : tensor<1x7xi32>
    %7 = tile.rem unsigned %6, %cst_0 : tensor<1x7xi32>
    %8 = arith.muli %arg2, %c7 : index
    %9 = tile.load %arg0[%c4, %8] padding %cst : f32 : <2, f32> -> tensor<1x7xf32>
    %10 = tile.cast %9 : tensor<1x7xf32> -> tensor<1x7xi1>
    %11 = tile.atomic_rmw exchange %2, %arg1[%7 : tensor<1x7xi32>] mask %10 : tensor<1x7xi1> : tensor<1x7xf32>, <1, f32>
    return
  }
}
