// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// tenon_plan evaluates the grid, the first precondition that does not hold, and the workspace sizes, and nothing else
// of the kernel.
// CHECK-LABEL: func.func @tenon_plan(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %[[OUT:.*]]: !llvm.ptr)
// CHECK-NOT: math.exp
// CHECK-DAG: %[[BROKEN:.*]] = arith.select %{{.*}}, %c-1_i64, %c0_i64 : i64
// CHECK-DAG: %[[THIRD:.*]] = llvm.getelementptr %[[OUT]][3]
// CHECK-DAG: llvm.store %[[BROKEN]], %[[THIRD]]
// CHECK-DAG: llvm.getelementptr %[[OUT]][4]
// CHECK: return
// tenon_run calls the instance for a range of numbers.
// CHECK-LABEL: func.func @tenon_run
// CHECK: scf.for
// CHECK: func.call @instance
func.func @launch(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %s: f32) {
  %n = tile.size %x, 0 : !tile.view<1, f32>
  %block = arith.constant 64 : index
  %limit = arith.constant 4096 : index
  %ok = arith.cmpi sle, %n, %limit : index
  tile.require %ok, "at most 4096 elements"
  %w = tile.workspace %n : !tile.view<1, f32>
  %blocks = tile.div %n, %block : index
  %i = tile.grid %blocks
  %e = math.exp %s : f32
  %t = tile.splat %e : f32 -> tensor<64xf32>
  tile.store %t, %w[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}
