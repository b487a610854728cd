// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx},canonicalize,cse)' | FileCheck %s
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=amx-emulated},canonicalize,cse)' | FileCheck %s --check-prefix=EMULATED

// Four tiles of sums stay where they are over all of K: the loop has four loads and then four products, each behind a
// part of the rows of B that come to L1, two steps before they are loaded, and there are stores only behind it. The sums start at zero and are not read. A is copied as rows along K, and of B two rows are
// interleaved, as for vectors.
// CHECK: llvm.mlir.global internal constant @tile_configuration("\01{{.*}}") {{.*}}alignment = 64
// CHECK-LABEL: func.func private @instance
// CHECK: vector.interleave {{.*}} : vector<32xi16>
// CHECK-NOT: tileloadd64
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK: scf.for
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tileloadd64"
// CHECK-COUNT-8: "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 3 : i32, rw = 0 : i32}>
// CHECK-NOT: llvm.intr.prefetch
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-8: llvm.intr.prefetch
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-8: llvm.intr.prefetch
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-COUNT-8: llvm.intr.prefetch
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK-NOT: tile
// CHECK-NOT: llvm.intr.prefetch
// CHECK: }
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilestored64"

// Rows that are left over, as the view has them, are computed elsewhere: one tile or two of them.
// CHECK: scf.index_switch
// CHECK: case 1
// CHECK: tileloadd64
// CHECK-COUNT-16: llvm.intr.prefetch
// CHECK-NOT: llvm.intr.prefetch
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK: case 2
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tdpbf16ps"

// The registers are set up once for all instances.
// CHECK-LABEL: func.func @tenon_run
// CHECK: llvm.call_intrinsic "llvm.x86.ldtilecfg"
// CHECK: scf.for
// CHECK: call @instance
// CHECK: }
// CHECK: llvm.call_intrinsic "llvm.x86.tilerelease"
// CHECK: return

// EMULATED-LABEL: func.func private @instance
// EMULATED-COUNT-4: llvm.call @tenon_tile_zero
// EMULATED: scf.for
// EMULATED-COUNT-4: llvm.call @tenon_tile_load
// EMULATED: llvm.call @tenon_tile_multiply_bf16
// EMULATED-NOT: llvm.x86
// EMULATED-LABEL: func.func @tenon_run
// EMULATED: llvm.call @tenon_tile_configure
// EMULATED: call @instance
// EMULATED: llvm.call @tenon_tile_release
func.func @matmul(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, bf16> -> tensor<64x128xbf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, bf16> -> tensor<128x64xbf16>
  %c = tile.dot %a, %b, %zero : tensor<64x128xbf16>, tensor<128x64xbf16>, tensor<64x64xf32>
  tile.store %c, %z[%c0, %c0] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Bytes: the instruction has their signedness. All rows are seen here, by a sum: 40 are one block and a part of another,
// which is computed in a place of its own.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: scf.index_switch
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbsud"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbsud"
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK: llvm.call_intrinsic "llvm.x86.tilezero"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbsud"
// CHECK: llvm.call_intrinsic "llvm.x86.tilestored64"
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK-NEXT: arith
// EMULATED-LABEL: func.func private @instance
// EMULATED: llvm.call @tenon_tile_multiply_su
func.func @bytes(%x: !tile.view<2, i8> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, i8> {tile.unit_stride = 1 : i64},
                 %z: !tile.view<2, i32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0> : tensor<40x16xi32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, i8> -> tensor<40x64xi8>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, i8> -> tensor<64x16xi8>
  %c = tile.dot %a, %b, %zero {b_unsigned} : tensor<40x64xi8>, tensor<64x16xi8>, tensor<40x16xi32>
  %sum = tile.reduce %c dim 1 : (tensor<40x16xi32>) -> tensor<40x1xi32> {
  ^bb0(%p: i32, %q: i32):
    %s = arith.addi %p, %q : i32
    tile.yield %s : i32
  }
  tile.store %sum, %z[%c0, %c0] : tensor<40x1xi32>, !tile.view<2, i32>
  return
}
