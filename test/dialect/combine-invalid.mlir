// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

func.func @no_operands() {
  // expected-error@+1 {{'tile.reduce' op needs as many results as operands, at least one}}
  "tile.reduce"() ({
    tile.yield
  }) {dim = 0 : i64} : () -> ()
  return
}

// -----

func.func @results(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reduce' op needs as many results as operands, at least one}}
  %s:2 = tile.reduce %t dim 0 : (tensor<4xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @dimension(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reduce' op dimension 1 of a rank of 1}}
  %s = tile.reduce %t dim 1 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @arguments(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reduce' op the region takes 2 scalars, not 1}}
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @terminator(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reduce' op the region must end in tile.yield of 1 scalars}}
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
  }
  return
}

// -----

func.func @yields_nothing(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reduce' op the region must end in tile.yield of 1 scalars}}
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield
  }
  return
}

// -----

func.func @no_block(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reduce' op region #0 ('combine') failed to verify constraint: region with 1 blocks}}
  %s = "tile.reduce"(%t) ({}) {dim = 0 : i64} : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @shapes_differ(%t: tensor<4xf32>, %u: tensor<8xf32>) {
  // expected-error@+1 {{'tile.reduce' op operands differ in shape}}
  %s:2 = tile.reduce %t, %u dim 0 : (tensor<4xf32>, tensor<8xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tile.yield %a, %b : f32, f32
  }
  return
}

// -----

func.func @region_type(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reduce' op the region must combine 'f32' for operand 0}}
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f64, %b: f64):
    tile.yield %a : f64
  }
  return
}

// -----

func.func @result_type(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.reduce' op result 0 must have elements of type 'f32'}}
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf64> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @result_shape(%t: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.reduce' op results keep the operands' shape with the reduced dimension of size 1}}
  %s = tile.reduce %t dim 1 : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @uses_the_outside(%t: tensor<4xf32>, %x: f32) {
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error@+1 {{'arith.addf' op a combine region may only use its own arguments, in straight-line code}}
    %c = arith.addf %a, %x : f32
    tile.yield %c : f32
  }
  return
}

// -----

func.func @yields_the_outside(%t: tensor<4xf32>, %x: f32) {
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error@+1 {{'tile.yield' op a combine region may only use its own arguments, in straight-line code}}
    tile.yield %x : f32
  }
  return
}

// -----

func.func @branches(%t: tensor<4xf32>) {
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error@+1 {{'scf.execute_region' op a combine region may only use its own arguments, in straight-line code}}
    %c = scf.execute_region -> f32 {
      scf.yield %a : f32
    }
    tile.yield %c : f32
  }
  return
}

// -----

func.func @side_effects(%t: tensor<4xf32>) {
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error@+1 {{'tile.print' op a combine region consists of scalar arith, math and tile ops without side effects}}
    tile.print "a", %a : f32
    tile.yield %a : f32
  }
  return
}

// -----

func.func @calls(%t: tensor<4xf32>) {
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error@+1 {{'func.call' op a combine region consists of scalar arith, math and tile ops without side effects}}
    %c = func.call @f(%a) : (f32) -> f32
    tile.yield %c : f32
  }
  return
}
func.func private @f(f32) -> f32

// -----

func.func @tiles_inside(%t: tensor<4xf32>) {
  %s = tile.reduce %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-error@+1 {{'tile.splat' op a combine region consists of scalar arith, math and tile ops without side effects}}
    %c = tile.splat %a : f32 -> tensor<4xf32>
    tile.yield %a : f32
  }
  return
}

// -----

func.func @scan_result(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.scan' op results have the operands' types}}
  %s = tile.scan %t dim 0 : (tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @scan_dimension(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tile.scan' op dimension -1 of a rank of 1}}
  %s = tile.scan %t dim -1 : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @yield_elsewhere() {
  // expected-error@+1 {{'tile.yield' op expects parent op to be one of 'tile.reduce, tile.scan'}}
  tile.yield
}

// -----

func.func @dot_rank(%a: tensor<4x4x4xf32>, %b: tensor<4x4xf32>) {
  // expected-error@+1 {{'tile.dot' op operands are matrices}}
  %c = tile.dot %a, %b, %b : tensor<4x4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
  return
}

// -----

func.func @dot_shapes(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x4xf32>) {
  // expected-error@+1 {{'tile.dot' op shapes do not fit: 'tensor<4x8xf32>' times 'tensor<4x8xf32>' plus 'tensor<4x4xf32>'}}
  %d = tile.dot %a, %b, %c : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x4xf32>
  return
}

// -----

func.func @dot_mixed(%a: tensor<4x4xf16>, %b: tensor<4x4xbf16>, %c: tensor<4x4xf32>) {
  // expected-error@+1 {{'tile.dot' op no dot of 'f16' and 'bf16' with an accumulator of 'f32'}}
  %d = tile.dot %a, %b, %c : tensor<4x4xf16>, tensor<4x4xbf16>, tensor<4x4xf32>
  return
}

// -----

func.func @dot_accumulator(%a: tensor<4x4xf16>) {
  // expected-error@+1 {{'tile.dot' op no dot of 'f16' and 'f16' with an accumulator of 'f16'}}
  %d = tile.dot %a, %a, %a : tensor<4x4xf16>, tensor<4x4xf16>, tensor<4x4xf16>
  return
}

// -----

func.func @dot_integers(%a: tensor<4x4xi32>) {
  // expected-error@+1 {{'tile.dot' op no dot of 'i32' and 'i32' with an accumulator of 'i32'}}
  %d = tile.dot %a, %a, %a : tensor<4x4xi32>, tensor<4x4xi32>, tensor<4x4xi32>
  return
}

// -----

func.func @dot_fast(%a: tensor<4x4xbf16>, %b: tensor<4x4xf32>) {
  // expected-error@+1 {{'tile.dot' op fast_accum is about sums of f8, and the operands are of 'bf16'}}
  %c = tile.dot %a, %a, %b {fast_accum} : tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4x4xf32>
  return
}
