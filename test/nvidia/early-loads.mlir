// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-choose-instructions{warps=4},tenon-nvidia-choose-layouts{warps=4},tenon-nvidia-early-loads))' | FileCheck %s

// The bias is loaded before the loop, with what its address needs; the residual, 32 registers, and what the kernel
// writes stay behind it.
// CHECK-LABEL: @epilogue
// CHECK: arith.muli
// CHECK: tile.load %arg2[
// CHECK: scf.for
// CHECK: tile.dot {{.*}}nvidia.warpgroup
// CHECK: tile.load %arg3[
// CHECK: tile.load %arg5[
func.func @epilogue(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 16, 16, 16, 1>},
                    %b: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 16, 16, 16, 1>},
                    %bias: !tile.view<1, f32> {tile.distinct, tile.unit_stride = 0 : i64, tile.divisible = array<i64: 16, 16, 1>},
                    %residual: !tile.view<2, f32> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 16, 16, 16, 1>},
                    %c: !tile.view<2, f32> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 16, 16, 16, 1>},
                    %count: !tile.view<1, f32> {tile.distinct, tile.unit_stride = 0 : i64, tile.divisible = array<i64: 16, 16, 1>}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %width = arith.constant 64 : index
  %program = tile.grid %one
  %depth = tile.size %a, 1 : !tile.view<2, bf16>
  %init = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %zero to %depth step %width iter_args(%old = %init) -> (tensor<64x64xf32>) {
    %x = tile.load %a[%zero, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %y = tile.load %b[%k, %zero] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %new = tile.dot %x, %y, %old : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %new : tensor<64x64xf32>
  }
  %at = arith.muli %program, %width : index
  %v = tile.load %bias[%at] : !tile.view<1, f32> -> tensor<64xf32>
  %r = tile.load %residual[%zero, %zero] : !tile.view<2, f32> -> tensor<64x64xf32>
  %n = tile.load %count[%zero] : !tile.view<1, f32> -> tensor<64xf32>
  %w = arith.addf %v, %n : tensor<64xf32>
  %row = tile.reshape %w : tensor<64xf32> -> tensor<1x64xf32>
  %wide = tile.broadcast %row : tensor<1x64xf32> -> tensor<64x64xf32>
  %s = arith.addf %sum, %wide : tensor<64x64xf32>
  %t = arith.addf %s, %r : tensor<64x64xf32>
  tile.store %t, %c[%zero, %zero] : tensor<64x64xf32>, !tile.view<2, f32>
  tile.store %w, %count[%zero] : tensor<64xf32>, !tile.view<1, f32>
  return
}
