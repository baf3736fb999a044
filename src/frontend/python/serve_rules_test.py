#!/usr/bin/env python3
"""Tests limits of `skillet serve` in one process: sizes of headers, times of senders, the lock file, clients' state, pixels.

usage: serve_rules_test.py C_LIBRARY SOURCE_DIR VENV     (VENV: made at the first run, as that of python_test.py)

Without a network, tests that need NumPy are left out, with a line.
"""
import argparse
import asyncio
import contextlib
import gc
import importlib.util
import json
import socket
import sys
import tempfile
import unittest
import unittest.mock
import weakref
from pathlib import Path

if __name__ == "__main__" and "--inside" not in sys.argv:
    library, source, venv = sys.argv[1:4]
    sys.path.insert(0, f"{source}/tests/integration")
    from environment import start_inside
    start_inside(__file__, library, source, venv)

SOURCE = Path(sys.argv.pop())
sys.argv.remove("--inside")

from skillet import _zmtp, frigate  # noqa: E402

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
GREETING = _zmtp.GREETING + _zmtp.frame(b"\x05READY\x0bSocket-Type\0\0\0\x03REQ", _zmtp.COMMAND)  # of a client
WHOLE = _zmtp.frame(b"", _zmtp.MORE) + _zmtp.frame(b"{}")
PATIENCE_S = 5.0  # of this test, for a rule to take effect


def long_frame(size, flags):
    return bytes([flags | _zmtp.LONG]) + size.to_bytes(8, "big")


class Senders(unittest.IsolatedAsyncioTestCase):
    async def start(self, answer=lambda client, parts: [b"answer"]):
        server = _zmtp.Server(answer, 1, 1 << 20)
        server._budget = _zmtp.ByteBudget(_zmtp.HELD_BYTES_MAX)
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        self.serving = asyncio.create_task(server._serve(theirs))
        self.reader, self.writer = await asyncio.open_unix_connection(sock=ours)
        self.addAsyncCleanup(asyncio.wait_for, self.serving, PATIENCE_S)
        self.addCleanup(self.writer.close)

    async def is_dropped(self, bytes_each, pause_s):
        """Sends bytes one by one. Returns whether the connection ends meanwhile."""
        ended = asyncio.create_task(self.reader.read())
        for one in bytes_each:
            with contextlib.suppress(OSError):
                self.writer.write(bytes([one]))
                await self.writer.drain()
            done, _ = await asyncio.wait([ended], timeout=pause_s)
            if done:
                return True
        ended.cancel()
        return False

    async def test_a_header_of_64_KiB_is_answered_and_no_longer_one(self):
        await self.start()
        most = _zmtp.HEADER_BYTES_MAX
        self.assertEqual(most, 65536)
        self.writer.write(GREETING + _zmtp.frame(b"", _zmtp.MORE) + _zmtp.frame(bytes(most), _zmtp.MORE) + _zmtp.frame(b"pixels"))
        await asyncio.wait_for(self.reader.readuntil(_zmtp.frame(b"answer")), PATIENCE_S)
        self.writer.write(_zmtp.frame(b"", _zmtp.MORE) + long_frame(most + 1, _zmtp.MORE) + bytes(most + 1) + _zmtp.frame(b"pixels"))
        with contextlib.suppress(ConnectionError):
            self.assertEqual(await asyncio.wait_for(self.reader.read(), PATIENCE_S), b"")

    async def test_a_message_has_a_time_in_which_it_must_be_there(self):
        with unittest.mock.patch.object(_zmtp, "MESSAGE_S", 0.3):
            await self.start()
            self.writer.write(GREETING + WHOLE)
            await asyncio.wait_for(self.reader.readuntil(_zmtp.frame(b"answer")), PATIENCE_S)
            self.assertTrue(await self.is_dropped(long_frame(250, 0) + bytes(100), 0.05))

    async def test_a_greeting_too(self):
        with unittest.mock.patch.object(_zmtp, "GREETING_S", 0.3):
            await self.start()
            self.assertTrue(await self.is_dropped(GREETING, 0.05))

    async def test_a_silent_client_stays(self):
        with unittest.mock.patch.object(_zmtp, "MESSAGE_S", 0.1):
            await self.start()
            self.writer.write(GREETING)
            await asyncio.sleep(0.5)
            self.writer.write(WHOLE)
            await asyncio.wait_for(self.reader.readuntil(_zmtp.frame(b"answer")), PATIENCE_S)

    async def test_a_client_is_one_for_all_its_requests_and_none_when_it_went(self):
        seen = []

        def answer(client, parts):
            seen.append(weakref.ref(client))
            client.model_name = (client.model_name or "") + "asked "
            return [client.model_name.encode()]

        await self.start(answer)
        self.writer.write(GREETING + WHOLE + WHOLE)
        await asyncio.wait_for(self.reader.readuntil(_zmtp.frame(b"asked asked ")), PATIENCE_S)
        self.writer.close()
        await asyncio.wait_for(self.serving, PATIENCE_S)
        gc.collect()
        self.assertEqual([one() for one in seen], [None, None])

    async def test_a_pong_has_the_context_of_its_ping(self):
        await self.start()
        self.writer.write(GREETING + _zmtp.frame(b"\x04PING\0\x0acontext", _zmtp.COMMAND) + WHOLE)
        said = await asyncio.wait_for(self.reader.readuntil(_zmtp.frame(b"answer")), PATIENCE_S)
        self.assertIn(_zmtp.frame(b"\x04PONGcontext", _zmtp.COMMAND), said)


