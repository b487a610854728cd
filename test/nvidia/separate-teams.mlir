// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-separate-teams))' | FileCheck %s

// What lies in the teams' memory moves, with a window for all of them; what all have in common (below 1024) does not.
// The barrier of the threads that hold tiles becomes the team's, that of the block stays.
// CHECK-LABEL: @moves
// CHECK: %[[THREAD:.*]] = nvidia.thread_id
// CHECK: %[[SEVEN:.*]] = arith.constant 7 : i32
// CHECK: %[[TEAM:.*]] = arith.shrui %[[THREAD]], %[[SEVEN]]
// CHECK: %[[BYTES:.*]] = arith.constant 2048 : i32
// CHECK: %[[MOVED:.*]] = arith.muli %[[TEAM]], %[[BYTES]]
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[MOVED]]
// CHECK: nvidia.store shared %{{.*}}, %[[AT]] {group = 0 : i32, window = array<i64: 1024, 3584>}
// CHECK: nvidia.barrier 128 plus %[[TEAM]] {id = 2 : i32}
// CHECK: %[[FROM:.*]] = arith.addi %{{.*}}, %[[MOVED]]
// CHECK: nvidia.load shared %[[FROM]] {group = 1 : i32, window = array<i64: 1024, 3584>}
// CHECK: nvidia.load shared %arg0 {group = 2 : i32, window = array<i64: 0, 512>}
// CHECK: nvidia.barrier 384
// CHECK-NOT: plus
func.func @moves(%p: i32, %v: f32) attributes {nvidia.threads = 384 : i64, nvidia.workers = 128 : i64, nvidia.teams = array<i64: 2, 1024, 2048>} {
  nvidia.store shared %v, %p {group = 0 : i32, window = array<i64: 1024, 1536>} : f32, i32
  nvidia.barrier 128 {id = 1 : i32}
  %r = nvidia.load shared %p {group = 1 : i32, window = array<i64: 1024, 1536>} : i32 -> f32
  %s = nvidia.load shared %p {group = 2 : i32, window = array<i64: 0, 512>} : i32 -> f32
  nvidia.barrier 384
  return
}

// One team: nothing to separate.
// CHECK-LABEL: @alone
// CHECK-NOT: arith
// CHECK: nvidia.barrier 128 {id = 1 : i32}
func.func @alone() attributes {nvidia.threads = 256 : i64, nvidia.workers = 128 : i64} {
  nvidia.barrier 128 {id = 1 : i32}
  return
}
