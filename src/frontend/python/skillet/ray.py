"""Runs networks on the NPUs of a Ray cluster. Each node declares its NPUs: ray start --resources='{"npu": 1}'. Needs ray (PyPI)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import skillet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from skillet._memory import Array

NPU = "npu"  # name of the resource


class Network:
    """A session on a node of the cluster. If the NPU fails, the CPU of that node answers."""

    def __init__(self, model: bytes, device: str, options: dict[str, Any]) -> None:
        self._session = skillet.Session(model, device, **options)

    def run(self, *inputs: Array) -> list[Array]:
        """Runs the model, see Session.run()."""
        return self._session.run(*inputs)

    def node(self) -> str:
        """Returns Ray's id of the node."""
        import ray  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return str(ray.get_runtime_context().get_node_id())

    def __call__(self, batch: dict[str, Array]) -> dict[str, Array]:
        """Runs a batch of rows, one inference each. Columns with the names of the inputs are read; a column is added for each output."""
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
    """Returns the model's bytes: nodes need not have the file."""
    return model if isinstance(model, bytes) else Path(model).read_bytes()


def network(model: str | Path | bytes, device: str = "npu", **options: Any) -> Any:
    """Returns an actor that has an NPU to itself: ray.get(actor.run.remote(array)). It waits until a node has a free NPU."""
    import ray  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return ray.remote(resources={NPU: 1})(Network).remote(_model(model), device, options)


def map_batches(dataset: Any, model: str | Path | bytes, device: str = "npu", npus: int = 1, batch_size: int = 64, **options: Any) -> Any:
    """Adds the outputs as columns to a Ray data set, computed on NPUS NPUs. A row is one inference."""
    from ray.data import ActorPoolStrategy  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return dataset.map_batches(
        Network,
        fn_constructor_args=(_model(model), device, options),
        batch_size=batch_size,
        batch_format="numpy",
        compute=ActorPoolStrategy(size=npus),
        resources={NPU: 1},
    )


class Share(NamedTuple):
    """The result of a command."""

    code: int
    text: str
    error: str
    made: dict[str, bytes]  # files in the folder `out`


def run_share(words: Sequence[str], files: dict[str, bytes]) -> Share:
    """Runs a command on a node, in a temporary folder with FILES."""
    with tempfile.TemporaryDirectory() as holder:
        folder = Path(holder)
        for name, data in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        done = subprocess.run([sys.executable, "-m", "skillet", *words], cwd=folder, capture_output=True, text=True, check=False)
        out = folder / "out"
        made = {str(one.relative_to(out)): one.read_bytes() for one in out.rglob("*") if one.is_file()}
        return Share(done.returncode, done.stdout, done.stderr, made)


def _shares(commands: list[tuple[list[str], dict[str, bytes]]]) -> list[Share]:
    """Runs each command on an NPU of the cluster. Raises skillet.Error if one cannot start."""
    import ray  # type: ignore[import-not-found,import-untyped,unused-ignore]

    remote = ray.remote(resources={NPU: 1})(run_share)
    shares: list[Share] = ray.get([remote.remote(words, files) for words, files in commands])
    for one in shares:
        if one.code not in (0, 1):
            raise skillet.Error(one.error.strip())
    return shares


