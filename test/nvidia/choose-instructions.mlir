// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(tenon-nvidia-choose-instructions))' | FileCheck %s

// Which tiles the tensor memory accelerator moves. A box begins at a multiple of 16 bytes of its rows; it may be read, but
// not written, from before the beginning of the tensor on; what is written are whole units of 16 bytes.

// CHECK-LABEL: @aligned
// CHECK: tile.load {{.*}}nvidia.bulk
// CHECK: tile.load {{.*}}nvidia.bulk
// CHECK: tile.store {{.*}}nvidia.bulk
func.func @aligned(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                   %b: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                   %c: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %back = arith.constant -8 : index
  %width = arith.constant 64 : index
  %i = tile.grid %one
  %at = arith.muli %i, %width : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%back, %back] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %y = tile.load %b[%at, %at] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %d = tile.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %r = tile.cast %d : tensor<64x64xf32> -> tensor<64x64xbf16>
  tile.store %r, %c[%i, %at] : tensor<64x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// CHECK-LABEL: @between
// CHECK-NOT: nvidia.bulk
func.func @between(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                   %b: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                   %c: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %i = tile.grid %one
  %at = arith.muli %i, %four : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%i, %at] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %y = tile.load %b[%i, %four] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %d = tile.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %r = tile.cast %d : tensor<64x64xf32> -> tensor<64x64xbf16>
  tile.store %r, %c[%i, %at] : tensor<64x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// CHECK-LABEL: @stored_before
// CHECK: tile.load {{.*}}nvidia.bulk
// CHECK-NOT: tile.store {{.*}}nvidia.bulk
func.func @stored_before(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                         %b: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                         %c: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %zeroIndex = arith.constant 0 : index
  %i = tile.grid %one
  %row = arith.subi %i, %one : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%i, %zeroIndex] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %y = tile.load %b[%i, %zeroIndex] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %d = tile.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %r = tile.cast %d : tensor<64x64xf32> -> tensor<64x64xbf16>
  tile.store %r, %c[%row, %zeroIndex] : tensor<64x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// Rows that end inside a unit of 16 bytes are not written by units.
// CHECK-LABEL: @half_a_unit
// CHECK: tile.load {{.*}}nvidia.bulk
// CHECK-NOT: tile.store {{.*}}nvidia.bulk
func.func @half_a_unit(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                       %b: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                       %c: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 4, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %zeroIndex = arith.constant 0 : index
  %i = tile.grid %one
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%i, %zeroIndex] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %y = tile.load %b[%i, %zeroIndex] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %d = tile.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %r = tile.cast %d : tensor<64x64xf32> -> tensor<64x64xbf16>
  tile.store %r, %c[%i, %zeroIndex] : tensor<64x64xbf16>, !tile.view<2, bf16>
  return
}

// -----

// Rows under a mask are scattered in pieces of 16 bytes; where the mask cuts a piece they are not.
// CHECK-LABEL: @scattered
// CHECK: tile.scatter {{.*}}nvidia.staged
// CHECK-NOT: tile.scatter {{.*}}nvidia.staged
func.func @scattered(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                     %b: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                     %c: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                     %rows: tensor<64x1xi64>, %mask: tensor<64x1xi1>, %cut: tensor<64x64xi1>)
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %zeroIndex = arith.constant 0 : index
  %i = tile.grid %one
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%i, %zeroIndex] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %y = tile.load %b[%i, %zeroIndex] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %d = tile.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %r = tile.cast %d : tensor<64x64xf32> -> tensor<64x64xbf16>
  %row = tile.broadcast %rows : tensor<64x1xi64> -> tensor<64x64xi64>
  %column = tile.iota 1 : tensor<64x64xi64>
  %wanted = tile.broadcast %mask : tensor<64x1xi1> -> tensor<64x64xi1>
  tile.scatter %r, %c[%row, %column : tensor<64x64xi64>, tensor<64x64xi64>] mask %wanted : tensor<64x64xi1> : tensor<64x64xbf16>, !tile.view<2, bf16>
  tile.scatter %r, %c[%row, %column : tensor<64x64xi64>, tensor<64x64xi64>] mask %cut : tensor<64x64xi1> : tensor<64x64xbf16>, !tile.view<2, bf16>
  return
}
