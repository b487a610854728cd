// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -pass-pipeline='builtin.module(func.func(tenon-nvidia-share-tail),canonicalize,cse)' \
// RUN:   2>&1 | FileCheck %s

// How often the loop runs is known before the grid, what needs the sum is the last one's.
// CHECK: remark: the last program instances are shared by all blocks
// CHECK-LABEL: func.func @product
func.func @product(%a: !tile.view<2, bf16>, %b: !tile.view<2, bf16>, %c: !tile.view<2, f32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %m = tile.size %c, 0 : !tile.view<2, f32>
  %n = tile.size %c, 1 : !tile.view<2, f32>
  // CHECK: %[[K:.*]] = tile.size %{{.*}}, 1 : <2, bf16>
  // CHECK: %[[UP:.*]] = tile.div %{{.*}}, %{{.*}} : index
  // CHECK: %[[ITERATIONS:.*]] = arith.maxsi %[[UP]], %{{.*}} : index
  // CHECK: %[[PIECES:.*]] = tile.workspace %{{.*}} {initial = 1 : i32} : <1, f32>
  // CHECK: %[[ARRIVED:.*]] = tile.workspace %{{.*}} {initial = 2 : i32} : <1, i32>
  // CHECK: %[[IDS:.*]]:2 = tile.grid
  %i, %j = tile.grid %m, %n
  %k = tile.size %a, 1 : !tile.view<2, bf16>
  // CHECK: %[[BEGIN:.*]], %[[END:.*]], %[[PART:.*]], %[[PARTS:.*]], %[[SLOT:.*]] = nvidia.share %[[ITERATIONS]]
  // CHECK: %[[FROM:.*]] = arith.muli %[[BEGIN]], %[[C16:.*]] : index
  // CHECK: %[[TO:.*]] = arith.muli %[[END]], %[[C16]] : index
  // CHECK: %[[UPPER:.*]] = arith.minsi %[[TO]], %[[K]] : index
  // CHECK: %[[MINE:.*]] = scf.for %{{.*}} = %[[FROM]] to %[[UPPER]] step %[[C16]]
  %sum = scf.for %at = %c0 to %k step %c16 iter_args(%acc = %zero) -> (tensor<32x64xf32>) {
    %x = tile.load %a[%i, %at] : !tile.view<2, bf16> -> tensor<32x16xbf16>
    %y = tile.load %b[%at, %j] : !tile.view<2, bf16> -> tensor<16x64xbf16>
    %d = tile.dot %x, %y, %acc : tensor<32x16xbf16>, tensor<16x64xbf16>, tensor<32x64xf32>
    scf.yield %d : tensor<32x64xf32>
  }
  // CHECK: %[[SUM:.*]], %[[LAST:.*]] = nvidia.combine %[[MINE]] part %[[PART]] of %[[PARTS]] at %[[SLOT]], %[[PIECES]], %[[ARRIVED]]
  // CHECK: scf.if %[[LAST]] {
  // CHECK:   tile.store %[[SUM]]
  tile.store %sum, %c[%i, %j] : tensor<32x64xf32>, !tile.view<2, f32>
  return
}
