// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// A load is as old as its place in the program: when memory it may have read is written before its last use, it goes
// into a buffer first. 64 + 32 * 4 bytes.
// CHECK: tenon.scratch_bytes = 192
// CHECK-LABEL: func.func private @instance
// CHECK: %[[KEPT:.*]] = llvm.getelementptr %{{.*}}[64]
// CHECK: scf.if
// CHECK: %[[OLD:.*]] = llvm.load {{.*}} -> vector<32xf32>
// CHECK: llvm.store %[[OLD]], %[[KEPT]]
// CHECK: } else {
// CHECK: scf.if
// CHECK: llvm.load %[[KEPT]]
func.func @kept(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                %i: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %old = tile.load %x[%i] : !tile.view<1, f32> -> tensor<32xf32>
  tile.store %zero, %x[%c0] : tensor<32xf32>, !tile.view<1, f32>
  tile.store %old, %y[%i] : tensor<32xf32>, !tile.view<1, f32>
  return
}

// -----

// Another view, which is known not to overlap: nothing to keep, and both stores are one loop.
// CHECK: tenon.scratch_bytes = 64
// CHECK-LABEL: func.func private @instance
// CHECK-COUNT-1: scf.if
// CHECK-NOT: scf.if
// CHECK: return
func.func @no_overlap(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                      %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                      %z: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %old = tile.load %x[%i] : !tile.view<1, f32> -> tensor<32xf32>
  tile.store %zero, %z[%c0] : tensor<32xf32>, !tile.view<1, f32>
  tile.store %old, %y[%i] : tensor<32xf32>, !tile.view<1, f32>
  return
}

// -----

// x = f(x) reads each element before it writes it: no buffer.
// CHECK: tenon.scratch_bytes = 64
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for
// CHECK-NEXT: %{{.*}} = arith.addi
// CHECK: %[[X:.*]] = llvm.load {{.*}} -> vector<32xf32>
// CHECK: %[[Y:.*]] = arith.negf %[[X]]
// CHECK: llvm.store %[[Y]]
func.func @in_place(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64, tile.distinct}, %i: index) {
  %old = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %new = arith.negf %old : tensor<64xf32>
  tile.store %new, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}
