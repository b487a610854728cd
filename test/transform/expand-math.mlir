// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -tenon-expand-math %s | FileCheck %s

// Only arith, fma, sqrt and absf are left of any of them.
// CHECK-LABEL: func.func @functions
// CHECK-NOT: math.{{exp|log|sin|cos|tanh|erf|rsqrt}}
// CHECK: return
func.func @functions(%x: tensor<4xf32>, %y: tensor<4xf64>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>, tensor<4xf64>) {
  %a = math.exp %x : tensor<4xf32>
  %b = math.exp2 %a : tensor<4xf32>
  %c = math.log %b : tensor<4xf32>
  %d = math.log2 %c : tensor<4xf32>
  %e = math.sin %d : tensor<4xf32>
  %f = math.cos %x : tensor<4xf32>
  %g = math.tanh %x : tensor<4xf32>
  %h = math.erf %y : tensor<4xf64>
  %i = math.rsqrt %y : tensor<4xf64>
  return %e, %f, %g, %h, %i : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>, tensor<4xf64>
}

// Narrow floats are computed in f32 and rounded once.
// CHECK-LABEL: func.func @narrow
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<4xbf16> to tensor<4xf32>
// CHECK-NOT: bf16
// CHECK: %[[RESULT:.*]] = arith.truncf %{{.*}} : tensor<4xf32> to tensor<4xbf16>
// CHECK-NEXT: return %[[RESULT]]
func.func @narrow(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %y = math.exp %x : tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// Reassociation would undo the expansion's rounding steps: it carries no fast-math flags.
// CHECK-LABEL: func.func @fast
// CHECK-NOT: fastmath
// CHECK: return
func.func @fast(%x: f32) -> f32 {
  %y = math.tanh %x fastmath<fast> : f32
  return %y : f32
}

// Combine regions are code like any other.
// CHECK-LABEL: func.func @in_a_region
// CHECK: tile.reduce
// CHECK-NOT: math.exp
// CHECK: return
func.func @in_a_region(%x: tensor<4xf32>) -> tensor<1xf32> {
  %s = tile.reduce %x dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = math.exp %a : f32
    %d = arith.addf %c, %b : f32
    tile.yield %d : f32
  }
  return %s : tensor<1xf32>
}

// What targets have themselves stays.
// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: math.sqrt
  %a = math.sqrt %x : tensor<4xf32>
  // CHECK-NEXT: math.floor
  %b = math.floor %a : tensor<4xf32>
  // CHECK-NEXT: math.fma
  %c = math.fma %a, %b, %x : tensor<4xf32>
  // CHECK-NEXT: return
  return %c : tensor<4xf32>
}
