// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -canonicalize %s | FileCheck %s

// x / 0 is 0; the smallest integer / -1 is itself.
// CHECK-LABEL: func.func @div
func.func @div() -> (i32, i32, i32, i8, i8, i8) {
  %seven = arith.constant 7 : i32
  %minus_two = arith.constant -2 : i32
  %zero = arith.constant 0 : i32
  %least = arith.constant -128 : i8
  %minus_one = arith.constant -1 : i8
  %three = arith.constant 3 : i8
  // CHECK-DAG: %[[M3:.*]] = arith.constant -3 : i32
  // CHECK-DAG: %[[Z:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[LEAST:.*]] = arith.constant -128 : i8
  // CHECK-DAG: %[[ZB:.*]] = arith.constant 0 : i8
  // CHECK-DAG: %[[B85:.*]] = arith.constant 85 : i8
  // CHECK: return %[[M3]], %[[Z]], %[[Z]], %[[LEAST]], %[[ZB]], %[[B85]]
  %a = tile.div %seven, %minus_two : i32
  %b = tile.div %seven, %zero : i32
  %c = tile.div unsigned %seven, %zero : i32
  %d = tile.div %least, %minus_one : i8
  %e = tile.div unsigned %least, %minus_one : i8 // 128 / 255
  %f = tile.div unsigned %minus_one, %three : i8 // 255 / 3
  return %a, %b, %c, %d, %e, %f : i32, i32, i32, i8, i8, i8
}

// lhs - (lhs / rhs) * rhs: x rem 0 is x, the smallest rem -1 is 0, and the sign is that of lhs.
// CHECK-LABEL: func.func @rem
func.func @rem() -> (i32, i32, i32, i8, i8) {
  %minus_seven = arith.constant -7 : i32
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  %least = arith.constant -128 : i8
  %minus_one = arith.constant -1 : i8
  // CHECK-DAG: %[[M1:.*]] = arith.constant -1 : i32
  // CHECK-DAG: %[[M7:.*]] = arith.constant -7 : i32
  // CHECK-DAG: %[[ZB:.*]] = arith.constant 0 : i8
  // CHECK-DAG: %[[LEAST:.*]] = arith.constant -128 : i8
  // CHECK: return %[[M1]], %[[M7]], %[[M7]], %[[ZB]], %[[LEAST]]
  %a = tile.rem %minus_seven, %three : i32
  %b = tile.rem %minus_seven, %zero : i32
  %c = tile.rem unsigned %minus_seven, %zero : i32
  %d = tile.rem %least, %minus_one : i8
  %e = tile.rem unsigned %least, %minus_one : i8 // 128 rem 255
  return %a, %b, %c, %d, %e : i32, i32, i32, i8, i8
}

// The amount is unsigned: by the width or more, -1 included, gives 0.
// CHECK-LABEL: func.func @shl
func.func @shl() -> (i16, i16, i16, i16) {
  %one = arith.constant 1 : i16
  %fifteen = arith.constant 15 : i16
  %sixteen = arith.constant 16 : i16
  %minus_one = arith.constant -1 : i16
  // CHECK-DAG: %[[TOP:.*]] = arith.constant -32768 : i16
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i16
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i16
  // CHECK: return %[[TOP]], %[[ZERO]], %[[ZERO]], %[[ONE]]
  %zero = arith.constant 0 : i16
  %a = tile.shl %one, %fifteen : i16
  %b = tile.shl %one, %sixteen : i16
  %c = tile.shl %one, %minus_one : i16
  %d = tile.shl %one, %zero : i16
  return %a, %b, %c, %d : i16, i16, i16, i16
}

// By the width or more leaves the sign, or 0 when unsigned.
// CHECK-LABEL: func.func @shr
func.func @shr() -> (i16, i16, i16, i16, i16, i16) {
  %x = arith.constant -32768 : i16
  %y = arith.constant 5 : i16
  %fifteen = arith.constant 15 : i16
  %sixteen = arith.constant 16 : i16
  %minus_one = arith.constant -1 : i16
  // CHECK-DAG: %[[M1:.*]] = arith.constant -1 : i16
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i16
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i16
  // CHECK: return %[[M1]], %[[ONE]], %[[M1]], %[[ZERO]], %[[M1]], %[[ZERO]]
  %a = tile.shr %x, %fifteen : i16
  %b = tile.shr unsigned %x, %fifteen : i16
  %c = tile.shr %x, %sixteen : i16
  %d = tile.shr unsigned %x, %sixteen : i16
  %e = tile.shr %x, %minus_one : i16
  %f = tile.shr %y, %minus_one : i16
  return %a, %b, %c, %d, %e, %f : i16, i16, i16, i16, i16, i16
}

