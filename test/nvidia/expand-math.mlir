// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --tenon-nvidia-expand-math | FileCheck %s

// exp: round, reduce in two steps, the unit, one product with a power of two.
// CHECK-LABEL: @exp
// CHECK: %[[SUM:.*]] = math.fma
// CHECK: %[[MAX:.*]] = arith.maximumf %[[SUM]]
// CHECK: %[[N:.*]] = arith.minimumf %[[MAX]]
// CHECK: arith.subf %{{.*}}, %[[N]]
// CHECK: math.fma
// CHECK: math.fma
// CHECK: nvidia.approx ex2 %{{.*}} {nvidia.flush}
// CHECK: arith.shli
// CHECK: arith.mulf
// CHECK-NOT: math.exp
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// exp2 may give subnormals, which count here.
// CHECK-LABEL: @exp2
// CHECK-NEXT: nvidia.approx ex2 %{{[a-z0-9]+}}{{$}}
func.func @exp2(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}

// 16-bit floats go through f32, vectors element by element.
// CHECK-LABEL: @vector
// CHECK-COUNT-2: nvidia.approx rsqrt
// CHECK-NOT: nvidia.approx
func.func @vector(%x: vector<2xbf16>) -> vector<2xbf16> {
  %y = math.rsqrt %x : vector<2xbf16>
  return %y : vector<2xbf16>
}

// What the unit does not do well enough is as everywhere.
// CHECK-LABEL: @others
// CHECK-NOT: nvidia.approx
// CHECK-NOT: math.log
// CHECK-NOT: math.exp
func.func @others(%x: f32, %z: f64) -> (f32, f64) {
  %y = math.log %x : f32
  %w = math.exp %z : f64
  return %y, %w : f32, f64
}
