// SPDX-License-Identifier: Apache-2.0
// Numbers of rows that differ from lane to lane, in a constant, are no one row.
func.func @k(%x: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 4, 32>, fuzz.strides = array<i64: 32, 1>, tile.unit_stride = 1 : i64},
             %y: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 1, 32>, fuzz.strides = array<i64: 32, 1>, tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tile.grid %c1
  %rows = arith.constant dense<[[0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3]]> : tensor<1x32xi32>
  %cols = tile.iota 1 : tensor<1x32xi32>
  %t = tile.gather %x[%rows, %cols : tensor<1x32xi32>, tensor<1x32xi32>] : !tile.view<2, f32> -> tensor<1x32xf32>
  tile.store %t, %y[%c0, %c0] : tensor<1x32xf32>, !tile.view<2, f32>
  return
}
