#!/usr/bin/env python3
"""Tests models of `skillet serve` in one process: roles of outputs, which models are accepted, saved and read, and valid pixels.

usage: serve_models_test.py C_LIBRARY SOURCE_DIR VENV     (VENV: made at the first run, as that of python_test.py)

Without NumPy, which is installed over a network, the test is skipped, with a line.
"""
import argparse
import contextlib
import importlib.util
import io
import itertools
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

if __name__ == "__main__" and "--inside" not in sys.argv:
    library, source, venv = sys.argv[1:4]
    sys.path.insert(0, f"{source}/tests/integration")
    from environment import start_inside
    start_inside(__file__, library, source, venv)

SOURCE = Path(sys.argv.pop())
sys.argv.remove("--inside")

if importlib.util.find_spec("numpy") is None:
    print("serve_models_test: skipped, NumPy cannot be installed")
    sys.exit(77)
sys.path.insert(0, str(SOURCE / "tests/models"))

import numpy as np  # noqa: E402
import ssd_model  # noqa: E402

import skillet  # noqa: E402
from skillet import _heads, _model_file, _zmtp, frigate  # noqa: E402

SIZE = 96  # of the SSD model
POSTPROCESS = "TFLite_Detection_PostProcess"


def info(shape, name="", kind="float32", scale=0.0, zero_point=0):
    return skillet.TensorInfo(name=name, type=kind, shape=tuple(shape), nbytes=0, scale=scale, zero_point=zero_point)


def arguments(**more):
    return argparse.Namespace(**{"device": "cpu", "option": [], "task": "auto", "threshold": 0.4, "workers": 1, "accept_models": True, **more})


def picture():
    """Returns a red square, which is of class 0 only."""
    frame = np.full((1, SIZE, SIZE, 3), 90, np.uint8)
    frame[0, 12:36, 12:36] = (240, 30, 30)
    return frame


def rows_of(detector, frame):
    rows = detector.rows({"shape": list(frame.shape), "dtype": str(frame.dtype), "model_type": "ssd"}, frame.tobytes())
    return np.frombuffer(rows, np.float32).reshape(20, 6)


class Ssd(unittest.TestCase):
    def test_each_order_of_a_models_outputs_gives_the_same_rows(self):
        """The frames have classes 0 and 1 only, so values do not distinguish classes from scores."""
        one, two = picture(), picture()
        two[0, 60:84, 4:28] = (30, 240, 40)
        for frame, classes in ((one, [0]), (two, [0, 1])):
            expected = None
            for order in itertools.permutations(range(4)):
                with self.subTest(order=order, classes=classes):
                    rows = rows_of(self.detector(order), frame)
                    self.assertEqual(rows[rows[:, 1] > 0, 0].tolist(), classes)
                    expected = rows if expected is None else expected
                    np.testing.assert_array_equal(rows, expected)

    made: dict = {}

    def detector(self, order, found=10):
        if (order, found) not in self.made:
            self.made[order, found] = frigate.Detector("ssd.tflite", ssd_model.ssd_model(found, order), "cpu", {}, "auto", 0.4, 1)
        return self.made[order, found]

    def test_one_box_at_most(self):
        for order in ((0, 1, 2, 3), (3, 2, 1, 0), (0, 3, 2, 1)):
            rows = rows_of(self.detector(order, 1), picture())
            self.assertEqual((rows[0, 0], rows[0, 1] > 0.9, rows[1:].any()), (0, True, False), order)

    def test_names_and_shapes_tell_where_no_operation_does(self):
        makers = [("RESHAPE", 0)] * 4
        for n in (10, 1):
            infos = [info([1, n, 4], "boxes"), info([1, n], "detection_classes"), info([1, n], "detection_scores"), info([1, 1] if n == 1 else [1], "num_detections")]
            for order in itertools.permutations(range(4)):
                found = _heads.ssd_outputs([infos[i] for i in order], makers)
                self.assertEqual([order[i] for i in found], [0, 1, 2, 3], (n, order))
            unnamed = [info(one.shape) for one in infos]
            self.assertEqual(_heads.ssd_outputs(unnamed, makers), (0, 1, 2, 3))
        self.assertEqual(_heads.ssd_outputs([info([1, 10]), info([1, 10, 4]), info([1]), info([1, 10])], makers), (1, 3, 0, 2))
        self.assertEqual(_heads.ssd_outputs([info([1, 10, 4]), info([1, 10]), info([1, 10])], makers[:3]), (0, 1, 2, None))

    def test_other_outputs_are_those_of_no_ssd_network(self):
        told = [(POSTPROCESS, place) for place in range(4)]
        for shapes in ([[3, 10, 4], [1, 10], [1, 10], [1]], [[1, 10, 4], [1, 9], [1, 10], [1]], [[1, 10, 4], [1, 10], [1, 10], [2]], [[1, 10, 4], [1, 10]]):
            for makers in (told, [("", 0)] * 4):
                self.assertIsNone(_heads.ssd_outputs([info(one) for one in shapes], makers[:len(shapes)]), (shapes, makers))

    def test_values_change_nothing(self):
        boxes, order = np.asarray([[[0.1, 0.1, 0.5, 0.5]] * 2]), _heads.SsdOutputs(0, 1, 2, 3)
        found = _heads.find_ssd([boxes, np.asarray([[0.0, 1.0]]), np.asarray([[np.nan, 0.9]]), np.asarray([2.0])], order)
        rows = np.frombuffer(_heads.answer_rows(found, 0.4), np.float32).reshape(20, 6)
        self.assertEqual((rows[0, :2].tolist(), rows[1:].any()), ([1, np.float32(0.9)], False))
        with self.assertRaisesRegex(ValueError, "^output 2 has scores up to 17$"):
            _heads.find_ssd([boxes, np.asarray([[0.9, 0.8]]), np.asarray([[17.0, 0.0]]), np.asarray([2.0])], order)


