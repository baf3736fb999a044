#!/usr/bin/env python3
"""Tests `skillet quantize`: its output, the data that it accepts, and what remains after a failure.

usage: quantize_test.py SKILLET      run at the top of the source tree
"""
import array
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

SKILLET = str(Path(sys.argv.pop(1)).resolve())
CHANNELS = "tests/models/conv_scales_i8.tflite"  # two convolutions with a scale per channel; input 'in' int8 1x19x7x5
SHAPE = (19, 7, 5)
ONE_SCALE, PICTURES = "models/digits.tflite", "models/digits"
FLOATS = "tests/conformance/models/kernels/diagonal_1.tflite"  # input 'i0' float32 1x6x5
THREE_INPUTS = "tests/conformance/models/kernels/add_n_0.tflite"  # float32 1x4 each
FLOAT_NET = "tests/models/float/hand_recrop.tflite"  # input 'input_1' float32 1x256x256x3
QUANTIZED_NET = "tests/models/float/hand_recrop_i8.tflite"
HYBRID = "tests/conformance/models/kernels/edge_fully_connected_hybrid.tflite"  # input 'i0' float32 1x8
CANNOT_BEGIN, FAILED, FINE = 2, 1, 0


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def images(count, seed=1):
    """Returns the bytes of COUNT inputs of CHANNELS: random walks."""
    draw = random.Random(seed)
    value, out = 0, bytearray()
    for _ in range(count * 19 * 7 * 5):
        value = max(-100, min(100, value + draw.randint(-9, 9)))
        out.append(value & 0xFF)
    return bytes(out)


