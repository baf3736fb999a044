#!/usr/bin/env python3
"""Tests `import skillet` against a build: results, zero copy, lifetimes, threads, errors, types.

usage: python_test.py C_LIBRARY COMMAND SOURCE_DIR VENV     (VENV: made at the first run, with NumPy, mypy and kcidb-io)

Without a network, tests that need NumPy or mypy are left out, with a line.
"""
import contextlib
import functools
import gc
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import xml.etree.ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent


if __name__ == "__main__" and "--inside" not in sys.argv:
    library, command, source, venv = sys.argv[1:5]
    sys.path.insert(0, f"{source}/tests/integration")
    from environment import start_inside
    start_inside(__file__, library, source, venv, command)

SOURCE = Path(sys.argv.pop())
sys.argv.remove("--inside")
sys.path.append(str(SOURCE / "tests/integration"))
MODEL = SOURCE / "tests/captures/a311d_conv1x1_relu6_u8/model.tflite"
INPUT, OUTPUT = MODEL.with_name("input_0.bin"), MODEL.with_name("output_0.bin")
DIGITS = SOURCE / "models/digits.tflite"
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
HAS_MYPY = importlib.util.find_spec("mypy") is not None

import long_cases  # noqa: E402
import skillet  # noqa: E402
from skillet import _result_files, _results  # noqa: E402

if HAS_NUMPY:
    import numpy as np

needs_numpy = unittest.skipUnless(HAS_NUMPY, "no NumPy here")


@functools.cache
def recorded_input():
    return np.fromfile(INPUT, np.uint8).reshape(1, 16, 16, 32)


@functools.cache
def recorded_output():
    return np.fromfile(OUTPUT, np.uint8)


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


class Import(unittest.TestCase):
    def test_needs_no_numpy_and_loads_nothing(self):
        code = ("import sys, skillet; assert 'numpy' not in sys.modules; "
                "from pathlib import Path; assert 'skillet_c' not in Path('/proc/self/maps').read_text()")
        subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code], check=True)

    def test_says_where_it_looked(self):
        code = "import skillet; skillet.devices()"
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "SKILLET_C_LIBRARY": "/nowhere.so"},
                              capture_output=True, text=True, check=False)
        self.assertIn("ImportError: /nowhere.so: cannot open", done.stderr)
        self.assertIn("SKILLET_C_LIBRARY", done.stderr)

    def test_runs_without_numpy(self):
        code = f"""
import sys
sys.modules["numpy"] = None
import skillet
from pathlib import Path
with skillet.Session({str(MODEL)!r}, "cpu") as session:
    out = bytearray(session.outputs[0].nbytes)
    session.run_on([Path({str(INPUT)!r}).read_bytes()], [out])
    assert out == Path({str(OUTPUT)!r}).read_bytes()
    try:
        session.run([1])
    except ImportError:
        print("needs it")
"""
        done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.returncode), ("needs it\n", 0), done.stderr)