class Heads(unittest.TestCase):
    def test_which_of_a_pair_has_the_boxes(self):
        boxes, scores, logits = ([1, 30, 4],) * 3
        for word, other in (("boxes", "x"), ("bbox", "scores"), ("x", "scores"), ("x", "logits")):
            for task in ("yolonas", "rfdetr"):
                for first in (0, 1):
                    pair = [info(boxes, word), info(scores, other)]
                    self.assertEqual(_heads.box_of_pair(pair[::-1] if first else pair, task), first, (word, other, task))
        pixels, parts = info(boxes, "", "uint8", 320 / 255), info(boxes, "", "uint8", 1 / 255)
        logit = info(logits, "", "int8", 16 / 255)
        for task, pair, first in (("yolonas", [parts, pixels], 1), ("yolonas", [pixels, parts], 0), ("rfdetr", [logit, parts], 1), ("rfdetr", [parts, logit], 0),
                                  ("rfdetr", [parts, parts], None), ("yolonas", [pixels, pixels], None), ("yolonas", [info(boxes), info(scores)], None)):
            self.assertEqual(_heads.box_of_pair(pair, task), first, (task, pair))
        self.assertEqual(_heads.box_of_pair([info([1, 30, 5]), info(boxes)], "yolonas"), 1)
        detector = frigate.Detector.__new__(frigate.Detector)
        detector.input, detector._outputs = info([1, SIZE, SIZE, 3]), [info(boxes), info(scores)]
        with self.assertRaisesRegex(ValueError, "have one shape; export the network with outputs named boxes and scores$"):
            detector._found([np.zeros(boxes), np.zeros(scores)], "yolonas")

    def test_tasks_by_cells(self):
        """A network for images of 96 x 96 has 144 + 36 + 9 cells."""
        for shape, task in (([1, 189 * 3, 85], "yolov5"), ([1, 84, 189], "yolov8"), ([1, 189, 84], "yolov8"), ([1, 5, 189], "yolov8"), ([1, 189, 85], _heads.CELLS),
                            ([1, 189, 5], "yolov8")):
            self.assertEqual(_heads.task_of([info(shape)], [("", 0)], (SIZE, SIZE)), task, shape)
        for shape in ([1, 300, 6], [1, 128, 512], [1, 189, 4], [3, 189, 84], [1, 567, 5]):
            with self.assertRaisesRegex(skillet.Unsupported, "a candidate for each of 189 cells, YOLOv5 three"):
                _heads.task_of([info(shape)], [("", 0)], (SIZE, SIZE))
        self.assertEqual(_heads.task_of([info([1, 30, 4]), info([1, 30, 9])], [("", 0)] * 2, (SIZE, SIZE)), _heads.PAIRS)
        self.assertTrue(_heads.is_transposed((85, 21), (32, 32)), "21 cells, fewer than classes")
        self.assertFalse(_heads.is_transposed((21, 85), (32, 32)))

    def test_a_task_that_is_given_needs_its_outputs(self):
        cells = 189
        for task, shapes, fits in (("yolov8", [[1, 896, 16], [1, 896, 1]], False), ("yolov8", [[1, 300, 6]], True), ("yolov8", [[1, 84, 300]], True), ("yolov8", [[1, 300, 4]], False),
                                   ("yolov8", [[3, 300, 6]], False), ("yolov8", [[1, 10]], False), ("yolov5", [[1, 300, 6]], True), ("yolov5", [[1, 300, 5]], False),
                                   ("yolox", [[1, cells, 6]], True), ("yolox", [[1, cells + 1, 6]], False), (_heads.CELLS, [[1, cells, 6]], True),
                                   ("rfdetr", [[1, 30, 4], [1, 30, 9]], True), ("yolonas", [[1, 30, 4], [1, 29, 9]], False), ("ssd", [[1, 10, 4], [1, 10], [1, 10], [1]], True),
                                   ("ssd", [[1, 10, 4]], False)):
            infos = [info(one) for one in shapes]
            self.assertEqual(_heads.wanted(task, infos, [("", 0)] * len(infos), (SIZE, SIZE)) == "", fits, (task, shapes))
        with self.assertRaisesRegex(skillet.Unsupported, r"^net.tflite: outputs of shapes .* are not those of task yolov8 \(one output, 1 x candidates x numbers\)$"):
            frigate.Detector("net.tflite", ssd_model.ssd_model(), "cpu", {}, "yolov8", 0.4, 1)

    def test_a_client_that_means_another_head_is_told_so(self):
        for task, model_type, head in (("yolov5", "yolox", "yolox"), ("yolov5", "ssd", "yolov5"), (_heads.CELLS, "yolox", "yolox"), (_heads.CELLS, "yolo-generic", "yolov8"),
                                       (_heads.PAIRS, "rfdetr", "rfdetr"), (_heads.PAIRS, "yolonas", "yolonas"), (_heads.PAIRS, None, "yolonas"), ("ssd", ["x"], "ssd")):
            self.assertEqual(_heads.head_of(task, model_type), head, (task, model_type))
        for task, model_type, said in (("yolov8", "dfine", "D-FINE is not decoded"), (_heads.PAIRS, "dfine", "D-FINE"), ("yolov8", "rfdetr", "the model has outputs of yolov8"),
                                       ("yolov5", "yolonas", "outputs of yolov5"), ("ssd", "yolox", "outputs of ssd"), (_heads.CELLS, "ssd", "set yolox, or yolo-generic")):
            with self.assertRaisesRegex(skillet.Unsupported, f"^model_type '?{model_type}'?: .*{said}"):
                _heads.head_of(task, model_type)
        detector, frame = frigate.Detector("ssd.tflite", ssd_model.ssd_model(), "cpu", {}, "auto", 0.4, 1), picture()
        with self.assertRaisesRegex(skillet.Unsupported, "D-FINE is not decoded"):
            detector.rows({"shape": list(frame.shape), "dtype": "uint8", "model_type": "dfine"}, frame.tobytes())