// Index is a signed 64-bit integer; tiles fold element by element, splats as one.
// CHECK-LABEL: func.func @integer_types
func.func @integer_types() -> (index, tensor<4xi32>, tensor<8xi64>) {
  %a = arith.constant -9 : index
  %b = arith.constant 2 : index
  %c = arith.constant dense<[7, -7, 1, -2147483648]> : tensor<4xi32>
  %d = arith.constant dense<[2, 2, 0, -1]> : tensor<4xi32>
  %e = arith.constant dense<100> : tensor<8xi64>
  %f = arith.constant dense<7> : tensor<8xi64>
  // CHECK-DAG: %[[I:.*]] = arith.constant -4 : index
  // CHECK-DAG: %[[T:.*]] = arith.constant dense<[3, -3, 0, -2147483648]> : tensor<4xi32>
  // CHECK-DAG: %[[S:.*]] = arith.constant dense<2> : tensor<8xi64>
  // CHECK: return %[[I]], %[[T]], %[[S]]
  %x = tile.div %a, %b : index
  %y = tile.div %c, %d : tensor<4xi32>
  %z = tile.rem %e, %f : tensor<8xi64>
  return %x, %y, %z : index, tensor<4xi32>, tensor<8xi64>
}

// One operand unknown: nothing to fold, not even by zero.
// CHECK-LABEL: func.func @unknown
func.func @unknown(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  // CHECK: tile.div
  %y = tile.div %x, %zero : i32
  return %y : i32
}

// CHECK-LABEL: func.func @cast_of_integers
func.func @cast_of_integers() -> (i64, i64, i64, i8, i1, index, i32) {
  %minus_one = arith.constant -1 : i8
  %true = arith.constant true
  %big = arith.constant 511 : i32
  %two = arith.constant 2 : i32
  %i = arith.constant 4294967297 : index
  // CHECK-DAG: %[[M1:.*]] = arith.constant -1 : i64
  // CHECK-DAG: %[[B255:.*]] = arith.constant 255 : i64
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i64
  // CHECK-DAG: %[[M1B:.*]] = arith.constant -1 : i8
  // CHECK-DAG: %[[FALSE:.*]] = arith.constant false
  // CHECK-DAG: %[[M1I:.*]] = arith.constant -1 : index
  // CHECK-DAG: %[[ONE32:.*]] = arith.constant 1 : i32
  // CHECK: return %[[M1]], %[[B255]], %[[ONE]], %[[M1B]], %[[FALSE]], %[[M1I]], %[[ONE32]]
  %a = tile.cast %minus_one : i8 -> i64
  %b = tile.cast unsigned %minus_one : i8 -> i64
  %c = tile.cast %true : i1 -> i64 // a boolean is 0 or 1
  %d = tile.cast %big : i32 -> i8
  %e = tile.cast %two : i32 -> i1 // the low bit
  %f = tile.cast %minus_one : i8 -> index
  %g = tile.cast %i : index -> i32
  return %a, %b, %c, %d, %e, %f, %g : i64, i64, i64, i8, i1, index, i32
}

// Floats are left to the targets; a cast to the same type is nothing.
// CHECK-LABEL: func.func @cast_of_floats
func.func @cast_of_floats(%t: tensor<4xf32>) -> (i32, tensor<4xf32>) {
  %x = arith.constant 1.5 : f32
  // CHECK: tile.cast %{{.*}} : f32 -> i32
  // CHECK-NOT: tile.cast
  %a = tile.cast %x : f32 -> i32
  %b = tile.cast %t : tensor<4xf32> -> tensor<4xf32>
  return %a, %b : i32, tensor<4xf32>
}

