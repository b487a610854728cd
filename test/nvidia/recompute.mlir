// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-recompute))' | FileCheck %s

// 64 elements a thread, as long as the block reduces in as many registers; as loaded, in half as many.
#row = #nvidia.layout<2, register = [0, 1, 0, 2, 0, 4, 0, 1024, 0, 2048, 0, 4096], lane = [0, 8, 0, 16, 0, 32, 0, 64, 0, 128], warp = [0, 256, 0, 512], block = []>
#one = #nvidia.layout<2, register = [], lane = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], warp = [0, 0, 0, 0], block = []>

// What is cast and what is exponentiated is made again after each reduction, from the words, and not kept.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[X:.*]] = tile.load
// CHECK: %[[W:.*]] = tile.cast %[[X]]
// CHECK: %[[M:.*]] = tile.reduce %[[W]]
// CHECK: %[[X1:.*]] = nvidia.again %[[X]] after %[[M]]
// CHECK: %[[W1:.*]] = tile.cast %[[X1]]
// CHECK: %[[MB:.*]] = tile.broadcast %[[M]]
// CHECK: %[[D:.*]] = arith.subf %[[W1]], %[[MB]]
// CHECK: %[[E:.*]] = math.exp %[[D]]
// CHECK: %[[S:.*]] = tile.reduce %[[E]]
// CHECK: %[[X2:.*]] = nvidia.again %[[X]] after %[[S]]
// CHECK: %[[W2:.*]] = tile.cast %[[X2]]
// CHECK: %[[D2:.*]] = arith.subf %[[W2]], %[[MB]]
// CHECK: %[[E2:.*]] = math.exp %[[D2]] {nvidia.relaxed}
// CHECK: arith.divf %[[E2]],
func.func @softmax(%x: !tile.view<2, bf16>, %y: !tile.view<2, bf16>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, bf16> -> tensor<1x8192xbf16, #row>
  %w = tile.cast %t : tensor<1x8192xbf16, #row> -> tensor<1x8192xf32, #row>
  %m = tile.reduce %w dim 1 : (tensor<1x8192xf32, #row>) -> tensor<1x1xf32, #one> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  %mb = tile.broadcast %m : tensor<1x1xf32, #one> -> tensor<1x8192xf32, #row>
  %d = arith.subf %w, %mb : tensor<1x8192xf32, #row>
  %e = math.exp %d {nvidia.relaxed} : tensor<1x8192xf32, #row>
  %s = tile.reduce %e dim 1 : (tensor<1x8192xf32, #row>) -> tensor<1x1xf32, #one> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %sb = tile.broadcast %s : tensor<1x1xf32, #one> -> tensor<1x8192xf32, #row>
  %q = arith.divf %e, %sb {nvidia.relaxed} : tensor<1x8192xf32, #row>
  %r = tile.cast %q : tensor<1x8192xf32, #row> -> tensor<1x8192xbf16, #row>
  tile.store %r, %y[%c0, %c0] : tensor<1x8192xbf16, #row>, !tile.view<2, bf16>
  return
}

// Another program, of another type: x times the sum of its squares.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[S:.*]] = tile.reduce
// CHECK: %[[X1:.*]] = nvidia.again %{{.*}} after %[[S]]
// CHECK: %[[W1:.*]] = tile.cast %[[X1]]
// CHECK: arith.mulf %[[W1]],
func.func @scaled(%x: !tile.view<2, f16>, %y: !tile.view<2, f16>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f16> -> tensor<1x8192xf16, #row>
  %w = tile.cast %t : tensor<1x8192xf16, #row> -> tensor<1x8192xf32, #row>
  %q = arith.mulf %w, %w : tensor<1x8192xf32, #row>
  %s = tile.reduce %q dim 1 : (tensor<1x8192xf32, #row>) -> tensor<1x1xf32, #one> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %sb = tile.broadcast %s : tensor<1x1xf32, #one> -> tensor<1x8192xf32, #row>
  %p = arith.mulf %w, %sb : tensor<1x8192xf32, #row>
  %r = tile.cast %p : tensor<1x8192xf32, #row> -> tensor<1x8192xf16, #row>
  tile.store %r, %y[%c0, %c0] : tensor<1x8192xf16, #row>, !tile.view<2, f16>
  return
}

// Words of f32 are what waits already; two tiles of words are as many as their sum.
// CHECK-LABEL: func.func @nothing_to_save
// CHECK-NOT: nvidia.again
// CHECK: return
func.func @nothing_to_save(%x: !tile.view<2, f32>, %u: !tile.view<2, bf16>, %v: !tile.view<2, bf16>, %y: !tile.view<2, f32>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<1x8192xf32, #row>
  %t2 = arith.addf %t, %t : tensor<1x8192xf32, #row>
  %lu = tile.load %u[%c0, %c0] : !tile.view<2, bf16> -> tensor<1x8192xbf16, #row>
  %lv = tile.load %v[%c0, %c0] : !tile.view<2, bf16> -> tensor<1x8192xbf16, #row>
  %wu = tile.cast %lu : tensor<1x8192xbf16, #row> -> tensor<1x8192xf32, #row>
  %wv = tile.cast %lv : tensor<1x8192xbf16, #row> -> tensor<1x8192xf32, #row>
  %uv = arith.addf %wu, %wv : tensor<1x8192xf32, #row>
  %all = arith.mulf %t2, %uv : tensor<1x8192xf32, #row>
  %s = tile.reduce %all dim 1 : (tensor<1x8192xf32, #row>) -> tensor<1x1xf32, #one> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %sb = tile.broadcast %s : tensor<1x1xf32, #one> -> tensor<1x8192xf32, #row>
  %p = arith.mulf %t2, %sb : tensor<1x8192xf32, #row>
  %q = arith.mulf %uv, %p : tensor<1x8192xf32, #row>
  tile.store %q, %y[%c0, %c0] : tensor<1x8192xf32, #row>, !tile.view<2, f32>
  return
}
