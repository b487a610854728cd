// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// Sequential along the scanned dimension, vectors along the other; the first element is its own result and the loop
// starts from it.
// CHECK: tenon.scratch_bytes = 1088
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.store %[[FIRST:.*]], %{{.*}} : vector<32xf32>
// CHECK: scf.for %{{.*}} = %c1 to %c8 step %c1 iter_args(%[[SO_FAR:.*]] = %[[FIRST]]) -> (vector<32xf32>)
// CHECK: %[[NEXT:.*]] = arith.addf %[[SO_FAR]], %{{.*}} : vector<32xf32>
// CHECK: llvm.store %[[NEXT]]
// CHECK: scf.yield %[[NEXT]]
func.func @down(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<8x32xf32>
  %s = tile.scan %t dim 0 : (tensor<8x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %x[%c0, %c0] : tensor<8x32xf32>, !tile.view<2, f32>
  return
}

// -----

// Along the only dimension, backwards: scalars, from the last element to the first.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %[[I:.*]] = %c1 to %c64 step %c1 iter_args(%{{.*}} = %{{.*}}) -> (i32)
// CHECK: arith.subi %c63, %[[I]]
// CHECK: arith.addi %{{.*}} : i32
func.func @reverse(%x: !tile.view<1, i32> {tile.unit_stride = 0 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, i32> -> tensor<64xi32>
  %s = tile.scan %t dim 0 reverse : (tensor<64xi32>) -> tensor<64xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.yield %c : i32
  }
  tile.store %s, %x[%c0] : tensor<64xi32>, !tile.view<1, i32>
  return
}
