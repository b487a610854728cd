// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx},canonicalize,cse)' %s | FileCheck %s --check-prefix=ALWAYS

// Rows less their maximum: the loop that subtracts brings in the next row, the one that looks for the maximum does not.
// So where steps ask whether they are inside.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: llvm.intr.prefetch
// CHECK: arith.maximumf
// CHECK: scf.for %[[J:.*]] = %c0 to %c1024 step %c32 {
// CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK: "llvm.intr.prefetch"(%[[AT]]) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK: "llvm.intr.prefetch"
// CHECK: arith.subf
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c32 {
// CHECK: "llvm.intr.prefetch"
// CHECK: "llvm.intr.prefetch"
// CHECK: arith.andi
// CHECK: scf.if %{{.*}} {
// CHECK-NOT: llvm.intr.prefetch
func.func @rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x1024xf32>
  %m = tile.reduce %a dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x1024xf32>
  %d = arith.subf %a, %n : tensor<1x1024xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x1024xf32>, !tile.view<2, f32>
  return
}

// -----

// One loop: what comes next follows by itself, unless the processor needs to be told.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: llvm.intr.prefetch
// CHECK-LABEL: @tenon_run
// ALWAYS-LABEL: func.func private @instance
// ALWAYS-LABEL: func.func private @instance
// ALWAYS: scf.for %{{.*}} = %c0 to %c1024 step %c32 {
// ALWAYS: "llvm.intr.prefetch"
// ALWAYS: "llvm.intr.prefetch"
// ALWAYS: arith.negf
// ALWAYS: } else {
// ALWAYS: "llvm.intr.prefetch"
// ALWAYS: "llvm.intr.prefetch"
// ALWAYS: scf.if
// ALWAYS-NOT: llvm.intr.prefetch
// ALWAYS-LABEL: @tenon_run
func.func @once(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x1024xf32>
  %b = arith.negf %a : tensor<1x1024xf32>
  tile.store %b, %y[%i, %zero] : tensor<1x1024xf32>, !tile.view<2, f32>
  return
}

// -----

// The same window for every instance (a weight): there is no next one.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: llvm.intr.prefetch
// CHECK-LABEL: @tenon_run
func.func @weight(%w: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %y, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %w[%zero] : !tile.view<1, f32> -> tensor<1024xf32>
  %m = tile.reduce %a dim 0 : (tensor<1024xf32>) -> tensor<1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1xf32> -> tensor<1024xf32>
  %d = arith.subf %a, %n : tensor<1024xf32>
  %e = tile.reshape %d : tensor<1024xf32> -> tensor<1x1024xf32>
  tile.store %e, %y[%i, %zero] : tensor<1x1024xf32>, !tile.view<2, f32>
  return
}

// -----

// A loop along the row: the next piece of it, one extent on in the last dimension.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %c512
// CHECK: arith.maximumf
// CHECK: arith.addi %[[K]], %c512
// CHECK: "llvm.intr.prefetch"
// CHECK: math.exp
func.func @pieces(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %step = arith.constant 512 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %cols = tile.size %x, 1 : !tile.view<2, f32>
  %i = tile.grid %rows
  scf.for %k = %zero to %cols step %step {
    %a = tile.load %x[%i, %k] : !tile.view<2, f32> -> tensor<1x512xf32>
    %m = tile.reduce %a dim 1 : (tensor<1x512xf32>) -> tensor<1x1xf32> {
    ^bb0(%p: f32, %q: f32):
      %r = arith.maximumf %p, %q : f32
      tile.yield %r : f32
    }
    %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x512xf32>
    %d = arith.subf %a, %n : tensor<1x512xf32>
    %e = math.exp %d : tensor<1x512xf32>
    tile.store %e, %y[%i, %k] : tensor<1x512xf32>, !tile.view<2, f32>
  }
  return
}

// -----

// Two rows that are gone over twice, a product less its largest: of each page the first eight lines, one for eight, and of each row
// one line an iteration.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: llvm.intr.prefetch
// CHECK: arith.maximumf
// CHECK: scf.for %[[J:.*]] = %c0 to %c2048 step %c32 {
// CHECK: %[[WITHIN:.*]] = arith.andi %{{.*}}, %c4095
// CHECK: arith.divui %[[WITHIN]], %c512
// CHECK: "llvm.intr.prefetch"
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: arith.subf
// CHECK: } else {
// CHECK: "llvm.intr.prefetch"
// CHECK: "llvm.intr.prefetch"
// CHECK: scf.if
// CHECK-NOT: llvm.intr.prefetch
func.func @two(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %w: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
               %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x2048xf32>
  %b = tile.load %w[%i, %zero] : !tile.view<2, f32> -> tensor<1x2048xf32>
  %c = arith.mulf %a, %b : tensor<1x2048xf32>
  %m = tile.reduce %c dim 1 : (tensor<1x2048xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x2048xf32>
  %d = arith.subf %c, %n : tensor<1x2048xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x2048xf32>, !tile.view<2, f32>
  return
}
