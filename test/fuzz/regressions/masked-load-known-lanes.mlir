// SPDX-License-Identifier: Apache-2.0
// Lanes known to be outside: LLVM turned half of the masked load into a plain one (AVX2), which faulted.
module {
  func.func @kernel(%arg0: !tile.view<2, i32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 30, 34>, fuzz.strides = array<i64: 34, 1>, tile.unit_stride = 1 : i64}, %arg1: !tile.view<3, f16> {fuzz.fill = "unit", fuzz.sizes = array<i64: 15, 35, 32>, fuzz.strides = array<i64: 1120, 32, 1>, tile.unit_stride = 2 : i64}) attributes {fuzz.seed = 21838 : i64} {
    %c-12 = arith.constant -12 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0:2 = tile.grid %c1, %c1
    %1 = tile.load %arg0[%c0, %c-12] : <2, i32> -> tensor<30x34xi32>
    %2 = tile.reshape %1 : tensor<30x34xi32> -> tensor<1x30x34xi32>
    %3 = tile.cast %2 : tensor<1x30x34xi32> -> tensor<1x30x34xf16>
    tile.store %3, %arg1[%c0, %c0, %c0] : tensor<1x30x34xf16>, <3, f16>
    return
  }
}
