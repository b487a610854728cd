// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(func.func(tenon-nvidia-share-tail))' \
// RUN:   | FileCheck %s
// CHECK-NOT: nvidia.share

func.func @triangle(%x: !tile.view<1, f32>, %y: !tile.view<1, f32>, %n: index, %c1: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %i = tile.grid %n
  // expected-remark @below {{for want of a loop that only adds up: how often it runs depends on the instance}}
  %a = scf.for %k = %c0 to %i step %c1 iter_args(%acc = %zero) -> (tensor<64xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f32> -> tensor<64xf32>
    %s = arith.addf %acc, %t : tensor<64xf32>
    scf.yield %s : tensor<64xf32>
  }
  tile.store %a, %y[%i] : tensor<64xf32>, !tile.view<1, f32>
  return
}

// -----

func.func @wide(%x: !tile.view<1, f64>, %y: !tile.view<1, f64>, %n: index, %c1: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64xf64>
  %i = tile.grid %n
  // expected-remark @below {{it carries elements that are not 32 bits wide}}
  %a = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf64>) {
    %t = tile.load %x[%k] : !tile.view<1, f64> -> tensor<64xf64>
    %s = arith.addf %acc, %t : tensor<64xf64>
    scf.yield %s : tensor<64xf64>
  }
  tile.store %a, %y[%i] : tensor<64xf64>, !tile.view<1, f64>
  return
}

// -----

func.func @different(%x: !tile.view<1, f64>, %y: !tile.view<1, f64>, %n: index, %c1: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<64xf64>
  %none = arith.constant dense<0.0> : tensor<32xf32>
  %one = arith.constant dense<1.0> : tensor<32xf32>
  %i = tile.grid %n
  // expected-remark @below {{it carries tiles of different types}}
  %a:2 = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero, %b = %none) -> (tensor<64xf64>, tensor<32xf32>) {
    %t = tile.load %x[%k] : !tile.view<1, f64> -> tensor<64xf64>
    %s = arith.addf %acc, %t : tensor<64xf64>
    %u = arith.addf %b, %one : tensor<32xf32>
    scf.yield %s, %u : tensor<64xf64>, tensor<32xf32>
  }
  tile.store %a#0, %y[%i] : tensor<64xf64>, !tile.view<1, f64>
  return
}