class Quantize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="skillet_quantize_")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, name, contents):
        (self.folder / name).write_bytes(contents)
        return self.folder / name

    def npz(self, name, **arrays):
        with zipfile.ZipFile(self.folder / name, "w") as archive:
            for key, contents in arrays.items():
                archive.writestr(key + ".npy", contents)
        return self.folder / name

    def images(self, count, seed=1):
        return self.npz(f"images_{count}_{seed}.npz", **{"in": npy("|i1", (count, *SHAPE), images(count, seed))})

    def run_it(self, model, data, *more, out="out.tflite", code=FINE, prefix=""):
        line = [SKILLET, "quantize", str(model), "-o", str(self.folder / out), "--data", str(data), *more]
        command = ["bash", "-c", prefix + '"$@"', "bash", *line] if prefix else line
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def written(self, model, data, *more):
        report = json.loads(self.run_it(model, data, "--json", *more).stdout)
        return report, (self.folder / "out.tflite").read_bytes()

    def test_one_scale_a_layer(self):
        report, _ = self.written(CHANNELS, self.images(16), "--device", "sim:a311d")
        self.assertEqual([(one["kind"], one["scales"]) for one in report["layers"]], [("CONV_2D", 1)] * 2)
        self.assertTrue(all(one["scales_before"] > 1 for one in report["layers"]))
        self.assertEqual((report["calibrated"], report["held_back"], report["copy"]), (12, 4, False))
        for one in report["layers"]:
            self.assertLess(one["calibration"]["rms"], 3)
            self.assertLess(one["held_back"]["rms"], 3)
        for of_all, of_one in (("calibration", "calibration"), ("held", "held_back")):
            each = [one[of_one]["rms"] for one in report["layers"]]
            self.assertTrue(min(each) <= report[of_all]["rms"] <= max(each), (each, report[of_all]))
        self.assertTrue(report["outputs"]["held_back"])
        self.assertIn("wall_ms", report["after"])
        text = self.run_it(CHANNELS, self.images(16), "--device", "sim:a311d").stdout
        for words in ("2 of 2 layers: 2 with 1 scale", "dB of signal to error", "12 inferences calibrated, 4 were held back",
                      "jobs that are proven"):
            self.assertIn(words, text)
        # A second run has nothing more to do, for any chip.
        again = json.loads(self.run_it(self.folder / "out.tflite", self.images(16), "--json", out="again.tflite").stdout)
        self.assertTrue(again["copy"])
        self.assertEqual((self.folder / "again.tflite").read_bytes(), (self.folder / "out.tflite").read_bytes())

    def test_more_scales_where_that_is_allowed(self):
        scales = [[one["scales"] for one in self.written(CHANNELS, self.images(16), *more)[0]["layers"]]
                  for more in ((), ("--allow-unproven", "--error", "100"), ("--error", "0", "--allow-unproven"))]
        self.assertEqual(scales[0], [1, 1])
        self.assertEqual(scales[1], [1, 1])
        self.assertGreater(min(scales[2]), 1)

    def test_what_is_held_back_decides_nothing(self):
        first = self.written(CHANNELS, self.images(16))[1]
        self.assertEqual(first, self.written(CHANNELS, self.images(16))[1])
        size = 19 * 7 * 5
        for changed, same in ((3, True), (15, True), (0, False), (14, False)):
            data = bytearray(images(16))
            data[changed * size:(changed + 1) * size] = images(1, seed=99)
            other = self.npz("other.npz", **{"in": npy("|i1", (16, *SHAPE), bytes(data))})
            self.assertEqual(self.written(CHANNELS, other)[1] == first, same, changed)

    def test_nothing_to_do(self):
        for model, data, more, words in ((ONE_SCALE, PICTURES, (), "no int8 layer has weights with several scales"),
                                         (CHANNELS, self.images(16), ("--device", "sim:rk3588"), "the device takes a scale per channel")):
            self.assertIn("nothing to do: " + words, self.run_it(model, data, *more).stdout)
            self.assertEqual((self.folder / "out.tflite").read_bytes(), Path(model).read_bytes())

    def test_kinds_of_data(self):
        self.file("one.npy", npy("|i1", (8, 1, *SHAPE), images(8)))
        folder = self.folder / "arrays"
        folder.mkdir()
        for i in range(8):
            contents = images(8)[i * 19 * 7 * 5:(i + 1) * 19 * 7 * 5]
            (folder / f"{i}.npy").write_bytes(npy("|i1", (1, *SHAPE), contents))
        wanted = self.written(CHANNELS, self.images(8))[1]
        self.assertEqual(self.written(CHANNELS, self.folder / "one.npy")[1], wanted)
        self.assertEqual(self.written(CHANNELS, folder)[1], wanted)

    def float_net(self, script, code=FAILED, wait=True):
        """Quantizes FLOAT_NET with SCRIPT instead of python3. Its arguments are -c TEXT MODEL DATA OUT WEIGHTS."""
        python = self.file("python", ("#!/bin/sh\n" + script).encode())
        python.chmod(0o755)
        values = array.array("f", (i % 17 / 17 for i in range(256 * 256 * 3)))
        data = self.npz("floats.npz", input_1=npy("<f4", (2, 256, 256, 3), values.tobytes() + values[::-1].tobytes()))
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        child = subprocess.Popen([SKILLET, "quantize", FLOAT_NET, "-o", self.folder / "out.tflite", "--data", data], text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env={**os.environ, "SKILLET_PYTHON": str(python), "TMPDIR": str(temporary)})
        if not wait:
            return child
        out, said = child.communicate()
        self.assertEqual(child.returncode, code, said)
        self.assertEqual(list(temporary.iterdir()), [])
        self.assertEqual((self.folder / "out.tflite").exists(), code == FINE)
        return out + said

    def test_float_models_need_a_quantizer(self):
        for script, words in (("echo ModuleNotFoundError: No module named \\'x\\'; exit 1", "pip install ai-edge-quantizer"),
                              ("echo first; printf 'no \\033[1m luck'; exit 3", "the quantizer failed: no ?[1m luck"),
                              ("kill -9 $$", "ended with signal 9"), ("exit 0", "made.tflite.by: No such file"),
                              ("echo x > $5.by", "made.tflite: No such file"), ("echo x > $5.by; echo nonsense > $5", "made.tflite"),
                              (f"echo x > $5.by; cp {Path(CHANNELS).resolve()} $5", "inputs or outputs differ from the model's"), ("echo x > $5.by; cp $3 $5", "all layers are still float"), ("exec /nonexistent", "not found")):
            with self.subTest(script=script):
                self.assertIn(words, self.float_net(script))
        os.remove(self.folder / "python")
        self.assertIn("weights and activations quantized to 8 bits by a ? quantizer", self.float_net(
            f"printf 'a \\033 quantizer' > $5.by; cp {Path(QUANTIZED_NET).resolve()} $5; test $(ls $4/*_0.npy | wc -l) = 2 && test $6 = channel", FINE))

    def test_stopped_while_the_quantizer_runs(self):
        child = self.float_net(f"echo $$ > {self.folder}/pid; exec sleep 100", wait=False)
        while not (self.folder / "pid").exists() or not (self.folder / "pid").read_text().strip():
            self.assertIsNone(child.poll())
            time.sleep(0.02)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=20)
        self.assertEqual(child.returncode, -signal.SIGTERM)
        self.assertFalse(Path("/proc", (self.folder / "pid").read_text().strip()).exists())
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_few_and_many(self):
        for count, words in ((1, "only 1 inference;"), (15, "only 15 inferences"), (16, None), (300, "64 of 300 inferences")):
            said = self.run_it(CHANNELS, self.images(count), "--json").stderr
            self.assertIn(words, said) if words else self.assertEqual(said, "")

    def test_repeats_count_once(self):
        size = 19 * 7 * 5
        wanted, one = self.written(CHANNELS, self.images(5))[1], images(5)
        for order in ((0, 1, 2, 3, 4) + (0,) * 11, (0, 0, 1, 1, 2, 3, 0, 4)):
            data = self.npz("r.npz", **{"in": npy("|i1", (len(order), *SHAPE), b"".join(one[i * size:(i + 1) * size] for i in order))})
            report, made = self.written(CHANNELS, data)
            self.assertEqual((report["repeats"], report["calibrated"], report["held_back"]), (len(order) - 5, 4, 1))
            self.assertEqual(made, wanted)
            self.assertIn(f"{len(order) - 5} of {len(order)} inferences repeat others", self.run_it(CHANNELS, data).stderr)
        same = self.npz("s.npz", **{"in": npy("|i1", (16, *SHAPE), images(1) * 16)})
        done = self.run_it(CHANNELS, same)
        self.assertIn("only 1 inference;", done.stderr)
        self.assertIn("1 inference calibrated, 0 were held back", done.stdout)
        self.assertRegex(done.stdout, r"outputs: .*\(calibration data\)")

    def test_inputs_without_contents(self):
        grey = b"".join(bytes([i]) * (19 * 7 * 5) for i in range(16))
        colours = b"".join(bytes([i, 3, 7, i, 9]) * (19 * 7) for i in range(16))
        for data, is_flat in ((grey, True), (colours, True), (grey[:-1] + b"\0", False), (b"\1" + colours[1:], False)):
            said = self.run_it(CHANNELS, self.npz("f.npz", **{"in": npy("|i1", (16, *SHAPE), data)})).stderr
            self.assertEqual("input 'in': every inference has one value everywhere" in said, is_flat, said)

    def test_layers_whose_input_never_changes(self):
        grey = self.npz("g.npz", **{"in": npy("|i1", (1, *SHAPE), bytes([5]) * (19 * 7 * 5))})
        report, _ = self.written(CHANNELS, grey)
        self.assertEqual([one["input_varies"] for one in report["layers"]][0], False)
        self.assertGreater(report["layers"][0]["calibration"]["rms"], 0)
        done = self.run_it(CHANNELS, grey)
        self.assertRegex(done.stderr, r"op 0 CONV_2D: its input 'in' never changes in the calibration data")
        self.assertRegex(done.stderr, r"weights of \d layers? are rounded for evenly distributed inputs")
        self.assertRegex(done.stdout, r"\* its input never changes")
        report, _ = self.written(CHANNELS, self.images(16))
        self.assertTrue(all(one["input_varies"] for one in report["layers"]))
        self.assertNotIn("never changes", self.run_it(CHANNELS, self.images(16)).stderr)

    def test_float_networks(self):
        array = self.file("float.npy", npy("<f4", (1, 8), struct.pack("<8f", *range(8))))
        done = self.run_it(HYBRID, array, code=CANNOT_BEGIN)
        self.assertIn("only the weights of the network are quantized (dynamic range)", done.stderr)
        self.assertIn("representative", done.stderr)
        self.assertFalse((self.folder / "out.tflite").exists())

    def test_free_sizes(self):
        free = "tests/models/free/free_sizes_u8.tflite"
        data = self.npz("z.npz", **{"arr_0": npy("|u1", (1, 20, 30, 3), bytes(i % 251 for i in range(1800)))})
        self.run_it(free, data, "--input-shape", "1x20x30x3")
        self.assertIn("--input-shape", self.run_it(free, data, code=CANNOT_BEGIN).stderr)

    def test_data_that_does_not_fit(self):
        one = images(1)
        empty = self.folder / "empty"
        empty.mkdir()
        broken = self.folder / "broken"
        broken.mkdir()
        (broken / "0.png").write_bytes(Path(PICTURES, "3.png").read_bytes())
        (broken / "1.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
        nan = struct.pack("<60f", *[0.5] * 41, float("nan"), *[0.5] * 18)
        for model, data, words in (
                (CHANNELS, self.npz("a.npz", **{"in": npy("|u1", (1, *SHAPE), one)}), "elements are '|u1', the input 'in' is int8"),
                (CHANNELS, self.npz("b.npz", **{"in": npy("<f4", (1, *SHAPE), one * 4)}), "elements are '<f4', the input 'in' is int8"),
                (CHANNELS, self.npz("c.npz", **{"in": npy("|i1", (1, 19, 5, 7), one)}), "the array is 1x19x5x7; for the input 'in' (1x19x7x5)"),
                (CHANNELS, self.npz("d.npz", **{"in": npy("|i1", SHAPE, one)}), "the array is 19x7x5; for the input 'in'"),
                (CHANNELS, self.npz("e.npz", **{"in": npy("|i1", (0, *SHAPE), b"")}), "holds no inference"),
                (CHANNELS, self.npz("f.npz", **{"in": npy("|i1", (2, *SHAPE), one)}), "the file holds 665 bytes"),
                (CHANNELS, self.npz("g.npz", **{"other": npy("|i1", (1, *SHAPE), one)}), "no array 'in'"),
                (CHANNELS, self.file("h.npz", b"no archive"), "h.npz"),
                (CHANNELS, self.file("i.bin", one), "i.bin: must be a folder, or a .npz or .npy file"),
                (CHANNELS, self.folder / "none", "none: must be a folder"),
                (CHANNELS, PICTURES, "the input 'in' has shape 1x19x7x5; a picture needs"),
                (CHANNELS, empty, "empty: it contains no .png, .jpg, .bmp, .npz or .npy"),
                (ONE_SCALE, broken, "1.png"),
                (FLOATS, self.npz("j.npz", i0=npy("<f4", (2, 6, 5), nan)), "inference 1: element 11 of input 'i0' (float32 1x6x5) is not a finite number"),
                (THREE_INPUTS, self.npz("k.npz", i0=npy("<f4", (2, 4), bytes(32)), i1=npy("<f4", (2, 4), bytes(32)), i2=npy("<f4", (3, 4), bytes(48))),
                 "3 inferences of input 'i2', 2 of 'i0'"),
                (THREE_INPUTS, self.file("l.npy", npy("<f4", (2, 4), bytes(32))), "a .npy file needs a network with one input")):
            said = self.run_it(model, data, code=CANNOT_BEGIN).stderr
            self.assertIn(words, said)
            self.assertEqual(said.count("\n"), 1, said)
            self.assertFalse((self.folder / "out.tflite").exists(), data)

    def test_bad_use(self):
        data = self.images(4)
        for more, words in ((("--device", "cpu"), "the CPU takes a scale per channel"), (("--error", "-1"), "--error: must be a number of 0 or more"),
                            (("--error", "1"), "--allow-unproven"),
                            (("--device", "sim:none"), "none")):
            self.assertIn(words, self.run_it(CHANNELS, data, *more, code=CANNOT_BEGIN).stderr)
        self.assertIn("its sizes are free", self.run_it("tests/models/free/free_sizes_u8.tflite", data, code=CANNOT_BEGIN).stderr)
        self.assertIn("no_such", self.run_it("no_such.tflite", data, code=CANNOT_BEGIN).stderr)
        self.assertIn("--data", self.run_it(CHANNELS, data, out=data.name, code=CANNOT_BEGIN).stderr)

    def test_no_part_of_a_file(self):
        data, before = self.images(4), sorted(self.folder.iterdir())
        self.run_it(CHANNELS, data, code=FAILED, prefix="trap '' XFSZ; ulimit -f 1; ")
        self.assertEqual(sorted(self.folder.iterdir()), sorted({*before, data}))
        kept = self.file("out.tflite", b"old")
        self.run_it(CHANNELS, data, code=FAILED, prefix="trap '' XFSZ; ulimit -f 1; ")
        self.assertEqual(kept.read_bytes(), b"old")


if __name__ == "__main__":
    unittest.main()
