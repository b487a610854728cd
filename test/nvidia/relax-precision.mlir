// SPDX-License-Identifier: Apache-2.0
// Which operations may be less exact because their result is only ever seen rounded to 16 bits.
// RUN: tenon-opt %s -tenon-nvidia-relax-precision | FileCheck %s

// A sum of exponentials does not cancel, and the quotient is rounded: both are relaxed.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: !tile.view<2, f32>, %y: !tile.view<2, bf16>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<1x64xf32>
  // CHECK: math.exp {{.*}}nvidia.relaxed
  %e = math.exp %t : tensor<1x64xf32>
  %s = tile.reduce %e dim 1 : (tensor<1x64xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %w = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x64xf32>
  // CHECK: arith.divf {{.*}}nvidia.relaxed
  %q = arith.divf %e, %w : tensor<1x64xf32>
  %r = tile.cast %q : tensor<1x64xf32> -> tensor<1x64xbf16>
  tile.store %r, %y[%c0, %c0] : tensor<1x64xbf16>, !tile.view<2, bf16>
  return
}

// Another shape of program: a gate, 1 / (1 + exp(x)) times x.
// CHECK-LABEL: func.func @gate
func.func @gate(%x: !tile.view<1, f32>, %y: !tile.view<1, f16>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<64xf32>
  // CHECK: math.exp {{.*}}nvidia.relaxed
  %e = math.exp %t : tensor<64xf32>
  %d = arith.addf %e, %one : tensor<64xf32>
  // CHECK: arith.divf {{.*}}nvidia.relaxed
  %s = arith.divf %one, %d : tensor<64xf32>
  %g = arith.mulf %s, %t : tensor<64xf32>
  %r = tile.cast %g : tensor<64xf32> -> tensor<64xf16>
  tile.store %r, %y[%c0] : tensor<64xf16>, !tile.view<1, f16>
  return
}

// GELU: the sum is relaxed, whose error is relative to it, and erf, which cancels in it, is not.
// CHECK-LABEL: func.func @gelu
func.func @gelu(%x: !tile.view<1, f32>, %y: !tile.view<1, bf16>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<64xf32>
  // CHECK: math.erf
  // CHECK-NOT: nvidia.relaxed
  %e = math.erf %t : tensor<64xf32>
  // CHECK: arith.addf {{.*}}nvidia.relaxed
  %s = arith.addf %e, %one : tensor<64xf32>
  %g = arith.mulf %s, %t : tensor<64xf32>
  %r = tile.cast %g : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %y[%c0] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// erf alone is relaxed; stored as f32, neither it nor a sum with it.
// CHECK-LABEL: func.func @erf
func.func @erf(%x: !tile.view<1, f32>, %y: !tile.view<1, f16>, %z: !tile.view<1, f32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<64xf32>
  // CHECK: math.erf {{.*}}nvidia.relaxed
  // CHECK-NOT: nvidia.relaxed
  %e = math.erf %t : tensor<64xf32>
  %r = tile.cast %e : tensor<64xf32> -> tensor<64xf16>
  tile.store %r, %y[%c0] : tensor<64xf16>, !tile.view<1, f16>
  %n = arith.negf %t : tensor<64xf32>
  %f = math.erf %n : tensor<64xf32>
  %s = arith.addf %f, %one : tensor<64xf32>
  tile.store %s, %z[%c0] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// exp(x) - 1 cancels near zero: a small error of exp is a large one of the difference.
// CHECK-LABEL: func.func @difference
// CHECK-NOT: nvidia.relaxed
func.func @difference(%x: !tile.view<1, f32>, %y: !tile.view<1, bf16>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<64xf32>
  %e = math.exp %t : tensor<64xf32>
  %d = arith.subf %e, %one : tensor<64xf32>
  %r = tile.cast %d : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %y[%c0] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// Stored as f32, and compared: seen as they are.
// CHECK-LABEL: func.func @seen
// CHECK-NOT: nvidia.relaxed
func.func @seen(%x: !tile.view<1, f32>, %y: !tile.view<1, f32>, %z: !tile.view<1, i1>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %t = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<64xf32>
  %e = math.exp %t : tensor<64xf32>
  tile.store %e, %y[%c0] : tensor<64xf32>, !tile.view<1, f32>
  %f = math.exp2 %t : tensor<64xf32>
  %m = arith.cmpf olt, %f, %one : tensor<64xf32>
  tile.store %m, %z[%c0] : tensor<64xi1>, !tile.view<1, i1>
  return
}
