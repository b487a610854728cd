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
// CHECK: } else {
// CHECK-COUNT-19: arith.muli %{{.*}} : vector<32xi64>
// CHECK: arith.trunci {{.*}} : vector<32xi64> to vector<32xi32>
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
// overlap.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c64 {
// CHECK: %[[WORDS:.*]] = scf.if %{{.*}} -> (vector<64xi32>) {
// CHECK-COUNT-18: arith.muli %{{.*}} : vector<16xi64>
// CHECK: llvm.store %[[WORDS]]
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c32
// CHECK: arith.xori %{{.*}} : vector<32xi32>
func.func @used(%x: !tile.view<1, i32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, i32> {tile.unit_stride = 0 : i64},
                %seed: i64, %i: index) {
  %counter = tile.iota 0 : tensor<256xi64>
  %bits = tile.random_bits %seed, %counter : tensor<256xi64> -> tensor<256xi32>
  %a = tile.load %x[%i] : !tile.view<1, i32> -> tensor<256xi32>
  %b = arith.xori %a, %bits : tensor<256xi32>
  tile.store %b, %y[%i] : tensor<256xi32>, !tile.view<1, i32>
  return
}

// -----

// Halves of words: eight evaluations of seven rounds make 64, and two lots of them overlap. They are compared 32 at a time, as
// they lie.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c128 {
// CHECK: arith.andi %{{.*}}, %c7_i64 : i64
// CHECK: %[[HALVES:.*]] = scf.if %{{.*}} -> (vector<128xi16>) {
// CHECK: arith.muli %{{.*}} : vector<16xi64>
// CHECK: arith.muli %{{.*}} : i64
// CHECK-COUNT-11: arith.muli %{{.*}} : vector<16xi64>
// CHECK-NOT: arith.muli
// CHECK: llvm.bitcast %{{.*}} : vector<32xi64> to vector<128xi16>
// CHECK: } else {
// CHECK: llvm.store %[[HALVES]]
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c32
// CHECK: arith.cmpi ult, %{{.*}} : vector<32xi16>
func.func @events(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                  %seed: i64, %limit: i16, %i: index) {
  %counter = tile.iota 0 : tensor<256xi64>
  %bits = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<256xi64> -> tensor<256xi16>
  %limits = tile.splat %limit : i16 -> tensor<256xi16>
  %event = arith.cmpi ult, %bits, %limits : tensor<256xi16>
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<256xf32>
  %b = arith.negf %a : tensor<256xf32>
  %c = arith.select %event, %b, %a : tensor<256xi1>, tensor<256xf32>
  tile.store %c, %y[%i] : tensor<256xf32>, !tile.view<1, f32>
  return
}
