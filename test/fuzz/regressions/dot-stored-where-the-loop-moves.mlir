// SPDX-License-Identifier: Apache-2.0
// Sums that one step of the loop need not store, but the next one does.
module {
func.func @kernel(%x: !tile.view<2, i8> {fuzz.fill = "unit", fuzz.sizes = array<i64: 64, 128>, fuzz.strides = array<i64: 128, 1>, tile.unit_stride = 1 : i64}, %y: !tile.view<2, i8> {fuzz.fill = "unit", fuzz.sizes = array<i64: 128, 64>, fuzz.strides = array<i64: 64, 1>, tile.unit_stride = 1 : i64}, %z: !tile.view<2, i32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 100, 64>, fuzz.strides = array<i64: 64, 1>, tile.unit_stride = 1 : i64}) attributes {fuzz.seed = 31 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %g:2 = tile.grid %c1, %c1
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %sum = scf.for %k = %c0 to %c2 step %c1 iter_args(%acc = %zero) -> tensor<64x64xi32> {
    %kk = arith.muli %k, %c64 : index
    %r = arith.subi %c64, %kk : index
    %a = tile.load %x[%c0, %kk] : !tile.view<2, i8> -> tensor<64x64xi8>
    %b = tile.load %y[%kk, %c0] : !tile.view<2, i8> -> tensor<64x64xi8>
    %next = tile.dot %a, %b, %acc : tensor<64x64xi8>, tensor<64x64xi8>, tensor<64x64xi32>
    tile.store %next, %z[%r, %c0] : tensor<64x64xi32>, !tile.view<2, i32>
    scf.yield %next : tensor<64x64xi32>
  }
  return
}
}
