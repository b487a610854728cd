# SPDX-License-Identifier: Apache-2.0
"""The peers of `tenon bench gpu --suite matmul`, for gpu_peers.py: matrix products by cuBLAS (through PyTorch), by
kernels written in Triton, and by torch.compile.

A case of the suite is
    {"suite": "matmul", "work": "matmul" | "bias_gelu" | "gated_mlp" | "grouped_matmul", "dtype": "bf16",
     "shape": [m, n, k], "rows": [...] (of each expert), "bytes": ..., "sets": ..., "graph": ...}
with every weight in memory as [n, k], and its peers are
    cublas             torch.matmul into memory that is there; for f8e4m3 torch._scaled_mm with scales of 1
    cublas_fast        the latter with use_fast_accum: sums of fewer bits, so another result
    cublas_loop        one call for each expert
    torch_grouped      torch._grouped_mm
    torch_eager        the formula, op by op
    torch_compile      the formula through torch.compile, max-autotune
    triton_plain, triton_persistent, triton_descriptor
                       the kernels of triton_matmul.py at several sizes of tile; the fastest counts
    read               a pass over as many bytes as the case moves at least
"""

SHARED_BYTES = 227 * 1024  # that a block may have on Hopper


class Config:
    """Sizes of a Triton kernel's tile, and how it is compiled."""

    def __init__(self, bm, bn, bk, stages, warps, group=8, halves=False, specialize=False):
        self.bm, self.bn, self.bk, self.stages, self.warps, self.group = bm, bn, bk, stages, warps, group
        self.halves, self.specialize = halves, specialize

    def name(self):
        extra = (", halves" if self.halves else "") + (", specialised" if self.specialize else "")
        return f"{self.bm}x{self.bn}x{self.bk}, {self.stages} stages, {self.warps} warps{extra}"

    def shared_bytes(self, itemsize, staged_output):
        out = self.bm * self.bn * 2 // (2 if self.halves else 1) if staged_output else 0
        return self.stages * (self.bm + self.bn) * self.bk * itemsize + out


def triton_configs(peer, m, n, k):
    """What is tried for a product of 16-bit operands: {name: Config}. Small products want many small tiles."""
    if peer == "triton_descriptor":
        if (2 * k) % 16 or (2 * n) % 16:
            raise ValueError("rows that are no multiples of 16 bytes cannot be described")
        configs = [Config(128, 256, 64, 3, 8, halves=True), Config(128, 256, 64, 4, 8, halves=True),
                   Config(128, 128, 64, 4, 4), Config(128, 128, 64, 4, 8), Config(128, 128, 128, 3, 8, halves=True),
                   Config(128, 256, 64, 3, 8, halves=True, specialize=True)]
    elif peer == "triton_persistent":
        configs = [Config(128, 256, 64, 3, 8), Config(128, 128, 64, 4, 8), Config(128, 128, 64, 4, 4)]
    elif peer == "triton_plain":
        if m <= 128:
            rows = max(16, min(128, 1 << (m - 1).bit_length()))
            configs = [Config(rows, 64, 128, 4, 4), Config(rows, 32, 256, 3, 4), Config(rows, 128, 64, 4, 4)]
            if rows < 128:
                configs.append(Config(rows, 64, 256, 3, 4))
        else:
            configs = [Config(128, 128, 64, 4, 4), Config(64, 128, 64, 4, 4), Config(64, 64, 64, 5, 4),
                       Config(128, 256, 64, 3, 8)]
    else:
        raise ValueError(f"no kernel is called {peer}")
    staged = peer == "triton_descriptor"
    return {c.name(): c for c in configs if c.shared_bytes(2, staged) <= SHARED_BYTES}


def torch_dtype(torch, name):
    return {"bf16": torch.bfloat16, "f16": torch.float16, "f8e4m3": torch.float8_e4m3fn}[name]


