// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// CHECK-LABEL: func.func @reduce
func.func @reduce(%t: tensor<4x64xf32>) -> tensor<4x1xf32> {
  // CHECK: tile.reduce %{{.*}} dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
  // CHECK-NEXT: %[[C:.*]] = arith.addf %[[A]], %[[B]] : f32
  // CHECK-NEXT: tile.yield %[[C]] : f32
  %s = tile.reduce %t dim 1 : (tensor<4x64xf32>) -> tensor<4x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  return %s : tensor<4x1xf32>
}

// The place of the largest element: two values go through the region together.
// CHECK-LABEL: func.func @argmax
func.func @argmax(%t: tensor<64xf32>, %i: tensor<64xi32>) {
  // CHECK: %{{.*}}:2 = tile.reduce %{{.*}}, %{{.*}} dim 0 : (tensor<64xf32>, tensor<64xi32>) -> (tensor<1xf32>, tensor<1xi32>)
  // CHECK: tile.yield %{{.*}}, %{{.*}} : f32, i32
  %s:2 = tile.reduce %t, %i dim 0 : (tensor<64xf32>, tensor<64xi32>) -> (tensor<1xf32>, tensor<1xi32>) {
  ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
    %first = arith.cmpf oge, %a, %b : f32
    %v = arith.select %first, %a, %b : f32
    %vi = arith.select %first, %ai, %bi : i32
    tile.yield %v, %vi : f32, i32
  }
  return
}

// CHECK-LABEL: func.func @scan
func.func @scan(%t: tensor<4x64xi64>) {
  // CHECK: tile.scan %{{.*}} dim 0 : (tensor<4x64xi64>) -> tensor<4x64xi64>
  %s = tile.scan %t dim 0 : (tensor<4x64xi64>) -> tensor<4x64xi64> {
  ^bb0(%a: i64, %b: i64):
    // Constants and tile arithmetic may stand in a region.
    %two = arith.constant 2 : i64
    %half = tile.div %b, %two : i64
    %c = arith.addi %a, %half : i64
    tile.yield %c : i64
  }
  // CHECK: tile.scan %{{.*}} dim 1 reverse : (tensor<4x64xi64>) -> tensor<4x64xi64>
  %r = tile.scan %t dim 1 reverse : (tensor<4x64xi64>) -> tensor<4x64xi64> {
  ^bb0(%a: i64, %b: i64):
    tile.yield %b : i64
  }
  return
}

// CHECK-LABEL: func.func @dot
func.func @dot(%a: tensor<4x8xbf16>, %b: tensor<8x3xbf16>, %c: tensor<4x3xf32>, %d: tensor<4x8xi8>,
               %e: tensor<8x3xi8>, %f: tensor<4x3xi32>, %g: tensor<4x8xf8E4M3FN>, %h: tensor<8x3xf8E5M2>,
               %i: tensor<2x2xf64>, %j: tensor<2x2xf32>) {
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xbf16>, tensor<8x3xbf16>, tensor<4x3xf32>
  %0 = tile.dot %a, %b, %c : tensor<4x8xbf16>, tensor<8x3xbf16>, tensor<4x3xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} {a_unsigned, b_unsigned} : tensor<4x8xi8>, tensor<8x3xi8>, tensor<4x3xi32>
  %1 = tile.dot %d, %e, %f {a_unsigned, b_unsigned} : tensor<4x8xi8>, tensor<8x3xi8>, tensor<4x3xi32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xf8E4M3FN>, tensor<8x3xf8E5M2>, tensor<4x3xf32>
  %2 = tile.dot %g, %h, %c : tensor<4x8xf8E4M3FN>, tensor<8x3xf8E5M2>, tensor<4x3xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>
  %3 = tile.dot %i, %i, %i : tensor<2x2xf64>, tensor<2x2xf64>, tensor<2x2xf64>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} {allow_tf32} : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
  %4 = tile.dot %j, %j, %j {allow_tf32} : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} {fast_accum} : tensor<4x8xf8E4M3FN>, tensor<8x3xf8E5M2>, tensor<4x3xf32>
  %5 = tile.dot %g, %h, %c {fast_accum} : tensor<4x8xf8E4M3FN>, tensor<8x3xf8E5M2>, tensor<4x3xf32>
  return
}
