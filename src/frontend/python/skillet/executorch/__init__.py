"""Runs parts of quantized PyTorch networks on the NPU, in ExecuTorch 1.5 and later.

    from executorch.exir import to_edge_transform_and_lower
    from skillet.executorch import SkilletPartitioner, load_backend
    program = to_edge_transform_and_lower(torch.export.export(quantized, inputs), partitioner=[SkilletPartitioner("a311d,rk3588")]).to_executorch()

A part in the .pte file is a compiled model, the bytes that `skillet compile -o` writes. load_backend() registers the C++ half with ExecuTorch's
runtime; it and build_backend() do not need PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillet.executorch._native import build_backend, load_backend

if TYPE_CHECKING:
    from skillet.executorch._partitioner import SkilletBackend, SkilletPartitioner

__all__ = ["SkilletBackend", "SkilletPartitioner", "build_backend", "load_backend"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from skillet.executorch import _partitioner
    return getattr(_partitioner, name)
