# SPDX-License-Identifier: Apache-2.0
"""Writes files of measurements for compare.test into a folder: results.py FOLDER."""
import copy
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def row(kernel, median, spread=0.005, **more):
    time = {"seconds": {"median": median, "low": median * (1 - spread), "high": median * (1 + spread)}, "trials": 40}
    return {"kernel": kernel, "shape": [64, 64], "dtype": "f32", "target": "cpu", "params": {}, "flops": 4096.0,
            "bytes": 32768.0, "verdict": {"passed": True, "reason": ""}, "failure": None, "time": time, **more}


def file(name, rows, **more):
    report = {"schema": 1, "tenon": "0.1.0", "command": "bench", "commit": "abc",
              "machine": {"cpu": "A Processor", "processors": 2}, "conditions": {"complaint": ""}, "results": rows, **more}
    (folder / name).write_text(json.dumps(report))
    return report


before = [row("gelu", 1e-3), row("softmax", 2e-3), row("rotary", 3e-3), row("swiglu", 4e-3)]
file("before.json", before)
file("same.json", [row("gelu", 1.005e-3), row("softmax", 1.99e-3), row("rotary", 3.2e-3, 0.2), row("swiglu", 4e-3)])
file("faster.json", [row("gelu", 0.8e-3), row("softmax", 2e-3), row("rotary", 3e-3), row("swiglu", 4e-3)])
file("slower.json", [row("gelu", 0.5e-3), row("softmax", 2.6e-3), row("rotary", 3e-3), row("swiglu", 4e-3)])
# The file claims a time for a kernel that failed its check; and one that no processor can reach.
wrong = {"passed": False, "reason": "y differs in 7 elements"}
file("broken.json", [row("gelu", 1e-3, verdict=wrong), row("softmax", 2e-3), row("rotary", 3e-3, flops=1e15),
                     row("dropout", 4e-3)])
file("weather.json", [row("gelu", 1e-3)], conditions={"complaint": "other machines on the host took 9% of the "
                                                                   "processors' time"}, complete=False)
file("other-machine.json", before, machine={"cpu": "B Processor", "processors": 8})
warm = [row("gelu", 1e-3, warm=row("", 0.5e-3)["time"])]
file("warm.json", warm)
file("warm-slower.json", [row("gelu", 1e-3, warm=row("", 0.7e-3)["time"])])
file("profile.json", [{"kernel": "gelu", "launches": 3}], command="profile")
file("other-kernels.json", [row("matmul", 1e-3)])
text = json.dumps(file("newer.json", before, schema=2, tenon="0.9.0"))
(folder / "short.json").write_text(text[: len(text) // 2])
(folder / "empty.json").write_text("")
(folder / "text.json").write_text("times: 1, 2, 3\n")
(folder / "list.json").write_text("[1, 2]")
machineless = copy.deepcopy(file("machineless.json", before))
del machineless["machine"]
(folder / "machineless.json").write_text(json.dumps(machineless))
