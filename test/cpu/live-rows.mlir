// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// Rows past the end of the view that they are stored to are not computed, and what is left is inside: no masks.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[FIRST:.*]] : index
// CHECK: %[[SOME:.*]] = arith.minsi %[[LEFT]], %c10
// CHECK: %[[LIVE:.*]] = arith.maxsi %[[SOME]], %c0
// CHECK: arith.subi %{{.*}}, %[[LIVE]]
// CHECK: scf.if
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %[[LIVE]] step %c1 {
// CHECK: llvm.load {{.*}} -> vector<32xf32>
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %c0 to %[[LIVE]] step %c1 {
func.func @rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<10x400xf32>
  %b = arith.negf %a : tensor<10x400xf32>
  tile.store %b, %y[%i, %zero] : tensor<10x400xf32>, !tile.view<2, f32>
  return
}

// -----

// The same along the way to a store: a sum over columns has its row's place. A row that two stores see is needed as
// long as one of them does.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.maxsi
// CHECK: %[[LIVE:.*]] = arith.maxsi
// CHECK: scf.for %{{.*}} = %c0 to %[[LIVE]] step %c1 {
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c32 iter_args
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
func.func @sums(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %z: !tile.view<2, f32>,
                %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<4x128xf32>
  %s = tile.reduce %a dim 1 : (tensor<4x128xf32>) -> tensor<4x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %z[%i, %zero] : tensor<4x1xf32>, !tile.view<2, f32>
  %w = tile.broadcast %s : tensor<4x1xf32> -> tensor<4x128xf32>
  %d = arith.subf %a, %w : tensor<4x128xf32>
  tile.store %d, %y[%i, %zero] : tensor<4x128xf32>, !tile.view<2, f32>
  return
}

// -----

// A sum over rows sees all of them, those past the end as what a load puts there.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1 iter_args
func.func @over_rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<4x32xf32>
  %e = math.exp %a : tensor<4x32xf32>
  %s = tile.reduce %e dim 0 : (tensor<4x32xf32>) -> tensor<1x32xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %y[%i, %zero] : tensor<1x32xf32>, !tile.view<2, f32>
  return
}

// -----

// What a program prints it sees whole.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1 {
// CHECK: call @tenon_print
func.func @printed(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                   %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<4x64xf32>
  %e = math.exp %a : tensor<4x64xf32>
  tile.print "e", %e : tensor<4x64xf32>
  tile.store %e, %y[%i, %zero] : tensor<4x64xf32>, !tile.view<2, f32>
  return
}
