"""Networks on the NPUs of a Ray cluster. Each node says how many it has: ray start --resources='{"npu": 1}'. Needs ray (PyPI)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import skillet

if TYPE_CHECKING:
    from typing import Any

    from skillet._memory import Array

NPU = "npu"  # the resource


class Network:
    """A session on a node of the cluster. Where the NPU fails, the CPU of that node answers."""

    def __init__(self, model: bytes, device: str, options: dict[str, Any]) -> None:
        self._session = skillet.Session(model, device, **options)

    def run(self, *inputs: Array) -> list[Array]:
        """As Session.run()."""
        return self._session.run(*inputs)

    def node(self) -> str:
        """Ray's number of the node."""
        import ray  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return str(ray.get_runtime_context().get_node_id())

    def __call__(self, batch: dict[str, Array]) -> dict[str, Array]:
        """A batch of rows, with a column for each output. A row is one inference: columns have the names of the inputs."""
        import numpy as np

        inputs = self._session.inputs
        missing = [info.name for info in inputs if info.name not in batch]
        if missing:
            raise ValueError(f"no column {', '.join(missing)}; there are {', '.join(batch)}")
        rows = [
            self._session.run(*(np.asarray(batch[info.name][i]).reshape(info.shape) for info in inputs))
            for i in range(len(batch[inputs[0].name]))
        ]
        columns = {info.name: np.stack([row[k] for row in rows]) for k, info in enumerate(self._session.outputs)}
        return {**batch, **columns}


def _model(model: str | Path | bytes) -> bytes:
    """Nodes need not have the file."""
    return model if isinstance(model, bytes) else Path(model).read_bytes()


def network(model: str | Path | bytes, device: str = "npu", **options: Any) -> Any:
    """An actor that has an NPU to itself: ray.get(actor.run.remote(array)). It waits until a node has one free."""
    import ray  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return ray.remote(resources={NPU: 1})(Network).remote(_model(model), device, options)


def map_batches(dataset: Any, model: str | Path | bytes, device: str = "npu", npus: int = 1, batch_size: int = 64, **options: Any) -> Any:
    """A Ray data set with the outputs as columns, computed on so many NPUs. A row is one inference."""
    from ray.data import ActorPoolStrategy  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return dataset.map_batches(
        Network,
        fn_constructor_args=(_model(model), device, options),
        batch_size=batch_size,
        batch_format="numpy",
        compute=ActorPoolStrategy(size=npus),
        resources={NPU: 1},
    )
