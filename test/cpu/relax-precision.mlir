// SPDX-License-Identifier: Apache-2.0
// What is only ever seen rounded to 16 bits is marked, and a divisor that is one for the row is inverted once.
// RUN: %lower %s | FileCheck %s

// CHECK-LABEL: func.func private @instance
// CHECK: math.exp %{{.*}} {tile.coarse, tile.relaxed}
// CHECK: %[[RECIPROCAL:.*]] = arith.divf %{{.*}}, %[[SUM:.*]] : f32
// CHECK: arith.bitcast %[[SUM]] : f32 to i32
// CHECK: %[[TINY:.*]] = arith.cmpi ult
// CHECK: scf.if %[[TINY]] -> (vector<32xf32>) {
// CHECK: arith.divf %[[E:.*]], %{{.*}} : vector<32xf32>
// CHECK: } else {
// CHECK-NEXT: %[[ALL:.*]] = vector.splat %[[RECIPROCAL]]
// CHECK-NEXT: arith.mulf %[[E]], %[[ALL]] : vector<32xf32>
func.func @rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x64xf32>
  %e = math.exp %t : tensor<1x64xf32>
  %s = tile.reduce %e dim 1 : (tensor<1x64xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %w = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x64xf32>
  %q = arith.divf %e, %w : tensor<1x64xf32>
  %r = tile.cast %q : tensor<1x64xf32> -> tensor<1x64xbf16>
  tile.store %r, %y[%i, %zero] : tensor<1x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// Another shape of program, a gate in f16: the sum is marked; quotients of tiles stay quotients.
// CHECK-LABEL: func.func private @instance
// CHECK: math.tanh %{{[^{]*}} : vector
// CHECK: arith.addf %{{.*}} {tile.relaxed}
// CHECK: arith.divf %{{.*}} {tile.relaxed} : vector
func.func @gate(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                %y: !tile.view<1, f16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %h = math.tanh %t : tensor<64xf32>
  %d = arith.addf %h, %one : tensor<64xf32>
  %g = arith.divf %d, %t : tensor<64xf32>
  %r = tile.cast %g : tensor<64xf32> -> tensor<64xf16>
  tile.store %r, %y[%i] : tensor<64xf16>, !tile.view<1, f16>
  return
}

// -----

// Seen as f32, or in a difference: nothing is marked.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: tile.relaxed
// CHECK-LABEL: @tenon_run
func.func @exact(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                 %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                 %z: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %e = math.exp %t : tensor<64xf32>
  tile.store %e, %y[%i] : tensor<64xf32>, !tile.view<1, f32>
  %f = math.exp %e : tensor<64xf32>
  %d = arith.subf %f, %t : tensor<64xf32>
  %r = tile.cast %d : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %z[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// -----

// A sum that a loop carries: what is added is marked, what the sum is scaled by is not.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for
// CHECK: math.exp2 %{{.*}} {tile.coarse, tile.relaxed} : vector
// CHECK: math.exp2 %{{[^{]*}} : vector
func.func @decaying(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %none = arith.constant dense<0.0> : tensor<1x64xf32>
  %total = scf.for %j = %zero to %n step %one iter_args(%sum = %none) -> tensor<1x64xf32> {
    %t = tile.load %x[%j, %zero] : !tile.view<2, f32> -> tensor<1x64xf32>
    %e = math.exp2 %t : tensor<1x64xf32>
    %m = arith.negf %t : tensor<1x64xf32>
    %f = math.exp2 %m : tensor<1x64xf32>
    %scaled = arith.mulf %sum, %f : tensor<1x64xf32>
    %next = arith.addf %scaled, %e : tensor<1x64xf32>
    scf.yield %next : tensor<1x64xf32>
  }
  %r = tile.cast %total : tensor<1x64xf32> -> tensor<1x64xbf16>
  tile.store %r, %y[%zero, %zero] : tensor<1x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// Squared in each iteration, an error would double each time; and a sum that begins below zero may cancel.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: tile.relaxed
// CHECK-LABEL: @tenon_run
func.func @growing(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                   %y: !tile.view<2, bf16> {tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %none = arith.constant dense<0.0> : tensor<1x64xf32>
  %below = arith.constant dense<-1.0> : tensor<1x64xf32>
  %totals:2 = scf.for %j = %zero to %n step %one iter_args(%a = %none, %b = %below)
      -> (tensor<1x64xf32>, tensor<1x64xf32>) {
    %t = tile.load %x[%j, %zero] : !tile.view<2, f32> -> tensor<1x64xf32>
    %e = math.exp2 %t : tensor<1x64xf32>
    %square = arith.mulf %a, %a : tensor<1x64xf32>
    %nextA = arith.addf %square, %e : tensor<1x64xf32>
    %f = math.exp %t : tensor<1x64xf32>
    %nextB = arith.addf %b, %f : tensor<1x64xf32>
    scf.yield %nextA, %nextB : tensor<1x64xf32>, tensor<1x64xf32>
  }
  %product = arith.mulf %totals#0, %totals#1 : tensor<1x64xf32>
  %r = tile.cast %product : tensor<1x64xf32> -> tensor<1x64xbf16>
  tile.store %r, %y[%zero, %zero] : tensor<1x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// A row of logits at some temperature: what a power that need not be exact is taken of may be one multiply-add.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[PRODUCT:.*]] = arith.mulf %{{.*}} fastmath<contract> : vector<32xf32>
// CHECK: %[[ARGUMENT:.*]] = arith.subf %[[PRODUCT]], %{{.*}} fastmath<contract> : vector<32xf32>
// CHECK: math.exp2 %[[ARGUMENT]] {tile.coarse, tile.relaxed}
func.func @temperature(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                       %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64}, %s: f32, %m: f32, %i: index)
    attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %factor = tile.splat %s : f32 -> tensor<64xf32>
  %most = tile.splat %m : f32 -> tensor<64xf32>
  %product = arith.mulf %t, %factor : tensor<64xf32>
  %argument = arith.subf %product, %most : tensor<64xf32>
  %e = math.exp2 %argument : tensor<64xf32>
  %r = tile.cast %e : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// -----

// The argument is also stored, in f32: that is the product rounded, and then the difference.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: fastmath<contract>
// CHECK: math.exp2 %{{.*}} {tile.coarse, tile.relaxed}
// CHECK-NOT: fastmath<contract>
// CHECK: return
func.func @temperature_and_argument(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                                    %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                                    %z: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %s: f32, %m: f32, %i: index)
    attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %factor = tile.splat %s : f32 -> tensor<64xf32>
  %most = tile.splat %m : f32 -> tensor<64xf32>
  %product = arith.mulf %t, %factor : tensor<64xf32>
  %argument = arith.subf %product, %most : tensor<64xf32>
  tile.store %argument, %z[%i] : tensor<64xf32>, !tile.view<1, f32>
  %e = math.exp2 %argument : tensor<64xf32>
  %r = tile.cast %e : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// -----

// Seen as f16 by one and as bf16 by another: not coarse. A quotient that only bf16 sees may be a product with a reciprocal,
// where that is no infinity: not where the divisor may be a subnormal number.
// CHECK-LABEL: func.func private @instance
// CHECK: math.exp %{{.*}} {tile.relaxed}
// CHECK: arith.divf %{{.*}} fastmath<arcp> {tile.coarse, tile.relaxed} : vector
// CHECK: arith.divf %{{[0-9]+}}, %{{[0-9]+}} {tile.coarse, tile.relaxed} : vector
func.func @two_grains(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                      %y: !tile.view<1, bf16> {tile.unit_stride = 0 : i64},
                      %z: !tile.view<1, f16> {tile.unit_stride = 0 : i64}, %i: index) attributes {tile.no_overlap} {
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %e = math.exp %t : tensor<64xf32>
  %h = tile.cast %e : tensor<64xf32> -> tensor<64xf16>
  tile.store %h, %z[%i] : tensor<64xf16>, !tile.view<1, f16>
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %more = arith.addf %t, %one : tensor<64xf32>
  %q = arith.divf %e, %more : tensor<64xf32>
  %p = arith.divf %q, %t : tensor<64xf32>
  %r = tile.cast %p : tensor<64xf32> -> tensor<64xbf16>
  tile.store %r, %y[%i] : tensor<64xbf16>, !tile.view<1, bf16>
  return
}

// -----

// Powers that are seen as f32, but only in the sum of a row: marked as summands.
// CHECK-LABEL: func.func private @instance
// CHECK: math.exp2 %{{.*}} {tile.summed} : vector
// CHECK: math.exp %{{.*}} {tile.summed} : vector
func.func @log_sums(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<1x512xf32>
  %e = math.exp2 %t : tensor<1x512xf32>
  %s = tile.reduce %e dim 1 : (tensor<1x512xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %w = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x512xf32>
  %d = arith.subf %t, %w : tensor<1x512xf32>
  %f = math.exp %d : tensor<1x512xf32>
  %r = tile.reduce %f dim 1 : (tensor<1x512xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %r, %y[%i, %zero] : tensor<1x1xf32>, !tile.view<2, f32>
  return
}

// -----

// A power that is stored besides, the largest of some, sums of a few and of columns: as they are.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: tile.summed
// CHECK-LABEL: @tenon_run
func.func @seen(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                %z: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: index) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %t = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<64x512xf32>
  %e = math.exp %t : tensor<64x512xf32>
  tile.store %e, %y[%i, %zero] : tensor<64x512xf32>, !tile.view<2, f32>
  %s = tile.reduce %e dim 1 : (tensor<64x512xf32>) -> tensor<64x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %s, %z[%i, %zero] : tensor<64x1xf32>, !tile.view<2, f32>
  %f = math.exp2 %t : tensor<64x512xf32>
  %m = tile.reduce %f dim 1 : (tensor<64x512xf32>) -> tensor<64x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %m, %z[%i, %one] : tensor<64x1xf32>, !tile.view<2, f32>
  %n = arith.negf %t : tensor<64x512xf32>
  %g = math.exp2 %n : tensor<64x512xf32>
  %columns = tile.reduce %g dim 0 : (tensor<64x512xf32>) -> tensor<1x512xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %columns, %y[%zero, %zero] : tensor<1x512xf32>, !tile.view<2, f32>
  %few = tile.load %x[%i, %zero] : !tile.view<2, f32> -> tensor<64x32xf32>
  %h = math.exp2 %few : tensor<64x32xf32>
  %short = tile.reduce %h dim 1 : (tensor<64x32xf32>) -> tensor<64x1xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %short, %z[%zero, %zero] : tensor<64x1xf32>, !tile.view<2, f32>
  return
}
