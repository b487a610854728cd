// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -canonicalize -cse %s | FileCheck %s

// Pure ops are shared and dropped.
// CHECK-LABEL: func.func @pure
func.func @pure(%y: !tile.view<2, i32>, %i: index) {
  // CHECK-COUNT-1: tile.iota
  // CHECK-NOT: tile.iota
  // CHECK-NOT: tile.size
  // CHECK: %[[S:.*]] = arith.addi %[[I:.*]], %[[I]] : tensor<4x8xi32>
  // CHECK: tile.store %[[S]]
  %n = tile.size %y, 0 : !tile.view<2, i32>
  %a = tile.iota 1 : tensor<4x8xi32>
  %b = tile.iota 1 : tensor<4x8xi32>
  %c = arith.addi %a, %b : tensor<4x8xi32>
  tile.store %c, %y[%i, %i] : tensor<4x8xi32>, !tile.view<2, i32>
  return
}

// Two loads of one place are one, unless a store stands between them; a load nobody uses is dropped.
// CHECK-LABEL: func.func @loads
func.func @loads(%x: !tile.view<1, f32>, %y: !tile.view<1, f32>, %i: index) {
  // CHECK: %[[A:.*]] = tile.load
  // CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %[[A]]
  // CHECK-NEXT: tile.store %[[B]]
  // CHECK-NEXT: %[[C:.*]] = tile.load
  // CHECK-NEXT: tile.store %[[C]]
  // CHECK-NEXT: return
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<4xf32>
  %b = tile.load %x[%i] : !tile.view<1, f32> -> tensor<4xf32>
  %c = arith.mulf %a, %b : tensor<4xf32>
  tile.store %c, %y[%i] : tensor<4xf32>, !tile.view<1, f32>
  %d = tile.load %x[%i] : !tile.view<1, f32> -> tensor<4xf32>
  tile.store %d, %y[%i] : tensor<4xf32>, !tile.view<1, f32>
  %e = tile.load %y[%i] : !tile.view<1, f32> -> tensor<4xf32>
  return
}

// Neither stores nor atomics nor assertions nor prints go away, however alike they are; the grid stays though its ids
// are not used.
// CHECK-LABEL: func.func @effects
func.func @effects(%x: !tile.view<1, i32>, %n: index, %t: tensor<4xi32>, %c: i1) {
  // CHECK: tile.grid
  %i = tile.grid %n
  // CHECK: tile.workspace
  %w = tile.workspace %n : !tile.view<1, f32>
  // CHECK: tile.require
  tile.require %c, "holds"
  // CHECK-COUNT-2: tile.atomic_rmw
  %a = tile.atomic_rmw add %t, %x[%t : tensor<4xi32>] : tensor<4xi32>, !tile.view<1, i32>
  %b = tile.atomic_rmw add %t, %x[%t : tensor<4xi32>] : tensor<4xi32>, !tile.view<1, i32>
  // CHECK-COUNT-2: tile.print
  tile.print "t", %t : tensor<4xi32>
  tile.print "t", %t : tensor<4xi32>
  // CHECK: tile.assert
  tile.assert %c, "holds" : i1
  return
}

// Reductions with equal regions are one.
// CHECK-LABEL: func.func @reductions
func.func @reductions(%x: !tile.view<1, f32>, %i: index) {
  // CHECK-COUNT-1: tile.reduce
  // CHECK-NOT: tile.reduce
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %a = tile.reduce %t dim 0 : (tensor<64xf32>) -> tensor<1xf32> {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    tile.yield %s : f32
  }
  %b = tile.reduce %t dim 0 : (tensor<64xf32>) -> tensor<1xf32> {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    tile.yield %s : f32
  }
  %c = arith.mulf %a, %b : tensor<1xf32>
  tile.store %c, %x[%i] : tensor<1xf32>, !tile.view<1, f32>
  return
}

// Sizes computed from parameters become constants: (1000 + 127) / 128 blocks.
// CHECK-LABEL: func.func @sizes
func.func @sizes(%x: !tile.view<1, f32>) {
  // CHECK: %[[N:.*]] = arith.constant 8 : index
  // CHECK: tile.grid %[[N]]
  %n = arith.constant 1000 : index
  %block = arith.constant 128 : index
  %one = arith.constant 1 : index
  %less = arith.subi %block, %one : index
  %sum = arith.addi %n, %less : index
  %blocks = tile.div %sum, %block : index
  %i = tile.grid %blocks
  return
}
