"""The targets that compute a model: reference kernels, a delegate, a device, a command. Each runs in a child process (_child.py)."""

from __future__ import annotations

import ctypes
import errno
import importlib
import importlib.metadata
import io
import json
import os
import shlex
import shutil
import string
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skillet.conformance._models import opened as opened_file
from skillet.conformance._onnx import BACK, FIRST
from skillet.conformance._process import MOST_FILE, end_children

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Run = Callable[[list[Any]], list[Any]]

RUNTIMES = (("ai_edge_litert.interpreter", "ai-edge-litert"), ("tflite_runtime.interpreter", "tflite-runtime"))
# int8 operations whose reference kernels return -1 for any input (ai-edge-litert 2.3.0). The runtime's default kernels are right.
WRONG_REFERENCE = ("sum",)
NOT_TAKEN = 77  # exit code of a command that does not support the model
SMALL_CASE = "relu/u8/8x8/c16"
LINE_BYTES = 64  # alignment of tensors
MOST_WORDS = 300  # characters of a command's error output in a message
LEAST_PATIENCE_SECONDS = 1  # for a pipe whose other ends should be closed
MOST_OUTPUT, MOST_TIMES = 64 << 20, 16  # limits of a command's output: bytes, plus a multiple of the model's outputs
MOST_KEPT, MOST_SAID = 1 << 16, 64 << 20  # bytes of a process's error output: kept (the last ones), and allowed


class Unusable(Exception):
    """The target itself does not work: no case can run."""


@dataclass(frozen=True)
class Loaded:
    run: Run
    taken: int | None  # number of operations that the target computes; None: unknown
    operations: int | None


@dataclass(frozen=True)
class Target:
    kind: str  # "delegate", "device", "onnx-ep", "command", "kernels"
    name: str
    options: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in self.options.items())
        return (Path(self.name).name if self.kind in ("delegate", "onnx-ep") else self.name) + (f" ({options})" if options else "")


def runtime() -> Any:
    """Returns the module of the first installed runtime in RUNTIMES, or None."""
    for module, _ in RUNTIMES:
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    return None


def runtime_name() -> str:
    used = runtime()
    for module, package in RUNTIMES:
        if used is not None and used.__name__ == module:
            return f"{package} {importlib.metadata.version(package)}"
    return "none"


class Reference:
    """TensorFlow Lite's reference kernels, or Skillet's CPU kernels if no runtime is installed."""

    def __init__(self) -> None:
        self._runtime = runtime()

    @property
    def name(self) -> str:
        return "reference kernels of " + runtime_name() if self._runtime else "CPU kernels of Skillet"

    def load(self, model: bytes, name: str) -> Run:
        if self._runtime is None:
            return opened_device(Target("device", "cpu"))(model).run
        is_wrong = name.split("/")[0] in WRONG_REFERENCE
        host = interpreter(self._runtime, model, "BUILTIN_WITHOUT_DEFAULT_DELEGATES" if is_wrong else "BUILTIN_REF")
        return lambda inputs: run_interpreter(host, inputs)


def interpreter(module: Any, model: bytes, resolver: str, delegate: Any = None) -> Any:
    host = module.Interpreter(model_content=model, experimental_op_resolver_type=getattr(module.OpResolverType, resolver),
                              experimental_delegates=[delegate] if delegate else None, num_threads=1)
    host.allocate_tensors()
    return host


def behind_outputs(host: Any) -> list[bytes]:
    """Returns the bytes between each output's end and the next multiple of 64, which TensorFlow Lite leaves unused."""
    out = []
    for detail in host.get_output_details():
        array = host.tensor(detail["index"])()
        end = array.ctypes.data + array.nbytes
        out.append(ctypes.string_at(end, -end % LINE_BYTES) if array.ctypes.data % LINE_BYTES == 0 else b"")
    return out


def run_guarded(host: Any, inputs: list[Any]) -> list[Any]:
    before = behind_outputs(host)
    out = run_interpreter(host, inputs)
    for at, (was, now) in enumerate(zip(before, behind_outputs(host))):
        if was != now:
            raise ValueError(f"it wrote behind the end of output {at}")
    return out


