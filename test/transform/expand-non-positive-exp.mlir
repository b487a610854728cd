// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt --pass-pipeline='builtin.module(tenon-expand-math,cse)' -split-input-file %s | FileCheck %s

// Where the result need not be exact and the argument is not positive: its power is split at the whole number below, and there is no
// bound above, but 0 where it would be smaller than all numbers.
// CHECK-LABEL: func.func @weights
// CHECK: %[[Y:.*]] = math.fma %arg0
// CHECK-NOT: arith.cmpf
// CHECK: math.floor
// CHECK: arith.cmpf olt, %[[Y]]
// CHECK-NOT: arith.cmpf
// CHECK: return
func.func @weights(%x: vector<32xf32>) -> vector<32xf32> {
  %e = math.exp %x {tile.coarse, tile.non_positive, tile.relaxed} : vector<32xf32>
  return %e : vector<32xf32>
}

// -----

// Of any sign, and exact: not so.
// CHECK-LABEL: func.func @others
// CHECK-NOT: math.floor
// CHECK: return
func.func @others(%x: f32) -> (f32, f32) {
  %e = math.exp %x {tile.relaxed} : f32
  %f = math.exp %x {tile.non_positive} : f32
  return %e, %f : f32, f32
}
