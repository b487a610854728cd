// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-sink-to-uses))' | FileCheck %s

// One chain after the other.
// CHECK-LABEL: @chains
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT: arith.addf
// CHECK-NEXT: nvidia.store global
// CHECK-NEXT: nvidia.barrier 128
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: nvidia.store global
func.func @chains(%p: i64, %x: bf16, %y: bf16, %z: f32) {
  %a = arith.extf %x : bf16 to f32
  %b = arith.extf %y : bf16 to f32
  %c = arith.addf %a, %z : f32
  %d = arith.addf %b, %z : f32
  nvidia.store global %c, %p : f32, i64
  nvidia.barrier 128
  nvidia.store global %d, %p : f32, i64
  return
}

// Not past what gives a value: %x and %y would be alive beside it. Values needed later are still computed one by one.
// CHECK-LABEL: @loads
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: nvidia.load global
// CHECK-NEXT: arith.subf
// CHECK-NEXT: nvidia.store global
func.func @loads(%p: i64, %x: f32, %y: f32) {
  %a = arith.mulf %x, %y : f32
  %b = arith.addf %a, %x : f32
  %v = nvidia.load global %p : i64 -> f32
  %c = arith.subf %b, %v : f32
  nvidia.store global %c, %p : f32, i64
  return
}

// Not past a wait for data, before which there is time; past a branch without results, whose own needs come first.
// CHECK-LABEL: @waits
// CHECK: arith.muli
// CHECK-NEXT: nvidia.mbarrier_wait
// CHECK-NEXT: arith.addf
// CHECK-NEXT: scf.if
// CHECK-NEXT: nvidia.store global
// CHECK-NEXT: }
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: nvidia.store global
func.func @waits(%p: i64, %q: i32, %x: f32, %which: i1) {
  %at = arith.muli %q, %q : i32
  nvidia.mbarrier_wait %q, %at
  %b = arith.mulf %x, %x : f32
  %a = arith.addf %x, %x : f32
  scf.if %which {
    nvidia.store global %a, %p : f32, i64
  }
  nvidia.store global %b, %p : f32, i64
  return
}

// Around a loop, too, but not in it; what nobody needs stays in order.
// CHECK-LABEL: @loop
// CHECK: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: nvidia.store global
// CHECK: }
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: nvidia.store global
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.subf
// CHECK-NEXT: scf.yield
func.func @loop(%p: i64, %x: f32, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (f32) : i32 {
    %s = scf.for %j = %zero to %n step %one iter_args(%w = %x) -> (f32) : i32 {
      %c = arith.addf %w, %x : f32
      %d = arith.mulf %w, %w : f32
      nvidia.store global %d, %p : f32, i64
      scf.yield %c : f32
    }
    %a = arith.addf %v, %s : f32
    %dead = arith.subf %a, %x : f32
    %b = arith.mulf %v, %v : f32
    nvidia.store global %b, %p : f32, i64
    scf.yield %a : f32
  }
  return
}