def run_interpreter(host: Any, inputs: list[Any]) -> list[Any]:
    for detail, value in zip(host.get_input_details(), inputs):
        host.set_tensor(detail["index"], value)
    host.reset_all_variables()  # each run is a first one
    host.invoke()
    for at, (detail, value) in enumerate(zip(host.get_input_details(), inputs)):
        if not np.array_equal(host.get_tensor(detail["index"]), value, equal_nan=value.dtype.kind == "f"):
            raise ValueError(f"input {at} was changed during the run")
    return [host.get_tensor(detail["index"]) for detail in host.get_output_details()]


def delegated(host: Any, plain: Any) -> tuple[int | None, int | None]:
    """Returns how many operations of the model the delegate took, and how many the model has."""
    if not hasattr(host, "_get_ops_details"):
        return None, None
    count, graph = len(plain._get_ops_details()), host._get_ops_details()
    makers = {int(one): at for at in graph[:count] for one in at["outputs"]}
    taken: set[int] = set()
    for node in graph[count:]:
        wanted, seen = [int(one) for one in node["outputs"]], {int(one) for one in node["inputs"]}
        while wanted:
            tensor = wanted.pop()
            if tensor not in seen and tensor in makers:
                taken.add(int(makers[tensor]["index"]))
                wanted += [int(one) for one in makers[tensor]["inputs"]]
            seen.add(tensor)
    return len(taken), count


def opened(target: Target) -> Callable[[bytes], Loaded]:
    """Returns a function that loads models on the target. Raises Unusable with the reason."""
    return {"delegate": opened_delegate, "onnx-ep": opened_provider, "kernels": opened_kernels, "device": opened_device, "command": opened_command}[target.kind](target)


def opened_delegate(target: Target) -> Callable[[bytes], Loaded]:
    module = needed_runtime()
    try:
        delegate = module.load_delegate(target.name, dict(target.options))
    except AttributeError as error:
        sys.unraisablehook = silent
        raise Unusable(f"{target.name}: is no TensorFlow Lite delegate: {str(error).strip()}") from error
    except (ValueError, OSError) as error:
        sys.unraisablehook = silent
        raise Unusable(f"{target.name}: the delegate cannot be loaded: {str(error).strip() or 'it gives no reason'}") from error

    def load(model: bytes) -> Loaded:
        host = interpreter(module, model, "BUILTIN_REF", delegate)
        taken, count = delegated(host, interpreter(module, model, "BUILTIN_REF"))
        # If the runtime computes other operations, their tensors may have used the bytes behind an output.
        is_alone = count is not None and taken == count and len(host._get_ops_details()) == count + 1
        return Loaded(lambda inputs: (run_guarded if is_alone else run_interpreter)(host, inputs), taken, count)
    return load


def silent(*_: object) -> None:
    """What the runtime's half made delegate says when it is deleted: the reason is known by then."""


