// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx2},canonicalize,cse)' | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=baseline},canonicalize,cse)' | FileCheck %s --check-prefixes=CHECK,BASE

// The checked loop on 16-bit elements. AVX-512 has masked loads and stores of them; elsewhere the lanes that are
// outside access the first bytes of the scratch memory instead.
// CHECK-LABEL: func.func private @instance
// CHECK-SAME: %[[SCRATCH:[a-z0-9]*]]: !llvm.ptr, %{{[a-z0-9]*}}: !llvm.ptr) {
// AVX512: } else {
// AVX512: llvm.intr.masked.load {{.*}} -> vector<32xi16>
// AVX512: llvm.intr.masked.store {{.*}} : vector<32xi16>
// AVX512-NOT: llvm.intr.masked.scatter
// AVX2-NOT: llvm.intr.masked.store
// AVX2: %[[NOWHERE:.*]] = llvm.getelementptr %[[SCRATCH]]{{.*}} -> !llvm.vec<16 x ptr>, i16
// AVX2: %[[WHERE:.*]] = llvm.select %{{.*}}, %{{.*}}, %[[NOWHERE]]
// AVX2: llvm.intr.masked.gather %[[WHERE]]
// AVX2: llvm.intr.masked.scatter
// BASE-NOT: llvm.intr.masked.store
// BASE: llvm.intr.masked.scatter {{.*}} : vector<8xi16>
func.func @halves(%x: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                  %i: index) attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, bf16> -> tensor<64xbf16>
  tile.store %t, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// -----

// 32-bit elements: AVX2 masks them as well.
// CHECK-LABEL: func.func private @instance
// AVX512: llvm.intr.masked.store {{.*}} : vector<32xf32>
// AVX2: llvm.intr.masked.store {{.*}} : vector<16xf32>
// BASE-NOT: llvm.intr.masked.store
// BASE: llvm.intr.masked.scatter {{.*}} : vector<8xf32>
func.func @words(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                 %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                 %i: index) attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  tile.store %t, %y[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// What is outside reads as the padding.
// CHECK-LABEL: func.func private @instance
// CHECK-DAG: %[[PADDING:.*]] = arith.constant dense<0xFF800000> : vector<{{.*}}xf32>
// CHECK: } else {
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[PADDING]]
func.func @padding(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                   %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                   %i: index) attributes {tile.no_overlap} {
  %lowest = arith.constant 0xFF800000 : f32
  %t = tile.load %x[%i] padding %lowest : f32 : !tile.view<1, f32> -> tensor<64xf32>
  tile.store %t, %y[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// What is masked out has the address of the last row and the last column: where a tile hangs over the end of the view no
// memory may be mapped, and suppressing the fault takes a processor a thousand times as long as the access.
// CHECK-LABEL: func.func private @instance
// CHECK: } else {
// CHECK: scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[ROW]]
// CHECK: arith.cmpi ult, %[[AT]]
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// CHECK: %[[INSIDE:.*]] = arith.minui %[[AT]], %[[LAST]]
// CHECK: arith.muli %[[INSIDE]],
// CHECK: arith.minsi %{{.*}}, %{{.*}} : index
// CHECK: llvm.getelementptr
func.func @hanging_over(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                        %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                        %i: index, %j: index) attributes {tile.no_overlap} {
  %t = tile.load %x[%i, %j] : !tile.view<2, f32> -> tensor<8x32xf32>
  %n = arith.negf %t : tensor<8x32xf32>
  tile.store %n, %y[%i, %j] : tensor<8x32xf32>, !tile.view<2, f32>
  return
}
