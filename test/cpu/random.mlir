// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// Counters that follow each other along the lanes: eight evaluations of the generator make 32 words when the first counter
// is a multiple of 4. It is computed once, not lane by lane.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[LOW:.*]] = arith.andi %{{.*}}, %c3_i64 : i64
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %[[LOW]], %c0_i64 : i64
// CHECK: %[[STAYS:.*]] = arith.cmpi ule, %{{.*}}, %{{.*}} : i64
// CHECK: %[[INSTEP:.*]] = arith.andi %[[WHOLE]], %[[STAYS]]
// CHECK: scf.if %[[INSTEP]] -> (vector<32xi32>) {
// CHECK: arith.muli %{{.*}} : vector<8xi64>
// CHECK: arith.muli %{{.*}} : i64
// CHECK-COUNT-17: arith.muli %{{.*}} : vector<8xi64>
// CHECK-NOT: arith.muli
// The second word of a block is above the first, where the exchange of the last round left it; the blocks are in the lanes
// in such an order that words come together within 16 bytes.
// CHECK: arith.andi %{{.*}} : vector<8xi64>
// CHECK: arith.ori %{{.*}} : vector<8xi64>
// CHECK: llvm.shufflevector %{{.*}} [0, 8, 2, 10, 4, 12, 6, 14, 1, 9, 3, 11, 5, 13, 7, 15]
// Otherwise as many from the multiple of 4 before it on, twice, which are read again from the first counter on.
// CHECK: } else {
// CHECK: %[[BEGIN:.*]] = arith.subi %{{.*}}, %[[WITHIN:.*]] : i64
// CHECK: %[[END:.*]] = arith.select %{{.*}}, %c32, %c64 : index
// CHECK: scf.for %[[AT:.*]] = %c0 to %[[END]] step %c32 {
// CHECK: arith.addi %[[BEGIN]],
// CHECK-COUNT-18: arith.muli %{{.*}} : vector<8xi64>
// CHECK: llvm.store %{{.*}} : vector<32xi32>, !llvm.ptr
// CHECK: }
// CHECK: %[[FROM:.*]] = llvm.getelementptr %{{.*}}[%[[WITHIN]]]
// CHECK: llvm.load %[[FROM]] {{.*}} -> vector<32xi32>
func.func @positions(%y: !tile.view<2, i32> {tile.unit_stride = 1 : i64}, %seed: i64, %width: i64, %i: index) {
  %zero = arith.constant 0 : index
  %row = tile.iota 0 : tensor<4x1xi64>
  %column = tile.iota 1 : tensor<1x64xi64>
  %w = tile.splat %width : i64 -> tensor<4x1xi64>
  %first = arith.muli %row, %w : tensor<4x1xi64>
  %f = tile.broadcast %first : tensor<4x1xi64> -> tensor<4x64xi64>
  %c = tile.broadcast %column : tensor<1x64xi64> -> tensor<4x64xi64>
  %counter = arith.addi %f, %c : tensor<4x64xi64>
  %bits = tile.random_bits %seed, %counter : tensor<4x64xi64> -> tensor<4x64xi32>
  tile.store %bits, %y[%i, %zero] : tensor<4x64xi32>, !tile.view<2, i32>
  return
}

// -----

// Every second counter: each lane on its own.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: scf.if {{.*}} -> (vector<32xi32>)
// CHECK: arith.muli %{{.*}} : vector<32xi64>
// CHECK: return
func.func @scattered(%y: !tile.view<1, i32> {tile.unit_stride = 0 : i64}, %seed: i64, %i: index) {
  %n = tile.iota 0 : tensor<64xi64>
  %counter = arith.addi %n, %n : tensor<64xi64>
  %bits = tile.random_bits %seed, %counter : tensor<64xi64> -> tensor<64xi32>
  tile.store %bits, %y[%i] : tensor<64xi32>, !tile.view<1, i32>
  return
}

// -----

// What is computed with the words comes in a loop of its own, and the generator has one where two evaluations of eight
// overlap: both inside of a loop over lumps of them, since nothing else uses the words. The keys are in memory.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c512 {
// CHECK: scf.for %{{.*}} = %c0 to %c512 step %c64 {
// CHECK: %[[WORDS:.*]] = scf.if %{{.*}} -> (vector<64xi32>) {
// CHECK: %[[KEY:.*]] = llvm.load %{{.*}} -> i64
// CHECK: vector.splat %[[KEY]] : vector<16xi64>
// CHECK: llvm.store %[[WORDS]]
// CHECK: scf.for %{{.*}} = %c0 to %c512 step %c32
// CHECK: arith.xori %{{.*}} : vector<32xi32>
func.func @used(%x: !tile.view<1, i32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, i32> {tile.unit_stride = 0 : i64},
                %seed: i64, %i: index) attributes {tile.no_overlap} {
  %counter = tile.iota 0 : tensor<1024xi64>
  %bits = tile.random_bits %seed, %counter : tensor<1024xi64> -> tensor<1024xi32>
  %a = tile.load %x[%i] : !tile.view<1, i32> -> tensor<1024xi32>
  %b = arith.xori %a, %bits : tensor<1024xi32>
  tile.store %b, %y[%i] : tensor<1024xi32>, !tile.view<1, i32>
  return
}

