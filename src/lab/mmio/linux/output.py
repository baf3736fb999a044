"""Passes on what a program in the guest writes: its standard output over the console, its standard error through a file of the host.

Used by kernel.py. Must not know what is written.
"""
import ctypes
import errno
import os
import select
import sys
import threading
import time

MARKER = b"[the program begins]"  # printed by the guest's init; earlier lines on the console are the kernel's
PIECE_BYTES = 1 << 16
HOLE_BYTES = 1 << 20  # space of the file is freed in pieces of this size after reading
PUNCH_HOLE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE


def write_all(stream, data):
    """Writes all of DATA, even to a pipe that was made non-blocking. A stream in memory, as tests use, takes text."""
    if not hasattr(stream, "buffer"):
        stream.write(data.decode(errors="replace"))
        return
    stream.flush()
    while data:
        try:
            data = data[os.write(stream.fileno(), data):]
        except BlockingIOError:
            select.select([], [stream], [])


class Output:
    """Threads that pass on what `machine` (a process) writes. `failure`: why the output cannot be written any more."""

    def __init__(self, machine, errors, has_console):
        errors.touch()
        self.machine, self.failure = machine, None
        pumps = [(self.pump_errors, errors)] + ([] if has_console else [(self.pump_console, machine.stdout)])
        self.threads = [threading.Thread(target=pump, args=(source,), daemon=True) for pump, source in pumps]
        for one in self.threads:
            one.start()

    def end(self, seconds=None):
        """Waits until all output is passed on, at most SECONDS. The machine has ended."""
        for one in self.threads:
            one.join(seconds)

    def why(self):
        """Returns the exit code for `failure` and a sentence, which is empty if the reader has just ended, as `head` does."""
        if self.failure.errno == errno.EPIPE:
            return 128 + 13, ""  # SIGPIPE
        return 1, f"what the program writes cannot be passed on: {self.failure.strerror}"

    def passes(self, stream, data):
        try:
            write_all(stream, data)
        except OSError as failure:
            self.failure = failure
        return self.failure is None

    def pump_console(self, console):
        before, begun = b"", False
        while data := os.read(console.fileno(), PIECE_BYTES):
            if not begun:
                before += data
                begins = before.find(MARKER)
                line_end = before.find(b"\n", begins) if begins >= 0 else -1
                if line_end < 0:
                    before = before[begins if begins >= 0 else -len(MARKER):]
                    continue
                data, begun = before[line_end + 1:], True
            if not self.passes(sys.stdout, data):
                return

    def pump_errors(self, path):
        libc = ctypes.CDLL(None)
        with open(path, "r+b", buffering=0) as errors:
            ended, free = False, 0
            while True:
                data = errors.read(PIECE_BYTES)
                if data and not self.passes(sys.stderr, data):
                    return
                if errors.tell() - free >= HOLE_BYTES:
                    free = errors.tell() // HOLE_BYTES * HOLE_BYTES
                    libc.fallocate(errors.fileno(), PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(free))
                if data:
                    continue
                if ended:
                    return
                ended = self.machine.poll() is not None
                time.sleep(0 if ended else 0.05)
