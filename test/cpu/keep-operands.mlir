// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx},canonicalize,cse)' | FileCheck %s
// RUN: %lower %s | FileCheck %s --check-prefix=WITHOUT
// WITHOUT-NOT: cvtne2ps2bf16

// A normalised product: the numbers are summed up and, rounded, multiplied. One loop does both, and keeps the bits that the
// dot reads; there is no loop that converts, nor a copy of the left operand.
// CHECK-LABEL: func.func private @instance
// CHECK: math.exp
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// CHECK: llvm.store %{{.*}} : vector<32xi16>
// CHECK: arith.addf %{{.*}} : vector<32xf32>
// CHECK: } else {
// CHECK: math.exp
// CHECK: cvtne2ps2bf16
// CHECK: } else {
// CHECK: math.exp
// CHECK: cvtne2ps2bf16
// CHECK-NOT: math.exp
// CHECK-NOT: cvtne2ps2bf16
// CHECK: "llvm.x86.tdpbf16ps"
func.func @normalised(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                      %b: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                      %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<32x64xf32>
  %e = math.exp %t : tensor<32x64xf32>
  %h = tile.cast %e : tensor<32x64xf32> -> tensor<32x64xbf16>
  %v = tile.load %b[%zero, %zero] : !tile.view<2, bf16> -> tensor<64x32xbf16>
  %s = tile.reduce %e dim 1 : (tensor<32x64xf32>) -> tensor<32x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %c = arith.addf %p, %q : f32
    tile.yield %c : f32
  }
  %d = tile.dot %h, %v, %none : tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32x32xf32>
  %w = tile.broadcast %s : tensor<32x1xf32> -> tensor<32x32xf32>
  %r = arith.divf %d, %w : tensor<32x32xf32>
  tile.store %r, %y[%i, %zero] : tensor<32x32xf32>, !tile.view<2, f32>
  return
}

// -----

// Rows that a loop multiplies with one block after the other are kept once, before it (96: their length with padding).
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.store %{{.*}} : vector<32xi16>
// CHECK: } else {
// CHECK: llvm.store %{{.*}} : vector<32xi16>
// CHECK: scf.for %{{.*}} step %c32
// CHECK-NOT: %c96
// CHECK: "llvm.x86.tdpbf16ps"
func.func @reused(%a: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %b: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index, %n: index)
    attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %step = arith.constant 32 : index
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %t = tile.load %a[%i, %zero] : !tile.view<2, bf16> -> tensor<32x64xbf16>
  scf.for %j = %zero to %n step %step {
    %v = tile.load %b[%zero, %j] : !tile.view<2, bf16> -> tensor<64x32xbf16>
    %d = tile.dot %t, %v, %none : tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32x32xf32>
    tile.store %d, %y[%i, %j] : tensor<32x32xf32>, !tile.view<2, f32>
  }
  return
}

// -----

// Two dots of one loop read the same rows: they are kept once, and neither makes a copy (a second form of the operand
// would take 45184 bytes).
// CHECK: module attributes {tenon.scratch_bytes = 30848 : i64}
// CHECK-LABEL: func.func private @instance
// CHECK-COUNT-2: "llvm.x86.tdpbf16ps"
func.func @both(%a: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                %b: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                %c: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index, %n: index)
    attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %step = arith.constant 32 : index
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %t = tile.load %a[%i, %zero] : !tile.view<2, bf16> -> tensor<32x64xbf16>
  scf.for %j = %zero to %n step %step {
    %v = tile.load %b[%zero, %j] : !tile.view<2, bf16> -> tensor<64x32xbf16>
    %w = tile.load %c[%zero, %j] : !tile.view<2, bf16> -> tensor<64x32xbf16>
    %d = tile.dot %t, %v, %none : tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32x32xf32>
    %e = tile.dot %t, %w, %none : tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32x32xf32>
    %p = arith.mulf %d, %e : tensor<32x32xf32>
    tile.store %p, %y[%i, %j] : tensor<32x32xf32>, !tile.view<2, f32>
  }
  return
}

// -----

// A number of steps of K that tiles do not take in whole: a copy is needed anyway.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: cvtne2ps2bf16
// CHECK: "llvm.x86.tdpbf16ps"
func.func @ragged(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %b: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<32x48xf32>
  %e = math.exp %t : tensor<32x48xf32>
  %h = tile.cast %e : tensor<32x48xf32> -> tensor<32x48xbf16>
  %v = tile.load %b[%zero, %zero] : !tile.view<2, bf16> -> tensor<48x32xbf16>
  %s = tile.reduce %e dim 1 : (tensor<32x48xf32>) -> tensor<32x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %c = arith.addf %p, %q : f32
    tile.yield %c : f32
  }
  %d = tile.dot %h, %v, %none : tensor<32x48xbf16>, tensor<48x32xbf16>, tensor<32x32xf32>
  tile.store %d, %y[%i, %zero] : tensor<32x32xf32>, !tile.view<2, f32>
  tile.store %s, %z[%i, %zero] : tensor<32x1xf32>, !tile.view<2, f32>
  return
}
