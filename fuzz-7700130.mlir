// SPDX-License-Identifier: Apache-2.0
// 7700130, check cpu/baseline/t2, crash: Terminated
module {
  func.func @kernel(%arg0: !tile.view<2, i1> {fuzz.fill = "unit", fuzz.sizes = array<i64: 6, 26>, fuzz.strides = array<i64: 2, 12>}, %arg1: !tile.view<5, f64> {fuzz.fill = "unit", fuzz.sizes = array<i64: 4, 5, 6, 8, 6>, fuzz.strides = array<i64: 1440, 288, 48, 6, 1>}, %arg2: f64 {fuzz.word = -4616189618054758400 : i64}) attributes {fuzz.seed = 3850065 : i64} {
    %0 = tile.size %arg0, 1 : <2, i1>
    %c4 = arith.constant 4 : index
    %1 = arith.addi %0, %c4 : index
    %c5 = arith.constant 5 : index
    %2 = tile.div %1, %c5 : index
    %3 = tile.grid %2
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c-5 = arith.constant -5 : index
    %c7 = arith.constant 7 : index
    %c8_0 = arith.constant 8 : index
    %4 = tile.rem unsigned %c8, %c8_0 : index
    %5 = tile.load %arg1[%c-5, %c7, %3, %c0, %4] padding %arg2 : f64 : <5, f64> -> tensor<17x12x1x1x1xf64>
    %6 = tile.iota 4 : tensor<17x12x1x1x1xi64>
    %7 = tile.iota 3 : tensor<17x12x1x1x1xi64>
    %8 = arith.addi %6, %7 : tensor<17x12x1x1x1xi64>
    %9 = tile.iota 2 : tensor<17x12x1x1x1xi64>
    %10 = arith.addi %8, %9 : tensor<17x12x1x1x1xi64>
    %11 = tile.iota 1 : tensor<17x12x1x1x1xi64>
    %12 = arith.addi %10, %11 : tensor<17x12x1x1x1xi64>
    %13 = tile.iota 0 : tensor<17x12x1x1x1xi64>
    %cst = arith.constant dense<12> : tensor<17x12x1x1x1xi64>
    %14 = arith.muli %13, %cst : tensor<17x12x1x1x1xi64>
    %15 = arith.addi %12, %14 : tensor<17x12x1x1x1xi64>
    %cst_1 = arith.constant dense<89> : tensor<17x12x1x1x1xi64>
    %16 = arith.muli %15, %cst_1 : tensor<17x12x1x1x1xi64>
    %cst_2 = arith.constant dense<0> : tensor<17x12x1x1x1xi64>
    %17 = arith.addi %16, %cst_2 : tensor<17x12x1x1x1xi64>
    %cst_3 = arith.constant dense<206> : tensor<17x12x1x1x1xi64>
    %18 = tile.rem unsigned %17, %cst_3 : tensor<17x12x1x1x1xi64>
    %c1 = arith.constant 1 : index
    %19 = arith.muli %3, %c1 : index
    %c6 = arith.constant 6 : index
    %c6_4 = arith.constant 6 : index
    %20 = tile.rem unsigned %c6, %c6_4 : index
    %21 = tile.cast %20 : index -> i64
    %22 = tile.splat %21 : i64 -> tensor<17x12x1x1x1xi64>
    %c0_5 = arith.constant 0 : index
    %23 = arith.addi %19, %c0_5 : index
    %24 = tile.cast %23 : index -> i64
    %25 = tile.splat %24 : i64 -> tensor<17x12x1x1x1xi64>
    %c9 = arith.constant 9 : index
    %26 = tile.rem unsigned %3, %c9 : index
    %27 = tile.cast %26 : index -> i64
    %28 = tile.splat %27 : i64 -> tensor<17x12x1x1x1xi64>
    %c26 = arith.constant 26 : index
    %c7_6 = arith.constant 7 : index
    %29 = tile.rem unsigned %c26, %c7_6 : index
    %30 = tile.cast %29 : index -> i64
    %31 = tile.splat %30 : i64 -> tensor<17x12x1x1x1xi64>
    %32 = tile.cast unsigned %5 : tensor<17x12x1x1x1xf64> -> tensor<17x12x1x1x1xi1>
    tile.scatter %5, %arg1[%18, %22, %25, %28, %31 : tensor<17x12x1x1x1xi64>, tensor<17x12x1x1x1xi64>, tensor<17x12x1x1x1xi64>, tensor<17x12x1x1x1xi64>, tensor<17x12x1x1x1xi64>] mask %32 : tensor<17x12x1x1x1xi1> : tensor<17x12x1x1x1xf64>, <5, f64>
    %33 = tile.splat %arg2 : f64 -> tensor<1xf64>
    %cst_7 = arith.constant 1.000000e+00 : f64
    %34 = tile.splat %cst_7 : f64 -> tensor<1xf64>
    %c3 = arith.constant 3 : index
    %c0_8 = arith.constant 0 : index
    %c1_9 = arith.constant 1 : index
    %35:2 = scf.for %arg3 = %c0_8 to %c3 step %c1_9 iter_args(%arg4 = %33, %arg5 = %34) -> (tensor<1xf64>, tensor<1xf64>) {
      %53 = arith.negf %arg5 : tensor<1xf64>
      %54 = tile.transpose %arg4 [0] : tensor<1xf64> -> tensor<1xf64>
      %55 = arith.divf %53, %54 : tensor<1xf64>
      %56 = tile.reduce %arg5 dim 0 : (tensor<1xf64>) -> tensor<1xf64> {
      ^bb0(%arg6: f64, %arg7: f64):
        %76 = arith.minimumf %arg6, %arg7 : f64
        tile.yield %76 : f64
      }
      %57 = tile.broadcast %56 : tensor<1xf64> -> tensor<1xf64>
      %58 = tile.transpose %55 [0] : tensor<1xf64> -> tensor<1xf64>
      %59 = math.fma %57, %58, %57 : tensor<1xf64>
      %60 = tile.iota 0 : tensor<1xi64>
      %61 = tile.reshape %60 : tensor<1xi64> -> tensor<1xi64>
      %cst_21 = arith.constant dense<4> : tensor<1xi64>
      %62 = arith.muli %61, %cst_21 : tensor<1xi64>
      %cst_22 = arith.constant dense<1> : tensor<1xi64>
      %63 = arith.addi %62, %cst_22 : tensor<1xi64>
      %cst_23 = arith.constant dense<9> : tensor<1xi64>
      %64 = tile.rem unsigned %63, %cst_23 : tensor<1xi64>
      %c1_24 = arith.constant 1 : index
      %65 = arith.muli %3, %c1_24 : index
      %cst_25 = arith.constant dense<1> : tensor<1xi64>
      %cst_26 = arith.constant dense<-1> : tensor<1xi64>
      %c0_27 = arith.constant 0 : index
      %66 = arith.addi %65, %c0_27 : index
      %67 = tile.cast %66 : index -> i64
      %68 = tile.splat %67 : i64 -> tensor<1xi64>
      %c9_28 = arith.constant 9 : index
      %69 = tile.rem unsigned %c8, %c9_28 : index
      %70 = tile.cast %69 : index -> i64
      %71 = tile.splat %70 : i64 -> tensor<1xi64>
      tile.scatter %arg5, %arg1[%cst_25, %cst_26, %68, %71, %64 : tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>] : tensor<1xf64>, <5, f64>
      %72 = math.absf %59 : tensor<1xf64>
      %73 = tile.transpose %72 [0] : tensor<1xf64> -> tensor<1xf64>
      %74 = tile.transpose %73 [0] : tensor<1xf64> -> tensor<1xf64>
      %75 = arith.minimumf %59, %74 : tensor<1xf64>
      scf.yield %75, %55 : tensor<1xf64>, tensor<1xf64>
    }
    %36 = tile.cast unsigned %35#1 : tensor<1xf64> -> tensor<1xi16>
    %c0_i16 = arith.constant 0 : i16
    %37 = tile.splat %c0_i16 : i16 -> tensor<1xi16>
    %38 = math.absi %36 : tensor<1xi16>
    %39 = tile.scan %5 dim 3 reverse : (tensor<17x12x1x1x1xf64>) -> tensor<17x12x1x1x1xf64> {
    ^bb0(%arg3: f64, %arg4: f64):
      %53 = arith.maximumf %arg3, %arg4 : f64
      tile.yield %53 : f64
    }
    %40 = arith.maxnumf %35#0, %35#0 : tensor<1xf64>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<1xf64>
    %41 = arith.addf %40, %cst_10 : tensor<1xf64>
    %c0_11 = arith.constant 0 : index
    %42 = arith.addi %c0, %c0 : index
    %43 = tile.load %arg0[%c0_11, %42] : <2, i1> -> tensor<23x23xi1>
    %44 = tile.cast %43 : tensor<23x23xi1> -> tensor<23x23xf64>
    %c2 = arith.constant 2 : index
    %c0_12 = arith.constant 0 : index
    %c1_13 = arith.constant 1 : index
    %45 = scf.for %arg3 = %c0_12 to %c2 step %c1_13 iter_args(%arg4 = %44) -> (tensor<23x23xf64>) {
      %53 = tile.transpose %arg4 [1, 0] : tensor<23x23xf64> -> tensor<23x23xf64>
      %54 = tile.slice %arg4 [19, 0] : tensor<23x23xf64> -> tensor<1x23xf64>
      %55 = tile.broadcast %54 : tensor<1x23xf64> -> tensor<23x23xf64>
      %56 = math.fma %53, %55, %53 : tensor<23x23xf64>
      %57 = tile.slice %56 [1, 0] : tensor<23x23xf64> -> tensor<22x23xf64>
      %58 = tile.slice %56 [0, 0] : tensor<23x23xf64> -> tensor<1x23xf64>
      %59 = tile.concat %57, %58 dim 0 : tensor<22x23xf64>, tensor<1x23xf64> -> tensor<23x23xf64>
      %60 = tile.slice %56 [4, 0] : tensor<23x23xf64> -> tensor<1x23xf64>
      %61 = tile.broadcast %60 : tensor<1x23xf64> -> tensor<23x23xf64>
      %62 = arith.divf %59, %61 : tensor<23x23xf64>
      %63 = tile.reshape %62 : tensor<23x23xf64> -> tensor<23x1x1x23x1xf64>
      %c-8 = arith.constant -8 : index
      %c1_21 = arith.constant 1 : index
      %64 = arith.muli %c8, %c1_21 : index
      %c0_22 = arith.constant 0 : index
      tile.store %63, %arg1[%c-8, %64, %3, %c0, %c0_22] : tensor<23x1x1x23x1xf64>, <5, f64>
      %65 = tile.transpose %arg4 [1, 0] : tensor<23x23xf64> -> tensor<23x23xf64>
      %66 = math.fma %arg4, %65, %arg4 : tensor<23x23xf64>
      %67 = tile.reduce %56 dim 1 : (tensor<23x23xf64>) -> tensor<23x1xf64> {
      ^bb0(%arg5: f64, %arg6: f64):
        %70 = arith.maximumf %arg5, %arg6 : f64
        tile.yield %70 : f64
      }
      %68 = tile.broadcast %67 : tensor<23x1xf64> -> tensor<23x23xf64>
      %69 = arith.divf %56, %68 : tensor<23x23xf64>
      scf.yield %66 : tensor<23x23xf64>
    }
    %46 = tile.cast %45 : tensor<23x23xf64> -> tensor<23x23xi8>
    %47 = math.exp2 %39 : tensor<17x12x1x1x1xf64>
    %48 = tile.reshape %41 : tensor<1xf64> -> tensor<1x1x1x1x1xf64>
    %c0_14 = arith.constant 0 : index
    %c1_15 = arith.constant 1 : index
    %49 = arith.muli %3, %c1_15 : index
    tile.store %48, %arg1[%c8, %c8, %3, %c0_14, %49] : tensor<1x1x1x1x1xf64>, <5, f64>
    %50 = tile.reshape %46 : tensor<23x23xi8> -> tensor<1x23x23x1x1xi8>
    %51 = tile.slice %50 [0, 0, 7, 0, 0] : tensor<1x23x23x1x1xi8> -> tensor<1x23x1x1x1xi8>
    %52 = tile.cast %51 : tensor<1x23x1x1x1xi8> -> tensor<1x23x1x1x1xf64>
    %c0_16 = arith.constant 0 : index
    %c0_17 = arith.constant 0 : index
    %c0_18 = arith.constant 0 : index
    tile.store %52, %arg1[%c0_16, %c0_17, %3, %c0_18, %c0] : tensor<1x23x1x1x1xf64>, <5, f64>
    %c0_19 = arith.constant 0 : index
    %c0_20 = arith.constant 0 : index
    %c-1099511627776 = arith.constant -1099511627776 : index
    tile.store %47, %arg1[%c0_19, %c0_20, %3, %c0, %c-1099511627776] : tensor<17x12x1x1x1xf64>, <5, f64>
    return
  }
}
