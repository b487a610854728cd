// SPDX-License-Identifier: Apache-2.0
// RUN: %lower %s | FileCheck %s

// Every index is compared with the view's size (negative ones are large unsigned numbers); what is outside or masked
// off reads scratch memory, and the result there is the padding.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : vector<32xi64>
// CHECK: %[[OK:.*]] = arith.andi %{{.*}}, %[[INSIDE]] : vector<32xi1>
// CHECK: %[[WHERE:.*]] = llvm.select %[[OK]]
// CHECK: %[[ELEMENTS:.*]] = llvm.intr.masked.gather %[[WHERE]]
// CHECK: arith.select %[[OK]], %[[ELEMENTS]]
func.func @gather(%x: !tile.view<1, f32>, %i: !tile.view<1, i32> {tile.unit_stride = 0 : i64},
                  %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}, %n: i32, %p: f32) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %indices = tile.load %i[%c0] : !tile.view<1, i32> -> tensor<64xi32>
  %limit = tile.splat %n : i32 -> tensor<64xi32>
  %mask = arith.cmpi slt, %indices, %limit : tensor<64xi32>
  %t = tile.gather %x[%indices : tensor<64xi32>] mask %mask : tensor<64xi1> padding %p : f32
    : !tile.view<1, f32> -> tensor<64xf32>
  tile.store %t, %y[%c0] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// Rows by their numbers: along the lanes the last index goes up by one and the other stays, so that a vector is one load
// behind the mask of what is inside.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[ROW:.*]] = llvm.load {{.*}} -> i32
// CHECK: %[[LENGTH:.*]] = arith.select %{{.*}}, %{{.*}}, %c0_i32 : i32
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : vector<32xi32>
// CHECK: llvm.intr.masked.load %{{.*}}, %[[INSIDE]], %{{.*}} : (!llvm.ptr, vector<32xi1>, vector<32xf32>)
// CHECK-NOT: masked.gather
func.func @rows(%x: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %i: !tile.view<1, i32> {tile.unit_stride = 0 : i64},
                %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %first: i64) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %numbers = tile.load %i[%c0] : !tile.view<1, i32> -> tensor<8xi32>
  %column = tile.reshape %numbers : tensor<8xi32> -> tensor<8x1xi32>
  %rows = tile.broadcast %column : tensor<8x1xi32> -> tensor<8x64xi32>
  %places = tile.iota 1 : tensor<8x64xi64>
  %start = tile.splat %first : i64 -> tensor<8x64xi64>
  %columns = arith.addi %places, %start : tensor<8x64xi64>
  %t = tile.gather %x[%rows, %columns : tensor<8x64xi32>, tensor<8x64xi64>]
    : !tile.view<2, f32> -> tensor<8x64xf32>
  tile.store %t, %y[%c0, %c0] : tensor<8x64xf32>, !tile.view<2, f32>
  return
}

// -----

// 32-bit numbers that are widened before something is added cannot wrap around: neighbours, too.
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.intr.masked.load
// CHECK-NOT: masked.gather
func.func @widened(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                   %y: !tile.view<2, f32> {tile.unit_stride = 1 : i64}, %first: i64) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %places = tile.iota 0 : tensor<64xi32>
  %row = tile.reshape %places : tensor<64xi32> -> tensor<1x64xi32>
  %wide = tile.cast %row : tensor<1x64xi32> -> tensor<1x64xi64>
  %start = tile.splat %first : i64 -> tensor<1x64xi64>
  %columns = arith.addi %wide, %start : tensor<1x64xi64>
  %t = tile.gather %x[%columns : tensor<1x64xi64>] : !tile.view<1, f32> -> tensor<1x64xf32>
  tile.store %t, %y[%c0, %c0] : tensor<1x64xf32>, !tile.view<2, f32>
  return
}

// -----

