// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

// expected-error@+1 {{a view has 1 to 5 dimensions, not 0}}
func.func private @rank_zero(!tile.view<0, f32>)

// -----

// expected-error@+1 {{a view has 1 to 5 dimensions, not 6}}
func.func private @rank_six(!tile.view<6, f32>)

// -----

// expected-error@+1 {{a view's elements are of a tile element type, not 'index'}}
func.func private @index_elements(!tile.view<1, index>)

// -----

// expected-error@+1 {{a view's elements are of a tile element type, not 'i3'}}
func.func private @odd_width(!tile.view<1, i3>)

// -----

// expected-error@+1 {{a view's elements are of a tile element type, not 'si32'}}
func.func private @signedness(!tile.view<1, si32>)

// -----

// expected-error@+1 {{a view's elements are of a tile element type, not 'f128'}}
func.func private @other_float(!tile.view<1, f128>)

// -----

// expected-error@+1 {{a view's elements are of a tile element type, not 'tensor<4xf32>'}}
func.func private @tiles(!tile.view<1, tensor<4xf32>>)

// -----

// expected-error@+1 {{expected ','}}
func.func private @no_element(!tile.view<1>)

// -----

// expected-error@+2 {{expected integer value}}
// expected-error@+1 {{failed to parse Tile_ViewType parameter 'rank' which is to be a `unsigned`}}
func.func private @no_rank(!tile.view<f32>)
