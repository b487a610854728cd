// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt --pass-pipeline='builtin.module(tenon-expand-math,cse)' -split-input-file %s | FileCheck %s

// Half of 1 + erf(s x), where that need not be exact: s is in the coefficients, and only x is multiplied.
// CHECK-LABEL: func.func @normal_distribution
// CHECK-NOT: arith.mulf %arg0
// CHECK: math.absf %arg0
// CHECK-NOT: arith.mulf %arg0
// CHECK: return
func.func @normal_distribution(%x: vector<32xf32>) -> vector<32xf32> {
  %s = arith.constant dense<0.70710678> : vector<32xf32>
  %one = arith.constant dense<1.0> : vector<32xf32>
  %half = arith.constant dense<0.5> : vector<32xf32>
  %t = arith.mulf %x, %s : vector<32xf32>
  %e = math.erf %t : vector<32xf32>
  %sum = arith.addf %e, %one {tile.relaxed} : vector<32xf32>
  %h = arith.mulf %sum, %half : vector<32xf32>
  return %h : vector<32xf32>
}

// -----

// A soft step of another width, the constant first.
// CHECK-LABEL: func.func @step
// CHECK-NOT: arith.mulf %{{.*}}, %arg0
// CHECK: math.absf %arg0
func.func @step(%x: f32) -> f32 {
  %s = arith.constant 3.0 : f32
  %one = arith.constant 1.0 : f32
  %t = arith.mulf %s, %x : f32
  %e = math.erf %t : f32
  %sum = arith.addf %one, %e {tile.coarse, tile.relaxed} : f32
  return %sum : f32
}

// -----

// A negative factor, or one that is not known, and a sum that is seen as it is: multiplied as the program says.
// CHECK-LABEL: func.func @others
// CHECK: arith.mulf %arg0
// CHECK: arith.mulf %arg0
// CHECK: arith.mulf %arg0
func.func @others(%x: f32, %w: f32) -> (f32, f32, f32) {
  %s = arith.constant -2.0 : f32
  %p = arith.constant 2.0 : f32
  %one = arith.constant 1.0 : f32
  %t = arith.mulf %x, %s : f32
  %e = math.erf %t : f32
  %sum = arith.addf %e, %one {tile.relaxed} : f32
  %u = arith.mulf %x, %w : f32
  %f = math.erf %u : f32
  %total = arith.addf %f, %one {tile.relaxed} : f32
  %v = arith.mulf %x, %p : f32
  %g = math.erf %v : f32
  %exact = arith.addf %g, %one : f32
  return %sum, %total, %exact : f32, f32, f32
}
