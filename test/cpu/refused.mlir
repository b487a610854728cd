// SPDX-License-Identifier: Apache-2.0
// RUN: tenon-opt -split-input-file -verify-diagnostics -tenon-cpu-lower-to-loops %s
// RUN: not tenon-opt -tenon-cpu-lower-to-loops=isa=sse9 %S/plan.mlir 2>&1 | FileCheck %s
// CHECK: error: unknown instruction set "sse9": use amx, avx512, avx2 or baseline

// expected-error@+1 {{expected a module with one kernel, a func.func with one block}}
module {
}

// -----

// expected-error@+1 {{expected a module with one kernel, a func.func with one block}}
module {
  func.func private @declared(!tile.view<1, f32>)
}

// -----

// expected-error@+1 {{expected a module with one kernel, a func.func with one block}}
module {
  func.func @a() {
    return
  }
  func.func @b() {
    return
  }
}

// -----

// The launch needs the grid before any tile exists.
module {
  func.func @grid_from_a_tile(%t: !tile.view<1, i32>) {
    %c0 = arith.constant 0 : index
    %n = tile.load %t[%c0] : !tile.view<1, i32> -> tensor<1xi32>
    // expected-error@+1 {{the grid, require() and workspace sizes may depend only on view sizes, scalars and parameters}}
    %s = tile.scalar %n : tensor<1xi32>
    %extent = tile.cast %s : i32 -> index
    %i = tile.grid %extent
    return
  }
}
