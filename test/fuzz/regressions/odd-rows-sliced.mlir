// SPDX-License-Identifier: Apache-2.0
// A dot of an odd number of rows, which are columns of the instruction: the last register of those holds nothing.
module {
  func.func @kernel(%arg0: !tile.view<3, i16> {fuzz.fill = "ints", fuzz.sizes = array<i64: 7, 16, 16>, fuzz.strides = array<i64: 256, 16, 1>, tile.unit_stride = 2 : i64}) attributes {fuzz.seed = 38599 : i64} {
    %cst = arith.constant dense<1.000000e+00> : tensor<16x64xbf16>
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<33x16xbf16>
    %c2 = arith.constant 2 : index
    %c0 = arith.constant 0 : index
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<33x64xf32>
    %c1 = arith.constant 1 : index
    %0 = tile.grid %c1
    %1 = scf.for %arg1 = %c0 to %c2 step %c1 iter_args(%arg2 = %cst_1) -> (tensor<33x64xf32>) {
      %5 = tile.dot %cst_0, %cst, %arg2 : tensor<33x16xbf16>, tensor<16x64xbf16>, tensor<33x64xf32>
      scf.yield %5 : tensor<33x64xf32>
    }
    %2 = tile.reshape %1 : tensor<33x64xf32> -> tensor<33x1x64xf32>
    %3 = tile.slice %2 [30, 0, 0] : tensor<33x1x64xf32> -> tensor<2x1x64xf32>
    %4 = tile.cast %3 : tensor<2x1x64xf32> -> tensor<2x1x64xi16>
    tile.store %4, %arg0[%c0, %c0, %c0] : tensor<2x1x64xi16>, <3, i16>
    return
  }
}
