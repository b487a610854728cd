# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON of `tenon profile` from the standard input: check-profile.py KERNEL."""
import json
import sys

report = json.load(sys.stdin)
assert report["command"] == "profile", report["command"]
for field in ("program", "seconds", "compiling", "copying", "waiting", "places", "ops", "gaps", "findings", "notes"):
    assert field in report, field
row = next(r for r in report["results"] if r["kernel"] == sys.argv[1])
assert row["calls"] == 1 and row["self"] > 0 and row["total"] >= row["self"], row
assert row["bytes"] == 2 * 17 * 100 * 4, row["bytes"]
assert row["flops"] > 17 * 100, row["flops"]
assert report["compiling"]["count"] == 1
