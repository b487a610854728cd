// SPDX-License-Identifier: Apache-2.0
// Quotients of f32 with one divisor: the product with its reciprocal, put right; a vector with a number that is very small or
// large is divided.
// RUN: %lower %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=baseline},canonicalize,cse)' %s | FileCheck %s --check-prefix=BASELINE

// A number of the launch.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[ONCE:.*]] = arith.divf %{{.*}}, %[[D:.*]] : f32
// CHECK: scf.if %{{.*}} -> (vector<32xf32>) {
// CHECK: %[[Q:.*]] = arith.mulf %[[A:.*]], %[[R:.*]] : vector<32xf32>
// CHECK: %[[MINUS:.*]] = arith.negf %[[Q]]
// CHECK: %[[REST:.*]] = math.fma %[[MINUS]], %{{.*}}, %[[A]]
// CHECK: math.fma %[[REST]], %[[R]], %[[Q]]
// CHECK: } else {
// CHECK: arith.divf %[[A]], %{{.*}} : vector<32xf32>
// BASELINE-LABEL: func.func private @instance
// BASELINE-NOT: math.fma
// BASELINE: arith.divf
func.func @scaled(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %d: f32, %i: index) attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %s = tile.splat %d : f32 -> tensor<64xf32>
  %q = arith.divf %t, %s : tensor<64xf32>
  tile.store %q, %y[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// Rows by their sums.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.if %{{.*}} -> (vector<32xf32>) {
// CHECK: math.fma
// CHECK: math.fma
func.func @rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<4x64xf32>
  %s = tile.reduce %t dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %w = tile.broadcast %s : tensor<4x1xf32> -> tensor<4x64xf32>
  %q = arith.divf %t, %w : tensor<4x64xf32>
  tile.store %q, %y[%i, %zero] : tensor<4x64xf32>, !tile.view<2, f32>
  return
}

// -----

// A power of two: LLVM makes that a product. And divisors that are each another's.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: math.fma
// CHECK: return
func.func @others(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %four = arith.constant dense<4.0> : tensor<64xf32>
  %q = arith.divf %t, %four : tensor<64xf32>
  %p = arith.divf %q, %t : tensor<64xf32>
  tile.store %p, %y[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// bf16, which registers hold as f32: each quotient is rounded.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: math.fma
// CHECK: arith.divf %{{.*}} : vector<32xf32>
// CHECK-NOT: math.fma
// CHECK: return
func.func @narrow(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<64xbf16>
  %three = arith.constant dense<3.0> : tensor<64xbf16>
  %q = arith.divf %t, %three : tensor<64xbf16>
  tile.store %q, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}
