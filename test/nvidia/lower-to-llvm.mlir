// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -split-input-file --tenon-nvidia-lower-to-llvm=architecture=sm_90a | FileCheck %s

// An access without a mask is LLVM's own; shared memory starts at one symbol.
// CHECK: llvm.mlir.global external @tenon_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: llvm.func @plain
// CHECK: llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: llvm.bitcast %{{.*}} : vector<4xi32> to vector<8xf16>
// CHECK: llvm.mlir.addressof @tenon_shared
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
func.func @plain(%p: i64) attributes {nvidia.threads = 32 : i64} {
  %c = arith.constant 0 : i32
  %v = nvidia.load global %p : i64 -> vector<8xf16>
  nvidia.store shared %v, %c : vector<8xf16>, i32
  return
}

// -----

// A masked load is one predicated instruction; `otherwise` is in its registers before.
// CHECK-LABEL: llvm.func @masked
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "@$5 ld.global.v2.b32 {$0, $1}, [$4];",
// CHECK-SAME: "=r,=r,0,1,l,b,~{memory}"
func.func @masked(%p: i64) attributes {nvidia.threads = 32 : i64} {
  %t = nvidia.thread_id
  %m = arith.trunci %t : i32 to i1
  %z = arith.constant dense<0.0> : vector<2xf32>
  %v = nvidia.load global %p mask %m otherwise %z : vector<2xf32> : i64 -> vector<2xf32>
  nvidia.store global %v, %p : vector<2xf32>, i64
  return
}

// -----

// The whole block's barrier needs no count; mma touches no memory.
// CHECK-LABEL: llvm.func @barriers
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "bar.sync 0;", "~{memory}"
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "bar.sync 1, 32;", "~{memory}"
// CHECK: llvm.inline_asm asm_dialect = att "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3},
func.func @barriers(%p: i64) attributes {nvidia.threads = 64 : i64} {
  nvidia.barrier 64
  nvidia.barrier 32 {id = 1 : i32}
  %a = arith.constant dense<0> : vector<4xi32>
  %b = arith.constant dense<0> : vector<2xi32>
  %c = arith.constant dense<0.0> : vector<4xf32>
  %d = nvidia.mma bf16 bf16 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  nvidia.store global %d, %p : vector<4xf32>, i64
  return
}

// -----

// A tensor map is a parameter by value, after the others. Accumulators keep their registers; a descriptor's address
// becomes absolute, in its low half alone.
// CHECK-LABEL: llvm.func @units(%arg0: i64, %arg1: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>})
// CHECK: %[[MAP:.*]] = llvm.ptrtoint %arg1 : !llvm.ptr to i64
// CHECK: llvm.inline_asm {{.*}} "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];", "r,l,r,r,r,~{memory}" %{{.*}}, %[[MAP]]
// CHECK: %[[FIRST:.*]] = llvm.inline_asm {{.*}} "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;", "=l"
// CHECK: llvm.inline_asm {{.*}}complete_tx::bytes.L2::cache_hint [$0], [$1, {$2, $3}], [$4], $5;", "r,l,r,r,r,l,~{memory}" {{.*}}%[[FIRST]]
// CHECK: llvm.inline_asm {{.*}} "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [$0, {$1, $2}];", "l,r,r,~{memory}" %[[MAP]]
// CHECK: llvm.inline_asm {{.*}} "mbarrier.arrive.shared::cluster.b64 _, [$0];", "r,~{memory}"
// CHECK: llvm.inline_asm {{.*}} "{ .reg .b32 at; shr.u32 at, $1, 31; add.u32 at, at, $0; mbarrier.arrive.shared::cluster.b64 _, [at]; }", "r,r,~{memory}"
// The upper bits of an address are the rank of its block in the cluster, and no part of a descriptor.
// CHECK: %[[FIELD:.*]] = llvm.mlir.constant(16383 : i32)
// CHECK: llvm.and %{{.*}}, %[[FIELD]]
// CHECK: llvm.trunc %arg0 : i64 to i32
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, $8, $9, $10, 1, 1, 0, 1;", "=f,=f,=f,=f,0,1,2,3,l,l,b"
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3,~{memory}"
func.func @units(%d: i64) attributes {nvidia.threads = 128 : i64, nvidia.tensor_maps = 1 : i64} {
  %c = arith.constant 0 : i32
  %f = arith.constant 0.0 : f32
  %true = arith.constant true
  %map = nvidia.tensor_map 0
  nvidia.tma_load %c, %map[%c, %c], %c
  nvidia.tma_load %c, %map[%c, %c], %c once
  nvidia.tma_prefetch %map[%c, %c]
  nvidia.mbarrier_arrive cluster %c
  nvidia.mbarrier_arrive cluster %c behind %c
  %x:4 = nvidia.wgmma bf16 bf16 8 [%f, %f, %f, %f], (%d), %d, %true {trans_b} : i64 : f32
  %y:4 = nvidia.wgmma_wait 0 [%x#0, %x#1, %x#2, %x#3] : f32
  nvidia.store global %y#0, %d : f32, i64
  return
}

// -----

// A value and its bytes travel together; an arrival that releases nothing is no fence.
// CHECK-LABEL: llvm.func @sent
// CHECK: "barrier.cluster.arrive.relaxed.aligned;", "~{memory}"
// CHECK: "@$3 st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];", "r,r,r,b,~{memory}"
// CHECK: "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [$0], $1, [$2];", "r,l,r,~{memory}"
func.func @sent(%v: i32, %w: i64, %a: i32, %m: i32, %p: i1) attributes {nvidia.threads = 128 : i64} {
  nvidia.cluster_arrive relaxed
  nvidia.store_async %v, %a, %m mask %p : i32
  nvidia.store_async %w, %a, %m : i64
  return
}
