// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// A tile is read as a whole before any of it is stored. Here the window stored lies one element after the one read, so
// the loaded tile needs a buffer: as one loop, the second vector would read what the first has written.
// CHECK: tenon.scratch_bytes = 320
func.func @shift(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tile.load %x[%c0] : !tile.view<1, f32> -> tensor<64xf32>
  tile.store %a, %x[%c1] : tensor<64xf32>, !tile.view<1, f32>
  return
}
