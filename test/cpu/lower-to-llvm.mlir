// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -tenon-cpu-lower-to-loops -tenon-cpu-lower-to-llvm %s | FileCheck %s

// Nothing but the llvm dialect is left: exp is expanded, loops are branches.
// CHECK-LABEL: llvm.func @instance
// CHECK-NOT: {{ (arith|math|scf|vector|cf|func)\.}}
// CHECK-NOT: llvm.intr.exp
// CHECK: llvm.intr.fma
// CHECK: llvm.cond_br
// CHECK-LABEL: llvm.func @tenon_plan
// CHECK-LABEL: llvm.func @tenon_run
func.func @exponential(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %i: index) {
  %a = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  %b = math.exp %a : tensor<64xf32>
  tile.store %b, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}
