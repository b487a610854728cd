// SPDX-License-Identifier: Apache-2.0
// A root that reads the carried tile in place and transposed cannot share the nest that overwrites it.
func.func @carried(%x: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 16, 16>, fuzz.strides = array<i64: 16, 1>, tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 24, 16>, fuzz.strides = array<i64: 16, 1>, tile.unit_stride = 1 : i64}, %n: index {fuzz.word = 3 : i64}) attributes {fuzz.seed = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %half = arith.constant dense<0.5> : tensor<16x16xf32>
  %b = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %b) -> (tensor<16x16xf32>) {
    %e = math.exp %c : tensor<16x16xf32>
    %turned = tile.transpose %c [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
    %t = arith.addf %e, %turned : tensor<16x16xf32>
    %v = arith.mulf %c, %half : tensor<16x16xf32>
    %s = tile.reduce %t dim 1 : (tensor<16x16xf32>) -> tensor<16x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %m = arith.maximumf %p, %q : f32
      tile.yield %m : f32
    }
    %sb = tile.broadcast %s : tensor<16x1xf32> -> tensor<16x16xf32>
    %d = arith.divf %t, %sb : tensor<16x16xf32>
    tile.store %d, %y[%i, %c0] : tensor<16x16xf32>, !tile.view<2, f32>
    scf.yield %v : tensor<16x16xf32>
  }
  tile.store %r, %y[%n, %c0] : tensor<16x16xf32>, !tile.view<2, f32>
  return
}
