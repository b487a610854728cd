# SPDX-License-Identifier: Apache-2.0
"""first-line.py PREFIX COMMAND...: runs a command into a pipe; fails unless a line with the prefix arrives while the
command still has something to say."""
import subprocess
import sys
import time

process = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True)
arrival = None
for line in process.stdout:
    if arrival is None and line.startswith(sys.argv[1]):
        arrival = time.monotonic()
end = time.monotonic()
if process.wait() != 0 or arrival is None:
    sys.exit(f"status {process.returncode}, line {'seen' if arrival else 'not seen'}")
if end - arrival < 0.05:
    sys.exit(f"the line came {1000 * (end - arrival):.1f} ms before the end")
