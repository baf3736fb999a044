#!/usr/bin/env python3
"""Runs the jobs of test farms in docs/ci-farms.md step by step.

Those of GitLab and GitHub run in a folder with a wheel, in a virtual environment, those of LAVA on a virtual board. LAVA's own schema
validates its job if lava-common is installed.

usage: templates_test.py BUILD_DIR      run at the top of the source tree. Exit code 77: no YAML reader.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

try:
    import yaml
except ImportError:
    print("templates: python3-yaml is not installed")
    sys.exit(77)

BUILD, SOURCE = Path(sys.argv.pop(1)).resolve(), Path.cwd()
sys.path.insert(0, str(SOURCE / "packaging"))
import package  # noqa: E402

PAGE = SOURCE / "docs/ci-farms.md"
CHIP_OF_THE_BOARD = "imx8mp"


def template(title):
    text = re.search(rf"^## {title}\n.*?^```yaml\n(.*?)^```$", PAGE.read_text(), re.M | re.S)[1]
    return yaml.safe_load(text)


def wheel(folder):
    """Makes the wheel as ./x package does, from this build, without plug-ins that the build lacks."""
    staged = folder / "staged"
    for place, name in (("usr/bin", "skillet"), ("usr/lib", "libskillet_c.so.0"), *(("usr/lib/skillet", one) for one in package.LIBRARIES)):
        (staged / place).mkdir(parents=True, exist_ok=True)
        for file in [one for one in (BUILD / "src").rglob(name) if one.is_file()][:1]:
            (staged / place / name).symlink_to(file)
    files = {place: file for place, file in package.contents_of_wheel(staged).items() if file.exists()}
    machine = next(arch for arch, triplet in package.TRIPLETS.items() if triplet.startswith(os.uname().machine))
    return package.wheel("skillet", machine, "0", folder, files, package.described_skillet())


class Templates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="skillet_templates_")
        cls.addClassCleanup(holder.cleanup)
        cls.top = Path(holder.name)
        cls.wheel = wheel(cls.top)
        subprocess.run([sys.executable, "-m", "venv", cls.top / "venv"], check=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SKILLET_", "PYTHON"))}
        cls.environment = {**kept, "PATH": f"{cls.top}/venv/bin:{os.environ['PATH']}", "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def clone(self, name):
        """Makes the folder of a project with a network."""
        folder = self.top / name
        folder.mkdir()
        (folder / self.wheel.name).symlink_to(self.wheel)
        (folder / "model.tflite").symlink_to(SOURCE / "models/digits.tflite")
        (folder / "photo.jpg").symlink_to(SOURCE / "models/digits/3.png")
        self.run_step(folder, "pip install ./skillet-*.whl && skillet run model.tflite --image photo.jpg --device cpu --output expected.npz")
        return folder

    def run_step(self, folder, step, wanted=0, words=("bash", "-eo", "pipefail", "-c"), **more):
        done = subprocess.run([*words, step], cwd=folder, env={**self.environment, **more}, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, wanted, f"{step}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_gitlab(self):
        job = template("GitLab")["npu"]
        for chip in job["parallel"]["matrix"][0]["CHIP"]:
            with self.subTest(chip=chip):
                folder = self.clone(f"gitlab-{chip}")
                for step in job["script"] + job["after_script"]:
                    self.run_step(folder, step, CHIP=chip)
                reports = list(folder.glob(job["artifacts"]["reports"]["junit"]))
                self.assertEqual(len(reports), sum("--junit" in step for step in job["script"]))
                for report in reports:
                    self.assertGreater(len(xml.etree.ElementTree.parse(report).findall(".//testcase")), 0)
                for path in job["artifacts"]["paths"]:
                    self.assertGreater((folder / path).stat().st_size, 0)

    def test_github(self):
        job = template("GitHub")["jobs"]["npu"]
        for chip in job["strategy"]["matrix"]["chip"]:
            with self.subTest(chip=chip):
                folder = self.clone(f"github-{chip}")
                for step in [one["run"] for one in job["steps"] if "run" in one]:
                    self.run_step(folder, step.replace("${{ matrix.chip }}", chip))
        # A job that fails reports what failed, and where.
        (folder / "model.tflite").unlink()
        (folder / "model.tflite").write_bytes(b"TFL3" * 9)
        self.assertIn("::error title=", self.run_step(folder, job["steps"][-1]["run"].replace("${{ matrix.chip }}", chip), wanted=2))

    def test_lava(self):
        steps = template("LAVA")[0]["test"]["definitions"][0]["repository"]["run"]["steps"]
        folder = self.clone("lava")
        for step in steps:
            said = self.run_step(folder, step, words=("skillet", "virtual", "--chip", CHIP_OF_THE_BOARD, "--", "bash", "-eo", "pipefail", "-c"))
            cases = re.findall(r"^<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=\S+ RESULT=(\w+) ", said, re.M)
            self.assertGreater(len(cases), 0, said)
            self.assertNotIn("fail", cases, said)

    def test_lavas_schema_reads_the_job(self):
        board = {"job_name": "npu", "device_type": "a-board", "visibility": "public", "priority": "medium",
                 "timeouts": {"job": {"minutes": 30}, "action": {"minutes": 10}},
                 "actions": [{"deploy": {"to": "tmpfs", "images": {"rootfs": {"url": "http://farm/root.img"}}}},
                             {"boot": {"method": "qemu", "media": "tmpfs", "prompts": ["#"]}}, *template("LAVA")]}
        code = "import sys, yaml\ntry: from lava_common.schemas import validate\nexcept ImportError: sys.exit(77)\nvalidate(yaml.safe_load(sys.stdin))"
        for job, wanted in ((board, 0), ({**board, "actions": [{"test": {"definitions": [{"from": "nowhere"}]}}]}, 1)):
            done = subprocess.run(["/usr/bin/python3", "-c", code], input=yaml.safe_dump(job), capture_output=True, text=True, check=False)
            if done.returncode == 77:
                self.skipTest("lava-common is not installed: the job is not read by LAVA's schema")
            self.assertEqual(done.returncode, wanted, done.stderr)


if __name__ == "__main__":
    unittest.main()
