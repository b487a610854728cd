// SPDX-License-Identifier: Apache-2.0
// Tiles of several rows become instances of one row where loops of instances can be one.
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512-dot},canonicalize,cse)' %s | FileCheck %s
// RUN: tenon-opt -split-input-file --pass-pipeline='builtin.module(tenon-cpu-lower-to-loops{isa=avx512},canonicalize,cse)' %s | FileCheck %s --check-prefix=WHOLE
// WHOLE-NOT: @overlapped

// Rows are for themselves: the grid has one instance for each of those that are stored.
// CHECK: func.func private @overlapped
// CHECK: func.func @tenon_plan
// CHECK: %[[ALL:.*]] = arith.muli %{{.*}}, %c4
// CHECK: arith.minsi %[[ALL]]
func.func @less_mean(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64, tile.distinct}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %four = arith.constant 4 : index
  %n = tile.size %x, 0 : !tile.view<2, f32>
  %m = arith.addi %n, %three : index
  %g = tile.div %m, %four : index
  %i = tile.grid %g
  %at = arith.muli %i, %four : index
  %a = tile.load %x[%at, %zero] : !tile.view<2, f32> -> tensor<4x1024xf32>
  %s = tile.reduce %a dim 1 : (tensor<4x1024xf32>) -> tensor<4x1xf32> {
  ^bb0(%p: f32, %r: f32):
    %u = arith.addf %p, %r : f32
    tile.yield %u : f32
  }
  %all = tile.broadcast %s : tensor<4x1xf32> -> tensor<4x1024xf32>
  %d = arith.subf %a, %all : tensor<4x1024xf32>
  tile.store %d, %y[%at, %zero] : tensor<4x1024xf32>, !tile.view<2, f32>
  return
}

// -----

// Where rows begin is seen by something else.
// CHECK: func.func @tenon_plan
// CHECK-NOT: arith.minsi
// CHECK: return
func.func @by_place(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64, tile.distinct}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %four = arith.constant 4 : index
  %n = tile.size %x, 0 : !tile.view<2, f32>
  %m = arith.addi %n, %three : index
  %g = tile.div %m, %four : index
  %i = tile.grid %g
  %at = arith.muli %i, %four : index
  %a = tile.load %x[%at, %at] : !tile.view<2, f32> -> tensor<4x1024xf32>
  %s = tile.reduce %a dim 1 : (tensor<4x1024xf32>) -> tensor<4x1xf32> {
  ^bb0(%p: f32, %r: f32):
    %u = arith.addf %p, %r : f32
    tile.yield %u : f32
  }
  %all = tile.broadcast %s : tensor<4x1xf32> -> tensor<4x1024xf32>
  %d = arith.subf %a, %all : tensor<4x1024xf32>
  tile.store %d, %y[%at, %zero] : tensor<4x1024xf32>, !tile.view<2, f32>
  return
}

// -----

// Two rows of what is stored may be one: which comes last would be seen.
// CHECK: func.func @tenon_plan
// CHECK-NOT: arith.minsi
// CHECK: return
func.func @onto_each_other(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64},
                     %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}) attributes {tile.no_overlap} {
  %zero = arith.constant 0 : index
  %three = arith.constant 3 : index
  %four = arith.constant 4 : index
  %n = tile.size %x, 0 : !tile.view<2, f32>
  %m = arith.addi %n, %three : index
  %g = tile.div %m, %four : index
  %i = tile.grid %g
  %at = arith.muli %i, %four : index
  %a = tile.load %x[%at, %zero] : !tile.view<2, f32> -> tensor<4x1024xf32>
  %s = tile.reduce %a dim 1 : (tensor<4x1024xf32>) -> tensor<4x1xf32> {
  ^bb0(%p: f32, %r: f32):
    %u = arith.addf %p, %r : f32
    tile.yield %u : f32
  }
  %all = tile.broadcast %s : tensor<4x1xf32> -> tensor<4x1024xf32>
  %d = arith.subf %a, %all : tensor<4x1024xf32>
  tile.store %d, %y[%at, %zero] : tensor<4x1024xf32>, !tile.view<2, f32>
  return
}
