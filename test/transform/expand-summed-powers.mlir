// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt --pass-pipeline='builtin.module(tenon-expand-math,cse)' -split-input-file %s | FileCheck %s

// A summand is scaled by its floor, with what is left of it in five steps.
// CHECK-LABEL: func.func @of_two
// CHECK: %[[WHOLE:.*]] = math.floor %[[X:.*]] : vector<32xf32>
// CHECK: %[[REST:.*]] = arith.subf %[[X]], %[[WHOLE]]
// CHECK-COUNT-5: math.fma
// CHECK-NOT: math.fma
// CHECK: return
func.func @of_two(%x: vector<32xf32>) -> vector<32xf32> {
  %e = math.exp2 %x {tile.summed} : vector<32xf32>
  return %e : vector<32xf32>
}

// -----

// One of e has a step less: three for what is left, then five.
// CHECK-LABEL: func.func @of_e
// CHECK-COUNT-8: math.fma
// CHECK-NOT: math.fma
// CHECK: return
func.func @of_e(%x: vector<32xf32>) -> vector<32xf32> {
  %e = math.exp %x {tile.summed} : vector<32xf32>
  return %e : vector<32xf32>
}