// CHECK-LABEL: func.func @same_type
// CHECK-SAME: (%[[T:.*]]: tensor<4x8xf32>)
// CHECK-NEXT: return %[[T]], %[[T]], %[[T]], %[[T]]
func.func @same_type(%t: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = tile.broadcast %t : tensor<4x8xf32> -> tensor<4x8xf32>
  %b = tile.reshape %t : tensor<4x8xf32> -> tensor<4x8xf32>
  %c = tile.slice %t [0, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  %d = tile.transpose %t [0, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return %a, %b, %c, %d : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// A transposition that leaves the type alone still moves elements.
// CHECK-LABEL: func.func @square
func.func @square(%t: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: tile.transpose %{{.*}} [1, 0]
  %a = tile.transpose %t [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}

// The identity, but the tile changes its layout.
// CHECK-LABEL: func.func @layout
func.func @layout(%t: tensor<4x8xf32>) -> tensor<4x8xf32, "blocked"> {
  // CHECK: tile.transpose
  %a = tile.transpose %t [0, 1] : tensor<4x8xf32> -> tensor<4x8xf32, "blocked">
  return %a : tensor<4x8xf32, "blocked">
}

// CHECK-LABEL: func.func @reshape_of_reshape
// CHECK-SAME: (%[[T:.*]]: tensor<4x8xf32>)
func.func @reshape_of_reshape(%t: tensor<4x8xf32>) -> (tensor<2x16xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[R:.*]] = tile.reshape %[[T]] : tensor<4x8xf32> -> tensor<2x16xf32>
  // CHECK-NEXT: return %[[R]], %[[T]]
  %a = tile.reshape %t : tensor<4x8xf32> -> tensor<32xf32>
  %b = tile.reshape %a : tensor<32xf32> -> tensor<2x16xf32>
  %c = tile.reshape %a : tensor<32xf32> -> tensor<4x8xf32>
  return %b, %c : tensor<2x16xf32>, tensor<4x8xf32>
}

// Wherever its elements go, a splat stays one.
// CHECK-LABEL: func.func @splats
func.func @splats() -> (tensor<2x4xf32>, tensor<8xbf16>, tensor<3x2xi8>, tensor<2xi1>, f64, tensor<4xf8E4M3FN>) {
  %one = arith.constant 1.0 : f32
  %half = arith.constant dense<0.5> : tensor<2x4xbf16>
  %three = arith.constant dense<3> : tensor<2x3xi8>
  %true = arith.constant dense<true> : tensor<4xi1>
  %four = arith.constant dense<4.0> : tensor<1x1xf64>
  %small = arith.constant 0.25 : f8E4M3FN
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<1.000000e+00> : tensor<2x4xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<5.000000e-01> : tensor<8xbf16>
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<3> : tensor<3x2xi8>
  // CHECK-DAG: %[[D:.*]] = arith.constant dense<true> : tensor<2xi1>
  // CHECK-DAG: %[[E:.*]] = arith.constant 4.000000e+00 : f64
  // CHECK-DAG: %[[F:.*]] = arith.constant dense<2.500000e-01> : tensor<4xf8E4M3FN>
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]], %[[F]]
  %s = tile.splat %one : f32 -> tensor<1x4xf32>
  %a = tile.broadcast %s : tensor<1x4xf32> -> tensor<2x4xf32>
  %b = tile.reshape %half : tensor<2x4xbf16> -> tensor<8xbf16>
  %c = tile.transpose %three [1, 0] : tensor<2x3xi8> -> tensor<3x2xi8>
  %d = tile.slice %true [2] : tensor<4xi1> -> tensor<2xi1>
  %e = tile.scalar %four : tensor<1x1xf64>
  %f = tile.splat %small : f8E4M3FN -> tensor<4xf8E4M3FN>
  return %a, %b, %c, %d, %e, %f
    : tensor<2x4xf32>, tensor<8xbf16>, tensor<3x2xi8>, tensor<2xi1>, f64, tensor<4xf8E4M3FN>
}

// CHECK-LABEL: func.func @scalar_of_splat
// CHECK-SAME: (%[[X:.*]]: f32)
// CHECK-NEXT: return %[[X]]
func.func @scalar_of_splat(%x: f32) -> f32 {
  %t = tile.splat %x : f32 -> tensor<1xf32>
  %y = tile.scalar %t : tensor<1xf32>
  return %y : f32
}

// A constant tile whose elements differ is not one the folders move.
// CHECK-LABEL: func.func @not_a_splat
func.func @not_a_splat() -> tensor<4xi32> {
  // CHECK: tile.reshape
  %t = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %u = tile.reshape %t : tensor<2x2xi32> -> tensor<4xi32>
  return %u : tensor<4xi32>
}
