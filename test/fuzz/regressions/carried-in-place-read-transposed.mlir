// SPDX-License-Identifier: Apache-2.0
// The carried tile is overwritten in place by a nest that another root would like to share, but that root reads it
// transposed: it must have its own nest, before.
func.func @carried_in_place_read_transposed(%x: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 7, 7>, fuzz.strides = array<i64: 7, 1>,
                                                tile.unit_stride = 1 : i64},
                                            %y: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 7, 7>, fuzz.strides = array<i64: 7, 1>,
                                                tile.unit_stride = 1 : i64},
                                            %z: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 7, 7>, fuzz.strides = array<i64: 7, 1>,
                                                tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %i = tile.grid %c1
  %init = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<7x7xf32>
  %r = scf.for %k = %c0 to %c3 step %c1 iter_args(%carried = %init) -> (tensor<7x7xf32>) {
    %t = tile.transpose %carried [1, 0] : tensor<7x7xf32> -> tensor<7x7xf32>
    tile.store %t, %y[%c0, %c0] : tensor<7x7xf32>, !tile.view<2, f32>
    %next = arith.addf %carried, %carried : tensor<7x7xf32>
    scf.yield %next : tensor<7x7xf32>
  }
  tile.store %r, %z[%c0, %c0] : tensor<7x7xf32>, !tile.view<2, f32>
  return
}
