// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

func.func @cast_shape(%t: tensor<4xi8>) {
  // expected-error@+1 {{'tile.cast' op operand and result must have the same shape}}
  %u = tile.cast %t : tensor<4xi8> -> tensor<8xi8>
  return
}

// -----

func.func @cast_scalar_to_tile(%s: f32) {
  // expected-error@+1 {{'tile.cast' op operand and result must have the same shape}}
  %u = tile.cast %s : f32 -> tensor<1xf64>
  return
}

// -----

// Both have the empty shape; a tile of rank 0 is none.
func.func @cast_scalar_to_rank_zero(%s: f32) {
  // expected-error@+1 {{'tile.cast' op a tile has 1 to 5 dimensions, not 0}}
  %u = tile.cast %s : f32 -> tensor<f64>
  return
}

// -----

func.func @cast_to_strange_type(%s: f32) {
  // expected-error@+1 {{'tile.cast' op result #0 must be a scalar or statically shaped tensor of a tile element type values, but got 'f128'}}
  %u = tile.cast %s : f32 -> f128
  return
}

// -----

func.func @div_of_floats(%s: f32) {
  // expected-error@+1 {{'tile.div' op operand #0 must be an integer, an index or a tile of integers, but got 'f32'}}
  %u = tile.div %s, %s : f32
  return
}

// -----

func.func @rem_of_booleans(%s: i1) {
  // expected-error@+1 {{'tile.rem' op operand #0 must be an integer, an index or a tile of integers, but got 'i1'}}
  %u = tile.rem %s, %s : i1
  return
}

// -----

func.func @shl_types(%s: i32, %t: i64) {
  // expected-error@+1 {{'tile.shl' op requires the same type for all operands and results}}
  %u = "tile.shl"(%s, %t) : (i32, i64) -> i32
  return
}

// -----

func.func @div_rank(%t: tensor<i32>) {
  // expected-error@+1 {{'tile.div' op a tile has 1 to 5 dimensions, not 0}}
  %u = tile.div %t, %t : tensor<i32>
  return
}

// -----

func.func @rem_empty(%t: tensor<0xi32>) {
  // expected-error@+1 {{'tile.rem' op every dimension of a tile is at least 1}}
  %u = tile.rem %t, %t : tensor<0xi32>
  return
}

// -----

func.func @shl_too_large(%t: tensor<2000000xi32>) {
  // expected-error@+1 {{'tile.shl' op a tile has at most 1048576 elements}}
  %u = tile.shl %t, %t : tensor<2000000xi32>
  return
}

// -----

func.func @shr_rank(%t: tensor<1x1x1x1x1x1xi32>) {
  // expected-error@+1 {{'tile.shr' op a tile has 1 to 5 dimensions, not 6}}
  %u = tile.shr %t, %t : tensor<1x1x1x1x1x1xi32>
  return
}

// -----

func.func @philox_shape(%s: i64, %c: tensor<4xi64>) {
  // expected-error@+1 {{'tile.philox' op results must have the shape of the counter}}
  %w:4 = tile.philox %s, %c : tensor<4xi64> -> tensor<4xi32>, tensor<4xi32>, tensor<8xi32>, tensor<4xi32>
  return
}

// -----

func.func @philox_words(%s: i64, %c: tensor<4xi64>) {
  // expected-error@+1 {{'tile.philox' op result #1 must be statically shaped tensor of 32-bit signless integer values, but got 'tensor<4xi64>'}}
  %w:4 = tile.philox %s, %c : tensor<4xi64> -> tensor<4xi32>, tensor<4xi64>, tensor<4xi32>, tensor<4xi32>
  return
}

// -----

func.func @random_bits_shape(%s: i64, %c: tensor<4xi64>) {
  // expected-error@+1 {{'tile.random_bits' op the result must have the shape of the counter}}
  %b = tile.random_bits %s, %c : tensor<4xi64> -> tensor<8xi32>
  return
}

// -----

func.func @random_bits_rounds(%s: i64, %c: tensor<4xi64>) {
  // expected-error@+1 {{'tile.random_bits' op the generator has 7 to 10 rounds}}
  %b = tile.random_bits %s, %c {rounds = 6 : i64} : tensor<4xi64> -> tensor<4xi16>
  return
}

// -----

func.func @random_bits_counter(%s: i64, %c: tensor<4xi32>) {
  // expected-error@+1 {{'tile.random_bits' op operand #1 must be statically shaped tensor of 64-bit signless integer values, but got 'tensor<4xi32>'}}
  %b = tile.random_bits %s, %c : tensor<4xi32> -> tensor<4xi32>
  return
}
