// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// "column < n" is compared once for the whole tile, with its last column and without overflow. Where it holds there is
// no mask at all; otherwise there is one in the loop.
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.intr.sadd.with.overflow
// CHECK: arith.cmpi slt
// CHECK: scf.if
// CHECK-NOT: arith.select
// CHECK: } else {
// CHECK: arith.cmpi slt, {{.*}} : vector<32xi64>
// CHECK: arith.select {{.*}} : vector<32xi1>, vector<32xf32>
func.func @masked(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %j: i64, %n: i64) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %low = arith.constant dense<-1.0> : tensor<8x64xf32>
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<8x64xf32>
  %i = tile.iota 1 : tensor<1x64xi64>
  %start = tile.splat %j : i64 -> tensor<1x64xi64>
  %column = arith.addi %i, %start : tensor<1x64xi64>
  %end = tile.splat %n : i64 -> tensor<1x64xi64>
  %visible = arith.cmpi slt, %column, %end : tensor<1x64xi64>
  %mask = tile.broadcast %visible : tensor<1x64xi1> -> tensor<8x64xi1>
  %chosen = arith.select %mask, %t, %low : tensor<8x64xi1>, tensor<8x64xf32>
  tile.store %chosen, %y[%c0, %c0] : tensor<8x64xf32>, !tile.view<2, f32>
  return
}
