#!/usr/bin/env python3
"""Tests skillet.mlserver in MLServer with Triton's client over HTTP and gRPC: results, 8 clients at once, bad requests, an NPU that fails.

usage: mlserver_test.py C_LIBRARY SKILLET SOURCE_DIR VENV     (VENV: made at the first run, some 300 MB; `./x hosts` calls this)
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__" and "--inside" not in sys.argv:
    library, command, source, venv = sys.argv[1:5]
    from environment import virtual_environment
    python, found = virtual_environment(Path(venv), [["mlserver==1.7.1", "tritonclient[http,grpc]==2.73.0", "numpy"]])
    if not found:
        sys.exit(77)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLET_", "PYTHON"))}
    environment.update(SKILLET_C_LIBRARY=library, PYTHONPATH=f"{source}/src/frontend/python", SKILLET_LOG="error")
    os.execve(python, [str(python), __file__, "--inside", command, source], environment)

COMMAND, SOURCE = sys.argv[-2], Path(sys.argv[-1])
del sys.argv[-3:]

import numpy as np  # noqa: E402
import tritonclient.grpc  # noqa: E402
import tritonclient.http  # noqa: E402

import skillet  # noqa: E402

MODEL = SOURCE / "models/digits.tflite"
CLIENTS, REQUESTS = 8, 200
# Loads a model with four sessions. Its file is replaced as soon as one of them is loaded.
SWAPPED = """
import asyncio, sys, threading
from pathlib import Path
import skillet
from mlserver import ModelSettings
from skillet.mlserver import SkilletModel

net, turn = Path(sys.argv[1]), threading.Lock()

class Swapped(skillet.Session):
    def __init__(self, *args, **options):
        with turn:
            super().__init__(*args, **options)
            net.with_suffix(".new").write_bytes(b"another one")
            net.with_suffix(".new").replace(net)

skillet.Session = Swapped
model = SkilletModel(ModelSettings(name="swapped", implementation=SkilletModel, parameters=dict(uri=str(net), extra=dict(device="cpu", sessions=4))))
asyncio.run(model.load())
model._close()
print("loaded")
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def in_threads(function, each):
    """Runs FUNCTION in threads. Raises the exception of any of them."""
    with ThreadPoolExecutor(len(each)) as pool:
        list(pool.map(function, each))


