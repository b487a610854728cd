// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -verify-diagnostics -split-input-file %s

// expected-error@+1 {{a layout has at least one dimension, not 0}}
func.func @no_rank(%t: tensor<4xf32, #nvidia.layout<0, register = [], lane = [], warp = [], block = []>>)

// -----

// expected-error@+1 {{a layout of rank 2 has that many coordinates for each bit, and 3 are no multiple of it}}
func.func @half_a_basis(%t: tensor<4x4xf32, #nvidia.layout<2, register = [1, 0, 1], lane = [], warp = [], block = []>>)

// -----

// expected-error@+1 {{a bit of a layout moves by a power of two, or not at all}}
func.func @odd_step(%t: tensor<4xf32, #nvidia.layout<1, register = [3], lane = [], warp = [], block = []>>)

// -----

func.func @convert_shape(%t: tensor<4xf32>) {
  // expected-error@+1 {{'nvidia.convert' op changes the layout only, not 'tensor<4xf32>' to 'tensor<2x2xf32>'}}
  %c = nvidia.convert %t : tensor<4xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @convert_type(%t: tensor<4xf32>) {
  // expected-error@+1 {{'nvidia.convert' op changes the layout only}}
  %c = nvidia.convert %t : tensor<4xf32> -> tensor<4xf16>
  return
}

// -----

func.func @narrow_global_address(%p: i32) {
  // expected-error@+1 {{'nvidia.load' op needs an i64 address for global memory and an i32 one for shared memory}}
  %v = nvidia.load global %p : i32 -> f32
  return
}

// -----

func.func @wide_shared_address(%p: i64, %v: f32) {
  // expected-error@+1 {{'nvidia.store' op needs an i64 address for global memory and an i32 one for shared memory}}
  nvidia.store shared %v, %p : f32, i64
  return
}

// -----

func.func @wide_cluster_address(%p: i64) {
  // expected-error@+1 {{'nvidia.load' op needs an i64 address for global memory and an i32 one for shared memory}}
  %v = nvidia.load cluster %p : i64 -> f32
  return
}

// -----

func.func @three_bytes(%p: i64) {
  // expected-error@+1 {{'nvidia.load' op moves 1, 2, 4, 8 or 16 bytes, not 3}}
  %v = nvidia.load global %p : i64 -> vector<3xi8>
  return
}

// -----

func.func @too_many_bytes(%p: i64, %v: vector<8xf32>) {
  // expected-error@+1 {{'nvidia.store' op moves 1, 2, 4, 8 or 16 bytes, not 32}}
  nvidia.store global %v, %p : vector<8xf32>, i64
  return
}

// -----

func.func @bits(%p: i64) {
  // expected-error@+1 {{'nvidia.load' op moves bytes: an integer or float of 8, 16, 32 or 64 bits, or a vector of them}}
  %v = nvidia.load global %p : i64 -> vector<8xi1>
  return
}

// -----

func.func @no_number(%p: i64, %v: index) {
  // expected-error@+1 {{'nvidia.store' op moves bytes: an integer or float of 8, 16, 32 or 64 bits, or a vector of them}}
  nvidia.store global %v, %p : index, i64
  return
}

// -----

func.func @mask_alone(%p: i64, %m: i1) {
  // expected-error@+1 {{'nvidia.load' op needs a value for where the mask is false, and only then}}
  %v = nvidia.load global %p mask %m : i64 -> f32
  return
}

// -----

func.func @otherwise_alone(%p: i64, %z: f32) {
  // expected-error@+1 {{'nvidia.load' op needs a value for where the mask is false, and only then}}
  %v = nvidia.load global %p otherwise %z : f32 : i64 -> f32
  return
}

// -----

func.func @otherwise_type(%p: i64, %m: i1, %z: f16) {
  // expected-error@+1 {{'nvidia.load' op needs an `otherwise` of the result's type}}
  %v = nvidia.load global %p mask %m otherwise %z : f16 : i64 -> f32
  return
}

// -----

func.func @load_window(%p: i32) {
  // expected-error@+1 {{'nvidia.load' op needs a window of two numbers: its first byte and the one past its last}}
  %v = nvidia.load shared %p {window = array<i64: 4>} : i32 -> f32
  return
}

// -----

func.func @store_window(%p: i32, %v: f32) {
  // expected-error@+1 {{'nvidia.store' op needs a window of two numbers}}
  nvidia.store shared %v, %p {window = array<i64: 4, 4>} : f32, i32
  return
}

// -----

func.func @ldmatrix_window(%p: i32) {
  // expected-error@+1 {{'nvidia.ldmatrix' op needs a window of two numbers}}
  %v = nvidia.ldmatrix %p {window = array<i64: 8, 4>} -> vector<4xi32>
  return
}

// -----

func.func @stmatrix_window(%p: i32, %v: vector<4xi32>) {
  // expected-error@+1 {{'nvidia.stmatrix' op needs a window of two numbers}}
  nvidia.stmatrix %p, %v {window = array<i64: -8, 4>} : vector<4xi32>
  return
}

// -----

func.func @ldmatrix_length(%p: i32) {
  // expected-error@+1 {{'nvidia.ldmatrix' op result #0 must be vector of}}
  %v = nvidia.ldmatrix %p -> vector<3xi32>
  return
}

// -----

func.func @add_of_floats(%p: i64, %v: f32) {
  // expected-error@+1 {{'nvidia.atomic' op add is of integers, not of 'f32'}}
  %o = nvidia.atomic add %p, %v : f32
  return
}

// -----

func.func @maximum_of_floats(%p: i64, %v: f64) {
  // expected-error@+1 {{'nvidia.atomic' op umax is of integers, not of 'f64'}}
  %o = nvidia.atomic umax %p, %v : f64
  return
}

// -----

func.func @fadd_of_integers(%p: i64, %v: i64) {
  // expected-error@+1 {{'nvidia.atomic' op fadd is of floats, not of 'i64'}}
  %o = nvidia.atomic fadd %p, %v : i64
  return
}

// -----

func.func @small_atomic(%p: i64, %v: i16) {
  // expected-error@+1 {{'nvidia.atomic' op operand #1 must be}}
  %o = nvidia.atomic add %p, %v : i16
  return
}

// -----

func.func @float_cas(%p: i64, %v: f32) {
  // expected-error@+1 {{'nvidia.atomic_cas' op operand #1 must be}}
  %o = nvidia.atomic_cas %p, %v, %v : f32
  return
}

// -----

func.func @copy_of_two(%s: i32, %g: i64) {
  // expected-error@+1 {{'nvidia.cp_async' op copies 4, 8 or 16 bytes, not 2}}
  nvidia.cp_async 2, %s, %g, %s
  return
}

// -----

func.func @copy_window(%s: i32, %g: i64) {
  // expected-error@+1 {{'nvidia.cp_async' op needs a window of two numbers}}
  nvidia.cp_async 4, %s, %g, %s {window = array<i64: 0, 1, 2>}
  return
}

// -----

func.func @wide_shuffle(%v: i64, %l: i32) {
  // expected-error@+1 {{'nvidia.shuffle' op operand #0 must be}}
  %o = nvidia.shuffle bfly %v, %l : i64
  return
}

// -----

func.func @pack_of_bytes(%f: f32) {
  // expected-error@+1 {{'nvidia.pack' op packs f16 or bf16}}
  %p = nvidia.pack e4m3 %f, %f
  return
}

// -----

func.func @mixed_operands(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) {
  // expected-error@+1 {{'nvidia.mma' op multiplies operands of one type, or any two of s8 and u8, or of e4m3 and e5m2}}
  %d = nvidia.mma f16 bf16 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  return
}

// -----

func.func @short_fragment(%b: vector<2xi32>, %c: vector<4xf32>) {
  // expected-error@+1 {{'nvidia.mma' op has fragments of the wrong length or type: see the op's table}}
  %d = nvidia.mma f16 f16 %b, %b, %c : vector<2xi32>, vector<2xi32>, vector<4xf32>
  return
}

// -----

func.func @float_sum_of_bytes(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) {
  // expected-error@+1 {{'nvidia.mma' op has fragments of the wrong length or type: see the op's table}}
  %d = nvidia.mma s8 s8 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  return
}

// -----

func.func @doubles(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<2xf64>) {
  // expected-error@+1 {{'nvidia.mma' op has fragments of the wrong length or type: see the op's table}}
  %d = nvidia.mma f64 f64 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<2xf64>
  return
}

// -----

func.func @no_map() {
  // expected-error@+1 {{'nvidia.tensor_map' op needs a number from 0}}
  %m = nvidia.tensor_map -1
  return
}

// -----

func.func @no_coordinates(%s: i32, %m: i64) {
  // expected-error@+1 {{'nvidia.tma_load' op has 1 to 5 coordinates, not 0}}
  nvidia.tma_load %s, %m[], %s
  return
}

// -----

func.func @nothing_to_prefetch(%s: i32, %m: i64) {
  // expected-error@+1 {{'nvidia.tma_prefetch' op has 1 to 5 coordinates, not 0}}
  "nvidia.tma_prefetch"(%m) : (i64) -> ()
  return
}

// -----

func.func @six_coordinates(%s: i32, %m: i64) {
  // expected-error@+1 {{'nvidia.tma_store' op has 1 to 5 coordinates, not 6}}
  nvidia.tma_store %m[%s, %s, %s, %s, %s, %s], %s
  return
}

// -----

func.func @bulk_window(%s: i32, %m: i64) {
  // expected-error@+1 {{'nvidia.tma_store' op needs a window of two numbers}}
  nvidia.tma_store %m[%s], %s {window = array<i64: 8, 8>}
  return
}

// -----

func.func @odd_columns(%f: f32, %a: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op has 8, 16, ... 256 columns, not 12}}
  %x:6 = nvidia.wgmma bf16 bf16 12 [%f, %f, %f, %f, %f, %f], (%a), %a, %d : i64 : f32
  return
}

// -----

func.func @columns_of_bytes(%i: i32, %a: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op of s8 and u8 has 8, 16, 24, 32, 48, ... 256 columns, not 40}}
  %x:4 = nvidia.wgmma s8 s8 40 [%i, %i, %i, %i], (%a), %a, %d : i64 : i32
  return
}

