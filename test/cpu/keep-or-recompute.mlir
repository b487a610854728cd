// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// The distance from a mean, where the numbers themselves (a sum of two windows) are kept: it is needed twice, and computed
// twice. One line of scratch is written, by the first loop.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.addf
// CHECK: llvm.store %{{.*}} : vector<{{32|64}}xf32>
// CHECK: arith.subf
// CHECK-NOT: llvm.store %{{.*}} : vector<{{32|64}}xf32>
// CHECK: arith.mulf
// CHECK: arith.subf
func.func @spread(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x1024xf32>
  %b = tile.load %z[%i, %zero] : !tile.view<2, f32> -> tensor<1x1024xf32>
  %t = arith.addf %a, %b : tensor<1x1024xf32>
  %s = tile.reduce %t dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %m = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x1024xf32>
  %d = arith.subf %t, %m : tensor<1x1024xf32>
  %square = arith.mulf %d, %d : tensor<1x1024xf32>
  %v = tile.reduce %square dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %w = tile.broadcast %v : tensor<1x1xf32> -> tensor<1x1024xf32>
  %o = arith.mulf %d, %w : tensor<1x1024xf32>
  tile.store %o, %y[%i, %zero] : tensor<1x1024xf32>, !tile.view<2, f32>
  return
}
