// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(func.func(tenon-split-reduction))' \
// RUN:   | FileCheck %s
// CHECK-NOT: tile.workspace

// expected-remark @below {{no loop is shared by several program instances: there is none at the top level}}
func.func @none(%x: !tile.view<1, f32>, %n: index) {
  %i = tile.grid %n
  %t = tile.load %x[%i] : !tile.view<1, f32> -> tensor<64xf32>
  tile.store %t, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @several(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  // expected-remark @below {{several at the top level}}
  %b = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %s = arith.addf %acc, %a : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  tile.store %b, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @three_axes(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i, %j, %l = tile.grid %n, %n, %n
  // expected-remark @below {{the grid has three axes already}}
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  tile.store %a, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @not_from_zero(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %i = tile.grid %n
  // expected-remark @below {{a tile that it carries does not begin at zero}}
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %one) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  tile.store %a, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @scalar(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %c0 = arith.constant 0 : index
  %i = tile.grid %n
  // expected-remark @below {{it carries something that is no tile}}
  %a, %b = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero, %at = %c0) -> (tensor<64xf32>, index) {
    %t = tile.load %x[%at] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    %next = arith.addi %at, %c1 : index
    scf.yield %s, %next : tensor<64xf32>, index
  }
  tile.store %a, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @multiplied(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  // expected-remark @below {{a tile that it carries is used for more than to be added to}}
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.mulf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  tile.store %a, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// A sum that the body looks at: a running mean, a softmax.
func.func @seen(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  // expected-remark @below {{a tile that it carries is used for more than to be added to}}
  %a, %b = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero, %sum = %zero) -> (tensor<64xf32>, tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    %u = arith.addf %sum, %s : tensor<64xf32>
    scf.yield %s, %u : tensor<64xf32>, tensor<64xf32>
  }
  tile.store %b, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @operand(%x: !tile.view<2, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %i = tile.grid %n
  // expected-remark @below {{a tile that it carries is used for more than to be added to}}
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) {
    %t = tile.load %x[%k, %k] : !tile.view<2, f32> -> tensor<16x16xf32>
    %s = tile.dot %acc, %t, %t : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
    scf.yield %s : tensor<16x16xf32>
  }
  tile.store %a, %x[%i, %i] : tensor<16x16xf32>, !tile.view<2, f32>
  return
}

// -----

func.func @swapped(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  // expected-remark @below {{tiles that it carries change places}}
  %a, %b = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero, %sum = %zero) -> (tensor<64xf32>, tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %sum, %s : tensor<64xf32>, tensor<64xf32>
  }
  tile.store %b, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// An addition that only some iterations make.
func.func @sometimes(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  // expected-remark @below {{a tile that it carries is used for more than to be added to}}
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %odd = arith.cmpi eq, %k, %c1 : index
    %s = scf.if %odd -> (tensor<64xf32>) {
      %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
      %u = arith.addf %acc, %t : tensor<64xf32>
      scf.yield %u : tensor<64xf32>
    } else {
      scf.yield %acc : tensor<64xf32>
    }
    scf.yield %s : tensor<64xf32>
  }
  tile.store %a, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @nothing(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %i = tile.grid %n
  // expected-remark @below {{it carries nothing}}
  scf.for %k = %i to %n step %c1 {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    tile.store %t, %x[%k] : tensor<64xf32>, !tile.view<1, f32>
  }
  return
}

// -----

func.func @writes(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  // expected-remark @below {{it writes memory, asserts or prints}}
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    tile.store %t, %x[%k] : tensor<64xf32>, !tile.view<1, f32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  tile.store %a, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @writes_before(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  tile.store %zero, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  // expected-remark @below {{the program writes memory, asserts or prints before it}}
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  tile.store %a, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

// The text would name a place in a grid that the user did not ask for.
func.func @prints(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  // expected-remark @below {{the program asserts or prints}}
  %a = scf.for %k = %i to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  tile.print "sum", %a : tensor<64xf32>
  return
}

// -----

func.func @before_the_grid(%x: !tile.view<1, f32>, %n: index, %c1: index) {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  // expected-remark @below {{the grid is not declared before it}}
  %a = scf.for %k = %c1 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  %i = tile.grid %n
  tile.store %a, %x[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}
