#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The other side of `tenon bench classic`: GELU and softmax by PyTorch, on the CPU or on a CUDA device.

    classic_peers.py torch THREADS       answers questions (below); 0 threads: PyTorch's own choice
    classic_peers.py fake 0              answers as if every launch took half a millisecond (for tests)

Questions and answers are JSON objects, one a line. First, without a question:
    {"framework": "torch", "versions": {"python": "3.12.3", "torch": "2.11.0"}}
    with "missing": "..." where PyTorch is not installed; every question is then answered with an error.
Then, as often as asked:
    {"case": {"kernel": "softmax", "shape": [4096, 4096], "dtype": "f32", "device": "cpu", "sets": 8},
     "peer": "torch_unfused"}                                                              (on one line)
        {"ready": true, "variant": "5 ops"}  or {"error": "...", "missing": true where it is not installed}
    {"burst": true}
        {"ms": 0.126}                        per call, of what was made ready last

Peers: torch_unfused (an op of PyTorch for each step), torch_eager (the one function that does it all), torch_compile
(the steps, compiled)."""
import json
import platform
import sys
import time

BURST_SECONDS = 0.02


def formulas(torch, kernel):
    """(in steps, in one function, how many steps)"""
    if kernel == "gelu_tanh":
        def steps(x):
            t = x * x * x
            t = t * 0.044715
            t = x + t
            t = t * 0.7978845608028654
            t = torch.tanh(t)
            t = t + 1
            t = t * 0.5
            return x * t
        return steps, lambda x: torch.nn.functional.gelu(x, approximate="tanh"), 9
    if kernel == "softmax":
        def steps(x):
            t = x - x.amax(-1, keepdim=True)
            t = torch.exp(t)
            return t / t.sum(-1, keepdim=True)
        return steps, lambda x: torch.softmax(x, -1), 5
    raise ValueError(f"no peer knows the kernel {kernel}")


class TorchPeers:
    def __init__(self, threads):
        import torch
        self.torch = torch
        if threads:
            torch.set_num_threads(threads)
        self.run = None

    def versions(self):
        return {"torch": self.torch.__version__, "threads": self.torch.get_num_threads()}

    def prepare(self, case, peer):
        torch = self.torch
        cuda = case["device"] == "cuda"
        if cuda and not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no CUDA device")
        types = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}
        dtype = types[case["dtype"]]
        inputs = [torch.randn(*case["shape"], device=case["device"]).to(dtype) for _ in range(case.get("sets", 1))]
        steps, whole, count = formulas(torch, case["kernel"])
        variant = f"{count} ops"
        function = steps
        if peer == "torch_eager":
            function, variant = whole, "one op"
        elif peer == "torch_compile":
            function, variant = torch.compile(steps, dynamic=False, fullgraph=True), "compiled steps"
        elif peer != "torch_unfused":
            raise ValueError(f"PyTorch is no peer called {peer}")
        turn = [0]

        def timed(calls):
            with torch.no_grad():
                if cuda:
                    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    function(inputs[0])
                    start.record()
                begin = time.perf_counter()
                for _ in range(calls):
                    turn[0] += 1
                    function(inputs[turn[0] % len(inputs)])
                if cuda:
                    end.record()
                    end.synchronize()
                    return start.elapsed_time(end) / calls
                return (time.perf_counter() - begin) / calls * 1e3

        for _ in range(3):
            timed(1)  # compiles, and warms up
        calls = max(1, min(2000, round(BURST_SECONDS * 1e3 / max(timed(2), 1e-4))))
        self.run = lambda: timed(calls)
        return {"variant": variant}


class FakePeers:
    run = staticmethod(lambda: 0.5)

    def __init__(self, threads):
        pass

    def versions(self):
        return {}

    def prepare(self, case, peer):
        formulas_known = ("gelu_tanh", "softmax")
        if case["kernel"] not in formulas_known:
            raise ValueError(f"no peer knows the kernel {case['kernel']}")
        return {"variant": "fake"}


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    framework, threads = sys.argv[1], int(sys.argv[2])
    greeting = {"framework": framework, "versions": {"python": platform.python_version()}}
    peers = None
    try:
        peers = (TorchPeers if framework == "torch" else FakePeers)(threads)
        greeting["versions"].update(peers.versions())
    except ImportError as error:
        greeting["missing"] = str(error)
    say(greeting)
    for line in sys.stdin:
        question = json.loads(line)
        if peers is None:
            say({"error": greeting["missing"], "missing": True})
            continue
        try:
            if "case" in question:
                say({"ready": True, **peers.prepare(question["case"], question["peer"])})
            else:
                say({"ms": peers.run()})
        except Exception as error:  # whatever a framework throws is an answer
            say({"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]})


main()
