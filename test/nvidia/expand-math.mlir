// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --tenon-nvidia-expand-math | FileCheck %s

// exp: round, reduce in two steps, the unit, one product with a power of two.
// CHECK-LABEL: @exp
// CHECK: %[[SUM:.*]] = math.fma
// CHECK: %[[MAX:.*]] = arith.maximumf %[[SUM]]
// CHECK: %[[N:.*]] = arith.minimumf %[[MAX]]
// CHECK: arith.subf %{{.*}}, %[[N]]
// CHECK: math.fma
// CHECK: math.fma
// CHECK: nvidia.approx ex2 %{{.*}} {nvidia.flush}
// CHECK: arith.shli
// CHECK: arith.mulf
// CHECK-NOT: math.exp
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// exp2 may give subnormals, which count here.
// CHECK-LABEL: @exp2
// CHECK-NEXT: nvidia.approx ex2 %{{[a-z0-9]+}}{{$}}
func.func @exp2(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}

// 1 + erf(x), where a small error does not matter: a power of two and a choice.
// CHECK-LABEL: @relaxed_one_plus_erf
// CHECK: %[[M:.*]] = math.absf %[[X:[a-z0-9]+]]
// CHECK-COUNT-8: math.fma
// CHECK: arith.mulf %[[M]]
// CHECK: %[[E:.*]] = nvidia.approx ex2 %{{.*}} {nvidia.flush}
// CHECK: %[[D:.*]] = arith.subf %{{.*}}, %[[E]]
// CHECK: arith.select %{{.*}}, %[[E]], %[[D]]
// CHECK-NOT: math.erf
func.func @relaxed_one_plus_erf(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %e = math.erf %x : f32
  %y = arith.addf %one, %e {nvidia.relaxed} : f32
  return %y : f32
}

// Where it does matter, or something else wants erf, the sum is a sum.
// CHECK-LABEL: @one_plus_erf
// CHECK-COUNT-12: math.fma
// CHECK: arith.addf
// CHECK-COUNT-12: math.fma
// CHECK: arith.addf
func.func @one_plus_erf(%x: f32, %z: f32) -> (f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %e = math.erf %x : f32
  %y = arith.addf %e, %one : f32
  %f = math.erf %z : f32
  %w = arith.addf %f, %one {nvidia.relaxed} : f32
  return %y, %w, %f : f32, f32, f32
}

// CHECK-LABEL: @relaxed_erf
// CHECK-COUNT-4: math.fma
// CHECK: nvidia.approx ex2 %{{.*}} {nvidia.flush}
// CHECK: math.fma
// CHECK-NOT: math.fma
// CHECK: return
func.func @relaxed_erf(%x: f32) -> f32 {
  %y = math.erf %x {nvidia.relaxed} : f32
  return %y : f32
}

// 16-bit floats go through f32, vectors element by element.
// CHECK-LABEL: @vector
// CHECK-COUNT-2: nvidia.approx rsqrt
// CHECK-NOT: nvidia.approx
func.func @vector(%x: vector<2xbf16>) -> vector<2xbf16> {
  %y = math.rsqrt %x : vector<2xbf16>
  return %y : vector<2xbf16>
}

// What the unit does not do well enough is as everywhere.
// CHECK-LABEL: @others
// CHECK-NOT: nvidia.approx
// CHECK-NOT: math.log
// CHECK-NOT: math.exp
func.func @others(%x: f32, %z: f64) -> (f32, f64) {
  %y = math.log %x : f32
  %w = math.exp %z : f64
  return %y, %w : f32, f64
}

// A factor of the argument goes into the polynomial, and the half of a factor into the power: nothing is multiplied twice.
// CHECK-LABEL: @relaxed_gelu
// CHECK: %[[M:.*]] = math.absf %[[X:[a-z0-9]+]]
// CHECK-COUNT-9: math.fma
// CHECK: nvidia.approx ex2
// CHECK: %[[S:.*]] = arith.select
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[X]], %[[S]]
// CHECK-NEXT: return %[[Y]]
func.func @relaxed_gelu(%x: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %c = arith.constant 0.707106769 : f32
  %s = arith.mulf %x, %c : f32
  %e = math.erf %s : f32
  %o = arith.addf %e, %one {nvidia.relaxed} : f32
  %h = arith.mulf %half, %x : f32
  %y = arith.mulf %h, %o : f32
  return %y : f32
}

