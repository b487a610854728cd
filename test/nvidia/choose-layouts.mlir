// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tenon-nvidia-choose-layouts{warps=4}))' | FileCheck %s
// RUN: tenon-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tenon-nvidia-choose-layouts{warps=4 cluster=2}))' | FileCheck %s --check-prefix=CLUSTER

// Memory decides: four neighbours of f32 to a thread, neighbouring lanes beside each other, then warps.
// CHECK: #[[ROW:.*]] = #nvidia.layout<2, register = [0, 1, 0, 2], lane = [0, 4, 0, 8, 0, 16, 0, 32, 0, 64], warp = [0, 128, 0, 256], block = []>
// CHECK-LABEL: @memory
// CHECK: tile.load {{.*}} -> tensor<1x512xf32, #[[ROW]]>
// CHECK: arith.addf {{.*}} : tensor<1x512xf32, #[[ROW]]>
// CHECK: tile.store {{.*}} : tensor<1x512xf32, #[[ROW]]>
// With a cluster, the blocks come last.
// CLUSTER: #[[ROW:.*]] = #nvidia.layout<2, register = [0, 1], lane = [0, 2, {{.*}}], warp = [0, 64, 0, 128], block = [0, 256]>
// CLUSTER-LABEL: @memory
// CLUSTER: tile.load {{.*}} -> tensor<1x512xf32, #[[ROW]]>
func.func @memory(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<1x512xf32>
  %b = arith.addf %a, %a : tensor<1x512xf32>
  tile.store %b, %x[%c0, %c0] : tensor<1x512xf32>, !tile.view<2, f32>
  return
}

// -----

// Columns are neighbours in memory: so they are in threads.
// CHECK: #[[COLUMN:.*]] = #nvidia.layout<2, register = [1, 0, 2, 0], lane = [4, 0, {{.*}}], warp = [128, 0, 256, 0], block = []>
// CHECK-LABEL: @columns
// CHECK: tile.load {{.*}} -> tensor<512x1xf32, #[[COLUMN]]>
func.func @columns(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 1, 16>, tile.unit_stride = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<512x1xf32>
  tile.store %a, %x[%c0, %c0] : tensor<512x1xf32>, !tile.view<2, f32>
  return
}

// -----

// Nothing is known of rows: 16 bytes a thread all the same, by words that are shifted into place.
// CHECK: #[[SHIFTED:.*]] = #nvidia.layout<2, register = [0, 1, 0, 2], lane = [0, 4, 0, 8, 0, 16, 0, 32, 0, 64], warp = [0, 128, 0, 256], block = []>
// CHECK-LABEL: @shifted
// CHECK: tile.load {{.*}} -> tensor<1x512xf32, #[[SHIFTED]]>
func.func @shifted(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 1, 1, 1, 1>, tile.unit_stride = 1 : i64},
                   %y: !tile.view<2, f32> {tile.divisible = array<i64: 16, 1, 1, 1, 1>, tile.unit_stride = 1 : i64})
    attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<1x512xf32>
  tile.store %a, %y[%c0, %c0] : tensor<1x512xf32>, !tile.view<2, f32>
  return
}

// -----

// But not in place, where words hold what others write: single elements, so that a warp's are neighbours.
// CHECK: #[[SINGLE:.*]] = #nvidia.layout<2, register = [0, 128, 0, 256], lane = [0, 1, 0, 2, 0, 4, 0, 8, 0, 16], warp = [0, 32, 0, 64], block = []>
// CHECK-LABEL: @unaligned
// CHECK: tile.load {{.*}} -> tensor<1x512xf32, #[[SINGLE]]>
func.func @unaligned(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 1, 1, 1, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<1x512xf32>
  tile.store %a, %x[%c0, %c0] : tensor<1x512xf32>, !tile.view<2, f32>
  return
}

// -----

