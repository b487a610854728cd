// SPDX-License-Identifier: Apache-2.0
// The same through two views of one memory.
module {
  func.func @kernel(%arg0: !tile.view<2, i16> {fuzz.fill = "any", fuzz.sizes = array<i64: 67, 37>, fuzz.strides = array<i64: -38, 1>, tile.unit_stride = 1 : i64}, %arg1: !tile.view<2, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 39, 65>, fuzz.strides = array<i64: 130, 0>}, %arg2: !tile.view<3, i16> {fuzz.fill = "unit", fuzz.sizes = array<i64: 6, 33, 42>, fuzz.strides = array<i64: 1386, 42, 1>, tile.unit_stride = 2 : i64}, %arg3: !tile.view<3, i16> {fuzz.fill = "unit", fuzz.shares = 2 : i64, fuzz.shift = 0 : i64, fuzz.sizes = array<i64: 6, 33, 42>, fuzz.strides = array<i64: 1386, 42, 1>, tile.unit_stride = 2 : i64}, %arg4: index {fuzz.word = 5 : i64}) attributes {fuzz.seed = 5695 : i64} {
    %c21 = arith.constant 21 : index
    %c1 = arith.constant 1 : index
    %0:3 = tile.grid %c1, %c1, %c1
    %1 = tile.load %arg3[%c1, %c1, %arg4] : <3, i16> -> tensor<1x64x42xi16>
    tile.store %1, %arg2[%c1, %arg4, %c21] : tensor<1x64x42xi16>, <3, i16>
    return
  }
}
