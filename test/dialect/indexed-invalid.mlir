// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

func.func @gather_index_tiles(%x: !tile.view<2, f32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.gather' op needs 2 index tiles, has 1}}
  %t = tile.gather %x[%i : tensor<8xi32>] : !tile.view<2, f32> -> tensor<8xf32>
  return
}

// -----

func.func @gather_element(%x: !tile.view<1, f32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.gather' op tile of 'f16' on a view of 'f32'}}
  %t = tile.gather %x[%i : tensor<8xi32>] : !tile.view<1, f32> -> tensor<8xf16>
  return
}

// -----

func.func @gather_index_shape(%x: !tile.view<1, f32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{'tile.gather' op index tiles must have the shape of the value}}
  %t = tile.gather %x[%i : tensor<4xi32>] : !tile.view<1, f32> -> tensor<8xf32>
  return
}

// -----

func.func @gather_mask_shape(%x: !tile.view<1, f32>, %i: tensor<8xi32>, %m: tensor<4xi1>) {
  // expected-error@+1 {{'tile.gather' op the mask must have the shape of the value}}
  %t = tile.gather %x[%i : tensor<8xi32>] mask %m : tensor<4xi1> : !tile.view<1, f32> -> tensor<8xf32>
  return
}

// -----

func.func @gather_padding(%x: !tile.view<1, f32>, %i: tensor<8xi32>, %p: i32) {
  // expected-error@+1 {{'tile.gather' op padding of type 'i32' for elements of type 'f32'}}
  %t = tile.gather %x[%i : tensor<8xi32>] padding %p : i32 : !tile.view<1, f32> -> tensor<8xf32>
  return
}

// -----

func.func @gather_narrow_index(%x: !tile.view<1, f32>, %i: tensor<8xi16>) {
  // expected-error@+1 {{'tile.gather' op operand #1 must be variadic of statically shaped tensor of 64-bit signless integer or 32-bit signless integer values, but got 'tensor<8xi16>'}}
  %t = tile.gather %x[%i : tensor<8xi16>] : !tile.view<1, f32> -> tensor<8xf32>
  return
}

// -----

func.func @gather_too_large(%x: !tile.view<1, f32>, %i: tensor<1048577xi32>) {
  // expected-error@+1 {{'tile.gather' op a tile has at most 1048576 elements}}
  %t = tile.gather %x[%i : tensor<1048577xi32>] : !tile.view<1, f32> -> tensor<1048577xf32>
  return
}

// -----

func.func @scatter_index_tiles(%x: !tile.view<1, f32>, %v: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.scatter' op needs 1 index tiles, has 2}}
  tile.scatter %v, %x[%i, %i : tensor<8xi32>, tensor<8xi32>] : tensor<8xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @scatter_element(%x: !tile.view<1, f64>, %v: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.scatter' op tile of 'f32' on a view of 'f64'}}
  tile.scatter %v, %x[%i : tensor<8xi32>] : tensor<8xf32>, !tile.view<1, f64>
  return
}

// -----

func.func @scatter_index_shape(%x: !tile.view<1, f32>, %v: tensor<8xf32>, %i: tensor<8x1xi32>) {
  // expected-error@+1 {{'tile.scatter' op index tiles must have the shape of the value}}
  tile.scatter %v, %x[%i : tensor<8x1xi32>] : tensor<8xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @scatter_mask_shape(%x: !tile.view<1, f32>, %v: tensor<8xf32>, %i: tensor<8xi32>, %m: tensor<1xi1>) {
  // expected-error@+1 {{'tile.scatter' op the mask must have the shape of the value}}
  tile.scatter %v, %x[%i : tensor<8xi32>] mask %m : tensor<1xi1> : tensor<8xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @atomic_of_halves(%x: !tile.view<1, f16>, %v: tensor<8xf16>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.atomic_rmw' op needs elements of 32 or 64 bits, not 'f16'}}
  %o = tile.atomic_rmw add %v, %x[%i : tensor<8xi32>] : tensor<8xf16>, !tile.view<1, f16>
  return
}

// -----

func.func @atomic_index_tiles(%x: !tile.view<2, f32>, %v: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.atomic_rmw' op needs 2 index tiles, has 1}}
  %o = tile.atomic_rmw add %v, %x[%i : tensor<8xi32>] : tensor<8xf32>, !tile.view<2, f32>
  return
}

// -----

func.func @atomic_unknown_kind(%x: !tile.view<1, f32>, %v: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{expected string or keyword containing one of the following enum values for attribute 'kind' [add, max, min, exchange]}}
  %o = tile.atomic_rmw multiply %v, %x[%i : tensor<8xi32>] : tensor<8xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @atomic_kind_number(%x: !tile.view<1, f32>, %v: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.atomic_rmw' op attribute 'kind' failed to satisfy constraint: what an atomic update does}}
  %o = "tile.atomic_rmw"(%v, %x, %i) {kind = 4 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>}
    : (tensor<8xf32>, !tile.view<1, f32>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @atomic_result(%x: !tile.view<1, f32>, %v: tensor<8xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.atomic_rmw' op failed to verify that all of {value, old} have same type}}
  %o = "tile.atomic_rmw"(%v, %x, %i) {kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>}
    : (tensor<8xf32>, !tile.view<1, f32>, tensor<8xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @segments_do_not_add_up(%x: !tile.view<1, f32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.gather' op operand count (2) does not match with the total size (3) specified in attribute 'operandSegmentSizes'}}
  %o = "tile.gather"(%x, %i) {operandSegmentSizes = array<i32: 1, 1, 1, 0>}
    : (!tile.view<1, f32>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @cas_of_bytes(%x: !tile.view<1, i8>, %v: tensor<8xi8>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.atomic_cas' op needs elements of 32 or 64 bits, not 'i8'}}
  %o = tile.atomic_cas %v, %v, %x[%i : tensor<8xi32>] : tensor<8xi8>, !tile.view<1, i8>
  return
}

// -----

func.func @cas_element(%x: !tile.view<1, i64>, %v: tensor<8xi32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tile.atomic_cas' op tile of 'i32' on a view of 'i64'}}
  %o = tile.atomic_cas %v, %v, %x[%i : tensor<8xi32>] : tensor<8xi32>, !tile.view<1, i64>
  return
}