// The sigmoid, where a small error does not matter: a power, a reciprocal, and nothing is left of how it was written.
// CHECK-LABEL: @relaxed_sigmoid
// CHECK-NOT: absf
// CHECK: %[[P:.*]] = math.fma
// CHECK: %[[E:.*]] = nvidia.approx ex2 %[[P]] {nvidia.flush}
// CHECK: %[[D:.*]] = arith.addf %[[E]]
// CHECK: %[[R:.*]] = nvidia.approx rcp %[[D]] {nvidia.flush}
// CHECK: %[[S:.*]] = arith.mulf %[[R]]
// CHECK-NOT: select
// CHECK: return %[[S]]
func.func @relaxed_sigmoid(%x: f32) -> f32 {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %m = math.absf %x : f32
  %n = arith.negf %m : f32
  %e = math.exp %n {nvidia.relaxed} : f32
  %d = arith.addf %e, %one : f32
  %c = arith.cmpf oge, %x, %zero : f32
  %t = arith.select %c, %one, %e : f32
  %s = arith.divf %t, %d {nvidia.relaxed} : f32
  return %s : f32
}

// Not where it does, and not another quotient of the same parts.
// CHECK-LABEL: @sigmoid
// CHECK: arith.select
// CHECK: arith.divf
// CHECK: arith.select
// CHECK: arith.divf
func.func @sigmoid(%x: f32, %y: f32) -> (f32, f32) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %m = math.absf %x : f32
  %n = arith.negf %m : f32
  %e = math.exp %n : f32
  %d = arith.addf %e, %one : f32
  %c = arith.cmpf oge, %x, %zero : f32
  %t = arith.select %c, %one, %e : f32
  %s = arith.divf %t, %d : f32
  %o = arith.cmpf oge, %y, %zero : f32
  %u = arith.select %o, %one, %e : f32
  %q = arith.divf %u, %d {nvidia.relaxed} : f32
  return %s, %q : f32, f32
}

// Quotients that may be a little off share the divisor's reciprocal, which is scaled where it may be infinite.
// CHECK-LABEL: @shared_reciprocal
// CHECK: %[[SCALE:.*]] = arith.select
// CHECK: %[[R:.*]] = nvidia.approx rcp
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[R]]
// CHECK: arith.mulf %[[P]], %[[SCALE]]
func.func @shared_reciprocal(%x: f32, %y: f32, %d: f32) -> (f32, f32) {
  %a = arith.divf %x, %d {nvidia.relaxed} : f32
  %b = arith.divf %y, %d {nvidia.relaxed} : f32
  return %a, %b : f32, f32
}

// What is left of a constant is 0 or not tiny, whichever type it was computed in.
// CHECK-LABEL: @reciprocal_of_difference
// CHECK-NOT: arith.select
// CHECK: %[[R:.*]] = nvidia.approx rcp
// CHECK-NEXT: %[[A:.*]] = arith.mulf %{{.*}}, %[[R]]
// CHECK-NEXT: %[[B:.*]] = arith.mulf %{{.*}}, %[[R]]
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @reciprocal_of_difference(%x: f32, %y: f32, %p: f64) -> (f32, f32) {
  %one = arith.constant 1.0 : f64
  %rest = arith.subf %one, %p : f64
  %d = arith.truncf %rest : f64 to f32
  %a = arith.divf %x, %d {nvidia.relaxed} : f32
  %b = arith.divf %y, %d {nvidia.relaxed} : f32
  return %a, %b : f32, f32
}

// So is an integer's magnitude.
// CHECK-LABEL: @reciprocal_of_count
// CHECK-NOT: arith.select
// CHECK: nvidia.approx rcp
// CHECK-COUNT-2: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: return
func.func @reciprocal_of_count(%x: f32, %y: f32, %n: i64) -> (f32, f32) {
  %f = arith.sitofp %n : i64 to f32
  %d = math.absf %f : f32
  %a = arith.divf %x, %d {nvidia.relaxed} : f32
  %b = arith.divf %y, %d {nvidia.relaxed} : f32
  return %a, %b : f32, f32
}

