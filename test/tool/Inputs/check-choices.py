# SPDX-License-Identifier: Apache-2.0
"""check-choices.py REPORT LEAST: of `tenon tune --replay`, the model's first choices reach LEAST of the optimum."""
import json
import sys

with open(sys.argv[1]) as file:
    analytic = json.load(file)["replay"]["analytic"]
assert analytic["fraction"] >= float(sys.argv[2]), analytic
