# SPDX-License-Identifier: Apache-2.0
"""A screenshot as a coarse grid of grey values: what stays the same whatever fonts a machine has."""
import struct
import zlib


def pixels(data):
    """(width, height, rows of bytes, bytes a pixel) of an 8-bit PNG without interlacing."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, compressed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and interlace == 0 and colour in (2, 6), (depth, colour, interlace)
        elif kind == b"IDAT":
            compressed += body
        at += 12 + length
    size = 3 if colour == 2 else 4
    raw, stride = zlib.decompress(compressed), width * size
    rows, before = [], bytearray(stride)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        if kind == 1:
            for i in range(size, stride):
                line[i] = (line[i] + line[i - size]) & 255
        elif kind == 2:
            for i in range(stride):
                line[i] = (line[i] + before[i]) & 255
        elif kind == 3:
            for i in range(stride):
                left = line[i - size] if i >= size else 0
                line[i] = (line[i] + (left + before[i]) // 2) & 255
        elif kind == 4:
            for i in range(stride):
                a = line[i - size] if i >= size else 0
                b, c = before[i], before[i - size] if i >= size else 0
                p = a + b - c
                near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                line[i] = (line[i] + near) & 255
        rows.append(line)
        before = line
    return width, height, rows, size


def grid(data, columns=30, lines=24):
    """The mean grey, 0 to 255, of each cell."""
    width, height, rows, size = pixels(data)
    cells = []
    for j in range(lines):
        line = []
        for i in range(columns):
            total = count = 0
            for y in range(j * height // lines, (j + 1) * height // lines, 2):
                row = rows[y]
                for x in range(i * width // columns, (i + 1) * width // columns, 2):
                    r, g, b = row[x * size:x * size + 3]
                    total += 299 * r + 587 * g + 114 * b
                    count += 1000
            line.append(round(total / count))
        cells.append(line)
    return cells


def difference(a, b):
    """The mean and the largest difference of two grids."""
    all_cells = [abs(x - y) for p, q in zip(a, b) for x, y in zip(p, q)]
    return sum(all_cells) / len(all_cells), max(all_cells)
