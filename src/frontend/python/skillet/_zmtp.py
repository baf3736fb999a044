"""A server of ZeroMQ's protocol (ZMTP 3.0 without authentication) for clients with REQ sockets. Used by `skillet serve`.

libzmq limits neither the parts of a message nor the connections, and ends the process if it runs out of file descriptors. This server limits
connections, parts and bytes of a message, bytes of all requests, and the time in which a message must arrive.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import signal
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MORE, LONG, COMMAND = 1, 2, 4  # flags of a frame
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
SIGNATURE, VERSION, MECHANISM = slice(0, 10), 10, slice(12, 32)  # fields of a greeting
COMMAND_BYTES_MAX = 1024
PARTS_MAX = 4  # a request has three: an empty part, JSON and pixels
HEADER_BYTES_MAX = 1 << 16  # of each part but the last one
FIRST_BYTES = 1 << 16  # of a frame that must arrive before memory for all of it is reserved
CLIENTS_MAX = 1000
HELD_BYTES_MAX = 80 << 20  # of requests without an answer yet; further requests wait
OVERHEAD_BYTES = 4096  # added for each request
TCP = re.compile(r"tcp://(.+):([0-9]{1,5})")
ENDPOINT = "an endpoint is ipc://FILE or tcp://HOST:PORT"
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GREETING_S, MESSAGE_S, END_S = 5.0, 10.0, 3.0
HURRY_S, HURRY_BYTES_PER_S, LOOK_S = 0.1, 4 << 20, 0.05  # deadline of clients that hold bytes, and interval of checks, while others wait for bytes


class Client:
    """The state of one connection that lasts between its requests."""

    model_name: str | None = None  # the model that it requested last


class NoMessage(Exception):
    """The client violates the protocol or its limits; its connection is closed."""


def frame(body: bytes, flags: int = 0) -> bytes:
    if len(body) > 255:
        return bytes([flags | LONG]) + len(body).to_bytes(8, "big") + body
    return bytes([flags, len(body)]) + body


READY = frame(b"\x05READY\x0bSocket-Type\0\0\0\x06ROUTER\x08Identity\0\0\0\0", COMMAND)


class ByteBudget:
    """Limits the bytes of all requests together. While requests wait for bytes, slow clients that hold some are dropped."""

    def __init__(self, size: int) -> None:
        self._left, self._changed = size, asyncio.Condition()
        self._due: dict[Callable[[], None], float] = {}  # by the function that drops a client: the time by which its bytes must arrive

    async def take(self, size: int) -> None:
        async with self._changed:
            while self._left < size:
                self._drop_slow()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), LOOK_S)
            self._left -= size

    async def give(self, size: int) -> None:
        async with self._changed:
            self._left += size
            self._changed.notify_all()

    def expect(self, drop: Callable[[], None], size: int) -> None:
        self._due[drop] = time.monotonic() + HURRY_S + size / HURRY_BYTES_PER_S

    def expect_nothing(self, drop: Callable[[], None]) -> None:
        self._due.pop(drop, None)

    def _drop_slow(self) -> None:
        now = time.monotonic()
        for drop in [one for one, due in self._due.items() if due < now]:
            del self._due[drop]
            drop()


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: ByteBudget, message_bytes_max: int) -> None:
        self._reader, self._writer, self._budget, self._most = reader, writer, budget, message_bytes_max
        self._drop, self._held = writer.transport.abort, 0

    async def greet(self) -> None:
        self._writer.write(GREETING)
        theirs = await self._reader.readexactly(len(GREETING))
        if theirs[SIGNATURE][::9] != b"\xff\x7f" or theirs[VERSION] < 3 or theirs[MECHANISM] != GREETING[MECHANISM]:
            raise NoMessage
        self._writer.write(READY)
        first = await self._reader.readexactly(1)
        if not first[0] & COMMAND:  # reject it before its body, which may be long
            raise NoMessage
        _, body = await self._frame(first)
        if not body.startswith(b"\x05READY"):
            raise NoMessage

    async def message(self) -> list[bytes]:
        """Waits without a limit for the next message, and answers commands before it. Returns its parts."""
        while True:
            first = await self._reader.readexactly(1)
            try:
                parts = await asyncio.wait_for(self._parts(first), MESSAGE_S)
            finally:
                self._budget.expect_nothing(self._drop)
            if parts:
                return parts
            await self.release()

    async def _parts(self, first: bytes) -> list[bytes]:
        parts: list[bytes] = []
        await self._hold(OVERHEAD_BYTES)
        while True:
            flags, body = await self._frame(first)
            if flags & COMMAND:
                if parts:
                    raise NoMessage
                await self._command(body)
                return []
            parts.append(body)
            if len(parts) > PARTS_MAX:
                raise NoMessage
            if not flags & MORE:
                return parts
            first = await self._reader.readexactly(1)

    async def _frame(self, first: bytes) -> tuple[int, bytes]:
        flags = first[0]
        size = int.from_bytes(await self._reader.readexactly(8 if flags & LONG else 1), "big")
        if flags > 7 or size > (COMMAND_BYTES_MAX if flags & COMMAND else HEADER_BYTES_MAX if flags & MORE else self._most):
            raise NoMessage
        begin = await self._reader.readexactly(min(size, FIRST_BYTES))  # a client that only announces bytes holds none
        self._budget.expect_nothing(self._drop)  # the client itself waits while memory is reserved
        await self._hold(size)
        self._budget.expect(self._drop, size)
        return flags, begin + await self._reader.readexactly(size - len(begin))

    async def _command(self, body: bytes) -> None:
        if body.startswith(b"\x04PING"):
            self._writer.write(frame(b"\x04PONG" + body[7:], COMMAND))
            await self._writer.drain()

    async def _hold(self, size: int) -> None:
        await self._budget.take(size)
        self._held += size

    async def release(self) -> None:
        held, self._held = self._held, 0
        await self._budget.give(held)

    async def answer(self, parts: list[bytes]) -> None:
        for i, part in enumerate(parts):
            self._writer.write(frame(part, MORE if i + 1 < len(parts) else 0))
        await asyncio.wait_for(self._writer.drain(), MESSAGE_S)


class Server:
    """Answers each message by `answer(client, parts)` in one of `workers` threads. `parts` omits the empty part that REQ sockets send first."""

    def __init__(self, answer: Callable[[Client, list[bytes]], list[bytes]], workers: int, message_bytes_max: int) -> None:
        self._answer, self._most = answer, message_bytes_max
        self._pool = ThreadPoolExecutor(workers)
        self._idle: set[asyncio.Task[None]] = set()  # tasks that wait for a message
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends = False

    async def run(self, listener: socket.socket, signals: list[int], begun: Callable[[], None]) -> None:
        """Serves until one of END_SIGNALS arrives, or has arrived. Then answers current requests for at most END_S."""
        self._budget, stop, loop = ByteBudget(HELD_BYTES_MAX), asyncio.Event(), asyncio.get_running_loop()
        for number in END_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        listener.listen(CLIENTS_MAX)
        listener.setblocking(False)
        accepting = loop.create_task(self._accept(listener))
        begun()
        if not signals:
            await stop.wait()
        self._ends = True
        accepting.cancel()
        listener.close()
        for one in tuple(self._idle):
            one.cancel()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=END_S)
            for one in late:
                one.cancel()
        self._pool.shutdown(wait=False)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(listener)
            except OSError:  # the client has disconnected, or no file descriptor is left
                await asyncio.sleep(0.1)
                continue
            if len(self._tasks) >= CLIENTS_MAX:
                client.close()
            else:
                self._tasks.add(loop.create_task(self._serve(client)))

    async def _serve(self, client: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        connected = asyncio.open_unix_connection if client.family == socket.AF_UNIX else asyncio.open_connection
        reader, writer = await connected(sock=client, limit=FIRST_BYTES)
        one = Connection(reader, writer, self._budget, self._most)
        self._idle.add(task)
        try:
            await asyncio.wait_for(one.greet(), GREETING_S)
            await one.release()
            await self._converse(one, task)
        except (NoMessage, OSError, EOFError, asyncio.TimeoutError, asyncio.CancelledError):
            writer.transport.abort()  # closes at once: a client that does not read gets no more data
        finally:
            self._tasks.discard(task)
            self._idle.discard(task)
            with contextlib.suppress(asyncio.CancelledError):
                await one.release()
            writer.close()

    async def _converse(self, one: Connection, task: asyncio.Task[None]) -> None:
        client = Client()
        while not self._ends:
            self._idle.add(task)
            parts = await one.message()
            self._idle.discard(task)
            if len(parts) > 1 and parts[0] == b"":  # other messages are not from a REQ socket, which would wait for an answer
                await one.answer([b"", *await asyncio.get_running_loop().run_in_executor(self._pool, self._answer, client, parts[1:])])
            await one.release()


def listen(endpoint: str) -> tuple[socket.socket, str]:
    """Returns a listening socket and the path of its file ("" for TCP).

    Only this user can access the socket file. A lock file beside it keeps other servers away.
    Raises OSError with the reason if it cannot listen."""
    kind, _, place = endpoint.partition("://")
    if parts := TCP.fullmatch(endpoint):
        return tcp_listener(endpoint, parts[1], int(parts[2])), ""
    if kind != "ipc" or not place:
        raise OSError(ENDPOINT)
    if place.startswith("@"):
        raise OSError("a socket without a file can be reached by every user")
    if os.path.lexists(place) and not stat.S_ISSOCK(os.lstat(place).st_mode):
        raise OSError(f"{place} is there and is no socket")
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        lock = os.open(f"{place}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)  # held until the process ends
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(place) == 0:
                raise BlockingIOError(errno.EWOULDBLOCK, "")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)  # left by a server that was killed
        listener.bind(place)
    except OSError as problem:
        listener.close()
        why = {errno.EWOULDBLOCK: f"another server waits at {endpoint}", errno.ELOOP: f"{place}.lock is a link; remove it",
               errno.ENOENT: f"there is no folder {os.path.dirname(place) or '.'}; mkdir -p makes it"}
        raise OSError(why.get(problem.errno or 0, f"{place}: {problem.strerror or problem}")) from None
    finally:
        os.umask(mask)
    return listener, place


def tcp_listener(endpoint: str, host: str, port: int) -> socket.socket:
    host = "0.0.0.0" if host == "*" else host.strip("[]")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise OSError(f"another server waits at {endpoint}" if problem.errno == errno.EADDRINUSE else problem.strerror) from None


def is_local(endpoint: str) -> bool:
    return endpoint.startswith(("ipc://", "tcp://127.0.0.1:", "tcp://localhost:", "tcp://[::1]:"))


def is_endpoint(text: str) -> bool:
    return bool(TCP.fullmatch(text)) or (text.startswith("ipc://") and text != "ipc://")
