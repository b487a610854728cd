// SPDX-License-Identifier: Apache-2.0
// 7700132, check cpu/avx2/t2, crash: Segmentation fault
module {
  func.func @kernel(%arg0: !tile.view<2, i16> {fuzz.fill = "unit", fuzz.sizes = array<i64: 3, 25>, fuzz.strides = array<i64: 25, 1>, tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 3850066 : i64} {
    %cst = arith.constant dense<0> : tensor<16x2xi32>
    %c0 = arith.constant 0 : index
    %cst_0 = arith.constant dense<1> : tensor<16x16xi8>
    %c6 = arith.constant 6 : index
    %c1 = arith.constant 1 : index
    %0:2 = tile.grid %c1, %c1
    %1 = tile.workspace %c6 : <1, i16>
    %2 = tile.load %arg0[%c0, %c0] : <2, i16> -> tensor<2x16xi16>
    %3 = tile.cast %2 : tensor<2x16xi16> -> tensor<2x16xi8>
    %4 = tile.transpose %3 [1, 0] : tensor<2x16xi8> -> tensor<16x2xi8>
    %5 = tile.dot %cst_0, %4, %cst {b_unsigned} : tensor<16x16xi8>, tensor<16x2xi8>, tensor<16x2xi32>
    %6 = tile.reshape %5 : tensor<16x2xi32> -> tensor<32xi32>
    %7 = tile.cast %6 : tensor<32xi32> -> tensor<32xi16>
    tile.store %7, %1[%c0] : tensor<32xi16>, <1, i16>
    return
  }
}