// -----

// Numbers of 16 bits: eight evaluations of seven rounds make 128, and two lots of them overlap. The bytes that are mixed into
// the lower ones are picked by a mask in memory. They are compared 32 at a time, as they lie.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c512 {
// CHECK: scf.for %{{.*}} = %c0 to %c512 step %c256 {
// CHECK: arith.andi %{{.*}}, %c63_i64 : i64
// CHECK: %[[HALVES:.*]] = scf.if %{{.*}} -> (vector<256xi16>) {
// CHECK-COUNT-2: arith.muli %{{.*}} : i64
// CHECK-COUNT-11: arith.muli %{{.*}} : vector<16xi64>
// CHECK-NOT: arith.muli
// CHECK: %[[MASK:.*]] = llvm.load %{{.*}} -> i64
// CHECK: vector.splat %[[MASK]] : vector<16xi64>
// CHECK: llvm.bitcast %{{.*}} : vector<64xi64> to vector<256xi16>
// CHECK: } else {
// CHECK: llvm.store %[[HALVES]]
// CHECK: scf.for %{{.*}} = %c0 to %c512 step %c32
// CHECK: arith.cmpi ult, %{{.*}} : vector<32xi16>
func.func @events(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                  %seed: i64, %limit: i16, %i: index) attributes {tile.no_overlap} {
  %counter = tile.iota 0 : tensor<1024xi64>
  %bits = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<1024xi64> -> tensor<1024xi16>
  %limits = tile.splat %limit : i16 -> tensor<1024xi16>
  %event = arith.cmpi ult, %bits, %limits : tensor<1024xi16>
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<1024xf32>
  %b = arith.negf %a : tensor<1024xf32>
  %c = arith.select %event, %b, %a : tensor<1024xi1>, tensor<1024xf32>
  tile.store %c, %y[%i] : tensor<1024xf32>, !tile.view<1, f32>
  return
}

// -----

// Fewer than the 64 that four evaluations make: those that they are among, 64 or twice as many.
// CHECK-LABEL: func.func private @instance
// CHECK-NOT: scf.if {{.*}} -> (vector<32xi16>)
// CHECK: %[[END:.*]] = arith.select %{{.*}}, %c64, %c128 : index
// CHECK: scf.for %{{.*}} = %c0 to %[[END]] step %c64 {
// CHECK-COUNT-14: arith.muli %{{.*}} : vector<4xi64>
// CHECK: llvm.store %{{.*}} : vector<64xi16>, !llvm.ptr
// CHECK: llvm.load %{{.*}} -> vector<32xi16>
func.func @short_row(%y: !tile.view<1, i16> {tile.unit_stride = 0 : i64}, %seed: i64, %first: i64, %i: index) {
  %place = tile.iota 0 : tensor<32xi64>
  %begin = tile.splat %first : i64 -> tensor<32xi64>
  %counter = arith.addi %begin, %place : tensor<32xi64>
  %bits = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<32xi64> -> tensor<32xi16>
  tile.store %bits, %y[%i] : tensor<32xi16>, !tile.view<1, i16>
  return
}

// -----

// Numbers that a reduction uses too, and those for results of 16 bits, are all drawn before, four chains of them at once.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c128 {
// CHECK: scf.if %{{.*}} -> (vector<128xi32>) {
// CHECK: llvm.bitcast %{{.*}} : vector<64xi64> to vector<256xi16>
// CHECK: scf.for
// CHECK: vector<32xi32>
func.func @used_twice(%y: !tile.view<1, i32> {tile.unit_stride = 0 : i64}, %z: !tile.view<1, i16> {tile.unit_stride = 0 : i64},
                      %seed: i64, %i: index) {
  %counter = tile.iota 0 : tensor<256xi64>
  %bits = tile.random_bits %seed, %counter : tensor<256xi64> -> tensor<256xi32>
  %halves = tile.random_bits %seed, %counter : tensor<256xi64> -> tensor<256xi16>
  %one = arith.constant dense<1> : tensor<256xi32>
  %odd = arith.ori %bits, %one : tensor<256xi32>
  %s = tile.reduce %odd dim 0 : (tensor<256xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %r: i32):
    %t = arith.addi %p, %r : i32
    tile.yield %t : i32
  }
  %all = tile.broadcast %s : tensor<1xi32> -> tensor<256xi32>
  %sum = arith.addi %odd, %all : tensor<256xi32>
  tile.store %sum, %y[%i] : tensor<256xi32>, !tile.view<1, i32>
  %short = arith.constant dense<1> : tensor<256xi16>
  %set = arith.ori %halves, %short : tensor<256xi16>
  tile.store %set, %z[%i] : tensor<256xi16>, !tile.view<1, i16>
  return
}
