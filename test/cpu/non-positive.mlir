// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// A row less its maximum.
// CHECK-LABEL: func.func private @instance
// CHECK: math.exp %{{.*}} {tile.non_positive}
func.func @rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x64xf32>
  %m = tile.reduce %t dim 1 : (tensor<1x64xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  %w = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x64xf32>
  %d = arith.subf %t, %w : tensor<1x64xf32>
  %e = math.exp %d : tensor<1x64xf32>
  tile.store %e, %y[%i, %zero] : tensor<1x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Columns of a block and a maximum from elsewhere, with something else in the place of minus infinity.
// CHECK-LABEL: func.func private @instance
// CHECK: math.exp %{{.*}} {tile.non_positive}
func.func @columns(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                   %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %old: f32, %i: index)
    attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %none = arith.constant dense<0.0> : tensor<1x64xf32>
  %least = arith.constant dense<0xFF800000> : tensor<1x64xf32>
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<8x64xf32>
  %m = tile.reduce %t dim 0 : (tensor<8x64xf32>) -> tensor<1x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  %before = tile.splat %old : f32 -> tensor<1x64xf32>
  %raised = arith.maximumf %before, %m : tensor<1x64xf32>
  %isNone = arith.cmpf oeq, %raised, %least : tensor<1x64xf32>
  %shift = arith.select %isNone, %none, %raised : tensor<1x64xi1>, tensor<1x64xf32>
  %w = tile.broadcast %shift : tensor<1x64xf32> -> tensor<8x64xf32>
  %d = arith.subf %t, %w : tensor<8x64xf32>
  %e = math.exp %d : tensor<8x64xf32>
  tile.store %e, %y[%i, %zero] : tensor<8x64xf32>, !tile.view<2, f32>
  return
}

// -----

// The maximum of something else, and a minimum: nothing is known.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: tile.non_positive
// CHECK-LABEL: @tenon_run
func.func @others(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                  %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x64xf32>
  %u = arith.addf %t, %t : tensor<1x64xf32>
  %m = tile.reduce %t dim 1 : (tensor<1x64xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  %n = tile.reduce %t dim 1 : (tensor<1x64xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.minimumf %a, %b : f32
    tile.yield %c : f32
  }
  %w = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x64xf32>
  %v = tile.broadcast %n : tensor<1x1xf32> -> tensor<1x64xf32>
  %d = arith.subf %u, %w : tensor<1x64xf32>
  %e = math.exp %d : tensor<1x64xf32>
  %f = arith.subf %t, %v : tensor<1x64xf32>
  %g = math.exp %f : tensor<1x64xf32>
  %r = arith.addf %e, %g : tensor<1x64xf32>
  tile.store %r, %y[%i, %zero] : tensor<1x64xf32>, !tile.view<2, f32>
  return
}

// -----

// The negative of a magnitude, as in log(1 + e^x), and a magnitude times a negative number (a Laplace density); but not times a
// positive one, nor the negative of anything else.
// CHECK-LABEL: func.func private @instance
// CHECK: arith.negf
// CHECK: math.exp %{{.*}} {tile.non_positive}
// CHECK: math.exp %{{.*}} {tile.non_positive}
// CHECK: math.exp %{{[0-9]+}} : vector
// CHECK: math.exp %{{[0-9]+}} : vector
func.func @magnitudes(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                      %i: index) attributes {tile.no_overlap} {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<32xf32>
  %m = math.absf %a : tensor<32xf32>
  %n = arith.negf %m : tensor<32xf32>
  %e = math.exp %n : tensor<32xf32>
  %c = arith.constant dense<-2.5> : tensor<32xf32>
  %p = arith.mulf %m, %c : tensor<32xf32>
  %f = math.exp %p : tensor<32xf32>
  %d = arith.constant dense<2.5> : tensor<32xf32>
  %q = arith.mulf %m, %d : tensor<32xf32>
  %g = math.exp %q : tensor<32xf32>
  %o = arith.negf %a : tensor<32xf32>
  %h = math.exp %o : tensor<32xf32>
  %s = arith.addf %e, %f : tensor<32xf32>
  %t = arith.addf %s, %g : tensor<32xf32>
  %u = arith.addf %t, %h : tensor<32xf32>
  tile.store %u, %y[%i] : tensor<32xf32>, !tile.view<1, f32>
  return
}
