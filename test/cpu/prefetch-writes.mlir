// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx streams},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512 streams},canonicalize,cse)' %s | FileCheck %s --check-prefix=OTHERS
// OTHERS-NOT: rw = 1

// Rows of 1600 bytes: the lines of those that begin half a page further on, which will be written, two rows down. Where
// stores go past the cache nobody waits for them.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: rw = 1
// CHECK: nontemporal
// CHECK-NOT: rw = 1
// CHECK: } else {
// CHECK: arith.addi %{{.*}}, %c2 : index
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK-NOT: rw = 1
// CHECK: arith.negf
// CHECK: } else {
// CHECK-COUNT-2: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK: scf.if
// CHECK-NOT: rw = 1
// CHECK-LABEL: @tenon_run
func.func @short_rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                      %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %ten = arith.constant 10 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %first = arith.muli %i, %ten : index
  %a = tile.load %x[%first, %zero] : !tile.view<2, f32> -> tensor<10x400xf32>
  %b = arith.negf %a : tensor<10x400xf32>
  tile.store %b, %y[%first, %zero] : tensor<10x400xf32>, !tile.view<2, f32>
  return
}

// -----

// A long row of bf16, stored a line at a time: half a page ahead in the same row. What is also read is there already.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: rw = 1
// CHECK: } else {
// CHECK: arith.addi %{{.*}}, %c2048
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK: } else {
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK-NOT: rw = 1
// CHECK-LABEL: @tenon_run
func.func @long_row(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                    %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %b = tile.load %z[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %c = arith.addf %a, %b : tensor<1x4096xf32>
  %d = tile.cast %c : tensor<1x4096xf32> -> tensor<1x4096xbf16>
  tile.store %c, %z[%i, %zero] : tensor<1x4096xf32>, !tile.view<2, f32>
  tile.store %d, %y[%i, %zero] : tensor<1x4096xbf16>, !tile.view<2, bf16>
  return
}

// -----

// Powers of what is left of the largest, over their sum: the loop of the powers has what it reads in the cache, and asks
// for the lines that the last loop writes, of its own row, unless those go past the cache.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.maximumf
// CHECK-NOT: rw = 1
// CHECK: %[[LARGE:.*]] = arith.cmpi sge, %{{.*}}, %{{.*}} : i64
// CHECK: scf.for %{{.*}} = %c0 to %c384 step %c32
// CHECK: scf.if %[[LARGE]] {
// CHECK-NEXT: } else {
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK: math.exp
// CHECK: arith.divf
// CHECK-NOT: rw = 1
// CHECK-LABEL: @tenon_run
func.func @powers(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %ten = arith.constant 10 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %first = arith.muli %i, %ten : index
  %a = tile.load %x[%first, %zero] : !tile.view<2, f32> -> tensor<10x400xf32>
  %m = tile.reduce %a dim 1 : (tensor<10x400xf32>) -> tensor<10x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<10x1xf32> -> tensor<10x400xf32>
  %d = arith.subf %a, %n : tensor<10x400xf32>
  %e = math.exp %d : tensor<10x400xf32>
  %s = tile.reduce %e dim 1 : (tensor<10x400xf32>) -> tensor<10x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %t = tile.broadcast %s : tensor<10x1xf32> -> tensor<10x400xf32>
  %c = arith.divf %e, %t : tensor<10x400xf32>
  tile.store %c, %y[%first, %zero] : tensor<10x400xf32>, !tile.view<2, f32>
  return
}

// -----

// Rows less their sum: the loop before the one that stores waits for memory itself, so the latter asks, a little ahead.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: rw = 1
// CHECK: arith.addf
// CHECK: } else {
// CHECK: arith.addi %{{.*}}, %c2 : index
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK: arith.subf
// CHECK-LABEL: @tenon_run
func.func @centered(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %ten = arith.constant 10 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %first = arith.muli %i, %ten : index
  %a = tile.load %x[%first, %zero] : !tile.view<2, f32> -> tensor<10x400xf32>
  %m = tile.reduce %a dim 1 : (tensor<10x400xf32>) -> tensor<10x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<10x1xf32> -> tensor<10x400xf32>
  %d = arith.subf %a, %n : tensor<10x400xf32>
  tile.store %d, %y[%first, %zero] : tensor<10x400xf32>, !tile.view<2, f32>
  return
}

// -----

// The same, over the largest distance: here the loop before the last finds all in the cache.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[LARGE:.*]] = arith.cmpi sge, %{{.*}}, %{{.*}} : i64
// CHECK-NOT: rw = 1
// CHECK: scf.if %[[LARGE]] {
// CHECK-NEXT: } else {
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 1
// CHECK: arith.maximumf
// CHECK: arith.divf
// CHECK-NOT: rw = 1
// CHECK-LABEL: @tenon_run
func.func @scaled(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %ten = arith.constant 10 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %first = arith.muli %i, %ten : index
  %a = tile.load %x[%first, %zero] : !tile.view<2, f32> -> tensor<10x400xf32>
  %m = tile.reduce %a dim 1 : (tensor<10x400xf32>) -> tensor<10x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<10x1xf32> -> tensor<10x400xf32>
  %d = arith.subf %a, %n : tensor<10x400xf32>
  %s = tile.reduce %d dim 1 : (tensor<10x400xf32>) -> tensor<10x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %t = tile.broadcast %s : tensor<10x1xf32> -> tensor<10x400xf32>
  %c = arith.divf %d, %t : tensor<10x400xf32>
  tile.store %c, %y[%first, %zero] : tensor<10x400xf32>, !tile.view<2, f32>
  return
}
