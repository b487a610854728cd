// SPDX-License-Identifier: Apache-2.0
// A reduction over a load and its transpose cannot share the nest that overwrites the memory in place.
func.func @two(%x: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 16, 16>, fuzz.strides = array<i64: 16, 1>, tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 16, 4>, fuzz.strides = array<i64: 4, 1>, tile.unit_stride = 1 : i64}, %n: index {fuzz.word = 3 : i64}) attributes {fuzz.seed = 1 : i64} {
  %c0 = arith.constant 0 : index
  %two = arith.constant dense<2.0> : tensor<16x16xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<16x16xf32>
  %at = tile.transpose %a [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
  %s:2 = tile.reduce %a, %at dim 1 : (tensor<16x16xf32>, tensor<16x16xf32>) -> (tensor<16x1xf32>, tensor<16x1xf32>) {
    ^bb0(%p: f32, %p2: f32, %q: f32, %q2: f32):
      %m = arith.maximumf %p, %q : f32
      %m2 = arith.maximumf %p2, %q2 : f32
      tile.yield %m, %m2 : f32, f32
  }
  %d = arith.mulf %a, %two : tensor<16x16xf32>
  tile.store %d, %x[%c0, %c0] : tensor<16x16xf32>, !tile.view<2, f32>
  tile.store %s#1, %y[%c0, %c0] : tensor<16x1xf32>, !tile.view<2, f32>
  return
}