// A row's maximum is where the row is, and spreading it out again moves nothing.
// CHECK-DAG: #[[ROWS:.*]] = #nvidia.layout<2, register = [0, 1, 0, 2, 1, 0, 2, 0], lane = [0, 4, {{.*}}], warp = [0, 128, 0, 256], block = []>
// CHECK-DAG: #[[PROJECTED:.*]] = #nvidia.layout<2, register = [1, 0, 2, 0], lane = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], warp = [0, 0, 0, 0], block = []>
// CHECK-LABEL: @reduction
// CHECK: tile.reduce {{.*}} (tensor<4x512xf32, #[[ROWS]]>) -> tensor<4x1xf32, #[[PROJECTED]]>
// CHECK: tile.broadcast {{.*}} tensor<4x1xf32, #[[PROJECTED]]> -> tensor<4x512xf32, #[[ROWS]]>
// CHECK-NOT: nvidia.convert
// CHECK: return
func.func @reduction(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<4x512xf32>
  %m = tile.reduce %a dim 1 : (tensor<4x512xf32>) -> tensor<4x1xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.maximumf %p, %q : f32
    tile.yield %r : f32
  }
  %w = tile.broadcast %m : tensor<4x1xf32> -> tensor<4x512xf32>
  %b = arith.subf %a, %w : tensor<4x512xf32>
  tile.store %b, %x[%c0, %c0] : tensor<4x512xf32>, !tile.view<2, f32>
  return
}

// -----

// A dot decides about its accumulator, in the loop and before it; memory wants another layout.
// CHECK-DAG: #[[FRAGMENTS:.*]] = #nvidia.layout<2, register = [0, 1, 8, 0, {{.*}}], lane = [0, 2, 0, 4, 1, 0, 2, 0, 4, 0], warp = [32, 0, 0, 32], block = []>
// CHECK-LABEL: @dot
// CHECK: arith.constant dense<0.000000e+00> : tensor<64x64xf32, #[[FRAGMENTS]]>
// CHECK: scf.for {{.*}} -> (tensor<64x64xf32, #[[FRAGMENTS]]>)
// CHECK: tile.load {{.*}} -> tensor<64x64xbf16, #[[MEMORY:.*]]>
// CHECK: tile.dot {{.*}}, tensor<64x64xf32, #[[FRAGMENTS]]>
// CHECK: nvidia.convert {{.*}} : tensor<64x64xf32, #[[FRAGMENTS]]> -> tensor<64x64xf32, #[[MEMORY]]>
// CHECK-NEXT: tile.store
func.func @dot(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %y: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %z) -> (tensor<64x64xf32>) {
    %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %d = tile.dot %a, %a, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %s, %y[%c0, %c0] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}

// -----