class Facts(unittest.TestCase):
    def test_version(self):
        done = subprocess.run(["skillet", "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, f"skillet {skillet.version()}\n")

    def test_devices_are_those_of_the_command(self):
        done = subprocess.run(["skillet", "devices", "--json"], capture_output=True, text=True, check=True)
        said = [(row["device"], row["title"], row["kernel_driver"], row["note"], row["usable"]) for row in json.loads(done.stdout)["devices"]]
        ours = skillet.devices()
        self.assertEqual([(d.device, d.title, d.kernel_driver, d.note, d.usable) for d in ours], said)
        self.assertEqual([d.device for d in ours if d.simulated], [row[0] for row in said if row[0].startswith("sim:")])

    def test_every_documented_option_is_taken(self):
        keys = [line.split()[0] for line in skillet.options_help().splitlines()]
        self.assertIn("cache_dir", keys)
        values = {"tuning": "tuned", "switches": "", "per_channel": "approximate", "cores": 2, "tuning_file": "",
                  "partition": "predicted", "unproven": "take"}
        for key in keys:
            if key not in ("cache_dir", "trace"):  # names of files
                skillet.Session(MODEL, "sim:a311d", **{key: values.get(key, 1)}).close()

    def test_decode_is_that_of_the_command(self):
        capture = MODEL.parent
        done = subprocess.run(["skillet", "decode", str(capture), "--json"], capture_output=True, text=True, check=True)
        self.assertEqual(skillet.decode(capture), json.loads(done.stdout))
        self.assertEqual(skillet.decode(DIGITS, chip="a311d"), skillet.decode(DIGITS, "--chip", "a311d"))
        with self.assertRaisesRegex(skillet.Error, "^(?!skillet: ).*name the chip"):
            skillet.decode(DIGITS)
        with self.assertRaisesRegex(skillet.IoFailed, "/nonexistent: No such file"):
            skillet.decode("/nonexistent")
        with self.assertRaises(skillet.WrongType):
            skillet.decode(None)
        code = f"import skillet\ntry:\n    skillet.decode({str(capture)!r})\nexcept skillet.IoFailed as error:\n    print(error)"
        without = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PATH": "/nowhere"})
        self.assertIn("nor in PATH", without.stdout)
        with self.assertRaisesRegex(skillet.Error, "--bogus"):
            skillet.decode(capture, "--bogus")


@needs_numpy
class Delegate(unittest.TestCase):
    """Uses fake runtimes: which one is called, and with what."""

    def load(self, *names, **options):
        with tempfile.TemporaryDirectory() as name:
            for runtime in names:
                package, _, module = runtime.partition(".")
                (Path(name) / package).mkdir()
                (Path(name) / package / "__init__.py").write_text("")
                (Path(name) / package / f"{module}.py").write_text(f"def load_delegate(path, options): return {runtime!r}, path, options")
            code = ("from pathlib import PosixPath, WindowsPath\nimport sys; sys.path.insert(0, sys.argv[1])\nimport skillet._delegate as d\nd.delegate_path = lambda: '/a/libskillet.so'\n"
                    "if len(sys.argv) > 3: __import__(sys.argv[3])\ntry: print(d.load_delegate(**eval(sys.argv[2])))\n"
                    "except ImportError as error: print('refused:', error)")
            before = options.pop("_before", None)
            done = subprocess.run([sys.executable, "-S", "-c", code, name, repr(options), *([before] if before else [])], capture_output=True,
                                  text=True, check=True)
        return done.stdout.strip()

    def test_the_runtime_that_is_there(self):
        self.assertEqual(self.load("tflite_runtime.interpreter", device="npu", cores=3, strict=True, cache_dir=Path("/c")),
                         str(("tflite_runtime.interpreter", "/a/libskillet.so",
                              {"device": "npu", "cores": "3", "strict": "1", "cache_dir": "/c"})))

    def test_the_runtime_that_the_program_uses(self):
        both = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter")
        self.assertIn("ai_edge_litert", self.load(*both))
        self.assertIn("tflite_runtime", self.load(*both, _before="tflite_runtime.interpreter"))

    def test_no_runtime(self):
        self.assertIn("refused: none of ai_edge_litert.interpreter", self.load())


class Sessions(unittest.TestCase):
    def test_run_gives_the_recorded_output(self):
        with skillet.Session(MODEL, "cpu") as session:
            (info,) = session.inputs
            self.assertEqual((info.name, info.type, info.shape, info.nbytes), ("in", "uint8", (1, 16, 16, 32), 8192))
            self.assertEqual((info.scale, info.zero_point), (0.0078125, 128))
            for given in ((recorded_input(),), ({"in": recorded_input()},), (np.asfortranarray(recorded_input()),)):
                (output,) = session.run(*given)
                self.assertEqual(output.shape, session.outputs[0].shape)
                self.assertTrue(np.array_equal(output.ravel(), recorded_output()))

    def test_models_from_bytes(self):
        data = MODEL.read_bytes()
        for kind in (bytes, bytearray, memoryview):
            with skillet.Session(kind(data), skillet.Device("cpu")) as session:
                self.assertTrue(np.array_equal(session.run(recorded_input())[0].ravel(), recorded_output()))

    @needs_numpy
    def test_compiled_models(self):
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "digits.skillet")
            subprocess.run(["skillet", "compile", DIGITS, "--device", "a311d", "-o", made], check=True, capture_output=True)
            picture = np.random.default_rng(1).integers(0, 256, (1, 28, 28, 1), np.uint8)
            with skillet.Session(DIGITS, "sim:a311d") as session:
                want = session.run(picture)[0]
            for one in (made, made.read_bytes()):
                with skillet.Session(one, "sim:a311d") as session:
                    self.assertEqual(session.run(picture)[0].tolist(), want.tolist())
            damaged = bytearray(made.read_bytes())
            damaged[-1] ^= 1
            with self.assertRaisesRegex(skillet.Malformed, "checksum"):
                skillet.Session(bytes(damaged), "sim:a311d")

    def test_a_simulated_chip_is_within_one(self):
        with skillet.Session(str(MODEL), "sim:a311d", fallback=False, partition="all") as session:
            (output,) = session.run(recorded_input())
            self.assertLessEqual(np.abs(output.ravel().astype(int) - recorded_output()).max(), 1)
            self.assertTrue(session.explain().startswith("1 of 1 operation on the NPU"))

    def test_operations(self):
        with skillet.Session(DIGITS, "sim:a311d") as session:
            before = session.operations()
            self.assertEqual({op.part_ms for op in before}, {None})
            session.run(session.inputs[0].empty())
            after = session.operations()
            self.assertEqual([op.kind for op in after], [op.kind for op in before])
            self.assertIn("CONV_2D", [op.kind for op in after if op.on_npu])
            for op in after:
                self.assertEqual(op.ms is None, op.on_npu, op)
                self.assertEqual(bool(op.why), not op.on_npu or op.unproven, op)
                self.assertGreater(op.part_ms, 0)

    def test_real_numbers(self):
        with skillet.Session(MODEL, "cpu") as session:
            info = session.inputs[0]
            real = info.dequantize(recorded_input())
            self.assertEqual(real.dtype, np.float32)
            self.assertTrue(np.array_equal(info.quantize(real), recorded_input()))
            self.assertEqual(info.quantize([-1e9, 1e9, float("inf"), -float("inf")]).tolist(), [0, 255, 255, 0])
            halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])  # away from zero, as TensorFlow Lite's QUANTIZE
            self.assertEqual(skillet.TensorInfo("t", "int8", (6,), 6, 0.5, 3).quantize(halves / 2).tolist(), [0, 1, 2, 4, 5, 6])
            with self.assertRaisesRegex(skillet.InvalidArgument, "'in' cannot hold NaN"):
                info.quantize([0.0, float("nan")])
            with self.assertRaisesRegex(skillet.InvalidArgument, "'in' stores uint8, not int8"):
                info.dequantize(recorded_input().astype(np.int8))
            with self.assertRaisesRegex(skillet.InvalidArgument, "'in' takes uint8, not float32; quantize"):
                session.run(real)

    def test_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            skillet.Session(MODEL, "sim:a311d", cache_dir=Path(folder)).close()
            self.assertEqual(len(os.listdir(folder)), 1)

    def test_background(self):
        session = skillet.Session(MODEL, "sim:a311d")
        expected = session.run(recorded_input())[0]
        output = session.outputs[0].empty()
        session.start([recorded_input().copy()], [output])
        gc.collect()
        for call in (lambda: session.run(recorded_input()), lambda: session.start([recorded_input()], [output]),
                     session.operations):
            self.assertRaisesRegex(skillet.InvalidArgument, "a run is in progress", call)
        session.wait()
        self.assertTrue(np.array_equal(output, expected))
        self.assertRaisesRegex(skillet.InvalidArgument, "no run has been started", session.wait)
        session.start([recorded_input()], [output])
        session.close()  # waits
        session = skillet.Session(MODEL, "sim:a311d")
        session.start([recorded_input()], [output])
        del session  # waits too, and only then releases the arrays
        gc.collect()

    def test_threads_take_turns(self):
        session = skillet.Session(MODEL, "sim:a311d")
        expected = session.run(recorded_input())[0]
        wrong = []

        def work():
            for _ in range(5):
                if not np.array_equal(session.run(recorded_input())[0], expected):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        closers = [threading.Thread(target=session.close) for _ in range(4)]
        for thread in closers:
            thread.start()
        for thread in closers:
            thread.join()

    def test_closing_while_another_thread_runs(self):
        for _ in range(5):
            session, outcomes = skillet.Session(MODEL, "sim:a311d"), []

            def work():
                try:
                    while True:
                        session.run(recorded_input())
                except skillet.Closed:
                    outcomes.append("closed")

            thread = threading.Thread(target=work)
            thread.start()
            session.close()
            thread.join()
            self.assertEqual(outcomes, ["closed"])

    def test_nothing_is_left_open(self):
        def once():
            with skillet.Device("sim:a311d") as device, device.alloc(4096) as buffer:
                session = skillet.Session(MODEL, device)
                session.run(recorded_input())
                buffer.array()[0] = 1

        once()
        gc.collect()
        before = open_descriptors()
        for _ in range(20):
            once()
        gc.collect()
        self.assertEqual(open_descriptors(), before)