def opened_kernels(target: Target) -> Callable[[bytes], Loaded]:
    """Opens kernels of the runtime. "xnnpack": with its default delegate; "optimized": its fast kernels alone."""
    module = needed_runtime()
    resolver = {"xnnpack": "AUTO", "optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}[target.name]

    def load(model: bytes) -> Loaded:
        host = interpreter(module, model, resolver)
        count = delegated(host, interpreter(module, model, "BUILTIN_REF")) if target.name == "xnnpack" else (None, None)
        return Loaded(lambda inputs: run_interpreter(host, inputs), *count)
    return load


def needed_runtime() -> Any:
    module = runtime()
    if module is None:
        raise Unusable("no TensorFlow Lite runtime for Python is installed: pip install ai-edge-litert (or tflite-runtime)")
    return module


def opened_device(target: Target) -> Callable[[bytes], Loaded]:
    import skillet
    from skillet.conformance._cases import build

    def load(model: bytes) -> Loaded:
        session = skillet.Session(model, target.name, **target.options)
        use = session.use()
        return Loaded(lambda inputs: session.run(*inputs), use.npu_ops, use.ops)
    try:
        if target.name != "cpu" and all(one.device != target.name for one in skillet.devices()):
            skillet.Device(target.name).close()
        skillet.Session(build(SMALL_CASE).graph.file(), "cpu", **target.options).close()  # checks the options
    except (skillet.Error, TypeError) as error:
        raise Unusable(f"{target.name}: {error}") from error
    return load


def opened_provider(target: Target) -> Callable[[bytes], Loaded]:
    """Opens an execution provider of ONNX Runtime: the path of a plug-in library, or the name of a built-in provider. Models are ONNX files."""
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError:
        raise Unusable("ONNX Runtime is not installed: pip install onnxruntime") from None
    devices = []
    if "/" in target.name:
        try:
            known = {one.ep_name for one in onnxruntime.get_ep_devices()}
            onnxruntime.register_execution_provider_library("tested", target.name)
        except Exception as error:  # the runtime does not document which exceptions it raises
            raise Unusable(f"{target.name}: the provider cannot be registered: {error}") from error
        devices = [one for one in onnxruntime.get_ep_devices() if one.ep_name not in known]
    elif target.name not in onnxruntime.get_available_providers():
        raise Unusable(f"{target.name}: is none of {', '.join(onnxruntime.get_available_providers())}; a library is named with its folder")
    if "/" in target.name and not devices:
        raise Unusable(f"{target.name}: the provider has no device")
    name = devices[0].ep_name if devices else target.name

    def load(model: bytes) -> Loaded:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 2  # level 2 lets a provider report why it takes nothing
        folder = tempfile.TemporaryDirectory(prefix="conformance-")
        options.enable_profiling, options.profile_file_prefix = True, str(Path(folder.name) / "run")
        if devices:
            options.add_provider_for_devices(devices[:1], dict(target.options))
        made = onnxruntime.InferenceSession(model, options, providers=None if devices else [(name, dict(target.options))], enable_fallback=0)
        is_told = False

        def run(inputs: list[Any]) -> list[Any]:
            nonlocal is_told
            fed = {one.name: np.ascontiguousarray(value.transpose(FIRST)) if value.ndim == 4 else value for one, value in zip(made.get_inputs(), inputs)}
            outputs = made.run(None, fed)
            if not is_told:  # the profile names the provider of each node
                is_told, events = True, json.loads(Path(made.end_profiling()).read_text(encoding="utf-8"))
                folder.cleanup()
                if all(event.get("args", {}).get("provider") != name for event in events):
                    raise Left
            return [one.transpose(BACK) if one.ndim == 4 else one for one in outputs]
        return Loaded(run, None, None)
    return load


def command_words(text: str) -> list[str]:
    """Splits the command line. Raises Unusable with the reason if it cannot be started."""
    try:
        words = shlex.split(text)
        first = [word.format(model="", inputs="", outputs="") for word in words][0]
    except (ValueError, KeyError, IndexError, AttributeError) as error:
        reason = "it is empty" if not text.strip() else f"{error}: in braces are model, inputs and outputs; others are written {{{{ and }}}}"
        raise Unusable(f"--command '{text}': {reason}") from None
    if "{" not in words[0] and shutil.which(first) is None:
        raise Unusable(f"--command: {first or 'an empty word'}: {'is no program that may be run' if Path(first).exists() else 'there is no such program'}")
    names = {name for word in words for _, name, _, _ in string.Formatter().parse(word)}
    if missing := [name for name in ("model", "inputs", "outputs") if name not in names]:
        raise Unusable(f"--command '{text}': {' and '.join(f'{{{one}}}' for one in missing)} {'is' if len(missing) == 1 else 'are'} not in it, so it cannot compute a model")
    return words


def opened_command(target: Target) -> Callable[[bytes], Loaded]:
    """Opens a command that works on files: the model, .npz inputs, and .npz outputs by the tensors' names or in order."""
    template = command_words(target.name)

    def load(model: bytes) -> Loaded:
        folder = tempfile.TemporaryDirectory(prefix="conformance-")
        plain = interpreter(needed_runtime(), model, "BUILTIN_REF")

        def run(inputs: list[Any]) -> list[Any]:
            places = {key: str(Path(folder.name) / file) for key, file in (("model", "model.tflite"), ("inputs", "in.npz"), ("outputs", "out.npz"))}
            given = write_given(places, model, {detail["name"]: value for detail, value in zip(plain.get_input_details(), inputs)})
            code, said = ended_command([word.format(**places) for word in template])
            if code == NOT_TAKEN:
                os.write(2, said)  # the command's reason
                raise Left
            if code < 0:
                raise Crashed(f"the command ended with signal {-code}" + (f": a file may have {MOST_FILE} bytes" if -code == signal.SIGXFSZ else ""))
            if code != 0:
                raise ValueError(f"the command ended with exit code {code}: {said.decode(errors='replace').strip()[-MOST_WORDS:]}")
            for key, content in given.items():
                if not is_file_with(Path(places[key]), content):
                    raise ValueError(f"the command changed the file {{{key}}}")
            return read_outputs(Path(places["outputs"]), plain.get_output_details())
        return Loaded(run, None, None)
    return load


def write_given(places: dict[str, str], model: bytes, inputs: dict[str, Any]) -> dict[str, bytes]:
    """Writes the files that the command reads. Raises FullDisk if there is no space, which is not the command's fault."""
    file = io.BytesIO()
    np.savez(file, **inputs)
    given = {"model": model, "inputs": file.getvalue()}
    Path(places["outputs"]).unlink(missing_ok=True)
    for key, content in given.items():
        try:
            Path(places[key]).write_bytes(content)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise FullDisk(str(error)) from error
            raise
    return given


def is_file_with(path: Path, content: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content


def read_outputs(path: Path, details: list[Any]) -> list[Any]:
    """Reads outputs by the tensors' names, or in order. The file is untrusted: its arrays may have any size and type."""
    try:
        with opened_file(path) as file, zipfile.ZipFile(file) as archive:
            total = sum(one.file_size for one in archive.infolist())
            wanted = sum(int(np.prod(one["shape"], dtype=np.int64)) * np.dtype(one["dtype"]).itemsize for one in details)
            if total > MOST_OUTPUT + MOST_TIMES * wanted:
                raise ValueError(f"the arrays in the file {{outputs}} have {total} bytes, the model's outputs {wanted}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                names = [one["name"] for one in details]
                made = [arrays[name] for name in (names if set(names) <= set(arrays.files) else arrays.files)]
    except FileNotFoundError:
        raise ValueError("the command ended with exit code 0, and wrote no file {outputs}") from None
    except zipfile.BadZipFile as error:
        raise ValueError(f"the file {{outputs}} is no .npz file: {error}") from error
    except OSError as error:
        raise ValueError(str(error).replace(str(path), "the file {outputs}")) from error
    return [one.reshape(detail["shape"]) if one.ndim == 1 and one.size == np.prod(detail["shape"]) else one for one, detail in zip(made, details)]


def ended_command(words: list[str]) -> tuple[int, bytes]:
    """Runs the command. Returns its exit code and the end of its error output.

    Kills processes that it leaves in the background instead of waiting for them."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said, total = bytearray(), 0

    def hear() -> None:
        nonlocal total
        while block := os.read(process.stderr.fileno(), 1 << 16):  # type: ignore[union-attr]
            said.extend(block)
            del said[:-MOST_KEPT]
            total += len(block)
            if total > MOST_SAID:
                process.kill()
    thread = threading.Thread(target=hear, daemon=True)
    thread.start()
    code = process.wait()
    end_children()  # only now all ends of the pipe are closed
    thread.join(LEAST_PATIENCE_SECONDS)
    if not thread.is_alive():
        process.stderr.close()  # type: ignore[union-attr]
    if total > MOST_SAID:
        raise Crashed(f"it printed more than {MOST_SAID >> 20} MB")
    return code, bytes(said)


class FullDisk(Exception):
    """There is no space for the files that a target reads."""


class Crashed(Exception):
    """A process of the target ended by a signal."""


class Left(Exception):
    """The target reports that it does not take the model."""
