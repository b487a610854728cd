// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// CHECK-LABEL: func.func @gather
func.func @gather(%x: !tile.view<2, f32>, %i: tensor<8xi32>, %j: tensor<8xi64>, %m: tensor<8xi1>, %p: f32) {
  // CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}} : tensor<8xi32>, tensor<8xi64>] : <2, f32> -> tensor<8xf32>
  %a = tile.gather %x[%i, %j : tensor<8xi32>, tensor<8xi64>] : !tile.view<2, f32> -> tensor<8xf32>
  // CHECK: tile.gather %{{.*}}[%{{.*}}] mask %{{.*}} : tensor<8xi1> : <2, f32> -> tensor<8xf32>
  %b = tile.gather %x[%i, %i : tensor<8xi32>, tensor<8xi32>] mask %m : tensor<8xi1> : !tile.view<2, f32> -> tensor<8xf32>
  // CHECK: tile.gather %{{.*}}[%{{.*}}] padding %{{.*}} : f32 : <2, f32> -> tensor<8xf32>
  %c = tile.gather %x[%i, %i : tensor<8xi32>, tensor<8xi32>] padding %p : f32 : !tile.view<2, f32> -> tensor<8xf32>
  // CHECK: tile.gather %{{.*}}[%{{.*}}] mask %{{.*}} : tensor<8xi1> padding %{{.*}} : f32 : <2, f32>
  %d = tile.gather %x[%i, %i : tensor<8xi32>, tensor<8xi32>] mask %m : tensor<8xi1> padding %p : f32
    : !tile.view<2, f32> -> tensor<8xf32>
  return
}

// CHECK-LABEL: func.func @scatter
func.func @scatter(%x: !tile.view<1, i8>, %v: tensor<2x4xi8>, %i: tensor<2x4xi64>, %m: tensor<2x4xi1>) {
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%{{.*}} : tensor<2x4xi64>] : tensor<2x4xi8>, <1, i8>
  tile.scatter %v, %x[%i : tensor<2x4xi64>] : tensor<2x4xi8>, !tile.view<1, i8>
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%{{.*}} : tensor<2x4xi64>] mask %{{.*}} : tensor<2x4xi1> : tensor<2x4xi8>, <1, i8>
  tile.scatter %v, %x[%i : tensor<2x4xi64>] mask %m : tensor<2x4xi1> : tensor<2x4xi8>, !tile.view<1, i8>
  return
}

// CHECK-LABEL: func.func @atomic_rmw
func.func @atomic_rmw(%x: !tile.view<1, i32>, %v: tensor<4xi32>, %i: tensor<4xi32>, %m: tensor<4xi1>) -> tensor<4xi32> {
  // CHECK: tile.atomic_rmw add %{{.*}}, %{{.*}}[%{{.*}} : tensor<4xi32>] : tensor<4xi32>, <1, i32>
  %a = tile.atomic_rmw add %v, %x[%i : tensor<4xi32>] : tensor<4xi32>, !tile.view<1, i32>
  // CHECK: tile.atomic_rmw max %{{.*}}, %{{.*}}[%{{.*}} : tensor<4xi32>] mask %{{.*}} : tensor<4xi1> unsigned : tensor<4xi32>, <1, i32>
  %b = tile.atomic_rmw max %v, %x[%i : tensor<4xi32>] mask %m : tensor<4xi1> unsigned : tensor<4xi32>, !tile.view<1, i32>
  // CHECK: tile.atomic_rmw min
  %c = tile.atomic_rmw min %v, %x[%i : tensor<4xi32>] : tensor<4xi32>, !tile.view<1, i32>
  // CHECK: tile.atomic_rmw exchange
  %d = tile.atomic_rmw exchange %v, %x[%i : tensor<4xi32>] : tensor<4xi32>, !tile.view<1, i32>
  return %d : tensor<4xi32>
}

// CHECK-LABEL: func.func @atomic_cas
func.func @atomic_cas(%x: !tile.view<1, f64>, %v: tensor<4xf64>, %i: tensor<4xi32>, %m: tensor<4xi1>) {
  // CHECK: tile.atomic_cas %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}} : tensor<4xi32>] : tensor<4xf64>, <1, f64>
  %a = tile.atomic_cas %v, %v, %x[%i : tensor<4xi32>] : tensor<4xf64>, !tile.view<1, f64>
  // CHECK: tile.atomic_cas %{{.*}}, %{{.*}}, %{{.*}}[%{{.*}} : tensor<4xi32>] mask %{{.*}} : tensor<4xi1> : tensor<4xf64>, <1, f64>
  %b = tile.atomic_cas %v, %a, %x[%i : tensor<4xi32>] mask %m : tensor<4xi1> : tensor<4xf64>, !tile.view<1, f64>
  return
}
