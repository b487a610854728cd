// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512 streams},canonicalize,cse)' %s | FileCheck %s
// RUN: %lower %s | FileCheck %s --check-prefix=PLAIN
// PLAIN-NOT: nontemporal

// Large and aligned: stores of whole vectors past the cache. Small, or not aligned: plain ones. Not inside: masked ones where a step is not.
// Whoever reads the result next must see it: a fence at the end.
// CHECK: llvm.mlir.global external constant @tenon_streaming_bytes() {{.*}}: i64
// CHECK-LABEL: func.func private @instance
// CHECK: %[[LARGE:.*]] = arith.cmpi sge, %{{.*}}, %{{.*}} : i64
// CHECK: %[[LOW:.*]] = arith.andi %{{.*}}, %c63_i64
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[LOW]], %c0_i64
// CHECK: %[[STREAMS:.*]] = arith.andi %[[ALIGNED]], %[[LARGE]]
// CHECK: scf.if
// CHECK-NEXT: scf.if %[[STREAMS]] {
// CHECK: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<32xf32>
// CHECK: } else {
// CHECK-NOT: nontemporal
// CHECK: scf.if %[[STREAMS]] {
// CHECK: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<32xf32>
// CHECK: } else {
// CHECK-NOT: nontemporal
// CHECK: llvm.intr.masked.store
// CHECK: @tenon_run
// CHECK: llvm.call_intrinsic "llvm.x86.sse.sfence"
func.func @elementwise(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                       %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<1024xf32>
  %b = arith.mulf %a, %a : tensor<1024xf32>
  tile.store %b, %y[%i] : tensor<1024xf32>, !tile.view<1, f32>
  return
}

// -----

// Rows less their maximum, in bf16: the reduction has nothing to stream, the store has. What is left over of a row is no
// whole vector and is stored as ever.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: nontemporal
// CHECK: arith.maximumf
// CHECK: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<32xi16>
// CHECK-NOT: nontemporal
// CHECK: llvm.store %{{.*}} : vector<8xi16>
func.func @rows(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<4x200xbf16>
  %w = tile.cast %a : tensor<4x200xbf16> -> tensor<4x200xf32>
  %m = tile.reduce %w dim 1 : (tensor<4x200xf32>) -> tensor<4x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<4x1xf32> -> tensor<4x200xf32>
  %d = arith.subf %w, %n : tensor<4x200xf32>
  %c = tile.cast %d : tensor<4x200xf32> -> tensor<4x200xbf16>
  tile.store %c, %y[%i, %zero] : tensor<4x200xbf16>, !tile.view<2, bf16>
  return
}

// -----

// A store that shares its loop with a reduction (a sum of what is stored) goes past the cache as well.
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<32xf32>
// CHECK: arith.addf
// CHECK: scf.yield
func.func @with_sum(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %z: !tile.view<2, f32>, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x512xf32>
  %b = arith.mulf %a, %a : tensor<1x512xf32>
  tile.store %b, %y[%i, %zero] : tensor<1x512xf32>, !tile.view<2, f32>
  %s = tile.reduce %b dim 1 : (tensor<1x512xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %z[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}

// -----

// In place: the line is in the cache, having just been read.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: nontemporal
// CHECK-LABEL: @tenon_run
// CHECK-NOT: sfence
func.func @in_place(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64, tile.distinct}, %i: index)
    attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<1024xf32>
  %b = arith.negf %a : tensor<1024xf32>
  tile.store %b, %x[%i] : tensor<1024xf32>, !tile.view<1, f32>
  return
}

// -----

// The two may be the same memory: as above.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: nontemporal
func.func @may_overlap(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                       %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %i: index) {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<1024xf32>
  tile.store %a, %y[%i] : tensor<1024xf32>, !tile.view<1, f32>
  return
}
