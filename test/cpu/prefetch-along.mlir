// SPDX-License-Identifier: Apache-2.0
// Loops past the cache where the processor's own prefetching is good enough for others (a Zen 5).
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512-dot streams},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512 streams},canonicalize,cse)' %s | FileCheck %s --check-prefix=OTHERS
// OTHERS-NOT: llvm.intr.prefetch

// A row that is the same for all is read beside: 8 KiB further on along the row, or from the begin of the next, to L1.
// The row that is the same is left alone.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c4096 step %c32 {
// CHECK: %[[FURTHER:.*]] = arith.addi %{{.*}}, %c8192 : index
// CHECK: %[[NEXT:.*]] = arith.cmpi uge, %[[FURTHER]], %c16384 : index
// CHECK: arith.select %[[NEXT]], %{{.*}}, %[[FURTHER]] : index
// CHECK-COUNT-2: "llvm.intr.prefetch"({{.*}}) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK-NOT: llvm.intr.prefetch
// CHECK: nontemporal
func.func @biased(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %bias: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %b = tile.load %bias[%zero] : !tile.view<1, f32> -> tensor<4096xf32>
  %c = tile.reshape %b : tensor<4096xf32> -> tensor<1x4096xf32>
  %d = arith.addf %a, %c : tensor<1x4096xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x4096xf32>, !tile.view<2, f32>
  return
}

// -----

// Nothing beside: the processor's own is better.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c4096 step %c32 {
// CHECK-NOT: llvm.intr.prefetch
// CHECK: nontemporal
func.func @alone(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                 %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %b = arith.negf %a : tensor<1x4096xf32>
  tile.store %b, %y[%i, %zero] : tensor<1x4096xf32>, !tile.view<2, f32>
  return
}

// -----

// Numbers of 16 bits take twice as long for a line.
// CHECK-LABEL: func.func private @instance
// CHECK: "llvm.intr.prefetch"({{.*}}) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK: nontemporal
func.func @narrow(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, bf16>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<1x4096xbf16>
  %b = arith.negf %a : tensor<1x4096xbf16>
  tile.store %b, %y[%i, %zero] : tensor<1x4096xbf16>, !tile.view<2, bf16>
  return
}