class BadUse(unittest.TestCase):
    def fails(self, kind, text, function):
        with self.assertRaises(kind) as caught:
            function()
        self.assertIn(text, str(caught.exception))

    def test_models_devices_options(self):
        rows = [
            (skillet.InvalidArgument, "toaster", lambda: skillet.Device("toaster")),
            (ValueError, "toaster", lambda: skillet.Session(MODEL, "toaster")),
            (skillet.InvalidArgument, "did you mean 'a311d'", lambda: skillet.Device("sim:a311")),
            (skillet.IoFailed, "/nonexistent.tflite", lambda: skillet.Session("/nonexistent.tflite", "cpu")),
            (OSError, "/nonexistent.tflite", lambda: skillet.Session(Path("/nonexistent.tflite"), "cpu")),
            (skillet.Malformed, "", lambda: skillet.Session(b"garbage", "cpu")),
            (skillet.Malformed, "", lambda: skillet.Session(b"", "cpu")),
            (skillet.InvalidArgument, "did you mean 'cache_dir'?", lambda: skillet.Session(MODEL, "cpu", cach_dir="/x")),
            (skillet.InvalidArgument, "option cores: '-1'", lambda: skillet.Session(MODEL, "cpu", cores=-1)),
            (skillet.InvalidArgument, "option timeout_ms: 'soon'", lambda: skillet.Session(MODEL, "cpu", timeout_ms="soon")),
            (TypeError, "model: must be a text, not 5", lambda: skillet.Session(5, "cpu")),
            (skillet.WrongType, "model: must be a text, not None", lambda: skillet.Session(None, "cpu")),
            (skillet.WrongType, "device: must be a text, not 7", lambda: skillet.Device(7)),
            (skillet.WrongType, "cache_dir: must be a text or a whole number, not None", lambda: skillet.Session(MODEL, "cpu", cache_dir=None)),
            (skillet.InvalidArgument, "holds a NUL", lambda: skillet.Session(f"{MODEL}\0x", "cpu")),
            (skillet.InvalidArgument, "holds a NUL", lambda: skillet.Device("cpu\0x")),
            (skillet.InvalidArgument, "holds a NUL", lambda: skillet.Session(MODEL, "cpu", cache_dir="/tmp\0x")),
            (skillet.InvalidArgument, "holds a NUL", lambda: skillet.decode(f"{MODEL.parent}\0x")),
            (skillet.WrongType, "nbytes: must be a whole number, not 64.5", lambda: skillet.Device("sim:a311d").alloc(64.5)),
            (skillet.InvalidArgument, "nbytes: 18446744073709551632 is not", lambda: skillet.Device("sim:a311d").alloc((1 << 64) + 16)),
            (skillet.InvalidArgument, "fd: 4294967296 is not", lambda: skillet.Device("sim:a311d").import_dmabuf(1 << 32)),
            (skillet.WrongType, "a listener is a function, not 5", lambda: skillet.set_log(5)),
            (skillet.WrongType, "inputs: must be a list, not None", lambda: skillet.Session(MODEL, "cpu").run_on(None, [])),
            (skillet.WrongType, "NoneType is no memory", lambda: skillet.Session(MODEL, "cpu").run_on([None], [None])),
            (skillet.Unsupported, "device 'cpu' shares no buffers", lambda: skillet.Device("cpu").alloc(64)),
            (skillet.InvalidArgument, "0 bytes", lambda: skillet.Device("sim:a311d").alloc(0)),
            (skillet.InvalidArgument, "-1 is not from 0", lambda: skillet.Device("sim:a311d").alloc(-1)),
            (skillet.OutOfRange, "", lambda: skillet.Device("sim:a311d").alloc(1 << 40)),
            (skillet.IoFailed, "descriptor -1", lambda: skillet.Device("sim:a311d").import_dmabuf(-1)),
            (skillet.Unsupported, "shares no buffers", lambda: skillet.Device("sim:rk3588").import_dmabuf(0)),
            (skillet.InvalidArgument, "no log level 'loud'", lambda: skillet.set_log(print, "loud")),
        ]
        for kind, text, function in rows:
            with self.subTest(text=text):
                self.fails(kind, text, function)

    def test_the_environment_names_the_device_where_the_caller_does_not(self):
        with unittest.mock.patch.dict(os.environ, SKILLET_DEVICE="toaster"):
            for function in (skillet.Device, lambda: skillet.Session(MODEL)):
                self.fails(skillet.InvalidArgument, "toaster", function)
            skillet.Session(MODEL, "cpu").close()

    @needs_numpy
    def test_arrays(self):
        session = skillet.Session(MODEL, "cpu")
        right, out = recorded_input(), session.outputs[0].empty()
        frozen = session.outputs[0].empty()
        frozen.flags.writeable = False
        invalid = skillet.InvalidArgument
        rows = [
            ("0 inputs given, the model has 1", session.run),
            ("2 inputs given, the model has 1", lambda: session.run(right, right)),
            ("'in' has shape (1, 16, 16, 32), not (16, 16, 32)", lambda: session.run(right[0])),
            ("'in' takes uint8, not int8", lambda: session.run(right.view(np.int8))),
            ("'in' takes uint8, not int64", lambda: session.run(5)),
            ("there is no input 'inn'; there are 'in'", lambda: session.run({"inn": right})),
            ("input 'in' is missing", lambda: session.run({})),
            ("input 0 ('in'): 1 bytes, not 8192", lambda: session.run_on([b"x"], [out])),
            ("input 0 ('in'): its memory is not in one piece", lambda: session.run_on([right[..., ::2]], [out])),
            ("0 outputs given, the model has 1", lambda: session.run_on([right], [])),
            ("is read-only", lambda: session.run_on([right], [frozen])),
            ("is read-only", lambda: session.run_on([right], [b"x" * out.nbytes])),
        ]
        for text, function in rows:
            with self.subTest(text=text):
                self.fails(invalid, text, function)
        self.fails(TypeError, "", lambda: session.run_on([5], [out]))
        self.assertTrue(np.array_equal(session.run(right)[0].ravel(), recorded_output()), "and it still works")

    def test_what_is_closed_says_so(self):
        device = skillet.Device("sim:a311d")
        session, buffer = skillet.Session(MODEL, device), device.alloc(64)
        view = buffer.view()
        for one in (session, buffer, device, session, buffer, device):
            one.close()
        size_in, size_out = session.inputs[0].nbytes, session.outputs[0].nbytes
        for function in (session.explain, session.operations, session.wait, buffer.view, lambda: buffer.fd, lambda: session.copied_bytes,
                         lambda: session.run_on([bytes(size_in)], [bytearray(size_out)]),
                         lambda: session.start([bytes(size_in)], [bytearray(size_out)]), lambda: device.alloc(64),
                         lambda: device.import_dmabuf(0), lambda: skillet.Session(MODEL, device)):
            self.fails(skillet.Closed, "is closed", function)
        self.assertTrue(session.closed)
        view[63] = 5  # the last view keeps the memory

    @needs_numpy
    def test_arrays_of_buffers(self):
        buffer = skillet.Device("sim:a311d").alloc(64)
        self.assertEqual(buffer.array().shape, (64,))
        self.assertEqual(buffer.array("int16", (2, 3), 52).shape, (2, 3))
        for dtype, shape, offset in (("uint8", (65,), 0), ("uint8", None, 65), ("uint8", None, -1), ("int32", (2, 8), 4),
                                     ("uint8", (-1,), 0), ("uint8", (-2, -3), 0), ("uint8", (1 << 62, 4), 0),
                                     ("V0", None, 0), ("object", None, 0)):
            with self.subTest(dtype=dtype, shape=shape, offset=offset):
                self.assertRaises(skillet.InvalidArgument, buffer.array, dtype, shape, offset)


