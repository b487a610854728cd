// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -pass-pipeline='builtin.module(func.func(tenon-split-reduction{factor=3}),canonicalize,cse)' \
// RUN:   2>&1 | FileCheck %s

// CHECK: remark: loop is shared by 3 program instances, which leave 8192 bytes of workspace each
// CHECK: remark: loop is shared by 3 program instances, which leave 768 bytes of workspace each

// A product. What needs the sum is the last instance's; a precondition stays where the host finds it.
// CHECK-LABEL: func.func @product
func.func @product(%a: !tile.view<2, bf16>, %b: !tile.view<2, bf16>, %c: !tile.view<2, f32>) {
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
  // CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
  // CHECK-DAG: %[[C32:.*]] = arith.constant 32 : index
  // CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<32x64xf32>
  // CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1> : tensor<1xi32>
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  // CHECK: %[[M:.*]] = tile.size %{{.*}}, 0
  // CHECK: %[[N:.*]] = tile.size %{{.*}}, 1
  // CHECK: %[[K:.*]] = tile.size %{{.*}}, 1
  %m = tile.size %c, 0 : !tile.view<2, f32>
  %n = tile.size %c, 1 : !tile.view<2, f32>
  %k = tile.size %a, 1 : !tile.view<2, bf16>
  // CHECK: %[[SOME_M:.*]] = arith.maxsi %[[M]], %[[C0]] : index
  // CHECK: %[[SOME_N:.*]] = arith.maxsi %[[N]], %[[C0]] : index
  // CHECK: %[[PLACES:.*]] = arith.muli %[[SOME_M]], %[[SOME_N]] : index
  // CHECK: %[[ROWS:.*]] = arith.muli %[[PLACES]], %{{.*}} : index
  // CHECK: %[[PARTS:.*]] = tile.workspace %{{.*}}, %[[C64]] {initial = 1 : i32} : <2, f32>
  // CHECK: %[[ARRIVED:.*]] = tile.workspace %[[PLACES]] {initial = 2 : i32} : <1, i32>
  // CHECK: %[[IDS:.*]]:3 = tile.grid %[[C3]], %[[M]], %[[N]]
  %i, %j = tile.grid %m, %n
  // CHECK: %[[ROW:.*]] = arith.muli %[[IDS]]#1, %[[N]] : index
  // CHECK: %[[PLACE:.*]] = arith.addi %[[ROW]], %[[IDS]]#2 : index
  // CHECK: %[[UP:.*]] = arith.addi %[[K]], %{{.*}} : index
  // CHECK: %[[ITERATIONS:.*]] = tile.div %{{.*}}, %{{.*}} : index
  // CHECK: %[[EACH:.*]] = tile.div %{{.*}}, %[[C3]] : index
  // CHECK: %[[LENGTH:.*]] = arith.muli %[[EACH]], %{{.*}} : index
  // CHECK: %[[BEGIN:.*]] = arith.muli %[[IDS]]#0, %[[LENGTH]] : index
  // CHECK: %[[PAST:.*]] = arith.addi %[[BEGIN]], %[[LENGTH]] : index
  // CHECK: %[[END:.*]] = arith.minsi %[[PAST]], %[[K]] : index
  // CHECK: tile.require
  // CHECK: %[[PART:.*]] = scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %{{.*}} iter_args(%{{.*}} = %[[ZERO]])
  %sum = scf.for %at = %c0 to %k step %c16 iter_args(%acc = %zero) -> (tensor<32x64xf32>) {
    %x = tile.load %a[%i, %at] : !tile.view<2, bf16> -> tensor<32x16xbf16>
    %y = tile.load %b[%at, %j] : !tile.view<2, bf16> -> tensor<16x64xbf16>
    %next = tile.dot %x, %y, %acc : tensor<32x16xbf16>, tensor<16x64xbf16>, tensor<32x64xf32>
    scf.yield %next : tensor<32x64xf32>
  }
  // CHECK: %[[MINE:.*]] = arith.addi %[[FIRST:.*]], %[[IDS]]#0 : index
  // CHECK: %[[OFFSET:.*]] = arith.muli %[[MINE]], %[[C32]] : index
  // CHECK: tile.store %[[PART]], %[[PARTS]][%[[OFFSET]], %[[C0]]]
  // CHECK: %[[AT:.*]] = tile.cast %[[PLACE]] : index -> i64
  // CHECK: %[[TILE:.*]] = tile.splat %[[AT]] : i64 -> tensor<1xi64>
  // CHECK: %[[BEFORE:.*]] = tile.atomic_rmw add %[[ONE]], %[[ARRIVED]][%[[TILE]] : tensor<1xi64>]
  // CHECK: %[[COUNT:.*]] = tile.scalar %[[BEFORE]] : tensor<1xi32>
  // CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[COUNT]], %[[C2]] : i32
  // CHECK: scf.if %[[LAST]] {
  // CHECK:   %[[SUM:.*]] = scf.for %[[S:.*]] = %[[C0]] to %[[C3]] step %[[C1]] iter_args(%[[TO:.*]] = %[[ZERO]])
  // CHECK:     %[[SLOT:.*]] = arith.addi %[[FIRST]], %[[S]] : index
  // CHECK:     %[[THERE:.*]] = arith.muli %[[SLOT]], %[[C32]] : index
  // CHECK:     %[[ONE_PART:.*]] = tile.load %[[PARTS]][%[[THERE]], %[[C0]]]
  // CHECK:     arith.addf %[[TO]], %[[ONE_PART]] : tensor<32x64xf32>
  // CHECK:   %[[ROOT:.*]] = math.sqrt %[[SUM]]
  // CHECK:   tile.store %[[ROOT]]
  // CHECK: }
  // CHECK-NEXT: return
  %fits = arith.cmpi sle, %m, %n : index
  tile.require %fits, "not more rows than columns"
  %root = math.sqrt %sum : tensor<32x64xf32>
  tile.store %root, %c[%i, %j] : tensor<32x64xf32>, !tile.view<2, f32>
  return
}

