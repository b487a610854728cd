// SPDX-License-Identifier: Apache-2.0
// Where a tile hangs over the end of its views, each step asks whether it is inside.
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512 streams},canonicalize,cse)' %s | FileCheck %s --check-prefix=STREAMS

// The twin that is not inside: how far the windows reach, then for each step one or the other.
// CHECK-LABEL: func.func private @instance
// CHECK: } else {
// CHECK: %[[REACH:.*]] = arith.minsi
// CHECK: %[[FIRST:.*]] = arith.maxsi
// CHECK: scf.for %[[J:.*]] = %c0 to %c256 step %c32
// CHECK: %[[END:.*]] = arith.addi %[[J]], %c32
// CHECK: %[[ENDS:.*]] = arith.cmpi sle, %[[END]], %[[REACH]]
// CHECK: %[[BEGINS:.*]] = arith.cmpi sge, %[[J]], %[[FIRST]]
// CHECK: %[[HOLDS:.*]] = arith.andi %[[ENDS]], %[[BEGINS]]
// CHECK: scf.if %[[HOLDS]] {
// CHECK-NOT: masked
// CHECK: llvm.store
// CHECK: } else {
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
// Large results go past the cache there, too, but for the step that is masked.
// STREAMS-LABEL: func.func private @instance
// STREAMS: } else {
// STREAMS: arith.cmpi sle
// STREAMS: %[[HOLDS:.*]] = arith.andi
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

// A sum over rows that may hang over: a row at a time.
// CHECK-LABEL: func.func private @instance
// CHECK: } else {
// CHECK: scf.for %[[I:.*]] = %c0 to %c20 step %c1 iter_args
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %c1
// CHECK: arith.cmpi sle, %[[NEXT]], %{{.*}}
// CHECK: scf.if %{{.*}} -> (vector<32xf32>) {
// CHECK-NOT: masked
// CHECK: } else {
// CHECK: llvm.intr.masked.load
// STREAMS-LABEL: func.func private @instance
func.func @pool(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i, %i] : !tile.view<2, f32> -> tensor<20x64xf32>
  %s = tile.reduce %a dim 0 : (tensor<20x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%p: f32, %r: f32):
    %u = arith.addf %p, %r : f32
    tile.yield %u : f32
  }
  tile.store %s, %y[%i, %i] : tensor<1x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Part of a window: its 256 rows are not the 256 columns of the nest. All of it must be inside.
// CHECK-LABEL: func.func private @instance
// CHECK: } else {
// CHECK-NOT: arith.minsi
// CHECK: scf.for
// STREAMS-LABEL: func.func private @instance
func.func @sliced(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i, %i] : !tile.view<2, f32> -> tensor<256x512xf32>
  %b = tile.slice %a[200, 0] : tensor<256x512xf32> -> tensor<4x256xf32>
  %s = arith.addf %b, %b : tensor<4x256xf32>
  tile.store %s, %y[%i, %i] : tensor<4x256xf32>, !tile.view<2, f32>
  return
}

// -----

// A square tile, half of it transposed: which dimension is which is not known of that half, and all of it must be inside.
// CHECK-LABEL: func.func private @instance
// CHECK: } else {
// CHECK-COUNT-2: arith.minsi
// CHECK-NOT: arith.minsi
// CHECK: scf.for
// STREAMS-LABEL: func.func private @instance
func.func @square(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %z: !tile.view<2, f32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i, %i] : !tile.view<2, f32> -> tensor<64x64xf32>
  %b = tile.load %z[%i, %i] : !tile.view<2, f32> -> tensor<64x64xf32>
  %t = tile.transpose %b [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %s = arith.addf %a, %t : tensor<64x64xf32>
  tile.store %s, %y[%i, %i] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}

// -----

// A window that looks back begins before its view: its first steps are outside, and all others may be inside.
// CHECK-LABEL: func.func private @instance
// CHECK: } else {
// CHECK: scf.for %[[J:.*]] = %c0 to %c1024 step %c32
// CHECK: arith.cmpi sge, %[[J]], %{{.*}} : index
// CHECK: scf.if %{{.*}} {
// CHECK: llvm.load
// CHECK: } else {
// CHECK: masked
func.func @looks_back(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                      %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}) attributes {tile.no_overlap} {
  %wide = arith.constant 1024 : index
  %back = arith.constant 3 : index
  %size = tile.size %x, 0 : !tile.view<1, f32>
  %i = tile.grid %size
  %first = arith.muli %i, %wide : index
  %before = arith.subi %first, %back : index
  %a = tile.load %x[%before] : !tile.view<1, f32> -> tensor<1024xf32>
  %b = tile.load %x[%first] : !tile.view<1, f32> -> tensor<1024xf32>
  %c = arith.addf %a, %b : tensor<1024xf32>
  tile.store %c, %y[%first] : tensor<1024xf32>, !tile.view<1, f32>
  return
}
