// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-shorten-lives))' | FileCheck %s

// A chain, element by element, instead of step by step.
// CHECK-LABEL: func.func @sum
// CHECK: %[[E0:.*]] = math.exp %arg0
// CHECK-NEXT: %[[S0:.*]] = arith.addf %arg2, %[[E0]]
// CHECK-NEXT: %[[E1:.*]] = math.exp %arg1
// CHECK-NEXT: %[[S1:.*]] = arith.addf %[[S0]], %[[E1]]
// CHECK-NEXT: nvidia.store global %[[S1]]
func.func @sum(%x0: f32, %x1: f32, %s: f32, %p: i64) {
  %e0 = math.exp %x0 : f32
  %e1 = math.exp %x1 : f32
  %s0 = arith.addf %s, %e0 : f32
  %s1 = arith.addf %s0, %e1 : f32
  nvidia.store global %s1, %p : f32, i64
  return
}

// Accesses stay in their order; what a loop uses stays outside of it.
// CHECK-LABEL: func.func @memory
// CHECK: %[[A:.*]] = nvidia.load global %arg0
// CHECK-NEXT: %[[B:.*]] = nvidia.load global %arg1
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[B]]
// CHECK-NEXT: nvidia.store global %[[N]], %arg1
// CHECK-NEXT: %[[W:.*]] = arith.addf %[[A]], %[[A]]
// CHECK-NEXT: scf.for
// CHECK-NEXT: nvidia.store global %[[W]], %arg0
func.func @memory(%p: i64, %q: i64, %n: index, %one: index) {
  %a = nvidia.load global %p : i64 -> f32
  %w = arith.addf %a, %a : f32
  %b = nvidia.load global %q : i64 -> f32
  %m = arith.negf %b : f32
  nvidia.store global %m, %q : f32, i64
  scf.for %i = %one to %n step %one {
    nvidia.store global %w, %p : f32, i64
  }
  return
}

// Matrix instructions: left as it is.
// CHECK-LABEL: func.func @matrix
// CHECK: arith.negf
// CHECK: arith.addf
// CHECK: nvidia.store global
func.func @matrix(%x: f32, %p: i64, %a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) {
  %n = arith.negf %x : f32
  %s = arith.addf %x, %x : f32
  nvidia.store global %s, %p : f32, i64
  %d = nvidia.mma bf16 bf16 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  nvidia.store global %d, %p : vector<4xf32>, i64
  nvidia.store global %n, %p : f32, i64
  return
}
