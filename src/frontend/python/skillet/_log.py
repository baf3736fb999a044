"""Passes lines of the library's log to a function instead of stderr."""

from __future__ import annotations

import atexit
from collections.abc import Callable

from skillet._library import InvalidArgument, LogFunction, WrongType, call, text

Listener = Callable[[str, str], None]

_LEVELS = ("error", "warning", "info", "debug")
_listener: Listener | None = None


def _on_line(_user: int | None, level: int, message: bytes) -> None:
    if _listener is not None:
        _listener(_LEVELS[level], text(message))


# Kept for the life of the process: a listener may replace itself while it is being called.
_ON_LINE = LogFunction(_on_line)
_NOBODY = LogFunction()


def set_log(listener: Listener | None, level: str = "warning") -> None:
    """Passes each line of the log up to LEVEL (error, warning, info, debug) to LISTENER(level, message).

    Lines may come from any thread, one at a time. LISTENER may call set_log(), but nothing else of this package.
    None: lines go to stderr again, as the environment variable SKILLET_LOG sets it.
    Raises InvalidArgument for an unknown level."""
    global _listener
    if level not in _LEVELS:
        raise InvalidArgument(f"there is no log level {level!r}: error, warning, info or debug")
    if listener is not None and not callable(listener):
        raise WrongType(f"a listener is a function, not {listener!r}")
    _listener = listener
    call("skillet_set_log", _NOBODY if listener is None else _ON_LINE, None, _LEVELS.index(level))
    if listener is not None:
        atexit.register(_silence)  # no line may reach Python after its shutdown


def _silence() -> None:
    set_log(None)
    atexit.unregister(_silence)
