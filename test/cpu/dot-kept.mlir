// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx},canonicalize,cse)' | FileCheck %s

// B is packed where the offsets of what is there are others: the first word says whether there is anything, then follow
// the row and the column. Instances below each other come one after the other. Nothing is cleared here: whoever calls
// does it, once for many ranges.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %[[K:.*]] = %c0 to
// CHECK: %[[ANY:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK: arith.cmpi ne, %[[ANY]], %c1_i64 : i64
// CHECK-COUNT-2: arith.cmpi ne
// CHECK: %[[OTHER:.*]] = arith.ori
// CHECK-NEXT: scf.if %[[OTHER]] {
// CHECK: vector.interleave
// CHECK-COUNT-3: llvm.store %{{.*}} : i64, !llvm.ptr
// CHECK-NEXT: }
// CHECK: tdpbf16ps
// CHECK-LABEL: func.func @tenon_run
// CHECK: ldtilecfg
// CHECK-NOT: llvm.store
// CHECK: scf.for %[[NUMBER:.*]] = %arg1 to %arg2
// CHECK: %[[ROWS:.*]] = llvm.load %arg3
// CHECK: %[[I:.*]] = arith.remui %[[NUMBER]], %[[ROWS]]
// CHECK: %[[J:.*]] = arith.divui %[[NUMBER]], %[[ROWS]]
// CHECK: call @instance(%arg0, %[[I]], %[[J]], %c0_i64,
func.func @matmul(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %m = tile.size %z, 0 : !tile.view<2, f32>
  %n = tile.size %z, 1 : !tile.view<2, f32>
  %depth = tile.size %x, 1 : !tile.view<2, bf16>
  %g:2 = tile.grid %m, %n
  %i = arith.muli %g#0, %c64 : index
  %j = arith.muli %g#1, %c128 : index
  %sum = scf.for %k = %c0 to %depth step %c128 iter_args(%acc = %zero) -> tensor<64x128xf32> {
    %a = tile.load %x[%i, %k] : !tile.view<2, bf16> -> tensor<64x128xbf16>
    %b = tile.load %y[%k, %j] : !tile.view<2, bf16> -> tensor<128x128xbf16>
    %next = tile.dot %a, %b, %acc : tensor<64x128xbf16>, tensor<128x128xbf16>, tensor<64x128xf32>
    scf.yield %next : tensor<64x128xf32>
  }
  tile.store %sum, %z[%i, %j] : tensor<64x128xf32>, !tile.view<2, f32>
  return
}

// -----

