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

// Along the only dimension, backwards: vectors, from the last to the first, each shuffled into sums of its own.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %[[I:.*]] = %c16 to %c64 step %c16 iter_args(%{{.*}} = %{{.*}}) -> (vector<16xi32>)
// CHECK: arith.subi %c48, %[[I]]
// CHECK: vector.shuffle
// CHECK: arith.addi %{{.*}} : vector<16xi32>
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

// -----

// Backwards, of rows times one row: where that one is read depends on the place, which is counted from the end.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK: scf.for %{{.*}} = %c16 to %c64 step %c16
func.func @reverse_of_rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %w: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<8x64xf32>
  %v = tile.load %w[%c0, %c0] : !tile.view<2, f32> -> tensor<1x64xf32>
  %vb = tile.broadcast %v : tensor<1x64xf32> -> tensor<8x64xf32>
  %p = arith.mulf %t, %vb : tensor<8x64xf32>
  %s = tile.scan %p dim 1 reverse : (tensor<8x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<8x64xf32>, !tile.view<2, f32>
  return
}

// -----

// What is stored in rows of another shape is one long row of no view but a number's.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for
// CHECK: return
func.func @of_columns_times_number(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %w: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<16x8xf32>
  %s = tile.scan %t dim 0 : (tensor<16x8xf32>) -> tensor<16x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %v = tile.load %w[%c0, %c0] : !tile.view<2, f32> -> tensor<1x1xf32>
  %vb = tile.broadcast %v : tensor<1x1xf32> -> tensor<16x8xf32>
  %p = arith.mulf %s, %vb : tensor<16x8xf32>
  %r = tile.reshape %p : tensor<16x8xf32> -> tensor<8x16xf32>
  tile.store %r, %y[%c0, %c0] : tensor<8x16xf32>, !tile.view<2, f32>
  return
}
