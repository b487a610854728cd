// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt --pass-pipeline='builtin.module(tenon-expand-math,cse)' -split-input-file %s | FileCheck %s

// A sigmoid that only 16 bits see is 1 / (1 + 2^y): no magnitude, no choice; the quotient keeps its leave to be a
// product with a reciprocal.
// CHECK-LABEL: func.func @relaxed
// CHECK-NOT: math.absf
// CHECK-NOT: oge
// CHECK: %[[Q:.*]] = arith.divf %cst{{.*}}, %{{.*}} fastmath<arcp>
// CHECK-NEXT: return %[[Q]]
func.func @relaxed(%x: vector<32xf32>) -> vector<32xf32> {
  %zero = arith.constant dense<0.0> : vector<32xf32>
  %one = arith.constant dense<1.0> : vector<32xf32>
  %c = arith.cmpf oge, %x, %zero : vector<32xf32>
  %a = math.absf %x : vector<32xf32>
  %n = arith.negf %a : vector<32xf32>
  %e = math.exp %n {tile.coarse, tile.relaxed} : vector<32xf32>
  %w = arith.select %c, %one, %e : vector<32xi1>, vector<32xf32>
  %s = arith.addf %e, %one : vector<32xf32>
  %q = arith.divf %w, %s fastmath<arcp> {tile.coarse, tile.relaxed} : vector<32xf32>
  return %q : vector<32xf32>
}

// -----

// One that is seen as it is stays what it was, and so does a quotient that chooses by something else.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: arith.cmpf oge
// CHECK: math.absf
// CHECK-COUNT-2: arith.divf
func.func @others(%x: f32, %y: f32) -> (f32, f32) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %c = arith.cmpf oge, %x, %zero : f32
  %d = arith.cmpf oge, %y, %zero : f32
  %a = math.absf %x : f32
  %n = arith.negf %a : f32
  %e = math.exp %n : f32
  %w = arith.select %c, %one, %e : f32
  %v = arith.select %d, %one, %e : f32
  %s = arith.addf %e, %one : f32
  %q = arith.divf %w, %s : f32
  %r = arith.divf %v, %s {tile.relaxed} : f32
  return %q, %r : f32, f32
}
