// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// CHECK-LABEL: func.func @size
func.func @size(%x: !tile.view<2, f32>) -> index {
  // CHECK: tile.size %{{.*}}, 1 : <2, f32>
  %n = tile.size %x, 1 : !tile.view<2, f32>
  return %n : index
}

// CHECK-LABEL: func.func @window
func.func @window(%x: !tile.view<2, bf16>, %i: index, %j: index, %p: bf16) {
  // CHECK: %[[A:.*]] = tile.load %{{.*}}[%{{.*}}, %{{.*}}] : <2, bf16> -> tensor<1x100xbf16>
  %a = tile.load %x[%i, %j] : !tile.view<2, bf16> -> tensor<1x100xbf16>
  // CHECK: %[[B:.*]] = tile.load %{{.*}}[%{{.*}}, %{{.*}}] padding %{{.*}} : bf16 : <2, bf16> -> tensor<4x8xbf16>
  %b = tile.load %x[%i, %j] padding %p : bf16 : !tile.view<2, bf16> -> tensor<4x8xbf16>
  // CHECK: tile.store %[[A]], %{{.*}}[%{{.*}}, %{{.*}}] : tensor<1x100xbf16>, <2, bf16>
  tile.store %a, %x[%i, %j] : tensor<1x100xbf16>, !tile.view<2, bf16>
  // CHECK: tile.store %[[B]], %{{.*}}[%{{.*}}, %{{.*}}] {note = 1 : i64} : tensor<4x8xbf16>, <2, bf16>
  tile.store %b, %x[%j, %i] {note = 1 : i64} : tensor<4x8xbf16>, !tile.view<2, bf16>
  return
}

// The largest tile, and a tile of five dimensions.
// CHECK-LABEL: func.func @limits
func.func @limits(%x: !tile.view<1, i8>, %y: !tile.view<5, i1>, %i: index) {
  // CHECK: tensor<1048576xi8>
  %a = tile.load %x[%i] : !tile.view<1, i8> -> tensor<1048576xi8>
  // CHECK: tensor<1x2x3x4x5xi1>
  %b = tile.load %y[%i, %i, %i, %i, %i] : !tile.view<5, i1> -> tensor<1x2x3x4x5xi1>
  return
}
