// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512-dot streams},canonicalize,cse)' %s | FileCheck %s

// Rows less their maximum, on a processor that goes along rows: the maximum of one row and the store of the row before
// are one loop, which brings in to L1 what is 2048 elements further on: in the same row, then in the one that follows.
// CHECK: module attributes {tenon.scratch_bytes = 128 : i64}
// CHECK-LABEL: func.func private @overlapped
// CHECK: scf.if
// CHECK: scf.for %[[J:.*]] = %c0 to %c4096 step %c64 iter_args
// CHECK-NOT: scf.for
// CHECK: %[[AT:.*]] = arith.addi %[[J]], %c2048
// CHECK: arith.cmpi sge
// CHECK: arith.select
// CHECK-COUNT-4: "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<32xf32>
// CHECK: arith.maximumf
// CHECK: scf.yield
// CHECK: } else {
// CHECK: call @instance
func.func @less_largest(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                        %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %m = tile.reduce %a dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x4096xf32>
  %d = arith.subf %a, %n : tensor<1x4096xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x4096xf32>, !tile.view<2, f32>
  return
}

// -----

// Sums beside a store go in shorter steps than those without: the first and the last loop, of two rows, are one. Each of
// the two rows read is brought in 1024 elements ahead. The loop between them, of squares, needs no view: it follows the
// first, and brings in to L2 the 1024 elements that the next step begins with. What is kept of a row is overwritten
// behind where the row before was read, so it is there once.
// CHECK: module attributes {tenon.scratch_bytes = 16576 : i64}
// CHECK-LABEL: func.func private @overlapped
// CHECK: scf.for %[[J:.*]] = %c0 to %c4096 step %c32 iter_args
// CHECK: arith.addi %[[J]], %c1024
// CHECK-COUNT-4: hint = 3 : i32
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: arith.mulf
// CHECK: nontemporal
// CHECK: scf.yield
// CHECK: scf.for %[[K:.*]] = %c0 to %c4096 step %c64 iter_args
// CHECK-COUNT-2: hint = 2 : i32
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: scf.yield
// CHECK: } else {
// CHECK-COUNT-2: call @instance
// CHECK-LABEL: func.func @tenon_run
func.func @distances(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %r: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %t: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %b = tile.load %r[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %c = arith.addf %a, %b : tensor<1x4096xf32>
  tile.store %c, %t[%i, %zero] : tensor<1x4096xf32>, !tile.view<2, f32>
  %m = tile.reduce %c dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x4096xf32>
  %d = arith.subf %c, %n : tensor<1x4096xf32>
  %e = arith.mulf %d, %d : tensor<1x4096xf32>
  %v = tile.reduce %e dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s : f32
  }
  %w = tile.broadcast %v : tensor<1x1xf32> -> tensor<1x4096xf32>
  %o = arith.mulf %d, %w : tensor<1x4096xf32>
  tile.store %o, %y[%i, %zero] : tensor<1x4096xf32>, !tile.view<2, f32>
  return
}

// -----

// Powers that are divided by their sum: those of the next row are written behind where those of this row were read, by
// the same iteration. One copy of them, whatever the branches do that a step does not take.
// CHECK: module attributes {tenon.scratch_bytes = 16576 : i64}
// CHECK-LABEL: func.func private @overlapped
func.func @powers(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %m = tile.reduce %a dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x4096xf32>
  %d = arith.subf %a, %n : tensor<1x4096xf32>
  %e = math.exp %d : tensor<1x4096xf32>
  %s = tile.reduce %e dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %sb = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x4096xf32>
  %o = arith.divf %e, %sb : tensor<1x4096xf32>
  tile.store %o, %y[%i, %zero] : tensor<1x4096xf32>, !tile.view<2, f32>
  return
}

// -----

// The same, each by the first of them: that is read again for what is left of the row behind the loop, when those of the
// next row have been written. Two copies.
// CHECK: module attributes {tenon.scratch_bytes = 33152 : i64}
// CHECK-LABEL: func.func private @overlapped
func.func @by_the_first(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                        %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %m = tile.reduce %a dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x4096xf32>
  %d = arith.subf %a, %n : tensor<1x4096xf32>
  %e = math.exp %d : tensor<1x4096xf32>
  %s = tile.reduce %e dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %f = tile.slice %e[0, 0] : tensor<1x4096xf32> -> tensor<1x1xf32>
  %w = tile.load %z[%i, %zero] : !tile.view<2, f32> -> tensor<1x4112xf32>
  %qb = tile.broadcast %f : tensor<1x1xf32> -> tensor<1x4112xf32>
  %sb = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x4112xf32>
  %g = arith.mulf %w, %qb : tensor<1x4112xf32>
  %o = arith.divf %g, %sb : tensor<1x4112xf32>
  tile.store %o, %y[%i, %zero] : tensor<1x4112xf32>, !tile.view<2, f32>
  return
}

// -----

// A row of 128 elements is left alone.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: overlapped
func.func @short(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                 %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x128xf32>
  %m = tile.reduce %a dim 1 : (tensor<1x128xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x128xf32>
  %d = arith.subf %a, %n : tensor<1x128xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x128xf32>, !tile.view<2, f32>
  return
}
