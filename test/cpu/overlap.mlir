// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx streams},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512 streams},canonicalize,cse)' %s | FileCheck %s --check-prefix=OTHERS

// Rows less their maximum: the maximum of one row and the store of the row before are one loop, over four pages at once,
// which brings in the first half of each page of the row that follows. Both rows have their maximum in the same place: it
// is read before the loop and written behind it. `instance` is told which of its loops to run.
// CHECK: module attributes {tenon.scratch_bytes = 128 : i64}
// CHECK-LABEL: func.func private @instance
// CHECK-SAME: %[[WHICH:[a-z0-9]*]]: i64) {
// CHECK: arith.cmpi eq, %[[WHICH]], %c-1_i64
// CHECK-LABEL: func.func private @holds
// CHECK-LABEL: func.func private @overlapped
// CHECK: scf.if
// CHECK: scf.for %[[J:.*]] = %c0 to %c1024 step %c64 iter_args
// CHECK: scf.for %[[PART:.*]] = %c0 to %c4096 step %c1024 iter_args
// CHECK-COUNT-2: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<32xf32>
// CHECK: arith.maximumf
// CHECK: scf.yield
// CHECK: } else {
// CHECK: call @instance
// CHECK-LABEL: func.func @tenon_run
// CHECK: call @holds
// CHECK: scf.if
// CHECK: call @overlapped
// CHECK: } else {
// CHECK: call @instance
// OTHERS-NOT: overlapped
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

// A row of one page is gone along from one end to the other, and brought in 8 KiB ahead.
// CHECK-LABEL: func.func private @instance
// CHECK: func.func private @overlapped
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c64
// CHECK: hint = 3
func.func @one_page(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x1024xf32>
  %m = tile.reduce %a dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x1024xf32>
  %d = arith.subf %a, %n : tensor<1x1024xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x1024xf32>, !tile.view<2, f32>
  return
}

// -----

// Nothing of a row is stored, but a number for each: its square root is taken and stored behind the loops, by the stage
// that has the row then. All of the next row is brought in. Scratch memory is there twice.
// CHECK-LABEL: func.func private @instance
// CHECK-SAME: %[[WHICH:[a-z0-9]*]]: i64) {
// CHECK: arith.cmpi eq, %[[WHICH]], %c1_i64
// CHECK: math.sqrt
// CHECK-LABEL: func.func private @overlapped
// CHECK: scf.for %[[J:.*]] = %c0 to %c1024 step %c64 iter_args
// CHECK: scf.for %[[PART:.*]] = %c0 to %c4096 step %c1024 iter_args
// CHECK-COUNT-4: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: arith.mulf
// CHECK: arith.maximumf
// CHECK: scf.yield
// CHECK: math.sqrt
// CHECK: } else {
// CHECK: call @instance
// OTHERS-NOT: overlapped
func.func @length(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
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
  %e = arith.mulf %d, %d : tensor<1x4096xf32>
  %s = tile.reduce %e dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %l = math.sqrt %s : tensor<1x1xf32>
  tile.store %l, %y[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}

// -----

// Powers of which some are added up behind the loop that divides them: the next row's must not be there by then, though
// they are read through a pointer of their own. Two copies.
// CHECK: module attributes {tenon.scratch_bytes = 33280 : i64}
// CHECK-LABEL: func.func private @overlapped
// OTHERS-NOT: overlapped
func.func @read_behind(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
             %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
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
  %sl = tile.slice %e[0, 16] : tensor<1x4096xf32> -> tensor<1x16xf32>
  %t = tile.reduce %sl dim 1 : (tensor<1x16xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %t, %z[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}