def inputs(torch, case, device):
    """One set: normal numbers."""
    work, (m, n, k) = case["work"], case["shape"]
    dtype = torch_dtype(torch, case["dtype"])
    out = torch.bfloat16 if case["dtype"] == "f8e4m3" else dtype

    def normal(*sizes):
        made = torch.randn(*sizes, device=device, dtype=out)
        return made if out == dtype else made.to(dtype)

    if work == "matmul":
        return (normal(m, k), normal(n, k), torch.empty(m, n, device=device, dtype=out))
    if work == "bias_gelu":
        return (normal(m, k), normal(n, k), normal(n))
    if work == "gated_mlp":
        both = normal(2 * n, k)
        return (normal(m, k), both[:n], both[n:], both)
    if work == "grouped_matmul":
        ends = torch.tensor(case["rows"], device=device).cumsum(0).to(torch.int32)
        return (normal(m, k), normal(len(case["rows"]), n, k), ends, torch.empty(m, n, device=device, dtype=out))
    raise ValueError(f"no work is called {work}")


def formulas(torch, work):
    """What one would write, and another way to the same; each takes a set of inputs."""
    F = torch.nn.functional

    def joint(x, gate, up, both):
        g, u = (x @ both.t()).chunk(2, dim=-1)
        return F.silu(g) * u

    return {
        "bias_gelu": {"F.linear": lambda x, w, b: F.gelu(F.linear(x, w, b))},
        "gated_mlp": {"two products": lambda x, gate, up, both: F.silu(x @ gate.t()) * (x @ up.t()),
                      "one product": joint},
    }[work]


def cublas(torch, case, fast):
    if case["dtype"] != "f8e4m3":
        return {"torch.matmul": lambda a, b, c: torch.matmul(a, b.t(), out=c)}
    one = torch.ones((), device="cuda")
    return {"torch._scaled_mm": lambda a, b, c: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one,
                                                                 out_dtype=torch.bfloat16, use_fast_accum=fast)}


def grouped(torch, case, peer):
    if peer == "torch_grouped":
        if not hasattr(torch, "_grouped_mm"):
            return None
        return {"torch._grouped_mm": lambda a, w, ends, c: torch._grouped_mm(a, w.transpose(-2, -1), offs=ends,
                                                                             out_dtype=torch.bfloat16)}
    bounds, at = [], 0
    for rows in case["rows"]:
        bounds.append((at, at + rows))
        at += rows

    def loop(a, w, ends, c):
        for expert, (begin, end) in enumerate(bounds):
            torch.mm(a[begin:end], w[expert].t(), out=c[begin:end])

    return {"torch.mm": loop}


def triton_candidates(torch, case, peer):
    import triton
    import triton_matmul
    m, n, k = case["shape"]
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    described = {}  # descriptors of a set of inputs are made once

    def runner(config):
        tiles = triton.cdiv(m, config.bm) * triton.cdiv(n, config.bn)
        sizes = dict(BM=config.bm, BN=config.bn, BK=config.bk, GROUP=config.group, num_stages=config.stages,
                     num_warps=config.warps)

        def by_pointers(a, b, c):
            if peer == "triton_plain":
                triton_matmul.plain[(tiles,)](a, b, c, m, n, k, **sizes)
            else:
                triton_matmul.persistent[(min(programs, tiles),)](a, b, c, m, n, k, PROGRAMS=programs, **sizes)

        def by_descriptors(a, b, c):
            key = (config.name(), a.data_ptr())
            if key not in described:
                from triton.tools.tensor_descriptor import TensorDescriptor
                columns = config.bn // 2 if config.halves else config.bn
                described[key] = (TensorDescriptor.from_tensor(a, [config.bm, config.bk]),
                                  TensorDescriptor.from_tensor(b, [config.bn, config.bk]),
                                  TensorDescriptor.from_tensor(c, [config.bm, columns]))
            triton_matmul.descriptor[(min(programs, tiles),)](*described[key], m, n, k, PROGRAMS=programs,
                                                              HALVES=config.halves, SPECIALIZE=config.specialize,
                                                              FLATTEN=not config.specialize, **sizes)

        return by_descriptors if peer == "triton_descriptor" else by_pointers

    return {name: runner(config) for name, config in triton_configs(peer, m, n, k).items()}


