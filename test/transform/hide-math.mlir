// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -tenon-hide-math %s | FileCheck %s --check-prefix=HIDDEN
// RUN: tenon-opt -tenon-hide-math -canonicalize -cse -tenon-show-math %s | FileCheck %s

// Functions that Tenon expands itself are not folded, but shared and dropped like any pure op; others are folded.
// HIDDEN-LABEL: func.func @functions
// HIDDEN: "hidden.function"(%{{.*}}) {name = "math.exp"} : (tensor<4xf32>) -> tensor<4xf32>
// HIDDEN: math.sqrt
// CHECK-LABEL: func.func @functions
// CHECK-NOT: hidden
func.func @functions(%y: !tile.view<1, f32>, %i: index) {
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<1.300000e+00> : tensor<4xf32>
  // CHECK-DAG: %[[ROOT:.*]] = arith.constant dense<2.000000e+00> : tensor<4xf32>
  // CHECK: %[[E:.*]] = math.exp %[[C]] : tensor<4xf32>
  // CHECK-NOT: math.
  // CHECK: %[[S:.*]] = arith.addf %[[E]], %[[E]] : tensor<4xf32>
  // CHECK: tile.store %[[S]]
  // CHECK: tile.store %[[ROOT]]
  %c = arith.constant dense<1.3> : tensor<4xf32>
  %a = math.exp %c : tensor<4xf32>
  %b = math.exp %c : tensor<4xf32>
  %dead = math.sin %a : tensor<4xf32>
  %s = arith.addf %a, %b : tensor<4xf32>
  tile.store %s, %y[%i] : tensor<4xf32>, !tile.view<1, f32>
  %four = arith.constant dense<4.0> : tensor<4xf32>
  %root = math.sqrt %four : tensor<4xf32>
  tile.store %root, %y[%i] : tensor<4xf32>, !tile.view<1, f32>
  return
}

// In a combination too, and of scalars.
// CHECK-LABEL: func.func @nested
func.func @nested(%x: tensor<4xf64>) -> tensor<1xf64> {
  // CHECK: tile.reduce
  // CHECK: math.log2 %{{.*}} : f64
  %r = tile.reduce %x dim 0 : (tensor<4xf64>) -> tensor<1xf64> {
  ^bb0(%a: f64, %b: f64):
    %c = arith.constant 3.0 : f64
    %l = math.log2 %c : f64
    %m = arith.maximumf %a, %b : f64
    %n = arith.maximumf %m, %l : f64
    tile.yield %n : f64
  }
  return %r : tensor<1xf64>
}
