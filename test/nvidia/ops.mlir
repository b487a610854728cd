// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// Every op of the dialect, printed as it is read.

#rows = #nvidia.layout<2, register = [0, 1], lane = [0, 2, 0, 4, 0, 8, 0, 16, 1, 0], warp = [2, 0], block = []>
#columns = #nvidia.layout<2, register = [1, 0], lane = [2, 0, 0, 1, 0, 2, 0, 4, 0, 8], warp = [0, 16], block = []>

// CHECK-DAG: #[[ROWS:.*]] = #nvidia.layout<2, register = [0, 1], lane = [0, 2, 0, 4, 0, 8, 0, 16, 1, 0], warp = [2, 0], block = []>
// CHECK-DAG: #[[COLUMNS:.*]] = #nvidia.layout<2, register = [1, 0], lane = [2, 0, 0, 1, 0, 2, 0, 4, 0, 8], warp = [0, 16], block = []>
// CHECK-LABEL: func.func @convert
// CHECK: nvidia.convert %{{.*}} : tensor<4x32xf32, #[[ROWS]]> -> tensor<4x32xf32, #[[COLUMNS]]>
func.func @convert(%t: tensor<4x32xf32, #rows>) -> tensor<4x32xf32, #columns> {
  %c = nvidia.convert %t : tensor<4x32xf32, #rows> -> tensor<4x32xf32, #columns>
  return %c : tensor<4x32xf32, #columns>
}

// CHECK-LABEL: func.func @who
func.func @who() -> (i32, i32, i32, i32) {
  // CHECK: nvidia.thread_id
  %t = nvidia.thread_id
  // CHECK: nvidia.block_id
  %b = nvidia.block_id
  // CHECK: nvidia.grid_size
  %g = nvidia.grid_size
  // CHECK: nvidia.cluster_rank
  %c = nvidia.cluster_rank
  return %t, %b, %g, %c : i32, i32, i32, i32
}

// CHECK-LABEL: func.func @memory
func.func @memory(%g: i64, %s: i32, %m: i1, %z: vector<4xf32>) {
  // CHECK: %[[A:.*]] = nvidia.load global %{{.*}} : i64 -> vector<4xf32>
  %a = nvidia.load global %g : i64 -> vector<4xf32>
  // CHECK: nvidia.load global %{{.*}} mask %{{.*}} otherwise %{{.*}} : vector<4xf32> {offset = -16 : i32, streaming} : i64 -> vector<4xf32>
  %b = nvidia.load global %g mask %m otherwise %z : vector<4xf32> {offset = -16 : i32, streaming} : i64 -> vector<4xf32>
  // CHECK: nvidia.load shared %{{.*}} {group = 3 : i32, window = array<i64: 0, 512>} : i32 -> bf16
  %c = nvidia.load shared %s {group = 3 : i32, window = array<i64: 0, 512>} : i32 -> bf16
  // CHECK: nvidia.store shared %[[A]], %{{.*}} mask %{{.*}} {offset = 16 : i32} : vector<4xf32>, i32
  nvidia.store shared %a, %s mask %m {offset = 16 : i32} : vector<4xf32>, i32
  // CHECK: nvidia.load global %{{.*}} {lasting} : i64 -> vector<4xf32>
  %l = nvidia.load global %g {lasting} : i64 -> vector<4xf32>
  // CHECK: nvidia.store global %{{.*}}, %{{.*}} {streaming} : bf16, i64
  nvidia.store global %c, %g {streaming} : bf16, i64
  // CHECK: %[[R:.*]] = nvidia.map_shared %{{.*}}, %{{.*}}
  %r = nvidia.map_shared %s, %s
  // CHECK: nvidia.load cluster %[[R]] : i32 -> i64
  %d = nvidia.load cluster %r : i32 -> i64
  // CHECK: nvidia.store cluster %{{.*}}, %[[R]] : i64, i32
  nvidia.store cluster %d, %r : i64, i32
  // CHECK: nvidia.store_async %{{.*}}, %[[R]], %[[R]] : i64
  nvidia.store_async %d, %r, %r : i64
  return
}

