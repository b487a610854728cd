#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long Triton's autotuner takes for a matrix product, and how fast what it chooses is; with --tenon, beside
`tenon tune linear --dtype bf16 --target cuda --shape MxNxK`, whose weights lie as Triton's do ([n, k]), quick and full.

    triton_autotune.py [--json FILE] [--tenon BINARY] MxNxK...

The kernel is triton_matmul.descriptor: persistent, through tensor descriptors, the fastest of those that are written as
the tutorials do. The configurations are the tiles that a user would list for it, about 25 once what does not fit is left
out. Every shape starts with an empty cache, of Tenon also with an empty database. What is chosen is checked against cuBLAS and timed as `tenon tune`
times: bursts of launches between two events, on copies that exceed the second-level cache, the fastest burst counts.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SHARED_BYTES = 227 * 1024  # that a block may have on Hopper


def shared_bytes(bm, bn, bk, stages, halves):
    return stages * (bm + bn) * bk * 2 + bm * bn * 2 // (2 if halves else 1)


def candidates(m):
    """(bm, bn, bk, stages, warps, halves) that fit."""
    rows = (64,) if m <= 64 else (64, 128) if m <= 128 else (64, 128, 256)
    found = []
    for bm in rows:
        for bn in (64, 128, 256):
            for bk in (64, 128):
                for stages in (3, 4):
                    for warps in (4, 8):
                        area = bm * bn
                        if area > 128 * 256 or warps != (8 if area > 128 * 128 else 4) and area != 128 * 128:
                            continue
                        halves = bm * bn >= 128 * 256
                        if shared_bytes(bm, bn, bk, stages, halves) <= SHARED_BYTES:
                            found.append((bm, bn, bk, stages, warps, halves))
    return found


