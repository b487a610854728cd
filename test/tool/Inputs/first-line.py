# SPDX-License-Identifier: Apache-2.0
"""first-line.py PREFIX COMMAND...: runs a command; fails unless it writes a line with the prefix by itself, and has
something to say afterwards. The command writes into a socket that keeps what it writes at a time apart, so that the
answer does not depend on who runs when."""
import socket
import subprocess
import sys

reading, writing = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
process = subprocess.Popen(sys.argv[2:], stdout=writing)
writing.close()
packets = []
while packet := reading.recv(1 << 20):
    packets.append(packet.decode())
if process.wait() != 0:
    sys.exit(f"status {process.returncode}")
found = [number for number, packet in enumerate(packets) if packet.startswith(sys.argv[1])]
if not found:
    sys.exit(f"no such line among {packets}")
if packets[found[0]].count("\n") != 1 or found[0] + 1 == len(packets):
    sys.exit(f"the line came with others: {packets[found[0]:]}")
