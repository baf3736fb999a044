#!/usr/bin/env python3
"""Tests the element skilletinfer in pipelines of gst-launch-1.0: it finds what `skillet run` finds in the same frames.

usage: gstreamer_test.py PLUGIN SKILLET      run at the top of the source tree; exit code 77 if a part of GStreamer is missing
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PLUGIN, SKILLET = (str(Path(one).resolve()) for one in sys.argv[1:3])
DIGITS = "models/digits.tflite"
ENV = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLET_", "GST_"))}
ENV |= {"SKILLET_PARTITION": "all", "GST_PLUGIN_PATH": str(Path(PLUGIN).parent)}
NEEDED = ["videotestsrc", "jpegdec", "jpegenc", "rawvideoparse", "concat"]
NOISE = "videotestsrc num-buffers=3 pattern=snow ! video/x-raw,format=RGB,width=72,height=50"
TEXT = re.compile(r'element "(\w+)" \(element\): skilletinfer,.*? json=\(string\)"((?:[^"\\]|\\.)*)"')


def run(command, **keywords):
    return subprocess.run(command, capture_output=True, timeout=120, env=ENV, check=False, **keywords)


def launch(pipeline, before=()):
    return run([*before, "gst-launch-1.0", "-m", *pipeline.split()])


def messages(pipeline, before=()):
    """Returns the messages of each element in order: {name: [JSON]}."""
    done = launch(pipeline, before)
    assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:]
    said = {}
    for name, text in TEXT.findall(done.stdout.decode()):
        said.setdefault(name, []).append(json.loads(re.sub(r"\\(.)", r"\1", text)))
    return said


def found_by_run(frames, kind, size, device, *options, before=()):
    done = run([*before, SKILLET, "run", options[0], "--raw", kind, "--size", size, "--device", device, "--json", *options[1:]],
               input=Path(frames).read_bytes())
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith('{"')]
    return [line["found"] for line in lines]


def rgb_of_bmp(path):
    data = path.read_bytes()
    at, width, height = (int.from_bytes(data[i:i + 4], "little") for i in (10, 18, 22))
    rows = [data[at + 3 * width * y:at + 3 * width * (y + 1)] for y in reversed(range(height))]
    pixels = b"".join(row[i:i + 3][::-1] for row in rows for i in range(0, 3 * width, 3))
    return pixels, width, height


class Pipelines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.holder.name)
        ENV["GST_REGISTRY"] = str(cls.folder / "registry")
        subprocess.run([sys.executable, "tests/models/ssd_model.py", cls.folder / "ssd.tflite", cls.folder / "squares.bmp", cls.folder / "labels.txt"],
                       check=True)
        pixels, cls.width, cls.height = rgb_of_bmp(cls.folder / "squares.bmp")
        (cls.folder / "squares.rgb").write_bytes(pixels)
        cls.squares = f"filesrc location={cls.folder}/squares.rgb ! rawvideoparse width={cls.width} height={cls.height} format=rgb"

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def check_equal(self, source, kind, size, device, options, before=()):
        """Compares the element with the verb `run`. `options` are for both."""
        frames = self.folder / "frames"
        of_element, of_verb = options
        said = messages(f"{source} ! tee name=t ! queue ! skilletinfer name=net device={device} {of_element} ! fakesink "
                        f"t. ! queue ! filesink location={frames}", before)["net"]
        found = found_by_run(frames, kind, size, device, *of_verb, before=before)
        self.assertGreater(len(said), 0)
        self.assertEqual(said, found, f"{source} {device}")
        return said

    def test_classes_are_those_of_run(self):
        labels = "models/digits_labels.txt"
        digits = (f"model={DIGITS} labels={labels}", (DIGITS, "--labels", labels))
        for device, before in (("sim:a311d", ()), ("sim:rk3588", ()), ("npu", (SKILLET, "virtual", "--chip", "rk3588", "--"))):
            said = self.check_equal(NOISE, "rgb24", "72x50", device, digits, before)
            self.assertEqual(len(said), 3)
        gray = NOISE.replace("RGB", "GRAY8").replace("72", "28").replace("50", "28")
        self.check_equal(gray, "gray", "28x28", "sim:a311d", digits)

    def test_all_formats_are_the_same_picture(self):
        source = "videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=70,height=50 ! videoconvert ! video/x-raw,format="
        wanted = messages(f"{source}RGB ! skilletinfer model={DIGITS} device=cpu ! fakesink")["skilletinfer0"]
        listed = re.search(r"format: \{ (.*) \}", run(["gst-inspect-1.0", "skilletinfer"]).stdout.decode())[1]
        formats = listed.replace("(string)", "").split(", ")
        self.assertEqual(len(formats), 11)
        for one in formats:
            if one != "GRAY8":
                said = messages(f"{source}{one} ! skilletinfer model={DIGITS} device=cpu ! fakesink")["skilletinfer0"]
                self.assertEqual(said, wanted, one)

    def test_boxes_are_those_of_run(self):
        model, labels = self.folder / "ssd.tflite", self.folder / "labels.txt"
        jpeg = self.folder / "squares.jpg"
        self.assertEqual(launch(f"{self.squares} ! videoconvert ! jpegenc ! filesink location={jpeg}").returncode, 0)
        options = (f"model={model} labels={labels} threshold=0.5", (model, "--labels", labels, "--threshold", "0.5"))
        size = f"{self.width}x{self.height}"
        decoded = f"filesrc location={jpeg} ! jpegdec ! videoconvert ! video/x-raw,format=RGB"
        for device in ("sim:a311d", "sim:rk3588"):
            for source in (self.squares, decoded):
                (said,) = self.check_equal(source, "rgb24", size, device, options)
                self.assertGreater(len(said["boxes"]), 1, source)
                self.assertEqual(said["task"], "ssd")
        model = "../shared/models/movenet_single_pose_lightning_ptq.tflite"
        if Path(model).exists():
            (said,) = self.check_equal(self.squares, "rgb24", size, "cpu", (f"model={model} task=pose", (model, "--task", "pose")))
            self.assertEqual(len(said["poses"][0]), 17)

    def test_drawn_boxes_and_frames_that_pass(self):
        before, out = (self.folder / "squares.rgb").read_bytes(), self.folder / "out.rgb"
        net = f"skilletinfer model={self.folder}/ssd.tflite device=cpu"
        for draw, least, most in (("false", 0, 0), ("true", 100, len(before) // 4)):
            self.assertEqual(launch(f"{self.squares} ! {net} draw={draw} ! filesink location={out}").returncode, 0)
            after = out.read_bytes()
            self.assertEqual(len(after), len(before))
            different = sum(a != b for a, b in zip(before, after))
            self.assertTrue(least <= different <= most, f"draw={draw}: {different} bytes differ")

    def test_size_that_changes_in_mid_stream(self):
        small, large = NOISE, NOISE.replace("72", "200").replace("50", "101")
        said = messages(f"{small} ! c. {large} ! c. concat name=c ! skilletinfer model={DIGITS} device=sim:a311d ! fakesink")["skilletinfer0"]
        alone = [messages(f"{one} ! skilletinfer model={DIGITS} device=sim:a311d ! fakesink")["skilletinfer0"] for one in (small, large)]
        self.assertEqual(said, alone[0] + alone[1])

    def test_pipe_that_ends_within_a_frame(self):
        frame = (self.folder / "squares.rgb").read_bytes()
        done = run(["gst-launch-1.0", "-m", "fdsrc", "!", "rawvideoparse", f"width={self.width}", f"height={self.height}", "format=rgb", "!",
                    "skilletinfer", f"model={self.folder}/ssd.tflite", "device=cpu", "!", "fakesink"], input=frame * 2 + frame[: len(frame) // 2])
        self.assertEqual((done.returncode, len(TEXT.findall(done.stdout.decode()))), (0, 2), done.stderr)

    def test_several_elements_in_one_process(self):
        net = f"skilletinfer model={DIGITS} device="
        alone = {device: messages(f"{NOISE} ! {net}{device} ! fakesink")["skilletinfer0"] for device in ("sim:a311d", "sim:rk3588")}
        said = messages(f"{NOISE} ! tee name=t ! queue ! {net}sim:a311d ! {net}sim:rk3588 ! fakesink t. ! queue ! {net}sim:a311d ! fakesink "
                        f"t. ! queue ! {net}sim:rk3588 ! fakesink")
        self.assertEqual(len(said), 4)
        for name, one in said.items():
            self.assertEqual(one, alone["sim:rk3588" if int(name[-1]) % 2 else "sim:a311d"], name)

    def test_npu_that_dies(self):
        net = f"skilletinfer model={DIGITS} device="
        alone = {device: messages(f"{NOISE} ! {net}{device} ! fakesink")["skilletinfer0"] for device in ("cpu", "sim:a311d")}
        done = launch(f"{NOISE} ! {net}npu ! fakesink", (SKILLET, "virtual", "--chip", "a311d", "--fail", "submit:3-*:EIO", "--"))
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [json.loads(re.sub(r"\\(.)", r"\1", text)) for _, text in TEXT.findall(done.stdout.decode())]
        self.assertEqual(len(said), 3)
        for one, by_cpu, by_npu in zip(said, *alone.values()):
            self.assertIn(one, (by_cpu, by_npu))
        self.assertIn(b"the NPU failed, the CPU continues", done.stderr + done.stdout)

    def test_a_pipeline_is_not_changed_by_what_happens_meanwhile(self):
        """Messages match the frames although a model file becomes invalid, a trace meets a full disk, or SIGTERM arrives."""
        many = NOISE.replace("buffers=3", "buffers=20")
        model, trace = self.folder / "replaced.tflite", self.folder / "run.pftrace"
        for device, before in (("sim:a311d", ()), ("sim:rk3588", ()), ("npu", (SKILLET, "virtual", "--chip", "a311d", "--"))):
            with self.subTest(device=device):
                model.write_bytes(Path(DIGITS).read_bytes())
                expected = messages(f"{many} ! skilletinfer model={DIGITS} device={device} ! fakesink", before)["skilletinfer0"]
                self.assertEqual(len(expected), 20)
                net = f"skilletinfer model={model} device={device} ! fakesink"
                code, said, _ = self.meanwhile(f"{many} ! {net}", before, lambda _: model.write_bytes(b"nonsense"))
                self.assertEqual((code, said), (0, expected))
                model.write_bytes(Path(DIGITS).read_bytes())
                code, said, errors = self.meanwhile(f"{many} ! {net}", before, lambda _: None, SKILLET_TRACE="/dev/full")
                self.assertEqual((code, said), (0, expected))
                self.assertIn("trace /dev/full: No space left on device", errors)
                code, said, _ = self.meanwhile(f"{NOISE.replace('buffers=3', 'buffers=-1')} ! {net}", before, lambda group: os.killpg(group, signal.SIGTERM),
                                               SKILLET_TRACE=str(trace))
                self.assertIn(code, (-signal.SIGTERM, 128 + signal.SIGTERM))
                self.assertEqual(said[:20], expected[:len(said)])
                self.assertEqual(run([SKILLET, "trace", str(trace)]).returncode, 0)

    @staticmethod
    def meanwhile(pipeline, before, do, **environment):
        """Calls DO with the group of processes after two frames. Returns the exit code, the element's messages and standard error."""
        process = subprocess.Popen([*before, "gst-launch-1.0", "-m", *pipeline.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=ENV | environment, start_new_session=True)
        out, seen = "", 0
        for line in process.stdout:
            out += line
            if "skilletinfer," in line and (seen := seen + 1) == 2:
                do(process.pid)
        errors = process.stderr.read()
        process.stderr.close()
        process.stdout.close()
        return process.wait(60), [json.loads(re.sub(r"\\(.)", r"\1", text)) for _, text in TEXT.findall(out)], errors

    def test_what_cannot_begin_says_why(self):
        ssd = self.folder / "ssd.tflite"
        (self.folder / "half.tflite").write_bytes(ssd.read_bytes()[:500])
        for properties, words in (("", "no model: set the property model"), ("model=nothing.tflite", "nothing.tflite"),
                                  (f"model={self.folder}/half.tflite", "half.tflite"), (f"model={DIGITS} task=faces", "task=faces: must be one of"),
                                  (f"model={DIGITS} float-pixels=1", "float-pixels=1: must be one of"),
                                  (f"model={DIGITS} device=sim:nothing", "sim:nothing"), (f"model={DIGITS} labels=nothing.txt", "nothing.txt"),
                                  (f"model={DIGITS} task=ssd device=cpu", "no output has the shape of 'ssd'")):
            done = launch(f"{NOISE} ! skilletinfer {properties} ! fakesink")
            self.assertNotEqual(done.returncode, 0, properties)
            self.assertIn(words, done.stderr.decode(), properties)

    def test_inspect_says_what_each_property_is(self):
        text = run(["gst-inspect-1.0", "skilletinfer"]).stdout.decode()
        page = Path("docs/gstreamer.md").read_text(encoding="utf-8")
        own = set(re.findall(r"^  ([\w-]+) +: (?=.)", text, re.M)) - {"name", "parent", "qos"}
        self.assertEqual(own, {"model", "device", "labels", "task", "threshold", "float-pixels", "draw", "tensors"})
        for name in own:
            self.assertIn(f"| `{name}` |", page)


if __name__ == "__main__":
    if shutil.which("gst-launch-1.0") is None or any(run(["gst-inspect-1.0", "--exists", one]).returncode for one in NEEDED):
        print("gstreamer_test: left out: gst-launch-1.0 or one of its elements is not installed (./x test --all installs them)")
        sys.exit(77)
    del sys.argv[1:3]
    unittest.main()