// Every other element of a row: one access for each lane.
// CHECK-LABEL: func.func private @instance
// CHECK: llvm.intr.masked.gather
func.func @every_other(%x: !tile.view<1, f32> {tile.unit_stride = 0 : i64},
                       %y: !tile.view<1, f32> {tile.unit_stride = 0 : i64}) attributes {tile.no_overlap} {
  %c0 = arith.constant 0 : index
  %places = tile.iota 0 : tensor<64xi64>
  %twice = arith.addi %places, %places : tensor<64xi64>
  %t = tile.gather %x[%twice : tensor<64xi64>] : !tile.view<1, f32> -> tensor<64xf32>
  tile.store %t, %y[%c0] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// Atomics are scalar code, one element after the other, each behind its bounds test.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c1 {
// CHECK: %[[OK:.*]] = arith.cmpi ult, %{{.*}} : i64
// CHECK: scf.if %[[OK]]
// CHECK: llvm.atomicrmw max %{{.*}}, %{{.*}} seq_cst : !llvm.ptr, i32
func.func @atomic_maximum_of_integers(%x: !tile.view<1, i32>) attributes {tile.no_overlap} {
  %one = arith.constant dense<1> : tensor<64xi32>
  %indices = tile.iota 0 : tensor<64xi32>
  %old = tile.atomic_rmw max %one, %x[%indices : tensor<64xi32>] : tensor<64xi32>, !tile.view<1, i32>
  return
}

// -----

// 64 elements that are added to at most 32 places are added up in scratch; what is there is added to the places, where it
// is not nothing.
// CHECK-LABEL: func.func private @instance
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %[[PLACES:.*]], %c32 : index
// CHECK: scf.if %[[FEW]] {
// CHECK: scf.for %{{.*}} = %c0 to %[[PLACES]] step %c1 {
// CHECK: llvm.store %c0_i32
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c1 {
// CHECK-NOT: llvm.atomicrmw
// CHECK: arith.addi
// CHECK: llvm.store
// CHECK: scf.for
// CHECK: %[[TALLY:.*]] = llvm.load
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[TALLY]], %c0_i32 : i32
// CHECK: scf.if %[[ANY]]
// CHECK: llvm.atomicrmw add %{{.*}}, %[[TALLY]] seq_cst : !llvm.ptr, i32
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c1 {
// CHECK: llvm.atomicrmw add %{{.*}}, %{{.*}} seq_cst : !llvm.ptr, i32
func.func @atomic_add(%x: !tile.view<1, i32>) attributes {tile.no_overlap} {
  %one = arith.constant dense<1> : tensor<64xi32>
  %indices = tile.iota 0 : tensor<64xi32>
  %old = tile.atomic_rmw add %one, %x[%indices : tensor<64xi32>] : tensor<64xi32>, !tile.view<1, i32>
  return
}

// -----

// The largest float so far, NaN included: LLVM's atomic fmax would drop it, so a compare-exchange loop on the bits.
// CHECK-LABEL: func.func private @instance
// CHECK: scf.while
// CHECK: arith.maximumf
// CHECK: llvm.cmpxchg {{.*}} seq_cst monotonic : !llvm.ptr, i32
func.func @atomic_maximum(%x: !tile.view<1, f32>, %v: f32) attributes {tile.no_overlap} {
  %value = tile.splat %v : f32 -> tensor<4xf32>
  %indices = tile.iota 0 : tensor<4xi32>
  %old = tile.atomic_rmw max %value, %x[%indices : tensor<4xi32>] : tensor<4xf32>, !tile.view<1, f32>
  return
}

// -----

// CHECK-LABEL: func.func private @instance
// CHECK: llvm.cmpxchg {{.*}} seq_cst monotonic : !llvm.ptr, i64
func.func @compare_exchange(%x: !tile.view<1, f64>, %v: f64) attributes {tile.no_overlap} {
  %value = tile.splat %v : f64 -> tensor<1xf64>
  %indices = tile.iota 0 : tensor<1xi64>
  %old = tile.atomic_cas %value, %value, %x[%indices : tensor<1xi64>] : tensor<1xf64>, !tile.view<1, f64>
  return
}
