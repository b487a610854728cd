// SPDX-License-Identifier: Apache-2.0
// What is marked for tables, and what becomes of it.
// RUN: %lower %s | FileCheck %s --check-prefix=MARKED
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512},tenon-cpu-lower-to-llvm)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx2},tenon-cpu-lower-to-llvm)' %s | FileCheck %s --check-prefix=WITHOUT
// WITHOUT-NOT: vpermi2var
// WITHOUT-NOT: tile.tabulated

// x times the normal distribution at x: four coefficients for each of two registers, of ranges of x, and no power of two.
// MARKED-LABEL: func.func private @instance
// MARKED: arith.addf %{{.*}} {tile.coarse, tile.relaxed, tile.tabulated}
// CHECK-LABEL: llvm.func @instance
// CHECK: "llvm.x86.avx512.mask.range.ps.512"
// CHECK: llvm.intr.fma
// CHECK-COUNT-4: "llvm.x86.avx512.vpermi2var.ps.512"
// CHECK-NOT: fixupimm
// CHECK-NOT: llvm.intr.floor
// CHECK-NOT: llvm.fdiv
// CHECK-LABEL: llvm.func @tenon_run
func.func @gelu(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %scale = arith.constant dense<0.707106769> : tensor<64xf32>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %half = arith.constant dense<0.5> : tensor<64xf32>
  %l = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<64xbf16>
  %t = tile.cast %l : tensor<64xbf16> -> tensor<64xf32>
  %s = arith.mulf %t, %scale : tensor<64xf32>
  %e = math.erf %s : tensor<64xf32>
  %d = arith.addf %e, %one : tensor<64xf32>
  %h = arith.mulf %d, %half : tensor<64xf32>
  %p = arith.mulf %t, %h : tensor<64xf32>
  %r = tile.cast %p : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// -----

// Where somebody sees f32 there are five coefficients, of polynomials in the distance from the middle of a range. GELU's
// factor is not marked for being seen by 16 bits only.
// MARKED-LABEL: func.func private @instance
// MARKED: arith.addf %{{.*}} {tile.tabulated}
// CHECK-LABEL: llvm.func @instance
// CHECK: "llvm.x86.avx512.mask.range.ps.512"
// CHECK: %[[ROUNDED:.*]] = llvm.intr.fma(
// CHECK: %[[WHOLE:.*]] = llvm.fsub %[[ROUNDED]]
// CHECK: llvm.fneg %[[WHOLE]]
// CHECK-COUNT-5: "llvm.x86.avx512.vpermi2var.ps.512"
// CHECK-NOT: vpermi2var
// CHECK: "llvm.x86.avx512.mask.fixupimm.ps.512"
// CHECK-LABEL: llvm.func @tenon_run
func.func @wide(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %scale = arith.constant dense<0.707106769> : tensor<16xf32>
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %half = arith.constant dense<0.5> : tensor<16xf32>
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<16xf32>
  %s = arith.mulf %t, %scale : tensor<16xf32>
  %e = math.erf %s : tensor<16xf32>
  %d = arith.addf %e, %one : tensor<16xf32>
  %h = arith.mulf %d, %half : tensor<16xf32>
  %p = arith.mulf %t, %h : tensor<16xf32>
  tile.store %p, %y[%i] : tensor<16xf32>, !tile.view<1, f32>
  return
}

// -----

// 1 + tanh(2 x) falls too slowly for so few ranges, and stays a quotient.
// MARKED-LABEL: func.func private @instance
// CHECK-LABEL: llvm.func @instance
// CHECK-NOT: vpermi2var
// CHECK: llvm.fdiv
// CHECK-LABEL: llvm.func @tenon_run
func.func @gate(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %two = arith.constant dense<2.0> : tensor<64xf32>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %l = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<64xbf16>
  %t = tile.cast %l : tensor<64xbf16> -> tensor<64xf32>
  %s = arith.mulf %t, %two : tensor<64xf32>
  %e = math.tanh %s : tensor<64xf32>
  %d = arith.addf %e, %one : tensor<64xf32>
  %p = arith.mulf %t, %d : tensor<64xf32>
  %r = tile.cast %p : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// -----

// What something is divided by must not be 0 for being small; f16 sees more than the table has.
// MARKED-LABEL: func.func private @instance
// MARKED-NOT: tile.tabulated
// CHECK-LABEL: llvm.func @instance
// CHECK-NOT: vpermi2var
// CHECK-LABEL: llvm.func @tenon_run
func.func @divisor(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                   %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                   %z: !tile.view<1, f16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %e = math.erf %t : tensor<64xf32>
  %d = arith.addf %e, %one : tensor<64xf32>
  %q = arith.divf %t, %d : tensor<64xf32>
  %r = tile.cast %q : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  %u = arith.addf %t, %t : tensor<64xf32>
  %f = math.erf %u : tensor<64xf32>
  %g = arith.addf %f, %one : tensor<64xf32>
  %h = tile.cast %g : tensor<64xf32> -> tensor<64xf16>
  tile.store %h, %z[%i] : tensor<64xf16>, !tile.view<1, f16>
  return
}

// -----

// A factor that is the same for a whole row is in the coefficients: products of constants, and none with the result,
// which is one multiply-add. Half of 1 + erf(0.85 x) has no table of its own, but its product with x does.
// MARKED-LABEL: func.func private @instance
// CHECK-LABEL: llvm.func @instance
// CHECK: llvm.fmul %[[FACTOR:.*]], %{{.*}} : vector<16xf32>
// CHECK: llvm.fmul %[[FACTOR]]
// CHECK: "llvm.x86.avx512.vpermi2var.ps.512"
// CHECK-COUNT-6: llvm.fmul %[[FACTOR]]
// CHECK-NOT: llvm.fmul
// CHECK: %[[RESULT:.*]] = llvm.intr.fma(
// CHECK-NOT: llvm.fmul %[[RESULT]]
// CHECK-NOT: llvm.fmul %{{[0-9]+}}, %[[RESULT]]
// CHECK-NOT: llvm.fdiv
// CHECK-LABEL: llvm.func @tenon_run
func.func @scaled(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %f: f32, %i: index) attributes {tile.no_overlap} {
  %scale = arith.constant dense<0.85> : tensor<512xf32>
  %one = arith.constant dense<1.0> : tensor<512xf32>
  %half = arith.constant dense<0.5> : tensor<512xf32>
  %factor = tile.splat %f : f32 -> tensor<512xf32>
  %l = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<512xbf16>
  %t = tile.cast %l : tensor<512xbf16> -> tensor<512xf32>
  %u = arith.mulf %t, %scale : tensor<512xf32>
  %e = math.erf %u : tensor<512xf32>
  %d = arith.addf %e, %one : tensor<512xf32>
  %h = arith.mulf %d, %half : tensor<512xf32>
  %p = arith.mulf %t, %h : tensor<512xf32>
  %s = arith.mulf %factor, %p : tensor<512xf32>
  %r = tile.cast %s : tensor<512xf32> -> tensor<512xbf16>
  tile.store %r, %y[%i] : tensor<512xbf16>, !tile.view<1, bf16>
  return
}
