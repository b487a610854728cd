// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -tenon-compare-integers | FileCheck %s

// "A random number of at least p": the bits are at least the next integer, in the place of the bits.
// CHECK-LABEL: func.func @at_least
// CHECK-SAME: (%[[BITS:.*]]: tensor<64xi32>, %[[P:.*]]: f32)
// CHECK: %[[SCALED:.*]] = arith.mulf %[[P]], %{{.*}} : f32
// CHECK: %[[BOUND:.*]] = math.ceil %[[SCALED]]
// CHECK: %[[REACHED:.*]] = arith.cmpf olt, %[[BOUND]]
// CHECK: %[[POSITIVE:.*]] = arith.cmpf ogt, %[[BOUND]]
// CHECK: %[[BOTH:.*]] = arith.andi %[[REACHED]], %[[POSITIVE]]
// CHECK: %[[COUNTED:.*]] = arith.select %[[BOTH]], %[[BOUND]]
// CHECK: %[[INTEGER:.*]] = tile.cast unsigned %[[COUNTED]] : f32 -> i32
// CHECK: %[[LIMIT:.*]] = arith.shli %[[INTEGER]]
// CHECK: %[[LIMITS:.*]] = tile.splat %[[LIMIT]]
// CHECK: %[[ABOVE:.*]] = arith.cmpi uge, %[[BITS]], %[[LIMITS]]
// CHECK: %[[NONE:.*]] = arith.cmpf uge, %[[BOUND]]
// CHECK: %[[TURNED:.*]] = tile.splat %[[NONE]]
// CHECK: %[[RESULT:.*]] = arith.xori %[[ABOVE]], %[[TURNED]]
// CHECK: return %[[RESULT]]
func.func @at_least(%bits: tensor<64xi32>, %p: f32) -> tensor<64xi1> {
  %c8 = arith.constant dense<8> : tensor<64xi32>
  %unit = arith.constant dense<5.96046448E-8> : tensor<64xf32>
  %k = tile.shr unsigned %bits, %c8 : tensor<64xi32>
  %f = tile.cast unsigned %k : tensor<64xi32> -> tensor<64xf32>
  %u = arith.mulf %f, %unit : tensor<64xf32>
  %t = tile.splat %p : f32 -> tensor<64xf32>
  %c = arith.cmpf oge, %u, %t : tensor<64xf32>
  return %c : tensor<64xi1>
}

// Mirrored and not scaled: "p is above" is "below p".
// CHECK-LABEL: func.func @above
// CHECK: math.ceil
// CHECK: arith.cmpi ult
// CHECK: arith.cmpf oge
// CHECK: arith.xori
// CHECK-NOT: cmpf oeq
func.func @above(%bits: tensor<4x8xi32>, %p: f32) -> tensor<4x8xi1> {
  %c16 = arith.constant dense<16> : tensor<4x8xi32>
  %k = tile.shr unsigned %bits, %c16 : tensor<4x8xi32>
  %f = tile.cast unsigned %k : tensor<4x8xi32> -> tensor<4x8xf32>
  %t = tile.splat %p : f32 -> tensor<4x8xf32>
  %c = arith.cmpf ogt, %t, %f : tensor<4x8xf32>
  return %c : tensor<4x8xi1>
}

// 25 bits are not all numbers of f32; other scales round; a threshold of each element would cost as much; a signed shift.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-4: arith.cmpf
// CHECK: return
func.func @left_alone(%bits: tensor<64xi32>, %p: f32, %each: tensor<64xf32>)
    -> (tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi1>) {
  %c7 = arith.constant dense<7> : tensor<64xi32>
  %c8 = arith.constant dense<8> : tensor<64xi32>
  %third = arith.constant dense<0.3> : tensor<64xf32>
  %t = tile.splat %p : f32 -> tensor<64xf32>
  %k7 = tile.shr unsigned %bits, %c7 : tensor<64xi32>
  %f7 = tile.cast unsigned %k7 : tensor<64xi32> -> tensor<64xf32>
  %a = arith.cmpf oge, %f7, %t : tensor<64xf32>
  %k8 = tile.shr unsigned %bits, %c8 : tensor<64xi32>
  %f8 = tile.cast unsigned %k8 : tensor<64xi32> -> tensor<64xf32>
  %s8 = arith.mulf %f8, %third : tensor<64xf32>
  %b = arith.cmpf oge, %s8, %t : tensor<64xf32>
  %c = arith.cmpf oge, %f8, %each : tensor<64xf32>
  %ks = tile.shr %bits, %c8 : tensor<64xi32>
  %fs = tile.cast %ks : tensor<64xi32> -> tensor<64xf32>
  %d = arith.cmpf oge, %fs, %t : tensor<64xf32>
  return %a, %b, %c, %d : tensor<64xi1>, tensor<64xi1>, tensor<64xi1>, tensor<64xi1>
}
