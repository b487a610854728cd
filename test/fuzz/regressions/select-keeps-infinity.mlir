// SPDX-License-Identifier: Apache-2.0
// Choosing between 8-bit floats moves them: a stored infinity stays one, where arithmetic would saturate.
module {
  func.func @kernel(%arg0: !tile.view<3, f8E5M2> {fuzz.fill = "any", fuzz.sizes = array<i64: 13, 15, 68>, fuzz.strides = array<i64: 1020, 68, 1>, tile.unit_stride = 2 : i64}) attributes {fuzz.seed = 639 : i64} {
    %cst = arith.constant dense<3.000000e+00> : tensor<13x7x17xf8E5M2>
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<13x7x17xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %0 = tile.grid %c1
    %1 = tile.load %arg0[%c0, %c0, %c0] : <3, f8E5M2> -> tensor<13x7x17xf8E5M2>
    %2 = arith.cmpf ult, %cst_0, %cst_0 : tensor<13x7x17xf32>
    %3 = arith.select %2, %cst, %1 : tensor<13x7x17xi1>, tensor<13x7x17xf8E5M2>
    tile.store %3, %arg0[%c0, %c0, %c0] : tensor<13x7x17xf8E5M2>, <3, f8E5M2>
    return
  }
}
