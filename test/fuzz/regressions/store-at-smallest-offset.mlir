// SPDX-License-Identifier: Apache-2.0
// Windows that start at the smallest integer: its absolute value is not one, and taking it was undefined.
func.func @kernel(%x: !tile.view<1, i32> {fuzz.sizes = array<i64: 24>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 1 : i64} {
  %smallest = arith.constant -9223372036854775808 : index
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %far = tile.load %x[%smallest] : !tile.view<1, i32> -> tensor<8xi32>
  %near = tile.load %x[%c0] : !tile.view<1, i32> -> tensor<8xi32>
  %sum = arith.addi %far, %near : tensor<8xi32>
  tile.store %near, %x[%smallest] : tensor<8xi32>, !tile.view<1, i32>
  tile.store %near, %x[%c8] : tensor<8xi32>, !tile.view<1, i32>
  tile.store %sum, %x[%c8] : tensor<8xi32>, !tile.view<1, i32>
  return
}