class Bytes(unittest.IsolatedAsyncioTestCase):
    async def test_who_holds_bytes_that_others_need_has_a_time_by_their_number(self):
        with unittest.mock.patch.multiple(_zmtp, HURRY_S=0.2, HURRY_BYTES_PER_S=30, LOOK_S=0.01):
            budget, dropped, loop = _zmtp.ByteBudget(100), {}, asyncio.get_running_loop()
            begin = loop.time()

            def slow(name, size):
                def drop():
                    dropped[name] = loop.time() - begin
                    self.giving = loop.create_task(budget.give(size))

                return drop

            await budget.take(100)
            budget.expect(slow("of 10 bytes", 10), 10)
            budget.expect(slow("of 60 bytes", 60), 60)
            whole = slow("that is whole", 30)
            budget.expect(whole, 30)
            budget.expect_nothing(whole)
            await asyncio.sleep(0.7)
            self.assertEqual(dropped, {}, "nobody waits")
            await asyncio.wait_for(budget.take(10), PATIENCE_S)
            self.assertEqual(list(dropped), ["of 10 bytes"])
            await asyncio.wait_for(budget.take(60), PATIENCE_S)
            self.assertGreater(dropped["of 60 bytes"], 2)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(budget.take(30), 0.1)


class Frigate(unittest.TestCase):
    def test_the_lock_is_no_link(self):
        """Otherwise another user with access to the folder could make this user create and lock a file elsewhere."""
        with tempfile.TemporaryDirectory() as folder:
            place, elsewhere = Path(folder, "socket"), Path(folder, "elsewhere")
            Path(f"{place}.lock").symlink_to(elsewhere)
            with self.assertRaisesRegex(OSError, "socket.lock is a link; remove it$"):
                _zmtp.listen(f"ipc://{place}")
            self.assertFalse(elsewhere.exists() or place.exists())
            Path(f"{place}.lock").unlink()
            listener, made = _zmtp.listen(f"ipc://{place}")
            with self.assertRaisesRegex(OSError, "^another server waits at ipc://"):
                _zmtp.listen(f"ipc://{place}")
            listener.close()
            self.assertEqual(made, str(place))
            with self.assertRaisesRegex(OSError, f"^there is no folder {folder}/none; mkdir -p makes it$"):
                _zmtp.listen(f"ipc://{folder}/none/socket")
            with self.assertRaisesRegex(OSError, f"^{folder}/n+: .*too long$"):
                _zmtp.listen(f"ipc://{folder}/{'n' * 200}")

    def protocol(self):
        class Models:
            def request(self, name):
                return {"model_available": True, "model_loaded": True}

            def loaded(self, name):
                return None

            def why_not(self, name):
                return f"asked for {name}"

        return frigate.Protocol(Models())

    @staticmethod
    def ask(protocol, client, header):
        return json.loads(protocol.answer(client, [json.dumps(header).encode(), b""])[0])

    def test_the_model_of_a_client_is_remembered_while_it_is_connected(self):
        protocol, first = self.protocol(), _zmtp.Client()
        asked = {"model_request": True, "model_name": "net.tflite"}
        with unittest.mock.patch.object(frigate, "say"):
            self.ask(protocol, first, asked)
            for _ in range(3000):
                self.ask(protocol, _zmtp.Client(), {**asked, "model_name": "another.tflite"})
            self.assertEqual(self.ask(protocol, first, {"shape": [1]})["error"], "asked for net.tflite")
            self.assertEqual(self.ask(protocol, _zmtp.Client(), {"shape": [1]})["error"], "asked for None")

    def test_a_model_that_is_none_of_tensorflow_lite_has_a_remedy(self):
        said = "the server takes TensorFlow Lite files, so export the network as one (docs/yolo.md)"
        data = (SOURCE / "tests/models/onnx/lenet.onnx").read_bytes()
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(frigate, "say") as say:
            args = argparse.Namespace(device="cpu", option=[], task="auto", threshold=0.4, workers=1, accept_models=True)
            models = frigate.Models(Path(folder), args)
            Path(folder, "net.onnx").write_bytes(data)
            Path(folder, "half.tflite").write_bytes((SOURCE / "models/digits.tflite").read_bytes()[:100])
            for name in ("net.onnx", "half.tflite"):
                self.assertIsNone(models.load(name))
            self.assertEqual(models.why_not("net.onnx"), f"net.onnx: an ONNX model, perhaps; {said}")
            self.assertRegex(models.why_not("half.tflite"), "^half.tflite: [^/]*$")
            self.assertEqual(models.save("sent.tflite", data)["error"], f"sent.tflite: an ONNX model, perhaps; {said}")
            self.assertRegex(models.save("sent.tflite", b"nonsense")["error"], "^sent.tflite: not a TensorFlow Lite model")
        self.assertEqual(say.call_count, 2)

    def test_names_of_models_are_short(self):
        models = frigate.Models(Path("/"), argparse.Namespace())
        self.assertEqual(models.path("n" * 199).name, "n" * 199)
        for name in ("n" * 200, "\u00e9" * 100):
            with self.assertRaises(frigate.BadRequest):
                models.path(name)

    @unittest.skipUnless(HAS_NUMPY, "no NumPy here")
    def test_bytes_of_pixels_are_moved_where_the_model_has_signed_ones(self):
        import numpy as np
        detector = frigate.Detector.__new__(frigate.Detector)
        detector.input = argparse.Namespace(dtype=np.dtype(np.int8), type="int8")
        stored = detector._stored(np.asarray([0, 1, 127, 128, 255], np.uint8))
        self.assertEqual((stored.dtype, stored.tolist()), (np.int8, [-128, -127, -1, 0, 127]))


if __name__ == "__main__":
    unittest.main()
