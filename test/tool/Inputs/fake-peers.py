# SPDX-License-Identifier: Apache-2.0
"""Peers for `tenon bench gpu --peer-script` that measure nothing: each framework is the fake one."""
import os
import sys

script = os.path.join(os.path.dirname(__file__), "..", "..", "..", "scripts", "peers", "gpu_peers.py")
os.execv(sys.executable, [sys.executable, script, "fake"])
