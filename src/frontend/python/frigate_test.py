#!/usr/bin/env python3
"""Tests `skillet serve` with clients of Frigate's zmq protocol: answers, models, invalid messages, how it ends.

usage: frigate_test.py C_LIBRARY SKILLET SOURCE_DIR VENV     (VENV: made at the first run, with NumPy and pyzmq)

Without a network the test is skipped, with a line.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__" and "--inside" not in sys.argv:
    library, command, source, venv = sys.argv[1:5]
    sys.path.insert(0, f"{source}/tests/integration")
    from environment import virtual_environment
    python = virtual_environment(Path(venv), [["numpy", "pyzmq"]])[0]
    if not python:
        print("frigate_test: skipped, NumPy and pyzmq cannot be installed")
        sys.exit(77)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLET_", "PYTHON"))}
    environment.update(SKILLET_C_LIBRARY=library, PYTHONPATH=str(HERE), SKILLET_LOG="error", SKILLET_PARTITION="all")
    os.execve(python, [str(python), __file__, "--inside", command, source], environment)

SOURCE, COMMAND = Path(sys.argv.pop()), sys.argv.pop()
sys.argv.remove("--inside")

import numpy as np  # noqa: E402
import zmq  # noqa: E402

import skillet  # noqa: E402
from skillet import _heads, _zmtp, frigate  # noqa: E402

SIZE = 96  # of the SSD model


def model_and_picture(folder):
    subprocess.run([sys.executable, SOURCE / "tests/models/ssd_model.py", folder / "ssd.tflite", folder / "squares.bmp"], check=True)
    data = (folder / "squares.bmp").read_bytes()
    at = int.from_bytes(data[10:14], "little")
    width, height = (int.from_bytes(data[i:i + 4], "little") for i in (18, 22))
    rows = np.frombuffer(data[at:], np.uint8).reshape(height, width, 3)[::-1, :, ::-1]  # rows from below, blue first
    return np.ascontiguousarray(rows[::height // SIZE, ::width // SIZE])[None]


GREETING = _zmtp.GREETING + _zmtp.frame(b"\x05READY\x0bSocket-Type\0\0\0\x03REQ", _zmtp.COMMAND)  # of a client


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.holder.name)
        cls.models = cls.folder / "models"
        cls.models.mkdir()
        cls.frame = model_and_picture(cls.models)
        (cls.models / "broken.tflite").write_bytes(b"nonsense")
        (cls.folder / "outside.tflite").write_bytes((cls.models / "ssd.tflite").read_bytes())
        cls.path = cls.folder / "socket"
        cls.server = cls.start("--workers", "2")
        cls.context = zmq.Context()

    @classmethod
    def tearDownClass(cls):
        cls.context.destroy(linger=0)
        cls.server.send_signal(signal.SIGTERM)
        try:
            assert cls.server.wait(20) == 0, "SIGTERM ends it in order"
        finally:
            cls.server.kill()
            cls.server.stderr.close()
            cls.holder.cleanup()

    @classmethod
    def start(cls, *options, path=None, preexec_fn=None, before=(), **environment):
        command = [*before, sys.executable, "-m", "skillet", "serve", "--models", cls.models, "--zmq", f"ipc://{path or cls.path}",
                   "--device", "sim:a311d", *options]
        server = subprocess.Popen([str(one) for one in command], stderr=subprocess.PIPE, text=True, preexec_fn=preexec_fn,
                                  env=os.environ | environment)
        line = server.stderr.readline()
        assert "waits at" in line, line
        threading.Thread(target=lambda: [None for _ in server.stderr], daemon=True).start()
        return server

    def client(self, path=None, endpoint=None):
        one = self.context.socket(zmq.REQ)
        one.setsockopt(zmq.RCVTIMEO, 30000)
        one.connect(endpoint or f"ipc://{path or self.path}")
        self.addCleanup(one.close)
        return one

    def ask(self, client, header, *parts):
        client.send_multipart([header if isinstance(header, bytes) else json.dumps(header).encode(), *parts])
        answer = client.recv_multipart()
        return json.loads(answer[0]), answer[1:]

    def ready(self, name="ssd.tflite"):
        client = self.client()
        self.assertEqual(self.ask(client, {"model_request": True, "model_name": name})[0],
                         {"model_available": True, "model_loaded": True})
        return client

    def detections(self, client, frame):
        header, parts = self.ask(client, {"shape": list(frame.shape), "dtype": str(frame.dtype), "model_type": "ssd"}, frame.tobytes())
        self.assertEqual(header, {"shape": [20, 6], "dtype": "float32"})
        self.assertEqual(len(parts[0]), 480)
        return np.frombuffer(parts[0], np.float32).reshape(20, 6)

    def test_rows_are_those_of_the_model(self):
        rows = self.detections(self.ready(), self.frame)
        session = skillet.Session(self.models / "ssd.tflite", "cpu")
        boxes, classes, scores, count = session.run(self.frame)
        found = [(c, s, *b) for c, s, b in zip(classes[0], scores[0], boxes[0]) if s >= 0.4][: int(count.item())]
        self.assertGreater(len(found), 1)
        np.testing.assert_allclose(rows[: len(found)], np.clip(np.asarray(found, np.float32), 0, 20), atol=0.02)
        self.assertFalse(rows[len(found):].any())
        self.assertEqual(sorted(rows[:, 1], reverse=True), list(rows[:, 1]))

    def test_another_chip_with_three_cores(self):
        path = self.folder / "cores"
        server = self.start("--device", "sim:rk3588", "--option", "cores=1", "--workers", "3", path=path)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.kill)
        expected, clients = self.detections(self.ready(), self.frame), [self.client(path) for _ in range(3)]
        for one in clients:
            self.ask(one, {"model_request": True, "model_name": "ssd.tflite"})
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for rows in pool.map(lambda one: self.detections(one, self.frame), clients):
                np.testing.assert_allclose(rows, expected, atol=0.05)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(20), 0)

    def test_several_cameras_get_their_own_answers(self):
        frames = [self.frame, np.zeros_like(self.frame), np.ascontiguousarray(self.frame[:, ::-1]), np.full_like(self.frame, 200)]
        alone = [self.detections(self.ready(), frame).copy() for frame in frames]
        self.assertFalse(np.array_equal(alone[0], alone[2]))
        wrong = []

        def camera(k):
            client = self.ready()
            for _ in range(15):
                if not np.array_equal(self.detections(client, frames[k]), alone[k]):
                    wrong.append(k)

        threads = [threading.Thread(target=camera, args=[k]) for k in range(len(frames))]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(wrong, [])

    def test_models_are_those_of_the_folder(self):
        for name, available, more in (("nothing.tflite", False, {}), ("broken.tflite", True, {"error": "broken.tflite: not a TensorFlow Lite model (no TFL3 mark)"})):
            for _ in range(2):
                answer, _ = self.ask(self.client(), {"model_request": True, "model_name": name})
                self.assertEqual(answer, {"model_available": available, "model_loaded": False, **more})
        (self.models / "link.tflite").symlink_to(self.folder / "outside.tflite")
        (self.models / "inside.tflite").symlink_to("ssd.tflite")
        self.ready("inside.tflite")
        for name in ("link.tflite", ".", ".ssd.tflite", "\ud800", "../outside.tflite", "/etc/passwd", "..", "", "a\0b", str(self.folder / "outside.tflite"), 7, None,
                     ["ssd.tflite"]):
            with self.subTest(name):
                self.assertIn("error", self.ask(self.client(), {"model_request": True, "model_name": name})[0])
        data = (self.models / "ssd.tflite").read_bytes()
        answer, _ = self.ask(self.client(), {"model_data": True, "model_name": "new.tflite"}, data)
        self.assertFalse(answer["model_saved"])
        self.assertFalse((self.models / "new.tflite").exists())

    def test_a_model_that_was_mended_is_loaded(self):
        path = self.models / "mended.tflite"
        self.addCleanup(path.unlink)
        path.write_bytes(b"broken")
        asked = {"model_request": True, "model_name": path.name}
        for _ in range(2):
            self.assertFalse(self.ask(self.client(), asked)[0]["model_loaded"])
        path.write_bytes((self.models / "ssd.tflite").read_bytes())
        self.assertTrue(self.ask(self.client(), asked)[0]["model_loaded"])

    def test_a_model_that_was_replaced_is_loaded_anew_and_half_a_file_is_not(self):
        path = self.folder / "replaced.tflite"
        data = (self.models / "ssd.tflite").read_bytes()
        path.write_bytes(data)
        models = frigate.Models(self.folder, argparse.Namespace(device="cpu", option=[], task="auto", threshold=0.4, workers=1))
        first = models.load(path.name)
        self.assertIsNotNone(first)
        self.assertIs(models.load(path.name), first)
        path.write_bytes(data[: len(data) // 2])
        self.assertIs(models.load(path.name), first)
        path.write_bytes(data + bytes(4))  # another file
        second = models.load(path.name)
        self.assertTrue(second is not None and second is not first)
        self.assertIs(models.loaded(path.name), second)

    def test_more_connections_than_a_process_may_have_files_at_first(self):
        path = self.folder / "crowded"
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        server = self.start(path=path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard)))
        self.addCleanup(server.kill)
        client = self.client(path)
        self.ask(client, {"model_request": True, "model_name": "ssd.tflite"})
        held = []
        for _ in range(min(10000, hard - 500)):
            held.append(socket.socket(socket.AF_UNIX))
            self.addCleanup(held[-1].close)
            held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 20, 0))
            held[-1].connect(str(path))
        self.assertTrue(self.detections(client, self.frame).any())
        for one in held:
            one.close()
        self.assertEqual(self.ask(self.client(path), {"model_request": True, "model_name": "ssd.tflite"})[0],
                         {"model_available": True, "model_loaded": True})
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(20), 0)
        server.stderr.close()

    def test_two_servers_that_start_at_once(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for endpoint in f"ipc://{self.folder}/two", f"tcp://127.0.0.1:{port}":
            with self.subTest(endpoint):
                self.check_two_servers(endpoint)
        self.assertFalse((self.folder / "two").exists())

    def check_two_servers(self, endpoint):
        command = [sys.executable, "-m", "skillet", "serve", "--models", str(self.models), "--zmq", endpoint, "--device", "cpu"]
        servers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        for one in servers:
            self.addCleanup(one.stderr.close)
            self.addCleanup(one.kill)
        said = [one.stderr.readline() for one in servers]
        self.assertEqual(sorted(f"another server waits at {endpoint}" in line for line in said), [False, True], said)
        self.ask(self.client(endpoint=endpoint), {"model_request": True, "model_name": "ssd.tflite"})
        waits, other = sorted(servers, key=lambda one: "another server" in said[servers.index(one)])
        self.assertEqual(other.wait(20), 2)
        waits.send_signal(signal.SIGTERM)
        self.assertEqual(waits.wait(20), 0)

    def most_mib(self):
        return int(next(line for line in Path(f"/proc/{self.server.pid}/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1]) >> 10

    def test_a_client_that_does_not_wait_for_answers_takes_little_memory(self):
        client, before = self.ready(), self.most_mib()
        flood = self.context.socket(zmq.DEALER)
        flood.setsockopt(zmq.SNDTIMEO, 100)
        flood.connect(f"ipc://{self.path}")
        for _ in range(40):
            with contextlib.suppress(zmq.Again):
                flood.send_multipart([b"", b'{"shape": [1, 96, 96, 3], "dtype": "uint8"}', bytes(19 << 20)], copy=False)
        self.assertTrue(self.detections(client, self.frame).any())
        flood.close(linger=0)
        self.assertLess(self.most_mib() - before, 250)

    def test_messages_of_many_parts_end_their_connection(self):
        client, before = self.ready(), self.most_mib()
        for part, count in ((b"", 200_000), (bytes(1 << 20), 300)):
            for kind in (zmq.DEALER, zmq.REQ):
                flood = self.context.socket(kind)
                flood.setsockopt(zmq.SNDTIMEO, 2000)
                flood.connect(f"ipc://{self.path}")
                with contextlib.suppress(zmq.Again):
                    flood.send_multipart([part] * count, copy=False)
                flood.setsockopt(zmq.RCVTIMEO, 200)
                with self.assertRaises(zmq.Again):
                    flood.recv()
                flood.close(linger=0)
        self.assertTrue(self.detections(client, self.frame).any())
        self.assertLess(self.most_mib() - before, 60)

    def test_clients_that_only_ping_hold_up_nobody(self):
        pings = _zmtp.frame(b"\x04PING\0\0", _zmtp.COMMAND) * 1000
        raw = socket.socket(socket.AF_UNIX)
        self.addCleanup(raw.close)
        raw.connect(str(self.path))
        raw.settimeout(10)
        raw.sendall(GREETING)
        for _ in range(25):  # the overhead of 25,000 requests exceeds what all requests may use
            raw.sendall(pings)
            left = 1000 * 7
            while left > 0:
                left -= len(raw.recv(left))
        self.assertTrue(self.detections(self.ready(), self.frame).any())
        deaf = socket.socket(socket.AF_UNIX)
        self.addCleanup(deaf.close)
        deaf.connect(str(self.path))
        deaf.settimeout(3)
        deaf.sendall(GREETING)
        with self.assertRaises(OSError):  # it reads no PONG: the server stops reading, then disconnects
            for _ in range(10_000):
                deaf.sendall(pings)

    def test_half_a_message_holds_up_nobody_and_ends(self):
        for half in (b"", GREETING[:30], GREETING[:70], GREETING, GREETING + b"\x01\0\x03", GREETING + b"\x01\0\x02" + (1 << 24).to_bytes(8, "big") + b"half"):
            raw = socket.socket(socket.AF_UNIX)
            self.addCleanup(raw.close)
            raw.connect(str(self.path))
            raw.sendall(half)
        self.assertTrue(self.detections(self.ready(), self.frame).any())
        raw.settimeout(30)  # the last client, which has half a frame
        while raw.recv(4096):
            pass

    def test_clients_that_announce_or_hold_bytes_hold_up_nobody(self):
        """Each claims all bytes that requests may use, for the longest time of a message. One sends slowly, one sends nothing."""
        client = self.ready()
        for sent in (0, _zmtp.FIRST_BYTES + 100):
            for _ in range(12):
                raw = socket.socket(socket.AF_UNIX)
                self.addCleanup(raw.close)
                raw.connect(str(self.path))
                raw.settimeout(10)
                raw.sendall(GREETING + b"\x01\0\x02" + (19 << 20).to_bytes(8, "big") + bytes(sent))
            for _ in range(3):
                begin = time.monotonic()
                self.assertTrue(self.detections(client, self.frame).any())
                self.assertLess(time.monotonic() - begin, 5, "a message may take 10 s")

    def test_sigterm_with_silent_connections(self):
        path = self.folder / "silent"
        server = self.start(path=path)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.kill)
        for half in (b"", GREETING[:30], GREETING, GREETING + b"\x01\0\x03"):
            raw = socket.socket(socket.AF_UNIX)
            self.addCleanup(raw.close)
            raw.connect(str(path))
            raw.sendall(half)
        self.assertEqual(self.ask(self.client(path), {"model_request": True, "model_name": "nothing.tflite"})[0]["model_loaded"], False)
        begin = time.monotonic()
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(20), 0)
        self.assertLess(time.monotonic() - begin, _zmtp.END_S, "nobody has a request")

    def test_an_npu_is_waited_for_as_long_as_the_cpu_can_then_answer_in_time(self):
        for usual_ms, cpu_ms, expected_ms in ((5, 10, 100), (5, 120, 60), (5, 170, 100), (50, 100, 150), (5, 500, 100)):
            self.assertAlmostEqual(1000 * frigate.patience(usual_ms / 1000, cpu_ms / 1000), expected_ms)

    def test_an_npu_that_hangs_costs_no_camera_its_answers(self):
        for chip in ("a311d", "rk3588"):
            with self.subTest(chip):
                self.check_that_hangs_cost_nothing(chip, self.folder / f"hangs-{chip}")

    def check_that_hangs_cost_nothing(self, chip, path):
        server = subprocess.Popen([COMMAND, "virtual", "--chip", chip, "--fail", "submit:60-*:hang", "--", sys.executable, "-m", "skillet", "serve", "--models", self.models,
                                   "--zmq", f"ipc://{path}", "--device", "npu", "--option", "unproven=take", "--workers", "2"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.kill)
        said = []
        reading = threading.Thread(target=lambda: said.extend(server.stderr), daemon=True)
        reading.start()
        while not path.exists():
            self.assertIsNone(server.poll(), said)
            time.sleep(0.05)
        expected, late = self.detections(self.ready(), self.frame), []

        def camera():
            client = self.client(path)
            self.assertTrue(self.ask(client, {"model_request": True, "model_name": "ssd.tflite"})[0]["model_loaded"])
            for _ in range(40):
                begin = time.monotonic()
                np.testing.assert_allclose(self.detections(client, self.frame), expected, atol=0.05)
                late.append(time.monotonic() - begin)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(camera) for _ in range(2)]:
                done.result()
        self.assertLess(max(late), 5, "the kernel driver's patience, and the session's, are 10 s")
        print(f"{chip}, which hangs: the slowest answer came after {max(late):.3f} s, half of them within {sorted(late)[40]:.3f} s", file=sys.stderr)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(20), 0)
        reading.join(20)
        server.stderr.close()
        self.assertTrue(any("so the CPU answers" in line for line in said), said)

    def test_sigterm_under_load_with_a_trace_on_a_full_disk(self):
        for device, *before in (["sim:a311d"], ["sim:rk3588"], ["npu", COMMAND, "virtual", "--chip", "a311d", "--"]):
            with self.subTest(device):
                self.sigterm_under_load("--device", device, before=before, SKILLET_TRACE="/dev/full")

    def sigterm_under_load(self, *options, **more):
        path = self.folder / "loaded"
        server = self.start(*options, path=path, **more)
        self.addCleanup(server.kill)
        client, wrong = self.client(path), []
        self.ask(client, {"model_request": True, "model_name": "ssd.tflite"})
        expected = self.detections(client, self.frame)
        self.assertTrue(expected.any())

        def camera():
            client = self.context.socket(zmq.REQ)
            client.setsockopt(zmq.RCVTIMEO, 3000)
            client.connect(f"ipc://{path}")
            try:
                self.ask(client, {"model_request": True, "model_name": "ssd.tflite"})
                while True:
                    if not np.array_equal(self.detections(client, self.frame), expected):
                        wrong.append("another answer")
            except zmq.Again:
                pass  # the server has ended
            finally:
                client.close(linger=0)

        cameras = [threading.Thread(target=camera) for _ in range(8)]
        for one in cameras:
            one.start()
        time.sleep(2)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(20), 0)
        for one in cameras:
            one.join()
        self.assertEqual(wrong, [])
        server.stderr.close()

    def test_models_are_taken_where_that_is_allowed(self):
        path = self.folder / "taking"
        server = self.start("--accept-models", path=path)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.kill)
        data = (self.models / "ssd.tflite").read_bytes()
        for name, contents, saved in (("bad.tflite", data[: len(data) // 2], False), ("ssd.tflite", data, False), ("sent.tflite", data, True)):
            answer, _ = self.ask(self.client(path), {"model_data": True, "model_name": name}, contents)
            self.assertEqual((answer["model_saved"], answer["model_loaded"]), (saved, saved), name)
        self.assertEqual((self.models / "sent.tflite").read_bytes(), data)
        self.assertEqual(sorted(one.name for one in self.models.iterdir() if one.name.startswith(".")), [])
        (self.models / "sent.tflite").unlink()
        server.send_signal(signal.SIGINT)
        self.assertEqual(server.wait(20), 0)

    def test_what_is_no_message_is_answered(self):
        for header in (b"", b"\xff\xfe", b"[]", b"7", b'"x"', b"{", b"{}", b"[" * 100000, b'{"model_request": true}', b'{"model_name": "ssd.tflite"}'):
            with self.subTest(header[:20]):
                self.assertIn("error", self.ask(self.client(), header)[0])
        client = self.ready()
        good = {"shape": [1, SIZE, SIZE, 3], "dtype": "uint8"}
        for header, parts in (
                (good, []), (good, [b""]), (good, [self.frame.tobytes()[:-1]]), (good, [self.frame.tobytes(), b"x"]),
                ({**good, "dtype": "int64"}, [self.frame.tobytes()]), ({**good, "dtype": ["uint8"]}, [self.frame.tobytes()]),
                ({**good, "shape": [1, 3, SIZE, SIZE]}, [self.frame.tobytes()]), ({**good, "shape": "x"}, [b""]),
                ({**good, "dtype": "float32"}, [np.full(self.frame.shape, 255, np.float32).tobytes()]), ({**good, "shape": [1, 1 << 40, 1 << 40, 3]}, [b""]), ({**good, "shape": [1, -1, SIZE, 3]}, [b""])):
            with self.subTest(str(header)):
                answer, rest = self.ask(client, header, *parts)
                self.assertEqual((answer["shape"], rest), ([20, 6], [bytes(480)]))
        self.assertTrue(self.detections(client, self.frame).any())

    def test_bytes_that_are_not_of_the_protocol_harm_nobody(self):
        for data in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(5000), b"\xff" + bytes(8) + b"\x7f"):
            with socket.socket(socket.AF_UNIX) as raw:
                raw.connect(str(self.path))
                raw.sendall(data)
        dealer = self.context.socket(zmq.DEALER)
        self.addCleanup(dealer.close)
        dealer.connect(f"ipc://{self.path}")
        dealer.send_multipart([b"no empty part before it"])
        self.assertTrue(self.detections(self.ready(), self.frame).any())

    def test_what_no_model_can_be_loaded_for_ends_it_before_it_waits(self):
        for words, variables, said in ((["--device", "nosuch"], {}, "device 'nosuch' is not one of"), (["--device", "cpu", "--option", "bad=1"], {}, "there is no option 'bad'"),
                                       (["--device", "cpu", "--option", "cores=x"], {}, "option cores"), (["--option", "device=cpu"], {}, "device"),
                                       (["--device", "sim:nosuch"], {}, "nosuch"), ([], {"SKILLET_REQUIRE_NPU": "1"}, "no NPU here"),
                                       ([], {"SKILLET_REQUIRE_NPU": "surely"}, "no NPU here")):
            if variables and any(one.usable and not one.simulated and one.device != "cpu" for one in skillet.devices()):
                continue  # this machine has an NPU
            with self.subTest(words=words, variables=variables):
                done = subprocess.run([sys.executable, "-m", "skillet", "serve", "--models", str(self.models), "--zmq", f"ipc://{self.folder}/never", *words],
                                      capture_output=True, text=True, timeout=20, env={**os.environ, **variables})
                self.assertEqual((done.returncode, said in done.stderr, "waits at" in done.stderr), (2, True, False), done.stderr)
        shown = subprocess.run([sys.executable, "-m", "skillet", "serve", "--help"], capture_output=True, text=True, check=True).stdout
        self.assertIn("Exit codes: 0 ", shown)

    def test_a_model_whose_outputs_are_not_those_of_the_task(self):
        for task in ("yolov5", "yolov8", "yolonas", "rfdetr"):
            protocol, client = frigate.Protocol(frigate.Models(self.models, argparse.Namespace(device="cpu", option=[], task=task, threshold=0.4, workers=1))), _zmtp.Client()
            for _ in range(2):
                answer = json.loads(protocol.answer(client, [b'{"model_request": true, "model_name": "ssd.tflite"}'])[0])
                self.assertEqual((answer["model_available"], answer["model_loaded"]), (True, False))
                self.assertRegex(answer["error"], f"^ssd.tflite: outputs of shapes .* are not those of task {task} ")
                header, rows = protocol.answer(client, [json.dumps({"shape": [1, SIZE, SIZE, 3], "dtype": "uint8"}).encode(), self.frame.tobytes()])
                self.assertEqual((json.loads(header)["error"], rows), (answer["error"], bytes(480)))

    def test_the_socket_is_the_users_alone_and_one_servers(self):
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        ours = self.folder / "ours"
        ours.write_text("precious")
        for endpoint, code, message in ((f"ipc://{ours}", 2, "is no socket"), ("ipc://@name", 2, "every user"),
                                        (f"ipc://{self.path}", 2, "another server"), ("ipc:///nowhere/at/all", 2, "/nowhere/at/all"), ("tcp://*:5599", 2, "--listen"),
                                        ("tcp://0.0.0.0:5599", 2, "--listen"), ("tcp://127.0.0.1:port", 2, "tcp://HOST:PORT"),
                                        ("ipc://", 2, "ipc://FILE"), ("tcp://127.0.0.1:99999", 2, "port must be 0-65535"), ("tcp://nowhere.invalid:5599", 2, "--listen"), ("foo", 2, "--zmq foo: an endpoint is ipc://FILE")):
            with self.subTest(endpoint):
                done = subprocess.run([sys.executable, "-m", "skillet", "serve", "--models", str(self.models), "--zmq", endpoint],
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(message, done.stderr)
        self.assertEqual(ours.read_text(), "precious")
        self.assertTrue(self.detections(self.ready(), self.frame).any())


class Heads(unittest.TestCase):
    # Two objects, one of them twice: x, y, w, h, then scores of two classes.
    ROWS = [(0.5, 0.5, 0.2, 0.4, 0.9, 0.1), (0.51, 0.5, 0.2, 0.4, 0.8, 0.1), (0.2, 0.3, 0.1, 0.1, 0.1, 0.7), (0.9, 0.9, 0.1, 0.1, 0.2, 0.3)]
    EXPECTED = [(0, 0.9, 0.3, 0.4, 0.7, 0.6), (1, 0.7, 0.25, 0.15, 0.35, 0.25)]

    def check(self, output, task, size=(100, 200)):
        found = _heads.find_yolo(np.asarray(output, np.float32)[None], task, size, 0.4)
        rows = np.frombuffer(_heads.answer_rows(found, 0.4), np.float32).reshape(20, 6)
        np.testing.assert_allclose(rows[:2], self.EXPECTED, atol=1e-6)
        self.assertFalse(rows[2:].any())

    def test_yolo(self):
        rows = np.asarray(self.ROWS)
        many = np.concatenate([rows, np.zeros((20, 6))])
        self.check(many.T, "yolov8")
        self.check(many * [200, 100, 200, 100, 1, 1], "yolov8")  # pixels of an image of 100 rows, 200 columns
        self.check(np.concatenate([many[:, :4], np.ones((24, 1)), many[:, 4:]], axis=1), "yolov5")
        sure = np.concatenate([many[:, :4], np.full((24, 1), 0.5), many[:, 4:]], axis=1)
        self.assertEqual(len(_heads.find_yolo(np.asarray(sure, np.float32)[None], "yolov5", (1, 1), 0.5).scores), 0)

    def test_boxes_without_area_are_left_out(self):
        heights = [-0.2, 0.0, 0.2]  # the two best have no height: they would suppress nothing, and use up rows
        rows = np.asarray([[0.5, 0.5, 0.2, height, 1, 0.9 - 0.1 * i] for i, height in enumerate(heights)], np.float32)
        found = _heads.find_yolo(rows[None], "yolov5", (1, 1), 0.4)
        self.assertEqual(found.scores.tolist(), [np.float32(0.7)])
        box = np.asarray([[0.4, 0.4, 0.4, 0.6], [0.4, 0.4, 0.6, 0.6]], np.float32)
        answer = np.frombuffer(_heads.answer_rows(_heads.Found(box, np.asarray([0.9, 0.8]), np.asarray([1, 2])), 0.4), np.float32).reshape(20, 6)
        np.testing.assert_allclose(answer[:2], [[2, 0.8, 0.4, 0.4, 0.6, 0.6], np.zeros(6)], rtol=1e-6)

    def test_boxes_of_other_classes_hide_none(self):
        rows = np.asarray([[0.5, 0.5, 0.2, 0.2, 1, 0.9, 0], [0.5, 0.5, 0.2, 0.2, 1, 0, 0.8], [0.5, 0.5, 0.2, 0.21, 1, 0, 0.7]], np.float32)
        found = _heads.find_yolo(rows[None], "yolov5", (1, 1), 0.4)
        self.assertEqual(list(zip(found.classes.tolist(), found.scores.tolist())), [(0, np.float32(0.9)), (1, np.float32(0.8))])

    def test_yolox(self):
        """A frame of 96 rows and 192 columns: cells of 8, 16 and 32 pixels, from above, row by row. The client's model_type rules out YOLOv5."""
        size, rows = (96, 192), np.zeros((288 + 72 + 18, 7), np.float32)
        rows[:, 4] = 1
        for row, (x, y, w, h, *scores), side, at in zip((3 * 24 + 5, 288 + 2 * 12 + 4, 288 + 72 + 7), self.ROWS, (8, 16, 32), ((5, 3), (4, 2), (1, 1))):
            place = np.asarray([x, y]) * [192, 96] / side - at
            rows[row] = [*place, *np.log(np.asarray([w, h]) * [192, 96] / side), 1, *scores]
        self.check(rows, "yolox", size)
        detector = frigate.Detector.__new__(frigate.Detector)
        detector.input, detector._task, detector._threshold = argparse.Namespace(shape=(1, *size, 3)), "yolov5", 0.4
        for model_type, task in (("yolox", "yolox"), ("yolo-generic", "yolov5")):
            found = detector._found([rows[None]], _heads.head_of("yolov5", model_type))
            np.testing.assert_array_equal(found.boxes, _heads.find_yolo(rows[None], task, size, 0.4).boxes)

    def test_boxes_and_classes_apart(self):
        rows = np.asarray(self.ROWS, np.float32)
        x, y, w, h = rows[:, :4].T
        corners = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=1) * [200, 100, 200, 100]
        logits = np.log(rows[:, 4:] / (1 - rows[:, 4:]))
        for task, outputs, kept in (("yolonas", (corners, rows[:, 4:]), slice(None)), ("rfdetr", (logits, rows[:, :4]), [0, 2, 3])):
            outputs = [one[kept][None].astype(np.float32) for one in outputs]
            found = _heads.find_pairs(outputs, 0 if task == "yolonas" else 1, task, (100, 200), 0.4)
            answer = np.frombuffer(_heads.answer_rows(found, 0.4), np.float32).reshape(20, 6)
            np.testing.assert_allclose(answer[:2], self.EXPECTED, atol=1e-6)
            self.assertFalse(answer[2:].any(), task)

    def test_no_detections(self):
        found = _heads.find_yolo(np.zeros((1, 24, 6), np.float32), "yolov8", (1, 1), 0.4)
        self.assertEqual(_heads.answer_rows(found, 0.4), bytes(480))


if __name__ == "__main__":
    unittest.main()