// -----

func.func @wgmma_of_doubles(%f: f32, %a: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op does not multiply f64}}
  %x:4 = nvidia.wgmma f64 f64 8 [%f, %f, %f, %f], (%a), %a, %d : i64 : f32
  return
}

// -----

func.func @wgmma_of_two_types(%f: f32, %a: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op multiplies operands of one type}}
  %x:4 = nvidia.wgmma f16 bf16 8 [%f, %f, %f, %f], (%a), %a, %d : i64 : f32
  return
}

// -----

func.func @transposed_bytes(%f: f32, %a: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op has MN-major operands only of f16 and bf16}}
  %x:4 = nvidia.wgmma e4m3 e4m3 8 [%f, %f, %f, %f], (%a), %a, %d {trans_b} : i64 : f32
  return
}

// -----

func.func @two_registers(%f: f32, %i: i32, %b: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op needs `a` as one i64 descriptor or four i32 registers}}
  %x:4 = nvidia.wgmma f16 f16 8 [%f, %f, %f, %f], (%i, %i), %b, %d : i32, i32 : f32
  return
}

// -----

func.func @transposed_registers(%f: f32, %i: i32, %b: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op has an MN-major `a` only in shared memory}}
  %x:4 = nvidia.wgmma f16 f16 8 [%f, %f, %f, %f], (%i, %i, %i, %i), %b, %d {trans_a} : i32, i32, i32, i32 : f32
  return
}

