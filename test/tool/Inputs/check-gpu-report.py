# SPDX-License-Identifier: Apache-2.0
"""check-gpu-report.py FILE: what a report of `tenon bench gpu --peers` must have."""
import json
import sys

report = json.load(open(sys.argv[1]))
assert report["command"] == "bench gpu" and report["complete"] is True
for field in ("machine", "gpu", "gpu_state_before", "gpu_state_after", "commit", "build", "versions", "options",
              "seconds"):
    assert field in report, field
assert report["gpu"]["name"] == "Fake H200", report["gpu"]
assert report["versions"]["torch"]["fake"] == "1", report["versions"]
launch, *cases = report["results"]
assert launch["kind"] == "launch" and launch["driver_call"]["median"] > 0
assert launch["peers"]["triton"]["status"] == "measured", launch
assert [case["case"] for case in cases] == ["gelu_tanh 1024x8192", "gelu_tanh 8x8192 graph"], cases
large, small = cases
assert set(large["peers"]) == {"tenon_copy", "copy", "torch_eager", "torch_compile", "triton", "jax"}, large["peers"]
assert set(small["peers"]) == {"torch_eager", "torch_compile"} and small["graph_launches"] > 0
for case in cases:
    assert case["failure"] is None and case["time"]["median"] > 0 and case["verdict"] is None
    for name, peer in case["peers"].items():
        assert peer["status"] == "measured", (name, peer)
        assert peer["ratio"]["low"] <= peer["ratio"]["median"] <= peer["ratio"]["high"], peer
assert large["bytes"] == 2 * 2 * 1024 * 8192 and large["argument_sets"] > 1
fractions = [large["peers"][name]["ratio"]["median"] for name in ("copy", "tenon_copy")]
assert large["fraction_of_bandwidth"]["median"] == min(fractions)
assert large["goals"]["bandwidth"] == 0.95 and small["fraction_of_bandwidth"] is None
