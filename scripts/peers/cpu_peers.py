#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The other side of `tenon bench cpu --peers`: the same work by PyTorch, oneDNN, OpenBLAS or NumPy.

    cpu_peers.py torch | numpy | fake THREADS    answers questions (below), using so many threads
    cpu_peers.py --self-test                     checks the protocol, and the formulas of whatever is installed

Questions and answers are JSON objects, one a line, on the standard input and output. First, without a question:
    {"library": "torch", "threads": 2, "versions": {"python": "3.11.7", "torch": "2.13.0", ...}}
    with "missing": "No module named 'torch'" where it is not installed; every question is then answered with an error.
Then, as often as asked:
    {"case": {"kernel": "softmax", "shape": [8192, 4096], "dtype": "f32", "variant": "", "bytes": 268435456, "sets": 1},
     "peer": "torch_eager"}                                        (on one line)
        {"ready": true, "variant": "out=", "calls": 3}
        or {"error": "...", "missing": true (not installed) or "none": true (there is no such peer)}
    {"burst": true}
        {"ms": 12.64}                                              per call, of what was made ready last
    {"compile": [case, ...]}
        {"compiled": 16, "failures": ["..."]}                      torch.compile's cache then holds what it makes of them

The peers: torch_eager, torch_compile, onednn (PyTorch's own way into it), copy; openblas and numpy. "sets" is how many
copies of the inputs are taken in turn; results are kept as long as that, so that they too come from memory. "burst_ms"
is how long a burst should be. A peer that can be had in several ways tries them all when it is made ready and keeps the
fastest, which "variant" names.
"""
import gc
import json
import os
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # nothing is left beside the sources
import cpu_environment
import peer_protocol
from peer_protocol import NoSuchPeer

BURST_MS = 30.0  # unless a case says how long
LONG_MS = 100.0  # a call that takes longer is made no more often than it must
REST_SECONDS = 0.003  # after a burst: several times as long as threads wait for more work by spinning (cpu_environment.py)
COMPILE_SECONDS = 100.0  # for all cases together; what is not ready then is compiled when its row comes


class Runner:
    """Calls of a function over sets of inputs in turn, a burst of them at a time."""

    def __init__(self, function, inputs, burst_ms=BURST_MS):
        self.function, self.inputs, self.burst_ms = function, inputs, burst_ms
        self.results, self.turn = [None] * len(inputs), 0
        self.calls = 1
        self.burst()  # compiles
        # Once with every set, so that the pages of all results are there; what takes long is not repeated for that.
        for _ in range(max(2, len(inputs) - 1)):
            once = self.burst()
            if once > LONG_MS:
                break
        else:
            once = min(self.burst() for _ in range(2))
        self.calls = max(1, min(100000, round(burst_ms / max(once, 1e-4))))

    def burst(self):
        """Milliseconds per call. Where others disturb so much that it takes several times as long, fewer calls do."""
        sets, done = len(self.inputs), 0
        start = time.perf_counter()
        for _ in range(self.calls):
            at = self.turn % sets
            self.results[at] = self.function(*self.inputs[at])
            self.turn += 1
            done += 1
            if (time.perf_counter() - start) * 1e3 > 3 * self.burst_ms:
                break
        return (time.perf_counter() - start) / done * 1e3


def fastest(case, candidates, inputs):
    """The fastest of {name: function}, as {"variant", ...} and a runner."""
    burst_ms = case.get("burst_ms", BURST_MS)
    best, failures = None, []
    for name, function in candidates.items():
        try:
            runner = Runner(function, inputs, burst_ms)
            ms = statistics.median(runner.burst() for _ in range(3)) if len(candidates) > 1 else 0
        except Exception as error:  # one way of several; told if none works
            lines = str(error).strip().splitlines()
            failures.append(f"{name}: {type(error).__name__}" + (f": {lines[-1][:200]}" if lines else ""))
            continue
        if best is None or ms < best[0]:
            best = (ms, name, runner)
    if best is None:
        raise RuntimeError("; ".join(failures))
    answer = {"variant": best[1], "calls": best[2].calls}
    return ({**answer, "failed_variants": failures} if failures else answer), best[2]


# ---- PyTorch and oneDNN ---------------------------------------------------------------------------------------------


def torch_inputs(torch, case):
    """One set of inputs, as many and as large as ours."""
    kernel, shape = case["kernel"], case["shape"]
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "i8": torch.int8}[case["dtype"]]

    def uniform(*sizes, bound=2.0):
        if dtype == torch.int8:
            return torch.randint(-127, 128, sizes, dtype=dtype)
        return ((torch.rand(*sizes) * 2 - 1) * bound).to(dtype)

    if kernel in ("matmul", "matmul_bias_gelu"):
        m, n, k = shape
        operands = (uniform(m, k, bound=1.0), uniform(k, n, bound=1.0))
        return operands if kernel == "matmul" else operands + (uniform(n, bound=1.0),)
    if kernel == "squared_distance":
        m, n, k = shape
        return (uniform(m, k, bound=1.0), uniform(n, k, bound=1.0))
    if kernel == "attention":
        return tuple(uniform(*shape) for _ in range(3))
    if kernel in ("gelu", "softmax"):
        return (uniform(*shape, bound=6.0),)
    if kernel == "swiglu":
        return (uniform(*shape, bound=8.0), uniform(*shape))
    if kernel in ("bias_gelu_dropout", "rms_norm"):
        return (uniform(*shape), uniform(shape[1]))
    if kernel == "layer_norm":
        return (uniform(*shape), uniform(*shape), uniform(shape[1]), uniform(shape[1]))
    if kernel == "rotary":
        half = shape[2] // 2
        frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(shape[0], dtype=torch.float64)[:, None] * frequency
        return (uniform(*shape), angle.cos().to(dtype), angle.sin().to(dtype))
    if kernel == "cross_entropy":
        return (uniform(*shape, bound=8.0), torch.randint(0, shape[1], (shape[0],)))
    raise NoSuchPeer(f"no peer knows the kernel {kernel}")


def torch_formulas(torch, case):
    """Names and functions that compute the same. The first one is what one would write."""
    F, kernel = torch.nn.functional, case["kernel"]

    def rotary(x, cosine, sine):
        first, second = x.chunk(2, dim=-1)
        c, s = cosine[:, None, :], sine[:, None, :]
        return torch.cat((first * c - second * s, second * c + first * s), dim=-1)

    def layer_norm(x, residual, weight, bias):
        total = x + residual
        return F.layer_norm(total, (total.shape[-1],), weight, bias, 1e-5), total

    def squared_distance(a, b):
        x, y = a.float(), b.float()
        return (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * torch.mm(a, b.t())

    causal = case.get("variant") == "causal"
    formulas = {
        "matmul": {"int_mm": lambda a, b: torch._int_mm(a, b)} if case["dtype"] == "i8" else
                  {"mm": lambda a, b: torch.mm(a, b)},
        "matmul_bias_gelu": {"F.gelu of addmm": lambda a, b, bias: F.gelu(torch.addmm(bias, a, b))},
        "squared_distance": {"formula": squared_distance},
        "attention": {"sdpa": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal)},
        "gelu": {"F.gelu": lambda x: F.gelu(x)},
        "swiglu": {"F.silu": lambda gate, up: F.silu(gate) * up},
        "softmax": {"softmax": lambda x: torch.softmax(x, -1)},
        "rms_norm": {"F.rms_norm": lambda x, w: F.rms_norm(x, (x.shape[-1],), w, 1e-6)},
        "layer_norm": {"F.layer_norm": layer_norm},
        "rotary": {"rotate_half": rotary},
        "cross_entropy": {"F.cross_entropy": lambda x, t: F.cross_entropy(x, t, reduction="none")},
        "bias_gelu_dropout": {"F.dropout": lambda x, b: F.dropout(F.gelu(x + b, approximate="tanh"), 0.1, True)},
    }
    if kernel not in formulas:
        raise NoSuchPeer(f"no peer knows the kernel {kernel}")
    return formulas[kernel]


def onednn_formulas(torch, case):
    linear = torch.ops.mkldnn._linear_pointwise  # the weight is expected as n x k: ours, seen transposed
    if case["dtype"] == "i8":
        raise NoSuchPeer("PyTorch's product of int8 is oneDNN's already: see torch_eager")
    if case["kernel"] == "matmul":
        return {"linear": lambda a, b: linear(a, b.t(), None, "none", [], "")}
    if case["kernel"] == "matmul_bias_gelu":
        return {"linear with gelu": lambda a, b, bias: linear(a, b.t(), bias, "gelu", [], "none")}
    raise NoSuchPeer(f"oneDNN is asked for products only, not for {case['kernel']}")


def trust_the_processor():
    """Inductor asks the processor what it has, and then tries each answer: a compilation, and a Python that imports
    PyTorch to load the result, six of them where there is AMX (35 s on a Xeon). Versions that know VEC_ISA_OK spare us
    the tries; for those that do not, each is answered here as it would be on a machine that works."""
    try:
        from torch._inductor.cpu_vec_isa import VecISA
        VecISA.check_build = lambda self, code: True
    except (ImportError, AttributeError):
        pass  # another version: it finds out for itself


class TorchPeers:
    def __init__(self, threads):
        import torch
        self.torch = torch
        torch.manual_seed(0)
        torch.set_num_threads(threads)
        self.case = self.inputs = self.runner = None

    def versions(self):
        torch = self.torch
        return {"torch": torch.__version__, "threads": torch.get_num_threads(),
                "amx": os.environ.get("TENON_PEERS_AMX", "as the processor tells"),
                "libraries": [line.strip("- ").strip() for line in torch.__config__.show().splitlines()
                              if "MKL" in line and "Build settings" not in line]}

    def prepare(self, case, peer):
        torch = self.torch
        self.runner = None
        if case != self.case:
            self.case = self.inputs = None
            gc.collect()
            if peer != "copy":
                self.inputs = [torch_inputs(torch, case)]
                self.inputs += [tuple(x.clone() for x in self.inputs[0]) for _ in range(case.get("sets", 1) - 1)]
                self.case = case
        with torch.no_grad():
            if peer == "copy":
                answer, self.runner = fastest(case, *self.copy(case))
            else:
                answer, self.runner = fastest(case, self.candidates(case, peer), self.inputs)
        return answer

    def copy(self, case):
        torch, count = self.torch, max(1, case["bytes"] // 8)  # floats: read once, written once
        pairs = [(torch.ones(count), torch.ones(count)) for _ in range(case.get("sets", 1))]
        return {"copy_": lambda source, target: target.copy_(source)}, pairs

    def candidates(self, case, peer):
        torch = self.torch
        if peer == "torch_eager":
            return torch_formulas(torch, case)
        if peer == "onednn":
            return onednn_formulas(torch, case)
        if peer == "torch_compile":
            import torch._dynamo
            trust_the_processor()
            torch._dynamo.reset()
            return {f"default, {name}": torch.compile(function, dynamic=False, fullgraph=True)
                    for name, function in torch_formulas(torch, case).items()}
        raise NoSuchPeer(f"PyTorch is no peer called {peer}")

    def get_ready_to_compile(self):
        import torch._dynamo
        import torch._inductor.compile_fx
        trust_the_processor()

    def compile(self, case):
        torch = self.torch
        with torch.no_grad():
            for function in self.candidates(case, "torch_compile").values():
                function(*torch_inputs(torch, case))

    def burst(self):
        with self.torch.no_grad():
            return self.runner.burst()


# ---- NumPy and OpenBLAS ---------------------------------------------------------------------------------------------


def numpy_inputs(np, case):
    kernel, shape = case["kernel"], case["shape"]
    generator = np.random.default_rng(0)

    def uniform(*sizes, bound=2.0):
        return (generator.random(sizes, dtype=np.float32) * 2 - 1) * np.float32(bound)

    if kernel in ("matmul", "matmul_bias_gelu"):
        m, n, k = shape
        return (uniform(m, k), uniform(k, n)) + ((uniform(n),) if kernel != "matmul" else ())
    if kernel == "softmax":
        return (uniform(*shape),)
    if kernel == "swiglu":
        return (uniform(*shape), uniform(*shape))
    if kernel == "rms_norm":
        return (uniform(*shape), uniform(shape[1]))
    if kernel == "layer_norm":
        return (uniform(*shape), uniform(*shape), uniform(shape[1]), uniform(shape[1]))
    if kernel == "rotary":
        return (uniform(*shape), uniform(shape[0], shape[2] // 2), uniform(shape[0], shape[2] // 2))
    if kernel == "cross_entropy":
        return (uniform(*shape), generator.integers(0, shape[1], shape[0]))
    raise NoSuchPeer(f"NumPy is no peer of {kernel}")


def numpy_formulas(np, case):
    def softmax(x):
        t = x - x.max(-1, keepdims=True)
        np.exp(t, out=t)
        t /= t.sum(-1, keepdims=True)
        return t

    def swiglu(gate, up):
        t = np.exp(-gate)
        t += 1
        np.divide(gate, t, out=t)
        t *= up
        return t

    def rms_norm(x, weight):
        scale = 1 / np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / np.float32(x.shape[1]) + np.float32(1e-6))
        t = x * scale
        t *= weight
        return t

    def layer_norm(x, residual, weight, bias):
        total = x + residual
        t = total - total.mean(-1, keepdims=True)
        t *= 1 / np.sqrt(np.einsum("ij,ij->i", t, t)[:, None] / np.float32(x.shape[1]) + np.float32(1e-5))
        t *= weight
        t += bias
        return t, total

    def rotary(x, cosine, sine):
        half = x.shape[2] // 2
        first, second = x[..., :half], x[..., half:]
        c, s = cosine[:, None, :], sine[:, None, :]
        y = np.empty_like(x)
        np.multiply(first, c, out=y[..., :half])
        y[..., :half] -= second * s
        np.multiply(second, c, out=y[..., half:])
        y[..., half:] += first * s
        return y

    def cross_entropy(x, targets):
        largest = x.max(-1, keepdims=True)
        total = np.exp(x - largest).sum(-1)
        return np.log(total) + largest[:, 0] - x[np.arange(len(targets)), targets]

    formulas = {
        "matmul": {"matmul": lambda a, b: a @ b},
        "softmax": {"formula": softmax},
        "swiglu": {"formula": swiglu},
        "rms_norm": {"formula": rms_norm},
        "layer_norm": {"formula": layer_norm},
        "rotary": {"formula": rotary},
        "cross_entropy": {"formula": cross_entropy},
    }
    if case["kernel"] not in formulas:
        raise NoSuchPeer(f"NumPy is no peer of {case['kernel']}")
    return formulas[case["kernel"]]


class NumpyPeers:
    def __init__(self, threads):
        import numpy
        self.np = numpy
        self.runner = None

    def versions(self):
        blas = self.np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
        return {"numpy": self.np.__version__, "blas": blas.get("openblas configuration", blas.get("name", "unknown"))}

    def prepare(self, case, peer):
        self.runner = None
        gc.collect()
        if case["dtype"] != "f32":
            raise NoSuchPeer(f"NumPy has no fast {case['dtype']}")
        if (peer == "openblas") != (case["kernel"] == "matmul") or peer not in ("openblas", "numpy"):
            raise NoSuchPeer(f"NumPy is no peer called {peer} of {case['kernel']}")
        first = numpy_inputs(self.np, case)
        inputs = [first] + [tuple(x.copy() for x in first) for _ in range(case.get("sets", 1) - 1)]
        answer, self.runner = fastest(case, numpy_formulas(self.np, case), inputs)
        return answer

    def burst(self):
        return self.runner.burst()


# ---- A peer that needs nothing, for testing the other side -----------------------------------------------------------


class FakePeers:
    """Every case takes half a millisecond; variant "broken" fails, "dies" ends the process, "slow" is never compiled."""

    def __init__(self, threads):
        self.threads = threads

    def versions(self):
        return {"fake": "1"}

    def prepare(self, case, peer):
        if case["variant"] == "broken":
            raise RuntimeError("out of everything")
        if case["variant"] == "dies":
            print("cannot go on", file=sys.stderr)
            os._exit(3)
        if peer == "numpy":
            raise NoSuchPeer("the fake is no NumPy")
        return {"variant": f"{peer} on {self.threads}", "calls": 10}

    def get_ready_to_compile(self):
        pass

    def compile(self, case):
        if case["variant"] == "broken":
            raise RuntimeError("out of everything")
        if case["variant"] == "slow":
            time.sleep(1000)

    def burst(self):
        return 0.5


# ---- The protocol ---------------------------------------------------------------------------------------------------


def compile_here(peers, cases, seconds=COMPILE_SECONDS, now=time.monotonic):
    """Each case in a process of its own, as many at once as there are processors: Inductor starts a C++ compiler for
    every one, and waiting for these in turn takes longer than all measurements together. The processes are forks of
    this one, which has imported everything and tried the processor's instructions: that takes longer than compiling,
    and processes that share a cache do it one after the other. `now` tells the time: a parameter for tests."""
    peers.get_ready_to_compile()
    errors, running = [""] * len(cases), {}
    end = now() + seconds

    def reap():
        late = now() > end
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            if late:
                for child in running:
                    os.kill(child, signal.SIGKILL)
            time.sleep(0.02)
            return
        if pid not in running:  # a compiler that nobody waited for
            return
        number, pipe = running.pop(pid)
        if status == signal.SIGKILL:
            errors[number] = f"not ready after {seconds:g} s"
            os.close(pipe)
            return
        with os.fdopen(pipe) as said:
            errors[number] = said.read() or ("" if status == 0 else f"ended with {status}")

    for number, case in enumerate(cases):
        while len(running) == (os.cpu_count() or 1):
            reap()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                peers.compile(case)
            except BaseException as error:
                os.write(writing, f"{type(error).__name__}: {str(error).strip()[:500]}".encode())
            finally:
                os._exit(0)
        os.close(writing)
        running[pid] = number, reading
    while running:
        reap()
    failures = [f"{case['kernel']} {case['shape']} {case['dtype']}: {error}"
                for case, error in zip(cases, errors) if error]
    return {"compiled": len(cases) - len(failures), "failures": failures}


def compile_ahead(library, threads, cases):
    """In a process that has started no threads, as one that forks must not have."""
    process = subprocess.run([sys.executable, os.path.abspath(__file__), library, str(threads)], text=True,
                             input=json.dumps({"compile": cases, "here": True}) + "\n", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
    lines = process.stdout.splitlines()
    return json.loads(lines[1]) if len(lines) > 1 else {"error": f"ended with {process.returncode}"}


def serve(library, threads, questions, answers):
    def rested(result):
        time.sleep(REST_SECONDS)
        return result

    def answer(peers, question):
        if question.get("burst"):
            return rested({"ms": peers.burst()})
        if question.get("here"):
            return compile_here(peers, question["compile"])
        if "compile" in question:
            return compile_ahead(library, threads, question["compile"])
        if "case" in question:
            return rested({"ready": True, **peers.prepare(question["case"], question["peer"])})
        return {"error": "a question has a case, a burst or cases to compile"}

    peers = {"torch": TorchPeers, "numpy": NumpyPeers, "fake": FakePeers}[library]
    peer_protocol.serve({"library": library, "threads": threads}, lambda: peers(threads), answer, questions, answers)


def small_case(kernel, dtype):
    shapes = {"matmul": [8, 16, 32], "matmul_bias_gelu": [32, 16, 32], "squared_distance": [8, 16, 32],
              "attention": [1, 2, 16, 32], "rotary": [4, 2, 32]}
    if dtype == "i8":
        shapes["matmul"] = [32, 16, 32]
    return {"kernel": kernel, "shape": shapes.get(kernel, [4, 64]), "dtype": dtype, "variant": "", "bytes": 4096,
            "sets": 2}


def late_when_one_has_ended():
    """The readings of a clock that stands still until a child process has ended, and is late ever after."""
    yield 0.0
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)  # whoever asked finds it ended
    while True:
        yield 1.0


def self_test():
    import io
    case = {"kernel": "softmax", "shape": [1, 2], "dtype": "f32", "variant": "", "sets": 1}
    lines = [json.dumps({"case": case, "peer": "torch_eager"}), '{"burst": true}', "",
             json.dumps({"case": {**case, "variant": "broken"}, "peer": "torch_eager"}),
             json.dumps({"case": case, "peer": "numpy"}), "nonsense", "{}",
             json.dumps({"compile": [case, {**case, "variant": "broken"}]})]
    out = io.StringIO()
    serve("fake", 3, iter(lines), out)
    slow = {**case, "variant": "slow"}
    late = compile_here(FakePeers(1), [case, slow, slow], seconds=0.5, now=late_when_one_has_ended().__next__)
    assert late["compiled"] == 1 and len(late["failures"]) == 2, late
    assert all("not ready after" in said for said in late["failures"]), late
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    assert said[0]["library"] == "fake" and said[0]["threads"] == 3 and "missing" not in said[0], said[0]
    assert said[1] == {"ready": True, "variant": "torch_eager on 3", "calls": 10}, said[1]
    assert said[2] == {"ms": 0.5}, said[2]
    assert said[3] == {"error": "RuntimeError: out of everything"}, said[3]
    assert said[4] == {"error": "the fake is no NumPy", "none": True}, said[4]
    assert "error" in said[5] and "error" in said[6] and len(said) == 8, said
    assert said[7] == {"compiled": 1, "failures": ["softmax [1, 2] f32: RuntimeError: out of everything"]}, said[7]
    tried = ["protocol"]
    kernels = ["matmul", "softmax", "swiglu", "rms_norm", "layer_norm", "rotary", "cross_entropy"]
    results = {}
    try:
        import numpy as np
        for kernel in kernels:
            case = small_case(kernel, "f32")
            inputs = numpy_inputs(np, case)
            for function in numpy_formulas(np, case).values():
                results[kernel] = inputs, function(*inputs)
        tried.append(f"{len(kernels)} formulas of NumPy")
    except ImportError as error:
        tried.append(f"not NumPy ({error})")
    try:
        import torch
        # The same inputs give the same results.
        for kernel, (inputs, expected) in results.items():
            for function in torch_formulas(torch, small_case(kernel, "f32")).values():
                got = function(*(torch.from_numpy(x) for x in inputs))
                got, wanted = (x if isinstance(x, tuple) else (x,) for x in (got, expected))
                for mine, other in zip(got, wanted):
                    assert torch.allclose(mine, torch.from_numpy(other), 1e-4, 1e-4), kernel
        peers = TorchPeers(1)
        for dtype in ("f32", "bf16", "i8"):
            for kernel in kernels + ["matmul_bias_gelu", "squared_distance", "attention", "gelu", "bias_gelu_dropout"]:
                if dtype != "i8" or kernel == "matmul":
                    for peer in ("copy", "torch_eager"):
                        peers.prepare(small_case(kernel, dtype), peer)
                        assert peers.burst() > 0
        tried.append("formulas of PyTorch")
    except ImportError as error:
        tried.append(f"not PyTorch ({error})")
    print("self-test passed: " + ", ".join(tried))


def main():
    if sys.argv[1:] == ["--self-test"]:
        cpu_environment.start_with({})
        return self_test()
    if len(sys.argv) != 3 or sys.argv[1] not in ("torch", "numpy", "fake") or not sys.argv[2].isdigit():
        sys.exit(__doc__)
    library, threads = sys.argv[1], int(sys.argv[2])
    if library != "fake":
        cpu_environment.start_with(cpu_environment.of_threads(threads))
    serve(library, threads, sys.stdin, peer_protocol.standard_answers())


if __name__ == "__main__":
    main()