// A transposed tile is stored as memory likes it: one conversion.
// CHECK-LABEL: @transposed
// CHECK: tile.load {{.*}} -> tensor<64x64xf32, #[[MEMORY:.*]]>
// CHECK: tile.transpose {{.*}} -> tensor<64x64xf32, #[[TURNED:.*]]>
// CHECK: nvidia.convert {{.*}} : tensor<64x64xf32, #[[TURNED]]> -> tensor<64x64xf32, #[[MEMORY]]>
// CHECK-NEXT: tile.store
func.func @transposed(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<64x64xf32>
  %t = tile.transpose %a [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %t, %x[%c0, %c0] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}

// -----

// What costs nothing is made twice, not converted: the iota for the dot's accumulator and for memory.
// CHECK-LABEL: @remade
// CHECK-DAG: %[[A:.*]] = tile.iota 1 : tensor<64x64xi32, #[[MEMORY:layout[0-9]*]]>
// CHECK-DAG: %[[B:.*]] = tile.iota 1 : tensor<64x64xi32, #[[FRAGMENTS:layout[0-9]*]]>
// CHECK: tile.dot {{.*}}, tensor<64x64xi32, #[[FRAGMENTS]]>
// CHECK: tile.store {{.*}} : tensor<64x64xi32, #[[MEMORY]]>
func.func @remade(%x: !tile.view<2, i32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %i = tile.iota 1 : tensor<64x64xi32>
  %a = tile.load %x[%c0, %c0] : !tile.view<2, i32> -> tensor<64x64xi32>
  %b = arith.addi %a, %i : tensor<64x64xi32>
  tile.store %b, %x[%c0, %c0] : tensor<64x64xi32>, !tile.view<2, i32>
  %e = arith.constant dense<1> : tensor<64x64xi8>
  %d = tile.dot %e, %e, %i : tensor<64x64xi8>, tensor<64x64xi8>, tensor<64x64xi32>
  tile.store %d, %x[%c0, %c0] : tensor<64x64xi32>, !tile.view<2, i32>
  return
}

// -----

// Single elements side by side are neighbours in the registers of a thread: nothing is converted but for the store, whose
// threads have 16 bytes each.
// CHECK-LABEL: @side_by_side
// CHECK: tile.concat {{.*}} : tensor<64x32x1xi32, #[[PART:.*]]>, tensor<64x32x1xi32, #[[PART]]> -> tensor<64x32x2xi32, #[[BOTH:.*]]>
// CHECK-NOT: nvidia.convert
// CHECK: tile.reshape {{.*}} : tensor<64x32x2xi32, #[[BOTH]]> -> tensor<64x64xi32
// CHECK-NEXT: nvidia.convert
// CHECK-NEXT: tile.store
func.func @side_by_side(%x: !tile.view<2, i32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64},
                        %y: !tile.view<2, i32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, i32> -> tensor<64x32xi32>
  %b = arith.addi %a, %a : tensor<64x32xi32>
  %p = tile.reshape %a : tensor<64x32xi32> -> tensor<64x32x1xi32>
  %q = tile.reshape %b : tensor<64x32xi32> -> tensor<64x32x1xi32>
  %r = tile.concat %p, %q dim 2 : tensor<64x32x1xi32>, tensor<64x32x1xi32> -> tensor<64x32x2xi32>
  %s = tile.reshape %r : tensor<64x32x2xi32> -> tensor<64x64xi32>
  tile.store %s, %y[%c0, %c0] : tensor<64x64xi32>, !tile.view<2, i32>
  return
}

// -----

// Halves of a dot's columns are other registers of each thread; the lanes of a row as memory likes it are not.
// CHECK-LABEL: @halves
// CHECK: tile.dot {{.*}}, tensor<128x64xi32, #[[SUMS:.*]]>
// CHECK: tile.slice {{.*}} : tensor<128x64xi32, #[[SUMS]]> -> tensor<128x32xi32, #[[HALF:.*]]>
// CHECK: tile.concat {{.*}} : tensor<128x32xi32, #[[HALF]]>, tensor<128x32xi32, #[[HALF]]> -> tensor<128x64xi32, #[[SUMS]]>
func.func @halves(%y: !tile.view<2, i32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %d0 = arith.constant dense<1> : tensor<128x64xi8>
  %e = arith.constant dense<1> : tensor<64x64xi8>
  %zero = arith.constant dense<0> : tensor<128x64xi32>
  %d = tile.dot %d0, %e, %zero : tensor<128x64xi8>, tensor<64x64xi8>, tensor<128x64xi32>
  %a = tile.slice %d [0, 0] : tensor<128x64xi32> -> tensor<128x32xi32>
  %b = tile.slice %d [0, 32] : tensor<128x64xi32> -> tensor<128x32xi32>
  %r = tile.concat %b, %a dim 1 : tensor<128x32xi32>, tensor<128x32xi32> -> tensor<128x64xi32>
  tile.store %r, %y[%c0, %c0] : tensor<128x64xi32>, !tile.view<2, i32>
  return
}

// -----

// What all threads have is not kept by all of them when it is put together: they divide the whole.
// CHECK-LABEL: @of_duplicates
// CHECK: tile.concat {{.*}} -> tensor<1x256xf32, #[[WHOLE:.*]]>
// CHECK-NEXT: tile.store {{.*}} : tensor<1x256xf32, #[[WHOLE]]>
func.func @of_duplicates(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64},
                         %y: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<1x16xf32>
  %b = arith.mulf %a, %a : tensor<1x16xf32>
  %r = tile.concat %a, %b, %a, %b, %a, %b, %a, %b, %a, %b, %a, %b, %a, %b, %a, %b dim 1 : tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16xf32> -> tensor<1x256xf32>
  tile.store %r, %y[%c0, %c0] : tensor<1x256xf32>, !tile.view<2, f32>
  return
}
