// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx},canonicalize,cse)' | FileCheck %s
// RUN: %lower %s | FileCheck %s --check-prefix=OTHERS

// While a strip of A is multiplied, the next one comes in, four lines of a row with every step of 64 bytes, and so do the
// next step's rows of B; after the last step they are the first ones of the next instance: K begins again, and B's
// columns move on, but only where there is no other instance below, whose axis is the faster one. In the last step what
// is stored to comes in as well. The sums start at zero: nothing is cleared and read for that, but where there is no step
// at all.
// OTHERS-LABEL: func.func private @instance
// OTHERS-NOT: hint = 2 : i32, rw = 1
// OTHERS-LABEL: @tenon_run
// CHECK-LABEL: func.func private @instance
// CHECK: %[[EMPTY:.*]] = arith.cmpi sle, %[[DEPTH:.*]], %c0 : index
// CHECK: scf.if %[[EMPTY]] {
// CHECK: llvm.store
// CHECK: scf.for %[[K:.*]] = %c0 to %[[DEPTH]] step %c128 {
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[K]], %c0 : index
// CHECK: %[[LAST:.*]] = arith.cmpi sge, %[[NEXT:.*]], %[[DEPTH]] : index
// CHECK: arith.select %[[LAST]], %c0, %[[NEXT]] : index
// CHECK: %[[ALONE:.*]] = arith.cmpi sle, %{{.*}}, %c1 : index
// CHECK: %[[DUE:.*]] = arith.andi %[[LAST]], %[[ALONE]] : i1
// CHECK: arith.select %[[DUE]]
// CHECK: scf.if %[[FIRST]] {
// CHECK-COUNT-4: tilezero
// CHECK: } else {
// CHECK-COUNT-4: tileloadd64
// CHECK: scf.for
// CHECK-COUNT-4: "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK: scf.if %[[LAST]] {
// CHECK-COUNT-8: "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 1 : i32}>
// CHECK-NEXT: }
// CHECK-COUNT-4: "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK-NOT: hint = 2
// CHECK: tdpbf16ps
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

// Scores of all keys, 32 at a time: those of the next step come in, the queries stay, and nothing is stored yet.
// OTHERS-LABEL: func.func private @instance
// OTHERS-NOT: tdpbf16ps
// OTHERS-LABEL: @tenon_run
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} step %c32
// CHECK: tilezero
// CHECK: scf.for
// CHECK: "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK: tdpbf16ps
// CHECK-NOT: rw = 1 : i32
// CHECK-LABEL: @tenon_run
func.func @scores(%q: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %keys: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %out: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %none = arith.constant dense<0xFF800000> : tensor<32x1xf32>
  %count = tile.size %keys, 0 : !tile.view<2, bf16>
  %a = tile.load %q[%c0, %c0] : !tile.view<2, bf16> -> tensor<32x64xbf16>
  %best = scf.for %j = %c0 to %count step %c32 iter_args(%most = %none) -> tensor<32x1xf32> {
    %k = tile.load %keys[%j, %c0] : !tile.view<2, bf16> -> tensor<32x64xbf16>
    %b = tile.transpose %k [1, 0] : tensor<32x64xbf16> -> tensor<64x32xbf16>
    %s = tile.dot %a, %b, %zero : tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32x32xf32>
    %m = tile.reduce %s dim 1 : (tensor<32x32xf32>) -> tensor<32x1xf32> {
    ^bb0(%p: f32, %o: f32):
      %r = arith.maximumf %p, %o : f32
      tile.yield %r : f32
    }
    %next = arith.maximumf %most, %m : tensor<32x1xf32>
    scf.yield %next : tensor<32x1xf32>
  }
  tile.store %best, %out[%c0, %c0] : tensor<32x1xf32>, !tile.view<2, f32>
  return
}

// -----

// One row: B is read where it lies, and the eight rows after these are brought in, a line of 32 columns each.
// OTHERS-LABEL: func.func private @instance
// OTHERS-NOT: llvm.intr.prefetch
// OTHERS-LABEL: @tenon_run
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c8
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c32
// CHECK-COUNT-8: "llvm.intr.prefetch"
// CHECK-NOT: llvm.intr.prefetch
func.func @thin(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<1x128xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, bf16> -> tensor<1x64xbf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, bf16> -> tensor<64x128xbf16>
  %c = tile.dot %a, %b, %zero : tensor<1x64xbf16>, tensor<64x128xbf16>, tensor<1x128xf32>
  tile.store %c, %z[%c0, %c0] : tensor<1x128xf32>, !tile.view<2, f32>
  return
}
