// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// CHECK-LABEL: func.func @inspect
func.func @inspect(%c: i1, %m: tensor<4xi1>, %i: index, %t: tensor<2x2xf8E5M2>) {
  // CHECK: tile.assert %{{.*}}, "one" : i1
  tile.assert %c, "one" : i1
  // CHECK: tile.assert %{{.*}}, "all" : tensor<4xi1>
  tile.assert %m, "all" : tensor<4xi1>
  // CHECK: tile.print "i", %{{.*}} : index
  tile.print "i", %i : index
  // CHECK: tile.print "u", unsigned %{{.*}} : index
  tile.print "u", unsigned %i : index
  // CHECK: tile.print "", %{{.*}} : tensor<2x2xf8E5M2>
  tile.print "", %t : tensor<2x2xf8E5M2>
  return
}
