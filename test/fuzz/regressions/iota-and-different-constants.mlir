// SPDX-License-Identifier: Apache-2.0
// An iota plus numbers that differ is no run of neighbours.
func.func @k(%x: !tile.view<1, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 64>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64},
             %y: !tile.view<1, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 8>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tile.grid %c1
  %o = arith.constant dense<[0,10,3,20,5,30,7,40]> : tensor<8xi32>
  %p = tile.iota 0 : tensor<8xi32>
  %s = arith.addi %p, %o : tensor<8xi32>
  %t = tile.gather %x[%s : tensor<8xi32>] : !tile.view<1, f32> -> tensor<8xf32>
  tile.store %t, %y[%c0] : tensor<8xf32>, !tile.view<1, f32>
  return
}
