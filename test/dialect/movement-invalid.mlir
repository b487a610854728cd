// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

func.func @splat_element(%s: f32) {
  // expected-error@+1 {{'tile.splat' op scalar and tile differ in element type}}
  %t = tile.splat %s : f32 -> tensor<4xf64>
  return
}

// -----

func.func @splat_rank(%s: f32) {
  // expected-error@+1 {{'tile.splat' op a tile has 1 to 5 dimensions, not 0}}
  %t = tile.splat %s : f32 -> tensor<f32>
  return
}

// -----

func.func @iota_dimension() {
  // expected-error@+1 {{'tile.iota' op dimension 1 of a rank of 1}}
  %t = tile.iota 1 : tensor<4xi32>
  return
}

// -----

func.func @iota_of_floats() {
  // expected-error@+1 {{'tile.iota' op result #0 must be statically shaped tensor of 64-bit signless integer or 32-bit signless integer values, but got 'tensor<4xf32>'}}
  %t = tile.iota 0 : tensor<4xf32>
  return
}

// -----

func.func @broadcast_size(%t: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.broadcast' op cannot broadcast a dimension of size 2 to 8}}
  %u = tile.broadcast %t : tensor<4x2xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_rank(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.broadcast' op operand and result must have the same rank and element type}}
  %u = tile.broadcast %t : tensor<4xf32> -> tensor<1x4xf32>
  return
}

// -----

func.func @broadcast_too_large(%t: tensor<1x1xf32>) {
  // expected-error@+1 {{'tile.broadcast' op a tile has at most 1048576 elements}}
  %u = tile.broadcast %t : tensor<1x1xf32> -> tensor<2048x1024xf32>
  return
}

// -----

func.func @reshape_count(%t: tensor<4x3xf32>) {
  // expected-error@+1 {{'tile.reshape' op operand and result must have the same elements}}
  %u = tile.reshape %t : tensor<4x3xf32> -> tensor<13xf32>
  return
}

// -----

func.func @reshape_element(%t: tensor<4x3xf32>) {
  // expected-error@+1 {{'tile.reshape' op operand and result must have the same elements}}
  %u = tile.reshape %t : tensor<4x3xf32> -> tensor<12xi32>
  return
}

// -----

func.func @reshape_empty(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reshape' op every dimension of a tile is at least 1}}
  %u = tile.reshape %t : tensor<4xf32> -> tensor<4x0xf32>
  return
}

// -----

func.func @transpose_twice_the_same(%t: tensor<4x4xf32>) {
  // expected-error@+1 {{'tile.transpose' op the permutation must name every dimension once}}
  %u = tile.transpose %t [1, 1] : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_out_of_range(%t: tensor<4x4xf32>) {
  // expected-error@+1 {{'tile.transpose' op the permutation must name every dimension once}}
  %u = tile.transpose %t [0, 2] : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_negative(%t: tensor<4x4xf32>) {
  // expected-error@+1 {{'tile.transpose' op the permutation must name every dimension once}}
  %u = tile.transpose %t [-1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_sizes(%t: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.transpose' op dimension 0 must have size 8}}
  %u = tile.transpose %t [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @transpose_rank(%t: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.transpose' op operand, result and permutation must have the same rank}}
  %u = tile.transpose %t [0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_past_the_end(%t: tensor<8xf32>) {
  // expected-error@+1 {{'tile.slice' op 4 elements from 5 on, of a dimension of 8}}
  %u = tile.slice %t [5] : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @slice_negative(%t: tensor<8xf32>) {
  // expected-error@+1 {{'tile.slice' op 4 elements from -1 on, of a dimension of 8}}
  %u = tile.slice %t [-1] : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @slice_far_away(%t: tensor<8xf32>) {
  // expected-error@+1 {{'tile.slice' op 4 elements from 9223372036854775807 on, of a dimension of 8}}
  %u = tile.slice %t [9223372036854775807] : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @slice_larger(%t: tensor<8xf32>) {
  // expected-error@+1 {{'tile.slice' op 9 elements from 0 on, of a dimension of 8}}
  %u = tile.slice %t [0] : tensor<8xf32> -> tensor<9xf32>
  return
}

// -----

func.func @slice_rank(%t: tensor<8xf32>) {
  // expected-error@+1 {{'tile.slice' op operand, result and offsets must have the same rank}}
  %u = tile.slice %t [0, 0] : tensor<8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @concat_nothing() {
  // expected-error@+1 {{'tile.concat' op needs at least one operand}}
  %u = "tile.concat"() {dim = 0 : i64} : () -> tensor<4xf32>
  return
}

// -----

func.func @concat_dimension(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.concat' op dimension 1 of a rank of 1}}
  %u = tile.concat %t, %t dim 1 : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

func.func @concat_elements(%t: tensor<4xf32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'tile.concat' op operands and result must have the same rank and element type}}
  %u = tile.concat %t, %i dim 0 : tensor<4xf32>, tensor<4xi32> -> tensor<8xf32>
  return
}

// -----

func.func @concat_other_dimensions(%t: tensor<4x2xf32>, %i: tensor<4x3xf32>) {
  // expected-error@+1 {{'tile.concat' op operands differ in dimension 1}}
  %u = tile.concat %t, %i dim 0 : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<8x2xf32>
  return
}

// -----

func.func @concat_total(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.concat' op the result must have size 8 in dimension 0}}
  %u = tile.concat %t, %t dim 0 : tensor<4xf32>, tensor<4xf32> -> tensor<9xf32>
  return
}

// -----

func.func @scalar_of_many(%t: tensor<2xf32>) {
  // expected-error@+1 {{'tile.scalar' op needs a tile of one element, not 'tensor<2xf32>'}}
  %s = tile.scalar %t : tensor<2xf32>
  return
}

// -----

func.func @scalar_of_rank_zero(%t: tensor<f32>) {
  // expected-error@+1 {{'tile.scalar' op a tile has 1 to 5 dimensions, not 0}}
  %s = tile.scalar %t : tensor<f32>
  return
}

// -----

func.func @scalar_of_unranked(%t: tensor<*xf32>) {
  // expected-error@+1 {{'tile.scalar' op operand #0 must be statically shaped tensor of a tile element type values, but got 'tensor<*xf32>'}}
  %s = "tile.scalar"(%t) : (tensor<*xf32>) -> f32
  return
}

// -----

func.func @scalar_result(%t: tensor<1xf32>) {
  // expected-error@+2 {{'tile.scalar' op failed to infer returned types}}
  // expected-error@+1 {{'tile.scalar' op inferred type(s) 'f32' are incompatible with return type(s) of operation 'f64'}}
  %s = "tile.scalar"(%t) : (tensor<1xf32>) -> f64
  return
}
