// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt --tenon-cpu-lower-to-loops=isa=avx512 %s | FileCheck %s
//
// Two stores into one view whose windows are a known distance apart share one loop nest: what both need is loaded once.

// CHECK-LABEL: func.func private @instance
// CHECK: scf.if
// CHECK: scf.for
// CHECK-COUNT-2: llvm.load {{.*}} -> vector<32xf32>
// CHECK-NOT: scf.for
// CHECK-COUNT-2: llvm.store {{.*}} vector<32xf32>
// CHECK: } else {
func.func @disjoint(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64, tile.distinct}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %c0] : !tile.view<2, f32> -> tensor<1x128xf32>
  %b = tile.load %x[%i, %c128] : !tile.view<2, f32> -> tensor<1x128xf32>
  %sum = arith.addf %a, %b : tensor<1x128xf32>
  %difference = arith.subf %a, %b : tensor<1x128xf32>
  tile.store %sum, %y[%i, %c0] : tensor<1x128xf32>, !tile.view<2, f32>
  tile.store %difference, %y[%i, %c128] : tensor<1x128xf32>, !tile.view<2, f32>
  return
}
