// SPDX-License-Identifier: Apache-2.0
// Which roundings to bf16 may take ties away from zero, and how they are done.
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512-dot},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx2},canonicalize,cse)' %s | FileCheck %s --check-prefix=AVX2

// Powers that bf16 sees: an addition, and the halves of pairs put together.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: fpclass
// CHECK-NOT: cvtne2ps2bf16
// CHECK: %[[BITS:.*]] = arith.addi %{{.*}}, %{{.*}} : vector<32xi32>
// CHECK-DAG: %[[FIRST:.*]] = llvm.shufflevector %[[BITS]], %[[BITS]] [0, 1, 2,
// CHECK-DAG: %[[SECOND:.*]] = llvm.shufflevector %[[BITS]], %[[BITS]] [16, 17, 18,
// CHECK-DAG: %[[LOW:.*]] = arith.shrui %[[FIRST]]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"(%[[LOW]], %[[SECOND]]
// CHECK: return
// AVX2-LABEL: func.func private @instance
// AVX2: math.exp
// AVX2: arith.addi {{.*}} : vector<16xi32>
// AVX2-NOT: cmpf uno
// AVX2: llvm.store
func.func @powers(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %e = math.exp %w : tensor<256xf32>
  %p = arith.mulf %e, %w : tensor<256xf32>
  %c = tile.cast %p : tensor<256xf32> -> tensor<256xbf16>
  tile.store %c, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}

// -----

// A product is what it is.
// CHECK-LABEL: func.func private @instance
// CHECK: cvtne2ps2bf16
// AVX2-LABEL: func.func private @instance
// AVX2: cmpf uno
func.func @square(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %p = arith.mulf %w, %w : tensor<256xf32>
  %c = tile.cast %p : tensor<256xf32> -> tensor<256xbf16>
  tile.store %c, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}

// -----

// A factor of f32 may be a NaN of which all bits are ones.
// CHECK-LABEL: func.func private @instance
// CHECK: cvtne2ps2bf16
// AVX2-LABEL: func.func private @instance
// AVX2: cmpf uno
func.func @mixed(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %f: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                 %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %b = tile.load %f[%i] : !tile.view<1, f32> -> tensor<256xf32>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %e = math.exp %w : tensor<256xf32>
  %p = arith.mulf %e, %b : tensor<256xf32>
  %c = tile.cast %p : tensor<256xf32> -> tensor<256xbf16>
  tile.store %c, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}

// -----

// A sum has no order, so nobody knows the last bits of what is divided by it; a scalar's NaN is exchanged.
// CHECK-LABEL: func.func private @instance
// CHECK-DAG: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: %[[ISNAN:.*]] = arith.cmpf uno, %[[SCALE:.*]], %[[SCALE]] : f32
// CHECK: arith.select %[[ISNAN]], %[[NAN]], %[[SCALE]]
// CHECK-NOT: cvtne2ps2bf16
// CHECK: return
// AVX2-LABEL: func.func private @instance
func.func @less_mean(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                     %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %scale: f32, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<1x128xbf16>
  %v = tile.cast %a : tensor<1x128xbf16> -> tensor<1x128xf32>
  %s = tile.reduce %v dim 1 : (tensor<1x128xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %r: f32):
    %u = arith.addf %p, %r : f32
    tile.yield %u : f32
  }
  %f = tile.splat %scale : f32 -> tensor<1x1xf32>
  %m = arith.mulf %s, %f : tensor<1x1xf32>
  %all = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x128xf32>
  %d = arith.subf %v, %all : tensor<1x128xf32>
  %c = tile.cast %d : tensor<1x128xf32> -> tensor<1x128xbf16>
  tile.store %c, %y[%i, %zero] : tensor<1x128xbf16>, !tile.view<2, bf16>
  return
}

// -----

// What is not only stored is rounded to even.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: ties_away
// CHECK: return
// AVX2-LABEL: func.func private @instance
// AVX2: cmpf uno
func.func @again(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                 %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %e = math.exp %w : tensor<256xf32>
  %c = tile.cast %e : tensor<256xf32> -> tensor<256xbf16>
  %n = arith.negf %c : tensor<256xbf16>
  tile.store %n, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}
