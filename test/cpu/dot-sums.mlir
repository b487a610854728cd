// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512},canonicalize,cse)' | FileCheck %s

// Sums that are scaled by rows before more is added to them: the block that adds does so, there is no pass over them,
// and they stay in one buffer, whose address the loop need not carry.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c64 {
// CHECK-NOT: arith.mulf
// CHECK: math.fma
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: llvm.store {{.*}} : vector<16xf32>
func.func @discounted(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                      %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<12x64xf32>
  %sums = scf.for %k = %c0 to %n step %c64 iter_args(%before = %zero) -> (tensor<12x64xf32>) {
    %a = tile.load %x[%c0, %k] : !tile.view<2, f32> -> tensor<12x64xf32>
    %b = tile.load %y[%k, %c0] : !tile.view<2, f32> -> tensor<64x64xf32>
    %factor = tile.reduce %a dim 1 : (tensor<12x64xf32>) -> tensor<12x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %larger = arith.maximumf %p, %q : f32
      tile.yield %larger : f32
    }
    %wide = tile.broadcast %factor : tensor<12x1xf32> -> tensor<12x64xf32>
    %scaled = arith.mulf %before, %wide : tensor<12x64xf32>
    %next = tile.dot %a, %b, %scaled : tensor<12x64xf32>, tensor<64x64xf32>, tensor<12x64xf32>
    scf.yield %next : tensor<12x64xf32>
  }
  tile.store %sums, %z[%c0, %c0] : tensor<12x64xf32>, !tile.view<2, f32>
  return
}
