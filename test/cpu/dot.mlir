// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx2},canonicalize,cse)' | FileCheck %s --check-prefix=AVX2
// RUN: tenon-opt -split-input-file %s \
// RUN:   --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512-dot},canonicalize,cse)' | FileCheck %s --check-prefix=PAIRS

// A block of the result stays in registers over all of K. AVX-512: 6 rows of 4 vectors are 24 accumulators, 4 hold the
// row of B, one a broadcast of A: 29 of 32 registers. Without AVX512_BF16 both operands are copied as f32, B by panels of
// four vectors. The accumulator, which starts at zero, is never read from memory. Four steps of K are one iteration.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.extui {{.*}} : vector<32xi16> to vector<32xi32>
// CHECK: %{{.*}}:24 = scf.for %{{.*}} = %c0 to %{{.*}} step %c4 iter_args
// CHECK-COUNT-4: llvm.load {{.*}} -> vector<16xf32>
// CHECK: llvm.load {{.*}} -> f32
// CHECK-COUNT-4: math.fma {{.*}} : vector<16xf32>
// CHECK: llvm.load {{.*}} -> f32
// CHECK-COUNT-92: math.fma
// CHECK-NOT: math.fma
// CHECK: scf.yield
// CHECK-COUNT-24: llvm.store {{.*}} : vector<16xf32>

// The rows that are left depend on the view: a block for every even number of them, with one step an iteration.
// CHECK: scf.index_switch
// CHECK: case 1
// CHECK: %{{.*}}:8 = scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args
// CHECK-COUNT-8: math.fma
// CHECK-NOT: math.fma
// CHECK: case 2
// CHECK: case 3
// CHECK: %{{.*}}:24 = scf.for

// AVX2 has 16 registers: 6 rows of 2 vectors of 8.
// AVX2-LABEL: func.func private @instance
// AVX2: %{{.*}}:12 = scf.for %{{.*}} = %c0 to %{{.*}} step %c4 iter_args
// AVX2-COUNT-48: math.fma {{.*}} : vector<8xf32>
// AVX2-NOT: math.fma
// AVX2: scf.yield

// With AVX512_BF16, A is copied as it is, and two rows of B are interleaved into pairs.
// PAIRS-LABEL: func.func private @instance
// PAIRS: vector.interleave {{.*}} : vector<32xi16>
// PAIRS: vector.bitcast {{.*}} : vector<64xi16> to vector<32xi32>
// PAIRS: %{{.*}}:28 = scf.for %{{.*}} = %c0 to %{{.*}} step %c4 iter_args
// PAIRS: llvm.load {{.*}} -> i32
// PAIRS: vector.splat
// PAIRS: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"({{.*}}) : (vector<16xf32>, vector<32xbf16>,
func.func @matmul(%x: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64},
                  %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<28x64xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, bf16> -> tensor<28x64xbf16>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %c = tile.dot %a, %b, %zero : tensor<28x64xbf16>, tensor<64x64xbf16>, tensor<28x64xf32>
  tile.store %c, %z[%c0, %c0] : tensor<28x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Bytes are widened to 16 bits on their way into the panels, as the attributes say: two of them are one operand. With
