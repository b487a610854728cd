// SPDX-License-Identifier: Apache-2.0
// The largest of 16-bit floats is NaN where one is: LLVM narrowed the comparison to 16 bits and then lost it.
module {
  func.func @kernel(%arg0: !tile.view<2, f16> {fuzz.fill = "any", fuzz.sizes = array<i64: 64, 36>, fuzz.strides = array<i64: 36, 1>, tile.unit_stride = 1 : i64}, %arg1: !tile.view<2, i64> {fuzz.fill = "unit", fuzz.sizes = array<i64: 73, 4>, fuzz.strides = array<i64: 4, 1>, tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 1001720 : i64} {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 1.000000e+00 : f16
    %c1 = arith.constant 1 : index
    %0 = tile.grid %c1
    %1 = tile.load %arg0[%c0, %c0] padding %cst : f16 : <2, f16> -> tensor<64x36xf16>
    %2 = tile.reduce %1 dim 1 : (tensor<64x36xf16>) -> tensor<64x1xf16> {
    ^bb0(%arg2: f16, %arg3: f16):
      %4 = arith.maximumf %arg2, %arg3 : f16
      tile.yield %4 : f16
    }
    %3 = tile.cast %2 : tensor<64x1xf16> -> tensor<64x1xi64>
    tile.store %3, %arg1[%c0, %c0] : tensor<64x1xi64>, <2, i64>
    return
  }
}
