// SPDX-License-Identifier: Apache-2.0
// The largest of a long row of bf16 by its bits, taken for f16: two comparisons and one test for 64 elements.
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512-dot},canonicalize,cse)' %s | FileCheck %s --check-prefix=WITHOUT
// WITHOUT-NOT: xf16>

// CHECK-LABEL: func.func private @instance
// CHECK: scf.for {{.*}} -> (vector<64xf16>, vector<32xi1>)
// CHECK: %[[X:.*]] = llvm.load {{.*}} -> vector<64xf16>
// CHECK: %[[BEYOND:.*]] = arith.cmpf ogt, %[[X]], %[[M:.*]] : vector<64xf16>
// CHECK: arith.select %[[BEYOND]], %[[X]], %[[M]]
// CHECK: arith.cmpf ord
// What the bits do not tell is reduced again, as f32.
// CHECK: scf.if
// CHECK: scf.for
// CHECK: arith.maximumf {{.*}} fastmath<nnan> : vector<64xf32>
func.func @largest(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, bf16> -> tensor<1024xbf16>
  %w = tile.cast %t : tensor<1024xbf16> -> tensor<1024xf32>
  %m = tile.reduce %w dim 0 : (tensor<1024xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %m, %y[%c0] : tensor<1xf32>, !tile.view<1, f32>
  return
}

// -----

// A spread: the smallest is less, and the sum beside it is of f32. Of what is computed first, nothing is known by bits.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for {{.*}} -> (vector<64xf32>, vector<64xf16>, vector<32xi1>)
// CHECK: arith.cmpf olt
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: xf16>
func.func @spread(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>, %i: index) {
  %zero = arith.constant 0 : index
  %t = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<1x1024xbf16>
  %a = tile.cast %t : tensor<1x1024xbf16> -> tensor<1x1024xf32>
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

func.func @computed(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32>)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : !tile.view<1, bf16> -> tensor<1024xbf16>
  %w = tile.cast %t : tensor<1024xbf16> -> tensor<1024xf32>
  %n = arith.negf %w : tensor<1024xf32>
  %m = tile.reduce %n dim 0 : (tensor<1024xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %m, %y[%c0] : tensor<1xf32>, !tile.view<1, f32>
  return
}