// -----

func.func @few_accumulators(%f: f32, %a: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op needs 4 f32 accumulators}}
  %x:2 = nvidia.wgmma f16 f16 8 [%f, %f], (%a), %a, %d : i64 : f32
  return
}

// -----

func.func @integer_accumulators(%i: i32, %a: i64, %d: i1) {
  // expected-error@+1 {{'nvidia.wgmma' op needs 4 f32 accumulators}}
  %x:4 = nvidia.wgmma f16 f16 8 [%i, %i, %i, %i], (%a), %a, %d : i64 : i32
  return
}

// -----

func.func @other_results(%f: f32) {
  // expected-error@+1 {{'nvidia.wgmma_wait' op has the types of its accumulators as results}}
  %x = "nvidia.wgmma_wait"(%f) {pending = 0 : i32} : (f32) -> i32
  return
}

// -----

func.func @many_registers() {
  // expected-error@+1 {{'nvidia.set_max_registers' op gives a thread 24, 32, ... 256 registers, not 100}}
  nvidia.set_max_registers 100 {increase = true}
  return
}

// -----

func.func @behind(%s: i32) {
  // expected-error@+1 {{'nvidia.mbarrier_arrive' op is behind what was read only in another block, and without expecting bytes}}
  nvidia.mbarrier_arrive %s behind %s
  return
}
