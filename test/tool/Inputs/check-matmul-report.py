# SPDX-License-Identifier: Apache-2.0
"""check-matmul-report.py FILE: what a report of `tenon bench gpu --suite matmul --peers` must have."""
import json
import math
import sys

report = json.load(open(sys.argv[1]))
assert report["command"] == "bench gpu" and report["complete"] is True
assert report["options"]["suite"] == "matmul" and report["versions"]["torch"]["fake"] == "1", report["versions"]
assert "jax" not in report["versions"]  # no peer of a product
cases = {case["case"]: case for case in report["results"]}
assert set(cases) == {"bf16,skinny 16x496x496", "bf16,skinny 128x496x496", "ragged 497x499x501"}, cases.keys()
skinny, ragged = cases["bf16,skinny 16x496x496"], cases["ragged 497x499x501"]
assert skinny["groups"] == ["bf16", "skinny"] and skinny["graph_launches"] > 0 and skinny["flops"] == 2 * 16 * 496**2
assert "read" in skinny["regimes"]["bursts"]["peers"]
assert "triton_descriptor" not in ragged["regimes"]["bursts"]["peers"]
for case in cases.values():
    assert case["kind"] == "matmul" and case["failure"] is None and case["not_measured"] == {}, case
    assert set(case["regimes"]) == {"bursts", "sustained"}
    for regime in case["regimes"].values():
        assert regime["rounds"] >= 3 and regime["tflop_per_s"] > 0
        counting = {name: peer["ratio"]["median"] for name, peer in regime["peers"].items() if name != "read"}
        assert regime["best_peer_ratio"]["median"] == min(counting.values()), regime
        for peer in regime["peers"].values():
            assert peer["status"] == "measured" and peer["rounds"] == regime["rounds"], peer
            assert peer["ratio"]["low"] <= peer["ratio"]["median"] <= peer["ratio"]["high"], peer
    assert case["regimes"]["sustained"]["heated_seconds"] > 0 == case["regimes"]["bursts"]["heated_seconds"]
goals = {(goal["group"], goal["regime"], *goal["peers"]): goal for goal in report["summary"]}
goal = goals[("bf16", "sustained")]
ratios = [case["regimes"]["sustained"]["best_peer_ratio"]["median"] for case in cases.values()
          if "bf16" in case["groups"]]
assert goal["cases"] == 2 and math.isclose(goal["geometric_mean"], math.prod(ratios) ** 0.5), goal
assert goal["least"] == min(ratios) and goal["goal_mean"] == 1.02 and goal["goal_least"] == 0.97
assert goals[("skinny", "bursts", "read")]["goal_least"] == 0.9
assert goals[("ragged", "bursts", "cublas")]["cases"] == 1
