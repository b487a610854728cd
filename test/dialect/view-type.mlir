// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s | tenon-opt | FileCheck %s
// RUN: tenon-opt -mlir-print-op-generic %s | tenon-opt | FileCheck %s

// Every element type, and the largest rank.
// CHECK: func.func private @types(!tile.view<1, f64>, !tile.view<2, f32>, !tile.view<3, f16>, !tile.view<4, bf16>,
// CHECK-SAME: !tile.view<5, f8E4M3FN>, !tile.view<1, f8E5M2>, !tile.view<1, i64>, !tile.view<1, i32>,
// CHECK-SAME: !tile.view<1, i16>, !tile.view<1, i8>, !tile.view<1, i1>)
func.func private @types(!tile.view<1, f64>, !tile.view<2, f32>, !tile.view<3, f16>, !tile.view<4, bf16>,
                         !tile.view<5, f8E4M3FN>, !tile.view<1, f8E5M2>, !tile.view<1, i64>, !tile.view<1, i32>,
                         !tile.view<1, i16>, !tile.view<1, i8>, !tile.view<1, i1>)