@needs_numpy
class Buffers(unittest.TestCase):
    def test_are_used_in_place(self):
        device = skillet.Device("sim:a311d")
        session = skillet.Session(MODEL, device, partition="all")
        expected = session.run(recorded_input())[0]
        self.assertGreater(session.copied_bytes, 0)
        where = 8192
        buffer = device.alloc(where + expected.nbytes)
        source, target = buffer.array(shape=(1, 16, 16, 32)), buffer.array("uint8", expected.shape, where)
        source[...] = recorded_input()
        session.run_on([source], [target])
        self.assertEqual(session.copied_bytes, 0)
        self.assertTrue(np.array_equal(target, expected))

    def test_imported_memory_is_that_of_the_exporter(self):
        camera, npu = skillet.Device("sim:a311d"), skillet.Device("sim:a311d")
        session = skillet.Session(MODEL, npu, partition="all")
        frame = camera.alloc(8192)
        frame.array(shape=(1, 16, 16, 32))[...] = recorded_input()
        fd = os.dup(frame.fd)
        imported = npu.import_dmabuf(fd)
        os.close(fd)
        output = session.outputs[0].empty()
        session.run_on([imported.array(shape=(8192,))], [output])
        self.assertEqual(session.copied_bytes, output.nbytes)
        self.assertTrue(np.array_equal(output, session.run(recorded_input())[0]))
        with self.assertRaisesRegex(skillet.InvalidArgument, "already"):
            npu.import_dmabuf(imported.fd)

    def test_views_keep_what_they_need(self):
        device = skillet.Device("sim:a311d")
        array = device.alloc(1 << 20).array()
        piece = array[100:200][::2]
        device.close()
        del device, array
        gc.collect()
        piece[:] = 7
        self.assertEqual(int(piece.sum()), 350)
        descriptors = open_descriptors()
        del piece
        gc.collect()
        self.assertLess(open_descriptors(), descriptors, "and let go of it")

    def test_memory_of_a_started_run_stays(self):
        device = skillet.Device("sim:a311d")
        session = skillet.Session(MODEL, device)
        buffer = device.alloc(8192)
        output = session.outputs[0].empty()
        session.start([buffer.array()], [output])
        buffer.close()
        device.close()
        del buffer, device
        gc.collect()
        session.wait()


