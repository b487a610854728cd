// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt --pass-pipeline='builtin.module(tenon-expand-math,canonicalize,cse)' -split-input-file %s | FileCheck %s

// 1 + tanh(0.8 (t + 0.05 t^3)), as in GELU, where bf16 is all that sees it; t is a sum. The polynomial has three operations, and the
// factor of the exponent is in its coefficients.
// CHECK-LABEL: func.func @gelu
// CHECK: %[[T:.*]] = arith.addf %arg0, %arg1
// CHECK-NEXT: %[[Z:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK: %[[S:.*]] = math.fma %[[Z]]
// CHECK: arith.mulf %[[T]], %[[S]]
// CHECK-NOT: arith.mulf %[[T]]
// CHECK: arith.divf
// CHECK: arith.mulf %[[T]]
// CHECK-NEXT: return
func.func @gelu(%x: vector<32xf32>, %bias: vector<32xf32>) -> vector<32xf32> {
  %c = arith.constant dense<0.05> : vector<32xf32>
  %s = arith.constant dense<0.8> : vector<32xf32>
  %one = arith.constant dense<1.0> : vector<32xf32>
  %half = arith.constant dense<0.5> : vector<32xf32>
  %t = arith.addf %x, %bias : vector<32xf32>
  %a = arith.mulf %t, %c : vector<32xf32>
  %b = arith.mulf %a, %t : vector<32xf32>
  %d = arith.mulf %b, %t : vector<32xf32>
  %e = arith.addf %t, %d : vector<32xf32>
  %u = arith.mulf %s, %e : vector<32xf32>
  %h = math.tanh %u : vector<32xf32>
  %sum = arith.addf %one, %h {tile.coarse, tile.relaxed} : vector<32xf32>
  %phi = arith.mulf %sum, %half : vector<32xf32>
  %y = arith.mulf %t, %phi : vector<32xf32>
  return %y : vector<32xf32>
}

// -----

// A soft gate: x (3 + x^2), written another way, without a half.
// CHECK-LABEL: func.func @gate
// CHECK: %[[Z:.*]] = arith.mulf %arg0, %arg0
// CHECK: %[[S:.*]] = math.fma %[[Z]]
// CHECK: arith.mulf %arg0, %[[S]]
// CHECK-NOT: arith.mulf %arg0
func.func @gate(%x: f32) -> f32 {
  %three = arith.constant 3.0 : f32
  %one = arith.constant 1.0 : f32
  %z = arith.mulf %x, %x : f32
  %s = arith.addf %z, %three : f32
  %u = arith.mulf %s, %x : f32
  %h = math.tanh %u : f32
  %sum = arith.addf %h, %one {tile.coarse, tile.relaxed} : f32
  return %sum : f32
}

// -----

// As f32 sees it: fewer roundings than the program's, so that this is no matter of who sees it. The power of a number that
// was scaled is that of 2.
// CHECK-LABEL: func.func @seen_whole
// CHECK: %[[Z:.*]] = arith.mulf %arg0, %arg0
// CHECK: %[[S:.*]] = math.fma %[[Z]]
// CHECK: arith.mulf %arg0, %[[S]]
// CHECK-NOT: arith.mulf %arg0
// CHECK: arith.divf %{{[^ ]*}}, %{{[^ ]*}} : f32
// CHECK-NEXT: return
func.func @seen_whole(%x: f32) -> f32 {
  %c = arith.constant 0.05 : f32
  %one = arith.constant 1.0 : f32
  %z = arith.mulf %x, %x : f32
  %cube = arith.mulf %z, %x : f32
  %d = arith.mulf %cube, %c : f32
  %e = arith.addf %x, %d : f32
  %h = math.tanh %e : f32
  %sum = arith.addf %h, %one : f32
  return %sum : f32
}

// -----

// What may cancel, what f16 sees, two variables, a constant summand and the fourth power stay as they are.
// CHECK-LABEL: func.func @others
// CHECK-NOT: math.fma %{{.*}}, %cst{{.*}}, %cst
// CHECK: return
func.func @others(%x: f32, %w: f32) -> (f32, f32, f32, f32, f32) {
  %c = arith.constant -0.05 : f32
  %p = arith.constant 0.05 : f32
  %one = arith.constant 1.0 : f32
  %z = arith.mulf %x, %x : f32
  %cube = arith.mulf %z, %x : f32
  %a = arith.mulf %cube, %c : f32
  %b = arith.addf %x, %a : f32
  %th0 = math.tanh %b : f32
  %sum0 = arith.addf %th0, %one {tile.coarse, tile.relaxed} : f32
  %d = arith.mulf %cube, %p : f32
  %e = arith.addf %x, %d : f32
  %th1 = math.tanh %e : f32
  %sum1 = arith.addf %th1, %one {tile.relaxed} : f32
  %f = arith.addf %w, %d : f32
  %th2 = math.tanh %f : f32
  %sum2 = arith.addf %th2, %one {tile.coarse, tile.relaxed} : f32
  %g = arith.addf %e, %one : f32
  %th3 = math.tanh %g : f32
  %sum3 = arith.addf %th3, %one {tile.coarse, tile.relaxed} : f32
  %i = arith.mulf %e, %x : f32
  %th4 = math.tanh %i : f32
  %sum4 = arith.addf %th4, %one {tile.coarse, tile.relaxed} : f32
  return %sum0, %sum1, %sum2, %sum3, %sum4 : f32, f32, f32, f32, f32
}

// -----

// Adding a large number and taking it away again rounds: it is no polynomial, though its coefficients would say so.
// CHECK-LABEL: func.func @rounded
// CHECK: %[[UP:.*]] = arith.addf %arg0, %{{.*}}
// CHECK: arith.addf %[[UP]], %{{.*}}
func.func @rounded(%t: vector<16xf32>) -> vector<16xf32> {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %up = arith.constant dense<12582912.0> : vector<16xf32>
  %down = arith.constant dense<-12582912.0> : vector<16xf32>
  %a = arith.constant dense<0.8> : vector<16xf32>
  %b = arith.constant dense<0.04> : vector<16xf32>
  %s = arith.addf %t, %up : vector<16xf32>
  %r = arith.addf %s, %down : vector<16xf32>
  %x1 = arith.mulf %r, %a : vector<16xf32>
  %t2 = arith.mulf %t, %t : vector<16xf32>
  %t3 = arith.mulf %t2, %t : vector<16xf32>
  %x3 = arith.mulf %t3, %b : vector<16xf32>
  %x = arith.addf %x1, %x3 : vector<16xf32>
  %h = math.tanh %x : vector<16xf32>
  %y = arith.addf %h, %one {tile.relaxed, tile.coarse} : vector<16xf32>
  return %y : vector<16xf32>
}
