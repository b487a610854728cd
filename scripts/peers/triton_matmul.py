# SPDX-License-Identifier: Apache-2.0
"""Matrix products as one writes them in Triton, for matmul_peers.py: c = a * b^T with a [M, K], b [N, K] and c [M, N],
all contiguous. In a file of their own: Triton wants names of the module."""
import triton
import triton.language as tl


@triton.jit
def tile_place(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Where a tile is, in an order that walks down GROUP rows of tiles before it goes on to the next column: what they
    share is still in the cache."""
    in_band = GROUP * tiles_n
    first = tile // in_band * GROUP
    height = min(tiles_m - first, GROUP)
    return first + tile % in_band % height, tile % in_band // height


@triton.jit
def dot_tile(a, b, row, col, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One tile of the product through pointers. Rows and columns past the end wrap around: they are not stored."""
    rows = (row * BM + tl.arange(0, BM)) % M
    cols = (col * BN + tl.arange(0, BN)) % N
    inner = tl.arange(0, BK)
    a_at = a + rows[:, None].to(tl.int64) * K + inner[None, :]
    b_at = b + cols[None, :].to(tl.int64) * K + inner[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        acc = tl.dot(tl.load(a_at, mask=inner[None, :] < left, other=0.0),
                     tl.load(b_at, mask=inner[:, None] < left, other=0.0), acc)
        a_at += BK
        b_at += BK
    return acc


@triton.jit
def store_tile(c, acc, row, col, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = row * BM + tl.arange(0, BM)
    cols = col * BN + tl.arange(0, BN)
    tl.store(c + rows[:, None].to(tl.int64) * N + cols[None, :], acc.to(c.dtype.element_ty),
             mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def plain(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """A program a tile."""
    row, col = tile_place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    store_tile(c, dot_tile(a, b, row, col, M, N, K, BM, BN, BK), row, col, M, N, BM, BN)


@triton.jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
               PROGRAMS: tl.constexpr):
    """As many programs as multiprocessors, each with every so-manieth tile."""
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS):
        row, col = tile_place(tile, tiles_m, tiles_n, GROUP)
        store_tile(c, dot_tile(a, b, row, col, M, N, K, BM, BN, BK), row, col, M, N, BM, BN)


@triton.jit
def descriptor(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
               PROGRAMS: tl.constexpr, HALVES: tl.constexpr, SPECIALIZE: tl.constexpr, FLATTEN: tl.constexpr):
    """The same through tensor descriptors, which the tensor memory accelerator follows. HALVES: the tile is stored in
    two parts, which need half the shared memory."""
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    steps = tl.cdiv(K, BK)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=FLATTEN,
                         warp_specialize=SPECIALIZE):
        row, col = tile_place(tile, tiles_m, tiles_n, GROUP)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, steps):
            acc = tl.dot(a.load([row * BM, k * BK]), b.load([col * BN, k * BK]).T, acc)
        if HALVES:
            first, second = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
            c.store([row * BM, col * BN], first.to(c.dtype))
            c.store([row * BM, col * BN + BN // 2], second.to(c.dtype))
        else:
            c.store([row * BM, col * BN], acc.to(c.dtype))
