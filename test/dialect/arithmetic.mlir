// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// CHECK-LABEL: func.func @cast
func.func @cast(%i: index, %f: f32, %t: tensor<2x8xi8>) {
  // CHECK: tile.cast %{{.*}} : index -> i32
  %a = tile.cast %i : index -> i32
  // CHECK: tile.cast unsigned %{{.*}} : f32 -> i64
  %b = tile.cast unsigned %f : f32 -> i64
  // CHECK: tile.cast unsigned %{{.*}} : tensor<2x8xi8> -> tensor<2x8xf8E4M3FN>
  %c = tile.cast unsigned %t : tensor<2x8xi8> -> tensor<2x8xf8E4M3FN>
  // CHECK: tile.cast %{{.*}} : i64 -> index
  %d = tile.cast %b : i64 -> index
  return
}

// CHECK-LABEL: func.func @integers
func.func @integers(%i: index, %s: i16, %t: tensor<4xi64>) {
  // CHECK: tile.div %{{.*}}, %{{.*}} : index
  %a = tile.div %i, %i : index
  // CHECK: tile.div unsigned %{{.*}}, %{{.*}} : tensor<4xi64>
  %b = tile.div unsigned %t, %t : tensor<4xi64>
  // CHECK: tile.rem %{{.*}}, %{{.*}} : i16
  %c = tile.rem %s, %s : i16
  // CHECK: tile.rem unsigned %{{.*}}, %{{.*}} : i16
  %d = tile.rem unsigned %s, %s : i16
  // CHECK: tile.shl %{{.*}}, %{{.*}} : i16
  %e = tile.shl %s, %s : i16
  // CHECK: tile.shr %{{.*}}, %{{.*}} : tensor<4xi64>
  %f = tile.shr %t, %t : tensor<4xi64>
  // CHECK: tile.shr unsigned %{{.*}}, %{{.*}} {note} : tensor<4xi64>
  %g = tile.shr unsigned %t, %t {note} : tensor<4xi64>
  return
}

// CHECK-LABEL: func.func @philox
func.func @philox(%seed: i64, %counter: tensor<2x4xi64>) {
  // CHECK: tile.philox %{{.*}}, %{{.*}} : tensor<2x4xi64> -> tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>
  %w:4 = tile.philox %seed, %counter : tensor<2x4xi64> -> tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>
  // CHECK: tile.random_bits %{{.*}}, %{{.*}} {rounds = 7 : i64} : tensor<2x4xi64> -> tensor<2x4xi16>
  %h = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<2x4xi64> -> tensor<2x4xi16>
  // CHECK: tile.random_bits %{{.*}}, %{{.*}} {note} : tensor<2x4xi64> -> tensor<2x4xi32>
  %b = tile.random_bits %seed, %counter {note} : tensor<2x4xi64> -> tensor<2x4xi32>
  return
}
