// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// CHECK-LABEL: func.func @movement
func.func @movement(%s: f8E5M2, %t: tensor<4x1xf32>, %u: tensor<2x3x4xi16>) {
  // CHECK: tile.splat %{{.*}} : f8E5M2 -> tensor<3x5xf8E5M2>
  %a = tile.splat %s : f8E5M2 -> tensor<3x5xf8E5M2>
  // CHECK: tile.iota 1 : tensor<4x100xi64>
  %b = tile.iota 1 : tensor<4x100xi64>
  // CHECK: tile.iota 0 : tensor<4xi32>
  %c = tile.iota 0 : tensor<4xi32>
  // CHECK: tile.broadcast %{{.*}} : tensor<4x1xf32> -> tensor<4x7xf32>
  %d = tile.broadcast %t : tensor<4x1xf32> -> tensor<4x7xf32>
  // CHECK: tile.reshape %{{.*}} : tensor<2x3x4xi16> -> tensor<6x4xi16>
  %e = tile.reshape %u : tensor<2x3x4xi16> -> tensor<6x4xi16>
  // CHECK: tile.transpose %{{.*}} [2, 0, 1] : tensor<2x3x4xi16> -> tensor<4x2x3xi16>
  %f = tile.transpose %u [2, 0, 1] : tensor<2x3x4xi16> -> tensor<4x2x3xi16>
  // CHECK: tile.slice %{{.*}} [1, 0, 2] : tensor<2x3x4xi16> -> tensor<1x3x2xi16>
  %g = tile.slice %u [1, 0, 2] : tensor<2x3x4xi16> -> tensor<1x3x2xi16>
  // CHECK: tile.concat %{{.*}}, %{{.*}} dim 2 : tensor<2x3x4xi16>, tensor<2x3x4xi16> -> tensor<2x3x8xi16>
  %h = tile.concat %u, %u dim 2 : tensor<2x3x4xi16>, tensor<2x3x4xi16> -> tensor<2x3x8xi16>
  return
}

// CHECK-LABEL: func.func @scalar
func.func @scalar(%t: tensor<1x1xbf16>) -> bf16 {
  // CHECK: tile.scalar %{{.*}} : tensor<1x1xbf16>
  %s = tile.scalar %t : tensor<1x1xbf16>
  return %s : bf16
}