// AVX512_VNNI four are; both sides are signed here and the instruction wants one of each, so the top bits of A are
// flipped and the sums of B's columns taken away.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.extsi {{.*}} to vector<16xi16>
// CHECK-NOT: arith.muli {{.*}} : vector
// CHECK: %[[PRODUCTS:.*]] = llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"({{.*}}) : (vector<32xi16>, vector<32xi16>)
// CHECK: arith.addi %[[PRODUCTS]], {{.*}} : vector<16xi32>
// AVX2-LABEL: func.func private @instance
// AVX2: arith.extsi {{.*}} to vector<16xi16>
// AVX2: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"({{.*}}) : (vector<16xi16>, vector<16xi16>) -> vector<8xi32>
// PAIRS-LABEL: func.func private @instance
// PAIRS: arith.xori {{.*}} : vector<16xi8>
// PAIRS: vector.bitcast {{.*}} to vector<16xi32>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// PAIRS: arith.muli {{.*}} : vector<16xi32>
// PAIRS: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
func.func @bytes(%x: !tile.view<2, i8> {tile.unit_stride = 1 : i64},
                 %z: !tile.view<2, i32> {tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0> : tensor<16x16xi32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, i8> -> tensor<16x16xi8>
  %c = tile.dot %a, %a, %zero : tensor<16x16xi8>, tensor<16x16xi8>, tensor<16x16xi32>
  tile.store %c, %z[%c0, %c0] : tensor<16x16xi32>, !tile.view<2, i32>
  return
}

// -----

// A dot that accumulates over a loop does so in place: one buffer for the accumulator, which is on its way to L1 during
// the loop over K and to which the sums are added after it. Windows as small as these are not brought in ahead.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c16 {
// CHECK: "llvm.intr.prefetch"({{.*}}) <{cache = 1 : i32, hint = 3 : i32, rw = 1 : i32}>
// CHECK-NOT: rw = 0
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c4 iter_args
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1 iter_args
// CHECK: scf.yield
// CHECK: %[[C:.*]] = llvm.load {{.*}} -> vector<16xf32>
// CHECK-NEXT: arith.addf %[[C]], {{.*}} : vector<16xf32>
// AVX2-LABEL: func.func private @instance
// PAIRS-LABEL: func.func private @instance
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

// -----

// A transposed B is packed by squares of registers: 16 rows are read, four rounds of interleaving transpose them, and
// nothing is gathered. The result is summed up here, so all of its rows are computed: no switch.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: gather
// CHECK-COUNT-16: llvm.load {{.*}} -> vector<16xf32>
// CHECK-COUNT-64: vector.shuffle {{.*}} : vector<16xf32>, vector<16xf32>
// CHECK-COUNT-16: llvm.store {{.*}} : vector<16xf32>
// CHECK-NOT: scf.index_switch
// AVX2-LABEL: func.func private @instance
// PAIRS-LABEL: func.func private @instance
func.func @transposed(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                      %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<16x64xf32>
  %k = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<32x64xf32>
  %b = tile.transpose %k [1, 0] : tensor<32x64xf32> -> tensor<64x32xf32>
  %c = tile.dot %a, %b, %zero : tensor<16x64xf32>, tensor<64x32xf32>, tensor<16x32xf32>
  %sum = tile.reduce %c dim 1 : (tensor<16x32xf32>) -> tensor<16x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    tile.yield %s : f32
  }
  tile.store %sum, %y[%c0, %c0] : tensor<16x1xf32>, !tile.view<2, f32>
  return
}

// -----

// One row: B is read where it lies, eight rows at a time, and nothing of it is stored.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c8
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c32
// CHECK-COUNT-8: math.fma {{.*}} : vector<32xf32>
// CHECK-NEXT: llvm.store
// AVX2-LABEL: func.func private @instance
// PAIRS-LABEL: func.func private @instance
func.func @thin(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<1x128xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<1x64xf32>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, f32> -> tensor<64x128xf32>
  %c = tile.dot %a, %b, %zero : tensor<1x64xf32>, tensor<64x128xf32>, tensor<1x128xf32>
  tile.store %c, %z[%c0, %c0] : tensor<1x128xf32>, !tile.view<2, f32>
  return
}

// -----