// Two sums in one loop that begins anywhere, of integers and of floats, each of several addends; loads in front.
// CHECK-LABEL: func.func @sums
func.func @sums(%x: !tile.view<1, f32>, %n: index, %from: index, %y: !tile.view<1, f32>, %z: !tile.view<1, i32>) {
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %none = arith.constant dense<0> : tensor<64xi32>
  %ones = arith.constant dense<1> : tensor<64xi32>
  // CHECK: %[[F:.*]] = tile.workspace %{{.*}} {initial = 1 : i32} : <1, f32>
  // CHECK: %[[I:.*]] = tile.workspace %{{.*}} {initial = 1 : i32} : <1, i32>
  // CHECK: %[[IDS:.*]]:2 = tile.grid
  %i = tile.grid %n
  %scale = tile.load %x[%i] : !tile.view<1, f32> -> tensor<128xf32>
  // CHECK: %[[SPAN:.*]] = arith.subi %{{.*}}, %[[FROM:.*]] : index
  // CHECK: %[[BEGIN:.*]] = arith.addi %[[FROM]], %{{.*}} : index
  // CHECK: scf.for %{{.*}} = %[[BEGIN]] to
  %r:2 = scf.for %at = %from to %n step %c64 iter_args(%a = %zero, %b = %none) -> (tensor<128xf32>, tensor<64xi32>) {
    %t = tile.load %x[%at] : !tile.view<1, f32> -> tensor<128xf32>
    %u = arith.mulf %t, %scale : tensor<128xf32>
    %a1 = arith.addf %t, %a : tensor<128xf32>
    %a2 = arith.addf %a1, %u : tensor<128xf32>
    %b1 = arith.addi %b, %ones : tensor<64xi32>
    scf.yield %a2, %b1 : tensor<128xf32>, tensor<64xi32>
  }
  // CHECK: tile.store %{{.*}}, %[[F]]
  // CHECK: tile.store %{{.*}}, %[[I]]
  // CHECK: tile.atomic_rmw
  // CHECK: scf.if
  // CHECK: arith.addf
  // CHECK: arith.addi %{{.*}} : tensor<64xi32>
  tile.store %r#0, %y[%i] : tensor<128xf32>, !tile.view<1, f32>
  tile.store %r#1, %z[%i] : tensor<64xi32>, !tile.view<1, i32>
  return
}
