# SPDX-License-Identifier: Apache-2.0
"""check-cpu-report.py FILE, or - for the standard input: what a report of `tenon bench cpu` must have."""
import json
import sys

report = json.load(sys.stdin if sys.argv[1] == "-" else open(sys.argv[1]))
assert report["command"] == "bench cpu" and report["complete"] is True
for field in ("machine", "commit", "build", "versions", "options", "roofs", "groups", "seconds"):
    assert field in report, field
for threads in report["options"]["threads"]:
    roofs = report["roofs"][str(threads)]
    assert roofs["copy_bytes_per_s"] > 0 and all(roofs[t]["operations_per_s"] > 0 for t in ("f32", "bf16", "int8"))
cases = [row for row in report["results"] if row["kind"] == "case"]
for case in cases:
    assert case["failure"] is None and case["time"]["median"] > 0, case
    assert case["spread"] >= 0 and case["fraction_of_roof"] > 0 and case["roof"] in ("memory", "arithmetic"), case
    assert case["verdict"] is None or case["verdict"]["passed"], case
    for name, peer in case["peers"].items():
        if peer["status"] == "measured":
            assert peer["ratio"]["low"] <= peer["ratio"]["median"] <= peer["ratio"]["high"], peer
if report["options"]["peers"]:
    assert report["versions"]["torch"]["fake"] == report["versions"]["numpy"]["fake"] == "1", report["versions"]
    assert {case["threads"] for case in cases} == {1, 2}
    for case in cases:
        assert case["verdict"]["passed"], case
        for name in ("torch_eager", "torch_compile"):
            assert case["peers"][name]["status"] == "measured", case["peers"]
            assert case["peers"][name]["detail"] == f"{name} on {case['threads']}", case["peers"]
        assert case["best_peer_ratio"]["median"] == min(
            p["ratio"]["median"] for n, p in case["peers"].items() if p["status"] == "measured" and n not in ("copy", "host_copy", "host_read"))
        is_memory = case["group"].startswith("memory")
        assert (case["fraction_of_copy"] is not None) == is_memory
        assert ("host_copy" in case["peers"]) == is_memory
        reads_only = is_memory and 10 * case["written_bytes"] < case["bytes"] - case["written_bytes"]
        assert reads_only == (case["kernel"] == "cross_entropy"), case
        assert (case["fraction_of_reading"] is not None) == ("host_read" in case["peers"]) == reads_only
    product = next(case for case in cases if case["kernel"] == "matmul")
    assert set(product["peers"]) == {"torch_eager", "torch_compile", "onednn", "openblas"}, product["peers"]
    softmax = next(case for case in cases if case["kernel"] == "softmax")
    assert softmax["peers"]["numpy"]["status"] == "none" and softmax["bytes"] == 2 * 4 * 256 * 4096
    scaling = [row for row in report["results"] if row["kind"] == "scaling"]
    assert scaling
    for row in scaling:
        ratios = [row[f"fraction_of_{copy}"]["median"] for copy in ("memcpy", "streaming")]
        assert row["elements"] == 10000 and 0 < row["fraction_of_copy"]["median"] == min(ratios)
    threads = [row for row in report["results"] if row["kind"] == "threads"]
    assert len(threads) <= 1 and all(row["speed_up"]["median"] > 0 for row in threads)
else:
    assert len(cases) == 1 and cases[0]["dtype"] == "i8" and cases[0]["verdict"] is None
