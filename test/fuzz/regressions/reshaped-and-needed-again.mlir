// SPDX-License-Identifier: Apache-2.0
// What is reshaped across dimensions is kept, also where it would be cheap to compute it again for other uses.
module {
  func.func @kernel(%arg0: !tile.view<3, f32> {fuzz.fill = "any", fuzz.sizes = array<i64: 32, 5, 1>, fuzz.strides = array<i64: 5, 1, 1>, tile.unit_stride = 2 : i64}, %arg1: !tile.view<2, f32> {fuzz.fill = "ints", fuzz.sizes = array<i64: 16, 8>, fuzz.strides = array<i64: 8, 1>, tile.unit_stride = 1 : i64}, %arg2: !tile.view<1, bf16> {fuzz.fill = "ints", fuzz.sizes = array<i64: 60>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 667 : i64} {
    %cst = arith.constant dense<1.000000e+00> : tensor<2x14xf16>
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<2x2xf16>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x14xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0:3 = tile.grid %c1, %c1, %c1
    %1 = tile.load %arg0[%c0, %c0, %c0] : <3, f32> -> tensor<32x5x1xf32>
    %2 = arith.cmpf ueq, %1, %1 : tensor<32x5x1xf32>
    %3 = tile.reshape %2 : tensor<32x5x1xi1> -> tensor<160xi1>
    %4 = tile.slice %3 [128] : tensor<160xi1> -> tensor<10xi1>
    %5 = tile.cast %4 : tensor<10xi1> -> tensor<10xbf16>
    tile.store %5, %arg2[%c0] : tensor<10xbf16>, <1, bf16>
    %6 = tile.dot %cst_0, %cst, %cst_1 : tensor<2x2xf16>, tensor<2x14xf16>, tensor<2x14xf32>
    %7 = tile.reshape %2 : tensor<32x5x1xi1> -> tensor<160x1xi1>
    %8 = tile.cast unsigned %7 : tensor<160x1xi1> -> tensor<160x1xf32>
    tile.store %8, %arg1[%c0, %c0] : tensor<160x1xf32>, <2, f32>
    %9 = tile.reshape %6 : tensor<2x14xf32> -> tensor<28xf32>
    %10 = tile.slice %9 [13] : tensor<28xf32> -> tensor<10xf32>
    %11 = tile.cast %10 : tensor<10xf32> -> tensor<10xbf16>
    tile.store %11, %arg2[%c0] : tensor<10xbf16>, <1, bf16>
    return
  }
}

