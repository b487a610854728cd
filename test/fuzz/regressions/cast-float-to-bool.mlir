// SPDX-License-Identifier: Apache-2.0
// A float cast to a boolean saturates to 0 or 1; as a signed integer of one bit, 1 became 0.
module {
  func.func @kernel(%arg0: !tile.view<2, i1> {fuzz.fill = "unit", fuzz.sizes = array<i64: 8, 2>, fuzz.strides = array<i64: 2, 1>, tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 37 : i64} {
    %c0 = arith.constant 0 : index
    %cst = arith.constant dense<1.000000e+00> : tensor<2x7xf32>
    %c1 = arith.constant 1 : index
    %0:2 = tile.grid %c1, %c1
    %1 = tile.cast %cst : tensor<2x7xf32> -> tensor<2x7xi1>
    tile.store %1, %arg0[%c0, %c0] : tensor<2x7xi1>, <2, i1>
    return
  }
}
