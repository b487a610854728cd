// SPDX-License-Identifier: Apache-2.0
// The same in a branch, of a transposed value.
module {
  func.func @kernel(%arg0: !tile.view<1, i64> {fuzz.fill = "unit", fuzz.sizes = array<i64: 6>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 5487 : i64} {
    %c0 = arith.constant 0 : index
    %cst = arith.constant dense<1> : tensor<65x2xi32>
    %cst_0 = arith.constant dense<1> : tensor<65x1xi32>
    %c1 = arith.constant 1 : index
    %0:3 = tile.grid %c1, %c1, %c1
    %1 = tile.concat %cst_0, %cst dim 1 : tensor<65x1xi32>, tensor<65x2xi32> -> tensor<65x3xi32>
    %2 = tile.transpose %1 [1, 0] : tensor<65x3xi32> -> tensor<3x65xi32>
    %3 = arith.cmpi uge, %0#2, %0#1 : index
    scf.if %3 {
    } else {
      %4 = tile.reshape %2 : tensor<3x65xi32> -> tensor<195xi32>
      %5 = tile.cast %4 : tensor<195xi32> -> tensor<195xi64>
      tile.store %5, %arg0[%c0] : tensor<195xi64>, <1, i64>
    }
    return
  }
}