class Pixels(unittest.TestCase):
    def stored(self, image, *values):
        detector = frigate.Detector.__new__(frigate.Detector)
        detector.input = image
        return detector._stored(np.asarray(values, np.float32)).tolist()

    def test_real_numbers_far_beyond_the_models_are_refused_at_both_ends(self):
        image = info([1, 1, 2, 1], "image", "uint8", 1 / 255)
        self.assertEqual(self.stored(image, 0, 1, 1.4, -0.4), [0, 255, 255, 0])
        for value in (1.6, 255, -0.6, -100):
            with self.assertRaisesRegex(frigate.BadRequest, "the model takes 0 to 1 "):
                self.stored(image, 0.5, value)
        self.assertEqual(self.stored(info([1, 1, 2, 1], "image", "int8", 2 / 255, 0), -1.9, 1.9), [-128, 127])
        for one in (image, info([1, 1, 2, 1], "image")):
            for value in (np.inf, -np.inf, np.nan):
                with self.assertRaisesRegex(frigate.BadRequest, "^pixels that are no finite numbers$"):
                    self.stored(one, 0.5, value)


class Models(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory())) if hasattr(self, "enterContext") else self.own_folder()
        patch = unittest.mock.patch.object(frigate, "say")
        self.say = patch.start()
        self.addCleanup(patch.stop)

    def own_folder(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        return Path(holder.name)

    def models(self, **more):
        return frigate.Models(self.folder, arguments(**more))

    def saved_at_once(self, models, sent):
        """Returns the answers to clients that send NAME, DATA at once."""
        answers, gate, session = [None] * len(sent), threading.Barrier(len(sent)), skillet.Session

        def slow(*words, **options):
            time.sleep(0.05)
            return session(*words, **options)

        def client(i):
            gate.wait()
            answers[i] = models.save(*sent[i])

        with unittest.mock.patch.object(frigate.skillet, "Session", slow):
            threads = [threading.Thread(target=client, args=[i]) for i in range(len(sent))]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
        return answers

    def test_of_models_sent_at_once_under_one_name_one_is_saved(self):
        data = ssd_model.ssd_model()
        sent = [("net.tflite", data + bytes(4 * i)) for i in range(4)]
        answers = self.saved_at_once(self.models(), sent)
        self.assertEqual(sorted(one["model_saved"] for one in answers), [False, False, False, True])
        winner = [one["model_saved"] for one in answers].index(True)
        self.assertEqual((self.folder / "net.tflite").read_bytes(), sent[winner][1])
        self.assertEqual({one["error"] for one in answers if not one["model_saved"]}, {"net.tflite is there already"})
        self.assertEqual([one.name for one in self.folder.iterdir()], ["net.tflite"])

    def test_another_servers_model_stays(self):
        (self.folder / "net.tflite").write_bytes(b"another's")
        with unittest.mock.patch.object(os.path, "lexists", lambda path: False):  # the file appears later
            self.assertEqual(self.models().save("net.tflite", ssd_model.ssd_model())["error"], "net.tflite is there already")
        self.assertEqual((self.folder / "net.tflite").read_bytes(), b"another's")
        self.assertEqual([one.name for one in self.folder.iterdir()], ["net.tflite"])

    def test_models_sent_at_once_are_counted(self):
        with unittest.mock.patch.object(frigate, "FILES_MAX", 2):
            answers = self.saved_at_once(self.models(), [(f"{i}.tflite", ssd_model.ssd_model()) for i in range(4)])
        self.assertEqual(sum(one["model_saved"] for one in answers), 2)
        self.assertEqual(len(list(self.folder.iterdir())), 2)

    def test_all_sessions_are_of_one_file(self):
        path, data, other, read = self.folder / "net.tflite", ssd_model.ssd_model(), self.folder / "other", []
        path.write_bytes(data)
        session = skillet.Session

        def replaced_meanwhile(model, *words, **options):
            read.append(model)
            other.write_bytes(b"another file")
            os.replace(other, path)
            return session(model, *words, **options)

        with unittest.mock.patch.object(frigate.skillet, "Session", replaced_meanwhile):
            self.assertIsNotNone(self.models(device="sim:a311d", workers=3, option=[("partition", "all")]).load("net.tflite"))
        self.assertEqual(read, [data] * 4, "three, and the CPU's")

    def test_a_file_of_another_size_and_the_same_time_is_another(self):
        path, models = self.folder / "net.tflite", self.models()
        path.write_bytes(ssd_model.ssd_model())
        first, about = models.load(path.name), path.stat()
        with path.open("ab") as file:
            file.write(bytes(4))
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        self.assertEqual((path.stat().st_mtime_ns, path.stat().st_ino), (about.st_mtime_ns, about.st_ino))
        self.assertIsNot(models.load(path.name), first)

    def test_each_request_for_what_cannot_be_run_has_the_reason(self):
        shutil.copy(SOURCE / "tests/models/batch/conv_batch3_u8.tflite", self.folder / "three.tflite")
        (self.folder / "ssd.tflite").write_bytes(ssd_model.ssd_model())
        for task in ("yolonas", "rfdetr"):
            self.assertRegex(self.models(task=task).request("ssd.tflite")["error"], rf"are not those of task {task} \(boxes 1 x n x 4 and scores")
        for name, target in (("loop", "loop"), ("first", "second"), ("second", "first"), ("nothing", "none")):
            (self.folder / f"{name}.tflite").symlink_to(f"{target}.tflite")
        for task in ("auto", "yolov8", "ssd"):
            models = self.models(task=task)
            for _ in range(2):
                self.assertRegex(models.request("three.tflite")["error"], r"^three.tflite: the input of 3x\S+ is 3 images, and a client sends one$")
                for name in ("loop", "first", "nothing"):
                    with self.assertRaisesRegex(frigate.BadRequest, f"^model name '{name}.tflite': a link to nothing, or to itself$"):
                        models.request(f"{name}.tflite")
        with unittest.mock.patch.object(frigate.Detector, "_warm_up", side_effect=ZeroDivisionError("a bug")):
            models = self.models()
            for _ in range(2):
                self.assertEqual(models.request("ssd.tflite")["error"], "ssd.tflite: a bug")

    def test_memory_is_held_for_no_model_that_is_too_large(self):
        model = ssd_model.Model()
        small, large = model.tensor("image", [1, 9, 9, 3]), model.tensor("middle", [1, 60000, 60000, 3])
        middle, image = model.bytes([small], [large]), model.bytes([large], [small])
        self.assertEqual([_model_file.largest(one) for one in (middle, image)], [(243, 10_800_000_000), (10_800_000_000, 10_800_000_000)])
        with unittest.mock.patch.object(frigate.skillet, "Session", side_effect=AssertionError("it is loaded")):
            for data, said in ((middle, "a tensor of 10800000000 numbers; 268435456 is the most"), (image, "an input of 10800000000 numbers is more than a frame may have, 20 MiB")):
                self.assertRegex(self.models().save("net.tflite", data)["error"], f"^net.tflite: {said}")
                (self.folder / "there.tflite").write_bytes(data)
                self.assertRegex(self.models().request("there.tflite")["error"], f"^there.tflite: {said}")
        for wrong in (b"", middle[:40], b"\xff\xff\xff\xffTFL3" + bytes(40), middle[:8] + b"\xff" * 300):
            self.assertEqual(_model_file.largest(wrong), (0, 0))
        with unittest.mock.patch.object(_model_file, "FILE_BYTES_MAX", 100):
            self.assertEqual(self.models().request("there.tflite")["error"], "there.tflite: longer than 0 MiB")

    def test_a_session_whose_run_failed_is_used_again(self):
        detector, session = frigate.Detector.__new__(frigate.Detector), unittest.mock.Mock()
        detector._sessions, detector._cpu = queue.SimpleQueue(), None
        detector._sessions.put(session)
        session.run.side_effect = [skillet.DeviceFault("lost"), ["outputs"]]
        with self.assertRaises(skillet.DeviceFault):
            detector._run(None)
        self.assertEqual(detector._sessions.qsize(), 1)
        self.assertEqual(detector._run(None), ["outputs"])


class Arguments(unittest.TestCase):
    def test_what_is_no_endpoint_is_told_so_before_who_reaches_it(self):
        for endpoint, said in (("foo", "--zmq foo: an endpoint is ipc://FILE or tcp://HOST:PORT"), ("tcp://a", "--zmq tcp://a: an endpoint is"), ("ipc://", "an endpoint is"),
                               ("udp://a:1", "an endpoint is"), ("tcp://a:1", "tcp://a:1 is reached from other machines")):
            with contextlib.redirect_stderr(io.StringIO()) as stderr, self.assertRaises(SystemExit):
                frigate.parsed(["--models", "/", "--zmq", endpoint])
            self.assertIn(said, stderr.getvalue())
        self.assertTrue(_zmtp.is_endpoint("tcp://[::1]:5555") and _zmtp.is_endpoint("ipc:///tmp/x"))


if __name__ == "__main__":
    unittest.main()
