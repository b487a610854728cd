// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// Of softmax only exp is kept: it costs more to compute than to keep, and its sum stands between its two uses. 64 bytes
// for switched-off accesses, 64 for each of maximum and sum (4 floats), 4 * 128 * 4 for exp.
// CHECK: tenon.scratch_bytes = 2240
// CHECK-LABEL: func.func private @instance

// The maximum of each row: lanes first, then across them.
// CHECK: scf.if %{{[0-9]+}} {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c32 iter_args(%[[M:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) -> (vector<32xf32>, vector<16xi1>)
// CHECK: %[[X:.*]] = llvm.load {{.*}} -> vector<32xf32>
// CHECK: arith.maximumf %[[M]], %[[X]]
// CHECK: arith.maximumf %{{.*}} : vector<16xf32>
// CHECK: arith.maximumf %{{.*}} : vector<4xf32>
// CHECK: vector.shuffle %{{.*}} [2, 3, 0, 1] : vector<4xf32>, vector<4xf32>
// CHECK: arith.maximumf %{{.*}} : vector<4xf32>
// CHECK: vector.shuffle %{{.*}} [1, 2, 3, 0] : vector<4xf32>, vector<4xf32>
// CHECK: %[[BOTH:.*]] = arith.maximumf %{{.*}} : vector<4xf32>
// CHECK: %[[LARGEST:.*]] = vector.extract %[[BOTH]][0]
// CHECK: %[[ONE:.*]] = arith.select %{{.*}}, %[[LARGEST]]
// CHECK: llvm.store %[[ONE]], %{{.*}} : f32

// exp and its sum are one loop: the row's maximum comes from outside it.
// CHECK: scf.if %{{[0-9]+}} {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK: %[[MAX:.*]] = llvm.load {{.*}} -> f32
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c32 iter_args(%[[S:.*]] = %{{.*}}) -> (vector<32xf32>)
// CHECK: vector.splat %[[MAX]]
// CHECK: %[[E:.*]] = math.exp
// CHECK: llvm.store %[[E]], {{.*}} : vector<32xf32>
// CHECK: arith.addf %[[S]], %[[E]]

// The division reads exp back.
// CHECK: scf.if %{{[0-9]+}} {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK: %[[SUM:.*]] = llvm.load {{.*}} -> f32
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c32 {
// CHECK-NOT: math.exp
// CHECK: %[[KEPT:.*]] = llvm.load {{.*}} -> vector<32xf32>
// CHECK: %[[LANES:.*]] = vector.splat %[[SUM]]
// CHECK: arith.divf %[[KEPT]], %[[LANES]]
func.func @softmax(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                   %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : !tile.view<2, f32> -> tensor<4x128xf32>
  %m = tile.reduce %t dim 1 : (tensor<4x128xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    tile.yield %s : f32
  }
  %mb = tile.broadcast %m : tensor<4x1xf32> -> tensor<4x128xf32>
  %d = arith.subf %t, %mb : tensor<4x128xf32>
  %e = math.exp %d : tensor<4x128xf32>
  %z = tile.reduce %e dim 1 : (tensor<4x128xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tile.yield %s : f32
  }
  %zb = tile.broadcast %z : tensor<4x1xf32> -> tensor<4x128xf32>
  %r = arith.divf %e, %zb : tensor<4x128xf32>
  tile.store %r, %y[%i, %c0] : tensor<4x128xf32>, !tile.view<2, f32>
  return
}
