// SPDX-License-Identifier: Apache-2.0
// 5, check sim/w8/c4/s1/no-overlap/no-facts, error: the simulator found in kernel kernel:
module {
  func.func @kernel(%arg0: !tile.view<2, i64> {fuzz.fill = "any", fuzz.sizes = array<i64: 21, 17>, fuzz.strides = array<i64: 34, 2>}, %arg1: !tile.view<3, i64> {fuzz.fill = "unit", fuzz.sizes = array<i64: 27, 2, 3>, fuzz.strides = array<i64: 10, -5, 1>, tile.unit_stride = 2 : i64}, %arg2: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 56, 5>, fuzz.strides = array<i64: 6, 1>, tile.unit_stride = 1 : i64}, %arg3: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.shares = 2 : i64, fuzz.shift = 0 : i64, fuzz.sizes = array<i64: 56, 5>, fuzz.strides = array<i64: 6, 1>, tile.unit_stride = 1 : i64}, %arg4: index {fuzz.word = 8589934592 : i64}, %arg5: f64 {fuzz.word = 4591870180066957722 : i64}) attributes {fuzz.seed = 2 : i64} {
    %0 = tile.size %arg0, 0 : <2, i64>
    %c2 = arith.constant 2 : index
    %1 = arith.addi %0, %c2 : index
    %c3 = arith.constant 3 : index
    %2 = tile.div unsigned %1, %c3 : index
    %3 = tile.grid %2
    %c0 = arith.constant 0 : index
    %c2_0 = arith.constant 2 : index
    %c34 = arith.constant 34 : index
    %c42 = arith.constant 42 : index
    %c8 = arith.constant 8 : index
    %4 = tile.workspace %c34, %c42, %c8 : <3, f32>
    %c8_1 = arith.constant 8 : index
    %5 = arith.muli %3, %c8_1 : index
    %c0_2 = arith.constant 0 : index
    %6 = tile.load %arg3[%5, %c0_2] : <2, f32> -> tensor<8x8xf32>
    %7 = tile.slice %6 [2, 3] : tensor<8x8xf32> -> tensor<1x1xf32>
    %8 = tile.scalar %7 : tensor<1x1xf32>
    %9 = tile.cast %arg5 : f64 -> i64
    %c21 = arith.constant 21 : index
    %10 = arith.muli %c2_0, %c21 : index
    %c0_3 = arith.constant 0 : index
    %11 = tile.load %arg0[%10, %c0_3] padding %9 : i64 : <2, i64> -> tensor<21x8xi64>
    %12 = tile.slice %11 [13, 0] : tensor<21x8xi64> -> tensor<4x2xi64>
    %13 = tile.cast %12 : tensor<4x2xi64> -> tensor<4x2xf32>
    %c8_4 = arith.constant 8 : index
    %14 = arith.muli %3, %c8_4 : index
    %c3_5 = arith.constant 3 : index
    %15 = arith.addi %14, %c3_5 : index
    %c0_6 = arith.constant 0 : index
    tile.store %13, %arg2[%15, %c0_6] : tensor<4x2xf32>, <2, f32>
    return
  }
}