def conformance(output: str | Path, device: str = "npu", npus: int = 1, options: Sequence[str] = ()) -> int:
    """Runs `skillet conformance` with the cases divided among NPUS NPUs.

    Writes the same files to OUTPUT and returns the same exit code as a run on one machine. OPTIONS: ["--suite", "nets"].
    Nodes need what the suite needs: NumPy and a TensorFlow Lite runtime."""
    from skillet.conformance.__main__ import main

    commands = [["conformance", "--device", device, "--fraction", f"{k}/{npus}", "-o", "out", *options] for k in range(1, npus + 1)]
    with tempfile.TemporaryDirectory() as holder:
        folders = []
        for k, share in enumerate(_shares([(words, {}) for words in commands])):
            folders.append(f"{holder}/{k}")
            for name, data in share.made.items():
                file = Path(folders[-1], name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        return main(["--merge", *folders, "-o", str(output)])


def evaluate(model: str | Path, data: str | Path, device: str = "npu", npus: int = 1, options: Sequence[str] = ()) -> dict[str, Any]:
    """Runs `skillet eval --json` with the pictures of a folder divided among NPUS NPUs. Counts are sums, means are over all pictures."""
    name, pictures = Path(model).name, sorted(one for one in Path(data).iterdir() if one.suffix.lower() in PICTURES)
    if not pictures:
        raise skillet.InvalidArgument(f"{data}: no .png, .jpg or .bmp in it")
    parts = [part for part in (pictures[k::npus] for k in range(npus)) if part]
    given, common = _files_sent(options)
    words = ["eval", name, "--data", "data", "--device", device, "--json", *given]
    common[name] = Path(model).read_bytes()
    files = [{**common, **{f"data/{one.name}": one.read_bytes() for one in part}} for part in parts]
    return joined([json.loads(share.text) for share in _shares([(words, each) for each in files])])


FILES_READ, FILES_WRITTEN = {"--labels", "--tuning-file"}, {"--trace"}  # options of `skillet eval`


def _files_sent(options: Sequence[str]) -> tuple[list[str], dict[str, bytes]]:
    """Returns OPTIONS with the paths that files have on a node, and these files.
    Raises InvalidArgument for options that would write a file on the node."""
    words: list[str] = []
    files: dict[str, bytes] = {}
    for one in options:
        name, is_joined, value = one.partition("=")
        if name in FILES_WRITTEN:
            raise skillet.InvalidArgument(f"{name}: a node's file stays there; run `skillet eval` on the node for it")
        before = words[-1] if words else ""
        if name in FILES_READ and is_joined:
            words += [name]
        elif before not in FILES_READ:
            words.append(one)
            continue
        else:
            value = one
        there = f"file{len(files)}/{Path(value).name}"
        files[there] = Path(value).read_bytes()
        words.append(there)
    return words, files


PICTURES = {".png", ".jpg", ".jpeg", ".bmp"}
LAYER_SUMS = {"differing", "elems"}  # sums in differences of layers; in differences of outputs, differing is a share
SUMS = {"pictures", "same_class", "with_truth", "top1", "top5", "cpu_top1", "cpu_top5", "against_top1", "against_top5"}
LARGEST = {"largest_difference", "largest", "lost_margin", "fallback_ops", "cpu_ops"}
SMALLEST = {"worst_psnr_db", "npu_ops", "model_npu_ops"}
MEANS = {"equal", "cosine", "beyond_one", "differing", "mean"}


def joined(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Joins the reports of shares to one. Values that are equal in all of them stay."""
    worst = min(reports, key=lambda one: 1 if one.get("worst_cosine") is None else one["worst_cosine"])
    out = _joined([(report, report["pictures"]) for report in reports])
    return {**out, **{key: worst[key] for key in ("worst_cosine", "worst_picture") if key in worst},
            "unreadable": sorted(sum((report["unreadable"] for report in reports), []))}


def _joined(weighted: list[tuple[dict[str, Any], int]], sums: set[str] = SUMS) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key in {key: None for one, _ in weighted for key in one}:
        have = [(one[key], weight) for one, weight in weighted if one.get(key) is not None]
        values = [value for value, _ in have]
        if not values:
            out[key] = None
        elif key in sums:
            out[key] = sum(values)
        elif key in LARGEST or key in SMALLEST:
            out[key] = max(values) if key in LARGEST else min(values)
        elif key in MEANS:
            out[key] = sum(value * weight for value, weight in have) / max(sum(weight for _, weight in have), 1)
        elif isinstance(values[0], dict):
            out[key] = _joined(have)
        elif isinstance(values[0], list) and values[0] and isinstance(values[0][0], dict):
            of_each = LAYER_SUMS if key == "layers" else SUMS
            out[key] = [_joined([(value[i], weight) for value, weight in have], of_each) for i in range(len(values[0]))]
        else:
            out[key] = values[0]
    return out
