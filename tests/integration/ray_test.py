#!/usr/bin/env python3
"""Tests skillet.ray on a cluster of two nodes of this machine, an NPU each: results equal a session's; actors run where NPUs are.

usage: ray_test.py C_LIBRARY SKILLET SOURCE_DIR VENV     (VENV: made at the first run, some 500 MB; `./x hosts` calls this)
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

if __name__ == "__main__" and "--inside" not in sys.argv:
    library, command, source, venv = sys.argv[1:5]
    from environment import virtual_environment
    python, found = virtual_environment(Path(venv), [["ray[data]==2.60.0", "numpy", "ai-edge-litert"]])
    if not found:
        sys.exit(77)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLET_", "PYTHON", "RAY_"))}
    environment["PATH"] = f"{Path(command).resolve().parent}:{environment['PATH']}"
    environment.update(SKILLET_C_LIBRARY=os.path.abspath(library), PYTHONPATH=f"{source}/src/frontend/python", SKILLET_LOG="error", SKILLET_PARTITION="all",
                       RAY_USAGE_STATS_ENABLED="0", RAY_DATA_DISABLE_PROGRESS_BARS="1")
    os.execve(python, [str(python), __file__, "--inside", source], environment)

SOURCE = Path(sys.argv.pop())
sys.argv.remove("--inside")

import numpy as np  # noqa: E402
import ray  # noqa: E402
import ray.cluster_utils  # noqa: E402
import ray.data  # noqa: E402

import skillet  # noqa: E402
import skillet.ray  # noqa: E402

MODEL, DEVICE, ROWS = SOURCE / "models/digits.tflite", "sim:a311d", 50


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        node = {"num_cpus": 2, "resources": {"npu": 1}, "object_store_memory": 80 << 20}
        cls.cluster = ray.cluster_utils.Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        cls.cluster.add_node(**node)
        ray.init(address=cls.cluster.address, log_to_driver=False)
        pixels = np.random.default_rng(1).integers(0, 256, (ROWS, 28, 28, 1), np.uint8)
        with skillet.Session(MODEL, DEVICE) as session:
            cls.name, cls.output = session.inputs[0].name, session.outputs[0].name
            cls.expected = np.stack([session.run(one[None])[0] for one in pixels])
        cls.pixels = pixels

    @classmethod
    def tearDownClass(cls):
        ray.shutdown()
        cls.cluster.shutdown()

    def test_each_actor_has_an_npu(self):
        actors = [skillet.ray.network(MODEL, DEVICE) for _ in range(2)]
        self.assertEqual(len(set(ray.get([one.node.remote() for one in actors]))), 2)
        third = skillet.ray.network(MODEL, DEVICE)
        waits = third.node.remote()
        self.assertEqual(ray.wait([waits], timeout=2)[0], [])
        jobs = [actors[i % 2].run.remote(one[None]) for i, one in enumerate(self.pixels)]
        np.testing.assert_array_equal(np.stack([one[0] for one in ray.get(jobs)]), self.expected)
        ray.kill(actors[0])
        self.assertTrue(ray.get(waits, timeout=60))
        for one in (actors[1], third):
            ray.kill(one)

    def test_data_sets(self):
        rows = [{"id": i, self.name: one} for i, one in enumerate(self.pixels)]
        done = skillet.ray.map_batches(ray.data.from_items(rows, override_num_blocks=4), MODEL, DEVICE, npus=2, batch_size=8).take_all()
        self.assertEqual(sorted(row["id"] for row in done), list(range(ROWS)))
        for row in done:
            np.testing.assert_array_equal(row[self.output], self.expected[row["id"]])

    def test_rows_without_the_column(self):
        """Runs last: Ray keeps the actor of a failed data set for a while."""
        with self.assertRaisesRegex(Exception, f"no column {self.name}; there are other"):
            skillet.ray.map_batches(ray.data.from_items([{"other": 1}]), MODEL, DEVICE).take_all()

    def test_eval_is_that_of_one_machine(self):
        data = SOURCE / "models/digits"
        for device in (DEVICE, "sim:rk3588"):
            ours = skillet.ray.evaluate(MODEL, data, device, npus=2)
            said = subprocess.run(["skillet", "eval", MODEL.name, "--data", data, "--device", device, "--json"], cwd=MODEL.parent, capture_output=True, check=True)
            theirs = json.loads(said.stdout)
            self.assertEqual((ours["pictures"], ours["same_class"]), (10, 10))
            self.assertEqual(set(ours), set(theirs))
            for key, value in theirs.items():
                if isinstance(value, float):
                    self.assertAlmostEqual(ours[key], value, 9, key)
                elif key != "differences":  # rounded separately for each share
                    self.assertEqual(ours[key], value, key)
            for mine, one in zip(ours["differences"], theirs["differences"]):
                self.assertEqual(mine["largest"], one["largest"])
                self.assertAlmostEqual(mine["mean"], one["mean"], 1)
        with tempfile.TemporaryDirectory() as folder:
            labels = Path(folder, "labels.txt")
            labels.write_text("".join(f"{k}.png {k}\n" for k in range(10)))
            words = ("--layers", f"--labels={labels}")
            ours = skillet.ray.evaluate(MODEL, data, DEVICE, npus=3, options=words)
            said = subprocess.run(["skillet", "eval", MODEL.name, "--data", data, "--device", DEVICE, "--json", *words], cwd=MODEL.parent, capture_output=True, check=True)
        theirs = json.loads(said.stdout)
        self.assertTrue(theirs["layers"])
        self.assertEqual((ours["with_truth"], ours["top1"]), (10, theirs["top1"]))
        self.assertEqual([(one["elems"], one["differing"]) for one in ours["layers"]], [(one["elems"], one["differing"]) for one in theirs["layers"]])
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "README.txt").write_text("no picture")
            with self.assertRaisesRegex(skillet.InvalidArgument, "no .png, .jpg or .bmp in it"):
                skillet.ray.evaluate(MODEL, folder, DEVICE, npus=2)
        with self.assertRaisesRegex(skillet.Error, "sim:nothing"):
            skillet.ray.evaluate(MODEL, data, "sim:nothing", npus=2)

    def test_conformance_is_that_of_one_machine(self):
        options = ["--only", "^(conv2d|add)/u8/", "--jobs", "1"]
        with tempfile.TemporaryDirectory() as folder:
            code = skillet.ray.conformance(f"{folder}/ours", DEVICE, 2, options)
            words = [sys.executable, "-m", "skillet", "conformance", "--device", DEVICE, "-o", f"{folder}/theirs", *options]
            self.assertEqual(code, subprocess.run(words, capture_output=True, check=False).returncode)
            ours, theirs = ({row.rsplit(",", 1)[0] for row in Path(folder, name, "results.csv").read_text().splitlines()} for name in ("ours", "theirs"))
            self.assertGreater(len(ours), 20)
            self.assertEqual(ours, theirs)


if __name__ == "__main__":
    unittest.main()
