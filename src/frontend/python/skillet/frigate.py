"""A server for Frigate's `zmq` detector: `skillet serve --models FOLDER`. Needs NumPy.

Frames arrive as messages of two parts, JSON and pixels; answers are 20 rows of class, score, y1, x1, y2, x2 (0 to 1). The server decodes
these heads: SSD with post-processing, YOLOv5, YOLOv8 and v9, YOLOX, YOLO-NAS, RF-DETR.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import os
import queue
import re
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as RunsTooLong
from pathlib import Path
from typing import TYPE_CHECKING

import skillet
from skillet._heads import CELLS, PAIRS, ROWS, TASKS, Found, answer_rows, box_of_pair, find_pairs, find_ssd, find_yolo, head_of, reach, real, ssd_outputs, task_of, wanted
from skillet._model_file import FRAME_BYTES_MAX, check_sizes, read_model
from skillet._verb import verb_parser
from skillet._zmtp import END_SIGNALS, ENDPOINT, Client, Server, is_endpoint, is_local, listen

if TYPE_CHECKING:
    from typing import Any

    from skillet._memory import Array

FINE, FAILED, CANNOT_BEGIN = 0, 1, 2
NOTHING = bytes(ROWS * 6 * 4)
MODEL_BYTES_MAX = 64 << 20  # of a model that a client may send
ANSWER_S = 0.18  # time for an answer; a client waits 200 ms
FILES_MAX = 100  # in the folder; with more files, no models are saved
CALM_S = 10.0  # time without a late answer after which answers count as in time again
PATIENCE_S = 0.1  # for an NPU, see patience(); then the CPU answers


class CannotBind(Exception):
    """The server cannot listen at the endpoint."""


class BadRequest(Exception):
    """A client's request cannot be answered. The client gets the text."""


def patience(usual_s: float, cpu_s: float) -> float:
    """Returns how long to wait for an NPU that usually takes `usual_s`, before the CPU answers in `cpu_s`.

    It is less than PATIENCE_S if only then the CPU answers in time."""
    left_s = ANSWER_S - cpu_s
    return left_s if 3 * usual_s <= left_s < PATIENCE_S else max(3 * usual_s, PATIENCE_S)


def why_not_loaded(name: str, error: Exception) -> str:
    is_onnx, said = "perhaps ONNX" in str(error), re.sub(f"^(model 'model'|(.*/)?{re.escape(name)}): ", "", str(error))  # without the folder
    return f"{name}: " + ("an ONNX model, perhaps; the server takes TensorFlow Lite files, so export the network as one (docs/yolo.md)" if is_onnx else said)