// Pieces of a table that many lists of bytes are compared with, transposed: the batch and the columns are slow.
// CHECK-LABEL: func.func private @instance
// CHECK-COUNT-4: arith.cmpi ne
// CHECK: scf.if
// CHECK: tdpbssd
// CHECK-LABEL: func.func @tenon_run
// CHECK: %[[FIRST:.*]] = arith.remui %[[NUMBER:.*]], %[[LISTS:.*]] : i64
// CHECK: %[[REST:.*]] = arith.divui %[[NUMBER]], %[[LISTS]] : i64
// CHECK: %[[J:.*]] = arith.remui %[[REST]], %[[PIECES:.*]] : i64
// CHECK: %[[BATCH:.*]] = arith.divui %[[REST]], %[[PIECES]] : i64
// CHECK: call @instance(%arg0, %[[BATCH]], %[[FIRST]], %[[J]],
func.func @matches(%lists: !tile.view<3, i8> {tile.unit_stride = 2 : i64},
                   %table: !tile.view<3, i8> {tile.unit_stride = 2 : i64},
                   %z: !tile.view<2, i32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0> : tensor<32x32xi32>
  %count = tile.size %lists, 0 : !tile.view<3, i8>
  %rows = tile.size %z, 0 : !tile.view<2, i32>
  %columns = tile.size %z, 1 : !tile.view<2, i32>
  %g:3 = tile.grid %count, %rows, %columns
  %i = arith.muli %g#1, %c32 : index
  %j = arith.muli %g#2, %c32 : index
  %a3 = tile.load %lists[%g#0, %i, %c0] : !tile.view<3, i8> -> tensor<1x32x64xi8>
  %b3 = tile.load %table[%g#0, %j, %c0] : !tile.view<3, i8> -> tensor<1x32x64xi8>
  %a = tile.reshape %a3 : tensor<1x32x64xi8> -> tensor<32x64xi8>
  %b2 = tile.reshape %b3 : tensor<1x32x64xi8> -> tensor<32x64xi8>
  %b = tile.transpose %b2 [1, 0] : tensor<32x64xi8> -> tensor<64x32xi8>
  %c = tile.dot %a, %b, %zero : tensor<32x64xi8>, tensor<64x32xi8>, tensor<32x32xi32>
  tile.store %c, %z[%i, %j] : tensor<32x32xi32>, !tile.view<2, i32>
  return
}

// -----

// A view that the kernel writes as well: what was packed may be something else by now.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: arith.cmpi ne, %{{.*}} : i64
// CHECK-LABEL: func.func @tenon_run
// CHECK-NOT: llvm.store
func.func @grown(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                 %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, bf16> -> tensor<32x32xbf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, bf16> -> tensor<32x32xbf16>
  %c = tile.dot %a, %b, %zero : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xf32>
  %d = tile.cast %c : tensor<32x32xf32> -> tensor<32x32xbf16>
  tile.store %d, %y[%c0, %c0] : tensor<32x32xbf16>, !tile.view<2, bf16>
  return
}

// -----

// Sums of squares of what is kept stay as well, in a place with notes of its own; those of A do not.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to
// CHECK-COUNT-3: arith.cmpi ne, %{{.*}} : i64
// CHECK: scf.if
// CHECK: arith.mulf %{{.*}} : vector<32xf32>
// CHECK-COUNT-3: llvm.store %{{.*}} : i64, !llvm.ptr
// CHECK-NEXT: }
// CHECK: arith.mulf %{{.*}} : vector<32xf32>
// CHECK-COUNT-3: arith.cmpi ne, %{{.*}} : i64
// CHECK: scf.if
// CHECK-NOT: arith.mulf
// CHECK-COUNT-3: llvm.store %{{.*}} : i64, !llvm.ptr
// CHECK: tdpbf16ps
func.func @distance(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                    %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %none = arith.constant dense<0.0> : tensor<32x1xf32>
  %m = tile.size %z, 0 : !tile.view<2, f32>
  %n = tile.size %z, 1 : !tile.view<2, f32>
  %depth = tile.size %x, 1 : !tile.view<2, bf16>
  %g:2 = tile.grid %m, %n
  %i = arith.muli %g#0, %c32 : index
  %j = arith.muli %g#1, %c32 : index
  %sums:3 = scf.for %k = %c0 to %depth step %c64 iter_args(%acc = %zero, %p = %none, %q = %none)
      -> (tensor<32x32xf32>, tensor<32x1xf32>, tensor<32x1xf32>) {
    %a = tile.load %x[%i, %k] : !tile.view<2, bf16> -> tensor<32x64xbf16>
    %b = tile.load %y[%j, %k] : !tile.view<2, bf16> -> tensor<32x64xbf16>
    %wideB = tile.cast %b : tensor<32x64xbf16> -> tensor<32x64xf32>
    %squareB = arith.mulf %wideB, %wideB : tensor<32x64xf32>
    %ofB = tile.reduce %squareB dim 1 : (tensor<32x64xf32>) -> tensor<32x1xf32> {
    ^bb0(%s: f32, %o: f32):
      %r = arith.addf %s, %o : f32
      tile.yield %r : f32
    }
    %wideA = tile.cast %a : tensor<32x64xbf16> -> tensor<32x64xf32>
    %squareA = arith.mulf %wideA, %wideA : tensor<32x64xf32>
    %ofA = tile.reduce %squareA dim 1 : (tensor<32x64xf32>) -> tensor<32x1xf32> {
    ^bb0(%s: f32, %o: f32):
      %r = arith.addf %s, %o : f32
      tile.yield %r : f32
    }
    %turned = tile.transpose %b [1, 0] : tensor<32x64xbf16> -> tensor<64x32xbf16>
    %next = tile.dot %a, %turned, %acc : tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32x32xf32>
    %nextA = arith.addf %p, %ofA : tensor<32x1xf32>
    %nextB = arith.addf %q, %ofB : tensor<32x1xf32>
    scf.yield %next, %nextA, %nextB : tensor<32x32xf32>, tensor<32x1xf32>, tensor<32x1xf32>
  }
  %rowsA = tile.broadcast %sums#1 : tensor<32x1xf32> -> tensor<32x32xf32>
  %turnedB = tile.transpose %sums#2 [1, 0] : tensor<32x1xf32> -> tensor<1x32xf32>
  %columnsB = tile.broadcast %turnedB : tensor<1x32xf32> -> tensor<32x32xf32>
  %both = arith.addf %rowsA, %columnsB : tensor<32x32xf32>
  %all = arith.subf %both, %sums#0 : tensor<32x32xf32>
  tile.store %all, %z[%i, %j] : tensor<32x32xf32>, !tile.view<2, f32>
  return
}
