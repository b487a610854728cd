// SPDX-License-Identifier: Apache-2.0
// Where the order of lanes is nobody's business, bf16 is taken apart by a shift and a mask, and put together by one shuffle.
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512-dot},canonicalize,cse)' %s | FileCheck %s

// A gate: two inputs, one of them the same for all rows.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[PAIRS:.*]] = llvm.bitcast %{{.*}} : vector<32xi16> to vector<16xi32>
// CHECK-DAG: arith.shli %[[PAIRS]], %{{.*}} : vector<16xi32>
// CHECK-DAG: arith.andi %[[PAIRS]], %{{.*}} : vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// CHECK: llvm.shufflevector %{{.*}}, %{{.*}} [0, 16, 1, 17, 2, 18,
// CHECK-NEXT: llvm.store
func.func @gate(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %g: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<4x64xbf16>
  %b = tile.load %g[%zero] : !tile.view<1, bf16> -> tensor<64xbf16>
  %w = tile.cast %a : tensor<4x64xbf16> -> tensor<4x64xf32>
  %v = tile.cast %b : tensor<64xbf16> -> tensor<64xf32>
  %r = tile.reshape %v : tensor<64xf32> -> tensor<1x64xf32>
  %s = tile.broadcast %r : tensor<1x64xf32> -> tensor<4x64xf32>
  %p = arith.mulf %w, %s : tensor<4x64xf32>
  %c = tile.cast %p : tensor<4x64xf32> -> tensor<4x64xbf16>
  tile.store %c, %y[%i, %zero] : tensor<4x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// The squares of a long row, added up.
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.bitcast %{{.*}} : vector<64xi16> to vector<32xi32>
func.func @squares(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32>, %i: index) {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<1x1024xbf16>
  %w = tile.cast %a : tensor<1x1024xbf16> -> tensor<1x1024xf32>
  %q = arith.mulf %w, %w : tensor<1x1024xf32>
  %s = tile.reduce %q dim 1 : (tensor<1x1024xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %r: f32):
    %t = arith.addf %p, %r : f32
    tile.yield %t : f32
  }
  tile.store %s, %y[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}

// -----

// f32 beside bf16, numbers of lanes, results in f32: each would have to be put in order.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: vector<16xi32>
// CHECK: return
func.func @ordered(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %z: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                   %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<64xbf16>
  %b = tile.load %z[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %w = tile.cast %a : tensor<64xbf16> -> tensor<64xf32>
  %p = arith.mulf %w, %b : tensor<64xf32>
  %c = tile.cast %p : tensor<64xf32> -> tensor<64xbf16>
  tile.store %c, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// -----

// A sum that is kept for the next loop: both have their lanes in pairs, also where they are masked.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for
// CHECK: %[[PAIRS:.*]] = llvm.bitcast %{{.*}} : vector<32xi16> to vector<16xi32>
// CHECK: arith.shli %[[PAIRS]]
// CHECK: llvm.store %{{.*}} : vector<32xf32>, !llvm.ptr
// CHECK: %[[LOADED:.*]] = llvm.intr.masked.load
// CHECK: %[[PADDED:.*]] = arith.select %{{.*}}, %[[LOADED]], %{{.*}} : vector<32xi1>, vector<32xi16>
// CHECK: llvm.bitcast %[[PADDED]] : vector<32xi16> to vector<16xi32>
// CHECK: llvm.store %{{.*}} : vector<32xf32>, !llvm.ptr
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<32xf32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// CHECK: llvm.shufflevector %{{.*}}, %{{.*}} [0, 16, 1, 17, 2, 18,
// CHECK: llvm.shufflevector %{{.*}}, %{{.*}} [0, 16, 1, 17, 2, 18,
// CHECK: %[[WHOLE:.*]] = llvm.shufflevector %{{.*}}, %{{.*}} [0, 16, 1, 17, 2, 18,
// CHECK-NEXT: llvm.intr.masked.store %[[WHOLE]]
func.func @unit(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %z: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<1x128xbf16>
  %b = tile.load %z[%i, %zero] : !tile.view<2, bf16> -> tensor<1x128xbf16>
  %v = tile.cast %a : tensor<1x128xbf16> -> tensor<1x128xf32>
  %w = tile.cast %b : tensor<1x128xbf16> -> tensor<1x128xf32>
  %t = arith.addf %v, %w : tensor<1x128xf32>
  %s = tile.reduce %t dim 1 : (tensor<1x128xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %r: f32):
    %u = arith.addf %p, %r : f32
    tile.yield %u : f32
  }
  %all = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x128xf32>
  %d = arith.subf %t, %all : tensor<1x128xf32>
  %c = tile.cast %d : tensor<1x128xf32> -> tensor<1x128xbf16>
  tile.store %c, %y[%i, %zero] : tensor<1x128xbf16>, !tile.view<2, bf16>
  return
}

// -----

// The same with a result of f32: nothing is in pairs, not even the loop that would allow it.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: vector<16xi32>
// CHECK: return
func.func @difference(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                      %z: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                      %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<1x128xbf16>
  %b = tile.load %z[%i, %zero] : !tile.view<2, bf16> -> tensor<1x128xbf16>
  %v = tile.cast %a : tensor<1x128xbf16> -> tensor<1x128xf32>
  %w = tile.cast %b : tensor<1x128xbf16> -> tensor<1x128xf32>
  %t = arith.addf %v, %w : tensor<1x128xf32>
  %s = tile.reduce %t dim 1 : (tensor<1x128xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %r: f32):
    %u = arith.addf %p, %r : f32
    tile.yield %u : f32
  }
  %all = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x128xf32>
  %d = arith.subf %t, %all : tensor<1x128xf32>
  tile.store %d, %y[%i, %zero] : tensor<1x128xf32>, !tile.view<2, f32>
  return
}

// -----

// A number or 0 by a condition that is kept in order: the choice is made of what is stored, behind the shuffle, also where
// stores are masked.
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.bitcast %{{.*}} : vector<32xi16> to vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// CHECK: %[[WHOLE:.*]] = llvm.shufflevector %{{.*}}, %{{.*}} [0, 16, 1, 17, 2, 18,
// CHECK-NEXT: %[[CHOSEN:.*]] = arith.select %{{.*}}, %[[WHOLE]], %{{.*}} : vector<32xi1>, vector<32xi16>
// CHECK-NEXT: llvm.store %[[CHOSEN]]
// CHECK: llvm.shufflevector %{{.*}}, %{{.*}} [0, 16, 1, 17, 2, 18,
// CHECK: %[[OTHER:.*]] = llvm.shufflevector %{{.*}}, %{{.*}} [0, 16, 1, 17, 2, 18,
// CHECK-NEXT: %[[MASKED:.*]] = arith.select %{{.*}}, %[[OTHER]], %{{.*}} : vector<32xi1>, vector<32xi16>
// CHECK: llvm.intr.masked.store %[[MASKED]]
func.func @by_chance(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                     %seed: i64, %limit: i16, %i: index) attributes {tile.no_overlap} {
  %counter = tile.iota 0 : tensor<256xi64>
  %bits = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<256xi64> -> tensor<256xi16>
  %limits = tile.splat %limit : i16 -> tensor<256xi16>
  %event = arith.cmpi ult, %bits, %limits : tensor<256xi16>
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %b = arith.mulf %w, %w : tensor<256xf32>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %c = arith.select %event, %zero, %b : tensor<256xi1>, tensor<256xf32>
  %d = tile.cast %c : tensor<256xf32> -> tensor<256xbf16>
  tile.store %d, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}
