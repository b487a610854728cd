// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-insert-barriers))' | FileCheck %s

// Written by one thread, read by another: a barrier between.
// CHECK-LABEL: @exchange
// CHECK: nvidia.store shared
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.load shared
// CHECK-NEXT: nvidia.load shared
// CHECK-NEXT: return
func.func @exchange(%p: i32, %q: i32, %v: f32) attributes {nvidia.threads = 128 : i64} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
  %r = nvidia.load shared %q {group = 1 : i32, window = array<i64: 0, 512>} : i32 -> f32
  %s = nvidia.load shared %p {group = 1 : i32, window = array<i64: 0, 512>} : i32 -> f32
  return
}

// Written again: what was read must have been read by all.
// CHECK-LABEL: @reuse
// CHECK: nvidia.load shared
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.store shared
func.func @reuse(%p: i32, %v: f32) attributes {nvidia.threads = 128 : i64} {
  %r = nvidia.load shared %p {group = 0 : i32, window = array<i64: 0, 512>} : i32 -> f32
  nvidia.store shared %v, %p {group = 1 : i32, window = array<i64: 256, 768>} : f32, i32
  return
}

// Other bytes, or one exchange, or reads alone: none.
// CHECK-LABEL: @apart
// CHECK-NOT: barrier
// CHECK: return
func.func @apart(%p: i32, %v: f32) attributes {nvidia.threads = 128 : i64} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
  nvidia.store shared %v, %p {group = 1 : i32, window = array<i64: 512, 1024>} : f32, i32
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
  %r = nvidia.load shared %p {group = 2 : i32, window = array<i64: 1024, 2048>} : i32 -> f32
  %s = nvidia.load shared %p {group = 3 : i32, window = array<i64: 1024, 2048>} : i32 -> f32
  return
}

// Of an access without a window nothing is known: it conflicts with every write.
// CHECK-LABEL: @unknown
// CHECK: nvidia.store shared
// CHECK-NEXT: nvidia.barrier 64
// CHECK-NEXT: nvidia.load shared
func.func @unknown(%p: i32, %v: f32) attributes {nvidia.threads = 64 : i64} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
  %r = nvidia.load shared %p : i32 -> f32
  return
}

// One warp alone needs less.
// CHECK-LABEL: @one_warp
// CHECK: nvidia.store shared
// CHECK-NEXT: nvidia.warp_barrier
// CHECK-NEXT: nvidia.load shared
func.func @one_warp(%p: i32, %v: f32) attributes {nvidia.threads = 32 : i64} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 128>} : f32, i32
  %r = nvidia.load shared %p {group = 1 : i32, window = array<i64: 0, 128>} : i32 -> f32
  return
}

// A barrier that is there already serves: the block's, and the cluster's.
// CHECK-LABEL: @there
// CHECK: nvidia.store shared
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.load shared
// CHECK-NEXT: nvidia.cluster_arrive
// CHECK-NEXT: nvidia.cluster_wait
// CHECK-NEXT: nvidia.store shared
func.func @there(%p: i32, %v: f32) attributes {nvidia.threads = 128 : i64} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
  nvidia.barrier 128
  %r = nvidia.load shared %p {group = 1 : i32, window = array<i64: 0, 512>} : i32 -> f32
  nvidia.cluster_arrive
  nvidia.cluster_wait
  nvidia.store shared %v, %p {group = 2 : i32, window = array<i64: 0, 512>} : f32, i32
  return
}

// The end of a loop's body meets its beginning.
// CHECK-LABEL: @around
// CHECK: scf.for
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.store shared
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.load shared
// CHECK-NEXT: {{^ *}$}}
func.func @around(%p: i32, %v: f32, %n: index) attributes {nvidia.threads = 128 : i64} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %n step %1 {
    nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
    %r = nvidia.load shared %p {group = 1 : i32, window = array<i64: 0, 512>} : i32 -> f32
  }
  return
}

