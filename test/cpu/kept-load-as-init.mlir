// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// A load kept in a buffer (memory it read is written afterwards) is read from there when a loop takes it as its
// starting value. The view is loaded from once in each of the two forms, checked and unchecked, and never again.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[X:.*]] = llvm.load %{{.*}} invariant {{.*}} -> !llvm.ptr
// CHECK: llvm.load %[[X]] {{.*}} -> vector<32xf32>
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[X]][
// CHECK: llvm.intr.masked.load %[[AT]],
// CHECK-NOT: llvm.load %[[X]] {{.*}} -> vector<32xf32>
// CHECK: scf.for
func.func @init(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %a = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<32xf32>
  tile.store %zero, %x[%c0] : tensor<32xf32>, !tile.view<1, f32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %a) -> tensor<32xf32> {
    %u = arith.addf %t, %t : tensor<32xf32>
    scf.yield %u : tensor<32xf32>
  }
  tile.store %r, %x[%c0] : tensor<32xf32>, !tile.view<1, f32>
  return
}
