"""Prepares a picture as a network's input.

Reads uncompressed BMP files, and resizes as TensorFlow's bilinear kernel does."""
import struct


def read_bmp(path):
    """Returns rows of (red, green, blue), from the top."""
    data = path.read_bytes()
    if data[:2] != b"BM" or len(data) < 54:
        raise ValueError(f"{path}: not a BMP picture")
    offset, _, width, height, _, bits, compression = struct.unpack_from("<IIiiHHI", data, 10)
    if bits != 24 or compression != 0 or width <= 0:
        raise ValueError(f"{path}: {bits} bits, compression {compression}: only uncompressed 24-bit pictures")
    pitch = (width * 3 + 3) // 4 * 4
    rows = []
    for y in range(abs(height)):
        row = data[offset + y * pitch:offset + y * pitch + width * 3]
        rows.append([(row[x * 3 + 2], row[x * 3 + 1], row[x * 3]) for x in range(width)])
    return rows if height < 0 else rows[::-1]


def resize(rows, size):
    """Returns SIZE x SIZE pixels as bytes, red first. Corners are not aligned."""
    out = bytearray()
    row_step, col_step = len(rows) / size, len(rows[0]) / size
    for y in range(size):
        top = int(y * row_step)
        down = y * row_step - top
        upper, lower = rows[top], rows[min(top + 1, len(rows) - 1)]
        for x in range(size):
            left = int(x * col_step)
            right, along = min(left + 1, len(upper) - 1), x * col_step - left
            for channel in range(3):
                above = upper[left][channel] * (1 - along) + upper[right][channel] * along
                below = lower[left][channel] * (1 - along) + lower[right][channel] * along
                out.append(int(above * (1 - down) + below * down))
    return bytes(out)