class Log(unittest.TestCase):
    def setUp(self):
        self.addCleanup(skillet.set_log, None)

    def warn(self):
        skillet.Session(MODEL, "sim:a311d", cache_dir="/dev/null/nowhere").close()

    def test_goes_to_a_function(self):
        lines = []
        skillet.set_log(lambda level, message: lines.append((level, message)))
        self.warn()
        self.assertEqual({level for level, _ in lines}, {"warning"})
        self.assertTrue(any("/dev/null/nowhere" in message for _, message in lines))
        count = len(lines)
        skillet.set_log(None)
        self.warn()
        self.assertEqual(len(lines), count)

    def test_a_listener_may_replace_itself(self):
        calls = []
        skillet.set_log(lambda *line: (calls.append(line), skillet.set_log(lambda *_: None)))
        self.warn()
        self.warn()
        self.assertEqual(len(calls), 1)

    def test_ends_with_the_program(self):
        code = f"""
import skillet
skillet.set_log(lambda level, message: print("heard", flush=True))
session = skillet.Session({str(MODEL)!r}, "sim:a311d", cache_dir="/dev/null/nowhere")
buffer = skillet.Device("sim:a311d").alloc(64)
keep = buffer.view()
"""
        done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("heard", done.stdout)


class Conformance(unittest.TestCase):
    """Without a TensorFlow Lite runtime; tests/conformance/runner_test.py uses one."""

    @needs_numpy
    def test_long_a_device_is_compared_with_the_cpu_kernels(self):
        def run(*words):
            return subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-m", "skillet", "conformance", *words], capture_output=True, text=True, check=False)
        done = run("--device", "sim:a311d", "--option", "partition=all", "--case", "add/u8/8x8/c16", "--case", "softmax/u8/8x8/c16", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        self.assertEqual([case["status"] for case in report["cases"]], ["Pass", "Skip"])
        self.assertEqual(report["judge"], "CPU kernels of Skillet")
        for words, said in [(("--device", "sim:nonesuch"), "no chip 'nonesuch'"), (("--kernels", "xnnpack"), "no TensorFlow Lite runtime"),
                            (("--device", "sim:a311d", "--option", "no=1"), "no option 'no'"), (("--device", "cpu"), "nothing was tested")]:
            done = run(*words, "--case", "add/u8/8x8/c16")
            self.assertEqual((done.returncode, said in done.stderr), (1 if "cpu" in words else 2, True), done.stderr)


class Results(unittest.TestCase):
    """`skillet results`: the rows of each verb, in every form."""

    def results(self, *words, code=0, forms=("ktap",), options=()):
        with tempfile.TemporaryDirectory() as folder:
            files = [(f"--{form}", f"{folder}/{form}") for form in forms]
            said, kept = io.StringIO(), {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
            try:
                with contextlib.redirect_stderr(said):
                    returned = _results.main([*options, *(word for pair in files for word in pair), "--", *map(str, words)])
            except SystemExit as ended:  # raised by argparse
                returned = ended.code
            finally:
                for number, action in kept.items():
                    signal.signal(number, action)
            self.assertIn(code, (returned, None), said.getvalue())
            return [Path(file).read_text(encoding="utf-8") for _, file in files]

    def rows(self, *words, **more):
        ktap = self.results(*words, **more)[0].splitlines()
        return [line for line in ktap[2:] if not line.startswith("# ")]

    def test_rows_are_what_the_verb_says(self):
        checked = self.rows("check", DIGITS, "--device", "sim:a311d")
        self.assertEqual(len(checked), 15)
        self.assertEqual(checked[0], "ok 1 sim:a311d/000-CONV_2D")
        self.assertRegex(checked[13], r"^ok 14 sim:a311d/013-SOFTMAX # SKIP no unit of the chip divides")
        self.assertEqual(checked[14], "ok 15 whole")
        chips = self.rows("check", DIGITS, "--require", "99%", code=1)
        self.assertIn("ok 1 a311d/000-CONV_2D", chips)
        self.assertEqual(chips[-1], f"not ok {len(chips)} whole")
        picture = SOURCE / "models/digits/3.png"
        self.assertEqual(self.rows("run", DIGITS, "--image", picture, "--device", "sim:a311d"), ["ok 1 3.png/probabilities", "ok 2 whole"])
        wrong = self.rows("run", DIGITS, "--image", picture, "--device", "cpu", "--expect", SOURCE / "models/digits/3.png", code=2)
        self.assertRegex(wrong[-1], r"^not ok 1 whole # ERROR skillet: ")
        recorded = self.rows("replay", MODEL.parent, "--device", "sim:a311d", "--against", "sim:a311d")
        self.assertRegex(recorded[0], r"^ok 1 submission1/buffer\d+$")
        self.assertEqual(self.rows("eval", DIGITS, "--data", SOURCE / "models/digits", "--device", "sim:a311d"), ["ok 1 pictures/same_class", "ok 2 whole"])
        doctor = self.rows("doctor", code=None)  # depends on whether this machine has an NPU
        self.assertTrue(any(re.match(r"ok \d+ self-test/sim:a311d$", row) for row in doctor), doctor)

    @unittest.skipIf("SANITIZED" in os.environ, "builds with sanitizers have no libraries to preload")
    def test_a_run_after_one_that_hung_takes_no_longer_than_it_may(self):
        code = ("import sys, time, skillet\nsession = skillet.Session(sys.argv[1], 'npu', timeout_ms=300, fallback=0, unproven='take', partition='all')\n"
                "inputs, took = [info.empty() for info in session.inputs], []\n"
                "for _ in range(8):\n    begin = time.monotonic()\n    try:\n        session.run(*inputs)\n        raise SystemExit('it did not hang')\n"
                "    except skillet.Error:\n        took.append(time.monotonic() - begin)\nprint(min(took[1:]))\n")
        done = subprocess.run(["skillet", "virtual", "--chip", "rk3588", "--fail", "submit:1-*:hang", "--", sys.executable, "-c", code, str(DIGITS)],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(float(done.stdout), 0.42)

    def test_files_that_options_name_go_to_nodes(self):
        from skillet.ray import _files_sent

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "labels.txt"
            file.write_text("3.png 3\n")
            for words in (["--labels", str(file), "--layers"], [f"--labels={file}", "--layers"]):
                self.assertEqual(_files_sent(words), (["--labels", "file0/labels.txt", "--layers"], {"file0/labels.txt": b"3.png 3\n"}))
            self.assertEqual(_files_sent([f"--tuning-file={file}"])[0], ["--tuning-file", "file0/labels.txt"])
            for words in (["--trace", "x"], ["--trace=x"]):
                with self.assertRaisesRegex(skillet.InvalidArgument, "--trace: a node's file stays there"):
                    _files_sent(words)

    def test_where_the_delegate_is(self):
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder)
            for place in ("c_api", "tflite_delegate", "other"):
                (build / place).mkdir()
            with unittest.mock.patch.dict(os.environ, SKILLET_C_LIBRARY=str(build / "c_api/libskillet_c.so.0")):
                if not any(Path(place, "skillet/libskillet.so").exists() for place in ("/usr/lib", "/usr/local/lib")):
                    with self.assertRaisesRegex(FileNotFoundError, "install Skillet, or let SKILLET_C_LIBRARY name"):
                        skillet.delegate_path()
                (build / "tflite_delegate/libskillet.so").write_bytes(b"")
                self.assertEqual(skillet.delegate_path(), str(build / "tflite_delegate/libskillet.so"))

    def test_only_the_outputs_that_differ_are_failures(self):
        from skillet._results import FAIL, PASS, of_run

        report = {"input": "1.png", "expect": {"same": False, "what": "output 'b': 1 of 2 elements differ"}, "outputs": [{"name": "a"}, {"name": "b"}]}
        self.assertEqual([(row.name, row.status) for row in of_run(report)], [("1.png/expect", FAIL), ("1.png/a", PASS), ("1.png/b", FAIL)])

    def test_outputs_that_differ_are_failures(self):
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder) / "other.npy"
            command = ["skillet", "run", DIGITS, "--image", SOURCE / "models/digits/4.png", "--device", "cpu", "--output", other]
            subprocess.run(list(map(str, command)), check=True, capture_output=True)
            junit, lava, github = self.results("run", DIGITS, "--image", SOURCE / "models/digits/3.png", "--device", "cpu", "--expect", other, code=1,
                                               forms=("junit", "lava", "github"))
        suite = xml.etree.ElementTree.fromstring(junit)
        self.assertEqual((suite.get("tests"), suite.get("failures"), len(suite.findall(".//failure"))), ("3", "3", 3))
        self.assertIn("TEST_CASE_ID=3.png/expect RESULT=fail", lava)
        self.assertIn("TEST_CASE_ID=3.png/probabilities RESULT=fail", lava, "the output that differs")
        self.assertRegex(github, r"(?m)^::error title=skillet run [^:]*::3.png/expect: ")

    def test_what_cannot_begin_is_an_error_and_no_crash(self):
        for words in (("check", DIGITS, "--nonsense"), ("bench", "/nowhere.tflite"), ("nonsense",)):
            with self.subTest(words):
                junit, lava, kcidb = self.results(*words, code=2, forms=("junit", "lava", "kcidb"))
                suite = xml.etree.ElementTree.fromstring(junit)
                self.assertEqual((suite.get("failures"), suite.get("errors")), ("0", "1"))
                self.assertEqual([one.get("type") for one in suite.iter("error")], ["Error"])
                self.assertIn("TEST_CASE_ID=whole RESULT=fail ", lava)
                self.assertEqual([one["status"] for one in json.loads(kcidb)["tests"]], ["ERROR"])

    def test_figures_are_measurements(self):
        lava, kcidb, ktap = self.results("bench", DIGITS, "--device", "sim:a311d", "--runs", 2, "--per-op", forms=("lava", "kcidb", "ktap"))
        measured = {name: (float(value), unit) for name, value, unit in re.findall(r"TEST_CASE_ID=(\S+) RESULT=pass MEASUREMENT=([\d.]+) UNITS=(\S+)>", lava)}
        self.assertEqual(len(measured), lava.count("TESTCASE"))
        for name, unit in (("times/median", "ms"), ("times/per_second", "1/s"), ("cpu_times/min", "ms"), ("parts/00-npu", "ms"), ("prepare", "ms"), ("peak", "KiB"), ("whole", "s")):
            self.assertEqual((measured[name][1], measured[name][0] > 0), (unit, True), name)
        self.assertEqual(measured["times/runs"], (2, "runs"))
        self.assertEqual(measured["fallback_ops"], (0, "operations"))
        self.assertTrue(any(name.startswith("jobs/part0-") for name in measured))
        tests = {one["path"]: one for one in json.loads(kcidb)["tests"]}
        self.assertEqual(tests["skillet.bench.times.runs"]["number"], {"value": 2, "unit": "runs"})
        self.assertEqual(("duration" in tests["skillet.bench.times.runs"], "duration" in tests["skillet.bench.whole"]), (False, True))
        self.assertIn("# 2 runs\n", ktap)
        csv = self.results("bench", DIGITS, "--device", "cpu", "--runs", 2, "--csv", forms=("ktap",))[0]
        self.assertIn("\nok 1 whole\n", csv)

    def test_a_measurement_of_0_is_kept_and_none_is_none(self):
        rows = [_results.Row("zero", "Pass", seconds=0.0), _results.Row("none", "Pass"), _results.Row("tiny", "Pass", seconds=0.0000125),
                _results.Row("figure", "Pass", seconds=3, measurement=(0, "ms"))]
        lava = _result_files.lava(rows, "g")
        self.assertEqual(re.findall(r"TEST_CASE_ID=(\S+) RESULT=pass(?: MEASUREMENT=(\S+) UNITS=(\S+))?>", lava),
                         [("zero", "0", "s"), ("none", "", ""), ("tiny", "0.0000125", "s"), ("figure", "0", "ms")])
        times = [one.get("time") for one in xml.etree.ElementTree.fromstring(_result_files.junit(rows, "t", "g")).iter("testcase")]
        self.assertEqual(times, ["0", None, "0.0000125", "3"])

    def test_a_verb_that_does_not_end(self):
        self.assertRegex(self.rows("virtual", "--chip", "a311d", "--", "sleep", "60", code=1, options=("--timeout", "0.5"))[0], r"^not ok 1 whole # TIMEOUT ")
        self.assertRegex(self.rows("nonsense", code=2)[0], r"^not ok 1 whole # ERROR ")
        self.assertRegex(self.rows("virtual", "--chip", "a311d", "--", "setsid", "sleep", "5", code=1, options=("--timeout", "0.5"))[0], "TIMEOUT")
        self.results("check", DIGITS, code=2, options=("--junit", "/nowhere/at/all"))
        model = DIGITS.read_bytes()
        self.results("check", DIGITS, code=2, options=("--junit", str(DIGITS)), forms=())
        self.assertEqual(DIGITS.read_bytes(), model)
        for words in (("--timeout", "0"), ("--timeout", "nan"), ("--junit", "a", "--ktap", "a")):
            self.results("check", DIGITS, code=2, options=words, forms=())
        with tempfile.NamedTemporaryFile() as given:
            self.results("run", DIGITS, f"--input={given.name}", code=2, options=("--junit", given.name), forms=())
            self.assertEqual(given.read(), b"")

    def test_names_that_kcidb_refuses_are_refused(self):
        for option, value in (("--origin", "bad origin!"), ("--origin", "Farm"), ("--origin", ""), ("--origin", "farm\n"), ("--build", "nobuild"), ("--build", ":7"),
                              ("--build", "Farm:7"), ("--build", "farm:a\0"), ("--build", "")):
            with self.subTest(value=value), contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit) as ended:
                _results.main([option, value, "--kcidb", "-", "--", "check", str(DIGITS)])
            self.assertEqual(ended.exception.code, 2)
            self.assertIn("must be of the pattern [a-z0-9_]+", said.getvalue())

    def test_what_is_printed_may_be_anything(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = Path(folder) / "skillet"
            for text in ('{"device": "d"}', "[1]", '{"chips": [{}]}', "nonsense", ""):
                fake.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
                fake.chmod(0o755)
                done = subprocess.run([sys.executable, "-m", "skillet", "results", "--ktap", "-", "--kcidb", f"{folder}/k", "--", "check", "a"], capture_output=True,
                                      text=True, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}, check=False)
                self.assertEqual((done.returncode, done.stdout.splitlines()[-1][-5:]), (0, "whole"), done.stderr)

    def test_pictures_of_one_name(self):
        with tempfile.TemporaryDirectory() as folder:
            again = shutil.copy(SOURCE / "models/digits/3.png", folder)
            self.assertEqual([row.split(" ", 2)[2] for row in self.rows("run", DIGITS, "--image", SOURCE / "models/digits/3.png", again, "--device", "cpu")],
                             ["3.png/probabilities", "3.png/probabilities-2", "whole"])

    @unittest.skipUnless(importlib.util.find_spec("kcidb_io"), "no kcidb-io here")
    def test_kcidb(self):
        import kcidb_io
        for options in ((), ("--origin", "farm", "--build", "farm:7")):
            report = json.loads(self.results("check", DIGITS, "--device", "sim:a311d", forms=("kcidb",), options=options)[0])
            kcidb_io.schema.LATEST.validate(report)
            self.assertEqual(len({one["id"] for one in report["tests"]}), 15)
            self.assertEqual({one["status"] for one in report["tests"]}, {"PASS", "SKIP"})
        kcidb_io.schema.LATEST.validate(json.loads(self.results("bench", DIGITS, "--device", "cpu", "--runs", 1, forms=("kcidb",))[0]))


