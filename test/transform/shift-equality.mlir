// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -tenon-shift-equality | FileCheck %s

// One number less, instead of one more for each element; whichever side it is on.
// CHECK-LABEL: func.func @label
// CHECK-SAME: (%[[C:.*]]: i64, %[[LABEL:.*]]: i64)
// CHECK: %[[IOTA:.*]] = tile.iota
// CHECK-NOT: arith.addi
// CHECK: %[[D:.*]] = arith.subi %[[LABEL]], %[[C]] : i64
// CHECK: %[[ALL:.*]] = tile.splat %[[D]]
// CHECK: arith.cmpi eq, %[[IOTA]], %[[ALL]]
// CHECK: %[[E:.*]] = arith.addi %[[LABEL]], %[[C]] : i64
// CHECK: %[[OTHERS:.*]] = tile.splat %[[E]]
// CHECK: arith.cmpi ne, %[[IOTA]], %[[OTHERS]]
func.func @label(%c: i64, %label: i64) -> (tensor<1x64xi1>, tensor<1x64xi1>) {
  %iota = tile.iota 1 : tensor<1x64xi64>
  %at = tile.splat %c : i64 -> tensor<1x64xi64>
  %number = tile.splat %label : i64 -> tensor<1x64xi64>
  %p = arith.addi %at, %iota : tensor<1x64xi64>
  %a = arith.cmpi eq, %p, %number : tensor<1x64xi64>
  %m = arith.subi %iota, %at : tensor<1x64xi64>
  %b = arith.cmpi ne, %number, %m : tensor<1x64xi64>
  return %a, %b : tensor<1x64xi1>, tensor<1x64xi1>
}

// A label for each of a few rows, columns that are repeated.
// CHECK-LABEL: func.func @labels
// CHECK-SAME: (%[[C:.*]]: i32, %[[LABELS:.*]]: tensor<4x1xi32>)
// CHECK: %[[IOTA:.*]] = tile.iota
// CHECK: %[[BY:.*]] = tile.splat %[[C]] : i32 -> tensor<4x1xi32>
// CHECK: %[[LESS:.*]] = arith.subi %[[LABELS]], %[[BY]]
// CHECK: %[[RIGHT:.*]] = tile.broadcast %[[LESS]]
// CHECK: %[[LEFT:.*]] = tile.broadcast %[[IOTA]]
// CHECK: arith.cmpi eq, %[[LEFT]], %[[RIGHT]]
func.func @labels(%c: i32, %labels: tensor<4x1xi32>) -> tensor<4x64xi1> {
  %iota = tile.iota 1 : tensor<1x64xi32>
  %at = tile.splat %c : i32 -> tensor<1x64xi32>
  %p = arith.addi %iota, %at : tensor<1x64xi32>
  %columns = tile.broadcast %p : tensor<1x64xi32> -> tensor<4x64xi32>
  %rows = tile.broadcast %labels : tensor<4x1xi32> -> tensor<4x64xi32>
  %a = arith.cmpi eq, %columns, %rows : tensor<4x64xi32>
  return %a : tensor<4x64xi1>
}

// An order, which is another one where integers wrap; as many numbers on either side; scalars.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: arith.subi
// CHECK: return
func.func @left_alone(%c: i64, %label: i64, %each: tensor<64xi64>)
    -> (tensor<64xi1>, tensor<64xi1>, i1) {
  %iota = tile.iota 0 : tensor<64xi64>
  %at = tile.splat %c : i64 -> tensor<64xi64>
  %number = tile.splat %label : i64 -> tensor<64xi64>
  %p = arith.addi %iota, %at : tensor<64xi64>
  %a = arith.cmpi slt, %p, %number : tensor<64xi64>
  %b = arith.cmpi eq, %p, %each : tensor<64xi64>
  %q = arith.addi %c, %label : i64
  %s = arith.cmpi eq, %q, %label : i64
  return %a, %b, %s : tensor<64xi1>, tensor<64xi1>, i1
}

// The number that is added is also what is compared with: both uses go, the number is erased once.
// CHECK-LABEL: @same_number(
// CHECK-SAME: %[[C:.*]]: i32, %[[T:.*]]: tensor<64xi32>)
// CHECK: %[[D:.*]] = arith.subi %[[C]], %[[C]] : i32
// CHECK: %[[S:.*]] = tile.splat %[[D]]
// CHECK: arith.cmpi eq, %[[T]], %[[S]]
func.func @same_number(%c: i32, %t: tensor<64xi32>) -> tensor<64xi1> {
  %s = tile.splat %c : i32 -> tensor<64xi32>
  %p = arith.addi %t, %s : tensor<64xi32>
  %e = arith.cmpi eq, %p, %s : tensor<64xi32>
  return %e : tensor<64xi1>
}
