"""A runtime for MLServer: lets KServe, Seldon and any client of the Open Inference protocol (V2, HTTP and gRPC) use an NPU.

`model-settings.json`: {"name": "digits", "implementation": "skillet.mlserver.SkilletModel", "parameters": {"uri": "digits.tflite",
"extra": {"device": "npu", "sessions": 2, "options": {"cores": 3}}}}. Needs mlserver (PyPI).
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import queue
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mlserver import MLModel  # type: ignore[import-not-found,unused-ignore]
from mlserver.codecs import NumpyCodec  # type: ignore[import-not-found,unused-ignore]
from mlserver.errors import InferenceError  # type: ignore[import-not-found,unused-ignore]
from mlserver.logging import logger  # type: ignore[import-not-found,unused-ignore]
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor, Parameters, RequestInput  # type: ignore[import-not-found,unused-ignore]
from mlserver.utils import get_model_uri  # type: ignore[import-not-found,unused-ignore]
from prometheus_client import Gauge  # type: ignore[import-not-found,unused-ignore]

import skillet

if TYPE_CHECKING:
    from typing import Any

    from skillet._memory import Array

DATATYPES = {"bool": "BOOL", "float16": "FP16", "float32": "FP32"}  # other types have their own names
BATCH_MAX = 1024
_gauge: Gauge | None = globals().get("_gauge")  # MLServer imports this module again for each model


def datatype(info: skillet.TensorInfo) -> str:
    return DATATYPES.get(info.type, info.type.upper())


def datatype_of(one: Any) -> str:
    return str(getattr(one.datatype, "value", one.datatype))


def decoded(one: Any) -> Array:
    """Returns a tensor of a request as an array. Raises ValueError if its data do not have its type and shape."""
    import numpy as np

    try:
        given, out = np.asarray(getattr(one.data, "root", one.data)), NumpyCodec.decode_input(one)
    except (TypeError, ValueError, OverflowError) as problem:
        raise ValueError(f"'{one.name}': {problem}") from problem
    # NumPy truncates 1.7, and converts null to false and text to numbers. MLServer sends NaN as null.
    is_whole = out.dtype.kind in "biu"
    if given.dtype.kind not in ("biuf" if is_whole else "biufO") or (is_whole and not np.array_equal(given.reshape(-1), out.reshape(-1))):
        raise ValueError(f"'{one.name}': its data are not all of {datatype_of(one)}")
    array: Array = out
    return array


def file_of(uri: str) -> str:
    """Returns the model's path. KServe gives a folder, which must contain one .tflite file."""
    if not os.path.isdir(uri):
        return uri
    there = sorted(name for name in os.listdir(uri) if name.endswith(".tflite"))
    if len(there) != 1:
        raise ValueError(f"{uri}: {len(there)} .tflite files; a folder must have one")
    return os.path.join(uri, there[0])


def is_of_a_failure(operation: skillet.Operation) -> bool:
    """Returns whether the operation failed on the NPU: in a run, or in the comparison with the CPU of unproven operations."""
    return operation.failed or (not operation.on_npu and "unproven=refuse" in operation.why)


def gauge() -> Gauge:
    """Returns the gauge. It is created when the first model is loaded: before, MLServer may change where values are kept."""
    global _gauge
    if _gauge is None:
        about = "Operations of the model that the NPU computes; where it failed, the CPU does the rest"
        _gauge = Gauge("skillet_npu_ops", about, ["model_name"], multiprocess_mode="livemin")
    return _gauge


