#!/usr/bin/env python3
"""Runs ONNX files with the command, compares with ONNX Runtime's CPU provider (tests/models/onnx/make.py), and tests which files are refused.

usage: onnx_file_test.py SKILLET
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SKILLET = Path(sys.argv.pop(1)).resolve()
MODELS = Path(__file__).resolve().parents[1] / "models/onnx"
# Network: a step of its output, allowed difference in steps, fewest operations that a chip takes.
NETWORKS = {"mobilenet": (0.0177895, 3, 15), "yolo": (0.0446926, 4, 15), "lenet": (0.00390625, 1, 5), "transformer": (0.0319475, 3, 0),
            "text_reader": (0.00392157, 1, 5)}
# Arguments, and a part of the error.
REFUSED = [(["run", "odd.onnx", "--device", "cpu"], "node 'reader' ODDS: operation ODDS is not supported"),
           (["run", "odd.onnx", "--device", "cpu"], "no CPU kernel for ODDS; ONNX Runtime may run it (docs/onnxruntime.md)"),
           (["run", "shapes.onnx", "--device", "cpu"], "input 'x' has free sizes, 1x3x?x?; give them: --input-shape x=1x3x224x224"),
           (["run", "shapes.onnx", "--input-shape", "1x3x5"], "'x' is ?x3x?x?, of 4 sizes"),
           (["run", "shapes.onnx", "--input-shape", "z=1x3x5x5"], "NAME=SHAPE with one of x"),
           (["run", "lenet.onnx", "--signature", "s"], "ONNX files have no signatures"),
           (["run", "make.onnx"], "it is not an ONNX model"),
           (["quantize", "lenet.onnx", "--data", ".", "-o", "out.tflite"], "ONNX files are quantized if they are float or have a scale per channel"),
           (["fix", "lenet.onnx", "--device", "sim:a311d", "-o", "out.tflite"], "skillet fix is for TensorFlow Lite files")]


def skillet(*args, cwd=MODELS):
    environment = {**os.environ, "SKILLET_PARTITION": "all"}
    return subprocess.run([SKILLET, *args], capture_output=True, text=True, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, check=False)


class OnnxFile(unittest.TestCase):
    def check(self, name, device, tolerance, *more):
        done = skillet("run", f"{name}.onnx", "--device", device, "--input", f"{name}_in.npz", "--expect", f"{name}_out.npz", "--tolerance",
                       str(tolerance), "--json", *more)
        self.assertEqual(done.returncode, 0, f"{name} {device}: {done.stderr}")
        return json.loads(done.stdout)

    def test_networks_give_what_onnx_runtime_gives(self):
        for name, (step, steps, least) in NETWORKS.items():
            for device in ("cpu", "sim:a311d", "sim:rk3588"):
                result = self.check(name, device, step * (steps + 0.01))
                if device == "cpu":
                    self.assertEqual(result["npu_ops"], 0)
                else:
                    self.assertGreaterEqual(result["model_npu_ops"], least, f"{name} {device}")
                    self.assertEqual(result["fallback_ops"], 0)

    def test_an_expectation_can_fail(self):
        done = skillet("run", "lenet.onnx", "--device", "cpu", "--random", "7", "--expect", "lenet_out.npz")
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_sizes_that_are_free_and_contents_in_another_file(self):
        for shape in ("1x3x5x6", "x=1x3x5x6"):
            self.check("shapes", "cpu", 1e-5, "--input-shape", shape)

    def test_other_verbs(self):
        with tempfile.TemporaryDirectory() as folder:
            for args in (["check", "lenet.onnx", "--device", "sim:a311d"], ["plan", "lenet.onnx", "--chip", "a311d"],
                         ["compile", "mobilenet.onnx", "--device", "sim:a311d", "-o", f"{folder}/program"],
                         ["bench", "lenet.onnx", "--device", "cpu", "--runs", "1", "--warm-up", "0"]):
                done = skillet(*args)
                self.assertEqual(done.returncode, 0, f"{args}: {done.stderr}")
        picture = MODELS.parents[2] / "models/digits"
        done = skillet("run", "mobilenet.onnx", "--device", "cpu", "--image", str(sorted(picture.glob("*.png"))[0]))
        self.assertIn("pictures resized to 16x16 RGB", done.stdout, done.stderr)

    def test_operations_have_the_names_of_the_file(self):
        """HardSigmoid becomes a table internally, GlobalAveragePool a mean."""
        for name, op in (("hard_sigmoid", "HardSigmoid"), ("mobilenet", "GlobalAveragePool")):
            for verb in ("check", "run"):
                said = skillet(verb, f"{name}.onnx", "--device", "sim:rk3588", *(("--random", "1", "--verbose") if verb == "run" else ())).stdout
                self.assertIn(op, said, verb)
                self.assertNotRegex(said, "BYTE_TABLE|ReduceMean|in place of  ", verb)

    def test_sixteen_bits_are_told_as_such(self):
        for name in ("int16", "uint16"):
            done = skillet("run", f"{name}.onnx", "--device", "sim:rk3588")
            self.assertIn(f"node 'Q' QuantizeLinear: {name}: only 8 bits are taken", done.stderr)
            self.assertIn("16-bit activations", done.stderr)
            said = skillet("check", f"{name}.onnx", "--device", "sim:rk3588").stdout
            self.assertRegex(said, rf"a tensor is {name}; the NPU computes\s+on 8-bit")
            self.assertNotIn("computes QuantizeLinear", said)

    def test_examples_of_sizes_keep_those_of_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            model = (MODELS / "shapes.onnx").read_bytes()
            three, one = b"\x0a\x02\x08\x03", b"\x0a\x02\x08\x01"
            self.assertIn(three, model)
            Path(folder, "net.onnx").write_bytes(model.replace(three, one))
            Path(folder, "shapes.bin").write_bytes((MODELS / "shapes.bin").read_bytes())
            self.assertIn("--input-shape x=1x1x224x224", skillet("run", "net.onnx", cwd=folder).stderr)

    def test_what_is_refused_says_why(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "odd.onnx").write_bytes((MODELS / "lstm.onnx").read_bytes().replace(b"LSTM", b"ODDS"))
            for name in ("shapes.onnx", "shapes.bin", "lenet.onnx"):
                (Path(folder) / name).write_bytes((MODELS / name).read_bytes())
            (Path(folder) / "make.onnx").write_bytes((MODELS / "make.py").read_bytes())
            for args, sentence in REFUSED:
                done = skillet(*args, cwd=folder)
                self.assertGreater(done.returncode, 0, args)
                self.assertIn(sentence, done.stderr, args)

    def test_nearest_pixels_that_are_others_are_refused(self):
        """For integer factors, floor of half_pixel selects another pixel than floor of asymmetric."""
        with tempfile.TemporaryDirectory() as folder:
            model = (MODELS / "yolo.onnx").read_bytes()
            self.assertIn(b"floor", model)
            self.assertIn(b"asymmetric", model)
            Path(folder, "net.onnx").write_bytes(model.replace(b"asymmetric", b"half_pixel"))
            done = skillet("run", "net.onnx", "--device", "cpu", "--random", "1", cwd=folder)
            self.assertGreater(done.returncode, 0)
            self.assertIn("it is nearest with half_pixel, floor", done.stderr)

    def test_integers_with_other_scales_are_not_taken_for_the_same(self):
        """Hand-made files: a tensor is read with another scale than it is written, or has an unknown form."""
        models = sorted((MODELS / "refused").glob("*.onnx"))
        self.assertGreater(len(models), 5)
        for model in models:
            done = skillet("run", str(model), "--device", "cpu", "--random", "1")
            self.assertEqual(done.returncode, 2, f"{model.name}: {done.stdout}")
            self.assertRegex(done.stderr, "other scales|no CPU kernel", model.name)

    def test_texts_say_the_words_of_onnx(self):
        """The texts of the file, and of the compiled model made from it, use ONNX's terms."""
        source = MODELS.parents[2] / "src"
        named = dict(re.findall(r'NAME_OF_ONNX\((\w+), "(.+)"\)', (source / "compile/names_onnx.def").read_text()))
        others = {other for kind, other in re.findall(r'^OP\((\w+), +"(\w+)"', (source / "graph/ir/op.def").read_text(), re.MULTILINE) if kind in named}
        self.assertIn("DEQUANTIZE", others)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("lenet", "transformer"):
                compiled = str(Path(folder, name))
                self.assertEqual(skillet("compile", f"{name}.onnx", "--device", "rk3588", "-o", compiled).returncode, 0)
                for model in (f"{name}.onnx", compiled):
                    for command in (("check", model, "--device", "sim:rk3588"), ("check", model), ("check", model, "--device", "sim:rk3588", "--json"),
                                    ("run", model, "--device", "sim:rk3588", "--random", "1", "--verbose")):
                        said = skillet(*command).stdout
                        self.assertIn("DequantizeLinear", said, command)
                        self.assertEqual({word for word in re.findall(r"\w+", said) if word in others}, set(), command)

    def test_contents_are_read_from_the_models_folder_only(self):
        with tempfile.TemporaryDirectory() as outside:
            folder = Path(outside) / "models"
            folder.mkdir()
            model, contents = (MODELS / "shapes.onnx").read_bytes(), (MODELS / "shapes.bin").read_bytes()
            for location, sentence in ((b"../up.bin", "is not a file in the model's folder"), (b"/etc/hosts", "is not a file in the model's folder"),
                                       (b"link.bin__", "is not a file in the model's folder"), (b"short.bin_", "which has 7 bytes"),
                                       (b"absent.bin", "No such file")):
                location = location.ljust(10, b"_")[:10]
                (folder / "net.onnx").write_bytes(model.replace(b"shapes.bin", location))
                Path(outside, "up.bin_").write_bytes(contents)
                link = folder / "link.bin__"
                link.unlink(missing_ok=True)
                link.symlink_to("../up.bin_")
                (folder / "short.bin_").write_bytes(contents[:7])
                done = skillet("run", "net.onnx", "--device", "cpu", "--input-shape", "1x3x5x6", cwd=folder)
                self.assertGreater(done.returncode, 0, location)
                self.assertIn("constant 'weights'", done.stderr, location)
                self.assertIn(sentence, done.stderr, location)


if __name__ == "__main__":
    unittest.main()
