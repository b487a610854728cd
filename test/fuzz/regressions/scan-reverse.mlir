// SPDX-License-Identifier: Apache-2.0
// The position of a reverse scan was computed outside its loop.
module {
  func.func @kernel(%arg0: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 64, 67>, fuzz.strides = array<i64: 67, 1>, tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 3 : i64} {
    %c0 = arith.constant 0 : index
    %cst = arith.constant dense<1.000000e+00> : tensor<4x64xf32>
    %c1 = arith.constant 1 : index
    %0:3 = tile.grid %c1, %c1, %c1
    %1 = tile.scan %cst dim 1 reverse : (tensor<4x64xf32>) -> tensor<4x64xf32> {
    ^bb0(%arg1: f32, %arg2: f32):
      %2 = arith.maximumf %arg1, %arg2 : f32
      tile.yield %2 : f32
    }
    tile.store %1, %arg0[%c0, %c0] : tensor<4x64xf32>, <2, f32>
    return
  }
}
