// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx streams},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512 streams},canonicalize,cse)' %s | FileCheck %s --check-prefix=OTHERS

// A row of four pages, on a processor that is better at several than at one: a vector of each in turn. The plain twin goes
// from one end to the other.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %[[J:.*]] = %c0 to %c1024 step %c32 {
// CHECK: scf.for %[[PART:.*]] = %c0 to %c4096 step %c1024 {
// CHECK: %[[AT:.*]] = arith.addi %[[PART]], %[[J]] : index
// CHECK: "llvm.intr.prefetch"
// CHECK: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<32xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c4096 step %c32 {
// CHECK-NOT: nontemporal
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c32 {
// CHECK: scf.for %{{.*}} = %c0 to %c4096 step %c1024 {
// CHECK: nontemporal
// CHECK: masked.store
// CHECK-NOT: nontemporal
// CHECK: @tenon_run
// OTHERS: nontemporal
// OTHERS-NOT: step %c1024
func.func @four_pages(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                      %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %rows = tile.size %x, 0 : !tile.view<2, f32>
  %i = tile.grid %rows
  %a = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x4096xf32>
  %b = arith.mulf %a, %a : tensor<1x4096xf32>
  tile.store %b, %y[%i, %zero] : tensor<1x4096xf32>, !tile.view<2, f32>
  return
}

// -----

// Rows less their maximum in bf16, two pages of it. The loops that look for the maximum, with and without masks, go over
// both at once as well: what is added up, and in what order, does not depend on how large a result is.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c2048 step %c64
// CHECK: scf.for %{{.*}} = %c0 to %c4096 step %c2048
// CHECK-NOT: masked.load
// CHECK: arith.maximumf
// CHECK: scf.for %{{.*}} = %c0 to %c2048 step %c64
// CHECK: scf.for %{{.*}} = %c0 to %c4096 step %c2048
// CHECK: masked.load
// CHECK: arith.maximumf
// CHECK: scf.for %{{.*}} = %c0 to %c2048 step %c32 {
// CHECK: scf.for %{{.*}} = %c0 to %c4096 step %c2048 {
// CHECK: llvm.store %{{.*}} {alignment = 64 : i64, nontemporal} : vector<32xi16>
func.func @two_pages(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                     %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<1x4096xbf16>
  %w = tile.cast %a : tensor<1x4096xbf16> -> tensor<1x4096xf32>
  %m = tile.reduce %w dim 1 : (tensor<1x4096xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %n = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x4096xf32>
  %d = arith.subf %w, %n : tensor<1x4096xf32>
  %c = tile.cast %d : tensor<1x4096xf32> -> tensor<1x4096xbf16>
  tile.store %c, %y[%i, %zero] : tensor<1x4096xbf16>, !tile.view<2, bf16>
  return
}
