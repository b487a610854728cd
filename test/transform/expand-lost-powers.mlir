// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt --pass-pipeline='builtin.module(tenon-expand-math,cse)' -split-input-file %s | FileCheck %s

// A power in a sum with 1 (a sigmoid) is kept from numbers that are lost in it: it has a bound, and no 0 is chosen at the end.
// CHECK-LABEL: func.func @sigmoid
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant dense<-6.400000e+01>
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.0{{.*}}>
// CHECK: arith.cmpf olt, %{{.*}}, %[[LOWEST]]
// CHECK: %[[SUM:.*]] = arith.addf %[[ONE]], %
// CHECK-NEXT: arith.divf %[[ONE]], %[[SUM]]
func.func @sigmoid(%x: vector<32xf32>) -> vector<32xf32> {
  %one = arith.constant dense<1.0> : vector<32xf32>
  %n = arith.negf %x : vector<32xf32>
  %e = math.exp %n {tile.coarse, tile.relaxed} : vector<32xf32>
  %sum = arith.addf %one, %e : vector<32xf32>
  %y = arith.divf %one, %sum : vector<32xf32>
  return %y : vector<32xf32>
}

// -----

// So is an exact one that a constant is taken from.
// CHECK-LABEL: func.func @minus_one
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant -4.400000e+01
// CHECK: arith.cmpf olt, %arg0, %[[LOWEST]]
// CHECK-NOT: 0.000000e+00 : f32
// CHECK: arith.subf %{{.*}}, %cst :
func.func @minus_one(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %e = math.exp %x : f32
  %y = arith.subf %e, %one : f32
  return %y : f32
}

// -----

// A sum with what may be nothing, and a power that something else wants too: 0 below the smallest number.
// CHECK-LABEL: func.func @others
// CHECK-NOT: -4.400000e+01
// CHECK: arith.select
// CHECK: return
func.func @others(%x: f32, %w: f32) -> (f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %tiny = arith.constant 1.0e-20 : f32
  %e = math.exp %x : f32
  %y = arith.addf %e, %tiny : f32
  %f = math.exp %w : f32
  %z = arith.addf %f, %one : f32
  return %y, %f, %z : f32, f32, f32
}
