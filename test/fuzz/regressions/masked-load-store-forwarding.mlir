// SPDX-License-Identifier: Apache-2.0
// LLVM's store-forwarding pass aborted on a masked load (AVX2).
module {
  func.func @kernel(%arg0: !tile.view<1, f32> {fuzz.fill = "any", fuzz.sizes = array<i64: 30>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}, %arg1: !tile.view<3, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 2, 36, 11>, fuzz.strides = array<i64: 396, 11, 1>, tile.unit_stride = 2 : i64}) attributes {fuzz.seed = 15607 : i64} {
    %c0 = arith.constant 0 : index
    %c-27 = arith.constant -27 : index
    %c1 = arith.constant 1 : index
    %0:2 = tile.grid %c1, %c1
    %1 = tile.load %arg0[%c-27] : <1, f32> -> tensor<30xf32>
    %2 = tile.reshape %1 : tensor<30xf32> -> tensor<30x1x1xf32>
    %3 = tile.slice %2 [2, 0, 0] : tensor<30x1x1xf32> -> tensor<1x1x1xf32>
    tile.store %3, %arg1[%c0, %c0, %c0] : tensor<1x1x1xf32>, <3, f32>
    return
  }
}
