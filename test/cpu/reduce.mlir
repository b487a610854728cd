// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// Over the last dimension: vectors along it, combined across their lanes by halves after the loop. The sum starts at
// -0, which changes no sum, not even that of nothing but -0.
// CHECK-LABEL: func.func private @instance
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<-0.000000e+00> : vector<32xf32>
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c64 step %c32 iter_args(%{{.*}} = %[[ZERO]])
// CHECK: %[[LOW:.*]] = vector.extract_strided_slice %[[SUM]] {offsets = [0], sizes = [16]
// CHECK: %[[HIGH:.*]] = vector.extract_strided_slice %[[SUM]] {offsets = [16], sizes = [16]
// CHECK: arith.addf %[[LOW]], %[[HIGH]] : vector<16xf32>
// CHECK: llvm.store %{{.*}} : f32
func.func @last(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<4x64xf32>
  %s = tile.reduce %t dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<4x1xf32>, !tile.view<2, f32>
  return
}

// -----

// Over the first: the reduced dimension is the innermost loop, the vector runs along the kept one, and nothing is
// combined across lanes.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32 {
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK-NOT: vector.extract
// CHECK: llvm.store %[[SUM]], %{{.*}} : vector<32xf32>
func.func @first(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<8x64xf32>
  %s = tile.reduce %t dim 0 : (tensor<8x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<1x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Two reductions of one tile are one loop with two accumulators.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK: %[[BOTH:.*]]:3 = scf.for %{{.*}} = %c0 to %c128 step %c32 iter_args(%[[S:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) -> (vector<32xf32>, vector<32xf32>, vector<16xi1>)
// CHECK-COUNT-1: llvm.load
// CHECK-DAG: arith.addf %[[S]]
// CHECK-DAG: arith.maximumf %[[M]]
// CHECK: scf.yield
func.func @two(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<128xf32>
  %s = tile.reduce %t dim 0 : (tensor<128xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %m = tile.reduce %t dim 0 : (tensor<128xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%c0] : tensor<1xf32>, !tile.view<1, f32>
  tile.store %m, %y[%c1] : tensor<1xf32>, !tile.view<1, f32>
  return
}

// -----

// A combination without a known neutral element: the first vector is peeled off and starts the loop.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK: %[[FIRST:.*]] = llvm.load {{.*}} -> vector<32xf32>
// CHECK: scf.for %{{.*}} = %c32 to %c128 step %c32 iter_args(%{{.*}} = %[[FIRST]])
func.func @no_neutral_element(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<128xf32>
  %s = tile.reduce %t dim 0 : (tensor<128xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %larger = arith.cmpf ogt, %a, %b : f32
    %c = arith.select %larger, %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%c0] : tensor<1xf32>, !tile.view<1, f32>
  return
}

// -----

// A long row, and nothing but the reduction: four registers a step. With a store in the loop (below) there are two.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c64 iter_args(%{{.*}} = %{{.*}}) -> (vector<64xf32>)
func.func @long_row(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>, %i: index) {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x1024xf32>
  %s = tile.reduce %a dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %y[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}

// -----

// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c32 iter_args(%{{.*}} = %{{.*}}) -> (vector<32xf32>)
func.func @long_row_stored(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                           %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>, %i: index)
    attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x1024xf32>
  %b = arith.mulf %a, %a : tensor<1x1024xf32>
  tile.store %b, %z[%i, %zero] : tensor<1x1024xf32>, !tile.view<2, f32>
  %s = tile.reduce %b dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %y[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}

// -----

// What whole steps leave of a row (51 of 64 and more) is taken in pieces that fill registers, and each is added to the
// first lanes of the same accumulators: across lanes they are combined once.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK: %[[WHOLE:.*]] = scf.for %{{.*}} = %c0 to %c576 step %c64
// CHECK: %[[TWO:.*]] = llvm.load {{.*}} -> vector<32xf32>
// CHECK-NEXT: vector.extract_strided_slice %[[WHOLE]] {offsets = [0], sizes = [32]
// CHECK-NEXT: %[[MORE:.*]] = arith.addf %{{.*}}, %[[TWO]]
// CHECK-NEXT: %[[TOTAL:.*]] = vector.insert_strided_slice %[[MORE]], %[[WHOLE]] {offsets = [0]
// CHECK: llvm.load {{.*}} -> vector<16xf32>
// CHECK: %[[TOTAL2:.*]] = vector.insert_strided_slice %{{.*}}, %[[TOTAL]]
// CHECK: llvm.load {{.*}} -> vector<3xf32>
// CHECK: %[[TOTAL3:.*]] = vector.insert_strided_slice %{{.*}}, %[[TOTAL2]]
// CHECK-NEXT: vector.extract_strided_slice %[[TOTAL3]] {offsets = [0], sizes = [32]
// CHECK-NOT: vector<{{(24|12|6|51|48)}}xf32>
// CHECK: } else {
func.func @rest_of_a_row(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<627xf32>
  %s = tile.reduce %t dim 0 : (tensor<627xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %y[%c0] : tensor<1xf32>, !tile.view<1, f32>
  return
}

// -----

// Two sums that share what they are computed from share a loop, whatever stands between them: here a store.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for {{.*}} -> (vector<32xf32>, vector<32xf32>)
// CHECK-COUNT-1: math.rsqrt
// CHECK-NOT: math.rsqrt
// CHECK: scf.yield %{{.*}}, %{{.*}} : vector<32xf32>, vector<32xf32>
func.func @siblings(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<4x64xf32>
  %e = math.rsqrt %t : tensor<4x64xf32>
  %first = tile.reduce %e dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %first, %y[%c0, %c0] : tensor<4x1xf32>, !tile.view<2, f32>
  %product = arith.mulf %t, %e : tensor<4x64xf32>
  %second = tile.reduce %product dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %second, %y[%c0, %c1] : tensor<4x1xf32>, !tile.view<2, f32>
  return
}

// -----

// One that needs the result of the other cannot.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: -> (vector<32xf32>, vector<32xf32>)
func.func @dependent(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<4x64xf32>
  %first = tile.reduce %t dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %first, %y[%c0, %c0] : tensor<4x1xf32>, !tile.view<2, f32>
  %wide = tile.broadcast %first : tensor<4x1xf32> -> tensor<4x64xf32>
  %product = arith.mulf %t, %wide : tensor<4x64xf32>
  %second = tile.reduce %product dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %second, %y[%c0, %c0] : tensor<4x1xf32>, !tile.view<2, f32>
  return
}
