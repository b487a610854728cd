// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// A reshape that mixes dimensions needs its operand in a buffer (64 + 4 * 24 * 4 bytes), which is then seen in the
// other shape: no element is moved for it.
// CHECK: tenon.scratch_bytes = 448
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1 {
// CHECK: llvm.store {{.*}} : vector<16xf32>
// CHECK: llvm.store {{.*}} : vector<8xf32>
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK: llvm.load {{.*}} -> vector<16xf32>
// CHECK: llvm.store {{.*}} : vector<16xf32>
func.func @reshape(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                   %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<4x24xf32>
  %r = tile.reshape %t : tensor<4x24xf32> -> tensor<6x16xf32>
  tile.store %r, %y[%c0, %c0] : tensor<6x16xf32>, !tile.view<2, f32>
  return
}

// -----

// One that only adds dimensions of size 1, a broadcast, a slice: where an element comes from, and no buffer.
// CHECK: tenon.scratch_bytes = 64
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK: llvm.load {{.*}} -> vector<16xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1 {
// CHECK-NOT: llvm.load
// CHECK: llvm.store {{.*}} : vector<16xf32>
func.func @pulled(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<32xf32>
  %s = tile.slice %t [8] : tensor<32xf32> -> tensor<16xf32>
  %r = tile.reshape %s : tensor<16xf32> -> tensor<1x16xf32>
  %b = tile.broadcast %r : tensor<1x16xf32> -> tensor<4x16xf32>
  tile.store %b, %y[%c0, %c0] : tensor<4x16xf32>, !tile.view<2, f32>
  return
}

// -----

// The parts of a concatenation are written side by side into one buffer.
// CHECK: tenon.scratch_bytes = 320
// CHECK-LABEL: func.func private @instance
// CHECK-DAG: %[[WHOLE:.*]] = llvm.getelementptr %{{.*}}[64]
// CHECK-DAG: %[[SECOND:.*]] = llvm.getelementptr %[[WHOLE]][32]
// CHECK-DAG: llvm.store %{{.*}}, %[[WHOLE]]
// CHECK-DAG: llvm.store %{{.*}}, %[[SECOND]]
func.func @concat(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<32xf32>
  %n = arith.negf %t : tensor<32xf32>
  %c = tile.concat %t, %n dim 0 : tensor<32xf32>, tensor<32xf32> -> tensor<64xf32>
  tile.store %c, %y[%c0] : tensor<64xf32>, !tile.view<1, f32>
  return
}
