// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx2},canonicalize,cse)' | FileCheck %s --check-prefix=AVX2

// Operands are packed in the accumulator's type, then a block of the result stays in registers over all of K. AVX-512:
// 6 rows of 4 vectors are 24 accumulators, 4 hold the row of B, one a broadcast of A: 29 of 32 registers. The
// accumulator, which starts at zero, is never read from memory.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.extui {{.*}} : vector<32xi16> to vector<32xi32>
// CHECK: %{{.*}}:24 = scf.for %{{.*}} = %c0 to %c64 step %c2 iter_args
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<16xf32>
// CHECK: llvm.load {{.*}} -> f32
// CHECK-COUNT-4: math.fma {{.*}} : vector<16xf32>
// CHECK: llvm.load {{.*}} -> f32
// CHECK-COUNT-20: math.fma
// K is unrolled by two.
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<16xf32>
// CHECK-COUNT-24: math.fma
// CHECK-NOT: math.fma
// CHECK: scf.yield
// CHECK-COUNT-24: llvm.store {{.*}} : vector<16xf32>

// AVX2 has 16 registers: 6 rows of 2 vectors of 8.
// AVX2-LABEL: func.func private @instance
// AVX2: %{{.*}}:12 = scf.for %{{.*}} = %c0 to %c64 step %c2 iter_args
// AVX2-COUNT-24: math.fma {{.*}} : vector<8xf32>
// AVX2-NOT: math.fma
// AVX2: scf.yield
func.func @matmul(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<12x64xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, bf16> -> tensor<12x64xbf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %c = tile.dot %a, %b, %zero : tensor<12x64xbf16>, tensor<64x64xbf16>, tensor<12x64xf32>
  tile.store %c, %z[%c0, %c0] : tensor<12x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Bytes are widened to 32 bits as the attributes say.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.extui {{.*}} to vector<16xi32>
// CHECK: arith.extsi {{.*}} to vector<16xi32>
// CHECK: arith.muli {{.*}} : vector<16xi32>
// AVX2-LABEL: func.func private @instance
func.func @bytes(%x: !tile.view<2, i8> {tile.unit_stride = 1 : i64},
                 %z: !tile.view<2, i32> {tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0> : tensor<16x16xi32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, i8> -> tensor<16x16xi8>
  %c = tile.dot %a, %a, %zero {a_unsigned} : tensor<16x16xi8>, tensor<16x16xi8>, tensor<16x16xi32>
  tile.store %c, %z[%c0, %c0] : tensor<16x16xi32>, !tile.view<2, i32>
  return
}

// -----

// A dot that accumulates over a loop does so in place: one buffer for the accumulator, read by the loop over K.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c16 {
// CHECK: llvm.load {{.*}} -> vector<16xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c2 iter_args
// AVX2-LABEL: func.func private @instance
func.func @accumulate(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %sum = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> tensor<16x16xf32> {
    %a = tile.load %x[%c0, %k] : !tile.view<2, f32> -> tensor<16x16xf32>
    %next = tile.dot %a, %a, %acc : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  tile.store %sum, %x[%c0, %c0] : tensor<16x16xf32>, !tile.view<2, f32>
  return
}
