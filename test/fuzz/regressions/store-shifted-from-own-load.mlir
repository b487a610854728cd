// SPDX-License-Identifier: Apache-2.0
// A window moved inside its view: elements were read after they had been overwritten.
module {
  func.func @kernel(%arg0: !tile.view<2, i64> {fuzz.fill = "unit", fuzz.sizes = array<i64: 64, 3>, fuzz.strides = array<i64: 3, 1>, tile.unit_stride = 1 : i64}, %arg1: !tile.view<3, f8E5M2> {fuzz.fill = "any", fuzz.sizes = array<i64: 6, 2, 27>, fuzz.strides = array<i64: 54, 27, 1>, tile.unit_stride = 2 : i64}) attributes {fuzz.seed = 5078 : i64} {
    %c3 = arith.constant 3 : index
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %0 = tile.size %arg0, 1 : <2, i64>
    %1 = arith.addi %0, %c1 : index
    %2 = tile.div unsigned %1, %c2 : index
    %3 = tile.grid %2
    %4 = arith.muli %3, %c3 : index
    %5 = tile.load %arg1[%4, %c0, %c0] : <3, f8E5M2> -> tensor<3x3x27xf8E5M2>
    tile.store %5, %arg1[%4, %c0, %3] : tensor<3x3x27xf8E5M2>, <3, f8E5M2>
    return
  }
}
