// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// A chain of element-wise ops is one loop over vectors of two registers, and no tile exists: the 64 bytes of scratch
// are those that switched-off accesses go to. When the windows lie inside their views the loop is free of tests;
// otherwise its masked twin runs.
// CHECK: tenon.scratch_bytes = 64
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c1024 step %c32 {
// CHECK-NOT: scf.for
// CHECK: %[[X:.*]] = llvm.load %{{.*}} -> vector<32xf32>
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[SQUARE]], %[[X]]
// CHECK-NOT: masked
// CHECK: llvm.store %[[SUM]], %{{.*}} : vector<32xf32>
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c32 {
// CHECK: llvm.intr.masked.load {{.*}} -> vector<32xf32>
// CHECK: llvm.intr.masked.store
// CHECK-NOT: scf.for
// CHECK: return
func.func @chain(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                 %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                 %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<1024xf32>
  %b = arith.mulf %a, %a : tensor<1024xf32>
  %c = arith.addf %b, %a : tensor<1024xf32>
  tile.store %c, %y[%i] : tensor<1024xf32>, !tile.view<1, f32>
  return
}

// -----

// Two stores over the same elements share the loop and the load; what is left over of 100 elements is a vector of 4.
// CHECK: tenon.scratch_bytes = 64
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c96 step %c32 {
// CHECK-COUNT-1: llvm.load {{.*}} -> vector<32xf32>
// CHECK-COUNT-2: llvm.store {{.*}} : vector<32xf32>
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK-COUNT-2: llvm.store {{.*}} : vector<4xf32>
// CHECK: } else {
func.func @two_stores(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                      %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                      %z: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<100xf32>
  tile.store %a, %y[%i] : tensor<100xf32>, !tile.view<1, f32>
  %b = arith.negf %a : tensor<100xf32>
  tile.store %b, %z[%i] : tensor<100xf32>, !tile.view<1, f32>
  return
}

// -----

// A value used in a loop that does not depend on its counter is computed outside: one load per row, not per vector.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK: %[[BIAS:.*]] = llvm.load {{.*}} -> f32
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32 {
// CHECK-NOT: -> f32
// CHECK: llvm.load {{.*}} -> vector<32xf32>
// CHECK: %[[LANES:.*]] = vector.splat %[[BIAS]]
// CHECK: arith.addf %{{.*}}, %[[LANES]]
func.func @row_bias(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %b: !tile.view<2, f32>,
                    %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<4x64xf32>
  %bias = tile.load %b[%c0, %c0] : !tile.view<2, f32> -> tensor<4x1xf32>
  %wide = tile.broadcast %bias : tensor<4x1xf32> -> tensor<4x64xf32>
  %s = arith.addf %t, %wide : tensor<4x64xf32>
  tile.store %s, %y[%c0, %c0] : tensor<4x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Without a unit stride along the vector the elements are gathered and scattered one by one.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK: llvm.intr.masked.gather {{.*}} -> vector<32xf32>
// CHECK: llvm.intr.masked.scatter
func.func @strided(%x: !tile.view<1, f32>, %y: !tile.view<1, f32>, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  tile.store %a, %y[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// The rest of a row in pieces that fill registers, here without a reduction.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32
// CHECK: llvm.store {{.*}} : vector<32xf32>
// CHECK: llvm.store {{.*}} : vector<16xf32>
// CHECK: llvm.store {{.*}} : vector<5xf32>
// CHECK: } else {
func.func @rest_of_a_row(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                         %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<85xf32>
  %n = arith.mulf %t, %t : tensor<85xf32>
  tile.store %n, %y[%c0] : tensor<85xf32>, !tile.view<1, f32>
  return
}