class Detector:
    """A model prepared to run on a device, with `workers` sessions."""

    def __init__(self, name: str, model: bytes, device: str, options: dict[str, str], task: str, threshold: float, workers: int) -> None:
        self._sessions: queue.SimpleQueue[skillet.Session] = queue.SimpleQueue()  # idle sessions
        check_sizes(name, model)
        first = skillet.Session(model, device, **options)
        if len(first.inputs) != 1 or len(first.inputs[0].shape) != 4:
            raise skillet.Unsupported(f"{name}: a detector has one input, an image")
        self.input, self._outputs, self._name = first.inputs[0], first.outputs, name
        self._check_input()
        for one in [first, *(skillet.Session(model, device, **options) for _ in range(workers - 1))]:
            self._sessions.put(one)
        makers, size = [first.maker(i) for i in range(len(first.outputs))], (self.input.shape[1], self.input.shape[2])
        self._task, self._threshold = task_of(first.outputs, makers, size) if task == "auto" else task, threshold
        self._ssd = ssd_outputs(first.outputs, makers)
        if shape := wanted(self._task, first.outputs, makers, size):
            shapes = [list(one.shape) for one in first.outputs]
            raise skillet.Unsupported(f"{name}: outputs of shapes {shapes} are not those of task {self._task} ({shape})")
        self.use = first.use()
        self._cpu = skillet.Session(model, "cpu") if self.use.npu_ops else None
        self._patience_s: float | None = None
        self._is_late, self._late_s = False, 0.0  # time of the last late answer
        self._warm_up()

    def _check_input(self) -> None:
        sizes = "x".join(map(str, self.input.shape))
        if self.input.shape[0] != 1:
            raise skillet.Unsupported(f"{self._name}: the input of {sizes} is {self.input.shape[0]} images, and a client sends one")
        if self._pixels() > FRAME_BYTES_MAX:  # may exceed the limit in files of other formats than TensorFlow Lite's
            raise skillet.Unsupported(f"{self._name}: an input of {sizes} is more than a frame may have, {FRAME_BYTES_MAX >> 20} MiB")
        if self.input.type not in ("uint8", "int8", "float32", "float16"):
            raise skillet.Unsupported(f"{self._name}: an input of {self.input.type or 'another type'}; a frame has bytes or float32")

    def _warm_up(self) -> None:
        """Runs the model twice, since the first run takes longer. The second determines how long to wait for the NPU."""
        import numpy as np

        frame = np.zeros(self.input.shape, self.input.dtype)
        usual_s, cpu_s = 0.0, 0.0
        for _ in range(2):
            begin = time.monotonic()
            self.rows({"shape": list(self.input.shape), "dtype": "uint8", "model_type": self._usual_type()}, bytes(self._pixels()))
            usual_s = time.monotonic() - begin
            if self._cpu:
                begin = time.monotonic()
                self._cpu.run(frame)
                cpu_s = time.monotonic() - begin
        self._patience_s = patience(usual_s, cpu_s)
        if usual_s > ANSWER_S:
            say(f"{self._name}: a frame takes {1000 * usual_s:.0f} ms, and Frigate waits 200 ms; give its detector a longer request_timeout_ms, or a smaller model")
        if self._cpu and self._patience_s + cpu_s > ANSWER_S:
            say(f"{self._name}: should the NPU hang, the CPU answers after {1000 * (self._patience_s + cpu_s):.0f} ms; Frigate waits 200 ms")

    def _usual_type(self) -> str:
        """Returns a model_type with which the model can be decoded."""
        if self._task == PAIRS:
            return next((one for one in ("yolonas", "rfdetr") if box_of_pair(self._outputs, one) is not None), "yolonas")
        return "yolo-generic" if self._task == CELLS else ""

    def _pixels(self) -> int:
        height, width, channels = (int(size) for size in self.input.shape[1:])
        return height * width * channels

    def rows(self, header: dict[str, Any], pixels: bytes) -> bytes:
        """Returns the rows for one frame. Raises BadRequest if the frame does not fit the model."""
        import numpy as np

        shape, dtype = header.get("shape"), header.get("dtype")
        if dtype not in ("uint8", "float32"):
            raise BadRequest(f"dtype {dtype!r}: uint8 or float32")
        if not isinstance(shape, list) or tuple(shape) != self.input.shape:
            raise BadRequest(f"shape {shape!r}: the model takes {list(self.input.shape)} (width, height, input_tensor: nhwc)")
        if len(pixels) != self._pixels() * np.dtype(dtype).itemsize:
            raise BadRequest(f"{len(pixels)} bytes for shape {shape} of {dtype}")
        task = head_of(self._task, header.get("model_type"))
        frame = self._stored(np.frombuffer(pixels, dtype).reshape(self.input.shape))
        outputs = [real(info, one) for info, one in zip(self._outputs, self._run(frame))]
        try:
            return answer_rows(self._found(outputs, task), self._threshold)
        except Exception as problem:  # the head may not support the outputs' shapes
            shapes = [list(one.shape) for one in outputs]
            raise skillet.Unsupported(f"{self._name}: outputs of shapes {shapes} are not those of task {task} ({type(problem).__name__}: {problem})") from problem

    def _run(self, frame: Array) -> list[Array]:
        """Runs the model on the NPU, or on the CPU if the NPU takes too long, for example because it hangs. A client waits 200 ms."""
        if self._cpu is None:
            return self._run_session(self._sessions.get(), frame)
        try:
            session = self._sessions.get_nowait()
        except queue.Empty:  # there are as many sessions as workers: the others hang
            return self._run_on_cpu(frame)
        run: Future[list[Array]] = Future()

        def work() -> None:
            try:
                run.set_result(self._run_session(session, frame))
            except Exception as problem:
                run.set_exception(problem)

        threading.Thread(target=work, daemon=True).start()
        try:
            outputs = run.result(self._patience_s)
        except RunsTooLong:
            return self._run_on_cpu(frame)
        self._note(is_late=False)
        return outputs

    def _run_session(self, session: skillet.Session, frame: Array) -> list[Array]:
        try:
            return session.run(frame)
        finally:
            self._sessions.put(session)

    def _run_on_cpu(self, frame: Array) -> list[Array]:
        self._note(is_late=True)
        assert self._cpu is not None
        return self._cpu.run(frame)

    def _note(self, is_late: bool) -> None:
        """Reports when answers become late or in time.
        Single answers in time between late ones do not count: a hanging NPU is reset again and again."""
        now = time.monotonic()
        if is_late:
            self._late_s = now
        if is_late != self._is_late and (is_late or now - self._late_s > CALM_S):
            self._is_late = is_late
            say(f"{self._name}: " + (f"the NPU takes more than {1000 * (self._patience_s or 0):.0f} ms, so the CPU answers" if is_late else "answers come in time again"))

    def _found(self, outputs: list[Array], task: str) -> Found:
        size = (self.input.shape[1], self.input.shape[2])
        if task == "ssd":
            assert self._ssd is not None
            return find_ssd(outputs, self._ssd)
        if task in ("yolonas", "rfdetr"):
            boxes = box_of_pair(self._outputs, task)
            if boxes is None:
                raise ValueError("boxes and scores of 4 classes have one shape; export the network with outputs named boxes and scores")
            return find_pairs(outputs, boxes, task, size, self._threshold)
        return find_yolo(outputs[0], task, size, self._threshold)

    def _stored(self, frame: Array) -> Array:
        """Converts pixels to the model's input: bytes stay, are shifted to signed ones, or become numbers up to 1."""
        import numpy as np

        if frame.dtype == np.float32:  # real numbers in the model's range
            least, largest = float(frame.min()), float(frame.max())
            if not (np.isfinite(least) and np.isfinite(largest)):
                raise BadRequest("pixels that are no finite numbers")
            if self.input.dtype.kind == "f":
                return frame.astype(self.input.dtype)
            low, high = reach(self.input)
            beyond = (high - low) / 2  # values less far out are clamped: a measured range is a little narrow
            if least < low - beyond or largest > high + beyond:
                raise BadRequest(f"pixels from {least:g} to {largest:g}: the model takes {low:g} to {high:g} (input_dtype: int, or float)")
            return self.input.quantize(frame)
        if frame.dtype == self.input.dtype:
            return frame
        if self.input.type == "int8":
            signed: Array = (frame ^ 0x80).view(np.int8)
            return signed
        parts: Array = (frame / np.float32(255)).astype(self.input.dtype)
        return parts


