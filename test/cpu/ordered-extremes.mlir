// SPDX-License-Identifier: Apache-2.0
// The largest of a row: one test for NaN for two registers, and what it found is used after the loop.
// RUN: %lower %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx2},canonicalize,cse)' %s | FileCheck %s --check-prefix=AVX2
// AVX2-NOT: cmpf ord

// CHECK-LABEL: func.func private @instance
// CHECK: %[[BOTH:.*]]:2 = scf.for %{{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}}) -> (vector<32xf32>, vector<16xi1>)
// CHECK: arith.maximumf %[[M]], %[[X:.*]] fastmath<nnan> : vector<32xf32>
// CHECK: %[[LOW:.*]] = vector.extract_strided_slice %[[X]] {offsets = [0], sizes = [16]
// CHECK: %[[HIGH:.*]] = vector.extract_strided_slice %[[X]] {offsets = [16], sizes = [16]
// CHECK: %[[ORDERED:.*]] = arith.cmpf ord, %[[LOW]], %[[HIGH]]
// CHECK: arith.andi %[[K]], %[[ORDERED]] : vector<16xi1>
// The steps across lanes need no test of their own.
// CHECK-COUNT-5: arith.maximumf {{.*}} fastmath<nnan>
// CHECK: %[[ALL:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i16
// CHECK: arith.select %[[ALL]]
func.func @largest(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<128xf32>
  %m = tile.reduce %t dim 0 : (tensor<128xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %m, %y[%c0] : tensor<1xf32>, !tile.view<1, f32>
  return
}

// -----

// A spread: smallest and sum of long rows, four registers a step. The sum has no test.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} -> (vector<64xf32>, vector<64xf32>, vector<16xi1>, vector<16xi1>)
// CHECK-COUNT-2: arith.cmpf ord
// CHECK: scf.yield
func.func @spread(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>, %i: index) {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x1024xf32>
  %s = tile.reduce %a dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %m = tile.reduce %a dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.minimumf %p, %q : f32
    tile.yield %r : f32
  }
  %d = arith.subf %s, %m : tensor<1x1xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}

// -----

// What whole steps leave is not in the masks: a NaN there comes through the steps across lanes.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for
// CHECK: arith.maximumf {{.*}} fastmath<nnan> : vector<32xf32>
// CHECK: scf.yield
// CHECK-NOT: fastmath<nnan>
// CHECK: } else {
func.func @pieces(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<140xf32>
  %m = tile.reduce %t dim 0 : (tensor<140xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %m, %y[%c0] : tensor<1xf32>, !tile.view<1, f32>
  return
}

// -----

// Down the columns every lane has a result of its own: as it was.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: cmpf ord
// CHECK: return
func.func @columns(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<8x64xf32>
  %s = tile.reduce %t dim 0 : (tensor<8x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<1x64xf32>, !tile.view<2, f32>
  return
}
