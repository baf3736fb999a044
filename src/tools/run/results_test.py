#!/usr/bin/env python3
"""Tests the outputs of `skillet run`: files of outputs, expected outputs, pictures with detections, frames.

usage: results_test.py SKILLET      run at the top of the source tree
"""
import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import warnings
import zipfile
from pathlib import Path

SKILLET = str(Path(sys.argv.pop(1)).resolve())
MODEL = "models/digits.tflite"
PICTURES = [str(path) for path in sorted(Path("models/digits").glob("*.png"))]
FINE, FAILED, CANNOT_BEGIN = 0, 1, 2


def skillet(*args, stdin=b""):
    done = subprocess.run([SKILLET, *args], capture_output=True, timeout=120, input=stdin)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def npy(shape, data, descr="|u1", order="False"):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def read_npy(data):
    size, = struct.unpack_from("<H", data, 8)
    header = eval(data[10:10 + size], {})
    return header["descr"], header["shape"], data[10 + size:]


def npz(members, method=zipfile.ZIP_STORED, level=None):
    """Returns an archive of a dictionary, or of pairs, which may repeat a name."""
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method, compresslevel=level) as archive:
        warnings.simplefilter("ignore")
        for name, data in members.items() if isinstance(members, dict) else members:
            with archive.open(name, "w", force_zip64=True) as member:  # as NumPy does
                member.write(data)
    return file.getvalue()


