// SPDX-License-Identifier: Apache-2.0
// A kept value that is itself a movement of the carried tile must be complete before that is overwritten.
func.func @carried(%x: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 16, 16>, fuzz.strides = array<i64: 16, 1>, tile.unit_stride = 1 : i64}, %y: !tile.view<1, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 300>, fuzz.strides = array<i64: 1>, tile.unit_stride = 0 : i64}, %n: index {fuzz.word = 3 : i64}) attributes {fuzz.seed = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant dense<0.5> : tensor<16x16xf32>
  %b = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %b) -> (tensor<16x16xf32>) {
    %t = tile.transpose %c [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
    %v = arith.mulf %c, %half : tensor<16x16xf32>
    %f = tile.reshape %t : tensor<16x16xf32> -> tensor<256xf32>
    tile.store %f, %y[%i] : tensor<256xf32>, !tile.view<1, f32>
    scf.yield %v : tensor<16x16xf32>
  }
  tile.store %r, %x[%c0, %c0] : tensor<16x16xf32>, !tile.view<2, f32>
  return
}