// CHECK-LABEL: func.func @atomics
func.func @atomics(%g: i64, %i: i32, %l: i64, %f: f32, %d: f64, %m: i1) {
  // CHECK: nvidia.atomic add %{{.*}}, %{{.*}} : i32
  %0 = nvidia.atomic add %g, %i : i32
  // CHECK: nvidia.atomic fadd %{{.*}}, %{{.*}} mask %{{.*}} : f32
  %1 = nvidia.atomic fadd %g, %f mask %m : f32
  // CHECK: nvidia.atomic smax %{{.*}}, %{{.*}} : i64
  %2 = nvidia.atomic smax %g, %l : i64
  // CHECK: nvidia.atomic smin
  %3 = nvidia.atomic smin %g, %l : i64
  // CHECK: nvidia.atomic umax
  %4 = nvidia.atomic umax %g, %l : i64
  // CHECK: nvidia.atomic umin
  %5 = nvidia.atomic umin %g, %l : i64
  // CHECK: nvidia.atomic exchange %{{.*}}, %{{.*}} : f64
  %6 = nvidia.atomic exchange %g, %d : f64
  // CHECK: nvidia.atomic exchange %{{.*}}, %{{.*}} : i32
  %7 = nvidia.atomic exchange %g, %i : i32
  // CHECK: nvidia.atomic_cas %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} : i64
  %8 = nvidia.atomic_cas %g, %l, %l mask %m : i64
  return
}

// CHECK-LABEL: func.func @copies
func.func @copies(%g: i64, %s: i32, %n: i32) {
  // CHECK: nvidia.cp_async 16, %{{.*}}, %{{.*}}, %{{.*}} {group = 1 : i32, window = array<i64: 0, 4096>}
  nvidia.cp_async 16, %s, %g, %n {group = 1 : i32, window = array<i64: 0, 4096>}
  // CHECK: nvidia.cp_async_commit
  nvidia.cp_async_commit
  // CHECK: nvidia.cp_async_wait 2
  nvidia.cp_async_wait 2
  // CHECK: nvidia.cp_async_arrive %{{.*}}
  nvidia.cp_async_arrive %s
  return
}

