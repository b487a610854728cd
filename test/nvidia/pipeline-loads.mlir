// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-pipeline-loads))' | FileCheck %s
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-pipeline-loads{stages=1}))' | FileCheck %s --check-prefix=ONE
// RUN: tenon-opt %s --pass-pipeline='builtin.module(func.func(tenon-nvidia-pipeline-loads{architecture=80}))' | FileCheck %s --check-prefix=OLD

// With one stage nothing runs ahead.
// ONE-NOT: nvidia.async
// ONE: nvidia.not_async = "there is one stage only"

// Both operands of a dot, and a transposed one.
// CHECK-LABEL: @operands
// CHECK: tile.load %{{.*}} {nvidia.async} :
// CHECK: tile.load %{{.*}} {nvidia.async} :
func.func @operands(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64},
                    %y: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %l = tile.load %y[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %b = tile.transpose %l [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %b, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  }
  return
}

// A load that feeds no dot is not asked, nor is one outside of a loop.
// CHECK-LABEL: @not_asked
// CHECK-NOT: async
// CHECK: return
func.func @not_asked(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, bf16> -> tensor<64x64xbf16>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  scf.for %k = %c0 to %n step %c64 {
    %e = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    tile.store %e, %x[%k, %c0] : tensor<64x64xbf16>, !tile.view<2, bf16>
  }
  return
}

// Registers need it too.
// CHECK-LABEL: @other_use
// CHECK: nvidia.not_async = "its tile is also an operand of tile.cast"
func.func @other_use(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %f = tile.cast %a : tensor<64x64xbf16> -> tensor<64x64xf32>
    %d = tile.dot %a, %a, %f : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  }
  return
}

// Hardware pads with zero.
// CHECK-LABEL: @padding
// CHECK: nvidia.not_async = "a copy can pad with zero only"
func.func @padding(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %one = arith.constant 1.0 : bf16
    %a = tile.load %x[%c0, %k] padding %one : bf16 : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  }
  return
}

// Strides are not known.
// CHECK-LABEL: @strided
// CHECK: nvidia.not_async = "no dimension of the view is known to have stride 1"
func.func @strided(%x: !tile.view<2, bf16>, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  }
  return
}

// K = 4101 in bf16.
// CHECK-LABEL: @odd_rows
// CHECK: nvidia.not_async = "a copy moves 4, 8 or 16 bytes, and the view's rows are not known to begin at multiples of 16 bytes"
func.func @odd_rows(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 1, 1, 1>, tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  }
  return
}

// Where to read is not known ahead.
// CHECK-LABEL: @carried_offset
// CHECK: nvidia.not_async = "its offsets are not a function of the loop's variable alone"
func.func @carried_offset(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %i: !tile.view<1, i64>, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %t = tile.load %i[%k] : !tile.view<1, i64> -> tensor<1xi64>
    %s = tile.scalar %t : tensor<1xi64>
    %o = arith.index_cast %s : i64 to index
    %a = tile.load %x[%o, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  }
  return
}

// The loop writes what it reads.
// CHECK-LABEL: @written
// CHECK: nvidia.not_async = "the loop writes memory that may be the same"
func.func @written(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a0 = arith.constant dense<0.0> : tensor<64x64xbf16>
  scf.for %k = %c0 to %n step %c64 {
    %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    tile.store %a0, %x[%k, %c0] : tensor<64x64xbf16>, !tile.view<2, bf16>
  }
  return
}

// Views that may overlap.
// CHECK-LABEL: @overlapping
// CHECK: nvidia.not_async = "the loop writes memory that may be the same"
func.func @overlapping(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64},
                       %y: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %a0 = arith.constant dense<0.0> : tensor<64x64xbf16>
  scf.for %k = %c0 to %n step %c64 {
    %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    tile.store %a0, %y[%k, %c0] : tensor<64x64xbf16>, !tile.view<2, bf16>
  }
  return
}

// An atomic may be a lock.
// CHECK-LABEL: @locked
// CHECK: nvidia.not_async = "an atomic in the loop may wait for what another instance writes"
func.func @locked(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %l: !tile.view<1, i32>, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant dense<1> : tensor<1xi32>
  %at = arith.constant dense<0> : tensor<1xi64>
  scf.for %k = %c0 to %n step %c64 {
    %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    %old = tile.atomic_rmw add %one, %l[%at : tensor<1xi64>] : tensor<1xi32>, !tile.view<1, i32>
  }
  return
}

// A branch.
// CHECK-LABEL: @branch
// CHECK: nvidia.not_async = "it stands in a branch of the loop"
func.func @branch(%x: !tile.view<2, bf16> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %c: i1, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    scf.if %c {
      %a = tile.load %x[%c0, %k] : !tile.view<2, bf16> -> tensor<64x64xbf16>
      %z = arith.constant dense<0.0> : tensor<64x64xf32>
      %d = tile.dot %a, %a, %z : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    }
  }
  return
}

// Contiguous along a dimension that the tile does not have.
// CHECK-LABEL: @unit_dimension
// CHECK: nvidia.not_async = "the view is contiguous along a dimension of size 1"
func.func @unit_dimension(%x: !tile.view<3, f32> {tile.divisible = array<i64: 16, 16, 16, 16, 16, 16, 1>, tile.unit_stride = 2 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %l = tile.load %x[%c0, %k, %c0] : !tile.view<3, f32> -> tensor<64x64x1xf32>
    %a = tile.reshape %l : tensor<64x64x1xf32> -> tensor<64x64xf32>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %a, %z : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
  return
}

// Bytes along the wrong dimension.
// CHECK-LABEL: @bytes_across
// CHECK: nvidia.not_async = "8-bit operands are read along K, and memory is contiguous along the other dimension"
func.func @bytes_across(%x: !tile.view<2, i8> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %a = arith.constant dense<1> : tensor<64x64xi8>
    %b = tile.load %x[%k, %c0] : !tile.view<2, i8> -> tensor<64x64xi8>
    %z = arith.constant dense<0> : tensor<64x64xi32>
    %d = tile.dot %a, %b, %z : tensor<64x64xi8>, tensor<64x64xi8>, tensor<64x64xi32>
  }
  return
}

// What has no instruction is converted on its way.
// CHECK-LABEL: @fp8
// CHECK: {nvidia.async}
// OLD-LABEL: @fp8
// OLD: nvidia.not_async = "operands are converted to f16: instructions for 8-bit floats need sm_89"
func.func @fp8(%x: !tile.view<2, f8E4M3FN> {tile.divisible = array<i64: 16, 16, 16, 16, 1>, tile.unit_stride = 1 : i64}, %n: index) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %k = %c0 to %n step %c64 {
    %a = tile.load %x[%c0, %k] : !tile.view<2, f8E4M3FN> -> tensor<64x64xf8E4M3FN>
    %b = arith.constant dense<1.0> : tensor<64x64xf8E4M3FN>
    %z = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %a, %b, %z : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>, tensor<64x64xf32>
  }
  return
}
