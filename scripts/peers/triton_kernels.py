# SPDX-License-Identifier: Apache-2.0
"""Kernels as one writes them in Triton, for gpu_peers.py. In a file of their own: Triton wants names of the module."""
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def gelu(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    t = tl.load(x + i, i < n).to(tl.float32)
    t = 0.5 * t * (1 + libdevice.tanh(0.7978845608028654 * (t + 0.044715 * t * t * t)))
    tl.store(y + i, t.to(tl.bfloat16), i < n)


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    i = tl.arange(0, BLOCK)
    t = tl.load(x + row + i, i < cols, -float("inf")).to(tl.float32)
    t = tl.exp(t - tl.max(t, 0))
    tl.store(y + row + i, (t / tl.sum(t, 0)).to(tl.bfloat16), i < cols)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)