class SkilletModel(MLModel):  # type: ignore[misc,unused-ignore]
    """Settings in `parameters.extra`: device (default:
    SKILLET_DEVICE, else "auto"), options of the session by name, sessions (default: 1): requests that run
    at once.

    A request may hold several inferences: its tensors then have N as first dimension, if that is 1 in the model.
    If the NPU fails, the CPU answers."""

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self._pool: ThreadPoolExecutor | None = None
        self._sessions: queue.Queue[skillet.Session] = queue.Queue()

    async def load(self) -> bool:
        try:
            return await self._load()
        except (skillet.Error, OSError, ValueError, TypeError) as problem:
            raise InferenceError(f"{self.name}: {problem}") from problem

    async def _load(self) -> bool:
        extra = (self.settings.parameters.extra or {}) if self.settings.parameters else {}
        unknown = set(extra) - {"device", "options", "sessions"}
        if unknown:
            raise ValueError(f"no setting {', '.join(sorted(unknown))}; there are device, options and sessions")
        count, path = int(extra.get("sessions", 1)), file_of(await get_model_uri(self.settings))
        if not 1 <= count <= 64:
            raise ValueError(f"{count} sessions; 1 to 64")
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="skillet")
        with tempfile.TemporaryDirectory() as folder:  # all sessions load the same model, even if the file is replaced meanwhile
            copy = os.path.join(folder, os.path.basename(path))
            await asyncio.wrap_future(self._pool.submit(shutil.copyfile, path, copy))
            made = [self._pool.submit(skillet.Session, copy, extra.get("device"), **extra.get("options", {})) for _ in range(count)]
            try:
                for one in made:
                    self._sessions.put(await asyncio.wrap_future(one))
            except skillet.Error as problem:
                raise type(problem)(str(problem).replace(copy, path)) from problem
            finally:
                await asyncio.gather(*map(asyncio.wrap_future, made), return_exceptions=True)
        first: skillet.Session = self._sessions.queue[0]
        uses = [session.use() for session in self._sessions.queue]
        self._in, self._out, self._ops = first.inputs, first.outputs, uses[0].ops
        self._npu_ops = max(use.npu_ops for use in uses)
        gauge().labels(self.name).set(self._npu_ops)
        self._has_failed = False
        is_refused = extra.get("options", {}).get("unproven", os.environ.get("SKILLET_UNPROVEN")) == "refuse"
        for session, use in zip([] if is_refused else list(self._sessions.queue), uses):
            self._note(use.npu_ops, any(map(is_of_a_failure, session.operations())))
        self.inputs, self.outputs = self._metadata(self._in), self._metadata(self._out)
        self._check_before_joining()
        return True

    def _check_before_joining(self) -> None:
        """Makes MLServer's batching safe: it joins requests of several clients unchecked, with the data of all and the shape of the first."""
        most = self.settings.max_batch_size
        if most <= 1 or self.settings.max_batch_time <= 0:
            return
        if most > BATCH_MAX:
            raise ValueError(f"max_batch_size {most}; at most {BATCH_MAX}")
        if multiprocessing.parent_process() is not None:
            raise ValueError('max_batch_size needs "parallel_workers": 0 in settings.json; else MLServer joins requests of several clients before they are checked')
        joining = self.__dict__.get("predict")  # MLServer does not batch a model that is being replaced
        if joining is None:
            return

        async def predict(payload: Any) -> Any:
            try:
                arrays, count = self._arrays(payload)
            except ValueError as problem:
                raise InferenceError(f"{self.name}: {problem}") from problem
            if count != 1 or payload.outputs or not all(map(self._is_batch, self._in)):
                return await SkilletModel.predict(self, payload)
            alike = [RequestInput(name=info.name, datatype=datatype(info), shape=list(array.shape), data=array.reshape(-1).tolist())
                     for info, array in zip(self._in, arrays)]
            return await joining(InferenceRequest(id=payload.id, inputs=alike))

        self.__dict__["predict"] = predict

    async def unload(self) -> bool:
        await asyncio.get_running_loop().run_in_executor(None, self._close)  # other models are answered meanwhile
        return True

    def _close(self) -> None:
        if self._pool is not None:  # also called after a failed load
            self._pool.shutdown(wait=True)
        while not self._sessions.empty():
            self._sessions.get().close()

    async def metadata(self) -> Any:
        """Returns the metadata with the state of the NPU: `npu` is "ready", "failed", or "none" if it never had an operation."""
        about = await super().metadata()
        state = "failed" if self._has_failed else "ready" if self._npu_ops else "none"
        about.parameters = Parameters(npu=state, npu_ops=self._npu_ops, ops=self._ops)
        return about

    async def predict(self, payload: Any) -> Any:
        try:
            arrays, count = self._arrays(payload)
            outputs = await asyncio.get_running_loop().run_in_executor(self._pool, self._run, arrays, count)
        except (skillet.Error, ValueError) as problem:
            raise InferenceError(f"{self.name}: {problem}") from problem
        wanted = {one.name for one in payload.outputs or ()}
        named = [NumpyCodec.encode_output(info.name, one) for info, one in zip(self._out, outputs) if not wanted or info.name in wanted]
        return InferenceResponse(id=payload.id, model_name=self.name, model_version=self.version, outputs=named)

    def _note(self, npu_ops: int, has_failed: bool = False) -> None:
        """Records a failure of the NPU, also during load. A part that moved to the CPU stays there."""
        if npu_ops < self._npu_ops or (has_failed and not self._has_failed):
            self._npu_ops, self._has_failed = min(npu_ops, self._npu_ops), True
            gauge().labels(self.name).set(self._npu_ops)
            logger.warning("%s: the NPU failed: it computes %d of %d operations, the CPU the rest", self.name, self._npu_ops, self._ops)

    def _metadata(self, infos: tuple[skillet.TensorInfo, ...]) -> list[Any]:
        return [MetadataTensor(name=one.name, datatype=datatype(one), shape=[-1 if self._is_batch(one) else one.shape[0], *one.shape[1:]]
                               if one.shape else []) for one in infos]

    @staticmethod
    def _is_batch(info: skillet.TensorInfo) -> bool:
        return len(info.shape) > 1 and info.shape[0] == 1

    def _arrays(self, payload: Any) -> tuple[list[Array], int]:
        """Returns the request's arrays in the model's order, and the number of inferences. Raises ValueError if they do not fit."""
        import numpy as np

        there = [one.name for one in self._out]
        unknown = [one.name for one in payload.outputs or () if one.name not in there]
        if unknown:
            raise ValueError(f"outputs {', '.join(unknown)}; the model gives {', '.join(there)}")
        given = {one.name: one for one in payload.inputs}
        wanted = [one.name for one in self._in]
        if len(payload.inputs) != len(given) or set(given) != set(wanted):
            raise ValueError(f"inputs {', '.join(one.name for one in payload.inputs)}; the model takes {', '.join(wanted)}")
        arrays: list[Array] = []
        counts = set()
        for info in self._in:
            one = given[info.name]
            if datatype_of(one) != datatype(info):
                raise ValueError(f"'{info.name}' takes {datatype(info)}, not {datatype_of(one)}")
            shape = tuple(one.shape)
            fits = shape == info.shape or (self._is_batch(info) and shape[1:] == info.shape[1:] and 1 <= shape[0] <= BATCH_MAX)
            if not fits:
                raise ValueError(f"'{info.name}' has shape {list(info.shape)}, not {list(shape)}")
            arrays.append(np.ascontiguousarray(decoded(one), info.dtype))
            if self._is_batch(info):
                counts.add(shape[0])
        if len(counts) > 1:
            raise ValueError(f"inputs of {' and '.join(map(str, sorted(counts)))} inferences")
        return arrays, counts.pop() if counts else 1

    def _run(self, arrays: list[Array], count: int) -> list[Array]:
        import numpy as np

        session = self._sessions.get()
        try:
            runs = [session.run(*(array[i : i + 1] if self._is_batch(info) else array for info, array in zip(self._in, arrays)))
                    for i in range(count)]
            self._note(session.use().npu_ops)
        finally:
            self._sessions.put(session)
        return [np.concatenate(same) if count > 1 else same[0] for same in zip(*runs)]


__all__ = ["SkilletModel"]