// Two rows, and rows of B that run along K: multiplied lane by lane, four of them at once, and added up across the lanes
// behind the loop. Nothing is transposed.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c4
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32 iter_args
// CHECK-COUNT-8: math.fma {{.*}} : vector<32xf32>
// CHECK: scf.yield
// CHECK-NOT: math.fma
// CHECK: vector.shuffle
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: arith.addf {{.*}} : vector<1xf32>
// AVX2-LABEL: func.func private @instance
// PAIRS-LABEL: func.func private @instance
func.func @thin_along_depth(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                            %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                            %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<2x128xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<2x64xf32>
  %w = tile.load %y[%c0, %c0] : !tile.view<2, f32> -> tensor<128x64xf32>
  %b = tile.transpose %w [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
  %c = tile.dot %a, %b, %zero : tensor<2x64xf32>, tensor<64x128xf32>, tensor<2x128xf32>
  tile.store %c, %z[%c0, %c0] : tensor<2x128xf32>, !tile.view<2, f32>
  return
}

// -----

// What the next iteration reads is brought to L2 during the loop over K, a line in each iteration of it: rows of a product's
// operands, ...
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %[[K:.*]] = %c0 to %{{.*}} step %c32 iter_args
// CHECK: arith.select {{.*}} : !llvm.ptr
// CHECK: scf.for %{{.*}} = %[[K]] to %{{.*}} step %c4 iter_args
// CHECK: "llvm.intr.prefetch"({{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK: math.fma
// AVX2-LABEL: func.func private @instance
// AVX2: hint = 2 : i32, rw = 0 : i32
// PAIRS-LABEL: func.func private @instance
func.func @next_of_both(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                        %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %a = tile.load %x[%c0, %k] : !tile.view<2, f32> -> tensor<64x64xf32>
    %b = tile.load %y[%k, %c0] : !tile.view<2, f32> -> tensor<64x64xf32>
    %next = tile.dot %a, %b, %acc : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %sum, %x[%c0, %c0] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}

// -----

// ... or, where only one of them moves (an attention's keys), that one. Its rows run along K and are transposed.
// CHECK-LABEL: func.func private @instance
// CHECK: vector.shuffle
// CHECK-NOT: arith.select {{.*}} : !llvm.ptr
// CHECK: "llvm.intr.prefetch"({{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK: math.fma
// AVX2-LABEL: func.func private @instance
// PAIRS-LABEL: func.func private @instance
func.func @next_of_one(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                       %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<64x64xf32>
  %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %b = tile.load %y[%k, %c0] : !tile.view<2, f32> -> tensor<64x64xf32>
    %turned = tile.transpose %b [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
    %next = tile.dot %a, %turned, %acc : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %sum, %x[%c0, %c0] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}

// -----

// f8 is multiplied as bf16 where there is an instruction for that, else as f32; sums are of f32 whatever `fast_accum` says.
// CHECK-LABEL: func.func private @instance
// CHECK: math.fma {{.*}} : vector<16xf32>
// AVX2-LABEL: func.func private @instance
// AVX2: math.fma {{.*}} : vector<8xf32>
// PAIRS-LABEL: func.func private @instance
// PAIRS-NOT: math.fma
// PAIRS: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
func.func @f8(%x: !tile.view<2, f8E4M3FN> {tile.unit_stride = 1 : i64},
              %y: !tile.view<2, f8E5M2> {tile.unit_stride = 1 : i64},
              %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f8E4M3FN> -> tensor<32x64xf8E4M3FN>
  %b = tile.load %y[%c0, %c0] : !tile.view<2, f8E5M2> -> tensor<64x32xf8E5M2>
  %sum = tile.dot %a, %b, %zero {fast_accum} : tensor<32x64xf8E4M3FN>, tensor<64x32xf8E5M2>, tensor<32x32xf32>
  tile.store %sum, %z[%c0, %c0] : tensor<32x32xf32>, !tile.view<2, f32>
  return
}

// -----

// A converted operand ends where what it is made of does: K ends with the longer one, wherever that is.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[OF_A:.*]] = arith.minsi %{{.*}}, %c64 : index
// CHECK: %[[OF_B:.*]] = arith.minsi %{{.*}}, %c64 : index
// CHECK: %[[DEPTH:.*]] = arith.maxsi %[[OF_A]], %[[OF_B]] : index
// CHECK: arith.minsi %[[DEPTH]], %c64 : index
// AVX2-LABEL: func.func private @instance
// PAIRS-LABEL: func.func private @instance
func.func @converted(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %w: !tile.view<2, i8> {tile.unit_stride = 1 : i64},
                     %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %k: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %a = tile.load %x[%c0, %k] : !tile.view<2, f32> -> tensor<16x64xf32>
  %l = tile.load %w[%k, %c0] : !tile.view<2, i8> -> tensor<64x32xi8>
  %b = tile.cast %l : tensor<64x32xi8> -> tensor<64x32xf32>
  %c = tile.dot %a, %b, %zero : tensor<16x64xf32>, tensor<64x32xf32>, tensor<16x32xf32>
  tile.store %c, %z[%c0, %c0] : tensor<16x32xf32>, !tile.view<2, f32>
  return
}