class Types(unittest.TestCase):
    @unittest.skipUnless(HAS_MYPY and HAS_NUMPY, "no mypy here")
    def test_mypy_strict(self):
        # Modules are found by name in their folders, so that folders above the package do not matter.
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(HERE / "skillet", Path(folder) / "skillet", ignore=shutil.ignore_patterns("__pycache__"))
            use = Path(folder) / "use.py"
            use.write_text("import skillet\n\nsession: skillet.Session = skillet.Session('m', cores=2)\n"
                           "shape: tuple[int, ...] = session.run(b'')[0].shape\n"
                           "skillet.set_log(lambda level, message: print(level + message))\n"
                           "session.run_on(b'x' + 5)\n")
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", f"{sys.prefix}/mypy-cache",
                                   "-p", "skillet", "-m", "use"], capture_output=True, text=True, check=False, cwd=folder,
                                  env={**os.environ, "MYPYPATH": folder})
        wrong = [line for line in done.stdout.splitlines() if ": error:" in line]
        self.assertTrue(wrong and all("use.py:6:" in line for line in wrong), done.stdout + done.stderr)


if __name__ == "__main__":
    if not (HAS_NUMPY and HAS_MYPY):
        print("python: left out for want of NumPy or mypy: arrays, zero copy, types")
    long_cases.main()
