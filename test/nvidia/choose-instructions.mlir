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

// -----

// What an operand is computed from, in the dot's loop: threads read it where it arrives. Not what is loaded before the
// loop, nor what is padded with other than zero, nor rows of which a transfer would be less than 16 bytes.
// CHECK-LABEL: @computed
// CHECK: tile.load {{.*}} -> tensor<64x1xf32>
// CHECK-NOT: nvidia.read
// CHECK: scf.for
// CHECK: tile.load %{{.*}} {nvidia.bulk} : {{.*}} -> tensor<64x64xbf16>
// CHECK: tile.load %{{.*}} {nvidia.bulk, nvidia.read} : {{.*}} -> tensor<64x64xi8>
// CHECK: tile.load %{{.*}} {nvidia.bulk, nvidia.read} : {{.*}} -> tensor<1x64xf32>
// CHECK-NOT: nvidia.read
// CHECK: tile.dot {{.*}}nvidia.warpgroup
func.func @computed(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                    %b: !tile.view<2, i8> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                    %s: !tile.view<2, f32> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                    %c: !tile.view<2, f32> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %zeroIndex = arith.constant 0 : index
  %step = arith.constant 64 : index
  %end = tile.size %a, 1 : !tile.view<2, bf16>
  %i = tile.grid %one
  %at = arith.muli %i, %step : index
  %half = arith.constant 0.5 : f32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %before = tile.load %s[%at, %zeroIndex] : !tile.view<2, f32> -> tensor<64x1xf32>
  %sum = scf.for %k = %zeroIndex to %end step %step iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %x = tile.load %a[%at, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %q = tile.load %b[%k, %at] : !tile.view<2, i8> -> tensor<64x64xi8>
    %row = tile.load %s[%i, %at] : !tile.view<2, f32> -> tensor<1x64xf32>
    %padded = tile.load %s[%i, %at] padding %half : f32 : !tile.view<2, f32> -> tensor<1x64xf32>
    %narrow = tile.load %s[%k, %i] : !tile.view<2, f32> -> tensor<64x1xf32>
    %w = tile.cast %q : tensor<64x64xi8> -> tensor<64x64xf32>
    %rows = tile.broadcast %row : tensor<1x64xf32> -> tensor<64x64xf32>
    %others = tile.broadcast %padded : tensor<1x64xf32> -> tensor<64x64xf32>
    %columns = tile.broadcast %narrow : tensor<64x1xf32> -> tensor<64x64xf32>
    %outer = tile.broadcast %before : tensor<64x1xf32> -> tensor<64x64xf32>
    %w1 = arith.mulf %w, %rows : tensor<64x64xf32>
    %w2 = arith.mulf %w1, %others : tensor<64x64xf32>
    %w3 = arith.mulf %w2, %columns : tensor<64x64xf32>
    %w4 = arith.mulf %w3, %outer : tensor<64x64xf32>
    %y = tile.cast %w4 : tensor<64x64xf32> -> tensor<64x64xbf16>
    %d = tile.dot %x, %y, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %c[%i, %at] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}

// -----

// A computed operand of few rows comes from registers; memory has neighbouring columns side by side.
// CHECK-LABEL: @for_few_rows
// CHECK: tile.dot {{.*}}nvidia.registers = true, nvidia.warpgroup
func.func @for_few_rows(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                        %b: !tile.view<2, i8> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                        %d: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                        %c: !tile.view<2, f32> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %zeroIndex = arith.constant 0 : index
  %step = arith.constant 64 : index
  %end = tile.size %a, 1 : !tile.view<2, bf16>
  %i = tile.grid %one
  %at = arith.muli %i, %step : index
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %sum = scf.for %k = %zeroIndex to %end step %step iter_args(%acc = %zero) -> tensor<16x64xf32> {
    %x = tile.load %a[%at, %k] : !tile.view<2, bf16> -> tensor<16x64xbf16>
    %q = tile.load %b[%k, %at] : !tile.view<2, i8> -> tensor<64x64xi8>
    %w = tile.cast %q : tensor<64x64xi8> -> tensor<64x64xbf16>
    %p = tile.dot %x, %w, %acc : tensor<16x64xbf16>, tensor<64x64xbf16>, tensor<16x64xf32>
    scf.yield %p : tensor<16x64xf32>
  }
  tile.store %sum, %c[%i, %at] : tensor<16x64xf32>, !tile.view<2, f32>
  return
}

// -----

// And one of more rows, whose sums are only stored.
// CHECK-LABEL: @for_few_sums
// CHECK: tile.dot {{.*}}nvidia.registers = true, nvidia.warpgroup
func.func @for_few_sums(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                        %b: !tile.view<2, i8> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                        %d: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                        %c: !tile.view<2, f32> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %zeroIndex = arith.constant 0 : index
  %step = arith.constant 64 : index
  %end = tile.size %a, 1 : !tile.view<2, bf16>
  %i = tile.grid %one
  %at = arith.muli %i, %step : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %zeroIndex to %end step %step iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %x = tile.load %a[%at, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %q = tile.load %b[%k, %at] : !tile.view<2, i8> -> tensor<64x64xi8>
    %w = tile.cast %q : tensor<64x64xi8> -> tensor<64x64xbf16>
    %p = tile.dot %x, %w, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }
  tile.store %sum, %c[%i, %at] : tensor<64x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Not where rows of them are reduced, which would lie across warps.
// CHECK-LABEL: @rows_are_reduced
// CHECK-NOT: nvidia.registers
// CHECK: tile.dot {{.*}}nvidia.warpgroup
// CHECK-NOT: nvidia.registers
// CHECK: return
func.func @rows_are_reduced(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                            %b: !tile.view<2, i8> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                            %d: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                            %c: !tile.view<2, f32> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %zeroIndex = arith.constant 0 : index
  %step = arith.constant 64 : index
  %end = tile.size %a, 1 : !tile.view<2, bf16>
  %i = tile.grid %one
  %at = arith.muli %i, %step : index
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %zeroIndex to %end step %step iter_args(%acc = %zero) -> tensor<64x64xf32> {
    %x = tile.load %a[%at, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %q = tile.load %b[%k, %at] : !tile.view<2, i8> -> tensor<64x64xi8>
    %w = tile.cast %q : tensor<64x64xi8> -> tensor<64x64xbf16>
    %p = tile.dot %x, %w, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %p : tensor<64x64xf32>
  }
  %most = tile.reduce %sum dim 1 : (tensor<64x64xf32>) -> tensor<64x1xf32> {
  ^bb0(%left: f32, %right: f32):
    %larger = arith.maximumf %left, %right : f32
    tile.yield %larger : f32
  }
  tile.store %most, %c[%i, %at] : tensor<64x1xf32>, !tile.view<2, f32>
  return
}

// -----

// Nor where products of an operand that is not computed are added to the same sums, whose rows are numbered otherwise.
// CHECK-LABEL: @other_products
// CHECK-NOT: nvidia.registers
// CHECK: tile.dot {{.*}}nvidia.warpgroup
// CHECK-NOT: nvidia.registers
// CHECK: return
func.func @other_products(%a: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                          %b: !tile.view<2, i8> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                          %d: !tile.view<2, bf16> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>},
                          %c: !tile.view<2, f32> {tile.distinct, tile.unit_stride = 1 : i64, tile.divisible = array<i64: 16, 1, 16, 16, 1>})
    attributes {tile.no_overlap} {
  %one = arith.constant 1 : index
  %zeroIndex = arith.constant 0 : index
  %step = arith.constant 64 : index
  %end = tile.size %a, 1 : !tile.view<2, bf16>
  %i = tile.grid %one
  %at = arith.muli %i, %step : index
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %sum = scf.for %k = %zeroIndex to %end step %step iter_args(%acc = %zero) -> tensor<16x64xf32> {
    %x = tile.load %a[%at, %k] : !tile.view<2, bf16> -> tensor<16x64xbf16>
    %q = tile.load %b[%k, %at] : !tile.view<2, i8> -> tensor<64x64xi8>
    %w = tile.cast %q : tensor<64x64xi8> -> tensor<64x64xbf16>
    %p = tile.dot %x, %w, %acc : tensor<16x64xbf16>, tensor<64x64xbf16>, tensor<16x64xf32>
    %y = tile.load %d[%k, %at] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %both = tile.dot %x, %y, %p : tensor<16x64xbf16>, tensor<64x64xbf16>, tensor<16x64xf32>
    scf.yield %both : tensor<16x64xf32>
  }
  tile.store %sum, %c[%i, %at] : tensor<16x64xf32>, !tile.view<2, f32>
  return
}
