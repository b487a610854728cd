// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tenon/lang/Kernel.h"

/// The kernels themselves, for launching directly; Zoo.h lists them with problems and references. Each README says what
/// the arguments are.
namespace tenon::zoo {

extern const Kernel vectorAdd, gelu, biasGelu, swiglu, softmax, layerNorm, rmsNorm, rotary, crossEntropy, dropout,
    matmul, batchedMatmul, groupedMatmul, dequantMatmul, gatedMlp, attention;

/// The type to compute in: loads are widened to it, and only the store rounds.
inline DType computeType(const View &x) { return x.dtype() == f64 ? f64 : f32; }

/// The type that dot() of such operands adds up in.
inline DType accumulatorType(const View &x) { return isInteger(x.dtype()) ? i32 : computeType(x); }

/// What matmul does to its result before storing it (its Param `activation`).
enum Activation : int64_t { none, relu, geluExact, silu };

} // namespace tenon::zoo
