// SPDX-License-Identifier: Apache-2.0
// Rows of memory that lanes lie across are read as vectors and change places in registers.
// RUN: %lower %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx2},canonicalize,cse)' %s | FileCheck %s --check-prefix=AVX2

// A transpose: 32 rows of 16, four steps of 16 shuffles for each half of the lanes, then the 16 rows of the result. The
// loop along the block's rows is the innermost one.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32 {
// CHECK: scf.for %{{.*}} = %c0 to %c48 step %c16 {
// CHECK-COUNT-16: llvm.load {{.*}} -> vector<16xf32>
// CHECK-COUNT-64: vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// CHECK-COUNT-16: llvm.load {{.*}} -> vector<16xf32>
// CHECK-COUNT-64: vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// CHECK-COUNT-16: llvm.store {{.*}} : vector<32xf32>
// CHECK-NOT: llvm.store
// Rows that no block has, and tiles at the edge, are gathered.
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1 {
// CHECK: llvm.intr.masked.gather
// CHECK: } else {
// CHECK-NOT: vector.shuffle
// AVX2-LABEL: func.func private @instance
// AVX2: scf.for %{{.*}} step %c8 {
// AVX2-COUNT-8: llvm.load {{.*}} -> vector<8xf32>
// AVX2-COUNT-24: vector.shuffle {{.*}} : vector<8xf32>, vector<8xf32>
func.func @transpose(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<64x50xf32>
  %r = tile.transpose %t [1, 0] : tensor<64x50xf32> -> tensor<50x64xf32>
  tile.store %r, %y[%c0, %c0] : tensor<50x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Another kernel: what is stored by columns, scaled by a vector and added to what is stored by rows.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c16 {
// CHECK-COUNT-32: llvm.load {{.*}} -> vector<16xi16>
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: llvm.store
func.func @columns(%x: !tile.view<2, bf16> {tile.unit_stride = 0 : i64},
                   %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                   %s: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                   %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, bf16> -> tensor<32x32xbf16>
  %w = tile.cast %t : tensor<32x32xbf16> -> tensor<32x32xf32>
  %v = tile.load %s[%c0] : !tile.view<1, f32> -> tensor<32xf32>
  %r = tile.reshape %v : tensor<32xf32> -> tensor<1x32xf32>
  %b = tile.broadcast %r : tensor<1x32xf32> -> tensor<32x32xf32>
  %m = arith.mulf %w, %b : tensor<32x32xf32>
  %a = tile.load %z[%c0, %c0] : !tile.view<2, f32> -> tensor<32x32xf32>
  %p = arith.addf %m, %a : tensor<32x32xf32>
  tile.store %p, %y[%c0, %c0] : tensor<32x32xf32>, !tile.view<2, f32>
  return
}

// -----

// A copy of what is stored by columns: rows that exist may be fewer than the tile's, and whole blocks of them are taken.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[BLOCKS:.*]] = arith.divui %{{.*}}, %c16
// CHECK: %[[WHOLE:.*]] = arith.muli %[[BLOCKS]], %c16
// CHECK: scf.for %{{.*}} = %c0 to %[[WHOLE]] step %c16 {
// CHECK-COUNT-32: llvm.load {{.*}} -> vector<16xf32>
func.func @copy(%x: !tile.view<2, f32> {tile.unit_stride = 0 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index)
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : !tile.view<2, f32> -> tensor<64x32xf32>
  tile.store %t, %y[%i, %c0] : tensor<64x32xf32>, !tile.view<2, f32>
  return
}

// -----

// Of two rows a block would be two elements wide: left to what narrow rows have.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: -> vector<2xf32>
// CHECK: return
func.func @narrow(%x: !tile.view<2, f32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<2x32xf32>
  tile.store %t, %y[%c0, %c0] : tensor<2x32xf32>, !tile.view<2, f32>
  return
}
