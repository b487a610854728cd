// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt --pass-pipeline='builtin.module(tenon-expand-math,cse)' -split-input-file %s | FileCheck %s

// x times half of 1 + erf(s x): one function, which needs neither 1 - erfc nor a choice after it, and ends with the multiply-add
// that has the product in it.
// CHECK-LABEL: func.func @gelu
// CHECK-NOT: arith.mulf %arg0
// CHECK: math.floor
// CHECK-NOT: arith.subf %cst{{.*}},
// CHECK: arith.select %{{.*}}, %{{.*}}, %arg0
// CHECK-NEXT: %[[Y:.*]] = math.fma
// CHECK-NEXT: return %[[Y]]
func.func @gelu(%x: vector<32xf32>) -> vector<32xf32> {
  %s = arith.constant dense<0.70710678> : vector<32xf32>
  %one = arith.constant dense<1.0> : vector<32xf32>
  %half = arith.constant dense<0.5> : vector<32xf32>
  %t = arith.mulf %x, %s : vector<32xf32>
  %e = math.erf %t : vector<32xf32>
  %sum = arith.addf %e, %one {tile.coarse, tile.relaxed} : vector<32xf32>
  %h = arith.mulf %sum, %half : vector<32xf32>
  %y = arith.mulf %x, %h : vector<32xf32>
  return %y : vector<32xf32>
}

// -----

// Where the result is seen as it is, the argument is rounded as the program says: after its bound, which changes nothing.
// CHECK-LABEL: func.func @exact
// CHECK: %[[T:.*]] = math.absf
// CHECK: arith.mulf %[[T]]
// CHECK: math.floor
func.func @exact(%x: f32) -> f32 {
  %s = arith.constant 0.70710678 : f32
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %t = arith.mulf %x, %s : f32
  %e = math.erf %t : f32
  %sum = arith.addf %e, %one : f32
  %h = arith.mulf %half, %sum : f32
  %y = arith.mulf %h, %x : f32
  return %y : f32
}

// -----

// The sum times half of x is the same.
// CHECK-LABEL: func.func @half_of_x
// CHECK-NOT: arith.mulf %arg0
// CHECK: math.floor
// CHECK: arith.select %{{.*}}, %{{.*}}, %arg0
// CHECK-NEXT: %[[Y:.*]] = math.fma
// CHECK-NEXT: return %[[Y]]
func.func @half_of_x(%x: vector<32xf32>) -> vector<32xf32> {
  %s = arith.constant dense<0.70710678> : vector<32xf32>
  %one = arith.constant dense<1.0> : vector<32xf32>
  %half = arith.constant dense<0.5> : vector<32xf32>
  %h = arith.mulf %half, %x : vector<32xf32>
  %t = arith.mulf %x, %s : vector<32xf32>
  %e = math.erf %t : vector<32xf32>
  %sum = arith.addf %e, %one {tile.coarse, tile.relaxed} : vector<32xf32>
  %y = arith.mulf %h, %sum : vector<32xf32>
  return %y : vector<32xf32>
}

// -----

// The sum times half of something else, and times a third of x: not.
// CHECK-LABEL: func.func @other_halves
// CHECK-NOT: math.floor
// CHECK: return
func.func @other_halves(%x: f32, %w: f32) -> (f32, f32) {
  %third = arith.constant 0.33 : f32
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %h = arith.mulf %half, %w : f32
  %e = math.erf %x : f32
  %sum = arith.addf %e, %one : f32
  %y = arith.mulf %h, %sum : f32
  %l = arith.mulf %x, %third : f32
  %f = math.erf %x : f32
  %total = arith.addf %f, %one : f32
  %z = arith.mulf %l, %total : f32
  return %y, %z : f32, f32
}

// -----

// The product with something else, with two users of the half, and with what the argument of erf is not: no GELU.
// CHECK-LABEL: func.func @others
// CHECK-NOT: math.floor
// CHECK: return
func.func @others(%x: f32, %w: f32) -> (f32, f32, f32, f32) {
  %s = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %e = math.erf %x : f32
  %sum = arith.addf %e, %one {tile.relaxed} : f32
  %h = arith.mulf %sum, %s : f32
  %other = arith.mulf %w, %h : f32
  %f = math.erf %w : f32
  %total = arith.addf %f, %one : f32
  %k = arith.mulf %total, %s : f32
  %product = arith.mulf %w, %k : f32
  %square = arith.mulf %k, %k : f32
  %n = arith.negf %x : f32
  %g = math.erf %n : f32
  %last = arith.addf %g, %one : f32
  %l = arith.mulf %last, %s : f32
  %reflected = arith.mulf %x, %l : f32
  return %other, %product, %square, %reflected : f32, f32, f32, f32
}
