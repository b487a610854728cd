// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

func.func @assert_type(%c: i8) {
  // expected-error@+1 {{'tile.assert' op operand #0 must be 1-bit signless integer or statically shaped tensor of 1-bit signless integer values, but got 'i8'}}
  tile.assert %c, "never" : i8
  return
}

// -----

func.func @assert_tile(%c: tensor<i1>) {
  // expected-error@+1 {{'tile.assert' op a tile has 1 to 5 dimensions, not 0}}
  tile.assert %c, "never" : tensor<i1>
  return
}

// -----

func.func @print_type(%x: !tile.view<1, f32>) {
  // expected-error@+1 {{'tile.print' op operand #0 must be a scalar or statically shaped tensor of a tile element type values, but got '!tile.view<1, f32>'}}
  tile.print "x", %x : !tile.view<1, f32>
  return
}

// -----

func.func @print_tile(%x: tensor<0xf32>) {
  // expected-error@+1 {{'tile.print' op every dimension of a tile is at least 1}}
  tile.print "x", %x : tensor<0xf32>
  return
}
