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
