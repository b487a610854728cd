// SPDX-License-Identifier: Apache-2.0
// 2, check sim/s4, error: the simulator found in kernel kernel:
module {
  func.func @kernel(%arg0: !tile.view<1, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 13>, fuzz.strides = array<i64: 1>}, %arg1: !tile.view<4, f8E5M2> {fuzz.fill = "unit", fuzz.sizes = array<i64: 11, 3, 10, 15>, fuzz.strides = array<i64: 615, 205, 20, 1>, tile.unit_stride = 3 : i64}, %arg2: !tile.view<4, f8E5M2> {fuzz.fill = "ints", fuzz.shares = 1 : i64, fuzz.shift = 0 : i64, fuzz.sizes = array<i64: 11, 3, 10, 15>, fuzz.strides = array<i64: 615, 205, 20, 1>, tile.unit_stride = 3 : i64}) attributes {fuzz.seed = 1 : i64} {
    %c3 = arith.constant 3 : index
    %0 = tile.size %arg1, 0 : <4, f8E5M2>
    %c3_0 = arith.constant 3 : index
    %1 = arith.addi %0, %c3_0 : index
    %c4 = arith.constant 4 : index
    %2 = tile.div %1, %c4 : index
    %3 = tile.size %arg1, 1 : <4, f8E5M2>
    %c1 = arith.constant 1 : index
    %4 = arith.addi %3, %c1 : index
    %c2 = arith.constant 2 : index
    %5 = tile.div %4, %c2 : index
    %6:3 = tile.grid %c3, %2, %5
    %7 = arith.muli %6#2, %2 : index
    %8 = arith.addi %7, %6#1 : index
    %9 = arith.muli %8, %c3 : index
    %10 = arith.addi %9, %6#0 : index
    %c0 = arith.constant 0 : index
    %c6 = arith.constant 6 : index
    %c13 = arith.constant 13 : index
    %11 = tile.rem unsigned %c6, %c13 : index
    %c0_1 = arith.constant 0 : index
    %c0_2 = arith.constant 0 : index
    %12 = tile.load %arg2[%11, %c0_1, %c0_2, %10] : <4, f8E5M2> -> tensor<11x4x10x1xf8E5M2>
    %13 = tile.transpose %12 [2, 0, 1, 3] : tensor<11x4x10x1xf8E5M2> -> tensor<10x11x4x1xf8E5M2>
    %14 = tile.cast %12 : tensor<11x4x10x1xf8E5M2> -> tensor<11x4x10x1xf32>
    %15 = math.exp2 %14 : tensor<11x4x10x1xf32>
    %cst = arith.constant dense<100> : tensor<4x4xi32>
    %cst_3 = arith.constant dense<15> : tensor<4x4xi32>
    %16 = tile.rem unsigned %cst, %cst_3 : tensor<4x4xi32>
    %cst_4 = arith.constant -7.000000e+00 : f32
    %17 = tile.gather %arg0[%16 : tensor<4x4xi32>] padding %cst_4 : f32 : <1, f32> -> tensor<4x4xf32>
    %18 = tile.cast %13 : tensor<10x11x4x1xf8E5M2> -> tensor<10x11x4x1xi32>
    %cst_5 = arith.constant dense<511> : tensor<10x11x4x1xi32>
    %19 = arith.andi %18, %cst_5 : tensor<10x11x4x1xi32>
    %cst_6 = arith.constant dense<255> : tensor<10x11x4x1xi32>
    %20 = arith.subi %19, %cst_6 : tensor<10x11x4x1xi32>
    %21 = tile.cast %20 : tensor<10x11x4x1xi32> -> tensor<10x11x4x1xf32>
    %22 = tile.reduce %21 dim 3 : (tensor<10x11x4x1xf32>) -> tensor<10x11x4x1xf32> {
    ^bb0(%arg3: f32, %arg4: f32):
      %38 = arith.addf %arg3, %arg4 : f32
      tile.yield %38 : f32
    }
    %23 = tile.cast %22 : tensor<10x11x4x1xf32> -> tensor<10x11x4x1xi32>
    %24 = tile.reshape %15 : tensor<11x4x10x1xf32> -> tensor<10x11x4x1xf32>
    %25 = tile.cast %24 : tensor<10x11x4x1xf32> -> tensor<10x11x4x1xi32>
    %26 = arith.xori %23, %25 : tensor<10x11x4x1xi32>
    %27 = tile.transpose %22 [2, 3, 0, 1] : tensor<10x11x4x1xf32> -> tensor<4x1x10x11xf32>
    %28 = tile.slice %22 [0, 0, 0, 0] : tensor<10x11x4x1xf32> -> tensor<10x6x4x1xf32>
    %cst_7 = arith.constant dense<0.000000e+00> : tensor<1xf32>
    %c0_8 = arith.constant 0 : index
    %c0_9 = arith.constant 0 : index
    %c1_10 = arith.constant 1 : index
    %29 = scf.for %arg3 = %c0_8 to %c0_9 step %c1_10 iter_args(%arg4 = %cst_7) -> (tensor<1xf32>) {
      %c0_12 = arith.constant 0 : index
      %38 = tile.load %arg0[%c0_12] : <1, f32> -> tensor<1xf32>
      %39 = arith.addf %arg4, %38 : tensor<1xf32>
      %40 = tile.reshape %39 : tensor<1xf32> -> tensor<1x1x1x1xf32>
      %41 = tile.cast %40 : tensor<1x1x1x1xf32> -> tensor<1x1x1x1xf8E5M2>
      %c12_13 = arith.constant 12 : index
      %c0_14 = arith.constant 0 : index
      tile.store %41, %arg2[%c12_13, %c0_14, %c0, %10] : tensor<1x1x1x1xf8E5M2>, <4, f8E5M2>
      scf.yield %39 : tensor<1xf32>
    }
    %30 = tile.slice %27 [0, 0, 0, 10] : tensor<4x1x10x11xf32> -> tensor<4x1x10x1xf32>
    %31 = tile.cast %30 : tensor<4x1x10x1xf32> -> tensor<4x1x10x1xf8E5M2>
    %c-9223372036854775808 = arith.constant -9223372036854775808 : index
    %c-10 = arith.constant -10 : index
    tile.store %31, %arg1[%6#1, %c-9223372036854775808, %c-10, %10] : tensor<4x1x10x1xf8E5M2>, <4, f8E5M2>
    %32 = tile.cast %28 : tensor<10x6x4x1xf32> -> tensor<10x6x4x1xf8E5M2>
    %c10 = arith.constant 10 : index
    %33 = arith.muli %6#1, %c10 : index
    %c5 = arith.constant 5 : index
    %34 = tile.rem unsigned %6#1, %c5 : index
    %c2147483647 = arith.constant 2147483647 : index
    tile.store %32, %arg1[%33, %34, %c2147483647, %10] : tensor<10x6x4x1xf8E5M2>, <4, f8E5M2>
    %35 = tile.reshape %29 : tensor<1xf32> -> tensor<1x1x1x1xf32>
    %36 = tile.cast %35 : tensor<1x1x1x1xf32> -> tensor<1x1x1x1xf8E5M2>
    %c0_11 = arith.constant 0 : index
    %c26 = arith.constant 26 : index
    %c12 = arith.constant 12 : index
    %37 = tile.rem unsigned %c26, %c12 : index
    tile.store %36, %arg1[%c0, %c0_11, %37, %10] : tensor<1x1x1x1xf8E5M2>, <4, f8E5M2>
    return
  }
}
