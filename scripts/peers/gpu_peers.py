#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The other side of `tenon bench gpu --peers`: the same work by PyTorch, Triton or JAX.

    gpu_peers.py torch | jax | fake       answers questions (below)
    gpu_peers.py --self-test              checks the protocol, and the peers' formulas where PyTorch is at hand; no GPU

Questions and answers are JSON objects, one a line, on the standard input and output. First, without a question:
    {"framework": "torch", "versions": {"python": "3.12.3", "torch": "2.11.0", ...}}
    with "missing": "No module named 'torch'" where it is not installed; every question is then answered with an error.
Then, as often as asked:
    {"case": {"kernel": "softmax", "shape": [16384, 8192], "bytes": 536870912, "sets": 1, "graph": 0},
     "peer": "torch_eager"}                                        (on one line)
        {"ready": true, "variant": "max-autotune-no-cudagraphs", "launches": 24}
        or {"error": "...", "missing": true (not installed) or "none": true (there is no such peer)}
    {"burst": true}
        {"ms": 0.1264}                                             per launch, of what was made ready last
    {"burst": true, "peer": "torch_eager", "length_ms": 15, "untimed": 1}
        the same of another peer of the same case, about so long, after so many launches that do not count

A case is bf16 and forward only, or one of matmul_peers.py. "sets" is how many copies of the inputs are taken in turn;
"graph", if not 0, how many launches are captured as one CUDA graph. A peer that can be had in several ways (formulas,
compiler settings) tries them all when it is made ready and keeps the fastest, which "variant" names.
"""
import gc
import json
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True  # nothing is left beside the sources
import matmul_peers
import peer_protocol
from peer_protocol import NoSuchPeer

BURST_MS = 3.0
JAX_BURST_MS = 10.0  # timed from the host: long enough that its overhead does not count


# ---- PyTorch and Triton ---------------------------------------------------------------------------------------------


def torch_inputs(torch, case, device):
    """One set of inputs: normal numbers, and what each kernel takes beside them."""
    kernel, shape = case["kernel"], case["shape"]

    def normal(*sizes):
        return torch.randn(*sizes, device=device, dtype=torch.bfloat16)

    if kernel in ("gelu_tanh", "softmax", "dropout"):
        return (normal(*shape),)
    if kernel == "swiglu":
        return (normal(*shape), normal(*shape))
    if kernel in ("bias_gelu", "rms_norm"):
        return (normal(*shape), normal(shape[1]))
    if kernel == "layer_norm":
        return (normal(*shape), normal(*shape), normal(shape[1]), normal(shape[1]))
    if kernel == "rotary":
        half = shape[2] // 2
        frequency = 10000.0 ** (-torch.arange(half, device=device, dtype=torch.float64) / half)
        angle = torch.arange(shape[0], device=device, dtype=torch.float64)[:, None] * frequency
        return (normal(*shape), angle.cos().to(torch.bfloat16), angle.sin().to(torch.bfloat16))
    if kernel == "cross_entropy":
        return (normal(*shape), torch.randint(0, shape[1], (shape[0],), device=device))
    if kernel in ("copy", "read"):
        count = case["bytes"] // (4 if kernel == "copy" else 2)  # copied: read once, written once
        return (normal(count // 2 * 2),)  # pairs are read as one float
    if kernel == "launch_cost":
        return (torch.randn(1024, device=device), torch.randn(1024, device=device))
    raise NoSuchPeer(f"no peer knows the kernel {kernel}")


def torch_formulas(torch, kernel):
    """Names and functions that compute the same. The first one is what one would write."""
    F = torch.nn.functional

    def rotary(x, cosine, sine):
        first, second = x.chunk(2, dim=-1)
        c, s = cosine[:, None, :], sine[:, None, :]
        return torch.cat((first * c - second * s, second * c + first * s), dim=-1)

    def layer_norm(x, residual, weight, bias):
        total = x + residual
        return F.layer_norm(total, (total.shape[-1],), weight, bias, 1e-5), total

    formulas = {
        "gelu_tanh": {"F.gelu": lambda x: F.gelu(x, approximate="tanh")},
        "bias_gelu": {"F.gelu": lambda x, b: F.gelu(x + b, approximate="tanh")},
        "swiglu": {"F.silu": lambda gate, up: F.silu(gate) * up},
        "softmax": {"softmax": lambda x: torch.softmax(x, -1)},
        "rms_norm": {"F.rms_norm": lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6)},
        "layer_norm": {"F.layer_norm": layer_norm},
        "rotary": {"rotate_half": rotary},
        "dropout": {"F.dropout": lambda x: F.dropout(x, 0.1, True)},
        "cross_entropy": {
            "F.cross_entropy": lambda x, t: F.cross_entropy(x, t, reduction="none"),
            "F.cross_entropy of float": lambda x, t: F.cross_entropy(x.float(), t, reduction="none"),
        },
        "read": {
            "sum as float": lambda x: torch.sum(x.view(torch.float32)),
            "max as int": lambda x: torch.max(x.view(torch.int32)),
        },
    }
    if kernel not in formulas:
        raise NoSuchPeer(f"no peer knows the kernel {kernel}")
    return formulas[kernel]


def triton_candidates(torch, kernel, shape):
    """Hand-written Triton kernels at several numbers of warps: {name: function of the inputs}."""
    import triton
    import triton_kernels

    def gelu(block, warps):
        def run(x):
            y = torch.empty_like(x)
            triton_kernels.gelu[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), BLOCK=block, num_warps=warps)
            return y
        return run

    def softmax(warps):
        def run(x):
            y = torch.empty_like(x)
            block = triton.next_power_of_2(x.shape[1])
            triton_kernels.softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps=warps)
            return y
        return run

    if kernel == "gelu_tanh":
        return {f"block {b}, {w} warps": gelu(b, w) for b, w in ((1024, 4), (2048, 4), (4096, 8))}
    if kernel == "softmax":
        # More than 128 elements a thread would spill, and take long to compile: only where there is no other way.
        fitting = [w for w in (4, 8, 16, 32) if shape[1] <= 128 * 32 * w] or [32]
        return {f"{w} warps": softmax(w) for w in fitting}
    if kernel == "launch_cost":
        out = torch.empty(1024, device="cuda")
        return {"add": lambda a, b: triton_kernels.add[(1,)](a, b, out, 1024, BLOCK=1024)}
    raise NoSuchPeer(f"there is no Triton kernel for {kernel}")


class TorchPeers:
    def __init__(self):
        import torch
        self.torch = torch
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
        torch.manual_seed(0)
        self.case = self.inputs = self.last = None
        self.runs = {}  # of the peers of the case, by name

    def versions(self):
        versions = {"torch": self.torch.__version__, "torch_cuda": self.torch.version.cuda}
        try:
            import triton
            versions["triton"] = triton.__version__
        except ImportError as error:
            versions["triton"] = f"not installed: {error}"
        return versions

    def prepare(self, case, peer):
        torch = self.torch
        self.last = None
        if case != self.case:
            self.case = self.inputs = None
            self.runs = {}
            gc.collect()
            torch.cuda.empty_cache()
            make = matmul_peers.inputs if case.get("suite") == "matmul" else torch_inputs
            self.inputs = [make(torch, case, "cuda") for _ in range(case.get("sets", 1))]
            self.case = case
        with torch.no_grad():
            candidates = self.candidates(case, peer)
            best, failures = None, []
            for name, function in candidates.items():
                try:
                    if case.get("suite") == "matmul":
                        matmul_peers.check(torch, case, peer, function, self.inputs)
                    run, launches = self.runner(case, function)
                    ms = statistics.median(run() for _ in range(3))
                except Exception as error:  # one way of several; told if none works
                    failures.append(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[-1][:200]}"
                                    if str(error).strip() else f"{name}: {type(error).__name__}")
                    continue
                if best is None or ms < best[0]:
                    best = (ms, name, run, launches)
        if best is None:
            raise RuntimeError("; ".join(failures))
        self.runs[peer], self.last = best[2], peer
        return {"variant": best[1], "launches": best[3], **({"failed_variants": failures} if failures else {})}

    def candidates(self, case, peer):
        torch = self.torch
        if case.get("suite") == "matmul":
            found = matmul_peers.candidates(torch, case, peer)
            if found is None:
                raise NoSuchPeer(f"{peer} is no peer of {case['work']} in {case['dtype']}")
            return found
        kernel = case["kernel"]
        if peer == "triton":
            return triton_candidates(torch, kernel, case["shape"])
        if kernel == "copy":
            target = torch.empty_like(self.inputs[0][0])
            return {"copy_": lambda x: target.copy_(x)}
        if kernel == "launch_cost":
            out = torch.empty(1024, device="cuda")
            return {"add": lambda a, b: torch.add(a, b, out=out)}
        formulas = torch_formulas(torch, kernel)
        if peer in ("torch_eager", "read"):
            return formulas
        if peer == "torch_compile":
            import torch._dynamo
            torch._dynamo.reset()  # else the sixth length of softmax is compiled for any length
            compiled = {}
            for mode in ("default", "max-autotune-no-cudagraphs"):
                for name, function in formulas.items():
                    label = mode if len(formulas) == 1 else f"{mode}, {name}"
                    compiled[label] = torch.compile(function, mode=mode, dynamic=False, fullgraph=True)
            return compiled
        raise NoSuchPeer(f"PyTorch is no peer called {peer}")

    def runner(self, case, function):
        """What runs one burst and returns milliseconds per launch, and how many launches it has."""
        torch, inputs = self.torch, self.inputs
        if case.get("kernel") == "launch_cost":
            return self.host_runner(function), 200
        for _ in range(3):
            function(*inputs[0])  # compiles
        torch.cuda.synchronize()
        if graph_launches := case.get("graph", 0):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for _ in range(3):
                    function(*inputs[0])
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for i in range(graph_launches):
                    function(*inputs[i % len(inputs)])
            step, per_step, warm = (lambda i: graph.replay()), graph_launches, 1
        else:
            step, per_step, warm = (lambda i: function(*inputs[i % len(inputs)])), 1, 2
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def timed(count, untimed=warm):
            with torch.no_grad():
                for i in range(untimed):
                    step(i)
                start.record()
                for i in range(count):
                    step(i)
                end.record()
            end.synchronize()
            return start.elapsed_time(end) / count

        timed(3)
        once = max(timed(3 if timed(1) > 1 else 10), 1e-4)

        def burst(length_ms=BURST_MS, untimed=warm):
            return timed(max(1, min(2000, round(length_ms / once))), untimed) / per_step

        return burst, max(1, min(2000, round(BURST_MS / once))) * per_step

    def host_runner(self, function):
        """The host's time of a launch: so few that the device's queue never fills."""
        torch, arguments = self.torch, self.inputs[0]

        def timed():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):
                function(*arguments)
            stop = time.perf_counter()
            torch.cuda.synchronize()
            return (stop - start) / 200 * 1e3

        timed()
        return timed

    def burst(self, peer=None, **length):
        return self.runs[peer or self.last](**length)


# ---- JAX ------------------------------------------------------------------------------------------------------------


def jax_formulas(jax, kernel):
    jnp = jax.numpy
    wide, narrow = (lambda x: x.astype(jnp.float32)), (lambda x: x.astype(jnp.bfloat16))

    def rms_norm(x, w):
        t = wide(x)
        return narrow(t * jax.lax.rsqrt(jnp.mean(t * t, -1, keepdims=True) + 1e-6) * wide(w))

    def layer_norm(x, residual, w, b):
        t = wide(x) + wide(residual)
        centred = t - jnp.mean(t, -1, keepdims=True)
        scale = jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5)
        return narrow(centred * scale * wide(w) + wide(b)), narrow(t)

    def rotary(x, cosine, sine):
        first, second = jnp.split(wide(x), 2, axis=-1)
        c, s = wide(cosine)[:, None, :], wide(sine)[:, None, :]
        return narrow(jnp.concatenate((first * c - second * s, second * c + first * s), axis=-1))

    def cross_entropy(x, t):
        t32 = wide(x)
        wanted = jnp.take_along_axis(t32, t[:, None], axis=-1)[:, 0]
        return jax.nn.logsumexp(t32, axis=-1) - wanted

    def dropout(x, key):
        keep = jax.random.bernoulli(key, 0.9, x.shape)
        return jnp.where(keep, narrow(wide(x) / 0.9), 0)

    formulas = {
        "gelu_tanh": {"nn.gelu": lambda x: jax.nn.gelu(x, approximate=True),
                      "nn.gelu of float": lambda x: narrow(jax.nn.gelu(wide(x), approximate=True))},
        "bias_gelu": {"nn.gelu of float": lambda x, b: narrow(jax.nn.gelu(wide(x) + wide(b), approximate=True))},
        "swiglu": {"nn.silu of float": lambda gate, up: narrow(jax.nn.silu(wide(gate)) * wide(up))},
        "softmax": {"nn.softmax": lambda x: jax.nn.softmax(x, -1),
                    "nn.softmax of float": lambda x: narrow(jax.nn.softmax(wide(x), -1))},
        "rms_norm": {"formula": rms_norm},
        "layer_norm": {"formula": layer_norm},
        "rotary": {"rotate_half": rotary},
        "cross_entropy": {"logsumexp": cross_entropy},
        "dropout": {"bernoulli": dropout},
    }
    if kernel not in formulas:
        raise NoSuchPeer(f"JAX is no peer of {kernel}")
    return formulas[kernel]


class JaxPeers:
    def __init__(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need memory too
        import jax
        self.jax = jax
        if not any(device.platform == "gpu" for device in jax.devices()):
            raise RuntimeError("JAX sees no GPU (its CUDA plug-in is not installed?)")
        self.case = self.inputs = self.run = None

    def versions(self):
        import jaxlib
        return {"jax": self.jax.__version__, "jaxlib": jaxlib.__version__}

    def make_inputs(self, case):
        jax, kernel, shape = self.jax, case["kernel"], case["shape"]
        jnp = jax.numpy
        keys = iter(jax.random.split(jax.random.key(0), 8))

        def normal(*sizes):
            return jax.random.normal(next(keys), sizes, dtype=jnp.bfloat16)

        if kernel in ("gelu_tanh", "softmax"):
            return (normal(*shape),)
        if kernel == "dropout":
            return (normal(*shape), jax.random.key(1, impl="rbg"))  # the faster of JAX's generators
        if kernel == "swiglu":
            return (normal(*shape), normal(*shape))
        if kernel in ("bias_gelu", "rms_norm"):
            return (normal(*shape), normal(shape[1]))
        if kernel == "layer_norm":
            return (normal(*shape), normal(*shape), normal(shape[1]), normal(shape[1]))
        if kernel == "rotary":
            half = shape[2] // 2
            return (normal(*shape), normal(shape[0], half), normal(shape[0], half))
        if kernel == "cross_entropy":
            return (normal(*shape), jax.random.randint(next(keys), (shape[0],), 0, shape[1]))
        raise NoSuchPeer(f"JAX is no peer of {kernel}")

    def prepare(self, case, peer):
        jax = self.jax
        if peer != "jax":
            raise NoSuchPeer(f"JAX is no peer called {peer}")
        if case.get("graph"):
            raise NoSuchPeer("JAX is not measured under CUDA graphs")
        self.run = self.inputs = None
        gc.collect()
        formulas = jax_formulas(jax, case["kernel"])
        self.inputs = [self.make_inputs(case) for _ in range(case.get("sets", 1))]
        best = None
        for name, function in formulas.items():
            run, launches = self.runner(jax.jit(function))
            ms = statistics.median(run() for _ in range(3))
            if best is None or ms < best[0]:
                best = (ms, name, run, launches)
        self.run = best[2]
        return {"variant": best[1], "launches": best[3]}

    def runner(self, function):
        jax, inputs = self.jax, self.inputs

        def timed(count):
            jax.block_until_ready(function(*inputs[0]))
            start = time.perf_counter()
            for i in range(count):
                out = function(*inputs[i % len(inputs)])
            jax.block_until_ready(out)
            return (time.perf_counter() - start) / count * 1e3

        timed(3)
        count = max(1, min(2000, round(JAX_BURST_MS / max(timed(10), 1e-4))))
        return (lambda: timed(count)), count

    def burst(self, peer=None):
        return self.run()


# ---- A peer that needs nothing, for testing the other side -----------------------------------------------------------


class FakePeers:
    """Kernel "fast" takes a tenth of a millisecond, "slow" a whole one, "broken" fails, "silent" never answers."""

    def __init__(self):
        self.ms, self.ready = None, set()

    def versions(self):
        return {"fake": "1"}

    def prepare(self, case, peer):
        kernel = case.get("kernel", case.get("work"))
        if kernel == "broken":
            raise RuntimeError("out of everything")
        if kernel == "silent":
            time.sleep(3600)
        if kernel == "dies":
            print("cannot go on", file=sys.stderr)
            os._exit(3)
        self.ms = {"fast": 0.1, "slow": 1.0}.get(kernel, 0.5)
        self.ready.add(peer)
        return {"variant": peer, "launches": 10}

    def burst(self, peer=None, length_ms=None, untimed=None):
        if peer and peer not in self.ready:
            raise RuntimeError(f"{peer} was not made ready")
        return self.ms


# ---- The protocol ---------------------------------------------------------------------------------------------------


def answer(peers, question):
    if question.get("burst"):
        asked = {key: question[key] for key in ("peer", "length_ms", "untimed") if key in question}
        return {"ms": peers.burst(**asked)}
    if "case" in question:
        return {"ready": True, **peers.prepare(question["case"], question["peer"])}
    return {"error": "a question has either a case or a burst"}


def serve(framework, questions, answers):
    peers = {"torch": TorchPeers, "jax": JaxPeers, "fake": FakePeers}[framework]
    peer_protocol.serve({"framework": framework}, peers, answer, questions, answers)


def self_test():
    import io
    lines = ['{"case": {"kernel": "fast", "shape": [1, 2]}, "peer": "torch_eager"}', '{"burst": true}', "",
             '{"case": {"kernel": "broken", "shape": []}, "peer": "jax"}', "nonsense", "{}",
             '{"burst": true, "peer": "torch_eager", "length_ms": 15, "untimed": 1}',
             '{"burst": true, "peer": "nobody"}']
    out = io.StringIO()
    serve("fake", iter(lines), out)
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    assert said[0]["framework"] == "fake" and "missing" not in said[0], said[0]
    assert said[1] == {"ready": True, "variant": "torch_eager", "launches": 10}, said[1]
    assert said[2] == {"ms": 0.1}, said[2]
    assert said[3] == {"error": "RuntimeError: out of everything"}, said[3]
    assert "error" in said[4] and "error" in said[5], said
    assert said[6] == {"ms": 0.1} and "not made ready" in said[7]["error"] and len(said) == 8, said
    products = matmul_peers.self_test()
    try:
        import torch
    except ImportError as error:
        print(f"self-test passed: protocol, {products} of products; formulas not tried ({error})")
        return
    cases = {k: [4, 64] for k in ("gelu_tanh", "bias_gelu", "swiglu", "softmax", "rms_norm", "layer_norm", "dropout",
                                  "cross_entropy", "read")}
    cases["rotary"] = [4, 2, 32]
    for kernel, shape in cases.items():
        inputs = torch_inputs(torch, {"kernel": kernel, "shape": shape, "bytes": 512}, "cpu")
        for name, function in torch_formulas(torch, kernel).items():
            result = function(*inputs)
            result = result if isinstance(result, tuple) else (result,)
            assert kernel == "read" or all(torch.isfinite(r.float()).all() for r in result), (kernel, name)
    print(f"self-test passed: protocol, {len(cases)} formulas, {products} of products")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 2 or sys.argv[1] not in ("torch", "jax", "fake"):
        sys.exit(__doc__)
    serve(sys.argv[1], sys.stdin, peer_protocol.standard_answers())


if __name__ == "__main__":
    main()
