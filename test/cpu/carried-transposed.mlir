// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// %t is updated in place, but another value reads it transposed: that read must be finished for the whole tile before
// the update starts, so they are two loop nests (or %t has two buffers).
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.intr.masked.gather
// CHECK: arith.addf
// CHECK: scf.for
// CHECK: arith.mulf
func.func @carried(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<8x8xf32>
  %b = tile.load %x[%c0, %n] : !tile.view<2, f32> -> tensor<8x8xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%y = %a, %t = %b) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
    %turned = tile.transpose %t [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
    %u = arith.addf %y, %turned : tensor<8x8xf32>
    %v = arith.mulf %t, %t : tensor<8x8xf32>
    scf.yield %u, %v : tensor<8x8xf32>, tensor<8x8xf32>
  }
  tile.store %r#0, %x[%c0, %c0] : tensor<8x8xf32>, !tile.view<2, f32>
  tile.store %r#1, %x[%c0, %n] : tensor<8x8xf32>, !tile.view<2, f32>
  return
}
