// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -tenon-expand-random %s | FileCheck %s
// RUN: tenon-opt -tenon-expand-random -canonicalize -cse %s | FileCheck %s --check-prefix=SIMPLE
// RUN: tenon-opt '-tenon-expand-random=keep-random-bits' %s | FileCheck %s --check-prefix=KEEP

// The key is the seed, the counter fills the low two words of four.
// CHECK-LABEL: func.func @philox
// CHECK-SAME: (%[[SEED:.*]]: i64, %[[COUNTER:.*]]: tensor<2x4xi64>)
func.func @philox(%seed: i64, %counter: tensor<2x4xi64>)
    -> (tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>) {
  // CHECK-NOT: tile.philox
  // CHECK: %[[C32:.*]] = arith.constant dense<32> : tensor<2x4xi64>
  // CHECK: %[[SEEDS:.*]] = tile.splat %[[SEED]] : i64 -> tensor<2x4xi64>
  // CHECK: %[[KEY0:.*]] = arith.trunci %[[SEEDS]]
  // CHECK: %[[HIGH:.*]] = arith.shrui %[[SEEDS]], %[[C32]]
  // CHECK: %[[KEY1:.*]] = arith.trunci %[[HIGH]]
  // CHECK: %[[C0:.*]] = arith.trunci %[[COUNTER]]
  // The first round: the two multipliers, then the key.
  // CHECK: %[[W0:.*]] = arith.extui %[[C0]]
  // CHECK: %[[M0:.*]] = arith.constant dense<3528531795> : tensor<2x4xi64>
  // CHECK: %[[P0:.*]] = arith.muli %[[W0]], %[[M0]]
  // CHECK: arith.constant dense<3449720151> : tensor<2x4xi64>
  // CHECK: arith.xori %{{.*}}, %[[KEY0]]
  // CHECK: arith.xori %{{.*}}, %[[KEY1]]
  // CHECK: arith.trunci %[[P0]]
  // Ten rounds in all.
  // CHECK-COUNT-18: arith.muli
  // CHECK-NOT: arith.muli
  // CHECK: return
  %w:4 = tile.philox %seed, %counter : tensor<2x4xi64> -> tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>
  return %w#0, %w#1, %w#2, %w#3 : tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>
}

// Known seed and counter: the whole generator folds, to the first vector of the Random123 distribution
// (philox4x32-10, counter and key zero: 6627e8d5 e169c58d bc57ac4c 9b00dbd8).
// SIMPLE-LABEL: func.func @known_answer
func.func @known_answer() -> (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) {
  // SIMPLE-DAG: %[[W0:.*]] = arith.constant dense<1713891541> : tensor<1xi32>
  // SIMPLE-DAG: %[[W1:.*]] = arith.constant dense<-513161843> : tensor<1xi32>
  // SIMPLE-DAG: %[[W2:.*]] = arith.constant dense<-1135104948> : tensor<1xi32>
  // SIMPLE-DAG: %[[W3:.*]] = arith.constant dense<-1694442536> : tensor<1xi32>
  // SIMPLE: return %[[W0]], %[[W1]], %[[W2]], %[[W3]]
  %seed = arith.constant 0 : i64
  %counter = arith.constant dense<0> : tensor<1xi64>
  %w:4 = tile.philox %seed, %counter : tensor<1xi64> -> tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>
  return %w#0, %w#1, %w#2, %w#3 : tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>
}

// One word of the block counter / 4, by the low bits of the counter.
// CHECK-LABEL: func.func @bits
// CHECK-SAME: (%[[SEED:.*]]: i64, %[[COUNTER:.*]]: tensor<8xi64>)
// KEEP-LABEL: func.func @bits
func.func @bits(%seed: i64, %counter: tensor<8xi64>) -> (tensor<8xi32>, tensor<8xi32>) {
  // CHECK-NOT: tile.random_bits
  // CHECK: %[[C2:.*]] = arith.constant dense<2> : tensor<8xi64>
  // CHECK: %[[BLOCK:.*]] = arith.shrui %[[COUNTER]], %[[C2]]
  // CHECK: arith.trunci %[[BLOCK]]
  // CHECK-COUNT-20: arith.muli
  // CHECK: %[[LOW:.*]] = arith.andi %[[COUNTER]], %{{.*}}
  // CHECK: %[[ODD:.*]] = arith.cmpi ne, %[[LOW]]
  // CHECK: %[[FIRST:.*]] = arith.select %[[ODD]]
  // CHECK: %[[SECOND:.*]] = arith.select %[[ODD]]
  // CHECK: arith.select %{{.*}}, %[[SECOND]], %[[FIRST]]
  // A target that shares evaluations keeps it; tile.philox is expanded all the same.
  // KEEP: tile.random_bits
  // KEEP-NOT: tile.philox
  // KEEP: return
  %bits = tile.random_bits %seed, %counter : tensor<8xi64> -> tensor<8xi32>
  %w:4 = tile.philox %seed, %counter : tensor<8xi64> -> tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>
  return %bits, %w#0 : tensor<8xi32>, tensor<8xi32>
}

// The first four counters are the four words of the first block: the published vector again.
// SIMPLE-LABEL: func.func @known_bits
func.func @known_bits() -> tensor<4xi32> {
  // SIMPLE: %[[BITS:.*]] = arith.constant dense<[1713891541, -513161843, -1135104948, -1694442536]> : tensor<4xi32>
  // SIMPLE: return %[[BITS]]
  %seed = arith.constant 0 : i64
  %counter = arith.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %bits = tile.random_bits %seed, %counter : tensor<4xi64> -> tensor<4xi32>
  return %bits : tensor<4xi32>
}

// A number of 16 bits, half a word mixed with that of another, of one of the four blocks of 64 counters; seven rounds.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: (%[[SEED:.*]]: i64, %[[COUNTER:.*]]: tensor<8xi64>)
// KEEP-LABEL: func.func @halves
func.func @halves(%seed: i64, %counter: tensor<8xi64>) -> tensor<8xi16> {
  // CHECK-NOT: tile.random_bits
  // CHECK: %[[C4:.*]] = arith.constant dense<4> : tensor<8xi64>
  // CHECK: arith.shrui %[[COUNTER]], %[[C4]]
  // CHECK: arith.andi %{{.*}}, %{{.*}} : tensor<8xi64>
  // CHECK-COUNT-14: arith.muli
  // CHECK-NOT: arith.muli
  // CHECK: arith.constant dense<16711935> : tensor<8xi32>
  // CHECK: arith.trunci %{{.*}} : tensor<8xi32> to tensor<8xi16>
  // KEEP: tile.random_bits %{{.*}} {rounds = 7 : i64}
  %b = tile.random_bits %seed, %counter {rounds = 7 : i64} : tensor<8xi64> -> tensor<8xi16>
  return %b : tensor<8xi16>
}
