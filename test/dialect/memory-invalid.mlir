// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

func.func @size_of_no_dimension(%x: !tile.view<2, f32>) {
  // expected-error@+1 {{'tile.size' op dimension 2 of a rank of 2}}
  %n = tile.size %x, 2 : !tile.view<2, f32>
  return
}

// -----

func.func @size_of_negative_dimension(%x: !tile.view<2, f32>) {
  // expected-error@+1 {{'tile.size' op dimension -1 of a rank of 2}}
  %n = tile.size %x, -1 : !tile.view<2, f32>
  return
}

// -----

func.func @load_rank(%x: !tile.view<2, f32>, %i: index) {
  // expected-error@+1 {{'tile.load' op tile of rank 1 on a view of rank 2}}
  %t = tile.load %x[%i, %i] : !tile.view<2, f32> -> tensor<4xf32>
  return
}

// -----

func.func @load_offsets(%x: !tile.view<2, f32>, %i: index) {
  // expected-error@+1 {{'tile.load' op needs 2 offsets, has 1}}
  %t = tile.load %x[%i] : !tile.view<2, f32> -> tensor<4x4xf32>
  return
}

// -----

func.func @load_element(%x: !tile.view<1, f32>, %i: index) {
  // expected-error@+1 {{'tile.load' op tile of 'f16' on a view of 'f32'}}
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<4xf16>
  return
}

// -----

func.func @load_padding(%x: !tile.view<1, f32>, %i: index, %p: f64) {
  // expected-error@+1 {{'tile.load' op padding of type 'f64' for elements of type 'f32'}}
  %t = tile.load %x[%i] padding %p : f64 : !tile.view<1, f32> -> tensor<4xf32>
  return
}

// -----

func.func @load_dynamic(%x: !tile.view<1, f32>, %i: index) {
  // expected-error@+1 {{'tile.load' op result #0 must be statically shaped tensor}}
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<?xf32>
  return
}

// -----

func.func @load_empty(%x: !tile.view<1, f32>, %i: index) {
  // expected-error@+1 {{'tile.load' op every dimension of a tile is at least 1}}
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<0xf32>
  return
}

// -----

func.func @load_too_large(%x: !tile.view<2, f32>, %i: index) {
  // expected-error@+1 {{'tile.load' op a tile has at most 1048576 elements}}
  %t = tile.load %x[%i, %i] : !tile.view<2, f32> -> tensor<1024x1025xf32>
  return
}

// -----

// The product of the extents does not fit 64 bits.
func.func @load_far_too_large(%x: !tile.view<3, f32>, %i: index) {
  // expected-error@+1 {{'tile.load' op a tile has at most 1048576 elements}}
  %t = tile.load %x[%i, %i, %i] : !tile.view<3, f32> -> tensor<4294967296x4294967296x4xf32>
  return
}

// -----

func.func @load_six_dimensions(%x: !tile.view<5, f32>, %i: index) {
  // expected-error@+1 {{'tile.load' op a tile has 1 to 5 dimensions, not 6}}
  %t = tile.load %x[%i, %i, %i, %i, %i, %i] : !tile.view<5, f32> -> tensor<1x1x1x1x1x1xf32>
  return
}

// -----

func.func @load_no_dimensions(%x: !tile.view<1, f32>) {
  // expected-error@+1 {{'tile.load' op a tile has 1 to 5 dimensions, not 0}}
  %t = tile.load %x[] : !tile.view<1, f32> -> tensor<f32>
  return
}

// -----

func.func @store_rank(%x: !tile.view<2, f32>, %t: tensor<4xf32>, %i: index) {
  // expected-error@+1 {{'tile.store' op tile of rank 1 on a view of rank 2}}
  tile.store %t, %x[%i, %i] : tensor<4xf32>, !tile.view<2, f32>
  return
}

// -----

func.func @store_offsets(%x: !tile.view<1, f32>, %t: tensor<4xf32>, %i: index) {
  // expected-error@+1 {{'tile.store' op needs 1 offsets, has 2}}
  tile.store %t, %x[%i, %i] : tensor<4xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @store_element(%x: !tile.view<1, f32>, %t: tensor<4xi32>, %i: index) {
  // expected-error@+1 {{'tile.store' op tile of 'i32' on a view of 'f32'}}
  tile.store %t, %x[%i] : tensor<4xi32>, !tile.view<1, f32>
  return
}

// -----

func.func @store_of_strange_elements(%x: !tile.view<1, f32>, %t: tensor<4xi7>, %i: index) {
  // expected-error@+1 {{'tile.store' op operand #0 must be statically shaped tensor of a tile element type values, but got 'tensor<4xi7>'}}
  tile.store %t, %x[%i] : tensor<4xi7>, !tile.view<1, f32>
  return
}