class Models:
    """The models in a folder. Each is loaded when a client requests it."""

    def __init__(self, folder: Path, args: argparse.Namespace) -> None:
        self._folder, self._args = folder, args
        self._lock = threading.Lock()
        self._loading: dict[str, threading.Lock] = {}  # by name; clients of other models are answered meanwhile
        self._ready: dict[str, Detector] = {}
        self._why_not: dict[str, str] = {}
        self._tried: dict[str, tuple[int, int, int]] = {}  # by name: inode, time and size of the file that was tried last
        self._saving = threading.Lock()

    def path(self, name: str) -> Path:
        """Returns the path of a file in the folder, or of a link to one in it. Raises BadRequest for other names."""
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(os.fsencode(name)) < 200 or name.startswith(".") or "/" in name:
            raise BadRequest(f"model name {name!r}: a file name without folders")
        path = self._folder / name
        if path.is_symlink() and not os.path.exists(path):
            raise BadRequest(f"model name {name!r}: a link to nothing, or to itself")
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise BadRequest(f"model name {name!r}: a link out of the folder")
        return path

    def request(self, name: str) -> dict[str, Any]:
        path = self.path(name)
        out: dict[str, Any] = {"model_available": path.is_file(), "model_loaded": path.is_file() and self.load(name) is not None}
        why = "" if out["model_loaded"] else self.why_not(name)
        return {**out, "error": why} if why else out

    def why_not(self, name: str | None) -> str:
        """Returns why the file could not be loaded at the last attempt; empty: it was loaded, or not tried."""
        return self._why_not.get(name or "", "")

    def load(self, name: str) -> Detector | None:
        path = self.path(name)
        with self._lock:
            loading = self._loading.setdefault(name, threading.Lock())
        with loading:
            about = path.stat() if path.is_file() else None
            file = (about.st_ino, about.st_mtime_ns, about.st_size) if about else (0, 0, 0)
            if self._tried.get(name) != file:
                self._tried[name] = file
                self._why_not.pop(name, None)
                made = self._load(path)
                if made is not None:  # else the earlier model stays: a file that is being replaced may be incomplete
                    self._ready[name] = made
            return self._ready.get(name)

    def loaded(self, name: str | None) -> Detector | None:
        """Returns the loaded model of that name, or the only one if there is no name. Does not wait."""
        loaded = dict(self._ready)
        return loaded.get(name) if name else next(iter(loaded.values())) if len(loaded) == 1 else None

    def _load(self, path: Path) -> Detector | None:
        args = self._args
        try:
            made = Detector(path.name, read_model(path), args.device, dict(args.option), args.task, args.threshold, args.workers)
        except Exception as error:  # any reason is reported at each request for the model
            self._why_not[path.name] = why_not_loaded(path.name, error)
            say(self._why_not[path.name])
            return None
        say(f"{path.name} on {args.device}: {made.use.npu_ops} of {made.use.ops} operations on the NPU")
        return made

    def save(self, name: str, data: bytes) -> dict[str, Any]:
        """Saves a model that a client sends, if that is allowed and the model can be read."""
        path = self.path(name)
        if not self._args.accept_models:
            return {"model_saved": False, "model_loaded": False, "error": "models are not taken (--accept-models)"}
        with self._saving:  # one client at a time counts the files and adds one
            why = self._save(path, data)
        if why:
            return {"model_saved": False, "model_loaded": False, "error": why}
        is_loaded = self.load(name) is not None
        return {"model_saved": True, "model_loaded": is_loaded, **({} if is_loaded else {"error": self.why_not(name)})}

    def _save(self, path: Path, data: bytes) -> str:
        """Writes the file. Returns why not; empty: it is written."""
        if os.path.lexists(path):
            return f"{path.name} is there already"
        if sum(1 for _ in self._folder.iterdir()) >= FILES_MAX:
            return f"the folder has {FILES_MAX} files; no more are taken"
        try:
            check_sizes(path.name, data)
            skillet.Session(data, "cpu").close()
        except skillet.Error as error:
            return why_not_loaded(path.name, error)
        try:
            with tempfile.NamedTemporaryFile(prefix=".", dir=self._folder) as unfinished:
                os.fchmod(unfinished.fileno(), 0o644)
                unfinished.write(data)
                unfinished.flush()
                os.link(unfinished.name, path)  # link() never replaces a file, also not that of another server
        except FileExistsError:
            return f"{path.name} is there already"
        except OSError as error:
            return str(error)
        return ""