def autotuner(m):
    import triton
    import triton_matmul

    def describe(args):  # the shape of a descriptor's block is part of the configuration
        bm, bn, bk = args["BM"], args["BN"], args["BK"]
        args["a"].block_shape = [bm, bk]
        args["b"].block_shape = [bn, bk]
        args["c"].block_shape = [bm, bn // 2 if args["HALVES"] else bn]

    configs = [triton.Config({"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "HALVES": halves, "SPECIALIZE": False,
                              "FLATTEN": True}, num_stages=stages, num_warps=warps, pre_hook=describe)
               for bm, bn, bk, stages, warps, halves in candidates(m)]
    return triton.autotune(configs=configs, key=["M", "N", "K"])(triton_matmul.descriptor), len(configs)


def seconds_per_launch(launch, sets, budget=0.05):
    """The fastest burst of about a millisecond. What is launched is a CUDA graph: a launch from Python takes longer than
    many of these kernels."""
    import torch

    def graph_of(count):
        for tensors in sets:  # compiled, and whatever else the first launch does
            launch(*tensors)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(count):
                launch(*sets[i % len(sets)])
        return graph

    def burst(graph, count):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / count

    graph = graph_of(4)
    burst(graph, 4)
    count = max(1, min(200, int(1e-3 / burst(graph, 4))))
    graph = graph_of(count)
    best, began = burst(graph, count), time.monotonic()
    while time.monotonic() - began < budget:
        best = min(best, burst(graph, count))
    return best


def measure(m, n, k):
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    programs = torch.cuda.get_device_properties(0).multi_processor_count
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    each = 2 * (m * k + n * k + m * n)
    torch.manual_seed(1)

    def make_set():
        return (torch.rand(m, k, device="cuda", dtype=torch.bfloat16) * 2 - 1,
                torch.rand(n, k, device="cuda", dtype=torch.bfloat16) * 2 - 1,
                torch.empty(m, n, device="cuda", dtype=torch.bfloat16))

    sets = [make_set() for _ in range(2 if each > 2 * cache else 2 * cache // each + 2)]
    tuner, count = autotuner(m)

    def grid(meta):
        tiles = -(-m // meta["BM"]) * -(-n // meta["BN"])
        return (min(programs, tiles),)

    def described(tensors):
        return [TensorDescriptor.from_tensor(t, [64, 64]) for t in tensors]

    def launch(a, b, c):
        tuner[grid](a, b, c, m, n, k, PROGRAMS=programs)

    torch.cuda.synchronize()
    began = time.monotonic()
    launch(*described(sets[0]))
    torch.cuda.synchronize()
    choosing = time.monotonic() - began
    best = tuner.best_config

    wanted = sets[0][0] @ sets[0][1].T
    distance = (sets[0][2].float() - wanted.float()).abs().max().item()
    allowed = 2 * 2.0 ** -7 * wanted.float().abs().max().item()
    # Launched without asking the autotuner again, as a program that knows its choice would.
    import triton_matmul
    meta = dict(best.kwargs)

    def chosen(a, b, c):
        triton_matmul.descriptor[grid(meta)](a, b, c, m, n, k, PROGRAMS=programs, num_stages=best.num_stages,
                                             num_warps=best.num_warps, **meta)

    ready = []
    for tensors in sets:
        descriptors = described(tensors)
        blocks = ([meta["BM"], meta["BK"]], [meta["BN"], meta["BK"]],
                  [meta["BM"], meta["BN"] // (2 if meta["HALVES"] else 1)])
        for descriptor, block in zip(descriptors, blocks):
            descriptor.block_shape = block
        ready.append(tuple(descriptors))
    seconds = seconds_per_launch(chosen, ready)
    cublas = seconds_per_launch(lambda a, b, c: torch.matmul(a, b.T, out=c), sets)
    return {"shape": [m, n, k], "configurations": count, "choosing_seconds": choosing, "choice": str(best),
            "seconds": seconds, "teraflops": 2 * m * n * k / seconds * 1e-12, "right": distance <= allowed,
            "cublas_seconds": cublas}


def tenon_tune(binary, shape, policy):
    """What `tenon tune` chooses, and the time of the whole command, with everything that it checks."""
    folder = tempfile.mkdtemp(prefix="tenon-cache-")
    file = os.path.join(folder, "report.json")
    command = [binary, "tune", "linear", "--dtype", "bf16", "--target", "cuda", "--shape", shape, "--policy", policy,
               "--database", os.path.join(folder, "tuning.sqlite"), "--json", file]
    if policy == "full":
        command += ["--configurations", "37"]
    try:
        began = time.monotonic()
        done = subprocess.run(command, env=dict(os.environ, TENON_CACHE_DIR=folder), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        choosing = time.monotonic() - began
        if done.returncode:
            return {"error": done.stderr.strip()[-500:]}
        with open(file) as opened:
            report = json.load(opened)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    row = report["results"][0]
    first = min(row["tried"], key=lambda one: one["predicted"])
    return {"configurations": row["measured"], "choosing_seconds": choosing, "elapsed": row["elapsed"],
            "choice": row["configuration"], "seconds": row["seconds"], "failed": row["failed"],
            "first_choice": first["configuration"], "first_choice_seconds": first["seconds"],
            "commit": report.get("commit"), "machine": report.get("machine")}


def beside(binary, shape):
    """Tenon's part of a result: a row for each policy. What all rows have in common is taken out by main()."""
    return {policy: tenon_tune(binary, shape, policy) for policy in ("quick", "full")}


def version():
    import triton
    return triton.__version__


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--tenon", metavar="BINARY")
    parser.add_argument("shapes", nargs="+")
    arguments = parser.parse_args()
    import triton_matmul
    results, common = [], {}
    for text in arguments.shapes:
        cache = tempfile.mkdtemp(prefix="triton-cache-")
        os.environ["TRITON_CACHE_DIR"] = cache
        triton_matmul.descriptor.device_caches.clear()  # what the shape before had compiled
        try:
            result = measure(*(int(part) for part in text.split("x")))
        except Exception as error:  # the next shape may still work
            result = {"shape": text, "error": f"{type(error).__name__}: {error}"}
        finally:
            shutil.rmtree(cache, ignore_errors=True)
        if arguments.tenon:
            result["tenon"] = beside(arguments.tenon, text)
            for row in result["tenon"].values():
                common.update({name: row.pop(name) for name in ("commit", "machine") if name in row})
        results.append(result)
        print(json.dumps(result), flush=True)
        if arguments.json:  # after each: what was measured before the time is up is kept
            with open(arguments.json, "w") as file:
                json.dump({**common, "triton": version(), "triton_autotune": results}, file, indent=1)
    failed = lambda one: "error" in one or not one.get("right", True) or any(map(failed, one.get("tenon", {}).values()))
    return 1 if any(map(failed, results)) else 0


if __name__ == "__main__":
    sys.exit(main())
