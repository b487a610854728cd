// SPDX-License-Identifier: Apache-2.0
// Where a tile hangs over the end of its views, each step asks whether it is inside.
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512 streams},canonicalize,cse)' %s | FileCheck %s --check-prefix=STREAMS

// The twin that is not inside: how far the windows reach, then for each step one or the other.
// CHECK-LABEL: func.func private @instance
// CHECK: } else {
// CHECK: %[[REACH:.*]] = arith.minsi
// CHECK: %[[INSIDE:.*]] = arith.select %{{.*}}, %[[REACH]], %c0
// CHECK: scf.for %[[J:.*]] = %c0 to %c256 step %c32
// CHECK: %[[END:.*]] = arith.addi %[[J]], %c32
// CHECK: %[[HOLDS:.*]] = arith.cmpi sle, %[[END]], %[[INSIDE]]
// CHECK: scf.if %[[HOLDS]] {
// CHECK-NOT: masked
// CHECK: llvm.store
// CHECK: } else {
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
// Large results go past the cache there, too, but for the step that is masked.
// STREAMS-LABEL: func.func private @instance
// STREAMS: } else {
// STREAMS: %[[HOLDS:.*]] = arith.cmpi sle
// STREAMS: scf.if %[[HOLDS]] {
// STREAMS: llvm.store {{.*}}nontemporal
// STREAMS: } else {
// STREAMS-NOT: nontemporal
// STREAMS: llvm.intr.masked.store
func.func @double(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<256xf32>
  %s = arith.addf %a, %a : tensor<256xf32>
  tile.store %s, %y[%i] : tensor<256xf32>, !tile.view<1, f32>
  return
}

// -----

// A square tile: which dimension of a window is along the vectors is not known.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: arith.select %{{.*}}, %{{.*}}, %c0 : index
// CHECK: return
func.func @square(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i, %i] : !tile.view<2, f32> -> tensor<256x256xf32>
  %s = arith.addf %a, %a : tensor<256x256xf32>
  tile.store %s, %y[%i, %i] : tensor<256x256xf32>, !tile.view<2, f32>
  return
}