def png_size(path):
    data = Path(path).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack_from(">II", data, 16)


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def run_fine(self, *args, stdin=b""):
        code, out, err = skillet("run", MODEL, *args, stdin=stdin)
        self.assertEqual((code, err), (FINE, ""))
        return out

    def test_outputs_are_the_arrays_of_the_report(self):
        places = {"one.npy": self.path / "one.npy", "all.npz": None, "folder": self.path / "folder/probabilities.npy"}
        for place, file in places.items():
            out = self.run_fine("--random", "3", "--json", "--top", "10", "--output", str(self.path / place))
            if file is None:
                with zipfile.ZipFile(self.path / place) as archive:
                    self.assertIsNone(archive.testzip())
                    data = archive.read("probabilities.npy")
            else:
                data = file.read_bytes()
            descr, shape, values = read_npy(data)
            self.assertEqual((descr, shape), ("|u1", (1, 10)))
            top = json.loads(out)["runs"][0]["outputs"][0]["top"]
            self.assertEqual({one["class"]: one["stored"] for one in top}, {i: f"{v}/255" for i, v in enumerate(values)})

    def test_several_pictures_have_a_folder_each(self):
        self.run_fine("--image", *PICTURES, "--output", str(self.path / "out"))
        names = sorted(str(file.relative_to(self.path)) for file in self.path.rglob("*.npy"))
        self.assertEqual(names, [f"out/{Path(picture).stem}/probabilities.npy" for picture in PICTURES])
        self.run_fine("--image", *PICTURES, "--expect", str(self.path / "out"))

    def test_what_is_expected(self):
        good = self.path / "good.npy"
        self.run_fine("--random", "3", "--output", str(good))
        for given, same in ((["--random", "3"], True), (["--image", "models/digits/4.png"], False)):
            code, out, err = skillet("run", MODEL, *given, "--expect", str(good), "--device", "cpu", "--json")
            (one,) = json.loads(out)["runs"]
            self.assertEqual((code, one["expect"]["same"]), (FINE, True) if same else (FAILED, False))
            self.assertTrue(one["expect"]["what"] == "" if same else one["expect"]["what"] in err)
        values = bytearray(read_npy(good.read_bytes())[2])
        values[4] ^= 2
        values[7] ^= 1
        for name, data in (("two.npy", npy((1, 10), bytes(values))), ("two.npz", npz({"probabilities.npy": npy((10,), bytes(values))})),
                           ("place.npz", npz({"arr_0.npy": npy((1, 10), bytes(values))}, zipfile.ZIP_DEFLATED))):
            (self.path / name).write_bytes(data)
            for tolerance, wrong in ((None, 2), ("1", 1), ("2", 0)):
                with self.subTest(file=name, tolerance=tolerance):
                    code, _, err = skillet("run", MODEL, "--random", "3", "--expect", str(self.path / name),
                                           *(["--tolerance", tolerance] if tolerance else []))
                    self.assertEqual(code, FAILED if wrong else FINE, err)
                    if wrong:
                        self.assertIn(f"random values, seed 3: output 'probabilities': {wrong} of 10 elements differ by more than "
                                      f"{tolerance or 0}, worst by 2 at [0, 4]: {values[4] ^ 2}, expected {values[4]}\n", err)

    def test_archives_are_inputs_too(self):
        pixels = bytes(range(256)) * 4
        (self.path / "raw").write_bytes(pixels[:784])
        wanted = json.loads(self.run_fine("--json", "--input", str(self.path / "raw")))["runs"][0]["outputs"]
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            for name in ("image.npy", "image", "arr_0.npy"):
                (self.path / "in.npz").write_bytes(npz({"other.npy": b"x", name: npy((1, 28, 28, 1), pixels[:784])}, method))
                code, out, err = skillet("run", MODEL, "--json", "--input", str(self.path / "in.npz"))
                self.assertEqual(code, FINE, err)
                self.assertEqual(json.loads(out)["runs"][0]["outputs"], wanted)
                self.assertIn("in.npz: 1 of 2 arrays match no input of the network: 'other'\n", err)
        (self.path / "in.npz").write_bytes(npz({f"{name}.npy": npy((1, 28, 28, 1), pixels[:784]) for name in ["image", *"abcdef"]}))
        _, _, err = skillet("run", MODEL, "--input", str(self.path / "in.npz"))
        self.assertIn("in.npz: 6 of 7 arrays match no input of the network: 'a', 'b', 'c', 'd', ...\n", err)
        (self.path / "in.npz").write_bytes(npz({"image.npy": npy((1, 28, 28, 1), pixels[:784])}))
        self.run_fine("--input", str(self.path / "in.npz"))

    def test_archives_have_the_names_that_other_programs_give(self):
        """Names may be those of the tensors, or those that --output writes."""
        sys.path.insert(0, "tests/models")
        import ssd_model
        net, model = ssd_model.Model(), str(self.path / "net.tflite")
        picture = net.tensor("cam/left:0", [1, 4, 4, 3], ssd_model.UINT8, 1 / 255)
        Path(model).write_bytes(net.bytes([picture], [net.conv("Stateful Call:0", picture, [[[[0.5] * 3]]] * 2, [0, 0])]))
        for name, code in (("cam/left:0", FINE), ("cam_left_0", FINE), ("cam_left:0", CANNOT_BEGIN)):
            (self.path / "in.npz").write_bytes(npz({name + ".npy": npy((1, 4, 4, 3), bytes(range(48)))}))
            got, _, err = skillet("run", model, "--input", str(self.path / "in.npz"), "--output", str(self.path / "out.npy"))
            self.assertEqual(got, code, err)
        values = read_npy((self.path / "out.npy").read_bytes())[2]
        for name in ("Stateful Call:0", "Stateful_Call_0"):
            (self.path / "out.npz").write_bytes(npz({name + ".npy": npy((1, 4, 4, 2), values)}))
            (self.path / "in.npz").write_bytes(npz({"arr_0.npy": npy((1, 4, 4, 3), bytes(range(48)))}))
            got, _, err = skillet("run", model, "--input", str(self.path / "in.npz"), "--expect", str(self.path / "out.npz"))
            self.assertEqual((got, err), (FINE, ""))

    def test_files_that_cannot_be_meant(self):
        image, big = npy((1, 28, 28, 1), bytes(784)), bytes(300 << 20)
        rows = [
            ("a.npz", npz({"picture.npy": image}), "no array 'image' (or 'arr_0') for the input 'image' among its 1: 'picture'"),
            ("r.npz", npz({f"arr_{i}.npy": image for i in range(1, 7)}), "among its 6: 'arr_1', 'arr_2', 'arr_3', 'arr_4', ..."),
            ("b.npz", npz({"image.npy": npy((1, 28, 28, 1), bytes(784 * 4), "<f4")}), "'image.npy': the file's elements are '<f4'"),
            ("c.npz", npz({"image.npy": npy((28, 28), bytes(784), order="True")}), "Fortran order"),
            ("d.npz", npz({"image.npy": npy((1, 28, 28, 1), bytes(700))}), "'image.npy': the file holds 700 bytes"),
            ("e.npz", npz({"image.npy": b"\x93NUMPY\1"}), "not a .npy file"),
            ("f.npz", npz({"image.npy": big}, zipfile.ZIP_DEFLATED, 1), "'image.npy' announces 314572800 bytes; at most"),
            ("g.npz", npz({"image.npy": image})[:-10], "without a table of contents: cut off?"),
            ("h.npz", npz({"image.npy": image}).replace(bytes(100), bytes(99) + b"x", 1), "'image.npy' is damaged: wrong checksum"),
            ("i.npz", b"", "without a table of contents"),
            ("j.npz", npz({"image.npy": image}, zipfile.ZIP_BZIP2), "'image.npy' is packed by method 12"),
            ("m.npz", npz([("image.npy", image), ("image.npy", image)]), "'image.npy' is in it twice"),
            ("n.npz", npz([("image.npy", image), ("image", image)]), "two arrays are called 'image'"),
            ("o.npy", npy("(1, 28, 28, 1), 'shape': (784,)", bytes(784)), "'shape' more than once"),
            ("p.npy", npy((1, 28, 28, 1), bytes(784), "|u1', \"descr\": '|i1"), "'descr' more than once"),
            ("q.npy", npy((1, 28, 28, 1), bytes(784), order="True, 'fortran_order': False"), "'fortran_order' more than once"),
            ("k.npy", npy("(1, 99999999999999999999)", b""), "without 'shape'"),
            ("l.npy", npy((1, 28, 28, 1), bytes(784), ">u2"), "elements are '>u2'"),
        ]
        for name, data, words in rows:
            path = self.path / name
            path.write_bytes(data)
            for option in ["--input"] + (["--expect"] if name in ("e.npz", "g.npz", "i.npz") else []):
                with self.subTest(file=name, option=option):
                    code, _, err = skillet("run", MODEL, option, str(path))
                    self.assertEqual((code, err.count("\n")), (CANNOT_BEGIN, 1), err)
                    if option == "--input":
                        self.assertTrue(err.startswith(f"skillet: {path}: "), err)
                        self.assertIn(words, err)

    def test_places_are_looked_at_before_the_work(self):
        several = ["--image", *PICTURES[:2]]
        (self.path / "file").touch()
        for taken in ("1/probabilities.npy", "0.png"):
            (self.path / "taken" / taken).mkdir(parents=True)
        rows = [
            (["--output", "/nowhere/x.npy"], "/nowhere/x.npy: No such file or directory"),
            (["--output", str(self.path / "file/x")], "Not a directory"),
            (["--output", str(self.path / "file")], "Not a directory"),
            (["--output", "/proc"], "/proc/probabilities.npy: "),
            (["--output", "/proc/new"], "/proc/new: "),
            ([*several, "--output", "/proc"], "/proc/0: "),
            ([*several, "--output", str(self.path / "taken")], "taken/1/probabilities.npy: is a folder"),
            ([*several, "--draw", str(self.path / "taken")], "taken/0.png: is a folder"),
            (["--image", PICTURES[0], "--draw", "/proc"], "/proc/0.png: "),
            (["--image", PICTURES[0], "--draw", "/proc/new"], "/proc/new: "),
            (["--raw", "gray", "--output", "/proc"], "/proc/frame0: "),
            ([*several, "--output", str(self.path / "x.npy")], "holds the outputs of one inference"),
            ([*several, "--output", str(self.path / "x.npz")], "holds the outputs of one inference"),
            ([*several, "--draw", str(self.path / "x.png")], "holds one picture; give a folder for several"),
            (["--image", PICTURES[0], "--draw", "/nowhere/x.png"], "/nowhere/x.png: No such file or directory"),
            (["--draw", str(self.path / "x.png")], "--draw needs --image or --raw"),
            (["--expect", str(self.path / "nothing")], "nothing/probabilities.npy: No such file or directory"),
            (["--tolerance", "1"], "--tolerance needs --compare or --expect"),
            (["--task", "juggling"], "--task"),
            (["--threshold", "2"], "--threshold"),
            (["--size", "3x3"], "--size"),
            (["--raw", "rgb24", "--size", "3by3"], "--size: must be WIDTHxHEIGHT, such as 640x480, not '3by3'"),
            (["--raw", "rgb24", "--size", "16384x16384"], "--size: must be"),
            (["--raw", "yuv"], "--raw"),
            (["--raw", "gray", "--image", PICTURES[0]], "excludes"),
            (["--output", ""], "must not be empty"),
        ]
        for args, words in rows:
            with self.subTest(args=args):
                code, _, err = skillet("run", MODEL, *args)
                self.assertEqual((code, err.count("\n")), (CANNOT_BEGIN, 1), err)
                self.assertIn(words, err)
        code, _, err = skillet("run", MODEL, "--output", "/dev/full/x")
        self.assertEqual(code, CANNOT_BEGIN, err)
        code, _, err = skillet("run", MODEL, "--image", PICTURES[0], "--task", "pose")
        self.assertEqual((code, err.count("\n")), (FAILED, 1))
        self.assertIn("no output has the shape of 'pose' (17 x (y, x, score)); the outputs are 'probabilities' uint8 1x10", err)

    def test_pictures_with_what_was_found(self):
        self.run_fine("--image", PICTURES[3], "--draw", str(self.path / "x.png"))
        self.assertEqual(png_size(self.path / "x.png"), (308, 308))  # 28 pixels, 11 times
        self.run_fine("--image", *PICTURES[:3], "--draw", str(self.path / "all"))
        self.assertEqual(sorted(file.name for file in (self.path / "all").iterdir()), ["0.png", "1.png", "2.png"])

    def test_a_drawing_of_nothing_says_so(self):
        sys.path.insert(0, "tests/models")
        import ssd_model
        net = ssd_model.Model()
        picture = net.tensor("picture", [1, 8, 8, 3], ssd_model.UINT8, 1 / 255)
        weights = [[[[0.1 * k + 0.1] * 3]] for k in range(6)]
        model, where = str(self.path / "net.tflite"), ["--image", PICTURES[3]]
        Path(model).write_bytes(net.bytes([picture], [net.conv("cells", picture, weights, [0] * 6)]))
        for args, lines in ((["--draw", str(self.path / "x.png")], 1), (["--show"], 1), (["--draw", str(self.path / "x.png"), "--task", "mask"], 0), ([], 0)):
            with self.subTest(args=args):
                code, _, err = skillet("run", model, *where, *args)
                self.assertEqual((code, err.count("\n")), (FINE, lines), err)
                if lines:
                    self.assertRegex(err, rf"{args[0]}: only the picture is drawn: .* \('cells' 1x8x8x6\); name it with --task: mask\n")

    def test_pictures_of_other_kinds_are_named(self):
        rows = [("a.webp", b"RIFF\x24\0\0\0WEBPVP8 ", ": this is WebP; convert"), ("a.png", b"RIFF\x24\0\0\0WEBPVP8L", ": this is WebP; convert"), ("a.gif", b"GIF89a", ": this is GIF; convert"),
                ("a.heic", b"\0\0\0\x18ftypheic", ": this is HEIF; convert"), ("a.avif", b"\0\0\0\x18ftypavif", ": this is AVIF; convert"), ("a.tif", b"II*\0", ": this is TIFF; convert"),
                ("a.ppm", b"P6\n1 1\n255\n", ": this is PPM; convert"), ("a.svg", b"<svg>", ": this is SVG; convert"), ("a.bin", b"RIFF....WAVE", "not a BMP, PNG or JPEG")]
        for name, data, words in rows:
            with self.subTest(name=name):
                (self.path / name).write_bytes(data)
                code, _, err = skillet("run", MODEL, "--image", str(self.path / name))
                self.assertEqual((code, err.count("\n"), words in err), (CANNOT_BEGIN, 1, True), err)

    def test_frames_come_from_a_pipe(self):
        frames = b"".join(bytes([i]) * (40 * 30 * 3) for i in (0, 90, 180))
        args = ["--raw", "rgb24", "--size", "40x30"]
        lines = self.run_fine(*args, "--json", stdin=frames).splitlines()
        self.assertEqual([json.loads(line)["input"] for line in lines], ["frame 0", "frame 1", "frame 2"])
        # A grey picture equals a grey frame.
        one = [json.loads(self.run_fine("--raw", "gray", "--json", stdin=bytes([grey]) * 784))["outputs"] for grey in (0, 90, 180)]
        self.assertEqual([json.loads(line)["outputs"] for line in lines], one)
        self.assertIn("median of 3", self.run_fine(*args, stdin=frames))
        self.run_fine(*args, "--output", str(self.path / "out"), "--draw", str(self.path / "png"), stdin=frames)
        self.assertEqual(len(list((self.path / "out").glob("frame?/probabilities.npy"))), 3)
        self.assertEqual(len(list((self.path / "png").glob("frame?.png"))), 3)
        for cut, words in ((frames[:-1], "standard input: frame 2 has 3599 of 3600 bytes (40x30, 3 a pixel)"),
                           (b"", "standard input: frame 0 has 0 of 3600 bytes")):
            code, _, err = skillet("run", MODEL, *args, stdin=cut)
            self.assertEqual((code, err.count("\n")), (FAILED, 1))
            self.assertIn(words, err)

    def test_frames_end_when_nobody_reads(self):
        with open("/dev/zero", "rb") as endless, open("/dev/full", "wb") as full:
            done = subprocess.run([SKILLET, "run", MODEL, "--raw", "gray"], stdin=endless, stdout=full, stderr=subprocess.PIPE,
                                  timeout=60)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn(b"standard output: No space left on device", done.stderr)

    def show(self, columns, answer=b"\x1b[?62;22c", **variables):
        """Returns what a terminal with COLUMNS columns gets. The terminal answers the query for its type with ANSWER."""
        process, terminal = pty.fork()
        if process == 0:
            os.environ.update(variables)
            os.execv(SKILLET, [SKILLET, "run", MODEL, "--image", PICTURES[0], "--show"])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 200, columns, 0, 0))
        seen, asked = b"", b"\x1b[c"
        try:
            while data := os.read(terminal, 65536):
                seen += data
                if asked in seen:
                    seen = seen.replace(asked, b"")
                    os.write(terminal, answer)
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), FINE)
        return seen.decode()

    PLAIN = {"NO_COLOR": "", "TERM": "xterm", "KITTY_WINDOW_ID": ""}

    def test_terminals_get_the_colours_that_they_have(self):
        for variables, mark in (({"COLORTERM": "truecolor"}, "\x1b[38;2;"), ({"COLORTERM": "", "TERM": "xterm"}, "\x1b[38;5;"),
                                ({"NO_COLOR": "1"}, None), ({"TERM": "dumb"}, None)):
            with self.subTest(variables=variables):
                seen = self.show(50, **{**self.PLAIN, **variables})
                self.assertEqual(mark is not None and mark in seen, mark is not None)
                self.assertEqual("\x1b" in seen, mark is not None)
                rows = [row for row in seen.split("\r\n") if "\u2580" in row]
                self.assertEqual({row.count("\u2580") for row in rows}, {50} if mark else set())
                self.assertEqual(len(rows), 25 if mark else 0)
        self.assertNotIn("\x1b", self.run_fine("--image", PICTURES[0], "--show"))

    def test_terminals_with_graphics_get_those(self):
        sixel, kitty, blocks = "\x1bP0;1q\"1;1;308;308", "\x1b_Ga=T,f=100,q=2,m=", "\u2580"
        can = b"\x1b[?62;4c"
        for variables, answer, mark in (({}, can, sixel), ({}, b"", blocks), ({}, b"typed too early", blocks), ({"TERM": "xterm-kitty"}, b"", kitty),
                                        ({"KITTY_WINDOW_ID": "1"}, can, kitty), ({"KITTY_WINDOW_ID": "1", "TERM": "tmux-256color"}, can, sixel),
                                        ({"NO_COLOR": "1"}, can, None), ({"TERM": "dumb", "KITTY_WINDOW_ID": "1"}, can, None)):
            with self.subTest(variables=variables, answer=answer):
                seen = self.show(60, answer, **{**self.PLAIN, **variables})
                self.assertEqual([one for one in (sixel, kitty, blocks) if one in seen], [mark] if mark else [])
                self.assertNotIn(answer.decode().lstrip("\x1b") or "none", seen)  # no escape sequence is shown as text
        self.assertNotIn("\x1b", self.run_fine("--image", PICTURES[0], "--show"))


if __name__ == "__main__":
    unittest.main()