// A loop's condition touches shared memory, too.
// CHECK-LABEL: @condition
// CHECK: scf.while
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.load shared
// CHECK: } do {
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.store shared
func.func @condition(%p: i32, %v: f32) attributes {nvidia.threads = 128 : i64} {
  scf.while : () -> () {
    %r = nvidia.load shared %p {group = 0 : i32, window = array<i64: 0, 512>} : i32 -> f32
    %go = arith.cmpf olt, %r, %v : f32
    scf.condition(%go)
  } do {
    nvidia.store shared %v, %p {group = 1 : i32, window = array<i64: 0, 512>} : f32, i32
    scf.yield
  }
  return
}

// And is what runs last: a barrier at the end of the body does not order it before what comes behind the loop.
// CHECK-LABEL: @behind
// CHECK: scf.while
// CHECK: nvidia.load shared
// CHECK: } do {
// CHECK: nvidia.barrier 128
// CHECK: }
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.store shared
func.func @behind(%p: i32, %v: f32) attributes {nvidia.threads = 128 : i64} {
  scf.while : () -> () {
    %r = nvidia.load shared %p {group = 0 : i32, window = array<i64: 0, 512>} : i32 -> f32
    %go = arith.cmpf olt, %r, %v : f32
    scf.condition(%go)
  } do {
    nvidia.barrier 128
    scf.yield
  }
  nvidia.store shared %v, %p {group = 2 : i32, window = array<i64: 0, 512>} : f32, i32
  return
}

// Not all threads may take a branch: the barrier stands in front of it.
// CHECK-LABEL: @branch
// CHECK: nvidia.store shared
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: scf.if
// CHECK-NEXT: nvidia.load shared
// CHECK: nvidia.barrier 128
// CHECK-NEXT: nvidia.store shared
func.func @branch(%p: i32, %v: f32, %c: i1) attributes {nvidia.threads = 128 : i64} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
  scf.if %c {
    %r = nvidia.load shared %p {group = 1 : i32, window = array<i64: 0, 512>} : i32 -> f32
  }
  nvidia.store shared %v, %p {group = 2 : i32, window = array<i64: 0, 512>} : f32, i32
  return
}

// Matrices and asynchronous copies are accesses too.
// CHECK-LABEL: @others
// CHECK: nvidia.stmatrix
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.ldmatrix
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.cp_async
func.func @others(%p: i32, %g: i64, %v: vector<4xi32>) attributes {nvidia.threads = 128 : i64} {
  nvidia.stmatrix %p, %v {group = 0 : i32, window = array<i64: 0, 512>} : vector<4xi32>
  %r = nvidia.ldmatrix %p {group = 1 : i32, window = array<i64: 0, 512>} -> vector<4xi32>
  nvidia.cp_async 16, %p, %g, %p {group = 2 : i32, window = array<i64: 0, 512>}
  return
}

// An arrival that releases nothing orders nothing.
// CHECK-LABEL: @relaxed_arrival
// CHECK: nvidia.cluster_wait
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.load shared
func.func @relaxed_arrival(%p: i32, %v: f32) attributes {nvidia.threads = 128 : i64} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
  nvidia.cluster_arrive relaxed
  nvidia.cluster_wait
  %r = nvidia.load shared %p {group = 1 : i32, window = array<i64: 0, 512>} : i32 -> f32
  return
}

// The cluster's barrier orders what came before the arrival, not what was done while others were waited for.
// CHECK-LABEL: @between_arrival_and_wait
// CHECK: nvidia.store shared %{{.*}} {group = 0
// CHECK: nvidia.cluster_arrive
// CHECK-NEXT: nvidia.store shared %{{.*}} {group = 1
// CHECK-NEXT: nvidia.cluster_wait
// CHECK-NEXT: nvidia.load shared %{{.*}} {group = 2
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: nvidia.load shared %{{.*}} {group = 3
func.func @between_arrival_and_wait(%p: i32, %v: f32) attributes {nvidia.threads = 128 : i64} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 0, 512>} : f32, i32
  nvidia.cluster_arrive
  nvidia.store shared %v, %p {group = 1 : i32, window = array<i64: 512, 1024>} : f32, i32
  nvidia.cluster_wait
  %r = nvidia.load shared %p {group = 2 : i32, window = array<i64: 0, 512>} : i32 -> f32
  %s = nvidia.load shared %p {group = 3 : i32, window = array<i64: 512, 1024>} : i32 -> f32
  return
}
