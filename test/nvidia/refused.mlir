// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt %s -split-input-file -verify-diagnostics --tenon-nvidia-lower-to-llvm=architecture=sm_80

func.func @stmatrix(%v: vector<4xi32>) attributes {nvidia.threads = 32 : i64} {
  %c = arith.constant 0 : i32
  // expected-error @below {{stmatrix needs sm_90, not sm_80}}
  nvidia.stmatrix %c, %v : vector<4xi32>
  return
}

// -----

func.func @cluster() attributes {nvidia.threads = 32 : i64} {
  // expected-error @below {{cluster_rank needs sm_90, not sm_80}}
  %r = nvidia.cluster_rank
  // expected-error @below {{load from another block's shared memory needs sm_90, not sm_80}}
  %v = nvidia.load cluster %r : i32 -> i32
  // expected-error @below {{await_earlier_launches needs sm_90, not sm_80}}
  nvidia.await_earlier_launches
  // expected-error @below {{fence proxy_async needs sm_90, not sm_80}}
  nvidia.fence proxy_async
  return
}

// -----

func.func @fp8(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) attributes {nvidia.threads = 32 : i64} {
  // expected-error @below {{mma of e4m3 needs sm_89, not sm_80}}
  %d = nvidia.mma e4m3 e5m2 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  return
}
