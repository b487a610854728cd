// SPDX-License-Identifier: Apache-2.0
// A tile with a buffer of its own, yielded by a branch, was from then on read from the branch's buffer.
module {
  func.func @kernel(%arg0: !tile.view<1, f8E5M2> {fuzz.fill = "ints", fuzz.sizes = array<i64: 32>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}, %arg1: !tile.view<5, f8E5M2> {fuzz.fill = "unit", fuzz.sizes = array<i64: 6, 8, 8, 6, 7>, fuzz.strides = array<i64: 2688, 336, 42, 7, 1>, tile.unit_stride = 4 : i64}) attributes {fuzz.seed = 44 : i64} {
    %cst = arith.constant dense<1.000000e+00> : tensor<17xf8E5M2>
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<17xf32>
    %c33 = arith.constant 33 : index
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c1 = arith.constant 1 : index
    %0 = tile.grid %c1
    %1 = arith.cmpi uge, %0, %c3 : index
    %2 = tile.load %arg0[%c0] : <1, f8E5M2> -> tensor<17xf8E5M2>
    %3 = scf.if %1 -> (tensor<17xf8E5M2>) {
      scf.yield %2 : tensor<17xf8E5M2>
    } else {
      %8 = tile.load %arg0[%c33] : <1, f8E5M2> -> tensor<17xf8E5M2>
      scf.yield %8 : tensor<17xf8E5M2>
    }
    %4 = tile.cast %3 : tensor<17xf8E5M2> -> tensor<17xf32>
    %5 = arith.cmpf une, %cst_0, %4 : tensor<17xf32>
    %6 = arith.select %5, %2, %cst : tensor<17xi1>, tensor<17xf8E5M2>
    %7 = tile.reshape %6 : tensor<17xf8E5M2> -> tensor<1x1x1x1x17xf8E5M2>
    tile.store %7, %arg1[%c0, %c0, %c0, %c0, %c0] : tensor<1x1x1x1x17xf8E5M2>, <5, f8E5M2>
    return
  }
}
