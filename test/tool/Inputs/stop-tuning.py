# SPDX-License-Identifier: Apache-2.0
"""stop-tuning.py SIGNAL DATABASE COMMAND...: runs the command, sends it the signal once the database has a measurement, and
passes its output on. With INT the command must end well; with KILL it cannot."""
import os
import signal
import sqlite3
import subprocess
import sys
import time

name, database, command = sys.argv[1], sys.argv[2], sys.argv[3:]
process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def measured():
    if not os.path.exists(database):
        return 0
    try:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10) as connection:
            return connection.execute("SELECT count(*) FROM measurements").fetchone()[0]
    except sqlite3.Error:
        return 0  # not there yet


while process.poll() is None and measured() < 1:
    time.sleep(0.02)
if process.poll() is not None:
    sys.exit(f"it ended by itself: status {process.returncode}, output {process.stdout.read()}")
process.send_signal(getattr(signal, "SIG" + name))
output = process.communicate()[0]
print(output)
expected = -signal.SIGKILL if name == "KILL" else 0
sys.exit(process.returncode != expected)
