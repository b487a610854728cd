# SPDX-License-Identifier: Apache-2.0
"""Peers for `tenon bench cpu --peer-script` that measure nothing: each library is the fake one, which cannot compile
SwiGLU and does not survive rotary embedding and SwiGLU as they are."""
import os
import sys

sys.dont_write_bytecode = True  # nothing is left beside the sources
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "..", "scripts", "peers"))
import cpu_peers  # noqa: E402


class Peers(cpu_peers.FakePeers):
    def prepare(self, case, peer):
        if case["kernel"] in ("swiglu", "rotary") and peer.startswith("torch"):
            broken = case["kernel"] == "swiglu" and peer == "torch_compile"
            case = {**case, "variant": "broken" if broken else "dies"}
        return super().prepare(case, peer)


cpu_peers.FakePeers = Peers
sys.argv[1] = "fake"
cpu_peers.main()
