// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx},canonicalize,cse)' %s | FileCheck %s
// RUN: %lower %s | FileCheck %s --check-prefix=OTHERS

// Rows of 1600 bytes, ten in a window, one loop: what begins a page further on, three rows down, and not ten.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK: scf.for %{{.*}} = %c0 to %c384 step %c32 {
// CHECK: arith.addi %{{.*}}, %c3 : index
// CHECK: "llvm.intr.prefetch"
// CHECK: arith.negf
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

// Two loops that only reduce (the sum of powers of what is left of the largest): memory is for both, half of the lines
// each.
// OTHERS-NOT: llvm.intr.prefetch
// OTHERS: arith.maximumf
// OTHERS: "llvm.intr.prefetch"
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c64
// CHECK: "llvm.intr.prefetch"
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: arith.maximumf
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c64
// CHECK: arith.addi %{{.*}}, %c2048
// CHECK: "llvm.intr.prefetch"
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: math.exp
func.func @reduced_twice(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
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
  %e = math.exp %d : tensor<1x1024xf32>
  %s = tile.reduce %e dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  tile.store %s, %y[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}

// -----

// Rows less their sum, of 128 lines: the loop that adds up, over two pages at once, brings in the last eighth, 16 lines in 32
// iterations, and the one that stores the rest, 7 lines in 4 iterations.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c64
// CHECK: scf.for %{{.*}} = %c0 to %c2048 step %c1024
// CHECK: %[[J:.*]] = arith.addi
// CHECK: %[[SCALED:.*]] = arith.muli %[[J]], %c1024
// CHECK: arith.divui %[[SCALED]], %c2048
// CHECK: arith.addi %{{.*}}, %c7168
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: arith.addf
// CHECK: scf.for %[[J:.*]] = %c0 to %c2048 step %c32
// CHECK: %[[SCALED:.*]] = arith.muli %[[J]], %c7168
// CHECK: arith.divui %[[SCALED]], %c2048
// CHECK: "llvm.intr.prefetch"
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: arith.subf
func.func @first_loop_of_stored(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x2048xf32>
  %m = tile.reduce %a dim 1 : (tensor<1x2048xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x2048xf32>
  %d = arith.subf %a, %n : tensor<1x2048xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x2048xf32>, !tile.view<2, f32>
  return
}

// -----

// Random numbers that are no whole lumps have a loop of their own that reads nothing: it brings in half of the row that is read next, the other
// loop half of the one after it.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %[[J:.*]] = %c0 to %c768 step %c256
// CHECK: arith.muli %[[J]], %c2
// CHECK-COUNT-8: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: scf.for %{{.*}} = %c0 to %c992 step %c32
// CHECK: "llvm.intr.prefetch"
// CHECK-NOT: "llvm.intr.prefetch"
// CHECK: arith.mulf
func.func @noise(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                 %seed: i64) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x992xf32>
  %counter = tile.iota 1 : tensor<1x992xi64>
  %bits = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<1x992xi64> -> tensor<1x992xi16>
  %n = arith.uitofp %bits : tensor<1x992xi16> to tensor<1x992xf32>
  %d = arith.mulf %a, %n : tensor<1x992xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x992xf32>, !tile.view<2, f32>
  return
}

// -----

// They are drawn right before they are used, when the row is known.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c768 step %c256
// CHECK-COUNT-8: "llvm.intr.prefetch"
// CHECK: scf.for %{{.*}} = %c0 to %c992 step %c32
// CHECK: "llvm.intr.prefetch"
// CHECK: arith.mulf
func.func @noise_of_a_row(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                          %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                          %seed: i64) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %counter = tile.iota 1 : tensor<1x992xi64>
  %bits = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<1x992xi64> -> tensor<1x992xi16>
  %n = arith.uitofp %bits : tensor<1x992xi16> to tensor<1x992xf32>
  %next = arith.addi %i, %one : index
  %row = arith.muli %next, %next : index
  %a = tile.load %x[%row, %zero] : !tile.view<2, f32> -> tensor<1x992xf32>
  %d = arith.mulf %a, %n : tensor<1x992xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x992xf32>, !tile.view<2, f32>
  return
}

// -----

// A reduction without a neutral element takes its first step before its loop; the loop around that is the kernel's.
// CHECK-LABEL: func.func private @instance
// CHECK: math.tanh
// OTHERS: math.tanh
func.func @first_step_before_the_loops(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
             %y: !tile.view<1, i32> {tile.unit_stride = 0 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c2048 = arith.constant 2048 : index
  %n = tile.size %x, 0 : !tile.view<1, f32>
  %m = tile.size %y, 0 : !tile.view<1, i32>
  %g = tile.grid %m
  %init = arith.constant dense<0> : tensor<1xi32>
  %r = scf.for %k = %c0 to %n step %c2048 iter_args(%acc = %init) -> tensor<1xi32> {
    %a = tile.load %x[%k] : !tile.view<1, f32> -> tensor<2048xf32>
    %l = math.log %a : tensor<2048xf32>
    %e = math.exp %l : tensor<2048xf32>
    %t = math.tanh %e : tensor<2048xf32>
    %mx = tile.reduce %t dim 0 : (tensor<2048xf32>) -> tensor<1xf32> {
    ^bb0(%p: f32, %q: f32):
      %s = arith.maximumf %p, %q : f32
      tile.yield %s : f32
    }
    %b = tile.broadcast %mx : tensor<1xf32> -> tensor<2048xf32>
    %d = arith.subf %t, %b : tensor<2048xf32>
    %i = tile.iota 0 : tensor<2048xi32>
    %am:2 = tile.reduce %d, %i dim 0 : (tensor<2048xf32>, tensor<2048xi32>) -> (tensor<1xf32>, tensor<1xi32>) {
    ^bb0(%p: f32, %pi: i32, %q: f32, %qi: i32):
      %c = arith.cmpf ogt, %p, %q : f32
      %v = arith.select %c, %p, %q : f32
      %vi = arith.select %c, %pi, %qi : i32
      tile.yield %v, %vi : f32, i32
    }
    %nx = arith.addi %acc, %am#1 : tensor<1xi32>
    scf.yield %nx : tensor<1xi32>
  }
  tile.store %r, %y[%g] : tensor<1xi32>, !tile.view<1, i32>
  return
}

// -----

// Tiles beside each other, of short rows: rows further down in the same tile, and not what lies beside them.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c384 step %c32 {
// CHECK: arith.addi %{{.*}}, %c3 : index
// CHECK: "llvm.intr.prefetch"({{.*}}rw = 0
// CHECK: arith.negf
func.func @side_by_side(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                        %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %ten = arith.constant 10 : index
  %wide = arith.constant 400 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %cols = tile.size %x, 1 : !tile.view<2, f32>
  %i, %j = tile.grid %rows, %cols
  %first = arith.muli %i, %ten : index
  %left = arith.muli %j, %wide : index
  %a = tile.load %x[%first, %left] : !tile.view<2, f32> -> tensor<10x400xf32>
  %b = arith.negf %a : tensor<10x400xf32>
  tile.store %b, %y[%first, %left] : tensor<10x400xf32>, !tile.view<2, f32>
  return
}