class Protocol:
    """Handles the clients' messages. Every request gets an answer, since the client waits for it."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self._said: set[str] = set()

    def answer(self, client: Client, parts: list[bytes]) -> list[bytes]:
        try:
            header = self._header(parts)
            if "shape" in header:
                return self._frame(client, header, parts)
            return [json.dumps(self._about_models(client, header, parts)).encode()]
        except BadRequest as problem:
            self._say_once(str(problem))
            return [json.dumps({"error": str(problem)}).encode()]

    def answer_always(self, client: Client, parts: list[bytes]) -> list[bytes]:
        try:
            return self.answer(client, parts)
        except Exception as problem:  # a client waits for each answer
            say(f"{type(problem).__name__}: {problem}")
            return [json.dumps({"error": "internal"}).encode()]

    def _header(self, parts: list[bytes]) -> dict[str, Any]:
        try:
            header = json.loads(parts[0].decode()) if parts else None
        except (ValueError, RecursionError):
            header = None
        if not isinstance(header, dict):
            raise BadRequest("the first part is not a JSON object")
        return header

    def _about_models(self, client: Client, header: dict[str, Any], parts: list[bytes]) -> dict[str, Any]:
        name = header.get("model_name")
        if not isinstance(name, str):
            raise BadRequest("neither a frame (shape) nor a model's name (model_name)")
        if header.get("model_data"):
            if len(parts) != 2:
                raise BadRequest("model_data without the file")
            out = self._models.save(name, parts[1])
        elif header.get("model_request"):
            out = dict(self._models.request(name))
        else:
            raise BadRequest("neither model_request nor model_data")
        if out["model_loaded"] or self._models.why_not(name):
            client.model_name = name
        return out

    def _frame(self, client: Client, header: dict[str, Any], parts: list[bytes]) -> list[bytes]:
        """Answers a frame. Without a result, the answer has no detections: a client gives up on an answer that comes late."""
        name = client.model_name
        detector = self._models.loaded(name)
        rows = NOTHING
        about: dict[str, Any] = {"shape": [ROWS, 6], "dtype": "float32"}
        try:
            if detector is None:
                raise BadRequest(self._models.why_not(name) or "a frame before a model was asked for")
            if len(parts) != 2:
                raise BadRequest("a frame of one part")
            rows = detector.rows(header, parts[1])
        except (BadRequest, skillet.Error, ValueError) as problem:
            about["error"] = str(problem)
            self._say_once(f"a frame has no detections: {problem}")
        return [json.dumps(about).encode(), rows]

    def _say_once(self, text: str) -> None:
        if text not in self._said and len(self._said) < 100:
            self._said.add(text)
            say(text)


def say(text: str) -> None:
    print(f"skillet serve: {text.encode('unicode_escape', 'replace').decode()}", file=sys.stderr, flush=True)


def serve(endpoint: str, protocol: Protocol, workers: int, signals: list[int], message_bytes_max: int) -> None:
    """Answers requests until a signal ends it. Handles as many frames at once as there are workers."""
    try:
        listener, socket_file = listen(endpoint)
    except (OSError, ValueError, OverflowError) as problem:
        raise CannotBind(str(problem)) from problem
    server = Server(protocol.answer_always, workers, message_bytes_max)
    asyncio.run(server.run(listener, signals, lambda: say(f"waits at {endpoint}")))
    if socket_file:
        with contextlib.suppress(OSError):
            os.unlink(socket_file)


def option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{text}': NAME=VALUE")
    return name, value


def why_unusable(device: str, options: dict[str, str]) -> str:
    """Returns why no model could be loaded with this device and these options; empty: nothing prevents it."""
    try:
        skillet.Session(b"", device, **options).close()
    except skillet.Malformed:  # the empty model; device and options are checked before it
        return ""
    except (skillet.Error, OSError, TypeError) as problem:
        return str(problem)
    return ""


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = verb_parser("serve", description="Serves Frigate's zmq detector from an NPU.",
                         epilog="Exit codes: 0 it was told to end; 1 it failed while it served; 2 it could not begin: device, option, folder or endpoint.")
    parser.add_argument("--models", type=Path, required=True, help="folder of the models that clients may ask for")
    parser.add_argument("--zmq", default="ipc:///tmp/cache/zmq_detector", metavar="ENDPOINT", help="where clients reach it (%(default)s)")
    parser.add_argument("--listen", action="store_true", help="allow an endpoint that other machines reach; there is no authentication")
    parser.add_argument("--device", default=os.environ.get("SKILLET_DEVICE") or "auto", help="as of the command: auto, npu, sim:a311d, cpu (%(default)s)")
    parser.add_argument("--option", action="append", type=option, default=[], metavar="NAME=VALUE", help="option of the session: cores=3")
    parser.add_argument("--task", choices=TASKS, default="auto", help="which head the models have; default: by their outputs")
    parser.add_argument("--threshold", type=float, default=0.4, help="scores below it are left out (%(default)s, as Frigate's)")
    parser.add_argument("--workers", type=int, choices=range(1, 17), default=1, metavar="N", help="frames at once, each with a session of its own")
    parser.add_argument("--accept-models", action="store_true", help="save models that clients send to the folder")
    args = parser.parse_args(arguments)
    if not args.models.is_dir():
        parser.error(f"--models {args.models}: no such folder")
    if not 0 <= args.threshold <= 1:
        parser.error(f"--threshold {args.threshold}: 0 to 1")
    if not is_endpoint(args.zmq):
        parser.error(f"--zmq {args.zmq}: {ENDPOINT}")
    if not is_local(args.zmq) and not args.listen:
        parser.error(f"{args.zmq} is reached from other machines, without authentication; add --listen if that is meant")
    if args.listen:
        say("there is no authentication: whoever reaches the endpoint may run models")
    return args


def main(arguments: list[str] | None = None) -> int:
    args = parsed(arguments)
    signals: list[int] = []
    for one in END_SIGNALS:
        signal.signal(one, lambda number, _: signals.append(number))
    try:
        importlib.import_module("numpy")  # without it no request could be answered
        why = why_unusable(args.device, dict(args.option))
        if why:
            say(why)
            return CANNOT_BEGIN
        serve(args.zmq, Protocol(Models(args.models, args)), args.workers, signals, MODEL_BYTES_MAX if args.accept_models else FRAME_BYTES_MAX)
    except ImportError as problem:
        say(f"{problem}: pip install numpy, or apt install python3-numpy")
        return CANNOT_BEGIN
    except CannotBind as problem:
        say(f"{args.zmq}: {problem}")
        return CANNOT_BEGIN
    except Exception as problem:
        say(f"{args.zmq}: {problem}")
        return FAILED
    return FINE


if __name__ == "__main__":
    sys.exit(main())
