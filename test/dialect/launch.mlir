// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// CHECK-LABEL: func.func @one_axis
func.func @one_axis(%x: !tile.view<1, f32>) {
  // CHECK: %[[N:.*]] = tile.size %{{.*}}, 0 : <1, f32>
  %n = tile.size %x, 0 : !tile.view<1, f32>
  // CHECK: tile.grid %[[N]]{{$}}
  %i = tile.grid %n
  return
}

// CHECK-LABEL: func.func @three_axes
func.func @three_axes(%x: !tile.view<3, i1>) {
  %a = tile.size %x, 0 : !tile.view<3, i1>
  %b = tile.size %x, 1 : !tile.view<3, i1>
  // CHECK: tile.size %{{.*}}, 2 : <3, i1>
  %c = tile.size %x, 2 : !tile.view<3, i1>
  // CHECK: %{{.*}}:3 = tile.grid %{{.*}}, %{{.*}}, %{{.*}}{{$}}
  %i:3 = tile.grid %a, %b, %c
  return
}

// CHECK-LABEL: func.func @precondition
func.func @precondition(%x: !tile.view<1, f32>, %fits: i1) {
  // CHECK: tile.require %{{.*}}, "the tile must span \22the row\22"
  tile.require %fits, "the tile must span \22the row\22"
  return
}

// CHECK-LABEL: func.func @workspace
func.func @workspace(%n: index) {
  // CHECK: tile.workspace %{{.*}}, %{{.*}} : <2, f32>
  %w = tile.workspace %n, %n : !tile.view<2, f32>
  // CHECK: tile.workspace %{{.*}} {note = "flags"} : <1, i32>
  %f = tile.workspace %n {note = "flags"} : !tile.view<1, i32>
  return
}

// The facts a specialisation relies on are argument and function attributes.
// CHECK-LABEL: func.func @attributes(%{{.*}}: !tile.view<2, f32> {tile.name = "x", tile.unit_stride = 1 : i64})
// CHECK-SAME: attributes {tile.no_overlap, tile.promises_no_overlap}
func.func @attributes(%x: !tile.view<2, f32> {tile.name = "x", tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap, tile.promises_no_overlap} {
  return
}
