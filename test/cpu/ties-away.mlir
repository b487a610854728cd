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

// A scalar's NaN is exchanged; of what is divided by it nothing is promised.
// CHECK-LABEL: func.func private @instance
// CHECK-DAG: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: %[[ISNAN:.*]] = arith.cmpf uno, %[[SCALE:.*]], %[[SCALE]] : f32
// CHECK: arith.select %[[ISNAN]], %[[NAN]], %[[SCALE]]
// CHECK-NOT: cvtne2ps2bf16
// CHECK: pternlog
// CHECK-NOT: cvtne2ps2bf16
// AVX2-LABEL: func.func private @instance
// AVX2: arith.cmpf uno, %{{.*}} : f32
// AVX2-NOT: cmpf uno
// AVX2: return
func.func @scaled(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %scale: f32, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %f = tile.splat %scale : f32 -> tensor<256xf32>
  %q = arith.divf %w, %f : tensor<256xf32>
  %c = tile.cast %q : tensor<256xf32> -> tensor<256xbf16>
  tile.store %c, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}

// -----

// The same scalar, where somebody sees its bits.
// CHECK-LABEL: func.func private @instance
// CHECK: cvtne2ps2bf16
// AVX2-LABEL: func.func private @instance
// AVX2: cmpf uno, %{{.*}} : vector
func.func @scaled_and_seen(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %z: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                           %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %scale: f32, %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %f = tile.splat %scale : f32 -> tensor<256xf32>
  %q = arith.divf %w, %f : tensor<256xf32>
  %c = tile.cast %q : tensor<256xf32> -> tensor<256xbf16>
  tile.store %c, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  tile.store %f, %z[%i] : tensor<256xf32>, !tile.view<1, f32>
  return
}

// -----

// Half of something is exact, and so may be a number beside a power.
// CHECK-LABEL: func.func private @instance
// CHECK-COUNT-2: cvtne2ps2bf16
// AVX2-LABEL: func.func private @instance
func.func @exact(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                 %z: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %two = arith.constant dense<2.0> : tensor<256xf32>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %a = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<256xbf16>
  %w = tile.cast %a : tensor<256xbf16> -> tensor<256xf32>
  %s = arith.mulf %w, %w : tensor<256xf32>
  %q = arith.divf %s, %two : tensor<256xf32>
  %c = tile.cast %q : tensor<256xf32> -> tensor<256xbf16>
  tile.store %c, %y[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  %e = math.exp %w : tensor<256xf32>
  %m = arith.cmpf ogt, %w, %zero : tensor<256xf32>
  %o = arith.select %m, %s, %e : tensor<256xi1>, tensor<256xf32>
  %d = tile.cast %o : tensor<256xf32> -> tensor<256xbf16>
  tile.store %d, %z[%i] : tensor<256xbf16>, !tile.view<1, bf16>
  return
}

// -----

// A NaN out of the region of a reduction.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: pternlog
// CHECK: return
// AVX2-LABEL: func.func private @instance
// AVX2: cmpf uno
func.func @reduced(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                   %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero] : !tile.view<2, bf16> -> tensor<1x64xbf16>
  %w = tile.cast %a : tensor<1x64xbf16> -> tensor<1x64xf32>
  %r = tile.reduce %w dim 1 : (tensor<1x64xf32>) -> tensor<1x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %nan = arith.constant 0x7FFFFFFF : f32
    %m = arith.cmpf ogt, %p, %q : f32
    %s = arith.select %m, %p, %nan : f32
    tile.yield %s : f32
  }
  %b = tile.broadcast %r : tensor<1x1xf32> -> tensor<1x64xf32>
  %e = math.exp %w : tensor<1x64xf32>
  %t = arith.mulf %e, %b : tensor<1x64xf32>
  %c = tile.cast %t : tensor<1x64xf32> -> tensor<1x64xbf16>
  tile.store %c, %y[%i, %zero] : tensor<1x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// What is not only stored is rounded to even.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.cmpf uno, %{{.*}} : vector
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
