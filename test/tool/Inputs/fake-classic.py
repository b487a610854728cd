# SPDX-License-Identifier: Apache-2.0
"""The peers of `bench classic` without PyTorch: the fake ones of the real program."""
import pathlib
import runpy
import sys

sys.argv[1] = "fake"
root = pathlib.Path(__file__).resolve().parents[3]
runpy.run_path(str(root / "scripts" / "peers" / "classic_peers.py"), run_name="__main__")
