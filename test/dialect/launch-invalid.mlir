// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

func.func @no_axis() {
  // expected-error@+1 {{'tile.grid' op has 1 to 3 axes, not 0}}
  tile.grid
  return
}

// -----

func.func @four_axes(%n: index) {
  // expected-error@+1 {{'tile.grid' op has 1 to 3 axes, not 4}}
  %i:4 = tile.grid %n, %n, %n, %n
  return
}

// -----

func.func @as_many_ids_as_extents(%n: index) {
  // expected-error@+2 {{'tile.grid' op failed to infer returned types}}
  // expected-error@+1 {{'tile.grid' op inferred type(s) 'index', 'index' are incompatible with return type(s) of operation 'index'}}
  %i = "tile.grid"(%n, %n) : (index, index) -> index
  return
}

// -----

func.func @grid_of_integers(%n: i64) {
  // expected-error@+1 {{'tile.grid' op operand #0 must be variadic of index, but got 'i64'}}
  %i = "tile.grid"(%n) : (i64) -> index
  return
}

// -----

func.func @two_grids(%n: index) {
  %i = tile.grid %n
  // expected-error@+1 {{'tile.grid' op stands once in a kernel}}
  %j = tile.grid %n
  return
}

// -----

func.func @grid_in_branch(%n: index, %c: i1) {
  scf.if %c {
    // expected-error@+1 {{'tile.grid' op must stand at the top level of a kernel}}
    %i = tile.grid %n
  }
  return
}

// -----

%n = arith.constant 1 : index
// expected-error@+1 {{'tile.grid' op must stand at the top level of a kernel}}
%i = tile.grid %n

// -----

func.func @require_in_branch(%c: i1) {
  scf.if %c {
    // expected-error@+1 {{'tile.require' op must stand at the top level of a kernel}}
    tile.require %c, "holds"
  }
  return
}

// -----

func.func @require_of_tile(%c: tensor<4xi1>) {
  // expected-error@+1 {{'tile.require' op operand #0 must be 1-bit signless integer, but got 'tensor<4xi1>'}}
  "tile.require"(%c) {message = "holds"} : (tensor<4xi1>) -> ()
  return
}

// -----

func.func @require_without_message(%c: i1) {
  // expected-error@+1 {{'tile.require' op requires attribute 'message'}}
  "tile.require"(%c) : (i1) -> ()
  return
}

// -----

func.func @workspace_sizes(%n: index) {
  // expected-error@+1 {{'tile.workspace' op needs one size per dimension of its view}}
  %w = tile.workspace %n : !tile.view<2, f32>
  return
}

// -----

func.func @workspace_in_loop(%n: index) {
  scf.for %i = %n to %n step %n {
    // expected-error@+1 {{'tile.workspace' op must stand at the top level of a kernel}}
    %w = tile.workspace %n : !tile.view<1, f32>
  }
  return
}

// -----

func.func @workspace_is_a_view(%n: index) {
  // expected-error@+1 {{'tile.workspace' op result #0 must be A typed window on memory}}
  %w = "tile.workspace"(%n) : (index) -> tensor<4xf32>
  return
}