// CHECK-LABEL: func.func @anything
func.func @anything() -> f32 {
  // CHECK: nvidia.anything : f32
  %0 = nvidia.anything : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @bulk
func.func @bulk(%s: i32, %x: i32, %y: i32, %b: i32, %m: i16) {
  // CHECK: %[[MAP:.*]] = nvidia.tensor_map 1
  %map = nvidia.tensor_map 1
  // CHECK: nvidia.prefetch_tensor_map %[[MAP]]
  nvidia.prefetch_tensor_map %map
  // CHECK: nvidia.tma_load %{{.*}}, %[[MAP]][%{{.*}}, %{{.*}}], %{{.*}} {group = 1 : i32, window = array<i64: 0, 4096>}
  nvidia.tma_load %s, %map[%x, %y], %b {group = 1 : i32, window = array<i64: 0, 4096>}
  // CHECK: nvidia.tma_load %{{.*}}, %[[MAP]][%{{.*}}], %{{.*}} multicast %{{.*}}
  nvidia.tma_load %s, %map[%x], %b multicast %m
  // CHECK: nvidia.tma_load %{{.*}}, %[[MAP]][%{{.*}}], %{{.*}} multicast %{{.*}} once
  nvidia.tma_load %s, %map[%x], %b multicast %m once
  // CHECK: nvidia.tma_prefetch %[[MAP]][%{{.*}}, %{{.*}}]
  nvidia.tma_prefetch %map[%x, %y]
  // CHECK: nvidia.tma_store %[[MAP]][%{{.*}}, %{{.*}}, %{{.*}}], %{{.*}} {window = array<i64: 0, 128>}
  nvidia.tma_store %map[%x, %y, %y], %s {window = array<i64: 0, 128>}
  // CHECK: nvidia.bulk_commit
  nvidia.bulk_commit
  // CHECK: nvidia.bulk_wait 2
  nvidia.bulk_wait 2
  // CHECK: nvidia.bulk_wait read 0
  nvidia.bulk_wait read 0
  return
}

// CHECK-LABEL: func.func @warpgroup
func.func @warpgroup(%f: f32, %i: i32, %a: i64, %b: i64, %d: i1) {
  // CHECK: nvidia.set_max_registers 40 {increase = false}
  nvidia.set_max_registers 40 {increase = false}
  // CHECK: nvidia.wgmma_fence
  nvidia.wgmma_fence
  // CHECK: %[[X:.*]]:4 = nvidia.wgmma bf16 bf16 8[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}], (%{{.*}}), %{{.*}}, %{{.*}} {trans_b, window_a = array<i64: 0, 64>} : i64 : f32
  %x:4 = nvidia.wgmma bf16 bf16 8 [%f, %f, %f, %f], (%a), %b, %d {trans_b, window_a = array<i64: 0, 64>} : i64 : f32
  // CHECK: nvidia.wgmma s8 u8 8[{{.*}}], (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}), %{{.*}}, %{{.*}} : i32, i32, i32, i32 : i32
  %y:4 = nvidia.wgmma s8 u8 8 [%i, %i, %i, %i], (%i, %i, %i, %i), %b, %d : i32, i32, i32, i32 : i32
  // CHECK: nvidia.wgmma_commit
  nvidia.wgmma_commit
  // CHECK: nvidia.wgmma_wait 1[%[[X]]#0, %[[X]]#1, %[[X]]#2, %[[X]]#3] : f32
  %z:4 = nvidia.wgmma_wait 1 [%x#0, %x#1, %x#2, %x#3] : f32
  // CHECK: nvidia.wgmma_wait 0[]
  nvidia.wgmma_wait 0 []
  return
}

// CHECK-LABEL: func.func @order
func.func @order(%s: i32, %n: i32) {
  // CHECK: nvidia.barrier 128
  nvidia.barrier 128
  // CHECK: nvidia.barrier 64 {id = 3 : i32}
  nvidia.barrier 64 {id = 3 : i32}
  // CHECK: nvidia.warp_barrier
  nvidia.warp_barrier
  // CHECK: nvidia.cluster_arrive
  nvidia.cluster_arrive
  // CHECK: nvidia.cluster_arrive relaxed
  nvidia.cluster_arrive relaxed
  // CHECK: nvidia.cluster_wait
  nvidia.cluster_wait
  // CHECK: nvidia.mbarrier_init %{{.*}}, %{{.*}}
  nvidia.mbarrier_init %s, %n
  // CHECK: nvidia.mbarrier_arrive %{{[a-z0-9]+$}}
  nvidia.mbarrier_arrive %s
  // CHECK: nvidia.mbarrier_arrive %{{.*}} expect %{{.*}}
  nvidia.mbarrier_arrive %s expect %n
  // CHECK: nvidia.mbarrier_arrive cluster %{{.*}} expect %{{.*}}
  nvidia.mbarrier_arrive cluster %s expect %n
  // CHECK: nvidia.mbarrier_arrive cluster %{{.*}} behind %{{.*}}
  nvidia.mbarrier_arrive cluster %s behind %n
  // CHECK: nvidia.mbarrier_wait %{{.*}}, %{{.*}}
  nvidia.mbarrier_wait %s, %n
  // CHECK: nvidia.fence block
  nvidia.fence block
  // CHECK: nvidia.fence device
  nvidia.fence device
  // CHECK: nvidia.fence proxy_async
  nvidia.fence proxy_async
  // CHECK: nvidia.fence mbarrier_init
  nvidia.fence mbarrier_init
  // CHECK: nvidia.allow_next_launch
  nvidia.allow_next_launch
  // CHECK: nvidia.await_earlier_launches
  nvidia.await_earlier_launches
  return
}

// CHECK-LABEL: func.func @warp
func.func @warp(%i: i32, %f: f32, %m: i1) {
  // CHECK: nvidia.shuffle bfly %{{.*}}, %{{.*}} : f32
  %0 = nvidia.shuffle bfly %f, %i : f32
  // CHECK: nvidia.shuffle up
  %1 = nvidia.shuffle up %i, %i : i32
  // CHECK: nvidia.shuffle down
  %2 = nvidia.shuffle down %i, %i : i32
  // CHECK: nvidia.shuffle idx
  %3 = nvidia.shuffle idx %i, %i : i32
  // CHECK: nvidia.vote %{{.*}}
  %4 = nvidia.vote %m
  return
}

// CHECK-LABEL: func.func @matrices
func.func @matrices(%s: i32, %a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>, %i: vector<4xi32>,
                    %x: vector<1xf64>, %d: vector<2xf64>) {
  // CHECK: nvidia.ldmatrix %{{.*}} -> vector<4xi32>
  %0 = nvidia.ldmatrix %s -> vector<4xi32>
  // CHECK: nvidia.ldmatrix transpose %{{.*}} {group = 2 : i32, window = array<i64: 16, 32>} -> vector<1xi32>
  %1 = nvidia.ldmatrix transpose %s {group = 2 : i32, window = array<i64: 16, 32>} -> vector<1xi32>
  // CHECK: nvidia.stmatrix %{{.*}}, %{{.*}} : vector<2xi32>
  nvidia.stmatrix %s, %b : vector<2xi32>
  // CHECK: nvidia.stmatrix transpose %{{.*}}, %{{.*}} : vector<4xi32>
  nvidia.stmatrix transpose %s, %a : vector<4xi32>
  // CHECK: nvidia.mma bf16 bf16 %{{.*}}, %{{.*}}, %{{.*}} : vector<4xi32>, vector<2xi32>, vector<4xf32>
  %2 = nvidia.mma bf16 bf16 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  // CHECK: nvidia.mma f16 f16
  %3 = nvidia.mma f16 f16 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  // CHECK: nvidia.mma tf32 tf32
  %4 = nvidia.mma tf32 tf32 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  // CHECK: nvidia.mma s8 u8 %{{.*}}, %{{.*}}, %{{.*}} : vector<4xi32>, vector<2xi32>, vector<4xi32>
  %5 = nvidia.mma s8 u8 %a, %b, %i : vector<4xi32>, vector<2xi32>, vector<4xi32>
  // CHECK: nvidia.mma e4m3 e5m2
  %6 = nvidia.mma e4m3 e5m2 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  // CHECK: nvidia.mma f64 f64 %{{.*}}, %{{.*}}, %{{.*}} : vector<1xf64>, vector<1xf64>, vector<2xf64>
  %7 = nvidia.mma f64 f64 %x, %x, %d : vector<1xf64>, vector<1xf64>, vector<2xf64>
  return
}

// CHECK-LABEL: func.func @arithmetic
func.func @arithmetic(%f: f32, %i: i32) {
  // CHECK: nvidia.approx ex2 %{{.*}} {nvidia.flush}
  %0 = nvidia.approx ex2 %f {nvidia.flush}
  // CHECK: nvidia.approx rcp
  %1 = nvidia.approx rcp %f
  // CHECK: nvidia.approx rsqrt
  %2 = nvidia.approx rsqrt %f
  // CHECK: nvidia.approx lg2
  %3 = nvidia.approx lg2 %f
  // CHECK: nvidia.approx tanh
  %4 = nvidia.approx tanh %f
  // CHECK: nvidia.pack bf16 %{{.*}}, %{{.*}}
  %5 = nvidia.pack bf16 %f, %f
  // CHECK: nvidia.permute_bytes %{{.*}}, %{{.*}}, %{{.*}}
  %6 = nvidia.permute_bytes %5, %i, %i
  return
}
