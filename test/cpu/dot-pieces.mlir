// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx},canonicalize,cse)' | FileCheck %s

// f32 in three pieces of bf16. B is taken apart when it is packed: rows 16 apart are cut off, what is left is rounded,
// and what is left of that is the third piece; each pair becomes a unit. What is left is added to a note, which is NaN
// if a number was not finite.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for
// CHECK: %[[LOW:.*]] = llvm.load {{.*}} -> vector<16xf32>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[LOW]] : vector<16xf32> to vector<16xi32>
// CHECK: %[[CUT:.*]] = arith.andi %[[BITS]], %[[UPPER:.*]] : vector<16xi32>
// CHECK: %[[FIRST:.*]] = arith.bitcast %[[CUT]]
// CHECK: %[[REST:.*]] = arith.subf %[[LOW]], %[[FIRST]]
// CHECK: arith.shrui %[[CUT]]
// CHECK: arith.ori
// CHECK: arith.addi {{.*}} : vector<16xi32>
// CHECK: arith.subf
// CHECK-COUNT-3: llvm.store {{.*}} : vector<16xi32>, !llvm.ptr
// CHECK-NOT: tileloadd64

// A strip of A is taken apart when its turn comes, and multiplied unless something of it or of B is not finite.
// CHECK: scf.for
// CHECK-COUNT-3: llvm.store {{.*}} : vector<16xi32>, !llvm.ptr
// CHECK: %[[SPECIAL:.*]] = arith.cmpf uno, %[[NOTES:.*]], %[[NOTES]] : vector<16xf32>
// CHECK: %[[LANES:.*]] = llvm.bitcast %[[SPECIAL]] : vector<16xi1> to i16
// CHECK: arith.cmpi eq, %[[LANES]], %{{.*}} : i16
// CHECK: scf.if

// Six products of pieces, four tiles each: the first loads four, each other the pieces of one side, when they are free.
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK: scf.for
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-20: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-NOT: llvm.x86.t
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"

// What is not finite is multiplied by vectors.
// CHECK: math.fma {{.*}} : vector<16xf32>
func.func @in_pieces(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<256x128xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<256x64xf32>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, f32> -> tensor<64x128xf32>
  %c = tile.dot %a, %b, %zero : tensor<256x64xf32>, tensor<64x128xf32>, tensor<256x128xf32>
  %sum = tile.reduce %c dim 1 : (tensor<256x128xf32>) -> tensor<256x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s : f32
  }
  tile.store %sum, %z[%c0, %c0] : tensor<256x1xf32>, !tile.view<2, f32>
  return
}

// -----

// f16 has 11 bits, which are two pieces, and all four products. Nothing is rounded.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.extf {{.*}} : vector<16xf16> to vector<16xf32>
// CHECK-NOT: arith.addi {{.*}} : vector<16xi32>
// CHECK-COUNT-16: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-NOT: llvm.x86.tdpbf16ps
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"
func.func @halves(%x: !tile.view<2, f16> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f16> {tile.unit_stride = 1 : i64},
                  %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<256x128xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f16> -> tensor<256x64xf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, f16> -> tensor<64x128xf16>
  %c = tile.dot %a, %b, %zero : tensor<256x64xf16>, tensor<64x128xf16>, tensor<256x128xf32>
  tile.store %c, %z[%c0, %c0] : tensor<256x128xf32>, !tile.view<2, f32>
  return
}

// -----

// With tf32 allowed, two pieces and three products.
// CHECK-LABEL: func.func private @instance
// CHECK-COUNT-12: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-NOT: llvm.x86.tdpbf16ps
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"
func.func @tf32(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<256x256xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<256x256xf32>
  %c = tile.dot %a, %a, %zero {allow_tf32} : tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>
  tile.store %c, %z[%c0, %c0] : tensor<256x256xf32>, !tile.view<2, f32>
  return
}

// -----

// Too few rows and columns to share what taking apart costs: vectors.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: llvm.x86.t
// CHECK: math.fma {{.*}} : vector<16xf32>
// CHECK-LABEL: func.func @tenon_run
func.func @small(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                 %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<64x64xf32>
  %c = tile.dot %a, %a, %zero : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  tile.store %c, %z[%c0, %c0] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}
