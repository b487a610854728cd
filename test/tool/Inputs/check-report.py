# SPDX-License-Identifier: Apache-2.0
"""Reads a report from the standard input: check-report.py COMMAND FIELD..., where every result must have every field."""
import json
import sys


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


report = json.load(sys.stdin, parse_constant=refuse)
fields = list(report)
assert fields[:7] == ["schema", "tenon", "command", "commit", "arguments", "machine", "conditions"], fields
assert fields[-1] == "results", fields
assert report["command"] == sys.argv[1], report["command"]
for field in ("cpu", "processors", "caches", "isa_levels", "memory_bytes", "llvm", "gpus"):
    assert field in report["machine"], field
assert report["results"]
for result in report["results"]:
    for field in sys.argv[2:]:
        assert field in result, f"no {field} in {result}"
