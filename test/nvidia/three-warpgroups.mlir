// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tenon-nvidia-choose-layouts{warps=12}))' | FileCheck %s

// Twelve warps: four bits of their numbers. What has thirds is divided by the last two, which move by a third and by two
// of them: behind the tile's end is what warps 12 to 15 would hold.
// CHECK: #[[THIRDS:.*]] = #nvidia.layout<2, register = [0, 1, 0, 2, 8, 0, 16, 0, 32, 0], lane = [0, 4, 0, 8, 0, 16, 0, 32, 1, 0], warp = [2, 0, 4, 0, 64, 0, 128, 0], block = []>
// CHECK-LABEL: @thirds
// CHECK: tile.load {{.*}} -> tensor<192x64xf32, #[[THIRDS]]>
func.func @thirds(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<192x64xf32>
  tile.store %a, %x[%c0, %c0] : tensor<192x64xf32>, !tile.view<2, f32>
  return
}

// -----

// The rest eight of them have, and the last four what the first four have.
// CHECK: #[[HALVES:.*]] = #nvidia.layout<2, register = [0, 1, 0, 2, 16, 0, 32, 0], lane = [0, 4, 0, 8, 0, 16, 0, 32, 1, 0], warp = [2, 0, 4, 0, 8, 0, 0, 0], block = []>
// CHECK-LABEL: @halves
// CHECK: tile.load {{.*}} -> tensor<64x64xf32, #[[HALVES]]>
func.func @halves(%x: !tile.view<2, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32> -> tensor<64x64xf32>
  tile.store %a, %x[%c0, %c0] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}
