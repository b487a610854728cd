// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512-dot},canonicalize,cse)' %s | FileCheck %s
// RUN: %lower %s | FileCheck %s --check-prefix=WITHOUT
// WITHOUT-NOT: cvtne2ps2bf16

// f32 rounded to bf16 by one instruction, except for vectors with a subnormal number.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.addf
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.fpclass.ps.512"(%{{.*}}, %c32_i32)
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.fpclass.ps.512"(%{{.*}}, %c32_i32)
// CHECK: %[[MASK:.*]] = arith.ori %{{.*}}, %{{.*}} : i16
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[MASK]]
// CHECK: %[[PACKED:.*]] = scf.if %[[ANY]] -> (vector<32xi16>) {
// CHECK-NOT: cvtne2ps2bf16
// CHECK: } else {
// CHECK: llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
// CHECK: %[[PAIRED:.*]] = llvm.shufflevector %[[PACKED]]
// CHECK: llvm.store %[[PAIRED]]
func.func @sum(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
               %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %s = arith.addf %w, %w : tensor<256xf32>
  %c = tile.cast %s : tensor<256xf32> -> tensor<256xbf16>
  tile.store %c, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}

// -----

// What is bf16 already is stored as it is.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: cvtne2ps2bf16
func.func @copy(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  tile.store %a, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}