class Server:
    def __init__(self, folder, before=(), **extra):
        self.http, self.grpc, self.metrics = free_ports(3)
        (folder / "settings.json").write_text(json.dumps(dict(
            host="127.0.0.1", http_port=self.http, grpc_port=self.grpc, metrics_port=self.metrics, parallel_workers=0, debug=False,
            load_models_at_startup=False)))
        other = {**extra, "device": "sim:rk3588"}
        for name, uri, more in (("digits", str(MODEL), extra), ("other", str(MODEL), other), ("folder", str(folder / "replaced"), extra),
                                ("empty", str(folder), extra), ("broken", str(folder / "settings.json"), {}), ("odd", str(MODEL), {"colour": 1})):
            (folder / name).mkdir()
            (folder / name / "model-settings.json").write_text(json.dumps(dict(
                name=name, implementation="skillet.mlserver.SkilletModel", max_batch_size=8, max_batch_time=0.005, parameters=dict(uri=uri, extra=more))))
        program = Path(sys.executable).with_name("mlserver")
        self.log = (folder / "log").open("w")
        (folder / "replaced").mkdir()
        (folder / "replaced/net.tflite").write_bytes(MODEL.read_bytes())
        (folder / "replaced/model-settings.json").write_text(json.dumps(dict(
            name="replaced", implementation="skillet.mlserver.SkilletModel", parameters=dict(uri="./net.tflite", extra=extra))))
        self.process = subprocess.Popen([*before, program, "start", folder], stdout=self.log, stderr=subprocess.STDOUT,
                                        env={**os.environ, "SKILLET_PARTITION": "all"})
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def wait(self):
        client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{self.http}")
        for _ in range(600):
            try:
                if client.is_server_live():
                    return client.load_model("digits")
            except (OSError, ConnectionError):
                pass
            assert self.process.poll() is None, Path(self.log.name).read_text()
            time.sleep(0.1)
        raise AssertionError(Path(self.log.name).read_text())

    def ask(self, picture, name="image", kind="http", type_="UINT8", model="digits"):
        module = getattr(tritonclient, kind)
        client = module.InferenceServerClient(f"127.0.0.1:{getattr(self, kind)}")
        wanted = None
        given = module.InferInput(name, picture.shape, type_)
        if kind == "http":  # as JSON
            given.set_data_from_numpy(picture, binary_data=False)
            wanted = [module.InferRequestedOutput("probabilities", binary_data=False)]
        else:
            given.set_data_from_numpy(picture)
        return client.infer(model, [given], outputs=wanted).as_numpy("probabilities")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.server = Server(Path(cls.holder.name), device="sim:a311d", sessions=2, options={"partition": "all"})
        cls.session = skillet.Session(MODEL, "sim:a311d", partition="all")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.holder.cleanup()

    @staticmethod
    def pictures(seed, count):
        return np.random.default_rng(seed).integers(0, 256, (count, 28, 28, 1), np.uint8)

    def expected(self, pictures):
        return np.concatenate([self.session.run(pictures[i:i + 1])[0] for i in range(len(pictures))])

    def test_results_are_those_of_a_session(self):
        for kind in ("http", "grpc"):
            for count in (1, 3):
                with self.subTest(kind, count=count):
                    pictures = self.pictures(count, count)
                    np.testing.assert_array_equal(self.server.ask(pictures, kind=kind), self.expected(pictures))

    def test_a_folder_stands_for_the_model_in_it(self):
        tritonclient.http.InferenceServerClient(f"127.0.0.1:{self.server.http}").load_model("folder")
        pictures = self.pictures(12, 1)
        np.testing.assert_array_equal(self.server.ask(pictures, model="folder"), self.expected(pictures))

    def test_two_models_on_two_npus(self):
        tritonclient.http.InferenceServerClient(f"127.0.0.1:{self.server.http}").load_model("other")
        pictures = self.pictures(9, 4)
        with skillet.Session(MODEL, "sim:rk3588", partition="all") as session:
            theirs = np.concatenate([session.run(one[None])[0] for one in pictures])
        for _ in range(3):
            np.testing.assert_array_equal(self.server.ask(pictures, model="other"), theirs)
            np.testing.assert_array_equal(self.server.ask(pictures), self.expected(pictures))

    def test_many_clients_get_their_own_answers(self):
        asked = {k: self.pictures(k, REQUESTS) for k in range(CLIENTS)}
        expected, wrong = {k: self.expected(asked[k]) for k in asked}, []

        def ask(k):
            for i in range(REQUESTS):
                if not np.array_equal(self.server.ask(asked[k][i:i + 1])[0], expected[k][i]):
                    wrong.append((k, i))

        in_threads(ask, asked)
        self.assertEqual(wrong, [])

    def test_nonsense_half_requests_and_many_connections_harm_nobody(self):
        held = []
        for port in (self.server.http, self.server.grpc):
            for data in (b"", os.urandom(5000), b"GET / HTTP/1.0\r\n\r\n", b"POST /v2/models/digits/infer HTTP/1.1\r\nContent-Length: 900\r\n\r\n{\"inputs\": [", *[b""] * 700):
                held.append(socket.create_connection(("127.0.0.1", port), timeout=20))
                self.addCleanup(held[-1].close)
                held[-1].sendall(data)
        pictures = self.pictures(5, 2)
        for kind in ("http", "grpc"):
            np.testing.assert_array_equal(self.server.ask(pictures, kind=kind), self.expected(pictures))

    def test_a_model_that_is_replaced_under_load(self):
        client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{self.server.http}")
        client.load_model("replaced")
        pictures, net = self.pictures(6, 1), Path(self.holder.name) / "replaced/net.tflite"
        expected, stop, wrong = self.expected(pictures), threading.Event(), []

        def ask(_):
            while not stop.is_set():
                if not np.array_equal(self.server.ask(pictures, model="replaced"), expected):
                    wrong.append("another answer")

        with ThreadPoolExecutor(2) as pool:
            asking = [pool.submit(ask, i) for i in range(2)]
            try:
                for _ in range(3):
                    client.load_model("replaced")
                net.write_bytes(MODEL.read_bytes()[:3000])
                with self.assertRaises(Exception) as refused:
                    client.load_model("replaced")
                self.assertIn("damaged or truncated", str(refused.exception))
            finally:
                stop.set()
            for one in asking:
                one.result()
        self.assertEqual(wrong, [])

    def test_all_sessions_have_one_model_though_its_file_is_replaced_meanwhile(self):
        net = Path(self.holder.name) / "swapped.tflite"
        net.write_bytes(MODEL.read_bytes())
        done = subprocess.run([sys.executable, "-c", SWAPPED, str(net)], capture_output=True, text=True, timeout=120)  # MLServer and its client cannot share a process
        self.assertEqual((done.returncode, done.stdout), (0, "loaded\n"), done.stderr)

    def test_bad_requests_are_refused_with_the_reason(self):
        good = self.pictures(0, 1)
        for picture, more, reason in ((good, {"name": "nope"}, "the model takes image"), (good[:, :27], {}, "has shape"),
                                      (good.astype(np.float32), {"type_": "FP32"}, "takes UINT8"), (self.pictures(0, 1100), {}, "has shape")):
            for kind in ("http", "grpc"):
                with self.subTest(reason, kind=kind), self.assertRaises(Exception) as refused:
                    self.server.ask(picture, kind=kind, **more)
                self.assertIn(reason, str(refused.exception))
        np.testing.assert_array_equal(self.server.ask(good), self.expected(good))

    def post(self, values, outputs=None):
        """Sends a request that Triton's client would not send. Returns the status and the answer."""
        given = {"name": "image", "shape": [1, 28, 28, 1], "datatype": "UINT8", "data": values}
        body = {"inputs": [given], **({} if outputs is None else {"outputs": [{"name": one} for one in outputs]})}
        asked = urllib.request.Request(f"http://127.0.0.1:{self.server.http}/v2/models/digits/infer", json.dumps(body).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def test_values_that_the_type_does_not_hold_and_outputs_that_are_not_there_are_refused(self):
        for value in (300, -1, None, 1.7, 1e30, "5", "x", [1], 1 << 70):
            with self.subTest(value=value):
                status, said = self.post([7] * 783 + [value])
                self.assertEqual((status, "digits: 'image': " in said), (400, True), said)
        status, said = self.post([7] * 784, ["probabilities", "nope"])
        self.assertEqual((status, "outputs nope; the model gives probabilities" in said), (400, True), said)
        for values, outputs in (([7] * 784, None), ([7.0] * 784, ["probabilities"]), ([7] * 784, [])):
            status, said = self.post(values, outputs)
            self.assertEqual((status, [one["name"] for one in json.loads(said)["outputs"]]), (200, ["probabilities"]), said)

    def test_bad_requests_beside_good_ones_change_no_answer(self):
        """MLServer joins requests that arrive at once (max_batch_size)."""
        good, wrong = self.pictures(11, 40), []
        expected = self.expected(good)
        bad = [(np.zeros((1, height, 28, 1), np.uint8), {}, "has shape") for height in (14, 42)] + [
            (np.zeros((1, 28, 28, 1), np.float32), {"type_": "FP32"}, "takes UINT8"), (good[:1], {"name": "nope"}, "the model takes image")]

        def ask(k):
            for i in range(len(good)):
                if k % 2:
                    picture, more, reason = bad[(i + k // 2) % len(bad)]
                    try:
                        wrong.append(("answered", reason, self.server.ask(picture, kind="grpc", **more)))
                    except tritonclient.grpc.InferenceServerException as refused:
                        if reason not in str(refused):
                            wrong.append((reason, str(refused)))
                elif not np.array_equal(self.server.ask(good[i:i + 1], kind=("http", "grpc")[k // 2 % 2])[0], expected[i]):
                    wrong.append(("another answer", i))

        in_threads(ask, range(8))
        self.assertEqual(wrong, [])

    def test_models_that_cannot_be_loaded_are_not_ready(self):
        client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{self.server.http}")
        for name, reason in (("broken", "not a TensorFlow Lite model"), ("empty", "0 .tflite files; a folder must have one"), ("odd", "no setting colour"), ("nothing", "not found")):
            with self.subTest(name), self.assertRaises(Exception) as refused:
                client.load_model(name)
            self.assertIn(reason, str(refused.exception))
            self.assertFalse(client.is_model_ready(name), name)
        self.assertTrue(client.is_model_ready("digits"))


class SigtermUnderLoad(unittest.TestCase):
    def test_answers_are_right_until_it_ends(self):
        for device, *before in (["sim:a311d"], ["sim:rk3588"], ["npu", COMMAND, "virtual", "--chip", "a311d", "--"]):
            with self.subTest(device):
                self.check(device, before)

    def check(self, device, before):
        """Also writes a trace to a full disk."""
        same = "sim:a311d" if before else device
        with tempfile.TemporaryDirectory() as folder, skillet.Session(MODEL, same, partition="all") as session:
            server = Server(Path(folder), before, device=device, sessions=2, options={"trace": "/dev/full"})
            pictures, answered, wrong = Served.pictures(7, CLIENTS), [], []
            expected = [session.run(one[None])[0] for one in pictures]

            def ask(k):
                try:
                    while True:
                        (wrong if not np.array_equal(server.ask(pictures[k:k + 1]), expected[k]) else answered).append(k)
                except Exception as gone:  # noqa: BLE001  whatever the client raises after the server has ended
                    self.assertNotIsInstance(gone, AssertionError)

            with ThreadPoolExecutor(CLIENTS) as pool:
                asking = [pool.submit(ask, k) for k in range(CLIENTS)]
                while len(set(answered)) < CLIENTS:
                    time.sleep(0.1)
                server.stop()
                for one in asking:
                    one.result()
            self.assertEqual((wrong, server.process.returncode), ([], 0))


class AnNpuThatDies(unittest.TestCase):
    def test_under_load_answers_go_on_from_the_cpu_and_health_says_so(self):
        with tempfile.TemporaryDirectory() as folder, skillet.Session(MODEL, "cpu") as session:
            virtual = [COMMAND, "virtual", "--chip", "a311d", "--fail", "submit:40-*:hang", "--"]
            server = Server(Path(folder), virtual, device="npu", options={"unproven": "take"})
            asked = {k: Served.pictures(k, 25) for k in range(CLIENTS)}
            expected = {k: np.concatenate([session.run(one[None])[0] for one in asked[k]]).astype(int) for k in asked}
            wrong = []

            def ask(k):
                for picture, scores in zip(asked[k], expected[k]):
                    if np.abs(server.ask(picture[None])[0] - scores).max() > 1:
                        wrong.append(k)

            try:
                self.assertEqual(self.health(server)[0], "ready")
                in_threads(ask, asked)
                self.assertEqual(wrong, [])
                self.assertEqual(self.health(server), ("failed", 0, True, 0.0))
            finally:
                server.stop()

    def test_one_that_fails_while_the_model_is_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Server(Path(folder), [COMMAND, "virtual", "--chip", "rk3588", "--fail", "submit:1-*:EIO", "--"], device="npu")
            try:
                self.assertEqual(self.health(server), ("failed", 0, True, 0.0))
            finally:
                server.stop()
            self.assertRegex((Path(folder) / "log").read_text(), "digits: the NPU failed: it computes 0 of [0-9]+ operations")

    @staticmethod
    def health(server):
        client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.http}")
        about = client.get_model_metadata("digits")["parameters"]
        with urllib.request.urlopen(f"http://127.0.0.1:{server.metrics}/metrics", timeout=20) as page:
            (gauge,) = re.findall(r'^skillet_npu_ops\{model_name="digits"\} (\S+)$', page.read().decode(), re.M)
        return about["npu"], about["npu_ops"], client.is_model_ready("digits"), float(gauge)


if __name__ == "__main__":
    unittest.main()