def candidates(torch, case, peer):
    """{name: function of a set of inputs}; None where there is no such peer."""
    work = case["work"]
    if peer == "read":
        data = torch.randn(case["bytes"] // 4, device="cuda")
        return {"sum": lambda *_: torch.sum(data), "max as int": lambda *_: torch.max(data.view(torch.int32))}
    if work == "matmul":
        if peer in ("cublas", "cublas_fast"):
            return cublas(torch, case, peer == "cublas_fast")
        if peer.startswith("triton_") and case["dtype"] in ("bf16", "f16"):
            return triton_candidates(torch, case, peer)
    if work == "grouped_matmul" and peer in ("cublas_loop", "torch_grouped"):
        return grouped(torch, case, peer)
    if work in ("bias_gelu", "gated_mlp"):
        if peer == "torch_eager":
            return formulas(torch, work)
        if peer == "torch_compile":
            import torch._dynamo
            torch._dynamo.reset()
            return {f"max-autotune, {name}": torch.compile(function, mode="max-autotune-no-cudagraphs", dynamic=False,
                                                           fullgraph=True)
                    for name, function in formulas(torch, work).items()}
    return None


def check(torch, case, peer, function, sets, tolerance=0.02):
    """Whether a candidate that writes into memory of ours has written the product: a wrong kernel is no peer."""
    if case["work"] != "matmul" or not peer.startswith("triton_"):
        return
    a, b, c = sets[0]
    c.fill_(float("nan"))
    function(a, b, c)
    rows = torch.linspace(0, a.shape[0] - 1, 16, device=a.device).long()
    wanted = a[rows].float() @ b.float().t()
    error = ((c[rows].float() - wanted).norm() / wanted.norm()).item()
    if not error < tolerance:
        raise RuntimeError(f"wrong by {error:.2g}")


def self_test():
    """What can be checked without a GPU."""
    shapes = [(8192, 8192, 8192), (1024, 1024, 1024), (16, 8192, 8192), (1, 4096, 14336), (512, 7168, 2048)]
    for m, n, k in shapes:
        for peer in ("triton_plain", "triton_persistent", "triton_descriptor"):
            configs = triton_configs(peer, m, n, k)
            assert configs, (peer, m, n, k)
            for name, config in configs.items():
                assert config.shared_bytes(2, peer == "triton_descriptor") <= SHARED_BYTES, name
                for size in (config.bm, config.bn, config.bk):
                    assert size >= 16 and size & (size - 1) == 0, name
    try:
        triton_configs("triton_descriptor", 4097, 4099, 4101)
        raise AssertionError("rows of odd length were described")
    except ValueError:
        pass
    assert all(c.bm == 16 for c in triton_configs("triton_plain", 1, 64, 64).values())
    try:
        import torch
    except ImportError:
        return "tilings"
    for work in ("bias_gelu", "gated_mlp"):
        case = {"work": work, "shape": [5, 7, 6], "dtype": "bf16"}
        made = inputs(torch, case, "cpu")
        results = [function(*made).float() for function in formulas(torch, work).values()]
        assert all(torch.allclose(results[0], other, atol=0.05, rtol=0.05) for other in results), work
    case = {"work": "grouped_matmul", "shape": [6, 7, 8], "rows": [1, 0, 5], "dtype": "bf16"}
    a, w, ends, c = inputs(torch, case, "cpu")
    grouped(torch, case, "cublas_loop")["torch.mm"](a, w, ends, c)
    assert torch.equal(c[1:], a[1:] @ w[2].t()) and ends.tolist() == [1, 1, 6]
    return "tilings and formulas"
