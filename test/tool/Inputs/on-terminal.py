# SPDX-License-Identifier: Apache-2.0
"""on-terminal.py COLUMNS COMMAND...: runs a command on a terminal of that width and copies what it shows."""
import fcntl
import os
import pty
import struct
import sys
import termios

child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:  # what Linux answers once the other end is closed
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
