#!/usr/bin/env python3
"""Installs the wheels into an empty environment without an index, then uses them there with published hosts on a simulated NPU.

usage: wheels_test.py FOLDER WORK [BUILD]     FOLDER: made by package.py; with BUILD: made here from that build
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import package  # noqa: E402

FOLDER, WORK, *BUILD = (Path(one).resolve() for one in sys.argv[1:])
VERSION = package.version()
MODEL = package.SOURCE / "models/digits.tflite"
SEVEN = package.SOURCE / "models/digits/7.png"

DELEGATE = """
import numpy as np, skillet
from ai_edge_litert.interpreter import Interpreter
host = Interpreter(MODEL, experimental_delegates=[skillet.load_delegate(device="sim:a311d", min_macs_per_byte=0)])
host.allocate_tensors()
given, taken = host.get_input_details()[0], host.get_output_details()[0]
picture = np.random.default_rng(1).integers(0, 255, given["shape"]).astype(given["dtype"])
host.set_tensor(given["index"], picture)
host.invoke()
with skillet.Session(MODEL, "sim:a311d") as session:
    ours = session.run(picture)[0].astype(int)
print(int(np.abs(host.get_tensor(taken["index"]).astype(int) - ours).max()) <= 1)
"""

LITERT = """
import os
os.environ.update(SKILLET_DEVICE="sim:a311d", SKILLET_PARTITION="all", SKILLET_LOG="info")
import numpy as np, skillet, ai_edge_litert_skillet as plugin
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.environment import Environment
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
place = Environment.create(compiler_plugin_path=plugin.get_library_folder(), dispatch_library_path=plugin.get_library_folder())
model = CompiledModel.from_file(MODEL, hardware_accel=HardwareAccelerator.NPU | HardwareAccelerator.CPU, environment=place)
inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
with skillet.Session(MODEL, "sim:a311d", partition="all") as session:
    picture = np.random.default_rng(1).integers(0, 255, session.inputs[0].shape).astype(session.inputs[0].dtype)
    ours = session.run(picture)[0]
inputs[0].write(picture)
model.run_by_index(0, inputs, outputs)
print(bool((outputs[0].read(ours.size, ours.dtype).reshape(ours.shape) == ours).all()))
"""

ONNX = """
import tempfile
import numpy as np, onnxruntime as ort, onnx_nets, onnxruntime_ep_skillet as plugin
ort.set_default_logger_severity(3)
ort.register_execution_provider_library("skillet", plugin.get_library_path())
model = onnx_nets.quantized(onnx_nets.mobilenet(), tempfile.mkstemp(".onnx")[1], "u8")
x = np.random.default_rng(2).normal(0, 1, onnx_nets.INPUT).astype(np.float32)
options = ort.SessionOptions()
assert [plugin.get_ep_name()] == plugin.get_ep_names()
options.add_provider_for_devices([one for one in ort.get_ep_devices() if one.ep_name == plugin.get_ep_name()][:1], {"device": "sim:a311d", "partition": "all"})
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")  # an error, should anything be left
(ours,) = ort.InferenceSession(model, options, enable_fallback=0).run(None, {"x": x})
plain = ort.SessionOptions()
plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
(theirs,) = ort.InferenceSession(model, plain).run(None, {"x": x})
print(float(np.abs(ours - theirs).max()) < 4.5 * onnx_nets.output_scale(model))
"""


def run(*command, **keywords):
    done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def make(build):
    """Makes the wheels of this machine from BUILD."""
    staged = WORK / "staged"
    shutil.rmtree(staged, ignore_errors=True)
    run("cmake", "--install", build, "--prefix", "/usr", env={**os.environ, "DESTDIR": str(staged)})
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    package.wheels(package.native(), VERSION, staged, FOLDER)


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.venv = WORK / "venv"
        shutil.rmtree(cls.venv, ignore_errors=True)
        run(sys.executable, "-m", "venv", cls.venv)
        files = sorted(FOLDER.glob(f"*_{platform.machine()}.whl"))
        assert len(files) == 1 + len(package.PLUGINS), files
        run(cls.venv / "bin/pip", "install", "--no-index", *files)

    def python(self, code):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLET_", "PYTHON"))}
        kept["PYTHONPATH"] = str(package.SOURCE / "tests/integration")
        return run(self.venv / "bin/python", "-X", "dev", "-W", "error::ResourceWarning", "-c", code, env=kept)

    def install(self, *packages):
        done = subprocess.run([self.venv / "bin/pip", "install", "--quiet", "--retries", "1", *packages], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"wheels_test: left out: pip does not install {' '.join(packages)}")
            self.skipTest("no host")

    def in_host(self, code, *packages):
        self.install(*packages)
        self.assertEqual(self.python(f"MODEL = {str(MODEL)!r}\n{code}").splitlines()[-1], "True")

    def test_command(self):
        skillet = self.venv / "bin/skillet"
        self.assertEqual(run(skillet, "--version"), f"skillet {VERSION}\n")
        said = run(skillet, "run", MODEL, "--image", SEVEN, "--device", "sim:a311d", "--json")
        self.assertRegex(said, r'"top":\s*\[\s*\{\s*"class": 7\b')
        self.assertIn("etnaviv", run(skillet, "virtual", "--chip", "a311d", "--", skillet, "devices"))

    def test_auditwheel_agrees_with_the_tags(self):
        """Checks the wheels of all architectures."""
        self.install("auditwheel")
        for file in sorted(FOLDER.glob("*.whl")):
            said = " ".join(run(self.venv / "bin/auditwheel", "show", file).split())
            self.assertIn(f'is consistent with the following platform tag: "{file.stem.rpartition("-")[2]}"', said)

    def test_library(self):
        capture = package.SOURCE / "tests/captures/a311d_conv1x1_relu6_u8"
        said = self.python(f"import skillet; print(skillet.version(), skillet.decode({str(capture)!r}) != {{}}, skillet.delegate_path())")
        site = re.escape(str(self.venv / "lib"))
        self.assertRegex(said, rf"^{re.escape(VERSION)} True {site}/\S+/skillet/lib/skillet/libskillet\.so\n$")

    def test_delegate(self):
        self.in_host(DELEGATE, "ai-edge-litert")

    def test_litert(self):
        self.in_host(LITERT, "ai-edge-litert")

    def test_onnxruntime(self):
        self.in_host(ONNX, "onnxruntime", "onnx")


if __name__ == "__main__":
    WORK.mkdir(parents=True, exist_ok=True)
    if BUILD:
        make(BUILD[0])
    unittest.main(argv=sys.argv[:1])
