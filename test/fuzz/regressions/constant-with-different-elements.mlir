// SPDX-License-Identifier: Apache-2.0
// A constant tile that is not one value repeated has nowhere to be computed from: it is read from the program's data.
func.func @constant_with_different_elements(%y: !tile.view<1, f32> {fuzz.fill = "unit", fuzz.sizes = array<i64: 5>, fuzz.strides = array<i64: 1>,
                                                tile.unit_stride = 0 : i64},
                                            %z: !tile.view<1, i8> {fuzz.fill = "unit", fuzz.sizes = array<i64: 5>, fuzz.strides = array<i64: 1>,
                                                tile.unit_stride = 0 : i64}) attributes {fuzz.seed = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tile.grid %c1
  %values = arith.constant dense<[1.0, 2.0, 4.0, 8.0, 16.0]> : tensor<5xf32>
  %choice = arith.constant dense<[true, false, true, true, false]> : tensor<5xi1>
  %zero = arith.constant dense<0.0> : tensor<5xf32>
  %chosen = arith.select %choice, %values, %zero : tensor<5xi1>, tensor<5xf32>
  %bytes = arith.constant dense<[-1, 2, -3, 4, -5]> : tensor<5xi8>
  tile.store %chosen, %y[%c0] : tensor<5xf32>, !tile.view<1, f32>
  tile.store %bytes, %z[%c0] : tensor<5xi8>, !tile.view<1, i8>
  return
}
