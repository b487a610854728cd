// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// An accumulation needs only the element it replaces: one buffer, 64 + 32 * 4 bytes, and nothing carried by the loop.
// CHECK: tenon.scratch_bytes = 192
// CHECK-LABEL: func.func private @instance
// CHECK: %[[ACC:.*]] = llvm.getelementptr %{{.*}}[64]
// CHECK: llvm.store %{{.*}}, %[[ACC]]
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK: llvm.load %[[ACC]]
// CHECK: llvm.store %{{.*}}, %[[ACC]]
func.func @in_place(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<32xf32> {
    %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<32xf32>
    %next = arith.addf %acc, %t : tensor<32xf32>
    scf.yield %next : tensor<32xf32>
  }
  tile.store %sum, %x[%c0] : tensor<32xf32>, !tile.view<1, f32>
  return
}

// -----

// Here an element is needed after its place would have been overwritten: two buffers whose addresses trade places.
// CHECK: tenon.scratch_bytes = 320
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args(%[[CURRENT:.*]] = %{{.*}}, %[[NEXT:.*]] = %{{.*}}) -> (!llvm.ptr, !llvm.ptr)
// CHECK: scf.yield %[[NEXT]], %[[CURRENT]] : !llvm.ptr, !llvm.ptr
func.func @two_buffers(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %start = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<4x8xf32>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%t = %start) -> tensor<4x8xf32> {
    %low = tile.slice %t [0, 0] : tensor<4x8xf32> -> tensor<4x1xf32>
    %wide = tile.broadcast %low : tensor<4x1xf32> -> tensor<4x8xf32>
    %next = arith.addf %t, %wide : tensor<4x8xf32>
    scf.yield %next : tensor<4x8xf32>
  }
  tile.store %end, %x[%c0, %c0] : tensor<4x8xf32>, !tile.view<2, f32>
  return
}

// -----

// Scalars are carried as they are.
// CHECK: tenon.scratch_bytes = 64
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32)
func.func @scalar(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %n: index, %s: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%a = %s) -> f32 {
    %b = arith.mulf %a, %s : f32
    scf.yield %b : f32
  }
  %t = tile.splat %end : f32 -> tensor<32xf32>
  tile.store %t, %x[%c0] : tensor<32xf32>, !tile.view<1, f32>
  return
}
