"""Skillet: runs quantized TensorFlow Lite models on NPUs, through mainline Linux drivers or simulated chips.

    import skillet

    with skillet.Session("net.tflite", device="sim:a311d") as session:
        (scores,) = session.run(image)

Arrays need NumPy; importing this package does not.
"""

from skillet._delegate import load_delegate
from skillet._device import Buffer, Device, ListedDevice, devices
from skillet._library import (
    Closed,
    DeviceFault,
    Error,
    InternalError,
    InvalidArgument,
    IoFailed,
    Malformed,
    OutOfRange,
    TimedOut,
    Unsupported,
    WrongType,
    options_help,
    version,
)
from skillet._log import set_log
from skillet._paths import command_path, delegate_path
from skillet._session import Operation, Session, Use
from skillet._tensor import TensorInfo
from skillet._tools import decode

__all__ = [
    "Buffer",
    "Closed",
    "Device",
    "DeviceFault",
    "Error",
    "InternalError",
    "InvalidArgument",
    "IoFailed",
    "ListedDevice",
    "Malformed",
    "Operation",
    "OutOfRange",
    "Session",
    "TensorInfo",
    "TimedOut",
    "Unsupported",
    "Use",
    "WrongType",
    "command_path",
    "decode",
    "delegate_path",
    "devices",
    "load_delegate",
    "options_help",
    "set_log",
    "version",
]