// The rest of a small constant may be: 2^-80 and its last digit is 2^-103.
// CHECK-LABEL: @reciprocal_of_small_difference
// CHECK: arith.select
// CHECK: nvidia.approx rcp
func.func @reciprocal_of_small_difference(%x: f32, %y: f32, %p: f32) -> (f32, f32) {
  %small = arith.constant 8.27180613E-25 : f32
  %d = arith.addf %p, %small : f32
  %a = arith.divf %x, %d {nvidia.relaxed} : f32
  %b = arith.divf %y, %d {nvidia.relaxed} : f32
  return %a, %b : f32, f32
}

// Some bits of a word with an exponent in front of them; the upper half of the word is shifted down.
// CHECK-LABEL: @halves_of_bytes
// CHECK: %[[WORD:.*]] = vector.extract %{{.*}}[1] : i32 from vector<2xi32>
// CHECK: %[[DOWN:.*]] = arith.shrui %[[WORD]], %c16_i32{{.*}} : i32
// CHECK: %[[BITS:.*]] = arith.andi %[[DOWN]], %c240_i32{{.*}} : i32
// CHECK: %[[FLOAT:.*]] = arith.xori %[[BITS]], %c1224736896_i32{{.*}} : i32
// CHECK: %[[MORE:.*]] = arith.bitcast %[[FLOAT]] : i32 to f32
// CHECK: arith.subf %[[MORE]], %cst{{.*}} : f32
// CHECK: arith.extui %{{.*}} : i16 to i32
// CHECK-NOT: arith.uitofp
// CHECK: arith.sitofp %{{.*}} : i64 to f32
func.func @halves_of_bytes(%bytes: vector<8xi8>, %alone: i16, %wide: i64) -> (f32, f32, f32) {
  %four = arith.constant 4 : i8
  %byte = vector.extract %bytes[6] : i8 from vector<8xi8>
  %high = arith.shrsi %byte, %four : i8
  %f = arith.sitofp %high : i8 to f32
  %g = arith.uitofp %alone : i16 to f32
  %h = arith.sitofp %wide : i64 to f32
  return %f, %g, %h : f32, f32, f32
}

// Shifted to the left, a byte is no longer a part of the word. Shifted back, it is.
// CHECK-LABEL: @shifted_bytes
// CHECK: %[[LEFT:.*]] = arith.shli %{{.*}} : i8
// CHECK: arith.extui %[[LEFT]] : i8 to i32
// CHECK: %[[WORD:.*]] = vector.extract %{{.*}}[1] : i32 from vector<2xi32>
// CHECK: arith.andi %[[WORD]], %c983040_i32{{.*}} : i32
// CHECK-NOT: arith.sitofp
// CHECK: return
func.func @shifted_bytes(%bytes: vector<8xi8>) -> (f32, f32) {
  %four = arith.constant 4 : i8
  %byte = vector.extract %bytes[6] : i8 from vector<8xi8>
  %left = arith.shli %byte, %four : i8
  %f = arith.sitofp %left : i8 to f32
  %low = arith.shrsi %left, %four : i8
  %g = arith.sitofp %low : i8 to f32
  return %f, %g : f32, f32
}

// A mask makes it a number without a sign, whichever way it was shifted.
// CHECK-LABEL: @masked_bytes
// CHECK: %[[BITS:.*]] = arith.andi %{{.*}}, %c61440_i32{{.*}} : i32
// CHECK: arith.xori %[[BITS]], %c1157627904_i32{{.*}} : i32
// CHECK-NOT: arith.sitofp
// CHECK: return
func.func @masked_bytes(%bytes: vector<4xi8>) -> f32 {
  %four = arith.constant 4 : i8
  %mask = arith.constant 15 : i8
  %byte = vector.extract %bytes[1] : i8 from vector<4xi8>
  %high = arith.shrsi %byte, %four : i8
  %number = arith.andi %high, %mask : i8
  %f = arith.sitofp %number : i8 to f32
  return %f : f32
}
